"""Says on stderr that this rank died, where it could not say so itself.

A process that is killed, or crashes in compiled code, says nothing, and what its launcher
says names no nodes. A `Witness` is a shell at the other end of a pipe, which closes however
the process ends; in a session of its own, it is spared by what kills the process.
"""

from __future__ import annotations

import atexit
import faulthandler
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

# $0 is a directory that does not exist. The launcher kills all ranks after one has died: the
# first witness of a machine to make it speaks, and no other. It goes when all have seen it.
_SCRIPT = """
while read -r line; do who=$line; done
[ -n "$who" ] || exit 0
mkdir "$0" 2>/dev/null && echo "proxgt: $who was killed or crashed" >&2
exec 2>&-
sleep 5
rmdir "$0"
"""


class Witness:
    """Of this process, until it ends or `dismiss` is called; `said` is the directory."""

    def __init__(self, said: Path) -> None:
        self._said = said
        if not faulthandler.is_enabled() and sys.__stderr__ is not None:
            with suppress(OSError, ValueError):  # no file behind it
                faulthandler.enable()  # says of a crash which it was, and where
        try:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, str(said)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                text=True,
            )
        except OSError:  # no shell here: the launcher's report must do
            self._shell = None
        atexit.register(self.dismiss)

    def name(self, who: str) -> None:
        """Whose death it would be."""
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError, ValueError):
                self._shell.stdin.write(f"{who}\n")
                self._shell.stdin.flush()

    def dismiss(self) -> None:
        """From now on the end of this process is an ordinary one."""
        self.name("")

    def hush(self) -> None:
        """All witnesses here: this process itself says why the job ends."""
        with suppress(OSError):
            self._said.mkdir()

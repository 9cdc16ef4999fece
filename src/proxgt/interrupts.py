"""Ctrl-C as a request: the chunk at hand ends, the run returns what it has."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Interrupts:
    """While entered, the first Ctrl-C sets `asked`; a second one interrupts at once.

    Signals reach only the main thread; in any other, nothing changes.
    """

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupts:
        self._listening = threading.current_thread() is threading.main_thread()
        if self._listening:
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._listening:
            signal.signal(signal.SIGINT, self._before)

    def _ask(self, *_: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

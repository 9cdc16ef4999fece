"""What is wrong in a config, said in one line with the path of where it is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ConfigError(Exception):
    """What is wrong, and the dotted path of where, such as `method.step_size`."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def one_line(error: BaseException) -> str:
    """The first paragraph of an error's message as one line, with the notes added to it."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}"
    # JAX adds notes of its own, about its tracebacks, that begin with a rule.
    notes = [note for note in getattr(error, "__notes__", []) if not note.startswith("--")]
    text = "; ".join([str(error).strip().partition("\n\n")[0], *notes])
    return " ".join(text.split()) or type(error).__name__


@contextmanager
def blame(path: str, keys: Iterable[str] = ()) -> Iterator[None]:
    """Turn what the library refuses into an error of this table, and of the key it names."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        message = one_line(error)
        first, _, rest = message.partition(" ")
        if first in keys:
            raise ConfigError(f"{path}.{first}", rest) from error
        raise ConfigError(path, message) from error


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean ...?`, or nothing, in whatever case the name was written."""
    lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    return f"; did you mean {lower[near[0]]}?" if near else ""

"""Checks of what a user passes in: each names the argument, the value and the remedy."""

from __future__ import annotations

import difflib
import math
import operator
import os
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

MOST = 2**31 - 1  # what compiled code counts by is an int32
_MOST_SEED = 2**32 - 1  # the seeds that give the same keys with and without 64-bit integers

_shown = reprlib.Repr()
_shown.maxother = 80


def positive_int(name: str, value: Any, *, least: int = 1, most: int = MOST) -> int:
    """An integer from `least` to `most`; not an array that holds one, which has no hash."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or (hasattr(value, "__array__") and not isinstance(value, np.integer)):
        raise TypeError(f"{name} must be an integer >= {least}, got {shortened(value)}")
    if isinstance(value, bool) or number < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    if number > most:
        raise ValueError(f"{name} must be an integer <= {most}, got {value!r}")
    return number


def seed(name: str, value: Any) -> int:
    """An integer that seeds random draws."""
    return positive_int(name, value, least=0, most=_MOST_SEED)


def size(name: str, value: Any) -> int | str:
    """An integer of at least one, or "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name} must be an integer >= 1 or 'auto', got {value!r}")
        return value
    return positive_int(name, value)


def finite_number(name: str, value: Any) -> float:
    """A finite real number; neither a string that holds one nor a truth value."""
    if isinstance(value, (str, bytes, bool, np.bool_)) or np.ndim(value) > 0:
        raise TypeError(f"{name} must be a number, got {shortened(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {shortened(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def positive_number(name: str, value: Any) -> float:
    """A finite number above zero."""
    number = finite_number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be > 0, got {value!r}")
    return number


def non_negative_number(name: str, value: Any) -> float:
    """A finite number of at least zero."""
    number = finite_number(name, value)
    if number < 0:
        raise ValueError(f"{name} must be >= 0, got {value!r}")
    return number


def finite_array(name: str, value: Any) -> np.ndarray:
    """A numeric array without NaN or infinity."""
    try:
        array = np.asarray(value)
    except ValueError:  # NumPy says "inhomogeneous shape", and not of what
        raise ValueError(
            f"{name} must be an array, but its parts differ in shape: {shortened(value)}"
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a numeric array, got dtype {array.dtype}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} must be finite, but entry {where} is {array[where]}: "
            "clean or drop such entries first"
        )
    return array


def boolean(name: str, value: Any) -> None:
    """True or False, and no other value that stands for one."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {shortened(value)}")


def instance(name: str, value: Any, kind: type, example: str) -> None:
    """Refuse what is not an object of a class."""
    if not isinstance(value, kind):
        raise TypeError(
            f"{name} must be a {kind.__name__}, such as {example}, got {shortened(value)}"
        )


def shortened(value: Any) -> str:
    """`value` as an error message can hold it: short, and in one line."""
    return " ".join(_shown.repr(value).split())


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of some names, with the nearest one suggested."""
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return value
    near = difflib.get_close_matches(str(value), choices, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"{name} must be one of {', '.join(map(repr, choices))}, got {shortened(value)}{hint}"
    )


def directory(name: str, value: Any) -> Path:
    """A directory, made where there is none."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be the path of a directory, got {shortened(value)}")
    path = Path(value)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{name} must be a directory, but {path} is or lies in a file") from None
    return path

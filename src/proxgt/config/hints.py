"""Type hints as what a TOML value is checked against, and said to be in errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
from jax.typing import ArrayLike

_WORDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    dict: "a table",
    list: "an array",
    tuple: "an array",
    Path: "a file name",
    np.ndarray: "an array",
}


def options_of(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the hint itself."""
    if hint == ArrayLike:  # a union of much that TOML cannot say
        return (float, np.ndarray)
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def is_function(hint: Any) -> bool:
    """Whether a hint asks for a function (or None)."""
    kinds = [get_origin(option) or option for option in options_of(hint)]
    return Callable in kinds


def fits(value: Any, hint: Any) -> bool:
    """Whether a TOML value is what the hint says; a hint without a TOML form accepts all."""
    return any(_fits_one(value, option) for option in options_of(hint))


def converted(value: Any, hint: Any) -> Any:
    """A fitting value in the type the hint prefers: arrays for arrays, tuples for tuples."""
    if isinstance(value, list):
        kinds = [get_origin(option) or option for option in options_of(hint)]
        if np.ndarray in kinds:
            return np.asarray(value)
        if tuple in kinds:
            return tuple(value)
    return value


def wanted(hint: Any) -> str:
    """What the hint asks for, in the words of TOML."""
    words: list[str] = []
    for option in options_of(hint):
        kind = get_origin(option) or option
        if kind is Literal:
            words += [repr(choice) for choice in get_args(option)]
        elif kind is Callable:
            words.append("a function, given as 'module:function'")
        elif kind in (list, tuple, Sequence):
            words.append(_wanted_array(option))
        elif kind in _WORDS:
            words.append(_WORDS[kind])
    if "a number" in words and "an integer" in words:
        words.remove("an integer")
    return " or ".join(dict.fromkeys(words)) or "another type"


def _wanted_array(hint: Any) -> str:
    items = [arg for arg in get_args(hint) if arg is not Ellipsis]
    if not items or items[0] not in _WORDS:
        return "an array"
    plural = _WORDS[items[0]].partition(" ")[2] + "s"
    fixed = get_origin(hint) is tuple and Ellipsis not in get_args(hint)
    return f"an array of {len(items)} {plural}" if fixed else f"an array of {plural}"


def _fits_one(value: Any, hint: Any) -> bool:
    kind = get_origin(hint) or hint
    if kind is Literal:
        return value in get_args(hint)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is np.ndarray:
        return isinstance(value, list)
    if kind in (list, tuple, Sequence):
        return _fits_array(value, hint)
    if kind in (dict, Mapping):
        return isinstance(value, dict)
    if kind in (bool, str):
        return isinstance(value, kind)
    return kind is not NoneType  # whatever else: what is called will say


def _fits_array(value: Any, hint: Any) -> bool:
    items = [arg for arg in get_args(hint) if arg is not Ellipsis]
    if not isinstance(value, list):
        return False
    if get_origin(hint) is tuple and Ellipsis not in get_args(hint):
        return len(value) == len(items) and all(map(fits, value, items))
    return not items or all(fits(item, items[0]) for item in value)

"""What a run is, as plain text: tells a resumed run from a changed one, and what changed."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def fingerprint(value: Any, name: str) -> dict[str, str]:
    """`value` as {dotted name: text}, one entry for every part that could differ."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {name: type(value).__name__} | _join(parts, name)
    if isinstance(value, Mapping):
        return _join(value, name)
    if isinstance(value, (list, tuple)):
        return _join(dict(enumerate(value)), name)
    if isinstance(value, functools.partial):
        return _join({"func": value.func, "args": value.args, "kwargs": value.keywords}, name)
    if isinstance(value, types.MethodType):
        return _join({"func": value.__func__, "self": value.__self__}, name)
    if isinstance(value, types.FunctionType):
        return {name: f"{value.__module__}.{value.__qualname__}"} | _join(_inside(value), name)
    if isinstance(wrapped := getattr(value, "__wrapped__", None), types.FunctionType):
        return fingerprint(wrapped, name)  # that jax.jit was given
    if _is_array(value):
        return {name: _array(np.asarray(value))}
    return {name: _ADDRESS.sub("", repr(value))}


def difference(
    old: Mapping[str, str], new: Mapping[str, str], says: str = "was {} and is now {}"
) -> str | None:
    """One sentence naming the first part that differs, or None."""
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name, "absent"), new.get(name, "absent")
        if was != now:
            return f"{name} {says.format(was, now)}"
    return None


def _join(parts: Mapping[Any, Any], name: str) -> dict[str, str]:
    out: dict[str, str] = {}
    for key, part in parts.items():
        out |= fingerprint(part, f"{name}.{key}")
    return out


def _inside(function: types.FunctionType) -> dict[str, Any]:
    """What a function computes, as far as it can be told: its code, what it closes over, and
    the helpers, numbers and arrays of its module that it names."""
    helpers, plain = _named(function)
    codes = [one.__code__ for one in (function, *helpers)]
    code = hashlib.sha256(b"".join(map(_code_bytes, codes))).hexdigest()[:16]
    cells = function.__closure__ or ()
    closed = {
        free: cell.cell_contents
        for free, cell in zip(function.__code__.co_freevars, cells, strict=True)
        if cell.cell_contents is not function
    }
    return plain | closed | {"code": code}


def _named(function: types.FunctionType) -> tuple[list[types.FunctionType], dict[str, Any]]:
    """The functions, and the numbers, texts and arrays, that a function names in its module."""
    helpers, plain, waiting = [], {}, [function]
    while waiting:
        one = waiting.pop()
        for name in sorted(_names(one.__code__) & one.__globals__.keys()):
            value = getattr(one.__globals__[name], "__wrapped__", one.__globals__[name])
            if isinstance(value, types.FunctionType):
                if value.__module__ == function.__module__ and value not in (function, *helpers):
                    helpers.append(value)
                    waiting.append(value)
            elif isinstance(value, (int, float, str)) or _is_array(value):
                plain[name] = value
    return helpers, plain


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*inner)


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and not isinstance(value, type)


def _code_bytes(code: types.CodeType) -> bytes:
    consts = [_ordered(c) for c in code.co_consts if not isinstance(c, types.CodeType)]
    inner = [_code_bytes(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    text = repr((consts, code.co_names)).encode()
    return code.co_code + text + b"".join(inner)


def _ordered(constant: Any) -> Any:
    """A set in an order of its own: that of its strings is another in every process."""
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant


def _array(array: np.ndarray) -> str:
    if array.ndim == 0:
        return repr(array.item())
    digest = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()[:16]
    return f"array{array.shape} {array.dtype} {digest}"

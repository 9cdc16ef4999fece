"""Frozen records: the one way this package declares a value object.

A record is a frozen dataclass that is also a JAX pytree. Fields are arrays or numbers and
enter compiled code as arguments, so a new strength or step size does not recompile;
fields marked `static()` are part of the program, so they must be hashable.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax

T = TypeVar("T")


def static(**options: Any) -> Any:
    """A field that is part of the compiled program: hashable, compared by value."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass and a pytree.

    Unlike `jax.tree_util.register_dataclass`, rebuilding a record inside JAX does not run
    `__post_init__`, so that checks of user input see only user input and never a tracer.
    """
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
    meta = tuple(f.name for f in fields if f.metadata.get("static", False))
    data = tuple(f.name for f in fields if f.name not in meta)

    def flatten(self: T) -> tuple[Any, Any]:
        children = tuple((jax.tree_util.GetAttrKey(name), getattr(self, name)) for name in data)
        return children, tuple(getattr(self, name) for name in meta)

    def unflatten(aux: Any, children: Any) -> T:
        self = object.__new__(cls)
        for name, value in zip(meta + data, (*aux, *children), strict=True):
            object.__setattr__(self, name, value)
        return self

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


def is_record(value: Any) -> bool:
    """Whether JAX knows `value` as a tree of arrays rather than as one opaque leaf."""
    return not jax.tree_util.all_leaves([value])

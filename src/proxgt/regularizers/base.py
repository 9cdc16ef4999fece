"""What a regularizer is: h of Psi = F + h, convex, possibly non-smooth, known to every node."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from proxgt.checks import finite_array, non_negative_number
from proxgt.records import record, static


class Regularizer(abc.ABC):
    """A convex function h, known by its value and its proximal operator.

        value(x)      = h(x), +inf outside the domain of h
        prox(v, step) = argmin_u 1/2 ||u - v||^2 + step h(u)

    x and v are one array, normally a flat vector of length p; `prox` keeps its shape and
    float dtype. Both may be jitted, vmapped over rows, and given a traced step. When h is
    the indicator of a set, `prox` is the projection whatever the step, and `value` allows
    for rounding: it is 0 up to a violation of 10 sqrt(eps) times the scale of the set
    (1.5e-7 in float64, 3.5e-3 in float32). A compact set also has the linear minimizer of
    the Frank-Wolfe methods, `lmo(direction)` = argmin over u in the set of <direction, u>.
    """

    def __init_subclass__(cls) -> None:
        # A dataclass writes its own __repr__ unless the class already holds one.
        if "__repr__" not in vars(cls):
            cls.__repr__ = Regularizer.__repr__

    @abc.abstractmethod
    def value(self, x: Any) -> jax.Array:
        """h(x), a scalar."""

    @abc.abstractmethod
    def prox(self, v: Any, step: ArrayLike) -> Any:
        """The minimizer over u of 1/2 ||u - v||^2 + step h(u)."""

    def __repr__(self) -> str:
        if not dataclasses.is_dataclass(self):
            return object.__repr__(self)
        shown = [f for f in dataclasses.fields(self) if f.init]
        arguments = (f"{f.name}={_abbreviated(getattr(self, f.name))}" for f in shown)
        return f"{type(self).__name__}({', '.join(arguments)})"


@record
class Custom(Regularizer):
    """A regularizer of the user's own: any hashable object with `value` and `prox`.

    The object is part of the compiled program, told apart by its hash: a new object compiles
    anew, and attributes changed after the first run are not seen. For strengths that
    can change freely, subclass `Regularizer` under `proxgt.records.record` instead.
    """

    h: Any = static()

    def __post_init__(self) -> None:
        _check_methods(self.h)
        try:
            hash(self.h)
        except TypeError:
            raise TypeError(
                f"h must be hashable, got {self.h!r} of unhashable type "
                f"{type(self.h).__name__}: give the class a __hash__, or make it a frozen "
                "dataclass"
            ) from None

    def value(self, x: ArrayLike) -> jax.Array:
        """h.value(x), in the dtype of x."""
        x = as_floats(x)
        return jnp.asarray(self.h.value(x), x.dtype)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        """h.prox(v, step), in the dtype of v and checked to have its shape."""
        v = as_floats(v)
        u = jnp.asarray(self.h.prox(v, step), v.dtype)
        if u.shape != v.shape:
            raise ValueError(
                f"{type(self.h).__name__}.prox must return the shape of v, {v.shape}, "
                f"but returned {u.shape}"
            )
        return u

    @property
    def lmo(self) -> Any:
        """The linear minimizer of h, where h has one."""
        return self.h.lmo


def as_regularizer(h: Any) -> Any:
    """A regularizer that can ride through jit: `h` itself, or `h` wrapped in `Custom`.

    Anything with `value` and `prox` will do. Pytrees pass as they are; the rest are wrapped.
    """
    _check_methods(h)
    return Custom(h) if jax.tree_util.all_leaves([h]) else h


def is_regularizer(h: Any) -> bool:
    """Whether `h` is an object with `value` and `prox`."""
    return not isinstance(h, type) and not _missing_methods(h)


def _missing_methods(h: Any) -> list[str]:
    return [name for name in ("value", "prox") if not callable(getattr(h, name, None))]


def _check_methods(h: Any) -> None:
    if isinstance(h, type):
        raise TypeError(
            f"regularizer must be an object, got the class {h.__name__}: "
            f"call it, as in {h.__name__}(...)"
        )
    missing = _missing_methods(h)
    if missing:
        raise TypeError(
            f"regularizer must have methods value(x) and prox(v, step), but {h!r} of type "
            f"{type(h).__name__} lacks {' and '.join(missing)}"
        )


# What the classes share ------------------------------------------------------------------


def set_fields(self: Any, **values: Any) -> None:
    """Replace fields of a frozen record by their checked form, in `__post_init__` only."""
    for name, value in values.items():
        object.__setattr__(self, name, value)


def non_negative(name: str, value: Any) -> float | np.ndarray:
    """A finite number >= 0, or an array of them."""
    if np.ndim(value) == 0:
        return non_negative_number(name, value)
    array = finite_array(name, value).astype(np.float64)
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(f"{name} must be >= 0, but entry {where} is {array[where]}")
    return array


def as_floats(x: ArrayLike) -> jax.Array:
    """x as an array of floats: a float dtype is kept, integers take the default one."""
    return jnp.asarray(x, jnp.result_type(float, jnp.asarray(x)))


def like(x: jax.Array, name: str, value: ArrayLike) -> jax.Array:
    """A field in the dtype of x, checked to fit (broadcast to) the shape of x.

    Without the cast a float64 field would promote a float32 iterate under x64.
    """
    field = jnp.asarray(value, x.dtype)
    try:
        fits = jnp.broadcast_shapes(field.shape, x.shape) == x.shape
    except ValueError:
        fits = False
    if not fits:
        raise misfit(name, field.shape, x)
    return field


def misfit(name: str, shape: tuple[int, ...], x: jax.Array) -> ValueError:
    """The error for a field that was made for arguments of another shape."""
    return ValueError(f"{name} is for arguments of shape {shape}, got one of shape {x.shape}")


def indicator(violation: jax.Array, scale: ArrayLike) -> jax.Array:
    """0 where every violation is rounding at this scale, else +inf (also for NaN)."""
    tolerance = 10 * math.sqrt(jnp.finfo(violation.dtype).eps)
    feasible = jnp.all(violation <= tolerance * scale)
    return jnp.where(feasible, 0, jnp.inf).astype(violation.dtype)


def soft_threshold(v: jax.Array, threshold: jax.Array) -> jax.Array:
    """sign(v) max(|v| - threshold, 0), exactly zero where |v| <= threshold."""
    return v - jnp.clip(v, -threshold, threshold)


def norm(x: jax.Array) -> jax.Array:
    """||x||_2, free of overflow and underflow, with gradient 0 (not NaN) at 0."""
    scale = jax.lax.stop_gradient(jnp.max(jnp.abs(x)))
    scale = jnp.where(scale > 0, scale, 1)
    squares = jnp.sum((x / scale) ** 2)
    return jnp.where(squares > 0, scale * jnp.sqrt(jnp.where(squares > 0, squares, 1)), squares)


def _abbreviated(value: Any) -> str:
    if isinstance(value, (np.ndarray, jax.Array)) and not isinstance(value, Tracer):
        text = np.array2string(np.asarray(value), threshold=8, edgeitems=3, separator=", ")
        return " ".join(text.split())
    return repr(value)

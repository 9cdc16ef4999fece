"""Indicators of polyhedra: the prox is the projection, whatever the step."""

# What value and prox do is said once, in Regularizer.

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from optax import projections

from proxgt.checks import finite_array, finite_number
from proxgt.records import record, static
from proxgt.regularizers.base import (
    Regularizer,
    as_floats,
    indicator,
    like,
    misfit,
    norm,
    set_fields,
)


@record
class NonNegative(Regularizer):
    """Indicator of {x : x >= 0}. Rounding is relative to the largest |x_i|."""

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        return indicator(-x, jnp.max(jnp.abs(x)))

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        return projections.projection_non_negative(as_floats(v))


@record
class Box(Regularizer):
    """Indicator of {x : lo <= x <= hi}, one bound or one per coordinate, infinity allowed.

    Rounding is relative to the finite bounds of each coordinate, or, where these are 0 or
    absent, to the largest |x_i|. A box has `lmo` when every bound is finite.
    """

    lo: ArrayLike
    hi: ArrayLike
    bounded: bool = static(init=False)

    def __post_init__(self) -> None:
        lo, hi = _bound("lo", self.lo), _bound("hi", self.hi)
        try:
            lows, highs = np.broadcast_arrays(lo, hi)
        except ValueError:
            raise ValueError(
                "lo and hi must be numbers or arrays of one shape, "
                f"got shapes {np.shape(lo)} and {np.shape(hi)}"
            ) from None
        empty = (lows > highs) | (lows == np.inf) | (highs == -np.inf)
        if empty.any():
            where = tuple(int(i) for i in np.argwhere(empty)[0])
            place = f" at entry {where}" if where else ""
            raise ValueError(
                f"lo must be <= hi with a number in between, got lo = {lows[where]} and "
                f"hi = {highs[where]}{place}"
            )
        bounded = bool(np.isfinite(lo).all() and np.isfinite(hi).all())
        set_fields(self, lo=lo, hi=hi, bounded=bounded)

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        lo, hi = self._bounds(x)
        scale = jnp.maximum(*(jnp.where(jnp.isfinite(b), jnp.abs(b), 0) for b in (lo, hi)))
        scale = jnp.where(scale > 0, scale, jnp.max(jnp.abs(x)))
        return indicator(jnp.maximum(lo - x, x - hi), scale)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        return projections.projection_box(v, *self._bounds(v))

    @property
    def lmo(self) -> Callable[[ArrayLike], jax.Array]:
        """direction -> lo where the direction is positive, hi elsewhere."""
        if not self.bounded:
            raise AttributeError("Box has lmo only when every bound is finite")
        return self._lmo

    def _lmo(self, direction: ArrayLike) -> jax.Array:
        direction = as_floats(direction)
        return jnp.where(direction > 0, *self._bounds(direction))

    def _bounds(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return like(x, "lo", self.lo), like(x, "hi", self.hi)


@record
class Halfspace(Regularizer):
    """Indicator of {x : <normal, x> <= offset}.

    Rounding is relative to the larger of ||x|| and |offset| / ||normal||.
    """

    normal: ArrayLike
    offset: ArrayLike

    def __post_init__(self) -> None:
        normal = finite_array("normal", self.normal).astype(np.float64)
        if normal.ndim == 0 or not normal.any():
            raise ValueError(f"normal must be a nonzero vector, got {self.normal!r}")
        set_fields(self, normal=normal, offset=finite_number("offset", self.offset))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        unit, offset = self._scaled(x)
        excess = jnp.vdot(unit, x, precision="highest") - offset
        return indicator(excess, jnp.maximum(norm(x), jnp.abs(offset)))

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        return projections.projection_halfspace(v, *self._scaled(v))

    def _scaled(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The same halfspace by a unit normal: optax divides by <normal, normal>, which is
        0 in float32 for a normal of length 1e-25.
        """
        normal = like(x, "normal", self.normal)
        if normal.shape != x.shape:
            raise misfit("normal", normal.shape, x)
        length = norm(normal)
        return normal / length, like(x, "offset", self.offset) / length


@record
class AffineSet(Regularizer):
    """Indicator of {x : A x = b}, for A of shape (m, p), of any rank, and a b it can reach.

    On creation A x = b becomes Q x = c with orthonormal rows (one SVD, in float64), so that
    the projection is v - Q' (Q v - c). Rounding is relative to the larger of ||x|| and ||c||.
    """

    A: ArrayLike
    b: ArrayLike
    Q: Any = dataclasses.field(init=False)
    c: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        A, b = finite_array("A", self.A), finite_array("b", self.b)
        if A.ndim != 2 or 0 in A.shape:
            raise ValueError(f"A must be a matrix, got shape {A.shape}")
        if not A.any():
            raise ValueError("A must have a nonzero entry; for no constraint, use Zero()")
        if b.shape != A.shape[:1]:
            raise ValueError(
                f"b must hold one number per row of A, shape {A.shape[:1]}, got {b.shape}"
            )
        Q, c = _orthonormal(A, b)
        A, b = A.astype(np.float64), b.astype(np.float64)
        set_fields(self, A=A, b=b, Q=Q, c=c)

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        Q, c = self._system(x)
        residual = jnp.matmul(Q, x, precision="highest") - c
        return indicator(norm(residual), jnp.maximum(norm(x), norm(c)))

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        Q, c = self._system(v)
        residual = jnp.matmul(Q, v, precision="highest") - c
        return v - jnp.matmul(residual, Q, precision="highest")

    def _system(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Q, shape (rank, p), and c, shape (rank,), in the dtype of x."""
        if x.shape != self.Q.shape[1:]:
            raise misfit("A", self.Q.shape[1:], x)
        return jnp.asarray(self.Q, x.dtype), jnp.asarray(self.c, x.dtype)


def _bound(name: str, value: Any) -> float | np.ndarray:
    """A bound of a box: a number or an array of them, infinities allowed."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or an array of them, got {value!r}") from None
    if np.isnan(array).any():
        raise ValueError(f"{name} must not be NaN, got {value!r}; -inf or inf for no bound")
    return array if array.ndim else float(array)


def _orthonormal(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q, shape (rank, p), with Q Q' = I, and c, such that Q x = c exactly where A x = b."""
    # Entries that came in float32 are no more exact than that, whatever computes with them.
    eps = np.finfo(A.dtype if A.dtype.kind == "f" else np.float64).eps
    lengths = np.linalg.norm(A, axis=1)
    lengths = np.where(lengths > 0, lengths, 1)
    A, b = A / lengths[:, None], b / lengths
    U, s, Vt = np.linalg.svd(A.astype(np.float64), full_matrices=False)
    rank = np.count_nonzero(s > max(A.shape) * eps * s[0])
    Q, c = Vt[:rank], U.T[:rank] @ b / s[:rank]
    missed = np.abs(A @ (Q.T @ c) - b)
    if missed.max() > np.sqrt(eps) * max(np.abs(b).max(), np.linalg.norm(c)):
        raise ValueError(
            f"A and b must be consistent, but no x solves A x = b: row {missed.argmax()} "
            "contradicts others; correct or drop it"
        )
    return Q, c

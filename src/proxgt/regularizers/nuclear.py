"""Low-rank matrices: the nuclear norm and its ball, by singular value decomposition."""

# What value and prox do is said once, in Regularizer.

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from proxgt.checks import non_negative_number, positive_int, positive_number
from proxgt.records import record, static
from proxgt.regularizers.balls import project_simplex
from proxgt.regularizers.base import (
    Regularizer,
    as_floats,
    indicator,
    like,
    misfit,
    set_fields,
    soft_threshold,
)


@record
class NuclearNorm(Regularizer):
    """h(X) = strength * sum of the singular values of X, for matrices of the given shape.

    X comes as the matrix or as the flat vector of its rows; the prox returns what it got.
    """

    strength: ArrayLike
    shape: tuple[int, int] = static()

    def __post_init__(self) -> None:
        strength = non_negative_number("strength", self.strength)
        set_fields(self, strength=strength, shape=_matrix_shape(self.shape))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        total = jnp.sum(_singular_values(x, self.shape))
        return (like(x, "strength", self.strength) * total).astype(x.dtype)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        threshold = like(v, "step", step) * like(v, "strength", self.strength)
        U, s, Vt = _svd(v, self.shape)
        return _product(U, soft_threshold(s, threshold), Vt, v)


@record
class NuclearBall(Regularizer):
    """Indicator of {X : sum of singular values <= radius}, for matrices of the given shape.

    X comes as the matrix or as the flat vector of its rows; the prox returns what it got.
    Rounding is relative to the radius.
    """

    radius: ArrayLike
    shape: tuple[int, int] = static()

    def __post_init__(self) -> None:
        radius = positive_number("radius", self.radius)
        set_fields(self, radius=radius, shape=_matrix_shape(self.shape))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        total = jnp.sum(_singular_values(x, self.shape)).astype(x.dtype)
        radius = like(x, "radius", self.radius)
        return indicator(total - radius, radius)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        U, s, Vt = _svd(v, self.shape)
        radius = like(s, "radius", self.radius)
        on_sphere = _product(U, project_simplex(s, radius), Vt, v)
        return jnp.where(jnp.sum(s) > radius, on_sphere, v)

    def lmo(self, direction: ArrayLike) -> jax.Array:
        """-radius u v', from the leading singular vectors of the direction."""
        direction = as_floats(direction)
        U, s, Vt = _svd(direction, self.shape)
        first = jnp.zeros_like(s).at[0].set(like(s, "radius", self.radius))
        return -_product(U, first, Vt, direction)


def _matrix_shape(shape: object) -> tuple[int, int]:
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise ValueError(f"shape must be two integers >= 1, (rows, columns), got {shape!r}")
    rows, columns = (positive_int(f"shape[{i}]", n) for i, n in enumerate(shape))
    return rows, columns


def _as_matrix(x: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """x as a matrix that LAPACK takes: float32 at least."""
    if x.shape not in (shape, (math.prod(shape),)):
        raise misfit("shape", shape, x)
    return x.reshape(shape).astype(jnp.promote_types(x.dtype, jnp.float32))


def _svd(x: jax.Array, shape: tuple[int, int]) -> tuple[jax.Array, jax.Array, jax.Array]:
    U, s, Vt = jnp.linalg.svd(_as_matrix(x, shape), full_matrices=False)
    return U, s, Vt


def _singular_values(x: jax.Array, shape: tuple[int, int]) -> jax.Array:
    return jnp.linalg.svd(_as_matrix(x, shape), compute_uv=False)


def _product(U: jax.Array, s: jax.Array, Vt: jax.Array, x: jax.Array) -> jax.Array:
    """U diag(s) V', in the shape and dtype of x."""
    return jnp.matmul(U * s, Vt, precision="highest").reshape(x.shape).astype(x.dtype)

"""Indicators of norm balls and the simplex: the prox is the projection, whatever the step.

`optax.projections` holds up for the linf ball only. Its l2 ball overflows (in float32 it
sends (1e20, 1e20) to 0), and its simplex, hence its l1 ball, loses digits to a common
offset (in float32, 1000 entries near 1e6 project to a point that sums to 43, not 1).
"""

# What value and prox do is said once, in Regularizer.

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike
from optax import projections

from proxgt.checks import positive_number
from proxgt.records import record
from proxgt.regularizers.base import Regularizer, as_floats, indicator, like, norm, set_fields


@record
class L1Ball(Regularizer):
    """Indicator of {x : ||x||_1 <= radius}. Rounding is relative to the radius."""

    radius: ArrayLike

    def __post_init__(self) -> None:
        set_fields(self, radius=positive_number("radius", self.radius))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        radius = like(x, "radius", self.radius)
        return indicator(jnp.sum(jnp.abs(x)) - radius, radius)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        radius = like(v, "radius", self.radius)
        on_sphere = jnp.sign(v) * project_simplex(jnp.abs(v), radius)
        return jnp.where(jnp.sum(jnp.abs(v)) > radius, on_sphere, v)

    def lmo(self, direction: ArrayLike) -> jax.Array:
        """-radius sign(d_i) e_i, at a largest |d_i|."""
        direction = as_floats(direction)
        vertex = _one_hot(direction, jnp.argmax(jnp.abs(direction)))
        return -like(direction, "radius", self.radius) * jnp.sign(direction) * vertex


@record
class L2Ball(Regularizer):
    """Indicator of {x : ||x||_2 <= radius}. Rounding is relative to the radius."""

    radius: ArrayLike

    def __post_init__(self) -> None:
        set_fields(self, radius=positive_number("radius", self.radius))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        radius = like(x, "radius", self.radius)
        return indicator(norm(x) - radius, radius)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        radius, length = like(v, "radius", self.radius), norm(v)
        outside = length > radius
        return jnp.where(outside, radius * (v / jnp.where(outside, length, 1)), v)

    def lmo(self, direction: ArrayLike) -> jax.Array:
        """-radius d / ||d||, and 0 for d = 0."""
        direction = as_floats(direction)
        length = norm(direction)
        unit = direction / jnp.where(length > 0, length, 1)
        return -like(direction, "radius", self.radius) * unit


@record
class LinfBall(Regularizer):
    """Indicator of {x : max_i |x_i| <= radius}. Rounding is relative to the radius."""

    radius: ArrayLike

    def __post_init__(self) -> None:
        set_fields(self, radius=positive_number("radius", self.radius))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        radius = like(x, "radius", self.radius)
        return indicator(jnp.abs(x) - radius, radius)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        return projections.projection_linf_ball(v, like(v, "radius", self.radius))

    def lmo(self, direction: ArrayLike) -> jax.Array:
        """-radius sign(d): the vertex opposite to d, with 0 where d is 0."""
        direction = as_floats(direction)
        return -like(direction, "radius", self.radius) * jnp.sign(direction)


@record
class Simplex(Regularizer):
    """Indicator of {x : x >= 0, sum_i x_i = radius}; by default, the probability vectors.

    Rounding is relative to the radius.
    """

    radius: ArrayLike = 1.0

    def __post_init__(self) -> None:
        set_fields(self, radius=positive_number("radius", self.radius))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        radius = like(x, "radius", self.radius)
        return indicator(jnp.maximum(-x, jnp.abs(jnp.sum(x) - radius)), radius)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        return project_simplex(v, like(v, "radius", self.radius))

    def lmo(self, direction: ArrayLike) -> jax.Array:
        """radius e_i, at a smallest d_i."""
        direction = as_floats(direction)
        vertex = _one_hot(direction, jnp.argmin(direction))
        return like(direction, "radius", self.radius) * vertex


@jax.jit
def project_simplex(v: jax.Array, radius: jax.Array) -> jax.Array:
    """max(v - cut, 0), with the cut at which the entries sum to the radius.

    Newton's method on sum_i max(v_i - cut, 0) = radius from below (Michelot 1986): the cut
    rises and entries drop out until none does, so it ends after at most p rounds, in
    practice about ten, without a sort.
    """
    # The projection does not see a common offset; taken out, it costs no digits.
    v = v - jnp.max(v)

    def newton(v: jax.Array, cut: jax.Array) -> jax.Array:
        kept = v > cut
        return (jnp.sum(jnp.where(kept, v, 0)) - radius) / jnp.sum(kept)

    def rise(cuts: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return cuts[1], newton(fixed, cuts[1])

    # Derivatives pass through the last step alone: which entries stay is locally constant.
    fixed, lowest = lax.stop_gradient((v, -radius))
    cut, _ = lax.while_loop(lambda cuts: cuts[1] > cuts[0], rise, (lowest, newton(fixed, lowest)))
    return jnp.maximum(v - newton(v, cut), 0)


def _one_hot(x: jax.Array, index: jax.Array) -> jax.Array:
    return jnp.zeros(x.size, x.dtype).at[index].set(1).reshape(x.shape)

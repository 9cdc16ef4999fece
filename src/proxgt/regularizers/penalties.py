"""Penalties with a prox in closed form: norms, their squares, and norms of groups."""

# What value and prox do is said once, in Regularizer.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from proxgt.checks import non_negative_number
from proxgt.records import record, static
from proxgt.regularizers.base import (
    Regularizer,
    as_floats,
    like,
    misfit,
    non_negative,
    set_fields,
    soft_threshold,
)


@record
class Zero(Regularizer):
    """No regularizer, h(x) = 0: the smooth problem."""

    def value(self, x: ArrayLike) -> jax.Array:
        return jnp.zeros((), as_floats(x).dtype)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        return as_floats(v)


@record
class L1(Regularizer):
    """h(x) = sum_i strength_i |x_i|, with one strength or one per coordinate."""

    strength: ArrayLike

    def __post_init__(self) -> None:
        set_fields(self, strength=non_negative("strength", self.strength))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        return jnp.sum(like(x, "strength", self.strength) * jnp.abs(x))

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        return soft_threshold(v, like(v, "step", step) * like(v, "strength", self.strength))


@record
class L2(Regularizer):
    """h(x) = 1/2 sum_i strength_i x_i^2: half the squared norm, so that grad h = strength x.

    One strength or one per coordinate. For the norm itself, unsquared, see `GroupL1`.
    """

    strength: ArrayLike

    def __post_init__(self) -> None:
        set_fields(self, strength=non_negative("strength", self.strength))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        return jnp.sum(like(x, "strength", self.strength) * x**2) / 2

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        return v / (1 + like(v, "step", step) * like(v, "strength", self.strength))


@record
class ElasticNet(Regularizer):
    """h(x) = l1 ||x||_1 + l2/2 ||x||^2, each with one strength or one per coordinate."""

    l1: ArrayLike
    l2: ArrayLike

    def __post_init__(self) -> None:
        set_fields(self, l1=non_negative("l1", self.l1), l2=non_negative("l2", self.l2))

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        l1, l2 = like(x, "l1", self.l1), like(x, "l2", self.l2)
        return jnp.sum(l1 * jnp.abs(x)) + jnp.sum(l2 * x**2) / 2

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        step = like(v, "step", step)
        shrunk = soft_threshold(v, step * like(v, "l1", self.l1))
        return shrunk / (1 + step * like(v, "l2", self.l2))


@record
class GroupL1(Regularizer):
    """Group lasso, h(x) = strength * sum_g weights_g ||x_g||_2, with unsquared norms.

    groups: one integer label per coordinate, e.g. `[0, 0, 1]`, or one list of indices per
        group, e.g. `[[0, 1], [2]]`, which together hold 0..p-1 once each. Kept as labels
        0, 1, ... in sorted order of the labels given, or in order of the lists.
    weights: one number >= 0 per group, in the order above. The default, None, is 1 for
        every group; Yuan & Lin (2006) take the square root of its size.
    """

    strength: ArrayLike
    groups: Any
    weights: Any = None
    count: int = static(init=False)

    def __post_init__(self) -> None:
        labels = _group_labels(self.groups)
        count = int(labels.max()) + 1
        weights = self.weights
        if weights is not None:
            weights = non_negative("weights", weights)
            if np.shape(weights) != (count,):
                raise ValueError(
                    f"weights must hold one number for each of the {count} groups, "
                    f"got shape {np.shape(weights)}"
                )
        strength = non_negative_number("strength", self.strength)
        set_fields(self, strength=strength, groups=labels, weights=weights, count=count)

    def value(self, x: ArrayLike) -> jax.Array:
        x = as_floats(x)
        return jnp.sum(self._thresholds(x) * self._norms(x))

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        v = as_floats(v)
        threshold, norms = like(v, "step", step) * self._thresholds(v), self._norms(v)
        alive = norms > threshold
        kept = 1 - threshold / jnp.where(alive, norms, 1)
        return jnp.where(alive, kept, 0)[self.groups] * v

    def _thresholds(self, x: jax.Array) -> jax.Array:
        strength = like(x, "strength", self.strength)
        return strength * jnp.asarray(1 if self.weights is None else self.weights, x.dtype)

    def _norms(self, x: jax.Array) -> jax.Array:
        """Norm of each group, shape (count,); see `base.norm` for the two guards."""
        if x.shape != np.shape(self.groups):
            raise misfit("groups", np.shape(self.groups), x)
        scale = jax.lax.stop_gradient(jnp.max(jnp.abs(x)))
        scale = jnp.where(scale > 0, scale, 1)
        squares = jax.ops.segment_sum((x / scale) ** 2, self.groups, self.count)
        return jnp.where(squares > 0, scale * jnp.sqrt(jnp.where(squares > 0, squares, 1)), squares)


def _group_labels(groups: Any) -> np.ndarray:
    """Labels 0, 1, ... of the groups, shape (p,), int32."""
    if hasattr(groups, "__array__"):
        groups = np.asarray(groups)
    elif not isinstance(groups, Sequence):
        raise TypeError(f"groups must be a vector of labels or lists of indices, got {groups!r}")
    if len(groups) == 0:
        raise ValueError(f"groups must hold at least one group, got {groups!r}")
    if all(np.ndim(entry) == 0 for entry in groups):
        labels = _integers(groups)
        return np.unique(labels, return_inverse=True)[1].astype(np.int32)
    return _labels_of_lists([_integers(group) for group in groups])


def _labels_of_lists(groups: list[np.ndarray]) -> np.ndarray:
    for g, group in enumerate(groups):
        if group.ndim != 1 or group.size == 0:
            raise ValueError(f"groups must hold lists of indices, but group {g} is {group}")
    indices = np.concatenate(groups)
    p = indices.size
    found, times = np.unique(indices, return_counts=True)
    for index in found[times > 1][:1]:
        raise ValueError(f"groups must not overlap, but index {index} appears more than once")
    for index in found[(found < 0) | (found >= p)][:1]:
        missing = int(np.setdiff1d(np.arange(p), found)[0])
        raise ValueError(f"groups must hold every index of 0..p-1, got {index} but not {missing}")
    labels = np.empty(p, np.int32)
    labels[indices] = np.repeat(np.arange(len(groups)), [group.size for group in groups])
    return labels


def _integers(values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and array.size > 0:
        raise TypeError(f"groups must hold integers, got {values!r}")
    return array

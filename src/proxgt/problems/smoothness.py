"""An estimate of L: the largest curvature of any f_i seen at several points."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_POINTS = 4
_ITERATIONS = 40
_KEY = 0x5170


def estimate_smoothness(oracle: Any, nodes: int, held: np.ndarray, x0: np.ndarray) -> float:
    """max over the nodes held and points of ||Hessian f_i||, by power iteration.

    The points are x0 and random ones around it. A lower bound on L that is usually near it
    where curvature varies little; give a problem its L where it is known.
    """
    start = jnp.asarray(x0, jnp.float32)
    keys = jax.random.split(jax.random.key(_KEY), _POINTS)
    scale = jnp.maximum(jnp.linalg.norm(start), 1.0) / np.sqrt(start.size)
    found = []
    for k, key in enumerate(keys):
        point = start if k == 0 else start + scale * jax.random.normal(key, start.shape)
        direction = jax.random.normal(jax.random.fold_in(key, 1), (nodes, start.size))[held]
        found.append(float(jnp.max(_largest_curvature(oracle, point, direction))))
    finite = [value for value in found if np.isfinite(value)]
    if not finite:
        raise ValueError(
            "smoothness could not be estimated: the loss has no finite curvature around x0; "
            "give the problem its smoothness=L"
        )
    return max(finite)


@jax.jit
def _largest_curvature(oracle: Any, point: jax.Array, direction: jax.Array) -> jax.Array:
    """Power iteration on all nodes at once: gradients are row-wise, so is their derivative."""
    x = jnp.broadcast_to(point, direction.shape)

    def unit(u: jax.Array) -> jax.Array:
        return u / jnp.maximum(jnp.linalg.norm(u, axis=1, keepdims=True), 1e-30)

    def apply(_: Any, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        u, _ = carry
        hu = jax.jvp(oracle.full_gradients, (x,), (u,))[1]
        return unit(hu), jnp.linalg.norm(hu, axis=1)

    first = (unit(direction), jnp.zeros(direction.shape[0]))
    return jax.lax.fori_loop(0, _ITERATIONS, apply, first)[1]

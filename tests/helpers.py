"""Small problems and runs that many tests share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import proxgt as pg
from proxgt.engines.local import step_keys


def square_loss(w, sample):
    """1/2 (a.w - b)^2."""
    a, b = sample
    return 0.5 * (jnp.dot(a, w) - b) ** 2


def bumpy_loss(w, sample):
    """A non-convex loss: a saturating residual."""
    a, b = sample
    r = jnp.dot(a, w) - b
    return r**2 / (1 + r**2)


def regression(nodes=5, m=8, p=4, seed=0, spread=1.0):
    """Heterogeneous data (features (nodes, m, p), targets (nodes, m)), float64."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((nodes, m, p))
    truth = rng.standard_normal(p) + spread * rng.standard_normal((nodes, 1, p))
    return a, (a * truth).sum(-1) + 0.1 * rng.standard_normal((nodes, m))


def square_gradient(a, b):
    """gradient(i, x, indices) of `square_loss` in NumPy; all samples where indices is None."""

    def gradient(i, x, indices):
        rows = slice(None) if indices is None else np.asarray(indices)
        ai, bi = a[i][rows], b[i][rows]
        return ai.T @ (ai @ x - bi) / len(bi)

    return gradient


def bumpy_gradient(a, b):
    """gradient(i, x, indices) of `bumpy_loss` in NumPy."""

    def gradient(i, x, indices):
        rows = slice(None) if indices is None else np.asarray(indices)
        r = a[i][rows] @ x - b[i][rows]
        return a[i][rows].T @ (2 * r / (1 + r**2) ** 2) / len(r)

    return gradient


def trajectory(problem, network, method, steps, **options):
    """x_1, x_2, ..., x_{T+1} of a run in float64, as its callbacks see them."""
    seen = []
    options = {"dtype": "float64", "record_every": 1} | options
    pg.solve(
        problem,
        network,
        method,
        steps,
        callbacks=[lambda s: seen.append(s.x.copy())],
        **options,
    )
    return seen


def indices(problem, batch, steps, seed=0, x0=None):
    """The sample indices that a run with this seed draws: (steps, nodes, batch)."""
    if x0 is not None:
        problem = problem.starting_at(x0)
    oracle = problem.oracle(problem.spec(), "float32")
    key, nodes = jax.random.key(seed), jnp.arange(problem.nodes)
    draws = [oracle.draw(step_keys(key, t, nodes), batch) for t in range(steps)]
    return np.array(draws)

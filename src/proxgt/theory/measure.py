"""Constants measured on the problem itself, along a short run of proximal gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.problems import Problem
from proxgt.problems.oracles import FiniteOracle, StreamOracle

Z99 = 2.326  # one-sided 99 % quantile of the normal distribution
_POINTS = 5
_FLOATS = 2 << 24  # sample gradients held at once, in numbers
_POWER_ITERATIONS = 30
_CURVATURE_SAMPLES = 128


@dataclass(frozen=True)
class Path:
    """A short run from x0 and the variances seen along it.

    Attributes:
        first, best: Psi(x0) and the smallest Psi seen.
        points: how many points variances were measured at.
        nu_nodes: nu_i, (n,), the largest over points; nu: their root mean square.
        nu_upper: nu with the sampling error of its square added, 99 % one-sided.
        zeta: eq. (13); exact where `exact_gradients`, else biased upwards.
        mean_squared_smoothness: an estimate from below, made when asked for.
    """

    first: float
    best: float
    points: int = 0
    nu_nodes: np.ndarray | None = None
    nu: float = 0.0
    nu_upper: float = 0.0
    zeta: float = 0.0
    exact_gradients: bool = False
    mean_squared_smoothness: float = 0.0


def short_run(
    problem: Problem,
    smoothness: float,
    steps: int,
    samples: int,
    seed: int,
    variance: bool = True,
    curvature: bool = True,
) -> Path:
    """Proximal gradient with step 1/L on the network mean, and what is seen on the way."""
    dtype = problem.precision
    with jax.enable_x64(dtype == "float64"):
        spec = problem.spec()
        x0 = jnp.asarray(spec.vector(problem.x0, name="x0"), dtype)
        evaluator, h = problem.evaluator(spec, dtype), problem.flat_regularizer(spec)
        xs, values = map(
            np.asarray, _descend(evaluator, h, x0, problem.nodes, 1 / smoothness, steps)
        )
        every = max(steps // (_POINTS - 1), 1)
        points = [x for x, v in zip(xs[::every], values[::every], strict=True) if np.isfinite(v)]
        path = Path(first=float(values[0]), best=float(np.nanmin(values)))
        if not points or not (variance or curvature):
            return path
        oracle = problem.oracle(spec, dtype)
        oracle = evaluator.estimate if isinstance(oracle, StreamOracle) else oracle
        draw, weight, factor = _draw(oracle, problem.nodes, spec.size, samples, seed)
        weight = jnp.asarray(weight, dtype)
        if variance:
            exact = isinstance(oracle, FiniteOracle) and problem.exact
            seen = [_variance(oracle, x, draw, weight, exact) for x in points]
            path = _with_variance(path, [np.array(s, np.float64) for s in seen], factor, exact)
        if curvature:
            path = replace(path, mean_squared_smoothness=_curvature(oracle, points, draw, weight))
    return path


def _with_variance(path: Path, seen: list[np.ndarray], factor: float, exact: bool) -> Path:
    """nu_i from its largest value over points; `seen` holds what `_variance` gave at each."""
    table = np.array(seen)  # (points, 3, nodes)
    at, nodes = np.argmax(table[:, 0], axis=0), np.arange(table.shape[2])
    squares, error = factor * table[at, 0, nodes], table[at, 1, nodes]
    upper = squares.mean() + Z99 * np.sqrt(np.sum(error**2)) / len(nodes)
    return replace(
        path,
        points=len(seen),
        nu_nodes=np.sqrt(squares),
        nu=float(np.sqrt(squares.mean())),
        nu_upper=float(np.sqrt(upper)),
        zeta=float(np.sqrt(table[0, 2].mean())),
        exact_gradients=exact,
    )


def _curvature(oracle: Any, points: list[Any], draw: Any, weight: jax.Array) -> float:
    """The largest mean-squared curvature at the first and the last point."""
    few = draw[:, :_CURVATURE_SAMPLES]
    share = weight[:, :_CURVATURE_SAMPLES]
    share = share / jnp.sum(share, axis=1, keepdims=True)
    found = [_mean_squared(oracle, x, few, share) for x in (points[0], points[-1])]
    return float(np.sqrt(np.nanmax(np.array(found))))


def _draw(
    oracle: Any, nodes: int, size: int, samples: int, seed: int
) -> tuple[Any, np.ndarray, float]:
    """Samples of every node, their weights (nodes, S), and the factor that removes bias.

    All samples where a node has no more than S, which makes its variance exact.
    """
    S = max(2, min(samples, _FLOATS // (nodes * size)))
    if isinstance(oracle, FiniteOracle):
        count = np.asarray(oracle.count)
        S = min(S, int(count.max()))
        rng = np.random.default_rng(seed)
        rows = np.arange(S)[None]
        index = np.where(
            count[:, None] <= S,
            np.minimum(rows, count[:, None] - 1),
            (rng.random((nodes, S)) * count[:, None]).astype(int),
        )
        held = np.where(count[:, None] <= S, rows < count[:, None], True)
        return jnp.asarray(index, jnp.int32), held / held.sum(axis=1, keepdims=True), 1.0
    keys = jax.random.split(jax.random.key(seed), nodes)
    return oracle.draw(keys, S), np.full((nodes, S), 1 / S), S / (S - 1)


@partial(jax.jit, static_argnames="steps")
def _descend(
    evaluator: Any, h: Any, x0: jax.Array, nodes: Any, step: Any, steps: int
) -> tuple[jax.Array, jax.Array]:
    """x_0..x_steps and Psi there."""

    def value(x: jax.Array) -> jax.Array:
        return evaluator.risk(x) / nodes + h.value(x)

    def one(x: jax.Array, _: Any) -> Any:
        x = h.prox(x - step * evaluator.risk_gradient(x) / nodes, step)
        return x, (x, value(x))

    _, (xs, values) = jax.lax.scan(one, x0, length=steps)
    return jnp.concatenate([x0[None], xs]), jnp.concatenate([value(x0)[None], values])


@partial(jax.jit, static_argnames="exact")
def _variance(
    oracle: Any, x: jax.Array, draw: Any, weight: jax.Array, exact: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Per node: E||grad G - grad f_i||^2 at x, its standard error, and ||grad f_i||^2."""
    rows = jnp.broadcast_to(x, (weight.shape[0], x.shape[0]))
    gradients = oracle.sample_gradients(rows, draw)  # (n, S, p)
    sampled = jnp.einsum("is,isp->ip", weight, gradients)
    mean = oracle.full_gradients(rows) if exact else sampled
    squares = jnp.sum((gradients - mean[:, None]) ** 2, axis=2)
    variance = jnp.sum(weight * squares, axis=1)
    spread = jnp.sum(weight * (squares - variance[:, None]) ** 2, axis=1)
    whole = jnp.asarray(getattr(oracle, "count", jnp.inf)) <= weight.shape[1]
    error = jnp.where(whole & exact, 0.0, jnp.sqrt(spread / weight.shape[1]))
    return variance, error, jnp.sum(mean**2, axis=1)


@jax.jit
def _mean_squared(oracle: Any, x: jax.Array, draw: Any, weight: jax.Array) -> jax.Array:
    """max_i lambda_max(mean_s H_s^2) at x, H_s the Hessian of G_i(., xi_s)."""
    samples = oracle.samples(draw)
    u = jax.random.normal(jax.random.key(0), (weight.shape[0], x.shape[0]), x.dtype)

    def hessian(sample: Any, direction: jax.Array) -> jax.Array:
        def gradient(w: jax.Array) -> jax.Array:
            return jax.grad(lambda v: oracle.loss(oracle.params.unravel(v), sample))(w)

        return jax.jvp(gradient, (x,), (direction,))[1]

    def square(sample: Any, direction: jax.Array) -> jax.Array:
        return hessian(sample, hessian(sample, direction))

    def apply(_: Any, carry: Any) -> Any:
        u, _ = carry
        u = u / jnp.maximum(jnp.linalg.norm(u, axis=1, keepdims=True), 1e-30)
        each = jax.vmap(jax.vmap(square, (0, None)))(samples, u)
        image = jnp.einsum("is,isp->ip", weight, each)
        return image, jnp.linalg.norm(image, axis=1)

    first = (u, jnp.zeros(weight.shape[0], x.dtype))
    return jnp.max(jax.lax.fori_loop(0, _POWER_ITERATIONS, apply, first)[1])

"""Definition 3's quantities, measured with the clock stopped.

    s(x) = (x - prox_{a h}(x - a grad F(x))) / a      eq. (7), a = `metric_step`
    stationarity = ||s(mean)||^2, or (1/n) sum_i ||s(x_i)||^2 with metric_at="nodes"
    consensus    = (1/n) sum_i ||x_i - mean||^2
    metric       = stationarity + L^2 consensus
    objective    = Psi(solution), solution = prox_{a h}(mean - a grad F(mean))

`solution` is a prox point because h is finite there: a mean of sparse rows is not sparse, and a
Chebyshev polynomial of W may take x out of dom(h).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.engines.base import Engine
from proxgt.regularizers import Regularizer


class Measurement(NamedTuple):
    """The measured columns of a history row, with the point they belong to."""

    risk: float  # F(solution)
    objective: float
    stationarity: float
    consensus: float
    metric: float
    mean: np.ndarray  # (p,)
    solution: np.ndarray  # (p,)

    @property
    def finite(self) -> bool:
        """Whether everything is a finite number, save an objective of +inf because h is.

        The indicator of a set, where its user tests membership without regard to rounding,
        may be +inf at a prox point.
        """
        numbers = (self.risk, self.stationarity, self.consensus)
        return bool(np.isfinite(numbers).all()) and self.objective > -np.inf


class Meter:
    """Measures iterates of one run."""

    def __init__(
        self,
        engine: Engine,
        evaluator: Any,
        regularizer: Regularizer,
        nodes: int,
        smoothness: float,
        metric_step: float,
        metric_at: str,
    ) -> None:
        self._engine = engine
        self._evaluator = evaluator
        self._h = regularizer
        self._n = nodes
        self._smoothness = smoothness
        self._step = metric_step
        self._at = metric_at

    def __call__(self, x: jax.Array) -> Measurement:
        """Measure the rows x held by the engine."""
        total = self._engine.total
        mean = total(_row_sum(x)) / self._n
        spread, gradient = total(_spread_and_gradient(self._evaluator, x, mean))
        solution, size = _prox_point(self._h, mean, gradient / self._n, self._step)
        risk = float(total(_risk(self._evaluator, solution))) / self._n
        stationarity = float(size) if self._at == "mean" else self._at_nodes(x)
        consensus = float(spread) / self._n
        return Measurement(
            risk=risk,
            objective=risk + float(self._h.value(solution)),
            stationarity=stationarity,
            consensus=consensus,
            metric=stationarity + self._smoothness**2 * consensus,
            mean=np.asarray(mean),
            solution=np.asarray(solution),
        )

    def _at_nodes(self, x: jax.Array) -> float:
        """(1/n) sum_i ||s(x_i)||^2: every node's iterate against all data."""
        rows = jnp.asarray(self._engine.all_rows(x))
        gradients = self._engine.total(_gradients_at(self._evaluator, rows)) / self._n
        return float(_mean_size(self._h, rows, gradients, self._step))


@jax.jit
def _row_sum(x: jax.Array) -> jax.Array:
    return jnp.sum(x, axis=0)


@jax.jit
def _spread_and_gradient(
    evaluator: Any, x: jax.Array, mean: jax.Array
) -> tuple[jax.Array, jax.Array]:
    return jnp.sum((x - mean) ** 2), evaluator.risk_gradient(mean)


@jax.jit
def _prox_point(
    h: Regularizer, mean: jax.Array, gradient: jax.Array, step: Any
) -> tuple[jax.Array, jax.Array]:
    point = h.prox(mean - step * gradient, step)
    return point, jnp.sum(((mean - point) / step) ** 2)


@jax.jit
def _risk(evaluator: Any, w: jax.Array) -> jax.Array:
    return evaluator.risk(w)


@jax.jit
def _gradients_at(evaluator: Any, rows: jax.Array) -> jax.Array:
    return jax.lax.map(evaluator.risk_gradient, rows)


@jax.jit
def _mean_size(h: Regularizer, rows: jax.Array, gradients: jax.Array, step: Any) -> jax.Array:
    points = jax.vmap(lambda row, g: h.prox(row - step * g, step))(rows, gradients)
    return jnp.mean(jnp.sum(((rows - points) / step) ** 2, axis=1))

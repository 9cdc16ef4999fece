"""SVRG, an estimator known from centralized methods; any method here can take it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.estimators import Estimator, Usage, need_exact
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class SVRGEstimate(NamedTuple):
    """An estimate with the last snapshot of x and the exact gradients there."""

    t: jax.Array
    x: jax.Array
    v: jax.Array
    snapshot: jax.Array  # (nodes, p)
    gradient: jax.Array  # (nodes, p)


@record
class SVRG(Estimator):
    """Variance reduction by a snapshot (Johnson, Zhang 2013; Reddi, Sra, Poczos, Smola 2016).

        t mod q = 0:  s = x_t,  v_t = grad f_i(s)
        otherwise:    v_t = grad f_i(s) + (1/b) sum_k (grad G(x_t, xi_k) - grad G(s, xi_k))

    The publications draw samples at the snapshot step too, where their terms cancel.
    """

    batch: int = static()
    period: int = static()

    def __post_init__(self) -> None:
        checks.positive_int("batch", self.batch)
        checks.positive_int("period", self.period)

    def check(self, problem: Problem) -> None:
        need_exact(problem, "SVRG", "SARAH(batch, period, refresh)")

    def init(self, problem: Oracle, x: jax.Array) -> SVRGEstimate:
        del problem
        zero = jnp.zeros_like(x)
        return SVRGEstimate(jnp.zeros((), jnp.int32), x, zero, x, zero)

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        return problem.draw(keys, self.batch)

    def update(self, problem: Oracle, x: jax.Array, last: SVRGEstimate, draw: Any) -> SVRGEstimate:
        def renew() -> tuple[jax.Array, ...]:
            gradient = problem.full_gradients(x)
            return gradient, x, gradient

        def correct() -> tuple[jax.Array, ...]:
            change = problem.gradients(x, draw) - problem.gradients(last.snapshot, draw)
            return last.gradient + change, last.snapshot, last.gradient

        v, snapshot, gradient = jax.lax.cond(last.t % self.period == 0, renew, correct)
        return SVRGEstimate(last.t + 1, x, v, snapshot, gradient)

    def usage(self, problem: Problem, steps: int) -> Usage:
        renewals = -(-steps // self.period)
        full, sampled = renewals * problem.samples_per_node, (steps - renewals) * self.batch
        return Usage(full + sampled, full + 2 * sampled)

"""Estimators that keep nothing but the last estimate: exact, minibatch, and recursive ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from proxgt import checks
from proxgt.estimators.base import Estimate, Estimator, Usage, need_exact
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


@record
class FullGradient(Estimator):
    """v_t = grad f_i(x_t): a pass over the node's data at every step."""

    def check(self, problem: Problem) -> None:
        need_exact(problem, "FullGradient", "Minibatch(batch) or SARAH(batch, period, refresh)")

    def update(self, problem: Oracle, x: jax.Array, last: Estimate, draw: Any) -> Estimate:
        del draw
        return Estimate(last.t + 1, x, problem.full_gradients(x))

    def usage(self, problem: Problem, steps: int) -> Usage:
        passes = steps * problem.samples_per_node
        return Usage(passes, passes)


@record
class Minibatch(Estimator):
    """Stochastic approximation: the mean of b fresh sample gradients (Algorithm 2)."""

    batch: Any = static()  # int once "auto" is settled

    def __post_init__(self) -> None:
        checks.size("batch", self.batch)

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        return problem.draw(keys, self.batch)

    def update(self, problem: Oracle, x: jax.Array, last: Estimate, draw: Any) -> Estimate:
        return Estimate(last.t + 1, x, problem.gradients(x, draw))

    def usage(self, problem: Problem, steps: int) -> Usage:
        del problem
        return Usage(steps * self.batch, steps * self.batch)


class SARAHDraw(NamedTuple):
    """Keys for a refresh, and the samples of a recursive step."""

    keys: jax.Array
    batch: Any


@record
class SARAH(Estimator):
    """Recursive variance reduction with a refresh every `period` steps.

        t mod q = 1:  v_t = grad f_i(x_t)                        refresh=None, Algorithm 4
                      v_t = mean of B sample gradients           refresh=B,    Algorithm 3
        otherwise:    v_t = v_{t-1} + (1/b) sum_s (grad G(x_t, xi_s) - grad G(x_{t-1}, xi_s))

    Steps are counted from zero here, so a refresh falls on t % period == 0, which is the
    paper's t mod q = 1 and is right for period 1 too.
    """

    batch: Any = static()  # sizes are int once "auto" is settled
    period: Any = static()
    refresh: Any = static(default=None)

    def __post_init__(self) -> None:
        checks.size("batch", self.batch)
        checks.size("period", self.period)
        if self.refresh is not None:
            checks.size("refresh", self.refresh)

    def check(self, problem: Problem) -> None:
        if self.refresh is None:
            need_exact(problem, "SARAH with refresh=None (ProxGT-SR-E)", "refresh=B (ProxGT-SR-O)")

    def draw(self, problem: Oracle, keys: jax.Array) -> SARAHDraw:
        return SARAHDraw(keys, problem.draw(keys, self.batch))

    def update(self, problem: Oracle, x: jax.Array, last: Estimate, draw: SARAHDraw) -> Estimate:
        def fresh() -> jax.Array:
            if self.refresh is None:
                return problem.full_gradients(x)
            return problem.gradients(x, problem.draw(draw.keys, self.refresh))

        def recursive() -> jax.Array:
            change = problem.gradients(x, draw.batch) - problem.gradients(last.x, draw.batch)
            return last.v + change

        v = jax.lax.cond(last.t % self.period == 0, fresh, recursive)
        return Estimate(last.t + 1, x, v)

    def usage(self, problem: Problem, steps: int) -> Usage:
        refreshes = -(-steps // self.period)
        size = problem.samples_per_node if self.refresh is None else self.refresh
        samples = refreshes * size + (steps - refreshes) * self.batch
        return Usage(samples, samples + (steps - refreshes) * self.batch)


@record
class STORM(Estimator):
    """Hybrid of SARAH and stochastic approximation, no refresh but a first large batch.

        v_0 = mean of B sample gradients
        v_t = g(x_t; xi_t) + (1 - momentum) (v_{t-1} - g(x_{t-1}; xi_t))

    momentum = 1 is stochastic approximation, momentum = 0 SARAH without refreshes
    (Cutkosky, Orabona 2019; Tran-Dinh, Pham, Phan, Nguyen 2022; GT-HSGD's estimator).
    """

    batch: int = static()
    momentum: float
    first: int | None = static(default=None)

    def __post_init__(self) -> None:
        checks.positive_int("batch", self.batch)
        if not 0 <= checks.finite_number("momentum", self.momentum) <= 1:
            raise ValueError(f"momentum must be in [0, 1], got {self.momentum!r}")
        if self.first is not None:
            checks.positive_int("first", self.first)

    def draw(self, problem: Oracle, keys: jax.Array) -> SARAHDraw:
        return SARAHDraw(keys, problem.draw(keys, self.batch))

    def update(self, problem: Oracle, x: jax.Array, last: Estimate, draw: SARAHDraw) -> Estimate:
        def start() -> jax.Array:
            return problem.gradients(x, problem.draw(draw.keys, self.first or self.batch))

        def hybrid() -> jax.Array:
            here = problem.gradients(x, draw.batch)
            before = problem.gradients(last.x, draw.batch)
            return here + (1 - self.momentum) * (last.v - before)

        v = jax.lax.cond(last.t == 0, start, hybrid)
        return Estimate(last.t + 1, x, v)

    def usage(self, problem: Problem, steps: int) -> Usage:
        del problem
        first = (self.first or self.batch) if steps else 0
        later = max(steps - 1, 0) * self.batch
        return Usage(first + later, first + 2 * later)

"""Gradient estimators: v_t of line 2 of Algorithm 1.

    draw(problem, keys) -> draw                      which samples a step uses
    update(problem, x, last, draw) -> Estimate       v_t at x_t

`draw` is split off so that the loop can make the draws of many steps at once; an estimator
that does without it is handed the keys themselves. `Estimate` keeps (x_{t-1}, v_{t-1}).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static

Size = int | Literal["auto"]  # "auto" where ProxGT's theorems settle it


class Estimate(NamedTuple):
    """v at the point x, after t updates. t is one scalar shared by all rows."""

    t: jax.Array
    x: jax.Array
    v: jax.Array


class Usage(NamedTuple):
    """What some steps cost a node: samples drawn and gradients of G_i evaluated."""

    samples: float
    gradients: float


class Estimator(ABC):
    """How v_t is made. Written once, for any problem, method and engine."""

    def check(self, problem: Problem) -> None:  # noqa: B027
        """Refuse a problem this estimator cannot serve."""

    def init(self, problem: Oracle, x: jax.Array) -> Any:
        """v_0 = 0 at the common start, line 0 of Algorithm 1."""
        del problem
        return Estimate(jnp.zeros((), jnp.int32), x, jnp.zeros_like(x))

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        """What is random in one step; by default the keys, shape (nodes,), themselves."""
        del problem
        return keys

    @abstractmethod
    def update(self, problem: Oracle, x: jax.Array, last: Any, draw: Any) -> Any:
        """The next estimate, a named tuple with at least the fields of `Estimate`."""

    @abstractmethod
    def usage(self, problem: Problem, steps: int) -> Usage:
        """What the first `steps` steps cost each node (the mean, where m_i differ)."""


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


class SAGAEstimate(NamedTuple):
    """An estimate with its table of the last gradient seen of every sample."""

    t: jax.Array
    x: jax.Array
    v: jax.Array
    table: jax.Array  # (nodes, m, p)
    mean: jax.Array  # (nodes, p), the mean of the table's rows


@record
class SAGA(Estimator):
    """Variance reduction by a table of past sample gradients (Defazio, Bach, Lacoste-Julien).

        v_t = (1/b) sum_{s in I} (grad G_s(x_t) - T_s) + mean_j T_j
        T_s = grad G_s(x_t) for s in J

    I and J are independent draws of b samples, as in ProxSAGA (Reddi, Sra, Poczos, Smola
    2016). The table costs nodes * m * p numbers and starts at the gradients at x_0.
    """

    batch: int = static()

    def __post_init__(self) -> None:
        checks.positive_int("batch", self.batch)

    def check(self, problem: Problem) -> None:
        need_exact(problem, "SAGA", "SARAH(batch, period, refresh)")

    def init(self, problem: Any, x: jax.Array) -> SAGAEstimate:
        m = int(problem.count.max())
        every = jnp.minimum(jnp.arange(m, dtype=jnp.int32), problem.count[:, None] - 1)
        return SAGAEstimate(
            jnp.zeros((), jnp.int32),
            x,
            jnp.zeros_like(x),
            problem.sample_gradients(x, every),
            problem.full_gradients(x),
        )

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        return problem.draw(keys, 2 * self.batch)

    def update(self, problem: Any, x: jax.Array, last: SAGAEstimate, draw: Any) -> SAGAEstimate:
        node = jnp.arange(x.shape[0])[:, None]
        use, renew = draw[:, : self.batch], draw[:, self.batch :]
        v = problem.gradients(x, use) - last.table[node, use].mean(axis=1) + last.mean
        fresh = problem.sample_gradients(x, renew)
        # a sample drawn twice changes the table, hence its mean, once
        first = first_occurrence(renew)[..., None]
        change = jnp.where(first, fresh - last.table[node, renew], 0).sum(axis=1)
        mean = last.mean + change / problem.count[:, None].astype(x.dtype)
        table = last.table.at[node, renew].set(fresh)
        return SAGAEstimate(last.t + 1, x, v, table, mean)

    def usage(self, problem: Problem, steps: int) -> Usage:
        number = problem.samples_per_node + steps * 2 * self.batch  # the table first
        return Usage(number, number)


def first_occurrence(indices: jax.Array) -> jax.Array:
    """Whether each entry of each row is the first of its value in that row."""
    same = indices[:, :, None] == indices[:, None, :]
    earlier = jnp.tril(jnp.ones(same.shape[1:], bool), k=-1)
    return ~jnp.any(same & earlier, axis=2)


def need_exact(problem: Problem, name: str, remedy: str) -> None:
    """Refuse a population risk by name."""
    if not problem.exact:
        raise ValueError(
            f"{name} needs the exact gradient of an empirical risk, and the problem is a "
            f"population risk: use {remedy}"
        )

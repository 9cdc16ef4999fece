"""Estimators that keep old gradients, by which they correct sampled ones: SAGA and SVRG."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.estimators.base import Estimator, Usage, need_exact
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


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

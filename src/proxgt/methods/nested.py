"""Methods with an outer loop that tracks full gradients and an inner loop of SARAH steps.

One step here is one inner step, so that steps compare with those of other methods. An outer
iteration begins at every step t with t mod period = 0: it takes the full gradient, updates
the tracker s, and restarts v at s. Inner steps make v recursively.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.consensus import Chebyshev, Consensus, Gossip
from proxgt.estimators import need_exact
from proxgt.methods.base import Cost, Method, as_step_size, rounds_of, step_size_at
from proxgt.methods.requirements import check_averaging, check_consensus, refuse_regularizer
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class NestedState(NamedTuple):
    """The inner iterate x and what the next step needs; rows are nodes, t one scalar."""

    t: jax.Array
    x: jax.Array
    before: jax.Array  # the point at which v was made
    v: jax.Array
    s: jax.Array  # the tracker, as the last outer iteration left it
    gradient: jax.Array  # the full gradients of the last outer iteration


class _Nested(Method):
    """What both methods share."""

    batch: int
    period: int

    def check(self, problem: Problem, network: Network) -> None:
        name = type(self).__name__
        refuse_regularizer(name, problem, "ProxGT_SR_E")
        need_exact(problem, name, "D_GET(..., refresh=B)")
        check_consensus(self, network)

    def operators(self) -> tuple[Consensus, ...]:
        """Every consensus of the method."""
        return (self.consensus,) if isinstance(self.consensus, Consensus) else self.consensus

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> NestedState:
        del problem, mix
        zero = jnp.zeros_like(x)
        return NestedState(jnp.zeros((), jnp.int32), x, x, zero, zero, zero)

    def outer_and_inner(self, steps: int) -> tuple[int, int]:
        """How many of the first `steps` steps begin an outer iteration, and how many do not."""
        outer = -(-steps // self.period)
        return outer, steps - outer


def _settle(method: _Nested) -> None:
    """Check the fields that both methods have, when one is made."""
    object.__setattr__(method, "step_size", as_step_size(method.step_size))
    for consensus in method.operators():
        check_averaging(consensus)
    checks.positive_int("batch", method.batch)
    checks.positive_int("period", method.period)


@record
class Network_SARAH(_Nested):
    """Tracking between local SARAH loops: nodes talk once in `period` steps.

    Li, Cen, Chen, Chi, "Communication-efficient distributed optimization in networks with
    gradient tracking and variance reduction", JMLR 2020; its local regularization mu is 0.

        outer    y     = W^K x                          the inner loop's first point
                 s     = W^K s + grad f_i(y) - grad f_i(y before),    W^K grad f_i(x_0) at first
        inner    u_0   = y,  v_0 = s
                 u_j+1 = u_j - a v_j
                 v_j+1 = v_j + g(u_j+1; xi) - g(u_j; xi)
        x = u_period

    Doubly stochastic W. Cost: 2K rounds and a pass over the data per outer iteration, b
    samples and 2b evaluations at each other step.

    Args:
        batch: b, samples of an inner step.
        period: descents of an inner loop.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    batch: int = static()
    period: int = static()
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        _settle(self)

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        return problem.draw(keys, self.batch)

    def step(self, problem: Oracle, mix: Any, state: NestedState, draw: Any) -> NestedState:
        t, x = state.t, state.x

        def outer() -> tuple[jax.Array, ...]:
            y = mix(x)
            gradient = problem.full_gradients(y)
            # the publication starts at s = grad f_i(x_0), with that as the gradient before
            s, last = (jnp.where(t == 0, gradient, a) for a in (state.s, state.gradient))
            s = mix(s) + gradient - last
            return y, s, s, gradient

        def inner() -> tuple[jax.Array, ...]:
            change = problem.gradients(x, draw) - problem.gradients(state.before, draw)
            return x, state.v + change, state.s, state.gradient

        y, v, s, gradient = jax.lax.cond(t % self.period == 0, outer, inner)
        a = step_size_at(self.step_size, t)
        return NestedState(t + 1, y - a * v, y, v, s, gradient)

    def cost(self, problem: Problem, steps: int) -> Cost:
        outer, inner = self.outer_and_inner(steps)
        full, sampled = outer * problem.samples_per_node, inner * self.batch
        return Cost(full + sampled, full + 2 * sampled, 2 * rounds_of(self.consensus) * outer)


class DestressConsensus(NamedTuple):
    """The operators of DESTRESS: in the inner loop, in the outer loop, and at the start."""

    inner: Consensus = Chebyshev(2)
    outer: Consensus = Chebyshev(2)
    start: Consensus = Chebyshev("auto", 1e-8)


def _of_one(loops: Consensus) -> DestressConsensus:
    """One consensus for both loops, and its own kind at the start where that finds its rounds."""
    if not loops.automatic:
        return DestressConsensus(loops, loops)
    return DestressConsensus(loops, loops, dataclasses.replace(loops, rounds="auto", target=1e-8))


class DestressDraw(NamedTuple):
    """The samples of an inner step, and which nodes take part in it."""

    batch: Any
    active: jax.Array  # (nodes,)


@record
class DESTRESS(_Nested):
    """Recursive gradients mixed in the inner loop, tracked in the outer one.

    Li, Li, Chi, "DESTRESS: computation-optimal and communication-efficient decentralized
    nonconvex finite-sum optimization", SIAM Journal on Mathematics of Data Science 2022.

        outer    s     = P_out (s + grad f_i(x) - grad f_i(x before)),  P_start grad f_i at first
        inner    u_0   = x,  v_0 = s
                 u_j+1 = P_in (u_j - a v_j)
                 v_j+1 = P_in (v_j + (c/p) (g(u_j+1; xi) - g(u_j; xi))),   c ~ Bernoulli(p)
        x = u_period

    Published with Chebyshev mixing, for a symmetric W (Gossip takes any doubly stochastic one),
    and with s the exact average at first, which P_start makes within 1e-8. The activation is from
    memory of the publication; p = 1 is the authors' code. Cost: 2 K_in rounds a step, less K_in,
    plus K_out, at an outer one; there a pass over the data, else p b samples and 2 p b
    evaluations, on average.

    Args:
        batch: b, samples of an inner step.
        period: descents of an inner loop; the publication's S.
        step_size: a, a number or a function of the step counted from zero.
        consensus: a `DestressConsensus`, or one consensus for both loops and the start.
        activation: p, the probability that a node takes part in an inner step.
    """

    batch: int = static()
    period: int = static()
    step_size: Any
    consensus: Consensus | DestressConsensus = static(default=DestressConsensus())
    activation: float = static(default=1.0)

    def __post_init__(self) -> None:
        if isinstance(self.consensus, Consensus):
            object.__setattr__(self, "consensus", _of_one(self.consensus))
        _settle(self)
        if not 0 < checks.finite_number("activation", self.activation) <= 1:
            raise ValueError(f"activation must be in (0, 1], got {self.activation!r}")

    def draw(self, problem: Oracle, keys: jax.Array) -> DestressDraw:
        def takes_part(key: jax.Array) -> jax.Array:
            # in float32 whatever the run's precision, which must not change the draws
            number = jax.random.uniform(jax.random.fold_in(key, 1), dtype=jnp.float32)
            return number < self.activation

        everyone = self.activation == 1
        active = jnp.ones(keys.shape, bool) if everyone else jax.vmap(takes_part)(keys)
        return DestressDraw(problem.draw(keys, self.batch), active)

    def step(
        self, problem: Oracle, mix: Any, state: NestedState, draw: DestressDraw
    ) -> NestedState:
        t, x = state.t, state.x

        def outer() -> tuple[jax.Array, ...]:
            gradient = problem.full_gradients(x)
            s = state.s + gradient - state.gradient
            s = jax.lax.cond(t == 0, mix.start, mix.outer, s)
            return s, s, gradient

        def inner() -> tuple[jax.Array, ...]:
            here, there = (problem.gradients(u, draw.batch) for u in (x, state.before))
            weight = draw.active[:, None].astype(x.dtype) / self.activation
            return mix.inner(state.v + weight * (here - there)), state.s, state.gradient

        v, s, gradient = jax.lax.cond(t % self.period == 0, outer, inner)
        a = step_size_at(self.step_size, t)
        return NestedState(t + 1, mix.inner(x - a * v), x, v, s, gradient)

    def cost(self, problem: Problem, steps: int) -> Cost:
        outer, inner = self.outer_and_inner(steps)
        full, sampled = outer * problem.samples_per_node, inner * self.batch * self.activation
        K_in, K_out, K_start = map(rounds_of, self.operators())
        rounds = (steps + inner) * K_in + (K_start + (outer - 1) * K_out if outer else 0)
        return Cost(full + sampled, full + 2 * sampled, rounds)

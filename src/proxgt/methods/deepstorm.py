"""DEEPSTORM: mix, descend, track, with estimators that never need a large batch.

A diminishing run is `DEEPSTORM_v2(batch, a, FallingMomentum(a, c))` with
`a = FallingStep(step_size, offset)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.consensus import Consensus, Gossip
from proxgt.estimators import STORM, Estimate, Estimator, SARAHDraw, Usage
from proxgt.methods.base import Schedule, as_fraction, step_size_at
from proxgt.methods.estimated import Estimated, TrackingState
from proxgt.methods.requirements import check_parts, refuse_nonsymmetric, settle
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


@record
class DEEPSTORM(Estimated):
    """Decentralized proximal descent with a recursive estimator: mix, descend, track.

    Mancino-Ball, Miao, Xu, Chen, "Proximal stochastic recursive momentum methods for
    nonconvex composite decentralized optimization", AAAI 2023.

        v_t     ~ gradient of f_i at x_t
        y_{t+1} = W^K (y_t + v_t - v_{t-1})
        x_{t+1} = prox_{a h}(W^K x_t - a y_{t+1})

    ProxGT with its last exchange moved before the prox: x_t is what the prox gave, sparse or
    feasible at every node. `DEEPSTORM_v1` and `DEEPSTORM_v2` are the published estimators;
    that more rounds are Chebyshev's is from memory. Symmetric W. Cost: 2K rounds.

    Args:
        estimator: how v_t is made.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is, `Gossip(K)` or `Chebyshev(K)`.
    """

    vectors = 2
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)

    def check(self, problem: Problem, network: Network) -> None:
        refuse_nonsymmetric("DEEPSTORM", network)
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> TrackingState:
        del mix
        return TrackingState(x, jnp.zeros_like(x), self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: TrackingState, draw: Any) -> TrackingState:
        x, y, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y = mix(y + estimate.v - last.v)
        return TrackingState(problem.prox(mix(x) - a * y, a), y, estimate)


@record
class TwoBatchSTORM(Estimator):
    """STORM whose stochastic part has a batch of its own; the estimator of DEEPSTORM v1.

        v_0     = mean of `first` sample gradients
        v_{t+1} = (1 - m_t) (v_t + g(x_{t+1}; xi) - g(x_t; xi)) + m_t g(x_{t+1}; zeta)

    xi and zeta are independent batches of b. Cost: 2b samples, 3b evaluations.

    Args:
        batch: b.
        momentum: m_t in [0, 1], a number or a function of t counted from zero.
        first: samples of the first step; b unless given.
    """

    batch: int = static()
    momentum: Any
    first: int | None = static(default=None)

    def __post_init__(self) -> None:
        checks.positive_int("batch", self.batch)
        object.__setattr__(self, "momentum", as_fraction("momentum", self.momentum, or_zero=True))
        if self.first is not None:
            checks.positive_int("first", self.first)

    def draw(self, problem: Oracle, keys: jax.Array) -> SARAHDraw:
        return SARAHDraw(keys, problem.draw(keys, 2 * self.batch))

    def update(self, problem: Oracle, x: jax.Array, last: Estimate, draw: SARAHDraw) -> Estimate:
        def start() -> jax.Array:
            return problem.gradients(x, problem.draw(draw.keys, self.first or self.batch))

        def recursive() -> jax.Array:
            m = step_size_at(self.momentum, last.t - 1)
            xi, zeta = draw.batch[:, : self.batch], draw.batch[:, self.batch :]
            change = problem.gradients(x, xi) - problem.gradients(last.x, xi)
            return (1 - m) * (last.v + change) + m * problem.gradients(x, zeta)

        return Estimate(last.t + 1, x, jax.lax.cond(last.t == 0, start, recursive))

    def usage(self, problem: Problem, steps: int) -> Usage:
        del problem
        first = (self.first or self.batch) if steps else 0
        later = max(steps - 1, 0) * self.batch
        return Usage(first + 2 * later, first + 3 * later)


@record
class ScheduledSTORM(Estimator):
    """`STORM` with a momentum m_t that depends on the step; the estimator of DEEPSTORM v2.

    v_{t+1} = g(x_{t+1}; xi) + (1 - m_t) (v_t - g(x_t; xi))
    """

    storm: STORM
    momentum: Schedule

    def draw(self, problem: Oracle, keys: jax.Array) -> SARAHDraw:
        return self.storm.draw(problem, keys)

    def update(self, problem: Oracle, x: jax.Array, last: Estimate, draw: SARAHDraw) -> Estimate:
        # A pytree is rebuilt without the checks of user input, which a traced number fails.
        structure = jax.tree.structure(self.storm)
        storm = jax.tree.unflatten(structure, [self.momentum(jnp.maximum(last.t - 1, 0))])
        return storm.update(problem, x, last, draw)

    def usage(self, problem: Problem, steps: int) -> Usage:
        return self.storm.usage(problem, steps)


def DEEPSTORM_v1(
    batch: int,
    step_size: Any,
    momentum: Any,
    first: int | None = None,
    consensus: Consensus = Gossip(1),
) -> DEEPSTORM:
    """DEEPSTORM with two batches a step: 2b samples, 3b evaluations.

    `momentum` is the publication's beta_t: a number, or a function of t such as
    `FallingMomentum(step_size, c)`.
    """
    return DEEPSTORM(TwoBatchSTORM(batch, momentum, first), step_size, consensus)


def DEEPSTORM_v2(
    batch: int,
    step_size: Any,
    momentum: Any,
    first: int | None = None,
    consensus: Consensus = Gossip(1),
) -> DEEPSTORM:
    """DEEPSTORM with one batch a step: b samples, 2b evaluations.

    `momentum` is the publication's beta_t: a number, or a function of t such as
    `FallingMomentum(step_size, c)`.
    """
    momentum = as_fraction("momentum", momentum, or_zero=True)
    if isinstance(momentum, Schedule):
        estimator = ScheduledSTORM(STORM(batch, 0.0, first), momentum)
    else:
        estimator = STORM(batch, momentum, first)
    return DEEPSTORM(estimator, step_size, consensus)


@dataclass(frozen=True)
class FallingStep:
    """DEEPSTORM's diminishing a_t = step_size / (t + offset)^(1/3), a function of t."""

    step_size: float
    offset: int = 1

    def __post_init__(self) -> None:
        checks.positive_number("step_size", self.step_size)
        checks.positive_int("offset", self.offset)

    def __call__(self, t: Any) -> Any:
        return self.step_size / (t + self.offset) ** (1 / 3)


@dataclass(frozen=True)
class FallingMomentum:
    """DEEPSTORM's m_t = 1 - a_{t+1}/a_t + c a_{t+1}^2, kept in [0, 1], a function of t.

    `step_size` is a_t: a number or a function of t, such as `FallingStep`.
    """

    step_size: Any
    c: float

    def __post_init__(self) -> None:
        checks.positive_number("c", self.c)

    def __call__(self, t: Any) -> Any:
        now, after = self._step_size(t), self._step_size(t + 1)
        return jnp.clip(1 - after / now + self.c * after**2, 0, 1)

    def _step_size(self, t: Any) -> Any:
        return self.step_size(t) if callable(self.step_size) else self.step_size

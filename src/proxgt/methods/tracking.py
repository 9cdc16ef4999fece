"""Smooth gradient tracking: y follows the network mean of the estimates v.

Two shapes, each written once, here and in `diging`:

    adapt, then combine    y_{t+1} = W^K (y_t + v_t - v_{t-1}),  x_{t+1} = W^K (x_t - a y_{t+1})
    combine, then adapt    y_{t+1} = W^K y_t + v_t - v_{t-1},    x_{t+1} = W^K x_t - a y_{t+1}

with y_0 = v_{-1} = 0 and t counted from zero. The first is ProxGT without a prox and stands
several times larger steps. In the second x and y can share an exchange, but each is a
p-vector, so both shapes count 2K rounds a step. `DeTAG` is a third shape: its tracker is one
step late, so that a node computes its gradient while it gossips.

The publications ask for the W that each method names; all here take any doubly stochastic
one, which is what the recursions need.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from proxgt.consensus import Consensus, Gossip
from proxgt.estimators import SAGA, STORM, Estimator
from proxgt.methods.base import step_size_at
from proxgt.methods.estimated import Estimated, TrackingState
from proxgt.methods.requirements import (
    check_consensus,
    check_estimate,
    refuse_population,
    refuse_regularizer,
    settle,
)
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class Tracking(Estimated):
    """What all three shapes share."""

    estimator: Estimator
    vectors = 2
    online: ClassVar[str | None] = None  # for a population risk, where the estimator is fixed

    def check(self, problem: Problem, network: Network) -> None:
        refuse_regularizer(type(self).__name__, problem)
        if self.online is None:
            check_estimate(self, problem)
        else:
            refuse_population(type(self).__name__, self.estimator, problem, self.online)
        check_consensus(self, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> TrackingState:
        del mix
        return TrackingState(x, jnp.zeros_like(x), self.estimator.init(problem, x))


class _AdaptThenCombine(Tracking):
    def step(self, problem: Oracle, mix: Any, state: TrackingState, draw: Any) -> TrackingState:
        x, y, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y = mix(y + estimate.v - last.v)
        return TrackingState(mix(x - a * y), y, estimate)


# Adapt, then combine ---------------------------------------------------------------------


@record
class GT_DSGD(_AdaptThenCombine):
    """Gradient tracking with stochastic gradients, adapt then combine.

    Xin, Khan, Kar, "An improved convergence analysis for decentralized online stochastic
    non-convex optimization", IEEE Transactions on Signal Processing 2021.

        v_t     = mean of fresh sample gradients at x_t
        y_{t+1} = W^K (y_t + v_t - v_{t-1})
        x_{t+1} = W^K (x_t - a y_{t+1})

    This is ProxGT-SA for h = 0. Doubly stochastic W, directed allowed. Cost: 2K rounds.

    Args:
        estimator: how v_t is made; `Minibatch(b)` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)


@record
class GT_HSGD(_AdaptThenCombine):
    """Gradient tracking with the hybrid estimator `STORM`, for population risks too.

    Xin, Khan, Kar, "A hybrid variance-reduced method for decentralized stochastic non-convex
    optimization", ICML 2021.

        v_0     = mean of `first` sample gradients at x_0
        v_t     = g(x_t; xi_t) + (1 - momentum) (v_{t-1} - g(x_{t-1}; xi_t))
        y_{t+1} = W^K (y_t + v_t - v_{t-1})
        x_{t+1} = W^K (x_t - a y_{t+1})

    Doubly stochastic W, directed allowed. Cost: 2K rounds, b samples, 2b evaluations.

    Args:
        batch: b, samples of a step.
        momentum: in [0, 1]; the publication's beta. One makes it `GT_DSGD`.
        first: samples of the first step; the publication's b_0.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    batch: int = static()
    momentum: float
    first: int = static()
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimator", STORM(self.batch, self.momentum, self.first))
        settle(self)


@record
class GT_SAGA(_AdaptThenCombine):
    """Gradient tracking with a table of past sample gradients.

    Xin, Khan, Kar, "A fast randomized incremental gradient method for decentralized
    non-convex optimization", IEEE Transactions on Automatic Control 2022; for convex f_i
    Xin, Khan, Kar, "Variance-reduced decentralized stochastic optimization with accelerated
    convergence", IEEE Transactions on Signal Processing 2020.

        v_t     = (1/b) sum_{s in I} (grad G_s(x_t) - T_s) + mean_j T_j
        y_{t+1} = W^K (y_t + v_t - v_{t-1})
        x_{t+1} = W^K (x_t - a y_{t+1})
        T_s     = grad G_s(x_t) for s in an independent draw J

    That J is not I is from memory of the publication; public code renews the table at I and
    x_{t+1} instead, which is exact too. Doubly stochastic W, directed allowed. Cost: 2K
    rounds, 2b samples and evaluations, and a pass over the data at the start.

    Args:
        batch: b, the size of I and of J; 1 as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    batch: int = static()
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields
    online = "GT_HSGD or D_GET(..., refresh=B)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimator", SAGA(self.batch))
        settle(self)


# A tracker one step late -----------------------------------------------------------------


@record
class DeTAG(Tracking):
    """Decentralized training with accelerated gossip: a step is a phase of R gossip rounds.

    Lu, De Sa, "Optimal complexity in decentralized training", ICML 2021.

        x_{t+1} = P x_t - a P y_t                               y_0 = v_{-1} = v_0
        y_{t+1} = P y_t + v_t - v_{t-1}                         v_t ~ gradient of f_i at x_t

    P is R rounds of accelerated gossip, and neither line's P needs v_t: the phase's samples
    are used while it gossips, and reach x a phase later. As independent public code has it.
    Cost: 2R rounds.

    Args:
        estimator: how v_t is made; `Minibatch(b)` as published, b over the whole phase.
        step_size: a, a number or a function of the step counted from zero.
        consensus: P; `FastMix(R)` as published, which needs a symmetric W.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static()

    def __post_init__(self) -> None:
        settle(self)

    def step(self, problem: Oracle, mix: Any, state: TrackingState, draw: Any) -> TrackingState:
        x, y, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y, before = jax.tree.map(
            lambda first, later: jnp.where(last.t == 0, first, later),
            (estimate.v, estimate.v),
            (y, last.v),
        )
        y = mix(y)
        return TrackingState(mix(x) - a * y, y + estimate.v - before, estimate)

"""Smooth gradient tracking, combine then adapt: DIGing and what took other estimators to it.

    y_{t+1} = W^K y_t + v_t - v_{t-1},    x_{t+1} = W^K x_t - a y_{t+1}

See `tracking`, whose methods adapt first.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from proxgt.consensus import Consensus, Gossip
from proxgt.estimators import SARAH, Estimator
from proxgt.methods.base import step_size_at
from proxgt.methods.estimated import TrackingState
from proxgt.methods.requirements import settle
from proxgt.methods.tracking import Tracking
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class _CombineThenAdapt(Tracking):
    def step(self, problem: Oracle, mix: Any, state: TrackingState, draw: Any) -> TrackingState:
        x, y, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y = mix(y) + estimate.v - last.v
        return TrackingState(mix(x) - a * y, y, estimate)


@record
class DIGing(_CombineThenAdapt):
    """Distributed inexact gradient tracking, on a fixed undirected or balanced graph.

    Nedic, Olshevsky, Shi, "Achieving geometric convergence for distributed optimization over
    time-varying graphs", SIAM Journal on Optimization 2017.

        x_{t+1} = W^K x_t - a y_t                               y_0 = grad f_i(x_0)
        y_{t+1} = W^K y_t + grad f_i(x_{t+1}) - grad f_i(x_t)

    Doubly stochastic W, directed allowed. Cost: 2K rounds, a pass over the data.

    Args:
        estimator: what stands for grad f_i; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)


@record
class GNSD(_CombineThenAdapt):
    """Gradient tracking with stochastic gradients, combine then adapt.

    Lu, Zhang, Sun, Hong, "GNSD: a gradient-tracking based nonconvex stochastic algorithm for
    decentralized optimization", IEEE Data Science Workshop 2019.

        x_{t+1} = W^K x_t - a y_t                               y_0 = g(x_0; xi_0)
        y_{t+1} = W^K y_t + g(x_{t+1}; xi_{t+1}) - g(x_t; xi_t)

    `DIGing` with sampled gradients. Stands smaller steps than `GT_DSGD`. Cost: 2K rounds.

    Args:
        estimator: how g is made; `Minibatch(b)` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)


@record
class GT_SARAH(_CombineThenAdapt):
    """Gradient tracking with SARAH over the node's own samples.

    Xin, Khan, Kar, "Fast decentralized non-convex finite-sum optimization with recursive
    variance reduction", SIAM Journal on Optimization 2022.

        v_t     = grad f_i(x_t) every `period` steps, else
                  v_{t-1} + g(x_t; xi_t) - g(x_{t-1}; xi_t)
        y_{t+1} = W^K y_t + v_t - v_{t-1}
        x_{t+1} = W^K x_t - a y_{t+1}

    Doubly stochastic W, directed allowed. Cost: 2K rounds, b samples and 2b evaluations, or
    a pass over the data.

    Args:
        batch: b, samples of a recursive step.
        period: steps from one full gradient to the next. The publication's inner loop of q
            steps follows a step with the full gradient: period = q + 1.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    batch: int = static()
    period: int = static()
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields
    online = "GT_HSGD or D_GET(..., refresh=B)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimator", SARAH(self.batch, self.period))
        settle(self)


@record
class D_GET(_CombineThenAdapt):
    """Decentralized gradient estimation and tracking.

    Sun, Lu, Hong, "Improving the sample and communication complexity for decentralized
    non-convex optimization: joint gradient estimation and tracking", ICML 2020.

        x_{t+1} = W^K x_t - a y_t                               y_0 = v_0
        v_{t+1} = grad f_i(x_{t+1}) every `period` steps, else
                  v_t + g(x_{t+1}; xi) - g(x_t; xi)
        y_{t+1} = W^K y_t + v_{t+1} - v_t

    Published for a symmetric W. Cost: 2K rounds, b samples and 2b evaluations, or a pass
    over the data (`refresh` samples).

    Args:
        batch: b, samples of a recursive step; the publication's |S_2|.
        period: steps from one refresh to the next, the publication's q.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
        refresh: None for the full gradient (the finite-sum form), or the number of fresh
            samples of a refresh (the online form, the publication's |S_1|).
    """

    batch: int = static()
    period: int = static()
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    refresh: int | None = static(default=None)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields
    online = "refresh=B"

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimator", SARAH(self.batch, self.period, self.refresh))
        settle(self)

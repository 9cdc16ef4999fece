"""Successive convex approximation: tracking, a prox, and a relaxed move towards what it gives.

Published for the sum of f_i plus G; here G = n h, which makes it the paper's mean plus h.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.consensus import ColumnStochastic, Consensus, Gossip
from proxgt.estimators import Estimator
from proxgt.methods.base import step_size_at
from proxgt.methods.directed import COLUMNS, push, require_sums, settle_directed
from proxgt.methods.estimated import Estimated
from proxgt.methods.requirements import check_estimate, check_parts, settle
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class NEXTState(NamedTuple):
    """x_{t+1}, W^K y_t, r_{t+1} and the estimate at x_t; rows are nodes."""

    x: jax.Array
    heard: jax.Array
    relaxation: jax.Array
    estimate: Any


@record
class NEXT(Estimated):
    """In-network successive convex approximation, with the proximal linear surrogate.

    Di Lorenzo, Scutari, "NEXT: in-network nonconvex optimization", IEEE Transactions on
    Signal and Information Processing over Networks 2016.

        y_t     = W^K y_{t-1} + v_t - v_{t-1}       v_t = grad f_i(x_t), y_0 = v_0
        z_t     = prox_{a h}(x_t - a y_t)
        x_{t+1} = W^K (x_t + r_t (z_t - x_t))
        r_{t+1} = r_t (1 - decay r_t)

    The surrogate of f_i is its linearisation plus tau/2 ||u - x||^2, and a = n/tau. At r = 1
    this is ProxGT but for the tracker, which ProxGT mixes after adding v_t - v_{t-1}. The
    published step rule has decay > 0; a constant r is exact too. Doubly stochastic W,
    directed allowed. Cost: 2K rounds, a pass over the data.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
        relaxation: r_0, in (0, 1].
        decay: in [0, 1); the publication's mu, such as 0.01. Zero keeps r constant.
    """

    vectors = 2
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    relaxation: float = 1.0
    decay: float = 0.0

    def __post_init__(self) -> None:
        settle(self)
        _check_relaxation(self.relaxation, self.decay)

    def check(self, problem: Problem, network: Network) -> None:
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> NEXTState:
        del mix
        r = jnp.asarray(self.relaxation, x.dtype)
        return NEXTState(x, jnp.zeros_like(x), r, self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: NEXTState, draw: Any) -> NEXTState:
        x, heard, r, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y = heard + estimate.v - last.v
        moved = (1 - r) * x + r * problem.prox(x - a * y, a)
        return NEXTState(mix(moved), mix(y), r * (1 - self.decay * r), estimate)


class SONATAState(NamedTuple):
    """x_{t+1}, C^K (w_t y_t), w_{t+1} (nodes, 1), r_{t+1} and the estimate at x_t."""

    x: jax.Array
    heard: jax.Array
    w: jax.Array
    relaxation: jax.Array
    estimate: Any


@record
class SONATA(Estimated):
    """NEXT over push-sum, for digraphs without a doubly stochastic W.

    Scutari, Sun, "Distributed nonconvex constrained optimization over time-varying
    digraphs", Mathematical Programming 2019.

        y_t     = (C^K (w_{t-1} y_{t-1}) + v_t - v_{t-1}) / w_t     v_t = grad f_i(x_t)
        z_t     = prox_{a h}(x_t - a y_t)
        w_{t+1} = C^K w_t                                           w_0 = 1, y_0 = v_0
        x_{t+1} = C^K (w_t (x_t + r_t (z_t - x_t))) / w_{t+1}
        r_{t+1} = r_t (1 - decay r_t)

    With the proximal linear surrogate, as in `NEXT`, which it is where C is doubly
    stochastic. The sums of w_t y_t and of v_t agree at every step. Written from memory of the
    publication, and tested by what it must be: NEXT there, and exact on unbalanced digraphs.
    Any strongly connected digraph. Cost: 2K rounds, a pass over the data; w rides in the
    message of x.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what C^K is.
        relaxation: r_0, in (0, 1].
        decay: in [0, 1), the publication's mu. Zero keeps r constant.
    """

    vectors = 2
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=ColumnStochastic(1))
    relaxation: float = 1.0
    decay: float = 0.0

    def __post_init__(self) -> None:
        settle_directed(self)
        _check_relaxation(self.relaxation, self.decay)

    def check(self, problem: Problem, network: Network) -> None:
        check_estimate(self, problem)
        require_sums("SONATA", self.consensus, network, COLUMNS)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> SONATAState:
        del mix
        heard, w = jnp.zeros_like(x), jnp.ones_like(x[:, :1])
        r = jnp.asarray(self.relaxation, x.dtype)
        return SONATAState(x, heard, w, r, self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: SONATAState, draw: Any) -> SONATAState:
        x, heard, w, r, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        weighted = heard + estimate.v - last.v  # w_t y_t
        moved = (1 - r) * x + r * problem.prox(x - a * (weighted / w), a)
        u, w = push(mix, w * moved, w)
        return SONATAState(u / w, mix(weighted), w, r * (1 - self.decay * r), estimate)


def _check_relaxation(relaxation: Any, decay: Any) -> None:
    if checks.positive_number("relaxation", relaxation) > 1:
        raise ValueError(f"relaxation must be in (0, 1], got {relaxation!r}")
    if checks.non_negative_number("decay", decay) >= 1:
        raise ValueError(f"decay must be in [0, 1), got {decay!r}")

"""ProxGT and its three instances (Xin, Das, Khan, Kar; Algorithms 1-4)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from proxgt.consensus import Consensus, Gossip
from proxgt.estimators import SARAH, Estimator, Minibatch, Size
from proxgt.methods.base import step_size_at
from proxgt.methods.estimated import Estimated, TrackingState
from proxgt.methods.requirements import check_parts, settle
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


@record
class ProxGT(Estimated):
    """Proximal gradient tracking (Xin, Das, Khan, Kar; Algorithm 1).

        v_t     ~ gradient of f_i at x_t            estimate
        y_{t+1} = W^K (y_t + v_t - v_{t-1})         track
        z_{t+1} = prox_{a h}(x_t - a y_{t+1})       descend
        x_{t+1} = W^K z_{t+1}                       agree

    The network means of y_{t+1} and v_t agree at every step (eq. 11). Cost: 2K rounds.

    Args:
        estimator: how v_t is made.
        step_size: a, a number or a function of the step counted from zero; "auto" for the
            largest that the theorems' conditions allow in practice, as b, q and B may be.
        consensus: what W^K is, `Gossip(K)` or `Chebyshev(K)`.
    """

    vectors = 2
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self, automatic=True)

    def check(self, problem: Problem, network: Network) -> None:
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> TrackingState:
        del mix
        return TrackingState(x, jnp.zeros_like(x), self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: TrackingState, draw: Any) -> TrackingState:
        x, y, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y = mix(y + estimate.v - last.v)
        z = problem.prox(x - a * y, a)
        return TrackingState(mix(z), y, estimate)


def ProxGT_SA(batch: Size, step_size: Any, consensus: Consensus = Gossip(1)) -> ProxGT:
    """ProxGT with minibatch stochastic approximation (Algorithm 2)."""
    return ProxGT(Minibatch(batch), step_size, consensus)


def ProxGT_SR_O(
    batch: Size, period: Size, refresh: Size, step_size: Any, consensus: Consensus = Gossip(1)
) -> ProxGT:
    """ProxGT with online SARAH: `refresh` samples every `period` steps (Algorithm 3)."""
    if refresh is None:
        raise ValueError("refresh must be an integer >= 1 for ProxGT_SR_O; ProxGT_SR_E has none")
    return ProxGT(SARAH(batch, period, refresh), step_size, consensus)


def ProxGT_SR_E(
    batch: Size, period: Size, step_size: Any, consensus: Consensus = Gossip(1)
) -> ProxGT:
    """ProxGT with finite-sum SARAH: exact gradients every `period` steps (Algorithm 4)."""
    return ProxGT(SARAH(batch, period), step_size, consensus)

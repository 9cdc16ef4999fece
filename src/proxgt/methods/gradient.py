"""The DSGD family: descend along the node's own gradient, mix, and track nothing.

One exchange of x per step, and nothing to store but x. With a constant step the nodes stop
at a distance O(a) from a stationary point wherever their f_i differ.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.consensus import Consensus, Gossip
from proxgt.estimators import Estimator
from proxgt.methods.base import step_size_at
from proxgt.methods.estimated import DescentState, Estimated
from proxgt.methods.requirements import (
    check_parts,
    refuse_nonsymmetric,
    refuse_regularizer,
    settle,
)
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class _Descent(Estimated):
    """x_{t+1} from x_t, v_t and a_t by one application of W^K, without a prox."""

    estimator: Estimator
    vectors = 1

    def check(self, problem: Problem, network: Network) -> None:
        refuse_regularizer(type(self).__name__, problem, "Prox_DGD or ProxGT")
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> DescentState:
        del mix
        return DescentState(x, self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: DescentState, draw: Any) -> DescentState:
        a = step_size_at(self.step_size, state.estimate.t)
        estimate = self.estimator.update(problem, state.x, state.estimate, draw)
        return DescentState(self.move(mix, state.x, estimate.v, a), estimate)

    @abstractmethod
    def move(self, mix: Any, x: jax.Array, v: jax.Array, a: Any) -> jax.Array:
        """x_{t+1}."""


@record
class DSGD(_Descent):
    """D-PSGD: decentralized stochastic gradient descent, combine then adapt.

    Lian, Zhang, Zhang, Hsieh, Zhang, Liu, "Can decentralized algorithms outperform
    centralized algorithms? A case study for decentralized parallel stochastic gradient
    descent", NeurIPS 2017. With full gradients it is DGD (Nedic, Ozdaglar 2009).

        x_{t+1} = W^K x_t - a v_t                   v_t ~ gradient of f_i at x_t, unmixed

    Published for a symmetric W; any doubly stochastic W is taken. Cost: K rounds.

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

    def move(self, mix: Any, x: jax.Array, v: jax.Array, a: Any) -> jax.Array:
        return mix(x) - a * v


@record
class DSGD_ATC(_Descent):
    """DSGD in its adapt-then-combine form, also called diffusion.

    Chen, Sayed, "Diffusion adaptation strategies for distributed optimization and learning
    over networks", IEEE Transactions on Signal Processing 2012.

        x_{t+1} = W^K (x_t - a v_t)                 v_t ~ gradient of f_i at x_t

    Stable at larger steps and with a smaller bias than `DSGD`. Cost: K rounds.

    Args:
        estimator: how v_t is made.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)

    def move(self, mix: Any, x: jax.Array, v: jax.Array, a: Any) -> jax.Array:
        return mix(x - a * v)


class MomentumState(NamedTuple):
    """x_{t+1}, m_{t+1} and the estimate at x_t; rows are nodes."""

    x: jax.Array
    m: jax.Array
    estimate: Any


@record
class DecentLaM(Estimated):
    """Decentralized SGD with a momentum that adds nothing to the bias of DSGD.

    Yuan, Chen, Huang, Zhang, Pan, Xu, Yin, "DecentLaM: decentralized momentum SGD for
    large-batch deep training", ICCV 2021.

        d_t     = (x_t - W^K (x_t - a v_t)) / a     v_t ~ gradient of f_i at x_t
        m_{t+1} = momentum m_t + d_t
        x_{t+1} = x_t - a m_{t+1}

    momentum = 0 is `DSGD_ATC`, and its fixed points are those of `DSGD_ATC` whatever the
    momentum. Symmetric W. Cost: K rounds.

    Args:
        estimator: how v_t is made; `Minibatch(b)` as published.
        momentum: in [0, 1).
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    vectors = 1
    estimator: Estimator
    momentum: float
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)
        if not 0 <= checks.finite_number("momentum", self.momentum) < 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum!r}")

    def check(self, problem: Problem, network: Network) -> None:
        refuse_regularizer("DecentLaM", problem)
        refuse_nonsymmetric("DecentLaM", network, "DSGD_ATC")
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> MomentumState:
        del mix
        return MomentumState(x, jnp.zeros_like(x), self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: MomentumState, draw: Any) -> MomentumState:
        x, m, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        m = self.momentum * m + (x - mix(x - a * estimate.v)) / a
        return MomentumState(x - a * m, m, estimate)

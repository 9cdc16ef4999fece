"""Methods that correct the bias of DSGD by a dual variable, one exchange a step.

Three shapes, each written once, the first in `diffusion`, with t counted from zero and d_0 = 0:

    D2 and Exact Diffusion   z = x_t - a v_t - d_t          x_{t+1} = prox(W z)
                             d_{t+1} = d_t + (I - W) z
    NIDS                     e = 2 x_t - x_{t-1} - a (v_t - v_{t-1}),  no e at t = 0
                             d_{t+1} = d_t + (I - W) e      x_{t+1} = prox(x_t - a v_t - d_{t+1})
    EXTRA                    d_{t+1} = d_t + (I - W) x_t / 2
                             x_{t+1} = prox(W x_t - a v_t - d_t)

W is W^K or another polynomial of W here. d sums to zero over the nodes and tends to what
makes the nodes' steps agree, so x is exact at a constant step. Eliminating d gives the
two-step recursions of the publications, which each class states. For h = 0 the first two
differ in the first step only.

All need a symmetric W. With h they are published for convex f_i.

d sums the rounding of (I - W) x too, and nothing corrects its mean: in float32 the error
grows with every step, by about 3e-8 |x| / a in the gradient. Run long or exact runs in float64.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from proxgt.consensus import Consensus, Gossip, LazyGossip
from proxgt.estimators import Estimator
from proxgt.methods.base import step_size_at
from proxgt.methods.estimated import Estimated
from proxgt.methods.requirements import (
    check_parts,
    refuse_nonsymmetric,
    refuse_regularizer,
    require_eigenvalues,
    settle,
)
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class PrimalDualState(NamedTuple):
    """x_{t+1}, d_{t+1} and the estimate at x_t; rows are nodes."""

    x: jax.Array
    d: jax.Array
    estimate: Any


class PrimalDual(Estimated):
    """What the three shapes share; `advance` is the shape."""

    estimator: Estimator
    vectors = 1

    def check(self, problem: Problem, network: Network) -> None:
        refuse_nonsymmetric(type(self).__name__, network)
        self.require(problem, network)
        check_parts(self, problem, network)

    @abstractmethod
    def require(self, problem: Problem, network: Network) -> None:
        """Refuse what this one method cannot solve."""

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> PrimalDualState:
        del mix
        return PrimalDualState(x, jnp.zeros_like(x), self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: PrimalDualState, draw: Any) -> PrimalDualState:
        x, d, last = state
        estimate = self.estimator.update(problem, x, last, draw)
        a = step_size_at(self.step_size, last.t)
        u, d = self.advance(mix, d, last, estimate, a)
        return PrimalDualState(problem.prox(u, a), d, estimate)

    @abstractmethod
    def advance(self, mix: Any, d: Any, last: Any, now: Any, a: Any) -> tuple[Any, Any]:
        """What the prox is taken of, and d_{t+1}; `now` holds (t + 1, x_t, v_t)."""


class _Extra(PrimalDual):
    def advance(self, mix: Any, d: Any, last: Any, now: Any, a: Any) -> tuple[Any, Any]:
        mixed = mix(now.x)
        return mixed - a * now.v - d, d + (now.x - mixed) / 2


# NIDS -------------------------------------------------------------------------------------


@record
class NIDS(PrimalDual):
    """Network-independent step sizes.

    Li, Shi, Yan, "A decentralized proximal-gradient method with network independent
    step-sizes and separated convergence rates", IEEE Transactions on Signal Processing 2019.

        u_1     = x_0 - a v_0                       x_t = prox_{a h}(u_t)
        u_{t+1} = u_t - x_t + W (2 x_t - x_{t-1} - a (v_t - v_{t-1}))

    As published W is (I + W)/2, the default here, and h may differ between nodes. Symmetric
    W without negative eigenvalues. Cost: K rounds.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W is.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=LazyGossip(1))

    def __post_init__(self) -> None:
        settle(self)

    def require(self, problem: Problem, network: Network) -> None:
        require_eigenvalues("NIDS", self.consensus, network, 0)

    def advance(self, mix: Any, d: Any, last: Any, now: Any, a: Any) -> tuple[Any, Any]:
        before = step_size_at(self.step_size, jnp.maximum(last.t - 1, 0))
        e = 2 * now.x - last.x - (a * now.v - before * last.v)
        d = jnp.where(last.t == 0, d, d + (e - mix(e)))
        return now.x - a * now.v - d, d


# EXTRA ------------------------------------------------------------------------------------


@record
class EXTRA(_Extra):
    """Exact first-order algorithm.

    Shi, Ling, Wu, Yin, "EXTRA: an exact first-order algorithm for decentralized consensus
    optimization", SIAM Journal on Optimization 2015.

        x_1     = W x_0 - a v_0
        x_{t+1} = (I + W) x_t - (I + W)/2 x_{t-1} - a (v_t - v_{t-1})

    Symmetric W. Cost: K rounds.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W is.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)

    def require(self, problem: Problem, network: Network) -> None:
        del network
        refuse_regularizer("EXTRA", problem, "PG_EXTRA")


@record
class PG_EXTRA(_Extra):
    """EXTRA with a prox.

    Shi, Ling, Wu, Yin, "A proximal gradient algorithm for decentralized composite
    optimization", IEEE Transactions on Signal Processing 2015.

        u_1     = W x_0 - a v_0                     x_t = prox_{a h}(u_t)
        u_{t+1} = W x_t + u_t - (I + W)/2 x_{t-1} - a (v_t - v_{t-1})

    Symmetric W. Cost: K rounds.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W is.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)

    def require(self, problem: Problem, network: Network) -> None:
        """A symmetric W is all it needs."""

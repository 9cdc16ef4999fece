"""D2, Exact Diffusion and their kin: the diffusion shape of `primal_dual`."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from proxgt.consensus import Consensus, Gossip, LazyGossip
from proxgt.estimators import SARAH, Estimator
from proxgt.methods.primal_dual import PrimalDual
from proxgt.methods.requirements import (
    refuse_population,
    refuse_regularizer,
    require_eigenvalues,
    settle,
)
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.records import record, static


class _Diffusion(PrimalDual):
    def advance(self, mix: Any, d: Any, last: Any, now: Any, a: Any) -> tuple[Any, Any]:
        z = now.x - a * now.v - d
        mixed = mix(z)
        return mixed, d + (z - mixed)


@record
class D2(_Diffusion):
    """Decentralized training over decentralized data.

    Tang, Lian, Yan, Zhang, Liu, "D2: decentralized training over decentralized data", ICML
    2018.

        x_1     = W (x_0 - a v_0)                   v_t ~ gradient of f_i at x_t
        x_{t+1} = W (2 x_t - x_{t-1} - a (v_t - v_{t-1}))

    v_{t-1} is kept with its own samples, not evaluated again. Symmetric W with eigenvalues
    above -1/3; at -1/3 itself, which even rings attain, the theory is silent and convex risks
    converge. Cost: K rounds.

    Args:
        estimator: how v_t is made; `Minibatch(b)` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W is.
    """

    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)

    def require(self, problem: Problem, network: Network) -> None:
        refuse_regularizer("D2", problem, "NIDS or Prox_ED")
        require_eigenvalues("D2", self.consensus, network, -1 / 3)


@record
class D_SPIDER_SFO(_Diffusion):
    """D2 with the SPIDER (SARAH) estimator.

    Pan, Liu, Wang, "D-SPIDER-SFO: a decentralized optimization algorithm with faster
    convergence rate for nonconvex problems", AAAI 2020.

        v_t     = grad f_i(x_t) every `period` steps, else
                  v_{t-1} + g(x_t; xi_t) - g(x_{t-1}; xi_t)
        x_1     = W (x_0 - a v_0)
        x_{t+1} = W (2 x_t - x_{t-1} - a (v_t - v_{t-1}))

    Symmetric W with eigenvalues above -1/3, or at it as in `D2`. Cost: K rounds, b samples and
    2b evaluations, or a pass over the data (`refresh` samples).

    Args:
        batch: b, samples of a recursive step.
        period: steps from one refresh to the next, the publication's q.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W is.
        refresh: None for the full gradient, or the number of fresh samples of a refresh.
    """

    batch: int = static()
    period: int = static()
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    refresh: int | None = static(default=None)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimator", SARAH(self.batch, self.period, self.refresh))
        settle(self)

    def require(self, problem: Problem, network: Network) -> None:
        refuse_regularizer("D_SPIDER_SFO", problem)
        refuse_population("D_SPIDER_SFO", self.estimator, problem, "refresh=B")
        require_eigenvalues("D_SPIDER_SFO", self.consensus, network, -1 / 3)


@record
class ExactDiffusion(_Diffusion):
    """Diffusion with the correction that makes it exact.

    Yuan, Ying, Zhao, Sayed, "Exact diffusion for distributed optimization and learning, part
    I: algorithm development", IEEE Transactions on Signal Processing 2019.

        p_{t+1} = x_t - a v_t                       adapt     p_0 = x_0
        x_{t+1} = W (p_{t+1} + x_t - p_t)           correct, combine

    As published W is (I + W)/2, the default here; it is then D2 on lazy weights. Symmetric
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
        refuse_regularizer("ExactDiffusion", problem, "Prox_ED")
        require_eigenvalues("ExactDiffusion", self.consensus, network, 0)


@record
class Prox_ED(_Diffusion):
    """Exact diffusion with a prox.

    Alghunaim, Ryu, Yuan, Sayed, "Decentralized proximal gradient algorithms with linear
    convergence rates", IEEE Transactions on Automatic Control 2021.

        p_{t+1} = x_t - a v_t                       adapt     p_0 = u_0 = x_0
        u_{t+1} = W (p_{t+1} + u_t - p_t)           correct, combine
        x_{t+1} = prox_{a h}(u_{t+1})

    h is the same at all nodes. As published W is (I + W)/2, the default here. Symmetric W
    without negative eigenvalues. Cost: K rounds.

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
        require_eigenvalues("Prox_ED", self.consensus, network, 0)

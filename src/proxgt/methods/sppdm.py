"""SPPDM: consensus by duals over the graph Laplacian, descent by a prox.

Published for the sum of f_i + h at every node, which has the solutions of the paper's mean.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from proxgt import checks
from proxgt.consensus import Consensus
from proxgt.estimators import Estimator, FullGradient
from proxgt.methods.base import step_size_at
from proxgt.methods.estimated import Estimated, settle_estimate
from proxgt.methods.requirements import check_estimate
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class Neighbours(Consensus):
    """A, the adjacency matrix: what a node hears, added up, without itself or weights.

    The unweighted Laplacian D - A and its partner D + A are one exchange of it away. Not an
    average, and one round only.
    """

    automatic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.rounds != 1 or self.target is not None:
            raise ValueError(f"Neighbours is one exchange, got rounds={self.rounds!r}")

    def coefficients(self, network: Network) -> np.ndarray:
        """s_1 = A s_0."""
        return self._every_round(network, 1.0, 0.0, 0.0)

    def weights(self, network: Network) -> sp.csr_array:
        """A, zeros and ones."""
        if network.nodes == 1:  # an explicit zero: engines sum over stored entries
            return sp.csr_array(([0.0], ([0], [0])), shape=(1, 1))
        return network.adjacency

    def contraction(self, network: Network) -> float:
        """Refused: A is not an average."""
        raise ValueError("Neighbours has no contraction: A rows is a sum; Gossip averages")


class SPPDMState(NamedTuple):
    """x_{t+1}, x_t, z_{t+1}, the dual and the estimate at s_t; d and theta by the way."""

    x: jax.Array
    before: jax.Array
    z: jax.Array
    dual: jax.Array
    degrees: jax.Array  # (nodes, 1)
    theta: jax.Array
    estimate: Any


@record
class SPPDM(Estimated):
    """Stochastic proximal primal-dual algorithm with momentum.

    Wang, Zhang, Chang, Li, Luo, "Distributed stochastic consensus optimization with momentum
    for nonconvex nonsmooth problems", IEEE Transactions on Signal Processing 2021.

        dual_{t+1} = dual_t + dual_step (D - A) x_t         dual_0 = 0, z_0 = x_{-1} = x_0
        s_t        = x_t + m_t (x_t - x_{t-1})              v_t ~ gradient of f_i at s_t
        u_t        = s_t / a + penalty (D + A) x_t + anchor z_t - v_t - dual_{t+1}
        x_{t+1}    = prox_{h / f}(u_t / f)                  f = 1/a + 2 penalty D + anchor
        z_{t+1}    = z_t + anchor_rate (x_{t+1} - z_t)

    As the authors of DEEPSTORM run it against theirs. A is the adjacency matrix and D the
    diagonal of its degrees; no W. The duals sum to zero
    over the network. Exact with full gradients at a constant step. Published for h of a
    polyhedral epigraph, such as L1. Undirected graphs. Cost: 1 round; the degrees are counted
    once, before the start, by an exchange of one number.

    Args:
        estimator: how v_t is made; `Minibatch(b)` as published.
        step_size: a, the inverse of the publication's gamma (which its theory has above 3L);
            a number or a function of the step counted from zero.
        consensus: the exchange, `Neighbours()`.
        penalty: the publication's c.
        dual_step: its alpha, of the order of 0.01 to 0.1.
        anchor: its kappa, the pull towards z.
        anchor_rate: its beta in (0, 1], how fast z follows x.
        momentum: m_t, a number in [0, 1), or "nesterov" for (theta_t - 1)/theta_{t+1} with
            theta_{t+1} = (1 + sqrt(1 + 4 theta_t^2))/2 and theta_0 = 1.
    """

    vectors = 1
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Neighbours())
    penalty: float = 1.0
    dual_step: float = 0.01
    anchor: float = 0.1
    anchor_rate: float = 0.9
    momentum: float | str = static(default=0.0)

    def __post_init__(self) -> None:
        settle_estimate(self)
        if not isinstance(self.consensus, Neighbours):
            raise ValueError(
                "consensus must be Neighbours() for SPPDM, which exchanges over the unweighted "
                f"graph Laplacian and not W, got {self.consensus!r}"
            )
        checks.positive_number("penalty", self.penalty)
        checks.positive_number("dual_step", self.dual_step)
        checks.non_negative_number("anchor", self.anchor)
        if checks.positive_number("anchor_rate", self.anchor_rate) > 1:
            raise ValueError(f"anchor_rate must be in (0, 1], got {self.anchor_rate!r}")
        if self.momentum != "nesterov" and not (
            not isinstance(self.momentum, str)
            and 0 <= checks.finite_number("momentum", self.momentum) < 1
        ):
            raise ValueError(f"momentum must be in [0, 1) or 'nesterov', got {self.momentum!r}")

    def check(self, problem: Problem, network: Network) -> None:
        if network.directed:
            raise ValueError(
                f"SPPDM needs an undirected graph, and that of {network!r} is directed: use "
                "ProxGT or SONATA"
            )
        check_estimate(self, problem)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> SPPDMState:
        degrees, theta = mix(jnp.ones_like(x[:, :1])), jnp.ones((), x.dtype)
        estimate = self.estimator.init(problem, x)
        return SPPDMState(x, x, x, jnp.zeros_like(x), degrees, theta, estimate)

    def step(self, problem: Oracle, mix: Any, state: SPPDMState, draw: Any) -> SPPDMState:
        x, before, z, dual, degrees, theta, last = state
        stiffness = 1 / step_size_at(self.step_size, last.t)
        own, heard = degrees * x, mix(x)
        dual = dual + self.dual_step * (own - heard)
        m, theta = self._momentum(theta)
        s = x + m * (x - before)
        estimate = self.estimator.update(problem, s, last, draw)
        pull = stiffness * s + self.penalty * (own + heard) + self.anchor * z
        step = 1 / (stiffness + 2 * self.penalty * degrees + self.anchor)
        new = jax.vmap(problem.regularizer.prox)(step * (pull - estimate.v - dual), step[:, 0])
        z = z + self.anchor_rate * (new - z)
        return SPPDMState(new, x, z, dual, degrees, theta, estimate)

    def _momentum(self, theta: jax.Array) -> tuple[Any, jax.Array]:
        """m_t and theta_{t+1}."""
        if self.momentum != "nesterov":
            return self.momentum, theta
        after = (1 + jnp.sqrt(1 + 4 * theta**2)) / 2
        return (theta - 1) / after, after


def PPDM(
    step_size: Any,
    consensus: Consensus = Neighbours(),
    penalty: float = 1.0,
    dual_step: float = 0.01,
    anchor: float = 0.1,
    anchor_rate: float = 0.9,
) -> SPPDM:
    """SPPDM's deterministic form: full gradients, no momentum."""
    return SPPDM(FullGradient(), step_size, consensus, penalty, dual_step, anchor, anchor_rate)

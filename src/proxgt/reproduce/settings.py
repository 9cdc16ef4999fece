"""The problems that claims are tried on, and parameters as the theorems scale them.

`bounded_quadratic` is a population risk, non-convex, over a box, of which L, nu, zeta and Delta
are known; its Psi is the same for any number of nodes. `sparse_logistic` is an empirical risk on
real data, non-convex and sparse. `sized` gives a method the b, q, B, alpha
of Theorems 1-3 at an epsilon, with constants of practice (alpha = 1/(2L)) in place of the
proofs', as `theory.plan(guarantee=False)` has them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from proxgt import data, tasks
from proxgt.consensus import Chebyshev, Consensus, Gossip
from proxgt.methods import ProxGT, ProxGT_SA, ProxGT_SR_E, ProxGT_SR_O
from proxgt.networks import Network
from proxgt.problems import EmpiricalRisk, PopulationRisk
from proxgt.regularizers import L1, Box, Regularizer
from proxgt.theory.bounds import Scales


@dataclass(frozen=True)
class Effort:
    """How much to spend on a claim.

    Attributes:
        seeds: runs of everything that is random.
        quick: fewer points, so that all claims take five minutes rather than twenty.
    """

    seeds: tuple[int, ...]
    quick: bool


QUICK = Effort(seeds=(0, 1, 2), quick=True)
FULL = Effort(seeds=tuple(range(8)), quick=False)


def bounded_quadratic(
    nodes: int, heterogeneity: float = 1.0, nu: float = 1.0, seed: int = 0
) -> PopulationRisk:
    """The population risk of these claims: p = 10, curvature from -1/2 to 1, h a box."""
    return tasks.noisy_quadratic(
        nodes,
        p=10,
        nu=nu,
        heterogeneity=heterogeneity,
        curvature=(-0.5, 1.0),
        curvature_noise=0.5,
        seed=seed,
        regularizer=Box(-1.0, 1.0),
    )


def sized(method: str, scales: Scales, epsilon: float, consensus: Consensus) -> ProxGT:
    """b, q, B and alpha of Theorem 1 ("SA"), 2 ("SR-O") or 3 ("SR-E") at this epsilon.

        SA    alpha = 1/(2L)   b = 2 nu^2/(n eps^2)
        SR-O  alpha = 1/(2L')  b = nu/(n eps)         q = n b       B = 2 nu^2/(n eps^2)
        SR-E  alpha = 1/(2L')  b = max(sqrt(m/n), 1)  q = sqrt(nm)

    The 2 leaves half of eps^2 to the first summand of the bounds. L' is that of Assumption 5.
    """
    n, noise = scales.nodes, scales.nu**2 / epsilon**2
    if method == "SA":
        return ProxGT_SA(max(1, math.ceil(2 * noise / n)), 1 / (2 * scales.smoothness), consensus)
    a = 1 / (2 * scales.mean_squared_smoothness)
    if method == "SR-E":
        batch = max(1, round(math.sqrt(scales.samples / n)))
        return ProxGT_SR_E(batch, max(1, round(math.sqrt(n * scales.samples))), a, consensus)
    batch = max(1, math.ceil(math.sqrt(noise) / n))
    return ProxGT_SR_O(batch, n * batch, max(1, math.ceil(2 * noise / n)), a, consensus)


def enough(network: Network, zeta: float, accelerated: bool = False) -> Consensus:
    """K of the theorems: the least with lambda_*^K n max(zeta, 1) <= 1."""
    target = 1 / (network.nodes * max(zeta, 1.0))
    kind = Chebyshev if accelerated else Gossip
    if network.nodes == 1:
        return Gossip(1)
    return kind("auto", target).resolve(network)


def sparse_logistic(
    nodes: int, split: str = "label", regularizer: Regularizer | None = None
) -> EmpiricalRisk:
    """The empirical risk of these claims: digits, odd against even, 1,792 samples over n nodes.

    Logistic loss + 0.1 sum x^2/(1 + x^2), h = 0.005 ||x||_1 unless another is given.
    """
    features, labels = data.load("digits_parity")
    features, labels = features[:1792], labels[:1792]
    shards = data.shard((features, labels), nodes, split, labels=labels)
    h = L1(0.005) if regularizer is None else regularizer
    return tasks.logistic(shards, h, penalty=0.1)


def unit_logistic(nodes: int, samples: int = 1024, split: str = "label") -> EmpiricalRisk:
    """The same digits as images of length one, so that L is the same for whoever holds which.

    Logistic loss + 0.01 sum x^2/(1 + x^2), h = 0.002 ||x||_1. Sorted by label the nodes' own
    gradients oppose each other. Of 1,024 samples b = sqrt(m/n) and q = sqrt(nm) are whole for
    n a power of two.
    """
    features, labels = data.load("digits_parity", normalize="rows")
    features, labels = features[:samples], labels[:samples]
    shards = data.shard((features, labels), nodes, split, labels=labels)
    return tasks.logistic(shards, L1(0.002), penalty=0.01)

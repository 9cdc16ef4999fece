"""What methods ask of their parts, of a problem and of a network, refused by name.

Everything here runs on the host, before any compile, and says what would do instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from proxgt import checks
from proxgt.consensus import Consensus, Polynomial, run_recurrence
from proxgt.estimators import Estimator, need_exact
from proxgt.methods.base import Method, named
from proxgt.methods.estimated import settle_estimate
from proxgt.networks import Network
from proxgt.networks.weights import DENSE
from proxgt.problems import Problem
from proxgt.regularizers import Zero

_ROUNDING = 1e-9  # what a computed eigenvalue may be off by
_GRID = 4097  # points on the spectrum's interval where eigenvalues are too many


def settle(method: Method, *, automatic: bool = False) -> None:
    """Check the step size, the estimator and the consensus of a method being made.

    Called from `__post_init__`. `automatic` allows step_size="auto".
    """
    settle_estimate(method, automatic=automatic)
    check_averaging(method.consensus)


def check_averaging(consensus: Any) -> None:
    """Refuse what is not a polynomial of a doubly stochastic W."""
    if not isinstance(consensus, Consensus):
        raise TypeError(f"consensus must be Gossip(rounds) or Chebyshev(rounds), got {consensus!r}")
    if not isinstance(consensus, Polynomial):
        raise ValueError(
            f"consensus must keep the network mean, as Gossip(rounds) does, got {consensus!r}"
        )


def require_fit(problem: Any, network: Any) -> None:
    """Refuse what is not a problem and a network with as many nodes."""
    checks.instance("problem", problem, Problem, "EmpiricalRisk(loss, data)")
    checks.instance("network", network, Network, "Network(graph)")
    if problem.nodes != network.nodes:
        raise ValueError(
            f"the problem has {problem.nodes} nodes and the network {network.nodes}: "
            "they must agree"
        )


def check_parts(method: Any, problem: Problem, network: Network) -> None:
    """Refuse, by the method's name, what its estimator or its consensus cannot serve."""
    check_estimate(method, problem)
    check_consensus(method, network)


def check_estimate(method: Any, problem: Problem) -> None:
    """Refuse, by the method's name, a problem that the estimator it was given cannot serve."""
    with named(method):
        method.estimator.check(problem)


def check_consensus(method: Any, network: Network) -> None:
    """Refuse, by the method's name, a network that any consensus of it cannot serve."""
    parts = method.consensus if isinstance(method.consensus, tuple) else (method.consensus,)
    with named(method):
        for part in parts:
            part.check(network)


def refuse_population(name: str, estimator: Estimator, problem: Problem, instead: str) -> None:
    """Refuse, by the method's name, a problem that the estimator it comes with cannot serve."""
    try:
        estimator.check(problem)
    except ValueError:
        need_exact(problem, name, instead)
        raise


def refuse_regularizer(name: str, problem: Problem, instead: str = "ProxGT") -> None:
    """Refuse a problem with an h, for a method that has no prox."""
    if not isinstance(problem.regularizer, Zero):
        raise ValueError(
            f"{name} cannot take a regularizer, and the problem has {problem.regularizer!r}: "
            f"use {instead}, or add a smooth h to the loss"
        )


def refuse_nonsymmetric(name: str, network: Network, instead: str = "ProxGT") -> None:
    """Refuse a W that is not symmetric."""
    if not network.symmetric:
        raise ValueError(
            f"{name} needs a symmetric W, and that of {network!r} is not: use an undirected "
            f"graph with weights='metropolis', or {instead}, which takes any doubly stochastic W"
        )


def require_eigenvalues(name: str, consensus: Consensus, network: Network, bound: float) -> None:
    """Refuse a consensus whose matrix has an eigenvalue below `bound`. W must be symmetric."""
    least = smallest_eigenvalue(consensus, network)
    if least < bound - _ROUNDING:
        raise ValueError(
            f"{name} needs the eigenvalues of its consensus matrix >= {bound:.4g}, and "
            f"{consensus!r} on {network!r} has {least:.4g}: use weights='lazy-metropolis' or "
            "consensus=LazyGossip(1)"
        )


def smallest_eigenvalue(consensus: Consensus, network: Network) -> float:
    """Of the consensus matrix on a symmetric W; beyond 256 nodes over the spectrum's interval."""
    if network.nodes == 1:
        return 1.0
    if network.nodes <= DENSE:
        points = np.linalg.eigvalsh(network.W)
    else:
        points = np.linspace(*network.spectrum, _GRID)
    coefficients = consensus.coefficients(network)
    return float(run_recurrence(lambda s: points * s, coefficients, np.ones_like(points)).min())

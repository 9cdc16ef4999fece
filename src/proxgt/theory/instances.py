"""What the theorems say about a method that is there already."""

from __future__ import annotations

import dataclasses
from typing import Any

from proxgt import checks
from proxgt.estimators import SARAH, FullGradient, Minibatch
from proxgt.methods.base import prepared
from proxgt.methods.proxgt import ProxGT
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.theory.bounds import COEFFICIENTS, Bound, bound, conditions
from proxgt.theory.constants import Constants, constants
from proxgt.theory.pilot import PRACTICAL


def name_of(estimator: Any) -> str:
    """SA, SR-O or SR-E; an exact gradient at every step is SA without noise."""
    if isinstance(estimator, Minibatch | FullGradient):
        return "SA"
    if isinstance(estimator, SARAH):
        return "SR-E" if estimator.refresh is None else "SR-O"
    raise ValueError(f"no theorem of the paper covers ProxGT with {type(estimator).__name__}")


def step_size_for(
    problem: Problem,
    network: Network,
    method: ProxGT,
    guarantee: bool = False,
    given: Constants | None = None,
) -> float:
    """The largest step size that the conditions allow for a method's own b, q and consensus.

    With guarantee=False their practical form: 1/(2L), sqrt(nb/4q)/L and the network's.
    """
    estimator, name = method.estimator, name_of(method.estimator)
    known = constants(problem, network) if given is None else given
    c = COEFFICIENTS[name, "corrected"] if guarantee else PRACTICAL[name]
    left = prepared(method, network).consensus.contraction(network)
    batch, period = getattr(estimator, "batch", 1), getattr(estimator, "period", None)
    limits = conditions(c, name, known.scales(guarantee), left, batch, period)
    return float(min(limit for _, limit in limits))


def bound_of(
    method: ProxGT, network: Network, steps: int, given: Constants, version: str = "corrected"
) -> Bound:
    """The bound of the theorem that covers this method, at `steps` steps."""
    estimator, consensus = method.estimator, prepared(method, network).consensus
    name, scales = name_of(estimator), given.scales()
    sizes = {key: getattr(estimator, key, None) for key in ("period", "refresh")}
    if isinstance(estimator, FullGradient):
        scales = dataclasses.replace(scales, nu=0.0)
    return bound(
        name,
        scales,
        steps=steps,
        step_size=checks.positive_number("step_size", method.step_size),
        contraction=consensus.contraction(network),
        batch=getattr(estimator, "batch", 1),
        non_negative=consensus.non_negative,
        version=version,
        **sizes,
    )

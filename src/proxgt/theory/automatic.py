"""Fields of a ProxGT method that say "auto", settled on a problem and a network.

The theorems' choices with the practical constants of `proxgt.theory.pilot`, in this order:

    rounds      the consensus' own rule: at most a tenth of the disagreement is left
    refresh     B = 2 N/epsilon^2, N/B the noise and tracking summands      SR-O, Theorem 2
    period      q = min(sqrt(n S), n b)                                     Theorems 2 and 3
    batch       b = q/n, that is max(sqrt(S/n), 1)                          Theorems 2 and 3
                b = 2 N/epsilon^2                                           SA, Theorem 1
    step_size   the largest that the practical conditions allow

with S = m for SR-E and S = B for SR-O; half of epsilon^2 is left for the noise. Values depend
on the problem, the network, x0 and epsilon alone, so that a resumed run and every rank settle
on the same; step sizes are rounded, so that another machine's last bits do not matter.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from proxgt.estimators import SARAH
from proxgt.methods.base import AUTO, open_fields
from proxgt.methods.proxgt import ProxGT
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.theory.bounds import Scales, noise_factors
from proxgt.theory.constants import constants
from proxgt.theory.instances import name_of, step_size_for
from proxgt.theory.pilot import PRACTICAL

_NOISE_SHARE = 0.5  # of epsilon^2
_DIGITS = 3


def settled(
    method: Any, problem: Problem, network: Network, epsilon: float | None = None
) -> ProxGT:
    """The method with numbers for all that is "auto"; its consensus is settled already.

    `epsilon` is what the sample sizes of SA and SR-O depend on: the `tolerance` of `solve`.
    """
    named = open_fields(method)
    if not isinstance(method, ProxGT):
        raise ValueError(
            f"{named[0]} is 'auto', which the theorems settle for ProxGT alone, and the method is "
            f"{type(method).__name__}: give a number, or find one with proxgt.tune"
        )
    name = name_of(method.estimator)  # refuses what no theorem covers
    method.check(problem, network)
    _require_epsilon(name, named, epsilon)
    known = constants(problem, network)
    left = method.consensus.contraction(network)
    non_negative = method.consensus.non_negative

    def size(period: float) -> int:
        """B of SR-O, or b of SA: the noise takes its share of epsilon^2."""
        assert epsilon is not None
        scales = known.scales(guarantee=False)
        share = _NOISE_SHARE * epsilon**2
        return max(1, math.ceil(_noise(name, scales, left, period, non_negative) / share))

    estimator = _sized(method.estimator, name, network.nodes, known.samples, size)
    method = dataclasses.replace(method, estimator=estimator)
    if method.step_size != AUTO:
        return method
    largest = step_size_for(problem, network, method, given=known)
    return dataclasses.replace(method, step_size=_rounded_down(largest))


def _require_epsilon(name: str, named: tuple[str, ...], epsilon: float | None) -> None:
    """Refuse a sample size that the theorem makes depend on epsilon where there is none."""
    size = {"SA": "batch", "SR-O": "refresh"}.get(name)
    if epsilon is None and size in named:
        raise ValueError(
            f"{size} is 'auto', which for ProxGT-{name} depends on epsilon: give solve a "
            "tolerance, or take the method of plan(problem, network, epsilon)"
        )


def _noise(name: str, s: Scales, left: float, period: float, non_negative: bool) -> float:
    """N, with N/b or N/B the last two summands of the bound."""
    factors = noise_factors(PRACTICAL[name], name, s, left, period, non_negative)
    return float(sum(factors)) * s.nu**2 / s.nodes


def _sized(estimator: Any, name: str, n: int, samples: float, size: Any) -> Any:
    """The estimator with numbers for its batch, period and refresh."""
    if not isinstance(estimator, SARAH):
        if getattr(estimator, "batch", None) == AUTO:
            return dataclasses.replace(estimator, batch=size(1))
        return estimator
    b, q, refresh = estimator.batch, estimator.period, estimator.refresh
    if refresh == AUTO:
        guess = math.sqrt(n * size(math.inf)) if q == AUTO else q
        refresh = size(guess)
    if q == AUTO:
        root = math.sqrt(n * (samples if name == "SR-E" else refresh))
        q = max(1, round(root if b == AUTO else min(root, n * b)))
    if b == AUTO:
        b = math.ceil(q / n)
    return SARAH(b, q, refresh)


def _rounded_down(number: float) -> float:
    """To three digits, by decimal text: 0.0123, not 0.012299999."""
    scale = 10 ** (_DIGITS - 1 - math.floor(math.log10(number)))
    return float(f"{math.floor(number * scale * (1 + 1e-6)) / scale:.{_DIGITS}g}")

"""Practical constants for the theorems' scalings, calibrated on a short run.

The theorems' bounds are c Delta/(alpha T) + (noise), with c = 8 to cover every problem. A pilot
on the problem itself shows how large the sum of the metric over steps really is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from proxgt.estimators import SARAH, Estimator, Minibatch
from proxgt.methods import ProxGT
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.solve import solve
from proxgt.theory.bounds import Coefficients, Scales
from proxgt.theory.search import Mixing

# alpha = 1/(2L), as is usual; sqrt(nb/4q) keeps it there at q = nb. For a quadratic the noise
# leaves alpha L/(2 - alpha L) = 1/3 of nu^2/(nb) in the metric: 1 is on the safe side.
_SARAH = Coefficients(start=4, network=4, tracking=4, descent=2, curvature=2, variance=4, noise=1)
PRACTICAL = {"SA": replace(_SARAH, tracking=2), "SR-O": _SARAH, "SR-E": _SARAH}
LEAST_SHARE = 0.5  # of epsilon^2 that the pilot's sum may take
_SAFETY = 1.3
_MOST = 100
_MOST_SAMPLES = 10_000  # a step: the pilot stays short however small epsilon is


@dataclass(frozen=True)
class Pilot:
    """What the pilot saw.

    Attributes:
        steps, samples, rounds: what it took, per node.
        total: the sum of the metric that a run to epsilon is expected to see.
        step_size: its alpha.
        extrapolated: whether it ended before its average was below epsilon^2/2.
    """

    steps: int
    samples: float
    rounds: int
    total: float
    step_size: float
    extrapolated: bool

    def coefficients(self, method: str, scales: Scales) -> Coefficients:
        """The practical coefficients with c = alpha (sum of the metric)/Delta."""
        gap = max(scales.gap, 1e-300)
        return replace(PRACTICAL[method], descent=_SAFETY * self.step_size * self.total / gap)


def run_pilot(
    problem: Problem,
    network: Network,
    scales: Scales,
    gap: float,
    epsilon: float,
    mixing: Mixing,
    seed: int,
) -> Pilot:
    """Run Theorem 3's SARAH, or enough samples, until the running average is below epsilon^2/2.

    At most 100 steps of 10,000 samples. Where they do not do, the sum so far grows in
    proportion to what is left of `gap`, Delta with a bound in it where there is one.
    """
    a = 1 / (PRACTICAL["SA"].curvature * scales.smoothness)
    target = LEAST_SHARE * epsilon**2
    method = ProxGT(_estimator(problem, scales, target), a, mixing.consensus)
    seen: list[float] = []
    values: list[float] = []

    def watch(snapshot: object) -> bool:
        row = snapshot.row  # pyright: ignore[reportAttributeAccessIssue]
        seen.append(row.metric)
        values.append(row.objective)
        return float(np.mean(seen)) <= target

    result = solve(problem, network, method, _MOST, seed=seed, record_every=1, callbacks=[watch])
    total, extrapolated = float(np.sum(seen)), float(np.mean(seen)) > target
    if extrapolated:
        gained = max(values[0] - min(values), 1e-300)
        total *= max(1.0, gap / gained)
    last = result.history[-1]
    return Pilot(last.step, last.samples, last.rounds, total, a, extrapolated)


def _estimator(problem: Problem, scales: Scales, target: float) -> Estimator:
    """b and q of Theorem 3 for an empirical risk; else b of Theorem 1 at the target."""
    if problem.exact:
        b = max(1, round(np.sqrt(scales.samples / scales.nodes)))
        return SARAH(b, max(1, round(np.sqrt(scales.samples * scales.nodes))))
    b = min(_MOST_SAMPLES, scales.nu**2 / max(scales.nodes * target, 1e-300))
    return Minibatch(max(1, int(np.ceil(b))))

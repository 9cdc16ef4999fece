"""Steps to epsilon with the best step size of a grid, the same grid for every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proxgt.consensus import Consensus
from proxgt.estimators import Estimator
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.regularizers import Regularizer
from proxgt.reproduce.runs import curve


@dataclass(frozen=True)
class Contest:
    """Methods on equal terms.

    Attributes:
        methods: classes of (estimator, step size, consensus).
        grid: the step sizes, in units of 1/L, largest first.
        most: steps that a run may take.
    """

    methods: tuple[type, ...]
    h: Regularizer
    estimator: Estimator
    consensus: Consensus
    epsilons: tuple[float, ...]
    seeds: tuple[int, ...]
    grid: tuple[float, ...]
    most: int


def steps_to(metric: np.ndarray, epsilons: Sequence[float]) -> np.ndarray:
    """Least T with Definition 3's average at most eps^2, or infinity: (seeds, epsilons)."""
    average = np.cumsum(metric, axis=1) / np.arange(1, metric.shape[1] + 1)
    below = average[:, :, None] <= np.square(epsilons)  # NaN is not
    return np.where(below.any(axis=1), below.argmax(axis=1) + 1.0, np.inf)


def best(
    contest: Contest, method: type, problem: Problem, network: Network
) -> tuple[np.ndarray, np.ndarray]:
    """Steps (seeds, epsilons), and for each epsilon the step size that takes the fewest.

    A step size that no grid reaches epsilon with is NaN. The gradient mapping is that at 1/L.
    """
    least = np.full((len(contest.seeds), len(contest.epsilons)), np.inf)
    sizes = np.full(len(contest.epsilons), np.nan)
    for a in np.array(contest.grid) / problem.smoothness:
        # no more steps than could be of use: twice, as seeds differ
        most = int(min(contest.most, 2 * least.max()))
        metric = curve(
            problem,
            network,
            method(contest.estimator, a, contest.consensus),
            contest.seeds,
            most,
            until=min(contest.epsilons),
            metric_step=1 / problem.smoothness,
        )
        found = steps_to(metric, contest.epsilons)
        better = found.mean(axis=0) < least.mean(axis=0)
        least[:, better], sizes[better] = found[:, better], a
    return least, sizes

"""Step sizes by search, with the same budget for every method.

tuned = {label: tune(problem, network, m, budget=budget).method for label, m in methods.items()}
compare(problem, network, tuned, budget=budget)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from proxgt import checks, plots
from proxgt.comparison.contest import Contest, seeds_of
from proxgt.methods.base import Method, Schedule
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.result import Result

GRID = (0.03, 0.1, 0.3, 1.0, 3.0)  # in units of 1/L
_SETTLED = 4  # the last 1/4 of a run's records is its score


class Trial(NamedTuple):
    """A step size, the steps it was given, and how it scored: less is better."""

    step_size: float
    steps: int
    score: float


@dataclass(frozen=True)
class Tuning:
    """The end of a search.

    Attributes:
        method: the method with the best step size.
        step_size: that step size.
        trials: all that were tried, in order.
    """

    method: Method
    step_size: float
    trials: tuple[Trial, ...]

    @property
    def at_edge(self) -> bool:
        """Whether the best step size is the least or the largest tried, so that more may pay."""
        tried = [trial.step_size for trial in self.trials]
        return self.step_size in (min(tried), max(tried))


def tune(
    problem: Problem,
    network: Network,
    method: Method | Callable[[float], Method],
    step_sizes: Sequence[float] | None = None,
    *,
    budget: Mapping[str, float],
    column: str = "metric",
    seeds: int | Sequence[int] = 1,
    halving: bool = False,
    extend: int = 3,
    target: float | None = None,
    records: int = 40,
    metric_step: float | None = None,
    x0: Any = None,
    dtype: str = "float32",
) -> Tuning:
    """The best step size of a method under a budget.

    A run's score is the geometric mean of `column` over the last quarter of its records, and
    infinite if it diverged; a step size is scored by the geometric mean over seeds. The step
    size of a method is an argument of its compiled code, so that a search compiles once.

    Args:
        problem, network: as for `solve`.
        method: a method whose step size is a number, or a function step size -> method.
        step_sizes: the grid; by default 0.03 to 3, in ratios of about 3, over L.
        budget: of every trial, as for `compare`.
        column: "metric", "stationarity" or "consensus".
        seeds: how many runs of each trial, or their seeds.
        halving: successive halving: all step sizes get a small share of the budget, the
            better half of them twice that, and so on; the last ones get all of it.
        extend: how many step sizes to add, one by one, while the best is at an end of the
            grid; not with halving.
        target: score by the share of the budget that it took to bring `column` there, where
            that was reached: what reaches it is better than what does not, and sooner is better.
        records: records of a trial, about.
        metric_step: by default 1/L.
        x0, dtype: as for `solve`.
    """
    checks.one_of("column", column, ("metric", "stationarity", "consensus"))
    checks.positive_int("extend", extend, least=0)
    options = {"x0": x0, "metric_step": metric_step, "dtype": dtype}
    contest = Contest(problem, network, budget, options)
    make = _maker(contest.settled(method) if isinstance(method, Method) else method)
    if step_sizes is None:
        step_sizes = [scale / problem.smoothness for scale in GRID]
    grid = sorted({checks.positive_number("step_sizes", a) for a in step_sizes})
    if not grid:
        raise ValueError("step_sizes must hold at least one step size, got none")
    checks.positive_int("records", records)
    if target is not None:
        checks.positive_number("target", target)
    search = _Search(contest, make, column, seeds_of(seeds), target, records)
    contest.check(make(grid[0]))
    best = search.halve(grid) if halving else search.scan(grid, extend)
    if not math.isfinite(best.score):
        raise ValueError(
            f"step_sizes must hold one that does not diverge, got {grid}: try smaller ones"
        )
    return Tuning(make(best.step_size), best.step_size, tuple(search.trials))


def _maker(method: Any) -> Callable[[float], Any]:
    if not isinstance(method, Method):
        if callable(method):
            return method
        raise TypeError(f"method must be a Method or a function of the step size, got {method!r}")
    if isinstance(method.step_size, Schedule):
        raise ValueError(
            f"method must have a number as step_size to be tuned, and {type(method).__name__} has "
            "a schedule: give a function of the scale, such as "
            "lambda a: DSGD(estimator, lambda t: a / (t + 1) ** 0.5)"
        )
    return lambda step_size: dataclasses.replace(method, step_size=step_size)  # pyright: ignore


class _Search:
    """Trials of one method."""

    def __init__(
        self,
        contest: Contest,
        make: Callable[[float], Method],
        column: str,
        seeds: tuple[int, ...],
        target: float | None,
        records: int,
    ) -> None:
        self._contest, self._make, self._records = contest, make, records
        self._column, self._seeds, self._target = column, seeds, target
        self.trials: list[Trial] = []

    def scan(self, grid: list[float], extend: int) -> Trial:
        """Every step size with the whole budget, and beyond an end that is best."""
        trials = [self._trial(step_size) for step_size in grid]
        ratio = (grid[-1] / grid[0]) ** (1 / (len(grid) - 1)) if len(grid) > 1 else 3.0
        for _ in range(extend):
            best = min(trials, key=lambda trial: trial.score)
            if not math.isfinite(best.score) or best is trials[0]:
                trials.insert(0, self._trial(trials[0].step_size / ratio))
            elif best is trials[-1]:
                trials.append(self._trial(best.step_size * ratio))
            else:
                break
        return min(trials, key=lambda trial: trial.score)

    def halve(self, grid: list[float]) -> Trial:
        """Successive halving (Jamieson, Talwalkar, AISTATS 2016)."""
        left, rung = list(grid), math.ceil(math.log2(len(grid)))
        while True:
            trials = [self._trial(step_size, 0.5**rung) for step_size in left]
            if rung == 0:
                return min(trials, key=lambda trial: trial.score)
            trials.sort(key=lambda trial: trial.score)
            left = [trial.step_size for trial in trials[: -(-len(trials) // 2)]]
            rung -= 1

    def _trial(self, step_size: float, share: float = 1.0) -> Trial:
        method = self._make(step_size)
        whole = self._contest.steps(method)
        # The length of chunks is part of the compiled code: the same for every share.
        every = max(-(-whole // self._records), 1)
        steps = max(round(whole * share), 1)
        scores = [
            score(self._contest.run(method, steps, every, seed), self._column, self._target)
            for seed in self._seeds
        ]
        trial = Trial(step_size, steps, _geometric(scores))
        self.trials.append(trial)
        return trial


def score(result: Result, column: str = "metric", target: float | None = None) -> float:
    """The geometric mean of a column over the last quarter of a run; infinite if it diverged.

    With a target it is no less than that, unless the target was reached: then it is the target
    times the share of the run that this took.
    """
    checks.one_of("column", column, plots.YS)
    if result.status == "diverged":
        return math.inf
    values = result.history[column]
    settled = _geometric(values[-max(len(values) // _SETTLED, 1) :])
    if target is None:
        return settled
    there = np.flatnonzero(values <= target)
    if not there.size:
        return max(settled, target)
    return target * float(result.history["step"][there[0]] / result.history["step"][-1])


def _geometric(values: Any) -> float:
    with np.errstate(divide="ignore"):  # an exact zero is the best score there is
        return float(np.exp(np.mean(np.log(np.asarray(values, float)))))

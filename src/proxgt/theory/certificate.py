"""Definition 3, stated about runs with numbers: was epsilon met, at what cost, by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proxgt import checks
from proxgt.result import Result


@dataclass(frozen=True)
class At:
    """A point of a run: its step, and samples per node and rounds by then."""

    step: int
    samples: float
    rounds: int


@dataclass(frozen=True, repr=False)
class Certificate:
    """What runs say about Definition 3 at an epsilon.

    Attributes:
        epsilon: the tolerance.
        average: (1/T) sum over x_1..x_T of the metric; the mean over runs, infinite where one
            diverged.
        error: its standard error over runs; None for one run, of which Definition 3 takes the
            expectation.
        met: whether every run's own average, measured at every node, is at most epsilon^2.
        reached: the first record by which the running average was; the last of the runs, None
            unless all reached it.
        best: the least metric of one iterate; best_at: where.
        bound: the right-hand side of the theorem, where one was given.
        steps, samples, rounds: of the (longest) run.
        at_nodes: whether the metric was measured at every node, as Definition 3 has it, rather
            than at the mean, which certifies nothing.
        apart: steps between records, at most; between them the metric is interpolated.
        metric_step: the step size of the gradient mapping, eq. (7).
        smoothness_is_estimate: whether the L of the metric was estimated.
        diverged: how many runs did.
    """

    epsilon: float
    average: float
    error: float | None
    met: bool
    reached: At | None
    best: float
    best_at: At
    bound: float | None
    steps: int
    samples: float
    rounds: int
    runs: int
    at_nodes: bool
    apart: int
    metric_step: float
    smoothness_is_estimate: bool
    diverged: int

    @property
    def interpolated(self) -> bool:
        """Whether there were iterates between records."""
        return self.apart > 1

    @property
    def margin(self) -> float:
        """epsilon^2 / average: above one where epsilon was met with room to spare."""
        return self.epsilon**2 / self.average if self.average > 0 else float("inf")

    @property
    def below_bound(self) -> float | None:
        """bound / average: how many times the run stays below what is proven."""
        if self.bound is None:
            return None
        return self.bound / self.average if self.average > 0 else float("inf")

    def __bool__(self) -> bool:
        return self.met

    def __repr__(self) -> str:
        return "\n".join([*_verdict(self), *_numbers(self), *_caveats(self)])


def _verdict(c: Certificate) -> list[str]:
    runs = f"{c.runs} run(s) of {c.steps} steps, {c.samples:g} samples per node, {c.rounds} rounds"
    if c.diverged:
        return [f"epsilon = {c.epsilon:g} is NOT met: {c.diverged} of {runs} diverged"]
    if c.at_nodes:
        told = ", as far as its records tell," if c.interpolated else ""
        return [f"epsilon = {c.epsilon:g} is {'met' if c.met else 'NOT met'}{told} by {runs}"]
    return [
        f"epsilon = {c.epsilon:g} is not certified by {runs}:",
        '  measured at the mean only, and Definition 3 asks for every node (metric_at="nodes")',
    ]


def _numbers(c: Certificate) -> list[str]:
    lines = [] if c.diverged else _averages(c)
    lines += [f"  best iterate {c.best:.4g} at {_place(c.best_at)}"]
    if c.reached:
        return [*lines, f"  running average first below epsilon^2 at {_place(c.reached)}"]
    return [*lines, "  the running average was never below epsilon^2 in every run"]


def _averages(c: Certificate) -> list[str]:
    error = "" if c.error is None else f" +- {c.error:.2g}"
    where = "at every node" if c.at_nodes else "at the mean"
    lines = [
        f"  average metric {where} {c.average:.4g}{error}, epsilon^2 = {c.epsilon**2:.4g}: "
        f"{_times(c.margin)}"
    ]
    if c.below_bound is not None:
        lines += [f"  bound {c.bound:.4g}: the average is {_times(c.below_bound)}"]
    return lines


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times below" if ratio >= 1 else f"{1 / ratio:.3g} times ABOVE"


def _caveats(c: Certificate) -> list[str]:
    lines = [f"  gradient mapping of eq. (7) with step size {c.metric_step:.4g}"]
    if c.interpolated:
        lines += [
            f"  records up to {c.apart} steps apart, interpolated (record_every=1 for all iterates)"
        ]
    if c.smoothness_is_estimate:
        lines += ["  the L of the metric is an estimate"]
    return lines


def certificate(
    results: Result | Sequence[Result], epsilon: float, bound: Any = None
) -> Certificate:
    """Definition 3 at `epsilon` for one run, or for runs that differ in their seed.

    Run with metric_at="nodes", without which nothing is certified, and record_every=1 for
    every iterate: between records the metric is interpolated. `bound` is a number, a
    `theory.Bound`, or the `Plan` that was run. Of a population risk whose gradient is not known
    the metric is that of its evaluation sample.
    """
    checks.positive_number("epsilon", epsilon)
    runs = [results] if isinstance(results, Result) else list(results)
    if not runs or any(r.steps < 1 and r.status != "diverged" for r in runs):
        raise ValueError("certificate needs at least one run of at least one step")
    averages = [_running_average(result) for result in runs]
    finals = np.array([average[-1] for average in averages])
    reached = [_reached(r, a, epsilon**2) for r, a in zip(runs, averages, strict=True)]
    least = min(runs, key=lambda result: float(np.min(result.history["metric"])))
    longest = max(runs, key=lambda result: result.steps).history[-1]
    spread = len(runs) > 1 and bool(np.isfinite(finals).all())  # else there is no error to state
    at_nodes = all(_measured_at_nodes(result) for result in runs)
    return Certificate(
        epsilon=float(epsilon),
        average=float(finals.mean()),
        error=float(finals.std(ddof=1) / np.sqrt(len(runs))) if spread else None,
        met=bool((finals <= epsilon**2).all()) and at_nodes,
        reached=None if None in reached else max(reached, key=lambda at: at.step),  # pyright: ignore
        best=float(np.min(least.history["metric"])),
        best_at=_at(least, int(np.argmin(least.history["metric"]))),
        bound=_number(bound, longest.step),
        steps=longest.step,
        samples=longest.samples,
        rounds=longest.rounds,
        runs=len(runs),
        at_nodes=at_nodes,
        apart=max(int(np.diff(result.history["step"]).max(initial=1)) for result in runs),
        metric_step=max(result.metric_step for result in runs),
        smoothness_is_estimate=any(result.smoothness_is_estimate for result in runs),
        diverged=sum(result.status == "diverged" for result in runs),
    )


def _number(bound: Any, steps: int) -> float | None:
    """The right-hand side of a plan's bound, of a bound, or the number itself."""
    planned = getattr(bound, "steps", steps)
    if planned != steps:
        raise ValueError(
            f"bound must be of this run, but the plan has {planned} steps and the run {steps}: "
            f"give theory.bound(..., steps={steps})"
        )
    bound = getattr(bound, "bound", bound)  # None of a practical plan
    if not getattr(bound, "holds", True):
        raise ValueError(f"bound must have its conditions met to be one, got\n{bound}")
    value = getattr(bound, "value", bound)
    return None if value is None else checks.non_negative_number("bound", value)


def _running_average(result: Result) -> np.ndarray:
    """(1/t) sum_{r=1}^t metric(x_r) for t = 1..T; infinite at the end where a run diverged.

    Record k is x_{k+1}, so that x_1..x_T are the iterates after 0..T-1 steps.
    """
    steps, metric = result.history["step"], result.history["metric"]
    every = np.interp(np.arange(steps[-1]), steps, metric)
    if result.status == "diverged":
        every = np.append(every, np.inf)
    return np.cumsum(every) / np.arange(1, len(every) + 1)


def _reached(result: Result, average: np.ndarray, target: float) -> At | None:
    """The first record T by which the average over x_1..x_T is at most epsilon^2."""
    for k, step in enumerate(result.history["step"]):
        if step > 0 and average[step - 1] <= target:
            return _at(result, k)
    return None


def _at(result: Result, record: int) -> At:
    row = result.history[record]
    return At(row.step, row.samples, row.rounds)


def _measured_at_nodes(result: Result) -> bool:
    return "nodes" in str(result.run.get("run.metric_at", ""))


def _place(at: At | Any) -> str:
    return f"step {at.step}, {at.samples:g} samples per node, {at.rounds} rounds"

"""What was found of a claim: checks with their numbers, the verdict, the figure, the table."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from scipy import stats

from proxgt import plots
from proxgt.comparison.averages import student

CONFIDENCE = 0.95
# Inches, and points of letters: shown 800 pixels wide, 9 points are 9 pixels high.
WIDTH, HEIGHT, LETTERS = 11.0, 5.0, 9
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": LETTERS}
_BELOW = {"loc": "upper center", "bbox_to_anchor": (0.5, 0)}
BELOW: dict[str, Any] = LEGEND | _BELOW | {"borderaxespad": 4}  # in letters, from the axis


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95 % confidence interval, of Student's t."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Any) -> Interval:
        """Of one number a seed; a single number is its own interval."""
        values = np.asarray(values, float).ravel()
        if not np.isfinite(values).all():
            mean = float(np.mean(values))
            return cls(mean, mean, mean)
        return cls(*map(float, student(values, CONFIDENCE)))

    @classmethod
    def of_ratio(cls, over: Any, under: Any) -> Interval:
        """Of the ratio of two means, each over seeds of its own: Welch's, of relative errors."""
        value = float(np.mean(over) / np.mean(under))
        free = np.array([len(over), len(under)]) - 1
        if not np.isfinite([*over, *under]).all() or free.min() < 1:
            return cls(value, value, value)
        squares = np.array([(stats.sem(one) / np.mean(one)) ** 2 for one in (over, under)])
        if not squares.any():
            return cls(value, value, value)
        freedom = squares.sum() ** 2 / np.sum(squares**2 / free)
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(squares.sum()))
        return cls(value, value * np.exp(-half), value * np.exp(half))

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def slopes(x: Any, y: Any) -> np.ndarray:
    """The least-squares slope of log y against log x for every seed; y is (seeds, points).

    NaN where a seed did not reach some point.
    """
    log_x, y = np.log(np.asarray(x, float)), np.asarray(y, float)
    log_y = np.log(np.where(np.isfinite(y) & (y > 0), y, np.nan))
    apart = log_x - log_x.mean()
    return (log_y @ apart) / (apart @ apart)


@dataclass(frozen=True)
class Check:
    """One number that a claim predicts: what it should be and what it is.

    `low` and `high` are what the claim asks `found.value` to lie within.
    """

    name: str
    found: Interval
    low: float
    high: float

    @classmethod
    def slope(cls, name: str, x: Any, y: Any, expected: float, within: float) -> Check:
        """A power law: the slope in log-log axes over seeds, as expected up to `within`."""
        return cls(name, Interval.of(slopes(x, y)), expected - within, expected + within)

    @property
    def passed(self) -> bool:
        """Whether the mean over seeds is where the claim says; NaN is not."""
        return self.low <= self.found.value <= self.high

    @property
    def wanted(self) -> str:
        """The range in words."""
        if not np.isfinite(self.high):
            return f"at least {self.low:.4g}"
        if not np.isfinite(self.low):
            return f"at most {self.high:.4g}"
        return f"{self.low:.4g} to {self.high:.4g}"


@dataclass(frozen=True)
class Finding:
    """A claim, measured.

    Attributes:
        checks: what decides; the claim is reproduced when all pass.
        rows: everything measured, one dict a row, all with the same keys.
        draw: draws the figure into so many axes, side by side.
        panels: how many.
        notes: what a reader should know of how it was measured, or of why it fails.
    """

    checks: tuple[Check, ...]
    rows: Sequence[Mapping[str, Any]]
    draw: Callable[[Sequence[Axes]], None]
    panels: int = 1
    notes: tuple[str, ...] = field(default=())

    @property
    def reproduced(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def verdict(self) -> str:
        """In one word or two."""
        return "reproduced" if self.reproduced else "NOT reproduced"

    def save(self, stem: Path, title: str) -> None:
        """Write stem.csv and stem.png."""
        with stem.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(self.rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        with plots.drawing(stem.with_suffix(".png"), (WIDTH, HEIGHT)) as figure:
            figure.suptitle(title, fontsize=12)
            self.draw(list(np.atleast_1d(figure.subplots(1, self.panels))))


def log_axes(
    axes: Axes,
    x: str,
    y: str,
    ticks: Sequence[float] | None = None,
    legend_below: bool = False,
) -> None:
    """Both axes logarithmic, labelled, with a plain legend; `ticks` on x as plain numbers."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=LETTERS)
    if ticks is not None:
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**(BELOW if legend_below else LEGEND))


def guide(axes: Axes, x: Any, y: Any, slope: float, label: str) -> None:
    """A dotted line of this slope through the geometric middle of the points."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    middle_x, middle_y = np.exp(np.mean(np.log(x))), np.exp(np.mean(np.log(y)))
    axes.plot(x, middle_y * (x / middle_x) ** slope, ":", color="0.45", label=label)

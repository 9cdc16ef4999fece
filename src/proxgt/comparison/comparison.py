"""Runs of several methods as tables, curves over seeds, and figures: see `compare`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proxgt import checks, plots
from proxgt.comparison.averages import GEOMETRIC, Averages, averages, interval
from proxgt.history import History
from proxgt.result import Result


class Curve(NamedTuple):
    """A column of a method's runs on a grid of costs; NaN where a run has ended."""

    grid: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Reached(NamedTuple):
    """What a method took to reach a target: medians over the seeds that did, else NaN."""

    method: str
    reached: int  # seeds that did
    seeds: int
    steps: float
    samples: float
    gradients: float
    rounds: float
    seconds: float
    final: float  # geometric mean of the last records


@dataclass(frozen=True)
class Comparison:
    """Runs of several methods with several seeds.

    Attributes:
        results: the runs of every method, in the order of `seeds`.
        seeds: the seeds.
    """

    results: dict[str, list[Result]]
    seeds: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.results)}; seeds={self.seeds})"

    def __str__(self) -> str:
        """How the runs ended, over the seeds, in Markdown."""
        return str(self.averages())

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the tidy table."""
        return ("method", "seed", *History.columns)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The tidy table: one row a record."""
        return [
            (label, seed, *record)
            for label, runs in self.results.items()
            for seed, result in zip(self.seeds, runs, strict=True)
            for record in result.history
        ]

    def to_pandas(self) -> Any:
        """The tidy table as a `pandas.DataFrame` (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=pd.Index(self.columns))

    def averages(self, column: str = "metric", confidence: float = 0.95) -> Averages:
        """The tidy table of means: `column` at every record of a method, over its seeds.

        With its cost and Student's confidence interval; as `to_pandas()`, or printed.
        """
        return averages(self.results, column, confidence)

    def curves(
        self, x: str = "samples", y: str = "metric", points: int = 100, confidence: float = 0.95
    ) -> dict[str, Curve]:
        """Mean and confidence interval of `y` over the seeds, on one grid of `x` for all methods.

        Student's t over seeds; in logs for the metric and stationarity, which makes their
        mean geometric. Between records curves are interpolated.
        """
        checks.one_of("x", x, plots.XS)
        checks.one_of("y", y, plots.YS)
        checks.positive_int("points", points, least=2)
        last = max(r.history[x].max() for runs in self.results.values() for r in runs)
        grid = np.linspace(0, last, points)
        return {label: _curve(runs, x, y, grid, confidence) for label, runs in self.results.items()}

    def summary(self, target: float, column: str = "metric") -> Summary:
        """What each method took to bring `column` to `target`, at the first record there."""
        checks.one_of("column", column, plots.YS)
        checks.positive_number("target", target)
        return Summary(
            target,
            column,
            tuple(_reached(label, runs, target, column) for label, runs in self.results.items()),
        )

    def plot(
        self,
        path: str | Path,
        x: str | Sequence[str] = ("samples", "rounds"),
        y: str = "metric",
        confidence: float = 0.95,
    ) -> Path:
        """Draw the mean curves with their confidence bands, a panel for each `x`."""
        xs = [x] if isinstance(x, str) else list(x)
        checks.one_of("y", y, ("metric", "stationarity", "consensus"))
        with plots.drawing(path, (max(5.0 * len(xs), 6.5), 4.8)) as figure:
            panels = figure.subplots(1, len(xs), squeeze=False, sharey=True)[0]
            for axes, one in zip(panels, xs, strict=True):
                curves = self.curves(one, y, points=200, confidence=confidence)
                for (label, curve), style in zip(curves.items(), plots.styles(), strict=False):
                    _draw(axes, label, curve, *style)
                plots.finish(axes, one, plots.LABELS[y] if axes is panels[0] else "")
            plots.legend_below(figure, panels[0])
        return Path(path)

    def save(self, directory: str | Path) -> Path:
        """Write every run into a directory of its own, and the tidy tables.

        These are table.csv, every record of every run, and means.csv, over the seeds.
        """
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        names = {}
        for k, (label, runs) in enumerate(self.results.items()):
            names[label] = f"{k:02d}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', label)}"
            for seed, result in zip(self.seeds, runs, strict=True):
                result.save(directory / names[label] / f"seed-{seed}")
        about = {"methods": names, "seeds": self.seeds}
        (directory / "comparison.json").write_text(json.dumps(about, indent=1) + "\n")
        lines = [",".join(self.columns)]
        lines += [",".join([json.dumps(row[0]), *map(repr, row[1:])]) for row in self.rows]
        (directory / "table.csv").write_text("\n".join(lines) + "\n")
        (directory / "means.csv").write_text(self.averages().to_csv())
        return directory

    @classmethod
    def load(cls, directory: str | Path) -> Comparison:
        """Read what `save` wrote."""
        directory = Path(directory)
        if not (directory / "comparison.json").exists():
            raise ValueError(f"{directory} holds no comparison: it has no comparison.json")
        about = json.loads((directory / "comparison.json").read_text())
        seeds = tuple(about["seeds"])
        results = {
            label: [Result.load(directory / name / f"seed-{seed}") for seed in seeds]
            for label, name in about["methods"].items()
        }
        return cls(results, seeds)


@dataclass(frozen=True)
class Summary:
    """A table of what methods took to reach a target."""

    target: float
    column: str
    rows: tuple[Reached, ...]

    def __getitem__(self, method: str) -> Reached:
        rows = {row.method: row for row in self.rows}
        return rows[checks.one_of("method", method, rows)]

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame` (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=pd.Index(Reached._fields))

    def to_markdown(self) -> str:
        """The table in Markdown."""
        heads = ["method", "reached", "samples", "rounds", "steps", f"final {self.column}"]
        lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
        for row in self.rows:
            counts = [_count(row.samples), _count(row.rounds), _count(row.steps)]
            cells = [row.method, f"{row.reached}/{row.seeds}", *counts, f"{row.final:.1e}"]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.to_markdown()


def _curve(runs: list[Result], x: str, y: str, grid: np.ndarray, confidence: float) -> Curve:
    logs = y in GEOMETRIC
    values = []
    for result in runs:
        costs, column = result.history[x].astype(float), result.history[y]
        if costs[-1] == 0:  # no rounds are ever sent
            costs, column = costs[:1], column[-1:]
        column = np.log(_positive(column)) if logs else column
        on_grid = np.interp(grid, costs, column, right=np.nan)
        values.append(np.exp(on_grid) if logs else on_grid)
    return Curve(grid, *interval(np.array(values), y, confidence))


def _positive(values: np.ndarray) -> np.ndarray:
    """With zeros, which float32 can reach, raised to the least positive value there is."""
    positive = values[values > 0]
    return np.maximum(values, positive.min() if positive.size else np.finfo(float).tiny)


def _reached(label: str, runs: list[Result], target: float, column: str) -> Reached:
    firsts = []
    for result in runs:
        there = np.flatnonzero(result.history[column] <= target)
        if there.size:
            firsts.append(result.history[int(there[0])])

    def median(name: str) -> float:
        return float(np.median([getattr(row, name) for row in firsts])) if firsts else np.nan

    finals = np.array([result.history[column][-1] for result in runs])
    if any(result.status == "diverged" for result in runs):
        final = float("inf")
    else:
        final = float(np.exp(np.mean(np.log(_positive(finals)))))
    return Reached(
        label,
        len(firsts),
        len(runs),
        median("step"),
        median("samples"),
        median("gradients"),
        median("rounds"),
        median("seconds"),
        final,
    )


def _draw(axes: Any, label: str, curve: Curve, colour: str, dash: str, marker: str) -> None:
    if np.isfinite(curve.mean).sum() < 2:  # sends nothing, or diverged at once
        axes.plot([], [], color=colour, linestyle=dash, marker=marker, label=label)
        return
    shown = np.where(curve.mean > 0, curve.mean, np.nan)
    axes.plot(
        curve.grid,
        shown,
        color=colour,
        linestyle=dash,
        label=label,
        linewidth=1.8,
        marker=marker,
        markersize=4.5,
        markevery=max(int(np.isfinite(shown).sum()) // 8, 1),
    )
    low = np.where(curve.low > 0, curve.low, np.nan)
    axes.fill_between(curve.grid, low, curve.high, color=colour, alpha=0.15, linewidth=0)


def _count(number: float) -> str:
    return "-" if np.isnan(number) else f"{number:,.0f}"

"""Means over seeds with Student's confidence interval: the tidy table of a comparison."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from proxgt import checks, plots
from proxgt.result import Result

# Averaged in logs: they fall by orders of magnitude, and runs differ by factors.
GEOMETRIC = ("metric", "stationarity")


class Average(NamedTuple):
    """A record of a method over its seeds: what it had cost, and the mean there.

    `low` and `high` bound the confidence interval; of one seed they are NaN.
    """

    method: str
    step: int
    samples: float
    gradients: float
    rounds: int
    bits: float
    seeds: int  # runs that got there
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Averages:
    """A column of all runs, averaged over the seeds: one row a method and record.

    Attributes:
        column: what was averaged.
        confidence: of the interval.
        rows: the table.
    """

    column: str
    confidence: float
    rows: tuple[Average, ...]

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame` (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=pd.Index(Average._fields))

    def to_csv(self) -> str:
        """The table as comma-separated text."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([Average._fields, *self.rows])
        return text.getvalue()

    def last(self) -> dict[str, Average]:
        """By method, the last record that most of its runs reached."""
        most: dict[str, int] = {}
        for row in self.rows:
            most[row.method] = max(most.get(row.method, 0), row.seeds)
        return {row.method: row for row in self.rows if row.seeds == most[row.method]}

    def __str__(self) -> str:
        """The last records in Markdown."""
        heads = f"{self.column} | {100 * self.confidence:g} % interval"
        lines = [f"| method | steps | samples | rounds | {heads} |"]
        lines += ["|---|---:|---:|---:|---:|---:|"]
        for row in self.last().values():
            band = "-" if np.isnan(row.low) else f"{row.low:.1e} to {row.high:.1e}"
            counts = f"{row.step:,} | {row.samples:,.0f} | {row.rounds:,}"
            lines.append(f"| {row.method} | {counts} | {row.mean:.2e} | {band} |")
        return "\n".join(lines) + "\n"


def averages(results: Mapping[str, list[Result]], column: str, confidence: float) -> Averages:
    """The column at every record of every method, over its seeds."""
    checks.one_of("column", column, plots.YS)
    if not 0 < checks.finite_number("confidence", confidence) < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}")
    rows = []
    for label, runs in results.items():
        records: dict[int, list[Any]] = {}
        for record in (record for result in runs for record in result.history):
            records.setdefault(record.step, []).append(record)
        for step, some in sorted(records.items()):
            cost = some[0]
            values = np.array([getattr(record, column) for record in some], float)
            counts = (cost.samples, cost.gradients, cost.rounds, cost.bits, len(some))
            rows.append(Average(label, step, *counts, *_number(values, column, confidence)))
    return Averages(column, confidence, tuple(rows))


def _number(values: np.ndarray, column: str, confidence: float) -> tuple[float, float, float]:
    """Mean, low and high of one quantity; the interval of a single seed is unknown."""
    mean, low, high = (float(end[0]) for end in interval(values[:, None], column, confidence))
    return (mean, low, high) if len(values) > 1 else (mean, float("nan"), float("nan"))


def interval(table: np.ndarray, column: str, confidence: float) -> tuple[np.ndarray, ...]:
    """Mean, low and high over seeds, the rows of a table of values of one history column.

    In logs for the metric and stationarity, which makes their mean geometric.
    """
    logs = column in GEOMETRIC
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ends = student(np.log(table) if logs else table, confidence)
        return tuple(np.exp(end) if logs else end for end in ends)


def student(table: np.ndarray, confidence: float) -> tuple[np.ndarray, ...]:
    """Mean, low and high over the rows of a table, by Student's t; of one row, that row."""
    mean, half = table.mean(axis=0), np.zeros(table.shape[1:])
    if len(table) > 1:
        quantile = stats.t.ppf((1 + confidence) / 2, len(table) - 1)
        half = quantile * table.std(axis=0, ddof=1) / np.sqrt(len(table))
    return mean, mean - half, mean + half

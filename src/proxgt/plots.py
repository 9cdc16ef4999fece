"""Curves as image files, drawn without pyplot: no global state of matplotlib is touched.

plot_result(result, "run.png")                        one run: metric, objective, solution
plot_results({"SR-E": a, "SA": b}, "compare.png")     several runs on common axes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from proxgt import checks
from proxgt.params import ParamSpec
from proxgt.result import Result

# Okabe and Ito (2008): told apart under every common colour blindness, and dashes in grey.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
COLOURS = (BLUE, VERMILION, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")
MARKERS = "osD^v<>"

LABELS = {
    "samples": "samples per node",
    "rounds": "communication rounds",
    "gradients": "gradient evaluations per node",
    "bits": "bits sent to each neighbour",
    "step": "steps",
    "seconds": "seconds",
    "metric": "metric of Definition 3",
    "stationarity": "stationarity",
    "consensus": "consensus error",
    "objective": "objective Ψ above the best seen",
}
XS = ("samples", "rounds", "gradients", "bits", "step", "seconds")
YS = ("metric", "stationarity", "consensus", "objective")


def plot_result(result: Result, path: str | Path, title: str | None = None) -> Path:
    """Draw one run: the metric against samples and rounds, the objective, the solution."""
    with drawing(path, (10, 6.8)) as figure:
        axes = figure.subplots(2, 2)
        figure.suptitle(title or _title(result), fontsize=12)
        for panel, x in zip(axes[0], ("samples", "rounds"), strict=True):
            _metric_and_terms(panel, result, x)
        axes[0, 0].legend(frameon=False)
        _objective(axes[1, 0], result)
        _solution(axes[1, 1], result)
    return Path(path)


def plot_results(
    results: Mapping[str, Result],
    path: str | Path,
    x: str | Sequence[str] = ("samples", "rounds"),
    y: str = "metric",
) -> Path:
    """Draw one column of several runs against one or more measures of their cost.

    Args:
        results: the runs by their labels.
        path: an image file: .png, .pdf, .svg, .jpg, ...
        x: one of `XS`, or several: a panel each.
        y: one of `YS`.
    """
    if not results:
        raise ValueError("results must hold at least one result, got none")
    xs = [checks.one_of("x", one, XS) for one in ([x] if isinstance(x, str) else x)]
    y = checks.one_of("y", y, YS)
    # A gap to the optimum is comparable only when all runs are held against the same best.
    best = min(result.history["objective"].min() for result in results.values())
    with drawing(path, (max(5.0 * len(xs), 6.5), 4.6)) as figure:
        panels = figure.subplots(1, len(xs), squeeze=False, sharey=True)[0]
        for axes, one in zip(panels, xs, strict=True):
            for (label, result), style in zip(results.items(), styles(), strict=False):
                colour, dash, marker = style
                values = _gap(result, best) if y == "objective" else result.history[y]
                line = _draw(axes, result, one, values, colour, label, dash)
                every = max(len(result.history) // 10, 1)
                line.set(marker=marker, markersize=4.5, markevery=every)
            finish(axes, one, LABELS[y] if axes is panels[0] else "")
        legend_below(figure, panels[0])
    return Path(path)


def styles() -> Iterator[tuple[str, str, str]]:
    """Colours, dashes and markers of curves on common axes, without end."""
    return zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False)


def legend_below(figure: Figure, axes: Axes) -> None:
    """One legend for all panels: the labels of `axes`, a line each where they are long."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 1 if max(map(len, labels)) > 40 else min(len(labels), 4)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


@contextmanager
def drawing(path: str | Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure that is written to `path` at exit; a file name that cannot be is refused first."""
    figure = Figure(figsize=size, layout="constrained", dpi=150)
    canvas = FigureCanvasAgg(figure)
    suffixes = [f".{kind}" for kind in sorted(canvas.get_supported_filetypes())]
    checks.one_of("suffix of the image file", Path(path).suffix.lower(), suffixes)
    yield figure
    figure.savefig(path)


def _title(result: Result) -> str:
    method = result.run.get("method", "run")
    return f"{method} over {len(result.x)} nodes: {result.status} after {result.steps:,} steps"


def _metric_and_terms(axes: Axes, result: Result, x: str) -> None:
    """The metric and the two terms that it is the sum of."""
    history = result.history
    _draw(axes, result, x, history["metric"], BLUE, "metric").set_linewidth(3)
    _draw(axes, result, x, history["stationarity"], VERMILION, "stationarity", "--")
    scaled = result.smoothness**2 * history["consensus"]
    _draw(axes, result, x, scaled, GREEN, "L² × consensus error", "-.")
    finish(axes, x, LABELS["metric"])


def _objective(axes: Axes, result: Result) -> None:
    best = result.history["objective"].min()
    _draw(axes, result, "samples", _gap(result, best), BLUE)
    finish(axes, "samples", f"objective Ψ above {best:.4g} (best)")


def _gap(result: Result, best: float) -> np.ndarray:
    """The objective above `best`, as far as it is more than rounding."""
    gap = result.history["objective"] - best
    eps = np.finfo(result.x.dtype).eps
    return np.where(gap > 4 * eps * abs(best), gap, np.nan)


def _solution(axes: Axes, result: Result) -> None:
    """Magnitudes of the solution's coefficients, largest first; exact zeros are left out."""
    size = np.abs(ParamSpec.of(result.solution).vector(result.solution))
    kept = np.sort(size[size > 0])[::-1]
    place = np.arange(1, len(kept) + 1)
    if len(kept) <= 200:
        axes.vlines(place, 0, kept, color="0.75", linewidth=1)
        axes.plot(place, kept, "o", color=BLUE, markersize=4)
    else:
        axes.plot(place, kept, color=BLUE)
    axes.set_xlim(0, len(size) + 1)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_ylabel("absolute value")
    axes.set_xlabel("coefficients by size")
    words = f"solution: {len(kept):,} of {len(size):,}\ncoefficients are not zero"
    axes.text(0.97, 0.93, words, transform=axes.transAxes, ha="right", va="top")
    _plain(axes)


def _draw(
    axes: Axes,
    result: Result,
    x: str,
    values: np.ndarray,
    colour: str,
    label: str = "",
    dash: str = "-",
) -> Line2D:
    """A curve for a log axis, which shows no zeros: they become gaps."""
    shown = np.where(values > 0, values, np.nan)
    (line,) = axes.plot(result.history[x], shown)
    line.set(color=colour, linestyle=dash, label=label, linewidth=1.8)
    if len(shown) == 1:
        line.set(marker="o", markersize=5)
    return line


def finish(axes: Axes, x: str, y: str) -> None:
    """Scales, ticks and labels of a panel: log of `y` over a cost `x`."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(numticks=9))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlim(left=0)
    if x != "seconds":
        axes.set_xlim(right=max(axes.get_xlim()[1], 1))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel(LABELS[x])
    axes.set_ylabel(y)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)

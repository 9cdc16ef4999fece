"""Tables for the terminal: of one run or of many, and of methods."""

from __future__ import annotations

import reprlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from proxgt.comparison import Comparison
from proxgt.comparison.averages import interval
from proxgt.config import Job
from proxgt.methods import registry
from proxgt.params import ParamSpec
from proxgt.result import Result

if TYPE_CHECKING:
    from proxgt.reproduce import Verdict


def summary(job: Job, result: Result, given: Mapping[str, Any], wall: float) -> Table:
    """One run: what was solved, by what, at what cost, and how well.

    `given` is the config as its user wrote it, `wall` the seconds of everything.
    """
    network, last = job.network, result.history[-1]
    # A name may have been left to be told by the other keys.
    said = {
        table: described({"name": job.config[table]["name"], **given[table]})
        for table in ("problem", "regularizer", "network", "method")
        if table in given
    }
    nonzero, size = _density(result)
    holds = "samples in shards"
    if "shards" not in job.config["problem"]:  # to count those would load them all
        held = job.problem.samples_per_node
        holds = f"{_count(held)} samples a node" if np.isfinite(held) else "samples on demand"
    edges = "directed edges" if network.directed else "edges"
    gap = f"{network.edges:,} {edges}, spectral gap {network.spectral_gap:.4g}"
    estimated = " (estimated at x0)" if result.smoothness_is_estimate else ""
    rows = {
        "problem": f"{said['problem']}; p = {size:,}, {holds}",
        "regularizer": said.get("regularizer", repr(job.problem.regularizer)),
        "network": f"{said['network']}; {network.nodes:,} nodes, {gap}",
        "method": said["method"],
        "status": _status(result),
        "cost per node": f"{_count(last.samples)} samples, {_count(last.gradients)} gradients, "
        f"{last.rounds:,} rounds",
        "objective": f"{last.objective:.8g}",
        "stationarity": f"{last.stationarity:.3g}",
        "consensus error": f"{last.consensus:.3g}",
        "metric": f"{last.metric:.3g} (stationarity + L^2 consensus; at first "
        f"{result.history[0].metric:.3g})",
        "smoothness L": f"{result.smoothness:.4g}{estimated}",
        "solution": f"{nonzero:,} of {size:,} coefficients nonzero",
        "time": f"{_speed(result)}; {wall:.1f} s in all",
    }
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows.items():
        table.add_row(name, text, end_section=name == "method")
    return table


def title(job: Job, result: Result) -> str:
    """One run in a line, for its plot."""
    name = {table: job.config[table]["name"] for table in ("problem", "network", "method")}
    problem = job.config["problem"].get("dataset", name["problem"])
    network = f"{name['network']} network of {len(result.x)} nodes"
    return f"{name['method']} on {problem}, {network}: {_status(result)}"


def comparison(directories: Mapping[str, Path], results: Mapping[str, Result]) -> Table:
    """Saved runs by label, a row each."""
    table = Table(box=box.SIMPLE, padding=0)
    table.add_column("run", overflow="fold")
    for name in ("method", "status"):
        table.add_column(name, no_wrap=True)
    for name in ("steps", "samples", "rounds", "objective", "metric"):
        table.add_column(name, justify="right", no_wrap=True)
    for label, result in results.items():
        last = result.history[-1]
        table.add_row(
            label,
            _method_name(directories[label], result),
            result.status,
            f"{last.step:,}",
            f"{last.samples:,.0f}",
            f"{last.rounds:,}",
            f"{last.objective:.6g}",
            f"{last.metric:.2e}",
        )
    return table


def contest(runs: Comparison, tuned: Mapping[str, float]) -> Table:
    """The ends of all runs, a method a row; `tuned` are the step sizes that were found."""
    table = Table(box=box.SIMPLE, padding=0)
    table.add_column("method", overflow="fold")
    if tuned:
        table.add_column("step size", justify="right", no_wrap=True)
    for name in ("steps", "samples", "rounds", "final metric", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for label, results in runs.results.items():
        last = results[0].history[-1]
        step_size = [f"{tuned[label]:.3g}"] if tuned else []
        counts = (f"{last.step:,}", f"{last.samples:,.0f}", f"{last.rounds:,}")
        table.add_row(label, *step_size, *counts, *_interval(results))
    return table


def targets(runs: Comparison, target: float) -> Table:
    """What each method took to reach a metric: medians over the seeds that did."""
    table = Table(box=box.SIMPLE, padding=0)
    table.add_column(f"to a metric of {target:g}", overflow="fold")
    for name in ("reached", "steps", "samples", "rounds", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in runs.summary(target).rows:
        numbers = (row.steps, row.samples, row.rounds)
        counts = ["-" if np.isnan(number) else f"{number:,.0f}" for number in numbers]
        seconds = "-" if np.isnan(row.seconds) else f"{row.seconds:.2f}"
        table.add_row(row.method, f"{row.reached}/{row.seeds}", *counts, seconds)
    return table


def _interval(results: list[Result]) -> tuple[str, str]:
    """The geometric mean of the last metrics, and Student's interval for it over seeds."""
    diverged = sum(result.status == "diverged" for result in results)
    if diverged:
        return "diverged", f"{diverged} of {len(results)} runs"
    finals = np.array([[result.history["metric"][-1]] for result in results])
    if len(finals) < 2 or (finals <= 0).any():
        return f"{finals.mean():.2e}", "-"
    mean, low, high = (float(end[0]) for end in interval(finals, "metric", 0.95))
    return f"{mean:.2e}", f"{low:.1e} to {high:.1e}"


def methods() -> Group:
    """The methods of the registry, family by family, names and facts in two columns."""
    width = max(map(len, registry)) + 1
    parts: list[Any] = []
    for family, title in registry.families.items():
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="bold", no_wrap=True, width=width)
        table.add_column(overflow="fold")
        for row in registry.rows(family):
            about = f"h: {row.h}; {row.risk}; {row.network}"
            costs = f"{row.rounds} rounds, {row.samples} samples, {row.evaluations} evaluations"
            table.add_row(row.method, f"{registry[row.method].source}\n{about}\n{costs}")
        parts += [Text(title, style="bold underline"), table, ""]
    return Group(*parts[:-1])


def verdict(one: Verdict) -> Group:
    """What was found of a claim of the paper."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("what", "found (95 % interval over seeds)", "claimed", ""):
        table.add_column(name, overflow="fold")
    for check in one.finding.checks:
        mark = "yes" if check.passed else "NO"
        table.add_row(check.name, str(check.found), check.wanted, mark)
    head = f"{one.claim}: {one.finding.verdict} ({one.seconds:.0f} s)"
    return Group(Text(head, style="bold"), Text(one.says), table)


def described(part: Any) -> str:
    """A table of a config as the Python call it stands for."""
    if not isinstance(part, dict):
        return reprlib.repr(part) if isinstance(part, list) else repr(part)
    arguments = [f"{key}={described(value)}" for key, value in part.items() if key != "name"]
    return f"{part.get('name', '')}({', '.join(arguments)})"


def _status(result: Result) -> str:
    text = f"{result.status} after {result.steps:,} steps"
    return f"{text}; try a smaller step_size" if result.status == "diverged" else text


def _count(number: float) -> str:
    """A mean over nodes: a decimal where it is no whole number."""
    return f"{number:,.1f}".removesuffix(".0")


def _density(result: Result) -> tuple[int, int]:
    solution = ParamSpec.of(result.solution).vector(result.solution)
    return int(np.count_nonzero(solution)), solution.size


def _speed(result: Result) -> str:
    seconds = result.history[-1].seconds
    rate = f" ({result.steps / seconds:,.0f} a second)" if seconds > 0 else ""
    return f"{seconds:.2f} s of steps{rate}"


def _method_name(directory: Path, result: Result) -> str:
    """As the config has it; the result itself only knows the classes."""
    config = directory / "config.toml"
    if config.exists():
        return str(tomllib.loads(config.read_text())["method"]["name"])
    return result.run.get("method", "")

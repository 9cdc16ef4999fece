"""`proxgt compare`: many methods under one budget."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from proxgt import config
from proxgt.commands import tables
from proxgt.commands.shared import (
    Flags,
    UsageError,
    console,
    naming,
    new_directory,
    read,
    say_saved,
    write_config,
)
from proxgt.comparison import Comparison
from proxgt.comparison.compare import compare
from proxgt.comparison.contest import Contest
from proxgt.comparison.tuning import tune
from proxgt.config import entrants
from proxgt.config.entrants import Entrant
from proxgt.config.errors import blame, one_line
from proxgt.config.parts import Terms


def run_compare(args: argparse.Namespace) -> int:
    """`proxgt compare`."""
    out = new_directory(args.out, f"{args.configs[0].stem}-compare")
    setting, terms, options, found = _comparison(args)
    tuned = _tuned(setting, terms, options, found)
    methods = {one.label: tuned.get(one.label, one.method) for one in found}
    try:
        runs = compare(
            setting.problem,
            setting.network,
            methods,
            terms.budget,
            terms.seeds,
            terms.records,
            **options,
        )
    except (ValueError, TypeError) as error:
        raise UsageError(f"{args.configs[0]}: {one_line(error)}") from error
    step_sizes = {label: float(method.step_size) for label, method in tuned.items()}
    _save(setting, runs, found, step_sizes, out)
    console().print(tables.contest(runs, step_sizes))
    if terms.target is not None:
        console().print(tables.targets(runs, terms.target))
    say_saved(out)
    every = [result.status for results in runs.results.values() for result in results]
    return 130 if "interrupted" in every else 0


def _comparison(
    args: argparse.Namespace,
) -> tuple[config.Setting, Terms, dict[str, Any], list[Entrant]]:
    """All configs as one: what they share, and the methods of each."""
    flags: Flags = {}
    first: Any = None
    found: list[tuple[Path, list[Entrant]]] = []
    for path in args.configs:
        with naming(str(path), flags):
            given = read(path, args, flags)
            if first is not None:  # said once, of all
                given.setdefault("compare", first[0].config["compare"])
            with config.importable(given["directory"]):
                setting = config.build_setting(given)
                terms, options = entrants.terms_of(setting)
                mine = entrants.entrants(setting, terms)
                with blame("compare", ("budget",)):
                    contest = Contest(setting.problem, setting.network, terms.budget, options)
                entrants.check_entrants(mine, contest)
        if first is not None:
            names = (str(args.configs[0]), str(path))
            differs = entrants.differing(first[0].config, setting.config, names)
            if differs:
                raise UsageError(f"configs must have one problem and network, but {differs}")
        first = first or (setting, terms, options)
        found.append((path, mine))
    setting, terms, options = first
    with naming(str(args.configs[0]), flags):
        return setting, terms, options, entrants.told_apart(found)


def _tuned(
    setting: config.Setting, terms: Terms, options: dict[str, Any], found: list[Entrant]
) -> dict[str, Any]:
    """The methods with the best of the step sizes, where these are given."""
    if terms.step_sizes is None:
        return {}
    grid = {k: v for k, v in options.items() if k != "metric_at"}
    best = {}
    for one in found:
        with naming(one.label, {}), blame(one.path):
            best[one.label] = tune(
                setting.problem,
                setting.network,
                one.method,
                terms.step_sizes,
                budget=terms.budget,
                extend=0,
                **grid,
            ).method
    return best


def _save(
    setting: config.Setting,
    runs: Comparison,
    found: list[Entrant],
    step_sizes: dict[str, float],
    out: Path,
) -> None:
    shared = {k: v for k, v in setting.config.items() if k not in ("method", "methods")}
    terms = shared["compare"]
    if step_sizes:  # as found, so that the config gives these runs again
        terms = {k: v for k, v in terms.items() if k != "step_sizes"}
    methods = [
        {"label": one.label, **one.table}
        | ({"step_size": step_sizes[one.label]} if step_sizes else {})
        for one in found
    ]
    runs.save(out)
    write_config({**shared, "compare": terms, "methods": methods}, out)
    runs.plot(out / "plot.png")

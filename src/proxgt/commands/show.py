"""`proxgt list` and `proxgt report`: what there is, and what was saved."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from rich.table import Table

import proxgt as pg
from proxgt import plots
from proxgt.commands import tables
from proxgt.commands.shared import UsageError, console
from proxgt.config.catalog import KINDS, Entry, catalog
from proxgt.config.errors import nearest, one_line
from proxgt.methods import registry

_COSTS = """Costs are per node and step: b is
batch, q period, B refresh, m the samples a node holds, K the consensus rounds."""


def run_list(args: argparse.Namespace) -> int:
    """`proxgt list`."""
    if args.name is not None:
        return _show(args.kind, args.name)
    if args.kind == "methods":
        console().print(tables.methods())
        console().print("proxgt list methods NAME shows the arguments. " + _COSTS)
        return 0
    for kind in [args.kind] if args.kind else KINDS:
        console().print(_entries(kind, catalog(kind)))
        console().print()
    return 0


def _show(kind: str, name: str) -> int:
    known = catalog(kind)
    if name not in known:
        raise UsageError(f"unknown name {name!r} in {kind}{nearest(name, known)}")
    if name in registry:
        console().print(registry.describe(name))
    else:
        console().print(_entries(kind, {name: known[name]}))
    return 0


def _entries(kind: str, entries: Mapping[str, Entry]) -> Table:
    table = Table(title=kind, title_justify="left", title_style="bold", box=None)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, entry in entries.items():
        table.add_row(name, "\n".join(filter(None, [entry.arguments, entry.about])))
    return table


def run_report(args: argparse.Namespace) -> int:
    """`proxgt report`."""
    directories = {str(path): path for path in args.directories}
    try:
        results = {label: pg.Result.load(path) for label, path in directories.items()}
        picture = plots.plot_results(
            results, args.plot, x=args.x or ("samples", "rounds"), y=args.y
        )
    except ValueError as error:
        raise UsageError(one_line(error)) from error
    console().print(tables.comparison(directories, results))
    console().print(f"Curves in {picture}", soft_wrap=True)
    return 0

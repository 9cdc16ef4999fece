"""`proxgt shard`: the data of every node in a file of its own."""

from __future__ import annotations

import argparse
import os

import proxgt as pg
from proxgt.commands.shared import UsageError, console, new_directory, setting_of
from proxgt.config.errors import one_line
from proxgt.problems.shards import write_shards


def run_shard(args: argparse.Namespace) -> int:
    """`proxgt shard`."""
    problem = setting_of(args).problem
    if not isinstance(problem, pg.EmpiricalRisk):
        raise UsageError(f"{args.config}: problem: a population risk has no data to shard")
    out = new_directory(args.out, "")
    try:
        files = write_shards([problem.data.node(i) for i in range(problem.nodes)], out)
    except ValueError as error:
        raise UsageError(f"{args.config}: problem: {one_line(error)}") from error
    size = sum(file.stat().st_size for file in files)
    console().print(f"{len(files)} shards, {size:,} bytes, in {out}{os.sep}", soft_wrap=True)
    console().print(f'In the config, in place of the data: shards = "{out}"', soft_wrap=True)
    return 0

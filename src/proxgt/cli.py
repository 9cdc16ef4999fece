"""The command line: its flags; what they do is in `commands`, a command a module.

    proxgt run                          a small real problem, to see it work
    proxgt run ring.toml --set run.steps=500
    mpiexec -n 4 proxgt run ring.toml --engine mpi
    proxgt compare ring.toml rival.toml --set compare.budget.samples=10_000
    proxgt plan ring.toml --epsilon 0.1
    proxgt shard ring.toml --out shards
    proxgt list methods
    proxgt report ring-run ring-run-2
    proxgt reproduce all --quick

Exit codes: 0 done; 1 a bug; 2 something wrong in what was asked; 3 the run diverged; 4 a claim
of the paper was not reproduced; 130 interrupted, with everything up to then saved.

argparse does: there are few flags, and what could be wrong in a config has names that exist
only at run time, which a library that makes flags of type hints would not check either.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import proxgt as pg
from proxgt import plots
from proxgt.commands.compare import run_compare
from proxgt.commands.plan import run_plan
from proxgt.commands.reproduce import run_reproduce
from proxgt.commands.run import over_mpi, rank, run_solve
from proxgt.commands.shard import run_shard
from proxgt.commands.shared import UsageError
from proxgt.commands.show import run_list, run_report
from proxgt.config.catalog import KINDS
from proxgt.config.errors import nearest, one_line
from proxgt.engines.messages import Agreed, Launched, withdraw
from proxgt.theory import plans

LEVELS = ("debug", "info", "warning", "error")

log = logging.getLogger("proxgt")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        args = _parser().parse_args(argv)
    except UsageError as error:
        return _fail(one_line(error), 2)
    if args.command is None:
        _parser().print_help()
        return 0
    ranks = Launched.here().ranks
    if ranks > 1 and args.command is not run_solve:
        alone = f"proxgt {args.asked} is of one process, but mpiexec started {ranks}"
        return _fail(f"{alone}: run it without mpiexec", 2)
    logging.basicConfig(format="proxgt: %(message)s")
    log.setLevel(args.log_level.upper())
    try:
        return args.command(args)
    except KeyboardInterrupt:
        return _fail("interrupted before the first record", 130)
    except BrokenPipeError:  # of `| head`, which has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (UsageError, Agreed, OSError) as error:
        return _fail(one_line(error), 2)
    except Exception as error:
        hint = "" if log.isEnabledFor(logging.DEBUG) else " (--log-level debug says where)"
        return _fail(f"{type(error).__name__}: {one_line(error)}{hint}", 1)


def _fail(message: str, code: int) -> int:
    log.debug("where it happened:", exc_info=True)
    if not over_mpi() and Launched.here().ranks > 1:
        withdraw(f"proxgt: {message}", code)
    elif rank() == 0:
        print(f"proxgt: {message}", file=sys.stderr)
    return code


# The flags ---------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others here."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="proxgt", description="Decentralized stochastic proximal gradient.")
    parser.add_argument("--version", action="version", version=f"proxgt {pg.__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="asked")
    shared = _Parser(add_help=False)
    shared.add_argument("--log-level", choices=LEVELS, default="warning")
    changed = _Parser(add_help=False, parents=[shared])
    changed.add_argument(
        "--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="change the config"
    )
    _add_runs(commands, changed)
    _add_plan(commands, changed)
    _add_shard(commands, changed)
    _add_reproduce(commands, shared)
    _add_lookups(commands, shared)
    return parser


def _add_runs(commands: Any, changed: _Parser) -> None:
    run = commands.add_parser("run", parents=[changed], help="solve a problem", description=_RUN)
    run.add_argument("config", nargs="?", type=Path, metavar="CONFIG", help="a TOML file")
    run.add_argument("--out", type=Path, metavar="DIR", help="where to write, a new directory")
    run.add_argument("--resume", action="store_true", help="continue the run in DIR, if any")
    run.add_argument("--engine", help="what computes: local, or mpi under mpiexec")
    run.set_defaults(command=run_solve)

    many = commands.add_parser(
        "compare", parents=[changed], help="methods under one budget", description=_COMPARE
    )
    many.add_argument("configs", nargs="+", type=Path, metavar="CONFIG")
    many.add_argument("--out", type=Path, metavar="DIR", help="where to write, a new directory")
    many.set_defaults(command=run_compare)


def _add_plan(commands: Any, changed: _Parser) -> None:
    plan = commands.add_parser("plan", parents=[changed], help="find a method for an epsilon")
    plan.add_argument("config", type=Path, metavar="CONFIG", help="with problem and network")
    plan.add_argument("--epsilon", type=float, required=True, metavar="E", help="of Definition 3")
    plan.add_argument("--method", choices=("auto", *plans.METHODS), default="auto")
    plan.add_argument("--minimise", choices=plans.MINIMISE, default="samples")
    plan.add_argument("--sample-cost", type=float, metavar="C", help="for --minimise cost")
    plan.add_argument("--round-cost", type=float, metavar="C", help="for --minimise cost")
    plan.add_argument(
        "--no-guarantee", dest="guarantee", action="store_false", help="constants as in practice"
    )
    plan.add_argument("--consensus", choices=("auto", *plans.KINDS), default="auto")
    plan.add_argument("--no-timing", dest="timing", action="store_false", help="skip timing")
    plan.set_defaults(command=run_plan)


def _add_shard(commands: Any, changed: _Parser) -> None:
    shard = commands.add_parser("shard", parents=[changed], help="write data, a file a node")
    shard.add_argument("config", type=Path, metavar="CONFIG", help="with problem and network")
    shard.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new directory")
    shard.set_defaults(command=run_shard)


def _add_reproduce(commands: Any, shared: _Parser) -> None:
    claim = commands.add_parser(
        "reproduce", parents=[shared], help="measure a claim of the paper", description=_REPRODUCE
    )
    claim.add_argument("claim", metavar="CLAIM", help="one of them, or all")
    claim.add_argument("--quick", action="store_true", help="five minutes in place of twenty")
    claim.add_argument("--out", type=Path, metavar="DIR", help="where to write, a new directory")
    claim.set_defaults(command=run_reproduce)


def _add_lookups(commands: Any, shared: _Parser) -> None:
    what = commands.add_parser("list", parents=[shared], help="what a config can name")
    what.add_argument("kind", nargs="?", type=_kind, metavar="KIND", help=", ".join(KINDS))
    what.add_argument("name", nargs="?", metavar="NAME", help="one of them, such as GT_SARAH")
    what.set_defaults(command=run_list)

    saved = commands.add_parser("report", parents=[shared], help="compare saved runs")
    saved.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    saved.add_argument("--plot", type=Path, default=Path("proxgt-report.png"), metavar="FILE")
    saved.add_argument("--x", action="append", choices=plots.XS, help="may be repeated")
    saved.add_argument("--y", choices=plots.YS, default="metric")
    saved.set_defaults(command=run_report)


_RUN = """Solve what CONFIG describes: one table each for problem, regularizer, network, method
and run. Without CONFIG, a sparse non-convex problem on data that comes with scikit-learn."""

_COMPARE = """Run the methods of all CONFIGs, which have one problem and network, or those of the
[[methods]] of one, under the budget of its [compare] table."""
_REPRODUCE = """Measure a claim of the paper: tracking, scaling, speedup, topology, communication,
smooth, heterogeneity, or all. Writes a figure and a table for each, and a report with the verdicts.
The exit code is 4 where a claim was not reproduced."""


def _kind(text: str) -> str:
    if text not in KINDS:
        raise argparse.ArgumentTypeError(f"unknown kind {text!r}{nearest(text, KINDS)}")
    return text


if __name__ == "__main__":
    sys.exit(main())

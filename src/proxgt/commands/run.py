"""`proxgt run`: one run, on one machine or over MPI."""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import proxgt as pg
from proxgt import config, plots
from proxgt.commands import tables
from proxgt.commands.shared import (
    Flags,
    UsageError,
    console,
    flag_of,
    naming,
    numbered,
    read,
    say_saved,
    write_config,
)
from proxgt.config.errors import ConfigError, one_line
from proxgt.engines.messages import Launched, world
from proxgt.engines.mpi import MpiEngine

DEFAULT = Path(__file__).parents[1] / "default.toml"
EXIT_CODES = {"converged": 0, "step limit": 0, "diverged": 3, "interrupted": 130}

log = logging.getLogger("proxgt")


def run_solve(args: argparse.Namespace) -> int:
    """`proxgt run`."""
    begin = time.perf_counter()
    flags: Flags = {}
    # What mpiexec started joins MPI before all else: a rank that fails must have the others.
    ranks = Launched.here().ranks
    if args.engine == "mpi" or ranks > 1:
        _start_mpi("--engine: run.engine" if args.engine == "mpi" else f"{ranks} ranks")
    with _all_ranks("mpi" if over_mpi() else "local"):
        out, fresh = _output(args)
        path = _config_path(args, out)
        source = path.name if path == DEFAULT else str(path)
        with naming(source, flags):
            given = read(path, args, flags)
            if ranks > 1 and config.engine_of(given) == "local":
                message = f"is 'local', but mpiexec started {ranks} processes: add --engine mpi"
                raise ConfigError("run.engine", message)
    if path == DEFAULT:
        del given["directory"]  # nothing in it is looked for there
    engine = config.engine_of(given)
    if engine == "mpi":
        _start_mpi(f"{flag_of('run.engine', flags) or source}: run.engine")
        out, fresh = world().gathered((out, fresh), "output directory")[0]
    with config.importable(given.get("directory", ".")):
        with _all_ranks(engine), naming(source, flags):
            job = config.build(given)
        try:
            result = _solve(job, out, args.resume)
        except ConfigError as error:
            if fresh and rank() == 0:
                _remove_if_empty(out)
            raise UsageError(f"{flag_of(error.path, flags) or source}: {error}") from error
    if rank() == 0:
        _save(job, result, out)
        console().print(tables.summary(job, result, given, time.perf_counter() - begin))
        say_saved(out)
    return EXIT_CODES[result.status]


def _start_mpi(where: str) -> None:
    try:
        world()
    except ValueError as error:
        raise UsageError(f"{where}: {one_line(error)}") from error


@contextmanager
def _all_ranks(engine: Any) -> Iterator[None]:
    """Over MPI, what fails at some rank fails at all, so that none waits for another."""
    if engine != "mpi":
        yield
        return
    with MpiEngine.supervised():
        try:
            yield
        except OSError as error:
            raise UsageError(one_line(error)) from error
        world().gathered(None, "command line")


def _solve(job: config.Job, out: Path, resume: bool) -> pg.Result:
    if resume and not job.checkpoint:
        raise ConfigError("run.checkpoint", "must be true for --resume")

    unsaved = [job.config]

    def save_config(_: pg.Snapshot) -> None:
        # Only now is the run known to be sound and, when resumed, to be the one in `out`.
        if unsaved:
            write_config(unsaved.pop(), out)

    out.mkdir(parents=True, exist_ok=True)
    if rank() == 0:
        log.info("writing to %s", out)
    try:
        return pg.solve(
            job.problem,
            job.network,
            job.method,
            **job.settings,
            checkpoint=out / "checkpoint" if job.checkpoint else None,
            resume=resume,
            progress=job.progress,
            callbacks=[save_config],
        )
    except (ValueError, TypeError) as error:
        raise ConfigError("", one_line(error)) from error


def _save(job: config.Job, result: pg.Result, out: Path) -> None:
    write_config(job.config, out)
    result.save(out)
    plots.plot_result(result, out / "plot.png", title=tables.title(job, result))


def _output(args: argparse.Namespace) -> tuple[Path, bool]:
    """The directory of the run, and whether it is new.

    A directory that was asked for is never written over. One that was not is numbered:
    proxgt-run, proxgt-run-2, ...; --resume continues the last of them.
    """
    if args.out is not None:
        return _asked_for(args.out, args.resume)
    stem = "proxgt" if args.config is None else args.config.stem
    last, free = numbered(f"{stem}-run")
    return (last, False) if args.resume and last is not None else (free, True)


def _asked_for(out: Path, resume: bool) -> tuple[Path, bool]:
    if not os.path.lexists(out):
        return out, True
    if not out.is_dir():
        raise UsageError(f"--out {out}: not a directory")
    ours = any((out / name).exists() for name in ("result.json", "checkpoint"))
    if ours and not resume:
        raise UsageError(
            f"--out {out}: already holds a run; --resume continues it, another --out keeps it"
        )
    if not ours and any(out.iterdir()):
        raise UsageError(f"--out {out}: not empty and not a run; choose another directory")
    return out, False


def _config_path(args: argparse.Namespace, out: Path) -> Path:
    """CONFIG; without it, that of the run being resumed, or the built-in one."""
    if args.config is not None:
        return args.config
    saved = out / "config.toml"
    return saved if args.resume and saved.exists() else DEFAULT


def _remove_if_empty(out: Path) -> None:
    for directory in (out / "checkpoint", out):
        with suppress(OSError):
            directory.rmdir()


# over MPI ---------------------------------------------------------------------------------


def rank() -> int:
    """Of this process, where MPI has been asked for; only rank 0 prints and writes."""
    return world().rank if over_mpi() else 0


def over_mpi() -> bool:
    """Whether this process has joined MPI."""
    return world.cache_info().currsize > 0

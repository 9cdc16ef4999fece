"""`solve`: what is asked, checked, run on an engine, and returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from proxgt.checkpoint import Checkpoint, Saved
from proxgt.methods.base import Method, unwrapped
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.base import first_line
from proxgt.progress import progress_bar
from proxgt.result import Result
from proxgt.run import Run, Snapshot
from proxgt.settings import ENGINES, Settings


def solve(
    problem: Problem,
    network: Network,
    method: Method | Any,
    steps: int | None = None,
    x0: Any = None,
    seed: int = 0,
    record_every: int = 50,
    tolerance: float | None = None,
    metric_step: float | None = None,
    metric_at: str = "mean",
    dtype: str = "float32",
    engine: str = "local",
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    callbacks: Sequence[Callable[[Snapshot], Any]] = (),
) -> Result:
    """Run `method` on `problem` over `network`.

    Args:
        problem: the risk and regularizer.
        network: the graph and its weights, with as many nodes as the problem.
        method: the method, or a `Plan`, which has one.
        steps: steps to make at most; by default those of the plan, else 1000.
        x0: params all nodes start from; by default the problem's own x0.
        seed: of every random draw of the run.
        record_every: steps between records. Steps 0 and the last are recorded too.
        tolerance: the epsilon of Definition 2: stop at metric <= tolerance**2. Sample sizes
            that are "auto" depend on it.
        metric_step: step of the gradient mapping, eq. (7); by default the method's (first).
        metric_at: "mean", or "nodes" for Definition 3's own average at n times the cost.
        dtype: "float32" or "float64".
        engine: "local"; or "mpi" under mpiexec, where nodes are spread over ranks that all
            call `solve` alike. Rank 0 alone shows progress, calls back and has all rows in
            `result.x`; elsewhere `x` holds the rows of that rank's nodes.
        checkpoint: a directory, written at every record.
        resume: continue the checkpoint that is there, if there is one.
        progress: show a progress bar.
        callbacks: each is called with a `Snapshot` at every record; a true answer ends the
            run with status "interrupted". Over MPI its `x` has the rows of rank 0's nodes, since
            nothing but sums over nodes is sent at a record.
    """
    method, steps = unwrapped(method, steps)
    callbacks = _functions(callbacks)
    settings = Settings(steps, seed, record_every, tolerance, metric_step, metric_at, dtype, engine)
    asked = {"checkpoint": checkpoint, "resume": resume, "callbacks": len(callbacks)}
    with jax.enable_x64(dtype == "float64"), ENGINES[engine].supervised(), _within_memory():
        run = Run(problem, network, method, x0, settings, asked)
        store = None if checkpoint is None else Checkpoint(checkpoint, run.identity, run.engine)
        saved = _saved(store, resume)
        run.engine.set_up()
        run.begin(saved)
        with progress_bar(progress and run.engine.rank == 0, steps) as report:
            run.loop(store, report, callbacks)
        return run.result()


@contextmanager
def _within_memory() -> Iterator[None]:
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise ValueError(
            "batch, refresh and params must fit into memory, but the run found it exhausted "
            f"({first_line(error)}): give smaller ones"
        ) from error


def _saved(store: Checkpoint | None, resume: bool) -> Saved | None:
    if store is None:
        if resume:
            raise ValueError("resume=True needs checkpoint=DIRECTORY to continue from")
        return None
    if not store.exists:
        return None
    if not resume:
        raise ValueError(
            f"checkpoint directory {store.directory} already holds a run: pass resume=True to "
            "continue it, or choose another directory"
        )
    return store.load()


def _functions(callbacks: Any) -> tuple[Callable[[Snapshot], Any], ...]:
    if isinstance(callbacks, Sequence) and all(map(callable, callbacks)):
        return tuple(callbacks)
    raise TypeError(f"callbacks must be a sequence of functions, got {callbacks!r}")

"""One run: chunks of steps; between two of them, with the clock stopped, it measures, reports,
saves, and decides whether to go on."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks
from proxgt._version import __version__
from proxgt.checkpoint import Checkpoint, Saved, arrays_of, filled
from proxgt.engines.base import Engine, Span
from proxgt.engines.faults import links_of
from proxgt.fingerprint import difference, fingerprint
from proxgt.history import History, Row
from proxgt.interrupts import Interrupts
from proxgt.methods.base import Method, check_schedule, prepared, step_size_at
from proxgt.methods.requirements import require_fit
from proxgt.metrics import Measurement, Meter
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.result import Result
from proxgt.settings import ENGINES, Settings


class Snapshot(NamedTuple):
    """What a callback is given at every record."""

    row: Row
    x: np.ndarray  # (nodes held by this process, p)
    mean: np.ndarray  # (p,)
    solution: Any  # params


class Run:
    """One run: everything placed on the engine, and the state as it goes."""

    def __init__(
        self,
        problem: Problem,
        network: Network,
        method: Method,
        x0: Any,
        settings: Settings,
        asked: Mapping[str, Any],
    ) -> None:
        require_fit(problem, network)
        checks.instance("method", method, Method, "ProxGT_SA(batch, step_size)")
        self.problem = problem if x0 is None else problem.starting_at(x0)
        self.settings = s = settings
        self.network = network
        self.method = prepared(method, network, self.problem, s.tolerance)
        check_schedule(self.method.step_size, s.steps)
        self.spec = self.problem.spec()
        self.x0 = self.spec.vector(self.problem.x0, name="x0")
        self.metric_step = s.metric_step or float(step_size_at(self.method.step_size, 0))
        self.method.check(self.problem, network)  # before the engine does, which knows no names
        self.engine: Engine = ENGINES[s.engine](
            network, self.method, s.dtype, s.seed, s.record_every
        )
        self._require_agreement(asked)
        self.problem = self.problem.held_by(self.engine.nodes, self.engine.gathered)
        self.oracle = self.problem.oracle(self.spec, s.dtype).on(self.engine.cores)
        self.meter = Meter(
            self.engine,
            self.problem.evaluator(self.spec, s.dtype),
            self.problem.flat_regularizer(self.spec),
            network.nodes,
            self.problem.smoothness,
            self.metric_step,
            s.metric_at,
        )
        self.status = "step limit"
        self._warm: Any = None  # the shapes of data that the engine has compiled for

    @property
    def identity(self) -> dict[str, str]:
        """What makes this run itself; `steps` may grow and `tolerance` change on resume."""
        return fingerprint(self.problem.describe(), "problem") | self._plan()

    def _require_agreement(self, asked: Mapping[str, Any]) -> None:
        """Refuse, before any data are loaded, processes that would not run the same."""
        about = {
            "proxgt": __version__,
            "settings": dataclasses.asdict(self.settings),
            "nodes": self.problem.nodes,
            "asked": asked,
        }
        plans = self.engine.gathered(fingerprint(about, "run") | self._plan(), "plan")
        for rank, plan in enumerate(plans):
            says = f"is {{}} on rank 0 and {{}} on rank {rank}"
            changed = difference(plans[0], plan, says)
            if changed:
                raise ValueError(f"all ranks must run the same, but {changed}")

    def _plan(self) -> dict[str, str]:
        """The identity but for the data, whose digest takes a pass over them."""
        fixed = {
            "seed": self.settings.seed,
            "dtype": self.settings.dtype,
            "record_every": self.settings.record_every,
            "metric_step": self.metric_step,
            "metric_at": self.settings.metric_at,
            "x0": self.x0,
        }
        return (
            fingerprint(self.problem.loss, "problem.loss")
            | fingerprint(self.problem.regularizer, "problem.regularizer")
            | fingerprint(_described(self.network), "network")
            | fingerprint(self.method, "method")
            | fingerprint(fixed, "run")
        )

    def begin(self, saved: Saved | None) -> None:
        """Line 0 of Algorithm 1, or where the checkpoint was left."""
        x = jnp.broadcast_to(
            jnp.asarray(self.x0, self.settings.dtype), (len(self.engine.nodes), self.spec.size)
        )
        self.carry = self.engine.start(self.oracle, x)
        if saved is None:
            self.step, self.seconds, self.communication, self.history = 0, 0.0, 0.0, History()
            self.measured = self.meter(self.carry.state.x)
            if not self.measured.finite:
                raise ValueError(
                    "x0 must have a finite objective and gradient, got "
                    f"{self.measured.objective} and stationarity {self.measured.stationarity}"
                )
            self.history.append(self._row(self.measured))
        else:
            self.carry = filled(self.carry, saved.arrays)
            self.step, self.history = saved.step, saved.history
            self.seconds = self.history[-1].seconds
            self.communication = self.history[-1].communication_seconds
            self.measured = self.meter(self.carry.state.x)

    def loop(
        self,
        store: Checkpoint | None,
        report: Callable[[Snapshot], Any],
        callbacks: Sequence[Callable[[Snapshot], Any]],
    ) -> None:
        """Chunks until something ends the run."""
        with Interrupts() as interrupts:
            try:
                if self.step == 0:
                    self._publish(store, report, callbacks)
                while self._goes_on():
                    if any(self.engine.gathered(interrupts.asked, "interrupt")):
                        raise KeyboardInterrupt
                    self._chunk()
                    if self.status != "diverged":
                        self._publish(store, report, callbacks)
            except KeyboardInterrupt:
                self.status = "interrupted"

    def _goes_on(self) -> bool:
        if self.status != "step limit":
            return False
        tolerance = self.settings.tolerance
        if tolerance is not None and self.measured.metric <= tolerance**2:
            self.status = "converged"
            return False
        return self.step < self.settings.steps

    def _chunk(self) -> None:
        """Advance to the next record; on a non-finite value keep the last record's state."""
        every = self.settings.record_every
        end = min((self.step // every + 1) * every, self.settings.steps)
        oracle = self.problem.feed(self.oracle, self._samples_before, self.step, end)
        self._compile(oracle)
        clock, before = time.perf_counter(), self.engine.communication_seconds
        carry = self.engine.advance(self.carry, oracle, self._span(end))
        seconds = time.perf_counter() - clock
        communication = self.engine.communication_seconds - before
        measured = self.meter(carry.state.x)
        if not measured.finite:
            self.status = "diverged"
            return
        self.carry, self.measured, self.step = carry, measured, end
        self.seconds += seconds
        self.communication += communication
        self.history.append(self._row(measured))

    def _samples_before(self, step: int) -> int:
        return int(self.method.cost(self.problem, step).samples)

    def _compile(self, oracle: Any) -> None:
        """Run no steps, once for each shape of data, so that the clock sees no compilation."""
        shapes = [np.shape(leaf) for leaf in jax.tree.leaves(oracle)]
        if shapes != self._warm:
            self.engine.advance(self.carry, oracle, Span(self.step, self.step, -1, 0))
            self._warm = shapes

    def _span(self, end: int) -> Span:
        """The chunk, with Definition 3's draw: uniform over x_1..x_T and nodes at any T.

        The iterate drawn from the first `end` ones lies in this chunk with probability
        (end - step) / end; if not, the earlier draw stays.
        """
        rng = np.random.default_rng([self.settings.seed, self.step])
        t, node = int(rng.integers(end)), int(rng.integers(self.network.nodes))
        return Span(self.step, end, t if t >= self.step else -1, node)

    def _row(self, measured: Measurement) -> Row:
        cost = self.method.cost(self.problem, self.step)
        word = 8 * np.dtype(self.settings.dtype).itemsize
        bits = cost.rounds * cost.message.bits(self.spec.size, word)
        return Row(
            step=self.step,
            samples=float(cost.samples),
            gradients=float(cost.gradients),
            rounds=int(cost.rounds),
            bits=float(bits),
            objective=measured.objective,
            stationarity=measured.stationarity,
            consensus=measured.consensus,
            metric=measured.metric,
            seconds=self.seconds,
            communication_seconds=self.communication,
        )

    def _publish(
        self,
        store: Checkpoint | None,
        report: Callable[[Snapshot], Any],
        callbacks: Sequence[Callable[[Snapshot], Any]],
    ) -> None:
        if store is not None:
            store.save(self.step, arrays_of(self.carry), self.history)
        snapshot = Snapshot(
            self.history[-1],
            np.asarray(self.carry.state.x),
            self.measured.mean,
            self.spec.unravel(self.measured.solution),
        )
        answers = []
        if self.engine.rank == 0:
            answers = [callback(snapshot) for callback in (report, *callbacks)]  # call them all
        if callbacks and any(self.engine.gathered(any(answers), "callbacks")):
            self.status = "interrupted"

    def result(self) -> Result:
        """The run as its user gets it."""
        return Result(
            x=self.engine.collected(self.carry.state.x),
            mean=self.measured.mean,
            solution=self.spec.unravel(self.measured.solution),
            output=np.asarray(self.carry.output),
            status=self.status,
            history=self.history,
            smoothness=self.problem.smoothness,
            smoothness_is_estimate=self.problem.smoothness_is_estimate,
            metric_step=self.metric_step,
            # without the digest of the data, which takes as long as a pass over them
            run=self._plan()
            | {f"run.{k}": repr(v) for k, v in dataclasses.asdict(self.settings).items()},
        )


def _described(network: Network) -> dict[str, Any]:
    W = network.sparse
    pattern = (W.indptr.astype(np.int64), W.indices.astype(np.int64))  # SciPy chooses the width
    about = {
        "nodes": network.nodes,
        "edges": network.edges,
        "links": pattern,
        "weights": W.data,
    }
    links = links_of(network)
    return about if links is None else about | {"varying": links.described()}

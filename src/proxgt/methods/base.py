"""What a method is: an initial state, a step, and an honest count of what steps cost.

A method is written once over named-tuple states whose field `x` holds the iterates, shape
(nodes, p). It never learns which engine runs it: the engine hands it `mix`, the one
operation that crosses rows.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks
from proxgt.consensus import Consensus
from proxgt.methods.compressors import Compressor, Identity
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.base import first_line
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static

AUTO = "auto"
_ASKED = 10_000  # steps, at most, at which a schedule is checked
STEPS = 1000  # of a run, where neither its user nor a plan says


class Cost(NamedTuple):
    """What some steps cost: samples and gradient evaluations per node, and rounds.

    `message` is how a p-vector is sent to each neighbour in every round, by default whole.
    """

    samples: float
    gradients: float
    rounds: int
    message: Compressor = Identity()


@record
class Schedule:
    """A step size that depends on the step, counted from zero: `function(t) -> number`."""

    function: Callable[[Any], Any] = static()

    def __call__(self, t: Any) -> Any:
        return self.function(t)


class Method(ABC):
    """A decentralized method, built from an estimator, a consensus and a prox."""

    step_size: Any
    consensus: Any  # a Consensus, or a (named) tuple of them

    def check(self, problem: Problem, network: Network) -> None:  # noqa: B027
        """Refuse, by name, what this method cannot solve."""

    @abstractmethod
    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> Any:
        """The state before the first step, all rows of x at the common start."""

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        """What is random in one step, made ahead; by default the keys, shape (nodes,)."""
        del problem
        return keys

    @abstractmethod
    def step(self, problem: Oracle, mix: Any, state: Any, draw: Any) -> Any:
        """One step. `mix` has the structure of `consensus`, a function rows -> rows each."""

    @abstractmethod
    def cost(self, problem: Problem, steps: int) -> Cost:
        """What the first `steps` steps cost."""


def as_step_size(value: Any, *, automatic: bool = False) -> Any:
    """A positive number, or a schedule of them; "auto" where the theorems settle it."""
    if isinstance(value, Schedule):
        return value
    if callable(value):
        check_schedule(Schedule(value), 1)
        return Schedule(value)
    if isinstance(value, str) and value == AUTO:
        if automatic:
            return value
        raise ValueError(
            "step_size='auto' is settled by the theorems, which cover ProxGT alone: give a "
            "number, or find one with proxgt.tune"
        )
    return checks.positive_number("step_size", value)


def as_fraction(name: str, value: Any, *, or_zero: bool = False) -> Any:
    """A number in (0, 1], or 0 where that is allowed; or a schedule of them."""

    def check(label: str, number: Any) -> None:
        positive = checks.finite_number(label, number) > 0
        if not (positive or (or_zero and number == 0)) or number > 1:
            raise ValueError(f"{label} must be in {'[' if or_zero else '('}0, 1], got {number!r}")

    if not callable(value):
        check(name, value)
        return value
    schedule = value if isinstance(value, Schedule) else Schedule(value)
    times, numbers = _values(name, schedule, _ASKED)
    for t in np.flatnonzero(~((numbers > 0) & (numbers <= 1))):
        check(f"{name}({times[t]})", numbers[t].item())
    return schedule


def check_schedule(step_size: Any, steps: int) -> None:
    """Refuse a schedule that is not positive at every step, as far as many of them tell."""
    if not isinstance(step_size, Schedule):
        return
    times, sizes = _values("step_size", step_size, steps)
    for k in np.flatnonzero(~(np.isfinite(sizes) & (sizes > 0)))[:1]:
        checks.positive_number(f"step_size({times[k]})", sizes[k].item())


def _values(name: str, schedule: Schedule, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Many of the first `steps` steps, and what a schedule says at them."""
    times = np.unique(np.linspace(0, steps - 1, min(steps, _ASKED)).astype(np.int32))
    try:
        values = np.asarray(jax.vmap(schedule)(jnp.asarray(times)))
    except Exception as error:
        raise TypeError(
            f"{name} must be a number or a JAX function of the step, such as "
            f"lambda t: 0.1 / (1 + t), but it raised {type(error).__name__}: {first_line(error)}"
        ) from error
    if values.shape != times.shape:
        raise TypeError(f"{name}(0) must be a scalar, got shape {values.shape[1:]}")
    return times, values


def step_size_at(step_size: Any, t: Any) -> Any:
    """The step size of step t, counted from zero."""
    return step_size(t) if isinstance(step_size, Schedule) else step_size


def rounds_of(consensus: Consensus) -> int:
    """K, once `rounds="auto"` is settled."""
    if not isinstance(consensus.rounds, int):
        raise ValueError(f"{consensus!r} has no number of rounds yet: call resolve(network) first")
    return consensus.rounds


def prepared(
    method: Any, network: Network, problem: Problem | None = None, epsilon: float | None = None
) -> Any:
    """The method with numbers for everything in it that says "auto".

    `rounds="auto"` of a consensus needs the network alone. The rest is of ProxGT and is settled
    by the theorems (see `proxgt.theory.automatic`) where there is a problem, else left.
    """
    with named(method):
        resolved = jax.tree.map(
            lambda one: one.resolve(network),
            method.consensus,
            is_leaf=lambda node: isinstance(node, Consensus),
        )
    method = dataclasses.replace(method, consensus=resolved)
    if problem is None or not open_fields(method):
        return method
    from proxgt.theory.automatic import settled  # which is written in terms of methods

    return settled(method, problem, network, epsilon)


@contextmanager
def named(method: Any) -> Iterator[None]:
    """Say of a refusal which method it is of."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{type(method).__name__}: {error}") from error


def open_fields(method: Any) -> tuple[str, ...]:
    """Names of the fields of a method and its estimator that say "auto"."""
    parts = [part for part in (method, getattr(method, "estimator", None)) if part is not None]
    return tuple(
        f.name
        for part in parts
        if dataclasses.is_dataclass(part)
        for f in dataclasses.fields(part)
        if isinstance(getattr(part, f.name), str) and getattr(part, f.name) == AUTO
    )


def unwrapped(method: Any, steps: int | None) -> tuple[Any, int]:
    """The method of a run and its steps, where `solve` was given a `Plan` or a `Tuning` for them.

    Both have a `method`; a plan has `steps` too, which hold unless the user gave others.
    """
    own = None if isinstance(method, Method) else method
    made = getattr(own, "steps", STEPS) if steps is None else steps
    return getattr(own, "method", method), made

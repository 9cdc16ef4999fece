"""What an engine is: it holds some rows, and carries what crosses them.

Everything else is row-wise and is the same on every engine: oracles, estimators, methods,
measurements. An engine supplies `mixing` (rows -> rows, line 3 and 5 of Algorithm 1) and
`total` (sums over all nodes, used only where something is measured).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np

from proxgt.cores import usable_cores


class Carry(NamedTuple):
    """What goes from step to step: the method's state, and Definition 3's drawn iterate."""

    state: Any
    output: jax.Array  # (p,)


class Span(NamedTuple):
    """Which steps to make, and which iterate x_t^i among them is the drawn one, if any."""

    begin: int
    end: int
    output_step: int  # outside [begin, end) where the earlier draw stays
    output_node: int


class Turn:
    """One step as its exchanges see it while the step is traced.

    It counts them, so that each has its own randomness, and keeps for each trace what the
    last one gave, so that an engine can put them in order.
    """

    def __init__(self, t: Any) -> None:
        self.t = t
        self.calls = 0
        self.tokens: dict[int, Any] = {}


def during(mix: Any, turn: Turn) -> Any:
    """The mixing functions of one step; most are the same at every step."""
    return jax.tree.map(
        lambda one: one.during(turn) if hasattr(one, "during") else one, mix, is_leaf=_mixes
    )


def over(mix: Any, span: Span) -> Any:
    """The mixing functions with what they need for the steps of a span."""
    return jax.tree.map(
        lambda one: one.over(span) if hasattr(one, "over") else one, mix, is_leaf=_mixes
    )


def _mixes(node: Any) -> bool:
    return callable(node) or hasattr(node, "during")


class Engine(ABC):
    """Holds rows `nodes` of every array and runs steps on them.

    A run may be spread over several processes. Each has an engine, and they call its methods
    in the same order; rank 0 leads: it alone reports, logs and calls back.
    """

    nodes: np.ndarray  # ids of the nodes whose rows are held here
    rank: int = 0
    ranks: int = 1
    cores: int = len(usable_cores())  # that this process has for itself

    @classmethod
    def supervised(cls) -> AbstractContextManager[Any]:
        """Entered around a run: what an engine does about errors of some processes."""
        return nullcontext()

    @property
    def communication_seconds(self) -> float:
        """Seconds spent in exchanges so far."""
        return 0.0

    def gathered(self, value: Any, topic: str) -> list[Any]:
        """A small plain value of every process, by rank; not during steps."""
        del topic
        return [value]

    def set_up(self) -> None:  # noqa: B027
        """Called when nothing more is checked: from here on errors are not the user's."""

    def barrier(self) -> None:  # noqa: B027
        """Until all processes are here."""

    @abstractmethod
    def start(self, problem: Any, x: jax.Array) -> Carry:
        """The carry before the first step; x holds the common start in the rows held here."""

    @abstractmethod
    def advance(self, carry: Carry, problem: Any, span: Span) -> Carry:
        """The carry after the steps of `span`."""

    @abstractmethod
    def total(self, values: Any) -> Any:
        """Sum over engine processes of arrays that are sums over the rows held here."""

    @abstractmethod
    def all_rows(self, rows: jax.Array) -> np.ndarray:
        """The rows of all nodes, (nodes, p), in node order, on every process."""

    def collected(self, rows: jax.Array) -> np.ndarray:
        """The rows of all nodes, in node order, at rank 0; elsewhere those held there."""
        return np.asarray(rows)

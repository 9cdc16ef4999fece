"""Ready-made problems on shards, of which a process loads its own nodes' alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from proxgt.engines.messages import led, world
from proxgt.fingerprint import difference, fingerprint
from proxgt.problems import EmpiricalRisk
from proxgt.problems.shards import Shards

# Options that a task reads off the data of all nodes where it is not given them.
_OF_ALL = {"mlp_classifier": "classes", "matrix_factorization": "shape"}


def sharded_task(
    task: Callable[..., EmpiricalRisk], shards: str | Path, nodes: int, **options: Any
) -> EmpiricalRisk:
    """`task` of data in shards, made node by node.

    Loss and x0 are as node 0's samples make them, and L is the largest of the nodes': the
    same as of all data at once, but for the scale of `matrix_factorization`'s x0. Over MPI,
    rank 0 holds node 0, and gives the other ranks the loss and x0.
    """
    needed = _OF_ALL.get(task.__name__)
    if needed and options.get(needed) is None:
        raise ValueError(f"{needed} must be given where each process sees only its own shards")
    held = Shards(shards, nodes)
    parts = _NodeParts(task, held, options)
    # MPI is only ever started by an engine that runs on it.
    over_ranks = world.cache_info().currsize > 0
    loss, h, x0 = led(parts.first, "the task") if over_ranks else parts.first()
    parts.expect(loss)
    smoothness = None if needed else parts.smoothness  # neither of those knows its L
    return EmpiricalRisk(loss, held.prepared_by(parts.samples), h, x0=x0, smoothness=smoothness)


class _NodeParts:
    """What a task makes of one node's samples."""

    def __init__(self, task: Callable[..., EmpiricalRisk], held: Shards, options: Any) -> None:
        self._task, self._held, self._options = task, held, options
        self._loss: dict[str, str] = {}
        self._smoothness: dict[int, float] = {}

    def first(self) -> tuple[Any, Any, Any]:
        """What all nodes share."""
        made = self._made(0, self._held.load(0))
        return made.loss, made.regularizer, made.x0

    def expect(self, loss: Any) -> None:
        """Refuse from now on a node whose samples make another loss."""
        self._loss = fingerprint(loss, "loss")

    def samples(self, node: int, raw: Any) -> Any:
        """A node's samples as the task has them, checked by it."""
        made = self._made(node, raw)
        changed = difference(self._loss, fingerprint(made.loss, "loss"))
        if changed:
            raise ValueError(f"{self._held.named(node)} makes another problem: {changed}")
        if not made.smoothness_is_estimate:
            self._smoothness[node] = made.smoothness
        return made.data.node(0)

    def smoothness(self, nodes: np.ndarray) -> float:
        """The largest L of some nodes."""
        for node in set(map(int, nodes)) - self._smoothness.keys():
            self.samples(node, self._held.load(node))
        return max(self._smoothness[int(node)] for node in nodes)

    def _made(self, node: int, raw: Any) -> EmpiricalRisk:
        try:
            return self._task([raw], **self._options)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{self._held.named(node)}: {error}") from error

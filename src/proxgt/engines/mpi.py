"""Rows spread over MPI ranks; only rows of neighbouring nodes cross them in a step.

Compiled steps call MPI through a callback on XLA's own buffers, so that a chunk stays one
compiled loop, the very one of the local engine. Measured on 2 cores (ring of 8, p = 123,
batch 16, K = 8): 11,900 steps/s, where pieces compiled apart with mpi4py between them did
6,900, an `io_callback` 6,500, and a bare mpi4py + NumPy loop 10,500. It needs no compiler,
which mpi4jax does at install.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.buffer_callback import buffer_callback

from proxgt.consensus import Consensus
from proxgt.engines.base import Carry, Engine, Span, Turn
from proxgt.engines.faults import Outages, Weights, links_of, rounds, varying_coefficients
from proxgt.engines.halo import Halo
from proxgt.engines.local import Stepper
from proxgt.engines.messages import world
from proxgt.engines.partition import cut, owners, partition
from proxgt.methods.base import Method
from proxgt.networks import Network
from proxgt.problems.oracles import Oracle
from proxgt.records import record

_GRACE = 2.0  # seconds within which an error that all ranks have has come up at all of them
_log = logging.getLogger("proxgt")
_HALOS: list[Halo] = []  # of the run at hand; compiled code names them by their places here


class MpiEngine(Engine):
    """The rows of one rank."""

    def __init__(
        self, network: Network, method: Method, dtype: str, seed: int, record_every: int
    ) -> None:
        self._world = world()
        self.rank, self.ranks, self.cores = self._world.rank, self._world.size, self._world.cores
        # Rank 0's, since eigenvectors may differ between machines in their last bits.
        mine = owners(partition(network.adjacency, self.ranks)).tolist()
        self._owner = np.array(self.gathered(mine, "partition")[0])
        self.blocks = [np.flatnonzero(self._owner == rank) for rank in range(self.ranks)]
        self.nodes = self.blocks[self.rank]
        self._world.hold(_named(self.nodes))
        self._network, self._method, self._dtype = network, method, dtype
        if links_of(network) is not None:
            consensus_map(lambda one: varying_coefficients(network, one, dtype), method.consensus)
        self._seed, self._record_every = seed, record_every
        self._seconds_before = self._world.seconds

    @classmethod
    @contextmanager
    def supervised(cls) -> Iterator[None]:
        """An error of all ranks is raised; an error of some ends the job, saying whose it is.

        Until `set_up`, ranks meet only in gatherings, where a failed rank tells the others.
        After it they may be anywhere, waiting for its messages: only an abort frees them.
        """
        ranks = world()
        ranks.setting_up = True
        try:
            yield
        except BaseException as error:
            if getattr(error, "every_rank", False):
                raise
            if ranks.setting_up and isinstance(error, Exception):
                ranks.failed(error)  # raises
            if not ranks.all_arrive(_GRACE):
                ranks.end_job(error)
            error.every_rank = True  # pyright: ignore[reportAttributeAccessIssue]
            raise

    @property
    def communication_seconds(self) -> float:
        return self._world.seconds - self._seconds_before

    def gathered(self, value: Any, topic: str) -> list[Any]:
        return self._world.gathered(value, topic)

    def set_up(self) -> None:
        self.gathered(None, "ready")
        self._world.setting_up = False
        self._log_blocks()
        while _HALOS:
            _HALOS.pop().free()
        self._weights = None
        if links_of(self._network) is not None:
            self._weights = Weights.of(
                self._network, self.nodes, self._dtype, self._seed, self._record_every
            )
        self._stepper = Stepper(
            self.nodes,
            self._method,
            consensus_map(self._mix, self._method.consensus),
            Outages.of(self._network),
            self._seed,
            self._record_every,
        )

    def _log_blocks(self) -> None:
        if self.rank == 0:
            links = self._network.adjacency
            _log.info(
                "%d ranks hold %s nodes; %d of %d directed links are between ranks",
                self.ranks,
                ", ".join(str(len(block)) for block in self.blocks),
                cut(links, self.blocks),
                links.nnz,
            )

    def barrier(self) -> None:
        self._world.barrier()

    def start(self, problem: Oracle, x: jax.Array) -> Carry:
        return jax.block_until_ready(self._stepper.start(problem, x))

    def advance(self, carry: Carry, problem: Oracle, span: Span) -> Carry:
        state, output = self._stepper.advance(carry, problem, span)
        if span.begin <= span.output_step < span.end:
            root = int(self._owner[span.output_node])
            output = jnp.asarray(self._world.shared(np.asarray(output), root))
        return Carry(state, output)

    def total(self, values: Any) -> Any:
        return jax.tree.map(lambda a: jnp.asarray(self._world.total(np.asarray(a))), values)

    def all_rows(self, rows: jax.Array) -> np.ndarray:
        return self._world.rows(np.asarray(rows), self.blocks, everywhere=True)

    def collected(self, rows: jax.Array) -> np.ndarray:
        return self._world.rows(np.asarray(rows), self.blocks, everywhere=False)

    def _mix(self, consensus: Consensus) -> Any:
        weights = consensus.weights(self._network)
        coefficients = consensus.coefficients(self._network)
        _HALOS.append(Halo(self._world, self.blocks, weights, coefficients))
        place = jnp.asarray(len(_HALOS) - 1, jnp.int32)
        if self._weights is None:
            return RemoteMix(place)
        coefficients = varying_coefficients(self._network, consensus, self._dtype)
        return RemoteVaryingMix(place, self._weights, coefficients)


@record
class RemoteMix:
    """rows -> rows of a consensus whose neighbours are on other ranks."""

    halo: jax.Array  # its place in _HALOS: an argument, so that a new run compiles nothing

    def during(self, turn: Turn) -> Any:
        """The function of one step."""
        return lambda rows: exchanged(rows, (self.halo,), turn)


@record
class RemoteVaryingMix:
    """The same where the weights vary from round to round."""

    halo: jax.Array
    weights: Weights
    coefficients: jax.Array  # (K, 2)

    def over(self, span: Span) -> RemoteVaryingMix:
        """With what the steps of `span` need."""
        return dataclasses.replace(self, weights=self.weights.over(span))

    def during(self, turn: Turn) -> Any:
        """The function of one step."""
        return lambda rows: exchanged(
            rows, (self.halo, rounds(self.weights, self.coefficients, turn)), turn
        )


def consensus_map(function: Any, consensus: Any) -> Any:
    """`function` of every operator of a method's consensus, in the structure it has."""
    return jax.tree.map(function, consensus, is_leaf=lambda one: isinstance(one, Consensus))


def exchanged(rows: jax.Array, arguments: tuple[jax.Array, ...], turn: Turn) -> jax.Array:
    """`Halo.mix` of compiled code: a halo's place and, where they vary, its weights.

    XLA may run in any order what does not depend on one another, and ranks could then wait
    for different messages. A token, given from each exchange of a step to the next, orders
    them. Steps, and the turns of a loop in a step, follow one another anyway.
    """
    trace = id(getattr(rows, "_trace", None))
    token = turn.tokens.get(trace)
    token = jnp.zeros((), jnp.int32) if token is None else token
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (rows, token)]
    call = buffer_callback(_mix_rows, shapes, has_side_effect=True)
    out, turn.tokens[trace] = call(rows, token, *arguments)
    return out


def _mix_rows(_: Any, out: Any, rows: Any, token: Any, place: Any, *data: Any) -> None:
    halo = _HALOS[int(np.asarray(place))]
    weights = np.asarray(data[0]) if data else None
    halo.mix(np.asarray(rows), np.asarray(out[0]), weights)


def _named(nodes: np.ndarray) -> str:
    shown = ", ".join(map(str, nodes[:8])) + (", ..." if len(nodes) > 8 else "")
    return f"node{'s' if len(nodes) > 1 else ''} {shown}"

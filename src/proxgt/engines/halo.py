"""One consensus operator on the rows of one rank: K rounds of neighbour messages.

The rows a rank holds and the neighbouring rows it hears of, its halo, lie in one buffer, so
that a round is: pack the rows others need, start the messages, wait, and sum.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse import _sparsetools  # pyright: ignore[reportAttributeAccessIssue]

from proxgt.engines.messages import World, wait
from proxgt.engines.partition import owners
from proxgt.networks.graphs import order


class Neighbourhood(NamedTuple):
    """What a rank hears and says in a round of W; every rank works out the same from W."""

    nodes: np.ndarray  # held here
    halo: np.ndarray  # heard of, by rank and then by id
    hears: dict[int, slice]  # rank -> its rows in [nodes, halo]
    says: dict[int, np.ndarray]  # rank -> positions in `nodes` of the rows it needs

    @classmethod
    def of(cls, weights: sp.csr_array, blocks: list[np.ndarray], rank: int) -> Neighbourhood:
        """The neighbourhood of a rank when `blocks` says who holds what."""
        owner = owners(blocks)
        needs = [_heard(weights, block, owner, r) for r, block in enumerate(blocks)]
        nodes, halo, hears = blocks[rank], needs[rank], {}
        for other in np.unique(owner[halo]):
            at = len(nodes) + np.flatnonzero(owner[halo] == other)
            hears[int(other)] = slice(int(at[0]), int(at[-1]) + 1)
        says = {
            other: np.searchsorted(nodes, need[owner[need] == rank])
            for other, need in enumerate(needs)
            if (owner[need] == rank).any()
        }
        return cls(nodes, halo, hears, says)

    def rows_of(self, weights: sp.csr_array) -> sp.csr_array:
        """The rows of W held here, with columns as they lie in [nodes, halo].

        A row keeps the order of its entries, so that its sum has the same bits whichever
        rank holds it, and gets a diagonal entry, if only a zero.
        """
        position = np.full(order(weights), -1)
        position[self.nodes] = np.arange(len(self.nodes))
        position[self.halo] = len(self.nodes) + np.arange(len(self.halo))
        mine = with_diagonal(weights)[self.nodes]
        indices = position[mine.indices].astype(np.int32)
        shape = (len(self.nodes), len(self.nodes) + len(self.halo))
        return sp.csr_array((mine.data, indices, mine.indptr.astype(np.int32)), shape=shape)


def with_diagonal(weights: sp.csr_array) -> sp.csr_array:
    """W with every diagonal entry stored, rows sorted by column."""
    rows, columns = weights.nonzero()
    every = np.arange(order(weights))
    pairs = np.unique(np.stack([np.append(rows, every), np.append(columns, every)]), axis=1)
    values = np.asarray(weights[pairs[0], pairs[1]]).ravel()
    indptr = np.searchsorted(pairs[0], np.arange(order(weights) + 1))
    return sp.csr_array((values, pairs[1], indptr), shape=weights.shape)


def _heard(weights: sp.csr_array, block: np.ndarray, owner: np.ndarray, rank: int) -> np.ndarray:
    heard = np.unique(weights[block].nonzero()[1])
    heard = heard[owner[heard] != rank]
    return heard[np.lexsort((heard, owner[heard]))]


class _Buffers:
    """For rows of one shape: two buffers between which rounds alternate, with their messages.

    Persistent requests, rather than neighbourhood collectives: they are set up once for
    buffers that never move, start with one call a round, and every MPI has them.
    """

    def __init__(self, halo: Halo, width: int, dtype: np.dtype) -> None:
        near, size = halo.near, len(halo.near.nodes) + len(halo.near.halo)
        self.rows = [np.zeros((size, width), dtype) for _ in range(2)]
        self.own = [rows[: len(near.nodes)] for rows in self.rows]
        self.flat = [rows.reshape(-1) for rows in self.rows]
        self.own_flat = [rows.reshape(-1) for rows in self.own]
        self.outgoing = np.zeros((sum(map(len, near.says.values())), width), dtype)
        self.positions = np.concatenate([*near.says.values(), np.empty(0, np.int64)]).astype(int)
        ends = np.cumsum([0, *map(len, near.says.values())])
        self.requests = [
            [halo.graph.Recv_init(rows[part], r) for r, part in near.hears.items()]
            + [
                halo.graph.Send_init(self.outgoing[ends[k] : ends[k + 1]], r)
                for k, r in enumerate(near.says)
            ]
            for rows in self.rows
        ]
        # a W + b as one matrix a round
        diagonal = halo.matrix.indices == np.repeat(
            np.arange(len(near.nodes)), np.diff(halo.matrix.indptr)
        )
        self.data = [
            (a * halo.matrix.data + b * diagonal).astype(dtype) for a, b, _ in halo.coefficients
        ]
        self.c = [float(c) for c in halo.coefficients[:, 2]]


class Halo:
    """A consensus, as coefficients over weights, on the rows of this rank."""

    def __init__(
        self,
        world: World,
        blocks: list[np.ndarray],
        weights: sp.csr_array,
        coefficients: np.ndarray,
    ) -> None:
        self.near = Neighbourhood.of(weights, blocks, world.rank)
        self.matrix = self.near.rows_of(weights)
        self.coefficients = coefficients
        self.graph = world.comm.Create_dist_graph_adjacent(
            list(self.near.hears), list(self.near.says), reorder=False
        )
        self._world = world
        self._start = world.mpi.Prequest.Startall
        self._done = world.mpi.Request.Testall
        self._buffers: dict[tuple[int, str], _Buffers] = {}

    def mix(self, rows: np.ndarray, out: np.ndarray, data: np.ndarray | None = None) -> None:
        """K rounds of s_{k+1} = a_k W s_k + b_k s_k + c_k s_{k-1} from `rows` into `out`.

        `data`, (K, entries), are weights in place of a_k W + b_k, where they vary.
        """
        b = self._buffers_for(rows)
        every = b.data if data is None else data
        size, columns = len(self.near.nodes), len(self.near.nodes) + len(self.near.halo)
        width = rows.size // max(size, 1)
        indptr, indices = self.matrix.indptr, self.matrix.indices
        b.own[0][...] = rows.reshape(size, width)
        if b.c[0]:
            b.own[1][...] = b.own[0]
        for k, c in enumerate(b.c):
            now, other = k & 1, 1 - (k & 1)
            self._exchange(b, now)
            # s_{k+1} takes the place of s_{k-1}
            target = b.own_flat[other]
            if k == len(b.c) - 1:
                target = out.reshape(-1)
                if c:
                    np.multiply(b.own_flat[other], c, out=target)
            elif c:
                target *= c
            if not c:
                target.fill(0)
            # SciPy's kernel of csr @ dense: adds to `target`, and so allocates nothing.
            _sparsetools.csr_matvecs(
                size, columns, width, indptr, indices, every[k], b.flat[now], target
            )

    def _exchange(self, b: _Buffers, now: int) -> None:
        """One round of messages: fill the halo of buffer `now`."""
        if not b.requests[now]:
            return
        begin = perf_counter()
        np.take(b.own[now], b.positions, axis=0, out=b.outgoing, mode="clip")
        self._start(b.requests[now])
        wait(self._done, b.requests[now], self._world.spins)
        self._world.seconds += perf_counter() - begin

    def _buffers_for(self, rows: np.ndarray) -> _Buffers:
        key = (rows.size, rows.dtype.str)
        if key not in self._buffers:
            width = rows.size // len(self.near.nodes)
            self._buffers[key] = _Buffers(self, width, rows.dtype)
        return self._buffers[key]

    def free(self) -> None:
        """Give back what MPI holds for this operator."""
        for buffers in self._buffers.values():
            for requests in buffers.requests:
                for request in requests:
                    request.Free()
        self._buffers.clear()
        self.graph.Free()

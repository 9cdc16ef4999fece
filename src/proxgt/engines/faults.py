"""Consensus over links that fail or vary: the weights of each round, drawn in compiled code.

Only networks with `links` come here; all others run the plain code of `mixing` and `halo`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from proxgt.consensus import Consensus, Polynomial
from proxgt.engines.base import Span, Turn
from proxgt.engines.halo import with_diagonal
from proxgt.networks import Network
from proxgt.networks.links import Links
from proxgt.records import record, static

_LINK_KEY = 0x11F3  # sets the draws of links apart from those of samples


@record
class Outages:
    """Which nodes pause when."""

    node: jax.Array  # (outages,)
    begin: jax.Array
    end: jax.Array

    @classmethod
    def of(cls, network: Network) -> Outages | None:
        """Those of a network, if it has any."""
        links = links_of(network)
        if links is None or not links.outages:
            return None
        columns = zip(*((o.node, o.begin, o.end) for o in links.outages), strict=True)
        return cls(*(jnp.asarray(column, jnp.int32) for column in columns))

    def paused(self, t: Any, nodes: jax.Array) -> jax.Array:
        """Whether each of `nodes` pauses at step t."""
        now = (self.begin <= t) & (t < self.end)
        return jnp.any((nodes[:, None] == self.node) & now, axis=1)

    def held(self, t: Any, nodes: jax.Array, old: Any, new: Any) -> Any:
        """The state after step t: that before it in the rows of paused nodes.

        Scalars of a state are shared by all rows and go on.
        """
        paused = self.paused(t, nodes)

        def keep(before: jax.Array, after: jax.Array) -> jax.Array:
            if after.ndim == 0:
                return after
            return jnp.where(paused.reshape(-1, *[1] * (after.ndim - 1)), before, after)

        return jax.tree.map(keep, old, new)


@record
class Weights:
    """The entries of W_t in the rows held here, row by row."""

    row: jax.Array  # (entries,) position of the receiver among the rows held
    receiver: jax.Array  # (entries,) node ids
    sender: jax.Array
    table: jax.Array  # (period, entries)
    begin: jax.Array  # step of the table's first row
    key: jax.Array
    failure: jax.Array
    outages: Outages | None
    rows: int = static()
    fails: bool = static()
    source: _Source = static()

    @classmethod
    def of(cls, network: Network, nodes: np.ndarray, dtype: str, seed: int, chunk: int) -> Weights:
        """The weights of a network with `links` in the rows of `nodes`."""
        links = links_of(network)
        assert links is not None
        whole = with_diagonal(network.sparse)
        source = _Source(links, whole, nodes, dtype, chunk)
        degree = np.diff(whole.indptr)[nodes]
        return cls(
            row=jnp.asarray(np.repeat(np.arange(len(nodes)), degree), jnp.int32),
            receiver=jnp.asarray(np.repeat(nodes, degree), jnp.int32),
            sender=jnp.asarray(whole.indices[source.chosen], jnp.int32),
            table=source.table(0),
            begin=jnp.zeros((), jnp.int32),
            key=jax.random.fold_in(jax.random.key(seed), _LINK_KEY),
            failure=jnp.asarray(links.failure, jnp.float32),
            outages=Outages.of(network),
            rows=len(nodes),
            fails=links.failure > 0,
            source=source,
        )

    def over(self, span: Span) -> Weights:
        """With the table that the steps of `span` need."""
        if not callable(self.source.links.schedule):
            return self
        begin = jnp.asarray(span.begin, jnp.int32)
        return dataclasses.replace(self, table=self.source.table(span.begin), begin=begin)

    def at(self, t: Any, call: int, round_: Any) -> jax.Array:
        """(entries,) of W at a round of an exchange of step t."""
        w = self.table[jnp.maximum(t - self.begin, 0) % self.table.shape[0]]
        if not self.fails and self.outages is None:
            return w
        diagonal = self.receiver == self.sender
        kept = jnp.where(self._alive(t, call, round_), w, 0)
        dropped = jnp.where(diagonal, 0, w - kept)
        returned = jax.ops.segment_sum(dropped, self.row, self.rows, indices_are_sorted=True)
        return jnp.where(diagonal, w + returned[self.row], kept)

    def _alive(self, t: Any, call: int, round_: Any) -> jax.Array:
        """Whether each link carries a message; the same for both its directions."""
        alive = jnp.ones(self.row.shape, bool)
        if self.outages is not None:
            for end in (self.receiver, self.sender):
                alive &= ~self.outages.paused(t, end)
        if self.fails:
            key = self.key
            for part in (t, call, round_):
                key = jax.random.fold_in(key, part)
            low = jnp.minimum(self.receiver, self.sender)
            high = jnp.maximum(self.receiver, self.sender)

            def uniform(i: jax.Array, j: jax.Array) -> jax.Array:
                link = jax.random.fold_in(jax.random.fold_in(key, i), j)
                return jax.random.uniform(link, (), jnp.float32)

            alive &= jax.vmap(uniform)(low, high) >= self.failure
        return alive


@dataclasses.dataclass(frozen=True, eq=False)
class _Source:
    """Where the tables of `Weights` come from: outside compiled code."""

    links: Links
    whole: sp.csr_array
    nodes: np.ndarray
    dtype: str
    chunk: int

    @property
    def chosen(self) -> np.ndarray:
        """Which entries of the whole W lie in the rows held here."""
        spans = zip(self.whole.indptr[self.nodes], self.whole.indptr[self.nodes + 1], strict=True)
        return np.concatenate([np.arange(a, b) for a, b in spans])

    def table(self, begin: int) -> jax.Array:
        """From step `begin` on."""
        every = self.links.table(self.whole, begin, self.chunk)
        return jnp.asarray(every[:, self.chosen], self.dtype)


@record
class VaryingMix:
    """rows -> rows of K rounds, each with its own W, all rows in this process."""

    weights: Weights
    coefficients: jax.Array  # (K, 2)

    def over(self, span: Span) -> VaryingMix:
        """With what the steps of `span` need."""
        return dataclasses.replace(self, weights=self.weights.over(span))

    def during(self, turn: Turn) -> Any:
        """The function of one step."""

        def mix(rows: jax.Array) -> jax.Array:
            data = rounds(self.weights, self.coefficients, turn)
            shape, flat = rows.shape, rows.reshape(rows.shape[0], -1)

            def one_round(now: jax.Array, entries: jax.Array) -> tuple[jax.Array, None]:
                terms = entries[:, None] * now[self.weights.sender]
                return jax.ops.segment_sum(
                    terms, self.weights.row, now.shape[0], indices_are_sorted=True
                ), None

            return jax.lax.scan(one_round, flat, data)[0].reshape(shape)

        return mix


def rounds(weights: Weights, coefficients: jax.Array, turn: Turn) -> jax.Array:
    """(K, entries): a_k W + b_k of every round of this exchange."""
    call, turn.calls = turn.calls, turn.calls + 1
    diagonal = weights.receiver == weights.sender

    def one(k: jax.Array, ab: jax.Array) -> jax.Array:
        return ab[0] * weights.at(turn.t, call, k) + ab[1] * diagonal

    return jax.vmap(one)(jnp.arange(coefficients.shape[0]), coefficients)


def links_of(network: Network) -> Links | None:
    """How the links of a network vary, if they do."""
    return network.links


def varying_coefficients(network: Network, consensus: Consensus, dtype: str) -> jax.Array:
    """(a_k, b_k), (K, 2), or ValueError where a consensus needs one fixed W."""
    table = consensus.coefficients(network)
    if not isinstance(consensus, Polynomial) or (table < 0).any() or table[:, 2].any():
        raise ValueError(
            f"{type(consensus).__name__} is made for one fixed network, and the links of this "
            "one fail or vary: use Gossip(rounds) or LazyGossip(rounds)"
        )
    return jnp.asarray(table[:, :2], dtype)

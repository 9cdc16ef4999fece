"""Consensus on one machine: a dense product, or K rounds of sparse neighbour sums.

Both are the polynomial of W that a `Consensus` states by its recurrence. Measured here (2
cores, p = 123, ring, K = 8): dense 0.9, 14 and 156 us at n = 20, 100, 300; sparse 2.3, 12 and
35 us. A dense product does about four times the multiplications a second.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from proxgt.consensus import Consensus
from proxgt.engines.faults import VaryingMix, Weights, links_of, varying_coefficients
from proxgt.networks import Network
from proxgt.records import record

_DENSE_ADVANTAGE = 4
_MOST_SLOTS = 32  # neighbours a node may have for the sum to be unrolled


@record
class DenseMix:
    """rows -> P rows, with P = the polynomial of W."""

    matrix: jax.Array  # (n, n)

    def __call__(self, rows: jax.Array) -> jax.Array:
        return jnp.matmul(self.matrix, rows, precision=jax.lax.Precision.HIGHEST)


@record
class SlotSum:
    """rows -> W rows, where every node has few neighbours."""

    neighbour: jax.Array  # (n, slots)
    weight: jax.Array  # (n, slots), 0 in the slots a node does not need

    def __call__(self, rows: jax.Array) -> jax.Array:
        slots = range(self.neighbour.shape[1])
        return sum(
            self.weight[:, s, None] * rows.at[self.neighbour[:, s]].get(mode="promise_in_bounds")
            for s in slots
        )  # pyright: ignore[reportReturnType]


@record
class LinkSum:
    """rows -> W rows, link by link, where some node has many neighbours."""

    receiver: jax.Array  # (links,) sorted
    sender: jax.Array  # (links,)
    weight: jax.Array  # (links,)

    def __call__(self, rows: jax.Array) -> jax.Array:
        return jax.ops.segment_sum(
            self.weight[:, None] * rows[self.sender],
            self.receiver,
            num_segments=rows.shape[0],
            indices_are_sorted=True,
        )


@record
class PowerMix:
    """rows -> W^K rows, K rounds of plain gossip."""

    exchange: Any
    rounds: jax.Array

    def __call__(self, rows: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, self.rounds, lambda _, s: self.exchange(s), rows)


@record
class RecurrenceMix:
    """rows -> s_K of s_{k+1} = a_k W s_k + b_k s_k + c_k s_{k-1}."""

    exchange: Any
    coefficients: jax.Array  # (K, 3)

    def __call__(self, rows: jax.Array) -> jax.Array:
        def one_round(carry: tuple[jax.Array, jax.Array], abc: jax.Array) -> Any:
            now, before = carry
            return (abc[0] * self.exchange(now) + abc[1] * now + abc[2] * before, now), None

        return jax.lax.scan(one_round, (rows, rows), self.coefficients)[0][0]


def local_mixing(
    network: Network, consensus: Any, dtype: str, seed: int = 0, chunk: int = 1
) -> Any:
    """The functions rows -> rows of a method's consensus, in the structure it has."""
    weights = None
    if links_of(network) is not None:
        weights = Weights.of(network, np.arange(network.nodes), dtype, seed, chunk)

    def mix(one: Consensus) -> Any:
        if weights is None:
            return _mix(network, one, dtype)
        return VaryingMix(weights, varying_coefficients(network, one, dtype))

    return jax.tree.map(
        mix,
        consensus,
        is_leaf=lambda node: isinstance(node, Consensus),
    )


def _mix(network: Network, consensus: Consensus, dtype: str) -> Any:
    weights = consensus.weights(network)
    coefficients = consensus.coefficients(network)
    links_a_node = weights.nnz / network.nodes
    if _DENSE_ADVANTAGE * len(coefficients) * links_a_node >= network.nodes:
        return DenseMix(jnp.asarray(consensus.matrix(network), dtype))
    exchange = neighbour_sum(weights, dtype)
    if (coefficients == (1, 0, 0)).all():
        return PowerMix(exchange, jnp.asarray(len(coefficients), jnp.int32))
    return RecurrenceMix(exchange, jnp.asarray(coefficients, dtype))


def neighbour_sum(weights: sparse.csr_array, dtype: str) -> Any:
    """rows -> W rows for a sparse W."""
    indptr = np.asarray(weights.indptr)
    degree = np.diff(indptr)
    receiver = np.repeat(np.arange(len(degree)), degree)
    if degree.max() > _MOST_SLOTS:
        return LinkSum(
            jnp.asarray(receiver, jnp.int32),
            jnp.asarray(weights.indices, jnp.int32),
            jnp.asarray(weights.data, dtype),
        )
    slot = np.arange(weights.nnz) - indptr[receiver]
    neighbour = np.zeros((len(degree), degree.max()), np.int32)
    weight = np.zeros(neighbour.shape)
    neighbour[receiver, slot] = weights.indices
    weight[receiver, slot] = weights.data
    return SlotSum(jnp.asarray(neighbour), jnp.asarray(weight, dtype))

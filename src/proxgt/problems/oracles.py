"""What the nodes held here can do by themselves: draw samples, differentiate, take a prox.

An oracle is the compiled code's view of a problem. Arrays carry a leading node axis, x has
shape (nodes, p), and nothing here crosses rows, so the same code serves any subset of the
nodes, on any engine. Oracles are pytrees: their data enter compiled code as arguments.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from proxgt.cores import usable_cores
from proxgt.params import ParamSpec
from proxgt.records import record, static
from proxgt.regularizers import Regularizer

Loss = Callable[[Any, Any], Any]

# A gradient first copies the drawn samples of its nodes side by side. A copy that fits a cache is
# not fetched twice, so where a step draws more, nodes go in groups, one group after another, of at
# least as many nodes as cores unless these are too large for the cache that cores share; then
# the samples of one node go in parts. Measured on two cores: a fifth faster at 2.5 MB a step,
# 1.9 times at 205, of 25 MB a node. Nor are the samples of all nodes ever copied whole.
_GROUP = 256 << 10  # bytes copied at once for every core
_PART = 8 << 20  # and at most


class Oracle(ABC):
    """A problem as a method sees it, row by row.

    A *draw* says which samples, not what is in them: indices, or keys of a sampler. It is
    small, so the loop makes the draws of many steps at once, which is far cheaper than
    one step at a time.
    """

    regularizer: Regularizer
    loss: Loss
    params: ParamSpec

    def at(self, t: jax.Array) -> Oracle:
        """The oracle as it answers at step t; only a stream depends on t."""
        del t
        return self

    def on(self, cores: int) -> Oracle:
        """The oracle as it computes best on so many cores."""
        del cores
        return self

    @abstractmethod
    def draw(self, keys: jax.Array, batch: int) -> Any:
        """`batch` i.i.d. samples at each node; keys has shape (nodes,).

        At most one draw a step: split one larger draw where two independent ones are needed.
        """

    @abstractmethod
    def samples(self, draw: Any) -> Any:
        """The samples themselves, a pytree with leaves of shape (nodes, batch, ...)."""

    def gradients(self, x: jax.Array, draw: Any) -> jax.Array:
        """(1/b) sum_s grad G_i(x_i, xi_{i,s}), shape (nodes, p)."""
        return jax.vmap(jax.grad(self._batch_loss))(x, self.samples(draw))

    def sample_gradients(self, x: jax.Array, draw: Any) -> jax.Array:
        """grad G_i(x_i, xi_{i,s}) one by one, shape (nodes, batch, p)."""
        one = jax.grad(lambda w, sample: self.loss(self.params.unravel(w), sample))
        return jax.vmap(jax.vmap(one, (None, 0)))(x, self.samples(draw))

    def full_gradients(self, x: jax.Array) -> jax.Array:
        """grad f_i(x_i), shape (nodes, p). Only an empirical risk has it."""
        raise NotImplementedError(f"{type(self).__name__} has no exact gradient")

    def prox(self, v: jax.Array, step: Any) -> jax.Array:
        """prox_{step h} of each row of v, shape (nodes, p)."""
        return jax.vmap(lambda row: self.regularizer.prox(row, step))(v)

    def _losses(self, w: jax.Array, samples: Any) -> jax.Array:
        return jax.vmap(self.loss, (None, 0))(self.params.unravel(w), samples)

    def _batch_loss(self, w: jax.Array, samples: Any) -> jax.Array:
        return jnp.mean(self._losses(w, samples))


@record
class FiniteOracle(Oracle):
    """Rows of an empirical risk, eq. (3): node i holds m_i samples.

    Samples lie one after the other in `data`, in blocks of `width` rows, each block owned by
    one node and only a node's last block padded. Equal m_i make one block per node and no
    padding; unequal m_i waste almost nothing.
    """

    data: Any  # leaves (blocks * width, ...)
    first: jax.Array  # (nodes,) where a node's samples begin
    count: jax.Array  # (nodes,) m_i
    owner: jax.Array  # (blocks,) row that owns a block
    weight: jax.Array  # (blocks, width) 1/m_i on samples, 0 on padding
    regularizer: Regularizer
    loss: Loss = static()
    params: ParamSpec = static()
    cores: int = static(default=len(usable_cores()))

    def on(self, cores: int) -> FiniteOracle:
        return dataclasses.replace(self, cores=cores)

    def draw(self, keys: jax.Array, batch: int) -> jax.Array:
        """Indices into each node's own samples, uniform with replacement: (nodes, batch)."""
        bits = jax.vmap(lambda key: jax.random.bits(key, (batch,), jnp.uint32))(keys)
        return scaled(bits, self.count[:, None])

    def samples(self, draw: jax.Array) -> Any:
        return self._rows(self.first[:, None] + draw)

    def gradients(self, x: jax.Array, draw: jax.Array) -> jax.Array:
        """As in `Oracle`, but one group of samples after another where they are many."""
        rows = self.first[:, None] + draw
        sample = jax.eval_shape(self._rows, rows[0, 0])
        bytes_ = sum(math.prod(a.shape) * a.dtype.itemsize for a in jax.tree.leaves(sample))
        size = max(1, bytes_ * rows.shape[1])  # of a node's draw
        parts = -(-size // _PART)
        if parts > 1:
            return jax.lax.map(lambda node: self._in_parts(node[0], node[1], parts), (x, rows))
        groups = -(-size * len(rows) // (_GROUP * self.cores))
        nodes = min(_PART // size, max(self.cores, -(-len(rows) // groups)))
        one = jax.grad(self._batch_loss)
        if nodes >= len(rows):
            return jax.vmap(one)(x, self._rows(rows))
        each = lambda node: one(node[0], self._rows(node[1]))
        return jax.lax.map(each, (x, rows), batch_size=nodes if nodes > 1 else None)

    def _in_parts(self, w: jax.Array, rows: jax.Array, parts: int) -> jax.Array:
        """The mean gradient at one node, (p,), over the samples `rows` one part after another."""
        total_loss = lambda w, part: jnp.sum(self._losses(w, self._rows(part)))
        gradient = jax.grad(total_loss)
        size = -(-len(rows) // parts)
        whole, left = divmod(len(rows), size)

        def add(k: jax.Array, total: jax.Array) -> jax.Array:
            return total + gradient(w, jax.lax.dynamic_slice_in_dim(rows, k * size, size))

        total = jax.lax.fori_loop(0, whole, add, jnp.zeros_like(w))
        if left:
            total = total + gradient(w, rows[whole * size :])
        return total / len(rows)

    def _rows(self, rows: jax.Array) -> Any:
        return jax.tree.map(lambda a: a.at[rows].get(mode="promise_in_bounds"), self.data)

    def full_gradients(self, x: jax.Array) -> jax.Array:
        one_block_each = self.weight.shape[0] == self.count.shape[0]
        at = x if one_block_each else x[self.owner]
        parts = jax.vmap(jax.grad(self._weighted_loss))(at, self._blocks(), self.weight)
        if one_block_each:
            return parts
        return jax.ops.segment_sum(
            parts, self.owner, num_segments=self.count.shape[0], indices_are_sorted=True
        )

    def risk(self, w: jax.Array) -> jax.Array:
        """Sum over the nodes held here of f_i(w), w of shape (p,)."""
        return self._weighted_loss(w, self.data, self.weight.reshape(-1))

    def risk_gradient(self, w: jax.Array) -> jax.Array:
        """Sum over the nodes held here of grad f_i(w), shape (p,)."""
        return jax.grad(self.risk)(w)

    def _blocks(self) -> Any:
        return jax.tree.map(lambda a: a.reshape(self.weight.shape + a.shape[1:]), self.data)

    def _weighted_loss(self, w: jax.Array, samples: Any, weight: jax.Array) -> jax.Array:
        return jnp.sum(weight * self._losses(w, samples))


def scaled(bits: jax.Array, m: jax.Array) -> jax.Array:
    """floor(bits * m / 2^32): random bits to indices 0..m-1, each with probability within
    2^-32 of 1/m.

    The high half of a 64-bit product, from 16-bit parts. `jax.random.randint` takes twice the
    bits and a division, together three times as long: a quarter of a step at batch 256.
    """
    m = m.astype(jnp.uint32)
    high, low = bits >> 16, bits & 0xFFFF
    m_high, m_low = m >> 16, m & 0xFFFF
    one, other = high * m_low, low * m_high
    carry = ((low * m_low >> 16) + (one & 0xFFFF) + (other & 0xFFFF)) >> 16
    return (high * m_high + (one >> 16) + (other >> 16) + carry).astype(jnp.int32)


@record
class SamplerOracle(Oracle):
    """Rows of a population risk, eq. (2), whose samples a traceable sampler makes."""

    node: jax.Array  # (nodes,) node ids
    regularizer: Regularizer
    loss: Loss = static()
    sampler: Callable[[jax.Array, Any], Any] = static()
    params: ParamSpec = static()

    def draw(self, keys: jax.Array, batch: int) -> jax.Array:
        """Keys of the samples: (nodes, batch)."""
        return jax.vmap(lambda key: jax.random.split(key, batch))(keys)

    def samples(self, draw: jax.Array) -> Any:
        return jax.vmap(jax.vmap(self.sampler, (0, None)))(draw, self.node)


@record
class StreamOracle(Oracle):
    """Rows of a population risk fed by host iterators, a chunk of steps at a time.

    `buffer` holds what the iterators gave for steps begin, begin+1, ...; `offsets[k]` is where
    the samples of step begin + k lie.
    """

    buffer: Any  # leaves (nodes, capacity, ...)
    offsets: jax.Array  # (steps in a chunk,)
    begin: jax.Array  # first step of the chunk
    cursor: jax.Array  # where this step's samples begin
    regularizer: Regularizer
    loss: Loss = static()
    params: ParamSpec = static()
    dtype: str = static()  # of the buffer's floats

    def at(self, t: jax.Array) -> StreamOracle:
        """The oracle with its cursor on the samples of step t."""
        return dataclasses.replace(self, cursor=self.offsets[t - self.begin])

    def draw(self, keys: jax.Array, batch: int) -> jax.Array:
        """The next `batch` places in the buffer: (nodes, batch)."""
        places = self.cursor + jnp.arange(batch, dtype=jnp.int32)
        return jnp.broadcast_to(places, (keys.shape[0], batch))

    def samples(self, draw: jax.Array) -> Any:
        node = jnp.arange(draw.shape[0])[:, None]
        return jax.tree.map(lambda a: a[node, draw], self.buffer)

"""The samples of all nodes, held once, in blocks.

A node's samples lie in consecutive blocks of `width` rows; only its last block is padded.
Where all nodes hold m samples, width = m and the user's own array is used as it is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from proxgt import checks

_FLOATS = {"float32": np.float32, "float64": np.float64}
_BLOCK_COST = 16  # what one more block costs, in rows: a gather of x and a segment sum


def cast(array: np.ndarray, dtype: str) -> np.ndarray:
    """`array` as a run holds it: floats in `dtype`, integers as int32, booleans as they are."""
    if array.dtype.kind == "f":
        return _as_float(array, dtype)
    return np.asarray(array, np.int32) if array.dtype.kind in "iu" else array


def _as_float(array: np.ndarray, dtype: str) -> np.ndarray:
    try:
        with np.errstate(over="raise"):
            return np.asarray(array, _FLOATS[dtype])
    except FloatingPointError:
        raise ValueError(
            f"data must fit into {dtype}, but their largest magnitude is {abs(array).max():.3g}: "
            "rescale them"
        ) from None


@dataclass(frozen=True, eq=False)
class NodeData:
    """Leaves of `rows` have shape (blocks * width, ...); see the module for the layout."""

    rows: Any
    first: np.ndarray  # (nodes,)
    count: np.ndarray  # (nodes,) m_i
    owner: np.ndarray  # (blocks,)
    weight: np.ndarray  # (blocks, width): 1/m_i on samples, 0 on padding

    @classmethod
    def of(cls, data: Any) -> NodeData:
        """From arrays (nodes, m, ...), or a list with one pytree of arrays per node."""
        return _ragged(data) if isinstance(data, list) else _stacked(data)

    @property
    def nodes(self) -> int:
        """n."""
        return len(self.count)

    @property
    def precision(self) -> str:
        """float32 where all floats are single (or half) precision, else float64."""
        floats = [a.dtype for a in jax.tree.leaves(self.rows) if a.dtype.kind == "f"]
        return "float64" if any(d.itemsize > 4 for d in floats) else "float32"

    @cached_property
    def digests(self) -> list[str]:
        """SHA-256 of each node's samples, for checkpoints."""
        return [_digest(self.node(i)) for i in range(self.nodes)]

    @property
    def digest(self) -> str:
        """SHA-256 of every sample."""
        return combined(self.digests)

    def restricted_to(self, nodes: np.ndarray) -> NodeData:
        """The samples of some nodes, in that order."""
        if np.array_equal(nodes, np.arange(self.nodes)):
            return self
        return _ragged([self.node(i) for i in nodes])

    def node(self, i: int) -> Any:
        """Node i's own samples: leaves (m_i, ...), views without padding."""
        rows = slice(self.first[i], self.first[i] + self.count[i])
        return jax.tree.map(lambda a: a[rows], self.rows)


def combined(digests: list[str]) -> str:
    """One digest of those of all nodes, whichever process found them."""
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _digest(samples: Any) -> str:
    sha = hashlib.sha256(str(jax.tree.structure(samples)).encode())
    for array in jax.tree.leaves(samples):
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(np.ascontiguousarray(array).data)
    return sha.hexdigest()


def _stacked(data: Any) -> NodeData:
    arrays = _finite_leaves(data, "data")
    if any(a.ndim < 2 for a in arrays):
        shapes = [a.shape for a in arrays]
        raise ValueError(
            f"data must have leaves of shape (nodes, m, ...), got shapes {shapes}; "
            "give a list of per-node pytrees where nodes hold different numbers of samples"
        )
    leads = {a.shape[:2] for a in arrays}
    if len(leads) > 1:
        raise ValueError(f"data leaves must agree on (nodes, m), got {sorted(leads)}")
    nodes, m = leads.pop()
    if nodes < 1 or m < 1:
        raise ValueError(f"data must hold at least one node and one sample, got {(nodes, m)}")
    rows = jax.tree.unflatten(
        jax.tree.structure(data), [a.reshape((nodes * m, *a.shape[2:])) for a in arrays]
    )
    return NodeData(
        rows,
        first=np.arange(nodes) * m,
        count=np.full(nodes, m),
        owner=np.arange(nodes),
        weight=np.full((nodes, m), 1.0 / m),
    )


def _ragged(data: list[Any]) -> NodeData:
    if not data:
        raise ValueError("data must hold at least one node, got an empty list")
    structure = jax.tree.structure(data[0])
    per_node = []
    for i, shard in enumerate(data):
        if jax.tree.structure(shard) != structure:
            raise ValueError(
                f"data[{i}] must have the structure of data[0], {structure}, "
                f"got {jax.tree.structure(shard)}"
            )
        per_node.append(_finite_leaves(shard, f"data[{i}]"))
    count = np.array([_shard_size(i, arrays) for i, arrays in enumerate(per_node)])
    width = _block_width(count)
    blocks = -(-count // width)
    first = np.concatenate([[0], np.cumsum(blocks)[:-1]]) * width
    rows = [_lay_out(leaf, blocks * width) for leaf in zip(*per_node, strict=True)]
    owner = np.repeat(np.arange(len(count)), blocks)
    place = np.arange(len(owner) * width).reshape(len(owner), width) - first[owner][:, None]
    weight = np.where(place < count[owner][:, None], 1.0 / count[owner][:, None], 0.0)
    return NodeData(jax.tree.unflatten(structure, rows), first, count, owner, weight)


def _lay_out(shards: tuple[np.ndarray, ...], lengths: np.ndarray) -> np.ndarray:
    """One leaf of all nodes after one another, padded by repeating each node's last sample.

    A repeated sample has a finite loss and gradient, which weight 0 then removes; zeros need
    not have.
    """
    tails = {a.shape[1:] for a in shards}
    if len(tails) > 1:
        raise ValueError(
            f"data must have samples of one shape at all nodes, got {sorted(tails)}; in a list "
            "each entry is a node: for arrays (nodes, m, ...) side by side give a tuple"
        )
    out = np.empty((int(lengths.sum()), *shards[0].shape[1:]), np.result_type(*shards))
    begin = 0
    for shard, length in zip(shards, lengths, strict=True):
        out[begin : begin + len(shard)] = shard
        out[begin + len(shard) : begin + length] = shard[-1]
        begin += length
    return out


def _block_width(count: np.ndarray) -> int:
    """The width that makes blocks cheapest: few of them, little padding."""
    candidates = {int(count.max())} | {2**k for k in range(4, 16) if 2**k < count.max()}

    def cost(width: int) -> tuple[int, int]:
        blocks = int((-(-count // width)).sum())
        return blocks * (width + _BLOCK_COST), -width

    return min(candidates, key=cost)


def _finite_leaves(tree: Any, name: str) -> list[np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    if not leaves:
        raise ValueError(f"{name} must hold at least one array, got {tree!r}")
    return [_held(f"{name}{jax.tree_util.keystr(path)}", leaf) for path, leaf in leaves]


def _held(name: str, leaf: Any) -> np.ndarray:
    """A finite array whose integers are as a run holds them, int32."""
    array = checks.finite_array(name, leaf)
    if array.dtype.kind in "iu" and array.size and not np.can_cast(array.dtype, np.int32):
        bounds = np.iinfo(np.int32)
        low, high = array.min(), array.max()
        if low < bounds.min or high > bounds.max:
            raise ValueError(
                f"{name} must hold integers of 32 bits, got {low} to {high}: give floats"
            )
    return array


def _shard_size(i: int, arrays: list[np.ndarray]) -> int:
    sizes = {a.shape[:1] for a in arrays}
    if sizes == {()} or () in sizes:
        raise ValueError(f"data[{i}] must have leaves of shape (m_i, ...), got a scalar")
    if len(sizes) > 1:
        raise ValueError(f"data[{i}] leaves must agree on m_i, got {sorted(sizes)}")
    (size,) = sizes.pop()
    if size < 1:
        raise ValueError(f"data[{i}] is empty: every node needs at least one sample")
    return size

"""The samples of all nodes put on one node so that F stays the same, for methods of one machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.problems.nodedata import NodeData
from proxgt.problems.oracles import Loss


@dataclass(frozen=True)
class WeightedLoss:
    """`loss` of a (sample, weight) pair: weight * loss(params, sample)."""

    loss: Loss

    def __call__(self, params: Any, sample: tuple[Any, Any]) -> Any:
        return sample[1] * self.loss(params, sample[0])


@dataclass(frozen=True)
class PooledSampler:
    """Samples of the mixture of all nodes' distributions: a node at random, then its sample."""

    sampler: Callable[[jax.Array, Any], Any]
    nodes: int

    def __call__(self, key: jax.Array, node: Any) -> Any:
        del node
        which, what = jax.random.split(key)
        return self.sampler(what, jax.random.randint(which, (), 0, self.nodes, jnp.int32))


def pooled(loss: Loss, data: NodeData) -> tuple[Loss, NodeData]:
    """A loss and one node's data whose plain mean is F = (1/n) sum_i mean of node i.

    Where all nodes hold m samples, the mean over all N = n m is F: nothing is copied. Otherwise
    sample s of node i carries the weight N / (n m_i), since a plain mean would count a node
    by its samples.
    """
    if (data.count == data.count[0]).all():
        return loss, _one_node(data.rows, int(data.count.sum()))
    rows = jax.tree.map(
        lambda *shards: np.concatenate(shards), *(data.node(i) for i in range(data.nodes))
    )
    total = int(data.count.sum())
    weight = np.repeat(total / (data.nodes * data.count), data.count)
    return WeightedLoss(loss), _one_node((rows, weight.astype(data.precision)), total)


def _one_node(rows: Any, total: int) -> NodeData:
    return NodeData(
        rows,
        first=np.zeros(1, int),
        count=np.array([total]),
        owner=np.zeros(1, int),
        weight=np.full((1, total), 1 / total),
    )

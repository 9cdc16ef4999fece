"""Host iterators as a population: one per node, read a chunk of steps at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks
from proxgt.params import ParamSpec
from proxgt.problems.nodedata import cast
from proxgt.problems.oracles import Loss, StreamOracle
from proxgt.regularizers import Regularizer


class Stream:
    """`factory(node)` returns an iterator over node's samples, each a pytree of arrays.

    A run reads each iterator from its beginning and in order, so a factory that is
    deterministic makes the run so; a resumed run skips what was used. The samples by which
    the metric is estimated are the first ones and are not used for training.
    """

    def __init__(self, factory: Callable[[int], Iterator[Any]]) -> None:
        if not callable(factory):
            raise TypeError(f"Stream needs a function node -> iterator, got {factory!r}")
        self.factory = factory
        self._iterators: list[Iterator[Any]] = []
        self._used = 0
        self._skip = 0

    def head(self, nodes: np.ndarray, size: int) -> list[Any]:
        """The first `size` samples of each node, stacked; kept apart from training."""
        self._skip = size
        return [self._take(i, self._started(i), size) for i in map(int, nodes)]

    def oracle(
        self, nodes: np.ndarray, regularizer: Regularizer, loss: Loss, spec: ParamSpec, dtype: str
    ) -> StreamOracle:
        """An oracle with nothing in its buffer yet; `feed` fills it."""
        self._nodes, self._iterators = nodes.tolist(), []
        nothing = jnp.zeros((), jnp.int32)
        return StreamOracle((), nothing[None], nothing, nothing, regularizer, loss, spec, dtype)

    def feed(self, oracle: Any, samples_before: Callable[[int], int], begin: int, end: int) -> Any:
        """Fill the buffer with the samples of steps begin to end - 1.

        The buffer's capacity is a power of two, so that chunks that use about the same
        number of samples share one compiled program.
        """
        places = np.array([samples_before(t) for t in range(begin, end + 1)])
        need = int(places[-1] - places[0])
        self._seek(int(places[0]))
        shards = [
            self._take(i, it, need) for i, it in zip(self._nodes, self._iterators, strict=True)
        ]
        self._used += need
        capacity = 1 << max(need - 1, 0).bit_length()
        buffer = jax.tree.map(lambda *leaf: _padded(leaf, capacity, oracle.dtype), *shards)
        return StreamOracle(
            buffer,
            jnp.asarray(places[:-1] - places[0], jnp.int32),
            jnp.asarray(begin, jnp.int32),
            jnp.zeros((), jnp.int32),
            oracle.regularizer,
            oracle.loss,
            oracle.params,
            oracle.dtype,
        )

    def _seek(self, used: int) -> None:
        """Stand where `used` training samples have been read, from the start if need be."""
        if not self._iterators or self._used > used:
            self._iterators = [self._started(i) for i in self._nodes]
            self._used = -self._skip
        for i, iterator in zip(self._nodes, self._iterators, strict=True):
            skipped = sum(1 for _ in itertools.islice(iterator, used - self._used))
            if skipped < used - self._used:
                raise _exhausted(i, skipped)
        self._used = used

    def _started(self, node: int) -> Iterator[Any]:
        try:
            return iter(self.factory(node))
        except TypeError as error:
            raise TypeError(
                f"Stream needs a function node -> iterator, but for node {node}: {error}"
            ) from error

    def _take(self, node: int, iterator: Iterator[Any], size: int) -> Any:
        samples = list(itertools.islice(iterator, size))
        if len(samples) < size:
            raise _exhausted(node, len(samples))
        try:
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *samples)
        except ValueError as error:
            raise ValueError(
                f"the stream of node {node} must give samples of one structure and shape: {error}"
            ) from error
        for leaf in jax.tree.leaves(stacked):
            checks.finite_array(f"a sample of the stream of node {node}", leaf)
        return stacked


def _exhausted(node: int, got: int) -> ValueError:
    return ValueError(
        f"the stream of node {node} ended after {got} more samples: "
        "give an endless iterator, or fewer steps or samples a step"
    )


def _padded(shards: tuple[np.ndarray, ...], capacity: int, dtype: str) -> jax.Array:
    stacked = np.stack(shards)
    out = np.zeros((len(shards), capacity, *stacked.shape[2:]), stacked.dtype)
    out[:, : stacked.shape[1]] = stacked
    return jnp.asarray(cast(out, dtype))

"""Data on disk, one file a node, so that each process loads only what it holds.

    shards/shard-0000.npz   shards/shard-0001.npz   ...

A shard is an .npz file of arrays (m_i, ...): named, a sample is a dict of them by name;
saved without names, a tuple of them, or a single array. `write_shards` is `proxgt shard`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import jax
import numpy as np

from proxgt import checks
from proxgt.problems.nodedata import NodeData

_NAME = re.compile(r"shard-(\d+)\.npz")


class Shards:
    """The samples of all nodes, loaded node by node when a process needs them.

    Args:
        source: a directory of shard files; or a function node -> pytree of arrays (m_i, ...).
        nodes: n; needed for a function, and checked against the files of a directory.
    """

    def __init__(self, source: str | Path | Callable[[int], Any], nodes: int | None = None) -> None:
        self.source = source if callable(source) else Path(source)
        if nodes is not None:
            checks.positive_int("nodes", nodes)
        if isinstance(self.source, Path):
            nodes = _count(self.source, nodes)
        elif nodes is None:
            raise ValueError("nodes must be given where shards come from a function")
        self.nodes: int = nodes
        self._prepare: Callable[[int, Any], Any] | None = None

    def __repr__(self) -> str:
        return f"Shards({str(self.source)!r}, nodes={self.nodes})"

    def restricted_to(self, nodes: np.ndarray) -> NodeData:
        """The samples of some nodes, in that order; no others are loaded."""
        loaded = [self.load(int(node)) for node in nodes]
        first, at = layout(loaded[0]), self.named(int(nodes[0]))
        for node, shard in zip(nodes, loaded, strict=True):
            if layout(shard) != first:
                raise ValueError(
                    f"shards must hold samples of one shape and dtype, but {at} holds {first} "
                    f"and {self.named(int(node))} holds {layout(shard)}"
                )
        try:
            return NodeData.of(loaded)
        except ValueError:
            for node, shard in zip(nodes, loaded, strict=True):
                self._check(int(node), shard)
            raise

    def _check(self, node: int, shard: Any) -> None:
        try:
            NodeData.of([shard])
        except ValueError as error:
            raise ValueError(f"{self.named(node)}: {error}") from None

    def load(self, node: int) -> Any:
        """The samples of one node."""
        if isinstance(self.source, Path):
            samples = _read(shard_path(self.source, node))
        else:
            samples = self._called(self.source, node)
        return samples if self._prepare is None else self._prepare(node, samples)

    @staticmethod
    def _called(source: Callable[[int], Any], node: int) -> Any:
        try:
            return source(node)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"the samples of node {node} could not be loaded: {reason}") from error

    def prepared_by(self, function: Callable[[int, Any], Any]) -> Shards:
        """These, with `function(node, samples)` in place of a node's samples."""
        other = copy.copy(self)
        other._prepare = function
        return other

    def named(self, node: int) -> str:
        """A node's shard, for messages."""
        if isinstance(self.source, Path):
            return shard_path(self.source, node).name
        return f"node {node}"


def shard_path(directory: Path, node: int) -> Path:
    """Where node's shard is."""
    return directory / f"shard-{node:04d}.npz"


def write_shards(data: Any, directory: str | Path) -> list[Path]:
    """Write one shard a node, and return the files.

    `data` is a problem's `data`, or as for `EmpiricalRisk`: a pytree of arrays (nodes, m, ...),
    or a list with one pytree a node. The pytree is an array, a tuple of arrays or a dict of them.
    """
    held = data if isinstance(data, NodeData) else NodeData.of(data)
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    stale = _numbered(directory)
    if stale:
        raise ValueError(f"{directory} already holds {len(stale)} shards: choose another directory")
    paths = [shard_path(directory, node) for node in range(held.nodes)]
    for node, path in enumerate(paths):
        positional, named = _arrays(held.node(node))
        np.savez(path, *positional, **named)  # pyright: ignore[reportArgumentType]
    return paths


def _arrays(samples: Any) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]:
    if isinstance(samples, np.ndarray):
        return (samples,), {}
    if isinstance(samples, dict) and all(isinstance(a, np.ndarray) for a in samples.values()):
        return (), samples
    if isinstance(samples, tuple) and all(isinstance(a, np.ndarray) for a in samples):
        return samples, {}
    raise ValueError(
        "shards hold an array, a tuple of arrays or a dict of arrays, got samples of structure "
        f"{jax.tree.structure(samples)}"
    )


def _read(path: Path) -> Any:
    try:
        if not is_zipfile(path):  # which NumPy would take for a pickle, and say so
            raise BadZipFile("not an .npz file")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (BadZipFile, EOFError, ValueError, OSError) as error:
        raise ValueError(f"{path} could not be read as a shard: {error}") from None
    if not arrays:
        raise ValueError(f"{path} could not be read as a shard: it holds no arrays")
    return as_saved(arrays)


def as_saved(arrays: dict[str, np.ndarray]) -> Any:
    """The arrays of an .npz file: a dict; or, saved without names, a tuple or a single array."""
    if list(arrays) != [f"arr_{k}" for k in range(len(arrays))]:
        return arrays
    return arrays["arr_0"] if len(arrays) == 1 else tuple(arrays.values())


def _numbered(directory: Path) -> dict[int, Path]:
    found = ((_NAME.fullmatch(path.name), path) for path in sorted(directory.iterdir()))
    return {int(match[1]): path for match, path in found if match}


def _count(directory: Path, nodes: int | None) -> int:
    """How many shards there are: one for each of nodes 0, 1, ..., and no others."""
    if not directory.is_dir():
        raise ValueError(f"no such directory of shards: {directory}")
    found = _numbered(directory)
    if not found:
        raise ValueError(f"{directory} holds no shards: proxgt shard writes shard-0000.npz, ...")
    n = max(found) + 1 if nodes is None else nodes
    missing = [node for node in range(n) if not shard_path(directory, node).exists()]
    extra = [path.name for node, path in found.items() if node >= n]
    if missing:
        raise ValueError(
            f"{directory} must hold one shard for each of {n} nodes, but "
            f"{shard_path(directory, missing[0]).name} is missing"
            + (f", as are {len(missing) - 1} more" if len(missing) > 1 else "")
        )
    if extra:
        raise ValueError(
            f"{directory} must hold one shard for each of {n} nodes, but {extra[0]} is there "
            f"too{f', as are {len(extra) - 1} more' if len(extra) > 1 else ''}"
        )
    return n


def layout(samples: Any) -> str:
    """The shape and dtype of one sample, as text."""
    leaves = jax.tree_util.tree_leaves_with_path(samples)
    described = (
        f"{jax.tree_util.keystr(path)}: {np.asarray(a).dtype}{list(np.shape(a)[1:])}"
        for path, a in leaves
    )
    return "{" + ", ".join(described) + "}"

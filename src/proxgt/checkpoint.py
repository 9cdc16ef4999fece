"""Checkpoints: atomic, versioned, self-describing, without pickle.

A directory holds `manifest.json`, the state files it names, one for each process of the run with
the rows it holds, and `history.csv`. The state is written first, the manifest replaced last,
each by write, fsync and rename, so that a kill at any instant leaves the old checkpoint or the
new one. Only then is the old state removed. Rows carry their nodes' ids: a run continues with
any number of processes, which must share the directory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks
from proxgt._version import __version__
from proxgt.engines.base import Carry, Engine
from proxgt.fingerprint import difference
from proxgt.history import History

FORMAT = 1
_NODES = "nodes"


class Saved(NamedTuple):
    """What a checkpoint holds."""

    step: int
    arrays: dict[str, np.ndarray]  # with the rows of the nodes held here
    history: History


class Checkpoint:
    """One run's checkpoint in a directory."""

    def __init__(self, directory: str | Path, identity: Mapping[str, str], engine: Engine) -> None:
        self.directory = checks.directory("checkpoint", directory)
        self._identity = dict(identity)
        self._engine = engine
        self._recorded: int | None = None  # rows of history.csv that this process wrote

    @property
    def exists(self) -> bool:
        """Whether the directory holds a checkpoint."""
        return (self.directory / "manifest.json").exists()

    def save(self, step: int, arrays: Mapping[str, np.ndarray], history: History) -> None:
        """Replace the checkpoint by this one."""
        ranks = range(self._engine.ranks)
        stem = f"state-{step:012d}"
        names = [f"{stem}-{r:04d}.npz" if len(ranks) > 1 else f"{stem}.npz" for r in ranks]
        with _replacing(self.directory / names[self._engine.rank]) as file:
            rows = {_NODES: self._engine.nodes, **arrays}
            np.savez(file, **rows)  # pyright: ignore[reportArgumentType]
        self._engine.barrier()
        if self._engine.rank == 0:
            self._seal(step, names, history)

    def _seal(self, step: int, names: list[str], history: History) -> None:
        """Make the state files that now are there the checkpoint."""
        manifest = {
            "format": FORMAT,
            "proxgt": __version__,
            "step": step,
            "state": names,
            "identity": self._identity,
            "records": len(history),
        }
        self._record(history)
        with _replacing(self.directory / "manifest.json") as file:
            file.write(json.dumps(manifest, indent=1).encode())
        for old in self.directory.glob("state-*.npz"):
            # Other processes may already be writing a later state.
            if old.name not in names and old.name < f"state-{step + 1:012d}":
                old.unlink(missing_ok=True)

    def _record(self, history: History) -> None:
        """Bring `history.csv` up to date by its new rows, so that a record costs the same
        however many there are. Rows past the manifest's count are of a kill before it."""
        path = self.directory / "history.csv"
        if self._recorded is None:
            with _replacing(path) as file:
                file.write(history.to_csv().encode())
        else:
            with open(path, "ab") as file:
                file.write(history.to_csv(begin=self._recorded).encode())
                file.flush()
                os.fsync(file.fileno())
        self._recorded = len(history)

    def load(self) -> Saved:
        """What is there, or a ValueError that says why it cannot be continued."""
        manifest = self._manifest()
        changed = difference(manifest["identity"], self._identity)
        if changed:
            raise ValueError(
                f"the checkpoint in {self.directory} is of another run: {changed}; "
                "restore that, or choose another checkpoint directory"
            )
        arrays = self._rows([self.directory / name for name in manifest["state"]])
        history = History.load(self.directory / "history.csv", manifest["records"])
        return Saved(manifest["step"], arrays, history)

    def _rows(self, paths: list[Path]) -> dict[str, np.ndarray]:
        """The arrays of all state files, of those with rows only the rows of nodes held here."""
        parts: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        for path in paths:
            with np.load(path, allow_pickle=False) as file:
                nodes = file[_NODES]
                if np.isin(nodes, self._engine.nodes).any():
                    parts.append((nodes, {name: file[name] for name in file.files}))
        out: dict[str, np.ndarray] = {}
        for name, array in parts[0][1].items():
            out[name] = array
            if has_rows(name, array):
                pieces = [(nodes, arrays[name]) for nodes, arrays in parts]
                out[name] = _assembled(pieces, self._engine.nodes)
        return out

    def _manifest(self) -> dict[str, Any]:
        path = self.directory / "manifest.json"
        try:
            manifest = json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(f"{path} is not a checkpoint manifest: {error}") from None
        if not isinstance(manifest, dict):
            raise ValueError(f"{path} is not a checkpoint manifest: it holds no JSON object")
        if manifest.get("format") != FORMAT:
            raise ValueError(
                f"checkpoint format {manifest.get('format')!r} in {path} was written by proxgt "
                f"{manifest.get('proxgt')}; this proxgt {__version__} reads format {FORMAT}"
            )
        return manifest


def arrays_of(carry: Carry) -> dict[str, np.ndarray]:
    """The carry's arrays under their paths, such as `.state.estimate.v`."""
    leaves = jax.tree_util.tree_leaves_with_path(carry)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def filled(carry: Carry, arrays: dict[str, np.ndarray]) -> Carry:
    """The carry with its arrays replaced by saved ones."""
    leaves, treedef = jax.tree_util.tree_flatten_with_path(carry)
    saved = [fitted(arrays[jax.tree_util.keystr(path)], leaf.shape) for path, leaf in leaves]
    return jax.tree_util.tree_unflatten(treedef, [jnp.asarray(array) for array in saved])


def has_rows(name: str, array: np.ndarray) -> bool:
    """Whether an array of a carry has a row for each node: all of a state but its scalars."""
    return name.startswith(".state") and array.ndim > 0


def fitted(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`array` cut or padded with zeros to `shape`.

    SAGA's table is as wide as the largest m_i among the nodes held together; no entry past a
    node's own m_i is ever read.
    """
    if array.shape == shape:
        return array
    out = np.zeros(shape, array.dtype)
    common = tuple(slice(min(a, b)) for a, b in zip(array.shape, shape, strict=True))
    out[common] = array[common]
    return out


def _assembled(pieces: list[tuple[np.ndarray, np.ndarray]], nodes: np.ndarray) -> np.ndarray:
    widest = np.max([rows.shape[1:] for _, rows in pieces], axis=0).astype(int)
    place = {int(node): k for k, node in enumerate(nodes)}
    out = np.zeros((len(nodes), *widest), pieces[0][1].dtype)
    for held, rows in pieces:
        rows = fitted(rows, (len(rows), *widest))
        for node, row in zip(held, rows, strict=True):
            if int(node) in place:
                out[place[int(node)]] = row
    return out


class _replacing:
    """A binary file that takes the place of `path` at exit, whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._scratch = path.with_name(path.name + ".tmp")

    def __enter__(self) -> Any:
        self._file = open(self._scratch, "wb")
        return self._file

    def __exit__(self, kind: Any, *_: Any) -> None:
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
        if kind is None:
            os.replace(self._scratch, self._path)
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

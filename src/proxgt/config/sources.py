"""Problems and networks from files and from functions of the user's own, for configs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import networkx as nx
import numpy as np
from scipy.sparse import load_npz

import proxgt as pg
from proxgt import checks
from proxgt import data as datasets
from proxgt.networks import links
from proxgt.problems.shards import Shards, as_saved


def empirical(
    loss: Callable[..., Any],
    data: Path | str,
    nodes: int,
    split: str | None = None,
    seed: int = 0,
    x0: Path | list | dict | None = None,
    shape: int | list | dict | None = None,
    smoothness: float | None = None,
    regularizer: Any = pg.Zero(),
) -> pg.EmpiricalRisk:
    """A loss of your own (`module:function`) or a built-in one, on data from an .npz file.

    Args:
        loss: of (params, sample). A sample is a dict of the file's arrays by name; of arrays
            saved without names, a tuple; of one such array, an array.
        data: an .npz file of arrays (nodes, m, ...). If it has an array called `node`, the
            others are (N, ...) and `node[k]` says who holds sample k. Or a data set's name.
        split: the arrays are (N, ...); spread them over nodes: "iid", "contiguous", "label"
            or "dirichlet". For a data set by default "iid".
        seed: of the split.
        x0: the start: numbers, in a table for named params; or an .npy or .npz file of them.
        shape: in place of x0, zeros of this shape; a table of shapes for named params.
        smoothness: L, if known.
    """
    named = not isinstance(data, Path)
    if named:
        checks.one_of("data", data, datasets.DATASETS)
    samples: Any = datasets.load(data) if named else read_arrays(data)
    if isinstance(samples, dict) and "node" in samples:
        samples = _by_node(samples, nodes)
    elif named or split is not None:
        samples = datasets.shard(samples, nodes, split or "iid", seed=seed)
    return pg.EmpiricalRisk(loss, samples, regularizer, x0=_start(x0, shape), smoothness=smoothness)


def sharded(
    loss: Callable[..., Any],
    shards: Path,
    nodes: int,
    x0: Path | list | dict | None = None,
    shape: int | list | dict | None = None,
    smoothness: float | None = None,
    regularizer: Any = pg.Zero(),
) -> pg.EmpiricalRisk:
    """`empirical` on a directory of shards, of which a process loads its own nodes' alone."""
    start = _start(x0, shape)
    held = Shards(shards, nodes)
    return pg.EmpiricalRisk(loss, held, regularizer, x0=start, smoothness=smoothness)


def population(
    loss: Callable[..., Any],
    sampler: Callable[..., Any],
    nodes: int,
    x0: Path | list | dict | None = None,
    shape: int | list | dict | None = None,
    smoothness: float | None = None,
    gradient: Callable[..., Any] | None = None,
    objective: Callable[..., Any] | None = None,
    evaluation: int = 1000,
    regularizer: Any = pg.Zero(),
) -> pg.PopulationRisk:
    """A loss on samples made on demand: see `PopulationRisk`, and `empirical` for x0 and shape.

    `loss`, `sampler`, `gradient` and `objective` are each a `module:function`; `sampler` may
    be a `module:stream` too.
    """
    return pg.PopulationRisk(
        loss,
        sampler,
        nodes,
        regularizer,
        x0=_start(x0, shape),
        smoothness=smoothness,
        gradient=gradient,
        objective=objective,
        evaluation=evaluation,
    )


def network_file(
    file: Path, weights: str | None = None, directed: bool | None = None
) -> pg.Network:
    """A graph from a file: .graphml, .gml, or a list of edges `u v`, one a line.

    Nodes are numbered in the order of their names. A list of edges is undirected unless
    `directed` is true; the other formats say themselves, unless `directed` overrules them.
    """
    readers = {".graphml": nx.read_graphml, ".gml": nx.read_gml}
    try:
        if file.suffix in readers:
            found = readers[file.suffix](file)
        else:
            found = nx.read_edgelist(file, create_using=nx.DiGraph, data=False)
            directed = bool(directed)
    except (nx.NetworkXError, SyntaxError, UnicodeDecodeError) as error:
        raise ValueError(f"file {file} could not be read as a graph: {error}") from error
    graph = nx.DiGraph() if (found.is_directed() if directed is None else directed) else nx.Graph()
    graph.add_nodes_from(sorted(found.nodes, key=_natural))
    graph.add_edges_from(found.edges())
    return pg.Network(graph, weights)


def network_weights(W: Path) -> pg.Network:
    """A doubly stochastic W: a .npy, or an .npz of one array or of SciPy's `save_npz`."""
    held = read_arrays(W)
    if isinstance(held, dict) and "format" in held:
        held = load_npz(W)
    elif isinstance(held, dict):
        if len(held) != 1:
            raise ValueError(f"W must be a file of one array, got {', '.join(held)}")
        (held,) = held.values()
    return pg.Network.from_weights(held)


def unreliable(
    network: pg.Network, link_failure: float, outages: Sequence[Mapping[str, Any]]
) -> pg.Network:
    """`links.unreliable` on tables: `outages = [{ node = 2, begin = 100, end = 200 }]`."""
    if not link_failure and not outages:
        return network
    keys = ("node", "begin", "end")
    for outage in outages:
        if set(outage) != set(keys):
            raise ValueError(f"outages must each have {', '.join(keys)}, got {dict(outage)}")
    return links.unreliable(network, link_failure, [links.Outage(**one) for one in outages])


def read_arrays(file: Path) -> Any:
    """An array; or the arrays of an .npz file, as `as_saved` has them."""
    try:
        loaded = np.load(file, allow_pickle=False)
    except (BadZipFile, EOFError, ValueError) as error:
        raise ValueError(f"{file} could not be read as an .npy or .npz file of numbers") from error
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        return as_saved({name: loaded[name] for name in loaded.files})


def _by_node(arrays: dict[str, np.ndarray], nodes: int) -> list[dict[str, np.ndarray]]:
    owner = arrays["node"]
    rest = {name: array for name, array in arrays.items() if name != "node"}
    if owner.ndim != 1 or any(len(array) != len(owner) for array in rest.values()):
        raise ValueError("data must hold as many samples as its array `node` has entries")
    return [{name: a[owner == i] for name, a in rest.items()} for i in range(nodes)]


def _start(x0: Any, shape: Any) -> Any:
    if (x0 is None) == (shape is None):
        raise ValueError("give either x0 (a file, or numbers) or shape (for a start at zero)")
    if isinstance(x0, Path):
        return read_arrays(x0)
    if x0 is None:
        return _leaves(_zeros, shape)
    return _leaves(lambda numbers: checks.finite_array("x0", numbers).astype(np.float64), x0)


def _zeros(shape: Any) -> np.ndarray:
    sizes = shape if isinstance(shape, list) else [shape]
    return np.zeros([checks.positive_int("shape", size, least=0) for size in sizes])


def _leaves(make: Callable[[Any], Any], tree: Any) -> Any:
    """`make` of every leaf of nested tables."""
    if isinstance(tree, dict):
        return {name: _leaves(make, part) for name, part in tree.items()}
    return make(tree)


def _natural(name: Any) -> tuple[int, Any]:
    """Numbers in their order, before names in theirs."""
    text = str(name)
    return (0, int(text)) if text.isdigit() else (1, text)

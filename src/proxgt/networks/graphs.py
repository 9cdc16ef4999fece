"""Graphs as sparse links: read, checked for connection, drawn, and the named ones.

Links are a sparse 0/1 matrix without a diagonal. Entry (i, r) is 1 when node r sends to
node i, as in W, so a row lists what a node hears.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph
from scipy.spatial import KDTree

from proxgt import checks
from proxgt.checks import finite_array, positive_int, positive_number

DRAWS = 100  # random graphs drawn in search of a connected one

Labels = tuple[Hashable, ...]


def order(A: Any) -> int:
    """How many nodes a square matrix is over."""
    return np.shape(A)[0]


# Read and checked ------------------------------------------------------------------------


def read_graph(graph: Any) -> tuple[sp.csr_array, Labels]:
    """Links and labels of whatever the user calls a graph."""
    if not isinstance(graph, nx.Graph):
        links = without_diagonal(read_square("graph", graph))
        return links, tuple(range(order(links)))
    labels = tuple(graph.nodes)
    if not labels:
        raise ValueError("graph must have at least one node, got an empty graph")
    number = {label: k for k, label in enumerate(labels)}
    ends = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64)
    senders, receivers = ends.reshape(-1, 2).T
    return make_links(len(labels), senders, receivers, mutual=not graph.is_directed()), labels


def read_square(name: str, value: Any) -> sp.csr_array:
    """A square array of finite numbers, with at least one row, as sparse float64."""
    if sp.issparse(value):
        finite_array(f"{name}.data", value.tocsr().data)
    elif isinstance(value, (np.ndarray, list, tuple)) or hasattr(value, "__array__"):
        value = finite_array(name, value)
    else:
        raise TypeError(
            f"{name} must be a square array, dense or sparse, got {checks.shortened(value)}; "
            "Network(graph) takes networkx graphs too, and Network.ring(n) makes a ring"
        )
    shape = np.shape(value)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ValueError(f"{name} must be a square array with a row a node, got shape {shape}")
    matrix = sp.csr_array(value, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def without_diagonal(A: Any) -> sp.csr_array:
    """The off-diagonal pattern of A as a sparse 0/1 matrix."""
    A = sp.coo_array(A)
    off = (A.row != A.col) & (A.data != 0)
    links = sp.csr_array((np.ones(off.sum()), (A.row[off], A.col[off])), shape=A.shape)
    links.data[:] = 1.0  # links given twice were added up
    return links


def is_directed(links: sp.csr_array) -> bool:
    """Whether some link has no reverse."""
    return (links != links.T).nnz > 0


def require_connected(links: sp.csr_array, labels: Labels) -> None:
    """Refuse a graph in which some node cannot reach another, naming the two."""
    for sends, forward in ((links.T.tocsr(), True), (links, False)):
        reached = csgraph.breadth_first_order(sends, 0, return_predecessors=False)
        if len(reached) == len(labels):
            continue
        missing = int(np.setdiff1d(np.arange(len(labels)), reached)[0])
        start, end = (labels[k] for k in ((0, missing) if forward else (missing, 0)))
        if is_directed(links):
            raise ValueError(
                "graph must be strongly connected (Assumption 2), but there is no directed "
                f"path from {start!r} to {end!r}: add links, or keep the largest strongly "
                "connected component"
            )
        raise ValueError(
            "graph must be connected (Assumption 2), but there is no path between "
            f"{start!r} and {end!r}: add links, or keep the largest connected component"
        )


# Made ------------------------------------------------------------------------------------


def make_links(n: int, senders: Any, receivers: Any, *, mutual: bool = False) -> sp.csr_array:
    """Links from pairs of node numbers, once each and without loops."""
    senders, receivers = np.asarray(senders), np.asarray(receivers)
    if mutual:
        senders, receivers = np.append(senders, receivers), np.append(receivers, senders)
    ones = np.ones(len(senders))
    return without_diagonal(sp.coo_array((ones, (receivers, senders)), shape=(n, n)))


def path(n: int) -> sp.csr_array:
    """Node i and node i + 1."""
    first = np.arange(positive_int("n", n) - 1)
    return make_links(n, first, first + 1, mutual=True)


def star(n: int) -> sp.csr_array:
    """Node 0 and every other node."""
    leaves = np.arange(1, positive_int("n", n))
    return make_links(n, np.zeros_like(leaves), leaves, mutual=True)


def complete(n: int) -> sp.csr_array:
    """All pairs."""
    return without_diagonal(np.ones((positive_int("n", n), n)))


def circulant(n: int, offsets: Any, *, mutual: bool = False) -> sp.csr_array:
    """Node i sends to node i + o mod n for every offset o."""
    node, offsets = np.arange(positive_int("n", n)), np.asarray(offsets, dtype=np.int64)
    receivers = (node[:, None] + offsets).ravel() % n
    return make_links(n, np.repeat(node, len(offsets)), receivers, mutual=mutual)


def powers_of_two(n: int) -> np.ndarray:
    """1, 2, 4, ... below n."""
    return 2 ** np.arange((positive_int("n", n) - 1).bit_length())


def lattice(rows: int, cols: int, *, periodic: bool = False) -> sp.csr_array:
    """Nodes numbered row by row, each with the next in its row and in its column."""
    at = np.arange(rows * cols).reshape(rows, cols)
    right, below = at[:, :-1], at[:-1]
    first, second = np.append(right, below), np.append(at[:, 1:], at[1:])
    if periodic:
        first = np.concatenate([first, at[:, -1], at[-1]])
        second = np.concatenate([second, at[:, 0], at[0]])
    return make_links(at.size, first, second, mutual=True)


def rectangle(name: str, rows: int, cols: int | None) -> tuple[int, int]:
    """The sides of a lattice; a single number is its nodes, and it is square."""
    if cols is not None:
        return positive_int("rows", rows), positive_int("cols", cols)
    side = math.isqrt(positive_int("n", rows))
    if side**2 != rows:
        raise ValueError(
            f"{name}(n) needs a square number of nodes, got {rows}: use {side**2} or "
            f"{(side + 1) ** 2}, or {name}(rows, cols)"
        )
    return side, side


def hypercube(n: int) -> sp.csr_array:
    """Nodes whose binary numbers differ in one bit."""
    bits = positive_int("n", n).bit_length() - 1
    if n != 2**bits:
        raise ValueError(
            f"n must be a power of two for a hypercube, got {n}: use {2**bits} or {2 ** (bits + 1)}"
        )
    node, flip = np.arange(n), 2 ** np.arange(bits)
    return make_links(n, np.repeat(node, bits), (node[:, None] ^ flip).ravel())


# Drawn -----------------------------------------------------------------------------------


def erdos_renyi(n: int, p: float, seed: int) -> sp.csr_array:
    """Each pair linked with probability p, drawn anew until connected."""
    total = positive_int("n", n) * (n - 1) // 2
    if positive_number("p", p) > 1:
        raise ValueError(f"p is a probability and must be <= 1, got {p!r}")

    def draw(rng: np.random.Generator) -> sp.csr_array:
        # Numbers of the linked pairs, by the geometric gaps between them; the size is ten
        # standard deviations above the mean, so that the gaps reach past the last pair.
        size = int(total * p + 10 * math.sqrt(total * p)) + 20
        pair = np.cumsum(np.minimum(rng.geometric(p, size), total + 1)) - 1
        pair = pair[pair < total]
        # Pair number k is (i, j), j < i, with k = i (i - 1) / 2 + j.
        i = ((1 + np.sqrt(1 + 8 * pair)) // 2).astype(np.int64)
        return make_links(n, i, pair - i * (i - 1) // 2, mutual=True)

    what = f"erdos_renyi(n={n}, p={p}, seed={seed})"
    advice = f"p must be well above log(n)/n = {math.log(n) / n:.2g}"
    return _connected_draw(draw, seed, what, advice)


def geometric(n: int, r: float, seed: int) -> sp.csr_array:
    """Uniform points of the unit square linked within distance r, until connected."""
    positive_int("n", n)
    positive_number("r", r)

    def draw(rng: np.random.Generator) -> sp.csr_array:
        pairs = KDTree(rng.random((n, 2))).query_pairs(r, output_type="ndarray")
        return make_links(n, pairs[:, 0], pairs[:, 1], mutual=True)

    what = f"geometric(n={n}, r={r}, seed={seed})"
    enough = math.sqrt(math.log(n) / (math.pi * n))
    advice = f"r must be well above sqrt(log(n)/(pi n)) = {enough:.2g}"
    return _connected_draw(draw, seed, what, advice)


def _connected_draw(
    draw: Callable[[np.random.Generator], sp.csr_array], seed: int, what: str, advice: str
) -> sp.csr_array:
    rng = np.random.default_rng(checks.seed("seed", seed))
    for _ in range(DRAWS):
        links = draw(rng)
        if csgraph.connected_components(links, directed=False, return_labels=False) == 1:
            return links
    raise ValueError(f"{what} drew {DRAWS} graphs, none of them connected: {advice}")

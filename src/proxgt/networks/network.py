"""Networks of nodes: who hears whom, with which weights, and how fast that averages.

Everything here is host-side NumPy and SciPy. W is kept sparse; nothing of size n x n is
formed unless asked for, so tens of thousands of nodes are fine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

from proxgt.checks import one_of, positive_int
from proxgt.networks import graphs
from proxgt.networks import weights as weighting
from proxgt.networks.links import Links, unreliable

STOCHASTIC = 1e-8  # how far the row and column sums of a given W may be from one
SYMMETRIC = 1e-12  # how far apart w_ij and w_ji may be in a symmetric W


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Network:
    """A strongly connected network with a doubly stochastic W (Assumption 2).

    `graph` is a networkx graph or a square adjacency array, dense or sparse. In networkx
    an edge u -> v means that u sends to v; in an array a nonzero entry (i, r) means that
    node r sends to node i, as in W. Only the pattern counts: edge weights are ignored
    (`Network.from_weights` takes a W as it is), and so are self-loops, which every node has.

    `weights` turns links into W:

        "metropolis"       1/(1 + max(d_i, d_j)): the default on undirected graphs
        "lazy-metropolis"  (I + W)/2 of it: no negative eigenvalues
        "max-degree"       1/(1 + max d) on every link
        "uniform"          1/(1 + d), on regular graphs
        "sinkhorn"         the doubly stochastic scaling: the default on directed graphs

    `link_failure` is the probability with which each link fails at each round; see
    `proxgt.networks.links`, also for graphs that vary and nodes that pause.

    A directed graph in which every link has its reverse counts as undirected. Nothing can
    be changed after construction.
    """

    sparse: sp.csr_array  # W, (nodes, nodes)
    labels: graphs.Labels  # the given names of nodes 0, 1, ...
    weights: str  # the rule that made W, or "given"
    links: Links | None = None  # how they differ from round to round, if they do

    def __init__(
        self, graph: Any, weights: str | None = None, *, link_failure: float = 0.0
    ) -> None:
        links, labels = graphs.read_graph(graph)
        graphs.require_connected(links, labels)
        directed = graphs.is_directed(links)
        if weights is None:
            weights = "sinkhorn" if directed else "metropolis"
        one_of("weights", weights, weighting.RULES)
        if directed and weights in weighting.UNDIRECTED_ONLY:
            receivers, senders = (links > links.T).nonzero()
            sender, receiver = labels[senders[0]], labels[receivers[0]]
            raise ValueError(
                f"weights={weights!r} needs an undirected graph, but {sender!r} sends to "
                f"{receiver!r} and not back: use weights='sinkhorn'"
            )
        self._set(weighting.RULES[weights](links), labels, weights)
        if link_failure:
            object.__setattr__(self, "links", unreliable(self, link_failure).links)

    @classmethod
    def from_weights(cls, W: Any) -> Network:
        """The network of a doubly stochastic W, dense or sparse, kept as it is.

        Row and column sums may miss one by 1e-8; W is not rescaled. Self-weights w_ii may
        be zero as long as the mixing rate is below one, that is, W'W is irreducible.
        """
        matrix = graphs.read_square("W", W)
        labels = tuple(range(graphs.order(matrix)))
        _require_doubly_stochastic(matrix)
        graphs.require_connected(graphs.without_diagonal(matrix), labels)
        if not weighting.mixes(matrix):
            raise ValueError(
                "W must have a mixing rate below 1 (Assumption 2, primitive W), but W'W is "
                "reducible, as for an even ring with w_ii = 0: give the nodes self-weights, for "
                "example (I + W)/2"
            )
        network = object.__new__(cls)
        network._set(matrix, labels, "given")
        return network

    def _set(self, W: sp.csr_array, labels: graphs.Labels, weights: str) -> None:
        _freeze(W)
        for name, value in {"sparse": W, "labels": labels, "weights": weights}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"Network(nodes={self.nodes}, edges={self.edges}, weights={self.weights!r}, "
            f"mixing_rate={self.mixing_rate:.9g})"
        )

    @property
    def nodes(self) -> int:
        """How many nodes there are, n."""
        return graphs.order(self.sparse)

    @cached_property
    def W(self) -> np.ndarray:
        """W as a dense (nodes, nodes) array, formed at first use."""
        dense = self.sparse.toarray()
        dense.flags.writeable = False
        return dense

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """The links as a sparse 0/1 matrix: (i, r) is 1 when node r sends to node i != r."""
        return _freeze(graphs.without_diagonal(self.sparse))

    @cached_property
    def graph(self) -> nx.Graph:
        """The links as a frozen networkx graph on `labels`, without self-loops."""
        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(self.labels)
        receivers, senders = self.adjacency.nonzero()
        graph.add_edges_from(
            (self.labels[r], self.labels[i]) for i, r in zip(receivers, senders, strict=True)
        )
        return nx.freeze(graph)

    @property
    def edges(self) -> int:
        """How many edges the graph has, without self-loops."""
        return self.adjacency.nnz // (1 if self.directed else 2)

    @cached_property
    def degrees(self) -> np.ndarray:
        """How many others each node hears, (nodes,)."""
        degrees = np.diff(self.adjacency.indptr)
        degrees.flags.writeable = False
        return degrees

    @cached_property
    def directed(self) -> bool:
        """Whether some link has no reverse."""
        return graphs.is_directed(self.adjacency)

    @cached_property
    def symmetric(self) -> bool:
        """Whether W = W'. An undirected graph may carry a W that is not."""
        return abs(self.sparse - self.sparse.T).max() <= SYMMETRIC

    @cached_property
    def spectrum(self) -> tuple[float, float]:
        """(smallest, second largest) eigenvalue of a symmetric W; (0, 0) for one node."""
        if not self.symmetric:
            raise ValueError(
                "spectrum needs a symmetric W: a non-symmetric one may have complex "
                "eigenvalues; mixing_rate is defined for every network"
            )
        return weighting.spectrum_ends(self.sparse)

    @cached_property
    def mixing_rate(self) -> float:
        """lambda_* = ||W - 11'/n||_2, the second largest singular value of W, eq. (8)."""
        if not self.symmetric:
            return weighting.second_singular_value(self.sparse)
        low, high = self.spectrum
        return max(abs(low), abs(high))

    @property
    def spectral_gap(self) -> float:
        """1 - lambda_*."""
        return 1.0 - self.mixing_rate

    # Named graphs ------------------------------------------------------------------------

    @classmethod
    def ring(cls, n: int, *, weights: str | None = None) -> Network:
        """Node i and node i + 1 mod n."""
        return cls(graphs.circulant(n, [1], mutual=True), weights)

    @classmethod
    def path(cls, n: int, *, weights: str | None = None) -> Network:
        """Node i and node i + 1, not closed to a ring."""
        return cls(graphs.path(n), weights)

    @classmethod
    def grid(cls, rows: int, cols: int | None = None, *, weights: str | None = None) -> Network:
        """A rows x cols lattice, numbered row by row; grid(n) is square with n nodes."""
        return cls(graphs.lattice(*graphs.rectangle("grid", rows, cols)), weights)

    @classmethod
    def torus(cls, rows: int, cols: int | None = None, *, weights: str | None = None) -> Network:
        """A grid whose opposite sides are joined; torus(n) is square with n nodes."""
        sides = graphs.rectangle("torus", rows, cols)
        return cls(graphs.lattice(*sides, periodic=True), weights)

    @classmethod
    def ladder(cls, n: int, *, weights: str | None = None) -> Network:
        """Two paths of n/2 nodes joined rung by rung."""
        if positive_int("n", n, least=2) % 2:
            raise ValueError(f"n must be even for a ladder, got {n}: use {n - 1} or {n + 1}")
        return cls(graphs.lattice(2, n // 2), weights)

    @classmethod
    def star(cls, n: int, *, weights: str | None = None) -> Network:
        """Node 0 and every other node."""
        return cls(graphs.star(n), weights)

    @classmethod
    def complete(cls, n: int, *, weights: str | None = None) -> Network:
        """All pairs; with Metropolis weights W = 11'/n."""
        return cls(graphs.complete(n), weights)

    @classmethod
    def hypercube(cls, n: int, *, weights: str | None = None) -> Network:
        """Nodes whose binary numbers differ in one bit; n is a power of two."""
        return cls(graphs.hypercube(n), weights)

    @classmethod
    def exponential(cls, n: int, *, weights: str | None = None) -> Network:
        """Node i and nodes i + 1, i + 2, i + 4, ... mod n: a gap of about 1/log n."""
        return cls(graphs.circulant(n, graphs.powers_of_two(n), mutual=True), weights)

    @classmethod
    def directed_ring(cls, n: int, *, weights: str | None = None) -> Network:
        """Node i sends to node i + 1 mod n."""
        return cls(graphs.circulant(n, [1]), weights)

    @classmethod
    def directed_exponential(cls, n: int, *, weights: str | None = None) -> Network:
        """Node i sends to nodes i + 1, i + 2, i + 4, ... mod n."""
        return cls(graphs.circulant(n, graphs.powers_of_two(n)), weights)

    @classmethod
    def erdos_renyi(cls, n: int, p: float, seed: int = 0, *, weights: str | None = None) -> Network:
        """Each pair linked with probability p, drawn anew until connected."""
        return cls(graphs.erdos_renyi(n, p, seed), weights)

    @classmethod
    def geometric(cls, n: int, r: float, seed: int = 0, *, weights: str | None = None) -> Network:
        """Uniform points of the unit square linked within distance r, until connected."""
        return cls(graphs.geometric(n, r, seed), weights)


# What is refused of a given W ------------------------------------------------------------


def _require_doubly_stochastic(W: sp.csr_array) -> None:
    if W.nnz and W.data.min() < 0:
        k = int(W.data.argmin())
        where = (int(np.searchsorted(W.indptr, k, side="right")) - 1, int(W.indices[k]))
        raise ValueError(
            f"W must be non-negative (Assumption 2), but entry {where} is {W.data[k]:.6g}"
        )
    for axis, name in ((1, "row"), (0, "column")):
        sums = W.sum(axis=axis)
        worst = int(abs(sums - 1).argmax())
        if abs(sums[worst] - 1) > STOCHASTIC:
            raise ValueError(
                "W must be doubly stochastic (Assumption 2): every row and column must sum "
                f"to 1 within {STOCHASTIC:g}, but {name} {worst} sums to {sums[worst]:.10g}; "
                "compute it in float64, or let Network(graph) build one"
            )


def _freeze(matrix: sp.csr_array) -> sp.csr_array:
    """Sort the entries of a matrix and make them read-only."""
    matrix.sum_duplicates()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix

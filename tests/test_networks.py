"""Networks against closed-form spectra, loops written from the definitions, and networkx."""

import tracemalloc

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from proxgt.networks import Network

CONSTRUCTORS = ["ring", "path", "star", "complete", "exponential", "directed_ring"]
CONSTRUCTORS += ["directed_exponential", "grid", "torus", "hypercube"]


def cosines(n, step=2.0):
    """cos(step pi k / n), k = 0 .. n - 1."""
    return np.cos(step * np.pi * np.arange(n) / n)


def pairwise(a, b):
    return np.add.outer(a, b).ravel()


def circulant_eigenvalues(n, offsets):
    """Of the uniform weights of node i hearing i - o, by the transform of one row."""
    row = np.zeros(n)
    row[list({0, *(o % n for o in offsets)})] = 1
    return np.fft.fft(row / row.sum())


def powers(n):
    return [2**k for k in range(n) if 2**k < n]


# Eigenvalues of W in closed form. A path's Laplacian has 2 - 2 cos(pi k / n), a ring's has
# 2 - 2 cos(2 pi k / n), lattices have sums of those, and W = I - L / (1 + maximal degree).
SPECTRA = {
    "ring": lambda n: (Network.ring(n), (1 + 2 * cosines(n)) / 3),
    "path": lambda n: (Network.path(n), (1 + 2 * cosines(n, 1.0)) / 3),
    "lazy path": lambda n: (
        Network.path(n, weights="lazy-metropolis"),
        (4 + 2 * cosines(n, 1.0)) / 6,
    ),
    "torus": lambda n: (
        Network.torus(n, n + 1),
        (1 + 2 * pairwise(cosines(n), cosines(n + 1))) / 5,
    ),
    "grid": lambda n: (
        Network.grid(n, n + 2, weights="max-degree"),
        (1 + 2 * pairwise(cosines(n, 1.0), cosines(n + 2, 1.0))) / 5,
    ),
    "star": lambda n: (Network.star(n), np.array([1.0, 0.0] + (n - 2) * [1 - 1 / n])),
    "complete": lambda n: (Network.complete(n), np.eye(n)[0]),
}


def ends_of(eigenvalues):
    ordered = np.sort(eigenvalues)
    return ordered[0], ordered[-2]


def ring_without_self_weights(n):
    P = np.roll(np.eye(n), 1, axis=0)
    return (P + P.T) / 2


def assert_doubly_stochastic(network, tolerance=3e-15):
    W = network.sparse
    assert W.data.min() > 0
    assert abs(W.sum(axis=0) - 1).max() <= tolerance
    assert abs(W.sum(axis=1) - 1).max() <= tolerance


def assert_pattern(network, links):
    """W is positive exactly on the links and the diagonal."""
    assert np.array_equal(network.W > 0, (np.asarray(links) != 0) | np.eye(len(links), dtype=bool))


# Spectra -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("n", [4, 7, 18])
def test_spectrum_closed_form(name, n):
    network, eigenvalues = SPECTRA[name](n)
    low, high = ends_of(eigenvalues)
    assert network.spectrum == pytest.approx((low, high), abs=1e-13)
    assert network.mixing_rate == pytest.approx(max(-low, high), abs=1e-13)
    assert network.spectral_gap == pytest.approx(1 - max(-low, high), abs=1e-13)
    assert np.linalg.eigvalsh(network.W) == pytest.approx(np.sort(eigenvalues), abs=1e-13)


@pytest.mark.parametrize("dimension", [1, 3, 6, 10])
def test_hypercube_spectrum(dimension):
    network = Network.hypercube(2**dimension)
    expected = [1 - 2 * k / (dimension + 1) for k in range(1, dimension + 1)]
    assert network.spectrum == pytest.approx((expected[-1], expected[0]), abs=1e-13)


@pytest.mark.parametrize("n", [3, 6, 16, 33, 700])
def test_circulant_mixing_rates(n):
    undirected = circulant_eigenvalues(n, [s * o for o in powers(n) for s in (1, -1)])
    directed = circulant_eigenvalues(n, powers(n))
    for network, eigenvalues in (
        (Network.exponential(n), undirected),
        (Network.directed_exponential(n), directed),
        (Network.directed_ring(n), circulant_eigenvalues(n, [1])),
    ):
        # Circulants are normal: singular values are moduli of eigenvalues.
        assert network.mixing_rate == pytest.approx(np.sort(abs(eigenvalues))[-2], abs=1e-12)


LARGE = {
    "ring": (lambda: Network.ring(10000), lambda: (1 + 2 * cosines(10000)) / 3),
    "path": (lambda: Network.path(10000), lambda: (1 + 2 * cosines(10000, 1.0)) / 3),
    "torus": (
        lambda: Network.torus(100, 100),
        lambda: (1 + 2 * pairwise(cosines(100), cosines(100))) / 5,
    ),
    "grid": (
        lambda: Network.grid(100, 100, weights="max-degree"),
        lambda: (1 + 2 * pairwise(cosines(100, 1.0), cosines(100, 1.0))) / 5,
    ),
    "star": (lambda: Network.star(10000), lambda: np.array([1.0, 1 - 1e-4, 0.0])),
    "hypercube": (lambda: Network.hypercube(4096), lambda: 1 - 2 * np.arange(13) / 13),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_spectrum_relative_to_the_gap(name):
    build, closed_form = LARGE[name]
    network = build()
    low, high = ends_of(closed_form())
    assert 1 - network.spectrum[1] == pytest.approx(1 - high, rel=1e-6)
    assert network.spectrum[0] == pytest.approx(low, abs=1e-9)
    assert network.spectral_gap == pytest.approx(1 - max(-low, high), rel=1e-6)


def test_large_directed_ring():
    gap = 1 - np.cos(np.pi / 10000)
    assert Network.directed_ring(10000).spectral_gap == pytest.approx(gap, rel=1e-6)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Network.ring(10000),
        lambda: Network.grid(100, 100),
        lambda: Network.erdos_renyi(10000, 0.002, 0),
        lambda: Network.geometric(10000, 0.03, 0),
        lambda: Network.directed_exponential(10000),
    ],
)
def test_large_networks_stay_sparse(build):
    tracemalloc.start()
    network = build()
    rate = network.mixing_rate
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < rate < 1
    assert peak < 60e6  # a dense array takes 800e6
    assert_doubly_stochastic(network)


def test_sparse_and_dense_spectra_agree():
    # 700 nodes are past the dense solver; expanders, clusters and a digraph.
    undirected = [
        Network.erdos_renyi(700, 0.02, 3),
        Network.geometric(700, 0.1, 3),
        Network(nx.connected_caveman_graph(70, 10)),
        Network(nx.random_regular_graph(3, 700, seed=0)),
    ]
    for network in undirected:
        expected = ends_of(np.linalg.eigvalsh(network.W))
        assert network.spectrum == pytest.approx(expected, abs=1e-12)
    graph = nx.gnp_random_graph(700, 0.01, seed=1, directed=True)
    graph.add_edges_from((i, (i + 1) % 700) for i in range(700))
    network = Network(graph)
    expected = np.linalg.svd(network.W, compute_uv=False)[1]
    assert network.mixing_rate == pytest.approx(expected, abs=1e-12)


# Named graphs --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 9, 16])
def test_named_graphs_have_the_right_edges(n):
    def undirected(graph):
        return {frozenset(edge) for edge in graph.edges}

    doubling = [2**k for k in range(n) if 2**k < n]
    assert undirected(Network.ring(n).graph) == undirected(nx.cycle_graph(n))
    assert undirected(Network.path(n).graph) == undirected(nx.path_graph(n))
    assert undirected(Network.star(n).graph) == undirected(nx.star_graph(n - 1))
    assert undirected(Network.complete(n).graph) == undirected(nx.complete_graph(n))
    exponential = nx.circulant_graph(n, doubling)
    assert undirected(Network.exponential(n).graph) == undirected(exponential)
    # At (receiver, sender): node i sends to i + 2^k.
    receivers = [{(i + o) % n for o in doubling} for i in range(n)]
    sent = Network.directed_exponential(n).adjacency.toarray().T
    assert [set(np.flatnonzero(row)) for row in sent] == receivers
    assert set(Network.directed_ring(n).graph.edges) == {(i, (i + 1) % n) for i in range(n)}


def test_lattices_match_networkx():
    for rows, cols in ((3, 4), (1, 5), (5, 1), (2, 3)):
        for make, periodic in ((Network.grid, False), (Network.torus, True)):
            lattice = nx.grid_2d_graph(rows, cols, periodic=periodic)
            lattice = nx.convert_node_labels_to_integers(lattice, ordering="sorted")
            lattice.remove_edges_from(list(nx.selfloop_edges(lattice)))
            expected = {frozenset(edge) for edge in lattice.edges}
            assert {frozenset(e) for e in make(rows, cols).graph.edges} == expected
    assert nx.is_isomorphic(Network.ladder(10).graph, nx.ladder_graph(5))
    assert nx.is_isomorphic(Network.hypercube(16).graph, nx.hypercube_graph(4))
    assert np.array_equal(Network.grid(9).W, Network.grid(3, 3).W)
    assert np.array_equal(Network.torus(9).W, Network.torus(3, 3).W)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_one_node(name):
    network = getattr(Network, name)(1)
    assert network.W.tolist() == [[1.0]]
    assert (network.edges, network.mixing_rate, network.spectral_gap) == (0, 0.0, 1.0)
    assert network.spectrum == (0.0, 0.0)


@pytest.mark.parametrize("name", [*CONSTRUCTORS[:7], "hypercube", "ladder"])
def test_two_nodes(name):
    network = getattr(Network, name)(2)
    assert pytest.approx(np.full((2, 2), 0.5), abs=1e-16) == network.W
    assert (network.edges, network.mixing_rate) == (1, 0.0)


def test_random_graphs_on_one_and_two_nodes():
    assert Network.erdos_renyi(1, 0.5, 0).nodes == Network.geometric(1, 0.1, 0).nodes == 1
    assert Network.erdos_renyi(2, 0.5, 0).edges == Network.geometric(2, 0.9, 0).edges == 1


@pytest.mark.parametrize("n", [1, 2, 3, 10, 40, 600])
def test_complete_averages_at_once(n):
    network = Network.complete(n)
    assert pytest.approx(np.full((n, n), 1 / n), abs=1e-15) == network.W
    assert network.mixing_rate == 0.0


def test_random_graphs_are_determined_by_their_seed():
    for draw in (
        lambda seed: Network.erdos_renyi(60, 0.1, seed),
        lambda seed: Network.geometric(60, 0.3, seed),
    ):
        assert np.array_equal(draw(4).W, draw(4).W)
        assert not np.array_equal(draw(4).W, draw(5).W)


def test_erdos_renyi_links_pairs_independently():
    n, p, draws = 30, 0.4, 400
    counts = sum(Network.erdos_renyi(n, p, seed).adjacency.toarray() for seed in range(draws))
    upper = counts[np.triu_indices(n, 1)]
    assert np.array_equal(counts, counts.T)
    deviation = np.sqrt(p * (1 - p) * draws)
    assert abs(upper - p * draws).max() < 5 * deviation
    assert upper.mean() == pytest.approx(p * draws, abs=5 * deviation / np.sqrt(len(upper)))
    assert np.std(upper) == pytest.approx(deviation, rel=0.15)
    assert Network.erdos_renyi(25, 1.0, 0).edges == 25 * 24 // 2


def test_geometric_links_near_points():
    n, r, seed = 80, 0.3, 2
    network = Network.geometric(n, r, seed)
    points = np.random.default_rng(seed).random((n, 2))
    near = np.linalg.norm(points[:, None] - points, axis=2) <= r
    np.fill_diagonal(near, False)
    assert np.array_equal(network.adjacency.toarray() != 0, near)


# Reading graphs ---------------------------------------------------------------------------


def test_networkx_labels_keep_graph_order():
    graph = nx.Graph([("c", "a"), ("a", "b")])
    graph.add_edge("a", "a", weight=3.0)  # neither loops nor edge weights count
    graph["c"]["a"]["weight"] = 0.0
    network = Network(graph)
    assert network.labels == ("c", "a", "b")
    third = 1 / 3
    expected = [[2 * third, third, 0], [third, third, third], [0, third, 2 * third]]
    assert pytest.approx(np.array(expected), abs=1e-15) == network.W
    assert set(network.graph.nodes) == {"a", "b", "c"}
    assert network.degrees.tolist() == [1, 2, 1]
    assert (network.edges, network.directed, network.symmetric) == (2, False, True)


def test_relabelling_permutes_the_weights():
    graph = nx.erdos_renyi_graph(12, 0.4, seed=1)
    order = np.random.default_rng(0).permutation(12)
    shuffled = nx.Graph()
    shuffled.add_nodes_from(int(k) for k in order)
    shuffled.add_edges_from(graph.edges)
    assert pytest.approx(Network(graph).W[np.ix_(order, order)], abs=1e-15) == Network(shuffled).W


def test_direction_of_links():
    # 0 -> 1 -> 2 -> 0 and 0 -> 2: node 2 hears 0 and 1.
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2)])
    adjacency = np.array([[0, 0, 1], [1, 0, 0], [1, 1, 0]])
    for given_graph in (graph, adjacency, sp.coo_array(adjacency), adjacency.tolist()):
        network = Network(given_graph)
        assert_pattern(network, adjacency)
        assert network.directed
        assert not network.symmetric
        assert network.weights == "sinkhorn"
        assert network.degrees.tolist() == [1, 1, 2]
        assert set(network.graph.edges) == set(graph.edges)


def test_other_graph_types():
    multi = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    assert np.array_equal(Network(multi).W, Network.path(3).W)
    both_ways = Network(nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 1)]))
    assert not both_ways.directed
    assert np.array_equal(both_ways.W, Network.path(3).W)
    bools = Network(np.ones((4, 4), dtype=bool))
    assert np.array_equal(bools.W, Network.complete(4).W)


# Weight rules -----------------------------------------------------------------------------


def metropolis_by_hand(A):
    n, degrees = len(A), A.sum(axis=1)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if A[i, j]:
                W[i, j] = 1 / (1 + max(degrees[i], degrees[j]))
        W[i, i] = 1 - W[i].sum()
    return W


@st.composite
def connected_graphs(draw):
    n = draw(st.integers(1, 20))
    A = np.zeros((n, n), dtype=int)
    for i in range(1, n):  # a random tree, then anything
        j = draw(st.integers(0, i - 1))
        A[i, j] = A[j, i] = 1
    for i, j in draw(st.lists(st.tuples(*2 * [st.integers(0, n - 1)]), max_size=30)):
        A[i, j] = A[j, i] = i != j
    return A


@st.composite
def strongly_connected_digraphs(draw):
    n = draw(st.integers(1, 15))
    cycle = draw(st.permutations(range(n)))
    A = np.zeros((n, n), dtype=int)
    A[np.roll(cycle, -1), cycle] = 1
    for i, j in draw(st.lists(st.tuples(*2 * [st.integers(0, n - 1)]), max_size=40)):
        A[i, j] = 1
    np.fill_diagonal(A, 0)
    return A


@settings(max_examples=60, deadline=None)
@given(connected_graphs())
def test_rules_on_random_graphs(A):
    n, degrees = len(A), A.sum(axis=1)
    expected = metropolis_by_hand(A)
    laplacian = np.diag(degrees) - A
    oracles = {
        "metropolis": expected,
        "lazy-metropolis": (np.eye(n) + expected) / 2,
        "max-degree": np.eye(n) - laplacian / (1 + degrees.max()),
    }
    for rule, W in oracles.items():
        network = Network(A, weights=rule)
        assert pytest.approx(W, abs=1e-15) == network.W
        assert_doubly_stochastic(network)
        assert_pattern(network, A)
        assert network.symmetric
        assert 0 <= network.mixing_rate < 1
        assert network.mixing_rate == pytest.approx(np.linalg.norm(W - 1 / n, 2), abs=1e-13)
    assert np.linalg.eigvalsh(oracles["lazy-metropolis"]).min() > -1e-14
    sinkhorn = Network(A, weights="sinkhorn")
    assert_doubly_stochastic(sinkhorn, 1e-14)
    assert_pattern(sinkhorn, A)
    assert np.array_equal(sinkhorn.W, sinkhorn.W.T)


@settings(max_examples=60, deadline=None)
@given(strongly_connected_digraphs())
def test_sinkhorn_on_random_digraphs(A):
    n = len(A)
    network = Network(A, weights="sinkhorn")
    assert_doubly_stochastic(network, 1e-14)
    assert_pattern(network, A)
    assert network.mixing_rate == pytest.approx(np.linalg.norm(network.W - 1 / n, 2), abs=1e-13)
    assert network.mixing_rate < 1
    # The doubly stochastic scaling is unique: W_ir = u_i v_r on the pattern, so that
    # log W is a sum of row and column terms there.
    rows, cols = np.nonzero(network.W)
    design = np.zeros((len(rows), 2 * n))
    design[np.arange(len(rows)), rows] = design[np.arange(len(rows)), n + cols] = 1
    logs = np.log(network.W[rows, cols])
    fit = np.linalg.lstsq(design, logs, rcond=None)[0]
    assert design @ fit == pytest.approx(logs, abs=1e-8)


@pytest.mark.parametrize("skips", [[(0, 100)], [(0, 500), (3, 90), (700, 20), (5, 6)]])
def test_sinkhorn_where_alternating_normalisation_crawls(skips):
    # A long one-way ring with a few chords: mixing_rate^2 is 1 - 1e-5 and worse.
    n = 1000
    graph = nx.DiGraph([(i, (i + 1) % n) for i in range(n)] + skips)
    network = Network(graph)
    assert_doubly_stochastic(network, 1e-14)
    assert network.edges == graph.number_of_edges()
    assert 1e-7 < network.spectral_gap < 1e-4


def test_sinkhorn_on_a_large_digraph():
    n, rng = 3000, np.random.default_rng(0)
    node = np.arange(n)
    receivers = np.concatenate([rng.integers(n, size=10 * n), (node + 1) % n])
    senders = np.concatenate([rng.integers(n, size=10 * n), node])
    network = Network(sp.coo_array((np.ones(11 * n), (receivers, senders)), shape=(n, n)))
    assert_doubly_stochastic(network, 3e-15)
    assert network.mixing_rate < 0.9


def test_regular_graphs_agree_on_the_rule():
    for network in (
        Network.ring(7, weights="uniform"),
        Network.ring(7, weights="max-degree"),
        Network.ring(7, weights="sinkhorn"),
    ):
        assert pytest.approx(Network.ring(7).W, abs=1e-15) == network.W
    uniform = Network.directed_ring(7, weights="uniform")
    assert pytest.approx(Network.directed_ring(7, weights="max-degree").W, abs=1e-15) == uniform.W
    assert pytest.approx(Network.directed_ring(7).W, abs=1e-15) == uniform.W


# Given weights -----------------------------------------------------------------------------


def test_from_weights_keeps_w_as_it_is():
    W = np.array([[0.5, 0.25, 0.25], [0.25, 0.75, 0.0], [0.25, 0.0, 0.75]])
    for kind in (W, W.tolist(), sp.csr_array(W), sp.coo_array(W)):
        network = Network.from_weights(kind)
        assert np.array_equal(network.W, W)
        assert network.weights == "given"
        assert network.edges == 2
    almost = W + np.array([[1e-9, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert np.array_equal(Network.from_weights(almost).W, almost)
    W[0, 0] = 7.0  # a copy was taken
    assert network.W[0, 0] == 0.5


def test_from_weights_of_a_directed_w():
    P = np.roll(np.eye(5), 1, axis=0)
    network = Network.from_weights(0.5 * np.eye(5) + 0.3 * P + 0.2 * P @ P)
    assert network.directed
    expected = np.linalg.svd(network.W, compute_uv=False)[1]
    assert network.mixing_rate == pytest.approx(expected, abs=1e-14)
    # An undirected graph may carry a non-symmetric W.
    skewed = Network.from_weights(0.5 * np.eye(5) + 0.3 * P + 0.2 * P.T)
    assert not skewed.directed
    assert not skewed.symmetric
    with pytest.raises(ValueError, match="spectrum needs a symmetric W"):
        _ = skewed.spectrum


def test_stored_zeros_are_no_links():
    W = sp.csr_array(ring_without_self_weights(5))
    stored = sp.csr_array(sp.coo_array(W) + sp.eye_array(5))
    stored.setdiag(0.0)
    assert stored.nnz == 15
    assert Network.from_weights(stored).sparse.nnz == 10
    even = sp.csr_array(ring_without_self_weights(6) + np.eye(6))
    even.setdiag(0.0)
    with pytest.raises(ValueError, match="mixing rate below 1"):
        Network.from_weights(even)


def test_large_network_without_positive_eigenvalues():
    n = 300  # all pairs but no self-weights: every other eigenvalue is -1/(n - 1)
    network = Network.from_weights((np.ones((n, n)) - np.eye(n)) / (n - 1))
    assert network.spectrum == pytest.approx((-1 / (n - 1), -1 / (n - 1)), abs=1e-14)
    assert network.mixing_rate == pytest.approx(1 / (n - 1), abs=1e-14)


def test_self_weights_may_be_zero_if_w_mixes():
    # An odd ring without self-weights is aperiodic.
    P = np.roll(np.eye(5), 1, axis=0)
    network = Network.from_weights((P + P.T) / 2)
    assert network.mixing_rate == pytest.approx(np.cos(np.pi / 5), abs=1e-14)


def test_jax_and_integer_arrays_are_read():
    jnp = pytest.importorskip("jax.numpy")
    assert Network(jnp.ones((3, 3))).edges == 3
    assert Network(np.ones((3, 3), dtype=np.int8)).edges == 3


# Refusals ------------------------------------------------------------------------------


def one_way_back(n):
    back = [(i, j) for i in range(n // 2) for j in range(i)]
    path = [(i, i + 1) for i in range(n // 2 - 1, n - 1)]
    return nx.DiGraph([*back, (0, n // 2 - 1), *path, (n - 1, 0)])


DIRECTED = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")])

REFUSED = {
    "empty": (lambda: Network(nx.Graph()), "at least one node"),
    "empty array": (lambda: Network(np.zeros((0, 0))), r"shape \(0, 0\)"),
    "not square": (lambda: Network(np.ones((2, 3))), r"square array.*shape \(2, 3\)"),
    "vector": (lambda: Network(np.ones(3)), r"square array.*shape \(3,\)"),
    "nan": (lambda: Network(np.full((2, 2), np.nan)), r"graph must be finite.*\(0, 0\)"),
    "sparse nan": (lambda: Network(sp.csr_array([[np.nan]])), "graph.data must be finite"),
    "disconnected": (
        lambda: Network(nx.Graph([("a", "b"), ("c", "d")])),
        "no path between 'a' and 'c': add links",
    ),
    "disconnected array": (lambda: Network(np.eye(3)), "no path between 0 and 1"),
    "unreached": (
        lambda: Network(nx.DiGraph([("a", "b"), ("b", "a"), ("c", "a")])),
        "no directed path from 'a' to 'c'",
    ),
    "sink": (
        lambda: Network(nx.DiGraph([("a", "b"), ("b", "a"), ("a", "c")])),
        "no directed path from 'c' to 'a'",
    ),
    "unknown rule": (
        lambda: Network.ring(4, weights="metropols"),
        "did you mean 'metropolis'",
    ),
    "metropolis digraph": (
        lambda: Network(DIRECTED, weights="metropolis"),
        "'[a-c]' sends to '[a-c]' and not back: use weights='sinkhorn'",
    ),
    "lazy digraph": (lambda: Network(DIRECTED, weights="lazy-metropolis"), "weights='sinkhorn'"),
    "unbalanced": (lambda: Network(DIRECTED, weights="max-degree"), "use weights='sinkhorn'"),
    "irregular": (
        lambda: Network.path(4, weights="uniform"),
        "regular graphs, .* between 1 and 2 others: use weights='metropolis'",
    ),
    "sinkhorn fades": (
        # All ways back are open and lead to a one-way path: weights fall like 2^-n.
        lambda: Network(one_way_back(200)),
        "mixing rate of 1 in floating point.*add links back",
    ),
    "negative": (
        lambda: Network.from_weights([[1.5, -0.5], [-0.5, 1.5]]),
        r"non-negative .*entry \(0, 1\) is -0.5",
    ),
    "row sum": (lambda: Network.from_weights([[0.5, 0.6], [0.5, 0.4]]), "row 0 sums to 1.1"),
    "column sum": (lambda: Network.from_weights([[0.5, 0.5], [0.6, 0.4]]), "column 0 sums to 1.1"),
    "rounded": (
        lambda: Network.from_weights([[0.3333, 0.6667], [0.6667, 0.3332]]),
        "row 1 sums to 0.9999; compute it in float64",
    ),
    "given disconnected": (lambda: Network.from_weights(np.eye(2)), "no path between 0 and 1"),
    "periodic": (
        lambda: Network.from_weights(ring_without_self_weights(6)),
        r"mixing rate below 1.*\(I \+ W\)/2",
    ),
    "permutation": (lambda: Network.from_weights([[0, 1], [1, 0]]), "mixing rate below 1"),
    "given nan": (lambda: Network.from_weights([[np.nan]]), "W must be finite"),
    "zero nodes": (lambda: Network.ring(0), "n must be an integer >= 1, got 0"),
    "zero columns": (lambda: Network.grid(3, 0), "cols must be an integer >= 1, got 0"),
    "not a square": (
        lambda: Network.grid(10),
        r"got 10: use 9 or 16, or grid\(rows, cols\)",
    ),
    "no torus": (lambda: Network.torus(5), "torus.*got 5: use 4 or 9"),
    "odd ladder": (lambda: Network.ladder(7), "even for a ladder, got 7: use 6 or 8"),
    "no hypercube": (lambda: Network.hypercube(12), "power of two.*got 12: use 8 or 16"),
    "p too large": (lambda: Network.erdos_renyi(5, 1.5, 0), "p is a probability.*got 1.5"),
    "p zero": (lambda: Network.erdos_renyi(5, 0.0, 0), "p must be > 0"),
    "p too small": (
        lambda: Network.erdos_renyi(200, 0.001, 0),
        r"100 graphs, none of them connected: p must be well above log\(n\)/n = 0.026",
    ),
    "r too small": (lambda: Network.geometric(200, 0.01, 0), "r must be well above .* = 0.092"),
    "seed": (lambda: Network.erdos_renyi(5, 0.5, -1), "seed must be an integer >= 0, got -1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Network("ring"), r"got 'ring'; Network\(graph\) takes networkx graphs"),
        (lambda: Network(None), "got None; Network"),
        (lambda: Network([["a"]]), "numeric array"),
        (lambda: Network.ring(3.0), "n must be an integer >= 1, got 3.0"),
        (lambda: Network.geometric(5, "far", 0), "r must be a number"),
    ],
)
def test_wrong_types(make, message):
    with pytest.raises(TypeError, match=message):
        make()


# Read-only -----------------------------------------------------------------------------


def test_nothing_can_be_changed():
    network = Network.ring(5)
    for array in (network.W, network.degrees, network.sparse.data, network.adjacency.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3
    for name in ("sparse", "mixing_rate", "W", "labels"):
        with pytest.raises(AttributeError):
            setattr(network, name, None)
    with pytest.raises(nx.NetworkXError):
        network.graph.add_edge(0, 2)


def test_a_graph_changed_later_does_not_matter():
    graph = nx.path_graph(4)
    network = Network(graph)
    graph.add_edge(0, 3)
    assert network.edges == 3


def test_repr():
    assert repr(Network.complete(4)) == (
        "Network(nodes=4, edges=6, weights='metropolis', mixing_rate=0)"
    )
    assert "weights='sinkhorn', mixing_rate=0.8090" in repr(Network.directed_ring(5))

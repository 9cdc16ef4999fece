"""Consensus operators against matrix powers, Chebyshev's own polynomials and measured norms."""

import dataclasses
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_chebyt

from proxgt.consensus import (
    Chebyshev,
    ColumnStochastic,
    Consensus,
    FastMix,
    Gossip,
    LazyGossip,
    RowStochastic,
    run_recurrence,
)
from proxgt.networks import Network

AVERAGING = [Gossip, LazyGossip, Chebyshev, FastMix]
EVERY = [*AVERAGING, ColumnStochastic, RowStochastic]


def shift(n):
    return np.roll(np.eye(n), 1, axis=0)


def near_periodic(n, w=0.02):
    """A ring with small self-weights: an eigenvalue near -mixing_rate."""
    return Network.from_weights(w * np.eye(n) + (1 - w) / 2 * (shift(n) + shift(n).T))


SYMMETRIC = {
    "ring": Network.ring(16),
    "path": Network.path(9),
    "grid": Network.grid(4, 5),
    "star": Network.star(7),
    "complete": Network.complete(6),
    "hypercube": Network.hypercube(16),
    "exponential": Network.exponential(11),
    "erdos": Network.erdos_renyi(20, 0.3, 1),
    "geometric": Network.geometric(25, 0.4, 1),
    "lazy": Network.ring(10, weights="lazy-metropolis"),
    "two": Network.ring(2),
    "one": Network.ring(1),
    "near periodic": near_periodic(8),
}
DIRECTED = {
    "directed ring": Network.directed_ring(8),
    "directed exponential": Network.directed_exponential(11),
    "chords": Network(
        nx.DiGraph([*((i, (i + 1) % 12) for i in range(12)), (0, 5), (0, 9), (7, 2), (3, 1)])
    ),
}
EVERYWHERE = {**SYMMETRIC, **DIRECTED}


def disagreement(P):
    return np.linalg.norm(P - 1 / len(P), 2)


def without_one(network):
    """The eigenvalues of a symmetric W but for one 1."""
    return np.linalg.eigvalsh(network.W)[:-1]


def chebyshev_by_eigenvectors(network, K):
    """T_K(X)/T_K(theta) from the eigenvalues of W and SciPy's T_K."""
    eigenvalues, vectors = np.linalg.eigh(network.W)
    a, b = eigenvalues[0], eigenvalues[-2]
    values = eval_chebyt(K, (2 * eigenvalues - a - b) / (b - a))
    return (vectors * values / eval_chebyt(K, (2 - a - b) / (b - a))) @ vectors.T


# The operators --------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("K", [1, 2, 5])
def test_gossip_is_a_power(name, K):
    network = EVERYWHERE[name]
    power = np.linalg.matrix_power(network.W, K)
    assert Gossip(K).matrix(network) == pytest.approx(power, abs=1e-14)
    lazy = np.linalg.matrix_power((np.eye(network.nodes) + network.W) / 2, K)
    assert LazyGossip(K).matrix(network) == pytest.approx(lazy, abs=1e-14)


@pytest.mark.parametrize("name", sorted(set(SYMMETRIC) - {"complete", "one", "two"}))
@pytest.mark.parametrize("K", [1, 2, 3, 8, 20])
def test_chebyshev_is_its_polynomial(name, K):
    network = SYMMETRIC[name]
    expected = chebyshev_by_eigenvectors(network, K)
    assert Chebyshev(K).matrix(network) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["complete", "one", "two"])
@pytest.mark.parametrize("consensus", [Gossip, Chebyshev, FastMix])
@pytest.mark.parametrize("K", [1, 2, 7])
def test_averaging_at_once_stays_exact(name, consensus, K):
    network = SYMMETRIC[name]
    n = network.nodes
    P = consensus(K).matrix(network)
    assert pytest.approx(np.full((n, n), 1 / n), abs=1e-14) == P
    assert consensus(K).contraction(network) <= 1e-14


def test_one_chebyshev_round_averages_if_all_eigenvalues_agree():
    # W = (1 - c) 11'/n + c I: a = b = c, where b - a is zero.
    for c in (0.6, -0.1, 0.999999):
        network = Network.from_weights((1 - c) / 8 + c * np.eye(8))
        assert disagreement(Chebyshev(1).matrix(network)) < 1e-9
        assert Chebyshev(1).contraction(network) < 1e-9
        assert disagreement(Gossip(1).matrix(network)) == pytest.approx(abs(c), abs=1e-12)


@pytest.mark.parametrize("name", sorted(set(SYMMETRIC) - {"near periodic"}))
@pytest.mark.parametrize("K", [2, 4, 11])
def test_fastmix_follows_its_publication(name, K):
    network = SYMMETRIC[name]
    rate = disagreement(network.W)
    eta = (1 - math.sqrt(1 - rate**2)) / (1 + math.sqrt(1 - rate**2))
    before = now = np.eye(network.nodes)
    for _ in range(K):
        before, now = now, (1 + eta) * network.W @ now - eta * before
    assert FastMix(K).matrix(network) == pytest.approx(now, abs=1e-12)


def test_one_sided_weights_by_hand():
    for network in EVERYWHERE.values():
        A = network.adjacency.toarray() + np.eye(network.nodes)
        C = np.array([[a / A[:, r].sum() for r, a in enumerate(row)] for row in A])
        R = np.array([[a / row.sum() for a in row] for row in A])
        power = np.linalg.matrix_power
        assert ColumnStochastic(3).matrix(network) == pytest.approx(power(C, 3), abs=1e-14)
        assert RowStochastic(3).matrix(network) == pytest.approx(power(R, 3), abs=1e-14)
        assert ColumnStochastic(3).matrix(network).sum(axis=0) == pytest.approx(1, abs=1e-14)
        assert RowStochastic(3).matrix(network).sum(axis=1) == pytest.approx(1, abs=1e-14)


def test_one_sided_weights_follow_the_direction_of_links():
    # 0 sends to 1 and 2; both send to 0 only, and 1 hears nobody else.
    network = Network(nx.DiGraph([(0, 1), (0, 2), (1, 0), (2, 0), (1, 2)]))
    third, half = 1 / 3, 1 / 2
    columns = [[third, third, half], [third, third, 0], [third, third, half]]
    rows = [[third, third, third], [half, half, 0], [third, third, third]]
    assert ColumnStochastic().matrix(network) == pytest.approx(np.array(columns), abs=1e-15)
    assert RowStochastic().matrix(network) == pytest.approx(np.array(rows), abs=1e-15)


# Contraction ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("K", [1, 2, 6, 15])
def test_contraction_is_the_norm(name, K):
    network = EVERYWHERE[name]
    for consensus in AVERAGING if network.symmetric else AVERAGING[:2]:
        left = consensus(K).contraction(network)
        if left < 1:  # else FastMix refuses to run
            P = consensus(K).matrix(network)
            assert left == pytest.approx(disagreement(P), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("K", [1, 2, 3, 5, 12, 30])
def test_chebyshev_is_as_fast_as_on_the_symmetric_interval(name, K):
    """Against T_K(W/lambda)/T_K(1/lambda), which ignores the smaller end of the spectrum."""
    network = SYMMETRIC[name]
    rate = network.mixing_rate
    left = Chebyshev(K).contraction(network)
    assert left <= rate**K * (1 + 1e-12)
    if rate > 0:
        plain = abs(eval_chebyt(K, without_one(network) / rate)).max(initial=0)
        assert left <= plain / eval_chebyt(K, 1 / rate) * (1 + 1e-9)


@st.composite
def symmetric_weights(draw):
    """A doubly stochastic W with any eigenvalues: a mixture of swaps."""
    n = draw(st.integers(2, 9))
    parts = draw(st.lists(st.permutations(range(n)), min_size=1, max_size=4))
    weights = np.array(draw(st.lists(st.floats(0.05, 1), min_size=6, max_size=6)))
    cycle = np.roll(np.eye(n), 1, axis=0)
    W = weights[0] * np.eye(n) + weights[1] * (cycle + cycle.T)
    for weight, part in zip(weights[2:], parts, strict=False):
        P = np.eye(n)[list(part)]
        W += weight * (P + P.T)
    return W / W.sum(axis=1, keepdims=True)


@settings(max_examples=60, deadline=None)
@given(symmetric_weights(), st.integers(1, 12))
def test_contraction_on_random_weights(W, K):
    network = Network.from_weights((W + W.T) / 2)
    chebyshev = Chebyshev(K)
    left = chebyshev.contraction(network)
    assert left == pytest.approx(disagreement(chebyshev.matrix(network)), rel=1e-7, abs=1e-12)
    assert left <= Gossip(K).contraction(network) * (1 + 1e-9) + 1e-13
    # No polynomial with p(1) = 1 beats it on [a, b]: FastMix and lazy gossip are two.
    assert left <= LazyGossip(K).contraction(network) * (1 + 1e-9) + 1e-13
    a, b = network.spectrum
    angles = np.cos(np.linspace(0, np.pi, 200 * K))
    points = (a + b + (b - a) * angles) / 2
    values = run_recurrence(points.__mul__, chebyshev.coefficients(network), np.ones(200 * K))
    assert abs(values).max() == pytest.approx(left, rel=1e-3, abs=1e-12)


def test_norms_measured_for_the_survey_of_rivals():
    ring, directed = Network.ring(8), Network.directed_ring(8)
    assert Gossip(8).contraction(ring) == pytest.approx(1.8e-1, rel=0.03)
    assert Chebyshev(8).contraction(ring) == pytest.approx(3.2e-3, rel=0.03)
    assert FastMix(8).contraction(ring) == pytest.approx(2.1e-2, rel=0.03)
    assert [FastMix(K).contraction(near_periodic(8)) for K in (1, 2, 3)] == pytest.approx(
        [2.06, 2.53, 2.64], abs=0.01
    )
    assert [Gossip(K).contraction(directed) for K in (2, 4, 8, 16)] == pytest.approx(
        [0.85, 0.73, 0.53, 0.28], abs=0.01
    )


@pytest.mark.parametrize("name", ["ring", "path", "lazy", "near periodic"])
def test_many_rounds_neither_overflow_nor_stall(name):
    network = SYMMETRIC[name]
    P = Chebyshev(3000).matrix(network)
    assert disagreement(P) < 1e-11
    assert Chebyshev(3000).contraction(network) < 1e-100
    slow = Network.ring(10000)
    left = Chebyshev(5000).contraction(slow)
    assert left == pytest.approx(2 * math.exp(-5000 * math.acosh(theta_of_ring(10000))), rel=0.01)


def theta_of_ring(n):
    a, b = -1 / 3, (1 + 2 * math.cos(2 * math.pi / n)) / 3
    return (2 - a - b) / (b - a)


def test_large_networks():
    """Past the dense solvers contraction comes from the ends of the spectrum."""
    path = Network.path(600)
    exact = (1 + 2 * np.cos(np.pi * np.arange(1, 600) / 600)) / 3
    assert Gossip(40).contraction(path) == pytest.approx(exact[0] ** 40, rel=1e-9)
    assert LazyGossip(40).contraction(path) == pytest.approx((0.5 + exact[0] / 2) ** 40, rel=1e-9)
    a, b = exact[-1], exact[0]
    points = (2 * exact - a - b) / (b - a)
    values = abs(eval_chebyt(40, points)).max() / eval_chebyt(40, (2 - a - b) / (b - a))
    assert Chebyshev(40).contraction(path) == pytest.approx(values, rel=1e-6)
    lazy, fast = Network.path(600, weights="lazy-metropolis"), FastMix(200)
    table = fast.coefficients(lazy)
    values = run_recurrence(((1 + exact) / 2).__mul__, table, np.ones(599))
    assert abs(values).max() <= fast.contraction(lazy) <= 1.01 * abs(values).max()
    directed = Network.directed_ring(600)
    assert Gossip(40).contraction(directed) == pytest.approx(np.cos(np.pi / 600) ** 40, rel=1e-9)
    assert LazyGossip(3).contraction(directed) >= np.cos(np.pi / 600) ** 3


@pytest.mark.parametrize("consensus", [Gossip, LazyGossip])
def test_contraction_of_large_digraphs_is_a_bound(consensus):
    n = 300
    graph = nx.gnp_random_graph(n, 0.02, seed=0, directed=True)
    graph.add_edges_from((i, (i + 1) % n) for i in range(n))
    network = Network(graph)
    for K in (1, 3, 6):
        exact = disagreement(consensus(K).matrix(network))
        assert exact <= consensus(K).contraction(network) * (1 + 1e-12)


# What is kept -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_network_mean_is_kept(name):
    network = EVERYWHERE[name]
    rows = np.random.default_rng(0).standard_normal((network.nodes, 5))
    for consensus in AVERAGING if network.symmetric else AVERAGING[:2]:
        coefficients = consensus(64).coefficients(network)
        mixed = run_recurrence(network.sparse.dot, coefficients, rows)
        # A spectrum in (0, 1) has Chebyshev coefficients of 5 and -3, and their rounding.
        tolerance = 1e-13 if name == "lazy" else 1e-14
        assert mixed.mean(axis=0) == pytest.approx(rows.mean(axis=0), abs=tolerance)


def test_the_mean_of_a_large_network_is_kept():
    network = Network.ring(10000)
    rows = np.random.default_rng(0).standard_normal((10000, 2))
    for consensus in (Gossip(64), Chebyshev(64)):
        mixed = run_recurrence(network.sparse.dot, consensus.coefficients(network), rows)
        assert mixed.mean(axis=0) == pytest.approx(rows.mean(axis=0), abs=1e-14)


@pytest.mark.parametrize("consensus", EVERY)
@pytest.mark.parametrize("K", [2, 5])
def test_coefficients_are_a_table_of_rounds(consensus, K):
    network = SYMMETRIC["grid"]
    table = consensus(K).coefficients(network)
    assert table.shape == (K, 3)
    assert table.dtype == np.float64
    assert table.sum(axis=1) == pytest.approx(1, abs=1e-15)
    weights = consensus(K).weights(network)
    assert weights.shape == (20, 20)
    assert weights.nnz == 2 * network.edges + network.nodes
    if consensus in AVERAGING:
        assert weights is network.sparse


def test_recurrence_takes_any_exchange():
    """Message by message, as an engine of several processes does."""
    network = SYMMETRIC["erdos"]
    rows = np.random.default_rng(1).standard_normal((20, 3))

    def exchange(s):
        W, heard = network.sparse, np.zeros_like(s)
        for i in range(network.nodes):
            for k in range(W.indptr[i], W.indptr[i + 1]):
                heard[i] += W.data[k] * s[W.indices[k]]
        return heard

    for consensus in (Gossip(3), Chebyshev(5), FastMix(4)):
        mixed = run_recurrence(exchange, consensus.coefficients(network), rows)
        assert mixed == pytest.approx(consensus.matrix(network) @ rows, abs=1e-13)


@pytest.mark.parametrize("consensus", [Gossip(3), LazyGossip(2), Chebyshev(4), FastMix(4)])
def test_recurrence_keeps_the_dtype_of_rows(consensus):
    jax = pytest.importorskip("jax")
    network = SYMMETRIC["ring"]
    table = consensus.coefficients(network)
    rows = np.random.default_rng(2).standard_normal((16, 3)).astype(np.float32)
    W = network.W.astype(np.float32)
    expected = consensus.matrix(network) @ rows

    def mix(x):
        return run_recurrence(lambda s: W @ s, table, x)

    for mixed in (mix(rows), jax.jit(mix)(rows)):
        assert mixed.dtype == np.float32
        assert np.asarray(mixed) == pytest.approx(expected, abs=2e-6)


# rounds="auto" -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("target", [0.5, 0.1, 1e-3])
def test_auto_takes_the_fewest_rounds(name, target):
    network = EVERYWHERE[name]
    kinds = [Gossip, LazyGossip, Chebyshev] if network.symmetric else [Gossip, LazyGossip]
    for consensus in kinds:
        settled = consensus("auto", target).resolve(network)
        K = 1  # by trying one more at a time
        while disagreement(consensus(K).matrix(network)) > target * (1 + 1e-12):
            K += 1
        assert settled == consensus(K)
        assert settled.resolve(network) is settled
        assert consensus("auto", target).coefficients(network).shape == (K, 3)
        assert consensus("auto", target).contraction(network) <= target


def test_auto_default_and_its_square_root():
    ring = Network.ring(400)
    gossip = Gossip("auto").resolve(ring).rounds
    chebyshev = Chebyshev(rounds="auto").resolve(ring).rounds
    assert Chebyshev("auto", 0.1).resolve(ring).rounds == chebyshev
    # log(10)/gap against log(20)/sqrt(2 (theta - 1)), of closed-form eigenvalues.
    gap = (2 - 2 * math.cos(2 * math.pi / 400)) / 3
    assert gossip == math.ceil(math.log(0.1) / math.log(1 - gap))
    assert chebyshev == math.ceil(math.acosh(10) / math.acosh(theta_of_ring(400)))
    assert chebyshev < 2.5 * math.sqrt(gossip)


def test_auto_out_of_reach():
    with pytest.raises(ValueError, match=r"more than 1,000,000 rounds of Gossip.*use Chebyshev"):
        Gossip("auto").resolve(Network.ring(10000))
    assert 4000 < Chebyshev("auto").resolve(Network.ring(10000))._count(Network.ring(4)) < 5000


# Refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize("consensus", [Chebyshev(3), Chebyshev("auto"), FastMix(3)])
@pytest.mark.parametrize("network", DIRECTED.values(), ids=list(DIRECTED))
def test_symmetric_weights_are_asked_for(consensus, network):
    message = rf"{type(consensus).__name__} needs a symmetric W.*use Gossip\(rounds="
    for ask in (consensus.check, consensus.coefficients, consensus.contraction, consensus.matrix):
        with pytest.raises(ValueError, match=message):
            ask(network)


def test_why_chebyshev_is_refused_there():
    """T_K(W/lambda)/T_K(1/lambda) on a directed ring: measured 1.15, 2.0, 4.3, 18."""
    network = DIRECTED["directed ring"]
    rate, W = network.mixing_rate, network.W
    grown = []
    for K in (2, 4, 8, 16):
        before, now = np.eye(8), W / rate
        for _ in range(K - 1):
            before, now = now, 2 / rate * W @ now - before
        grown.append(disagreement(now / eval_chebyt(K, 1 / rate)))
    assert grown == pytest.approx([1.15, 2.0, 4.3, 18], rel=0.03)


def test_fastmix_that_spreads_apart_is_refused():
    network = near_periodic(8)
    message = r"FastMix\(rounds=2\) multiplies the disagreement by 2.53.*lazy-metropolis"
    with pytest.raises(ValueError, match=message):
        FastMix(2).check(network)
    FastMix(60).check(network)
    FastMix(1).check(Network.ring(8, weights="lazy-metropolis"))


@pytest.mark.parametrize("consensus", [ColumnStochastic(2), RowStochastic(2)])
def test_one_sided_weights_have_no_contraction(consensus):
    network = DIRECTED["chords"]
    consensus.check(network)
    with pytest.raises(ValueError, match=r"has no contraction: .*Gossip"):
        consensus.contraction(network)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Gossip(0), ValueError, "rounds must be an integer >= 1, got 0"),
        (lambda: Chebyshev(-3), ValueError, "rounds must be an integer >= 1, got -3"),
        (lambda: FastMix(True), ValueError, "rounds must be an integer >= 1, got True"),
        (lambda: Gossip(2.0), TypeError, "rounds must be an integer >= 1, got 2.0"),
        (lambda: Gossip(None), TypeError, "rounds must be an integer >= 1, got None"),
        (lambda: Gossip("all"), ValueError, "integer >= 1 or 'auto', got 'all'"),
        (lambda: Gossip(3, target=0.1), ValueError, "target=0.1 goes with rounds='auto', got"),
        (lambda: Gossip("auto", target=0), ValueError, "target must be > 0, got 0"),
        (lambda: Gossip("auto", target=1.0), ValueError, r"target must be in \(0, 1\).*got 1.0"),
        (lambda: Gossip("auto", target="low"), TypeError, "target must be a number, got 'low'"),
        (lambda: FastMix("auto"), ValueError, "FastMix does not promise: give rounds an integer"),
        (lambda: RowStochastic("auto"), ValueError, "RowStochastic does not promise"),
    ],
)
def test_wrong_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("consensus", EVERY)
def test_consensus_is_plain_configuration(consensus):
    one = consensus(np.int64(2))
    assert type(one.rounds) is int
    assert one == consensus(2)
    assert hash(one) == hash(consensus(2))
    assert one != consensus(3)
    assert repr(one).startswith(f"{consensus.__name__}(rounds=2")
    assert isinstance(one, Consensus)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.rounds = 5
    assert consensus() == consensus(1)
    assert len({kind(2) for kind in EVERY}) == len(EVERY)

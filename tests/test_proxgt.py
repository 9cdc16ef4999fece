"""Algorithms 1-4 against a NumPy transcription of the paper, and what must follow from them."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import paper
import proxgt as pg
from helpers import (
    bumpy_gradient,
    bumpy_loss,
    indices,
    regression,
    square_gradient,
    square_loss,
    trajectory,
)
from proxgt.problems import oracles
from proxgt.problems.oracles import scaled

NODES, M, P, STEPS, ALPHA, STRENGTH = 5, 8, 4, 50, 0.05, 0.1
A, B = regression(NODES, M, P)
X1 = np.linspace(-1, 1, P)


def prox(v, a):
    return paper.soft(v, a * STRENGTH)


def problem(loss=square_loss):
    return pg.EmpiricalRisk(loss, (A, B), pg.L1(STRENGTH), x0=X1)


def assert_same(ours, theirs):
    assert len(ours) == len(theirs)
    for mine, paper_x in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, paper_x, rtol=0, atol=1e-10)


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("network", [pg.Network.ring(NODES), pg.Network.directed_ring(NODES)])
def test_algorithm_1(network, rounds):
    method = pg.ProxGT(pg.FullGradient(), ALPHA, pg.Gossip(rounds))
    ours = trajectory(problem(), network, method, STEPS)
    theirs, *_ = paper.proxgt(
        X1, network.W, rounds, ALPHA, prox, paper.full(square_gradient(A, B)), STEPS
    )
    assert_same(ours, theirs)


@pytest.mark.parametrize("batch", [1, 3])
def test_algorithm_2(batch):
    network = pg.Network.ring(NODES)
    risk = problem(bumpy_loss)
    ours = trajectory(risk, network, pg.ProxGT_SA(batch, ALPHA, pg.Gossip(2)), STEPS, seed=7)
    estimator = paper.minibatch(bumpy_gradient(A, B), indices(risk, batch, STEPS, seed=7))
    theirs, *_ = paper.proxgt(X1, network.W, 2, ALPHA, prox, estimator, STEPS)
    assert_same(ours, theirs)


@pytest.mark.parametrize("period", [1, 4, 7])
def test_algorithm_3(period):
    network, risk = pg.Network.ring(NODES), problem(bumpy_loss)
    ours = trajectory(risk, network, pg.ProxGT_SR_O(2, period, 6, ALPHA), STEPS)
    estimator = paper.sarah(
        bumpy_gradient(A, B), indices(risk, 2, STEPS), period, indices(risk, 6, STEPS)
    )
    theirs, *_ = paper.proxgt(X1, network.W, 1, ALPHA, prox, estimator, STEPS)
    assert_same(ours, theirs)


@pytest.mark.parametrize("period", [1, 4, 7])
def test_algorithm_4(period):
    network, risk = pg.Network.ring(NODES), problem(bumpy_loss)
    ours = trajectory(risk, network, pg.ProxGT_SR_E(2, period, ALPHA, pg.Gossip(2)), STEPS)
    estimator = paper.sarah(bumpy_gradient(A, B), indices(risk, 2, STEPS), period)
    theirs, *_ = paper.proxgt(X1, network.W, 2, ALPHA, prox, estimator, STEPS)
    assert_same(ours, theirs)


def test_the_draws_differ_between_nodes_steps_and_seeds():
    drawn = indices(problem(), 4, 30)
    assert len({drawn[t, i].tobytes() for t in range(30) for i in range(NODES)}) > 140
    assert not np.array_equal(drawn, indices(problem(), 4, 30, seed=1))
    assert set(drawn.ravel()) == set(range(M))


def test_chebyshev_consensus_is_its_polynomial():
    network, consensus = pg.Network.ring(NODES), pg.Chebyshev(3)
    ours = trajectory(problem(), network, pg.ProxGT(pg.FullGradient(), ALPHA, consensus), STEPS)
    theirs, *_ = paper.proxgt(
        X1, consensus.matrix(network), 1, ALPHA, prox, paper.full(square_gradient(A, B)), STEPS
    )
    assert_same(ours, theirs)


def test_a_matrix_that_only_sums_to_one_by_columns_is_refused():
    # On a star it would leave the nodes apart for good, at a metric far from zero.
    with pytest.raises(ValueError, match="must keep the network mean"):
        pg.ProxGT(pg.FullGradient(), ALPHA, pg.ColumnStochastic(1))


def test_step_size_schedule_is_asked_at_steps_from_zero():
    network = pg.Network.ring(NODES)
    schedule = pg.ProxGT(pg.FullGradient(), lambda t: 0.1 / (1.0 + t))
    ours = trajectory(problem(), network, schedule, 3)
    x = np.tile(X1, (NODES, 1))
    y = v_before = np.zeros_like(x)
    gradient = square_gradient(A, B)
    for t in range(3):
        a = 0.1 / (1 + t)
        v = np.stack([gradient(i, x[i], None) for i in range(NODES)])
        y = network.W @ (y + v - v_before)
        x, v_before = network.W @ prox(x - a * y, a), v
    np.testing.assert_allclose(ours[-1], x, atol=1e-12)


@pytest.mark.parametrize(
    "estimator",
    [
        pg.FullGradient(),
        pg.Minibatch(2),
        pg.SARAH(2, 5),
        pg.SARAH(2, 5, 6),
        pg.STORM(2, 0.1, 4),
        pg.SAGA(2),
    ],
)
def test_mean_of_tracker_is_mean_of_estimates(estimator):
    """Eq. (11), at every step, over a directed graph."""
    network = pg.Network.directed_exponential(NODES)
    method = pg.ProxGT(estimator, ALPHA, pg.Gossip(2))
    with jax.enable_x64(True):
        risk = problem(bumpy_loss)
        oracle = risk.oracle(risk.spec(), "float64")
        W2 = jnp.asarray(np.linalg.matrix_power(network.W, 2))

        @jax.jit
        def step(oracle, state, keys):
            draw = method.draw(oracle, keys)
            return method.step(oracle, lambda rows: W2 @ rows, state, draw)

        state = method.init(oracle, None, jnp.tile(jnp.asarray(X1), (NODES, 1)))
        for t in range(20):
            state = step(oracle, state, jax.random.split(jax.random.key(t), NODES))
            np.testing.assert_allclose(state.y.mean(0), state.estimate.v.mean(0), atol=1e-13)
            assert np.abs(state.y.mean(0)).max() > 1e-4  # not a comparison of zeros


def test_one_node_is_proximal_gradient():
    a, b = regression(1, 12, P)
    risk = pg.EmpiricalRisk(square_loss, (a, b), pg.L1(STRENGTH), x0=X1)
    ours = trajectory(risk, pg.Network.complete(1), pg.ProxGT(pg.FullGradient(), ALPHA), 30)
    x, gradient = X1, square_gradient(a, b)
    for mine in ours:
        np.testing.assert_allclose(mine[0], x, atol=1e-12)
        x = prox(x - ALPHA * gradient(0, x, None), ALPHA)


def test_complete_graph_is_the_centralized_method_with_all_samples():
    """W = 11^T/n: every node moves along the mean of the n*b sample gradients."""
    risk, batch = problem(), 2
    network = pg.Network.complete(NODES)
    np.testing.assert_allclose(network.W, np.full((NODES, NODES), 1 / NODES), atol=1e-15)
    ours = trajectory(risk, network, pg.ProxGT_SA(batch, ALPHA), 30)
    drawn, gradient = indices(risk, batch, 30), square_gradient(A, B)
    x = X1
    for t, mine in enumerate(ours):
        np.testing.assert_allclose(mine, np.tile(x, (NODES, 1)), atol=1e-10)
        if t < 30:
            pooled = np.mean([gradient(i, x, drawn[t, i]) for i in range(NODES)], axis=0)
            x = prox(x - ALPHA * pooled, ALPHA)


def test_storm_is_the_hybrid_recursion():
    network, risk, batch, momentum = pg.Network.ring(NODES), problem(bumpy_loss), 2, 0.3
    method = pg.ProxGT(pg.STORM(batch, momentum, first=5), ALPHA)
    ours = trajectory(risk, network, method, STEPS)
    gradient = bumpy_gradient(A, B)
    first, later = indices(risk, 5, 1), indices(risk, batch, STEPS)

    def estimator(t, x, x_before, v_before):
        rows = []
        for i in range(NODES):
            if t == 1:
                rows.append(gradient(i, x[i], first[0, i]))
            else:
                use = later[t - 1, i]
                correction = (1 - momentum) * (v_before[i] - gradient(i, x_before[i], use))
                rows.append(gradient(i, x[i], use) + correction)
        return np.stack(rows)

    theirs, *_ = paper.proxgt(X1, network.W, 1, ALPHA, prox, estimator, STEPS)
    assert_same(ours, theirs)


def test_saga_is_the_table_recursion():
    network, risk, batch = pg.Network.ring(NODES), problem(), 3
    ours = trajectory(risk, network, pg.ProxGT(pg.SAGA(batch), ALPHA), STEPS)
    drawn, gradient = indices(risk, 2 * batch, STEPS), square_gradient(A, B)
    table = np.stack([[gradient(i, X1, [s]) for s in range(M)] for i in range(NODES)])

    def estimator(t, x, x_before, v_before):
        rows = []
        for i in range(NODES):
            use, renew = drawn[t - 1, i, :batch], drawn[t - 1, i, batch:]
            v = gradient(i, x[i], use) - table[i, use].mean(0) + table[i].mean(0)
            for s in renew:
                table[i, s] = gradient(i, x[i], [s])
            rows.append(v)
        return np.stack(rows)

    theirs, *_ = paper.proxgt(X1, network.W, 1, ALPHA, prox, estimator, STEPS)
    assert_same(ours, theirs)


def test_unequal_shards_use_each_nodes_own_mean():
    rng = np.random.default_rng(3)
    sizes = [3, 40, 17, 1, 100]
    shards = [(rng.standard_normal((m, P)), rng.standard_normal(m)) for m in sizes]
    risk = pg.EmpiricalRisk(square_loss, shards, pg.L1(STRENGTH), x0=X1)
    network = pg.Network(nx.path_graph(5))
    gradient = square_gradient([s[0] for s in shards], [s[1] for s in shards])
    ours = trajectory(risk, network, pg.ProxGT_SR_E(4, 6, ALPHA), STEPS)
    drawn = indices(risk, 4, STEPS)
    assert (drawn.max(axis=(0, 2)) < sizes).all()
    theirs, *_ = paper.proxgt(X1, network.W, 1, ALPHA, prox, paper.sarah(gradient, drawn, 6), STEPS)
    assert_same(ours, theirs)
    expected = np.mean([gradient(i, X1, None) for i in range(5)], axis=0)
    np.testing.assert_allclose(risk.gradient(X1), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("limit", "at_once"),
    [
        ("_GROUP", 1),
        ("_GROUP", 2),
        ("_GROUP", 5),
        ("_PART", 1 / 4),
        ("_PART", 1 / 2),
        ("_PART", 0.8),
    ],
)
def test_gradients_of_some_samples_after_others_are_the_same(monkeypatch, limit, at_once):
    """Five nodes of unequal m_i in groups of 1, 2 (and one left over) and 5; parts of a draw."""
    a, b = regression(5, 8, 4)
    shards = [(a[i, : 3 + i], b[i, : 3 + i]) for i in range(5)]
    problem = pg.EmpiricalRisk(square_loss, shards, x0=np.zeros(4))
    draw = np.array([[0, 2, 1, 0, 2], [3] * 5, [4, 0, 1, 2, 3], [5, 5, 0, 1, 4], [6, 2, 6, 2, 6]])
    x = np.random.default_rng(1).standard_normal((5, 4))
    monkeypatch.setattr(oracles, limit, int(at_once * 5 * (4 + 1) * 8))  # bytes of a node's draw
    with jax.enable_x64(True):
        oracle = problem.oracle(problem.spec(), "float64").on(1)
        found = np.asarray(oracle.gradients(jnp.asarray(x), jnp.asarray(draw)))
    gradient = square_gradient(a, b)
    assert np.allclose(found, [gradient(i, x[i], draw[i]) for i in range(5)], rtol=0, atol=1e-12)


@pytest.mark.parametrize("cores", [1, 4])
def test_no_copy_of_the_batches_of_all_nodes_is_made(cores):
    n, m, p, batch = 24, 2, 4096, 64  # 25 MB of samples a step
    data = (np.ones((n, m, p), np.float32), np.ones((n, m), np.float32))
    problem = pg.EmpiricalRisk(square_loss, data, x0=np.zeros(p))
    oracle = problem.oracle(problem.spec(), "float32").on(cores)
    gradients = jax.jit(lambda oracle, x, draw: oracle.gradients(x, draw))
    made = gradients.lower(oracle, jnp.zeros((n, p)), jnp.zeros((n, batch), jnp.int32)).compile()
    assert made.memory_analysis().temp_size_in_bytes < 12 << 20


def test_sampling_is_uniform_over_a_nodes_own_samples():
    shards = [(np.ones((m, 1)), np.ones(m)) for m in (5, 64)]
    risk = pg.EmpiricalRisk(square_loss, shards, x0=np.zeros(1))
    drawn = indices(risk, 200, 50)
    for i, m in enumerate((5, 64)):
        counts = np.bincount(drawn[:, i].ravel(), minlength=m)
        chi2 = ((counts - 10000 / m) ** 2 / (10000 / m)).sum()
        assert len(counts) == m
        assert chi2 < m - 1 + 5 * np.sqrt(2 * (m - 1))


@pytest.mark.parametrize("m", [1, 3, 1000, 65537, 10**6, 2**31 - 1])
def test_indices_are_the_high_half_of_a_64_bit_product(m):
    bits = np.random.default_rng(m).integers(0, 2**32, 2000, dtype=np.uint64)
    bits[:3] = 0, 2**32 - 1, 2**31
    ours = scaled(jnp.asarray(bits.astype(np.uint32)), jnp.asarray(m, jnp.int32))
    assert np.array_equal(np.asarray(ours), (bits * np.uint64(m)) >> np.uint64(32))

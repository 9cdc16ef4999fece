"""Lemmas 1-8 on random problems, graphs and parameters; every shape is fixed, to compile once."""

from dataclasses import replace

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proxgt as pg
from helpers import bumpy_loss, regression
from proxgt.theory import Scales, bound, lemmas, record_trajectory

N, M, P, T, SEEDS = 5, 6, 3, 16, 32
GRAPHS = {
    "ring": pg.Network.ring(N),
    "path": pg.Network.path(N),
    "star": pg.Network.star(N),
    "directed ring": pg.Network.directed_ring(N),
    "random": pg.Network(nx.gnp_random_graph(N, 0.8, seed=1)),
    "complete": pg.Network.complete(N),
}
ESTIMATORS = {"SA": pg.Minibatch(2), "SR-O": pg.SARAH(2, 4, 5), "SR-E": pg.SARAH(2, 4)}
REGULARIZERS = {"l1": pg.L1(0.05), "ball": pg.L2Ball(1.5)}
H_OF = {"SA": "l1", "SR-O": "ball", "SR-E": "l1"}  # one each, as each is compiled anew
few = settings(max_examples=6, deadline=None, derandomize=True)


@st.composite
def runs(draw):
    """A consensus on a graph, a seed of the data, and how much of 1/(8L) the step is."""
    graph = draw(st.sampled_from(sorted(GRAPHS)))
    network, rounds = GRAPHS[graph], draw(st.integers(1, 3))
    chebyshev = network.symmetric and draw(st.booleans())
    consensus = pg.Chebyshev(rounds) if chebyshev else pg.Gossip(rounds)
    share = draw(st.sampled_from([0.2, 0.6, 1.0]))
    return network, consensus, draw(st.integers(0, 10**6)), share


def bumpy(a, b, h):
    """r^2/(1 + r^2): |phi''| <= 2, phi >= 0. Its L of Assumptions 1 and 5."""
    gram = np.einsum("imp,imq->ipq", a, a) / M
    fourth = np.einsum("imp,imq,im->ipq", a, a, (a**2).sum(-1)) / M
    L = 2 * np.linalg.eigvalsh(gram).max()
    mss = 2 * np.sqrt(np.linalg.eigvalsh(fourth).max())
    return pg.EmpiricalRisk(bumpy_loss, (a, b), h, x0=np.linspace(-0.5, 0.5, P), smoothness=L), mss


def largest_nu(a, b, x):
    """nu at every iterate of x (..., N, P): the root mean square over nodes of the largest."""
    r = np.einsum("imp,...ip->...im", a, x) - b
    gradients = a * (2 * r / (1 + r**2) ** 2)[..., None]
    spread = gradients - gradients.mean(-2, keepdims=True)
    squares = (spread**2).sum(-1).mean(-1).reshape(-1, N)
    return np.sqrt(squares.max(0).mean())


def recorded(case, name):
    network, consensus, seed, share = case
    estimator, h = ESTIMATORS[name], REGULARIZERS[H_OF[name]]
    a, b = regression(N, M, P, seed=seed)
    problem, mss = bumpy(a, b, h)
    method = pg.ProxGT(estimator, share / (8 * problem.smoothness), consensus)
    run = record_trajectory(problem, network, method, T, range(SEEDS))
    at_start = np.asarray(run.gradients[0, 0])
    zeta = np.sqrt((at_start**2).sum() / N)
    return run, problem.smoothness, mss, largest_nu(a, b, run.x), zeta


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
@few
@given(case=runs())
def test_lemmas_4_to_8(name, case):
    run, L, mss, nu, zeta = recorded(case, name)
    assert lemmas.tracked(run) < 1e-12 * max(1, abs(run.v).max())  # eq. (11)
    for version in ("paper", "corrected"):
        assert lemmas.differences(run, version).holds
        assert lemmas.variance(run, nu, mss, version).holds
        assert lemmas.tracking(run, nu, zeta, mss if name != "SA" else L, version).holds
    assert lemmas.descent(run, L, lower_bound=0.0).holds
    assert lemmas.consensus(run).holds


def test_a_lemma_is_no_tautology():
    """With a bound ten thousand times too small, or a wrong contraction, inequalities break."""
    case = (GRAPHS["path"], pg.Gossip(1), 3, 1.0)
    run, L, mss, nu, zeta = recorded(case, "SA")
    assert not lemmas.variance(run, 0.5 * nu / 10, mss).holds
    assert not lemmas.theorem(run, L, 1e-6).holds
    wrong = replace(run, contraction=1e-3)
    assert not lemmas.consensus(wrong).holds
    assert not lemmas.tracking(wrong, nu, zeta, L).holds


def test_trajectories_are_those_of_solve():
    network, consensus = GRAPHS["ring"], pg.Chebyshev(2)
    a, b = regression(N, M, P, seed=1)
    problem, _ = bumpy(a, b, REGULARIZERS["ball"])
    method = pg.ProxGT(ESTIMATORS["SR-O"], 0.02, consensus)
    run = record_trajectory(problem, network, method, T, range(SEEDS))
    result = pg.solve(
        problem,
        network,
        method,
        T,
        seed=7,
        dtype="float64",
        record_every=1,
        metric_at="nodes",
    )
    np.testing.assert_allclose(run.x[7, -1], result.x, atol=1e-12)
    theirs = result.history["metric"][:-1]
    np.testing.assert_allclose(run.metric(problem.smoothness)[7], theirs, rtol=1e-8)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 3))
def test_lemma_1(seed, step):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, P)) * 3
    for h in REGULARIZERS.values():
        assert lemmas.nonexpansive(h.prox, a.astype("f4"), b.astype("f4"), step).lhs <= (
            np.linalg.norm(a - b) * (1 + 1e-5)
        )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=2, max_size=10), st.floats(0, 10), st.floats(0.01, 0.99))
def test_lemma_2(b, first, q):
    a = [first]
    for term in b:
        a.append(q * a[-1] + term)
    assert lemmas.accumulation(a, b, q).holds


def test_lemma_2_needs_signs_the_paper_leaves_out():
    assert not lemmas.accumulation([-1.0, -0.5], [0.0], 0.5).holds
    with pytest.raises(ValueError, match="must satisfy"):
        lemmas.accumulation([1.0, 2.0], [0.0], 0.5)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(GRAPHS)), st.integers(1, 6), st.integers(0, 10**6))
def test_lemma_3(graph, K, seed):
    network, rows = GRAPHS[graph], np.random.default_rng(seed).standard_normal((N, P))
    kinds = (pg.Gossip, pg.Chebyshev) if network.symmetric else (pg.Gossip,)
    for kind in kinds:
        consensus = kind(K)
        left = consensus.contraction(network)
        checks = lemmas.weights(consensus.matrix(network), left, rows)
        assert all(one.holds for one in checks)


def test_lemma_3b_is_an_inequality_for_a_w_that_is_not_normal():
    W = np.random.default_rng(0).random((4, 4)) ** 6
    for _ in range(2000):
        W /= W.sum(1, keepdims=True)
        W /= W.sum(0)
    network = pg.Network.from_weights(W)
    norm = np.linalg.norm(np.linalg.matrix_power(W, 3) - 1 / 4, 2)
    assert norm < 0.9 * network.mixing_rate**3


def test_gradients_of_population_tasks():
    problem, network = pg.tasks.noisy_quadratic(N, p=6, nu=0.7), GRAPHS["ring"]
    run = record_trajectory(problem, network, pg.ProxGT_SA(3, 0.1, pg.Gossip(2)), T, range(SEEDS))
    check = lemmas.variance(run, 0.7, 1.0)
    assert check.holds
    assert check.tightness > 0.8  # nu is exact everywhere
    free = pg.PopulationRisk(
        lambda w, s: (w - s) ** 2, lambda k, i: jax.random.normal(k), 3, x0=0.0
    )
    with pytest.raises(ValueError, match="need grad f_i"):
        record_trajectory(free, pg.Network.ring(3), pg.ProxGT_SA(3, 0.1), 4)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_the_theorems_hold_where_their_conditions_do(name):
    """Eqs. (24), (30), (39), whose left side is an average over seeds."""
    a, b = regression(N, M, P, seed=5)
    problem, mss = bumpy(a, b, REGULARIZERS[H_OF[name]])
    network, consensus = GRAPHS["ring"], pg.Gossip(4)
    L = max(problem.smoothness, mss)
    run = record_trajectory(
        problem, network, pg.ProxGT(ESTIMATORS[name], 0.01 / L, consensus), T, range(SEEDS)
    )
    zeta = np.sqrt((run.gradients[0, 0] ** 2).sum() / N)
    scales = Scales(problem.smoothness, L, largest_nu(a, b, run.x), zeta, run.start, N, M)
    sizes = {} if name == "SA" else {"period": 4, "refresh": 5}
    promised = bound(
        name,
        scales,
        steps=T,
        step_size=run.step_size,
        contraction=run.contraction,
        batch=2,
        **sizes,
    )
    assert promised.holds
    assert lemmas.theorem(run, problem.smoothness, promised.value).holds


def test_lemmas_ask_for_what_they_need():
    case = (GRAPHS["ring"], pg.Gossip(1), 3, 1.0)
    run, L, *_ = recorded(case, "SR-O")
    other = replace(run, method=pg.ProxGT_SR_O(2, 5, 6, run.step_size))
    with pytest.raises(ValueError, match="T = R q"):
        lemmas.variance(other, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"1/\(8 L\)"):
        lemmas.descent(run, 2 * L, 0.0)

"""The smooth rivals and their primal-dual kin: recursions, identities, behaviour, refusals."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paper
import proxgt as pg
import publications_smooth as published
from helpers import (
    bumpy_gradient,
    bumpy_loss,
    indices,
    regression,
    square_gradient,
    square_loss,
)
from proxgt.consensus import ColumnStochastic, FastMix, LazyGossip
from proxgt.engines.local import step_keys
from proxgt.methods.base import prepared
from proxgt.methods.composite import Projected_DSGD, Prox_DGD
from proxgt.methods.diffusion import D2, D_SPIDER_SFO, ExactDiffusion, Prox_ED
from proxgt.methods.diging import D_GET, GNSD, GT_SARAH, DIGing
from proxgt.methods.gradient import DSGD, DSGD_ATC, DecentLaM
from proxgt.methods.nested import DESTRESS, DestressConsensus, Network_SARAH
from proxgt.methods.primal_dual import EXTRA, NIDS, PG_EXTRA
from proxgt.methods.tracking import GT_DSGD, GT_HSGD, GT_SAGA, DeTAG

NODES, M, P, STEPS, ALPHA, STRENGTH = 5, 8, 4, 50, 0.05, 0.1
A, B = regression(NODES, M, P)
X0 = np.linspace(-1, 1, P)
RING = pg.Network.ring(NODES)
W, I = RING.W, np.eye(NODES)
FULL = pg.FullGradient()
G = published.full(square_gradient(A, B))
SMOOTH = pg.EmpiricalRisk(square_loss, (A, B), x0=X0)
BUMPY = pg.EmpiricalRisk(bumpy_loss, (A, B), x0=X0)
COMPOSITE = pg.EmpiricalRisk(square_loss, (A, B), pg.L1(STRENGTH), x0=X0)


@jax.jit
def compiled(oracle, method, mix, key, state, steps):
    """The first x_0, ..., x_STEPS and the last x of a run; `steps` is traced."""
    nodes = jnp.arange(state.x.shape[0])

    def one_step(t, carry):
        state, path = carry
        path = path.at[jnp.minimum(t, STEPS)].set(state.x)
        draw = method.draw(oracle, step_keys(key, t, nodes))
        return method.step(oracle, mix, state, draw), path

    path = jnp.zeros((STEPS + 1, *state.x.shape))
    state, path = jax.lax.fori_loop(0, steps, one_step, (state, path))
    return path.at[jnp.minimum(steps, STEPS)].set(state.x), state.x


def run(risk, network, method, steps, seed=0):
    """As `solve` in float64, but a new step size, W or length does not compile anew."""
    method = prepared(method, network)
    method.check(risk, network)
    with jax.enable_x64(True):
        mix = jax.tree.map(
            lambda one: jax.tree_util.Partial(jnp.matmul, jnp.asarray(one.matrix(network))),
            method.consensus,
            is_leaf=lambda node: isinstance(node, pg.Consensus),
        )
        oracle = risk.oracle(risk.spec(), "float64")
        state = method.init(oracle, mix, jnp.tile(jnp.asarray(risk.x0), (network.nodes, 1)))
        result = compiled(oracle, method, mix, jax.random.key(seed), state, steps)
        return tuple(np.asarray(array) for array in result)


def trajectory(risk, network, method, steps, seed=0):
    """x_0, ..., x_steps."""
    assert steps <= STEPS
    return run(risk, network, method, steps, seed)[0][: steps + 1]


def prox(v, a):
    return paper.soft(v, a * STRENGTH)


def assert_same(ours, theirs, atol=1e-10):
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(np.stack(ours), np.stack(theirs), rtol=0, atol=atol)
    assert np.ptp(np.stack(ours), axis=0).max() > 1e-3  # not a comparison of constants


# the recursions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "risk", "theirs"),
    [
        (DSGD(FULL, ALPHA), SMOOTH, published.d_psgd(X0, W, ALPHA, G, STEPS)),
        (DSGD(FULL, ALPHA, pg.Gossip(3)), SMOOTH, published.d_psgd(X0, W @ W @ W, ALPHA, G, STEPS)),
        (DSGD_ATC(FULL, ALPHA), SMOOTH, published.diffusion(X0, W, ALPHA, G, STEPS)),
        (DecentLaM(FULL, 0.8, ALPHA), SMOOTH, published.decentlam(X0, W, ALPHA, 0.8, G, STEPS)),
        (D2(FULL, ALPHA), SMOOTH, published.d2(X0, W, ALPHA, G, STEPS)),
        (ExactDiffusion(FULL, ALPHA), SMOOTH, published.exact_diffusion(X0, W, ALPHA, G, STEPS)),
        (Prox_ED(FULL, ALPHA), COMPOSITE, published.prox_ed(X0, W, ALPHA, G, prox, STEPS)),
        (NIDS(FULL, ALPHA), COMPOSITE, published.nids(X0, W, ALPHA, G, prox, STEPS)),
        (EXTRA(FULL, ALPHA), SMOOTH, published.extra(X0, W, ALPHA, G, STEPS)),
        (PG_EXTRA(FULL, ALPHA), COMPOSITE, published.pg_extra(X0, W, ALPHA, G, prox, STEPS)),
        (GT_DSGD(FULL, ALPHA), SMOOTH, published.gt_dsgd(X0, W, ALPHA, G, STEPS)),
        (DIGing(FULL, ALPHA), SMOOTH, published.gnsd(X0, W, ALPHA, G, STEPS)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, pg.Method) else "",
)
def test_recursion_with_full_gradients(method, risk, theirs):
    assert_same(trajectory(risk, RING, method, STEPS), theirs)


@pytest.mark.parametrize(
    ("make", "recursion"),
    [
        (DSGD, published.d_psgd),
        (D2, published.d2),
        (GT_DSGD, published.gt_dsgd),
        (GNSD, published.gnsd),
    ],
)
def test_recursion_with_sampled_gradients(make, recursion):
    """D2 and the trackers subtract the last gradient with its own samples."""
    ours = trajectory(SMOOTH, RING, make(pg.Minibatch(2), ALPHA), STEPS, seed=3)
    g = published.minibatch(square_gradient(A, B), indices(SMOOTH, 2, STEPS, seed=3))
    assert_same(ours, recursion(X0, W, ALPHA, g, STEPS))


def test_gt_sarah():
    """An inner loop of q steps after each full gradient: period = q + 1."""
    ours = trajectory(SMOOTH, RING, GT_SARAH(2, 7, ALPHA), STEPS)
    draws = indices(SMOOTH, 2, STEPS)
    assert_same(ours, published.gt_sarah(X0, W, ALPHA, square_gradient(A, B), draws, 6, STEPS))


@pytest.mark.parametrize("refresh", [None, 6])
@pytest.mark.parametrize(
    ("make", "recursion"), [(D_GET, published.d_get), (D_SPIDER_SFO, published.d_spider_sfo)]
)
def test_methods_with_sarah(make, recursion, refresh):
    ours = trajectory(SMOOTH, RING, make(2, 7, ALPHA, refresh=refresh), STEPS)
    draws = indices(SMOOTH, 2, STEPS)
    large = None if refresh is None else indices(SMOOTH, refresh, STEPS)
    gradient = square_gradient(A, B)
    assert_same(ours, recursion(X0, W, ALPHA, gradient, draws, 7, STEPS, large))


def test_gt_hsgd():
    ours = trajectory(SMOOTH, RING, GT_HSGD(2, 0.3, 5, ALPHA), STEPS)
    first, draws = indices(SMOOTH, 5, 1)[0], indices(SMOOTH, 2, STEPS)
    gradient = square_gradient(A, B)
    assert_same(ours, published.gt_hsgd(X0, W, ALPHA, 0.3, gradient, first, draws, STEPS))


def test_gt_saga():
    ours = trajectory(SMOOTH, RING, GT_SAGA(1, ALPHA), STEPS)
    tau, s = np.moveaxis(indices(SMOOTH, 2, STEPS), 2, 0)
    gradient = square_gradient(A, B)
    assert_same(ours, published.gt_saga(X0, W, ALPHA, gradient, M, tau, s, STEPS))


@pytest.mark.parametrize("batch", [None, 3])
def test_detag(batch):
    lazy = pg.Network.ring(NODES, weights="lazy-metropolis")
    estimator = FULL if batch is None else pg.Minibatch(batch)
    ours = trajectory(SMOOTH, lazy, DeTAG(estimator, ALPHA, FastMix(3)), STEPS)
    rate = np.sort(np.abs(np.linalg.eigvalsh(lazy.W)))[-2]
    eta = (1 - np.sqrt(1 - rate**2)) / (1 + np.sqrt(1 - rate**2))
    g = G
    if batch is not None:
        g = published.minibatch(square_gradient(A, B), indices(SMOOTH, batch, STEPS))
    assert_same(ours, published.detag(X0, lazy.W, ALPHA, 3, eta, g, STEPS))


def test_detag_with_one_plain_round_mixes_the_step_too():
    """RIVALS section 3: R = 1 without acceleration is x+ = W x - a W y."""
    ours = trajectory(SMOOTH, RING, DeTAG(FULL, ALPHA, pg.Gossip(1)), STEPS)
    x, before = np.tile(X0, (NODES, 1)), G(0, np.tile(X0, (NODES, 1)))
    y, xs = before, [x]
    for t in range(STEPS):
        now = G(t, x)
        x, y, before = W @ x - ALPHA * W @ y, W @ y + now - before, now
        xs.append(x)
    assert_same(ours, xs)


def test_network_sarah():
    method = Network_SARAH(2, 5, ALPHA, pg.Gossip(2))
    ours = trajectory(SMOOTH, RING, method, STEPS)
    draws, gradient = indices(SMOOTH, 2, STEPS), square_gradient(A, B)
    assert_same(ours, published.network_sarah(X0, W @ W, ALPHA, gradient, draws, 5, STEPS // 5))


@pytest.mark.parametrize("activation", [1.0, 0.4])
def test_destress(activation):
    inner, outer = pg.Chebyshev(2), pg.Gossip(2)
    parts = DestressConsensus(inner, outer, pg.Chebyshev("auto", 1e-14))
    method = DESTRESS(2, 5, ALPHA, parts, activation)
    ours = trajectory(SMOOTH, RING, method, STEPS)
    nodes, oracle = jnp.arange(NODES), SMOOTH.oracle(SMOOTH.spec(), "float32")
    keys = [step_keys(jax.random.key(0), t, nodes) for t in range(STEPS)]
    active = np.stack([method.draw(oracle, key).active for key in keys])
    assert abs(active.mean() - activation) < 0.1
    theirs = published.destress(
        X0,
        inner.matrix(RING),
        W @ W,
        ALPHA,
        square_gradient(A, B),
        indices(SMOOTH, 2, STEPS),
        5,
        STEPS // 5,
        activation,
        active,
    )
    assert_same(ours, theirs)


def test_solve_makes_these_steps_with_several_operators():
    method = DESTRESS(2, 5, ALPHA, pg.Chebyshev(2), 0.4)
    result = pg.solve(SMOOTH, RING, method, 12, dtype="float64", record_every=12)
    np.testing.assert_allclose(result.x, trajectory(SMOOTH, RING, method, 12)[-1], atol=1e-12)
    start = prepared(method, RING).consensus.start.rounds
    assert start > 5
    assert result.history[-1].rounds == (12 + 9) * 2 + start + 2 * 2


def test_a_schedule_is_asked_at_steps_from_zero():
    """NIDS needs the step size before, too; the difference of a v telescopes as published."""
    ours = trajectory(COMPOSITE, RING, NIDS(FULL, lambda t: 0.1 / (1.0 + t)), 4)
    lazy = (I + W) / 2
    x = np.tile(X0, (NODES, 1))
    before, last = x, 0.1 * G(0, x)
    u = x - last
    x = prox(u, 0.1)
    for t in range(1, 4):
        a = 0.1 / (1 + t)
        u = u - x + lazy @ (2 * x - before - a * G(t, x) + last)
        before, last = x, a * G(t, x)
        x = prox(u, a)
    np.testing.assert_allclose(ours[-1], x, atol=1e-12)


# identities ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ExactDiffusion(FULL, ALPHA), D2(FULL, ALPHA, LazyGossip(1))),
        (Prox_ED(FULL, ALPHA), ExactDiffusion(FULL, ALPHA)),
        (PG_EXTRA(FULL, ALPHA), EXTRA(FULL, ALPHA)),
        (pg.ProxGT_SR_E(1, 1, ALPHA), GT_DSGD(FULL, ALPHA)),
        (pg.ProxGT_SA(2, ALPHA), GT_DSGD(pg.Minibatch(2), ALPHA)),
        (D_GET(2, 1, ALPHA), GNSD(FULL, ALPHA)),
        (D_SPIDER_SFO(2, 1, ALPHA), D2(FULL, ALPHA)),
        (DecentLaM(FULL, 0.0, ALPHA), DSGD_ATC(FULL, ALPHA)),
        (Prox_DGD(FULL, ALPHA), DSGD(FULL, ALPHA)),
        (Projected_DSGD(FULL, ALPHA), DSGD_ATC(FULL, ALPHA)),
        (GT_HSGD(2, 1.0, 2, ALPHA), GT_DSGD(pg.Minibatch(2), ALPHA)),
        (GT_HSGD(2, 0.0, 5, ALPHA), GT_DSGD(pg.SARAH(2, 2 * STEPS, 5), ALPHA)),
    ],
    ids=lambda method: type(method).__name__,
)
def test_identities_without_a_regularizer(one, other):
    assert_same(trajectory(SMOOTH, RING, one, STEPS), trajectory(SMOOTH, RING, other, STEPS), 1e-12)


SINGLE = pg.EmpiricalRisk(square_loss, (A[:, :1], B[:, :1]), x0=X0)


@pytest.mark.parametrize(
    ("method", "theirs"),
    [
        (GT_SARAH(1, 7, ALPHA), published.gnsd),
        (D_GET(1, 7, ALPHA), published.gnsd),
        (GT_HSGD(1, 0.3, 1, ALPHA), published.gt_dsgd),
        (GT_SAGA(1, ALPHA), published.gt_dsgd),
        (D_SPIDER_SFO(1, 7, ALPHA), published.d2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, pg.Method) else "",
)
def test_a_batch_of_all_samples_leaves_nothing_to_estimate(method, theirs):
    """RIVALS 1.4, 1.5: of nodes with one sample every batch is the full gradient."""
    g = published.full(square_gradient(A[:, :1], B[:, :1]))
    ours = trajectory(SINGLE, RING, method, STEPS)
    assert_same(ours, theirs(X0, W, ALPHA, g, STEPS))


def test_nids_is_d2_on_lazy_weights_with_an_unmixed_first_step():
    lazy = (I + W) / 2
    before = np.tile(X0, (NODES, 1))
    x = before - ALPHA * G(0, before)
    xs = [before, x]
    for t in range(1, STEPS):
        x, before = lazy @ (2 * x - before - ALPHA * (G(t, x) - G(t, before))), x
        xs.append(x)
    assert_same(trajectory(SMOOTH, RING, NIDS(FULL, ALPHA), STEPS), xs)


def test_complete_graph_makes_dsgd_centralized():
    complete = pg.Network.complete(NODES)
    ours = trajectory(SMOOTH, complete, DSGD_ATC(FULL, ALPHA), STEPS)
    x, xs = X0, [np.tile(X0, (NODES, 1))]
    for t in range(STEPS):
        x = x - ALPHA * G(t, np.tile(x, (NODES, 1))).mean(0)
        xs.append(np.tile(x, (NODES, 1)))
    assert_same(ours, xs)


# behaviour -----------------------------------------------------------------------------------


def least_squares():
    """The minimizer of F, and L of the f_i."""
    H = np.stack([a.T @ a / M for a in A])
    b = np.mean([a.T @ t / M for a, t in zip(A, B, strict=True)], axis=0)
    return np.linalg.solve(H.mean(0), b), np.linalg.eigvalsh(H)[:, -1].max()


SOLUTION, L = least_squares()


def lasso():
    """The minimizer of F + h by many proximal gradient steps."""
    x = X0
    for t in range(5000):
        x = prox(x - 1 / L * G(t, np.tile(x, (NODES, 1))).mean(0), 1 / L)
    return x


def error(risk, method, steps, network=RING, solution=SOLUTION):
    """The largest distance of any node from the solution."""
    distance = np.linalg.norm(run(risk, network, method, steps)[1] - solution, axis=1).max()
    return distance if np.isfinite(distance) else np.inf


STEP = 0.25 / L


@pytest.mark.parametrize(
    "method",
    [
        D2(FULL, STEP),
        D_SPIDER_SFO(2, 7, STEP / 4),
        ExactDiffusion(FULL, STEP),
        EXTRA(FULL, STEP),
        NIDS(FULL, STEP),
        GT_DSGD(FULL, STEP),
        GT_SAGA(1, STEP / 4),
        DIGing(FULL, STEP),
        GT_SARAH(2, 7, STEP / 4),
        D_GET(2, 7, STEP / 4),
        DeTAG(FULL, STEP / 4, pg.Chebyshev(2)),
        Network_SARAH(2, 5, STEP / 4, pg.Chebyshev(6)),
        DESTRESS(2, 5, STEP / 4),
        DESTRESS(2, 5, STEP / 4, activation=0.4),
    ],
    ids=lambda method: type(method).__name__,
)
def test_exact_at_a_constant_step_though_nodes_differ(method):
    """The variance-reduced ones while they sample."""
    assert error(SMOOTH, method, 5000) < 1e-7


@pytest.mark.parametrize("make", [PG_EXTRA, NIDS, Prox_ED])
def test_exact_on_a_composite_problem(make):
    solution = lasso()
    assert error(COMPOSITE, make(FULL, STEP), 5000, solution=solution) < 1e-7
    strong = pg.EmpiricalRisk(square_loss, (A, B), pg.L1(2.0), x0=X0)
    x = run(strong, RING, make(FULL, STEP), 2000)[1]
    assert (x == 0).any()  # iterates are prox points, so sparse themselves


def test_dsgd_and_decentlam_are_biased_in_proportion_to_the_step():
    biases = {}
    for name, make in (
        ("cta", DSGD),
        ("atc", DSGD_ATC),
        ("lam", lambda estimator, a: DecentLaM(estimator, 0.8, a)),
    ):
        biases[name] = [error(SMOOTH, make(FULL, a), 30000) for a in (STEP / 32, STEP / 64)]
        large, small = biases[name]
        assert 1.8 < large / small < 2.2
        assert small > 1e-4
    assert biases["atc"][0] < 0.9 * biases["cta"][0]
    np.testing.assert_allclose(biases["lam"], biases["atc"], rtol=1e-6)


@pytest.mark.parametrize("make", [DSGD, DSGD_ATC])
def test_dsgd_is_exact_where_nodes_agree(make):
    same = pg.EmpiricalRisk(
        square_loss, (np.tile(A[:1], (NODES, 1, 1)), np.tile(B[:1], (NODES, 1))), x0=X0
    )
    solution = np.linalg.lstsq(A[0], B[0], rcond=None)[0]
    assert error(same, make(FULL, STEP), 5000, solution=solution) < 1e-7


def test_decentlam_stops_where_dsgd_atc_does():
    ends = [
        run(SMOOTH, RING, method, 4000)[1]
        for method in (DSGD_ATC(FULL, STEP), DecentLaM(FULL, 0.5, STEP), DecentLaM(FULL, 0.9, STEP))
    ]
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], atol=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        GT_DSGD(pg.Minibatch(2), STEP / 2),
        D2(pg.Minibatch(2), STEP / 2),
        GT_HSGD(2, 0.1, 5, STEP / 2),
    ],
    ids=lambda method: type(method).__name__,
)
def test_sampled_gradients_hover_where_variance_reduction_converges(method):
    assert 1e-3 < error(SMOOTH, method, 5000) < 1


def test_variance_reduction_reaches_stationarity_of_a_nonconvex_problem_where_gt_dsgd_hovers():
    def metric(method):
        x = run(BUMPY, RING, method, 8000)[1]
        mean = np.tile(x.mean(0), (NODES, 1))
        gradient = published.rows(bumpy_gradient(A, B), mean).mean(0)
        return (gradient**2).sum() + ((x - mean) ** 2).sum()

    assert metric(GT_SARAH(2, 7, 0.05)) < 1e-16
    assert metric(pg.ProxGT_SR_E(2, 7, 0.05)) < 1e-16
    assert metric(GT_DSGD(pg.Minibatch(2), 0.05)) > 1e-6


@functools.cache
def eight():
    """The problem of RIVALS section 0, its ring, its solution and L."""
    a, b = regression(8, 10, 5)
    risk = pg.EmpiricalRisk(square_loss, (a, b), x0=np.zeros(5))
    H = np.stack([rows.T @ rows / 10 for rows in a])
    g = np.mean([rows.T @ t / 10 for rows, t in zip(a, b, strict=True)], axis=0)
    solution = np.linalg.solve(H.mean(0), g)
    return risk, pg.Network.ring(8), solution, np.linalg.eigvalsh(H)[:, -1].max()


def test_adapt_then_combine_stands_larger_steps():
    """RIVALS section 3: on a ring of 8, a L = 2 against 0.35."""
    risk, network, solution, smoothness = eight()
    big = 1.0 / smoothness
    assert error(risk, GT_DSGD(FULL, big), 3000, network, solution) < 1e-7
    assert error(risk, GNSD(FULL, big), 3000, network, solution) > 1
    assert error(risk, GNSD(FULL, big / 4), 3000, network, solution) < 1e-7


def test_steps_of_nids_do_not_depend_on_the_network_and_those_of_extra_do():
    """a < 2/L, against a < 2 lambda_min((I + W)/2)/L, which is a third of that on a ring of 8."""
    risk, network, solution, smoothness = eight()
    big = 1.9 / smoothness
    assert error(risk, NIDS(FULL, big), 5000, network, solution) < 1e-7
    assert error(risk, D2(FULL, big, LazyGossip(1)), 5000, network, solution) < 1e-7
    assert error(risk, EXTRA(FULL, big), 5000, network, solution) > 1
    assert error(risk, EXTRA(FULL, big / 3), 5000, network, solution) < 1e-7


def ring_with_self_weight(n, self_weight):
    """W with eigenvalues self_weight + (1 - self_weight) cos(2 pi k / n)."""
    shift = np.roll(np.eye(n), 1, axis=0)
    return self_weight * np.eye(n) + (1 - self_weight) / 2 * (shift + shift.T)


def test_d2_is_exact_where_an_eigenvalue_is_minus_a_third():
    """As measured in RIVALS.md on a ring of 8: a mode of -1/3 shrinks by 1 - O(a) a step."""
    risk, network, solution, smoothness = eight()
    assert np.linalg.eigvalsh(network.W)[0] == pytest.approx(-1 / 3, abs=1e-12)
    for method in (D2(FULL, 0.5 / smoothness), D_SPIDER_SFO(2, 7, 0.1 / smoothness)):
        assert error(risk, method, 20_000, network, solution) < 1e-7


def test_d2_needs_eigenvalues_above_minus_a_third():
    a, b = regression(8, M, P)
    risk = pg.EmpiricalRisk(square_loss, (a, b), x0=X0)
    bad = pg.Network.from_weights(ring_with_self_weight(8, 0.2))
    for method in (D2(FULL, 0.01), D_SPIDER_SFO(2, 5, 0.01)):
        with pytest.raises(ValueError, match=r">= -0.3333, .*has -0.6: use weights='lazy-metrop"):
            pg.solve(risk, bad, method, 5)
    g = published.full(square_gradient(a, b))
    assert np.abs(published.d2(X0, bad.W, 0.01, g, 200)[-1]).max() > 1e6  # as it would have
    good = pg.Network.from_weights(ring_with_self_weight(8, 0.4))
    for network, consensus in ((good, pg.Gossip(1)), (bad, LazyGossip(1))):
        assert np.abs(run(risk, network, D2(FULL, 0.01, consensus), 2000)[1]).max() < 10


# costs ---------------------------------------------------------------------------------------


class CountingOracle:
    """Counts the samples that gradients are asked of, and the gradients; f_i = |x|^2 / 2."""

    def __init__(self):
        self.used, self.evaluated, self.passes = [], 0, 0

    @property
    def sampled(self):
        return self.passes * M + sum(draw.shape[1] for draw in self.used)

    def draw(self, keys, batch):
        return np.zeros((NODES, batch))

    def gradients(self, x, draw):
        if not any(draw is earlier for earlier in self.used):
            self.used.append(draw)
        self.evaluated += draw.shape[1]
        return x

    def full_gradients(self, x):
        self.passes += 1
        self.evaluated += M
        return x

    def prox(self, v, step):
        return v


@pytest.mark.parametrize(
    ("method", "by_hand"),
    [
        (DSGD(pg.Minibatch(3), 0.05, pg.Gossip(2)), (21, 21, 14)),
        (DSGD_ATC(FULL, 0.05), (7 * M, 7 * M, 7)),
        (DecentLaM(pg.Minibatch(3), 0.5, 0.05), (21, 21, 7)),
        (D2(pg.Minibatch(3), 0.05), (21, 21, 7)),
        (D_SPIDER_SFO(3, 4, 0.05), (2 * M + 15, 2 * M + 30, 7)),
        (ExactDiffusion(FULL, 0.05), (7 * M, 7 * M, 7)),
        (Prox_ED(FULL, 0.05), (7 * M, 7 * M, 7)),
        (NIDS(FULL, 0.05), (7 * M, 7 * M, 7)),
        (EXTRA(FULL, 0.05), (7 * M, 7 * M, 7)),
        (PG_EXTRA(FULL, 0.05), (7 * M, 7 * M, 7)),
        (GT_DSGD(pg.Minibatch(3), 0.05, pg.Gossip(2)), (21, 21, 28)),
        (GT_HSGD(3, 0.1, 5, 0.05), (5 + 18, 5 + 36, 14)),
        (DIGing(FULL, 0.05), (7 * M, 7 * M, 14)),
        (GNSD(pg.Minibatch(3), 0.05), (21, 21, 14)),
        (GT_SARAH(3, 4, 0.05), (2 * M + 15, 2 * M + 30, 14)),
        (D_GET(3, 4, 0.05, refresh=5), (10 + 15, 10 + 30, 14)),
        (DeTAG(pg.Minibatch(3), 0.05, pg.Gossip(3)), (21, 21, 42)),
        (Network_SARAH(3, 4, 0.05, pg.Gossip(2)), (2 * M + 15, 2 * M + 30, 8)),
        (
            DESTRESS(3, 4, 0.05, DestressConsensus(pg.Gossip(2), pg.Gossip(3), pg.Gossip(5))),
            (2 * M + 15, 2 * M + 30, (7 + 5) * 2 + 5 + 3),
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, pg.Method) else "",
)
def test_declared_cost_is_what_seven_steps_really_do(method, by_hand):
    counting, rounds = CountingOracle(), []

    def counted(consensus):
        return lambda rows: rounds.append(consensus.rounds) or rows

    mix = jax.tree.map(
        counted, method.consensus, is_leaf=lambda node: isinstance(node, pg.Consensus)
    )
    state = method.init(counting, mix, jnp.tile(jnp.asarray(X0, jnp.float32), (NODES, 1)))
    with jax.disable_jit():
        for t in range(7):
            draw = method.draw(counting, jax.random.split(jax.random.key(t), NODES))
            state = method.step(counting, mix, state, draw)
    done = (counting.sampled, counting.evaluated, sum(rounds))
    assert method.cost(SMOOTH, 7)[:3] == by_hand == done
    assert method.cost(SMOOTH, 0)[:3] == (0, 0, 0)


def test_cost_of_a_saga_table_and_of_random_activation():
    assert GT_SAGA(3, 0.05).cost(SMOOTH, 7)[:3] == (M + 42, M + 42, 14)
    half = DESTRESS(4, 4, 0.05, DestressConsensus(*3 * (pg.Gossip(1),)), 0.5)
    assert half.cost(SMOOTH, 7)[:3] == (2 * M + 10, 2 * M + 20, 14)  # on average


# refusals ------------------------------------------------------------------------------------

POPULATION = pg.PopulationRisk(
    square_loss, lambda key, node: (jax.random.uniform(key, (P,)), 1.0), NODES, x0=X0, evaluation=2
)
DIRECTED = pg.Network.directed_ring(NODES)


@pytest.mark.parametrize(
    ("method", "instead"),
    [
        (DSGD(FULL, 0.1), "Prox_DGD"),
        (DSGD_ATC(FULL, 0.1), "Prox_DGD"),
        (DecentLaM(FULL, 0.5, 0.1), "ProxGT"),
        (D2(FULL, 0.1), "NIDS"),
        (D_SPIDER_SFO(1, 2, 0.1), "ProxGT"),
        (ExactDiffusion(FULL, 0.1), "Prox_ED"),
        (EXTRA(FULL, 0.1), "PG_EXTRA"),
        (GT_DSGD(FULL, 0.1), "ProxGT"),
        (GT_HSGD(1, 0.1, 2, 0.1), "ProxGT"),
        (GT_SAGA(1, 0.1), "ProxGT"),
        (DIGing(FULL, 0.1), "ProxGT"),
        (GNSD(FULL, 0.1), "ProxGT"),
        (GT_SARAH(1, 2, 0.1), "ProxGT"),
        (D_GET(1, 2, 0.1), "ProxGT"),
        (DeTAG(FULL, 0.1, pg.Gossip(2)), "ProxGT"),
        (Network_SARAH(1, 2, 0.1), "ProxGT_SR_E"),
        (DESTRESS(1, 2, 0.1), "ProxGT_SR_E"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, pg.Method) else "",
)
def test_a_regularizer_is_refused_by_name(method, instead):
    name = type(method).__name__
    message = rf"^{name} cannot take a regularizer, and the problem has L1.*use {instead}\b"
    with pytest.raises(ValueError, match=message):
        pg.solve(COMPOSITE, RING, method, 5)


@pytest.mark.parametrize(
    "method",
    [
        D2(FULL, 0.1),
        D_SPIDER_SFO(1, 2, 0.1),
        ExactDiffusion(FULL, 0.1),
        Prox_ED(FULL, 0.1),
        NIDS(FULL, 0.1),
        EXTRA(FULL, 0.1),
        PG_EXTRA(FULL, 0.1),
        DecentLaM(FULL, 0.5, 0.1),
    ],
    ids=lambda method: type(method).__name__,
)
def test_a_directed_graph_is_refused_by_name(method):
    with pytest.raises(ValueError, match=rf"^{type(method).__name__} needs a symmetric W"):
        pg.solve(SMOOTH, DIRECTED, method, 5)


def test_a_directed_graph_is_taken_where_double_stochasticity_is_enough():
    for method in (GT_DSGD(FULL, STEP), GNSD(FULL, STEP / 2)):
        assert error(SMOOTH, method, 5000, DIRECTED) < 1e-7


def test_methods_of_chebyshev_take_a_directed_graph_with_the_remedy_they_name():
    for make in (
        lambda *consensus: DESTRESS(2, 5, STEP / 4, *consensus),
        lambda consensus=FastMix(4): DeTAG(FULL, STEP / 4, consensus),
    ):
        with pytest.raises(ValueError, match=r"needs a symmetric W .* use Gossip\(rounds="):
            pg.solve(SMOOTH, DIRECTED, make(), 5)
        assert error(SMOOTH, make(pg.Gossip(2)), 5000, DIRECTED) < 1e-7


@pytest.mark.parametrize(
    ("method", "remedy"),
    [
        (GT_SARAH(1, 2, 0.1), "GT_HSGD"),
        (GT_SAGA(1, 0.1), "GT_HSGD"),
        (D_GET(1, 2, 0.1), "refresh=B"),
        (D_SPIDER_SFO(1, 2, 0.1), "refresh=B"),
        (Network_SARAH(1, 2, 0.1), "D_GET"),
        (DESTRESS(1, 2, 0.1), "D_GET"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, pg.Method) else "",
)
def test_a_population_risk_is_refused_where_exact_gradients_are_needed(method, remedy):
    message = f"^{type(method).__name__} needs the exact gradient .* use .*{remedy}"
    with pytest.raises(ValueError, match=message):
        pg.solve(POPULATION, RING, method, 5)


@pytest.mark.parametrize(
    "method",
    [
        GT_HSGD(2, 0.1, 4, 0.01),
        D_GET(2, 5, 0.01, refresh=4),
        D_SPIDER_SFO(2, 5, 0.01, refresh=4),
        EXTRA(pg.Minibatch(2), 0.1),
    ],
    ids=lambda method: type(method).__name__,
)
def test_a_population_risk_is_taken_where_samples_are_enough(method):
    method.check(POPULATION, RING)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DSGD(FULL, 0), "step_size must be > 0, got 0"),
        (lambda: DSGD(pg.L1(1.0), 0.1), "estimator must be"),
        (lambda: GT_DSGD(FULL, 0.1, 3), "consensus must be Gossip"),
        (lambda: GT_DSGD(FULL, 0.1, ColumnStochastic(1)), "must keep the network mean"),
        (lambda: DESTRESS(1, 2, 0.1, (1, 2, 3)), "consensus must be Gossip"),
        (lambda: DecentLaM(FULL, 1.0, 0.1), r"momentum must be in \[0, 1\), got 1.0"),
        (lambda: GT_HSGD(1, 1.5, 2, 0.1), r"momentum must be in \[0, 1\], got 1.5"),
        (lambda: GT_SARAH(1, 0, 0.1), "period must be an integer >= 1, got 0"),
        (lambda: D_GET(0, 2, 0.1), "batch must be an integer >= 1, got 0"),
        (lambda: D_SPIDER_SFO(1, 2, 0.1, refresh=0), "refresh must be an integer >= 1"),
        (lambda: Network_SARAH(1, 0, 0.1), "period must be an integer >= 1, got 0"),
        (lambda: DESTRESS(0, 2, 0.1), "batch must be an integer >= 1, got 0"),
        (lambda: DESTRESS(1, 2, 0.1, activation=0.0), r"activation must be in \(0, 1\], got 0"),
        (
            lambda: pg.solve(SMOOTH, RING, NIDS(FULL, 0.1, pg.Gossip(1)), 5),
            r"NIDS needs the eigenvalues .* >= 0, .* use weights='lazy-metropolis'",
        ),
        (
            lambda: pg.solve(SMOOTH, DIRECTED, DESTRESS(1, 2, 0.1), 5),
            "Chebyshev needs a symmetric W",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()

"""Methods of one machine against their publications; the pooled problem they run on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import paper
import proxgt as pg
import publications_centralized as publications
from helpers import bumpy_gradient, bumpy_loss, indices, regression, square_loss, trajectory
from proxgt.methods.centralized import FISTA, ProxGD, ProxSGD
from proxgt.methods.reduced import (
    ProxHSGD,
    ProxSAGA,
    ProxSARAH,
    ProxSpiderBoost,
    ProxSVRG,
)

NODES, M, P, STEPS, ALPHA, STRENGTH = 3, 8, 4, 50, 0.05, 0.1
N = NODES * M
A, B = regression(NODES, M, P)
X0 = np.linspace(-1, 1, P)
ONE = pg.Network.complete(1)
EXACT = [
    ProxGD(0.2),
    FISTA(0.2),
    ProxSARAH(3, 6, 0.1),
    ProxSpiderBoost(3, 6, 0.1),
    ProxSVRG(3, 6, 0.1),
    ProxSAGA(3, 0.05),
]
NOISY = [ProxSGD(3, 0.1), ProxHSGD(3, 0.5, 0.1)]
name = lambda method: type(method).__name__


def spread(loss=bumpy_loss, **options):
    return pg.EmpiricalRisk(loss, (A, B), pg.L1(STRENGTH), x0=X0, **options)


RISK = spread().pooled()
_bumpy = bumpy_gradient(A.reshape(1, N, P), B.reshape(1, N))
gradient = lambda x, use: _bumpy(0, x, use)
prox = lambda v, a: paper.soft(v, a * STRENGTH)


def drawn(batch, steps=STEPS, risk=RISK):
    """Index sets of every step, (steps, batch)."""
    return indices(risk, batch, steps)[:, 0]


def not_at(rows, period):
    """The rows of steps that are no refresh, in order."""
    return (rows[t] for t in range(len(rows)) if t % period)


def assert_same(method, theirs, steps=STEPS):
    ours = trajectory(RISK, ONE, method, steps)
    assert len(ours) == len(theirs) == steps + 1
    np.testing.assert_allclose(np.stack(ours)[:, 0], np.stack(theirs), rtol=0, atol=1e-10)
    assert np.abs(ours[-1] - X0).max() > 0.05  # it went somewhere


# the publications --------------------------------------------------------------------------


def test_prox_gd():
    assert_same(ProxGD(ALPHA), publications.prox_gd(X0, gradient, prox, ALPHA, STEPS))


def test_fista():
    assert_same(FISTA(ALPHA), publications.fista(X0, gradient, prox, ALPHA, STEPS))


@pytest.mark.parametrize("batch", [1, 5])
def test_prox_sgd(batch):
    theirs = publications.prox_sgd(X0, gradient, prox, ALPHA, iter(drawn(batch)), STEPS)
    assert_same(ProxSGD(batch, ALPHA), theirs)


@pytest.mark.parametrize("refresh", [None, 11])
def test_prox_sarah(refresh):
    """The publication's inner loop has one step less than a period."""
    refreshes = None if refresh is None else iter(drawn(refresh)[::5])
    theirs = publications.prox_sarah(
        X0, gradient, prox, ALPHA, 0.8, 4, not_at(drawn(3), 5), STEPS // 5, refreshes
    )
    assert_same(ProxSARAH(3, 5, ALPHA, averaging=0.8, refresh=refresh), theirs)


@pytest.mark.parametrize("period", [1, 7])
def test_prox_spiderboost(period):
    theirs = publications.prox_spiderboost(
        X0, gradient, prox, ALPHA, period, not_at(drawn(3), period), STEPS
    )
    assert_same(ProxSpiderBoost(3, period, ALPHA), theirs)


def test_prox_svrg():
    theirs = publications.prox_svrg(X0, gradient, prox, ALPHA, 5, not_at(drawn(3), 5), STEPS // 5)
    assert_same(ProxSVRG(3, 5, ALPHA), theirs)


def test_prox_saga():
    """With index sets large enough that some sample is drawn twice into J."""
    pairs = drawn(12)
    assert any(len(set(row[6:])) < 6 for row in pairs)
    draws = ((row[:6], row[6:]) for row in pairs)
    assert_same(
        ProxSAGA(6, ALPHA), publications.prox_saga(X0, gradient, prox, ALPHA, N, draws, STEPS)
    )


def test_prox_hsgd():
    """`momentum` is one minus the publication's beta; v_0 has samples of its own."""
    draws = ((row[:3], row[3:]) for row in drawn(6)[1:])
    theirs = publications.prox_hsgd(X0, gradient, prox, ALPHA, 0.9, 0.7, drawn(13)[0], draws, STEPS)
    assert_same(ProxHSGD(3, 0.3, ALPHA, averaging=0.9, first=13), theirs)


# what ties them together ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "core"),
    [
        (ProxGD(ALPHA), pg.ProxGT(pg.FullGradient(), ALPHA)),
        (ProxSGD(3, ALPHA), pg.ProxGT_SA(3, ALPHA)),
        (ProxSpiderBoost(3, 5, ALPHA), pg.ProxGT_SR_E(3, 5, ALPHA)),
        (ProxSpiderBoost(3, 5, ALPHA, 9), pg.ProxGT_SR_O(3, 5, 9, ALPHA)),
        (ProxSAGA(3, ALPHA), pg.ProxGT(pg.SAGA(3), ALPHA)),
        (ProxSVRG(3, 5, ALPHA), pg.ProxGT(pg.SVRG(3, 5), ALPHA)),
    ],
)
def test_proxgt_on_one_node(method, core):
    ours, theirs = (trajectory(RISK, ONE, one, 20) for one in (method, core))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_averaging_1_is_no_averaging():
    ours = trajectory(RISK, ONE, ProxSARAH(3, 5, ALPHA, averaging=1.0), 20)
    theirs = trajectory(RISK, ONE, ProxSpiderBoost(3, 5, ALPHA), 20)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_ends_of_the_hybrid(momentum):
    """momentum 1 is stochastic approximation, 0 is SARAH that is never refreshed."""
    method = ProxHSGD(3, momentum, ALPHA, averaging=1.0)
    ours = np.stack(trajectory(RISK, ONE, method, 20))[:, 0]
    rows = drawn(6)
    if momentum:
        draws = iter([drawn(3)[0], *rows[1:, 3:]])
        theirs = publications.prox_sgd(X0, gradient, prox, ALPHA, draws, 20)
    else:
        refreshes = iter([drawn(3)[0]])
        theirs = publications.prox_sarah(
            X0, gradient, prox, ALPHA, 1.0, 19, iter(rows[1:, :3]), 1, refreshes
        )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def test_the_hybrid_of_one_sample_is_proximal_gradient_with_averaging():
    """RIVALS 4.6: with full gradients there is nothing to estimate."""
    one = pg.EmpiricalRisk(bumpy_loss, (A[:1, :1], B[:1, :1]), pg.L1(STRENGTH), x0=X0)
    bumpy = bumpy_gradient(A[:1, :1], B[:1, :1])
    x, xs = X0, [X0]
    for _ in range(20):
        x = 0.2 * x + 0.8 * prox(x - ALPHA * bumpy(0, x, None), ALPHA)
        xs.append(x)
    ours = trajectory(one, ONE, ProxHSGD(1, 0.3, ALPHA, averaging=0.8), 20)
    np.testing.assert_allclose(np.stack(ours)[:, 0], xs, rtol=0, atol=1e-12)


# known behaviours ----------------------------------------------------------------------------

CONVEX = spread(square_loss).pooled()


@pytest.mark.parametrize("method", EXACT, ids=name)
def test_exact_at_a_constant_step(method):
    result = pg.solve(CONVEX, ONE, method, 6000, record_every=2000, dtype="float64")
    assert result.history[-1].metric < 1e-20


@pytest.mark.parametrize("method", NOISY, ids=name)
def test_hovers_at_a_noise_floor_that_falls_with_the_step(method):
    def floor(step_size):
        one = type(method)(
            **{f: getattr(method, f) for f in ("batch", "momentum") if hasattr(method, f)},
            step_size=step_size,
        )
        history = pg.solve(CONVEX, ONE, one, 8000, record_every=100, metric_step=0.1).history
        return history["metric"][20:].mean()

    high, low = floor(0.1), floor(0.0125)
    assert high > 1e-4
    assert low < high / 2


def test_fista_is_faster_on_an_ill_conditioned_convex_problem():
    rng = np.random.default_rng(5)
    a = rng.standard_normal((1, 60, 20)) * np.logspace(0, -2, 20)
    b = a @ rng.standard_normal(20)
    risk = pg.tasks.least_squares((a, b), pg.L1(1e-5))
    best = pg.solve(risk, ONE, FISTA(1 / risk.smoothness), 20_000, record_every=20_000)
    psi = best.history[-1].objective
    gaps = [
        pg.solve(risk, ONE, make(1 / risk.smoothness), 300, record_every=300, dtype="float64")
        .history[-1]
        .objective
        - psi
        for make in (FISTA, ProxGD)
    ]
    assert gaps[0] < gaps[1] / 5


def test_sarah_beats_sgd_where_sgd_hovers():
    budget, sgd = 6000, ProxSGD(3, 0.1)
    ends = {}
    for method in (sgd, ProxSpiderBoost(3, 6, 0.1), ProxSVRG(3, 6, 0.1)):
        steps = round(budget / (method.cost(CONVEX, 600).samples / 600))
        ends[name(method)] = pg.solve(CONVEX, ONE, method, steps).history[-1].metric
    floor = ends.pop("ProxSGD")
    assert all(end < 1e-3 * floor for end in ends.values()), (floor, ends)


# the pooled problem --------------------------------------------------------------------------


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_pooled_is_the_same_psi_and_copies_nothing():
    risk = spread(smoothness=3.0)
    pooled = risk.pooled()
    close(pooled.objective(X0), risk.objective(X0))
    close(pooled.gradient(X0), risk.gradient(X0))
    assert (pooled.nodes, pooled.samples_per_node, pooled.smoothness) == (1, N, 3.0)
    for mine, theirs in zip(pooled.data.rows, risk.data.rows, strict=True):
        assert np.shares_memory(mine, theirs)


SIZES = [2, 50, 9]


def ragged():
    rng = np.random.default_rng(1)
    shards = [
        (rng.standard_normal((m, P)), k + rng.standard_normal(m)) for k, m in enumerate(SIZES)
    ]
    return pg.EmpiricalRisk(square_loss, shards, pg.L1(STRENGTH), x0=X0)


def test_pooled_unequal_shards_keep_the_mean_of_node_means():
    risk = ragged()
    pooled = risk.pooled()
    assert pooled.samples_per_node == sum(SIZES)
    for x in (X0, 3 * X0 + 1):
        close(pooled.objective(x), risk.objective(x))
        close(pooled.gradient(x), risk.gradient(x))
    assert len(jax.tree.leaves(pooled.data.rows)[0]) == sum(SIZES)  # no padding is drawn


def test_sampled_gradients_of_unequal_shards_are_unbiased():
    """Their mean over all samples of the pooled node, each drawn equally often, is grad F."""
    pooled = ragged().pooled()
    with jax.enable_x64(True):
        oracle = pooled.oracle(pooled.spec(), "float64")
        every = jnp.arange(sum(SIZES), dtype=jnp.int32)[None]
        mean = oracle.gradients(jnp.asarray(X0)[None], every)[0]
    close(mean, ragged().gradient(X0))


def test_methods_on_unequal_shards_reach_the_decentralized_solution():
    risk, ring = ragged(), pg.Network.ring(3)
    run = {"dtype": "float64", "record_every": 1000, "metric_step": 0.1}
    there = pg.solve(risk, ring, pg.ProxGT(pg.FullGradient(), 0.05), 4000, **run)
    here = pg.solve(risk.pooled(), ONE, ProxSpiderBoost(8, 8, 0.02), 8000, **run)
    assert there.history[-1].metric < 1e-20
    np.testing.assert_allclose(here.solution, there.solution, atol=1e-9)


def noisy_mean(key, node):
    return node + jax.random.normal(key, (P,))


def population(**options):
    loss = lambda w, xi: 0.5 * jnp.sum((w - xi) ** 2)
    return pg.PopulationRisk(loss, noisy_mean, 3, pg.L1(STRENGTH), x0=X0, **options)


def test_pooled_population_draws_from_all_nodes_and_is_measured_on_their_samples():
    risk = population(evaluation=50)
    pooled = risk.pooled()
    np.testing.assert_allclose(pooled.objective(X0), risk.objective(X0), rtol=1e-5)
    result = pg.solve(pooled, ONE, ProxSGD(10, lambda t: 1 / (t + 1)), 1500)
    np.testing.assert_allclose(result.mean, np.full(P, 1 - STRENGTH), atol=0.06)


def test_pooled_population_keeps_a_known_gradient():
    risk = population(gradient=lambda w: w - 1.0)
    close(risk.pooled().gradient(X0.astype(np.float32)), X0.astype(np.float32) - 1)


def test_a_stream_cannot_be_pooled():
    risk = pg.PopulationRisk(square_loss, pg.Stream(lambda node: iter(())), 3, x0=X0)
    with pytest.raises(ValueError, match=r"pooled\(\) needs a sampler function"):
        risk.pooled()


# refusals and counts -------------------------------------------------------------------------


@pytest.mark.parametrize("method", EXACT + NOISY, ids=name)
def test_more_than_one_node_is_refused_with_the_remedy(method):
    with pytest.raises(ValueError, match=rf"{name(method)} runs on one node.*pooled\(\)"):
        pg.solve(spread(), pg.Network.ring(NODES), method, 5)


@pytest.mark.parametrize("method", EXACT, ids=name)
def test_exact_gradients_of_a_population_are_refused(method):
    message = f"^{name(method)} needs the exact gradient of an empirical risk.*use (Prox|refresh)"
    with pytest.raises(ValueError, match=message):
        pg.solve(population().pooled(), ONE, method, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProxGD(0.1, pg.Gossip(2)), "consensus must be left out"),
        (lambda: ProxGD(-1.0), "step_size must be > 0"),
        (lambda: ProxSGD(0, 0.1), "batch must be an integer >= 1, got 0"),
        (lambda: ProxSVRG(2, 0, 0.1), "period must be an integer >= 1, got 0"),
        (lambda: ProxSARAH(2, 3, 0.1, averaging=1.5), r"averaging must be in \(0, 1\], got 1.5"),
        (lambda: ProxHSGD(2, -0.1, 0.1), r"momentum must be in \[0, 1\], got -0.1"),
        (lambda: ProxHSGD(2, 0.1, 0.1, first=0), "first must be an integer >= 1, got 0"),
    ],
)
def test_bad_arguments_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_svrg_counts_and_serves_proxgt_over_a_network():
    ring = pg.Network.ring(NODES)
    last = pg.solve(spread(), ring, pg.ProxGT(pg.SVRG(3, 4), 0.05), 11).history[-1]
    assert (last.samples, last.gradients, last.rounds) == (3 * M + 8 * 3, 3 * M + 8 * 6, 22)
    exact = pg.solve(
        spread(square_loss), ring, pg.ProxGT(pg.SVRG(3, 4), 0.05), 4000, dtype="float64"
    )
    assert exact.history[-1].metric < 1e-20


def test_hybrid_counts():
    last = pg.solve(RISK, ONE, ProxHSGD(3, 0.1, 0.05, first=7), 11).history[-1]
    assert (last.samples, last.gradients, last.rounds) == (7 + 10 * 6, 7 + 10 * 9, 0)

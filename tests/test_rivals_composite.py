"""Digraph, composite and follow-up rivals against NumPy recursions of their publications."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paper
import proxgt as pg
import publications_composite as pub
from helpers import (
    bumpy_gradient,
    bumpy_loss,
    regression,
    square_gradient,
    square_loss,
    trajectory,
)
from proxgt.engines.local import step_keys
from proxgt.engines.mixing import local_mixing
from proxgt.methods.composite import DeFW, Projected_DSGD, Prox_DGD, is_indicator
from proxgt.methods.compressors import QSGD, Identity, RandomK, TopK
from proxgt.methods.deepstorm import (
    DEEPSTORM,
    DEEPSTORM_v1,
    DEEPSTORM_v2,
)
from proxgt.methods.directed import AB, SGP, Push_DIGing, Push_Pull
from proxgt.methods.followups import (
    CDProxSGT,
    DProxSGT,
    Prox_DASA,
    Prox_DASA_GT,
)
from proxgt.methods.sppdm import PPDM, SPPDM, Neighbours
from proxgt.methods.successive import NEXT, SONATA

NODES, M, P, STEPS, ALPHA, STRENGTH = 5, 8, 4, 50, 0.05, 0.3
A, B = regression(NODES, M, P)
X1 = np.linspace(-1, 1, P)
GRADIENT, BUMPY = square_gradient(A, B), bumpy_gradient(A, B)
RING = pg.Network.ring(NODES)
W = RING.W
# Sends 0 -> 1 -> 2 -> 3 -> 4 -> 0, and 0 -> 2, 0 -> 3, 3 -> 1: degrees in and out differ.
LINKS = np.zeros((NODES, NODES))
for sender, receiver in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (0, 3), (3, 1)]:
    LINKS[receiver, sender] = 1
DIGRAPH = pg.Network(LINKS)
C, R = pub.column_stochastic(LINKS), pub.row_stochastic(LINKS)
FULL, MINI = pg.FullGradient(), pg.Minibatch(3)


def prox(v, a):
    return paper.soft(v, a * STRENGTH)


def risk(loss=square_loss, h=pg.L1(STRENGTH), x0=X1):
    return pg.EmpiricalRisk(loss, (A, B), h, x0=x0, smoothness=1.0)


SMOOTH = risk(h=pg.Zero())


@functools.cache
def indices(batch, steps):
    """What a run with seed 0 draws, whatever the loss: (steps, nodes, batch)."""
    return np.asarray(_drawn(SMOOTH.oracle(SMOOTH.spec(), "float32"), batch, steps))


@functools.partial(jax.jit, static_argnums=(1, 2))
def _drawn(oracle, batch, steps):
    key, nodes = jax.random.key(0), jnp.arange(NODES)
    return jax.vmap(lambda t: oracle.draw(step_keys(key, t, nodes), batch))(jnp.arange(steps))


def assert_same(ours, theirs, atol=1e-10):
    assert len(ours) == len(theirs)
    for mine, published in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, published, rtol=0, atol=atol)


# trajectories: digraphs ----------------------------------------------------------------------


def test_sgp():
    problem = risk(bumpy_loss, pg.Zero())
    ours = trajectory(problem, DIGRAPH, SGP(pg.Minibatch(3), ALPHA), STEPS)
    draws = indices(3, STEPS)
    assert_same(ours, pub.sgp(X1, C, ALPHA, BUMPY, STEPS, draws))


def test_sgp_over_a_doubly_stochastic_matrix_is_dsgd_atc():
    method = SGP(pg.Minibatch(2), ALPHA, pg.Gossip(1))
    ours = trajectory(SMOOTH, RING, method, STEPS)
    theirs = pub.dsgd_atc(X1, W, ALPHA, GRADIENT, STEPS, indices(2, STEPS))
    assert_same(ours, theirs)


def test_push_diging():
    ours = trajectory(SMOOTH, DIGRAPH, Push_DIGing(FULL, ALPHA), STEPS)
    assert_same(ours, pub.push_diging(X1, C, ALPHA, GRADIENT, STEPS))


def test_ab():
    ours = trajectory(SMOOTH, DIGRAPH, AB(FULL, ALPHA), STEPS)
    assert_same(ours, pub.ab(X1, R, C, ALPHA, GRADIENT, STEPS))


def test_push_pull():
    two = (pg.RowStochastic(2), pg.ColumnStochastic(1))
    ours = trajectory(SMOOTH, DIGRAPH, Push_Pull(FULL, ALPHA, two), STEPS)
    assert_same(ours, pub.push_pull(X1, R @ R, C, ALPHA, GRADIENT, STEPS))


# trajectories: composite and constrained -------------------------------------------------------


def test_prox_dgd():
    def fall(t):
        return ALPHA / (1.0 + t) ** 0.5

    ours = trajectory(risk(), RING, Prox_DGD(FULL, fall, pg.Gossip(2)), STEPS)
    assert_same(ours, pub.prox_dgd(X1, W @ W, fall, prox, GRADIENT, STEPS))


def box(v):
    return np.clip(v, -0.3, 0.4)


def test_projected_dsgd():
    problem = risk(bumpy_loss, pg.Box(-0.3, 0.4))
    ours = trajectory(problem, DIGRAPH, Projected_DSGD(pg.Minibatch(2), ALPHA), STEPS)
    draws = indices(2, STEPS)
    theirs = pub.projected_dsgd(X1, DIGRAPH.W, ALPHA, box, BUMPY, STEPS, draws)
    assert_same(ours, theirs)


@pytest.mark.parametrize(
    ("network", "relaxation", "decay"),
    [(RING, 1.0, 0.0), (RING, 0.9, 0.05), (DIGRAPH, 0.5, 0.0)],
)
def test_next(network, relaxation, decay):
    method = NEXT(FULL, ALPHA, relaxation=relaxation, decay=decay)
    ours = trajectory(risk(), network, method, STEPS)
    tau = NODES / ALPHA
    theirs = pub.next_(X1, network.W, tau, relaxation, decay, prox, GRADIENT, STEPS)
    assert_same(ours, theirs)


@pytest.mark.parametrize(("relaxation", "decay"), [(1.0, 0.0), (0.9, 0.05)])
def test_sonata(relaxation, decay):
    method = SONATA(FULL, ALPHA, relaxation=relaxation, decay=decay)
    ours = trajectory(risk(), DIGRAPH, method, STEPS)
    tau = NODES / ALPHA
    assert_same(ours, pub.sonata(X1, C, tau, relaxation, decay, prox, GRADIENT, STEPS))


def test_sonata_over_a_doubly_stochastic_matrix_is_next():
    options = {"relaxation": 0.7, "decay": 0.01}
    ours = trajectory(risk(), RING, SONATA(FULL, ALPHA, pg.Gossip(1), **options), STEPS)
    theirs = trajectory(risk(), RING, NEXT(FULL, ALPHA, **options), STEPS)
    assert_same(ours, theirs, 1e-13)


def test_defw():
    problem = risk(h=pg.L1Ball(1.5))

    def lmo(direction):
        corner = np.zeros(P)
        j = np.argmax(np.abs(direction))
        corner[j] = -1.5 * np.sign(direction[j])
        return corner

    ours = trajectory(problem, RING, DeFW(FULL), STEPS)
    assert_same(ours, pub.defw(X1, W, lambda t: 2 / (t + 1), lmo, GRADIENT, STEPS))


@pytest.mark.parametrize(("momentum", "eta"), [(0.8, lambda k: 0.8), ("nesterov", pub.nesterov)])
def test_sppdm(momentum, eta):
    star = pg.Network.star(NODES)  # degrees 4 and 1
    problem = risk(bumpy_loss)
    options = {"penalty": 0.7, "dual_step": 0.05, "anchor": 0.2, "anchor_rate": 0.8}
    method = SPPDM(pg.Minibatch(2), 0.25, momentum=momentum, **options)
    ours = trajectory(problem, star, method, STEPS)
    links = star.adjacency.toarray()
    draws = indices(2, STEPS)
    theirs = pub.sppdm(X1, links, 4.0, 0.7, 0.05, 0.2, 0.8, eta, prox, BUMPY, STEPS, draws)
    assert_same(ours, theirs)


def test_ppdm_is_sppdm_with_full_gradients():
    ours = trajectory(risk(), RING, PPDM(1 / 3), STEPS)
    links = RING.adjacency.toarray()
    theirs = pub.sppdm(X1, links, 3.0, 1.0, 0.01, 0.1, 0.9, lambda k: 0, prox, GRADIENT, STEPS)
    assert_same(ours, theirs)


# trajectories: follow-ups ----------------------------------------------------------------------


def falling(t):
    return 0.2 / (t + 3) ** (1 / 3)


def beta(k):
    return 1 - falling(k + 1) / falling(k) + 2.0 * falling(k + 1) ** 2


SCHEDULES = [(ALPHA, 0.3, ALPHA, 0.3)]
SCHEDULES += [(pg.FallingStep(0.2, 3), pg.FallingMomentum(falling, 2.0), falling, beta)]


@pytest.mark.parametrize(("step_size", "momentum", "a", "b"), SCHEDULES[1:])
def test_deepstorm_v1(step_size, momentum, a, b):
    problem = risk(bumpy_loss)
    ours = trajectory(problem, RING, DEEPSTORM_v1(2, step_size, momentum, first=6), STEPS)
    first, both = indices(6, 1)[0], indices(4, STEPS + 1)
    theirs = pub.deepstorm(
        X1, W, a, b, prox, BUMPY, STEPS, first, xi=both[:, :, :2], zeta=both[:, :, 2:]
    )
    assert_same(ours, theirs)


@pytest.mark.parametrize(("step_size", "momentum", "a", "b"), SCHEDULES)
def test_deepstorm_v2(step_size, momentum, a, b):
    problem = risk(bumpy_loss)
    ours = trajectory(problem, RING, DEEPSTORM_v2(2, step_size, momentum, first=6), STEPS)
    first, xi = indices(6, 1)[0], indices(2, STEPS + 1)
    theirs = pub.deepstorm(X1, W, a, b, prox, BUMPY, STEPS, first, xi)
    assert_same(ours, theirs)


@pytest.mark.parametrize("momentum", [0.1, 1.0])
def test_deepstorm_with_full_gradients_has_no_use_for_momentum(momentum):
    ours = trajectory(risk(), RING, DEEPSTORM(FULL, ALPHA, pg.Chebyshev(2)), STEPS)
    P2 = pg.Chebyshev(2).matrix(RING)
    assert_same(ours, pub.deepstorm(X1, P2, ALPHA, momentum, prox, GRADIENT, STEPS))


def relax(k):
    return min(0.3 * np.sqrt(NODES / (k + 1)), 1)


@pytest.mark.parametrize(
    ("method", "recursion"), [(Prox_DASA, pub.prox_dasa), (Prox_DASA_GT, pub.prox_dasa_gt)]
)
def test_prox_dasa(method, recursion):
    problem = risk(bumpy_loss)
    made = method(pg.Minibatch(1), 0.5, pg.Gossip(2), pg.FallingRelaxation(0.3, NODES))
    ours = trajectory(problem, RING, made, STEPS)
    draws = indices(1, STEPS)
    assert_same(ours, recursion(X1, W @ W, 0.5, relax, prox, BUMPY, STEPS, draws))


def test_dproxsgt_is_algorithm_2_with_one_round():
    problem = risk(bumpy_loss)
    ours = trajectory(problem, RING, DProxSGT(1, ALPHA), STEPS)
    estimator = paper.minibatch(BUMPY, indices(1, STEPS))
    assert_same(ours, paper.proxgt(X1, W, 1, ALPHA, prox, estimator, STEPS)[0])


@functools.partial(jax.jit, static_argnums=2)
def random_parts(method, oracle, steps):
    """What the compressors of a run with seed 0 draw, the x and y parts."""
    key, nodes = jax.random.key(0), jnp.arange(NODES)

    def parts(t):
        draw = method.draw(oracle, step_keys(key, t, nodes))
        return draw.x, draw.y

    return jax.vmap(parts)(jnp.arange(steps))


COMPRESSORS = [
    (TopK(0.5), lambda rows, _: pub.top_k(rows, 2)),
    (RandomK(0.5), lambda rows, numbers: pub.random_k(rows, 2, numbers)),
    (QSGD(4), lambda rows, uniform: pub.qsgd(rows, 4, uniform)),
]


@pytest.mark.parametrize(("compressor", "in_numpy"), COMPRESSORS)
def test_cdproxsgt(compressor, in_numpy):
    problem, steps = risk(bumpy_loss), STEPS
    method = CDProxSGT(pg.Minibatch(2), compressor, ALPHA, consensus_step=0.4, tracker_step=0.3)
    ours = trajectory(problem, RING, method, steps)
    for_x, for_y = random_parts(method, problem.oracle(problem.spec(), "float32"), steps)
    theirs = pub.cdproxsgt(
        X1,
        W,
        ALPHA,
        0.4,
        0.3,
        lambda t, rows: in_numpy(rows, for_x if for_x is None else for_x[t]),
        lambda t, rows: in_numpy(rows, for_y if for_y is None else for_y[t]),
        prox,
        BUMPY,
        steps,
        indices(2, steps),
    )
    assert_same(ours, theirs)


def test_cdproxsgt_that_loses_nothing_is_algorithm_2_with_one_round():
    problem = risk(bumpy_loss)
    method = CDProxSGT(pg.Minibatch(2), Identity(), ALPHA, consensus_step=1.0, tracker_step=1.0)
    ours = trajectory(problem, RING, method, STEPS)
    estimator = paper.minibatch(BUMPY, indices(2, STEPS))
    assert_same(ours, paper.proxgt(X1, W, 1, ALPHA, prox, estimator, STEPS)[0], 1e-13)


def test_random_compressions_of_x_and_y_and_nodes_and_samples_are_told_apart():
    method, problem = CDProxSGT(pg.Minibatch(2), QSGD(4), ALPHA), risk(bumpy_loss)
    parts = random_parts(method, problem.oracle(problem.spec(), "float32"), STEPS)
    assert len({row.tobytes() for row in np.reshape(parts, (-1, P))}) == 2 * STEPS * NODES


@pytest.mark.parametrize(
    "method", [SGP(MINI, ALPHA), Push_DIGing(FULL, ALPHA), SONATA(FULL, ALPHA)]
)
def test_push_sum_weights_are_those_of_the_matrix_and_sum_to_the_nodes(method):
    with jax.enable_x64(True):
        oracle = SMOOTH.oracle(SMOOTH.spec(), "float64")
        mix = local_mixing(DIGRAPH, method.consensus, "float64")
        state = method.init(oracle, mix, jnp.tile(jnp.asarray(X1), (NODES, 1)))
        w = np.ones(NODES)
        for t in range(5):
            keys = jax.random.split(jax.random.key(t), NODES)
            state = method.step(oracle, mix, state, method.draw(oracle, keys))
            w = C @ w
            np.testing.assert_allclose(state.w[:, 0], w, atol=1e-14)
            assert abs(w.sum() - NODES) < 1e-12
    assert np.ptp(w) > 0.1  # unbalanced: not all ones


@pytest.mark.parametrize(
    ("method", "network", "field"),
    [
        (Push_DIGing(MINI, ALPHA), DIGRAPH, "heard"),
        (Push_Pull(MINI, ALPHA), DIGRAPH, "heard"),
        (SONATA(MINI, ALPHA), DIGRAPH, "heard"),
        (NEXT(MINI, ALPHA), DIGRAPH, "heard"),
        (DeFW(MINI), RING, "y"),
        (DEEPSTORM_v1(3, ALPHA, 0.2), RING, "y"),
        (Prox_DASA_GT(MINI, ALPHA), RING, "y"),
        (CDProxSGT(MINI, TopK(0.5), ALPHA), RING, "y"),
        (CDProxSGT(MINI, QSGD(1), ALPHA), RING, "y"),
        (SPPDM(MINI, ALPHA), RING, "dual"),
    ],
)
def test_network_sums_are_kept(method, network, field):
    """Of trackers and estimates they agree at every step, whatever is lost; duals sum to 0."""
    problem = risk(h=pg.L1Ball(0.5)) if isinstance(method, DeFW) else risk()
    with jax.enable_x64(True):
        oracle = problem.oracle(problem.spec(), "float64")
        mix = local_mixing(network, method.consensus, "float64")
        state = method.init(oracle, mix, jnp.tile(jnp.asarray(X1 / 4), (NODES, 1)))

        @jax.jit
        def step(oracle, mix, state, keys):
            return method.step(oracle, mix, state, method.draw(oracle, keys))

        for t in range(10):
            state = step(oracle, mix, state, jax.random.split(jax.random.key(t), NODES))
            rows = np.asarray(getattr(state, field))
            expected = 0 if field == "dual" else np.asarray(state.estimate.v).sum(axis=0)
            np.testing.assert_allclose(rows.sum(axis=0), expected, atol=1e-12)
            assert t == 0 or np.abs(rows).max() > 1e-4  # not a comparison of zeros


# known behaviours ------------------------------------------------------------------------------

SOLUTION = pub.centralized(X1, NODES, prox, GRADIENT, 0.2)
SMOOTH_SOLUTION = pub.centralized(X1, NODES, lambda v, a: v, GRADIENT, 0.2)


def error(problem, network, method, steps, solution):
    """Largest distance of an entry of any node from the solution."""
    x = pg.solve(problem, network, method, steps, record_every=steps, dtype="float64").x
    return np.abs(x - solution).max()


EXACT = {
    "NEXT": NEXT(FULL, 0.1),
    "NEXT, relaxed": NEXT(FULL, 0.1, relaxation=0.5),
    "NEXT, diminishing": NEXT(FULL, 0.1, relaxation=0.9, decay=0.01),
    "SONATA": SONATA(FULL, 0.1),
    "PPDM": PPDM(1 / 3, dual_step=0.5),
    "SPPDM, momentum": SPPDM(FULL, 1 / 4, dual_step=0.3, momentum=0.8),
    "SPPDM, Nesterov": SPPDM(FULL, 1 / 8, dual_step=0.1, momentum="nesterov"),
    "DEEPSTORM": DEEPSTORM(FULL, 0.1),
    "Prox_DASA_GT": Prox_DASA_GT(FULL, 0.1),
    "CDProxSGT": CDProxSGT(FULL, TopK(0.5), 0.05, consensus_step=0.3, tracker_step=0.3),
}


def test_the_reference_is_sparse_and_the_nodes_disagree_at_it():
    assert (SOLUTION == 0).any()
    wants = [GRADIENT(i, SOLUTION, None) for i in range(NODES)]
    assert np.ptp(wants, axis=0).min() > 0.1


@pytest.mark.parametrize("name", EXACT)
def test_exact_at_a_constant_step_on_heterogeneous_data(name):
    assert error(risk(), RING, EXACT[name], 3000, SOLUTION) < 1e-7


def bias(problem, network, make, solution, scale=0.02):
    """Errors at a step and at half of it."""
    return [error(problem, network, make(a), int(160 / a), solution) for a in (scale, scale / 2)]


@pytest.mark.parametrize(
    "method",
    [
        DEEPSTORM_v1(2, 0.1, 0.2),
        DEEPSTORM_v2(2, 0.1, 0.2),
        Prox_DASA_GT(pg.Minibatch(1), 0.1),
        DProxSGT(1, 0.1),
        CDProxSGT(pg.Minibatch(1), TopK(0.5), 0.1, consensus_step=0.3, tracker_step=0.3),
    ],
    ids=["DEEPSTORM_v1", "DEEPSTORM_v2", "Prox_DASA_GT", "DProxSGT", "CDProxSGT"],
)
def test_sampled_gradients_hover_at_a_constant_step(method):
    assert 1e-3 < error(risk(), RING, method, 3000, SOLUTION) < 2


@pytest.mark.parametrize("momentum", [0.1, 0.7])
def test_deepstorm_v2_of_one_sample_a_node_is_exact_whatever_its_momentum(momentum):
    """RIVALS 5.1: full gradients leave nothing to estimate."""
    one = pg.EmpiricalRisk(square_loss, (A[:, :1], B[:, :1]), pg.L1(STRENGTH), x0=X1)
    gradient = square_gradient(A[:, :1], B[:, :1])
    ours = trajectory(one, RING, DEEPSTORM_v2(1, ALPHA, momentum), STEPS)
    assert_same(ours, pub.deepstorm(X1, W, ALPHA, 0.4, prox, gradient, STEPS))


def test_deepstorm_v2_with_all_momentum_is_stochastic_approximation():
    ours = trajectory(risk(), RING, DEEPSTORM_v2(2, ALPHA, 1.0), STEPS)
    theirs = trajectory(risk(), RING, DEEPSTORM(pg.Minibatch(2), ALPHA), STEPS)
    assert_same(ours, theirs, 1e-12)


def test_prox_dgd_has_a_bias_that_falls_with_the_step():
    big, small = bias(risk(), RING, lambda a: Prox_DGD(FULL, a), SOLUTION)
    assert 1.7 < big / small < 2.3
    assert small > 1e-3


def test_prox_dasa_has_a_bias_that_falls_with_the_relaxation():
    def make(r):
        return Prox_DASA(FULL, 0.3, relaxation=r)

    big, small = bias(risk(), RING, make, SOLUTION, 0.1)
    assert 1.7 < big / small < 4.5
    assert small > 1e-4


def test_projected_dsgd_is_biased_at_a_constant_step_and_not_as_steps_fall():
    solution = pub.centralized(X1 / 5, NODES, lambda v, a: box(v), GRADIENT, 0.2)
    problem = risk(h=pg.Box(-0.3, 0.4))
    constant, half = (
        error(problem, RING, Projected_DSGD(FULL, a), 20_000, solution) for a in (0.02, 0.01)
    )
    fall = Projected_DSGD(FULL, lambda t: 0.1 / (1.0 + t) ** 0.7)
    assert error(problem, RING, fall, 20_000, solution) < constant / 4
    assert constant > 1e-3
    assert 1.5 < constant / half < 2.5


@pytest.mark.parametrize("method", [Push_DIGing, AB, Push_Pull])
def test_exact_on_an_unbalanced_digraph(method):
    assert error(SMOOTH, DIGRAPH, method(FULL, 0.05), 3000, SMOOTH_SOLUTION) < 1e-7


def test_sonata_is_exact_with_a_prox_on_an_unbalanced_digraph():
    assert error(risk(), DIGRAPH, SONATA(FULL, 0.05), 3000, SOLUTION) < 1e-7


def test_sgp_is_biased_on_an_unbalanced_digraph():
    big, small = bias(SMOOTH, DIGRAPH, lambda a: SGP(FULL, a), SMOOTH_SOLUTION)
    assert 1.7 < big / small < 2.3
    assert small > 1e-3


def test_next_and_proxgt_differ_but_agree_in_the_limit():
    ours = trajectory(risk(), RING, NEXT(FULL, ALPHA), 20)
    theirs = trajectory(risk(), RING, pg.ProxGT(FULL, ALPHA), 20)
    assert max(np.abs(a - b).max() for a, b in zip(ours, theirs, strict=True)) > 1e-3
    assert error(risk(), RING, pg.ProxGT(FULL, 0.1), 3000, SOLUTION) < 1e-7


def test_steps_of_two_over_l_are_stood_by_trackers_that_adapt_first_and_not_by_pg_extra():
    """RIVALS section 3: up to a L = 3 and more, where PG-EXTRA has 2 lambda_min((I + W)/2)."""
    big = 1.9 / max(np.linalg.eigvalsh(a.T @ a / M)[-1] for a in A)
    for made in (pg.ProxGT(FULL, big), DEEPSTORM(FULL, big), SONATA(FULL, big)):
        assert error(risk(), RING, made, 3000, SOLUTION) < 1e-7
    assert pg.solve(risk(), RING, pg.PG_EXTRA(FULL, big), 300).status == "diverged"


def test_frank_wolfe_stays_in_the_set_and_falls_like_one_over_t():
    problem = risk(h=pg.L1Ball(0.8))
    seen = trajectory(problem, RING, DeFW(FULL), 100)[1:]
    assert max(np.abs(x).sum(axis=1).max() for x in seen) <= 0.8 + 1e-12

    def objective(x):
        return np.mean(0.5 * ((A * x).sum(-1) - B) ** 2)

    best = pub.centralized(
        np.zeros(P), NODES, lambda v, a: pub.project_l1_ball(v, 0.8), GRADIENT, 0.2
    )
    gaps = []
    for steps in (100, 1000, 10_000):
        run = pg.solve(problem, RING, DeFW(FULL), steps, record_every=steps, dtype="float64")
        gaps.append(objective(run.mean) - objective(best))
    assert gaps[2] < 2e-3
    assert gaps[0] > 4 * gaps[1] > 16 * gaps[2] > -1e-9
    # at a constant step it never settles (RIVALS 2.4)
    start = risk(h=pg.L1Ball(0.8), x0=np.zeros(P))
    assert all(error(start, RING, DeFW(FULL, 0.1), steps, best) > 2e-3 for steps in (1000, 10_000))


# compressors -----------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnums=1)
def compressed(compressor, copies, u):
    """Q(u), `copies` times over."""
    draw = compressor.draw(jax.random.split(jax.random.key(1), copies), u.size)
    return compressor(jnp.tile(u, (copies, 1)), draw)


@pytest.mark.parametrize(
    ("compressor", "copies"),
    [(TopK(0.3), 1), (RandomK(0.4), 500), (QSGD(2), 500), (QSGD(64), 500), (Identity(), 1)],
)
@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.floats(-1e3, 1e3, width=32).map(lambda v: v if abs(v) > 1e-30 else 0.0),
        min_size=9,
        max_size=9,
    )
)
def test_compressors_are_contractions(compressor, copies, values):
    """On average over many draws, within the error of that average."""
    u = np.array(values, np.float32)
    losses = ((np.asarray(compressed(compressor, copies, u), float) - u) ** 2).sum(axis=1)
    size = (u.astype(float) ** 2).sum()
    slack = 5 * losses.std() / np.sqrt(copies) + 1e-5 * size
    assert losses.mean() <= compressor.contraction(u.size) * size + slack
    assert compressor.contraction(u.size) < 1


@pytest.mark.parametrize(("dtype", "share", "k"), [("float32", 0.3, 3), ("float64", 0.09, 1)])
@pytest.mark.parametrize("copies", [1, 9])  # rows of 10 are compared by pairs, of 90 by bits
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-4, 4) | st.floats(-1e6, 1e6, width=32), min_size=30, max_size=30))
def test_top_k_keeps_the_k_largest_and_breaks_ties_in_order(dtype, share, k, copies, values):
    u = np.array(values, dtype).reshape(3, 10)
    u = np.concatenate([u * (1 + c % 2) for c in range(copies)], axis=1)
    k = max(1, int(np.floor(share * u.shape[1] + 1e-9))) if copies > 1 else k
    with jax.enable_x64(dtype == "float64"):
        kept = np.asarray(jitted_call(TopK(share), u))
    assert kept.dtype == dtype
    np.testing.assert_array_equal(kept, pub.top_k(u, k))


jitted_call = jax.jit(lambda compressor, rows: compressor(rows, None))


@pytest.mark.parametrize(("size", "k"), [(9, 3), (90, 36)])
def test_random_k_keeps_k_and_every_entry_as_often(size, k):
    kept = np.asarray(compressed(RandomK(0.4), 500, np.arange(1, size + 1, dtype=np.float32))) != 0
    assert (kept.sum(axis=1) == k).all()
    np.testing.assert_allclose(kept.mean(axis=0), k / size, atol=0.1)


def test_qsgd_of_zero_is_zero():
    rows = jnp.zeros((2, 3))
    assert (np.asarray(QSGD(2)(rows, jnp.full((2, 3), 0.9))) == 0).all()


@pytest.mark.parametrize(
    ("compressor", "word", "bits"),
    [
        (Identity(), 32, 100 * 32),
        (TopK(0.29), 32, 29 * (32 + 7)),
        (TopK(0.001), 32, 32 + 7),
        (TopK(0.5), 64, 50 * (64 + 7)),
        (RandomK(0.3), 32, 30 * 32),
        (QSGD(1), 32, 32 + 100 * 2),
        (QSGD(4), 64, 64 + 100 * 4),
    ],
)
def test_bits_of_one_vector_of_100(compressor, word, bits):
    assert compressor.bits(100, word) == bits


@pytest.mark.parametrize(("dtype", "word"), [("float32", 32), ("float64", 64)])
def test_history_counts_the_bits_sent(dtype, word):
    """Of p = 4 numbers: half of them with their places, all of them, or uncompressed."""
    for compressor, bits in ((TopK(0.5), 2 * (word + 2)), (Identity(), 4 * word)):
        method = CDProxSGT(pg.Minibatch(2), compressor, ALPHA)
        last = pg.solve(risk(bumpy_loss), RING, method, 7, dtype=dtype).history[-1]
        assert (last.rounds, last.bits) == (14, 14 * bits)
    whole = pg.solve(risk(bumpy_loss), RING, pg.ProxGT_SA(2, ALPHA), 7, dtype=dtype).history[-1]
    assert (whole.rounds, whole.bits) == (14, 14 * 4 * word)


# counts ----------------------------------------------------------------------------------------


class CountingOracle:
    """Counts the samples that gradients are really taken of, and the gradients."""

    def __init__(self, oracle):
        self.oracle, self.used, self.evaluated, self.passes = oracle, set(), 0, 0

    def __getattr__(self, name):
        return getattr(self.oracle, name)

    @property
    def sampled(self):
        return self.passes * M + sum(width for _, width in self.used)

    def gradients(self, x, draw):
        self.used.add((np.asarray(draw).tobytes(), draw.shape[1]))
        self.evaluated += draw.shape[1]
        return self.oracle.gradients(x, draw)

    def full_gradients(self, x):
        self.passes += 1
        self.evaluated += M
        return self.oracle.full_gradients(x)


COUNTED = [
    (SGP(MINI, ALPHA, pg.ColumnStochastic(2)), SMOOTH),
    (Push_DIGing(FULL, ALPHA, pg.ColumnStochastic(2)), SMOOTH),
    (AB(FULL, ALPHA, (pg.RowStochastic(2), pg.ColumnStochastic(3))), SMOOTH),
    (Push_Pull(MINI, ALPHA), SMOOTH),
    (Prox_DGD(FULL, ALPHA, pg.Gossip(3)), risk()),
    (Projected_DSGD(MINI, ALPHA, pg.Gossip(2)), risk(h=pg.L2Ball(1.0))),
    (NEXT(FULL, ALPHA, pg.Gossip(3)), risk()),
    (SONATA(pg.SARAH(3, 4), ALPHA, pg.ColumnStochastic(2)), risk()),
    (DeFW(FULL, consensus=pg.Gossip(2)), risk(h=pg.L2Ball(1.0))),
    (SPPDM(MINI, ALPHA), risk()),
    (DEEPSTORM_v1(3, ALPHA, 0.1, 7, pg.Gossip(2)), risk()),
    (DEEPSTORM_v2(3, ALPHA, 0.1, 7), risk()),
    (DEEPSTORM_v2(3, ALPHA, lambda t: 0.1 / (t + 1), 7), risk()),
    (Prox_DASA(MINI, ALPHA, pg.Gossip(3)), risk()),
    (Prox_DASA_GT(MINI, ALPHA, pg.Gossip(3)), risk()),
    (CDProxSGT(MINI, TopK(0.5), ALPHA), risk()),
]


def counting_mix(consensus, vectors):
    """Exchanges counted in p-vectors; a push-sum weight rides free, a bare number too."""
    if isinstance(consensus, tuple):
        return type(consensus)(*(counting_mix(one, vectors) for one in consensus))

    def mix(rows):
        if rows.shape[1] >= P:
            vectors.append(consensus.rounds)
        return rows

    return mix


@pytest.mark.parametrize(("method", "problem"), COUNTED)
def test_declared_cost_is_what_steps_really_do(method, problem):
    counting = CountingOracle(problem.oracle(problem.spec(), "float32"))
    vectors = []
    mix = counting_mix(method.consensus, vectors)
    with jax.disable_jit():
        state = method.init(counting, mix, jnp.tile(jnp.asarray(X1, jnp.float32), (NODES, 1)))
        assert (counting.sampled, vectors) == (0, [])
        for t in range(5):
            keys = jax.random.split(jax.random.key(t), NODES)
            state = method.step(counting, mix, state, method.draw(counting, keys))
    expected = (counting.sampled, counting.evaluated, sum(vectors))
    assert method.cost(problem, 5)[:3] == expected
    assert method.cost(problem, 0)[:3] == (0, 0, 0)


@pytest.mark.parametrize(("method", "problem"), COUNTED)
def test_dtype_and_shapes_of_the_state_are_kept(method, problem):
    for dtype in ("float32", "float64"):
        with jax.enable_x64(dtype == "float64"):
            oracle = problem.oracle(problem.spec(), dtype)
            mix = counting_mix(method.consensus, [])
            state = method.init(oracle, mix, jnp.tile(jnp.asarray(X1, dtype), (NODES, 1)))
            keys = jax.random.split(jax.random.key(0), NODES)

            def step(state, oracle=oracle, mix=mix, keys=keys):
                return method.step(oracle, mix, state, method.draw(oracle, keys))

            after = jax.eval_shape(step, state)
        assert jax.tree.structure(after) == jax.tree.structure(state)
        for new, old in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
            assert (new.shape, new.dtype) == (old.shape, old.dtype)
        assert after.x.shape == (NODES, P)


def test_a_pair_of_matrices_survives_a_checkpoint(tmp_path):
    run = {"record_every": 4, "checkpoint": tmp_path / "run"}
    pg.solve(SMOOTH, DIGRAPH, AB(FULL, ALPHA), 8, **run)
    resumed = pg.solve(SMOOTH, DIGRAPH, AB(FULL, ALPHA), 12, resume=True, **run)
    whole = pg.solve(SMOOTH, DIGRAPH, AB(FULL, ALPHA), 12, record_every=4)
    assert np.array_equal(resumed.x, whole.x)


# refusals --------------------------------------------------------------------------------------


def population(h=pg.Zero()):
    def sampler(key, node):
        a = jax.random.normal(key, (P,))
        return a, a[0] + node

    return pg.PopulationRisk(square_loss, sampler, NODES, h, x0=X1, evaluation=20)


class Ridge:
    """A user's own penalty, known by value and prox only."""

    def value(self, x):
        return 0.5 * jnp.vdot(x, x)

    def prox(self, v, step):
        return v / (1 + step)


class Orthant:
    """A user's own set."""

    def value(self, x):
        return jnp.where((x >= 0).all(), 0.0, jnp.inf)

    def prox(self, v, step):
        return jnp.maximum(v, 0)


SETS = [
    pg.Zero(),
    pg.NonNegative(),
    pg.Box(-1, 2),
    pg.Box(-np.inf, 2),
    pg.Halfspace(np.ones(P), 0.5),
    pg.AffineSet(np.ones((1, P)), np.ones(1)),
    pg.L1Ball(0.5),
    pg.L2Ball(0.5),
    pg.LinfBall(0.5),
    pg.Simplex(2.0),
    pg.NuclearBall(1.0, (2, 2)),
    pg.Blocks(pg.NonNegative()),
    Orthant(),
]
PENALTIES = [
    pg.L1(1e-6),
    pg.L1(1e3),
    pg.L2(0.1),
    pg.ElasticNet(0.1, 0.1),
    pg.GroupL1(0.1, [[0, 1], [2, 3]]),
    pg.NuclearNorm(0.1, (2, 2)),
    pg.TotalVariation(0.1),
    pg.Blocks(pg.L1(0.1)),
    Ridge(),
]


@pytest.mark.parametrize("h", SETS)
def test_sets_are_known_as_sets(h):
    assert is_indicator(risk(h=h))


@pytest.mark.parametrize("h", PENALTIES)
def test_penalties_are_known_as_penalties(h):
    assert not is_indicator(risk(h=h))


BALL = risk(h=pg.L2Ball(1.0))
NONSYMMETRIC = pg.Network.directed_ring(NODES)
REFUSED = [
    (SGP(FULL, 0.1), risk(), DIGRAPH, "SGP cannot take a regularizer.*L1.*use SONATA"),
    (Push_DIGing(FULL, 0.1), risk(), DIGRAPH, "Push_DIGing cannot take a regularizer"),
    (AB(FULL, 0.1), risk(), DIGRAPH, "AB cannot take a regularizer"),
    (Push_Pull(FULL, 0.1), risk(), DIGRAPH, "Push_Pull cannot take a regularizer"),
    (SGP(FULL, 0.1), population(), DIGRAPH, "^SGP: .*exact gradient"),
    (Push_DIGing(FULL, 0.1), population(), DIGRAPH, "^Push_DIGing: .*exact gradient"),
    (AB(FULL, 0.1), population(), DIGRAPH, "^AB: .*exact gradient"),
    (SGP(FULL, 0.1, pg.RowStochastic(1)), SMOOTH, DIGRAPH, r"columns sum to one.*use Column"),
    (SONATA(FULL, 0.1, pg.RowStochastic(1)), risk(), DIGRAPH, "SONATA needs .* columns"),
    (SONATA(FULL, 0.1), population(), DIGRAPH, "exact gradient"),
    (
        AB(FULL, 0.1, (pg.ColumnStochastic(1), pg.ColumnStochastic(1))),
        SMOOTH,
        DIGRAPH,
        "AB needs .* rows sum to one.*use RowStochastic",
    ),
    (Prox_DGD(FULL, 0.1), risk(), NONSYMMETRIC, "Prox_DGD needs a symmetric W.*ProxGT"),
    (Prox_DGD(FULL, 0.1), population(), RING, "exact gradient"),
    (Projected_DSGD(MINI, 0.1), risk(), RING, r"indicator of a set.*L1Ball.*L1\(.*Prox_DGD"),
    (NEXT(FULL, 0.1), population(), RING, "exact gradient"),
    (NEXT(FULL, 0.1, pg.Chebyshev(2)), risk(), NONSYMMETRIC, "^NEXT: Chebyshev needs a symm"),
    (DeFW(FULL), risk(), RING, "linear minimizer, which L1Ball.*use one of them"),
    (DeFW(FULL), risk(h=pg.Box(0, np.inf)), RING, "Box with finite bounds"),
    (DeFW(FULL), BALL, NONSYMMETRIC, "DeFW needs a symmetric W"),
    (DeFW(FULL), population(pg.L2Ball(1.0)), RING, "exact gradient"),
    (DeFW(FULL, 0.5), risk(h=pg.L2Ball(0.1)), RING, "x0 must lie in the set"),
    (SPPDM(MINI, 0.1), risk(), NONSYMMETRIC, "SPPDM needs an undirected graph.*SONATA"),
    (PPDM(0.1), population(), RING, "^SPPDM: FullGradient needs the exact gradient"),
    (DEEPSTORM_v2(2, 0.1, 0.1), risk(), NONSYMMETRIC, "DEEPSTORM needs a symmetric W"),
    (DEEPSTORM(FULL, 0.1), population(), RING, "exact gradient"),
    (Prox_DASA(MINI, 0.1), risk(), NONSYMMETRIC, "Prox_DASA needs a symmetric W"),
    (Prox_DASA_GT(MINI, 0.1), risk(), NONSYMMETRIC, "Prox_DASA_GT needs a symmetric W"),
    (CDProxSGT(MINI, TopK(0.5), 0.1), risk(), NONSYMMETRIC, "CDProxSGT needs a symmetric W"),
]


@pytest.mark.parametrize(("method", "problem", "network", "message"), REFUSED)
def test_refused_before_any_step(method, problem, network, message):
    with pytest.raises(ValueError, match=message):
        pg.solve(problem, network, method, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGP(FULL, 0.1, 3), "consensus must be ColumnStochastic"),
        (lambda: SGP(0.1, FULL), "step_size must be a number"),
        (lambda: SGP(pg.L1(1.0), 0.1), "estimator must be an instance"),
        (lambda: AB(FULL, 0.1, pg.Gossip(1)), "consensus must be a pair"),
        (lambda: AB(pg.L1(1.0), 0.1), "estimator must be an instance"),
        (lambda: Projected_DSGD(MINI, 0.1, pg.Chebyshev(2)), "Projected_DSGD .*negative"),
        (lambda: DeFW(FULL, consensus=pg.Chebyshev(2)), "DeFW .*without negative entries"),
        (lambda: DeFW(FULL, 1.5), r"step_size must be in \(0, 1\] for DeFW, got 1.5"),
        (lambda: NEXT(FULL, 0.1, relaxation=1.5), r"relaxation must be in \(0, 1\]"),
        (lambda: NEXT(FULL, 0.1, decay=1.0), r"decay must be in \[0, 1\)"),
        (lambda: SONATA(FULL, 0.1, relaxation=0), "relaxation must be > 0"),
        (lambda: SPPDM(MINI, 0.1, pg.Gossip(1)), r"consensus must be Neighbours\(\)"),
        (lambda: SPPDM(MINI, 0.1, momentum="heavy"), r"in \[0, 1\) or 'nesterov', got 'heavy'"),
        (lambda: SPPDM(MINI, 0.1, momentum=1.0), r"momentum must be in \[0, 1\)"),
        (lambda: SPPDM(MINI, 0.1, anchor_rate=2), r"anchor_rate must be in \(0, 1\]"),
        (lambda: SPPDM(pg.L1(1.0), 0.1), "estimator must be an instance"),
        (lambda: Neighbours(2), "one exchange"),
        (lambda: Neighbours().contraction(RING), "no contraction"),
        (lambda: DEEPSTORM_v1(2, 0.1, 1.5), r"momentum must be in \[0, 1\]"),
        (lambda: DEEPSTORM_v2(2, 0.1, lambda t: 2.0 + 0 * t), r"momentum\(0\) must be in \[0, 1\]"),
        (lambda: DEEPSTORM_v2(2, 0.1, lambda t: 0.1 * t), r"momentum\(11\) must be in \[0, 1\]"),
        (lambda: DEEPSTORM_v1(2, 0.1, 0.1, first=0), "first must be an integer"),
        (lambda: Prox_DASA(MINI, 0.1, relaxation=0.0), r"relaxation must be in \(0, 1\]"),
        (lambda: Prox_DASA_GT(MINI, 0.1, relaxation=1.1), r"relaxation must be in \(0, 1\]"),
        (lambda: CDProxSGT(MINI, 0.3, 0.1), "compressor must be a Compressor"),
        (lambda: CDProxSGT(MINI, TopK(0.5), 0.1, pg.Gossip(2)), "consensus must be of one round"),
        (lambda: CDProxSGT(MINI, TopK(0.5), 0.1, tracker_step=2.0), "tracker_step must be in"),
        (lambda: TopK(1.5), r"share must be in \(0, 1\]"),
        (lambda: RandomK(0), "share must be > 0"),
        (lambda: QSGD(0), "levels must be an integer"),
    ],
)
def test_refused_when_made(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_one_node_needs_no_neighbours():
    a, b = regression(1, 12, P)
    problem = pg.EmpiricalRisk(square_loss, (a, b), pg.L1(STRENGTH), x0=X1, smoothness=1.0)
    ours = trajectory(problem, pg.Network.complete(1), PPDM(0.25), 5)
    gradient, alone = square_gradient(a, b), np.zeros((1, 1))
    theirs = pub.sppdm(X1, alone, 4.0, 1.0, 0.01, 0.1, 0.9, lambda k: 0, prox, gradient, 5)
    assert_same(ours, theirs)

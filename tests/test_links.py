"""Failing links, schedules of graphs and pausing nodes: W_t doubly stochastic, means kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import proxgt as pg
from helpers import regression, square_loss, trajectory
from proxgt.engines.base import Turn, during
from proxgt.engines.mixing import local_mixing
from proxgt.networks import links

NODES, P = 6, 4
A, B = regression(NODES, 8, P)
X1 = np.linspace(-1, 1, P)
RING = pg.Network.ring(NODES)


def risk(h=pg.L1(0.1)):
    return pg.EmpiricalRisk(square_loss, (A, B), h, x0=X1, smoothness=10.0)


def matrices(network, steps, consensus=pg.Gossip(1), seed=0, calls=0):
    """The dense operators of an exchange of the first steps."""
    mix = local_mixing(network, consensus, "float32", seed, 50)

    @jax.jit
    def one(t):
        turn = Turn(t)
        turn.calls = calls
        return during(mix, turn)(jnp.eye(network.nodes))

    return [np.asarray(one(t)) for t in range(steps)]


def matrix(network, t, *options, **more):
    return matrices(network, t + 1, *options, **more)[t]


def test_failed_links_are_dropped_both_ways_and_their_weight_returned():
    flaky = links.unreliable(RING, 0.3)
    dropped = 0
    for W in matrices(flaky, 200):
        np.testing.assert_allclose(W, W.T, atol=1e-7)
        np.testing.assert_allclose(W.sum(0), 1, atol=1e-6)
        off = W - np.diag(np.diag(W))
        np.testing.assert_allclose(off[off > 0], 1 / 3, rtol=1e-6)
        dropped += 2 * NODES - (off > 0).sum()
    assert abs(dropped / (200 * 2 * NODES) - 0.3) < 0.05  # 1200 draws: 4 deviations


def test_every_round_exchange_step_and_seed_has_its_own_failures():
    flaky = links.unreliable(RING, 0.5)
    seen = [matrix(flaky, 3), matrix(flaky, 4), matrix(flaky, 3, calls=1), matrix(flaky, 3, seed=1)]
    two = matrix(flaky, 3, pg.Gossip(2))
    assert not np.allclose(two, seen[0] @ seen[0])
    for i, one in enumerate(seen):
        assert not any(np.allclose(one, other) for other in seen[:i])
    np.testing.assert_array_equal(matrix(flaky, 3), seen[0])


def test_l1_logistic_converges_with_30_percent_of_links_failing_at_every_round():
    """To the same stationary point as without failures, at every node."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((NODES, 20, P))
    y = np.sign(a @ rng.standard_normal(P) + 0.3 * rng.standard_normal((NODES, 20)))

    def logistic(w, sample):
        features, label = sample
        return jnp.logaddexp(0.0, -label * jnp.dot(features, w))

    problem = pg.EmpiricalRisk(logistic, (a, y), pg.L1(0.02), x0=np.zeros(P), smoothness=2.0)
    how = pg.ProxGT_SR_E(4, 10, 0.2, pg.Gossip(2))
    run = {"steps": 4000, "record_every": 500, "tolerance": 1e-6, "dtype": "float64"}
    flaky = pg.solve(problem, links.unreliable(RING, 0.3), how, **run)
    sound = pg.solve(problem, RING, how, **run)
    assert flaky.status == sound.status == "converged"
    np.testing.assert_allclose(flaky.x, sound.x, atol=1e-5)


@pytest.mark.parametrize(
    "network",
    [
        links.unreliable(RING, 0.3),
        links.unreliable(RING, 0.3, [links.Outage(2, 3, 9), links.Outage(4, 5, 7)]),
        links.varying([RING, pg.Network.star(NODES), pg.Network.path(NODES)]),
        links.varying(lambda t: RING if t % 3 else np.eye(NODES), over=RING),
    ],
)
def test_the_tracker_keeps_the_mean_of_the_estimates(network):
    """Eq. (11), at every step: mean(y_{t+1}) = mean(v_t)."""
    problem = risk()
    how = pg.ProxGT(pg.SARAH(2, 4), 0.05, pg.Gossip(2))
    states = []
    with jax.enable_x64(True):
        from proxgt.engines.base import Span
        from proxgt.engines.local import LocalEngine

        engine = LocalEngine(network, how, "float64", 0, 1)
        oracle = problem.oracle(problem.spec(), "float64")
        carry = engine.start(oracle, jnp.tile(jnp.asarray(X1), (NODES, 1)))
        for t in range(12):
            carry = engine.advance(carry, oracle, Span(t, t + 1, -1, 0))
            states.append(jax.tree.map(np.asarray, carry.state))
    for state in states:
        np.testing.assert_allclose(state.y.mean(0), state.estimate.v.mean(0), atol=1e-13)


def test_a_paused_node_keeps_its_row_and_comes_back():
    paused = links.unreliable(RING, outages=[links.Outage(2, 3, 9)])
    path = trajectory(risk(), paused, pg.ProxGT(pg.SARAH(2, 4), 0.05), 14)
    sound = trajectory(risk(), RING, pg.ProxGT(pg.SARAH(2, 4), 0.05), 14)
    for t in range(14):
        moved = not np.array_equal(path[t][2], path[t + 1][2])
        assert moved == (not 3 <= t < 9)
        assert not np.array_equal(path[t][0], path[t + 1][0])
    np.testing.assert_allclose(path[3], sound[3], atol=1e-12)


def test_a_run_with_outages_still_converges():
    paused = links.unreliable(RING, 0.2, [links.Outage(2, 50, 300), links.Outage(0, 10, 40)])
    how = pg.ProxGT(pg.FullGradient(), 0.05, pg.Gossip(2))
    run = {"tolerance": 1e-6, "dtype": "float64"}
    result = pg.solve(risk(), paused, how, 5000, **run)
    assert result.status == "converged"
    np.testing.assert_allclose(
        result.solution, pg.solve(risk(), RING, how, 5000, **run).solution, atol=1e-6
    )


def test_a_schedule_is_its_networks_in_turn():
    star = pg.Network.star(NODES)
    both = links.varying([RING, star.sparse])
    np.testing.assert_allclose(both.W, (RING.W + star.W) / 2)
    for t in range(4):
        expected = (star if t % 2 else RING).W
        np.testing.assert_allclose(matrix(both, t), expected, atol=1e-6)
    as_function = links.varying(lambda t: star if t % 2 else RING, over=both)
    how = pg.ProxGT_SA(2, 0.05, pg.Gossip(2))
    one, other = (
        pg.solve(risk(), network, how, 23, record_every=10) for network in (both, as_function)
    )
    assert np.array_equal(one.x, other.x)


def test_varying_links_are_part_of_what_a_checkpoint_is_of(tmp_path):
    how, run = pg.ProxGT_SA(2, 0.05), {"steps": 20, "record_every": 10, "checkpoint": tmp_path}
    pg.solve(risk(), links.unreliable(RING, 0.3), how, **run)
    with pytest.raises(ValueError, match=r"network.varying.failure was 0.3 and is now 0.2"):
        pg.solve(risk(), links.unreliable(RING, 0.2), how, **run, resume=True)


def test_what_is_said_of_a_networks_links_adds_up():
    star = pg.Network.star(NODES)
    first, second = links.Outage(1, 2, 4), links.Outage(3, 6, 9)
    flaky = links.unreliable(links.unreliable(RING, 0.3, [first]), outages=[second])
    assert (flaky.links.failure, flaky.links.outages) == (0.3, (first, second))
    both = links.unreliable(links.varying([RING, star]), 0.3)
    off = [W - np.diag(np.diag(W)) for W in matrices(both, 40)]
    for t, W in enumerate(off):
        assert not W[(star if t % 2 else RING).W == 0].any()
    full = sum((star if t % 2 else RING).adjacency.nnz for t in range(40))
    assert abs(1 - sum(np.count_nonzero(W) for W in off) / full - 0.3) < 0.12  # 4 deviations


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: links.varying([RING, links.unreliable(RING, 0.1)]), "t = 1 must not itself"),
        (
            lambda: pg.solve(
                risk(),
                links.unreliable(
                    links.varying(lambda t: pg.Network.directed_ring(NODES), over=RING), 0.1
                ),
                pg.ProxGT_SA(1, 0.1),
            ),
            "need a symmetric W, also at t = 0",
        ),
        (lambda: links.unreliable(RING, 1.0), r"link_failure must be in \[0, 1\), got 1.0"),
        (lambda: links.unreliable(RING, -0.1), "link_failure must be in"),
        (lambda: links.unreliable(pg.Network.directed_ring(4), 0.1), "need a symmetric W"),
        (lambda: links.unreliable(RING, outages=[links.Outage(6, 0, 3)]), "name node 6 of 6"),
        (lambda: links.unreliable(RING, outages=[(1, 0, 3)]), "must be Outage"),
        (lambda: links.Outage(1, 5, 5), "end must be > begin=5, got 5"),
        (lambda: links.varying([]), "at least one network"),
        (lambda: links.varying([RING, pg.Network.ring(5)]), "networks of one size"),
        (lambda: links.varying([np.ones((3, 3))]), "t = 0 must be doubly stochastic"),
        (
            lambda: links.varying([RING, np.array([[1.5, -0.5], [-0.5, 1.5]])]),
            "t = 1 must be doubly stoch",
        ),
        (lambda: links.varying([RING.W[:3]]), "t = 0 must be a square array"),
        (lambda: links.varying(["ring"]), "t = 0 must be a Network or a doubly stochastic"),
        (lambda: links.varying(RING), "schedule must be a sequence of networks or a function"),
        (lambda: links.varying(lambda t: RING), "over must be the Network"),
        (
            lambda: pg.solve(
                risk(),
                links.varying(lambda t: pg.Network.star(NODES), over=RING),
                pg.ProxGT_SA(1, 0.1),
            ),
            "links that the whole network has not",
        ),
        (
            lambda: pg.solve(
                risk(), links.unreliable(RING, 0.1), pg.ProxGT_SA(1, 0.1, pg.Chebyshev(3))
            ),
            r"Chebyshev is made for one fixed network.*use Gossip\(rounds\)",
        ),
    ],
)
def test_bad_links_are_refused_by_name(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()

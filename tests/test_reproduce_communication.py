"""The claim on rounds: graphs, the drawn problem, the search for K, and a run of one graph."""

import numpy as np
import pytest

import proxgt as pg
from proxgt.reproduce import communication as claim
from proxgt.theory import constants


def test_gaps_span_a_decade_and_a_half():
    for quick in (True, False):
        gaps = [net.spectral_gap for net in claim.networks(quick).values()]
        fitted = [gap for gap in gaps if gap <= claim.FITTED]
        assert max(fitted) / min(fitted) > 10**1.5
        assert all(net.nodes == claim.NODES for net in claim.networks(quick).values())


def test_drawn_quadratic_has_the_constants_of_the_population():
    n, m = 4, 6
    drawn = claim.drawn_quadratic(n, m)
    population = claim.bounded_quadratic(n, claim.HETEROGENEITY)
    A, targets = np.linspace(-0.5, 1.0, 10), np.asarray(population.sampler.targets.all())
    b, s = drawn.data.rows
    b, s = b.reshape(n, m, 10), s.reshape(n, m)
    np.testing.assert_allclose(b.mean(axis=1), targets, atol=1e-5)  # f_i = x'Ax/2 - t_i.x
    np.testing.assert_allclose(s.mean(axis=1), 0)
    curvatures = (A + s[..., None]) ** 2
    assert np.sqrt(curvatures.mean(axis=1).max()) == pytest.approx(np.hypot(1, 0.5))
    zeta = np.sqrt(np.mean(np.sum(targets**2, axis=1)))
    assert constants(drawn, pg.Network.ring(n)).zeta.value == pytest.approx(zeta, rel=1e-4)


def test_least_is_found_for_every_seed():
    needed = np.array([1, 7, 8, 40])
    asked = []

    def holds(K):
        asked.append(K)
        return needed <= K

    np.testing.assert_array_equal(claim.least(holds, 20), [1, 7, 8, np.inf])
    assert len(asked) == len(set(asked))


def test_rounds_on_one_graph():
    """2 K T, with T no more than 10 % above that of a complete graph and K - 1 not enough."""
    case = claim.Case.of("SR-E", (0,))
    network = claim.networks(quick=True)["circulant 4"]
    theorem, least = claim._measured(case, "circulant 4", network, "gossip")
    contraction = network.mixing_rate ** theorem["K"] * claim.NODES * case.zeta
    assert contraction <= 1 < contraction / network.mixing_rate
    assert 1 < least["K"] < theorem["K"]
    for row in (theorem, least):
        assert row["rounds"] == 2 * row["K"] * row["steps"]
        assert row["steps"] <= 1.1 * case.steps[0]
    assert case.run(network, pg.Gossip(int(least["K"]) - 1))[0] > 1.1 * case.steps[0]

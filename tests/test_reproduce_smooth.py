"""The claim for h = 0: the population of known constants, the settings tried, the search."""

import jax
import numpy as np
import pytest

import proxgt as pg
from proxgt.reproduce import smooth as claim
from proxgt.reproduce.cosine import cosine_population
from proxgt.reproduce.runs import Reached


def test_constants_of_the_cosine_population():
    """Against sample means, and curvatures, of gradients written out."""
    n, p, draws = 4, 5, 20_000
    problem, scales = cosine_population(n, p)
    targets = np.asarray(problem.sampler.targets.all())
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-3, 3, (2, p))
    for node in range(n):
        keys = jax.random.split(jax.random.key(node), draws)
        b, s = map(np.asarray, jax.vmap(problem.sampler, (0, None))(keys, node))
        weight = 1.5 if node < n // 2 else 0.5
        here = x / 4 - s[:, None] * np.sin(x) - b
        there = y / 4 - s[:, None] * np.sin(y) - b
        exact = x / 4 - weight * np.sin(x) - targets[node]
        np.testing.assert_allclose(here.mean(axis=0), exact, atol=0.05)
        assert np.mean(np.sum((here - exact) ** 2, axis=1)) <= scales.nu**2 * 1.05
        apart = np.mean(np.sum((here - there) ** 2, axis=1)) / np.sum((x - y) ** 2)
        assert apart <= scales.mean_squared_smoothness**2
        sample = (b[0], s[0])
        np.testing.assert_allclose(jax.grad(problem.loss)(x, sample), here[0], atol=1e-5)
    line = np.linspace(-9, 9, 2001)
    assert scales.smoothness == pytest.approx(np.abs(0.25 - 1.5 * np.cos(line)).max(), rel=1e-4)
    assert scales.zeta == pytest.approx(np.sqrt(np.mean(np.sum(targets**2, axis=1))))
    result = pg.solve(problem, pg.Network.complete(n), pg.DSGD(pg.Minibatch(64), 0.3), 200)
    assert 0 < p - result.history["objective"][-1] <= scales.gap * 1.001


def test_both_of_a_pair_try_the_same_steps():
    for duel in (claim.against_sarah(), claim.against_hsgd()):
        ours, theirs = (make(pg.Gossip(2)) for make in (duel.ours, duel.theirs))
        steps = {method.step_size for method in ours.values()}
        assert {method.step_size for method in theirs.values()} == steps
        assert np.array(sorted(steps)) * duel.problem.smoothness == pytest.approx(
            sorted(claim.STEPS), rel=1e-6
        )
    sarah, ours = theirs_and_ours(claim.against_sarah())
    m = claim.against_sarah().problem.samples_per_node
    assert (ours.estimator.batch, ours.estimator.period) == (3, round(np.sqrt(claim.NODES * m)))
    assert (sarah.batch, sarah.period) == (3, ours.estimator.period + 1)


def theirs_and_ours(duel):
    return (next(iter(make(pg.Gossip(1)).values())) for make in (duel.theirs, duel.ours))


def test_momentum_follows_the_step_as_published():
    """beta = c (alpha L)^2/n is n^(1/3)/T^(2/3) at the T of alpha = n^(2/3)/(L T^(1/3))."""
    duel, n = claim.against_hsgd(), claim.NODES
    for words, method in duel.theirs(pg.Gossip(1)).items():
        c = float(words.split("beta = ")[1].split()[0])
        horizon = (n ** (2 / 3) / (method.step_size * duel.problem.smoothness)) ** 3
        assert method.momentum == pytest.approx(min(1, c * n ** (1 / 3) / horizon ** (2 / 3)))


def test_quickest_is_the_least_of_the_slowest_seeds():
    table = {"a": (900, 100), "b": (700, 650), "c": (np.inf, 10), "d": (710, 701)}
    limits = []

    def run(method, most):
        limits.append(most)
        steps = np.where(np.array(table[method]) <= most, table[method], np.inf)
        return Reached(steps, steps, steps, steps, steps)

    words, found = claim.quickest({name: name for name in table}, run)
    assert (words, list(found.steps)) == ("b", [700, 650])
    assert limits[:8] == [200] * 4 + [400] * 4
    nobody, lost = claim.quickest({"c": "c"}, run)
    assert (nobody, lost.all) == ("none", False)

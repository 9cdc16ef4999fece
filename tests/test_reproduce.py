"""The framework of `proxgt reproduce`: measured runs, findings, reports, the command."""

import numpy as np
import pytest
from scipy import stats

import proxgt as pg
from helpers import regression, square_gradient, square_loss
from proxgt.reproduce import runs
from proxgt.reproduce.findings import Interval
from proxgt.reproduce.runs import curve, reach

N, M, P = 5, 8, 4
A, B = regression(N, M, P)
L = 5.0
RING, PATH = pg.Network.ring(N), pg.Network.path(N)


@pytest.fixture(scope="module")
def problem():
    return pg.EmpiricalRisk(square_loss, (A, B), pg.L1(0.1), x0=np.full(P, 0.4), smoothness=L)


def test_interval_of_a_ratio_is_welchs_of_both():
    """SciPy's interval of a difference of logs, which for small spreads is the same."""
    rng = np.random.default_rng(0)
    over, under = 50 + rng.standard_normal(8), 40 + 0.3 * rng.standard_normal(5)
    logs = stats.ttest_ind(np.log(over), np.log(under), equal_var=False).confidence_interval(0.95)
    found = Interval.of_ratio(over, under)
    assert found.value == pytest.approx(over.mean() / under.mean())
    assert [found.low, found.high] == pytest.approx(np.exp(logs), rel=1e-3)
    assert str(Interval.of_ratio([3.0, 3.0], [2.0, 2.0])) == "1.5"
    assert str(Interval.of_ratio([3.0, np.inf], [2.0, 2.0])) == "inf"
    assert str(Interval.of_ratio([3.0, 3.0], [2.0, np.inf])) == "0"


# measured runs -------------------------------------------------------------------------------


def metric_by_hand(x, a):
    """Definition 3 at every node, from the formulas."""
    gradient = square_gradient(A, B)
    total = 0.0
    for row in x:
        g = np.mean([gradient(i, row, None) for i in range(N)], axis=0)
        z = row - a * g
        z = np.sign(z) * np.maximum(abs(z) - a * 0.1, 0)
        total += np.sum((row - z) ** 2) / a**2 + L**2 * np.sum((row - x.mean(0)) ** 2)
    return total / N


def test_curve_is_definition_3_on_a_numpy_recursion(problem):
    """Full gradients, two rounds a mix: Algorithm 1 written out."""
    a, W2 = 0.05, np.linalg.matrix_power(PATH.W, 2)
    gradient = square_gradient(A, B)
    x, y, v = np.full((N, P), 0.4), np.zeros((N, P)), np.zeros((N, P))
    expected = []
    for _ in range(12):
        expected.append(metric_by_hand(x, a))
        new = np.array([gradient(i, x[i], None) for i in range(N)])
        y, v = W2 @ (y + new - v), new
        z = x - a * y
        x = W2 @ (np.sign(z) * np.maximum(abs(z) - a * 0.1, 0))
    method = pg.ProxGT(pg.FullGradient(), a, pg.Gossip(2))
    found = curve(problem, PATH, method, [3, 4], 12)
    np.testing.assert_allclose(found, [expected, expected], rtol=2e-4)


@pytest.mark.parametrize(
    "method",
    [
        pg.ProxGT_SR_E(2, 5, 0.05, pg.Gossip(3)),
        pg.AB(pg.Minibatch(2), 0.02),
        pg.DESTRESS(4, 2, 0.02),
    ],
    ids=["one consensus", "two matrices", "nested"],
)
def test_curve_makes_the_draws_of_solve(problem, method):
    if not isinstance(method, pg.ProxGT):
        problem = pg.EmpiricalRisk(square_loss, (A, B), x0=problem.x0, smoothness=L)
    found = curve(problem, RING, method, [0, 7], 9, metric_step=0.05)
    for seed, one in zip((0, 7), found, strict=True):
        result = pg.solve(
            problem, RING, method, 8, seed=seed, record_every=1, metric_at="nodes", metric_step=0.05
        )
        np.testing.assert_allclose(one, result.history["metric"], rtol=1e-3)
    assert found.shape == (2, 9)


def test_reach_is_the_least_average_and_counts_the_true_rounds(problem):
    method = pg.ProxGT_SR_E(2, 5, 0.05, pg.Gossip(3))
    found = reach(problem, RING, method, 0.9, range(3), 400)
    assert found.all
    for metric, steps in zip(found.metric, found.steps, strict=True):
        T = int(steps)
        assert metric[:T].mean() <= 0.81 < metric[: T - 1].mean()
    refreshes = np.ceil(found.steps / 5)
    np.testing.assert_array_equal(found.samples, refreshes * M + (found.steps - refreshes) * 2)
    np.testing.assert_array_equal(found.gradients, refreshes * M + (found.steps - refreshes) * 4)
    np.testing.assert_array_equal(found.rounds, 2 * 3 * found.steps)


def test_what_is_not_reached_is_infinite(problem):
    found = reach(problem, RING, pg.ProxGT_SR_E(2, 5, 0.05), 1e-9, [0, 1], 30)
    assert not found.all
    assert np.isinf([found.steps, found.samples, found.rounds]).all()
    far = pg.ProxGT_SR_E(2, 5, 50.0)  # diverges
    assert np.isinf(reach(problem, RING, far, 0.1, [0], 400).steps).all()


def test_another_number_of_rounds_or_network_compiles_nothing(problem):
    step, other = 0.05, pg.Network.complete(N)
    curve(problem, RING, pg.ProxGT_SR_E(2, 5, step, pg.Gossip(1)), [0, 1], 3)
    before = runs._advance._cache_size()
    a = curve(problem, RING, pg.ProxGT_SR_E(2, 5, step, pg.Gossip(4)), [0, 1], 3)
    b = curve(problem, PATH, pg.ProxGT_SR_E(2, 5, 2 * step, pg.Chebyshev(2)), [2, 3], 3)
    c = curve(problem, other, pg.ProxGT_SR_E(2, 5, step, pg.Chebyshev("auto", 0.1)), [0, 1], 3)
    assert runs._advance._cache_size() == before
    assert not np.allclose(a, b)
    assert not np.allclose(a, c)


def test_a_varying_network_is_refused(problem):
    network = pg.Network(RING.graph, link_failure=0.2)
    with pytest.raises(ValueError, match="varies"):
        curve(problem, network, pg.ProxGT_SR_E(2, 5, 0.05), [0], 3)


def test_giving_up_changes_no_answer(problem):
    """Seeds that cannot get there end early; a limit that they could meet is kept."""
    method = pg.ProxGT_SR_E(2, 5, 0.05, pg.Gossip(3))
    steps = reach(problem, RING, method, 0.9, range(3), 400).steps
    for most in range(int(steps.min()) - 1, int(steps.max()) + 2):
        found = reach(problem, RING, method, 0.9, range(3), most).steps
        np.testing.assert_array_equal(found, np.where(steps <= most, steps, np.inf))
    assert reach(problem, RING, method, 1e-3, [0], 4000).metric.shape[1] < 4000
    assert curve(problem, RING, method, [0], 450, until=1e-3).shape[1] == 450

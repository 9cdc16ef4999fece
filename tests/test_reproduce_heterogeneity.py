"""Claim "heterogeneity": the two splits, the best steps, the predicted bias, the verdict."""

import numpy as np
import pytest

import proxgt as pg
from helpers import regression
from proxgt.reproduce import heterogeneity
from proxgt.reproduce.bias import bias_of_dsgd, floor
from proxgt.reproduce.runs import reach
from proxgt.reproduce.tuning import Contest, best, steps_to

N, M, P = 5, 8, 4
A, B = regression(N, M, P)
PATH = pg.Network.path(N)


def test_both_splits_are_one_psi_of_unlike_nodes():
    splits = heterogeneity.digits(heterogeneity.COMPOSITE)
    iid, label = splits["iid"], splits["label"]
    assert iid.smoothness == label.smoothness
    for scale in (0.0, 0.1):
        x = scale * np.random.default_rng(0).standard_normal(64)
        assert iid.objective(x) == pytest.approx(label.objective(x), rel=1e-5)

    def spread(problem):
        features, labels = problem.data.rows
        nodes = -0.5 * np.mean((features * labels[:, None]).reshape(8, -1, 64), axis=1)
        return np.linalg.norm(nodes - nodes.mean(0))

    assert spread(label) > 5 * spread(iid)  # of grad f_i(0)


def test_steps_to_is_the_first_running_average():
    metric = np.random.default_rng(1).random((3, 40)) * np.linspace(2, 0.1, 40)
    metric[2, 5] = np.nan
    found = steps_to(metric, (0.9, 0.8, 0.1))
    for row, seed in zip(found, metric, strict=True):
        for steps, epsilon in zip(row, (0.9, 0.8, 0.1), strict=True):
            below = [T for T in range(1, 41) if seed[:T].mean() <= epsilon**2]
            assert steps == (below[0] if below else np.inf)


def test_best_is_the_fewest_steps_of_the_grid():
    problem = pg.tasks.least_squares((A, B), pg.L1(0.1))
    grid, epsilons = (4.0, 1.0, 0.25, 0.06), (2.0, 1.0, 0.5)
    contest = Contest((), pg.L1(0.1), pg.SARAH(2, 5), pg.Gossip(2), epsilons, (0, 3), grid, 300)
    steps, sizes = best(contest, pg.ProxGT, problem, PATH)
    L = problem.smoothness
    for e, epsilon in enumerate(epsilons):
        every = {
            a / L: reach(
                problem,
                PATH,
                pg.ProxGT(pg.SARAH(2, 5), a / L, pg.Gossip(2)),
                epsilon,
                (0, 3),
                300,
                metric_step=1 / L,
            ).steps
            for a in grid
        }
        fewest = min(every, key=lambda a: every[a].mean())
        assert sizes[e] == fewest
        np.testing.assert_array_equal(steps[:, e], every[fewest])


def test_bias_of_dsgd_is_that_of_its_exact_fixed_point():
    """Least squares: (I - W^K) x + a (H_i x_i - c_i) = 0 is linear, solved here in NumPy."""
    problem, consensus = pg.tasks.least_squares((A, B)), pg.Gossip(2)
    W, L, a = np.linalg.matrix_power(PATH.W, 2), problem.smoothness, 1e-4
    H = np.einsum("imp,imq->ipq", A, A) / M
    c = np.einsum("imp,im->ip", A, B) / M
    system = np.kron(np.eye(N) - W, np.eye(P))
    for i in range(N):
        system[i * P : (i + 1) * P, i * P : (i + 1) * P] += a * H[i]
    x = np.linalg.solve(system, a * c.ravel()).reshape(N, P)
    mapping = x @ H.mean(0) - c.mean(0)
    metric = np.sum(mapping**2 + L**2 * (x - x.mean(0)) ** 2) / N
    assert bias_of_dsgd(problem, PATH, consensus) == pytest.approx(metric / a**2, rel=0.01)
    near = floor(problem, PATH, pg.DSGD, 0.005, consensus)
    assert near / 0.005**2 == pytest.approx(metric / a**2, rel=0.1)


def passed(method, iid, label):
    contest = Contest(
        (method,),
        heterogeneity.SMOOTH,
        pg.FullGradient(),
        pg.Gossip(3),
        (0.4, 0.2, 0.1),
        (0,),
        (1.0,),
        100,
    )
    found = {(method, "iid"): np.array([iid]), (method, "label"): np.array([label])}
    return [check.passed for check in heterogeneity.judged(contest, found)]


def test_the_verdict_is_of_ratios_and_powers():
    squares, cubes, inf = np.array([4.0, 16, 64]), np.array([8.0, 64, 512]), np.inf
    assert passed(pg.ProxGT, squares, 1.2 * squares) == [True, True]
    assert passed(pg.ProxGT, squares, 3 * squares) == [False, True]
    assert passed(pg.ProxGT, cubes, cubes) == [True, False]
    assert passed(pg.DSGD, cubes, 5 * cubes) == [True, True]
    assert passed(pg.DSGD, cubes, cubes) == [False, True]
    assert passed(pg.DSGD, squares, 5 * squares) == [True, False]
    assert passed(pg.DSGD, cubes, [40.0, 320, inf]) == [True, True]  # of what both reach
    assert passed(pg.ProxGT, squares, [inf, inf, inf]) == [False, False]
    assert passed(pg.ProxGT, squares, [4.0, 16, inf]) == [False, False]  # ProxGT reaches all
    assert passed(pg.ProxGT, [4.0, 16, inf], [4.0, 16, inf]) == [False, False]

"""Twenty random problems for plans: every risk, h, graph, size and method takes its turn."""

from dataclasses import dataclass

import numpy as np

import proxgt as pg

COUNT = 20
GRAPHS = {
    "ring": pg.Network.ring,
    "path": pg.Network.path,
    "star": pg.Network.star,
    "complete": pg.Network.complete,
    "exponential": pg.Network.exponential,
    "erdos_renyi": lambda n: pg.Network.erdos_renyi(n, 0.6, seed=n),
    "geometric": lambda n: pg.Network.geometric(n, 0.7, seed=n),
    "directed_ring": pg.Network.directed_ring,
    "directed_exponential": pg.Network.directed_exponential,
}
REGULARIZERS = (
    pg.L1(0.01),
    pg.Zero(),
    pg.L2Ball(2.0),
    pg.ElasticNet(0.01, 0.02),
    pg.Box(-0.6, 0.6),
    pg.NonNegative(),
    pg.L1Ball(1.5),
)
RISKS = ("logistic", "quadratic", "welsch", "nonconvex quadratic", "tukey")
METHODS = {True: ("auto", "SR-E", "SA", "SR-O"), False: ("auto", "SA", "SR-O")}  # m finite, or not


@dataclass(frozen=True)
class Case:
    """A problem, a network and what is asked of a plan; `start` is the metric at x0."""

    problem: pg.EmpiricalRisk | pg.PopulationRisk
    network: pg.Network
    epsilon: float
    method: str
    start: float


def random_case(seed: int) -> Case:
    """Case `seed`: sizes and data at random, the kinds by turns that never fall into step."""
    rng = np.random.default_rng(seed)
    n, m, p = (int(rng.integers(*ends)) for ends in ((3, 11), (10, 41), (3, 13)))
    network = list(GRAPHS.values())[seed % len(GRAPHS)](n)
    problem = _problem(RISKS[seed % len(RISKS)], rng, (n, m, p))
    methods = METHODS[problem.exact]
    start = _metric(problem)
    epsilon = float(np.sqrt(start / rng.uniform(3, 6)))
    return Case(problem, network, epsilon, methods[seed // len(RISKS) % len(methods)], start)


def _problem(risk, rng, shape):
    (n, m, p), h = shape, REGULARIZERS[rng.integers(len(REGULARIZERS))]
    seed = int(rng.integers(10**6))
    if risk == "quadratic":
        return pg.tasks.noisy_quadratic(n, p, 0.4, 0.5, seed=seed, regularizer=h)
    if risk == "nonconvex quadratic":
        box = pg.Box(-1.0, 1.0)
        options = {"curvature": (-0.5, 1.0), "curvature_noise": 0.2, "regularizer": box}
        return pg.tasks.noisy_quadratic(n, p, 0.3, 0.5, seed=seed, **options)
    a = rng.standard_normal((n, m, p)) / np.sqrt(p)
    truth = 2 * rng.standard_normal(p) + rng.standard_normal((n, 1, p))  # nodes differ
    scores = (a * truth).sum(-1)
    if risk == "logistic":
        labels = np.where(scores + 0.3 * rng.standard_normal((n, m)) > 0, 1, -1)
        return pg.tasks.logistic((a, labels), h, penalty=0.01)
    targets = scores + 0.1 * rng.standard_normal((n, m))
    return pg.tasks.robust_regression((a, targets), h, risk)


def _metric(problem):
    """||s(x0)||^2 of eq. (7), with the theorems' largest step, written out."""
    a, x = 1 / (8 * problem.smoothness), np.asarray(problem.x0, float)
    forward = x - a * np.asarray(problem.gradient(x), float)
    moved = x - np.asarray(problem.regularizer.prox(forward.astype("f4"), a), float)
    return float((moved**2).sum()) / a**2

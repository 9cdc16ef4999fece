"""Where the methods end, against scikit-learn, CVXPY and closed forms."""

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import proxgt as pg
from helpers import bumpy_loss, regression, square_loss

cvxpy = pytest.importorskip("cvxpy", reason="the test extra is not installed")


def logistic_loss(w, sample):
    a, y = sample
    return jnp.logaddexp(0.0, -y * jnp.dot(a, w))


def cancer(nodes=8):
    features, labels = load_breast_cancer(return_X_y=True)
    features = StandardScaler().fit_transform(features)
    order = np.argsort(labels, kind="stable")[: 568 // nodes * nodes]  # every node one label
    shape = (nodes, len(order) // nodes)
    y = 2.0 * labels[order] - 1
    return features[order].reshape(*shape, -1), y.reshape(shape)


def test_l1_logistic_on_real_data_reaches_scikit_learn():
    a, y = cancer()
    strength = 0.05
    pooled, labels = a.reshape(-1, a.shape[-1]), y.ravel()
    sk = LogisticRegression(
        C=1 / (strength * len(labels)),
        l1_ratio=1.0,
        solver="saga",
        fit_intercept=False,
        tol=1e-12,
        max_iter=200_000,
    )
    best = sk.fit(pooled, labels).coef_[0]
    problem = pg.EmpiricalRisk(
        logistic_loss, (a, y), pg.L1(strength), x0=np.zeros(a.shape[-1]), smoothness=7.1
    )
    method = pg.ProxGT_SR_E(8, 24, 0.6, pg.Chebyshev(6))
    result = pg.solve(
        problem,
        pg.Network.ring(8),
        method,
        60_000,
        dtype="float64",
        record_every=2000,
        tolerance=1e-10,
    )
    assert result.status == "converged"
    assert result.history[-1].objective <= problem.objective(best) + 1e-9
    np.testing.assert_allclose(result.solution, best, atol=1e-6)
    assert np.array_equal(np.asarray(result.solution) == 0, np.abs(best) < 1e-9)
    assert 5 < (best == 0).sum() < 30


def cvxpy_least_squares(a, b, constraint):
    """min (1/n) sum_i mean_s 1/2 (a_is w - b_is)^2 over a constraint set, by Clarabel."""
    w = cvxpy.Variable(a.shape[-1])
    residual = a.reshape(-1, a.shape[-1]) @ w - b.ravel()
    goal = cvxpy.Minimize(0.5 * cvxpy.sum_squares(residual) / b.size)
    program = cvxpy.Problem(goal, constraint(w))
    program.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return program.value, w.value


def solved(a, b, h, x0, steps=4000, **options):
    problem = pg.EmpiricalRisk(square_loss, (a, b), h, x0=x0)
    step = 0.5 / problem.smoothness
    method = pg.ProxGT(pg.FullGradient(), step, pg.Chebyshev(4))
    return pg.solve(
        problem, pg.Network.ring(a.shape[0]), method, steps, dtype="float64", record_every=200
    )


def test_simplex_constrained_least_squares_reaches_cvxpy():
    a, b = regression(6, 10, 5, seed=4)
    value, best = cvxpy_least_squares(a, b, lambda w: [w >= 0, cvxpy.sum(w) == 1])
    result = solved(a, b, pg.Simplex(), np.full(5, 0.2))
    np.testing.assert_allclose(result.history[-1].objective, value, atol=1e-8)
    np.testing.assert_allclose(result.solution, best, atol=1e-6)
    assert (best < 1e-7).any()  # the constraint matters


def test_nuclear_norm_reaches_cvxpy():
    a, b = regression(6, 10, 12, seed=5)
    strength, shape = 1.5, (3, 4)

    w = cvxpy.Variable(12)
    residual = a.reshape(-1, 12) @ w - b.ravel()
    nuclear = cvxpy.normNuc(cvxpy.reshape(w, shape, order="C"))
    goal = cvxpy.Minimize(0.5 * cvxpy.sum_squares(residual) / b.size + strength * nuclear)
    program = cvxpy.Problem(goal)
    program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    result = solved(a, b, pg.NuclearNorm(strength, shape), np.zeros(12), steps=8000)
    np.testing.assert_allclose(result.history[-1].objective, program.value, atol=1e-7)
    np.testing.assert_allclose(result.solution, w.value, atol=1e-5)
    rank = np.linalg.matrix_rank(np.reshape(result.solution, shape), tol=1e-8)
    assert 0 < rank < 3  # the regularizer matters


@pytest.mark.parametrize(
    ("network", "consensus"),
    [
        (pg.Network.ring(5), pg.Gossip(2)),
        (pg.Network(nx.barbell_graph(2, 1)), pg.Chebyshev(3)),
        (pg.Network.directed_ring(5), pg.Gossip(3)),
        (
            pg.Network(nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)])),
            pg.Gossip(3),
        ),
    ],
)
def test_sr_e_reaches_exact_stationarity_on_a_nonconvex_problem(network, consensus):
    """A constant step, sampled gradients, heterogeneous data, directed graphs too."""
    a, b = regression(5, 20, 6, seed=2, spread=0.3)
    problem = pg.EmpiricalRisk(bumpy_loss, (a, b), pg.L1(0.02), x0=np.full(6, 0.3))
    step = 0.3 / problem.smoothness
    method = pg.ProxGT_SR_E(4, 10, step, consensus)
    result = pg.solve(problem, network, method, 20_000, dtype="float64", record_every=1000)
    assert result.history[-1].metric < 1e-10
    curvature = np.linalg.eigvalsh(numerical_hessian(problem, problem.x0 + 2.0))
    assert curvature[0] < -1e-3  # F is not convex


def numerical_hessian(problem, x, h=1e-5):
    eye = np.eye(len(x))
    return np.array(
        [(problem.gradient(x + h * e) - problem.gradient(x - h * e)) / (2 * h) for e in eye]
    )


def test_sa_hovers_where_sr_e_converges():
    """At the same constant step, stochastic approximation has a noise floor."""
    a, b = regression(5, 20, 6, seed=2, spread=0.3)
    problem = pg.EmpiricalRisk(bumpy_loss, (a, b), pg.L1(0.02), x0=np.full(6, 0.3))
    step = 0.3 / problem.smoothness
    sa = pg.solve(problem, pg.Network.ring(5), pg.ProxGT_SA(4, step), 20_000, dtype="float64")
    sr = pg.solve(problem, pg.Network.ring(5), pg.ProxGT_SR_E(4, 10, step), 20_000, dtype="float64")
    assert sa.history["metric"][-50:].min() > 1e-7
    assert sr.history["metric"][-1] < 1e-15


def test_population_risk_with_known_gradient_and_with_an_estimated_one():
    """E 1/2 ||w - (c + noise)||^2 at every node: the minimizer with l1 is soft(c, s)."""
    nodes, p = 6, 5
    centre = np.linspace(-2, 2, p)

    def loss(w, sample):
        return 0.5 * jnp.sum((w - sample) ** 2)

    def sampler(key, node):
        import jax

        shift = jnp.where(node % 2 == 0, 1.0, -1.0)  # heterogeneous, zero on the mean
        return jnp.asarray(centre) + shift + 0.1 * jax.random.normal(key, (p,))

    known = pg.PopulationRisk(
        loss,
        sampler,
        nodes,
        pg.L1(0.5),
        x0=np.zeros(p),
        smoothness=1.0,
        gradient=lambda w: w - jnp.asarray(centre),
    )
    estimated = pg.PopulationRisk(
        loss, sampler, nodes, pg.L1(0.5), x0=np.zeros(p), smoothness=1.0, evaluation=4000
    )
    best = np.sign(centre) * np.maximum(np.abs(centre) - 0.5, 0)
    method = pg.ProxGT_SR_O(16, 10, 400, 0.2, pg.Gossip(3))
    for problem, atol in ((known, 0.01), (estimated, 0.01)):
        result = pg.solve(problem, pg.Network.ring(nodes), method, 400)
        np.testing.assert_allclose(result.mean, best, atol=atol)
        assert result.history[-1].metric < 1e-3
    np.testing.assert_allclose(known.gradient(np.ones(p)), 1 - centre, atol=1e-6)
    np.testing.assert_allclose(estimated.gradient(np.ones(p)), 1 - centre, atol=0.01)


def test_stream_of_host_iterators_gives_what_it_reads():
    """A stream over recorded samples equals NumPy reading them in order, chunk by chunk."""
    nodes, p, batch, steps = 3, 2, 2, 23
    rng = np.random.default_rng(0)
    record = rng.standard_normal((nodes, 500, p))

    def loss(w, sample):
        return 0.5 * jnp.sum((w - sample) ** 2)

    stream = pg.Stream(lambda node: iter(record[node]))
    problem = pg.PopulationRisk(loss, stream, nodes, x0=np.zeros(p), smoothness=1.0, evaluation=10)
    network = pg.Network.complete(nodes)
    seen = []
    for every in (1, 5):
        run = pg.solve(
            problem,
            network,
            pg.ProxGT_SA(batch, 0.1),
            steps,
            dtype="float64",
            record_every=every,
        )
        seen.append(run.x)
    x = np.zeros(p)
    for t in range(steps):  # W = J: the centralized method
        use = record[:, 10 + t * batch : 10 + (t + 1) * batch]
        x = x - 0.1 * (x - use.mean(axis=(0, 1)))
    for mine in seen:
        np.testing.assert_allclose(mine, np.tile(x, (nodes, 1)), atol=1e-12)
    refreshing = pg.ProxGT_SR_O(batch, 5, 7, 0.1)
    pg.solve(problem, network, refreshing, 20, record_every=4)
    with pytest.raises(ValueError, match="stream of node 0 ended"):
        pg.solve(problem, network, pg.ProxGT_SA(100, 0.1), 20)


def test_stream_resumes_where_it_was(tmp_path):
    def factory(node):
        rng = np.random.default_rng(node)
        while True:
            yield rng.standard_normal(2)

    def loss(w, sample):
        return 0.5 * jnp.sum((w - sample) ** 2)

    problem = pg.PopulationRisk(
        loss, pg.Stream(factory), 3, x0=np.zeros(2), smoothness=1.0, evaluation=5
    )
    args = (problem, pg.Network.complete(3), pg.ProxGT_SA(2, 0.1), 30)
    whole = pg.solve(*args, record_every=5)
    stop = {"callbacks": [lambda s: s.row.step == 15]}
    pg.solve(*args, record_every=5, checkpoint=tmp_path, **stop)
    resumed = pg.solve(*args, record_every=5, checkpoint=tmp_path, resume=True)
    assert np.array_equal(whole.x, resumed.x)

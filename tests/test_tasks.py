"""Ready-made problems against NumPy: their values, gradients, smoothness and noise."""

from __future__ import annotations

import tomllib
from inspect import signature
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import dump_svmlight_file

from proxgt import EmpiricalRisk, tasks
from proxgt.data import load, shard
from proxgt.regularizers import L1, L2, Box, L2Ball, NonNegative, Simplex, Zero

NODES, M, P = 3, 5, 4
RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((NODES, M, P))
SIGNS = RNG.choice([-1.0, 1.0], (NODES, M))
TARGETS = RNG.standard_normal((NODES, M))
CLASSES = np.arange(NODES * M).reshape(NODES, M) % 3
ROWS, COLUMNS = RNG.integers(0, 4, (NODES, M)), RNG.integers(0, 3, (NODES, M))
ENTRIES = (ROWS, COLUMNS, TARGETS)
SHAPE = (4, 3)


def ragged(data, sizes=(2, 5, 3)):
    """The first m_i samples of every node, as a list."""
    return [jax.tree.map(lambda a, i=i, m=m: a[i, :m], data) for i, m in enumerate(sizes)]


# Values and gradients ------------------------------------------------------------------------
# F as a NumPy function of x and of the pairs (features, targets) of every node.


def mean_over_nodes(phi):
    return lambda x, nodes: np.mean([np.mean(phi(a @ x, b)) for a, b in nodes])


logistic_mean = mean_over_nodes(lambda z, b: np.log(1 + np.exp(-b * z)))


def tukey(z, b):
    r = np.abs(z - b) / 0.7
    return 0.7**2 / 6 * np.where(r <= 1, 1 - (1 - np.minimum(r, 1) ** 2) ** 3, 1)


def mlp(x, nodes):
    # Leaves come in the order of their keys, b before w.
    b1, w1, b2, w2 = np.split(x, np.cumsum([2, 4 * 2, 3]))
    w1, w2 = w1.reshape(4, 2), w2.reshape(2, 3)
    total = 0.0
    for a, label in nodes:
        logits = np.tanh(a @ w1 + b1) @ w2 + b2
        total -= np.mean(log_softmax(logits, axis=1)[np.arange(len(label)), label])
    return total / len(nodes)


def factorization(x, nodes):
    U, V = x[:8].reshape(4, 2), x[8:].reshape(3, 2)
    fit = [np.mean((np.sum(U[i] * V[j], axis=1) - v) ** 2) / 2 for i, j, v in nodes]
    return np.mean(fit) + 0.1 * (np.sum(U**2) + np.sum(V**2))


CASES = {
    "logistic": (
        lambda data: tasks.logistic(data, penalty=0.3),
        (FEATURES, SIGNS),
        lambda x, nodes: logistic_mean(x, nodes) + 0.3 * np.sum(x**2 / (1 + x**2)),
    ),
    "least_squares": (
        tasks.least_squares,
        (FEATURES, TARGETS),
        mean_over_nodes(lambda z, b: (z - b) ** 2 / 2),
    ),
    "tukey": (
        lambda data: tasks.robust_regression(data, scale=0.7),
        (FEATURES, TARGETS),
        mean_over_nodes(tukey),
    ),
    "welsch": (
        lambda data: tasks.robust_regression(data, loss="welsch", scale=0.7),
        (FEATURES, TARGETS),
        mean_over_nodes(lambda z, b: 0.7**2 / 2 * (1 - np.exp(-(((z - b) / 0.7) ** 2)))),
    ),
    "nonnegative_pca": (
        tasks.nonnegative_pca,
        FEATURES,
        lambda x, nodes: np.mean([-np.mean((a @ x) ** 2) / 2 for a in nodes]),
    ),
    "matrix_factorization": (
        lambda data: tasks.matrix_factorization(data, rank=2, penalty=0.2, shape=SHAPE),
        ENTRIES,
        factorization,
    ),
    "mlp_classifier": (
        lambda data: tasks.mlp_classifier(data, hidden=[2], classes=3),
        (FEATURES, CLASSES),
        mlp,
    ),
}


def finite_difference(f, x, h=1e-6):
    units = np.eye(len(x)) * h
    return np.array([(f(x + u) - f(x - u)) / (2 * h) for u in units])


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name):
    build, data, reference = CASES[name]
    # Every second task on unequal shards, as a list; what a task is does not depend on it.
    unequal = list(CASES).index(name) % 2 == 1
    per_node = ragged(data) if unequal else ragged(data, (M,) * NODES)
    problem = build(per_node if unequal else data)
    assert problem.precision == "float64"
    spec = problem.spec()
    # Inside the orthant and the unit ball, where h = 0 for nonnegative_pca too.
    x = np.abs(np.random.default_rng(1).standard_normal(spec.size)) * 0.4 / np.sqrt(spec.size)
    np.testing.assert_allclose(problem.objective(x), reference(x, per_node), rtol=1e-12)
    expected = finite_difference(lambda w: reference(w, per_node), x)
    np.testing.assert_allclose(problem.gradient(x), expected, rtol=1e-6, atol=1e-9)


def test_losses_survive_extreme_arguments():
    a = jnp.ones(1)
    for label, slope in [(1.0, 0.0), (-1.0, 1.0)]:
        loss, x = tasks.LogisticLoss(0.1), jnp.array([3000.0])
        value, gradient = jax.value_and_grad(loss)(x, (a, label))
        np.testing.assert_allclose(value, 0.1 + 3000 * slope, rtol=1e-6)
        np.testing.assert_allclose(gradient, [slope], atol=1e-6)
    for loss, far in [(tasks.TukeyLoss(2.0), 4 / 6), (tasks.WelschLoss(2.0), 2.0)]:
        value, gradient = jax.value_and_grad(loss)(jnp.array([1e30]), (a, 0.0))
        np.testing.assert_allclose(value, far, rtol=1e-6)
        np.testing.assert_array_equal(gradient, 0)
        near = loss(jnp.array([1e-4]), (a, 0.0))
        np.testing.assert_allclose(near, 0.5e-8, rtol=1e-6)


# Smoothness ----------------------------------------------------------------------------------


def estimated(problem):
    """L by power iteration, from the same loss and data."""
    return EmpiricalRisk(problem.loss, problem.data, x0=problem.x0).smoothness


@pytest.mark.parametrize(
    "build",
    [
        # At x0 = 0 these have the largest curvature there is, so the bound must be met.
        lambda: tasks.logistic((FEATURES, SIGNS)),
        lambda: tasks.logistic((FEATURES, SIGNS), penalty=0.3),
        lambda: tasks.least_squares((FEATURES, TARGETS)),
        lambda: tasks.robust_regression((FEATURES, 0 * TARGETS), loss="tukey"),
        lambda: tasks.robust_regression((FEATURES, 0 * TARGETS), loss="welsch"),
        lambda: tasks.nonnegative_pca(FEATURES),
    ],
)
def test_smoothness_is_a_bound_and_tight(build):
    problem = build()
    assert not problem.smoothness_is_estimate
    assert 0.98 * problem.smoothness < estimated(problem) <= 1.00001 * problem.smoothness


def test_smoothness_bounds_curvature_away_from_the_start():
    for loss in ("tukey", "welsch"):
        problem = tasks.robust_regression((FEATURES, TARGETS), loss=loss, scale=0.7)
        assert estimated(problem) <= 1.00001 * problem.smoothness


@pytest.mark.parametrize("shape", [(2, 7, 3), (2, 3, 7)])
def test_least_squares_smoothness_is_the_largest_eigenvalue(shape):
    features = np.random.default_rng(2).standard_normal(shape)
    expected = max(np.linalg.norm(a, 2) ** 2 / len(a) for a in features)
    problem = tasks.least_squares((features, features[..., 0]))
    np.testing.assert_allclose(problem.smoothness, expected, rtol=1e-12)
    unequal = [(a[: 2 + i], a[: 2 + i, 0]) for i, a in enumerate(features)]
    expected = max(np.linalg.norm(a, 2) ** 2 / len(a) for a, _ in unequal)
    np.testing.assert_allclose(tasks.least_squares(unequal).smoothness, expected, rtol=1e-12)


def test_models_estimate_their_smoothness():
    for name in ("matrix_factorization", "mlp_classifier"):
        build, data, _ = CASES[name]
        assert build(data).smoothness_is_estimate


# Starting points -----------------------------------------------------------------------------


def project(v, radius=1.0):
    u = np.maximum(v, 0)
    return u / max(1, np.linalg.norm(u) / radius)


def test_nonnegative_pca_starts_feasible_and_not_stationary():
    # Rows that sum to zero: the vector of ones would be stationary.
    centred = FEATURES - FEATURES.mean(axis=2, keepdims=True)
    for features in (FEATURES, centred, FEATURES.reshape(1, -1, P)):
        problem = tasks.nonnegative_pca(features)
        x = problem.x0
        assert (x > 0).all()
        np.testing.assert_allclose(np.linalg.norm(x), 0.5)
        a = features.reshape(-1, P)
        moved = project(x + a.T @ (a @ x) / len(a) / problem.smoothness)
        assert np.linalg.norm(moved - x) > 1e-2


@pytest.mark.parametrize("h", [Simplex(), Box(0.0, 1.0), L2Ball(0.1), L2(100.0)])
def test_nonnegative_pca_takes_other_bounded_sets(h):
    problem = tasks.nonnegative_pca(FEATURES, h)
    with jax.enable_x64(True):
        assert np.isfinite(float(h.value(jnp.asarray(problem.x0))))
    assert np.linalg.norm(problem.x0) > 1e-3


@pytest.mark.parametrize(
    "h", [Zero(), NonNegative(), L1(5.0), L2(0.01), Box(-np.inf, 0.0)], ids=repr
)
def test_nonnegative_pca_refuses_an_unbounded_problem(h):
    with pytest.raises(ValueError, match=r"regularizer must bound nonnegative_pca .*L2Ball"):
        tasks.nonnegative_pca(FEATURES, h)


def test_factorization_starts_away_from_the_saddle():
    problem = tasks.matrix_factorization(ENTRIES, rank=2)
    sizes = [np.linalg.norm(part) for part in problem.gradient(problem.x0).values()]
    assert min(sizes) > 1e-2
    again = tasks.matrix_factorization(ENTRIES, rank=2)
    np.testing.assert_array_equal(problem.x0["U"], again.x0["U"])
    other = tasks.matrix_factorization(ENTRIES, rank=2, seed=1)
    assert (problem.x0["U"] != other.x0["U"]).all()
    wide = tasks.matrix_factorization(ENTRIES, rank=3, shape=(400, 30)).x0
    np.testing.assert_allclose(
        np.std(wide["U"] @ wide["V"].T), np.sqrt(np.mean(TARGETS**2)), rtol=0.2
    )
    np.testing.assert_allclose(np.linalg.norm(wide["U"]), np.linalg.norm(wide["V"]), rtol=0.2)


def test_classifier_starts_by_glorots_rule():
    problem = tasks.mlp_classifier((FEATURES, CLASSES), hidden=(200, 100))
    widths = [P, 200, 100, 3]
    for layer, (fan_in, fan_out) in zip(problem.x0, pairwise(widths), strict=True):
        assert layer["w"].shape == (fan_in, fan_out)
        limit = np.sqrt(6 / (fan_in + fan_out))
        assert 0.98 * limit < np.abs(layer["w"]).max() <= limit
        np.testing.assert_array_equal(layer["b"], np.zeros(fan_out))


def test_classes_are_the_distinct_labels_in_order():
    two = tasks.mlp_classifier((FEATURES, SIGNS), hidden=())
    np.testing.assert_array_equal(two.data.rows[1], (SIGNS.ravel() == 1).astype(int))
    assert two.x0[0]["w"].shape == (P, 2)
    more = tasks.mlp_classifier((FEATURES, CLASSES), classes=5)
    np.testing.assert_array_equal(more.data.rows[1], CLASSES.ravel())
    assert more.x0[-1]["b"].shape == (5,)


def test_the_published_network_has_its_published_size():
    a9a = np.zeros((8, 2, 123)), np.tile([-1, 1], (8, 1))
    assert tasks.mlp_classifier(a9a, hidden=(64,)).spec().size == 8066


# The set {x >= 0, ||x|| <= radius} -----------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 5.0])
def test_nonnegative_ball_projects(scale):
    radius = 1.5
    h = tasks.NonNegativeBall(radius)
    with jax.enable_x64(True):
        prox = jax.jit(lambda h, v: h.prox(v, 0.1))
        for seed in range(20):
            v = scale * np.random.default_rng(seed).standard_normal(P)
            u = np.asarray(prox(h, v))
            assert float(h.value(u)) == 0
            # u is the projection if and only if <v - u, w - u> <= 0 for every w of the set;
            # over these, <d, w> is at most radius ||max(d, 0)||.
            reach = radius * np.linalg.norm(np.maximum(v - u, 0))
            assert reach <= (v - u) @ u + 1e-9
            best = np.asarray(h.lmo(v))
            assert float(h.value(best)) == 0
            np.testing.assert_allclose(v @ best, -radius * np.linalg.norm(np.minimum(v, 0)))


def test_nonnegative_ball_refuses_what_lies_outside():
    h = tasks.NonNegativeBall()
    for outside in ([-0.1, 0.2], [0.9, 0.9]):
        assert float(h.value(jnp.array(outside))) == np.inf
    assert repr(tasks.NonNegativeBall(2.0)) == "NonNegativeBall(radius=2.0)"
    with pytest.raises(ValueError, match="radius must be > 0, got 0"):
        tasks.NonNegativeBall(0)


# Populations ---------------------------------------------------------------------------------

DRAWS = 20_000


def sample_gradients(problem, x, node):
    """Many G_i gradients at x, shape (DRAWS, p), and the values of G_i."""
    keys = jax.random.split(jax.random.key(7), DRAWS)
    samples = jax.vmap(problem.sampler, (0, None))(keys, node)
    both = jax.vmap(jax.value_and_grad(problem.loss), (None, 0))
    value, gradient = both(jnp.asarray(x, jnp.float32), samples)
    return np.asarray(value, float), np.asarray(gradient, float)


def assert_mean(draws, expected):
    """Within 5 standard errors, coordinate by coordinate."""
    error = np.abs(draws.mean(axis=0) - expected)
    assert (error <= 5 * draws.std(axis=0) / np.sqrt(len(draws)) + 1e-5).all()


@pytest.mark.parametrize(
    "problem",
    [
        tasks.gaussian_least_squares(NODES, P, noise=0.5, heterogeneity=2.0),
        tasks.noisy_quadratic(NODES, P, nu=0.7, heterogeneity=2.0, seed=3),
    ],
    ids=["gaussian_least_squares", "noisy_quadratic"],
)
def test_population_risk_and_gradient_are_the_means_of_samples(problem):
    x = np.array([0.3, -1.0, 0.5, 2.0])
    draws = [sample_gradients(problem, x, node) for node in range(NODES)]
    assert_mean(np.mean([values for values, _ in draws], axis=0), problem.objective(x))
    assert_mean(np.mean([gradients for _, gradients in draws], axis=0), problem.gradient(x))


def test_noisy_quadratic_has_the_constants_it_states():
    nu, x = 0.7, np.array([0.3, -1.0, 0.5, 2.0])
    problem = tasks.noisy_quadratic(NODES, P, nu=nu, curvature=(0.5, 2.0))
    targets = np.asarray(problem.sampler.targets.all())
    diagonal = np.array([0.5, 1.0, 1.5, 2.0])
    assert problem.smoothness == 2.0
    np.testing.assert_allclose(problem.gradient(x), diagonal * x - targets.mean(axis=0), rtol=1e-5)
    for node in range(NODES):
        _, gradients = sample_gradients(problem, x, node)
        noise = gradients - (diagonal * x - targets[node])
        assert_mean(noise, np.zeros(P))
        assert_mean(np.sum(noise**2, axis=1), nu**2)
        np.testing.assert_allclose(np.cov(noise.T), nu**2 / P * np.eye(P), atol=0.01)


def test_noisy_curvature_has_the_moments_it_states():
    x, y, nu, spread = np.array([0.3, -1.0, 0.5, 2.0]), np.zeros(P), 0.7, 0.4
    problem = tasks.noisy_quadratic(NODES, P, nu=nu, curvature=(0.5, 2.0), curvature_noise=spread)
    targets = np.asarray(problem.sampler.targets.all())
    diagonal = np.linspace(0.5, 2.0, P)
    _, at_x = sample_gradients(problem, x, 1)
    _, at_y = sample_gradients(problem, y, 1)
    noise = at_x - (diagonal * x - targets[1])
    assert_mean(np.sum(noise**2, axis=1), nu**2 + spread**2 * x @ x)
    expected = np.sum((diagonal * x) ** 2) + spread**2 * x @ x
    assert_mean(np.sum((at_x - at_y) ** 2, axis=1), expected)


def test_targets_have_the_same_mean_for_any_number_of_nodes():
    means = [
        np.asarray(tasks.noisy_quadratic(n, P, heterogeneity=3.0, seed=5).sampler.targets.all())
        .astype(float)
        .mean(axis=0)
        for n in (1, 2, 7)
    ]
    np.testing.assert_allclose(means[1], means[0], atol=1e-6)
    np.testing.assert_allclose(means[2], means[0], atol=1e-6)


def test_noisy_quadratic_has_the_minimum_it_states():
    s = 0.2
    problem = tasks.noisy_quadratic(NODES, P, curvature=(0.5, 2.0), regularizer=L1(s))
    b = np.asarray(problem.sampler.targets.all(), float).mean(axis=0)
    diagonal = np.linspace(0.5, 2.0, P)
    minimum = -np.sum(np.maximum(np.abs(b) - s, 0) ** 2 / diagonal) / 2
    minimizer = np.sign(b) * np.maximum(np.abs(b) - s, 0) / diagonal
    np.testing.assert_allclose(problem.objective(minimizer), minimum, rtol=1e-5)
    rng = np.random.default_rng(0)
    for size in (0.01, 0.1, 1.0):
        assert problem.objective(minimizer + size * rng.standard_normal(P)) > minimum


def test_noisy_quadratic_may_be_non_convex_over_a_bounded_set():
    problem = tasks.noisy_quadratic(NODES, P, curvature=[-3.0, 1.0], regularizer=Box(-1.0, 1.0))
    assert problem.smoothness == 3.0
    tasks.noisy_quadratic(NODES, P, curvature=[-3.0, 1.0], regularizer=L2(3.1))
    with pytest.raises(ValueError, match=r"regularizer must bound noisy_quadratic .*Zero"):
        tasks.noisy_quadratic(NODES, P, curvature=[-3.0, 1.0])


def test_gaussian_least_squares_has_the_moments_it_states():
    noise, x, y = 0.5, np.array([0.3, -1.0, 0.5, 2.0]), np.zeros(P)
    problem = tasks.gaussian_least_squares(NODES, P, noise=noise)
    targets = np.asarray(problem.sampler.targets.all(), float)
    np.testing.assert_allclose(problem.gradient(x), x - targets.mean(axis=0), rtol=1e-5)
    error = x - targets[1]
    _, at_x = sample_gradients(problem, x, 1)
    _, at_y = sample_gradients(problem, y, 1)
    variance = (P + 1) * error @ error + P * noise**2
    assert_mean(np.sum((at_x - error) ** 2, axis=1), variance)
    assert_mean(np.sum((at_x - at_y) ** 2, axis=1), (P + 2) * x @ x)


def test_targets_differ_as_told_and_do_not_depend_on_precision():
    p = 4000
    targets = tasks.noisy_quadratic(4, p, heterogeneity=3.0).sampler.targets
    t = np.asarray(targets.all(), float)
    # ||t_i - t_j|| is close to 3 sqrt(2) for two draws from N(0, 9 I/p), centred or not.
    np.testing.assert_allclose(np.linalg.norm(t[0] - t[1]), 3 * np.sqrt(2), rtol=0.05)
    same = np.asarray(tasks.noisy_quadratic(4, p, heterogeneity=0).sampler.targets.all())
    np.testing.assert_array_equal(same[0], same[3])
    np.testing.assert_allclose(np.linalg.norm(same[0]), 1, rtol=0.05)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(np.asarray(targets.all()), t.astype(np.float32))


# By name -------------------------------------------------------------------------------------

SMALL = {
    "matrix_factorization": {"rank": 2, "dataset": "iris"},
    "mlp_classifier": {"hidden": [3], "dataset": "iris"},
    "nonnegative_pca": {"dataset": "wine"},
}


@pytest.mark.parametrize("name", tasks.TASKS)
def test_building_a_problem_twice_does_not_compile_twice(name):
    options = {"nodes": 4} | SMALL.get(name, {})
    compiled = jax.jit(lambda oracle, evaluator, w: w + 1)
    for _ in range(2):
        problem = tasks.build(name, **options)
        spec = problem.spec()
        args = problem.oracle(spec, "float32"), problem.evaluator(spec, "float32")
        compiled(*args, np.zeros(1))
    assert compiled._cache_size() == 1
    assert problem.nodes == 4


@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_task_and_its_data_set_share_no_option_but_the_seed(name):
    shared = signature(tasks.from_dataset).parameters.keys() - {"options"}
    own = signature(tasks.TASKS[name]).parameters.keys()
    if "data" in own:
        assert shared & own <= {"seed"}
        assert set(tasks.options_of(name)) == (shared | own) - {"task", "data"}


def test_the_scale_of_a_robust_loss_can_be_told_by_name():
    assert tasks.build("robust_regression", scale=2).loss == tasks.TukeyLoss(2)


def test_build_reads_a_config_table():
    table = tomllib.loads(
        'name = "logistic"\ndataset = "breast_cancer"\nsplit = "label"\npenalty = 0.1\nseed = 2'
    )
    problem = tasks.build(**table)
    data = shard(load("breast_cancer"), 16, "label", seed=2)
    expected = tasks.logistic(data, penalty=0.1)
    assert problem.data.digest == expected.data.digest
    assert problem.loss == expected.loss == tasks.LogisticLoss(0.1)
    assert problem.smoothness == expected.smoothness
    kinds = [len(np.unique(problem.data.node(i)[1])) for i in range(16)]
    assert sorted(kinds) == [1] * 15 + [2]


def test_real_targets_split_by_deciles():
    problem = tasks.from_dataset("least_squares", nodes=10, split="label")
    nodes = [problem.data.node(i)[1] for i in range(10)]
    middles = [np.median(targets) for targets in nodes]
    assert all(a < b for a, b in pairwise(middles))


def test_factorization_takes_every_entry_of_the_matrix_once():
    features, labels = load("iris")
    problem = tasks.from_dataset("matrix_factorization", "iris", 3, "label", rank=2)
    found = np.full(features.shape, np.nan)
    for i in range(3):
        rows, columns, values = problem.data.node(i)
        found[rows, columns] = values
        assert set(labels[rows]) == {i}
    np.testing.assert_array_equal(found, features)


def test_from_dataset_reads_files(tmp_path):
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((20, 3)), np.repeat([1, 2], 10)
    path = tmp_path / "mine.txt"
    dump_svmlight_file(features, labels, str(path), zero_based=False)
    options = {"dataset": str(path), "split": "contiguous", "normalize": "rows"}
    problem = tasks.build("logistic", nodes=2, **options)
    a, signs = problem.data.node(1)
    np.testing.assert_array_equal(signs, 1)
    lengths = np.linalg.norm(features[10:], axis=1, keepdims=True)
    np.testing.assert_allclose(a, features[10:] / lengths, rtol=1e-5)


def test_the_seed_moves_the_start_too():
    one, other = (
        tasks.build("mlp_classifier", dataset="iris", nodes=3, hidden=[2], seed=seed)
        for seed in (0, 1)
    )
    assert (one.x0[0]["w"] != other.x0[0]["w"]).all()
    assert one.data.digest != other.data.digest


def test_integers_and_half_precision_become_floats():
    integers = tasks.least_squares((np.ones((2, 3, 1), int), np.ones((2, 3), int)))
    assert integers.precision == "float64"
    single = tasks.logistic((FEATURES.astype(np.float32), SIGNS.astype(int)))
    assert single.precision == "float32"
    assert single.data.rows[1].dtype == np.float32


# Refusals ------------------------------------------------------------------------------------

PAIR, SIGNED, CLASSED = (FEATURES, TARGETS), (FEATURES, SIGNS), (FEATURES, CLASSES)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: tasks.logistic((FEATURES, SIGNS > 0)),
            r"-1 or \+1, got 0, 1;.*2 \* labels - 1",
        ),
        (
            lambda: tasks.logistic((FEATURES, np.arange(15).reshape(3, 5))),
            r"got 0, 1, 2, 3, 4, \.\.\.;.*mlp_classifier",
        ),
        (
            lambda: tasks.logistic(SIGNED, penalty=-1),
            r"penalty must be >= 0, got -1",
        ),
        (
            lambda: tasks.logistic(FEATURES),
            r"data must be a tuple \(features, labels\), got nd",
        ),
        (
            lambda: tasks.least_squares([FEATURES, TARGETS]),
            r"data\[0\] must be a tuple \(features, targets\).*data\.shard",
        ),
        (
            lambda: tasks.least_squares((FEATURES[0], TARGETS[0])),
            r"features in data must have shape \(nodes, m, p\).* got \(5, 4\); data\.shard",
        ),
        (
            lambda: tasks.least_squares([(FEATURES[0], TARGETS)]),
            r"targets in data\[0\] must have shape \(m_i,\).* got \(3, 5\)",
        ),
        (lambda: tasks.least_squares((FEATURES[..., :0], TARGETS)), r"none of them 0"),
        (
            lambda: tasks.least_squares((FEATURES.tolist(), TARGETS)),
            r"features in data must be an array, got list",
        ),
        (lambda: tasks.least_squares((0 * FEATURES, TARGETS)), r"features .* not all be zero"),
        (
            lambda: tasks.least_squares((FEATURES * np.nan, TARGETS)),
            r"data\[0\] must be finite, but entry \(0, 0, 0\) is nan",
        ),
        (lambda: tasks.robust_regression(PAIR, loss="tuky"), r"loss must be .* mean 'tukey'"),
        (lambda: tasks.robust_regression(PAIR, scale=0), r"scale must be > 0, got 0"),
        (
            lambda: tasks.robust_regression((FEATURES, 0 * TARGETS + 9)),
            r"scale must be above the smallest \|target\|, 9, got 4\.685",
        ),
        (lambda: tasks.nonnegative_pca(PAIR), r"features in data must be an array, got tuple"),
        (lambda: tasks.nonnegative_pca(FEATURES, seed=-1), r"seed must be .* >= 0, got -1"),
        (lambda: tasks.matrix_factorization(ENTRIES, 0), r"rank must be .* >= 1, got 0"),
        (
            lambda: tasks.matrix_factorization((TARGETS, COLUMNS, TARGETS), 2),
            r"rows in data must be integers, got dtype float64",
        ),
        (
            lambda: tasks.matrix_factorization((ROWS, COLUMNS - 9, TARGETS), 2),
            r"columns in data must be >= 0, got -9",
        ),
        (
            lambda: tasks.matrix_factorization(ENTRIES, 2, shape=(2, 9)),
            r"shape must be at least \(4, 3\).* got \(2, 9\)",
        ),
        (lambda: tasks.matrix_factorization(ENTRIES, 2, shape=7), r"shape must be \(d1, d2\)"),
        (
            lambda: tasks.matrix_factorization((ROWS, COLUMNS, 0 * TARGETS), 2),
            r"values in data must not all be zero",
        ),
        (
            lambda: tasks.mlp_classifier(CLASSED, classes=2),
            r"must lie in 0 to 1 for classes=2, got 0 to 2",
        ),
        (lambda: tasks.mlp_classifier((FEATURES, TARGETS)), r"labels in data must be integers"),
        (lambda: tasks.mlp_classifier((FEATURES, 0 * CLASSES)), r"only 0; .*give classes="),
        (
            lambda: tasks.mlp_classifier(CLASSED, hidden=64),
            r"such as \[64\], got 64",
        ),
        (lambda: tasks.mlp_classifier(CLASSED, hidden=[0]), r"hidden must be .* 0"),
        (
            lambda: tasks.mlp_classifier(CLASSED, activation="relu"),
            r"activation must be one of 'tanh'.* got 'relu'",
        ),
        (lambda: tasks.gaussian_least_squares(0), r"nodes must be an integer >= 1, got 0"),
        (lambda: tasks.gaussian_least_squares(noise=-1), r"noise must be >= 0, got -1"),
        (lambda: tasks.noisy_quadratic(p=0), r"p must be an integer >= 1, got 0"),
        (lambda: tasks.noisy_quadratic(nu=np.nan), r"nu must be finite, got nan"),
        (
            lambda: tasks.noisy_quadratic(heterogeneity=-1),
            r"heterogeneity must be >= 0, got -1",
        ),
        (lambda: tasks.noisy_quadratic(curvature=1.0), r"two numbers, lowest first, got 1\.0"),
        (lambda: tasks.noisy_quadratic(curvature=(2, 1)), r"lowest first, got \(2, 1\)"),
        (lambda: tasks.noisy_quadratic(curvature=(0, 0)), r"curvature must not be zero"),
        (lambda: tasks.build("logistik"), r"name must be one of .* mean 'logistic'"),
        (
            lambda: tasks.build("logistic", penalt=1),
            r"option of logistic must be one of 'dataset'.* mean 'penalty'",
        ),
        (lambda: tasks.build("noisy_quadratic", dataset="iris"), r"option of noisy_quadratic"),
        (lambda: tasks.from_dataset("noisy_quadratic"), r"task must be one of 'logistic'"),
        (
            lambda: tasks.from_dataset("logistic", "brest_cancer"),
            r"dataset \(a name, or the path of a file\) must be .* mean 'breast_cancer'",
        ),
        (lambda: tasks.from_dataset("logistic", "no/such.txt"), r"path must be a file"),
        (
            lambda: tasks.from_dataset("logistic", split="lable"),
            r"split must be .* mean 'label'",
        ),
        (lambda: tasks.from_dataset("logistic", "wine"), r"-1 or \+1, got 0, 1, 2;"),
    ],
)
def test_refusals_name_the_argument_the_value_and_the_remedy(build, message):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        build()

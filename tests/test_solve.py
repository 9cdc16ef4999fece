"""The loop: counts, metric, stopping, output, histories, and every refusal."""

import os
import signal

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import paper
import proxgt as pg
from helpers import (
    bumpy_loss,
    regression,
    square_gradient,
    square_loss,
    trajectory,
)

NODES, M, P = 5, 8, 4
A, B = regression(NODES, M, P)
X1 = np.linspace(-1, 1, P)
RING = pg.Network.ring(NODES)


def risk(h=pg.L1(0.1), **options):
    return pg.EmpiricalRisk(square_loss, (A, B), h, x0=X1, **options)


METHOD = pg.ProxGT(pg.FullGradient(), 0.05)


# counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "samples", "gradients"),
    [
        (pg.FullGradient(), 11 * M, 11 * M),
        (pg.Minibatch(3), 33, 33),
        (pg.SARAH(3, 4), 3 * M + 8 * 3, 3 * M + 8 * 6),
        (pg.SARAH(3, 4, 6), 3 * 6 + 8 * 3, 3 * 6 + 8 * 6),
        (pg.SARAH(3, 1), 11 * M, 11 * M),
        (pg.STORM(3, 0.1, 7), 7 + 30, 7 + 60),
        (pg.STORM(3, 0.1), 3 + 30, 3 + 60),
        (pg.SAGA(3), M + 66, M + 66),
    ],
)
def test_history_counts_samples_gradients_and_rounds_per_node(estimator, samples, gradients):
    """The numbers of the vocabulary, worked out by hand for 11 steps."""
    method = pg.ProxGT(estimator, 0.05, pg.Gossip(3))
    last = pg.solve(risk(), RING, method, 11, record_every=4).history[-1]
    assert (last.step, last.samples, last.gradients, last.rounds) == (
        11,
        samples,
        gradients,
        66,
    )


class CountingOracle:
    """Counts the samples that gradients are really taken of, and the gradients."""

    def __init__(self, oracle):
        self.oracle, self.used, self.evaluated, self.passes = oracle, [], 0, 0

    def __getattr__(self, name):
        return getattr(self.oracle, name)

    @property
    def sampled(self):
        return self.passes * M + sum(draw.shape[1] for draw in self.used)

    def gradients(self, x, draw):
        if not any(draw is earlier for earlier in self.used):
            self.used.append(draw)
        self.evaluated += draw.shape[1]
        return self.oracle.gradients(x, draw)

    sample_gradients = gradients

    def full_gradients(self, x):
        self.passes += 1
        self.evaluated += M
        return self.oracle.full_gradients(x)


@pytest.mark.parametrize(
    "estimator",
    [
        pg.FullGradient(),
        pg.Minibatch(3),
        pg.SARAH(3, 4),
        pg.SARAH(3, 4, 6),
        pg.STORM(3, 0.1, 7),
    ],
)
def test_declared_counts_are_what_a_step_really_does(estimator):
    problem = risk()
    counting = CountingOracle(problem.oracle(problem.spec(), "float32"))
    method = pg.ProxGT(estimator, 0.05, pg.Gossip(3))
    mixed = []
    state = method.init(counting, None, jnp.tile(jnp.asarray(X1, jnp.float32), (NODES, 1)))
    with jax.disable_jit():
        for t in range(6):
            keys = jax.random.split(jax.random.key(t), NODES)
            draw = method.draw(counting, keys)
            state = method.step(counting, lambda rows: mixed.append(3) or rows, state, draw)
    expected = (counting.sampled, counting.evaluated, sum(mixed))
    assert method.cost(problem, 6)[:3] == expected


def test_unequal_shards_are_counted_by_their_mean():
    shards = [(A[i, : i + 1], B[i, : i + 1]) for i in range(NODES)]
    problem = pg.EmpiricalRisk(square_loss, shards, x0=X1)
    last = pg.solve(problem, RING, METHOD, 2).history[-1]
    assert last.samples == 2 * np.mean([1, 2, 3, 4, 5])


# metric -------------------------------------------------------------------------------------


def by_hand(x, step, strength=0.1, smoothness=2.0):
    """Definition 3's parts in NumPy: stationarity at the mean and at nodes, consensus."""
    gradient = square_gradient(A, B)

    def s(point):
        g = np.mean([gradient(i, point, None) for i in range(NODES)], axis=0)
        return (point - paper.soft(point - step * g, step * strength)) / step

    mean = x.mean(0)
    consensus = ((x - mean) ** 2).sum() / NODES
    at_mean = (s(mean) ** 2).sum()
    solution = mean - step * s(mean)
    value = np.mean(0.5 * ((A * solution).sum(-1) - B) ** 2) + strength * np.abs(solution).sum()
    return at_mean, np.mean([(s(row) ** 2).sum() for row in x]), consensus, solution, value


@pytest.mark.parametrize("metric_step", [None, 0.5])
def test_metric_is_definition_3(metric_step):
    options = {"dtype": "float64", "metric_step": metric_step}
    at_mean = pg.solve(risk(smoothness=2.0), RING, METHOD, 7, **options)
    at_nodes = pg.solve(risk(smoothness=2.0), RING, METHOD, 7, metric_at="nodes", **options)
    mean, nodes, consensus, solution, value = by_hand(at_mean.x, metric_step or 0.05)
    last = at_mean.history[-1]
    np.testing.assert_allclose(last.stationarity, mean, rtol=1e-10)
    np.testing.assert_allclose(last.consensus, consensus, rtol=1e-10)
    np.testing.assert_allclose(last.metric, mean + 4 * consensus, rtol=1e-10)
    np.testing.assert_allclose(last.objective, value, rtol=1e-12)
    np.testing.assert_allclose(at_mean.solution, solution, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(at_nodes.history[-1].stationarity, nodes, rtol=1e-10)
    assert at_mean.history["step"].tolist() == [0, 7]


def test_solution_is_exactly_sparse_where_the_mean_is_not():
    strong = pg.EmpiricalRisk(square_loss, (A, B), pg.L1(2.0), x0=X1)
    result = pg.solve(strong, RING, pg.ProxGT_SA(2, 0.05), 200)
    assert (np.asarray(result.solution) == 0).sum() >= 1
    assert np.isfinite(result.history["objective"]).all()


def test_chebyshev_leaves_the_domain_but_the_objective_stays_finite():
    simplex = pg.EmpiricalRisk(square_loss, (A, B), pg.Simplex(), x0=np.full(P, 1 / P))
    result = pg.solve(simplex, pg.Network.path(NODES), pg.ProxGT_SA(1, 0.2, pg.Chebyshev(2)), 100)
    assert np.isfinite(result.history["objective"]).all()
    assert (np.asarray(result.solution) >= 0).all()
    np.testing.assert_allclose(np.sum(result.solution), 1, atol=1e-5)


# stopping -----------------------------------------------------------------------------------


def test_tolerance_stops_at_the_first_record_that_meets_it():
    result = pg.solve(risk(), RING, METHOD, 5000, record_every=10, tolerance=1e-2)
    assert result.status == "converged"
    metric = result.history["metric"]
    assert metric[-1] <= 1e-4
    assert (metric[:-1] > 1e-4).all()


def test_step_limit_and_last_partial_chunk():
    result = pg.solve(risk(), RING, METHOD, 23, record_every=10)
    assert result.status == "step limit"
    assert result.history["step"].tolist() == [0, 10, 20, 23]
    assert np.array_equal(result.x, pg.solve(risk(), RING, METHOD, 23, record_every=23).x)


def test_too_large_a_step_ends_as_diverged_with_finite_values_kept():
    result = pg.solve(risk(), RING, pg.ProxGT(pg.FullGradient(), 1e3), 500, record_every=5)
    assert result.status == "diverged"
    assert result.steps < 500
    for values in (result.x, result.mean, result.output, result.solution):
        assert np.isfinite(values).all()
    assert all(np.isfinite(result.history[c]).all() for c in result.history.columns)


def test_a_callback_can_stop_the_run_and_sees_every_record():
    seen = []

    def stop_at_20(snapshot):
        seen.append(snapshot.row.step)
        return snapshot.row.step == 20

    result = pg.solve(risk(), RING, METHOD, 100, record_every=10, callbacks=[stop_at_20])
    assert seen == [0, 10, 20]
    assert result.status == "interrupted"
    assert result.steps == 20


def test_ctrl_c_ends_with_all_history_kept():
    def press(snapshot):
        if snapshot.row.step == 30:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = pg.solve(risk(), RING, METHOD, 1000, record_every=10, callbacks=[press])
    assert result.status == "interrupted"
    assert result.history["step"].tolist() == [0, 10, 20, 30]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_problem_prints_what_it_is():
    assert repr(risk()) == "EmpiricalRisk(nodes=5, loss=square_loss, h=L1(strength=0.1))"


def test_ctrl_c_at_the_first_record_returns_it():
    def press(snapshot):
        raise KeyboardInterrupt

    result = pg.solve(risk(), RING, METHOD, 100, record_every=10, callbacks=[press])
    assert result.status == "interrupted"
    assert result.history["step"].tolist() == [0]


# output -------------------------------------------------------------------------------------


def test_output_is_uniform_over_steps_and_nodes():
    """Definition 3's draw, over seeds, whatever the records: each (t, i) about equally often."""
    steps, seeds = 6, 1200
    path = np.stack(trajectory(risk(), RING, METHOD, steps)[:-1])  # x_1..x_T
    flat = path.reshape(steps * NODES, P)
    # x_1 is common to all nodes, so its nodes cannot be told apart
    hits = np.zeros(steps * NODES)
    for seed in range(seeds):
        out = pg.solve(
            risk(), RING, METHOD, steps, record_every=4, seed=seed, dtype="float64"
        ).output
        hits[np.argmin(((flat - out) ** 2).sum(1))] += 1
    hits = np.append(hits[NODES:], hits[:NODES].sum())
    expected = np.append(np.full((steps - 1) * NODES, 1.0), NODES) * seeds / (steps * NODES)
    chi2 = ((hits - expected) ** 2 / expected).sum()
    assert chi2 < len(hits) + 5 * np.sqrt(2 * len(hits))


# compilation and precision -------------------------------------------------------------------


def test_a_second_call_compiles_nothing(compiled):
    """Neither the same call, nor new data, strengths, step sizes, lengths of the same shapes."""
    run = {"steps": 30, "record_every": 10, "dtype": "float32"}
    pg.solve(risk(smoothness=1.0), RING, pg.ProxGT_SR_E(2, 5, 0.05), **run)
    before = compiled()
    pg.solve(risk(smoothness=1.0), RING, pg.ProxGT_SR_E(2, 5, 0.05), **run)
    other = pg.EmpiricalRisk(square_loss, (2 * A, B), pg.L1(0.3), x0=2 * X1, smoothness=3.0)
    pg.solve(other, RING, pg.ProxGT_SR_E(2, 5, 0.01), 27, record_every=10, seed=5)
    assert compiled() == before


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_a_choice_of_the_run(dtype):
    result = pg.solve(risk(), RING, pg.ProxGT_SR_O(2, 5, 6, 0.05), 20, dtype=dtype)
    assert {str(np.asarray(v).dtype) for v in (result.x, result.output, result.solution)} == {dtype}
    assert jnp.zeros(1).dtype == jnp.float32  # nothing global was flipped


def test_same_seed_same_run_and_another_seed_another():
    method = pg.ProxGT_SA(1, 0.05)
    first, again = (pg.solve(risk(), RING, method, 40, seed=3) for _ in range(2))
    other = pg.solve(risk(), RING, method, 40, seed=4)
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)


# results on disk ---------------------------------------------------------------------------


def test_result_round_trip(tmp_path):
    start = {"w": np.ones((2, 2)), "b": [np.zeros(3), np.float64(1.0)]}

    def loss(params, sample):
        total = jnp.sum(params["w"]) + jnp.sum(params["b"][0]) + params["b"][1]
        return (total - sample) ** 2

    problem = pg.EmpiricalRisk(loss, B, pg.L2(0.1), x0=start)
    result = pg.solve(problem, RING, pg.ProxGT_SA(2, 1e-2), 20, record_every=7)
    loaded = pg.Result.load(result.save(tmp_path / "run"))
    assert jax.tree.structure(loaded.solution) == jax.tree.structure(start)
    for mine, theirs in zip(
        jax.tree.leaves(result.solution), jax.tree.leaves(loaded.solution), strict=True
    ):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(loaded.x, result.x)
    assert list(loaded.history) == list(result.history)
    assert (loaded.status, loaded.run) == (result.status, result.run)
    frame = result.history.to_pandas()
    assert frame["samples"].tolist() == result.history["samples"].tolist() == [0, 14, 28, 40]
    with pytest.raises(ValueError, match=r"directory must be a directory, but .* in a file"):
        result.save(tmp_path / "run" / "history.csv")
    with pytest.raises(ValueError, match="no result"):
        pg.Result.load(tmp_path)
    (tmp_path / "result.json").write_text("{")
    with pytest.raises(ValueError, match=r"holds no result: result\.json: "):
        pg.Result.load(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((A, np.full(B.shape, 2**40)), r"data\[1\] must hold integers of 32 bits"),
        ((A * 1e300, B), r"data must fit into float32, but their largest magnitude is .*e\+300"),
    ],
)
def test_numbers_that_a_run_cannot_hold_are_refused_and_not_wrapped(data, message):
    with pytest.raises(ValueError, match=message):
        pg.solve(pg.EmpiricalRisk(square_loss, data, x0=X1), RING, METHOD, 1)


def test_a_run_beyond_memory_is_refused_by_what_could_be_smaller():
    def exhausted(snapshot):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.")

    with pytest.raises(ValueError, match=r"batch, refresh and params must fit into memory.* 9 b"):
        pg.solve(risk(), RING, METHOD, 1, callbacks=[exhausted])


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (lambda node: 3, "Stream needs a function node -> iterator, but for node 0"),
        (
            lambda node: ((np.zeros(P + k % 2), 0.0) for k in range(9)),
            "the stream of node 0 must give samples of one structure and shape",
        ),
    ],
)
def test_a_stream_that_gives_no_samples_is_refused(samples, message):
    online = pg.PopulationRisk(square_loss, pg.Stream(samples), NODES, x0=X1, evaluation=4)
    with pytest.raises((ValueError, TypeError), match=message):
        pg.solve(online, RING, pg.ProxGT_SA(1, 0.1), 2)


# bad input -------------------------------------------------------------------------------------


class NumPyProx:
    def value(self, x):
        return jnp.sum(abs(x))

    def prox(self, v, step):
        return np.sign(v) * np.maximum(abs(np.asarray(v)) - step, 0)


class VectorValue:
    def value(self, x):
        return abs(x)

    def prox(self, v, step):
        return v


EMPTY = [(A[0], B[0]), (A[1][:0], B[1][:0])]
NAN = np.where(np.arange(P) == 2, np.nan, A)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pg.EmpiricalRisk(square_loss, (NAN, B)), r"data\[0\].*\(0, 0, 2\) is nan"),
        (lambda: pg.EmpiricalRisk(square_loss, EMPTY), r"data\[1\] is empty"),
        (lambda: pg.EmpiricalRisk(square_loss, []), "at least one node"),
        (lambda: pg.EmpiricalRisk(square_loss, (A, B[:, :3])), r"agree on \(nodes, m\)"),
        (lambda: pg.EmpiricalRisk(square_loss, (A[0], B[0, 0])), "nodes, m"),
        (lambda: pg.EmpiricalRisk(None, (A, B)), "loss must be a function"),
        (lambda: risk(smoothness=-1), "smoothness must be > 0, got -1"),
        (lambda: pg.Minibatch(0), "batch must be an integer >= 1, got 0"),
        (lambda: pg.Minibatch(2.5), "batch must be an integer >= 1, got 2.5"),
        (lambda: pg.SARAH(1, 0), "period must be an integer >= 1, got 0"),
        (lambda: pg.SARAH(1, 2, 0), "refresh must be an integer >= 1, got 0"),
        (lambda: pg.ProxGT_SR_O(1, 2, None, 0.1), "refresh"),
        (lambda: pg.STORM(1, 1.5), r"momentum must be in \[0, 1\], got 1.5"),
        (lambda: pg.ProxGT_SA(1, 0.0), "step_size must be > 0, got 0.0"),
        (lambda: pg.ProxGT_SA(1, float("inf")), "step_size must be finite, got inf"),
        (lambda: pg.ProxGT_SA(1, "big"), "step_size must be a number, got 'big'"),
        (lambda: pg.ProxGT_SA(1, lambda t: -1.0), r"step_size\(0\) must be > 0"),
        (
            lambda: pg.ProxGT_SA(1, lambda t: 1.0 if t < 3 else 0.5),
            "step_size must be a number or a JAX function of the step",
        ),
        (lambda: pg.ProxGT_SA(1, lambda: 1.0), "step_size must be a number or a JAX function"),
        (
            lambda: pg.solve(risk(), RING, pg.ProxGT_SA(1, lambda t: 0.1 - 0.05 * t), 4),
            r"step_size\(2\) must be > 0, got 0",
        ),
        (
            lambda: pg.solve(risk(), RING, pg.ProxGT_SA(1, lambda t: 0.1 * jnp.ones(2)), 4),
            r"step_size\(0\) must be a scalar, got shape \(2,\)",
        ),
        (lambda: pg.Minibatch(2**31), "batch must be an integer <= 2147483647"),
        (lambda: pg.Gossip(0), "rounds"),
        (
            lambda: pg.ProxGT(pg.L1(1.0), 0.1),
            "estimator must be an instance of a class that inherits from Estimator",
        ),
        (lambda: pg.ProxGT_SA(1, 0.1, 3), "consensus must be"),
        (lambda: pg.Network(nx.Graph()), "empty|at least one node"),
        (lambda: pg.solve(risk(), pg.Network.ring(6), METHOD), "5 nodes and the network 6"),
        (lambda: pg.solve(risk(), RING, METHOD, 0), "steps must be an integer >= 1, got 0"),
        (lambda: pg.solve(risk(), RING, METHOD, record_every=0), "record_every .* got 0"),
        (lambda: pg.solve(risk(), RING, METHOD, engine="mpl"), "engine must be one of .*'mpl'"),
        (lambda: pg.solve(risk(), RING, METHOD, dtype="float16"), "dtype must be one of"),
        (lambda: pg.solve(risk(), RING, METHOD, metric_at="edge"), "metric_at must be one of"),
        (lambda: pg.solve(risk(), RING, METHOD, tolerance=0), "tolerance must be > 0"),
        (lambda: pg.solve(risk(), RING, METHOD, metric_step=-1), "metric_step must be > 0"),
        (lambda: pg.solve(risk(), RING, METHOD, seed=-1), "seed must be an integer >= 0"),
        (lambda: pg.solve(risk(), RING, METHOD, seed=2**32), "seed must be an integer <= "),
        (
            lambda: pg.solve(risk(), RING.W, METHOD),
            r"network must be a Network, such as Network\(graph\), got array.*\)$",
        ),
        (lambda: pg.solve(risk(), RING, METHOD, resume=True), "resume=True needs checkpoint"),
        (lambda: pg.solve(risk(), RING, METHOD, checkpoint=3), "checkpoint must be the path"),
        (lambda: pg.solve(risk(), RING, METHOD, checkpoint=__file__), "is or lies in a file"),
        (lambda: pg.EmpiricalRisk(square_loss, [A, B]), "for arrays .* give a tuple"),
        (lambda: pg.solve(risk(), RING, METHOD, callbacks=print), "callbacks must be a sequence"),
        (lambda: pg.solve(risk(), RING, METHOD, callbacks=[3]), r"functions, got \[3\]"),
        (lambda: pg.solve(RING, risk(), METHOD), "problem must be a Problem"),
        (lambda: pg.solve(risk(), RING, METHOD, x0=X1[:2]), r"x0 must have the shapes of \(4,\)"),
        (lambda: pg.solve(risk(), RING, METHOD, x0=X1 * np.nan), "x0 must be finite"),
        (lambda: risk().objective(X1[:2]), r"x must have the shapes of \(4,\)"),
        (
            lambda: pg.solve(pg.EmpiricalRisk(square_loss, (A, B)), RING, METHOD),
            r"x0 is needed.* EmpiricalRisk\(\.\.\., x0=params\)",
        ),
        (lambda: pg.solve(risk(NumPyProx()), RING, METHOD), "regularizer must have JAX functions"),
        (lambda: pg.solve(risk(VectorValue()), RING, METHOD), r"scalar value\(x\).* \(4,\)"),
        (
            lambda: pg.solve(pg.EmpiricalRisk(lambda w, s: w * s[1], (A, B), x0=X1), RING, METHOD),
            r"loss must return a scalar, but it returns an array of shape \(4,\)",
        ),
        (
            lambda: pg.solve(
                pg.EmpiricalRisk(lambda w, s: jnp.argmax(w), (A, B), x0=X1), RING, METHOD
            ),
            "loss must be differentiable, but it returns int32",
        ),
        (
            lambda: pg.solve(
                pg.EmpiricalRisk(lambda w, s: float(w[0]), (A, B), x0=X1), RING, METHOD
            ),
            "loss must be a JAX function",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("method", [pg.ProxGT_SR_E(1, 2, 0.1), METHOD, pg.ProxGT(pg.SAGA(1), 0.1)])
def test_exact_gradients_of_a_population_are_refused(method):
    population = pg.PopulationRisk(
        square_loss, lambda key, node: (jax.random.normal(key, (P,)), 1.0), NODES, x0=X1
    )
    with pytest.raises(ValueError, match="needs the exact gradient of an empirical risk"):
        pg.solve(population, RING, method, 5)


def test_smoothness_estimate_is_near_the_largest_eigenvalue():
    problem = pg.EmpiricalRisk(square_loss, (A, B), x0=X1)
    exact = max(np.linalg.eigvalsh(a.T @ a / M)[-1] for a in A)
    assert problem.smoothness_is_estimate
    np.testing.assert_allclose(problem.smoothness, exact, rtol=1e-3)
    assert not risk(smoothness=3.0).smoothness_is_estimate


def test_nonconvex_smoothness_is_the_largest_curvature_seen():
    problem = pg.EmpiricalRisk(bumpy_loss, (A, B), x0=X1)
    bound = max((2 * (a**2).sum(-1)).mean() for a in A)
    assert 0.1 * bound < problem.smoothness <= bound

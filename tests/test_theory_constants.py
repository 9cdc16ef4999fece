"""Constants against NumPy, and the sources they claim."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import proxgt as pg
from helpers import bumpy_loss, regression, square_loss
from proxgt.networks import links
from proxgt.theory import constants

N, M, P = 4, 7, 3
NETWORK = pg.Network.ring(N)
A, B = regression(N, M, P)
X0 = np.array([0.3, -0.2, 0.1])


@pytest.fixture(scope="module")
def least_squares():
    problem = pg.tasks.least_squares((A, B), pg.L1(0.1)).starting_at(X0)
    return problem, constants(problem, NETWORK, lower_bound=0.0)


def sample_gradients(x):
    return A * (A @ x - B)[..., None]


def test_least_squares(least_squares):
    _, known = least_squares
    exact = sample_gradients(X0)
    node = exact.mean(1)
    assert known.zeta.source == "exact"
    assert known.zeta.value == pytest.approx(np.sqrt((node**2).sum() / N))
    at_start = ((exact - node[:, None]) ** 2).sum(-1).mean(-1)
    assert (known.nu_nodes**2 >= at_start - 1e-9).all()  # x0 is one of the points
    assert known.nu.value == pytest.approx(np.sqrt((known.nu_nodes**2).mean()))
    assert known.nu.upper_source == "estimate"
    psi = 0.5 * np.mean((A @ X0 - B) ** 2) + 0.1 * abs(X0).sum()
    assert known.gap.upper == pytest.approx(psi)
    assert (known.nodes, known.samples) == (N, M)
    assert known.mixing_rate.value == NETWORK.mixing_rate
    assert known.estimates("SR-E") == ()
    assert known.estimates("SA") == ("nu",)


def test_smoothness_of_ready_made_losses_is_analytic():
    grams = np.einsum("imp,imq->ipq", A, A) / M
    top = np.linalg.eigvalsh(grams)[:, -1].max()
    labels = np.sign(B)
    for problem, value, source in (
        (pg.tasks.least_squares((A, B)), top, "exact"),
        (pg.tasks.logistic((A, labels), penalty=0.1), top / 4 + 0.2, "bound"),
        (pg.EmpiricalRisk(pg.tasks.least_squares((A, B)).loss, (A, B), x0=X0), top, "exact"),
        (pg.EmpiricalRisk(square_loss, (A, B), x0=X0, smoothness=9.0), 9.0, "given"),
    ):
        L = constants(problem, NETWORK).smoothness
        assert (L.value, L.source) == (pytest.approx(value, rel=1e-5), source)


def test_mean_squared_smoothness_of_least_squares_is_attained(least_squares):
    _, known = least_squares
    mss = known.mean_squared_smoothness
    assert mss.source == "exact"
    rng, largest = np.random.default_rng(0), 0.0
    matrices = np.einsum("imp,imq,im->ipq", A, A, (A**2).sum(-1)) / M
    top = np.linalg.eigh(matrices)[1][:, :, -1]
    for d in (*rng.standard_normal((50, P)), *top):
        change = ((A * (A @ d)[..., None]) ** 2).sum(-1).mean(-1) / (d @ d)
        largest = max(largest, float(np.sqrt(change.max())))
    assert largest == pytest.approx(mss.value)


def test_bounded_losses_have_a_proven_nu():
    labels = np.where(B > 0, 1, -1)
    problem = pg.tasks.logistic((A, labels), penalty=0.1)
    known = constants(problem, NETWORK)
    assert (known.nu.source, known.nu.upper_source) == ("estimate", "bound")
    assert known.nu.value <= known.nu.upper
    assert known.nu.upper == pytest.approx(np.sqrt((A**2).sum(-1).mean()))
    assert known.estimates("SA") == ()
    assert known.gap.upper == pytest.approx(np.log(2), rel=1e-6)
    assert known.gap.upper_source == "bound"
    gradients = jax.jit(jax.vmap(jax.vmap(jax.grad(problem.loss), (None, 0)), (None, (0, 0))))
    rng = np.random.default_rng(1)
    for _ in range(20):  # Assumption 5 between random points
        x, y = rng.standard_normal((2, P)) * 2
        g = [np.asarray(gradients(jnp.asarray(u, "float32"), (A, labels))) for u in (x, y)]
        change = ((g[0] - g[1]) ** 2).sum(-1).mean(-1).max() / ((x - y) ** 2).sum()
        assert np.sqrt(change) <= known.mean_squared_smoothness.upper * 1.0001


def test_synthetic_risks_are_known():
    nodes, p = 5, 6  # the shapes of the other tests of this package, compiled but once
    problem = pg.tasks.noisy_quadratic(nodes, p, nu=0.7, curvature=(0.5, 2.0))
    known = constants(problem, pg.Network.ring(nodes))
    targets = np.asarray(problem.sampler.targets.all())
    assert [known.nu.value, known.nu.source] == [0.7, "exact"]
    assert known.mean_squared_smoothness.value == 2.0
    assert known.zeta.value == pytest.approx(np.sqrt((targets**2).sum() / nodes), rel=1e-6)
    A = np.linspace(0.5, 2.0, p)
    assert known.gap.upper == pytest.approx(0.5 * np.sum(targets.mean(0) ** 2 / A), rel=1e-5)
    assert known.estimates("SR-O") == ()


def test_a_noisy_curvature_over_a_box_is_known():
    """Delta by trying every corner and a grid: the minimum of a quadratic over a box."""
    p, h = 2, pg.Box(-1.0, 1.0)
    problem = pg.tasks.noisy_quadratic(
        3, p, nu=0.3, curvature=(-1.0, 2.0), curvature_noise=0.5, regularizer=h
    )
    known = constants(problem, pg.Network.ring(3))
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 401)] * p), -1).reshape(-1, p)
    t = np.asarray(problem.sampler.targets.all(), float).mean(0)
    values = 0.5 * grid**2 @ np.array([-1.0, 2.0]) - grid @ t
    assert known.gap.upper == pytest.approx(-values.min(), abs=1e-4)
    assert known.nu.upper == pytest.approx(np.sqrt(0.09 + 0.25 * 2))
    assert known.nu.upper_source == "bound"
    assert known.mean_squared_smoothness.value == pytest.approx(np.sqrt(4 + 0.25))


def test_what_is_not_known_is_estimated():
    """A loss of the user's own: L of both kinds by power iteration, nu with an interval."""
    problem = pg.EmpiricalRisk(bumpy_loss, (A, B), x0=X0)
    known = constants(problem, NETWORK)
    sources = {name: c.source for name, c in known.rows()}
    assert sources["smoothness"] == sources["mean_squared_smoothness"] == "estimate"
    assert sources["gap"] == "estimate"
    assert known.estimates("SR-E") == ("smoothness", "gap", "mean_squared_smoothness")
    r = A @ X0 - B
    second = (2 - 6 * r**2) / (1 + r**2) ** 3
    at_start = np.einsum("imp,imq,im->ipq", A, A, (A**2).sum(-1) * second**2) / M
    least = np.sqrt(np.linalg.eigvalsh(at_start).max())
    assert known.mean_squared_smoothness.value >= 0.98 * least
    assert known.mean_squared_smoothness.value >= known.smoothness.value


def test_a_sampled_variance_has_an_interval():
    def loss(w, s):
        return 0.5 * jnp.sum((w - s) ** 2)

    def sampler(key, node):
        return jax.random.normal(key, (P,)) * (1 + node)

    problem = pg.PopulationRisk(loss, sampler, N, x0=np.zeros(P), smoothness=1.0)
    truth = np.sqrt(P) * np.arange(1, N + 1)
    covered = 0
    for seed in range(8):
        known = constants(problem, NETWORK, samples=400, seed=seed, mean_squared_smoothness=1.0)
        np.testing.assert_allclose(known.nu_nodes, truth, rtol=0.2)
        assert known.nu.value < known.nu.upper < 1.15 * known.nu.value
        covered += known.nu.upper >= np.sqrt((truth**2).mean())
    assert covered >= 6


def test_given_numbers_are_kept(least_squares):
    problem, _ = least_squares
    known = constants(
        problem,
        NETWORK,
        smoothness=3.0,
        mean_squared_smoothness=4.0,
        nu=5.0,
        zeta=6.0,
        lower_bound=-1.0,
    )
    assert {c.source for name, c in known.rows() if name != "mixing_rate"} == {"given"}
    s = known.scales()
    assert (s.smoothness, s.mean_squared_smoothness, s.nu, s.zeta) == (3.0, 4.0, 5.0, 6.0)
    for word in ("given", "exact", "lambda_*", "Delta", "nu"):
        assert word in repr(known)
    assert repr(known.nu) == "5 (given)"


def test_another_h_is_not_taken_for_non_negative():
    class Minus:
        def value(self, x):
            return -jnp.ones(())

        def prox(self, v, step):
            return v

    problem = pg.tasks.least_squares((A, B), Minus())
    assert constants(problem, NETWORK).gap.source == "estimate"


def test_wrong_arguments_are_named(least_squares):
    problem, _ = least_squares
    with pytest.raises(TypeError, match=r"problem must be a Problem, .*got 'logistic'"):
        constants("logistic", NETWORK)
    with pytest.raises(TypeError, match=r"network must be a Network, .*got 'ring'"):
        constants(problem, "ring")
    with pytest.raises(ValueError, match="must agree"):
        constants(problem, pg.Network.ring(N + 1))
    with pytest.raises(ValueError, match="lower_bound must be below"):
        constants(problem, NETWORK, lower_bound=1e9)
    flaky = links.unreliable(NETWORK, link_failure=0.1)
    with pytest.raises(ValueError, match="Assumption 2"):
        constants(problem, flaky)
    with pytest.raises(ValueError, match="nu must be >= 0"):
        constants(problem, NETWORK, nu=-1.0)
    ball = pg.tasks.least_squares((A, B), pg.L2Ball(0.01))
    with pytest.raises(ValueError, match="domain of h"):
        constants(ball, NETWORK, x0=np.ones(P))

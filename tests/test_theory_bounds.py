"""Bounds against a transcription of the paper's formulas, and the paper against itself."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proxgt as pg
from proxgt.theory import Constant, Constants, Scales, bound, bound_of, step_size_for
from proxgt.theory.bounds import COEFFICIENTS, conditions

SCALES = Scales(2.0, 2.0, 1.5, 3.0, 4.0, 6, 50.0)


def eq24(L, nu, zeta, Delta, n, T, alpha, lam, b):
    """Eq. (24) as printed, and the largest step size it allows."""
    l2 = lam**2
    value = (
        8 * Delta / (alpha * T)
        + 136 * l2 * zeta**2 / ((1 - l2) ** 3 * T)
        + 348 * nu**2 / (n * b * (1 - l2) ** 3)
        + 544 * l2 * nu**2 / (b * (1 - l2) ** 3)
    )
    return value, min((1 - l2) ** 2 / (30 * lam), 1 / 8) / L


def eq30(L, nu, zeta, Delta, n, T, alpha, lam, b, B, q):
    """Eq. (30) as printed, and the largest step size it allows."""
    l2 = lam**2
    value = (
        8 * Delta / (alpha * T)
        + 76 * nu**2 / (n * B)
        + 440 * l2 * zeta**2 / ((1 - l2) ** 3 * T)
        + 3080 * l2 * nu**2 / ((1 - l2) ** 4 * B * q)
    )
    return value, min(1 / 8, math.sqrt(n * b / (152 * q)), (1 - l2) ** 2 / (146 * l2)) / L


def eq39(L, zeta, Delta, n, T, alpha, lam, b, q):
    """Eq. (39) as printed, and the largest step size it allows."""
    l2 = lam**2
    value = 8 * Delta / (alpha * T) + 440 * l2 * zeta**2 / ((1 - l2) ** 3 * T)
    return value, min(1 / 8, math.sqrt(n * b / (152 * q)), (1 - l2) ** 2 / (146 * l2)) / L


positive = st.floats(1e-3, 1e3)
whole = st.integers(1, 1000)


@settings(max_examples=50, deadline=None)
@given(positive, positive, positive, positive, whole, whole, whole, whole, st.floats(0.001, 0.99))
def test_printed_formulas(L, nu, zeta, Delta, n, b, B, q, lam):
    scales, alpha, T = Scales(L, L, nu, zeta, Delta, n), 0.01 / L, 3 * q
    common = {"steps": T, "step_size": alpha, "contraction": lam, "version": "paper"}
    for mine, theirs in (
        (
            bound("SA", scales, batch=b, **common),
            eq24(L, nu, zeta, Delta, n, T, alpha, lam, b),
        ),
        (
            bound("SR-O", scales, batch=b, period=q, refresh=B, **common),
            eq30(L, nu, zeta, Delta, n, T, alpha, lam, b, B, q),
        ),
        (
            bound("SR-E", scales, batch=b, period=q, **common),
            eq39(L, zeta, Delta, n, T, alpha, lam, b, q),
        ),
    ):
        assert math.isclose(mine.value, theirs[0], rel_tol=1e-10)
        assert math.isclose(mine.binding.limit, theirs[1], rel_tol=1e-10)
        assert mine.holds == (alpha <= theirs[1] * (1 + 1e-12) and T >= 2)


@st.composite
def settings_of_a_bound(draw):
    """L <= L', nu, zeta, Delta, n, R, b, B, q, lambda of a bound, at the step size it allows."""
    L, ratio, nu, zeta, gap = (draw(positive) for _ in range(5))
    n, R, b, B, q = (draw(whole) for _ in range(5))
    lam = draw(st.floats(0.001, 0.99))
    return Scales(L, L * max(1.0, ratio), nu, zeta, gap, n), R + 1, b, B, q, lam


def follows(alpha, T, n, l2, lemma7, lemma8, gap):
    """Lemmas 5 and 6 with these Lemmas 7 and 8, put together with no rounding of constants.

    `lemma7` = (of spread, of g, rest) bounds sum_t ||mean v_t - mean grad||^2 and
    `lemma8` = (of spread, of g, rest) bounds sum_t ||y_t - Jy_t||^2, where "spread" is
    sum_t ||x_t - Jx_t||^2 and "g" is sum_t ||mean g_t||^2. Returns the bound on Definition 3's
    average and the factor of g, which must not be positive to be dropped.
    """
    lemma6 = 4 * l2 * alpha**2 / (1 - l2) ** 2  # spread <= lemma6 * tracking
    left = 1 - lemma8[0] * lemma6  # of tracking, once its own share is on the left
    assert left > 0
    tracking = np.array(lemma8[1:]) / left  # (of g, rest)
    each = 76 * lemma7[0] * lemma6 + 6 / (alpha**2 * n) * lemma6 + 10 / n  # Lemma 5, of tracking
    of_g, rest = each * tracking + 76 * np.array(lemma7[1:])
    return (8 * gap / alpha + rest) / T, of_g - 1


def put_together(method, case, non_negative, version="corrected", smoothness=None):
    """What the corrected lemmas make of a method at the largest step size of a version.

    Returns that bound, the one of the version, and the factor of g. With `smoothness` the limit
    1/(8 L) is of that L, as no version has it where L' is used for the rest.
    """
    s, R, b, B, q, lam = case
    n, l2, T = s.nodes, lam**2, R * q
    common = {"steps": T, "contraction": lam, "batch": b, "period": q, "refresh": B}
    common |= {"non_negative": non_negative, "version": version}
    limits = bound(method, s, step_size=1.0, **common).conditions
    first = limits[0].limit if smoothness is None else 1 / (8 * smoothness)
    alpha = min(first, *(c.limit for c in limits[1:]))
    if method == "SA":
        cross = min(1, lam**3 * n) if non_negative else lam**3 * n
        x = 12 * l2 * s.smoothness**2 / (1 - l2) ** 2
        noise = 4 * T * (2 * l2 * n + cross) * s.nu**2 / (b * (1 - l2))
        seventh = (0, 0, T * s.nu**2 / (n * b))
    else:
        nu = s.nu if method == "SR-O" else 0
        x = 48 * l2 * s.mean_squared_smoothness**2 / (1 - l2) ** 2
        noise = 14 * l2 * T * n * nu**2 / ((1 - l2) ** 2 * B * q)
        sarah = s.mean_squared_smoothness**2 * q / (n * b)
        seventh = (4 * sarah / n, sarah * alpha**2, T * nu**2 / (n * B))
    eighth = (2 * x, x * n * alpha**2, 2 * l2 * n * s.zeta**2 / (1 - l2) + noise)
    value, of_g = follows(alpha, T, n, l2, seventh, eighth, s.gap)
    return value, bound(method, s, step_size=alpha, **common).value, of_g


@settings(max_examples=200, deadline=None)
@given(settings_of_a_bound(), st.booleans())
def test_corrected_bounds_follow_from_the_lemmas(case, non_negative):
    for method in ("SA", "SR-O", "SR-E"):
        value, promised, of_g = put_together(method, case, non_negative)
        assert value <= promised * (1 + 1e-9)
        assert of_g <= 1e-9


def test_the_last_step_to_eq_30_fails_as_printed_and_its_bound_holds_for_one_l():
    """1 - 21120 l2 a^2 L^2/(1-l2)^4 is negative at the limit; what it rounds up is not."""

    def printed(version, lam):
        c = COEFFICIENTS["SR-O", version]
        a = conditions(c, "SR-O", SCALES, lam, 10**6, 1)[1].limit
        return 1 - 21120 * lam**2 * a**2 * SCALES.smoothness**2 / (1 - lam**2) ** 4

    for lam in (0.05, 0.3, 0.9):
        assert printed("paper", lam) < 0 <= printed("corrected", lam)
    for lam in np.concatenate([np.geomspace(1e-3, 0.5, 100), 1 - np.geomspace(1e-3, 0.5, 100)]):
        for q in np.unique(np.rint(np.geomspace(1, 10**5, 40))):
            case = (SCALES, 2, 1000, 9, int(q), lam)
            value, promised, of_g = put_together("SR-O", case, True, "paper")
            assert value <= promised
            assert of_g < 0
    apart = Scales(1.0, 5.0, 1.5, 3.0, 4.0, 6)  # with two L the printed condition is too weak
    assert put_together("SR-O", (apart, 2, 70, 9, 6, 0.1), True, "paper", 1.0)[2] > 0
    assert put_together("SR-O", (apart, 2, 70, 9, 6, 0.1), True)[2] < 0


def test_a_chebyshev_polynomial_breaks_the_sign_argument_of_eq_96_and_keeps_our_repair():
    """E[C_t] = -tr(Q^3) nu^2/b, Q = P - J, for noise of equal size at every node."""
    network = pg.Network(nx.barbell_graph(6, 0))  # two cliques and one link
    seen = []
    for K in range(1, 8):
        for consensus in (pg.Gossip(K), pg.Chebyshev(K)):
            Q = consensus.matrix(network) - 1 / 12
            cross = -np.trace(Q @ Q @ Q)
            left = consensus.contraction(network)
            assert cross <= 12 * left**3 + 1e-12
            if isinstance(consensus, pg.Gossip):
                assert cross <= 1
            seen.append(cross)
    assert max(seen) > 2  # so "1" is not enough


def test_gossip_is_never_worse_than_printed():
    for lam in (0.0, 0.2, 0.7):
        common = {"steps": 100, "step_size": 0.01, "contraction": lam, "batch": 4}
        assert (
            bound("SA", SCALES, **common).value
            <= bound("SA", SCALES, version="paper", **common).value
        )


def test_no_network_condition_without_a_network():
    b = bound("SR-E", SCALES, steps=20, step_size=0.01, contraction=0.0, batch=4, period=5)
    assert b.holds
    assert b.conditions[1].limit == math.inf
    assert "network" not in b.binding.name
    assert math.isclose(b.value, 8 * 4.0 / (0.01 * 20))


def test_conditions_are_reported():
    b = bound("SR-E", SCALES, steps=7, step_size=1.0, contraction=0.5, batch=4, period=5)
    assert not b.holds
    assert b.unmet == ("T = R q with q = 5", "R >= 2")
    assert "binds" in str(b)
    assert not bound("SA", SCALES, steps=10, step_size=1.0, contraction=0.1, batch=1).holds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "SRE"}, "did you mean"),
        ({"contraction": 1.0}, "contraction must be in"),
        ({"period": None}, "period"),
        ({"steps": 0}, "steps"),
        ({"version": "mine"}, "version"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    options = {
        "method": "SR-E",
        "steps": 10,
        "step_size": 0.1,
        "contraction": 0.5,
        "batch": 1,
        "period": 5,
    } | change
    with pytest.raises((ValueError, TypeError), match=message):
        bound(options.pop("method"), SCALES, **options)


def test_smoothness_of_gradients_and_of_samples_are_kept_apart():
    scales = Scales(1.0, 5.0, 1.0, 1.0, 1.0, 4)
    common = {"steps": 20, "step_size": 0.01, "contraction": 0.1, "batch": 2, "period": 5}
    apart = bound("SR-E", scales, **common)
    together = bound("SR-E", scales, version="paper", **common)
    assert apart.conditions[0].limit == 5 * together.conditions[0].limit
    assert apart.conditions[2].limit == together.conditions[2].limit
    sa = {"steps": 20, "step_size": 0.01, "contraction": 0.1, "batch": 2}
    assert bound("SA", scales, **sa).conditions[0].limit == 1 / 8


def test_bound_of_reads_a_method():
    network = pg.Network.ring(6)
    sizes = [("L", 2.0), ("L", 3.0), ("nu", 1.5), ("zeta", 3.0), ("Delta", 4.0), ("l", 0.5)]
    known = Constants(*(Constant.of(v, "given") for _, v in sizes), np.ones(6), 6, 50.0)
    for name, method in (
        ("SA", pg.ProxGT_SA(3, 0.05, pg.Gossip(4))),
        ("SR-O", pg.ProxGT_SR_O(3, 5, 7, 0.05, pg.Chebyshev(3))),
        ("SR-E", pg.ProxGT_SR_E(3, 5, 0.05, pg.Gossip(rounds="auto"))),
    ):
        found = bound_of(method, network, 20, known)
        assert found.method == name
        assert found.conditions[0].limit == 1 / 16
        assert step_size_for(None, network, method, guarantee=True, given=known) == (
            found.binding.limit
        )
    exact = bound_of(pg.ProxGT(pg.FullGradient(), 0.05), network, 20, known)
    assert exact.terms[2].value == exact.terms[3].value == 0  # SA without noise
    with pytest.raises(ValueError, match="no theorem"):
        bound_of(pg.ProxGT(pg.STORM(2, 0.1), 0.05), network, 20, known)

"""Claim "tracking": what is put on either side of an inequality, and that it can be refuted."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import proxgt as pg
from proxgt.reproduce import inequalities, tracking
from proxgt.reproduce.inequalities import paths, ratio, statements
from proxgt.reproduce.settings import bounded_quadratic
from proxgt.theory import Inequality, record_trajectory
from proxgt.theory.constants import constants

N, T, SEEDS = 12, 12, range(24)  # the same for all runs, to compile once
RING = pg.Network.ring(N)


@pytest.fixture(scope="module")
def problem():
    return bounded_quadratic(N)


@pytest.fixture(scope="module")
def made(problem):
    return record_trajectory(problem, RING, pg.ProxGT_SA(2, 1 / 8, pg.Gossip(1)), T, SEEDS)


def tightness(made, problem, **changes):
    made = replace(made, **changes)
    known, nu = constants(problem, RING), inequalities.largest_nu(made, problem)
    every = [statements(path, known, nu, RING.W, "paper") for path in paths(made)]
    return {found[0].name: ratio(found).value for found in zip(*every, strict=True)}


def test_statements_hold_and_are_refuted_by_a_wrong_network_or_tracker(problem, made):
    found = tightness(made, problem)
    assert len(found) == 7
    assert max(found.values()) < 1
    assert tightness(made, problem, contraction=1e-4)["Lemma 6"] > 1
    assert tightness(made, problem, y=20 * made.y)["Lemma 8(a)"] > 1
    untracked = tightness(made, problem, y=made.y + 1e-6)
    assert untracked["eq. (11)"] > 1e4
    noisier = tightness(made, problem, v=made.v + 3 * (made.v - made.gradients))
    assert noisier["Lemma 7(a)"] > 1


def test_nu_is_that_of_the_draws():
    """At a point that does not move: the mean square of what a sample gradient is off by."""
    problem = bounded_quadratic(N).starting_at(np.full(10, 0.8))
    still = pg.ProxGT_SA(2, 1e-9, pg.Gossip(1))
    made = record_trajectory(problem, RING, still, T, SEEDS)
    off = 2 * np.sum((made.v - made.gradients) ** 2, axis=3).mean()
    assert inequalities.largest_nu(made, problem) == pytest.approx(np.sqrt(off), rel=0.03)


@pytest.mark.parametrize("consensus", [pg.Chebyshev(1), pg.Gossip(1)], ids=["Chebyshev", "W"])
def test_eq_96_fails_for_a_chebyshev_polynomial_by_what_its_matrix_says(consensus):
    """E[e'(J - P'PP)e] with independent rows of variance nu^2/b is a trace."""
    network = pg.Network(nx.barbell_graph(6, 0))
    P, problem = consensus.matrix(network), bounded_quadratic(N)
    still = pg.ProxGT_SA(2, 1e-6, consensus)
    made = record_trajectory(problem, network, still, T, SEEDS)
    found = [inequalities.cross_term(path, P, 1.0) for path in paths(made)]
    expected = np.trace(np.full_like(P, 1 / N) - P.T @ P @ P)
    assert ratio(found).low <= expected <= ratio(found).high
    assert (expected > 2.9) == isinstance(consensus, pg.Chebyshev)


def test_ratio_is_of_the_worst_path_or_of_means():
    every = [Inequality("Lemma 4", 1.0, 4.0), Inequality("Lemma 4", 3.0, 5.0)]
    assert ratio(every).value == ratio(every).high == 0.6
    means = ratio([replace(one, name="Lemma 7(a)") for one in every])
    assert means.value == pytest.approx(4 / 9)
    assert means.low < 0.25 < 0.6 < means.high
    assert ratio([Inequality("Lemma 5", 1.0, -1.0), every[0]]).value == np.inf


def test_a_run_that_diverged_has_no_tightness():
    nan, inf = float("nan"), float("inf")
    fine = Inequality("Lemma 5", 1.0, 4.0)
    for lhs, rhs in ((nan, 1.0), (1.0, nan), (nan, nan), (inf, inf)):
        lost = replace(fine, lhs=lhs, rhs=rhs)
        assert np.isnan(lost.tightness)
        assert np.isnan(ratio([fine, lost]).value)
        assert np.isnan(ratio([lost, fine]).value)


def test_the_tightest_printed_statement_decides():
    columns = ("method", "network", "version", "lhs/rhs", "low", "high")
    lines = [
        (name, dict(zip(columns, ("SA", "ring, W", "paper", 0.5, 0.4, 0.6), strict=True)))
        for name in ("eq. (11)", "eq. (96)", *(f"Lemma {k}(a)" for k in range(4, 9)), "Theorem 1")
    ]
    rows = [{"statement": name} | rest for name, rest in lines]
    assert all(check.passed for check in tracking.judged(rows))
    for row in (rows[0], rows[4]):  # a run without an answer fails its statement alone
        lost = [row | {"lhs/rhs": float("nan")}]
        for every in (rows + lost, lost + rows):
            assert sum(not check.passed for check in tracking.judged(every)) == 1
    rows.append(rows[4] | {"lhs/rhs": 1.1})
    rows.append(rows[5] | {"lhs/rhs": 1.2, "version": "corrected"})
    rows.append(rows[1] | {"lhs/rhs": 3.0})  # eq. (96) is no statement of the paper's own
    failed = [check.name for check in tracking.judged(rows) if not check.passed]
    assert len(failed) == 1
    assert failed[0].startswith("Lemma 6")


def test_runs_are_as_long_as_lemmas_and_theorems_ask():
    for name, estimator in tracking.ESTIMATORS.items():
        period = getattr(estimator, "period", 1)
        for steps in (tracking.STEPS[name], tracking.THEOREM_STEPS[name]):
            assert steps % period == 0
            assert steps >= 2 * period

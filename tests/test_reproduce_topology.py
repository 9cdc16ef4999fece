"""The claim on topology: what is compared, and that the verdict can go either way."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import proxgt as pg
from proxgt.reproduce import topology as claim
from proxgt.reproduce.runs import reach
from proxgt.theory.constants import constants


def rows_of(samples):
    """Of {(rounds, step): {network: one number a seed}}."""
    return [
        {"rounds": rounds, "step": step, "network": network, "samples": one}
        for (rounds, step), networks in samples.items()
        for network, every in networks.items()
        for one in every
    ]


def verdicts(theorem, plain):
    """With these samples on a ring and a path, and 100 on the complete graph."""
    both = dict(zip(claim.ROUNDS, (theorem, plain), strict=True))
    samples = {
        (rounds, step): {"complete": (90, 110), "ring": (ring, ring), "path": (path, path)}
        for rounds, (ring, path) in both.items()
        for step in claim.STEPS
    }
    return [(check.passed, check.name[-4:]) for check in claim.judged("SA", rows_of(samples))]


def test_the_verdict_is_of_the_worst_graph():
    inf = np.inf
    assert verdicts((105, 99), (120, 300)) == [(True, "ring")] * 2 + [(True, "path")] * 2
    assert verdicts((105, 115), (120, 109)) == [(False, "path")] * 2 + [(True, "ring")] * 2
    assert verdicts((100, 85), (101, 102)) == [(False, "path")] * 2 + [(False, "path")] * 2
    assert verdicts((100, inf), (inf, 100)) == [(False, "path")] * 2 + [(True, "ring")] * 2


def test_triangles_are_above_all_points_and_differ_by_step():
    """Each of the two steps has a look of its own, and no triangle is among what was measured."""
    lost = {"complete": (100, 110), "ring": (1e5, 2e5), "path": (np.inf, np.inf)}
    rows = rows_of({(rounds, step): lost for rounds in claim.ROUNDS for step in claim.STEPS})
    axes = Figure().subplots()
    claim.draw_method(axes, [row | {"method": "SA"} for row in rows], "SA")
    triangles = [line for line in axes.lines if line.get_marker() == "^"]
    highest = axes.transAxes.inverted().transform(axes.transData.transform((0, 2e5)))[1]
    assert {float(line.get_ydata()[0]) > highest + 0.03 for line in triangles} == {True}
    assert len({(line.get_fillstyle(), *line.get_ydata()) for line in triangles}) == 2


def test_graphs_range_over_all_gaps():
    every, few = claim.networks(), claim.networks(quick=True)
    assert len(every) == 6
    assert {"complete", "path"} <= set(few) <= set(every)
    gaps = [network.spectral_gap for network in every.values()]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] == pytest.approx(1)
    assert gaps[-1] < 0.02


def test_one_graph_as_solve_counts_it(monkeypatch):
    """Choices with one alpha are runs of `reach`; the best of a grid is no slower than that one."""
    problem, network = claim.PROBLEMS["SR-E"](), pg.Network.complete(claim.NODES)
    monkeypatch.setitem(claim.EPSILONS, "SR-E", 0.1)
    rows = list(claim._measured("SR-E", problem, "complete", network, (0, 1)))
    assert len(rows) == 8
    theorem, tuned, same, _ = rows[::2]
    L = constants(problem, network).mean_squared_smoothness.value
    assert theorem["step size"] == pytest.approx(1 / (2 * L))
    method = pg.ProxGT_SR_E(2, 32, theorem["step size"])  # sqrt(m/n), sqrt(nm) of m = 64
    found = reach(problem, network, method, 0.1, (0, 1), 4000, metric_step=1 / problem.smoothness)
    assert [rows[0]["steps"], rows[1]["steps"]] == list(found.steps)
    assert [rows[0]["samples"], rows[1]["samples"]] == list(found.samples)
    assert (theorem["K"], same["steps"]) == (1, theorem["steps"])  # one round is exact here
    assert tuned["samples"] <= theorem["samples"]

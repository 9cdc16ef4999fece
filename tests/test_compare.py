"""Comparisons under one budget, their statistics, and the search for step sizes."""

from __future__ import annotations

import dataclasses
import logging

import jax
import numpy as np
import pytest
from scipy import stats

import proxgt as pg
from helpers import regression, square_loss
from proxgt.comparison import Comparison
from proxgt.comparison.compare import compare, labels_of
from proxgt.comparison.contest import Contest
from proxgt.comparison.tuning import score, tune
from proxgt.methods.centralized import ProxGD, ProxSGD
from proxgt.methods.gradient import DSGD

NODES, M, P = 5, 8, 4
A, B = regression(NODES, M, P)
X0 = np.full(P, 0.4)
RING = pg.Network.ring(NODES)
METHODS = {"SA": pg.ProxGT_SA(2, 0.05, pg.Gossip(2)), "SR-E": pg.ProxGT_SR_E(2, 5, 0.1)}


def risk(h=pg.L1(0.1), **options):
    return pg.EmpiricalRisk(square_loss, (A, B), h, x0=X0, **{"smoothness": 5.0} | options)


@pytest.fixture(scope="module")
def three():
    """A comparison that many tests read."""
    return compare(risk(), RING, METHODS, {"samples": 300}, seeds=3, records=10)


# budgets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "budget",
    [{"samples": 500}, {"rounds": 77}, {"steps": 31}, {"gradients": 400, "rounds": 1000}],
)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_a_run_spends_its_budget_and_not_a_step_more(method, budget):
    problem = risk()
    steps = Contest(problem, RING, budget, {}).steps(method)

    def spent(steps):
        cost = method.cost(problem, steps)._asdict() | {"steps": steps}
        return {name: cost[name] for name in budget}

    assert all(spent(steps)[name] <= limit for name, limit in budget.items())
    assert any(spent(steps + 1)[name] > limit for name, limit in budget.items())


def test_every_run_ends_within_the_budget_at_the_common_metric_step(three):
    for runs in three.results.values():
        assert len(runs) == 3
        for result in runs:
            assert 300 - 20 < result.history[-1].samples <= 300
            assert result.metric_step == 1 / 5.0
            assert 10 <= len(result.history) <= 12


def test_runs_are_those_of_solve(three):
    result = three.results["SR-E"][1]
    alone = pg.solve(
        risk(),
        RING,
        METHODS["SR-E"],
        result.steps,
        seed=1,
        metric_step=0.2,
        record_every=result.history[1].step,
    )
    assert np.array_equal(alone.x, result.x)
    assert np.array_equal(alone.history["metric"], result.history["metric"])


def test_methods_of_one_machine_get_the_pooled_problem():
    both = compare(
        risk(), RING, [pg.ProxGT(pg.FullGradient(), 0.1), ProxGD(0.1)], {"steps": 2000}, seeds=1
    )
    here, there = (both.results[name][0] for name in ("ProxGD", "ProxGT"))
    assert here.x.shape == (1, P)
    np.testing.assert_allclose(here.solution, there.solution, atol=1e-5)
    assert both.summary(1e-6)["ProxGD"].rounds == 0


# tables and curves ---------------------------------------------------------------------------


def test_the_tidy_table_has_every_record(three):
    frame = three.to_pandas()
    assert list(frame.columns) == ["method", "seed", *pg.History.columns]
    for (label, seed), part in frame.groupby(["method", "seed"]):
        history = three.results[label][seed].history
        assert part["metric"].tolist() == history["metric"].tolist()
    assert len(frame) == len(three.rows)


def test_curves_are_students_interval_in_logs(three):
    curve = three.curves("samples", "metric", points=7, confidence=0.9)["SA"]
    k, values = 3, []
    for result in three.results["SA"]:
        logs = np.log(result.history["metric"])
        values.append(np.interp(curve.grid[k], result.history["samples"], logs))
    low, high = stats.t.interval(0.9, 2, np.mean(values), stats.sem(values))
    ours = np.log([curve.low[k], curve.mean[k], curve.high[k]])
    np.testing.assert_allclose(ours, [low, np.mean(values), high], rtol=1e-10)


def test_curves_share_a_grid_and_end_with_their_runs():
    uneven = compare(risk(), RING, METHODS, {"steps": 60}, seeds=2, records=5)
    curves = uneven.curves("rounds", points=11)
    assert np.array_equal(curves["SA"].grid, curves["SR-E"].grid)
    ended = curves["SR-E"].grid > uneven.results["SR-E"][0].history["rounds"].max()
    assert ended.any()
    assert np.isnan(curves["SR-E"].mean[ended]).all()
    assert np.isfinite(curves["SA"].mean).all()


def test_summary_takes_the_first_record_at_the_target(three):
    target = 1e-2
    row = three.summary(target)["SR-E"]
    firsts = []
    for result in three.results["SR-E"]:
        there = result.history["metric"] <= target
        if there.any():
            firsts.append(result.history["samples"][there.argmax()])
    assert (row.reached, row.seeds) == (len(firsts), 3)
    assert row.samples == np.median(firsts)
    unreachable = three.summary(1e-30)
    assert unreachable["SA"].reached == 0
    assert np.isnan(unreachable["SA"].samples)
    text = str(unreachable)
    assert "| SA | 0/3 | - | - | - |" in text
    assert len(unreachable.to_pandas()) == 2


def test_a_diverged_method_is_listed_and_drawn(tmp_path):
    wild = compare(
        risk(), RING, {"wild": pg.ProxGT_SA(2, 50.0), "SA": METHODS["SA"]}, {"steps": 400}, seeds=1
    )
    assert wild.summary(1e-3)["wild"].final == float("inf")
    assert wild.plot(tmp_path / "wild.png").stat().st_size > 5000


def test_plot_and_round_trip(three, tmp_path):
    assert three.plot(tmp_path / "three.png", y="stationarity").stat().st_size > 5000
    assert three.plot(tmp_path / "one.svg", x="rounds").exists()
    again = Comparison.load(three.save(tmp_path / "saved"))
    assert again.rows == three.rows
    assert again.seeds == three.seeds
    table = (tmp_path / "saved" / "table.csv").read_text().splitlines()
    assert len(table) == 1 + len(three.rows)
    means = (tmp_path / "saved" / "means.csv").read_text().splitlines()
    assert len(means) == 1 + len(three.rows) / 3
    assert means[0].startswith("method,step,samples,")
    with pytest.raises(ValueError, match="holds no comparison"):
        Comparison.load(tmp_path)


def test_means_and_intervals_are_of_the_seeds_at_every_record(three):
    """Student's t in logs for the metric, plain for the objective; costs beside them."""
    table, raw = three.averages("metric", confidence=0.9).to_pandas(), three.to_pandas()
    assert list(table.columns[-3:]) == ["mean", "low", "high"]
    for row in table.itertuples():
        mine = raw[(raw.method == row.method) & (raw.step == row.step)]
        assert len(mine) == row.seeds == 3
        assert (row.samples, row.rounds) == (mine.samples.iloc[0], mine.rounds.iloc[0])
        logs = np.log(mine["metric"])
        np.testing.assert_allclose(np.log(row.mean), logs.mean(), atol=1e-12)
        if row.step:  # all start alike
            ends = stats.t.interval(0.9, 2, logs.mean(), stats.sem(logs))
            np.testing.assert_allclose(np.log([row.low, row.high]), ends, rtol=1e-9)
    assert len(table) == len(raw) / 3
    plain = three.averages("objective").last()["SA"]
    finals = [result.history["objective"][-1] for result in three.results["SA"]]
    ends = stats.t.interval(0.95, 2, np.mean(finals), stats.sem(finals))
    np.testing.assert_allclose([plain.low, plain.high, 2 * plain.mean], [*ends, sum(ends)])


def test_a_printed_comparison_shows_how_the_runs_ended(three):
    end = three.averages().last()["SR-E"]
    assert f"| SR-E | {end.step:,} | {end.samples:,.0f} |" in str(three)
    assert f"{end.low:.1e} to {end.high:.1e}" in str(three)
    alone = compare(risk(), RING, METHODS, {"steps": 60}, seeds=1, records=5)
    assert np.isnan(alone.averages().last()["SA"].low)  # one seed says nothing of the spread
    assert str(alone).count("| - |") == 2
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\), got 95"):
        three.averages(confidence=95)


def test_runs_that_ended_early_are_averaged_as_far_as_they_went(three):
    short = three.results["SA"][0]
    rows = list(short.history)[:3]
    cut = dataclasses.replace(short, history=pg.History(rows))
    table = Comparison({"SA": [cut, *three.results["SA"][1:]]}, three.seeds).averages()
    assert [row.seeds for row in table.rows[:5]] == [3, 3, 3, 2, 2]
    assert table.last()["SA"].step == rows[-1].step


# labels and refusals -------------------------------------------------------------------------


def test_a_list_is_labelled_by_class_and_estimator():
    full, sampled = pg.ProxGT(pg.FullGradient(), 0.1), pg.ProxGT_SA(2, 0.1)
    assert list(labels_of([full, ProxGD(0.1)])) == ["ProxGT", "ProxGD"]
    assert list(labels_of([full, sampled])) == ["ProxGT FullGradient", "ProxGT Minibatch"]
    with pytest.raises(ValueError, match="must tell 'ProxGT FullGradient' apart"):
        labels_of([full, full])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": {}}, "budget must be a dict such as"),
        ({"budget": {"sample": 10}}, "did you mean 'samples'"),
        ({"budget": {"samples": -1}}, r"budget\['samples'\] must be > 0"),
        ({"budget": {"samples": 5}}, "must allow a step of ProxGT"),
        ({"methods": {}}, "at least one method"),
        ({"methods": {"x": 3}}, r"methods\['x'\] must be a Method"),
        ({"seeds": [1, 1]}, "seeds must be distinct"),
        ({"seeds": []}, r"seeds must be distinct and at least one, got \[\]"),
        ({"seeds": 0}, "seeds must be an integer >= 1"),
        ({"seeds": None}, "seeds must be an integer >= 1, got None"),
        ({"budget": 100}, "budget must be a dict such as"),
        ({"methods": []}, "at least one method, got none"),
        ({"methods": METHODS["SA"]}, "must be a dict of labels to methods, or a list, got ProxGT"),
        ({"methods": 2 * [METHODS["SA"]]}, "tell 'ProxGT Minibatch' apart"),
        ({"methods": [METHODS["SA"], DSGD(pg.Minibatch(2), 0.1)]}, "^DSGD cannot take a regular"),
        ({"methods": [METHODS["SA"], pg.DeFW(pg.FullGradient())]}, "^DeFW needs a regularizer"),
        ({"metric_step": 0}, "metric_step must be > 0, got 0"),
        ({"records": 0}, "records must be an integer >= 1"),
        ({"methods": [ProxGD(0.1)], "budget": {"rounds": 10}}, "bound its samples or steps too"),
        ({"methods": [*METHODS.values(), DSGD(pg.Minibatch(2), 0.1)]}, "tell 'ProxGT|DSGD cannot"),
    ],
)
def test_bad_input_is_refused_by_name_before_any_run(options, message, monkeypatch):
    monkeypatch.setattr(Contest, "run", lambda *_: pytest.fail("a run had begun"))
    usual = {"methods": METHODS, "budget": {"samples": 100}}
    with pytest.raises((ValueError, TypeError), match=message):
        compare(risk(), RING, **usual | options)


# step sizes ----------------------------------------------------------------------------------


def test_tune_finds_the_best_of_the_grid():
    grid, budget = [0.001, 0.01, 0.1], {"samples": 400}
    method = pg.ProxGT_SR_E(2, 5, 0.5)
    tuning = tune(risk(), RING, method, grid, budget=budget, extend=0)
    assert [trial.step_size for trial in tuning.trials] == grid
    scores = [
        score(
            pg.solve(
                risk(),
                RING,
                dataclasses.replace(method, step_size=a),
                tuning.trials[0].steps,
                record_every=-(-tuning.trials[0].steps // 40),
                metric_step=0.2,
            )
        )
        for a in grid
    ]
    np.testing.assert_allclose([trial.score for trial in tuning.trials], scores)
    assert tuning.step_size == grid[int(np.argmin(scores))] == tuning.method.step_size
    assert tuning.at_edge


def test_tune_goes_beyond_the_ends_of_its_grid():
    up = tune(risk(), RING, METHODS["SR-E"], [1e-4, 1e-3], budget={"steps": 100}, extend=3)
    assert up.step_size > 5e-3
    down = tune(risk(), RING, METHODS["SR-E"], [10.0, 50.0], budget={"steps": 100}, extend=3)
    assert down.step_size < 1.0
    with pytest.raises(ValueError, match="one that does not diverge"):
        tune(risk(), RING, METHODS["SA"], [1e3, 1e4], budget={"steps": 400}, extend=0)


def test_with_a_target_the_first_to_reach_it_wins():
    """By the score without one, the smallest step has the lowest floor here."""
    grid, target, budget = [0.003, 0.03, 0.3], 1e-3, {"steps": 3000}
    method = pg.ProxGT_SA(4, 0.1, pg.Gossip(2))
    run = {"budget": budget, "extend": 0, "records": 100}
    tuning = tune(risk(), RING, method, grid, target=target, **run)
    firsts = {}
    for trial in tuning.trials:
        one = dataclasses.replace(method, step_size=trial.step_size)
        history = pg.solve(risk(), RING, one, 3000, record_every=30, metric_step=0.2).history
        there = history["metric"] <= target
        firsts[trial.step_size] = history["step"][there.argmax()] if there.any() else None
        if there.any():
            assert trial.score == pytest.approx(target * firsts[trial.step_size] / 3000)
        else:
            assert trial.score >= target
    reached = {a: step for a, step in firsts.items() if step is not None}
    assert len(reached) >= 1
    assert tuning.step_size == min(reached, key=reached.__getitem__)
    assert tune(risk(), RING, method, grid, **run).step_size != tuning.step_size


def test_successive_halving_spends_less_and_finds_the_same():
    grid, budget = [0.001, 0.01, 0.03, 0.1, 0.3, 30.0], {"steps": 160}
    whole = tune(risk(), RING, METHODS["SR-E"], grid, budget=budget, extend=0)
    halved = tune(risk(), RING, METHODS["SR-E"], grid, budget=budget, halving=True)
    assert halved.step_size == whole.step_size
    assert [trial.steps for trial in halved.trials] == [20] * 6 + [40] * 3 + [80] * 2 + [160]
    assert sum(t.steps for t in halved.trials) < sum(t.steps for t in whole.trials)


def test_a_search_compiles_once(caplog):
    """Neither other step sizes nor other lengths of runs compile anything."""
    risk_, method, grid = risk(), pg.ProxGT_SA(3, 0.01), [0.01, 0.02, 0.04]
    tune(risk_, RING, method, grid[:1], budget={"steps": 120}, extend=0)
    with jax.log_compiles(True), caplog.at_level(logging.WARNING):
        tune(risk_, RING, method, grid, budget={"steps": 120}, extend=0, halving=True)
    assert not [r for r in caplog.records if "Finished XLA compilation" in r.message]


def test_a_schedule_is_tuned_by_a_function():
    make = lambda a: pg.ProxGT_SA(2, lambda t: a / (t + 1) ** 0.5)
    tuning = tune(risk(), RING, make, [1e-4, 0.1], budget={"steps": 50}, extend=0)
    assert tuning.step_size == 0.1
    with pytest.raises(ValueError, match="give a function of the scale"):
        tune(risk(), RING, make(0.1), budget={"steps": 50})


def test_tuning_of_one_machine_and_default_grid():
    tuning = tune(risk(), RING, ProxSGD(2, 0.1), budget={"steps": 60}, column="stationarity")
    assert min(t.step_size for t in tuning.trials) >= 0.03 / 5
    assert len(tuning.trials) >= 5

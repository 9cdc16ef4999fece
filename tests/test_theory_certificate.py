"""Definition 3 from histories, against sums written out."""

import numpy as np
import pytest

import proxgt as pg
from proxgt.history import History, Row
from proxgt.theory import Scales, bound
from proxgt.theory.certificate import certificate


def a_result(metric, steps=None, seed=0, metric_at="nodes", **options):
    """A result with this metric at these steps; samples 3 and rounds 2 a step."""
    steps = range(len(metric)) if steps is None else steps
    rows = [
        Row(t, 3.0 * t, 3.0 * t, 2 * t, 0.0, 0.0, m, 0.0, m, 0.0)
        for t, m in zip(steps, metric, strict=True)
    ]
    x = np.zeros((2, 1))
    settings = {"run.metric_at": repr(metric_at), "run.seed": str(seed)}
    fields = {"status": "step limit", "smoothness_is_estimate": False} | options
    return pg.Result(
        x=x,
        mean=x[0],
        solution=x[0],
        output=x[0],
        history=History(rows),
        smoothness=1.0,
        metric_step=0.1,
        run=settings,
        **fields,
    )


def test_average_is_over_x_1_to_x_T():
    """The record after T steps is x_{T+1}, which Definition 3 leaves out."""
    proof = certificate(a_result([4.0, 2.0, 0.0, 100.0]), epsilon=2.0, bound=8.0)
    assert proof.average == pytest.approx(2.0)
    assert proof.met
    assert bool(proof)
    assert proof.margin == pytest.approx(2.0)
    assert proof.below_bound == pytest.approx(4.0)
    assert (proof.reached.step, proof.reached.samples, proof.reached.rounds) == (1, 3.0, 2)
    assert (proof.best, proof.best_at.step) == (0.0, 2)
    assert proof.error is None
    assert not proof.interpolated
    for text in ("met by 1 run(s)", "every node", "bound 8", "2 times below"):
        assert text in repr(proof)


def test_not_met():
    proof = certificate(a_result([9.0, 9.0, 0.0]), epsilon=1.0)
    assert not proof
    assert proof.reached is None
    assert proof.below_bound is None
    assert "NOT met" in repr(proof)
    assert "never below" in repr(proof)


@pytest.mark.parametrize("metric", [[0.1, 0.1], [0.1]])
def test_a_run_that_diverged_meets_nothing(metric):
    """Even where its records did: Definition 3's average has iterates that are not finite."""
    proof = a_result(metric, status="diverged").certificate(epsilon=1.0, bound=2.0)
    assert not proof.met
    assert proof.average == np.inf
    assert proof.margin == 0
    assert "1 of 1 run(s)" in repr(proof)
    assert "diverged" in repr(proof)
    assert "bound" not in repr(proof)
    both = certificate([a_result([0.1, 0.1]), a_result(metric, status="diverged")], 1.0)
    assert not both.met
    assert both.error is None


def test_the_metric_at_the_mean_certifies_nothing():
    proof = a_result([0.1, 0.1], metric_at="mean").certificate(epsilon=1.0)
    assert proof.average == pytest.approx(0.1)
    assert not proof
    assert "not certified" in repr(proof)
    assert " met by" not in repr(proof)


def test_a_bound_may_be_a_number_a_bound_or_a_plan():
    scales = Scales(1.0, 1.0, 0.5, 1.0, 1.0, 2)
    options = {"step_size": 0.1, "contraction": 0.1, "batch": 5}
    theirs = bound("SA", scales, steps=2, **options)
    run = a_result([4.0, 2.0, 0.0])
    assert run.certificate(2.0, theirs.value).below_bound == pytest.approx(theirs.value / 3)
    assert run.certificate(2.0, theirs) == run.certificate(2.0, theirs.value)
    with pytest.raises(ValueError, match="conditions"):
        run.certificate(2.0, bound("SA", scales, steps=2, **(options | {"step_size": 1.0})))
    problem, network = pg.tasks.noisy_quadratic(3, 2), pg.Network.ring(3)
    plan = pg.plan(problem, network, 3.0, timed=False)
    proof = a_result(np.zeros(plan.steps + 1)).certificate(3.0, plan)
    assert proof.bound == plan.bound.value
    with pytest.raises(ValueError, match="bound must be of this run"):
        run.certificate(2.0, plan)


def test_between_records_the_metric_is_interpolated():
    proof = certificate(a_result([4.0, 0.0], steps=[0, 4]), epsilon=2.0)
    assert proof.average == pytest.approx((4 + 3 + 2 + 1) / 4)
    assert proof.interpolated
    assert "interpolated" in repr(proof)
    assert "met, as far as its records tell, by 1 run(s)" in repr(proof)


def test_runs_over_seeds():
    runs = [a_result([1.0, 0.0], seed=0), a_result([3.0, 0.0], seed=1)]
    proof = certificate(runs, epsilon=1.5)
    assert proof.average == pytest.approx(2.0)
    assert proof.error == pytest.approx(1.0)
    assert proof.runs == 2
    assert not proof.met  # one run is at 3 > 2.25
    assert proof.reached is None


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="epsilon"):
        certificate(a_result([1.0, 1.0]), epsilon=-1)
    with pytest.raises(ValueError, match="at least one run"):
        certificate(a_result([1.0]), epsilon=1)
    with pytest.raises(ValueError, match="at least one run"):
        certificate([], epsilon=1)

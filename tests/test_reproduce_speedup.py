"""The claim on speedup: equal terms for every n, and that the verdict can go either way."""

import dataclasses

import numpy as np
import pytest

import proxgt as pg
from proxgt.reproduce import speedup as claim
from proxgt.reproduce.settings import sized

METHODS = tuple(claim.PROBLEMS)


@pytest.mark.parametrize("method", METHODS)
def test_sizes_are_whole_and_shared_out_evenly(method):
    """n b and n B are the same for every n: nothing is gained or lost by rounding up."""
    totals, alone = set(), claim._scales(method, 1)
    for n in claim.NODES:
        scales = dataclasses.replace(alone, nodes=n, samples=alone.samples / n)
        one = sized(method, scales, claim.epsilon_of(method, scales), pg.Gossip(1)).estimator
        refresh = getattr(one, "refresh", None) or 0
        totals.add((n * one.batch, getattr(one, "period", 0), n * refresh))
    assert len(totals) == 1
    ((total, period, _),) = totals
    assert total >= 32
    assert period in (0, 32)


@pytest.mark.parametrize("method", METHODS)
def test_every_n_has_the_same_objective_and_variance(method):
    x = np.random.default_rng(0).standard_normal(len(claim.PROBLEMS[method](1).x0)) / 10
    values = [claim.PROBLEMS[method](n).objective(x) for n in (1, 4, 32)]
    np.testing.assert_allclose(values, values[0], rtol=1e-5)
    scales = [claim._scales(method, n) for n in (1, 32)]
    assert scales[0].nu == pytest.approx(scales[1].nu)
    assert scales[0].gap == pytest.approx(scales[1].gap, rel=1e-4)


def test_centralized_methods_have_the_parameters_of_one_node():
    scales = claim._scales("SR-O", 1)
    epsilon = claim.epsilon_of("SR-O", scales)
    one = sized("SR-O", scales, epsilon, pg.Gossip(1))
    names = []
    for other in claim.centralized("SR-O", scales, epsilon):
        names.append(type(other).__name__)
        assert (other.batch, other.period, other.refresh) == (32, 32, 2 * 32**2)
        assert other.step_size == one.step_size
    assert names == ["ProxSpiderBoost", "ProxSARAH"]
    (sgd,) = claim.centralized("SA", scales, scales.nu / 16)
    assert isinstance(sgd, pg.ProxSGD)


def test_the_ratio_judged_is_the_farthest_from_one():
    nodes, alone = (1, 4, 32), np.array([1000.0, 1000.0])
    even = np.array([[1000.0, 250.0, 31.25]] * 2)
    assert claim._ratio("SA", nodes, even, alone).passed
    costly = even * [1, 1.1, 1.5]
    check = claim._ratio("SA", nodes, costly, alone)
    assert not check.passed
    assert check.found.value == pytest.approx(1.5)
    apart = claim._ratio("SA", nodes, costly, alone + np.array([-50, 50]))  # both spreads count
    assert apart.found.low < check.found.value < apart.found.high
    cheap = claim._ratio("SA", nodes, even * [1, 0.5, 1.2], alone)
    assert (cheap.passed, cheap.found.value) == (False, pytest.approx(0.5))


def test_smoothness_of_the_largest_is_for_all():
    scales = claim._scales("SA", 1)
    other = dataclasses.replace(scales, smoothness=7.0, mean_squared_smoothness=9.0, nu=3.0)
    mixed = claim.with_smoothness_of(scales, other)
    assert (mixed.smoothness, mixed.mean_squared_smoothness, mixed.nu) == (7.0, 9.0, scales.nu)

"""Plans, and the runs that show whether they keep what they say."""

import dataclasses
from functools import cache

import numpy as np
import pytest

import proxgt as pg
from plan_cases import COUNT, random_case
from proxgt.theory import Constant, Constants, constants, plan


@cache
def planned(seed, guarantee):
    case = random_case(seed)
    return plan(
        case.problem, case.network, case.epsilon, case.method, guarantee=guarantee, timed=False
    )


def certified(seed, guarantee):
    """What one run of the plan says, at every node."""
    case, found = random_case(seed), planned(seed, guarantee)
    every = max(1, found.steps // 100)
    options = {"seed": seed, "record_every": every, "metric_at": "nodes"}
    result = pg.solve(case.problem, case.network, found.method, found.steps, **options)
    return result.certificate(case.epsilon, found)


def times_cheaper(seed):
    """Samples of the guaranteed plan over those of the practical one and its pilot."""
    found = planned(seed, False)
    return planned(seed, True).samples / (found.samples + found.pilot.samples)


def check_guaranteed(seed):
    found = planned(seed, True)
    assert found.bound is not None
    assert found.bound.holds
    assert found.bound.value <= found.epsilon**2
    proof = certified(seed, True)
    assert proof.met
    assert proof.samples == pytest.approx(found.samples)
    assert proof.rounds == found.rounds


@pytest.mark.parametrize("seed", [0, 4])
def test_guaranteed_plans_reach_epsilon(seed):
    check_guaranteed(seed)


@pytest.mark.parametrize("seed", [0, 1])
def test_practical_plans_are_cheap(seed):
    assert times_cheaper(seed) >= 20
    assert certified(seed, False).met


@pytest.mark.slow
def test_twenty_guaranteed_plans_reach_epsilon():
    for seed in range(COUNT):
        check_guaranteed(seed)


@pytest.mark.slow
def test_practical_plans_reach_epsilon_in_18_of_20_with_20_times_fewer_samples():
    met = [certified(seed, False).met for seed in range(COUNT)]
    assert sum(met) >= 0.9 * COUNT
    assert min(map(times_cheaper, range(COUNT))) >= 20


@pytest.fixture(scope="module")
def case():
    one = random_case(0)
    return one.problem, one.network, one.epsilon, constants(one.problem, one.network)


def test_all_methods_and_both_kinds_of_consensus_are_compared(case):
    problem, network, epsilon, known = case
    found = plan(problem, network, epsilon, given=known, timed=False)
    pairs = {(c.name, type(c.consensus).__name__) for c in found.choices}
    assert pairs == {(a, b) for a in ("SA", "SR-O", "SR-E") for b in ("Gossip", "Chebyshev")}
    for choice in found.choices:
        assert choice.bound.holds
        assert choice.bound.value <= epsilon**2
        cost = choice.method.cost(problem, choice.parameters.steps)
        assert cost.samples == pytest.approx(choice.parameters.samples)
        assert cost.gradients == pytest.approx(choice.parameters.gradients)
        assert cost.rounds == choice.parameters.rounds
    for text in ("SR-E", "Chebyshev(", "binds", "eq. (39)", "epsilon^2", "lambda_*"):
        assert text in repr(found)


@pytest.mark.parametrize("method", ["SA", "SR-O", "SR-E"])
def test_a_plan_is_a_config_too(case, method):
    problem, network, epsilon, known = case
    found = plan(problem, network, epsilon, method, given=known, timed=False)
    tables = found.as_config()
    options = dict(tables["method"])
    consensus = dict(options.pop("consensus"))
    options["consensus"] = getattr(pg, consensus.pop("name"))(**consensus)
    again = getattr(pg, options.pop("name"))(**options)
    assert repr(again) == repr(found.method)
    assert tables["run"] == {"steps": found.steps}


@pytest.mark.parametrize("guarantee", [True, False])
def test_what_is_minimised_is_least(case, guarantee):
    problem, network, epsilon, known = case
    options = {"given": known, "timed": False, "guarantee": guarantee}
    plans = {
        "samples": plan(problem, network, epsilon, **options),
        "rounds": plan(problem, network, epsilon, minimise="rounds", **options),
        "cost": plan(
            problem, network, epsilon, minimise="cost", sample_cost=1, round_cost=1, **options
        ),
    }
    prices = {
        "samples": lambda p: p.samples,
        "rounds": lambda p: p.rounds,
        "cost": lambda p: p.samples + p.rounds,
    }
    for name, price in prices.items():
        assert price(plans[name]) <= 1.05 * min(price(other) for other in plans.values())
    assert plans["rounds"].rounds < plans["samples"].rounds


def test_no_choice_nearby_is_much_cheaper(case):
    """The grid against every period and batch of a small problem, by the closed form."""
    problem, network, epsilon, known = case
    s = known.scales()
    found = plan(problem, network, epsilon, "SR-E", given=known, timed=False, consensus="chebyshev")
    least = np.inf  # over a network that does not matter
    for q in range(1, 40):
        for b in range(1, 21):
            a = min(
                1 / 8 / s.smoothness,
                np.sqrt(s.nodes * b / 152 / q) / s.mean_squared_smoothness,
            )
            T = q * max(2, np.ceil(8 * s.gap / a / epsilon**2 / q))
            least = min(least, T / q * s.samples + (T - T / q) * b)
    assert found.samples <= 1.06 * least


def by_hand(network, L, nu, zeta, gap):
    """Given constants of a population risk."""
    values = [Constant.of(v, "given") for v in (L, L, nu, zeta, gap, network.mixing_rate)]
    return Constants(*values, np.full(network.nodes, nu), network.nodes, float("inf"))


def test_chebyshev_needs_about_the_root_of_the_rounds():
    problem, network = pg.tasks.noisy_quadratic(32, p=4), pg.Network.path(32)
    known = by_hand(network, L=1.0, nu=0.5, zeta=1.0, gap=1.0)
    found = plan(problem, network, 1.0, "SR-O", given=known, timed=False)
    rounds = {type(c.consensus).__name__: c.parameters.mixing.rounds for c in found.choices}
    assert rounds["Gossip"] > 8 * rounds["Chebyshev"]


def test_a_directed_network_is_planned_with_gossip():
    problem, network = pg.tasks.noisy_quadratic(5, p=4), pg.Network.directed_ring(5)
    known = by_hand(network, L=1.0, nu=0.5, zeta=1.0, gap=1.0)
    found = plan(problem, network, 1.0, given=known, timed=False)
    assert {type(c.consensus).__name__ for c in found.choices} == {"Gossip"}
    assert {c.name for c in found.choices} == {"SA", "SR-O"}
    assert found.rests_on == ()
    with pytest.raises(ValueError, match="symmetric"):
        plan(problem, network, 1.0, consensus="chebyshev", given=known, timed=False)
    with pytest.raises(ValueError, match="population risk"):
        plan(problem, network, 1.0, "SR-E", given=known, timed=False)


def test_a_guarantee_names_the_estimates_it_rests_on(case):
    problem, network, epsilon, known = case
    guess = dataclasses.replace(known.smoothness, source="estimate", upper_source="estimate")
    found = plan(
        problem,
        network,
        epsilon,
        given=dataclasses.replace(known, smoothness=guess),
        timed=False,
    )
    assert found.rests_on == ("smoothness",)
    assert "as far as these estimates are right: smoothness" in repr(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"minimise": "sample"}, "did you mean 'samples'"),
        ({"minimise": "cost"}, "needs sample_cost"),
        ({"round_cost": 1.0}, "goes with minimise='cost'"),
        ({"minimise": "time"}, "needs timed=True"),
        ({"method": "SRO"}, "did you mean 'SR-O'"),
    ],
)
def test_wrong_arguments_are_named(case, options, message):
    problem, network, _, known = case
    with pytest.raises(ValueError, match=message):
        plan(problem, network, **({"epsilon": 1.0, "given": known, "timed": False} | options))


def test_what_stands_for_true_is_not_true(case):
    problem, network, _, known = case
    with pytest.raises(TypeError, match=r"guarantee must be True or False, got 'maybe'"):
        plan(problem, network, 1.0, guarantee="maybe", given=known, timed=False)


@pytest.mark.parametrize("guarantee", [True, False])
@pytest.mark.parametrize("epsilon", [1e-7, 1e-170])
def test_an_epsilon_that_no_run_could_reach_is_refused_by_name(case, guarantee, epsilon):
    problem, network, _, known = case
    with pytest.raises(ValueError, match=f"epsilon={epsilon:g} is too small"):
        plan(problem, network, epsilon, guarantee=guarantee, given=known, timed=False)


def test_a_method_that_no_run_could_count_leaves_the_others(case):
    """b of SA and B of SR-O are at least 76 nu^2/(n epsilon^2), here above 2^31."""
    problem, network, epsilon, known = case
    nu = Constant.of(1e4 * epsilon * np.sqrt(network.nodes), "given")
    found = plan(problem, network, epsilon, given=dataclasses.replace(known, nu=nu), timed=False)
    assert {choice.name for choice in found.choices} == {"SR-E"}


def test_given_constants_must_be_of_this_problem(case):
    problem, network, epsilon, known = case
    more = pg.Network.ring(network.nodes + 1)
    for other, options, message in (
        (more, {"given": known}, "they must agree"),
        (network, {"given": dataclasses.replace(known, nodes=99)}, "given must be of this problem"),
    ):
        with pytest.raises(ValueError, match=message):
            plan(problem, other, epsilon, timed=False, **options)
    with pytest.raises(TypeError, match=r"given must be theory\.constants"):
        plan(problem, network, epsilon, timed=False, given=known.scales())


def test_a_pilot_stays_short_however_small_epsilon_is():
    problem, network = pg.tasks.noisy_quadratic(1, 1, 1.0, 0.5), pg.Network.complete(1)
    found = plan(problem, network, 1e-3, guarantee=False, timed=False)
    assert found.pilot.samples <= 100 * 10_000


@pytest.mark.slow
def test_predicted_seconds_are_of_the_right_order(case):
    problem, network, epsilon, known = case
    found = plan(problem, network, epsilon, "SR-E", "time", given=known)
    result = pg.solve(problem, network, found.method, found.steps, record_every=found.steps)
    assert found.seconds is not None
    assert result.history["seconds"][-1] / 30 < found.seconds < 30 * result.history["seconds"][-1]

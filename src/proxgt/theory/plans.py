"""From epsilon to a method: parameters that a theorem promises, or that its scalings suggest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proxgt import checks
from proxgt.methods import ProxGT
from proxgt.methods.requirements import require_fit
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.theory.bounds import (
    COEFFICIENTS,
    METHODS,
    Bound,
    Coefficients,
    Scales,
    conditions,
)
from proxgt.theory.choices import Choice, cheapest, choice_of
from proxgt.theory.constants import Constants, constants, require_fixed
from proxgt.theory.pilot import LEAST_SHARE, PRACTICAL, Pilot, run_pilot
from proxgt.theory.search import Mixing, Parameters, Price, Usage, mixings, search
from proxgt.theory.timing import StepTime, step_time

MINIMISE = ("samples", "rounds", "time", "cost")
KINDS = ("gossip", "chebyshev")


@dataclass(frozen=True, repr=False)
class Plan:
    """A method that is to reach epsilon, and what that takes.

        plan = proxgt.plan(problem, network, epsilon=0.1)
        result = proxgt.solve(problem, network, plan.method, plan.steps)

    Attributes:
        choice: the cheapest choice; `choices` has every method with every consensus.
        epsilon: of Definition 3: the average of the metric is to be at most epsilon^2.
        guarantee: whether the bound of the theorem is at most epsilon^2, given `constants`.
        rests_on: constants that are estimates, on which the guarantee is conditional.
        pilot: of a practical plan, the short run that calibrated it.
    """

    choice: Choice
    choices: tuple[Choice, ...]
    epsilon: float
    guarantee: bool
    minimise: str
    constants: Constants
    rests_on: tuple[str, ...]
    pilot: Pilot | None

    @property
    def method(self) -> ProxGT:
        """The method, ready for `solve`."""
        return self.choice.method

    @property
    def steps(self) -> int:
        """T."""
        return self.choice.parameters.steps

    @property
    def samples(self) -> float:
        """Predicted samples per node."""
        return self.choice.parameters.samples

    @property
    def rounds(self) -> int:
        """Predicted rounds, 2KT."""
        return self.choice.parameters.rounds

    @property
    def seconds(self) -> float | None:
        """Predicted seconds on this machine; None where it was not timed."""
        return self.choice.seconds

    @property
    def bound(self) -> Bound | None:
        """The theorem's bound, of a guaranteed plan."""
        return self.choice.bound

    def as_config(self) -> dict[str, dict[str, Any]]:
        """The [method] and [run] tables of a config that runs this plan."""
        p = self.choice.parameters
        sizes = {"batch": p.batch, "period": p.period, "refresh": p.refresh}
        if p.method == "SR-E":
            del sizes["refresh"]
        consensus = {"name": type(self.choice.consensus).__name__, "rounds": p.mixing.rounds}
        method = {
            "name": "ProxGT_" + p.method.replace("-", "_"),
            **{name: size for name, size in sizes.items() if size is not None},
            "step_size": p.step_size,
            "consensus": consensus,
        }
        return {"method": method, "run": {"steps": p.steps}}

    def __repr__(self) -> str:
        from proxgt.theory.tables import plan_table

        return plan_table(self)


def plan(
    problem: Problem,
    network: Network,
    epsilon: float,
    method: str = "auto",
    minimise: str = "samples",
    sample_cost: float | None = None,
    round_cost: float | None = None,
    guarantee: bool = True,
    consensus: str = "auto",
    x0: Any = None,
    seed: int = 0,
    timed: bool = True,
    given: Constants | None = None,
) -> Plan:
    """The cheapest ProxGT that reaches epsilon in the sense of Definition 3.

    Args:
        problem, network, x0: as for `solve`.
        epsilon: what the average of the metric is to be below, squared.
        method: "SA", "SR-O", "SR-E", or "auto" for the cheapest of them.
        minimise: "samples" or "rounds" per node, "time" on this machine, or "cost" =
            sample_cost * samples + round_cost * rounds. What differs by less than 2 % is
            settled by rounds, or by samples for "rounds" and "cost".
        guarantee: True for parameters with the theorem's bound at most epsilon^2; False for
            its scalings with constants from a short pilot run.
        consensus: "gossip", "chebyshev", or "auto" for the cheaper.
        seed: of the pilot and of measured constants.
        timed: whether to time this machine, some seconds. "time" needs it.
        given: the constants, where `constants` has found them already.
    """
    _check(epsilon, method, minimise, sample_cost, round_cost, consensus, guarantee, timed)
    require_fit(problem, network)
    require_fixed(network)
    problem = problem if x0 is None else problem.starting_at(x0)
    known = constants(problem, network, seed=seed) if given is None else _given(given, problem)
    scales = known.scales(guarantee)
    names = _methods(problem, method)
    clock = step_time(problem, network) if timed else None
    prices = _prices(minimise, sample_cost, round_cost, clock)
    mixes = {kind: mixings(network, kind) for kind in _kinds(network, consensus)}
    table = {
        name: COEFFICIENTS[name, "corrected"] if guarantee else PRACTICAL[name] for name in names
    }
    pilot, share = None, 0.0
    if not guarantee:
        share = LEAST_SHARE
        middle = _pilot_mixing(scales, next(iter(mixes.values())))
        upper = max(known.gap.upper, scales.gap)
        pilot = run_pilot(problem, network, scales, upper, epsilon, middle, seed)
        table = {name: pilot.coefficients(name, scales) for name in names}
    found = [
        search(name, scales, table[name], epsilon, mixes[kind], prices, share)
        for name in names
        for kind in mixes
    ]
    choices = tuple(
        choice_of(p, scales, table[p.method], guarantee, clock, prices[0])
        for p in _runnable(found, epsilon)
    )
    best = cheapest(choices, prices[1])
    rests_on = known.estimates(best.name) if guarantee else ()
    return Plan(best, choices, epsilon, guarantee, minimise, known, rests_on, pilot)


def _check(
    epsilon: float,
    method: str,
    minimise: str,
    sample_cost: float | None,
    round_cost: float | None,
    consensus: str,
    guarantee: bool,
    timed: bool,
) -> None:
    checks.positive_number("epsilon", epsilon)
    checks.one_of("method", method, ("auto", *METHODS))
    checks.one_of("minimise", minimise, MINIMISE)
    checks.one_of("consensus", consensus, ("auto", *KINDS))
    checks.boolean("guarantee", guarantee)
    checks.boolean("timed", timed)
    for name, value in (("sample_cost", sample_cost), ("round_cost", round_cost)):
        if minimise == "cost" and value is None:
            raise ValueError(f"minimise='cost' needs {name}, a number >= 0")
        if value is not None:
            checks.non_negative_number(name, value)
            if minimise != "cost":
                raise ValueError(f"{name}={value!r} goes with minimise='cost'")
    if minimise == "time" and not timed:
        raise ValueError("minimise='time' needs timed=True")


def _runnable(found: list[Parameters | None], epsilon: float) -> list[Parameters]:
    """Those that a run can count, or a refusal where there are none."""
    runnable = [parameters for parameters in found if parameters is not None]
    if not runnable:
        raise ValueError(
            f"epsilon={epsilon:g} is too small: more than {checks.MOST} steps, or samples at one "
            "step, would be needed: give a larger epsilon"
        )
    return runnable


def _given(known: Constants, problem: Problem) -> Constants:
    """Constants that were found already, if they can be of this problem."""
    if not isinstance(known, Constants):
        raise TypeError(f"given must be theory.constants(...), got {checks.shortened(known)}")
    if known.nodes != problem.nodes:
        raise ValueError(
            f"given must be of this problem, which has {problem.nodes} nodes, and is of "
            f"{known.nodes}: call theory.constants(problem, network)"
        )
    return known


def _methods(problem: Problem, method: str) -> tuple[str, ...]:
    if method == "SR-E" and not problem.exact:
        raise ValueError(
            "method='SR-E' needs the exact gradient of an empirical risk, and the problem is a "
            "population risk: use 'SR-O' or 'SA'"
        )
    if method != "auto":
        return (method,)
    return METHODS if problem.exact else METHODS[:2]


def _kinds(network: Network, consensus: str) -> tuple[str, ...]:
    if consensus == "chebyshev" and not network.symmetric:
        raise ValueError(f"consensus='chebyshev' needs a symmetric W, and {network!r} has none")
    if consensus != "auto":
        return (consensus,)
    return KINDS if network.symmetric else KINDS[:1]


def _pilot_mixing(scales: Scales, mixes: list[Mixing]) -> Mixing:
    """The fewest rounds with which the network does not limit the practical step size."""
    c: Coefficients = PRACTICAL["SR-O"]
    for mixing in mixes:
        smooth, network = conditions(c, "SA", scales, mixing.contraction, 1)
        if network.limit >= smooth.limit:
            return mixing
    return mixes[-1]


def _prices(
    minimise: str, sample_cost: float | None, round_cost: float | None, clock: StepTime | None
) -> tuple[Price, Price]:
    def samples(usage: Usage) -> Any:
        return usage.samples

    def rounds(usage: Usage) -> Any:
        return usage.rounds

    def cost(usage: Usage) -> Any:
        return (sample_cost or 0.0) * usage.samples + (round_cost or 0.0) * usage.rounds

    table: dict[str, tuple[Callable[[Usage], Any], Callable[[Usage], Any]]] = {
        "samples": (samples, rounds),
        "rounds": (rounds, samples),
        "cost": (cost, samples),
    }
    if clock is not None:
        table["time"] = (clock, rounds)
    return table[minimise]

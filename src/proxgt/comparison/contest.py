"""One method under a budget: the problem it runs on, the steps it may make, the runs.

`compare` and `tune` share this, so that a tuned method and the methods it is compared with
are run, counted and measured alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from proxgt import checks
from proxgt.methods.base import Method, prepared
from proxgt.methods.centralized import SingleNode
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.result import Result
from proxgt.solve import solve

BUDGETS = ("samples", "gradients", "rounds", "steps")
_MOST_STEPS = 10**9


@dataclass(frozen=True)
class Contest:
    """What every method of a comparison is run on and measured by.

    `options` go to `solve` with every run: x0, metric_step, metric_at and dtype.
    """

    problem: Problem
    network: Network
    budget: Mapping[str, float]
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Mapping) or not self.budget:
            raise ValueError(
                f'budget must be a dict such as {{"samples": 1e5}}, got {self.budget!r}'
            )
        for name, limit in self.budget.items():
            checks.one_of("budget", name, BUDGETS)
            checks.positive_number(f"budget[{name!r}]", limit)
        if self.options.get("metric_step") is not None:
            checks.positive_number("metric_step", self.options["metric_step"])

    @cached_property
    def metric_step(self) -> float:
        """The common step of the gradient mapping: as given, or 1/L.

        1/L belongs to the problem, so that comparisons of other methods are on its scale too.
        """
        return self.options.get("metric_step") or 1 / self.problem.smoothness

    @cached_property
    def _pooled(self) -> Problem:
        return self.problem.pooled()

    def place(self, method: Method) -> tuple[Problem, Network]:
        """The problem and network this method runs on; one machine gets all data."""
        if isinstance(method, SingleNode) and self.network.nodes > 1:
            return self._pooled, Network.complete(1)
        return self.problem, self.network

    def settled(self, method: Method) -> Method:
        """The method with numbers for all in it that says "auto"."""
        problem, network = self.place(method)
        return prepared(method, network, self._started(problem))

    def check(self, method: Method) -> None:
        """Refuse what cannot run, or not within the budget."""
        problem, network = self.place(method)
        prepared(method, network).check(self._started(problem), network)
        self.steps(method)

    def _started(self, problem: Problem) -> Problem:
        """The problem with the start of the runs, which some methods look at."""
        x0 = self.options.get("x0")
        return problem if x0 is None else problem.starting_at(x0)

    def steps(self, method: Method) -> int:
        """The most steps within the budget."""
        problem, network = self.place(method)
        method = prepared(method, network)

        def inside(steps: int) -> bool:
            cost = method.cost(problem, steps)
            spent = {
                "samples": cost.samples,
                "gradients": cost.gradients,
                "rounds": cost.rounds,
                "steps": steps,
            }
            return all(spent[name] <= limit for name, limit in self.budget.items())

        if not inside(1):
            raise ValueError(
                f"budget {dict(self.budget)!r} must allow a step of {type(method).__name__}, "
                f"which costs {method.cost(problem, 1)}"
            )
        enough = 1
        while inside(2 * enough):
            enough *= 2
            if enough > _MOST_STEPS:
                raise ValueError(
                    f"budget {dict(self.budget)!r} must end {type(method).__name__}, which costs "
                    f"{method.cost(problem, 1)}: bound its samples or steps too"
                )
        beyond = 2 * enough
        while beyond - enough > 1:
            middle = (enough + beyond) // 2
            enough, beyond = (middle, beyond) if inside(middle) else (enough, middle)
        return enough

    def run(self, method: Method, steps: int, record_every: int, seed: int) -> Result:
        """One run, measured with the common metric step."""
        problem, network = self.place(method)
        options = {**self.options, "metric_step": self.metric_step}
        return solve(
            problem,
            network,
            method,
            steps,
            record_every=record_every,
            seed=seed,
            **options,
        )


def seeds_of(seeds: Any) -> tuple[int, ...]:
    """0 to seeds - 1, or the seeds themselves."""
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        return tuple(range(checks.positive_int("seeds", seeds)))
    chosen = tuple(checks.seed("seeds", seed) for seed in seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"seeds must be distinct and at least one, got {seeds!r}")
    return chosen

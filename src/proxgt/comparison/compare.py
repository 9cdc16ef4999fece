"""Many methods under one budget: same problem, graph, metric and counting, several seeds.

c = compare(problem, network, {"SR-E": ..., "GT-SARAH": ...}, budget={"samples": 1e5})
print(c)                   how the runs ended: means and confidence intervals
c.averages("metric")       the same at every record: the tidy table of means
c.to_pandas()              every record of every run
c.curves("rounds")         mean and confidence interval on a common grid
c.summary(1e-4)            what it took to reach a metric of 1e-4
c.plot("compare.png")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proxgt import checks
from proxgt.comparison.comparison import Comparison
from proxgt.comparison.contest import Contest, seeds_of
from proxgt.methods.base import Method
from proxgt.networks import Network
from proxgt.problems import Problem


def compare(
    problem: Problem,
    network: Network,
    methods: Mapping[str, Method] | Sequence[Method],
    budget: Mapping[str, float],
    seeds: int | Sequence[int] = 3,
    records: int = 50,
    x0: Any = None,
    metric_step: float | None = None,
    metric_at: str = "mean",
    dtype: str = "float32",
) -> Comparison:
    """Run methods under one budget and measure them alike.

    Methods of one machine run on `problem.pooled()`; their samples are those of that machine.

    Args:
        problem: the problem.
        network: the network.
        methods: by their labels, or a list of them.
        budget: what a run may spend per node, such as {"samples": 1e5}; of "samples",
            "gradients", "rounds" and "steps". With several, the first to run out ends it.
        seeds: how many runs of each method, or their seeds.
        records: records of a run, about.
        x0: params all nodes start from; by default the problem's own.
        metric_step: step of the gradient mapping, the same for all; by default 1/L.
        metric_at, dtype: as for `solve`.
    """
    options = {"x0": x0, "metric_step": metric_step, "metric_at": metric_at, "dtype": dtype}
    contest = Contest(problem, network, budget, options)
    labelled, chosen = labels_of(methods), seeds_of(seeds)
    checks.positive_int("records", records)
    labelled = {label: contest.settled(method) for label, method in labelled.items()}
    for method in labelled.values():  # refuse before any time is spent
        contest.check(method)
    results = {}
    for label, method in labelled.items():
        steps = contest.steps(method)
        every = -(-steps // records)
        results[label] = [contest.run(method, steps, every, seed) for seed in chosen]
    return Comparison(results, chosen)


def labels_of(methods: Any) -> dict[str, Method]:
    """Methods by label; those of a list are called by their class, and estimator if need be."""
    if isinstance(methods, Mapping):
        labelled = dict(methods)
    elif isinstance(methods, Sequence) and not isinstance(methods, str):
        classes = [type(method).__name__ for method in methods]
        names = [
            f"{name} {type(method.estimator).__name__}"
            if classes.count(name) > 1 and hasattr(method, "estimator")
            else name
            for name, method in zip(classes, methods, strict=True)
        ]
        labelled = dict(zip(names, methods, strict=True))
        if len(labelled) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"methods must tell {twice!r} apart: give a dict of labels to methods")
    else:
        raise TypeError(f"methods must be a dict of labels to methods, or a list, got {methods!r}")
    if not labelled:
        raise ValueError("methods must hold at least one method, got none")
    for label, method in labelled.items():
        if not isinstance(method, Method):
            raise TypeError(f"methods[{label!r}] must be a Method, got {method!r}")
    return labelled

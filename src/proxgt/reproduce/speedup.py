"""Claim: n nodes need n times fewer samples each than the centralized optimal method on one.

(Theorems 1-3: linear speedup.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from proxgt import plots
from proxgt.consensus import Gossip
from proxgt.methods import Method, ProxSARAH, ProxSGD, ProxSpiderBoost
from proxgt.networks import Network
from proxgt.reproduce.findings import Check, Finding, Interval, log_axes, slopes
from proxgt.reproduce.runs import Reached, reach
from proxgt.reproduce.settings import (
    Effort,
    bounded_quadratic,
    enough,
    sized,
    sparse_logistic,
    unit_logistic,
)
from proxgt.theory import plan
from proxgt.theory.bounds import Scales
from proxgt.theory.constants import constants

TITLE = "samples per node, against the number of nodes"
NODES = (1, 2, 4, 8, 16, 32)
_QUICK_NODES = (1, 4, 32)
PROBLEMS: dict[str, Callable[[int], Any]] = {
    "SA": bounded_quadratic,
    "SR-O": bounded_quadratic,
    "SR-E": unit_logistic,
}
OWN = "SR-E, own L"  # on data where L grows with n, measured beside the claim
_OWN_EPSILON = 0.2
_MOST = 30_000
_WITHIN = 0.1  # of the slope -1
_FACTOR = max(NODES) ** _WITHIN  # what such a slope comes to from the first n to the last


def epsilon_of(method: str, scales: Scales) -> float:
    """An epsilon at which b, q and B are whole for every n, so that rounding costs nothing.

    SA has b = 2 (16^2)/n; SR-O b = 32/n, q = 32, B = 2 (32^2)/n. SR-E has b = 32/n and q = 32
    of its own accord.
    """
    if method == "SR-E":
        return 0.01
    # a hair more than nu over a whole number: `ceil` must not see the rounding of a division
    return scales.nu / (16 if method == "SA" else 32) * (1 + 1e-9)


def run(effort: Effort) -> Finding:
    """Least T with Definition 3's average at most eps^2, for a range of n and for one node."""
    rows: list[dict[str, Any]] = []
    nodes = _QUICK_NODES if effort.quick else NODES
    tests: list[Check] = []
    for method in PROBLEMS:
        alone = _alone(method, effort, rows)
        found = _spread(method, nodes, effort, rows)
        tests += [
            Check.slope(f"{method}: slope of samples against n", nodes, found, -1, _WITHIN),
            _ratio(method, nodes, found, alone),
        ]
    own = _own_smoothness(effort, rows)
    return Finding(tuple(tests), rows, lambda axes: _draw(axes, rows), 3, (*_NOTES, own))


def _ratio(method: str, nodes: Sequence[int], found: np.ndarray, alone: np.ndarray) -> Check:
    """n times the samples of a node over those of the centralized method, where farthest off."""
    ratios = [Interval.of_ratio(n * mine, alone) for n, mine in zip(nodes, found.T, strict=True)]
    worst = int(np.argmax([abs(np.log(ratio.value)) for ratio in ratios]))
    name = f"{method}: n x samples / centralized samples, farthest from 1 (n = {nodes[worst]})"
    return Check(name, ratios[worst], 1 / _FACTOR, _FACTOR)


def _spread(
    method: str, nodes: Sequence[int], effort: Effort, rows: list[dict[str, Any]]
) -> np.ndarray:
    """Samples per node of ProxGT on rings: (seeds, len(nodes))."""
    largest = _scales(method, max(NODES))
    every = []
    for n in nodes:
        problem, network = PROBLEMS[method](n), Network.ring(n)
        known = constants(problem, network)
        scales = with_smoothness_of(known.scales(), largest)
        epsilon = epsilon_of(method, scales)
        one = sized(method, scales, epsilon, enough(network, scales.zeta))
        found = reach(problem, network, one, epsilon, effort.seeds, _MOST)
        promised = plan(
            problem, network, epsilon, method, given=known, timed=False, consensus="gossip"
        )
        _record(rows, method, f"ProxGT-{method}", n, epsilon, effort.seeds, found, promised.samples)
        every.append(found.samples)
    return np.array(every).T


def with_smoothness_of(scales: Scales, other: Scales) -> Scales:
    """These scales with the L of others: the theorems compare n at one L."""
    return replace(
        scales,
        smoothness=other.smoothness,
        mean_squared_smoothness=other.mean_squared_smoothness,
    )


def _alone(method: str, effort: Effort, rows: list[dict[str, Any]]) -> np.ndarray:
    """Samples of the best centralized method on one node with the same Psi, L and nu: (seeds,).

    Drawn apart from ProxGT, which with n = 1 is one of these methods.
    """
    problem, network = PROBLEMS[method](1), Network.complete(1)
    scales = with_smoothness_of(_scales(method, 1), _scales(method, max(NODES)))
    epsilon = epsilon_of(method, scales)
    seeds = [1000 + seed for seed in effort.seeds]
    every = []
    for other in centralized(method, scales, epsilon):
        found = reach(problem, network, other, epsilon, seeds, _MOST)
        _record(rows, method, type(other).__name__, 1, epsilon, seeds, found)
        every.append(found.samples)
    return min(every, key=np.mean)


def centralized(method: str, scales: Scales, epsilon: float) -> list[Method]:
    """The centralized optimal methods with the same b, q, B and alpha of n = 1."""
    one = sized(method, scales, epsilon, Gossip(1))
    sizes: Any = one.estimator
    if method == "SA":
        return [ProxSGD(sizes.batch, one.step_size)]
    return [
        kind(sizes.batch, sizes.period, one.step_size, refresh=sizes.refresh)
        for kind in (ProxSpiderBoost, ProxSARAH)
    ]


def _scales(method: str, n: int) -> Scales:
    return _scales_of(PROBLEMS[method], n)


@cache
def _scales_of(make: Callable[[int], Any], n: int) -> Scales:
    return constants(make(n), Network.ring(n)).scales()


def _own_smoothness(effort: Effort, rows: list[dict[str, Any]]) -> str:
    """SR-E where L grows with n, each n with its own: what a comparison at one L leaves out."""
    nodes = (1, 32) if effort.quick else NODES
    found, smoothness = [], []
    for n in nodes:
        problem, network = sparse_logistic(n), Network.ring(n)
        scales = constants(problem, network).scales()
        one = sized("SR-E", scales, _OWN_EPSILON, enough(network, scales.zeta))
        reached = reach(problem, network, one, _OWN_EPSILON, effort.seeds, _MOST)
        _record(rows, OWN, "ProxGT-SR-E", n, _OWN_EPSILON, effort.seeds, reached)
        found.append(reached.samples)
        smoothness.append(scales.mean_squared_smoothness)
    slope = Interval.of(slopes(nodes, np.array(found).T))
    return (
        "The theorems' L is one for all nodes, and the claim is made at one L. A shard may be less "
        f"smooth than the whole: with columns of variance 1 in place of rows of length 1, L' is "
        f"{smoothness[0]:.3g} for n = 1 and {smoothness[-1]:.3g} for n = {nodes[-1]} sorted by "
        f"label, and with alpha = 1/(2L') of each n the slope is {slope} (not decisive; 'own L')."
    )


def _record(
    rows: list[dict[str, Any]],
    method: str,
    name: str,
    n: int,
    epsilon: float,
    seeds: Sequence[int],
    found: Reached,
    promised: float | None = None,
) -> None:
    for seed, steps, samples in zip(seeds, found.steps, found.samples, strict=True):
        rows.append(
            {
                "method": method,
                "run": name,
                "nodes": n,
                "epsilon": epsilon,
                "seed": seed,
                "steps": steps,
                "samples": samples,
                "guaranteed": "" if promised is None else promised,
            }
        )


def _draw(panels: Sequence[Axes], rows: Sequence[dict[str, Any]]) -> None:
    for axes, method in zip(panels, PROBLEMS, strict=True):
        draw_method(axes, rows, method)
        axes.set_title(f"ProxGT-{method}", fontsize=11)
    panels[0].set_ylabel("samples per node")


def draw_method(axes: Axes, rows: Sequence[dict[str, Any]], method: str) -> None:
    """Samples against n, those of one node over n, and what the theorem guarantees."""
    mine = [row for row in rows if row["method"] == method]
    ours = [row for row in mine if row["run"].startswith("ProxGT")]
    _points(axes, ours, "o", plots.BLUE, f"ProxGT-{method}, each seed")
    if method == "SR-E":
        other = [row for row in rows if row["method"] == OWN]
        _points(axes, other, "s", plots.GREEN, "other data, own L of each n")
    nodes = np.array(NODES)
    runs = dict.fromkeys(row["run"] for row in mine if row not in ours)
    for name, dash in zip(runs, (":", "-."), strict=False):
        mean = np.mean([row["samples"] for row in mine if row["run"] == name])
        axes.plot(nodes, mean / nodes, dash, color="0.3", label=f"{name} on one node, / n")
    bound = {row["nodes"]: row["guaranteed"] for row in ours}
    dashed = axes.plot(list(bound), list(bound.values()), "--", color=plots.VERMILION)
    dashed[0].set_label("guaranteed by the theorem")
    log_axes(axes, "nodes n", "", NODES, legend_below=True)


def _points(
    axes: Axes, rows: Sequence[dict[str, Any]], marker: str, colour: str, label: str
) -> None:
    axes.plot(
        [row["nodes"] for row in rows],
        [row["samples"] for row in rows],
        marker,
        color=colour,
        markersize=4,
        label=label,
    )


_NOTES = (
    "Rings, K as the theorems ask. Psi, nu, L and epsilon are the same for every n, and so is "
    "alpha; b, q and B are whole for every n. For SR-E all nodes together hold 1,024 samples.",
    "The centralized methods, on one node with the same Psi, L and nu, have the parameters of "
    "n = 1 and draws of their own; of two the better counts. A node that drew from all nodes in "
    "turn would have a larger nu, and the comparison would flatter ProxGT.",
    "A complexity is promised up to constants, yet with the same alpha and n b ProxGT that "
    f"averages exactly is the centralized method, so that the ratio is 1 but for the network. The "
    f"slope may be off by {_WITHIN}, and the ratio by what that comes to over a factor of "
    f"{max(NODES)}: {_FACTOR:.2f}.",
)

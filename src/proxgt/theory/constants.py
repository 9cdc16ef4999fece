"""The constants the theorems speak of, each with where it came from."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from proxgt import checks
from proxgt.methods.requirements import require_fit
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.theory import known, measure
from proxgt.theory.bounds import Scales

SOURCES = ("given", "exact", "bound", "estimate")


@dataclass(frozen=True)
class Constant:
    """A number and where it came from.

    Attributes:
        value: the number for practical use.
        source: "given" by the user; "exact"; "bound", proven to be on the safe side; or
            "estimate", measured, which may be on either side.
        upper: the number that guarantees use: a proven bound, or for a variance that was
            measured the upper end of a 99 % confidence interval.
        upper_source: where that came from.
        how: a few words.
    """

    value: float
    source: str
    upper: float
    upper_source: str
    how: str = ""

    @classmethod
    def of(cls, value: float, source: str, how: str = "") -> Constant:
        """A number that serves both uses."""
        checks.one_of("source", source, SOURCES)
        return cls(float(value), source, float(value), source, how)

    def bounded_by(self, upper: float | None) -> Constant:
        """This number for practice, and a proven bound for guarantees."""
        if upper is None or self.source in ("given", "exact", "bound"):
            return self
        return Constant(self.value, self.source, float(upper), "bound", self.how)

    @property
    def proven(self) -> bool:
        """Whether a guarantee may rest on `upper`."""
        return self.upper_source != "estimate"

    def __repr__(self) -> str:
        upper = ""
        if (self.upper, self.upper_source) != (self.value, self.source):
            upper = f", at most {self.upper:.6g} ({self.upper_source})"
        return f"{self.value:.6g} ({self.source}{upper})"


@dataclass(frozen=True, repr=False)
class Constants:
    """What `constants` found out.

    Attributes:
        smoothness: L of Assumption 1. Lemma 5, Theorem 1 and the metric need it.
        mean_squared_smoothness: L of Assumption 5. Where SARAH's differences enter (Lemmas
            7(b, c), 8(b, c)) Theorems 2 and 3 need it; at least `smoothness`.
        nu: nu of Assumption 4, nodes: root mean square of nu_i.
        nu_nodes: nu_i, (n,), the values that `nu` is made of.
        zeta, gap: zeta and Delta of eq. (13), at x0.
        mixing_rate: lambda_* of eq. (8).
        nodes: n. samples: m, infinity for a population risk.
    """

    smoothness: Constant
    mean_squared_smoothness: Constant
    nu: Constant
    zeta: Constant
    gap: Constant
    mixing_rate: Constant
    nu_nodes: np.ndarray
    nodes: int
    samples: float

    def scales(self, guarantee: bool = True) -> Scales:
        """The plain numbers: upper ends for a guarantee, values for practice."""
        number = (lambda c: c.upper) if guarantee else (lambda c: c.value)
        L = number(self.smoothness)
        return Scales(
            L,
            max(L, number(self.mean_squared_smoothness)),
            number(self.nu),
            number(self.zeta),
            number(self.gap),
            self.nodes,
            self.samples,
        )

    def estimates(self, method: str) -> tuple[str, ...]:
        """The constants a guarantee of this method would rest on that are not proven."""
        needed = ["smoothness", "zeta", "gap"]
        needed += [] if method == "SA" else ["mean_squared_smoothness"]
        needed += [] if method == "SR-E" else ["nu"]
        return tuple(name for name in needed if not getattr(self, name).proven)

    def rows(self) -> list[tuple[str, Constant]]:
        """(name, constant) of every constant."""
        return [
            (f.name, getattr(self, f.name))
            for f in fields(self)
            if isinstance(getattr(self, f.name), Constant)
        ]

    def __repr__(self) -> str:
        letters = {
            "smoothness": "L",
            "mean_squared_smoothness": "L, mean-squared",
            "mixing_rate": "lambda_*",
            "gap": "Delta",
        }
        lines = [f"Constants(n = {self.nodes}, m = {self.samples:g})"]
        for name, c in self.rows():
            upper = "" if c.upper == c.value else f"<= {c.upper:.5g} ({c.upper_source})"
            lines.append(
                f"  {letters.get(name, name):<17}{c.value:<12.5g}{c.source:<10}{upper:<24}{c.how}"
            )
        return "\n".join(line.rstrip() for line in lines)


def constants(
    problem: Problem,
    network: Network,
    x0: Any = None,
    *,
    smoothness: float | None = None,
    mean_squared_smoothness: float | None = None,
    nu: float | None = None,
    zeta: float | None = None,
    lower_bound: float | None = None,
    steps: int = 30,
    samples: int = 512,
    seed: int = 0,
) -> Constants:
    """Every constant of the theorems, for this problem from x0 over this network.

    What is not given is taken from what is known of a ready-made problem, or computed, or
    measured along a short run.

    Args:
        problem, network, x0: as for `solve`.
        smoothness, mean_squared_smoothness, nu, zeta: given values.
        lower_bound: a number Psi never falls below; zero for the usual losses.
        steps: length of the short run, proximal gradient on the mean.
        samples: sample gradients a node gives at each point of it, all where it has fewer.
        seed: of their draw.
    """
    require_fit(problem, network)
    require_fixed(network)
    problem = problem if x0 is None else problem.starting_at(x0)
    facts = known.facts_of(problem)
    L = _smoothness(problem, smoothness, facts)
    path = measure.short_run(
        problem,
        L.value,
        steps,
        samples,
        seed,
        variance=(nu is None and facts.nu is None) or (zeta is None and facts.zeta is None),
        curvature=mean_squared_smoothness is None and facts.mean_squared_smoothness is None,
    )
    mss = _mean_squared(mean_squared_smoothness, facts, path, L)
    noise, nodes = _nu(nu, facts, path, problem.nodes)
    return Constants(
        L,
        mss,
        noise,
        _zeta(zeta, facts, path),
        _gap(lower_bound, facts, path),
        Constant.of(network.mixing_rate, "exact", "second singular value of W, eq. (8)"),
        nodes,
        problem.nodes,
        problem.samples_per_node,
    )


def require_fixed(network: Network) -> None:
    """Refuse a network that is not the same at every round."""
    if getattr(network, "links", None) is not None:
        raise ValueError(
            f"the theorems assume one W at every round (Assumption 2), and {network!r} varies: "
            "give the network that it varies around"
        )


def _smoothness(problem: Problem, given: float | None, facts: known.Facts) -> Constant:
    if given is not None:
        return Constant.of(checks.positive_number("smoothness", given), "given")
    own = None if problem.smoothness_is_estimate else problem.smoothness
    if facts.smoothness is not None:
        value, source = facts.smoothness
        if own is None or math.isclose(own, value, rel_tol=1e-6):
            return Constant.of(value, source, "analytic, of this ready-made loss")
    if own is not None:
        return Constant.of(own, "given", "the problem's own")
    return Constant.of(problem.smoothness, "estimate", "power iteration near x0, from below")


def _mean_squared(
    given: float | None, facts: known.Facts, path: measure.Path, L: Constant
) -> Constant:
    if given is not None:
        value = checks.positive_number("mean_squared_smoothness", given)
        return Constant.of(max(value, L.value), "given")
    if facts.mean_squared_smoothness is not None:
        value, source = facts.mean_squared_smoothness
        return Constant.of(max(value, L.value), source, facts.how)
    value = max(path.mean_squared_smoothness, L.value)
    return Constant.of(value, "estimate", "power iteration on mean H_s^2, from below")


def _nu(
    given: float | None, facts: known.Facts, path: measure.Path, nodes: int
) -> tuple[Constant, np.ndarray]:
    if given is not None:
        value = checks.non_negative_number("nu", given)
        return Constant.of(value, "given"), np.full(nodes, value)
    if facts.nu is not None:
        value, source = facts.nu
        return Constant.of(value, source, facts.how), np.full(nodes, value)
    if path.nu_nodes is None:
        raise ValueError("x0 must be in the domain of h: Psi(x0) is not finite")
    how = f"largest at {path.points} points of a short run"
    measured = Constant(path.nu, "estimate", path.nu_upper, "estimate", how)
    return measured.bounded_by(facts.nu_bound), path.nu_nodes


def _zeta(given: float | None, facts: known.Facts, path: measure.Path) -> Constant:
    if given is not None:
        return Constant.of(checks.non_negative_number("zeta", given), "given")
    if path.exact_gradients:
        return Constant.of(path.zeta, "exact", "eq. (13)")
    if facts.zeta is not None:
        return Constant.of(facts.zeta, "exact", "eq. (13)")
    return Constant.of(path.zeta, "estimate", "from sample gradients, biased upwards")


def _gap(given: float | None, facts: known.Facts, path: measure.Path) -> Constant:
    if not np.isfinite(path.first):
        raise ValueError("x0 must be in the domain of h: Psi(x0) is not finite, nor is Delta")
    if given is not None:
        low, source, how = checks.finite_number("lower_bound", given), "given", "to lower_bound"
    elif facts.lower_bound is not None:
        low, source, how = facts.lower_bound, "bound", f"to {facts.lower_bound:.5g}"
        if facts.lower_bound == 0:
            how = "to zero: loss and h are non-negative"
    else:
        value = max(path.first - path.best, 0.0)
        return Constant.of(value, "estimate", "to the best value seen: from below")
    if low > path.first + 1e-9 * max(1.0, abs(path.first)):
        raise ValueError(f"lower_bound must be below Psi(x0) = {path.first:g}, got {low:g}")
    # in practice what is left to gain is at least what a short run gained
    upper = max(path.first - low, 0.0)
    gained = min(max(path.first - path.best, 0.0), upper)
    if source == "bound" and 0 < gained < 0.999 * upper:
        return Constant(gained, "estimate", upper, source, f"best value seen; {how}")
    return Constant(upper, source, upper, source, how)

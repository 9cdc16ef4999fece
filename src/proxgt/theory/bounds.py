"""The right-hand sides of eqs. (24), (30) and (39) with the appendix's explicit constants.

With lambda = lambda_*^K, each bounds Definition 3's average of the metric over T steps:

    SA    8D/(aT) + 136 l2 z2/((1-l2)^3 T) + 348 nu2/(nb (1-l2)^3) + 544 l2 nu2/(b (1-l2)^3)
          a <= min{1/8, (1-l2)^2/(30 l)} / L                                           eq. (24)
    SR-O  8D/(aT) + 440 l2 z2/((1-l2)^3 T) + 76 nu2/(nB) + 3080 l2 nu2/((1-l2)^4 B q)
          a <= min{1/8, sqrt(nb/152q), (1-l2)^2/(146 l2)} / L,  T = Rq, R >= 2         eq. (30)
    SR-E  the same without nu                                                          eq. (39)

(D = Delta, z = zeta, l2 = lambda^2, a = step size.) `version="paper"` is what is printed.
`version="corrected"` is what the proofs support, and what plans guarantee; see
docs/theory/defects.md:

- 146 lambda in place of 146 lambda^2: the printed step to eq. (30), 21120 lambda^2 a^2 L^2/(1-l2)^4
  <= 1, needs it. With one L the bound is true without; with the two below it was not proven;
- the "1" of (2 l2 n + 1) in Lemma 8(a) drops a matrix that is entrywise non-negative for W^K
  only. It becomes lambda^3 n for any consensus, and min(1, lambda^3 n) for W^K;
- the smoothness of f_i where Lemma 5 uses it, mean-squared smoothness where SARAH does.

Arguments may be arrays, which broadcast: plans search over whole grids at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from proxgt import checks

METHODS = ("SA", "SR-O", "SR-E")
VERSIONS = ("corrected", "paper")
EQUATIONS = {"SA": "(24)", "SR-O": "(30)", "SR-E": "(39)"}


@dataclass(frozen=True)
class Scales:
    """The numbers of a problem that bounds depend on.

    Attributes:
        smoothness: L of Assumption 1, of every f_i.
        mean_squared_smoothness: L of Assumption 5, of sample gradients; at least `smoothness`.
        nu: nu of Assumption 4; zeta: eq. (13); gap: Delta of eq. (13).
        nodes: n. samples: m, infinity for a population risk.
    """

    smoothness: float
    mean_squared_smoothness: float
    nu: float
    zeta: float
    gap: float
    nodes: int
    samples: float = float("inf")

    def __post_init__(self) -> None:
        checks.positive_number("smoothness", self.smoothness)
        checks.positive_number("mean_squared_smoothness", self.mean_squared_smoothness)
        for name in ("nu", "zeta", "gap"):
            checks.non_negative_number(name, getattr(self, name))
        checks.positive_int("nodes", self.nodes)


@dataclass(frozen=True)
class Coefficients:
    """The numbers in a bound; the paper's, or practical ones for the same scalings."""

    start: float  # of lambda^2 zeta^2 / ((1 - lambda^2)^3 T)
    network: float  # a <= (1 - lambda^2)^2 / (network lambda^network_power L)
    tracking: float  # of (2 lambda^2 n + cross) nu^2/(n b (1-l2)^3), or lambda^2 nu^2/(...Bq)
    network_power: int = 1
    descent: float = 8.0  # of Delta / (a T)
    curvature: float = 8.0  # a <= 1 / (curvature L)
    variance: float = 152.0  # a <= sqrt(n b / (variance q)) / L
    noise: float = 76.0  # of nu^2 / (n b)
    noise_power: int = 0  # of 1 / (1 - lambda^2) with it
    paper_cross: bool = False  # cross = 1, as printed


_SARAH = Coefficients(start=440, network=146, tracking=3080)
_SA = Coefficients(start=136, network=30, tracking=272)
COEFFICIENTS = {
    ("SA", "corrected"): _SA,
    ("SA", "paper"): replace(_SA, noise_power=3, paper_cross=True),
    ("SR-O", "corrected"): _SARAH,
    ("SR-O", "paper"): replace(_SARAH, network_power=2),
    ("SR-E", "corrected"): _SARAH,
    ("SR-E", "paper"): replace(_SARAH, network_power=2),
}


class Term(NamedTuple):
    """One summand of a bound."""

    name: str
    value: Any


class Condition(NamedTuple):
    """A limit on the step size."""

    name: str
    limit: Any


@dataclass(frozen=True)
class Bound:
    """A bound on Definition 3's average, its summands and what it asks for.

    `holds` says whether every condition is met; `value` is the right-hand side either way.
    """

    method: str
    version: str
    step_size: float
    terms: tuple[Term, ...]
    conditions: tuple[Condition, ...]
    unmet: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The right-hand side."""
        return float(sum(term.value for term in self.terms))

    @property
    def equation(self) -> str:
        """Its number in the paper."""
        return EQUATIONS[self.method]

    @property
    def binding(self) -> Condition:
        """The condition that limits the step size most."""
        return min(self.conditions, key=lambda condition: condition.limit)

    @property
    def holds(self) -> bool:
        """Whether the step size is within every limit and T fits the period."""
        return not self.unmet and self.step_size <= self.binding.limit * (1 + 1e-12)

    def __str__(self) -> str:
        rows = [f"  {term.name:<34}{term.value:.4g}" for term in self.terms]
        limits = [
            f"  step size <= {c.limit:<10.4g}{c.name}{'   binds' if c == self.binding else ''}"
            for c in self.conditions
        ]
        head = f"eq. {self.equation}, {self.version}: {self.value:.4g}"
        unmet = [f"  not met: {text}" for text in self.unmet]
        return "\n".join([head, *rows, *limits, *unmet])


def bound(
    method: str,
    scales: Scales,
    *,
    steps: int,
    step_size: float,
    contraction: float,
    batch: int,
    period: int | None = None,
    refresh: int | None = None,
    non_negative: bool = True,
    version: str = "corrected",
) -> Bound:
    """The right-hand side of eq. (24), (30) or (39) and its conditions.

    Args:
        method: "SA", "SR-O" or "SR-E".
        scales: L, nu, zeta, Delta, n.
        steps: T. step_size: alpha. batch: b. period: q. refresh: B, of SR-O.
        contraction: lambda = ||P - 11'/n||, lambda_*^K for W^K.
        non_negative: whether the consensus matrix P has no negative entry. W^K has none, a
            Chebyshev polynomial may.
        version: "corrected", or "paper" for the formulas as printed.
    """
    checks.one_of("method", method, METHODS)
    checks.one_of("version", version, VERSIONS)
    checks.positive_int("steps", steps)
    checks.positive_number("step_size", step_size)
    checks.positive_int("batch", batch)
    if not 0 <= checks.finite_number("contraction", contraction) < 1:
        raise ValueError(f"contraction must be in [0, 1), got {contraction!r}")
    if method != "SA":
        checks.positive_int("period", period)
    if method == "SR-O":
        checks.positive_int("refresh", refresh)
    c = COEFFICIENTS[method, version]
    if version == "paper":  # one L for everything
        one = max(scales.smoothness, scales.mean_squared_smoothness)
        scales = replace(scales, smoothness=scales.smoothness if method == "SA" else one)
    return Bound(
        method,
        version,
        float(step_size),
        terms(
            c, method, scales, steps, step_size, contraction, batch, period, refresh, non_negative
        ),
        conditions(c, method, scales, contraction, batch, period),
        _unmet(method, steps, period),
    )


def _unmet(method: str, steps: int, period: int | None) -> tuple[str, ...]:
    if method == "SA":
        return () if steps >= 2 else ("T >= 2",)
    assert period is not None
    out = [f"T = R q with q = {period}"] if steps % period else []
    return tuple(out + (["R >= 2"] if steps < 2 * period else []))


def conditions(
    c: Coefficients, method: str, s: Scales, contraction: Any, batch: Any, period: Any = None
) -> tuple[Condition, ...]:
    """Every limit on the step size. A network that averages exactly (lambda = 0) sets none."""
    l = np.asarray(contraction, float)
    tracking_L = s.smoothness if method == "SA" else s.mean_squared_smoothness
    with np.errstate(divide="ignore"):
        network = (1 - l**2) ** 2 / (c.network * l**c.network_power * tracking_L)
    power = "" if c.network_power == 1 else "^2"
    limits = [
        Condition(f"1/({c.curvature:g} L): smoothness", 1 / (c.curvature * s.smoothness)),
        Condition(f"(1-lambda^2)^2/({c.network:g} lambda{power} L): network", network[()]),
    ]
    if method != "SA":
        nbq = s.nodes * np.asarray(batch, float) / period
        limit = np.sqrt(nbq / c.variance) / s.mean_squared_smoothness
        limits.append(Condition(f"sqrt(nb/({c.variance:g} q))/L: batch and period", limit[()]))
    return tuple(limits)


def terms(
    c: Coefficients,
    method: str,
    s: Scales,
    steps: Any,
    step_size: Any,
    contraction: Any,
    batch: Any,
    period: Any = None,
    refresh: Any = None,
    non_negative: bool = True,
) -> tuple[Term, ...]:
    """The summands, in the order of eqs. (24), (30) and (39)."""
    l2, n = np.asarray(contraction, float) ** 2, s.nodes
    out = [
        Term("gap: Delta/(alpha T)", c.descent * s.gap / (step_size * steps)),
        Term("start: zeta^2/T", c.start * l2 * s.zeta**2 / ((1 - l2) ** 3 * steps)),
    ]
    if method != "SR-E":
        noise, tracking = noise_factors(c, method, s, contraction, period, non_negative)
        size = batch if method == "SA" else refresh
        letter = "b" if method == "SA" else "B"
        out.append(Term(f"noise: nu^2/(n{letter})", noise * s.nu**2 / (n * size)))
        out.append(Term(f"tracking: lambda^2 nu^2/{letter}", tracking * s.nu**2 / (n * size)))
    return tuple(out)


def noise_factors(
    c: Coefficients, method: str, s: Scales, contraction: Any, period: Any, non_negative: bool
) -> tuple[Any, Any]:
    """What nu^2/(n b), or nu^2/(n B), is multiplied by in the last two summands.

    For SA, 348 = 76 + 272: the printed eq. (24) moves Lemma 8(a)'s "1" to the first of them.
    """
    l, n = np.asarray(contraction, float), s.nodes
    l2 = l**2
    noise = c.noise / (1 - l2) ** c.noise_power
    if method == "SR-O":
        return noise, c.tracking * n * l2 / ((1 - l2) ** 4 * period)
    own = c.tracking / (1 - l2) ** 3
    if c.paper_cross:
        return noise + own, own * 2 * l2 * n
    cross = l**3 * n
    return noise, own * (2 * l2 * n + (np.minimum(1, cross) if non_negative else cross))

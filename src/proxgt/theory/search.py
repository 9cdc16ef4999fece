"""The cheapest parameters that put a bound below epsilon^2: grids and closed forms.

With a as large as its conditions allow, the bounds are A/T + N/b <= epsilon^2. A share s of
epsilon^2 for the first summand gives T = A/(s epsilon^2) and b (or B) = N/((1 - s) epsilon^2);
what is left is a grid over s, K, b and q, evaluated at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from proxgt.checks import MOST
from proxgt.consensus import Chebyshev, Consensus, Gossip
from proxgt.networks import Network
from proxgt.theory.bounds import Coefficients, Scales, conditions, noise_factors

_GRID = 36
_SHARES = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
SLACK = 1.02  # what the main price may lose where the second gains
_MOST_ROUNDS = 10**5


class Mixing(NamedTuple):
    """A consensus on this network and what it does."""

    consensus: Consensus
    rounds: int
    contraction: float
    non_negative: bool


class Usage(NamedTuple):
    """What a run takes; per node, and arrays over a grid."""

    steps: Any
    samples: Any
    gradients: Any
    rounds: Any
    mixing: Mixing


@dataclass(frozen=True)
class Parameters:
    """One choice of everything a theorem lets one choose."""

    method: str
    mixing: Mixing
    steps: int
    step_size: float
    batch: int
    period: int | None
    refresh: int | None
    samples: float
    gradients: float
    rounds: int


Price = Callable[[Usage], Any]


def mixings(network: Network, kind: str) -> list[Mixing]:
    """Consensus of rising K, up to where more rounds change no bound by much."""
    make = {"gossip": Gossip, "chebyshev": Chebyshev}[kind]
    enough = 1e-3 / math.sqrt(network.nodes)
    out, K = [], 1
    while True:
        consensus = make(K)
        left = consensus.contraction(network)
        if left < 1:
            out.append(Mixing(consensus, K, left, kind == "gossip"))
        if left <= enough or K >= _MOST_ROUNDS:
            return out
        K = max(K + 1, round(1.15 * K))


def search(
    method: str,
    scales: Scales,
    c: Coefficients,
    epsilon: float,
    mixes: Sequence[Mixing],
    prices: tuple[Price, Price],
    least_share: float = 0.0,
) -> Parameters | None:
    """The grid point of least first price; the second settles what differs by 2 %.

    None where every point has more steps, or samples a step, than a run can count.
    """
    target = np.square(np.float64(epsilon))
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        grids = [
            _grid(method, scales, c, target, mixing, _SHARES[least_share <= _SHARES])
            for mixing in mixes
        ]
        first = [
            np.where(grid.runnable, prices[0](grid.usage(mix)), math.inf)
            for grid, mix in zip(grids, mixes, strict=True)
        ]
    limit = SLACK * min(float(np.min(price)) for price in first)
    if math.isinf(limit):
        return None
    best: tuple[float, int, int] = (math.inf, 0, 0)
    for k, (price, grid, mix) in enumerate(zip(first, grids, mixes, strict=True)):
        second = np.where(price <= limit, prices[1](grid.usage(mix)), math.inf).ravel()
        at = int(np.argmin(second))
        if second[at] < best[0]:
            best = (float(second[at]), k, at)
    return grids[best[1]].pick(method, mixes[best[1]], best[2])


@dataclass(frozen=True)
class _Grid:
    """Everything at every point; all arrays have one shape, period and refresh may be None."""

    steps: np.ndarray
    step_size: np.ndarray
    batch: np.ndarray
    period: np.ndarray | None
    refresh: np.ndarray | None
    samples: np.ndarray
    gradients: np.ndarray

    @property
    def runnable(self) -> np.ndarray:
        """Where compiled code can count the steps and the samples of each."""
        sizes = (self.steps, self.batch, 1 if self.refresh is None else self.refresh)
        return np.all([np.asarray(size) <= MOST for size in np.broadcast_arrays(*sizes)], axis=0)

    def usage(self, mixing: Mixing) -> Usage:
        rounds = 2 * mixing.rounds * self.steps
        return Usage(self.steps, self.samples, self.gradients, rounds, mixing)

    def pick(self, method: str, mixing: Mixing, at: int) -> Parameters:
        def whole(array: np.ndarray | None) -> int | None:
            return None if array is None else int(array.ravel()[at])

        steps, batch = whole(self.steps), whole(self.batch)
        assert steps is not None
        assert batch is not None
        return Parameters(
            method,
            mixing,
            steps,
            float(self.step_size.ravel()[at]),
            batch,
            whole(self.period),
            whole(self.refresh),
            float(self.samples.ravel()[at]),
            float(self.gradients.ravel()[at]),
            2 * mixing.rounds * steps,
        )


def _grid(
    method: str, s: Scales, c: Coefficients, target: float, mixing: Mixing, shares: np.ndarray
) -> _Grid:
    if method == "SA":
        return _minibatch_grid(s, c, target, mixing, shares)
    return _sarah_grid(method, s, c, target, mixing, shares)


def _gap_over_steps(s: Scales, c: Coefficients, l: float, step_size: Any) -> Any:
    """A, with A/T the sum of the first two summands."""
    start = c.start * l**2 * s.zeta**2 / (1 - l**2) ** 3
    return c.descent * s.gap / step_size + start


def _noise_over_size(method: str, s: Scales, c: Coefficients, mixing: Mixing, period: Any) -> Any:
    """N, with N/b, or N/B, the sum of the last two summands."""
    factors = noise_factors(c, method, s, mixing.contraction, period, mixing.non_negative)
    return (factors[0] + factors[1]) * s.nu**2 / s.nodes


def _ceil(number: Any, least: Any = 1) -> np.ndarray:
    """Up to a whole number, and a hair: the bound is compared with <=."""
    return np.maximum(np.ceil(number * (1 + 1e-9)), least)


def _minibatch_grid(
    s: Scales, c: Coefficients, target: float, mixing: Mixing, shares: np.ndarray
) -> _Grid:
    a = min(limit for _, limit in conditions(c, "SA", s, mixing.contraction, 1))
    share = shares if s.nu > 0 else np.ones(1)
    T = _ceil(_gap_over_steps(s, c, mixing.contraction, a) / (share * target), 2)
    N = _noise_over_size("SA", s, c, mixing, None)
    b = _ceil(N / ((1 - share) * target)) if s.nu > 0 else np.ones_like(T)
    return _Grid(T, np.full_like(T, a), b, None, None, T * b, T * b)


def _sarah_grid(
    method: str,
    s: Scales,
    c: Coefficients,
    target: float,
    mixing: Mixing,
    shares: np.ndarray,
) -> _Grid:
    noisy = method == "SR-O" and s.nu > 0
    share = (shares if noisy else np.ones(1))[:, None, None]
    least = c.descent * s.gap * c.curvature * s.smoothness / target  # T with the largest step
    q = _whole_numbers(max(2, least / 2))[None, :, None]
    largest = s.samples if method == "SR-E" else 4 * c.noise * s.nu**2 / (s.nodes * target)
    b = _whole_numbers(max(1, largest))[None, None, :]
    limits = [np.asarray(limit) for _, limit in conditions(c, method, s, mixing.contraction, b, q)]
    a = np.minimum(np.minimum(limits[0], limits[1]), limits[2])
    R = _ceil(_gap_over_steps(s, c, mixing.contraction, a) / (share * target * q), 2)
    size: Any = s.samples if method == "SR-E" else 1.0
    if noisy:
        size = _ceil(_noise_over_size(method, s, c, mixing, q) / ((1 - share) * target))
    T, a, b, q, R, size = np.broadcast_arrays(R * q, a, b, q, R, size)
    later = (T - R) * b
    refresh = size if method == "SR-O" else None
    return _Grid(T, a, b, q, refresh, R * size + later, R * size + 2 * later)


def _whole_numbers(most: float) -> np.ndarray:
    """About forty whole numbers from 1 to `most`, in equal ratios."""
    return np.unique(np.rint(np.geomspace(1, max(1.0, min(most, 1e7)), _GRID)))

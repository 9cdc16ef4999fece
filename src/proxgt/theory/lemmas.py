"""Lemmas 1 to 8 as inequalities on what was recorded, numbered as in the text.

Each function returns an `Inequality`, left and right side. Lemmas 1 to 6 hold on every path;
the one returned is that of the worst seed. Lemmas 7 and 8 hold in expectation: both sides are
means over seeds, with the standard error of their difference.

`version="paper"` is the lemma as printed, "corrected" what its proof supports.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from proxgt.estimators import SARAH, Minibatch
from proxgt.theory.trajectories import Trajectory

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Inequality:
    """lhs <= rhs, with the standard error of lhs - rhs where both are means over seeds."""

    name: str
    lhs: float
    rhs: float
    error: float = 0.0

    @property
    def tightness(self) -> float:
        """lhs/rhs: 1 where it is tight, 0 where both sides are zero, else infinity for rhs <= 0.

        NaN where a side is none, as of a run that diverged.
        """
        if self.rhs > 0 or math.isnan(self.lhs - self.rhs):
            return self.lhs / self.rhs
        return math.inf if self.lhs > self.rhs else 0.0

    @property
    def holds(self) -> bool:
        """Whether lhs <= rhs, up to rounding and three standard errors."""
        size = max(abs(self.lhs), abs(self.rhs))
        return self.lhs <= self.rhs + _ROUNDING * size + 1e-18 + 3 * self.error


def nonexpansive(prox: Callable[[Any, float], Any], a: Any, b: Any, step: float) -> Inequality:
    """Lemma 1: ||prox(a) - prox(b)|| <= ||a - b||."""
    a, b = np.asarray(a), np.asarray(b)
    moved = np.linalg.norm(np.asarray(prox(a, step)) - np.asarray(prox(b, step)))
    return Inequality("Lemma 1", float(moved), float(np.linalg.norm(a - b)))


def accumulation(a: Any, b: Any, q: float) -> Inequality:
    """Lemma 2 with equality in its hypothesis' place: sum a_t <= (a_1 + sum b_t)/(1 - q).

    a is a_1..a_T and b is b_1..b_{T-1} with a_{t+1} <= q a_t + b_t. Needs, which the paper
    does not say, a_1 >= 0 and b_t >= 0: a_1 = -1, b = 0, q = 1/2, T = 2 has -1.5 > -2.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    if (a[1:] > q * a[:-1] + b + 1e-12).any():
        raise ValueError("a and b must satisfy a_{t+1} <= q a_t + b_t")
    return Inequality("Lemma 2", float(a.sum()), float((a[0] + b.sum()) / (1 - q)))


def weights(P: Any, contraction: float, rows: Any) -> tuple[Inequality, Inequality, Inequality]:
    """Lemma 3 for a consensus matrix P: (a) PJ = JP = J, (b) and (c) contraction.

    (b) is <=: the equality of the paper needs a normal W.
    """
    P, rows = np.asarray(P, float), np.asarray(rows, float)
    J = np.full_like(P, 1 / len(P))
    apart = max(float(abs(P @ J - J).max()), float(abs(J @ P - J).max()))
    left = np.linalg.norm(P @ rows - J @ rows)
    norm = float(np.linalg.norm(P - J, 2))
    return (
        Inequality("Lemma 3(a)", apart, 1e-12),
        Inequality("Lemma 3(b)", norm, contraction + 1e-12),
        Inequality(
            "Lemma 3(c)",
            float(left),
            contraction * float(np.linalg.norm(rows - J @ rows)) + 1e-12 * len(P),
        ),
    )


def differences(run: Trajectory, version: str = "corrected") -> Inequality:
    """Lemma 4: sum_{t=2}^T ||x_t - x_{t-1}||^2 <= 6 sum ||x_t - Jx_t||^2 + 3n a^2 sum ||g||^2.

    As x - Jx is orthogonal to Jx, 4 and 1 do in place of 6 and 3: "corrected".
    """
    first, second = (6, 3) if version == "paper" else (4, 1)
    x = run.x[:, :-1]
    moved = np.sum((x[:, 1:] - x[:, :-1]) ** 2, axis=(1, 2, 3))
    steps = _mean_sgp(run)[:, :-1].sum(1)
    spread = run.spread(x).sum(1)
    return _worst("Lemma 4", moved, first * spread + second * run.nodes * run.step_size**2 * steps)


def descent(run: Trajectory, smoothness: float, lower_bound: float) -> Inequality:
    """Lemma 5, the descent inequality summed over T steps; needs alpha <= 1/(8L)."""
    if run.step_size > (1 + 1e-12) / (8 * smoothness):
        raise ValueError(f"Lemma 5 needs step_size <= 1/(8 L), got {run.step_size:g}")
    a, n = run.step_size, run.nodes
    error = _mean_error(run).sum(1)
    rhs = (
        8 * (run.start - lower_bound) / a
        - np.sum(run.sgp**2, axis=(1, 2, 3)) / n
        + 76 * error
        + 6 / (a**2 * n) * run.spread(run.x[:, :-1]).sum(1)
        + 10 / n * run.spread(run.y[:, 1:]).sum(1)
    )
    return _worst("Lemma 5", run.metric(smoothness).sum(1), rhs)


def consensus(run: Trajectory) -> Inequality:
    """Lemma 6: sum_{t=1}^T ||x_t - Jx_t||^2 <= 4 l2 a^2/(1-l2)^2 sum_{t=2}^T ||y_t - Jy_t||^2."""
    l2 = run.contraction**2
    factor = 4 * l2 * run.step_size**2 / (1 - l2) ** 2
    y = run.spread(run.y[:, 1:-1]).sum(1)
    return _worst("Lemma 6", run.spread(run.x[:, :-1]).sum(1), factor * y)


def variance(
    run: Trajectory, nu: float, mean_squared_smoothness: float, version: str = "corrected"
) -> Inequality:
    """Lemma 7: E sum_t ||mean v_t - mean grad f(x_t)||^2, (a) SA, (b) SR-O, (c) SR-E.

    The factor of sum ||g||^2 is 1 as printed. The proof, by Lemma 4 as printed, gives 3; by
    Lemma 4 corrected it gives 1, and 4 in place of 6: "corrected".
    """
    n, estimator, T = run.nodes, run.method.estimator, run.steps
    lhs = _mean_error(run).sum(1)
    if isinstance(estimator, Minibatch):
        return _mean("Lemma 7(a)", lhs, np.full_like(lhs, T * nu**2 / (n * estimator.batch)))
    b, q = _sarah(run)
    L2 = mean_squared_smoothness**2
    rhs = (6 if version == "paper" else 4) * L2 * q / (n**2 * b) * run.spread(run.x[:, :-1]).sum(
        1
    ) + q * L2 * run.step_size**2 / (n * b) * _mean_sgp(run)[:, :-1].sum(1)
    if estimator.refresh is None:  # pyright: ignore[reportAttributeAccessIssue]
        return _mean("Lemma 7(c)", lhs, rhs)
    B = estimator.refresh  # pyright: ignore[reportAttributeAccessIssue]
    return _mean("Lemma 7(b)", lhs, rhs + T * nu**2 / (n * B))


def tracking(
    run: Trajectory,
    nu: float,
    zeta: float,
    mean_squared_smoothness: float,
    version: str = "corrected",
) -> Inequality:
    """Lemma 8: E sum_{t=2}^{T+1} ||y_t - Jy_t||^2, (a) SA, (b) SR-O, (c) SR-E.

    Of (a), "corrected" has lambda^3 n, and at most 1 for W^K, in place of the 1 that is right
    for W^K only.
    """
    n, a, T, estimator = run.nodes, run.step_size, run.steps, run.method.estimator
    l, L2 = run.contraction, mean_squared_smoothness**2
    l2 = l**2
    lhs = run.spread(run.y[:, 1:]).sum(1)
    spread, steps = run.spread(run.x[:, :-1]).sum(1), _mean_sgp(run)[:, :-1].sum(1)
    start = 2 * l2 * n * zeta**2 / (1 - l2)
    if isinstance(estimator, Minibatch):
        cross = min(1.0, l**3 * n) if run.non_negative else l**3 * n
        cross = 1.0 if version == "paper" else cross
        noise = 4 * T * (2 * l2 * n + cross) * nu**2 / (estimator.batch * (1 - l2))
        moved = 12 * l2 * L2 / (1 - l2) ** 2 * (n * a**2 * steps + 2 * spread)
        return _mean("Lemma 8(a)", lhs, start + moved + noise)
    _, q = _sarah(run)
    rhs = start + 48 * l2 * L2 / (1 - l2) ** 2 * (n * a**2 * steps + 2 * spread)
    if estimator.refresh is None:  # pyright: ignore[reportAttributeAccessIssue]
        return _mean("Lemma 8(c)", lhs, rhs)
    B = estimator.refresh  # pyright: ignore[reportAttributeAccessIssue]
    return _mean("Lemma 8(b)", lhs, rhs + 14 * l2 * T * n * nu**2 / ((1 - l2) ** 2 * B * q))


def theorem(run: Trajectory, smoothness: float, bound: float) -> Inequality:
    """Eqs. (24), (30), (39): E of Definition 3's average <= `bound`, `Bound.value` of this run."""
    average = run.metric(smoothness).mean(1)
    return _mean("Definition 3's average", average, np.full_like(average, bound))


def tracked(run: Trajectory) -> float:
    """Eq. (11): the largest entry of mean(y_{t+1}) - mean(v_t), zero but for rounding."""
    return float(abs(run.y[:, 1:].mean(2) - run.v.mean(2)).max())


def _sarah(run: Trajectory) -> tuple[int, int]:
    """(b, q), of a run whose T is a multiple of q as Lemmas 7(b, c) and 8(b, c) ask."""
    estimator = run.method.estimator
    if not isinstance(estimator, SARAH):
        raise ValueError(f"Lemmas 7 and 8 cover Minibatch and SARAH, not {estimator!r}")
    if run.steps % estimator.period or run.steps < 2 * estimator.period:
        raise ValueError(
            f"Lemmas 7 and 8 need T = R q with R >= 2, got T = {run.steps}, q = {estimator.period}"
        )
    return estimator.batch, estimator.period


def _mean_sgp(run: Trajectory) -> np.ndarray:
    """||mean_i g_t^i||^2: (seeds, T)."""
    return np.sum(run.sgp.mean(2) ** 2, axis=2)


def _mean_error(run: Trajectory) -> np.ndarray:
    """||mean v_t - mean grad f(x_t)||^2: (seeds, T)."""
    return np.sum((run.v - run.gradients).mean(2) ** 2, axis=2)


def _worst(name: str, lhs: np.ndarray, rhs: np.ndarray) -> Inequality:
    at = int(np.argmax(lhs - rhs))
    return Inequality(name, float(lhs[at]), float(rhs[at]))


def _mean(name: str, lhs: np.ndarray, rhs: np.ndarray) -> Inequality:
    error = float(np.std(lhs - rhs, ddof=1) / np.sqrt(len(lhs))) if len(lhs) > 1 else 0.0
    return Inequality(name, float(lhs.mean()), float(rhs.mean()), error)

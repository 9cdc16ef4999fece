"""What is proven about the ready-made problems: constants that need no measuring.

With G = phi(a.x - b), ||grad G(x) - grad G(y)|| <= c |a.(x - y)| ||a|| where |phi''| <= c, so

    mean_s ||grad G_s(x) - grad G_s(y)||^2 <= c^2 lambda_max(mean_s ||a_s||^2 a_s a_s') ||x - y||^2

which is Assumption 5, exact where phi'' = c everywhere. Where |phi'| <= d, the mean of
d^2 ||a_s||^2 bounds the variance of Assumption 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.problems import EmpiricalRisk, PopulationRisk, Problem
from proxgt.problems.nodedata import NodeData
from proxgt.regularizers import Blocks, Box, Regularizer
from proxgt.regularizers.base import Custom, is_regularizer
from proxgt.tasks.inputs import largest_gram_eigenvalue
from proxgt.tasks.losses import (
    FactorizationLoss,
    LogisticLoss,
    MLPLoss,
    PCALoss,
    QuadraticLoss,
    SquaredLoss,
    TukeyLoss,
    WelschLoss,
)
from proxgt.tasks.synthetic import RegressionSampler, TargetSampler


@dataclass(frozen=True)
class Facts:
    """What is known beforehand; None where nothing is.

    Pairs are (value, source). `nu_bound` bounds a nu that is measured otherwise.
    """

    smoothness: tuple[float, str] | None = None
    mean_squared_smoothness: tuple[float, str] | None = None
    nu: tuple[float, str] | None = None
    nu_bound: float | None = None
    zeta: float | None = None
    lower_bound: float | None = None
    how: str = ""


@dataclass(frozen=True)
class Ridge:
    """phi of a loss phi(a.x - b) + extra(x)."""

    curvature: float  # sup |phi''|
    slope: float  # sup |phi'|, infinity where there is none
    attained: bool = False  # whether phi'' is that curvature everywhere
    extra_curvature: float = 0.0  # of a term that all samples share


_RIDGES: dict[type, Callable[[Any], Ridge]] = {
    SquaredLoss: lambda loss: Ridge(1.0, math.inf, attained=True),
    PCALoss: lambda loss: Ridge(1.0, math.inf, attained=True),
    LogisticLoss: lambda loss: Ridge(0.25, 1.0, extra_curvature=2 * loss.penalty),
    # rho' = r (1 - u)^2 with u = (r/c)^2 is largest at u = 1/5
    TukeyLoss: lambda loss: Ridge(1.0, loss.scale * 16 / (25 * math.sqrt(5))),
    # rho' = r exp(-u) is largest at u = 1/2
    WelschLoss: lambda loss: Ridge(1.0, loss.scale * math.exp(-0.5) / math.sqrt(2)),
}
_NON_NEGATIVE = (SquaredLoss, LogisticLoss, TukeyLoss, WelschLoss, FactorizationLoss, MLPLoss)


def facts_of(problem: Problem) -> Facts:
    """What is known about this problem."""
    low = 0.0 if _non_negative(problem) else None
    if isinstance(problem, PopulationRisk):
        if isinstance(problem.sampler, TargetSampler) and isinstance(problem.loss, QuadraticLoss):
            return _noisy_quadratic(problem)
        if isinstance(problem.sampler, RegressionSampler) and isinstance(problem.loss, SquaredLoss):
            return _gaussian_least_squares(problem)
    if isinstance(problem, EmpiricalRisk) and type(problem.loss) in _RIDGES:
        return _ridge(problem.data, _RIDGES[type(problem.loss)](problem.loss), low)
    return Facts(lower_bound=low)


def _non_negative(problem: Problem) -> bool:
    return isinstance(problem.loss, _NON_NEGATIVE) and _is_own(problem.regularizer)


def _is_own(h: Any) -> bool:
    """Whether h is one of the package's, all of which are >= 0."""
    if isinstance(h, Blocks):
        return all(_is_own(part) for part in jax.tree.leaves(h.parts, is_leaf=is_regularizer))
    own = isinstance(h, Regularizer) and type(h).__module__.startswith("proxgt.")
    return own and not isinstance(h, Custom)


def _ridge(data: NodeData, phi: Ridge, low: float | None) -> Facts:
    nodes = [np.asarray(_features(data.node(i)), np.float64) for i in range(data.nodes)]
    largest = max(largest_gram_eigenvalue(A) for A in nodes)
    curvature = phi.curvature * math.sqrt(max(_fourth_moment(A) for A in nodes))
    source = "exact" if phi.attained else "bound"
    squares = np.mean([np.mean(np.sum(A**2, axis=1)) for A in nodes])
    return Facts(
        smoothness=(phi.curvature * largest + phi.extra_curvature, source),
        mean_squared_smoothness=(curvature + phi.extra_curvature, source),
        nu_bound=phi.slope * math.sqrt(squares) if math.isfinite(phi.slope) else None,
        lower_bound=low,
        how="lambda_max(mean |a|^2 aa')",
    )


def _features(rows: Any) -> Any:
    return rows[0] if isinstance(rows, tuple) else rows


def _fourth_moment(A: np.ndarray) -> float:
    """lambda_max((1/m) sum_s ||a_s||^2 a_s a_s')."""
    return max(largest_gram_eigenvalue(A * np.linalg.norm(A, axis=1, keepdims=True)), 0.0)


def _noisy_quadratic(problem: PopulationRisk) -> Facts:
    """All in closed form; nu and the minimum where h is a box, or nu where it is constant."""
    loss: Any = problem.loss
    sampler: Any = problem.sampler
    targets = np.asarray(jax.jit(sampler.targets.all)(), np.float64)
    x0 = np.asarray(problem.x0, np.float64)
    A, t, spread = np.linspace(loss.low, loss.high, len(x0)), targets.mean(0), sampler.curvature
    low, nu_bound = None, None
    if isinstance(problem.regularizer, Box) and problem.regularizer.bounded:
        ends = [np.broadcast_to(end, x0.shape) for end in _ends(problem.regularizer)]
        low = _least_over_box(A, t, *ends)
        radius = math.sqrt(float(np.sum(np.maximum(*np.square(ends)))))
        nu_bound = math.hypot(sampler.nu, spread * radius) if spread else None
    elif A.min() > 0 and _is_own(problem.regularizer):
        low = -0.5 * float(np.sum(t**2 / A))  # min F, and h >= 0
    return Facts(
        smoothness=(float(abs(A).max()), "exact"),
        mean_squared_smoothness=(math.hypot(float(abs(A).max()), spread), "exact"),
        nu=None if spread else (sampler.nu, "exact"),
        nu_bound=nu_bound,
        zeta=math.sqrt(float(np.mean(np.sum((A * x0 - targets) ** 2, axis=1)))),
        lower_bound=low,
        how="of this task, in closed form",
    )


def _ends(box: Box) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(box.lo, np.float64), np.asarray(box.hi, np.float64)


def _least_over_box(A: np.ndarray, t: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> float:
    """min over the box of sum_j (A_j x_j^2/2 - t_j x_j): at an end, or at t_j/A_j within."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.where(A > 0, np.clip(t / A, lo, hi), lo)
    return float(np.sum(np.min([A * x**2 / 2 - t * x for x in (lo, hi, inside)], axis=0)))


def _gaussian_least_squares(problem: PopulationRisk) -> Facts:
    """F >= noise^2/2, and a Gaussian's fourth moments give sqrt(p + 2)."""
    sampler: Any = problem.sampler
    targets = np.asarray(jax.jit(sampler.targets.all)(), np.float64)
    x0 = np.asarray(problem.x0, np.float64)
    spread = float(np.mean(np.sum((targets.mean(0) - targets) ** 2, axis=1)))
    own = _is_own(problem.regularizer)
    return Facts(
        smoothness=(1.0, "exact"),
        mean_squared_smoothness=(math.sqrt(targets.shape[1] + 2), "exact"),
        zeta=math.sqrt(float(np.mean(np.sum((x0 - targets) ** 2, axis=1)))),
        lower_bound=(spread + sampler.noise**2) / 2 if own else None,
        how="of this task, in closed form",
    )


@dataclass(frozen=True)
class LocalGradients:
    """grad f_i of the synthetic population risks: (n, p) -> (n, p)."""

    loss: Any
    targets: Any

    def __call__(self, x: Any) -> Any:
        """grad f_i(x_i)."""
        targets = self.targets.all().astype(x.dtype)
        if isinstance(self.loss, QuadraticLoss):
            return jax.vmap(jax.grad(self.loss))(x, (targets, jnp.zeros(len(targets), x.dtype)))
        return x - targets


def local_gradients(problem: Problem) -> LocalGradients | None:
    """grad f_i of a population risk where it is known; None for an empirical risk."""
    if problem.exact:
        return None
    sampler = getattr(problem, "sampler", None)
    if isinstance(sampler, TargetSampler | RegressionSampler) and isinstance(
        problem.loss, QuadraticLoss | SquaredLoss
    ):
        return LocalGradients(problem.loss, sampler.targets)
    raise ValueError(
        "lemmas need grad f_i: an empirical risk, or noisy_quadratic or gaussian_least_squares"
    )

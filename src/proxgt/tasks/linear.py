"""Problems whose loss sees x through a.x alone, so that L is known: see `feature_smoothness`.

`data` is (features (nodes, m, p), targets (nodes, m)), or a list of one such pair, with its
own m_i, per node; `data.shard` makes either.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from proxgt import checks
from proxgt.problems import EmpiricalRisk
from proxgt.problems.nodedata import NodeData
from proxgt.records import record
from proxgt.regularizers import L2Ball, NonNegative, Regularizer, Zero, as_regularizer
from proxgt.regularizers.base import set_fields
from proxgt.tasks.inputs import (
    check_labels,
    feature_smoothness,
    floats,
    node_samples,
    require_bounded,
    with_rows,
)
from proxgt.tasks.losses import LogisticLoss, PCALoss, SquaredLoss, TukeyLoss, WelschLoss

# Scales of 95 % efficiency under Gaussian residuals of variance 1.
ROBUST_LOSSES = {"tukey": (TukeyLoss, 4.685), "welsch": (WelschLoss, 2.985)}


def logistic(
    data: Any,
    regularizer: Any = Zero(),
    penalty: float = 0.0,
) -> EmpiricalRisk:
    """Classification by the logistic loss, with a non-convex penalty where it is > 0.

        f_i(x) = mean_s log(1 + exp(-l_s a_s.x)) + penalty sum_j x_j^2 / (1 + x_j^2)
        L = max_i lambda_max(A_i'A_i / m_i) / 4 + 2 penalty

    x0 = 0. Labels l are -1 or +1.
    """
    penalty = checks.non_negative_number("penalty", penalty)
    samples = _pairs(data, "labels")
    check_labels(samples.rows[1])
    smoothness = feature_smoothness(samples) / 4 + 2 * penalty
    return _from_zero(LogisticLoss(penalty), samples, regularizer, smoothness)


def least_squares(
    data: Any,
    regularizer: Any = Zero(),
) -> EmpiricalRisk:
    """Linear regression; with L1 the lasso.

        f_i(x) = 1/2 mean_s (a_s.x - b_s)^2
        L = max_i lambda_max(A_i'A_i / m_i), and no smaller L will do

    x0 = 0.
    """
    samples = _pairs(data, "targets")
    return _from_zero(SquaredLoss(), samples, regularizer, feature_smoothness(samples))


def robust_regression(
    data: Any,
    regularizer: Any = Zero(),
    loss: str = "tukey",
    scale: float | None = None,
) -> EmpiricalRisk:
    """Linear regression that outliers cannot pull: a bounded, non-convex loss of residuals.

        f_i(x) = mean_s rho(a_s.x - b_s),   rho of `TukeyLoss` or `WelschLoss`
        L = max_i lambda_max(A_i'A_i / m_i), as |rho''| <= 1

    x0 = 0. `scale` is where a residual begins to count as an outlier; by default 4.685
    (tukey) or 2.985 (welsch), right for inliers whose residuals have variance 1.
    """
    make, usual = ROBUST_LOSSES[checks.one_of("loss", loss, ROBUST_LOSSES)]
    scale = usual if scale is None else checks.positive_number("scale", scale)
    samples = _pairs(data, "targets")
    nearest = float(np.abs(samples.rows[1]).min())
    if loss == "tukey" and nearest >= scale:
        raise ValueError(
            f"scale must be above the smallest |target|, {nearest:g}, got {scale:g}: beyond "
            "scale the loss is flat and nothing leaves x0 = 0; raise scale, or rescale targets"
        )
    return _from_zero(make(scale), samples, regularizer, feature_smoothness(samples))


@record
class NonNegativeBall(Regularizer):
    """Indicator of {x : x >= 0, ||x||_2 <= radius}.

    The projection onto a cone, followed by that onto a ball around its apex, is the
    projection onto their intersection.
    """

    radius: ArrayLike = 1.0
    ball: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        ball = L2Ball(self.radius)
        set_fields(self, radius=ball.radius, ball=ball)

    def value(self, x: ArrayLike) -> jax.Array:
        """0 in the set, +inf outside."""
        return NonNegative().value(x) + self.ball.value(x)

    def prox(self, v: ArrayLike, step: ArrayLike) -> jax.Array:
        """The projection of v, whatever the step."""
        return self.ball.prox(NonNegative().prox(v, step), step)

    def lmo(self, direction: ArrayLike) -> jax.Array:
        """radius u / ||u|| with u = max(-d, 0), and 0 where d >= 0."""
        return self.ball.lmo(jnp.minimum(jnp.asarray(direction), 0))


def nonnegative_pca(
    data: Any,
    regularizer: Any = NonNegativeBall(),
    seed: int = 0,
) -> EmpiricalRisk:
    """The non-negative direction of largest variance: concave risk over a bounded set.

        f_i(x) = -1/2 mean_s (a_s.x)^2,   h = indicator of {x >= 0, ||x|| <= 1}
        L = max_i lambda_max(A_i'A_i / m_i)

    `data` is features alone, (nodes, m, p) or a list of (m_i, p). x0 is a random positive
    vector of length 1/2, projected: at 0 the gradient vanishes. Another `regularizer` must
    keep the risk bounded below.
    """
    samples = node_samples(data, features=2)
    features, smoothness = floats(samples.rows[0]), feature_smoothness(samples)
    h, size = as_regularizer(regularizer), features.shape[1]
    require_bounded(h, size, smoothness, "nonnegative_pca")
    rng = np.random.default_rng(checks.seed("seed", seed))
    start = np.abs(rng.standard_normal(size))
    with jax.enable_x64(True):
        x0 = np.asarray(h.prox(start / (2 * np.linalg.norm(start)), 1.0))
    samples = with_rows(samples, features)
    return EmpiricalRisk(PCALoss(), samples, h, x0=x0, smoothness=smoothness)


def _pairs(data: Any, target: str) -> NodeData:
    """Samples (a, b) as floats of the precision of the features."""
    samples = node_samples(data, **{"features": 2, target: 1})
    features = floats(samples.rows[0])
    return with_rows(samples, (features, samples.rows[1].astype(features.dtype, copy=False)))


def _from_zero(loss: Any, samples: NodeData, regularizer: Any, smoothness: float) -> EmpiricalRisk:
    x0 = np.zeros(samples.rows[0].shape[1])
    return EmpiricalRisk(loss, samples, regularizer, x0=x0, smoothness=smoothness)

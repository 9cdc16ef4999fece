"""Population risks of which everything is known: F, grad F, L, the variance of gradients.

Samplers draw in float32 whatever the precision of a run, so that a run in float64 solves the
same problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks
from proxgt.problems import PopulationRisk
from proxgt.regularizers import Zero, as_regularizer
from proxgt.tasks.inputs import require_bounded
from proxgt.tasks.losses import QuadraticLoss, SquaredLoss


@dataclass(frozen=True)
class NodeTargets:
    """A vector t_i for every node, whose mean t is the same for any number of nodes.

    t_i = t + heterogeneity (d_i - mean_j d_j), with t and every d_i drawn from N(0, I/p).
    """

    nodes: int
    p: int
    heterogeneity: float
    seed: int

    def __post_init__(self) -> None:
        checks.positive_int("nodes", self.nodes)
        checks.positive_int("p", self.p)
        checks.non_negative_number("heterogeneity", self.heterogeneity)
        checks.seed("seed", self.seed)

    def of(self, node: Any) -> jax.Array:
        """t_i, shape (p,)."""
        return self.all()[node]

    def all(self) -> jax.Array:
        """Every t_i, shape (nodes, p)."""
        keys = jax.vmap(partial(jax.random.fold_in, jax.random.key(self.seed)))(
            jnp.arange(self.nodes + 1)
        )
        draws = jax.vmap(lambda key: jax.random.normal(key, (self.p,), jnp.float32))(keys)
        apart = draws[1:] - jnp.mean(draws[1:], axis=0)
        return (draws[0] + self.heterogeneity * apart) / np.float32(np.sqrt(self.p))


@dataclass(frozen=True)
class RegressionSampler:
    """(a, b) with a ~ N(0, I) and b = a.t_i + noise e, e ~ N(0, 1)."""

    targets: NodeTargets
    noise: float

    def __call__(self, key: jax.Array, node: Any) -> tuple[jax.Array, jax.Array]:
        """One sample at a node."""
        first, second = jax.random.split(key)
        a = jax.random.normal(first, (self.targets.p,), jnp.float32)
        noise = self.noise * jax.random.normal(second, (), jnp.float32)
        return a, jnp.dot(a, self.targets.of(node)) + noise


@dataclass(frozen=True)
class TargetSampler:
    """(t_i + xi, s) with xi ~ N(0, nu^2/p I), so that E||xi||^2 = nu^2, and s = +-curvature."""

    targets: NodeTargets
    nu: float
    curvature: float

    def __call__(self, key: jax.Array, node: Any) -> tuple[jax.Array, jax.Array]:
        """One sample at a node."""
        first, second = jax.random.split(key)
        xi = jax.random.normal(first, (self.targets.p,), jnp.float32)
        s = self.curvature * jax.random.rademacher(second, (), jnp.float32)
        return self.targets.of(node) + np.float32(self.nu / np.sqrt(self.targets.p)) * xi, s


@dataclass(frozen=True)
class RegressionRisk:
    """F(x) = 1/(2n) sum_i ||x - t_i||^2 + noise^2/2."""

    sampler: RegressionSampler

    def __call__(self, x: jax.Array) -> jax.Array:
        """F(x)."""
        errors = x - self.sampler.targets.all().astype(x.dtype)
        return (jnp.mean(jnp.sum(errors**2, axis=1)) + self.sampler.noise**2) / 2


@dataclass(frozen=True)
class QuadraticRisk:
    """F(x) = 1/2 x'Ax - t.x: the loss is affine in its sample."""

    loss: QuadraticLoss
    targets: NodeTargets

    def __call__(self, x: jax.Array) -> jax.Array:
        """F(x)."""
        mean = jnp.mean(self.targets.all().astype(x.dtype), axis=0)
        return self.loss(x, (mean, jnp.zeros((), x.dtype)))


@dataclass(frozen=True)
class Gradient:
    """The gradient of a function, equal where the functions are."""

    function: Callable[[Any], Any]

    def __call__(self, x: jax.Array) -> jax.Array:
        """The gradient at x."""
        return jax.grad(self.function)(x)


def gaussian_least_squares(
    nodes: int = 16,
    p: int = 50,
    noise: float = 0.1,
    heterogeneity: float = 1.0,
    seed: int = 0,
    regularizer: Any = Zero(),
) -> PopulationRisk:
    """Linear regression on a stream: a ~ N(0, I), b = a.t_i + noise e, t_i of `NodeTargets`.

        f_i(x) = 1/2 E(a.x - b)^2 = 1/2 ||x - t_i||^2 + noise^2/2,  grad f_i(x) = x - t_i
        L = 1
        E||grad G_i(x) - grad f_i(x)||^2 = (p + 1) ||x - t_i||^2 + p noise^2
        E||grad G_i(x) - grad G_i(y)||^2 = (p + 2) ||x - y||^2

    So Assumption 3 (bounded variance) holds only on a bounded domain, and the L of Assumption
    4 (mean-squared smoothness) is sqrt(p + 2), not 1. x0 = 0. `problem.sampler.targets.all()`
    is every t_i.
    """
    noise = checks.non_negative_number("noise", noise)
    sampler = RegressionSampler(NodeTargets(nodes, p, heterogeneity, seed), noise)
    risk = RegressionRisk(sampler)
    return _population(SquaredLoss(), sampler, risk, regularizer, smoothness=1.0)


def noisy_quadratic(
    nodes: int = 16,
    p: int = 50,
    nu: float = 1.0,
    heterogeneity: float = 1.0,
    curvature: Sequence[float] = (0.1, 1.0),
    curvature_noise: float = 0.0,
    seed: int = 0,
    regularizer: Any = Zero(),
) -> PopulationRisk:
    """A quadratic with noise, which meets every assumption with known constants.

        G_i(x; xi, s) = 1/2 x'Ax + s/2 ||x||^2 - (t_i + xi).x,   t_i of `NodeTargets`
        xi ~ N(0, nu^2/p I),  s = +-curvature_noise with equal probability
        f_i(x) = 1/2 x'Ax - t_i.x,  grad f_i(x) = Ax - t_i,  L = max |A_jj|
        E||grad G_i(x) - grad f_i(x)||^2 = nu^2 + curvature_noise^2 ||x||^2
        E||grad G_i(x) - grad G_i(y)||^2 = ||A(x - y)||^2 + curvature_noise^2 ||x - y||^2

    So the L of mean-squared smoothness (Assumption 5) is (L^2 + curvature_noise^2)^(1/2). With
    curvature_noise = 0 the variance of Assumption 4 is nu^2 everywhere, but then SARAH's
    differences carry no noise at all; otherwise it is bounded where h bounds x, as `Box` does.

    A is diagonal, p numbers from curvature[0] to curvature[1] in equal steps. As A is, so is
    Psi separable for a separable h, and its minimum known: with h = s ||x||_1 and A > 0 it is
    -1/2 sum_j max(|t_j| - s, 0)^2 / A_jj. A negative curvature makes F
    non-convex and needs an h that keeps Psi bounded below. x0 = 0.
    `problem.sampler.targets.all()` is every t_i.
    """
    nu = checks.non_negative_number("nu", nu)
    spread = checks.non_negative_number("curvature_noise", curvature_noise)
    loss = _quadratic_loss(curvature)
    targets = NodeTargets(nodes, p, heterogeneity, seed)
    diagonal = np.linspace(loss.low, loss.high, p)
    smoothness = float(np.abs(diagonal).max())
    if smoothness == 0:
        raise ValueError(f"curvature must not be zero throughout, got {curvature!r} with p={p}")
    if diagonal.min() < 0:
        require_bounded(as_regularizer(regularizer), p, -diagonal.min(), "noisy_quadratic")
    risk = QuadraticRisk(loss, targets)
    return _population(loss, TargetSampler(targets, nu, spread), risk, regularizer, smoothness)


def _quadratic_loss(curvature: Any) -> QuadraticLoss:
    if not isinstance(curvature, (tuple, list)) or len(curvature) != 2:
        raise ValueError(f"curvature must be two numbers, lowest first, got {curvature!r}")
    low, high = (checks.finite_number("curvature", value) for value in curvature)
    if low > high:
        raise ValueError(f"curvature must be given lowest first, got {curvature!r}")
    return QuadraticLoss(low, high)


def _population(
    loss: Any, sampler: Any, risk: Any, regularizer: Any, smoothness: float
) -> PopulationRisk:
    targets = sampler.targets
    return PopulationRisk(
        loss,
        sampler,
        targets.nodes,
        regularizer,
        x0=np.zeros(targets.p),
        smoothness=smoothness,
        gradient=Gradient(risk),
        objective=risk,
        evaluation=1,  # nothing is estimated: F and grad F are known
    )

"""A population risk for h = 0: smooth, non-convex, heterogeneous, of which everything is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.problems import PopulationRisk
from proxgt.regularizers import Zero
from proxgt.tasks.synthetic import Gradient, NodeTargets
from proxgt.theory.bounds import Scales


@dataclass(frozen=True)
class CosineLoss:
    """a/2 ||x||^2 + s sum_j cos x_j - b.x of a sample (b, s)."""

    a: float = 0.25

    def __call__(self, x: jax.Array, sample: tuple[jax.Array, jax.Array]) -> jax.Array:
        """G(x, sample)."""
        b, s = sample
        return 0.5 * self.a * jnp.sum(x**2) + s * jnp.sum(jnp.cos(x)) - jnp.dot(b, x)


@dataclass(frozen=True)
class CosineSampler:
    """(t_i + xi, s) with E||xi||^2 = 1 and s = 1 +- 1/2 +- 1/2.

    The first sign is the node's, plus for the first half of them; the second is drawn.
    """

    targets: NodeTargets

    def __call__(self, key: jax.Array, node: Any) -> tuple[jax.Array, jax.Array]:
        """One sample at a node."""
        first, second = jax.random.split(key)
        xi = jax.random.normal(first, (self.targets.p,), jnp.float32)
        own = jnp.where(node < self.targets.nodes // 2, 0.5, -0.5)
        s = 1 + own + 0.5 * jax.random.rademacher(second, (), jnp.float32)
        return self.targets.of(node) + xi / np.float32(math.sqrt(self.targets.p)), s


@dataclass(frozen=True)
class CosineRisk:
    """F(x) = a/2 ||x||^2 + sum_j cos x_j - t.x: the loss is affine in its sample."""

    loss: CosineLoss
    targets: NodeTargets

    def __call__(self, x: jax.Array) -> jax.Array:
        """F(x)."""
        mean = jnp.mean(self.targets.all().astype(x.dtype), axis=0)
        return self.loss(x, (mean, jnp.ones((), x.dtype)))


def cosine_population(nodes: int, p: int = 10) -> tuple[PopulationRisk, Scales]:
    """A non-convex risk, heterogeneous in slope and curvature, h = 0, and its constants.

    f_i(x) = 1/8 ||x||^2 + (1 +- 1/2) sum_j cos x_j - t_i.x      L = 1/4 + 3/2
    E||grad G_i(x) - grad f_i(x)||^2 = 1 + 1/4 sum_j sin^2 x_j   at most 1 + p/4
    E||grad G_i(x) - grad G_i(y)||^2 <= (L^2 + 1/4) ||x - y||^2
    """
    loss, targets = CosineLoss(), NodeTargets(nodes, p, 1.0, 0)
    risk, L = CosineRisk(loss, targets), loss.a + 1.5
    problem = PopulationRisk(
        loss,
        CosineSampler(targets),
        nodes,
        Zero(),
        x0=np.zeros(p),
        smoothness=L,
        gradient=Gradient(risk),
        objective=risk,
        evaluation=1,  # nothing is estimated: F and grad F are known
    )
    t = np.asarray(targets.all(), float)
    x = np.linspace(-20, 20, 40_001)[:, None]  # F is separable and x0 = 0
    gap = p - float(np.sum(np.min(loss.a / 2 * x**2 + np.cos(x) - t.mean(axis=0) * x, axis=0)))
    zeta = math.sqrt(float(np.mean(np.sum(t**2, axis=1))))
    return problem, Scales(L, math.hypot(L, 0.5), math.sqrt(1 + p / 4), zeta, gap, nodes)

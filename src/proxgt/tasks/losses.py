"""G_i(x, sample) of the ready-made problems.

Losses are frozen dataclasses because compiled code is told apart by its loss: equal ones
share it, so a problem that is built again does not compile again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

# ReLU is not among them: at its kink no f_i would be smooth.
ACTIVATIONS = {
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
}


@jax.custom_jvp
def log1p_exp_minus(z: jax.Array) -> jax.Array:
    """log(1 + exp(-z)), without overflow."""
    return jnp.logaddexp(0.0, -z)


@log1p_exp_minus.defjvp
def _log1p_exp_minus_jvp(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    # One sigmoid, where differentiating logaddexp takes two exponentials and a select.
    (z,), (dz,) = primals, tangents
    return log1p_exp_minus(z), -jax.nn.sigmoid(-z) * dz


@dataclass(frozen=True)
class LogisticLoss:
    """log(1 + exp(-l a.x)) + penalty sum_j x_j^2 / (1 + x_j^2) of a sample (a, l), l = -1, +1.

    Curvature of the first part in a.x lies in (0, 1/4], of x^2 / (1 + x^2) in [-1/2, 2].
    """

    penalty: float = 0.0

    def __call__(self, x: jax.Array, sample: Any) -> jax.Array:
        """G(x, sample)."""
        a, label = sample
        loss = log1p_exp_minus(label * jnp.dot(a, x))
        if self.penalty == 0:
            return loss
        squares = x**2
        return loss + self.penalty * jnp.sum(squares / (1 + squares))


@dataclass(frozen=True)
class SquaredLoss:
    """1/2 (a.x - b)^2 of a sample (a, b)."""

    def __call__(self, x: jax.Array, sample: Any) -> jax.Array:
        """G(x, sample)."""
        a, b = sample
        return 0.5 * (jnp.dot(a, x) - b) ** 2


@dataclass(frozen=True)
class TukeyLoss:
    """Tukey's biweight of the residual r = a.x - b, bounded beyond c = `scale`.

        c^2/6 (1 - (1 - (r/c)^2)^3) where |r| <= c,  c^2/6 beyond

    Its curvature (1 - u)(1 - 5u), u = (r/c)^2, lies in [-4/5, 1].
    """

    scale: float

    def __call__(self, x: jax.Array, sample: Any) -> jax.Array:
        """G(x, sample)."""
        a, b = sample
        u = jnp.minimum(((jnp.dot(a, x) - b) / self.scale) ** 2, 1.0)
        # 1 - (1 - u)^3, multiplied out: the difference would lose a small u.
        return self.scale**2 / 6 * u * (3 - 3 * u + u**2)


@dataclass(frozen=True)
class WelschLoss:
    """Welsch's loss of the residual r = a.x - b, with c = `scale`: c^2/2 (1 - exp(-(r/c)^2)).

    Its curvature (1 - 2u) exp(-u), u = (r/c)^2, lies in [-2 exp(-3/2), 1].
    """

    scale: float

    def __call__(self, x: jax.Array, sample: Any) -> jax.Array:
        """G(x, sample)."""
        a, b = sample
        return -(self.scale**2) / 2 * jnp.expm1(-(((jnp.dot(a, x) - b) / self.scale) ** 2))


@dataclass(frozen=True)
class PCALoss:
    """-1/2 (a.x)^2 of a sample a."""

    def __call__(self, x: jax.Array, sample: jax.Array) -> jax.Array:
        """G(x, sample)."""
        return -0.5 * jnp.dot(sample, x) ** 2


@dataclass(frozen=True)
class FactorizationLoss:
    """1/2 (u_i.v_j - value)^2 + penalty/2 (||U||^2 + ||V||^2) of a sample (i, j, value)."""

    penalty: float = 0.0

    def __call__(self, params: Any, sample: Any) -> jax.Array:
        """G(params, sample), params = {"U": (d1, r), "V": (d2, r)}."""
        row, column, value = sample
        U, V = params["U"], params["V"]
        loss = 0.5 * (jnp.dot(U[row], V[column]) - value) ** 2
        if self.penalty == 0:
            return loss
        return loss + self.penalty / 2 * (jnp.sum(U**2) + jnp.sum(V**2))


@dataclass(frozen=True)
class MLPLoss:
    """Softmax cross-entropy of a sample (a, class) under layers of a -> activation(a w + b).

    The last layer has no activation: its outputs are the logits.
    """

    activation: str = "tanh"

    def __call__(self, params: Any, sample: Any) -> jax.Array:
        """G(params, sample), params = [{"w": (in, out), "b": (out,)}, ...]."""
        a, label = sample
        *hidden, last = params
        for layer in hidden:
            a = ACTIVATIONS[self.activation](a @ layer["w"] + layer["b"])
        logits = a @ last["w"] + last["b"]
        return jax.nn.logsumexp(logits) - logits[label]


@dataclass(frozen=True)
class QuadraticLoss:
    """1/2 x'Ax + s/2 ||x||^2 - b.x of a sample (b, s); A diagonal, low to high in equal steps."""

    low: float
    high: float

    def __call__(self, x: jax.Array, sample: tuple[jax.Array, jax.Array]) -> jax.Array:
        """G(x, sample)."""
        b, s = sample
        diagonal = jnp.linspace(self.low, self.high, x.shape[0], dtype=x.dtype)
        return 0.5 * jnp.sum((diagonal + s) * x**2) - jnp.dot(b, x)

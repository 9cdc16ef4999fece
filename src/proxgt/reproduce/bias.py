"""Where methods end at a constant step with full gradients, and where DSGD is predicted to."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.consensus import Consensus
from proxgt.estimators import FullGradient
from proxgt.methods import ProxGT
from proxgt.networks import Network
from proxgt.problems import EmpiricalRisk
from proxgt.problems.oracles import FiniteOracle
from proxgt.reproduce.runs import curve
from proxgt.solve import solve

_SETTLED = 60.0  # alpha T, after which nothing of the start is left in a floor


def floor(
    problem: EmpiricalRisk, network: Network, method: type, a: float, consensus: Consensus
) -> float:
    """The metric, with the gradient mapping at 1/L, at the end of a long run at step size a."""
    one, steps = method(FullGradient(), a, consensus), int(_SETTLED / a)
    metric = curve(problem, network, one, (0,), steps, metric_step=1 / problem.smoothness)
    return float(metric[0, -1])


def bias_of_dsgd(problem: EmpiricalRisk, network: Network, consensus: Consensus) -> float:
    """The limit of floor/alpha^2 as alpha goes to 0, for DSGD, with h = 0.

    A fixed point of x = W^K x - alpha grad f(x) is x_i = x* + alpha (c - u_i) + O(alpha^2) with

        u = (I - W^K)^+ grad f(x*),   mean_i H_i c = mean_i H_i u_i,   H_i = grad^2 f_i(x*)

    by its difference to its mean, and by its mean, where sum_i grad f_i(x_i) = 0.
    """
    tracked = ProxGT(FullGradient(), 1 / problem.smoothness, consensus)
    x = solve(problem, network, tracked, 1000, record_every=1000).solution
    n, oracle = network.nodes, problem.oracle(problem.spec(), "float32")
    rows = jnp.broadcast_to(jnp.asarray(x, "float32"), (n, len(x)))
    gradients, H = (np.asarray(one, np.float64) for one in _derivatives(oracle, rows))
    u = np.linalg.pinv(np.eye(n) - consensus.matrix(network)) @ (gradients - gradients.mean(0))
    c = np.linalg.solve(H.mean(0), np.einsum("ipq,iq->p", H, u) / n)
    mapping = (c - u) @ H.mean(0)
    return float(np.sum(mapping**2 + problem.smoothness**2 * u**2) / n)


@jax.jit
def _derivatives(oracle: FiniteOracle, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """grad f_i and grad^2 f_i at x_i: (nodes, p) and (nodes, p, p)."""

    def along(direction: jax.Array) -> jax.Array:
        tangent = jnp.broadcast_to(direction, x.shape)
        return jax.jvp(oracle.full_gradients, (x,), (tangent,))[1]

    columns = jax.lax.map(along, jnp.eye(x.shape[1], dtype=x.dtype))
    return oracle.full_gradients(x), jnp.moveaxis(columns, 0, -1)

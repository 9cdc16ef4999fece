"""Whole trajectories of ProxGT, recorded in double precision for the lemmas to be checked on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks, records
from proxgt.consensus import Gossip
from proxgt.engines.local import step_keys
from proxgt.methods import ProxGT
from proxgt.methods.base import prepared
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.theory.constants import require_fixed
from proxgt.theory.known import local_gradients


@dataclass(frozen=True)
class Trajectory:
    """T steps of Algorithm 1 for every seed; arrays (seeds, time, nodes, p), time from the left.

    Attributes:
        x: x_1, ..., x_{T+1}. y: y_1, ..., y_{T+1}. v: v_1, ..., v_T. z: z_2, ..., z_{T+1}.
        gradients: grad f_i(x_t^i) for t = 1..T.
        mappings: s(x_t^i) of eq. (7) for t = 1..T, with the method's step.
        start: Psi(x_1), the common start.
        method, contraction: what was run, and lambda = ||P - 11'/n||.
        non_negative: whether P is sure to have no negative entry.
    """

    x: np.ndarray
    y: np.ndarray
    v: np.ndarray
    z: np.ndarray
    gradients: np.ndarray
    mappings: np.ndarray
    start: float
    method: ProxGT
    contraction: float
    non_negative: bool

    @property
    def step_size(self) -> float:
        """alpha."""
        return float(self.method.step_size)

    @property
    def steps(self) -> int:
        """T."""
        return self.v.shape[1]

    @property
    def nodes(self) -> int:
        """n."""
        return self.x.shape[2]

    @property
    def sgp(self) -> np.ndarray:
        """g_t = (x_t - z_{t+1})/alpha, eq. (14)."""
        return (self.x[:, :-1] - self.z) / self.step_size

    def spread(self, rows: np.ndarray) -> np.ndarray:
        """||rows - J rows||^2 at every time: (seeds, time)."""
        return np.sum((rows - rows.mean(2, keepdims=True)) ** 2, axis=(2, 3))

    def metric(self, smoothness: float) -> np.ndarray:
        """(1/n) sum_i (||s(x_t^i)||^2 + L^2 ||x_t^i - mean||^2) at t = 1..T: (seeds, T)."""
        size = np.sum(self.mappings**2, axis=(2, 3))
        return (size + smoothness**2 * self.spread(self.x[:, :-1])) / self.nodes


@records.record
class Product:
    """rows -> P rows."""

    matrix: jax.Array

    def __call__(self, rows: jax.Array) -> jax.Array:
        """P rows."""
        return self.matrix @ rows


def record_trajectory(
    problem: Problem,
    network: Network,
    method: ProxGT,
    steps: int,
    seeds: Sequence[int] = (0,),
    x0: Any = None,
) -> Trajectory:
    """Run `method` once for every seed, with the draws `solve` would make, and keep everything.

    Needs grad f_i: an empirical risk, or a population risk whose gradients are known.
    """
    checks.positive_int("steps", steps)
    require_fixed(network)
    checks.positive_number("step_size", method.step_size)
    problem = problem if x0 is None else problem.starting_at(x0)
    method = prepared(method, network)
    method.check(problem, network)
    gradients = local_gradients(problem)
    with jax.enable_x64(True):
        spec = problem.spec()
        x = jnp.asarray(spec.vector(problem.x0, name="x0"), "float64")
        recorded = _record(
            problem.oracle(spec, "float64"),
            problem.evaluator(spec, "float64"),
            dataclasses.replace(method, consensus=Gossip(1)),  # static: mix is what counts
            Product(jnp.asarray(method.consensus.matrix(network), "float64")),
            jnp.broadcast_to(x, (network.nodes, spec.size)),
            jnp.asarray(seeds),
            gradients,
            steps,
        )
        start = problem.objective(problem.x0)
    return Trajectory(
        *(np.asarray(a) for a in recorded),
        start=float(start),
        method=method,
        contraction=method.consensus.contraction(network),
        non_negative=method.consensus.non_negative,
    )


@partial(jax.jit, static_argnames=("gradients", "steps"))
def _record(
    oracle: Any,
    evaluator: Any,
    method: ProxGT,
    mix: Any,
    x: jax.Array,
    seeds: jax.Array,
    gradients: Any,
    steps: int,
) -> tuple[jax.Array, ...]:
    a, nodes = method.step_size, jnp.arange(x.shape[0], dtype=jnp.int32)

    def exact(x: jax.Array) -> jax.Array:
        return oracle.full_gradients(x) if gradients is None else gradients(x)

    def mapping(x: jax.Array) -> jax.Array:
        F = jax.vmap(evaluator.risk_gradient)(x) / x.shape[0]
        return (x - oracle.prox(x - a * F, a)) / a

    def one_seed(seed: jax.Array) -> tuple[jax.Array, ...]:
        key = jax.random.key(seed)

        def one_step(state: Any, t: jax.Array) -> Any:
            draw = method.draw(oracle, step_keys(key, t, nodes))
            after = method.step(oracle, mix, state, draw)
            z = oracle.prox(state.x - a * after.y, a)
            kept = (after.x, after.y, after.estimate.v, z, exact(state.x), mapping(state.x))
            return after, kept

        state = method.init(oracle, mix, x)
        _, (xs, ys, *rest) = jax.lax.scan(one_step, state, jnp.arange(steps, dtype=jnp.int32))
        xs = jnp.concatenate([x[None], xs])
        return (xs, jnp.concatenate([jnp.zeros_like(x)[None], ys]), *rest)

    return jax.vmap(one_seed)(seeds)

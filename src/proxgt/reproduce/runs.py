"""Runs measured at every iterate and node, many seeds at once: Definition 3 as it stands.

    reach(problem, network, method, epsilon, seeds=range(5), most=10_000)

runs until, for every seed, the average over x_1..x_T of

    (1/n) sum_i ||s(x_t^i)||^2 + (L^2/n) sum_i ||x_t^i - mean||^2

is at most epsilon^2. `solve` measures at records with the clock stopped; here nothing is timed,
so that metric and steps are one compiled loop, with the draws that `solve` would make.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.consensus import Consensus, Gossip, Polynomial
from proxgt.engines.base import Turn, during
from proxgt.engines.local import step_keys
from proxgt.engines.mixing import DenseMix
from proxgt.methods.base import Method, prepared, step_size_at
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.theory.constants import require_fixed

_CHUNK = 200


@dataclass(frozen=True)
class Reached:
    """What runs to epsilon took, one entry a seed; infinity where `most` steps did not do.

    Attributes:
        steps: the least T with the average over x_1..x_T at most epsilon^2.
        samples, gradients: of T steps, per node; rounds: of T steps.
        metric: (seeds, steps) of the iterates, as far as the slowest seed went.
    """

    steps: np.ndarray
    samples: np.ndarray
    gradients: np.ndarray
    rounds: np.ndarray
    metric: np.ndarray

    @property
    def all(self) -> bool:
        """Whether every seed got there."""
        return bool(np.isfinite(self.steps).all())


def reach(
    problem: Problem,
    network: Network,
    method: Method,
    epsilon: float,
    seeds: Iterable[int],
    most: int,
    metric_step: float | None = None,
) -> Reached:
    """Run until Definition 3 holds at epsilon for every seed, or `most` steps.

    `metric_step` is that of the gradient mapping: by default the method's own, as in the
    paper. Give one for all where methods are compared.
    """
    method = prepared(method, network)
    metric = curve(problem, network, method, seeds, most, epsilon, metric_step, give_up=True)
    steps = np.array([_first(one, epsilon**2) for one in metric])
    samples, gradients, rounds = np.array([_cost(method, problem, T) for T in steps]).T
    return Reached(steps, samples, gradients, rounds, metric)


def _cost(method: Method, problem: Problem, steps: float) -> tuple[float, float, float]:
    if not np.isfinite(steps):
        return np.inf, np.inf, np.inf
    cost = method.cost(problem, int(steps))
    return cost.samples, cost.gradients, cost.rounds


def curve(
    problem: Problem,
    network: Network,
    method: Method,
    seeds: Iterable[int],
    steps: int,
    until: float | None = None,
    metric_step: float | None = None,
    give_up: bool = False,
) -> np.ndarray:
    """The metric of x_1, x_2, ... at every node: (seeds, steps).

    With `until`, only as far as every running average needs to get to until^2, or with `give_up`
    to be sure that it will not. Another K, or another network of as many nodes, compiles
    nothing.
    """
    require_fixed(network)
    method = prepared(method, network)
    method.check(problem, network)
    spec, seeds = problem.spec(), jnp.asarray(list(seeds))
    oracle, evaluator = problem.oracle(spec, "float32"), problem.evaluator(spec, "float32")
    method, mix = _apart(method, network)
    a = float(step_size_at(method.step_size, 0)) if metric_step is None else metric_step
    x = jnp.asarray(spec.vector(problem.x0, name="x0"), "float32")
    rows = jnp.broadcast_to(x, (network.nodes, spec.size))
    state = method.init(oracle, during(mix, Turn(-1)), rows)
    states = jax.tree.map(
        lambda leaf: jnp.repeat(leaf[None], len(seeds), axis=0) if leaf.ndim else leaf, state
    )
    parts: list[np.ndarray] = []
    for begin in range(0, steps, _CHUNK):
        states, part = _advance(
            states, begin, seeds, method, oracle, evaluator, mix, a, problem.smoothness
        )
        parts.append(np.asarray(part, np.float64))
        if _settled(parts, until, steps if give_up else None):
            break
    return np.concatenate(parts, axis=1)[:, :steps]


def _apart(method: Method, network: Network) -> tuple[Method, Any]:
    """The method without its K, which is part of a compiled program, and its mixing functions.

    The mixing is always the dense product, whose matrix is an argument.
    """

    def is_one(node: Any) -> bool:
        return isinstance(node, Consensus)

    def product(one: Consensus) -> DenseMix:
        return DenseMix(jnp.asarray(one.matrix(network), "float32"))

    def any_of_its_kind(one: Consensus) -> Consensus:
        return Gossip(1) if isinstance(one, Polynomial) else one

    bare = jax.tree.map(any_of_its_kind, method.consensus, is_leaf=is_one)
    mix = jax.tree.map(product, method.consensus, is_leaf=is_one)
    return dataclasses.replace(method, consensus=bare), mix  # pyright: ignore[reportArgumentType]


def _settled(parts: list[np.ndarray], until: float | None, most: int | None) -> bool:
    """Whether no seed needs to go on: it is there, has diverged, or `most` steps will not do."""
    if until is None:
        return not np.isfinite(parts[-1]).all()
    every = np.concatenate(parts, axis=1)
    total, there = every.sum(axis=1), [np.isfinite(_first(one, until**2)) for one in every]
    lost = ~np.isfinite(total)
    if most is not None:  # the metric is not negative: its sum will not come back
        lost |= total > most * until**2
    return bool(np.all(there | lost))


def _first(metric: np.ndarray, target: float) -> float:
    """The least T >= 1 whose running average is at most the target; infinity if none is."""
    average = np.cumsum(metric) / np.arange(1, len(metric) + 1)
    below = np.flatnonzero(average <= target)  # NaN is not
    return float(below[0] + 1) if below.size else np.inf


@jax.jit
def _advance(
    states: Any,
    begin: Any,
    seeds: jax.Array,
    method: Any,
    oracle: Any,
    evaluator: Any,
    mix: Any,
    a: Any,
    smoothness: Any,
) -> tuple[Any, jax.Array]:
    """_CHUNK steps of every seed, and the metric of the iterate before each."""
    nodes = jnp.arange(states.x.shape[1], dtype=jnp.int32)
    # Scalars, such as t, are the same for all seeds: `cond` on them must not become a select.
    shared = jax.tree.map(lambda leaf: 0 if leaf.ndim else None, states)

    def metric(x: jax.Array) -> jax.Array:
        gradients = jax.vmap(evaluator.risk_gradient)(x) / x.shape[0]
        mapping = (x - oracle.prox(x - a * gradients, a)) / a
        spread = x - jnp.mean(x, axis=0)
        return jnp.sum(mapping**2 + smoothness**2 * spread**2) / x.shape[0]

    def one_seed(seed: jax.Array, state: Any) -> Any:
        key = jax.random.key(seed)

        def one_step(state: Any, t: jax.Array) -> Any:
            draw = method.draw(oracle.at(t), step_keys(key, t, nodes))
            after = method.step(oracle.at(t), during(mix, Turn(t)), state, draw)
            return after, metric(state.x)

        return jax.lax.scan(one_step, state, begin + jnp.arange(_CHUNK, dtype=jnp.int32))

    return jax.vmap(one_seed, (0, shared), (shared, 0))(seeds, states)

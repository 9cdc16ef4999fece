"""How long a step takes on this machine: two short runs and one exchange, timed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.consensus import Gossip
from proxgt.engines.mixing import DenseMix, neighbour_sum
from proxgt.methods import ProxGT_SA
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.solve import solve
from proxgt.theory.search import Usage

_CHUNK, _CHUNKS, _BATCH, _EXCHANGES = 50, 8, 256, 50
_DENSE_NODES = 2048


@dataclass(frozen=True)
class StepTime:
    """Seconds of a run = steps * step + gradients * gradient + mixing, gradients per node."""

    step: float
    gradient: float
    exchange: float  # one sparse round
    dense: float  # the whole polynomial as one product

    def __call__(self, usage: Usage) -> Any:
        """Predicted seconds."""
        mix = min(self.dense, usage.mixing.rounds * self.exchange)
        return usage.steps * (self.step + 2 * mix) + usage.gradients * self.gradient


def step_time(problem: Problem, network: Network) -> StepTime:
    """Time this problem on this machine; some seconds, mostly of compiling."""
    p = problem.spec().size
    rows = jnp.ones((network.nodes, p), jnp.float32)
    exchange = _seconds(neighbour_sum(network.sparse, "float32"), rows)
    dense = float("inf")
    if network.nodes <= _DENSE_NODES:
        dense = _seconds(DenseMix(jnp.asarray(network.W, "float32")), rows)
    mix = min(dense, exchange)
    one, many = (_run_seconds(problem, network, batch) for batch in (1, _BATCH))
    gradient = max(many - one, 0.0) / (_BATCH - 1)
    return StepTime(max(one - gradient - 2 * mix, 1e-7), gradient, exchange, dense)


def _run_seconds(problem: Problem, network: Network, batch: int) -> float:
    """Seconds a step of ProxGT-SA takes, compiling and measuring apart."""
    method = ProxGT_SA(batch, 1e-9, Gossip(1))
    result = solve(problem, network, method, _CHUNK * _CHUNKS, record_every=_CHUNK)
    return float(np.min(np.diff(result.history["seconds"]))) / _CHUNK


@jax.jit
def _exchanges(mix: Any, rows: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, _EXCHANGES, lambda _, r: mix(r), rows)


def _seconds(mix: Any, rows: jax.Array) -> float:
    _exchanges(mix, rows).block_until_ready()
    took = []
    for _ in range(3):
        clock = time.perf_counter()
        _exchanges(mix, rows).block_until_ready()
        took.append(time.perf_counter() - clock)
    return min(took) / _EXCHANGES

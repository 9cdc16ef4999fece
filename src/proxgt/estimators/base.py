"""Gradient estimators: v_t of line 2 of Algorithm 1.

    draw(problem, keys) -> draw                      which samples a step uses
    update(problem, x, last, draw) -> Estimate       v_t at x_t

`draw` is split off so that the loop can make the draws of many steps at once; an estimator
that does without it is handed the keys themselves. `Estimate` keeps (x_{t-1}, v_{t-1}).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle

Size = int | Literal["auto"]  # "auto" where ProxGT's theorems settle it


class Estimate(NamedTuple):
    """v at the point x, after t updates. t is one scalar shared by all rows."""

    t: jax.Array
    x: jax.Array
    v: jax.Array


class Usage(NamedTuple):
    """What some steps cost a node: samples drawn and gradients of G_i evaluated."""

    samples: float
    gradients: float


class Estimator(ABC):
    """How v_t is made. Written once, for any problem, method and engine."""

    def check(self, problem: Problem) -> None:  # noqa: B027
        """Refuse a problem this estimator cannot serve."""

    def init(self, problem: Oracle, x: jax.Array) -> Any:
        """v_0 = 0 at the common start, line 0 of Algorithm 1."""
        del problem
        return Estimate(jnp.zeros((), jnp.int32), x, jnp.zeros_like(x))

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        """What is random in one step; by default the keys, shape (nodes,), themselves."""
        del problem
        return keys

    @abstractmethod
    def update(self, problem: Oracle, x: jax.Array, last: Any, draw: Any) -> Any:
        """The next estimate, a named tuple with at least the fields of `Estimate`."""

    @abstractmethod
    def usage(self, problem: Problem, steps: int) -> Usage:
        """What the first `steps` steps cost each node (the mean, where m_i differ)."""


def need_exact(problem: Problem, name: str, remedy: str) -> None:
    """Refuse a population risk by name."""
    if not problem.exact:
        raise ValueError(
            f"{name} needs the exact gradient of an empirical risk, and the problem is a "
            f"population risk: use {remedy}"
        )

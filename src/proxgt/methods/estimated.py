"""What methods that make one estimate v_t a step share: their draw, their cost, common states."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax

from proxgt.estimators import Estimator
from proxgt.methods.base import Cost, Method, as_step_size, rounds_of
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import is_record


class DescentState(NamedTuple):
    """x_{t+1} and the estimate at x_t; rows are nodes."""

    x: jax.Array
    estimate: Any


class TrackingState(NamedTuple):
    """x_{t+1}, y_{t+1} and the estimate at x_t; rows are nodes."""

    x: jax.Array
    y: jax.Array
    estimate: Any


class Estimated(Method):
    """A method that makes one estimate a step and puts `vectors` p-vectors through W^K."""

    estimator: Any
    vectors: ClassVar[int]

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        return self.estimator.draw(problem, keys)

    def cost(self, problem: Problem, steps: int) -> Cost:
        samples, gradients = self.estimator.usage(problem, steps)
        return Cost(samples, gradients, self.vectors * rounds_of(self.consensus) * steps)


def settle_estimate(method: Any, *, automatic: bool = False) -> None:
    """Check the step size and the estimator of a method being made.

    `automatic` allows step_size="auto". A schedule given as a plain function is wrapped.
    """
    object.__setattr__(method, "step_size", as_step_size(method.step_size, automatic=automatic))
    if not (isinstance(method.estimator, Estimator) and is_record(method.estimator)):
        raise TypeError(
            "estimator must be an instance of a class that inherits from Estimator and is "
            f"decorated with @proxgt.record, got {method.estimator!r}"
        )

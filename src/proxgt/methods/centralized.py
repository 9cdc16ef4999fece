"""Methods of one machine: what the decentralized ones are measured against.

    problem.pooled()          the same Psi on one node that holds the samples of all
    Network.complete(1)       the network that goes with it

All but FISTA are one recursion over one node, with v_t of some estimator:

    x_{t+1} = (1 - g) x_t + g prox_{a h}(x_t - a v_t)

ProxGT on one node is the same with g = 1. Nothing is sent, so the cost is 0 rounds.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.estimators import Estimator, FullGradient, Minibatch
from proxgt.methods.base import Cost, Method, as_step_size, step_size_at
from proxgt.methods.requirements import refuse_population
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static


class SingleNode(Method):
    """What the methods of one machine share: they refuse more nodes, and send nothing."""

    consensus: tuple[()]
    estimator: Estimator
    online: ClassVar[str] = "ProxSGD"  # what serves a population risk where this one does not

    def check(self, problem: Problem, network: Network) -> None:
        if network.nodes != 1:
            raise ValueError(
                f"{type(self).__name__} runs on one node, and the network has {network.nodes}: "
                "solve problem.pooled() on Network.complete(1)"
            )
        refuse_population(type(self).__name__, self.estimator, problem, self.online)

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        return self.estimator.draw(problem, keys)

    def cost(self, problem: Problem, steps: int) -> Cost:
        return Cost(*self.estimator.usage(problem, steps), 0)


class ProxStepState(NamedTuple):
    """x_{t+1} and the estimate at x_t; one row."""

    x: jax.Array
    estimate: Any


class _ProxSteps(SingleNode):
    """The recursion of this module up to its average."""

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> ProxStepState:
        del mix
        return ProxStepState(x, self.estimator.init(problem, x))

    def descend(self, problem: Oracle, state: ProxStepState, draw: Any) -> ProxStepState:
        """The prox point, and the estimate that led to it."""
        x, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        return ProxStepState(problem.prox(x - a * estimate.v, a), estimate)


class Plain(_ProxSteps):
    """g = 1."""

    def step(self, problem: Oracle, mix: Any, state: ProxStepState, draw: Any) -> ProxStepState:
        del mix
        return self.descend(problem, state, draw)


class Averaged(_ProxSteps):
    """g = `averaging`."""

    averaging: float

    def step(self, problem: Oracle, mix: Any, state: ProxStepState, draw: Any) -> ProxStepState:
        del mix
        point, estimate = self.descend(problem, state, draw)
        return ProxStepState(state.x + self.averaging * (point - state.x), estimate)


def settle_single(method: SingleNode, estimator: Estimator) -> None:
    """Check the fields of a method being made; the estimator has checked its own."""
    object.__setattr__(method, "estimator", estimator)
    object.__setattr__(method, "step_size", as_step_size(method.step_size))
    if method.consensus != ():
        raise ValueError(
            f"consensus must be left out, since {type(method).__name__} runs on one node, "
            f"got {method.consensus!r}"
        )
    if isinstance(method, Averaged):
        averaging = method.averaging
        if not 0 < checks.finite_number("averaging", averaging) <= 1:
            raise ValueError(f"averaging must be in (0, 1], got {averaging!r}")


@record
class ProxGD(Plain):
    """The proximal gradient method (Lions, Mercier 1979; Beck 2017, chapter 10).

        x_{t+1} = prox_{a h}(x_t - a grad F(x_t))

    Cost: a pass over the data a step. Exact; a < 2/L.

    Args:
        step_size: a, a number or a function of the step counted from zero.
    """

    step_size: Any
    consensus: tuple[()] = static(default=(), repr=False)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields

    def __post_init__(self) -> None:
        settle_single(self, FullGradient())


class FISTAState(NamedTuple):
    """x_{t+1}, x_t, the momentum's theta_t and the estimate at y_t; one row."""

    x: jax.Array
    before: jax.Array
    theta: jax.Array
    estimate: Any


@record
class FISTA(SingleNode):
    """The accelerated proximal gradient method.

    Beck, Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems", SIAM Journal on Imaging Sciences 2009.

        theta_t = (1 + sqrt(1 + 4 theta_{t-1}^2)) / 2              theta_0 = 1
        y_t     = x_t + ((theta_{t-1} - 1) / theta_t) (x_t - x_{t-1})
        x_{t+1} = prox_{a h}(y_t - a grad F(y_t))

    Stated for convex F and a <= 1/L; a non-convex F may make it swing. Cost: a pass over the
    data a step.

    Args:
        step_size: a, a number or a function of the step counted from zero.
    """

    step_size: Any
    consensus: tuple[()] = static(default=(), repr=False)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields

    def __post_init__(self) -> None:
        settle_single(self, FullGradient())

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> FISTAState:
        del mix
        # theta = 0 makes theta_0 = 1; x = before makes y_0 = x_0
        return FISTAState(x, x, jnp.zeros((), x.dtype), self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: FISTAState, draw: Any) -> FISTAState:
        del mix
        x, before, theta_before, last = state
        a = step_size_at(self.step_size, last.t)
        theta = (1 + jnp.sqrt(1 + 4 * theta_before**2)) / 2
        y = x + ((theta_before - 1) / theta) * (x - before)
        estimate = self.estimator.update(problem, y, last, draw)
        return FISTAState(problem.prox(y - a * estimate.v, a), x, theta, estimate)


@record
class ProxSGD(Plain):
    """Minibatch stochastic proximal gradient.

    Ghadimi, Lan, Zhang, "Mini-batch stochastic approximation methods for nonconvex stochastic
    composite optimization", Mathematical Programming 2016.

        x_{t+1} = prox_{a h}(x_t - a g(x_t; xi_t))

    Hovers at a noise floor that falls with a and with 1/batch. Cost: b samples a step.

    Args:
        batch: b.
        step_size: a, a number or a function of the step counted from zero.
    """

    batch: int = static()
    step_size: Any
    consensus: tuple[()] = static(default=(), repr=False)
    estimator: Estimator = field(init=False, repr=False)  # made of the other fields

    def __post_init__(self) -> None:
        settle_single(self, Minibatch(self.batch))

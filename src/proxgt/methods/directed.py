"""Methods for digraphs whose nodes need no doubly stochastic W.

A column-stochastic C keeps the sum of what nodes hold, but spreads it unevenly: its powers
tend to pi 1', where pi sums to one and is not 1/n unless the digraph is balanced. Push-sum
divides by what the same exchanges make of a weight that starts at one. A row-stochastic R
keeps equal rows equal, and C with it keeps the sum of a tracker: together they need no weight.

A push-sum weight is one number in the message of a p-vector, and is not counted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from proxgt.consensus import ColumnStochastic, Consensus, RowStochastic
from proxgt.estimators import Estimator
from proxgt.methods.base import Cost, Method, rounds_of, step_size_at
from proxgt.methods.estimated import Estimated, settle_estimate
from proxgt.methods.requirements import check_estimate, refuse_regularizer
from proxgt.networks import Network
from proxgt.networks.network import STOCHASTIC
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static

ROWS, COLUMNS = 1, 0  # axes along which a matrix sums to one


def settle_directed(method: Any) -> None:
    """Check the step size, the estimator and the consensus of a method being made."""
    settle_estimate(method)
    if not isinstance(method.consensus, Consensus):
        raise TypeError(
            "consensus must be ColumnStochastic(rounds), or Gossip(rounds) for a doubly "
            f"stochastic W, got {method.consensus!r}"
        )


def require_sums(name: str, consensus: Consensus, network: Network, axis: int) -> None:
    """Refuse a consensus matrix whose rows (axis 1) or columns (axis 0) do not sum to one."""
    per_round = consensus.coefficients(network).sum(axis=1)
    sums = consensus.weights(network).sum(axis=axis)
    if abs(per_round - 1).max() > STOCHASTIC or abs(sums - 1).max() > STOCHASTIC:
        which, remedy = {
            ROWS: ("rows", "RowStochastic(rounds)"),
            COLUMNS: ("columns", "ColumnStochastic(rounds)"),
        }[axis]
        raise ValueError(
            f"{name} needs a consensus matrix whose {which} sum to one, and those of "
            f"{consensus!r} on {network!r} do not: use {remedy}"
        )


def push(mix: Any, rows: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    """C rows and C weight in one exchange: the weight, (nodes, 1), rides in the message."""
    heard = mix(jnp.concatenate([rows, weight], axis=1))
    return heard[:, :-1], heard[:, -1:]


# Push-sum ----------------------------------------------------------------------------------


class SGPState(NamedTuple):
    """x_{t+1} = u_{t+1} / w_{t+1}, u, w (nodes, 1), and the estimate at x_t."""

    x: jax.Array
    u: jax.Array
    w: jax.Array
    estimate: Any


@record
class SGP(Estimated):
    """Stochastic gradient push: DSGD over push-sum.

    Assran, Loizou, Ballas, Rabbat, "Stochastic gradient push for distributed deep learning",
    ICML 2019.

        v_t     ~ gradient of f_i at x_t
        u_{t+1} = C^K (u_t - a v_t)                 u_0 = x_0
        w_{t+1} = C^K w_t                           w_0 = 1
        x_{t+1} = u_{t+1} / w_{t+1}

    With a doubly stochastic C this is `DSGD_ATC`, and like it stops at a distance O(a) where
    the f_i differ. Any strongly connected digraph; smooth problems. Cost: K rounds.

    Args:
        estimator: how v_t is made; `Minibatch(b)` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what C^K is.
    """

    vectors = 1
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=ColumnStochastic(1))

    def __post_init__(self) -> None:
        settle_directed(self)

    def check(self, problem: Problem, network: Network) -> None:
        refuse_regularizer("SGP", problem, "SONATA")
        check_estimate(self, problem)
        require_sums("SGP", self.consensus, network, COLUMNS)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> SGPState:
        del mix
        return SGPState(x, x, jnp.ones_like(x[:, :1]), self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: SGPState, draw: Any) -> SGPState:
        x, u, w, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        u, w = push(mix, u - a * estimate.v, w)
        return SGPState(u / w, u, w, estimate)


class PushDIGingState(NamedTuple):
    """x_{t+1} = u_{t+1} / w_{t+1}, u, w (nodes, 1), C^K y_t, and the estimate at x_t."""

    x: jax.Array
    u: jax.Array
    w: jax.Array
    heard: jax.Array
    estimate: Any


@record
class Push_DIGing(Estimated):
    """Gradient tracking over push-sum.

    Nedic, Olshevsky, Shi, "Achieving geometric convergence for distributed optimization over
    time-varying graphs", SIAM Journal on Optimization 2017.

        y_t     = C^K y_{t-1} + v_t - v_{t-1}       v_t = grad f_i(x_t), y_0 = v_0
        u_{t+1} = C^K (u_t - a y_t)                 u_0 = x_0
        w_{t+1} = C^K w_t                           w_0 = 1
        x_{t+1} = u_{t+1} / w_{t+1}

    The network sums of y_t and v_t agree at every step. Any strongly connected digraph;
    smooth problems. Cost: 2K rounds, a pass over the data.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what C^K is.
    """

    vectors = 2
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=ColumnStochastic(1))

    def __post_init__(self) -> None:
        settle_directed(self)

    def check(self, problem: Problem, network: Network) -> None:
        refuse_regularizer("Push_DIGing", problem, "SONATA")
        check_estimate(self, problem)
        require_sums("Push_DIGing", self.consensus, network, COLUMNS)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> PushDIGingState:
        del mix
        w, heard = jnp.ones_like(x[:, :1]), jnp.zeros_like(x)
        return PushDIGingState(x, x, w, heard, self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: PushDIGingState, draw: Any) -> PushDIGingState:
        x, u, w, heard, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y = heard + estimate.v - last.v
        u, w = push(mix, u - a * y, w)
        return PushDIGingState(u / w, u, w, mix(y), estimate)


# A row- and a column-stochastic matrix -----------------------------------------------------


class TwoMatrices(NamedTuple):
    """R^K, which x goes through, and C^K, which the tracker goes through."""

    rows: Consensus = RowStochastic(1)
    columns: Consensus = ColumnStochastic(1)


class TwoMatricesState(NamedTuple):
    """x_{t+1}, C^K y_t and the estimate at x_t; rows are nodes."""

    x: jax.Array
    heard: jax.Array
    estimate: Any


class _TwoMatrices(Method):
    """y_t = C^K y_{t-1} + v_t - v_{t-1}; x_{t+1} from x_t and y_t through R^K."""

    estimator: Any

    def __post_init__(self) -> None:
        settle_estimate(self)
        pair = self.consensus
        if not (
            isinstance(pair, Sequence)
            and len(pair) == 2
            and all(isinstance(one, Consensus) for one in pair)
        ):
            raise TypeError(
                "consensus must be a pair such as (RowStochastic(1), ColumnStochastic(1)), "
                f"got {pair!r}"
            )
        object.__setattr__(self, "consensus", TwoMatrices(*pair))

    def check(self, problem: Problem, network: Network) -> None:
        name = type(self).__name__
        refuse_regularizer(name, problem, "SONATA")
        check_estimate(self, problem)
        require_sums(name, self.consensus.rows, network, ROWS)
        require_sums(name, self.consensus.columns, network, COLUMNS)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> TwoMatricesState:
        del mix
        return TwoMatricesState(x, jnp.zeros_like(x), self.estimator.init(problem, x))

    def draw(self, problem: Oracle, keys: jax.Array) -> Any:
        return self.estimator.draw(problem, keys)

    def step(
        self, problem: Oracle, mix: Any, state: TwoMatricesState, draw: Any
    ) -> TwoMatricesState:
        x, heard, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y = heard + estimate.v - last.v
        return TwoMatricesState(self.move(mix.rows, x, a * y), mix.columns(y), estimate)

    @abstractmethod
    def move(self, mix: Any, x: jax.Array, change: jax.Array) -> jax.Array:
        """x_{t+1} from x_t and a y_t."""

    def cost(self, problem: Problem, steps: int) -> Cost:
        samples, gradients = self.estimator.usage(problem, steps)
        return Cost(samples, gradients, sum(map(rounds_of, self.consensus)) * steps)


@record
class AB(_TwoMatrices):
    """Gradient tracking with a row- and a column-stochastic matrix, combine then adapt.

    Xin, Khan, "A linear algorithm for optimization over directed graphs with geometric
    convergence", IEEE Control Systems Letters 2018. Their A is R here and their B is C.

        y_t     = C^K y_{t-1} + v_t - v_{t-1}       v_t = grad f_i(x_t), y_0 = v_0
        x_{t+1} = R^K x_t - a y_t

    Any strongly connected digraph; smooth problems. Cost: 2K rounds, a pass over the data.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: (R^K, C^K).
    """

    estimator: Estimator
    step_size: Any
    consensus: TwoMatrices = static(default=TwoMatrices())

    def move(self, mix: Any, x: jax.Array, change: jax.Array) -> jax.Array:
        return mix(x) - change


@record
class Push_Pull(_TwoMatrices):
    """Gradient tracking that pulls decisions and pushes gradients.

    Pu, Shi, Xu, Nedic, "Push-pull gradient methods for distributed optimization in
    networks", IEEE Transactions on Automatic Control 2021.

        y_t     = C^K y_{t-1} + v_t - v_{t-1}       v_t = grad f_i(x_t), y_0 = v_0
        x_{t+1} = R^K (x_t - a y_t)

    `AB` with the step before the exchange. Any strongly connected digraph; smooth problems.
    Cost: 2K rounds, a pass over the data.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: (R^K, C^K).
    """

    estimator: Estimator
    step_size: Any
    consensus: TwoMatrices = static(default=TwoMatrices())

    def move(self, mix: Any, x: jax.Array, change: jax.Array) -> jax.Array:
        return mix(x - change)

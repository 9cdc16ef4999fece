"""Composite and constrained descent in three ways: by prox, projection or linear minimizer.

Prox_DGD is published for a sum of f_i + h at every node; all methods have here the mean
(1/n) sum_i f_i + h of the paper, which has the same solutions.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.consensus import Consensus, Gossip
from proxgt.estimators import Estimator
from proxgt.methods.base import step_size_at
from proxgt.methods.estimated import DescentState, Estimated, TrackingState
from proxgt.methods.requirements import check_parts, refuse_nonsymmetric, settle
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static

# Descent without tracking ------------------------------------------------------------------


@record
class Prox_DGD(Estimated):
    """Decentralized proximal gradient descent, combine then adapt, without tracking.

    Zeng, Yin, "On nonconvex decentralized gradient descent", IEEE Transactions on Signal
    Processing 2018.

        x_{t+1} = prox_{a h}(W^K x_t - a v_t)       v_t = grad f_i(x_t), unmixed

    At a constant step the nodes stop at a distance O(a) from a solution where the f_i
    differ. Symmetric W; a < (1 + lambda_n(W))/L, from memory. Cost: K rounds, a pass over the
    data.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
    """

    vectors = 1
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)

    def check(self, problem: Problem, network: Network) -> None:
        refuse_nonsymmetric("Prox_DGD", network)
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> DescentState:
        del mix
        return DescentState(x, self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: DescentState, draw: Any) -> DescentState:
        x, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        return DescentState(problem.prox(mix(x) - a * estimate.v, a), estimate)


@record
class Projected_DSGD(Estimated):
    """Decentralized projected stochastic gradient: adapt, project, combine.

    Bianchi, Jakubowicz, "Convergence of a multi-agent projected stochastic gradient algorithm
    for non-convex optimization", IEEE Transactions on Automatic Control 2013.

        x_{t+1} = W^K proj_C(x_t - a_t v_t)         v_t ~ gradient of f_i at x_t

    h must be the indicator of the convex set C. Exact as a_t falls with sum a_t infinite and
    sum a_t^2 finite; biased at a constant step. Published for gossip that is random and
    row-stochastic, doubly so on average; here W is fixed and doubly stochastic, directed
    allowed, and W^K must not have negative entries, so that x stays in C. That projection
    comes before gossip is from memory of the publication. Cost: K rounds.

    Args:
        estimator: how v_t is made; `Minibatch(b)` as published.
        step_size: a_t, a number or a function of the step counted from zero.
        consensus: what W^K is, `Gossip(K)` or `LazyGossip(K)`.
    """

    vectors = 1
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)
        _require_convex_combinations("Projected_DSGD", self.consensus)

    def check(self, problem: Problem, network: Network) -> None:
        if not is_indicator(problem):
            raise ValueError(
                "Projected_DSGD needs the indicator of a set as regularizer, such as "
                f"L1Ball(radius), Box(lo, hi) or NonNegative(), and the problem has "
                f"{problem.regularizer!r}: use Prox_DGD or ProxGT"
            )
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> DescentState:
        del mix
        return DescentState(x, self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: DescentState, draw: Any) -> DescentState:
        x, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        return DescentState(mix(problem.prox(x - a * estimate.v, a)), estimate)


# Frank-Wolfe -------------------------------------------------------------------------------


def classic_step(t: Any) -> Any:
    """2/(t + 2) at step t counted from zero: the Frank-Wolfe rule for convex problems."""
    return 2.0 / (t + 2.0)


@record
class DeFW(Estimated):
    """Decentralized Frank-Wolfe: a linear minimizer in the place of the prox.

    Wai, Lafond, Scaglione, Moulines, "Decentralized Frank-Wolfe algorithm for convex and
    non-convex problems", IEEE Transactions on Automatic Control 2017.

        y_{t+1} = W^K (y_t + v_t - v_{t-1})         v_t = grad f_i(x_t)
        c_t     = a minimizer of <y_{t+1}, c> over c in C
        x_{t+1} = W^K ((1 - a_t) x_t + a_t c_t)

    h must be the indicator of a compact convex set C that knows its `lmo`. From a feasible
    start every x_t is in C. Symmetric W without negative entries. Cost: 2K rounds, a pass
    over the data.

    Args:
        estimator: how v_t is made; `FullGradient()` as published.
        step_size: a_t in (0, 1], a function of the step counted from zero. By default
            2/(t + 2), for convex f_i; the publication's non-convex runs have (t + 1)^-0.75.
        consensus: what W^K is, `Gossip(K)` or `LazyGossip(K)`.
    """

    vectors = 2
    estimator: Estimator
    step_size: Any = classic_step
    consensus: Consensus = static(default=Gossip(1))

    def __post_init__(self) -> None:
        settle(self)
        _require_convex_combinations("DeFW", self.consensus)
        first = float(step_size_at(self.step_size, 0))
        if first > 1:
            raise ValueError(f"step_size must be in (0, 1] for DeFW, got {first:g} at step 0")

    def check(self, problem: Problem, network: Network) -> None:
        if not hasattr(problem.regularizer, "lmo"):
            raise ValueError(
                "DeFW needs a regularizer with a linear minimizer, which L1Ball, L2Ball, "
                "LinfBall, Simplex, NuclearBall and a Box with finite bounds have, and the "
                f"problem has {problem.regularizer!r}: use one of them, or ProxGT"
            )
        refuse_nonsymmetric("DeFW", network)
        check_parts(self, problem, network)
        jumps = float(step_size_at(self.step_size, 0)) == 1  # to C, whatever the start
        if not jumps and problem.regularizer.value(problem.spec().vector(problem.x0)) > 0:
            raise ValueError(
                f"x0 must lie in the set of {problem.regularizer!r}, as DeFW only ever averages "
                "points: project it, or let step_size(0) be 1"
            )

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> TrackingState:
        del mix
        return TrackingState(x, jnp.zeros_like(x), self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: TrackingState, draw: Any) -> TrackingState:
        x, y, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        y = mix(y + estimate.v - last.v)
        vertices = jax.vmap(problem.regularizer.lmo)(y)  # pyright: ignore[reportAttributeAccessIssue]
        return TrackingState(mix((1 - a) * x + a * vertices), y, estimate)


# What is refused ---------------------------------------------------------------------------


def is_indicator(problem: Problem) -> bool:
    """Whether h has no other values than 0 and infinity.

    Tried at random points of three scales and at what a short prox step makes of them, which
    serves a user's own h as well: there a penalty is finite and positive.
    """
    spec, rng = problem.spec(), np.random.default_rng(0)
    points = rng.standard_normal((3, spec.size)) * [[1e-2], [1.0], [1e2]]
    values = _values_around(problem.flat_regularizer(spec), points.astype(np.float32))
    return bool(np.isin(values, (0, np.inf)).all())


@jax.jit
def _values_around(h: Any, points: jax.Array) -> jax.Array:
    """h at the points and at what a short prox step makes of them."""
    near = jax.vmap(lambda v: h.prox(v, 1e-3))(points)
    return jax.vmap(h.value)(jnp.concatenate([points, near]))


def _require_convex_combinations(name: str, consensus: Consensus) -> None:
    if not consensus.non_negative:
        raise ValueError(
            f"{name} needs a consensus matrix without negative entries to stay in the set: use "
            f"Gossip(rounds) or LazyGossip(rounds), not {consensus!r}"
        )

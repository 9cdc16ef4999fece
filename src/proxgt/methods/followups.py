"""Methods published after ProxGT that ask for little: one sample a step, or few bits.

Prox-DASA averages gradients and prox points over time; CDProxSGT compresses what is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from proxgt import checks
from proxgt.consensus import Consensus, Gossip
from proxgt.estimators import Estimator
from proxgt.methods.base import Cost, Method, as_fraction, rounds_of, step_size_at
from proxgt.methods.compressors import Compressor
from proxgt.methods.estimated import Estimated
from proxgt.methods.proxgt import ProxGT, ProxGT_SA
from proxgt.methods.requirements import check_parts, refuse_nonsymmetric, settle
from proxgt.networks import Network
from proxgt.problems import Problem
from proxgt.problems.oracles import Oracle
from proxgt.records import record, static

# Keys of compressors are told apart from those of samples, which count from zero.
_X_KEY, _Y_KEY = 2**31 - 1, 2**31 - 2


# Prox-DASA ---------------------------------------------------------------------------------


class AveragingState(NamedTuple):
    """x_{t+1}, z_{t+1} and the estimate at x_t; rows are nodes."""

    x: jax.Array
    z: jax.Array
    estimate: Any


@record
class Prox_DASA(Estimated):
    """Decentralized proximal averaged stochastic approximation.

    Xiao, Chen, Balasubramanian, Ghadimi, "A one-sample decentralized proximal algorithm for
    non-convex stochastic composite optimization", UAI 2023.

        w_t     = prox_{a h}(x_t - a z_t)           v_t ~ gradient of f_i at x_t, z_0 = 0
        x_{t+1} = W^K ((1 - r_t) x_t + r_t w_t)
        z_{t+1} = W^K ((1 - r_t) z_t + r_t v_t)

    z averages gradients over time and neighbours, so that one sample a step is enough; as r
    falls it is exact, at a constant r biased where the f_i differ. Symmetric W. Cost: 2K
    rounds.

    Args:
        estimator: how v_t is made; `Minibatch(1)` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
        relaxation: r_t in (0, 1], a number or a function of the step such as
            `FallingRelaxation(scale, nodes)`.
    """

    vectors = 2
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    relaxation: Any = 0.3

    def __post_init__(self) -> None:
        settle(self)
        object.__setattr__(self, "relaxation", as_fraction("relaxation", self.relaxation))

    def check(self, problem: Problem, network: Network) -> None:
        refuse_nonsymmetric("Prox_DASA", network)
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> AveragingState:
        del mix
        return AveragingState(x, jnp.zeros_like(x), self.estimator.init(problem, x))

    def step(self, problem: Oracle, mix: Any, state: AveragingState, draw: Any) -> AveragingState:
        x, z, last = state
        a, r = step_size_at(self.step_size, last.t), step_size_at(self.relaxation, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        w = problem.prox(x - a * z, a)
        return AveragingState(mix((1 - r) * x + r * w), mix((1 - r) * z + r * estimate.v), estimate)


class TrackedAveragingState(NamedTuple):
    """x_{t+1}, z_{t+1}, y_{t+1} and the estimate at x_t; rows are nodes."""

    x: jax.Array
    z: jax.Array
    y: jax.Array
    estimate: Any


@record
class Prox_DASA_GT(Estimated):
    """Prox-DASA with gradient tracking.

    Xiao, Chen, Balasubramanian, Ghadimi, "A one-sample decentralized proximal algorithm for
    non-convex stochastic composite optimization", UAI 2023.

        w_t     = prox_{a h}(x_t - a z_t)           v_t ~ gradient of f_i at x_t, z_0 = 0
        x_{t+1} = W^K ((1 - r_t) x_t + r_t w_t)
        z_{t+1} = W^K ((1 - r_t) z_t + r_t (y_t + v_t - v_{t-1}))
        y_{t+1} = W^K (y_t + v_t - v_{t-1})         y_0 = v_{-1} = 0

    Exact with full gradients at constant a and r. The network means of y_{t+1} and v_t agree
    at every step. From memory of the publication: the authors' code exchanges y but feeds v_t
    to z, which is biased like `Prox_DASA`. Symmetric W. Cost: 3K rounds.

    Args:
        estimator: how v_t is made; `Minibatch(1)` as published.
        step_size: a, a number or a function of the step counted from zero.
        consensus: what W^K is.
        relaxation: r_t in (0, 1], a number or a function of the step such as
            `FallingRelaxation(scale, nodes)`.
    """

    vectors = 3
    estimator: Estimator
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    relaxation: Any = 0.3

    def __post_init__(self) -> None:
        settle(self)
        object.__setattr__(self, "relaxation", as_fraction("relaxation", self.relaxation))

    def check(self, problem: Problem, network: Network) -> None:
        refuse_nonsymmetric("Prox_DASA_GT", network)
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> TrackedAveragingState:
        del mix
        zeros = jnp.zeros_like(x)
        return TrackedAveragingState(x, zeros, zeros, self.estimator.init(problem, x))

    def step(
        self, problem: Oracle, mix: Any, state: TrackedAveragingState, draw: Any
    ) -> TrackedAveragingState:
        x, z, y, last = state
        a, r = step_size_at(self.step_size, last.t), step_size_at(self.relaxation, last.t)
        estimate = self.estimator.update(problem, x, last, draw)
        w = problem.prox(x - a * z, a)
        y = y + estimate.v - last.v
        return TrackedAveragingState(
            mix((1 - r) * x + r * w), mix((1 - r) * z + r * y), mix(y), estimate
        )


@dataclass(frozen=True)
class FallingRelaxation:
    """Prox-DASA's diminishing r_t = min(scale sqrt(nodes / (t + 1)), 1), a function of t."""

    scale: float
    nodes: int

    def __post_init__(self) -> None:
        checks.positive_number("scale", self.scale)
        checks.positive_int("nodes", self.nodes)

    def __call__(self, t: Any) -> Any:
        return jnp.minimum(self.scale * (self.nodes / (t + 1.0)) ** 0.5, 1.0)


# DProxSGT and CDProxSGT --------------------------------------------------------------------


def DProxSGT(batch: int, step_size: Any, consensus: Consensus = Gossip(1)) -> ProxGT:
    """Decentralized proximal stochastic gradient tracking: ProxGT-SA with a small batch.

    Yan, Chen, Chen, Cui, Lu, Xu, "Compressed decentralized proximal stochastic gradient method
    for nonconvex composite problems with heterogeneous data", ICML 2023. Published with one
    round of gossip and a batch of the order of one.
    """
    return ProxGT_SA(batch, step_size, consensus)


class CompressedState(NamedTuple):
    """x_{t+1}, y_{t+1}, what all nodes know of both, and the estimate at x_t."""

    x: jax.Array
    y: jax.Array
    known_x: jax.Array
    known_y: jax.Array
    estimate: Any


class CompressedDraw(NamedTuple):
    """What is random in one step: the estimate's draw, and those of both compressions."""

    estimate: Any
    x: Any
    y: Any


@record
class CDProxSGT(Method):
    """DProxSGT that sends compressed differences instead of x and y.

    Yan, Chen, Chen, Cui, Lu, Xu, "Compressed decentralized proximal stochastic gradient method
    for nonconvex composite problems with heterogeneous data", ICML 2023.

        s_t          = y_t + v_t - v_{t-1}          v_t ~ gradient of f_i at x_t
        known_y     += Q(s_t - known_y)
        y_{t+1}      = s_t + tracker_step (W - I) known_y
        z_t          = prox_{a h}(x_t - a y_{t+1})
        known_x     += Q(z_t - known_x)
        x_{t+1}      = z_t + consensus_step (W - I) known_x

    Only Q(.) is sent: a node keeps W known_y and W known_x by adding W Q(.) to them. The
    network mean of y_{t+1} is that of v_t whatever Q is. The authors' compressed code, for
    h = 0, has no prox. With `Identity` and both steps one
    this is ProxGT with one round. Symmetric W. Cost: 2 rounds of compressed vectors, in bits
    2 Q.bits(p, word).

    Args:
        estimator: how v_t is made; `Minibatch(b)` as published.
        compressor: Q, such as `TopK(0.3)`.
        step_size: a, a number or a function of the step counted from zero.
        consensus: W, of one round: what is kept between steps is of one exchange.
        consensus_step: in (0, 1]; the publication's gamma_x.
        tracker_step: in (0, 1]; the publication's gamma_y.
    """

    estimator: Estimator
    compressor: Compressor
    step_size: Any
    consensus: Consensus = static(default=Gossip(1))
    consensus_step: float = 0.5
    tracker_step: float = 0.5

    def __post_init__(self) -> None:
        settle(self)
        if not isinstance(self.compressor, Compressor):
            raise TypeError(
                "compressor must be a Compressor such as TopK(share), RandomK(share) or "
                f"QSGD(levels), got {self.compressor!r}"
            )
        if self.consensus.rounds != 1:
            raise ValueError(
                f"consensus must be of one round for CDProxSGT, got {self.consensus!r}"
            )
        for name in ("consensus_step", "tracker_step"):
            if checks.positive_number(name, value := getattr(self, name)) > 1:
                raise ValueError(f"{name} must be in (0, 1], got {value!r}")

    def check(self, problem: Problem, network: Network) -> None:
        refuse_nonsymmetric("CDProxSGT", network)
        check_parts(self, problem, network)

    def init(self, problem: Oracle, mix: Any, x: jax.Array) -> CompressedState:
        del mix
        zeros = jnp.zeros_like(x)
        return CompressedState(x, zeros, zeros, zeros, self.estimator.init(problem, x))

    def draw(self, problem: Oracle, keys: jax.Array) -> CompressedDraw:
        def drawn(which: int) -> Any:
            apart = jax.vmap(jax.random.fold_in, (0, None))(keys, which)
            return self.compressor.draw(apart, problem.params.size)

        return CompressedDraw(self.estimator.draw(problem, keys), drawn(_X_KEY), drawn(_Y_KEY))

    def step(
        self, problem: Oracle, mix: Any, state: CompressedState, draw: CompressedDraw
    ) -> CompressedState:
        x, y, known_x, known_y, last = state
        a = step_size_at(self.step_size, last.t)
        estimate = self.estimator.update(problem, x, last, draw.estimate)
        y = y + estimate.v - last.v
        known_y = known_y + self.compressor(y - known_y, draw.y)
        y = y + self.tracker_step * (mix(known_y) - known_y)
        z = problem.prox(x - a * y, a)
        known_x = known_x + self.compressor(z - known_x, draw.x)
        x = z + self.consensus_step * (mix(known_x) - known_x)
        return CompressedState(x, y, known_x, known_y, estimate)

    def cost(self, problem: Problem, steps: int) -> Cost:
        samples, gradients = self.estimator.usage(problem, steps)
        rounds = 2 * rounds_of(self.consensus) * steps
        return Cost(samples, gradients, rounds, self.compressor)

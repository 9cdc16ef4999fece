"""The expected risk of eq. (2): samples are made or streamed on demand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks
from proxgt.params import ParamSpec
from proxgt.problems.base import Problem, first_line
from proxgt.problems.empirical import finite_oracle
from proxgt.problems.nodedata import NodeData, cast
from proxgt.problems.oracles import FiniteOracle, Loss, Oracle, SamplerOracle
from proxgt.problems.pooling import PooledSampler, pooled
from proxgt.problems.streams import Stream
from proxgt.records import record, static
from proxgt.regularizers import Zero

_EVALUATION_KEY = 0x5EED


class PopulationRisk(Problem):
    """F = (1/n) sum_i E G_i(x, xi_i) with samples made or streamed on demand, eq. (2).

    Args:
        loss: `loss(params, sample) -> scalar`, differentiable by JAX.
        sampler: `sampler(key, node) -> sample`, traceable by JAX; or a `Stream`.
        nodes: n.
        regularizer: h.
        x0, smoothness: as for `EmpiricalRisk`.
        gradient: grad F as a function of params, if known. The metric then uses it;
            otherwise F and grad F are estimated on a fixed evaluation sample.
        objective: F as a function of params, if known.
        evaluation: size of the evaluation sample at each node, drawn apart from training.
    """

    def __init__(
        self,
        loss: Loss,
        sampler: Callable[[jax.Array, Any], Any] | Stream,
        nodes: int,
        regularizer: Any = Zero(),
        *,
        x0: Any = None,
        smoothness: float | None = None,
        gradient: Callable[[Any], Any] | None = None,
        objective: Callable[[Any], Any] | None = None,
        evaluation: int = 1000,
    ) -> None:
        super().__init__(loss, regularizer, x0, smoothness)
        self.nodes = checks.positive_int("nodes", nodes)
        self.evaluation = checks.positive_int("evaluation", evaluation)
        if not (callable(sampler) or isinstance(sampler, Stream)):
            raise TypeError(
                f"sampler must be a function of (key, node) or a Stream, got {sampler!r}"
            )
        self.sampler = sampler
        self._known = {"gradient": gradient, "objective": objective}

    @property
    def precision(self) -> str:
        return "float32"

    @property
    def exact(self) -> bool:
        return False

    @property
    def samples_per_node(self) -> float:
        return float("inf")

    def sample_shapes(self) -> Any:
        return jax.tree.map(
            lambda a: jax.ShapeDtypeStruct(a.shape[1:], cast(a[:0], "float32").dtype),
            self.evaluation_data.rows,
        )

    def describe(self) -> dict[str, Any]:
        source = self.sampler.factory if isinstance(self.sampler, Stream) else self.sampler
        return {
            "risk": "population",
            "nodes": self.nodes,
            "sampler": source,
            "evaluation": self.evaluation,
            **self._known,
        }

    def _restrict(self) -> None:
        vars(self).pop("evaluation_data", None)
        if isinstance(self.sampler, Stream):
            self.sampler = Stream(self.sampler.factory)

    def feed(
        self, oracle: Oracle, samples_before: Callable[[int], int], begin: int, end: int
    ) -> Oracle:
        if isinstance(self.sampler, Stream):
            return self.sampler.feed(oracle, samples_before, begin, end)
        return oracle

    @cached_property
    def evaluation_data(self) -> NodeData:
        """The fixed sample on which F and grad F are estimated."""
        if isinstance(self.sampler, Stream):
            return NodeData.of(self.sampler.head(self.held, self.evaluation))
        # In one precision, or the sample would depend on which run was the first to ask.
        with jax.enable_x64(False):
            nodes = jnp.asarray(self.held)
            keys = jax.random.split(jax.random.key(_EVALUATION_KEY), (self.nodes, self.evaluation))
            try:
                drawn = jax.vmap(jax.vmap(self.sampler, (0, None)))(keys[nodes], nodes)
            except Exception as error:
                raise TypeError(
                    "sampler must be a JAX function of (key, node), but it raised "
                    f"{type(error).__name__}: {first_line(error)}; for samples of the host see "
                    "Stream"
                ) from error
        for path, leaf in jax.tree_util.tree_leaves_with_path(drawn):
            checks.finite_array(f"a sample of sampler{jax.tree_util.keystr(path)}", leaf)
        return NodeData.of(jax.tree.map(np.asarray, drawn))

    def pooled(self) -> PopulationRisk:
        """The same Psi on one node, which draws from a node at random; evaluated as this is."""
        if isinstance(self.sampler, Stream):
            raise ValueError(
                "pooled() needs a sampler function, and this problem has a Stream: give a "
                "PopulationRisk on one node a Stream that merges those of all"
            )
        other = PopulationRisk(
            self.loss,
            PooledSampler(self.sampler, self.nodes),
            1,
            self.regularizer,
            x0=self.x0,
            smoothness=self._given_smoothness,
            evaluation=self.nodes * self.evaluation,
            **self._known,
        )
        other.evaluation_data = pooled(self.loss, self.evaluation_data)[1]
        return other

    def _place(self, spec: ParamSpec, dtype: str) -> tuple[Oracle, Any]:
        estimate = finite_oracle(self, self.evaluation_data, spec, dtype)
        evaluator = KnownRisk(estimate, len(self.held), spec, **self._known)
        h = self.flat_regularizer(spec)
        if isinstance(self.sampler, Stream):
            return self.sampler.oracle(self.held, h, self.loss, spec, dtype), evaluator
        node = jnp.asarray(self.held, jnp.int32)
        return SamplerOracle(node, h, self.loss, self.sampler, spec), evaluator


@record
class KnownRisk:
    """An evaluator that uses F or grad F where the user gave it, else the estimate.

    Like all evaluators it sums over the `nodes` nodes held here.
    """

    estimate: FiniteOracle
    nodes: int = static()
    params: ParamSpec = static()
    gradient: Callable[[Any], Any] | None = static()
    objective: Callable[[Any], Any] | None = static()

    def risk(self, w: jax.Array) -> jax.Array:
        """F(w), once for every node held."""
        if self.objective is None:
            return self.estimate.risk(w)
        return self.nodes * jnp.asarray(self.objective(self.params.unravel(w)), w.dtype)

    def risk_gradient(self, w: jax.Array) -> jax.Array:
        """grad F(w), once for every node held."""
        if self.gradient is None:
            return self.estimate.risk_gradient(w)
        gradient = self.params.ravel(self.gradient(self.params.unravel(w)))
        return self.nodes * jnp.asarray(gradient, w.dtype)

    def full_gradients(self, x: jax.Array) -> jax.Array:
        """grad f_i on the evaluation sample, shape (nodes, p)."""
        return self.estimate.full_gradients(x)

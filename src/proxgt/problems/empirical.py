"""The finite-sum risk of eq. (3): every node holds samples of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt.params import ParamSpec
from proxgt.problems.base import Problem
from proxgt.problems.nodedata import NodeData, cast, combined
from proxgt.problems.oracles import FiniteOracle, Loss, Oracle
from proxgt.problems.pooling import pooled
from proxgt.problems.shards import Shards, layout
from proxgt.regularizers import Zero


class EmpiricalRisk(Problem):
    """F = (1/n) sum_i f_i with f_i the mean of `loss` over node i's own samples, eq. (3).

    Args:
        loss: `loss(params, sample) -> scalar`, differentiable by JAX: G_i of eq. (2).
        data: a pytree of arrays (nodes, m, ...); or a *list* with one pytree of arrays
            (m_i, ...) per node, where m_i may differ; or `Shards`, of which a process loads
            only its own nodes'.
        regularizer: h.
        x0: the params pytree all nodes start from, unless `solve` is given another.
        smoothness: L, if known, or a function of the ids of some nodes that gives the
            largest L_i among theirs; else it is estimated when first needed.
    """

    def __init__(
        self,
        loss: Loss,
        data: Any,
        regularizer: Any = Zero(),
        *,
        x0: Any = None,
        smoothness: float | Callable[[np.ndarray], float] | None = None,
    ) -> None:
        super().__init__(loss, regularizer, x0, smoothness)
        self._source = data if isinstance(data, (NodeData, Shards)) else NodeData.of(data)
        self.nodes = self._source.nodes

    @cached_property
    def data(self) -> NodeData:
        """The samples of the nodes held here."""
        return self._source.restricted_to(self.held)

    def _restrict(self) -> None:
        vars(self).pop("data", None)
        self._source = self.data  # and forget where those of others are
        mine = layout(self.data.rows), self.data.count.sum()
        layouts, counts = zip(*self._gathered(mine, "samples"), strict=True)
        for rank, other in enumerate(layouts):
            if other != layouts[0]:
                raise ValueError(
                    "nodes must hold samples of one shape and dtype, but rank 0 holds "
                    f"{layouts[0]} and rank {rank} holds {other}"
                )
        self._cache["samples per node"] = int(sum(counts)) / self.nodes

    @property
    def precision(self) -> str:
        return self.data.precision

    @property
    def exact(self) -> bool:
        return True

    @property
    def samples_per_node(self) -> float:
        if "samples per node" not in self._cache:
            self._cache["samples per node"] = float(self.data.count.mean())
        return self._cache["samples per node"]

    def sample_shapes(self) -> Any:
        return jax.tree.map(
            lambda a: jax.ShapeDtypeStruct(a.shape[1:], cast(a[:0], "float32").dtype),
            self.data.rows,
        )

    def describe(self) -> dict[str, Any]:
        if "digest" not in self._cache:
            mine = list(zip(self.held.tolist(), self.data.digests, strict=True))
            every = [pair for theirs in self._gathered(mine, "digests") for pair in theirs]
            self._cache["digest"] = combined([digest for _, digest in sorted(every)])
        return {"risk": "empirical", "nodes": self.nodes, "data": self._cache["digest"]}

    def pooled(self) -> EmpiricalRisk:
        """The same Psi on one node; `pooling.pooled` says how unequal m_i are weighted."""
        loss, data = pooled(self.loss, self.data)
        smoothness = None if self.smoothness_is_estimate else self.smoothness
        return EmpiricalRisk(loss, data, self.regularizer, x0=self.x0, smoothness=smoothness)

    def _place(self, spec: ParamSpec, dtype: str) -> tuple[Oracle, Any]:
        oracle = finite_oracle(self, self.data, spec, dtype)
        return oracle, oracle


def finite_oracle(problem: Problem, data: NodeData, spec: ParamSpec, dtype: str) -> FiniteOracle:
    """The rows of an empirical risk on the device, floats in `dtype`."""
    return FiniteOracle(
        data=jax.tree.map(lambda a: jnp.asarray(cast(a, dtype)), data.rows),
        first=jnp.asarray(data.first, jnp.int32),
        count=jnp.asarray(data.count, jnp.int32),
        owner=jnp.asarray(data.owner, jnp.int32),
        weight=jnp.asarray(data.weight, dtype),
        regularizer=problem.flat_regularizer(spec),
        loss=problem.loss,
        params=spec,
    )

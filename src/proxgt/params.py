"""Parameters as the user writes them (a pytree) and as the methods hold them (one vector)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks
from proxgt.records import record, static
from proxgt.regularizers import Regularizer

_MOST_SHOWN = 12  # leaves in an error message


@dataclass(frozen=True)
class ParamSpec:
    """The shape of a params pytree: how to lay it out as a vector of length `size` and back.

    Hashable, so that compiled code can depend on it without being tied to one object.
    """

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, params: Any, name: str = "params") -> ParamSpec:
        """The spec of `params`, whose leaves must be numeric arrays or numbers."""
        leaves, treedef = jax.tree_util.tree_flatten(params)
        if sum(math.prod(np.shape(leaf)) for leaf in leaves) == 0:
            raise ValueError(f"{name} must hold at least one number, got {params!r}")
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            dtype = np.dtype(getattr(leaf, "dtype", np.asarray(leaf).dtype))
            if dtype.kind not in "biuf":
                raise TypeError(
                    f"{name}{jax.tree_util.keystr(path)} must be an array of real numbers, "
                    f"got dtype {dtype}"
                )
        return cls(treedef, tuple(tuple(np.shape(leaf)) for leaf in leaves))

    def __str__(self) -> str:
        """As `{'b': (), 'w': (4,)}`: a tree of shapes."""
        if self.treedef.num_leaves > _MOST_SHOWN:
            return f"a {self.treedef.num_leaves}-leaf {self.treedef.node_data()[0].__name__}"
        return str(jax.tree_util.tree_unflatten(self.treedef, self.shapes))

    @property
    def size(self) -> int:
        """p, the number of coordinates."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def is_vector(self) -> bool:
        """Whether params already are one flat vector."""
        return self.treedef == jax.tree_util.tree_structure(0) and len(self.shapes[0]) == 1

    def ravel(self, params: Any) -> Any:
        """One vector (p,) from params of this spec."""
        if self.is_vector:
            return params
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree_util.tree_leaves(params)])

    def unravel(self, vector: Any) -> Any:
        """Params from a vector (p,); NumPy in, NumPy out."""
        if self.is_vector:
            return vector
        leaves, begin = [], 0
        for shape in self.shapes:
            end = begin + math.prod(shape)
            leaves.append(vector[begin:end].reshape(shape))
            begin = end
        return jax.tree_util.tree_unflatten(self.treedef, leaves)

    def vector(self, params: Any, *, name: str = "x") -> np.ndarray:
        """A finite host vector (p,) from params, or from a vector of length p.

        Raises a ValueError naming `name` when the structure or a shape differs.
        """
        if self.is_vector and isinstance(params, (list, tuple)):
            params = checks.finite_array(name, params)  # numbers, where a vector is meant
        held = self.holds(params)
        flat = np.asarray(params) if held else self._checked_ravel(params, name)
        if not np.isfinite(flat).all():
            raise ValueError(f"{name} must be finite, got a NaN or infinite entry")
        return flat

    def holds(self, value: Any) -> bool:
        """Whether `value` is a vector (p,) of numbers rather than params of another shape."""
        return getattr(value, "shape", None) == (self.size,)

    def _checked_ravel(self, params: Any, name: str) -> np.ndarray:
        given = ParamSpec.of(params, name)
        if given.treedef != self.treedef:
            raise ValueError(f"{name} must have the structure of {self}, got {given}")
        if given.shapes != self.shapes:
            raise ValueError(f"{name} must have the shapes of {self}, got {given}")
        leaves = jax.tree_util.tree_leaves(params)
        return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in leaves])


@record
class OnParams(Regularizer):
    """A regularizer of params, seen as one of the flat vector."""

    inner: Any
    spec: ParamSpec = static()

    def value(self, x: Any) -> Any:
        return self.inner.value(self.spec.unravel(x))

    def prox(self, v: Any, step: Any) -> Any:
        return self.spec.ravel(self.inner.prox(self.spec.unravel(v), step))


def structure_of(params: Any) -> Any:
    """The structure of dicts, lists, tuples and arrays as plain JSON; others become vectors."""
    if isinstance(params, dict) and all(isinstance(key, str) for key in params):
        return {"dict": {key: structure_of(params[key]) for key in sorted(params)}}
    if type(params) in (list, tuple):
        return {type(params).__name__: [structure_of(part) for part in params]}
    if jax.tree_util.all_leaves([params]):
        return {"shape": list(np.asarray(params).shape)}
    return {"shape": [ParamSpec.of(params).size]}


def from_structure(structure: Any, vector: np.ndarray) -> Any:
    """Params of a structure that `structure_of` wrote, from their flat vector."""
    parts = iter(np.split(vector, np.cumsum(_leaf_sizes(structure))[:-1]))

    def build(node: Any) -> Any:
        if "dict" in node:
            return {key: build(part) for key, part in node["dict"].items()}
        if "list" in node:
            return [build(part) for part in node["list"]]
        if "tuple" in node:
            return tuple(build(part) for part in node["tuple"])
        return next(parts).reshape(node["shape"])

    return build(structure)


def _leaf_sizes(node: Any) -> list[int]:
    if "shape" in node:
        return [math.prod(node["shape"])]
    (children,) = node.values()
    parts = children.values() if isinstance(children, dict) else children
    return [size for part in parts for size in _leaf_sizes(part)]

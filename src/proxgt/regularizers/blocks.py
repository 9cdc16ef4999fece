"""A regularizer for each part of a params pytree."""

# What value and prox do is said once, in Regularizer.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.tree_util import KeyPath, keystr, tree_flatten_with_path, tree_map_with_path
from jax.typing import ArrayLike

from proxgt.records import record
from proxgt.regularizers.base import Regularizer, as_regularizer, is_regularizer, set_fields


@record
class Blocks(Regularizer):
    """h(params) = sum of h_k(params_k) over the parts of a params pytree.

    parts: a pytree of regularizers with the structure of the params, down to the leaves
        or less far: a regularizer in the place of a subtree covers the whole subtree.
        Every block reaches its regularizer as one flat vector. For a part that is free,
        `Zero()`. Example: `Blocks({"weights": L1(0.1), "bias": Zero()})`.

    `value` and `prox` take the params pytree in place of the flat vector.
    """

    parts: Any

    def __post_init__(self) -> None:
        leaves, structure = tree_flatten_with_path(self.parts, is_leaf=is_regularizer)
        if not leaves:
            raise ValueError(f"parts must hold at least one regularizer, got {self.parts!r}")
        parts = []
        for path, leaf in leaves:
            try:
                parts.append(as_regularizer(leaf))
            except TypeError as error:
                raise TypeError(f"parts{keystr(path)}: {error}") from None
        set_fields(self, parts=jax.tree.unflatten(structure, parts))

    def value(self, x: Any) -> jax.Array:
        values = self._map(lambda h, block: h.value(ravel_pytree(block)[0]), x)
        return jnp.sum(jnp.stack(jax.tree.leaves(values)))

    def prox(self, v: Any, step: ArrayLike) -> Any:
        def solve(h: Regularizer, block: Any) -> Any:
            flat, restore = ravel_pytree(block)
            return restore(h.prox(flat, step))

        return self._map(solve, v)

    def _map(self, function: Callable[[Any, Any], Any], params: Any) -> Any:
        """function(h_k, params_k) in the place of each part."""
        _check_structure(self.parts, params, path=())

        def at(path: KeyPath, h: Any, block: Any) -> Any:
            try:
                return function(h, block)
            except (TypeError, ValueError) as error:
                error.add_note(f"in params{keystr(path)}, under {h!r}")
                raise

        return tree_map_with_path(at, self.parts, params, is_leaf=is_regularizer)


def _check_structure(parts: Any, params: Any, path: KeyPath) -> None:
    """Walk down both trees together, up to the regularizers."""
    if is_regularizer(parts):
        return
    below_parts, parts_kind = _children(parts)
    below_params, params_kind = _children(params)
    if parts_kind != params_kind:
        raise ValueError(
            f"parts must have the structure of params, but at params{keystr(path)} parts is "
            f"{_describe(parts)} where params is {_describe(params)}"
        )
    for (key, part), (_, block) in zip(below_parts, below_params, strict=True):
        _check_structure(part, block, path + key)


def _children(node: Any) -> tuple[list[tuple[KeyPath, Any]], Any]:
    """What is one level below a node, with keys, and what kind of node it is."""
    return tree_flatten_with_path(node, is_leaf=lambda other: other is not node)


def _describe(node: Any) -> str:
    if node is None:
        return "None"
    keys = [keystr(key) for key, _ in _children(node)[0]]
    if keys == [""]:
        return f"one leaf of shape {jnp.shape(node)}"
    return f"{type(node).__name__} of {', '.join(keys) or 'nothing'}"

"""Checks of what the ready-made problems are given, and what is proven about it."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
from scipy.linalg import eigh

from proxgt import checks
from proxgt.problems.nodedata import NodeData

_SEED = 0x0B0D


def node_samples(data: Any, **ndims: int) -> NodeData:
    """The samples of all nodes, `rows` a tuple of arrays, one for each name in `ndims`.

    data: a tuple of arrays (nodes, m, ...), or a list of one tuple of arrays (m_i, ...) per
        node; one array in place of the tuple where `ndims` holds one name. `ndims` counts
        the axes of a node's array.
    """
    names = tuple(ndims)
    whole = names[0] if len(names) == 1 else f"a tuple ({', '.join(names)})"
    shards, lead = (data, ("m_i",)) if isinstance(data, list) else ([data], ("nodes", "m"))
    for i, shard in enumerate(shards):
        where = f"data[{i}]" if isinstance(data, list) else "data"
        parts = (shard,) if len(names) == 1 else shard
        if not isinstance(parts, tuple) or len(parts) != len(names):
            raise TypeError(
                f"{where} must be {whole}, got {type(shard).__name__}: give arrays "
                "(nodes, m, ...) or a list with one entry per node, as data.shard returns"
            )
        for name, part in zip(names, parts, strict=True):
            _check_shape(f"{name} in {where}", part, (*lead, "p")[: len(lead) + ndims[name] - 1])
    held = NodeData.of(data)
    return with_rows(held, (held.rows,)) if len(names) == 1 else held


def _check_shape(name: str, array: Any, axes: tuple[str, ...]) -> None:
    if not hasattr(array, "shape"):
        raise TypeError(f"{name} must be an array, got {type(array).__name__}")
    if len(array.shape) != len(axes) or 0 in array.shape:
        wanted = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
        raise ValueError(
            f"{name} must have shape {wanted}, none of them 0, got {array.shape}; "
            "data.shard spreads samples over nodes"
        )


def floats(array: np.ndarray) -> np.ndarray:
    """The array in a float type of a run, its own where it has one."""
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def with_rows(samples: NodeData, rows: Any) -> NodeData:
    """The samples with other arrays in the same layout."""
    return dataclasses.replace(samples, rows=rows)


def feature_smoothness(samples: NodeData) -> float:
    """max_i lambda_max(A_i' A_i / m_i), A_i the features of node i, shape (m_i, p).

    The mean over node i of phi(a.x) with |phi''| <= c has a Hessian A_i' D A_i / m_i with
    |D| <= c I, so that it is c times this number smooth.
    """
    largest = max(largest_gram_eigenvalue(samples.node(i)[0]) for i in range(samples.nodes))
    if largest == 0:
        raise ValueError("features in data must not all be zero: there is nothing to fit")
    return largest


def largest_gram_eigenvalue(features: np.ndarray) -> float:
    """lambda_max(A'A / m), from the smaller of A'A and AA'."""
    A = np.asarray(features, np.float64)
    gram = A.T @ A if A.shape[1] <= A.shape[0] else A @ A.T
    last = len(gram) - 1
    return float(eigh(gram, eigvals_only=True, subset_by_index=[last, last])[0]) / len(A)


def require_bounded(regularizer: Any, size: int, curvature: float, task: str) -> None:
    """Refuse an h that leaves -curvature/2 ||x||^2 + h(x) unbounded below.

    A closed convex set is unbounded where it holds a ray; of any direction and its opposite,
    one points along that ray, and the projections of ever farther points then go ever farther.
    """
    direction = np.random.default_rng(_SEED).standard_normal(size)
    with jax.enable_x64(True):
        for ray in (direction, -direction):
            near, far = (np.asarray(regularizer.prox(t * ray, 1.0)) for t in (1e9, 1e12))
            runs_away = np.linalg.norm(far) > 2 * np.linalg.norm(near)
            if runs_away and regularizer.value(far) < curvature / 2 * np.sum(far**2):
                raise ValueError(
                    f"regularizer must bound {task} from below, which {regularizer!r} does "
                    "not: choose a bounded set, such as L2Ball(1.0) or Box(-1.0, 1.0)"
                )


def check_labels(labels: np.ndarray) -> None:
    """Refuse labels other than -1 and +1."""
    if not np.isin(labels, (-1, 1)).all():
        found = [f"{value:g}" for value in np.unique(labels)]
        shown = ", ".join(found[:5] + ["..."] * (len(found) > 5))
        raise ValueError(
            f"labels in data must be -1 or +1, got {shown}; for labels 0 and 1 give "
            "2 * labels - 1, for more classes see mlp_classifier"
        )


def class_indices(labels: np.ndarray, classes: int | None) -> tuple[np.ndarray, int]:
    """Labels as 0 to classes - 1, and the number of classes.

    Without `classes`, the k-th smallest label is class k.
    """
    if (labels != np.rint(labels)).any():
        raise ValueError(
            f"labels in data must be integers, one per class, got {labels[labels % 1 != 0][0]}"
        )
    if classes is None:
        values, index = np.unique(labels, return_inverse=True)
        if len(values) < 2:
            raise ValueError(
                f"labels in data must be of two classes or more, got only {values[0]}; where "
                "the others are merely absent give classes="
            )
        return index.astype(np.int32), len(values)
    classes = checks.positive_int("classes", classes, least=2)
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(
            f"labels in data must lie in 0 to {classes - 1} for classes={classes}, "
            f"got {labels.min()} to {labels.max()}"
        )
    return labels.astype(np.int32), classes

"""Samples for a network: data sets to try things on, and the ways to spread them over nodes.

    data = shard(load("breast_cancer"), nodes=16, how="label")
    problem = tasks.logistic(data)

`shard` takes anything; `load` and `read_libsvm` give it features and labels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import numpy as np

from proxgt import checks

SPLITS = ("iid", "contiguous", "label", "dirichlet")
NORMALIZATIONS = ("none", "columns", "rows")

_NPZ_MEMBERS = ("data", "indices", "indptr", "shape", "y")


# Spreading samples over nodes --------------------------------------------------------------


def shard(
    arrays: Any,
    nodes: int,
    how: str = "iid",
    *,
    labels: Any = None,
    concentration: float = 0.5,
    seed: int = 0,
) -> Any:
    """Spread N samples over nodes, each sample to exactly one node and none to no node.

    Args:
        arrays: a pytree of arrays (N, ...), such as `(features, labels)`.
        nodes: n, at most N.
        how: "iid", a random split; "contiguous", the samples in the order given; "label",
            the samples in the order of their labels, so that a node sees few of them;
            "dirichlet", each label's samples in proportions drawn from a Dirichlet
            distribution over the nodes (Yurochkin et al. 2019), at least one sample a node.
            All but the last give shards whose sizes differ by one at most.
        labels: (N,), what "label" and "dirichlet" go by. By default the last array of a
            tuple, where that is a vector.
        concentration: of the Dirichlet distribution: small is uneven, large is even.
        seed: the split is a function of it.

    Returns what `EmpiricalRisk` takes as `data`: arrays (nodes, N/nodes, ...) where shards are
    equal, otherwise a list with one pytree per node.
    """
    arrays, total = _sample_arrays(arrays)
    nodes = checks.positive_int("nodes", nodes)
    if nodes > total:
        raise ValueError(
            f"nodes must be at most the number of samples, {total}, got {nodes}: "
            "every node needs at least one sample"
        )
    checks.one_of("how", how, SPLITS)
    concentration = checks.positive_number("concentration", concentration)
    rng = np.random.default_rng(checks.seed("seed", seed))
    order = np.arange(total) if how == "contiguous" else rng.permutation(total)
    if how in ("label", "dirichlet"):
        labels = _labels_of(arrays, labels, total)
    if how == "dirichlet":
        parts = _dirichlet(order, labels, nodes, concentration, rng)
    else:
        if how == "label":
            # Stable, so that samples of one label stay in random order.
            order = order[np.argsort(labels[order], kind="stable")]
        parts = np.array_split(order, nodes)
    if len({len(part) for part in parts}) == 1:
        return jax.tree.map(lambda a: a[np.stack(parts)], arrays)
    return [jax.tree.map(lambda a, part=part: a[part], arrays) for part in parts]


def _dirichlet(
    order: np.ndarray,
    labels: np.ndarray,
    nodes: int,
    concentration: float,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """The samples of every node; `order` is a permutation of all of them."""
    parts: list[list[int]] = [[] for _ in range(nodes)]
    for label in np.unique(labels):
        members = order[labels[order] == label]
        shares = rng.dirichlet(np.full(nodes, concentration))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(members)).astype(int)
        for part, chunk in zip(parts, np.split(members, cuts), strict=True):
            part.extend(chunk)
    for part in parts:
        if not part:
            part.append(max(parts, key=len).pop())
    return [np.array(part) for part in parts]


def _sample_arrays(arrays: Any) -> tuple[Any, int]:
    """The pytree with NumPy leaves, and N."""
    if isinstance(arrays, list):
        raise TypeError(
            "arrays must be a tuple, dict or array, got a list: as data of a problem a list "
            "holds one entry per node; write (features, labels)"
        )
    arrays = jax.tree.map(np.asarray, arrays)
    leaves = jax.tree_util.tree_leaves_with_path(arrays)
    if not leaves:
        raise ValueError(f"arrays must hold at least one array, got {arrays!r}")
    for path, leaf in leaves:
        name = f"arrays{jax.tree_util.keystr(path)}"
        if leaf.dtype.kind not in "biuf":
            hint = "; make a sparse matrix dense by .toarray()" if leaf.dtype == object else ""
            raise TypeError(f"{name} must be a numeric array, got dtype {leaf.dtype}{hint}")
        if leaf.ndim == 0:
            raise ValueError(f"{name} must have shape (N, ...), got a scalar")
    sizes = {leaf.shape[0] for _, leaf in leaves}
    if len(sizes) > 1:
        raise ValueError(f"arrays must hold the same number N of samples, got {sorted(sizes)}")
    return arrays, sizes.pop()


def _labels_of(arrays: Any, labels: Any, total: int) -> np.ndarray:
    if labels is None:
        if not (isinstance(arrays, tuple) and arrays[-1].ndim == 1):
            raise ValueError(
                "labels is needed to split by label, since arrays is not a tuple that ends in "
                "a vector: give labels=, one per sample"
            )
        labels = arrays[-1]
    labels = np.asarray(labels)
    if labels.shape != (total,):
        raise ValueError(f"labels must have shape {(total,)}, one per sample, got {labels.shape}")
    return checks.finite_array("labels", labels) if labels.dtype.kind == "f" else labels


# Data sets ---------------------------------------------------------------------------------


def load(
    name: str, *, normalize: str = "columns", dtype: str = "float32"
) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, p) and labels (N,) of a data set that comes with scikit-learn.

    | name            |    N |  p | labels                              |
    |-----------------|------|----|-------------------------------------|
    | "breast_cancer" |  569 | 30 | -1 malignant, +1 benign             |
    | "digits_parity" | 1797 | 64 | -1 odd, +1 even                     |
    | "digits"        | 1797 | 64 | 0 to 9                              |
    | "wine"          |  178 | 13 | 0 to 2                              |
    | "iris"          |  150 |  4 | 0 to 2                              |
    | "diabetes"      |  442 | 10 | a number, of mean 0 and variance 1  |

    `normalize` is as for `normalized`; by default every feature has mean 0 and variance 1.
    """
    source, read_labels = _BUNDLED[checks.one_of("name", name, _BUNDLED)]
    dtype = checks.one_of("dtype", dtype, ("float32", "float64"))
    # Imported late: it takes longer than the rest of this package together.
    from sklearn import datasets

    features, labels = getattr(datasets, f"load_{source}")(return_X_y=True)
    features, labels = normalized(features, normalize).astype(dtype), read_labels(labels)
    return features, labels.astype(dtype) if labels.dtype.kind == "f" else labels


def _as_they_are(labels: np.ndarray) -> np.ndarray:
    return labels


def _signs(labels: np.ndarray) -> np.ndarray:
    return 2 * labels - 1


def _parity(labels: np.ndarray) -> np.ndarray:
    return 1 - 2 * (labels % 2)


def _standardised(labels: np.ndarray) -> np.ndarray:
    return (labels - labels.mean()) / labels.std()


_BUNDLED: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "breast_cancer": ("breast_cancer", _signs),
    "digits_parity": ("digits", _parity),
    "digits": ("digits", _as_they_are),
    "wine": ("wine", _as_they_are),
    "iris": ("iris", _as_they_are),
    "diabetes": ("diabetes", _standardised),
}
DATASETS = tuple(_BUNDLED)


def read_libsvm(
    path: str | Path,
    *,
    features: int | None = None,
    normalize: str = "none",
    dtype: str = "float32",
) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, p), dense, and labels (N,) of a file in LIBSVM's format.

    Integer labels stay integers; where only two occur they become -1 and +1, the lower first.

    Args:
        path: a text file (.gz and .bz2 too); or an .npz that holds a CSR matrix as
            data, indices, indptr and shape, and the labels as y.
        features: p; needed for a text file in which the last features do not occur.
        normalize: as for `normalized`.
        dtype: "float32" or "float64".
    """
    path = Path(path)
    dtype = checks.one_of("dtype", dtype, ("float32", "float64"))
    if features is not None:
        features = checks.positive_int("features", features)
    if not path.is_file():
        raise FileNotFoundError(f"path must be a file in LIBSVM's format, got {str(path)!r}")
    read = _read_npz if path.suffix == ".npz" else _read_text
    try:
        matrix, labels = read(path, features)
    except (ValueError, EOFError, OSError, BadZipFile) as error:
        raise ValueError(f"path {str(path)!r} could not be read as LIBSVM data: {error}") from error
    if features not in (None, matrix.shape[1]):
        raise ValueError(
            f"features must be {matrix.shape[1]}, which {str(path)!r} holds, or left out, "
            f"got {features}"
        )
    labels = checks.finite_array("labels", labels)
    if (labels == np.rint(labels)).all():
        labels = labels.astype(np.int64)
        values = np.unique(labels)
        labels = np.where(labels == values[1], 1, -1) if len(values) == 2 else labels
    else:
        labels = labels.astype(dtype)
    return normalized(matrix.toarray(), normalize).astype(dtype, copy=False), labels


def _read_text(path: Path, features: int | None) -> tuple[Any, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    found = load_svmlight_file(str(path), n_features=features)
    return found[0], found[1]


def _read_npz(path: Path, features: int | None) -> tuple[Any, np.ndarray]:
    del features  # the file says
    from scipy.sparse import csr_array

    with np.load(path) as held:
        missing = [name for name in _NPZ_MEMBERS if name not in held]
        if missing:
            raise ValueError(f"it must hold {', '.join(_NPZ_MEMBERS)}, but lacks {missing}")
        data, indices, indptr, shape, labels = (held[name] for name in _NPZ_MEMBERS)
    rows, columns = (int(size) for size in shape)
    matrix = csr_array((data, indices, indptr), shape=(rows, columns))
    matrix.check_format(full_check=True)  # an index out of range would crash, not raise
    if labels.shape != (rows,):
        raise ValueError(f"y must have shape {(rows,)}, one per row, got {labels.shape}")
    return matrix, labels


def normalized(features: np.ndarray, by: str) -> np.ndarray:
    """Features (N, p): "columns" of mean 0 and variance 1, "rows" of length 1, or as they are.

    A constant column, or a row of zeros, becomes or stays 0.
    """
    checks.one_of("normalize", by, NORMALIZATIONS)
    if by == "columns":
        centred = features - features.mean(axis=0, dtype=np.float64)
        # By equality: rounding gives a constant column a tiny deviation that is not 0.
        constant = (features == features[0]).all(axis=0)
        return np.where(constant, 0, centred / np.where(constant, 1, centred.std(axis=0)))
    if by == "rows":
        length = np.linalg.norm(features, axis=1, keepdims=True)
        return features / np.where(length > 0, length, 1)
    return features

"""Problems by name, from plain values alone: what a [problem] table of a config holds.

    [problem]
    name = "logistic"
    dataset = "breast_cancer"
    split = "label"
    penalty = 0.1

is `build(**table)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proxgt import checks
from proxgt.data import DATASETS, SPLITS, load, read_libsvm, shard
from proxgt.problems import Problem
from proxgt.tasks.linear import least_squares, logistic, nonnegative_pca, robust_regression
from proxgt.tasks.models import matrix_factorization, mlp_classifier
from proxgt.tasks.synthetic import gaussian_least_squares, noisy_quadratic

TASKS: dict[str, Callable[..., Problem]] = {
    "logistic": logistic,
    "least_squares": least_squares,
    "robust_regression": robust_regression,
    "nonnegative_pca": nonnegative_pca,
    "matrix_factorization": matrix_factorization,
    "mlp_classifier": mlp_classifier,
    "gaussian_least_squares": gaussian_least_squares,
    "noisy_quadratic": noisy_quadratic,
}


class Arrays(NamedTuple):
    """What is spread over the nodes, and the label by which."""

    arrays: Any
    labels: np.ndarray


def _supervised(features: np.ndarray, labels: np.ndarray) -> Arrays:
    return Arrays((features, labels), _strata(labels))


def _features(features: np.ndarray, labels: np.ndarray) -> Arrays:
    return Arrays(features, _strata(labels))


def _entries(features: np.ndarray, labels: np.ndarray) -> Arrays:
    """Every entry of the features as (row, column, value)."""
    rows, columns = (index.ravel() for index in np.indices(features.shape))
    return Arrays((rows, columns, features.ravel()), _strata(labels)[rows])


# The data set a task takes by default, and what it makes of one.
_FROM_DATASET: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], Arrays]]] = {
    "logistic": ("breast_cancer", _supervised),
    "least_squares": ("diabetes", _supervised),
    "robust_regression": ("diabetes", _supervised),
    "nonnegative_pca": ("digits", _features),
    "matrix_factorization": ("breast_cancer", _entries),
    "mlp_classifier": ("digits", _supervised),
}


def build(name: str, **options: Any) -> Problem:
    """The problem of this name: `from_dataset` where its task takes data, else the task itself.

    Any option that does not exist is refused, with what does.
    """
    checks.one_of("name", name, TASKS)
    known = options_of(name)
    for option in options:
        checks.one_of(f"option of {name}", option, known)
    return from_dataset(name, **options) if name in _FROM_DATASET else TASKS[name](**options)


def options_of(name: str) -> list[str]:
    """What `build` takes beside the name of the problem."""
    own = [option for option in inspect.signature(TASKS[name]).parameters if option != "data"]
    if name not in _FROM_DATASET:
        return own
    shared = [p for p in inspect.signature(from_dataset).parameters if p not in ("task", "options")]
    return shared + [option for option in own if option not in shared]


def from_dataset(
    task: str,
    dataset: str | Path | None = None,
    nodes: int = 16,
    split: str = "iid",
    concentration: float = 0.5,
    normalize: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Problem:
    """A task on a data set spread over nodes.

    Args:
        task: a name in `TASKS` that takes data.
        dataset: a name that `data.load` knows, or the path of a file for `data.read_libsvm`;
            by default one that suits the task. matrix_factorization takes the matrix of
            features, entry by entry; nonnegative_pca leaves the labels out.
        nodes, split, concentration: see `data.shard`, where split is `how`. A label that is a
            real number splits by its deciles.
        normalize: see `data.normalized`; by default as the two readers do.
        seed: of the split, and of x0 where that is random.
        options: the task's own, such as `penalty`, and `regularizer`.
    """
    checks.one_of("task", task, _FROM_DATASET)
    checks.one_of("split", split, SPLITS)
    usual, arrays_of = _FROM_DATASET[task]
    arrays, labels = arrays_of(*_read(usual if dataset is None else dataset, normalize))
    data = shard(arrays, nodes, split, labels=labels, concentration=concentration, seed=seed)
    if "seed" in inspect.signature(TASKS[task]).parameters:
        options["seed"] = seed
    return TASKS[task](data, **options)


def _read(dataset: str | Path, normalize: str | None) -> tuple[np.ndarray, np.ndarray]:
    options: dict[str, Any] = {} if normalize is None else {"normalize": normalize}
    if Path(dataset).suffix or Path(dataset).is_file():
        return read_libsvm(dataset, **options)
    name = checks.one_of("dataset (a name, or the path of a file)", str(dataset), DATASETS)
    return load(name, **options)


def _strata(labels: np.ndarray) -> np.ndarray:
    """The classes, or for real numbers the tenth of them that a label falls in."""
    if labels.dtype.kind != "f":
        return labels
    return np.digitize(labels, np.quantile(labels, np.linspace(0.1, 0.9, 9)))

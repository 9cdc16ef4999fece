"""Problems over structured params. No L holds everywhere, so theirs is estimated at x0."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from proxgt import checks
from proxgt.problems import EmpiricalRisk
from proxgt.problems.nodedata import NodeData
from proxgt.regularizers import Zero
from proxgt.tasks.inputs import class_indices, floats, node_samples, with_rows
from proxgt.tasks.losses import ACTIVATIONS, FactorizationLoss, MLPLoss


def matrix_factorization(
    data: Any,
    rank: int,
    regularizer: Any = Zero(),
    penalty: float = 0.0,
    shape: tuple[int, int] | None = None,
    seed: int = 0,
) -> EmpiricalRisk:
    """A matrix of low rank, U V', from the entries that the nodes hold.

        f_i(U, V) = mean_s 1/2 (u_{i_s}.v_{j_s} - value_s)^2 + penalty/2 (||U||^2 + ||V||^2)

    `data` is (rows, columns, values), each (nodes, m), or a list of such triples (m_i,).
    Params are {"U": (d1, rank), "V": (d2, rank)}. x0 is random, not zero: that is a saddle. Its
    predictions are of the size of the values and U and V of one norm, as at a solution, so
    that L as estimated near x0 usually serves a run. It is L of f_i: a sampled entry touches
    one row of U and V, so that stochastic gradients vary several times faster and want
    smaller steps.

    Args:
        shape: (d1, d2); by default what the largest row and column in the data require.
    """
    rank = checks.positive_int("rank", rank)
    penalty = checks.non_negative_number("penalty", penalty)
    samples = node_samples(data, rows=1, columns=1, values=1)
    shape = _matrix_shape(samples, shape)
    values = floats(samples.rows[2])
    size = float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
    if size == 0:
        raise ValueError("values in data must not all be zero: there is nothing to factorize")
    # u.v of `rank` entries of deviations s and t has deviation s t sqrt(rank); both factors
    # get the same norm, which descent all but keeps: uneven ones curve more.
    deviation = np.sqrt(size / np.sqrt(rank * shape[0] * shape[1]))
    rng = np.random.default_rng(checks.seed("seed", seed))
    U, V = (
        deviation * np.sqrt(other) * rng.standard_normal((d, rank))
        for d, other in zip(shape, shape[::-1], strict=True)
    )
    return EmpiricalRisk(
        FactorizationLoss(penalty),
        with_rows(samples, (*samples.rows[:2], values)),
        regularizer,
        x0={"U": U, "V": V},
    )


def _matrix_shape(samples: NodeData, shape: Any) -> tuple[int, int]:
    """(d1, d2), checked against every index: JAX would clamp one out of range silently."""
    needed = []
    for name, index in zip(("rows", "columns"), samples.rows[:2], strict=True):
        if index.dtype.kind not in "iu":
            raise TypeError(f"{name} in data must be integers, got dtype {index.dtype}")
        if index.min() < 0:
            raise ValueError(f"{name} in data must be >= 0, got {index.min()}")
        needed.append(int(index.max()) + 1)
    if shape is None:
        return needed[0], needed[1]
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise ValueError(f"shape must be (d1, d2), got {shape!r}")
    d1, d2 = (checks.positive_int("shape", d) for d in shape)
    if d1 < needed[0] or d2 < needed[1]:
        raise ValueError(
            f"shape must be at least {tuple(needed)} for the rows and columns in data, "
            f"got {(d1, d2)}"
        )
    return d1, d2


def mlp_classifier(
    data: Any,
    hidden: Sequence[int] = (64,),
    classes: int | None = None,
    regularizer: Any = Zero(),
    activation: str = "tanh",
    seed: int = 0,
) -> EmpiricalRisk:
    """Classification by a small neural network under softmax cross-entropy: see `MLPLoss`.

    `data` is (features (nodes, m, p), labels (nodes, m)) or a list of such pairs. Params are
    [{"w": (in, out), "b": (out,)}, ...], a layer each. x0: w by Glorot's rule, uniform of
    variance 2 / (in + out), and b = 0.

    Args:
        hidden: widths of the hidden layers; none makes it multinomial logistic regression.
        classes: their number, labels being 0 to classes - 1; by default the distinct labels,
            in sorted order, are the classes, so that -1 and +1 will do.
        activation: "tanh", "sigmoid", "softplus", "silu" or "gelu", all smooth.
    """
    if isinstance(hidden, (str, int)) or not isinstance(hidden, Sequence):
        raise TypeError(f"hidden must be a list of widths, such as [64], got {hidden!r}")
    widths = [checks.positive_int("hidden", width) for width in hidden]
    checks.one_of("activation", activation, ACTIVATIONS)
    samples = node_samples(data, features=2, labels=1)
    labels, count = class_indices(samples.rows[1], classes)
    features = floats(samples.rows[0])
    rng = np.random.default_rng(checks.seed("seed", seed))
    sizes = [features.shape[1], *widths, count]
    return EmpiricalRisk(
        MLPLoss(activation),
        with_rows(samples, (features, labels)),
        regularizer,
        x0=[_glorot(rng, *pair) for pair in pairwise(sizes)],
    )


def _glorot(rng: np.random.Generator, inputs: int, outputs: int) -> dict[str, np.ndarray]:
    limit = np.sqrt(6 / (inputs + outputs))
    return {"w": rng.uniform(-limit, limit, (inputs, outputs)), "b": np.zeros(outputs)}

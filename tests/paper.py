"""The paper's lines in plain NumPy, written from its text: an oracle that shares no code."""

from __future__ import annotations

import numpy as np


def proxgt(x1, W, K, alpha, prox, estimator, steps):
    """Algorithm 1. `estimator(t, x, x_before, v_before) -> v`, t counted from 1 as in the paper.

    Returns the lists of x_t, y_{t+1}, v_t, z_{t+1}.
    """
    n = W.shape[0]
    WK = np.linalg.matrix_power(W, K)
    x = np.tile(x1, (n, 1))  # line 0
    y, v_before, x_before = np.zeros_like(x), np.zeros_like(x), x
    xs, ys, vs, zs = [x], [], [], []
    for t in range(1, steps + 1):
        v = estimator(t, x, x_before, v_before)  # line 2
        y = WK @ (y + v - v_before)  # line 3
        z = np.stack([prox(x[i] - alpha * y[i], alpha) for i in range(n)])  # line 4
        x_before, v_before = x, v
        x = WK @ z  # line 5
        xs.append(x)
        ys.append(y)
        vs.append(v)
        zs.append(z)
    return xs, ys, vs, zs


def full(gradient):
    """v_t = grad f_i(x_t^i); gradient(i, x, indices or None)."""
    return lambda t, x, x_before, v_before: np.stack(
        [gradient(i, x[i], None) for i in range(len(x))]
    )


def minibatch(gradient, draws):
    """Algorithm 2 with draws[t-1][i] the indices node i uses at step t."""
    return lambda t, x, x_before, v_before: np.stack(
        [gradient(i, x[i], draws[t - 1][i]) for i in range(len(x))]
    )


def sarah(gradient, draws, q, refreshes=None):
    """Algorithm 4, or 3 where refreshes[t-1][i] gives the B samples of a refresh."""

    def estimator(t, x, x_before, v_before):
        nodes = range(len(x))
        if q == 1 or t % q == 1:
            use = [None if refreshes is None else refreshes[t - 1][i] for i in nodes]
            return np.stack([gradient(i, x[i], use[i]) for i in nodes])
        return np.stack(
            [
                gradient(i, x[i], draws[t - 1][i])
                - gradient(i, x_before[i], draws[t - 1][i])
                + v_before[i]
                for i in nodes
            ]
        )

    return estimator


def soft(v, threshold):
    """prox of threshold * ||.||_1."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)

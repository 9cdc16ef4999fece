"""The centralized methods as their publications write them, in NumPy, sharing no code with ours.

`gradient(x, indices)` is the mean of sample gradients, of all samples where indices is None;
`prox(v, a)` is prox_{a h}. `draws` is an iterator over the index sets a publication draws, in
its own order, where an epoch's first step draws nothing. Each returns x_0, x_1, ...
"""

from __future__ import annotations

import math

import numpy as np


def prox_gd(x, gradient, prox, a, steps):
    """Beck, First-Order Methods in Optimization, section 10.2, constant step."""
    xs = [x]
    for _ in range(steps):
        xs.append(prox(xs[-1] - a * gradient(xs[-1], None), a))
    return xs


def fista(x0, gradient, prox, a, steps):
    """Beck, Teboulle 2009, FISTA with constant step size: y_1 = x_0, t_1 = 1."""
    x, y, t, xs = x0, x0, 1.0, [x0]
    for _ in range(steps):
        x_new = prox(y - a * gradient(y, None), a)
        t_new = (1 + math.sqrt(1 + 4 * t * t)) / 2
        y = x_new + (t - 1) / t_new * (x_new - x)
        x, t = x_new, t_new
        xs.append(x)
    return xs


def prox_sgd(x, gradient, prox, a, draws, steps):
    """Ghadimi, Lan, Zhang 2016, the RSPG iteration in the Euclidean setup."""
    xs = [x]
    for _ in range(steps):
        xs.append(prox(xs[-1] - a * gradient(xs[-1], next(draws)), a))
    return xs


def prox_sarah(w, gradient, prox, eta, gamma, inner, draws, epochs, refreshes=None):
    """Pham et al. 2020, Algorithm 1: epochs of one anchor step and `inner` recursive ones."""
    ws = [w]

    def averaged_step(w, v):
        w_hat = prox(w - eta * v, eta)
        return (1 - gamma) * w + gamma * w_hat

    for _ in range(epochs):
        before = w
        v = gradient(w, None if refreshes is None else next(refreshes))
        w = averaged_step(w, v)
        ws.append(w)
        for _ in range(inner):
            batch = next(draws)
            v = v + gradient(w, batch) - gradient(before, batch)
            before, w = w, averaged_step(w, v)
            ws.append(w)
    return ws


def prox_spiderboost(x, gradient, prox, eta, q, draws, steps):
    """Wang et al. 2019, Prox-SpiderBoost: k counted from 0, full gradient at k mod q = 0."""
    xs, v = [x], None
    for k in range(steps):
        if k % q == 0:
            v = gradient(xs[k], None)
        else:
            batch = next(draws)
            v = gradient(xs[k], batch) - gradient(xs[k - 1], batch) + v
        xs.append(prox(xs[k] - eta * v, eta))
    return xs


def prox_svrg(x, gradient, prox, eta, m, draws, epochs):
    """Reddi et al. 2016, Algorithm 1; a draw at the snapshot itself cancels, so any will do."""
    xs = [x]
    for _ in range(epochs):
        snapshot, g = x, gradient(x, None)
        for t in range(m):
            batch = [0] if t == 0 else next(draws)
            v = gradient(x, batch) - gradient(snapshot, batch) + g
            x = prox(x - eta * v, eta)
            xs.append(x)
    return xs


def prox_saga(x, gradient, prox, eta, N, draws, steps):
    """Reddi et al. 2016, Algorithm 2: alpha_j is the point where sample j was last seen.

    `draws` gives pairs (I, J).
    """
    xs = [x]
    alpha = [x] * N
    g = np.mean([gradient(alpha[j], [j]) for j in range(N)], axis=0)
    for _ in range(steps):
        use, renew = next(draws)
        v = np.mean([gradient(x, [j]) - gradient(alpha[j], [j]) for j in use], axis=0) + g
        x_new = prox(x - eta * v, eta)
        for j in renew:
            g = g - (gradient(alpha[j], [j]) - gradient(x, [j])) / N
            alpha[j] = x
        x = x_new
        xs.append(x)
    return xs


def prox_hsgd(x, gradient, prox, eta, gamma, beta, first, draws, steps):
    """Tran-Dinh et al. 2022, Algorithm 1: v_t of eq. (8), `draws` gives pairs (B_t, B^_t)."""
    v = gradient(x, first)
    x_hat = prox(x - eta * v, eta)
    xs = [x, (1 - gamma) * x + gamma * x_hat]
    for _ in range(1, steps):
        recursive, fresh = next(draws)
        v = beta * (v + gradient(xs[-1], recursive) - gradient(xs[-2], recursive)) + (
            1 - beta
        ) * gradient(xs[-1], fresh)
        x_hat = prox(xs[-1] - eta * v, eta)
        xs.append((1 - gamma) * xs[-1] + gamma * x_hat)
    return xs

"""Recursions of the publications in plain NumPy, unshifted, sharing no code with the package.

`gradient(i, x, indices or None)` is as in helpers; `draws[t][i]` are the indices node i uses
at iteration t, or None for full gradients; `prox(v, a)` takes one vector. Every recursion
returns the list of the iterates its publication reports, the common start first.
"""

from __future__ import annotations

import numpy as np


def gradients(gradient, x, draw=None):
    """Row i: gradient of f_i at x_i on the samples draw[i]."""
    return np.stack([gradient(i, x[i], None if draw is None else draw[i]) for i in range(len(x))])


def at(draws, t):
    return None if draws is None else draws[t]


def by_row(prox, v, a):
    steps = np.broadcast_to(a, len(v))
    return np.stack([prox(row, step) for row, step in zip(v, steps, strict=True)])


def constant(value):
    return value if callable(value) else lambda t: value


# matrices of a digraph: adjacency[i, r] = 1 when r sends to i ----------------------------------


def column_stochastic(adjacency):
    closed = adjacency + np.eye(len(adjacency))
    return closed / closed.sum(axis=0)


def row_stochastic(adjacency):
    closed = adjacency + np.eye(len(adjacency))
    return closed / closed.sum(axis=1)[:, None]


# digraphs --------------------------------------------------------------------------------------


def dsgd_atc(x0, W, a, gradient, steps, draws=None):
    x = np.tile(x0, (len(W), 1))
    seen = [x]
    for t in range(steps):
        x = W @ (x - a * gradients(gradient, x, at(draws, t)))
        seen.append(x)
    return seen


def sgp(x0, C, a, gradient, steps, draws=None):
    x = z = np.tile(x0, (len(C), 1))
    w = np.ones(len(C))
    seen = [z]
    for t in range(steps):
        x = C @ (x - a * gradients(gradient, z, at(draws, t)))
        w = C @ w
        z = x / w[:, None]
        seen.append(z)
    return seen


def push_diging(x0, C, a, gradient, steps):
    x = u = np.tile(x0, (len(C), 1))
    v = np.ones(len(C))
    y = gradients(gradient, x)
    seen = [x]
    for _ in range(steps):
        u = C @ (u - a * y)
        v = C @ v
        new = u / v[:, None]
        y = C @ y + gradients(gradient, new) - gradients(gradient, x)
        x = new
        seen.append(x)
    return seen


def ab(x0, A, B, a, gradient, steps):
    x = np.tile(x0, (len(A), 1))
    y = gradients(gradient, x)
    seen = [x]
    for _ in range(steps):
        new = A @ x - a * y
        y = B @ y + gradients(gradient, new) - gradients(gradient, x)
        x = new
        seen.append(x)
    return seen


def push_pull(x0, R, C, a, gradient, steps):
    x = np.tile(x0, (len(R), 1))
    y = gradients(gradient, x)
    seen = [x]
    for _ in range(steps):
        new = R @ (x - a * y)
        y = C @ y + gradients(gradient, new) - gradients(gradient, x)
        x = new
        seen.append(x)
    return seen


# composite and constrained ---------------------------------------------------------------------


def prox_dgd(x0, W, a, prox, gradient, steps):
    x, step = np.tile(x0, (len(W), 1)), constant(a)
    seen = [x]
    for t in range(steps):
        x = by_row(prox, W @ x - step(t) * gradients(gradient, x), step(t))
        seen.append(x)
    return seen


def projected_dsgd(x0, W, a, project, gradient, steps, draws=None):
    x, step = np.tile(x0, (len(W), 1)), constant(a)
    seen = [x]
    for t in range(steps):
        moved = x - step(t) * gradients(gradient, x, at(draws, t))
        x = W @ np.stack([project(row) for row in moved])
        seen.append(x)
    return seen


def surrogate_minimizer(prox, x, g, n, others, tau):
    """argmin_u <g, u - x> + tau/2 ||u - x||^2 + <others, u - x> + n h(u), row by row."""
    return by_row(prox, x - (g + others) / tau, n / tau)


def next_(x0, W, tau, relaxation, decay, prox, gradient, steps):
    """Sec. IV: pi_i = n y_i - grad f_i estimates what the others want; G = n h."""
    n = len(W)
    x = np.tile(x0, (n, 1))
    g = gradients(gradient, x)
    y, pi = g, n * g - g
    seen = [x]
    for _ in range(steps):
        best = surrogate_minimizer(prox, x, g, n, pi, tau)
        z = x + relaxation * (best - x)
        x = W @ z
        new = gradients(gradient, x)
        y = W @ y + new - g
        g, pi = new, n * y - new
        relaxation *= 1 - decay * relaxation
        seen.append(x)
    return seen


def sonata(x0, A, tau, relaxation, decay, prox, gradient, steps):
    n = len(A)
    x = np.tile(x0, (n, 1))
    phi = np.ones((n, 1))
    g = gradients(gradient, x)
    y = g
    seen = [x]
    for _ in range(steps):
        best = surrogate_minimizer(prox, x, g, n, n * y - g, tau)
        z = x + relaxation * (best - x)
        new_phi = A @ phi
        x = A @ (phi * z) / new_phi
        new = gradients(gradient, x)
        y = (A @ (phi * y) + new - g) / new_phi
        g, phi = new, new_phi
        relaxation *= 1 - decay * relaxation
        seen.append(x)
    return seen


def defw(x0, W, gamma, lmo, gradient, steps):
    """gamma(t) with t counted from one, as published."""
    x = np.tile(x0, (len(W), 1))
    G = g = np.zeros_like(x)
    seen = [x]
    for t in range(1, steps + 1):
        new = gradients(gradient, x)
        G = W @ (G + new - g)
        g = new
        corners = np.stack([lmo(row) for row in G])
        x = W @ ((1 - gamma(t)) * x + gamma(t) * corners)
        seen.append(x)
    return seen


def sppdm(x0, adjacency, gamma, c, alpha, kappa, beta, momentum, prox, gradient, steps, draws=None):
    """momentum(k) is eta of iteration k."""
    degrees = np.diag(adjacency.sum(axis=1))
    laplacian, signless = degrees - adjacency, degrees + adjacency
    phi = gamma + 2 * c * np.diag(degrees) + kappa
    x = before = z = np.tile(x0, (len(adjacency), 1))
    mu = np.zeros_like(x)
    seen = [x]
    for k in range(steps):
        mu = mu + alpha * laplacian @ x
        s = x + momentum(k) * (x - before)
        g = gradients(gradient, s, at(draws, k))
        u = (gamma * s + c * signless @ x + kappa * z - g - mu) / phi[:, None]
        before, x = x, by_row(prox, u, 1 / phi)
        z = z + beta * (x - z)
        seen.append(x)
    return seen


def nesterov(k):
    """eta of iteration k: (theta - 1) / theta+ with theta = 1 at k = 0."""
    theta = 1.0
    for _ in range(k):
        theta = (1 + np.sqrt(1 + 4 * theta**2)) / 2
    return (theta - 1) / ((1 + np.sqrt(1 + 4 * theta**2)) / 2)


# follow-ups ------------------------------------------------------------------------------------


def deepstorm(x0, W, a, beta, prox, gradient, steps, first=None, xi=None, zeta=None):
    """Version 2, or version 1 where zeta is given; xi[k], zeta[k] serve the update to k."""
    step, beta = constant(a), constant(beta)
    x = np.tile(x0, (len(W), 1))
    d = gradients(gradient, x, first)
    y = W @ d
    seen = [x]
    for k in range(steps):
        new = by_row(prox, W @ x - step(k) * y, step(k))
        use = at(xi, k + 1)
        here, there = gradients(gradient, new, use), gradients(gradient, x, use)
        other = here if zeta is None else gradients(gradient, new, zeta[k + 1])
        new_d = (1 - beta(k)) * (d + here - there) + beta(k) * other
        y = W @ (y + new_d - d)
        x, d = new, new_d
        seen.append(x)
    return seen


def prox_dasa(x0, W, gamma, alpha, prox, gradient, steps, draws=None):
    alpha = constant(alpha)
    x = np.tile(x0, (len(W), 1))
    z = np.zeros_like(x)
    seen = [x]
    for k in range(steps):
        w = by_row(prox, x - gamma * z, gamma)
        v = gradients(gradient, x, at(draws, k))
        x = W @ ((1 - alpha(k)) * x + alpha(k) * w)
        z = W @ ((1 - alpha(k)) * z + alpha(k) * v)
        seen.append(x)
    return seen


def prox_dasa_gt(x0, W, gamma, alpha, prox, gradient, steps, draws=None):
    alpha = constant(alpha)
    x = np.tile(x0, (len(W), 1))
    z = u = v = np.zeros_like(x)
    seen = [x]
    for k in range(steps):
        w = by_row(prox, x - gamma * z, gamma)
        new = gradients(gradient, x, at(draws, k))
        tracked = u + new - v
        v = new
        x = W @ ((1 - alpha(k)) * x + alpha(k) * w)
        z = W @ ((1 - alpha(k)) * z + alpha(k) * tracked)
        u = W @ tracked
        seen.append(x)
    return seen


def cdproxsgt(x0, W, eta, gamma_x, gamma_y, qx, qy, prox, gradient, steps, draws=None):
    """qx(t, rows) and qy(t, rows) compress."""
    n = len(W)
    x = np.tile(x0, (n, 1))
    y = g = x_hat = y_hat = np.zeros_like(x)
    seen = [x]
    for t in range(steps):
        new = gradients(gradient, x, at(draws, t))
        y_half = y + new - g
        g = new
        y_hat = y_hat + qy(t, y_half - y_hat)
        y = y_half + gamma_y * (W - np.eye(n)) @ y_hat
        x_half = by_row(prox, x - eta * y, eta)
        x_hat = x_hat + qx(t, x_half - x_hat)
        x = x_half + gamma_x * (W - np.eye(n)) @ x_hat
        seen.append(x)
    return seen


def top_k(rows, k):
    out = np.zeros_like(rows)
    for i, row in enumerate(rows):
        keep = np.argsort(-np.abs(row), kind="stable")[:k]
        out[i, keep] = row[keep]
    return out


def random_k(rows, k, numbers):
    """The k entries of each row whose random numbers are the largest."""
    out = np.zeros_like(rows)
    for i, row in enumerate(rows):
        keep = np.argsort(numbers[i])[-k:]
        out[i, keep] = row[keep]
    return out


def project_l1_ball(v, radius):
    """By sorting: the threshold at which the magnitudes sum to the radius."""
    if np.abs(v).sum() <= radius:
        return v
    falling = np.sort(np.abs(v))[::-1]
    cuts = (np.cumsum(falling) - radius) / np.arange(1, len(v) + 1)
    cut = cuts[np.flatnonzero(falling > cuts)[-1]]
    return np.sign(v) * np.maximum(np.abs(v) - cut, 0)


def qsgd(rows, levels, uniform):
    """The unbiased quantiser over 1 + omega."""
    size = rows.shape[1]
    omega = min(size / levels**2, np.sqrt(size) / levels)
    norms = np.linalg.norm(rows, axis=1)[:, None]
    level = np.floor(levels * np.abs(rows) / norms + uniform)
    return norms * np.sign(rows) * level / levels / (1 + omega)


# an independent solution -----------------------------------------------------------------------


def centralized(x0, n, prox, gradient, step, steps=20_000):
    """Proximal gradient on the mean of the f_i, until it stands still."""
    x = np.array(x0, float)
    for _ in range(steps):
        g = np.mean([gradient(i, x, None) for i in range(n)], axis=0)
        new = prox(x - step * g, step)
        if np.abs(new - x).max() < 1e-15:
            return new
        x = new
    raise AssertionError("the reference did not converge")

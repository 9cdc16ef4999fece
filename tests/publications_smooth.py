"""The smooth rivals and their primal-dual kin in plain NumPy, written from the publications.

No code is shared with the package. `g(t, x)` gives the gradients used at step t, counted
from zero, shape (nodes, p); `gradient(i, x, indices)` those of one node, all its samples where
indices is None; `draws[t][i]` the sample indices of node i at step t. Every function returns
the list x_0, ..., x_T.
"""

from __future__ import annotations

import numpy as np


def rows(gradient, x, draw=None):
    """The gradients of all nodes, each at its own row."""
    return np.stack([gradient(i, x[i], None if draw is None else draw[i]) for i in range(len(x))])


def full(gradient):
    return lambda t, x: rows(gradient, x)


def minibatch(gradient, draws):
    return lambda t, x: rows(gradient, x, draws[t])


# DSGD ------------------------------------------------------------------------------------


def d_psgd(x0, W, alpha, g, steps):
    """Lian et al. 2017, Algorithm 1: average the neighbours, descend along the local gradient."""
    x = np.tile(x0, (len(W), 1))
    xs = [x]
    for t in range(steps):
        x = W @ x - alpha * g(t, x)
        xs.append(x)
    return xs


def diffusion(x0, W, alpha, g, steps):
    """Adapt then combine."""
    x = np.tile(x0, (len(W), 1))
    xs = [x]
    for t in range(steps):
        psi = x - alpha * g(t, x)
        x = W @ psi
        xs.append(x)
    return xs


def decentlam(x0, W, alpha, beta, g, steps):
    x = np.tile(x0, (len(W), 1))
    m = np.zeros_like(x)
    xs = [x]
    for t in range(steps):
        g_tilde = (x - W @ (x - alpha * g(t, x))) / alpha
        m = beta * m + g_tilde
        x = x - alpha * m
        xs.append(x)
    return xs


# Primal-dual -----------------------------------------------------------------------------


def d2(x0, W, alpha, g, steps):
    x_before = np.tile(x0, (len(W), 1))
    g_before = g(0, x_before)
    x = W @ (x_before - alpha * g_before)
    xs = [x_before, x]
    for t in range(1, steps):
        g_now = g(t, x)
        x, x_before, g_before = (
            W @ (2 * x - x_before - alpha * (g_now - g_before)),
            x,
            g_now,
        )
        xs.append(x)
    return xs


def exact_diffusion(x0, W, alpha, g, steps):
    """With the (I + W)/2 of the publication."""
    lazy = (np.eye(len(W)) + W) / 2
    x = np.tile(x0, (len(W), 1))
    psi = x
    xs = [x]
    for t in range(steps):
        psi_new = x - alpha * g(t, x)
        phi = psi_new + x - psi
        x, psi = lazy @ phi, psi_new
        xs.append(x)
    return xs


def prox_ed(x0, W, alpha, g, prox, steps):
    """As Exact Diffusion, with gradients at prox(u); the common start is a prox point w_0."""
    lazy = (np.eye(len(W)) + W) / 2
    w = np.tile(x0, (len(W), 1))
    u = psi = w
    xs = [w]
    for t in range(steps):
        psi_new = w - alpha * g(t, w)
        u, psi = lazy @ (u + psi_new - psi), psi_new
        w = prox(u, alpha)
        xs.append(w)
    return xs


def nids(x0, W, alpha, g, prox, steps):
    lazy = (np.eye(len(W)) + W) / 2
    x_before = np.tile(x0, (len(W), 1))
    g_before = g(0, x_before)
    u = x_before - alpha * g_before
    x = prox(u, alpha)
    xs = [x_before, x]
    for t in range(1, steps):
        g_now = g(t, x)
        u = u - x + lazy @ (2 * x - x_before - alpha * (g_now - g_before))
        x_before, g_before = x, g_now
        x = prox(u, alpha)
        xs.append(x)
    return xs


def extra(x0, W, alpha, g, steps):
    eye = np.eye(len(W))
    x_before = np.tile(x0, (len(W), 1))
    g_before = g(0, x_before)
    x = W @ x_before - alpha * g_before
    xs = [x_before, x]
    for t in range(1, steps):
        g_now = g(t, x)
        x_new = (eye + W) @ x - (eye + W) / 2 @ x_before - alpha * (g_now - g_before)
        x_before, g_before, x = x, g_now, x_new
        xs.append(x)
    return xs


def pg_extra(x0, W, alpha, g, prox, steps):
    lazy = (np.eye(len(W)) + W) / 2
    x_before = np.tile(x0, (len(W), 1))
    g_before = g(0, x_before)
    u = W @ x_before - alpha * g_before
    x = prox(u, alpha)
    xs = [x_before, x]
    for t in range(1, steps):
        g_now = g(t, x)
        u = W @ x + u - lazy @ x_before - alpha * (g_now - g_before)
        x_before, g_before = x, g_now
        x = prox(u, alpha)
        xs.append(x)
    return xs


def d_spider_sfo(x0, W, alpha, gradient, draws, q, steps, refreshes=None):
    x = x_before = np.tile(x0, (len(W), 1))
    v_before = None
    xs = [x]
    for t in range(steps):
        if t % q == 0:
            v = rows(gradient, x, None if refreshes is None else refreshes[t])
        else:
            v = rows(gradient, x, draws[t]) - rows(gradient, x_before, draws[t]) + v_before
        step = x - alpha * v if t == 0 else 2 * x - x_before - alpha * (v - v_before)
        x_before, v_before, x = x, v, W @ step
        xs.append(x)
    return xs


# Tracking --------------------------------------------------------------------------------


def gt_dsgd(x0, W, alpha, g, steps):
    x = np.tile(x0, (len(W), 1))
    y = g_before = np.zeros_like(x)
    xs = [x]
    for t in range(steps):
        g_now = g(t, x)
        y = W @ (y + g_now - g_before)
        x = W @ (x - alpha * y)
        g_before = g_now
        xs.append(x)
    return xs


def gnsd(x0, W, alpha, g, steps):
    """GNSD, and DIGing where g is exact: y starts at the first gradient."""
    x = np.tile(x0, (len(W), 1))
    g_now = g(0, x)
    y = g_now
    xs = [x]
    for t in range(steps):
        x = W @ x - alpha * y
        xs.append(x)
        if t + 1 < steps:
            g_new = g(t + 1, x)
            y = W @ y + g_new - g_now
            g_now = g_new
    return xs


def gt_hsgd(x0, W, alpha, beta, gradient, first, draws, steps):
    x = np.tile(x0, (len(W), 1))
    v = rows(gradient, x, first)
    y = W @ v
    x_before, x = x, W @ (x - alpha * y)
    xs = [x_before, x]
    for t in range(1, steps):
        v_new = rows(gradient, x, draws[t]) + (1 - beta) * (v - rows(gradient, x_before, draws[t]))
        y = W @ (y + v_new - v)
        v = v_new
        x_before, x = x, W @ (x - alpha * y)
        xs.append(x)
    return xs


def gt_saga(x0, W, alpha, gradient, m, tau, s, steps):
    """tau[t][i] the index that estimates, s[t][i] the one whose table entry is renewed."""
    nodes = range(len(W))
    x = np.tile(x0, (len(W), 1))
    table = [[gradient(i, x[i], [j]) for j in range(m)] for i in nodes]
    y = v_before = np.zeros_like(x)
    xs = [x]
    for t in range(steps):
        v = np.stack(
            [
                gradient(i, x[i], [tau[t][i]]) - table[i][tau[t][i]] + sum(table[i]) / m
                for i in nodes
            ]
        )
        y = W @ (y + v - v_before)
        x_new = W @ (x - alpha * y)
        for i in nodes:
            table[i][s[t][i]] = gradient(i, x[i], [s[t][i]])
        v_before, x = v, x_new
        xs.append(x)
    return xs


def gt_sarah(x0, W, alpha, gradient, draws, q, steps):
    """Outer loop with a full gradient, inner loop of q recursive steps."""
    x = np.tile(x0, (len(W), 1))
    y = v_before = np.zeros_like(x)
    xs, t = [x], 0
    while t < steps:
        v = rows(gradient, x)
        y = W @ y + v - v_before
        x_before, x = x, W @ x - alpha * y
        xs.append(x)
        t += 1
        for _ in range(min(q, steps - t)):
            v_new = v + rows(gradient, x, draws[t]) - rows(gradient, x_before, draws[t])
            y = W @ y + v_new - v
            x_before, x = x, W @ x - alpha * y
            v = v_new
            xs.append(x)
            t += 1
        v_before = v
    return xs


def d_get(x0, W, alpha, gradient, draws, q, steps, refreshes=None):
    x = np.tile(x0, (len(W), 1))
    v = rows(gradient, x, None if refreshes is None else refreshes[0])
    y = v
    xs = [x]
    for r in range(1, steps + 1):
        x_before, x = x, W @ x - alpha * y
        xs.append(x)
        if r == steps:
            return xs
        if r % q == 0:
            v_new = rows(gradient, x, None if refreshes is None else refreshes[r])
        else:
            v_new = v + rows(gradient, x, draws[r]) - rows(gradient, x_before, draws[r])
        y = W @ y + v_new - v
        v = v_new
    return xs


def accelerated_gossip(W, R, eta, z):
    before = z
    for _ in range(R):
        z, before = (1 + eta) * W @ z - eta * before, z
    return z


def detag(x0, W, alpha, R, eta, g, phases):
    x = np.tile(x0, (len(W), 1))
    g_now = g(0, x)
    y = g_before = g_now
    xs = [x]
    for k in range(phases):
        if k:
            g_now = g(k, x)
        x_mixed = accelerated_gossip(W, R, eta, x)
        y_mixed = accelerated_gossip(W, R, eta, y)
        x = x_mixed - alpha * y_mixed
        y = y_mixed + g_now - g_before
        g_before = g_now
        xs.append(x)
    return xs


# Nested loops ----------------------------------------------------------------------------


def network_sarah(x0, WK, alpha, gradient, draws, S, outers):
    """The inner iterates u of all outer iterations; draws[t] at inner step t, t over all."""
    x = np.tile(x0, (len(WK), 1))
    s = rows(gradient, x)
    g_last = s
    us, t = [x], 0
    for _ in range(outers):
        y = WK @ x
        g_now = rows(gradient, y)
        s = WK @ s + g_now - g_last
        g_last = g_now
        u, v = y, s
        for j in range(S):
            u_before, u = u, u - alpha * v
            us.append(u)
            t += 1
            if j + 1 < S:
                v = v + rows(gradient, u, draws[t]) - rows(gradient, u_before, draws[t])
        x = u
    return us


def destress(x0, W_in, W_out, alpha, gradient, draws, S, outers, p=1.0, active=None):
    """The inner iterates u of all outer iterations; active[t][i] the Bernoulli(p) draws."""
    x = np.tile(x0, (len(W_in), 1))
    g_last = rows(gradient, x)
    s = np.tile(g_last.mean(axis=0), (len(W_in), 1))
    us, t = [x], 0
    for k in range(outers):
        if k:
            g_now = rows(gradient, x)
            s = W_out @ (s + g_now - g_last)
            g_last = g_now
        u, v = x, s
        for j in range(S):
            u_before, u = u, W_in @ (u - alpha * v)
            us.append(u)
            t += 1
            if j + 1 < S:
                change = rows(gradient, u, draws[t]) - rows(gradient, u_before, draws[t])
                if active is not None:
                    change = np.asarray(active[t])[:, None] / p * change
                v = W_in @ (v + change)
        x = u
    return us

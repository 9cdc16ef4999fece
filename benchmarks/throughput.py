"""Steps per second of `pg.solve` beside the best plain stacked-NumPy loop, in one run.

    python benchmarks/throughput.py [--quick]

Logistic loss + non-convex penalty + l1, float32, ring. Both sides sample with replacement and
make the same number of steps; compilation is excluded, ten records are included. Speeds are
ratios of runs made side by side, because machines are shared and noisy.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import proxgt as pg

PENALTY, L1, STEP = 0.1, 1e-3, 0.1


def numpy_loop(a, y, W, rounds, batch, steps, seed=0):
    """ProxGT-SA as a careful NumPy user writes it: all nodes stacked, W^K precomputed."""
    n, m, p = a.shape
    WK = np.linalg.matrix_power(W, rounds).astype(np.float32)
    x, y_t, v_last = (np.zeros((n, p), np.float32) for _ in range(3))
    rows, rng = np.arange(n)[:, None], np.random.default_rng(seed)
    step, threshold = np.float32(STEP), np.float32(STEP * L1)
    for _ in range(steps):
        draw = rng.integers(0, m, (n, batch))
        ab, yb = a[rows, draw], y[rows, draw]
        margin = yb * np.matmul(ab, x[:, :, None])[:, :, 0]
        slope = -yb / (1 + np.exp(margin)) / batch
        v = np.matmul(slope[:, None, :], ab)[:, 0] + PENALTY * 2 * x / (1 + x * x) ** 2
        y_t = WK @ (y_t + v - v_last)
        v_last = v
        z = x - step * y_t
        z = np.sign(z) * np.maximum(np.abs(z) - threshold, 0)
        x = WK @ z
    return x


def gather_rate(a, batch, steps, seed=0):
    """Random rows a second that NumPy can merely gather."""
    n, m, _ = a.shape
    rows, rng = np.arange(n)[:, None], np.random.default_rng(seed)
    clock = time.perf_counter()
    for _ in range(steps):
        a[rows, rng.integers(0, m, (n, batch))]
    return steps * n * batch / (time.perf_counter() - clock)


def data(n, m, p):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n, m, p)).astype(np.float32)
    return a, np.sign(rng.standard_normal((n, m))).astype(np.float32)


def one_case(n, m, p, batch, rounds, steps, repeats):
    a, y = data(n, m, p)
    network = pg.Network.ring(n)
    problem = pg.tasks.logistic((a, y), pg.L1(L1), penalty=PENALTY)
    method = pg.ProxGT_SA(batch, STEP, pg.Gossip(rounds))
    run = {"steps": steps, "record_every": steps // 10, "seed": 1}
    pg.solve(problem, network, method, **run)  # compiles
    numpy_loop(a, y, network.W, rounds, batch, 50)
    ours, theirs, gathers = [], [], []
    for _ in range(repeats):
        clock = time.perf_counter()
        pg.solve(problem, network, method, **run)
        ours.append(steps / (time.perf_counter() - clock))
        some = max(steps // 3, 50)
        clock = time.perf_counter()
        numpy_loop(a, y, network.W, rounds, batch, some)
        theirs.append(some / (time.perf_counter() - clock))
        gathers.append(gather_rate(a, batch, some))
    ours, theirs, gathers = (float(np.median(r)) for r in (ours, theirs, gathers))
    print(
        f"n={n:<4} m={m:<5} p={p} batch={batch:<4} K={rounds}: proxgt {ours:9,.0f} steps/s   "
        f"NumPy {theirs:9,.0f} steps/s   ratio {ours / theirs:4.2f}   "
        f"gradients/gathered rows {ours * n * batch / gathers:4.2f}"
    )
    return ours / theirs


def full_gradient_case(n, m, p, repeats=30):
    """The full gradient against two BLAS passes over the data."""
    import jax
    import jax.numpy as jnp

    a, y = data(n, m, p)
    problem = pg.tasks.logistic((a, y), pg.L1(L1), penalty=PENALTY)
    oracle = problem.oracle(problem.spec(), "float32")
    x = jnp.asarray(np.random.default_rng(1).standard_normal((n, p)), jnp.float32)
    full = jax.jit(lambda oracle, x: oracle.full_gradients(x))
    xn = np.asarray(x)

    def blas():
        return np.matmul(np.matmul(a, xn[:, :, None]).swapaxes(1, 2), a)

    def best(f):
        f()
        times = []
        for _ in range(repeats):
            clock = time.perf_counter()
            f()
            times.append(time.perf_counter() - clock)
        return min(times)

    ours, theirs = best(lambda: full(oracle, x).block_until_ready()), best(blas)
    print(
        f"full gradient n={n} m={m} p={p}: proxgt {ours * 1e3:.2f} ms, two BLAS passes "
        f"{theirs * 1e3:.2f} ms, ratio {theirs / ours:.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    quick = parser.parse_args().quick
    scale, repeats = (10, 1) if quick else (1, 3)
    one_case(20, 1000, 123, 16, 8, 100_000 // scale, repeats)
    one_case(20, 1000, 123, 256, 8, 20_000 // scale, repeats)
    one_case(100, 300, 123, 1, 8, 40_000 // scale, repeats)
    full_gradient_case(20, 1000, 123)
    full_gradient_case(20, 20_000, 123)


if __name__ == "__main__":
    main()

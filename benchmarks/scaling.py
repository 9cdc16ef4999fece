"""Memory beyond the data, and how the cost of a step grows with n, batch and p.

    python benchmarks/scaling.py

Memory is the peak resident set of a fresh process less its data and what JAX itself takes.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import jax.numpy as jnp
import numpy as np

import proxgt as pg


def logistic(w, sample):
    a, y = sample
    return jnp.logaddexp(0.0, -y * jnp.dot(a, w))


def problem_of(n, m, p):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n, m, p), dtype=np.float32)
    y = np.sign(rng.standard_normal((n, m))).astype(np.float32)
    return pg.EmpiricalRisk(logistic, (a, y), pg.L1(1e-4), x0=np.zeros(p), smoothness=p / 4), a


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def peak(estimator):
    """Run in a process of its own: n=1,000 nodes, p=10,000, ring, K=10."""
    pg.solve(problem_of(2, 2, 2)[0], pg.Network.complete(2), pg.ProxGT_SA(1, 0.1), 2)
    start = resident()
    problem, a = problem_of(1000, 2, 10_000)
    method = pg.ProxGT(estimator, 1e-4, pg.Gossip(10))
    pg.solve(problem, pg.Network.ring(1000), method, 10, record_every=5)
    gib = a.nbytes / 2**30
    print(f"{estimator}: {resident() - start - gib:.2f} GiB beyond {gib:.2f} GiB of data")


def per_step(n=20, m=200, p=200, batch=16, steps=2000):
    problem, _ = problem_of(n, m, p)
    method = pg.ProxGT_SA(batch, 1e-3, pg.Gossip(8))
    network = pg.Network.ring(n)
    pg.solve(problem, network, method, 20, record_every=20)
    result = pg.solve(problem, network, method, steps, record_every=steps)
    return result.history["seconds"][-1] / steps


def main():
    if len(sys.argv) > 1:
        peak({"SA": pg.Minibatch(1), "SR-E": pg.SARAH(1, 5)}[sys.argv[1]])
        return
    for name in ("SA", "SR-E"):
        subprocess.run([sys.executable, __file__, name], check=True)
    for what, values in (
        ("n", (50, 100, 200, 400)),
        ("batch", (64, 128, 256, 512)),
        ("p", (400, 800, 1600, 3200)),
    ):
        times = [per_step(**{what: value}, steps=600) for value in values]
        growth = np.polyfit(np.log(values), np.log(times), 1)[0]
        shown = "  ".join(f"{v}: {1e6 * s:.0f}" for v, s in zip(values, times, strict=True))
        print(f"microseconds a step by {what:5s} {shown}   exponent {growth:.2f}")


if __name__ == "__main__":
    main()

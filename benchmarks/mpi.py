"""Steps per second of `engine="mpi"` beside a bare mpi4py + NumPy loop, and beside one process.

    mpiexec -n 2 python benchmarks/mpi.py [--quick]

Logistic loss + non-convex penalty + l1, float32, ring of 8, K = 8. The bare loop is the same
step as a careful user writes it: rows of a rank stacked, Sendrecv of the two outer rows into
a buffer beside the own rows, one small matrix product a round. Both sides sample with
replacement; compilation is excluded. Machines are shared and noisy, so sides alternate and
speeds are medians. `local` runs in a process of its own, on all cores, while the ranks sleep.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

# One thread a rank: there are as many ranks as cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import proxgt as pg
from proxgt.cores import keep_to, usable_cores

ALONE = "--local" in sys.argv  # the process of `local`, which begins no MPI
if not ALONE:
    from mpi4py import MPI

    COMM = MPI.COMM_WORLD

NODES, ROUNDS = 8, 8
PENALTY, L1, STEP = 0.1, 1e-3, 0.1
CORES = usable_cores()  # before ranks keep to their shares


def data(m, p):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((NODES, m, p), dtype=np.float32) / np.float32(np.sqrt(p))
    return a, np.sign(rng.standard_normal((NODES, m))).astype(np.float32)


class Bare:
    """The hand-written loop."""

    def __init__(self, a, y):
        n = NODES // COMM.size
        self.own = slice(COMM.rank * n, (COMM.rank + 1) * n)
        self.a, self.y, self.n = a[self.own].copy(), y[self.own].copy(), n
        self.left, self.right = (COMM.rank - 1) % COMM.size, (COMM.rank + 1) % COMM.size
        self.buffers = [np.zeros((n + 2, a.shape[2]), np.float32) for _ in range(2)]
        self.W = np.zeros((n, n + 2), np.float32)  # columns: left row, own rows, right row
        for i in range(n):
            self.W[i, i : i + 3] = 1 / 3

    def mix(self, rows):
        now, other = self.buffers
        now[1:-1] = rows
        for _ in range(ROUNDS):
            COMM.Sendrecv(now[-2], self.right, 0, now[0], self.left, 0)
            COMM.Sendrecv(now[1], self.left, 1, now[-1], self.right, 1)
            np.dot(self.W, now, out=other[1:-1])
            now, other = other, now
        return now[1:-1].copy()

    def run(self, batch, steps):
        a, y, n = self.a, self.y, self.n
        m, p = a.shape[1:]
        rng, rows = np.random.default_rng(COMM.rank), np.arange(n)[:, None]
        x, tracker, last = (np.zeros((n, p), np.float32) for _ in range(3))
        step, threshold, penalty = (np.float32(c) for c in (STEP, STEP * L1, 2 * PENALTY))
        for _ in range(steps):
            draw = rng.integers(0, m, (n, batch))
            ab, yb = a[rows, draw], y[rows, draw]
            margin = yb * np.matmul(ab, x[:, :, None])[:, :, 0]
            slope = -yb / (1 + np.exp(margin)) / np.float32(batch)
            v = np.matmul(slope[:, None, :], ab)[:, 0] + penalty * x / (1 + x * x) ** 2
            tracker = self.mix(tracker + v - last)
            last = v
            z = x - step * tracker
            x = self.mix(np.sign(z) * np.maximum(np.abs(z) - threshold, 0))
        return x


def rate(function, steps):
    """Steps a second, all ranks together."""
    COMM.Barrier()
    clock = time.perf_counter()
    function()
    COMM.Barrier()
    return steps / (time.perf_counter() - clock)


def ours(problem, batch, steps, engine):
    """Steps a second by the run's own clock, and its share of communication."""
    how = pg.ProxGT_SA(batch, STEP, pg.Gossip(ROUNDS))
    result = pg.solve(
        problem, pg.Network.ring(NODES), how, steps, record_every=steps, engine=engine
    )
    seconds = result.history["seconds"][-1]
    return steps / seconds, result.history["communication_seconds"][-1] / seconds


def ping_pong(p, rounds):
    """Rounds a second of one p-vector each way between neighbours."""
    out, back = np.zeros(p, np.float32), np.zeros(p, np.float32)
    left, right = (COMM.rank - 1) % COMM.size, (COMM.rank + 1) % COMM.size

    def run():
        for _ in range(rounds):
            COMM.Sendrecv(out, right, 0, back, left, 0)

    return rate(run, rounds)


def one_case(m, p, batch, steps, repeats, least, against_local=None):
    a, y = data(m, p)
    problem = pg.tasks.logistic((a, y), pg.L1(L1), penalty=PENALTY)
    bare = Bare(a, y)
    ours(problem, batch, steps, "mpi")
    bare.run(batch, 2)
    rates = {"mpi": [], "bare": [], "share": [], "local": []}
    for _ in range(repeats):
        mine, share = ours(problem, batch, steps, "mpi")
        rates["mpi"].append(mine)
        rates["share"].append(share)
        rates["bare"].append(rate(lambda: bare.run(batch, steps), steps))
        if against_local is not None:
            rates["local"].append(one_process(m, p, batch, steps))
    mpi, theirs, share = (float(np.median(rates[name])) for name in ("mpi", "bare", "share"))
    pings = ping_pong(p, 2000 if p < 1e4 else 200)
    if COMM.rank == 0:
        print(
            f"p={p} batch={batch}: mpi {mpi:9,.1f} steps/s   bare {theirs:9,.1f}   ratio "
            f"{mpi / theirs:4.2f} (at least {least})   {2 * ROUNDS * mpi:9,.0f} rounds/s, of which "
            f"{share:.0%} of the time in communication; ping-pong {pings:9,.0f} rounds/s"
        )
        if against_local is not None:
            local = float(np.median(rates["local"]))
            print(
                f"p={p} batch={batch}: mpi {mpi:9,.1f} steps/s   local {local:8,.1f}   ratio "
                f"{mpi / local:4.2f} (at least {against_local})",
                flush=True,
            )


def one_process(m, p, batch, steps):
    """The local engine, started by rank 0 in a process on all cores, while the ranks sleep."""
    rate_ = 0.0
    if COMM.rank == 0:
        asked = [sys.executable, __file__, "--local", *map(str, (m, p, batch, steps))]
        theirs = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "MPI", "OMPI"))}
        mine = usable_cores()
        keep_to(CORES)  # which the process inherits
        done = subprocess.run(asked, env=theirs, capture_output=True, text=True)
        keep_to(mine)
        if done.returncode:
            raise SystemExit(done.stderr)
        rate_ = float(done.stdout)
    done = COMM.Ibarrier()
    while not done.Test():
        time.sleep(0.01)
    return rate_


def alone(m, p, batch, steps):
    """What `one_process` starts: prints the steps a second, the first run's aside."""
    problem = pg.tasks.logistic(data(m, p), pg.L1(L1), penalty=PENALTY)
    print([ours(problem, batch, steps, "local")[0] for _ in range(2)][1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few steps of each")
    quick = parser.parse_args().quick
    if NODES % COMM.size:
        raise SystemExit(f"the bare loop wants a number of ranks that divides {NODES}")
    scale, repeats = (10, 1) if quick else (1, 5)
    one_case(500, 123, 16, 20_000 // scale, repeats, least=0.7)
    one_case(100, 100_000, 16, 200 // scale, repeats, least=0.9)
    one_case(100, 100_000, 64, 60 // scale, repeats, least=0.9, against_local=1.3)


if __name__ == "__main__":
    if ALONE:
        alone(*map(int, sys.argv[2:]))
    else:
        main()

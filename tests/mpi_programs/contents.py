"""What crosses ranks: all that is handed to MPI, beside what may be handed to it.

What may cross is made on one machine: iterates, rows of every round of every consensus, and the
sums over a rank's nodes that are totalled at record points. Everything else is a stranger.
"""

import pickle
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from cases import NODES, RING, RUN, X1, A, B, P, method
from common import everywhere, say
from mpi4py import MPI

import proxgt as pg
from helpers import bumpy_loss
from proxgt.engines import local as local_engine
from proxgt.engines.messages import world
from proxgt.engines.partition import partition
from proxgt.problems.shards import Shards, write_shards

RANK = world().rank
K = 2
HOW = method(consensus=pg.Gossip(K))
RISK = pg.EmpiricalRisk(bumpy_loss, (A, B), pg.L1(0.1), x0=X1, smoothness=5.0)


class Recorder:
    """Stands before MPI or a communicator, and keeps a copy of all that it is given to send.

    In mpi4py the first argument of a call is what is sent, save that of a receive, and of a
    broadcast elsewhere than at its root.
    """

    sent = []  # (name of the call, what was sent)
    persistent = []  # (request, its buffer), to be sent at each start

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        found = getattr(self._real, name)
        if isinstance(found, MPI.Comm) or found is MPI.Prequest:
            return Recorder(found)
        calls = isinstance(self._real, MPI.Comm) or self._real is MPI.Prequest
        if not (calls and callable(found)):
            return found

        def call(*arguments, **options):
            given = next(iter((*arguments, *options.values())), None)
            if name in ("Start", "Startall"):
                started = given if isinstance(given, list) else [given]
                for request, buffer in self.persistent:
                    if any(request is one for one in started):
                        self.sent.append((name, np.array(buffer)))
            elif not (name.startswith("Recv") or (name == "Ibcast" and options["root"] != RANK)):
                self.sent.append((name, given.copy() if isinstance(given, np.ndarray) else given))
            value = found(*arguments, **options)
            if name == "Send_init":
                self.sent.pop()
                self.persistent.append((value, given))
            return Recorder(value) if isinstance(value, MPI.Comm) else value

        return call


def record():
    """From now on, stand between the library and MPI."""
    ranks = world()
    ranks.comm, ranks._alarm, ranks.mpi = map(Recorder, (ranks.comm, ranks._alarm, ranks.mpi))
    MPI.COMM_WORLD = Recorder(MPI.COMM_WORLD)


def run_of_one_machine():
    """Every s_k of every consensus, and at every step (x, mean, solution)."""
    rows, steps, mixing = [], [], local_engine.local_mixing

    @jax.tree_util.register_static
    class Watched:
        def __call__(self, s):
            for _ in range(K):
                jax.debug.callback(lambda r: rows.extend(np.array(r)), s, ordered=True)
                s = RING.W @ s
            return s

        def __hash__(self):
            return 1

    local_engine.local_mixing = lambda *_: Watched()
    keep = lambda s: steps.append((s.x.copy(), s.mean, s.solution))
    pg.solve(RISK, RING, HOW, **RUN | {"record_every": 1}, callbacks=[keep])
    local_engine.local_mixing = mixing
    return rows, steps


def gradients(points):
    """(nodes, points, m, p), of single samples."""
    of_samples = jax.vmap(jax.grad(bumpy_loss), (None, 0))
    of_points = jax.vmap(of_samples, (0, None))
    with jax.enable_x64(True):
        return np.array(jax.vmap(of_points, (None, 0))(jnp.array(points), (A, B)))


def losses(point):
    """(nodes,), f_i."""
    with jax.enable_x64(True):
        return np.array(jax.vmap(jax.vmap(bumpy_loss, (None, 0)), (None, 0))(point, (A, B))).mean(1)


def what_may_cross():
    """p-vectors (count, p) and scalars (count,)."""
    rows, steps = run_of_one_machine()
    iterates = [row for x, _, _ in steps for row in x]
    vectors, scalars = iterates + rows, []
    blocks = [*partition(RING.adjacency, world().size), np.arange(NODES)]  # of each, and of all
    for x, mean, solution in steps[:: RUN["record_every"]]:
        each = (
            (vectors, x),
            (vectors, gradients([mean])[:, 0].mean(1)),
            (scalars, ((x - mean) ** 2).sum(1)),
            (scalars, losses(solution)),
        )
        for kind, of_nodes in each:
            kind.extend(of_nodes[block].sum(0) for block in blocks)
    return np.array(vectors), np.array(scalars), np.array(iterates)


def plain(value):
    """Whether a value is text or whole numbers: no float, and no array."""
    if isinstance(value, dict):
        return all(map(plain, value)) and all(map(plain, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(plain, value))
    return value is None or isinstance(value, (str, bool, int, np.integer))


def near(value, allowed):
    return np.abs(allowed - value).reshape(len(allowed), -1).max(1).min() < 1e-6  # see `strangers`


def strangers(sent, vectors, scalars):
    """Names of the calls that were given to send what may not cross.

    JAX's debug callback rounds rows to float32.
    """
    found = set()
    for name, value in sent:
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            if value.size == 1:
                fine = near(value.item(), scalars)
            else:
                fine = value.size % P == 0 and all(near(r, vectors) for r in value.reshape(-1, P))
        elif isinstance(value, np.ndarray) and value.dtype == np.uint8:
            text = pickle.loads(value.tobytes())
            fine = plain(text) and len(repr(text)) < 6000
            fine &= not any(repr(float(number)) in repr(text) for number in (*A.flat, *B.flat))
        else:
            fine = plain(value.tolist() if isinstance(value, np.ndarray) else value)
        if not fine:
            found.add(name)
    return sorted(found)


def nearest_gradient(sent, iterates):
    """How near a sent p-vector comes to a gradient of one sample at an iterate."""
    single = gradients(iterates).reshape(-1, P)
    floats = [v for _, v in sent if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    rows = np.concatenate([v.reshape(-1, P) for v in floats if v.size % P == 0])
    return min(np.abs(single - row).max(1).min() for row in np.unique(rows.round(9), axis=0))


def leaks():
    """Send a sample, a label or the gradient of one by all roads there are: all are seen."""
    comm, one = world().comm, gradients([X1])[0, 0, 0]
    roads = {
        "Ibcast": lambda: world().shared(A[RANK, 0], 0),
        "Ireduce": lambda: world().total(one),
        "Iallgatherv": lambda: everywhere(A[RANK, 0].tolist()),
        "allgather": lambda: comm.allgather(A[RANK, 0]),
        "Allgather": lambda: comm.Allgather(B[RANK, :1].copy(), np.empty(comm.size)),
        "Allreduce": lambda: MPI.COMM_WORLD.Allreduce(one, np.empty(P)),
    }
    for name, send in roads.items():
        Recorder.sent.clear()
        send()
        yield name, Recorder.sent


def main():
    directory = Path(sys.argv[1])
    if RANK == 0:
        write_shards((A, B), directory)
    everywhere(None)
    opened, load = [], np.load
    np.load = lambda path, **options: opened.append(Path(path).name) or load(path, **options)
    problem = pg.EmpiricalRisk(bumpy_loss, Shards(directory), pg.L1(0.1), x0=X1, smoothness=5.0)
    record()
    pg.solve(problem, RING, HOW, engine="mpi", callbacks=[lambda snapshot: None], **RUN)
    np.load = load
    sent = list(Recorder.sent)
    vectors, scalars, iterates = what_may_cross()
    calls = [name for name, _ in sent]
    say(
        "contents",
        opened=everywhere(sorted(set(opened))),
        calls=everywhere({name: calls.count(name) for name in set(calls)}),
        strangers=everywhere(strangers(sent, vectors, scalars)),
        nearest_gradient=everywhere(float(nearest_gradient(sent, iterates))),
        leaks={name: strangers(seen, vectors, scalars) for name, seen in leaks()},
    )


main()

"""What is refused: every rank raises the same one line."""

import sys
from pathlib import Path

import numpy as np
from cases import RING, RUN, X1, A, B, method, risk
from common import everywhere, say

import proxgt as pg
from helpers import bumpy_loss
from proxgt.engines.messages import world
from proxgt.problems.shards import Shards, write_shards

RANK = world().rank
WHERE = Path(sys.argv[1])


def sharded(source, nodes=7):
    data = Shards(source, nodes)
    return pg.EmpiricalRisk(bumpy_loss, data, pg.L1(0.1), x0=X1, smoothness=5.0)


def refused(case, problem=risk, network=RING, how=None, **options):
    try:
        pg.solve(problem(), network, how or method(), engine="mpi", **(RUN | options))
        message = "nothing was refused"
    except ValueError as error:
        message = str(error)
    messages = everywhere(message)
    assert len(set(messages)) == 1, messages
    assert "\n" not in message
    say(case, message=message)


def shards(name, change=lambda directory: None):
    """A directory of shards, with something changed in it by rank 0."""
    directory = WHERE / name
    if RANK == 0:
        write_shards((A, B), directory)
        change(directory)
    everywhere(None)
    return lambda: sharded(directory)


def other_width(directory):
    np.savez(directory / "shard-0006.npz", A[6][:, :-1], B[6])


def other_dtype(directory):
    np.savez(directory / "shard-0006.npz", A[6].astype(np.float32), B[6])


def main():
    refused("step size", how=method(step_size=0.05 if RANK == 0 else 0.06))
    refused("steps", steps=30 if RANK == 0 else 31)
    refused("graph", network=RING if RANK == 0 else pg.Network.path(7))
    refused("loss", lambda: risk(h=pg.L1(0.1 + RANK)))
    refused("checkpoint", checkpoint=WHERE / f"run-{RANK}")
    module = sys.modules["proxgt.run"]
    module.__version__ = f"0.{RANK}"
    refused("version")
    module.__version__ = pg.__version__
    small = pg.EmpiricalRisk(bumpy_loss, (A[:2], B[:2]), x0=X1)
    refused("ranks", lambda: small, pg.Network.complete(2))
    refused("missing", shards("missing", lambda d: (d / "shard-0003.npz").unlink()))
    refused("extra", shards("extra", lambda d: np.savez(d / "shard-0007.npz", A[0], B[0])))
    refused("width", shards("width", other_width))
    refused("dtype", shards("dtype", other_dtype))
    refused("broken", shards("broken", lambda d: (d / "shard-0006.npz").write_bytes(b"no")))

    def fails_for_node_6(node):
        if node == 6:
            raise OSError("its disk is gone")
        return A[node], B[node]

    refused("callable", lambda: sharded(fails_for_node_6))


main()

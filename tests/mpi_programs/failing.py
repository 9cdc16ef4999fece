"""A rank that raises, is killed or crashes in the middle of a long run with checkpoints."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
from cases import RING, X1, A, B, method, risk
from common import everywhere, say

import proxgt as pg
from helpers import bumpy_loss
from proxgt.engines.halo import Halo
from proxgt.engines.messages import world
from proxgt.problems.shards import Shards

WHERE, HOW = Path(sys.argv[1]), sys.argv[2]
LONG = {"steps": 300, "record_every": 5, "seed": 2, "dtype": "float64"}


def after_step(step, act):
    """Call `act` in this process some time after the checkpoint of a step."""
    manifest = WHERE / "manifest.json"

    def watch():
        while not (manifest.exists() and f'"step": {step},' in manifest.read_text()):
            time.sleep(0.001)
        act()

    threading.Thread(target=watch, daemon=True).start()


def die():
    print(f"dies at {time.time()}", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV if HOW == "crashes" else signal.SIGKILL)


def raise_in_exchange():
    exchange = Halo._exchange
    calls = []

    def failing(self, b, now):
        calls.append(now)
        if len(calls) > 100:
            print(f"dies at {time.time()}", flush=True)
            raise RuntimeError("the cable is cut")
        exchange(self, b, now)

    Halo._exchange = failing


def dies_while_loading():
    def load(node):
        if node == 6:
            die()
        return A[node], B[node]

    return pg.EmpiricalRisk(bumpy_loss, Shards(load, 7), x0=X1, smoothness=5.0)


def stop_or_fail(snapshot):
    time.sleep(0.01)
    if HOW == "callback" and snapshot.row.step == 50:
        print(f"dies at {time.time()}", flush=True)
        raise OSError("the disk is full")


def main():
    rank = world().rank
    if HOW == "before" and rank == 1:
        print(f"dies at {time.time()}", flush=True)
        raise KeyError("no such thing")
    if HOW in ("killed", "crashes") and rank == 1:
        after_step(50, die)
    if HOW == "raises" and rank == 1:
        raise_in_exchange()
    run = {"engine": "mpi", "callbacks": [stop_or_fail], **LONG}
    problem = dies_while_loading() if HOW == "loading" else risk()
    result = pg.solve(problem, RING, method(), checkpoint=WHERE, resume=True, **run)
    whole = pg.solve(risk(), RING, method(), **run)
    columns = set(pg.History.columns) - {"seconds", "communication_seconds"}
    pairs = [(getattr(result, name), getattr(whole, name)) for name in ("x", "output")]
    pairs += [(result.history[column], whole.history[column]) for column in columns]
    say("resumed", exact=all(everywhere(all(np.array_equal(*pair) for pair in pairs))))


main()

"""What the programs that mpiexec starts share: lines that the tests read."""

from __future__ import annotations

import json

import numpy as np
from cases import *  # noqa: F403

import proxgt as pg
from proxgt.engines.messages import world


def say(case, **what):
    """One line from rank 0, as JSON."""
    if world().rank == 0:
        print(json.dumps({"case": case, **what}), flush=True)


def everywhere(value):
    """The values of all ranks."""
    return world().gathered(value, "test")


def differences(mine, theirs):
    """The largest differences of two results, relative where they are of histories."""
    out = {
        name: float(np.abs(np.asarray(getattr(mine, name)) - getattr(theirs, name)).max())
        for name in ("x", "mean", "solution", "output")
    }
    for column in set(pg.History.columns) - {"seconds", "communication_seconds"}:
        a, b = mine.history[column], theirs.history[column]
        out[column] = float(np.abs((a - b) / np.maximum(np.abs(b), 1e-3)).max())
    return out

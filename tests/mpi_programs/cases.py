"""Problems and methods that the programs and their tests share; nothing here needs MPI."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

import numpy as np

import proxgt as pg
from helpers import bumpy_loss, regression

NODES, M, P = 7, 8, 5
A, B = regression(NODES, M, P)
X1 = np.linspace(-1, 1, P)
RING = pg.Network.ring(NODES)
RUN = {"steps": 30, "record_every": 10, "seed": 2, "dtype": "float64"}


def risk(h=pg.L1(0.1), **options):
    return pg.EmpiricalRisk(bumpy_loss, (A, B), h, x0=X1, **({"smoothness": 5.0} | options))


def ragged():
    """Node i holds i + 2 samples, so that SAGA's tables differ in width between ranks."""
    shards = [(A[i, : i + 2], B[i, : i + 2]) for i in range(NODES)]
    return pg.EmpiricalRisk(bumpy_loss, shards, x0=X1, smoothness=5.0)


def method(**options):
    return pg.ProxGT_SR_E(**({"batch": 2, "period": 7, "step_size": 0.05} | options))


RESUMED = {"SARAH": method(), "SAGA": pg.ProxGT(pg.SAGA(2), 0.05)}

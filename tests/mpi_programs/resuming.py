"""Checkpoints: stopped and resumed by as many ranks or by others."""

import sys
from pathlib import Path

import numpy as np
from cases import RESUMED, RING, RUN, ragged
from common import differences, everywhere, say

import proxgt as pg

WHERE, WHAT = Path(sys.argv[1]), sys.argv[2]


def solve(how, **options):
    return pg.solve(ragged(), RING, how, engine="mpi", **(RUN | options))


def exact(one, other):
    return all(everywhere(bool(np.array_equal(one.x, other.x))))


def main():
    for name, how in RESUMED.items():
        directory = WHERE / name
        whole = solve(how)
        if WHAT == "write":
            stop = [lambda s: s.row.step == 10]
            part = solve(how, checkpoint=directory, callbacks=stop)
            assert (part.status, part.steps) == ("interrupted", 10)
            more = solve(how, checkpoint=WHERE / f"{name}-too", callbacks=stop)
            assert more.steps == 10
            again = solve(how, checkpoint=WHERE / f"{name}-too", resume=True)
            files = sorted(f.name for f in (WHERE / f"{name}-too").iterdir())
        else:
            again = solve(how, checkpoint=directory, resume=True)
            files = sorted(f.name for f in directory.iterdir())
        say(name, exact=exact(whole, again), files=files, **differences(whole, again))


main()

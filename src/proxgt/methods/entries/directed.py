"""Smooth methods for any strongly connected digraph."""

from __future__ import annotations

from proxgt.consensus import ColumnStochastic, RowStochastic
from proxgt.estimators import FullGradient, Minibatch
from proxgt.methods.directed import AB, SGP, Push_DIGing, Push_Pull, TwoMatrices
from proxgt.methods.entries.entry import SGD, TRACKED_FULL, Entry, Publication, a, b
from proxgt.methods.entries.tracking import DIGING

ENTRIES = (
    Entry(
        SGP,
        "smooth",
        Publication(
            "Assran, Loizou, Ballas, Rabbat",
            "Stochastic gradient push for distributed deep learning",
            "ICML",
            2019,
        ),
        "smooth",
        "population",
        "digraph",
        SGD,
        lambda: SGP(Minibatch(b), a, ColumnStochastic(2)),
    ),
    Entry(
        Push_DIGing,
        "smooth",
        DIGING,
        "smooth",
        "finite sum",
        "digraph",
        TRACKED_FULL,
        lambda: Push_DIGing(FullGradient(), a / 2, ColumnStochastic(2)),
    ),
    Entry(
        AB,
        "smooth",
        Publication(
            "Xin, Khan",
            "A linear algorithm for optimization over directed graphs with geometric convergence",
            "IEEE Control Systems Letters",
            2018,
        ),
        "smooth",
        "finite sum",
        "digraph",
        TRACKED_FULL,
        lambda: AB(FullGradient(), a / 2, TwoMatrices(RowStochastic(2), ColumnStochastic(2))),
    ),
    Entry(
        Push_Pull,
        "smooth",
        Publication(
            "Pu, Shi, Xu, Nedic",
            "Push-pull gradient methods for distributed optimization in networks",
            "IEEE Transactions on Automatic Control",
            2021,
        ),
        "smooth",
        "finite sum",
        "digraph",
        TRACKED_FULL,
        lambda: Push_Pull(
            FullGradient(), a / 2, TwoMatrices(RowStochastic(2), ColumnStochastic(2))
        ),
    ),
)

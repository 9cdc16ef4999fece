"""Every claim of the paper, measured: `proxgt reproduce CLAIM`.

CLAIMS["scaling"].run(QUICK)        a Finding: checks, verdict, table and figure

A claim is a module with TITLE and `run(effort) -> Finding`. What does not reproduce is reported
as it is.
"""

from __future__ import annotations

from types import ModuleType

from proxgt.reproduce import (
    communication,
    heterogeneity,
    scaling,
    smooth,
    speedup,
    topology,
    tracking,
)
from proxgt.reproduce.findings import Check, Finding, Interval
from proxgt.reproduce.report import Verdict, verdicts
from proxgt.reproduce.settings import FULL, QUICK, Effort

CLAIMS: dict[str, ModuleType] = {
    "tracking": tracking,
    "scaling": scaling,
    "speedup": speedup,
    "topology": topology,
    "communication": communication,
    "smooth": smooth,
    "heterogeneity": heterogeneity,
}

__all__ = [
    "CLAIMS",
    "FULL",
    "QUICK",
    "Check",
    "Effort",
    "Finding",
    "Interval",
    "Verdict",
    "verdicts",
]

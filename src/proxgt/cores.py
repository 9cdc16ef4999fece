"""The cores this process may use."""

import os


def usable_cores() -> frozenset[int]:
    """Their numbers: those it is bound to, or all; macOS tells only how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))

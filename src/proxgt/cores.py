"""The cores that this process may use."""

import os


def usable_cores() -> frozenset[int]:
    """Their numbers: those it is bound to, or all; macOS tells only how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def keep_to(cores: frozenset[int]) -> None:
    """Bind this thread, and those it starts from now on, to some cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)

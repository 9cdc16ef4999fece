"""The one table of methods: what each is, who published it, what it takes and what it costs.

A new method is a class in a file of its family, and one `Entry` in the file of that family here;
the contract tests, the tables of the documentation and `proxgt list methods` go by it.
"""

from proxgt.methods.entries import (
    centralized,
    composite,
    descent,
    directed,
    later,
    proxgt,
    tracking,
)
from proxgt.methods.entries.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    *proxgt.ENTRIES,
    *descent.ENTRIES,
    *tracking.ENTRIES,
    *directed.ENTRIES,
    *composite.ENTRIES,
    *later.ENTRIES,
    *centralized.ENTRIES,
)

__all__ = ["ENTRIES", "Entry"]

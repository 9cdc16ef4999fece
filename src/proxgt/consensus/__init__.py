"""What W^K of Algorithm 1 is replaced by."""

from proxgt.consensus.base import Consensus, Polynomial, run_recurrence
from proxgt.consensus.polynomials import Chebyshev, FastMix, Gossip, LazyGossip
from proxgt.consensus.stochastic import ColumnStochastic, RowStochastic

__all__ = [
    "Chebyshev",
    "ColumnStochastic",
    "Consensus",
    "FastMix",
    "Gossip",
    "LazyGossip",
    "Polynomial",
    "RowStochastic",
    "run_recurrence",
]

"""Psi = F + h as the user writes it: a loss, the data of every node, a regularizer.

base        what every risk offers, and its checks
empirical   eq. (3): nodes hold samples;  nodedata lays them out, shards reads them from disk
population  eq. (2): samples are made, or come from streams
oracles     a problem as compiled code sees it, row by row: what estimators and methods query
pooling     the same problem on one node;  smoothness estimates its L
"""

from proxgt.problems.base import Problem
from proxgt.problems.empirical import EmpiricalRisk
from proxgt.problems.population import PopulationRisk
from proxgt.problems.shards import Shards
from proxgt.problems.streams import Stream

__all__ = ["EmpiricalRisk", "PopulationRisk", "Problem", "Shards", "Stream"]

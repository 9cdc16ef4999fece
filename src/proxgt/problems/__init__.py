"""Psi = F + h as the user writes it: a loss, the data of every node, a regularizer."""

from proxgt.problems.base import Problem
from proxgt.problems.empirical import EmpiricalRisk
from proxgt.problems.population import PopulationRisk
from proxgt.problems.shards import Shards
from proxgt.problems.streams import Stream

__all__ = ["EmpiricalRisk", "PopulationRisk", "Problem", "Shards", "Stream"]

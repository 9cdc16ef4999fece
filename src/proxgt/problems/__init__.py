"""Psi = F + h as the user writes it: a loss, the data of every node, a regularizer."""

from proxgt.problems.base import Problem
from proxgt.problems.empirical import EmpiricalRisk
from proxgt.problems.population import PopulationRisk

__all__ = ["EmpiricalRisk", "PopulationRisk", "Problem"]

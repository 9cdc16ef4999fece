"""The theorems as a tool: constants, bounds, lemmas to check, and plans.

constants(problem, network)          L, nu, zeta, Delta, ..., each with its source
bound("SR-E", scales, ...)           eqs. (24), (30), (39) with their conditions
plan(problem, network, epsilon)      the cheapest method that is promised to reach epsilon
certificate(results, epsilon)        Definition 3 of the runs made, with numbers
lemmas                               Lemmas 1-8 as inequalities on recorded trajectories
"""

from proxgt.theory import lemmas
from proxgt.theory.bounds import Bound, Coefficients, Condition, Scales, Term, bound
from proxgt.theory.certificate import Certificate, certificate
from proxgt.theory.choices import Choice
from proxgt.theory.constants import Constant, Constants, constants
from proxgt.theory.instances import bound_of, step_size_for
from proxgt.theory.lemmas import Inequality
from proxgt.theory.pilot import Pilot
from proxgt.theory.plans import Plan, plan
from proxgt.theory.trajectories import Trajectory, record_trajectory

__all__ = [
    "Bound",
    "Certificate",
    "Choice",
    "Coefficients",
    "Condition",
    "Constant",
    "Constants",
    "Inequality",
    "Pilot",
    "Plan",
    "Scales",
    "Term",
    "Trajectory",
    "bound",
    "bound_of",
    "certificate",
    "constants",
    "lemmas",
    "plan",
    "record_trajectory",
    "step_size_for",
]

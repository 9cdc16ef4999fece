"""How v_t is made, line 2 of Algorithm 1."""

from proxgt.estimators.base import Estimate, Estimator, Size, Usage, need_exact
from proxgt.estimators.memory import SAGA, SVRG
from proxgt.estimators.sampled import SARAH, STORM, FullGradient, Minibatch, SARAHDraw

__all__ = [
    "SAGA",
    "SARAH",
    "STORM",
    "SVRG",
    "Estimate",
    "Estimator",
    "FullGradient",
    "Minibatch",
    "SARAHDraw",
    "Size",
    "Usage",
    "need_exact",
]

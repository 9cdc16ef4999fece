"""Methods side by side under one budget, and their step sizes found under the same one."""

from proxgt.comparison.compare import compare
from proxgt.comparison.comparison import Comparison
from proxgt.comparison.tuning import tune

__all__ = ["Comparison", "compare", "tune"]

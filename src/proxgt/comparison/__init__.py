"""Methods side by side under one budget, and step sizes searched for under the same one.

contest     a method under a budget: the steps it may make, its runs
compare     all methods through a contest
tuning      step sizes of one method through a contest
comparison  what came of it: tables, curves and figures; averages has the means
"""

from proxgt.comparison.compare import compare
from proxgt.comparison.comparison import Comparison
from proxgt.comparison.tuning import tune

__all__ = ["Comparison", "compare", "tune"]

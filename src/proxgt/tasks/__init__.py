"""Ready-made problems: each carries a start x0 and, where one exists, a proven smoothness L."""

from proxgt.tasks.linear import (
    NonNegativeBall,
    least_squares,
    logistic,
    nonnegative_pca,
    robust_regression,
)
from proxgt.tasks.losses import (
    FactorizationLoss,
    LogisticLoss,
    MLPLoss,
    PCALoss,
    QuadraticLoss,
    SquaredLoss,
    TukeyLoss,
    WelschLoss,
)
from proxgt.tasks.models import matrix_factorization, mlp_classifier
from proxgt.tasks.registry import TASKS, build, from_dataset, options_of
from proxgt.tasks.synthetic import gaussian_least_squares, noisy_quadratic

__all__ = [
    "TASKS",
    "FactorizationLoss",
    "LogisticLoss",
    "MLPLoss",
    "NonNegativeBall",
    "PCALoss",
    "QuadraticLoss",
    "SquaredLoss",
    "TukeyLoss",
    "WelschLoss",
    "build",
    "from_dataset",
    "gaussian_least_squares",
    "least_squares",
    "logistic",
    "matrix_factorization",
    "mlp_classifier",
    "noisy_quadratic",
    "nonnegative_pca",
    "options_of",
    "robust_regression",
]

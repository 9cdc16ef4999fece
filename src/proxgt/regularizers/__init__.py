"""Regularizers: the convex, possibly non-smooth h of Psi = F + h, as value and prox.

base              Regularizer, and as_regularizer for a user's own object
penalties         norms, their squares, norms of groups
balls             balls of norms, the simplex
sets              the orthant, boxes, halfspaces, affine sets
nuclear           low-rank matrices
total_variation   piecewise constant signals
blocks            a regularizer for each part of a params pytree
"""

from proxgt.regularizers.balls import L1Ball, L2Ball, LinfBall, Simplex
from proxgt.regularizers.base import Custom, Regularizer, as_regularizer
from proxgt.regularizers.blocks import Blocks
from proxgt.regularizers.nuclear import NuclearBall, NuclearNorm
from proxgt.regularizers.penalties import L1, L2, ElasticNet, GroupL1, Zero
from proxgt.regularizers.sets import AffineSet, Box, Halfspace, NonNegative
from proxgt.regularizers.total_variation import TotalVariation

__all__ = [
    "L1",
    "L2",
    "AffineSet",
    "Blocks",
    "Box",
    "Custom",
    "ElasticNet",
    "GroupL1",
    "Halfspace",
    "L1Ball",
    "L2Ball",
    "LinfBall",
    "NonNegative",
    "NuclearBall",
    "NuclearNorm",
    "Regularizer",
    "Simplex",
    "TotalVariation",
    "Zero",
    "as_regularizer",
]

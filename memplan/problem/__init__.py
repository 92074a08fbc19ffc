"""Problems: buffers, their lifetimes and sizes, and the constraints on their offsets."""

from memplan.problem.again import (
    Choice,
    GivenOrderBound,
    GivenOrderLeaf,
    RecomputeBound,
    RecomputeFloor,
    RecomputeLeaf,
    RecomputeProblem,
)
from memplan.problem.asked import Asked, HasProblem, problem_of
from memplan.problem.buffer import Buffer, Gap, Reserved
from memplan.problem.ordering import OrderBound, OrderProblem
from memplan.problem.problem import Problem

__all__ = [
    "Asked",
    "Buffer",
    "Choice",
    "Gap",
    "GivenOrderBound",
    "GivenOrderLeaf",
    "HasProblem",
    "OrderBound",
    "OrderProblem",
    "Problem",
    "RecomputeBound",
    "RecomputeFloor",
    "RecomputeLeaf",
    "RecomputeProblem",
    "Reserved",
    "problem_of",
]

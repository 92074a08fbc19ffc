"""What the types of operators mean in the format that a graph comes from.

A graph names its format (`Graph.source`). What operators of that format do beside making their
results is in the folder of its runtime or extension; a graph that a user wrote says all that there
is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module

from memplan.programs.graph import Graph, Kind, Operator
from memplan.programs.graph.updates import updates
from memplan.programs.sources.registry import list_sources

__all__ = ["Dialect", "Shared", "find_dialect", "find_state", "is_view"]


class Shared(StrEnum):
    """What operators share, other than tensors; those that share it run in the given order."""

    GENERATOR = "generator"  # each random number depends on how many were drawn before
    WORLD = "world"  # prints, assertions, collectives, resources that have a handle


@dataclass(frozen=True, slots=True)
class Dialect:
    """What operators of a format do, by their types.

    Attributes
    ----------
    shared_by
        What an operator of a type shares with others.
    is_known
        Whether an operator of a type does nothing that memplan does not know.
    random_in_training
        Types that draw random numbers only in training.
    replaces_state
        Whether kernels write the variables that they read.
    copies_blocks
        Whether all that a sub-graph takes and returns is copied at one time.
    declares_views
        Whether the reader makes a view of each result that is a part of an input, unchanged.
    """

    shared_by: Callable[[str], Shared | None] = lambda type_: None
    is_known: Callable[[str], bool] = lambda type_: True
    random_in_training: frozenset[str] = frozenset()
    replaces_state: bool = False
    copies_blocks: bool = False
    declares_views: bool = False


_OF_USERS = Dialect()


@cache
def find_dialect(source: str) -> Dialect:
    """Return what is known of the operators of a format, by `Graph.source`."""
    known = list_sources().get(source)
    if known is None or not known.dialect:
        return _OF_USERS
    found: Dialect = import_module(known.dialect).DIALECT
    return found


# Their results are parts of an input: they write nothing.
_VIEWS = frozenset(
    {
        *("bitcast", "expand", "expand_dims", "flatten", "identity", "permute", "reshape"),
        *("select", "slice", "split", "squeeze", "transpose", "unsqueeze", "view"),
    }
)


def is_view(graph: Graph, operator: Operator, is_declared: bool) -> bool:
    """Return whether a result, if it is in the memory of an input, is a part of it, unchanged.

    `is_declared` says whether the result is one of `graph.views`.
    """
    if find_dialect(graph.source).declares_views:
        return is_declared and not updates(operator)
    return operator.type.lower() in _VIEWS


def find_state(graph: Graph, operator: Operator) -> set[int]:
    """Return the inputs that an operator replaces where kernels read their state and write it.

    In other formats an operator that writes says so, by its results.
    """
    if not find_dialect(graph.source).replaces_state:
        return set()
    return {each for each in operator.inputs if graph.tensors[each].kind is Kind.VARIABLE}

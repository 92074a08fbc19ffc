"""What an operator does beyond its results, and so which operators keep their order.

Operators that wait for one another's results keep their order anyway. Here are those that share
something else: a generator of random numbers, or the world outside of the program. Two of them run
in the given order. What writes to memory that others use is found by `hazards`.
"""

from __future__ import annotations

from collections.abc import Iterable

from memplan.base.errors import GraphError, quoted
from memplan.programs.graph import Graph, Operator
from memplan.programs.sources.dialects import Shared, find_dialect

__all__ = ["MOVE_BACK", "MOVE_OUT", "require_known", "shared_by"]

# Types of operators that move a tensor out of the memory and back, whatever the format.
MOVE_OUT, MOVE_BACK = "move out", "move back"


def shared_by(graph: Graph, operator: Operator) -> set[Shared]:
    """Return what an operator shares with others, itself or inside its blocks."""
    shared = find_dialect(graph.source).shared_by
    return {found for inner in operator.walk() if (found := shared(inner.type))}


def require_known(graph: Graph, pure: Iterable[str]) -> None:
    """Raise `GraphError` for an operator that may do something that memplan does not know.

    The user knows that operators of the pure types compute their results, and do nothing else.
    """
    known, is_known = {*pure, MOVE_OUT, MOVE_BACK}, find_dialect(graph.source).is_known
    for operator in graph.walk():
        if operator.type not in known and not is_known(operator.type):
            label = operator.type if operator.type.isprintable() else quoted(operator.type)
            raise GraphError(
                f"operator {quoted(operator.name or operator.type)} of type "
                f"{quoted(operator.type)} may do more than compute its results; name the type as "
                f"pure (--pure {label}) if it does not"
            )

"""What running an operator again costs, in picoseconds: by a roofline, or as it was measured."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from memplan.base.errors import FormatError, GraphError, quoted
from memplan.base.files import read_text
from memplan.problem.again import MAX_COST
from memplan.programs.graph import Graph, Operator

__all__ = ["Costs", "estimate_cost", "find_costs", "time_of_move"]

Costs = str | os.PathLike[str] | Mapping[str, float]
"""A file in CSV with the columns `operator,seconds`, or the same as a mapping."""

_PICOSECONDS: Final = 10**12
_MOST: Final = f"{MAX_COST / _PICOSECONDS:,.0f}"  # seconds
# An accelerator with 19.5 * 10^12 operations and 1.56 * 10^12 bytes in a second: a multiplication
# with addition takes 4 / 39 ps, and a byte 25 / 39 ps.
_OF_A_MAC, _OF_A_BYTE, _DIVISOR = 4, 25, 39


def find_costs(
    graph: Graph, views: Iterable[int], costs: Costs | None, moves: Sequence[int] = ()
) -> list[int]:
    """Return the cost of each outermost operator, and then of each move, in picoseconds.

    `views` are the operators that only make views, which cost nothing. Without measured times, an
    operator takes as long as its multiplications, or as reading its inputs and writing its results
    once, weights included, whichever is longer. The multiplications are those that the reader of
    the file counted: of convolutions and products of matrices. The two speeds are those of one
    accelerator; only their ratio, of 12.5 operations to a byte, has an influence on which operators
    run again.
    """
    free = frozenset(views)
    if costs is None:
        found = [
            0 if at in free else estimate_cost(graph, operator)
            for at, operator in enumerate(graph.operators)
        ]
        found += moves
        over = (sum(found) // MAX_COST).bit_length()
        return [each >> over for each in found]  # only a program of hours needs coarser units
    if isinstance(costs, Mapping):
        where, times = "costs", {name: str(seconds) for name, seconds in costs.items()}
    else:
        where, times = os.fspath(costs), _read_table(costs)
    found = [*_take(where, times, graph.operators), *moves]
    if sum(found) > MAX_COST:
        raise GraphError(f"{where}: operators and moves take more than {_MOST} s")
    return found


def time_of_move(size: int, *rates: int) -> int:
    """Return how long it takes to move some bytes, once at each of these rates."""
    return sum(-(-size * _PICOSECONDS // rate) for rate in rates)


def estimate_cost(graph: Graph, operator: Operator) -> int:
    """Return the roofline of an operator in picoseconds, rounded up."""
    inside = list(operator.walk())
    moved = sum(
        graph.tensors[tensor].bytes for each in inside for tensor in {*each.inputs, *each.outputs}
    )
    macs = sum(each.macs for each in inside)
    return -(-max(_OF_A_MAC * macs, _OF_A_BYTE * moved) // _DIVISOR)


def _read_table(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the times of a file by the name of the operator, as text."""
    name = os.fspath(path)
    rows = csv.reader(read_text(path).splitlines())
    if [each.strip() for each in next(rows, [])] != ["operator", "seconds"]:
        raise FormatError(name, "the first line must be: operator,seconds", line=1)
    times: dict[str, str] = {}
    for row in rows:
        if not row:
            continue
        if len(row) != 2:
            raise FormatError(
                name, "a line must have an operator and its seconds", line=rows.line_num
            )
        if row[0] in times:
            raise FormatError(name, f"operator {quoted(row[0])} has two times", line=rows.line_num)
        times[row[0]] = row[1]
    return times


def _take(where: str, times: Mapping[str, str], operators: Sequence[Operator]) -> list[int]:
    """Return the cost of each operator by its name, or of one without a name by its type."""
    names = [operator.name or operator.type for operator in operators]
    known = set(names)
    found: dict[str, int] = {}
    for name, text in times.items():
        if name not in known:
            raise GraphError(f"{where}: the program has no operator {quoted(name)}")
        try:
            seconds = Decimal(text.strip())
        except InvalidOperation:
            seconds = Decimal("nan")
        if not (seconds.is_finite() and seconds >= 0):
            raise GraphError(
                f"{where}: operator {quoted(name)} takes {quoted(text)} seconds; it must be a "
                "number of at least 0"
            )
        found[name] = round(min(seconds * _PICOSECONDS, Decimal(MAX_COST + 1)))
    for name in names:
        if name not in found:
            raise GraphError(f"{where}: there is no time for operator {quoted(name)}")
    costs = [found[name] for name in names]
    if sum(costs) > MAX_COST:
        raise GraphError(f"{where}: the operators take more than {_MOST} s")
    return costs

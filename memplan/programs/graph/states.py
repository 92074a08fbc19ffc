"""Variables of a program: state that outlives its runs, and when a run does not need it.

A run reads the old value of a variable, and later assigns the new one:

    the old value  =====|                   until the last operator that reads it ends
    the new value               |========   from when the first operator that assigns it begins

In between, the variable holds nothing that is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from memplan.problem import Problem
from memplan.problem.columns import NONE, Column
from memplan.problem.intake import GAP_COLUMNS
from memplan.programs.graph.layout import Layout
from memplan.programs.graph.model import Graph, Kind, Operator

__all__ = ["State", "add_states", "find_states"]

_READ: Final = "READ_VARIABLE"
_ASSIGN: Final = "ASSIGN_VARIABLE"
_ONCE: Final = "CALL_ONCE"  # gives variables their first values, before the first run


@dataclass(frozen=True, slots=True)
class State:
    """A variable of a program."""

    name: str  # that of its tensor, or of its handle
    bytes: int  # the size of its value
    # `(start, end)` in the steps of `Lives`: a run needs neither the old nor the new value. `None`
    # if there is no such time, or none is known.
    gap: tuple[int, int] | None = None


def find_states(layout: Layout) -> tuple[State, ...]:
    """Return the variables of a program that are not among the planned storages.

    The values of variables behind handles are as large as what is read from them or assigned to
    them. A gap is known only if no branch or loop touches the variable, and the run reads it first.
    """
    graph = layout.graph
    planned = {tensor for row in layout.rows for tensor in layout.storages[row].tensors}
    top = {id(operator) for operator in graph.operators}
    first_values = {
        id(inner)
        for operator in graph.operators
        if operator.type == _ONCE
        for inner in operator.walk()
    }
    uses_of: dict[int, list[_Use]] = {}
    for operator, span in zip(graph.walk(), layout.lives.spans, strict=True):
        if id(operator) in first_values:
            continue
        for tensor in {*operator.inputs, *operator.outputs}:
            if tensor >= 0 and graph.tensors[tensor].kind is Kind.VARIABLE:
                use = _Use(operator, span, id(operator) in top)
                uses_of.setdefault(tensor, []).append(use)
    found = []
    for tensor, uses in uses_of.items():
        if tensor not in planned:
            size = max(_value_bytes(graph, tensor, use.operator) for use in uses)
            if size:
                found.append(State(graph.tensors[tensor].name, size, _find_gap(tensor, uses)))
    return tuple(found)


def add_states(problem: Problem, layout: Layout, states: Sequence[State]) -> Problem:
    """Return the problem of a program in which its states are placed behind its buffers.

    They live through the whole run, but for their gaps. A state with the name of a buffer is called
    "NAME (state)".
    """
    begin, end = int(problem.start.min(initial=0)), layout.lives.steps
    known = set(problem.ids)
    names = [f"{each.name} (state)" if each.name in known else each.name for each in states]
    gaps = [
        (len(problem) + at, *each.gap, NONE, NONE)
        for at, each in enumerate(states)
        if each.gap is not None
    ]

    def longer(column: Column, *values: int) -> Column:
        joined: Column = np.concatenate([column, np.array(values, np.int64)])
        return joined

    count = len(states)
    return Problem.from_arrays(
        longer(problem.start, *[begin] * count),
        longer(problem.end, *[end] * count),
        longer(problem.size, *(each.bytes for each in states)),
        ids=[*problem.ids, *names],
        alignment=longer(problem.alignment, *[layout.graph.alignment] * count),
        pin=longer(problem.pin, *[NONE] * count),
        hint=longer(problem.hint, *[NONE] * count),
        gaps=[
            longer(getattr(problem, name), *(gap[at] for gap in gaps))
            for at, name in enumerate(GAP_COLUMNS)
        ],
        reserved=problem.reserved,
        conflicts=problem.conflicts.pairs(),
        groups=problem.groups,
    )


class _Use(NamedTuple):
    operator: Operator
    span: tuple[int, int]
    is_outside: bool  # of all blocks


def _value_bytes(graph: Graph, tensor: int, operator: Operator) -> int:
    """Return the bytes of a variable's value, as far as one operator shows them."""
    if operator.type == _READ:
        return max((graph.tensors[each].bytes for each in operator.outputs), default=0)
    if operator.type == _ASSIGN:
        values = [each for each in operator.inputs if each >= 0 and each != tensor]
        return max((graph.tensors[each].bytes for each in values), default=0)
    return 0 if tensor in operator.outputs else graph.tensors[tensor].bytes


def _find_gap(tensor: int, uses: list[_Use]) -> tuple[int, int] | None:
    reads = [use.span for use in uses if use.operator.type == _READ]
    assigns = [use.span for use in uses if use.operator.type == _ASSIGN]
    others = [use for use in uses if tensor in use.operator.inputs]
    if not reads or not assigns or len(others) > len(reads) + len(assigns):
        return None
    if not all(use.is_outside for use in others):
        return None
    last, first = max(end for _, end in reads), min(start for start, _ in assigns)
    return (last, first) if last < first else None

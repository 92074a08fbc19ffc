"""What a source makes of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from memplan.errors import MemplanError
from memplan.graph import Graph, Kind, Layout, Operator, lay_out
from memplan.notes import Note
from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

__all__ = ["Figure", "Label", "Loaded", "laid_out", "of_graph", "of_problem"]


@dataclass(frozen=True, slots=True)
class Figure:
    """What another planner needs for the same program.

    Attributes
    ----------
    runtime
        Whose: "onnxruntime 1.31", "XLA".
    bytes
        Its peak.
    how
        "measured" by running it, "re-implemented" from its documented policy, or "recorded" in
        the file.
    what
        What is counted, if that is not the same as in our peak: "with kernel scratch".
    """

    runtime: str
    bytes: int
    how: Literal["measured", "re-implemented", "recorded"]
    what: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """What a buffer is in the program, in the names that the user wrote.

    Attributes
    ----------
    tensors
        That share it.
    kind
        See `memplan.graph.Kind`.
    made_by, used_by
        Operators as "name (type)"; empty where there is none, as for an input.
    operator
        The type alone of the operator that makes it, or that a workspace is for.
    module
        The module of the user's that this operator is in ("layer1.0.conv1"), where the file says.
    line
        The line of the user's source that it comes from ("model.py:41"), where the file says.
    """

    tensors: tuple[str, ...]
    kind: str
    made_by: str = ""
    used_by: tuple[str, ...] = ()
    operator: str = ""
    module: str = ""
    line: str = ""


@dataclass(frozen=True, repr=False)
class Loaded:
    """A problem, and where it comes from; what takes a problem takes this as well.

    Attributes
    ----------
    problem
        What is to be placed.
    source
        The format: "onnx", "tflite", "torch", "xla", "cuda-snapshot", "trace", "graph", or "csv"
        and "json" for files that are problems already, "memory" for one that is in no file.
    tensors
        How many the program has; more than buffers where some share memory.
    labels
        By row of the problem; empty for files that are problems already.
    graph, layout
        Where the source is a graph.
    trace
        Where the source is a recorded run; the problem has a buffer for each of its `planned`.
    figures
        What the file itself says of other planners; `memplan.yardsticks` measures what can be.
    notes
        What was left out or assumed, that a user can do something about.
    in_place
        Whether every in-place choice is taken in this layout.
    """

    problem: Problem
    source: str
    tensors: int
    labels: tuple[Label, ...] = ()
    graph: Graph | None = None
    layout: Layout | None = None
    trace: Trace | None = None
    figures: tuple[Figure, ...] = ()
    notes: tuple[Note, ...] = ()
    in_place: bool = False

    def __repr__(self) -> str:
        count = f"{self.tensors} tensors, {len(self.problem)} buffers"
        return f"<Loaded: {self.source}, {count}, {len(self.notes)} notes>"

    # In a notebook; what draws is imported when it is asked for

    def plot(self, *, width: float | None = None) -> Drawing:
        """Draw the load over time; extra `plot`. See `memplan.Problem.plot`."""
        return self.problem.plot(width=width)

    def _repr_html_(self) -> str:
        from memplan.view import notebook

        return notebook.of_loaded(self)


def of_problem(problem: Problem, source: str = "memory") -> Loaded:
    """Return a problem as what is read from a file that says nothing more."""
    return Loaded(problem, source, len(problem))


def laid_out(loaded: Loaded, *, in_place: bool) -> Loaded:
    """Return the same program with all in-place choices taken, or with none.

    Capacity, reserved ranges and pins are kept: a pinned buffer is where it was, also where it
    shares its memory with others in the new layout.

    Raises
    ------
    GraphError
        As `memplan.graph.lay_out`.
    MemplanError
        If there is no graph, or the problem is not that of the graph any more.
    """
    layout, asked = loaded.layout, loaded.problem
    if layout is None:
        raise MemplanError(f"a {loaded.source} file does not tell operators: it has one layout")
    old = layout.problem
    same = len(asked) == len(old)
    moved: list[int] = np.flatnonzero(asked.pin != old.pin).tolist() if same else []
    pins = {old.ids[row]: _pin(asked, row) for row in moved}
    if not old.with_pins(pins).with_reserved(asked.reserved).same_rows(asked):
        raise MemplanError("the problem was changed, and is not that of its graph any more")
    made = of_graph(_pinned(layout, pins), in_place=in_place)
    problem = made.problem.with_reserved(asked.reserved).with_capacity(asked.capacity)
    for row in moved:  # what no tensor is in, such as a workspace
        if not layout.storages[layout.rows[row]].tensors:
            problem = problem.with_pins({old.ids[row]: pins[old.ids[row]]})
    return replace(
        loaded, problem=problem, labels=made.labels, layout=made.layout, in_place=in_place
    )


def _pin(problem: Problem, row: int) -> int | None:
    return None if problem.pin[row] == NONE else int(problem.pin[row])


def _pinned(layout: Layout, pins: Mapping[str, int | None]) -> Graph:
    """Return a graph with other pins for some of the buffers that it was laid out as."""
    tensors = list(layout.graph.tensors)
    for row in layout.rows:
        storage = layout.storages[row]
        if storage.name in pins:
            at = pins[storage.name]
            for tensor, within in zip(storage.tensors, storage.offsets, strict=True):
                pin = None if at is None else at + within
                tensors[tensor] = replace(tensors[tensor], pin=pin)
    return replace(layout.graph, tensors=tuple(tensors))


def of_graph(
    graph: Graph,
    *,
    include: Iterable[Kind | str] | None = None,
    in_place: bool = False,
    pins: bool = True,
    figures: tuple[Figure, ...] = (),
    notes: tuple[Note, ...] = (),
) -> Loaded:
    """Lay a graph out, and say for every buffer which operators make and use it.

    Parameters
    ----------
    graph
        The program.
    include, in_place, pins
        As `memplan.graph.lay_out` takes them; they are kept in the graph of the result.
    figures, notes
        See `Loaded`.

    Raises
    ------
    GraphError
        As `memplan.graph.lay_out`.
    """
    if include is not None:
        graph = replace(graph, planned=frozenset(map(Kind, include)))
    if not pins:
        graph = replace(graph, tensors=tuple(replace(each, pin=None) for each in graph.tensors))
    layout = lay_out(graph, in_place=in_place)
    made: dict[int, Operator] = {}
    used: dict[int, list[str]] = {}
    for operator in graph.walk():
        for index in operator.outputs:
            made.setdefault(index, operator)
        for index in operator.inputs:
            used.setdefault(index, []).append(_said(operator))
    labels = []
    for row in layout.rows:
        storage = layout.storages[row]
        makers = [made[index] for index in storage.tensors if index in made]
        source = storage.workspace_of or (makers[0] if makers else None)
        users = [who for index in storage.tensors for who in used.get(index, ())]
        names = tuple(graph.tensors[index].name for index in storage.tensors)
        labels.append(
            Label(
                names or (storage.name,),
                storage.kind,
                _said(makers[0]) if makers else "",
                tuple(dict.fromkeys(users)),
                "" if source is None else source.type,
                "" if source is None else source.module,
                "" if source is None else source.line,
            )
        )
    return Loaded(
        layout.problem,
        graph.source,
        len(graph.tensors),
        tuple(labels),
        graph,
        layout,
        figures=figures,
        notes=notes,
        in_place=in_place,
    )


def _said(operator: Operator) -> str:
    return f"{operator.name} ({operator.type})" if operator.name else operator.type

"""The result of reading a file: a problem, with what else the file contains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from memplan.base.drawing import find_artist
from memplan.base.errors import MemplanError
from memplan.base.notes import Code, Note
from memplan.problem import Problem
from memplan.problem.columns import NONE
from memplan.problem.trace import Trace
from memplan.programs.graph import Graph, Kind, Layout, Operator, lay_out
from memplan.programs.sources.registry import find_format

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

__all__ = [
    "Failure",
    "Figure",
    "Label",
    "Loaded",
    "explain_bare",
    "lay_out_again",
    "make_labels",
    "note_limit",
    "of_graph",
    "of_problem",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """How much memory another planner needs for the same program.

    Attributes
    ----------
    runtime
        The other planner: "onnxruntime 1.31", "XLA".
    bytes
        Its peak.
    how
        "measured" by running it, "re-implemented" from its documented policy, or "recorded" in
        the file.
    what
        What is counted, if it differs from a plan's peak: "with kernel scratch".
    beyond
        What was measured beyond the sizes that are planned, in words: the plan is of another
        program than the one that ran. Empty where the runtime only places worse.
    notes
        What the other planner says of the program, if it was asked: why it refuses it.
    live, load
        The most bytes that were live at one time in the run, and those of the planned sizes; 0 if
        that was not measured.
    """

    runtime: str
    bytes: int
    how: Literal["measured", "re-implemented", "recorded"]
    what: str = ""
    beyond: str = ""
    notes: tuple[Note, ...] = ()
    live: int = 0
    load: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A request for memory in a recorded run that was refused: the run was out of memory."""

    time: int  # when it was asked for
    asked: int  # the bytes asked for
    free: int  # the bytes of the device that no program held then
    reserved: int  # the bytes that the allocator of the run held then, used or not
    place: str = ""  # the line of the user's code that asked, as far as known
    alignment: int = 1  # of every block of the allocator that refused it

    @property
    def room(self) -> int:
        """The bytes that the run could have had."""
        return self.free + self.reserved


@dataclass(frozen=True, slots=True)
class Beside:
    """What a runtime keeps in an arena beside the plan.

    Attributes
    ----------
    bytes
        `None` if it is not known.
    how
        How it is known, or why it is not.
    least
        What the arena must have to prepare the model, whatever the plan; 0 if that is not known.
    unknown
        The types of operators for which nothing is counted, as it is not known.
    """

    bytes: int | None
    how: str
    least: int = 0
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arena:
    """A block of memory in which a runtime needs more than the plan.

    Attributes
    ----------
    capacity
        The limit on the whole block in bytes; what is left for the plan is the problem's capacity.
    beside
        What the runtime keeps beside the plan, in bytes; `None` if it is not known.
    least
        What the whole block needs to prepare the model, whatever the plan; 0 if the plan counts.
    how
        How that is known, or why it is not.
    on_board
        Whether it is the arena of a board, and not of this machine.
    unknown
        The types of operators for which nothing is counted in `beside`, as it is not known.
    """

    capacity: int
    beside: int | None
    least: int
    how: str
    on_board: bool = False
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Label:
    """The role of a buffer in the program, in the user's own names.

    Attributes
    ----------
    tensors
        The names of the tensors that share it.
    kind
        See `memplan.programs.graph.Kind`.
    made_by, used_by
        Operators as "name (type)"; empty if there is none, as for an input.
    operator
        Only the type of the operator that makes it, or whose workspace it is.
    module
        The user's module that this operator is in ("layer1.0.conv1"), if the file has it.
    line
        The line of the user's source that it comes from ("model.py:41"), if the file has it.
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
    """A problem, and the file that it comes from. It can be used where a problem can.

    Attributes
    ----------
    problem
        The buffers to place.
    source
        The format: "onnx", "tflite", "torch", "xla", "cuda-snapshot", "trace", "graph"; "csv" or
        "json" for a file that is a problem already; "memory" for a problem from no file.
    tensors
        The number of tensors of the program; more than buffers if some share memory.
    labels
        By row of the problem; empty for files that are problems already.
    graph, layout
        The program and its layout; `None` if the source has no graph.
    trace
        The recorded run, if the source is one; the problem has a buffer for each of its `planned`.
    figures
        The needs of other planners that are in the file; `sources.measuring` measures others.
    notes
        What was left out or assumed, and a user can change.
    in_place
        Whether operators that may do so write over inputs in this layout.
    failures
        The requests for memory that the recorded run did not get; no buffer stands for them.
    arena
        The limit on the arena of a TFLite model, if one was asked about.
    block_limit
        The most bytes that the host gives in one block, if the file says it.
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
    failures: tuple[Failure, ...] = ()
    arena: Arena | None = None
    block_limit: int | None = None

    def __repr__(self) -> str:
        count = f"{self.tensors} tensors, {len(self.problem)} buffers"
        return f"<Loaded: {self.source}, {count}, {len(self.notes)} notes>"

    # Drawings

    def plot(self, *, width: float | None = None) -> Drawing:
        """Draw the load over time; extra `plot`. See `memplan.Problem.plot`."""
        return self.problem.plot(width=width)

    def _repr_html_(self) -> str:
        return find_artist().write_html("loaded", self)


def note_limit(limit: int) -> Note:
    """Return what is said of one arena above the host's limit on blocks, in bytes."""
    return Note(
        Code.BLOCK_LIMIT,
        f"the host gives no block above {limit:,} bytes, and one arena is larger; "
        f"--block-limit {limit} (plan_blocks) plans several blocks",
    )


def explain_bare(source: str, what: str = "") -> str:
    """Return that a file has no operators, and what to give in place of it, as a sentence.

    The source is that of a `Loaded` without a graph, and `what` follows from it: "so nothing can
    wait".
    """
    thing = find_format(source).bare or f"a {source} file"
    other = "the model that it comes from (.onnx, .tflite, .pt2, or a graph in JSON)"
    if thing == "a recorded run":
        other = (
            "the program that ran: .pt2 of torch.export, or for a training step what "
            "training_program traces (docs/tutorials/half-the-memory.md)"
        )
    return f"{thing} has no operators{', ' if what else ''}{what}; give {other}"


def of_problem(problem: Problem, source: str = "memory") -> Loaded:
    """Wrap a problem that has no labels, graph or trace."""
    return Loaded(problem, source, len(problem))


def lay_out_again(loaded: Loaded, *, in_place: bool) -> Loaded:
    """Return the layout of the same program with all in-place writes, or with none.

    Capacity, reserved ranges and pins are kept. A pinned buffer keeps its offset even if it shares
    its memory with others in the new layout.

    Raises
    ------
    GraphError
        As `memplan.programs.graph.lay_out`.
    MemplanError
        If there is no graph, or the problem is not that of the graph any more.
    """
    layout, asked = loaded.layout, loaded.problem
    if layout is None:
        raise MemplanError(explain_bare(loaded.source, "so that it has only one layout"))
    old = layout.problem
    same = len(asked) == len(old)
    moved: list[int] = np.flatnonzero(asked.pin != old.pin).tolist() if same else []
    pins = {old.ids[row]: _get_pin(asked, row) for row in moved}
    if not old.with_pins(pins).with_reserved(asked.reserved).same_rows(asked):
        raise MemplanError("the problem was changed and does not match its graph any more")
    if not moved and in_place == loaded.in_place:
        return loaded
    made = of_graph(_with_pins(layout, pins), in_place=in_place)
    problem = made.problem.with_reserved(asked.reserved).with_capacity(asked.capacity)
    for row in moved:  # rows without a tensor, such as a workspace
        if not layout.storages[layout.rows[row]].tensors:
            problem = problem.with_pins({old.ids[row]: pins[old.ids[row]]})
    return replace(
        loaded, problem=problem, labels=made.labels, layout=made.layout, in_place=in_place
    )


def _get_pin(problem: Problem, row: int) -> int | None:
    return None if problem.pin[row] == NONE else int(problem.pin[row])


def _with_pins(layout: Layout, pins: Mapping[str, int | None]) -> Graph:
    """Return the graph of a layout with other pins for some of its buffers."""
    tensors = list(layout.graph.tensors)
    for row in layout.rows:
        storage = layout.storages[row]
        if storage.name in pins:
            at = pins[storage.name]
            for tensor, within in zip(storage.tensors, storage.offsets, strict=True):
                pin = None if at is None else at + within
                tensors[tensor] = replace(tensors[tensor], pin=pin)
    return layout.graph.changed(tensors=tuple(tensors))


def of_graph(
    graph: Graph,
    *,
    include: Iterable[Kind | str] | None = None,
    in_place: bool = False,
    pins: bool = True,
    figures: tuple[Figure, ...] = (),
    notes: tuple[Note, ...] = (),
) -> Loaded:
    """Lay a graph out, and label every buffer with the operators that make and use it.

    Parameters
    ----------
    graph
        The program.
    include, in_place, pins
        See `memplan.programs.graph.lay_out`; they are kept in the graph of the result.
    figures, notes
        See `Loaded`.

    Raises
    ------
    GraphError
        As `memplan.programs.graph.lay_out`.
    """
    if include is not None:
        graph = graph.changed(planned=frozenset(map(Kind, include)))
    if not pins:
        tensors = tuple(replace(each, pin=None) for each in graph.tensors)
        graph = graph.changed(tensors=tensors)
    layout = lay_out(graph, in_place=in_place)
    return Loaded(
        layout.problem,
        graph.source,
        len(graph.tensors),
        make_labels(layout),
        graph,
        layout,
        figures=figures,
        notes=notes,
        in_place=in_place,
    )


def make_labels(layout: Layout) -> tuple[Label, ...]:
    """Return for every row of the problem the operators that make and use it."""
    graph = layout.graph
    made: dict[int, Operator] = {}
    used: dict[int, list[str]] = {}
    for operator in graph.walk():
        for index in operator.outputs:
            made.setdefault(index, operator)
        for index in operator.inputs:
            used.setdefault(index, []).append(_describe(operator))
    labels = []
    for row in layout.rows:
        storage = layout.storages[row]
        makers = [made[index] for index in storage.tensors if index in made]
        source = storage.workspace_of or (makers[0] if makers else None)
        users = [user for index in storage.tensors for user in used.get(index, ())]
        names = tuple(graph.tensors[index].name for index in storage.tensors)
        labels.append(
            Label(
                names or (storage.name,),
                storage.kind,
                _describe(makers[0]) if makers else "",
                tuple(dict.fromkeys(users)),
                "" if source is None else source.type,
                "" if source is None else source.module,
                "" if source is None else source.line,
            )
        )
    return tuple(labels)


def _describe(operator: Operator) -> str:
    return f"{operator.name} ({operator.type})" if operator.name else operator.type

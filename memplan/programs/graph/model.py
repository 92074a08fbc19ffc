"""Programs as graphs of operators and tensors, with what matters for their memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memplan.programs.graph.checks import CHECKS_ALL, check
from memplan.programs.graph.pictures import UNKNOWN_ROWS, Read, Size, find_size

__all__ = ["Block", "Graph", "Kind", "Operator", "Tensor", "View"]


class Kind(StrEnum):
    """The role of a tensor in the program."""

    INPUT = "input"  # given by the caller
    OUTPUT = "output"  # handed to the caller
    CONSTANT = "constant"  # weights and literals: known before the run
    INTERMEDIATE = "intermediate"
    VARIABLE = "variable"  # state that outlives a run
    WORKSPACE = "workspace"  # scratch of one operator
    OUTSIDE = "outside"  # a copy in another memory, of what is moved out of this one


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of the program.

    Attributes
    ----------
    name
        The name in the user's file; distinct in its graph.
    bytes
        The size of its elements, without padding.
    kind
        See `Kind`. A tensor that is an input and handed out again is an input.
    dtype
        NumPy's name if it has one ("float32"), otherwise that of the format ("bfloat16").
    shape
        `None` if it is not known.
    pin
        The offset that the file itself gives it, in bytes, or `None`.
    origin
        Of a copy or a part that a rewrite made: the name of the tensor that the program had.
    """

    name: str
    bytes: int
    kind: Kind = Kind.INTERMEDIATE
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    pin: int | None = None
    origin: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """A sequence of operators inside another operator: a branch, or the body of a loop.

    Attributes
    ----------
    name
        The name of the sub-graph.
    operators
        In the order in which they run.
    inputs, outputs
        Tensors of the graph that are the block's own parameters and results. Tensors that it reads
        from outside are not listed.
    """

    name: str
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """A step of the program.

    Attributes
    ----------
    name
        The name in the user's file; it may be empty.
    type
        "Conv", "ADD", "aten.mm".
    inputs, outputs
        Indices into the tensors of the graph.
    stream
        The queue that it runs on. The operators of a stream run in their order in the graph;
        between streams, an operator waits only for the makers of what it reads. Operators inside
        blocks run on the stream of the outermost operator; theirs must be that or 0.
    workspace
        Bytes of scratch that it holds while it runs.
    in_place
        Pairs (input, output): the operator may write this output over that input, if the input is
        not needed any more. The planner decides whether it does.
    blocks
        The sub-graphs that it runs: one of several (branches), or the same repeatedly (a loop).
    loop
        Whether its blocks run repeatedly, so that what they read from outside is needed until the
        loop ends.
    module
        The user's module that it belongs to ("layer1.0.conv1"); empty if unknown.
    line
        The line of the user's source that it comes from ("model.py:41"); empty if unknown.
    origin
        Where it stands in its file, for those who write that: sub-graph and index, or the name of a
        node. `None` if it has no node of its own.
    reads
        The pictures among its inputs, each once for every place at which it is an input, with which
        rows and columns of it a row and a column of the first output need.
    why_whole
        Why it can only be done as a whole; empty if it can be done for a part of the first output.
    macs
        Multiplications with addition.
    """

    name: str
    type: str
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    stream: int = 0
    workspace: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
    blocks: tuple[Block, ...] = ()
    loop: bool = False
    module: str = ""
    line: str = ""
    origin: tuple[int, int] | str | None = field(default=None, compare=False)
    reads: tuple[Read, ...] = ()
    why_whole: str = UNKNOWN_ROWS
    macs: int = 0

    @property
    def makes(self) -> int:
        """The first output, or -1; others are scratch where it is done in parts."""
        return self.outputs[0] if self.outputs else -1

    @property
    def place(self) -> tuple[int, int]:
        """The sub-graph and the index of an operator that stands in a file by number."""
        assert isinstance(self.origin, tuple), "its format numbers operators"
        return self.origin

    def walk(self) -> Iterator[Operator]:
        """Yield this operator, and then those inside its blocks, each before its own blocks."""
        todo = [self]
        while todo:
            operator = todo.pop()
            yield operator
            for block in reversed(operator.blocks):
                todo.extend(reversed(block.operators))


@dataclass(frozen=True, slots=True)
class View:
    """A tensor without memory of its own, which lies in the memory of another one.

    Attributes
    ----------
    tensor, base
        Indices of tensors; the base may be a view itself.
    offset
        The offset of its first byte in the base. It covers as many bytes as the tensor has.
    """

    tensor: int
    base: int
    offset: int = 0


@dataclass(frozen=True)
class Graph:
    """A program: tensors, and operators in an order in which they can run.

    Attributes
    ----------
    name
        Of the model, or of its file.
    tensors
        The tensors that all indices refer to.
    operators
        The outermost operators; with several streams, in one of the orders in which they can run.
    inputs, outputs
        Tensors that the caller gives and gets.
    views
        At most one for a tensor.
    aliases
        Pairs of tensors that must have the same memory: state that is updated, and values that a
        loop carries from one iteration to the next.
    alignment
        The alignment of every offset in the format's own runtime.
    planned
        The kinds that the format's own runtime puts into its arena.
    source
        The format: "onnx", "tflite", ...
    groups
        Tensors that must lie side by side, each at the end of the one before, because they are
        moved at once, as by a communication operator. A tensor is in at most one group.
    row_axis
        Which of the four axes of a picture has its rows; columns follow. 1: a row is one piece of
        memory (NHWC). 2: channels come first (NCHW).

    Raises
    ------
    GraphError
        One sentence on the first error: an index out of range, a negative size, two tensors of one
        name, a tensor that two operators make, a tensor that is read but never made or made later
        (also in a cycle, which is named, or because the order on streams contradicts the arcs), a
        group that lists a tensor twice, groups that share one, views in a cycle, or blocks nested
        more than a hundred deep.
    """

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    views: tuple[View, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    alignment: int = 1
    planned: frozenset[Kind] = field(
        default=frozenset({Kind.INPUT, Kind.OUTPUT, Kind.INTERMEDIATE, Kind.WORKSPACE})
    )
    source: str = ""
    groups: tuple[tuple[int, ...], ...] = ()
    row_axis: int = 2

    def __post_init__(self) -> None:
        check(self)

    @property
    def has_streams(self) -> bool:
        """Whether its operators run on several streams."""
        return len({operator.stream for operator in self.operators}) > 1

    def changed(self, **fields: Any) -> Graph:
        """Return this graph with other fields, from a step that is known to keep it right.

        It is not checked again; `dataclasses.replace` makes a graph that is.
        """
        made = object.__new__(Graph)
        vars(made).update(vars(self) | fields)
        if CHECKS_ALL:
            check(made)
        return made

    def walk(self) -> Iterator[Operator]:
        """Yield every operator, also those inside blocks, each before its own blocks."""
        for operator in self.operators:
            yield from operator.walk()

    def find_size(self, tensor: int) -> Size | None:
        """Return the rows and columns of a tensor; `None` if it is no picture."""
        return find_size(self.tensors[tensor].shape, self.row_axis)

"""What a program computes, as far as its memory is concerned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from memplan.graph.checks import check

__all__ = ["Block", "Graph", "Kind", "Operator", "Tensor", "View"]


class Kind(StrEnum):
    """What a tensor is to the program."""

    INPUT = "input"  # given by the caller
    OUTPUT = "output"  # handed to the caller
    CONSTANT = "constant"  # weights and literals: known before the run
    INTERMEDIATE = "intermediate"
    VARIABLE = "variable"  # state that outlives a run
    WORKSPACE = "workspace"  # scratch of one operator


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of the program.

    Attributes
    ----------
    name
        As the user's file has it; distinct in its graph.
    bytes
        What its elements take, without padding.
    kind
        See `Kind`. A tensor that is an input and handed out again is an input.
    dtype
        In the words of NumPy where it has one ("float32"), otherwise of the source ("bfloat16").
    shape
        Or `None` where it is not known.
    pin
        The offset that the file itself gives it, in bytes, or `None`.
    """

    name: str
    bytes: int
    kind: Kind = Kind.INTERMEDIATE
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    pin: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A sequence of operators inside another operator: a branch, or the body of a loop.

    Attributes
    ----------
    name
        Of the sub-graph.
    operators
        In the order in which they run.
    inputs, outputs
        Tensors of the graph that are the block's own parameters and results. What it reads of its
        surroundings is not listed.
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
        As the user's file has it; it may be empty.
    type
        "Conv", "ADD", "aten.mm".
    inputs, outputs
        Indices into the tensors of the graph.
    stream
        The queue that it runs on. The operators of a stream run in their order in the graph;
        between streams, an operator only waits for what it reads. Inside of blocks everything runs
        on the stream of the outermost operator, whether it says so or says 0.
    workspace
        Bytes of scratch that it holds while it runs.
    in_place
        Pairs (input, output): it may write this output over that input, if nobody needs the input
        any more. A choice: the planner need not take it.
    blocks
        Run inside of it, one or the other (branches) or again and again (a loop).
    loop
        Whether its blocks run again: what they read from outside is needed until the loop ends.
    module
        The module of the user's that it belongs to ("layer1.0.conv1"); empty where unknown.
    line
        The line of the user's source that it comes from ("model.py:41"); empty where unknown.
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

    def walk(self) -> Iterator[Operator]:
        """Yield this operator, and then those inside of it, each before its own blocks."""
        todo = [self]
        while todo:
            operator = todo.pop()
            yield operator
            for block in reversed(operator.blocks):
                todo.extend(reversed(block.operators))


@dataclass(frozen=True, slots=True)
class View:
    """A tensor that has no memory of its own: bytes of another one.

    Attributes
    ----------
    tensor, base
        Indices of tensors; the base may be a view itself.
    offset
        Of its first byte in the base. Its extent is its own size.
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
        What the indices elsewhere refer to.
    operators
        The outermost sequence; of several streams, one of the orders in which they can run.
    inputs, outputs
        Tensors that the caller gives and gets.
    views
        At most one for a tensor.
    aliases
        Pairs of tensors that must have the same memory: state that is updated, and what a loop
        carries round.
    alignment
        Of every offset, as the format's own runtime has it.
    planned
        The kinds that the format's own runtime puts into its arena.
    source
        The format: "onnx", "tflite", ...
    groups
        Tensors that must lie side by side, each at the end of the one before: what is moved in one
        go, as by a communication operator. A tensor is in at most one of them.

    Raises
    ------
    GraphError
        One sentence on the first thing that is wrong: an index out of range, a negative size, two
        tensors of one name, a tensor that two operators make, one that nobody makes or that is read
        before (also in a cycle, which is named, or because the order on streams contradicts the
        arcs), a group that lists a tensor twice, groups that share one, views in a circle, or
        blocks in blocks more than a hundred deep.
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

    def __post_init__(self) -> None:
        check(self)

    def walk(self) -> Iterator[Operator]:
        """Yield every operator, also those inside of blocks, each before its blocks."""
        for operator in self.operators:
            yield from operator.walk()

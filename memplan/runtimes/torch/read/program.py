"""An exported program, whether it comes from a file or from memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from memplan.base.notes import Note
from memplan.programs.graph import Kind
from memplan.runtimes.torch.read.values import Value

__all__ = ["Autocast", "Body", "Exported", "Given", "Node", "Option"]

Option = object
"""An argument that is no tensor: a number, a text, `None`, a tuple of these, or `...` if it is
known only at run time."""


@dataclass(frozen=True, slots=True)
class Autocast:
    """A region of `torch.autocast`."""

    device: str  # it casts inputs of operators on this device to this type: "cpu", "bfloat16"
    dtype: str
    enabled: bool = True  # false if it switches off the region around it
    # Whether it keeps the casts of weights. `torch.export` traces without the cache, so it writes
    # False for every region without a setting of its own.
    cache: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """An input of the program: an argument, or a weight with the user's name for it."""

    value: Value
    kind: Kind  # "input" or "constant"
    label: str  # the user's name for a weight; empty for an argument
    trained: bool = False  # whether it is a parameter that needs a gradient
    # The name of an earlier weight that is this tensor, as modules share it; or empty.
    same: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """A sub-graph of a higher-order operator."""

    name: str  # in the program
    inputs: tuple[Value | None, ...]  # its parameters; `None` for one that is no tensor
    nodes: tuple[Node, ...]
    # Names of what it returns; `None` for a result that is no tensor.
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """An operator."""

    name: str  # it begins with the module that the user called it in
    target: str  # "aten.conv2d.default", "higher_order.cond"
    inputs: tuple[str, ...]  # names of the tensors that it reads
    outputs: tuple[Value, ...]
    # By output: the name of the tensor that it shares a storage with.
    shares: tuple[str | None, ...]
    writes: tuple[str, ...] = ()  # names of the inputs that it changes
    bodies: tuple[Body, ...] = ()  # its sub-graphs, and the operands of their parameters in order
    operands: tuple[str | None, ...] = ()
    # Where the user called it ("layer1.0.conv1", "model.py:41"); empty where unknown.
    module: str = ""
    line: str = ""
    autocast: Autocast | None = None  # the region that its body is, or `None` if it opens no region
    # The name of its node in the program; `None` if it has none, as a cast.
    origin: str | None = None
    # By name: those arguments that say which rows of its inputs it needs.
    options: tuple[tuple[str, Option], ...] = ()


@dataclass(frozen=True)
class Exported:
    """What `torch.export` makes of a module."""

    name: str
    inputs: tuple[Given, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]  # names of the tensors that the caller gets
    # Pairs (result, argument): the result is copied into the argument at the end.
    updates: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()  # for the user
    device: str = "cpu"  # of the first tensor

    @cached_property
    def values(self) -> dict[str, Value]:
        """Every tensor by its name, those of sub-graphs included."""
        found = {given.value.name: given.value for given in self.inputs}
        for node in self.walk():
            found.update((value.name, value) for value in node.outputs)
            for body in node.bodies:
                found.update((value.name, value) for value in body.inputs if value is not None)
        return found

    def walk(self) -> Iterator[Node]:
        """Yield every operator, those of sub-graphs behind the one that has them."""
        left = list(reversed(self.nodes))
        while left:
            node = left.pop()
            yield node
            left += (inner for body in reversed(node.bodies) for inner in reversed(body.nodes))

    @cached_property
    def trained(self) -> dict[str, Given]:
        """The weights that need a gradient, by name."""
        return {given.value.name: given for given in self.inputs if given.trained}

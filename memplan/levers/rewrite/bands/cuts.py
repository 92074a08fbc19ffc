"""What a program in bands is: regions that are cut, what is done one after the other, and parts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from memplan.levers.rewrite.bands.uncut import Box, Uncut, area
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View

__all__ = ["Action", "Cut", "Do", "Region", "describe"]


@dataclass(frozen=True, slots=True)
class Region:
    """What is cut: operators that follow each other, in so many bands of rows and of columns.

    Attributes
    ----------
    first, last
        The operators `[first, last)`, by index.
    bands
        Bands of rows, and of columns.
    kept
        Tensors of which a band keeps rows for the next one; all others are computed again. Only
        bands of whole rows keep any.
    pads
        Whether windows get a copy of the band with zeros around it, so that they make no rows that
        are cut off. Otherwise the runtime pads the band at both ends.
    """

    first: int
    last: int
    bands: tuple[int, int]
    kept: frozenset[int] = frozenset()
    pads: bool = False


class Do(StrEnum):
    """What an operator of a program in bands does."""

    WHOLE = "whole"  # what it did before
    PART = "part"  # what it did before, for a part of its result
    SLICE = "slice"
    JOIN = "join"
    PAD = "pad"  # a copy with zeros around it


class Action(NamedTuple):
    """An operator of a program in bands. Tensors are those of `Cut`."""

    do: Do
    # `WHOLE`: empty, as it is the operator itself. `PART`: for each read of the operator, or -1 for
    # an input of which the part has no row. Otherwise what it reads.
    inputs: tuple[int, ...]
    output: int
    step: int = -1  # the operator that it was, or is a part of; otherwise -1
    feeds: tuple[Box, ...] = ()  # `PART`: for each read, the part of the input that it is fed
    # `SLICE`: the row and the column at which it begins in its input.
    begin: tuple[int, int] = (0, 0)
    axis: int = 0  # `JOIN`: 0 for rows, 1 for columns
    # `PART`: whether a window needs no padding, as zeros are around what it is fed.
    padded: bool = False
    scratch: int = 0  # `PART`: the bytes that it holds while it runs


@dataclass(frozen=True)
class Cut:
    """A program in bands.

    Attributes
    ----------
    uncut
        The program as it was.
    regions
        What was cut.
    parts
        By tensor that the program did not have: the tensor that it is a part of, and which part.
        Numbers go on behind those of the program's tensors.
    actions
        All operators, in the order in which they run.
    views
        By tensor: the one in whose memory it lies, and the byte at which it begins there.
    macs
        Multiplications with addition.
    copied
        Elements that are copied to take, join and pad bands.
    """

    uncut: Uncut
    regions: tuple[Region, ...]
    parts: tuple[tuple[int, Box], ...]
    actions: tuple[Action, ...]
    views: dict[int, tuple[int, int]]
    macs: int
    copied: int

    def origin(self, tensor: int) -> int:
        """Return the tensor of the program that a tensor is, or is a part of."""
        known = len(self.uncut.graph.tensors)
        return tensor if tensor < known else self.parts[tensor - known][0]

    def part(self, tensor: int) -> tuple[int, Box]:
        """Return the tensor of the program that a tensor is a part of, and which part."""
        known = len(self.uncut.graph.tensors)
        return (tensor, self.uncut.wholes[tensor]) if tensor < known else self.parts[tensor - known]

    def bytes_of(self, tensor: int) -> int:
        """Return the size of a tensor in bytes."""
        known = len(self.uncut.graph.tensors)
        if tensor < known:
            return self.uncut.graph.tensors[tensor].bytes
        return self.uncut.bytes_of(*self.parts[tensor - known])

    def graph(self) -> Graph:
        """Return the program in bands as a graph."""
        old, known = self.uncut.graph, len(self.uncut.graph.tensors)
        tensors = list(old.tensors)
        for number, (tensor, box) in enumerate(self.parts):
            base = old.tensors[tensor]
            tensors.append(
                Tensor(
                    f"{base.name} {describe(box)} ({number})",
                    self.bytes_of(known + number),
                    Kind.INTERMEDIATE,
                    base.dtype,
                    origin=base.origin or base.name,
                )
            )
        operators = tuple(map(self._operator, self.actions))
        used = {tensor for operator in operators for tensor in operator.outputs}
        views = [view for view in old.views if view.tensor in used or view.tensor in old.outputs]
        views += [View(tensor, base, at) for tensor, (base, at) in sorted(self.views.items())]
        return old.changed(tensors=tuple(tensors), operators=operators, views=tuple(views))

    def _operator(self, action: Action) -> Operator:
        if action.step < 0:
            kind = {Do.SLICE: "SLICE", Do.JOIN: "CONCATENATION", Do.PAD: "PAD"}[action.do]
            return Operator(f"{kind} {action.output}", kind, action.inputs, (action.output,))
        old = self.uncut.operators[action.step]
        if action.do is Do.WHOLE:
            return old
        new: dict[int, int] = {
            read.tensor: tensor
            for read, tensor in zip(old.reads, action.inputs, strict=True)
            if tensor >= 0
        }
        pictures = {read.tensor for read in old.reads}
        pieces = iter(action.inputs)  # a picture may be read twice, in different parts
        inputs = [next(pieces) if t in pictures else t for t in old.inputs]
        new[old.makes] = action.output
        _, box = self.part(action.output)
        whole = area(self.uncut.wholes[old.makes])
        return Operator(
            f"{old.name} {describe(box)}",
            old.type,
            tuple(t for t in inputs if t >= 0),
            (action.output,),
            workspace=action.scratch,
            in_place=tuple(
                (new[a], new[b])
                for a, b in old.in_place
                if a in new and b in new and self.bytes_of(new[a]) == self.bytes_of(new[b])
            ),
            module=old.module,
            line=old.line,
            macs=-(-old.macs * area(box) // whole),
        )


def describe(box: Box) -> str:
    """Return a part of a picture in a few characters, for names."""
    (top, bottom), (left, right) = box
    return f"[{top}:{bottom}, {left}:{right}]"

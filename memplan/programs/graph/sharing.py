"""Which tensors share memory: views, aliases, and results written over inputs that die."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from memplan.base.errors import GraphError, quoted
from memplan.programs.graph.liveness import Lives
from memplan.programs.graph.model import Graph, Kind, Operator

__all__ = ["Group", "Sharing"]

_GIVEN = (Kind.INPUT, Kind.CONSTANT, Kind.VARIABLE)  # what has its value before the first step


@dataclass(slots=True)
class Group:
    """Tensors that share memory."""

    tensors: list[int]  # indices in the graph
    bytes: int  # of the memory that they share
    start: int  # some of them is needed in `[start, end)`
    end: int
    kind: Kind  # of the base if it is not an intermediate, or of the first tensor that is not one
    pin: int | None  # the offset that the file gives the base, directly or through another tensor


class Sharing:
    """A forest of tensors with their offsets in their parents; each tree is a piece of memory.

    A view that reaches beyond its base, and aliases and pins that contradict each other, are
    errors.
    """

    def __init__(self, graph: Graph, times: Lives, *, pins: bool) -> None:
        self._graph = graph
        self._times = times
        self._pins = pins
        blocks = [block for operator in graph.walk() for block in operator.blocks]
        self._handed_out = frozenset(graph.outputs).union(*(block.outputs for block in blocks))
        always = (i for i, t in enumerate(graph.tensors) if t.kind in _GIVEN)
        self._given = frozenset(always).union(*(block.inputs for block in blocks))
        self._parent = list(range(len(graph.tensors)))
        self._offset = [0] * len(graph.tensors)  # in the parent
        for view in graph.views:
            self._parent[view.tensor] = view.base
            self._offset[view.tensor] = view.offset
        for view in graph.views:
            self._require_inside(view.tensor)
        for one, other in graph.aliases:
            self._join(one, other)

    def find(self, tensor: int) -> tuple[int, int]:
        """Return the base of a tensor, and its offset there."""
        path = []
        while self._parent[tensor] != tensor:
            path.append(tensor)
            tensor = self._parent[tensor]
        offset = 0
        for node in reversed(path):  # compress the path: its nodes become children of the base
            offset += self._offset[node]
            self._parent[node], self._offset[node] = tensor, offset
        return tensor, offset

    def groups(self) -> dict[int, Group]:
        """Return the group of every base, by base in the order of the graph."""
        members: dict[int, list[int]] = {}
        for tensor, parent in enumerate(self._parent):
            base = tensor if parent == tensor else self.find(tensor)[0]
            members.setdefault(base, []).append(tensor)
        return {base: self._make_group(base, members[base]) for base in sorted(members)}

    def _make_group(self, base: int, indices: list[int]) -> Group:
        tensors, start, end = self._graph.tensors, self._times.start, self._times.end
        pin = self._find_pin(base, indices) if self._pins else None
        alone = tensors[base]
        if len(indices) == 1:  # the common case, made fast
            return Group(indices, alone.bytes, start[base], end[base], alone.kind, pin)
        used = [t for t in indices if end[t] > start[t]]
        return Group(
            tensors=indices,
            bytes=max(self._offset[t] + tensors[t].bytes for t in indices),
            start=min((start[t] for t in used), default=0),
            end=max((end[t] for t in used), default=0),
            kind=_choose_kind(tensors[t].kind for t in (base, *indices)),
            pin=pin,
        )

    def take_in_place(self, planned: frozenset[Kind]) -> None:
        """Make operators write results over inputs that die, from the first operator to the last.

        This is done only for tensors that are planned, because the caller's memory has its own
        size; only for inputs used on one stream, because operators on other streams may still read
        them; and not for results in a graph's groups, which must stay next to the others.
        """
        groups = self.groups()
        users = self._find_streams()
        fixed = {self.find(tensor)[0] for group in self._graph.groups for tensor in group}
        for stream, operator in self._walk():
            over: set[int] = set()
            for operand, result in operator.in_place:
                (old, at), (new, inside) = self.find(operand), self.find(result)
                if inside != 0 or old == new or {old, new} & over:
                    continue
                if new in fixed or users[old] != {stream}:
                    continue
                if not {groups[old].kind, groups[new].kind} <= planned:
                    continue
                if not self._may_overwrite(groups[old], groups[new], operand, at):
                    continue
                if self._reads_another(operator, operand, old):
                    continue
                self._parent[new], self._offset[new] = old, at
                users[old] |= users[new]
                groups[old].end = groups[new].end
                groups[old].kind = _choose_kind((groups[old].kind, groups[new].kind))
                over |= {old, new}

    def _walk(self) -> Iterator[tuple[int, Operator]]:
        """Yield every operator with the stream that it runs on, in the order of `Graph.walk`."""
        for outer in self._graph.operators:
            yield from ((outer.stream, operator) for operator in outer.walk())

    def _find_streams(self) -> dict[int, set[int]]:
        """Return by base the streams on which operators make or read it."""
        found: dict[int, set[int]] = defaultdict(set)
        for stream, operator in self._walk():
            blocks = ((*block.inputs, *block.outputs) for block in operator.blocks)
            for tensor in chain(operator.inputs, operator.outputs, *blocks):
                found[self.find(tensor)[0]].add(stream)
        return found

    def _may_overwrite(self, old: Group, new: Group, operand: int, at: int) -> bool:
        """Return whether `new` can be written over the input `operand`, at offset `at` in `old`."""
        if old.kind not in (Kind.INTERMEDIATE, Kind.INPUT):
            return False
        if old.kind is Kind.INPUT and new.kind is Kind.OUTPUT:
            return False
        # What an operator hands on as a view was there before it, and is no result to place.
        if not self._given.isdisjoint(new.tensors):
            return False
        # The caller, or the operator around the block, reads these after the last step.
        if not self._handed_out.isdisjoint(old.tensors):
            return False
        here = None if old.pin is None else old.pin + at
        return (
            old.end == new.start + 1
            and new.bytes <= self._graph.tensors[operand].bytes
            and new.pin == here
        )

    def _reads_another(self, operator: Operator, operand: int, base: int) -> bool:
        """Return whether an operator reads another tensor of this base, which it would destroy."""
        return any(t != operand and self.find(t)[0] == base for t in operator.inputs)

    def _require_inside(self, tensor: int) -> None:
        base, offset = self.find(tensor)
        tensors = self._graph.tensors
        if offset + tensors[tensor].bytes > tensors[base].bytes:
            raise GraphError(
                f"the view {quoted(tensors[tensor].name)} reaches {offset + tensors[tensor].bytes} "
                f"bytes into {quoted(tensors[base].name)}, which has {tensors[base].bytes}"
            )

    def _join(self, one: int, other: int) -> None:
        """Give two tensors the same memory; the base that is needed first becomes the base."""
        (a, at_a), (b, at_b) = self.find(one), self.find(other)
        if a == b:
            if at_a != at_b:
                names = [quoted(self._graph.tensors[t].name) for t in (one, other, a)]
                raise GraphError(
                    f"{names[0]} and {names[1]} must have the same memory, "
                    f"but lie at offsets {at_a} and {at_b} of {names[2]}"
                )
            return
        start = self._times.start
        # The base must be the tree that begins at the lower address. If both begin at the same
        # one, it is the tree that is needed first.
        if (at_a - at_b, start[b], b) < (0, start[a], a):
            a, at_a, b, at_b = b, at_b, a, at_a
        self._parent[b], self._offset[b] = a, at_a - at_b

    def _find_pin(self, base: int, indices: Iterable[int]) -> int | None:
        tensors = self._graph.tensors
        pins = {p - self._offset[t] for t in indices if (p := tensors[t].pin) is not None}
        if not pins:
            return None
        name = quoted(tensors[base].name)
        if len(pins) > 1:
            raise GraphError(f"{name} shares its memory with a tensor that is pinned elsewhere")
        if min(pins) < 0:
            raise GraphError(f"a view of {name} is pinned so low that its base would begin below 0")
        return min(pins)


def _choose_kind(kinds: Iterable[Kind]) -> Kind:
    return next((kind for kind in kinds if kind is not Kind.INTERMEDIATE), Kind.INTERMEDIATE)

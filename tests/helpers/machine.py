"""A machine that runs a graph step by step, in the memory that a plan gives it.

Every write puts values into the arena that are nowhere else; every read looks whether they are
still there. It knows nothing of lifetimes: where it finds other values, a lifetime was too short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from memplan.programs.graph import Block, Kind, Layout, Operator

GIVEN = (Kind.INPUT, Kind.CONSTANT, Kind.VARIABLE)


class ClobberedError(AssertionError):
    """An operator wrote over bytes that were still needed."""


class Machine:
    """Runs a graph.

    Parameters
    ----------
    layout
        Of the graph, with everything planned.
    offsets
        Of its problem, by row.
    choose
        Says which branch is taken (of how many), and how often a loop runs.
    memory
        By address: what others have left there.
    """

    _fresh = count()  # of all machines: values are nowhere else, whoever shares the memory

    def __init__(
        self,
        layout: Layout,
        offsets: list[int],
        choose: Callable[[int, int], int],
        memory: dict[int, int] | None = None,
    ) -> None:
        self.graph = layout.graph
        self.choose = choose
        self.reads = 0
        self._memory: dict[int, int] = {} if memory is None else memory
        self._place: dict[int, int] = {}
        self._scratch: dict[int, tuple[int, int]] = {}  # by id: equal operators are two
        busy = (operator for operator in self.graph.walk() if operator.workspace)
        for row, offset in zip(layout.rows, offsets, strict=True):
            storage = layout.storages[row]
            for tensor, inside in zip(storage.tensors, storage.offsets, strict=True):
                self._place[tensor] = offset + inside
            if storage.kind is Kind.WORKSPACE:
                self._scratch[id(next(busy))] = (offset, storage.bytes)
        self._views = {view.tensor: (view.base, view.offset) for view in self.graph.views}
        self._mates: dict[int, set[int]] = {}
        for one, other in self.graph.aliases:
            self._mates.setdefault(one, set()).add(other)
            self._mates.setdefault(other, set()).add(one)
        self._values: dict[int, list[int]] = {}

    def run(self) -> None:
        """Run the whole program once."""
        always = [i for i, t in enumerate(self.graph.tensors) if t.kind in GIVEN]
        self._write(always)
        self._run(self.graph.operators)
        self._read(self.graph.outputs)
        self._read(i for i in always if self.graph.tensors[i].kind is not Kind.INPUT)

    def _run(self, operators: Iterable[Operator]) -> None:
        for operator in operators:
            entered = self._enter(operator)
            self._read(operator.inputs)
            scratch = self._scribble(operator)
            if operator.blocks:
                self._write(i for block in entered for i in block.inputs)
                self._read(operator.inputs)
                (self._loop if operator.loop else self._branch)(operator)
                self._read(operator.outputs)
            else:
                self._write(operator.outputs)
                self._read(i for i in operator.inputs if not self._went_over(operator, i))
            for place, value in scratch.items():
                if self._memory[place] != value:
                    raise ClobberedError(f"the workspace of {operator.name}")

    def _enter(self, operator: Operator) -> tuple[Block, ...]:
        """Return the blocks whose inputs are written as the operator is entered."""
        return operator.blocks

    def _pick(self, operator: Operator) -> Block:
        return operator.blocks[self.choose(0, len(operator.blocks) - 1)]

    def _branch(self, operator: Operator) -> None:
        block = self._pick(operator)
        self._run(block.operators)
        self._read(block.outputs)
        self._write(operator.outputs)
        self._read(i for i in block.outputs if i not in operator.outputs)

    def _loop(self, operator: Operator) -> None:
        carried = [i for block in operator.blocks for i in block.inputs]
        handed = [i for block in operator.blocks for i in block.outputs]
        for _ in range(self.choose(1, 3)):
            for block in operator.blocks:
                self._run(block.operators)
                self._read(block.outputs)
            self._read(handed)
            self._write(carried)
            self._read(i for i in handed if i not in carried)
        self._read(carried)
        self._write(operator.outputs)
        self._read(carried)

    def _went_over(self, operator: Operator, source: int) -> bool:
        """Whether an output was put over this input, as it may."""
        start, end = self._bytes(source)
        for one, target in operator.in_place:
            lower, upper = self._bytes(target)
            if one == source and lower < end and start < upper:
                return True
        return False

    def _bytes(self, tensor: int) -> tuple[int, int]:
        start = self._place.get(tensor, -1)
        return start, start + self.graph.tensors[tensor].bytes if start >= 0 else start

    def _scribble(self, operator: Operator) -> dict[int, int]:
        if not operator.workspace:
            return {}
        start, size = self._scratch[id(operator)]
        written = {start + at: next(self._fresh) for at in range(size)}
        self._memory.update(written)
        return written

    def _write(self, tensors: Iterable[int]) -> None:
        for tensor in tensors:
            if tensor in self._views:
                continue  # nothing moves
            for mate in self._mates.get(tensor, ()):
                self._values.pop(mate, None)  # it had to be overwritten
            lower, upper = self._bytes(tensor)
            values = [next(self._fresh) for _ in range(lower, upper)]
            self._memory.update(zip(range(lower, upper), values, strict=True))
            self._values[tensor] = values

    def _read(self, tensors: Iterable[int]) -> None:
        for tensor in tensors:
            owner, at = tensor, 0
            while owner in self._views:
                owner, inside = self._views[owner]
                at += inside
            if owner not in self._values:
                continue
            lower, upper = self._bytes(tensor)
            expected = self._values[owner][at : at + upper - lower]
            if [self._memory[place] for place in range(lower, upper)] != expected:
                raise ClobberedError(self.graph.tensors[tensor].name)
            self.reads += 1

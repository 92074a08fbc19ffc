"""Writes a sequence with re-runs and moves as a graph, with copied operators and tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from memplan.levers.rewrite.again.columns import Again
from memplan.levers.rewrite.effects import MOVE_BACK, MOVE_OUT
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View

__all__ = ["Emitted", "emit"]


@dataclass(frozen=True)
class Emitted:
    """A graph in which operators run again."""

    # What runs again is a copy: "conv_3 (again)" makes "x (again)". What is moved is read by "x
    # (out)", right after its last use, which makes "x (outside)"; of that "x (back)" makes "x
    # (moved back)". A result of the program keeps its name in its last copy, other tensors in their
    # first one.
    graph: Graph
    # By operator of the graph: that of the given graph; -1 for one that moves.
    operators: tuple[int, ...]


def emit(question: Again, runs: Iterable[int]) -> Emitted:
    """Return a sequence as a graph. Each read takes the latest copy.

    The sequence is legal, and the graph of the question is in the order that `runs` counts. What is
    moved back more than once is written outside once. The views of a copy that a reader needs are
    made right before it, by copies of the operators that make them; this needs no memory beside
    that of the copy.
    """
    return _Emitter(question, tuple(runs)).emit()


class _Emitter:
    """Emits operators one after the other."""

    def __init__(self, question: Again, runs: tuple[int, ...]) -> None:
        self._question, self._runs = question, runs
        graph = self._graph = question.graph
        problem = question.problem
        self._total = Counter(runs)
        self._outside: dict[int, int] = {}  # by storage: the tensor in the other memory
        self._maker = {s: op for s, op in enumerate(problem.maker.tolist()) if op >= 0}
        self._makes: dict[int, list[int]] = {}
        for storage, op in self._maker.items():
            self._makes.setdefault(op, []).append(storage)
        self._copy: Counter[int] = Counter()  # by storage: how often it was made
        self._copy_of: dict[int, int] = {}  # by tensor: the copy of its storage that it is in
        self._now: dict[int, int] = {}  # by tensor: what it is at the moment
        self._base = {view.tensor: view for view in graph.views}
        self._view_maker = {
            tensor: op for op in question.views for tensor in graph.operators[op].outputs
        }
        self._tensors = [replace(tensor, pin=None) for tensor in graph.tensors]
        self._names = {tensor.name for tensor in graph.tensors}
        self._views = dict(self._base)
        self._ran: Counter[int] = Counter()
        self._operators: list[Operator] = []
        self._numbers: list[int] = []

    def emit(self) -> Emitted:
        """Emit all runs, and the views of results that are handed out."""
        leaving = self._find_leaving()
        for storage in leaving.get(-1, ()):
            self._move_out(storage)
        for at, op in enumerate(self._runs):
            if op < len(self._graph.operators):
                self._run(op)
            else:
                self._move_back(op - len(self._graph.operators))
            for storage in leaving.get(at, ()):
                self._move_out(storage)
        for tensor in sorted(self._question.handed_out):
            self._read(tensor)
        graph = self._graph.changed(
            tensors=tuple(self._tensors),
            operators=tuple(self._operators),
            views=tuple(self._views[tensor] for tensor in sorted(self._views)),
        )
        return Emitted(graph, tuple(self._numbers))

    def _run(self, op: int) -> None:
        old = self._graph.operators[op]
        if old.blocks:  # what these touch is never made again
            self._append(op, old)
            return
        inputs = tuple(map(self._read, old.inputs))
        for storage in self._makes.get(op, ()):
            self._copy[storage] += 1
        outputs = tuple(map(self._make, old.outputs))
        for tensor in old.outputs:
            self._lay_over(tensor)
        new = dict(zip((*old.inputs, *old.outputs), (*inputs, *outputs), strict=True))
        name = old.name
        if self._ran[op]:
            name = f"{old.name or old.type} {_describe(self._ran[op])}"
        self._append(
            op,
            replace(
                old,
                name=name,
                inputs=inputs,
                outputs=outputs,
                in_place=tuple((new[one], new[other]) for one, other in old.in_place),
                reads=tuple(replace(read, tensor=new[read.tensor]) for read in old.reads),
            ),
        )

    def _find_leaving(self) -> dict[int, list[int]]:
        """Return the storages that are moved out after a run: after the last use before that."""
        program, count = self._question.problem.program, len(self._graph.operators)
        last: dict[int, int] = {}
        leaving: dict[int, list[int]] = {}
        uses: dict[int, list[int]] = {}
        moved = sorted({run - count for run in self._runs if run >= count})
        for storage in moved:
            for user in program.users(storage).tolist():
                uses.setdefault(user, []).append(storage)
        for at, run in enumerate(self._runs):
            if run >= count and run - count in moved:
                leaving.setdefault(last.get(run - count, -1), []).append(run - count)
                moved.remove(run - count)
            for storage in uses.get(run, ()):
                last[storage] = at
        return leaving

    def _move_out(self, storage: int) -> None:
        tensor = self._question.moved[storage]
        inside, name = self._read(tensor), self._graph.tensors[tensor].name
        self._outside[storage] = self._add_copy(tensor, "outside", Kind.OUTSIDE)
        outside = (self._outside[storage],)
        self._append(-1, Operator(f"{name} (out)", MOVE_OUT, (inside,), outside))

    def _move_back(self, storage: int) -> None:
        tensor, run = self._question.moved[storage], len(self._graph.operators) + storage
        self._copy[storage] += 1
        self._ran[run] += 1
        name = f"{self._graph.tensors[tensor].name} {_describe(self._ran[run], 'back')}"
        back = (self._make(tensor, "moved back"),)
        self._append(-1, Operator(name, MOVE_BACK, (self._outside[storage],), back))

    def _append(self, op: int, operator: Operator) -> None:
        self._ran[op] += 1
        self._operators.append(operator)
        self._numbers.append(op)

    def _read(self, tensor: int) -> int:
        """Return a tensor in the latest copy of its storage."""
        storage = self._question.storage_of.get(tensor, -1)
        if self._copy[storage] and self._copy_of.get(tensor) != self._copy[storage]:
            if tensor in self._view_maker:
                self._run(self._view_maker[tensor])
            else:
                self._make(tensor)
                self._lay_over(tensor)
        return self._now.get(tensor, tensor)

    def _make(self, tensor: int, word: str = "again") -> int:
        """Return a tensor of a new copy: itself, or one that is new."""
        storage = self._question.storage_of.get(tensor, -1)
        copy = self._copy_of[tensor] = self._copy[storage]
        is_kept = tensor not in self._now and word == "again"
        if storage in self._maker and tensor in self._question.handed_out:
            moves = self._total[len(self._graph.operators) + storage]
            is_kept = copy == self._total[self._maker[storage]] + moves
        self._now[tensor] = tensor if is_kept else self._add_copy(tensor, word)
        return self._now[tensor]

    def _add_copy(self, tensor: int, word: str, kind: Kind = Kind.INTERMEDIATE) -> int:
        old = self._graph.tensors[tensor]
        number = 1
        while (name := f"{old.name} {_describe(number, word)}") in self._names:
            number += 1
        self._names.add(name)
        origin = old.origin or old.name
        self._tensors.append(Tensor(name, old.bytes, kind, old.dtype, old.shape, origin=origin))
        return len(self._tensors) - 1

    def _lay_over(self, tensor: int) -> None:
        """Say in whose memory a tensor is, if it is a view."""
        if tensor in self._base:
            old, new = self._base[tensor], self._now[tensor]
            self._views[new] = View(new, self._read(old.base), old.offset)


def _describe(number: int, word: str = "again") -> str:
    """Return how a copy is told from the first one."""
    return f"({word})" if number == 1 else f"({word} {number})"

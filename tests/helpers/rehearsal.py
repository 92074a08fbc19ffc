"""Runs a program on parallel streams in planned memory, and notes every byte that is wrong.

A thread for each stream, one arena of real bytes for all. An operator waits for the makers of what
it reads, and for nothing else. It works in two moments, between which others may run:

    begin   reads its inputs, writes its outputs, which they determine, and its workspace
    end     all that it needs must still be there; what no operator needs any more is poisoned

Everything that is read is compared with a run of one operator after the other in which every
tensor has memory of its own. Nothing of memplan decides here what waits for what, or what is needed
how long.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from threading import Condition, Event, Lock, Thread
from typing import TYPE_CHECKING

import numpy as np

from memplan.programs.graph import Graph, Layout, Operator, Why

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGIN, END = range(2)
Moment = tuple[int, int]  # an operator, and BEGIN or END
Pace = Callable[[int, int], AbstractContextManager[None]]  # around what happens at a moment

_POISON = 0xA5
_PATIENCE = 60.0  # seconds; a program that is stuck must fail and not hang


# Paces -----------------------------------------------------------------------------------------


def at_random(graph: Graph, seed: int) -> Pace:
    """Return a pace at which operators are late by chance, and some streams more than others."""
    rng = np.random.default_rng(seed)
    slowness = rng.choice([0.2, 1.0, 5.0], size=1 + max(op.stream for op in graph.operators))
    late = rng.random((len(graph.operators), 2))
    late[rng.random(late.shape) < 0.7] = 0  # most are not: what is slow shall meet what is not

    @contextmanager
    def turn(number: int, moment: int) -> Iterator[None]:
        time.sleep(1e-4 * late[number, moment] * slowness[graph.operators[number].stream])
        yield

    return turn


def in_turn(moments: Iterable[Moment]) -> Pace:
    """Return a pace at which one moment comes after the other, whatever threads would like."""
    todo = list(reversed(list(moments)))
    changed = Condition()

    @contextmanager
    def turn(number: int, moment: int) -> Iterator[None]:
        with changed:
            if not changed.wait_for(lambda: todo[-1] == (number, moment), _PATIENCE):
                raise TimeoutError(f"moment {todo[-1]} does not come")
            yield
            todo.pop()
            changed.notify_all()

    return turn


def one_by_one(order: Iterable[int]) -> list[Moment]:
    """Return the moments of operators that run one after the other."""
    return [(number, moment) for number in order for moment in (BEGIN, END)]


def as_told(reason: Why) -> list[Moment]:
    """Return the moments of the execution that needs an unsafe pair at once."""
    running = reason.order[slice(*reason.at)]
    return [
        *one_by_one(reason.order[: reason.at[0]]),
        *((number, moment) for moment in (BEGIN, END) for number in running),
        *one_by_one(reason.order[reason.at[1] :]),
    ]


def starved(graph: Graph, stream: int) -> list[Moment]:
    """Return the moments of an execution in which a stream runs only while all others wait."""
    awaited = _awaited(graph)
    order: list[int] = []
    waiting = sorted(range(len(awaited)), key=lambda number: graph.operators[number].stream)
    waiting.sort(key=lambda number: graph.operators[number].stream == stream)
    while waiting:
        number = next(n for n in waiting if awaited[n].issubset(order))
        waiting.remove(number)
        order.append(number)
    return one_by_one(order)


# The run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """An operator, and the names of the storages that it needs."""

    name: str
    stream: int
    awaited: frozenset[int]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


class Rehearsal:
    """A program without blocks and views, ready to run in any memory.

    Parameters
    ----------
    layout
        All of its tensors are planned.
    """

    def __init__(self, layout: Layout) -> None:
        graph = layout.graph
        assert not graph.views
        assert not any(operator.blocks for operator in graph.operators)
        names = [tensor.name for tensor in graph.tensors]
        self.ids = layout.problem.ids
        self.size = dict(zip(self.ids, layout.problem.size.tolist(), strict=True))
        self.parts = [
            _part(operator, awaited, names)
            for operator, awaited in zip(graph.operators, _awaited(graph), strict=True)
        ]
        self.given = [names[index] for index in graph.inputs]
        self.wanted = [names[index] for index in graph.outputs]
        self.uses = dict.fromkeys(self.ids, 0) | dict.fromkeys(self.wanted, 1)
        for part in self.parts:
            for name in part.reads:
                self.uses[name] += 1
        self.right = {name: self.value(name, ()) for name in self.given}
        for part in self.parts:
            inputs = [self.right[name] for name in part.reads]
            self.right |= {name: self.value(name, inputs) for name in part.writes}

    def value(self, name: str, inputs: Iterable[bytes]) -> bytes:
        """Return what an operator that read these writes there: one wrong bit changes it all."""
        return hashlib.shake_128(name.encode() + b"".join(inputs)).digest(self.size[name])

    def run(self, offsets: Sequence[int], pace: Pace) -> list[str]:
        """Run it in one arena, and return what was wrong, a sentence each.

        Parameters
        ----------
        offsets
            By row of the layout's problem, in bytes.
        pace
            When threads wait beyond what they must.
        """
        run = _Run(self, offsets, pace)
        streams = {part.stream for part in self.parts}
        threads = [Thread(target=run.play, args=(s,), daemon=True) for s in sorted(streams)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_PATIENCE)
        assert all(event.is_set() for event in run.done)
        for name in self.wanted:
            run.check(name, "after the program")
        return run.wrong


class _Run:
    """One run: its memory, the operators that are done, and what was found."""

    def __init__(self, program: Rehearsal, offsets: Sequence[int], pace: Pace) -> None:
        self._program, self._pace = program, pace
        bounds = {
            name: slice(offset, offset + program.size[name])
            for name, offset in zip(program.ids, map(int, offsets), strict=True)
        }
        top = max(part.stop for part in bounds.values())
        arena = np.full(top, _POISON, dtype=np.uint8)
        self._memory = {name: arena[part] for name, part in bounds.items()}
        self._uses = dict(program.uses)
        self._lock = Lock()
        self.done = [Event() for _ in program.parts]
        self.wrong: list[str] = []
        for name in program.given:
            self._write(name, ())
        for name in program.given:
            self.check(name, "before the program")
        self._let_go(name for name in program.given if not program.uses[name])

    def play(self, stream: int) -> None:
        """Run the operators of one stream."""
        for number, part in enumerate(self._program.parts):
            if part.stream != stream:
                continue
            for other in part.awaited:
                if not self.done[other].wait(_PATIENCE):
                    raise TimeoutError(f"{part.name} waits in vain")
            with self._pace(number, BEGIN):
                self._begin(part)
            with self._pace(number, END):
                self._end(part)
            self.done[number].set()

    def _begin(self, part: _Part) -> None:
        for name in part.reads:
            self.check(name, f"when {part.name} begins")
        inputs = [self._memory[name].tobytes() for name in part.reads]
        for name in part.writes:
            self._write(name, inputs)

    def _end(self, part: _Part) -> None:
        for name in (*part.reads, *part.writes):
            self.check(name, f"when {part.name} ends")
        with self._lock:
            for name in part.reads:
                self._uses[name] -= 1
            over = [name for name in (*part.reads, *part.writes) if not self._uses[name]]
        self._let_go(over)  # before an operator that waits for this one goes on

    def _write(self, name: str, inputs: Iterable[bytes]) -> None:
        value = self._program.value(name, inputs)
        self._memory[name][:] = np.frombuffer(value, dtype=np.uint8)

    def _let_go(self, names: Iterable[str]) -> None:
        for name in names:
            self._memory[name][:] = _POISON

    def check(self, name: str, when: str) -> None:
        """Note if a storage does not hold what it should."""
        if self._memory[name].tobytes() != self._program.right[name]:
            self.wrong.append(f"{name} is wrong {when}")


def _part(operator: Operator, awaited: frozenset[int], names: Sequence[str]) -> _Part:
    workspace = (f"{operator.name} (workspace)",) if operator.workspace else ()
    return _Part(
        operator.name,
        operator.stream,
        awaited,
        tuple(names[index] for index in dict.fromkeys(operator.inputs)),
        (*(names[index] for index in operator.outputs), *workspace),
    )


def _awaited(graph: Graph) -> list[frozenset[int]]:
    """Return by operator what it waits for: the makers of its inputs, and the one before it."""
    maker = {index: at for at, op in enumerate(graph.operators) for index in op.outputs}
    last: dict[int, int] = {}
    found = []
    for number, operator in enumerate(graph.operators):
        before = {last[operator.stream]} if operator.stream in last else set()
        found.append(frozenset(before | {maker[i] for i in operator.inputs if i in maker}))
        last[operator.stream] = number
    return found


def enlarged(graph: Graph, times: int) -> Graph:
    """Return a program with larger tensors: no two values share all bytes of an overlap."""
    return replace(
        graph,
        tensors=tuple(replace(t, bytes=t.bytes * times) for t in graph.tensors),
        operators=tuple(replace(op, workspace=op.workspace * times) for op in graph.operators),
    )

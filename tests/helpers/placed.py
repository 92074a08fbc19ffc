"""Runs the programs of an answer on bytes, wherever its parts say that they lie.

An address is that of a byte in one place: the arena, a block, a memory. Programs run whole, in an
order of chance; what is kept has to be there whatever ran since. Operators of several streams run
in an order of chance too, as far as they do not wait. Buffers that move are copied where their
stretches begin and end. So this knows nothing of how an answer was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

from machine import ClobberedError, Machine

import memplan as mp
from memplan.levers.rewrite.stored import put_in_order
from memplan.problem import Problem
from memplan.programs.graph import Graph, Layout, Operator
from memplan.programs.sources import Loaded, lay_out_again, of_graph

__all__ = ["ClobberedError", "change_as", "compute", "run_answer"]

_SPACE = 1 << 40  # between two places


def compute(graph: Graph) -> dict[str, object]:
    """Return what a program computes, as terms; what runs again is the same operator."""
    terms: dict[int, object] = {each: graph.tensors[each].name for each in graph.inputs}
    for operator in graph.operators:
        read = tuple(terms[each] for each in operator.inputs if graph.tensors[each].bytes)
        name = operator.name.split(" (again")[0]
        for at, made in enumerate(operator.outputs):
            terms[made] = (name, at, read)
    return {graph.tensors[each].name: terms[each] for each in graph.outputs}


def change_as(given: Loaded, steps: Sequence[mp.Step]) -> Loaded:
    """Return a program as the steps of an answer changed it; it computes the same."""
    found = given
    for step in steps:
        if not step.taken:
            continue
        if step.lever == "order":
            graph = given.graph
            assert graph is not None
            operators = tuple(graph.operators[at] for at in step.change.order)
            found = of_graph(replace(graph, operators=operators))
        elif step.lever == "again":
            found = put_in_order(given, step.change.runs)
        elif step.lever == "in place":
            found = lay_out_again(found, in_place=True)
        else:
            found = step.change.loaded
    assert given.graph is not None
    assert found.graph is not None
    assert compute(found.graph) == compute(given.graph)
    return found


class PlacedMachine(Machine):
    """Runs one program in places that others share."""

    def __init__(
        self,
        layout: Layout,
        addresses: list[int],
        memory: dict[int, int],
        random: Random,
        stretches: Sequence[tuple[int, int, int, int, bool, bool]] = (),
    ) -> None:
        super().__init__(layout, addresses, lambda low, high: random.randint(low, high), memory)
        self.random = random
        self.layout = layout
        self.home = dict(zip(layout.rows, addresses, strict=True))
        self.stretches = stretches  # storage, address of the piece, start, end, fetched, stored
        self.touched: dict[int, int] = {}  # by place: the bytes that were read
        self.wrote: dict[int, int] = {}

    def run(self) -> None:
        """Run the whole program once."""
        self.move(0)
        self._write(self.graph.inputs)
        for tensor in self.graph.inputs:
            self.count(self.wrote, tensor)
        if len({operator.stream for operator in self.graph.operators}) > 1:
            self.run_streams()
        else:
            spans = self.layout.lives.spans
            for operator, (begin, _) in zip(self.graph.operators, spans, strict=True):
                self.move(begin)
                self.begin(operator)
                self.end(operator)
        for tensor in self.graph.outputs:  # the caller takes results in the last step
            self.count(self.touched, tensor)
        self._read(self.graph.outputs)
        self.move(None)

    def count(self, side: dict[int, int], tensor: int) -> None:
        """Note that the bytes of a tensor were touched where it is now."""
        lower, upper = self._bytes(tensor)
        if upper > lower:
            side[lower // _SPACE] = side.get(lower // _SPACE, 0) + upper - lower

    def begin(self, operator: Operator) -> None:
        """Let an operator read, and write its results."""
        self._read(operator.inputs)
        for tensor in dict.fromkeys(operator.inputs):
            self.count(self.touched, tensor)
        self._write(operator.outputs)
        for tensor in operator.outputs:
            self.count(self.wrote, tensor)

    def end(self, operator: Operator) -> None:
        """Let it read until its end, but what it wrote over."""
        self._read(operator.outputs)
        self._read(i for i in operator.inputs if not self._went_over(operator, i))

    def run_streams(self) -> None:
        """Begin and end operators in an order of chance that their streams and inputs allow."""
        operators = self.graph.operators
        maker = {made: at for at, each in enumerate(operators) for made in each.outputs}
        awaits = [
            {maker[each] for each in operator.inputs if each in maker}
            | {other for other in range(at) if operators[other].stream == operator.stream}
            for at, operator in enumerate(operators)
        ]
        begun: set[int] = set()
        over: set[int] = set()
        while len(over) < len(operators):
            ready = [at for at, arcs in enumerate(awaits) if at not in begun and arcs <= over]
            at = self.random.choice([*ready, *(begun - over)])
            if at in begun:
                self.end(operators[at])
                over.add(at)
            else:
                self.begin(operators[at])
                begun.add(at)

    def move(self, time: int | None) -> None:
        """Copy what moves before a time; all that is left at the end."""
        for row, piece, _, end, _, stored in self.stretches:
            home, size = self.home[row], self.layout.storages[row].bytes
            is_there = self.place_of(row) == piece
            if is_there and (time is None or time >= end):
                if stored:
                    self.copy(piece, home, size)
                self.put(row, home)
        for row, piece, start, end, fetched, _ in self.stretches:
            home, size = self.home[row], self.layout.storages[row].bytes
            if time is not None and start <= time < end and self.place_of(row) != piece:
                if fetched:
                    self.copy(home, piece, size)
                self.put(row, piece)

    def place_of(self, row: int) -> int:
        """Return where a storage is now."""
        storage = self.layout.storages[row]
        return self._place[storage.tensors[0]] - storage.offsets[0]

    def put(self, row: int, address: int) -> None:
        """Let a storage be elsewhere."""
        storage = self.layout.storages[row]
        for tensor, inside in zip(storage.tensors, storage.offsets, strict=True):
            self._place[tensor] = address + inside

    def copy(self, source: int, target: int, size: int) -> None:
        """Copy bytes, which counts as reading and writing them."""
        for at in range(size):
            self._memory[target + at] = self._memory.get(source + at, -1)
        for side, place in ((self.touched, source), (self.wrote, target)):
            side[place // _SPACE] = side.get(place // _SPACE, 0) + size


def run_answer(
    answer: mp.Answer,
    programs: Mapping[str, Loaded],
    random: Random,
    *,
    kept: Mapping[str, Sequence[str]] | None = None,
    costs: Mapping[str, tuple[int, int]] | None = None,
    often: Mapping[str, int] | None = None,
    runs: int = 6,
) -> Fraction:
    """Run the programs of an answer in places that they share; return what all accesses cost.

    Parameters
    ----------
    answer
        Its parts say where buffers lie, and its claims what moves.
    programs
        By name, as the levers left them, at the sizes of this run.
    kept
        By name of a program: the tensors that have to be there until it runs again.
    costs
        By place: what a byte costs that is read, and written.
    often
        How often each program runs while the others run once.
    runs
        How many programs run, in an order of chance.
    """
    places = {name: at for at, name in enumerate(dict.fromkeys(each.place for each in answer))}
    memory: dict[int, int] = {}
    machines = {
        name: _make_machine(answer, name, loaded, places, memory, random)
        for name, loaded in programs.items()
    }
    last: list[str] = []
    for _ in range(runs if len(machines) > 1 else 2):
        name = random.choice([*machines])
        machines[name].run()
        last.append(name)
        for other in {*last}:
            graph = machines[other].graph
            here = [i for i, t in enumerate(graph.tensors) if t.name in (kept or {}).get(other, ())]
            machines[other]._read(here)
    called = {at: name for name, at in places.items()}
    total = Fraction(0)
    for name, machine in machines.items():
        machine.touched.clear()
        machine.wrote.clear()
        machine.run()
        for at, side in ((0, machine.touched), (1, machine.wrote)):
            for place, bytes in side.items():
                home = called[place].split("/")[0]
                total += bytes * (often or {}).get(name, 1) * (costs or {}).get(home, (0, 0))[at]
    return total


def _make_machine(
    answer: mp.Answer,
    name: str,
    loaded: Loaded,
    places: Mapping[str, int],
    memory: dict[int, int],
    random: Random,
) -> PlacedMachine:
    layout = loaded.layout
    assert layout is not None
    where: dict[str, int] = {}
    for part in answer:
        if part.program in ("", name):
            base = places[part.place] * _SPACE
            where |= {id: base + part.plan.offset(id) for id in part.plan.ids}
    found = [each for each in answer.claims if isinstance(each, mp.Assigned)]
    stretches = []
    for each in found[0].stretches if found else ():
        owner, slash, id = each.buffer.rpartition("/")
        if slash and owner != name:
            continue
        shift = _find_shift(found[0].problem, layout.problem, f"{name}/" if slash else "")
        row = layout.rows[layout.problem.ids.index(id)]
        piece = where[each.copy.removeprefix(f"{name}/") if slash else each.copy]
        times = (each.start - shift, each.end - shift)
        stretches.append((row, piece, *times, each.fetched, each.stored))
    addresses = [where[id] for id in layout.problem.ids]
    return PlacedMachine(layout, addresses, memory, random, stretches)


def _find_shift(joint: Problem, own: Problem, begin: str) -> int:
    """Return by how much a program was moved in time; what is kept begins elsewhere."""
    starts = {
        int(joint.end[joint.index(f"{begin}{id}")]) - int(own.end[row])
        for row, id in enumerate(own.ids)
        if int(joint.end[joint.index(f"{begin}{id}")])
        - int(joint.start[joint.index(f"{begin}{id}")])
        == int(own.end[row]) - int(own.start[row])
    }
    return min(starts, default=0)

"""Tests of when copies of buffers that move begin and end, by running them."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from rounds import rounds

import memplan as mp
from memplan.machine.memories import assign
from memplan.machine.memories.copies import Copy, list_copies
from memplan.problem.plan import Plan, Status
from memplan.referee import verify_assigned

FAST, SLOW = mp.Memory("fast", 20, 0, 0), mp.Memory("slow")


class Byte(NamedTuple):
    """What a byte of a memory holds; a byte that a copy has not brought yet belongs to it."""

    of: object
    version: int


def draw_case(rng: random.Random) -> tuple[mp.Problem, dict[str, list[tuple[int, int, int]]]]:
    """Return buffers with their accesses, each at a few of the times at which it lives."""
    buffers, accesses = [], {}
    for row in range(rng.randint(2, 9)):
        start = rng.randrange(8)
        end = start + rng.randint(1, 9)
        buffers.append(mp.Buffer(str(row), start, end, rng.randint(1, 12)))
        times = sorted(rng.sample(range(start, end), min(end - start, rng.randint(1, 5))))
        each = [(time, rng.randint(0, 3), rng.randint(0, 1)) for time in times]
        accesses[str(row)] = [one for one in each if one[1] or one[2]]
    return mp.Problem(buffers), accesses


class Machine:
    """Runs all steps, with each copy as early or as late as it may be."""

    def __init__(self, found: mp.Assigned, is_late: bool) -> None:
        self.found, self.is_late = found, is_late
        self.bytes = {memory.name: [Byte(None, 0)] * 200 for memory in found.memories}
        self.versions = dict.fromkeys(found.problem.ids, 0)
        self.flights: dict[Copy, list[Byte]] = {}

    def place_of(self, id: str, of: str) -> tuple[str, slice]:
        """Return where a buffer, or a piece of one, lies."""
        memory = self.found.memory_of(id)
        (plan,) = (each for each in self.found.plans if id in each.ids)
        offset = plan.offset(id)
        size = int(self.found.problem.size[self.found.problem.index(of)])
        return memory, slice(offset, offset + size)

    def look(self, place: tuple[str, slice]) -> list[Byte]:
        """Return the bytes of a place."""
        return self.bytes[place[0]][place[1]]

    def fill(self, place: tuple[str, slice], byte: Byte) -> None:
        """Give all bytes of a place the same content."""
        where = place[1]
        self.bytes[place[0]][where] = [byte] * (where.stop - where.start)

    def expect(self, place: tuple[str, slice], byte: Byte) -> None:
        """Check that all bytes of a place are these."""
        assert set(self.look(place)) == {byte}

    def ends_of(self, copy: Copy) -> tuple[tuple[str, slice], tuple[str, slice]]:
        """Return from where a copy comes, and where it goes."""
        of = copy.stretch.buffer
        home, piece = self.place_of(of, of), self.place_of(copy.stretch.copy, of)
        return (piece, home) if copy.stores else (home, piece)

    def begin(self, copy: Copy) -> None:
        """Let a copy begin; its place belongs to it from now on."""
        source, place = self.ends_of(copy)
        self.flights[copy] = seen = list(self.look(source))
        if self.is_late:
            self.fill(place, Byte(copy, 0))
        else:
            self.bytes[place[0]][place[1]] = seen

    def end(self, copy: Copy) -> None:
        """Let a copy end: neither its source nor its place has changed."""
        source, place = self.ends_of(copy)
        seen = self.flights.pop(copy)
        assert self.look(source) == seen
        assert self.look(place) == ([Byte(copy, 0)] * len(seen) if self.is_late else seen)
        self.bytes[place[0]][place[1]] = seen

    def move(self, copies: list[Copy], step: int) -> None:
        """Begin and end copies of one kind before a step."""
        for each in (each for each in copies if each.start == step):
            self.begin(each)
        for each in (each for each in copies if each.done == step):
            self.end(each)

    def access(self, id: str, time: int, is_read: bool, is_written: bool) -> None:
        """Read and write a buffer where it is at a step."""
        where = self.place_of(id, id)
        for each in self.found.stretches:
            if each.buffer == id and each.start <= time < each.end:
                where = self.place_of(each.copy, id)
        start = int(self.found.problem.start[self.found.problem.index(id)])
        if is_read and not (is_written and time == start):
            self.expect(where, Byte(id, self.versions[id]))
        if is_written:
            self.versions[id] += 1
            self.fill(where, Byte(id, self.versions[id]))

    def run(self, accesses: dict[str, list[tuple[int, int, int]]]) -> None:
        """Run all."""
        copies, problem = list_copies(self.found), self.found.problem
        stores = [each for each in copies if each.stores]
        fetches = [each for each in copies if not each.stores]
        for step in range(int(problem.end.max())):
            self.move(stores, step)
            for buffer in problem.buffers:
                is_first = buffer.start == step
                is_new = any(time == step and writes for time, _, writes in accesses[buffer.id])
                if is_first and not is_new:  # it has its bytes from before
                    self.fill(self.place_of(buffer.id, buffer.id), Byte(buffer.id, 0))
            self.move(fetches, step)
            for id, own in accesses.items():
                for time, reads, writes in own:
                    if time == step:
                        self.access(id, time, reads > 0, writes > 0)
        assert not self.flights


@pytest.mark.parametrize("seed", range(rounds(2, 100)))
def test_copies_touch_nothing_that_others_hold(seed: int) -> None:
    """Tests random accesses: each finds the newest bytes, however early or late copies are."""
    rng = random.Random(seed)
    for _ in range(rounds(40, 200)):
        problem, accesses = draw_case(rng)
        found = assign(problem, [FAST, SLOW], accesses, residency=True)
        for is_late in (False, True):
            Machine(found, is_late).run(accesses)


def test_a_copy_hides_behind_an_operator() -> None:
    """Tests a place that is free before a fetch and after a store, and one that is never free."""
    accesses = {
        "x": [(0, 0, 1), (1, 3, 0), (8, 3, 0)],
        "y": [(3, 0, 1), (5, 3, 0)],
    }
    for start, end, times in ((3, 6, {(2, 3), (6, 8)}), (2, 8, {(2, 2), (8, 8)})):
        own = {**accesses, "y": [(start, 0, 1), (end - 1, 3, 0)]}
        problem = mp.Problem([mp.Buffer("x", 0, 9, 20), mp.Buffer("y", start, end, 20)])
        found = assign(problem, [FAST, SLOW], own, residency=True)
        assert {(each.start, each.done) for each in list_copies(found)} == times


@pytest.mark.parametrize(
    ("accesses", "pieces", "times"),
    [
        ([(0, 0, 1), (5, 2, 0)], [(5, 6, True, False)], {(1, 5)}),  # written at home before
        ([(0, 0, 1), (4, 1, 0)], [(0, 1, False, True)], {(1, 4)}),  # read at home after it
        (
            [(0, 0, 1), (1, 2, 0), (5, 1, 0), (6, 1, 0)],
            [(0, 2, False, True), (5, 7, True, False)],
            {(2, 4), (4, 5)},  # the one after the other
        ),
        ([(0, 0, 1), (1, 1, 0)], [(0, 2, False, True)], {(2, 8)}),  # needed at home at its end
    ],
)
def test_a_copy_waits_for_its_source(
    accesses: list[tuple[int, int, int]],
    pieces: list[tuple[int, int, bool, bool]],
    times: set[tuple[int, int]],
) -> None:
    """Tests stretches whose places are free all the time, so that only the home limits copies."""
    stretches = tuple(
        mp.Stretch("x", f"x@{number}", "fast", start, end, fetched=fetched, stored=stored)
        for number, (start, end, fetched, stored) in enumerate(pieces)
    )
    problem = mp.Problem([mp.Buffer("x", 0, 9, 4)])
    parts = mp.Problem([mp.Buffer(each.copy, each.start, each.end, 4) for each in stretches])
    plans = Plan.of(parts, [8 * at for at in range(len(pieces))]), Plan.of(problem, [0])
    steps = {"x": [(time, 4 * reads, 4 * writes) for time, reads, writes in accesses]}
    total = {"x": (sum(each[1] for each in steps["x"]), sum(each[2] for each in steps["x"]))}
    traffic = verify_assigned(problem, (FAST, SLOW), plans, {}, total, (), stretches, steps)
    found = mp.Assigned(
        (FAST, SLOW), plans, traffic, 0, Status.FEASIBLE, problem, None, total, stretches, steps
    )
    assert {(each.start, each.done) for each in list_copies(found)} == times
    for is_late in (False, True):
        Machine(found, is_late).run({"x": accesses})

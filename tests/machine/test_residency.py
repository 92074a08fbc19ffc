"""Tests of buffers that move between memories, against every way to move them and the referee."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import oracle
import pytest
from rounds import rounds

import memplan as mp
from memplan.machine.memories import Stretch, assign
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import of_graph
from memplan.referee import verify_assigned
from memplan.referee.moves import count_moved

FAST = mp.Memory("sram", 10, 0, 0)
SLOW = mp.Memory("psram", None, 1, 1)


Accesses = dict[str, list[tuple[int, int, float]]]  # by id: when, and how often all bytes


class Way(NamedTuple):
    """Where a buffer is: its cost, and what it holds in each memory with a limit, as spans."""

    cost: int
    held: tuple[tuple[int, int, int], ...]  # memory, start, end


def draw_memories(rng: random.Random) -> list[mp.Memory]:
    """Return memories, at times without an order: one is faster to read, another to write."""
    if rng.random() < 0.5:
        memories = [mp.Memory("a", rng.randint(2, 8), *sorted(rng.choices(range(3), k=2)))]
        if rng.random() < 0.4:
            memories.append(mp.Memory("b", rng.randint(2, 8), 3, 3))
        return [*memories, mp.Memory("c", None, rng.randint(3, 6), rng.randint(3, 6))]
    count = rng.randint(2, 3)
    costs = sorted((rng.randint(0, 3), rng.randint(0, 3)) for _ in range(count))
    costs = sorted(costs, key=sum)  # no memory costs more in both ways than one after it
    limits = [rng.choice((1, 2, 4, 6, 9, None)) for _ in costs]
    limits[rng.randrange(count)] = None
    return [
        mp.Memory(name, limit, *both)
        for name, limit, both in zip("abc", limits, costs, strict=False)
    ]


def draw_case(
    rng: random.Random,
) -> tuple[mp.Problem, list[mp.Memory], Accesses]:
    """Return up to four buffers with their accesses, and two or three memories.

    Some accesses write a half of the bytes.
    """
    memories = draw_memories(rng)
    buffers = []
    accesses: Accesses = {}
    for row in range(rng.randint(1, 4)):
        start = rng.randrange(4)
        end = start + rng.randint(1, 5)
        unit = rng.choice((1, 1, 2))
        buffers.append(mp.Buffer(str(row), start, end, rng.randint(1, 5), unit))
        times = sorted(rng.sample(range(start, end), min(end - start, rng.randint(1, 3))))
        each = [(time, rng.randint(0, 2), rng.choice((0, 0, 1, 0.5))) for time in times]
        accesses[str(row)] = [one for one in each if one[1] or one[2]]
    reserved = [(0, 1)] if rng.random() < 0.2 else []
    return mp.Problem(buffers, reserved=reserved), memories, accesses


def list_ways(
    buffer: mp.Buffer,
    memories: list[mp.Memory],
    roomy: set[int],
    accesses: list[tuple[int, int, float]],
) -> list[Way]:
    """Return every way to keep or move a buffer, with the cost of each by the definition.

    Its home, if it moves, is one of the `roomy` memories, with room for all that fits.
    """
    ways, costs = [], {}
    for number, memory in enumerate(memories):
        if memory.capacity is None or buffer.size <= memory.capacity:
            costs[number] = sum(
                buffer.size * reads * memory.read + count_bytes(buffer, writes) * memory.write
                for _, reads, writes in accesses
            )
            held = () if number in roomy else ((number, buffer.start, buffer.end),)
            ways.append(Way(costs[number], held))
    for home in roomy & costs.keys():
        runs = [
            (number, first, last)
            for number in costs
            if number != home
            for first in range(len(accesses))
            for last in range(first, len(accesses))
        ]
        for count in range(1, len(accesses) + 1):
            for some in combinations(runs, count):
                chosen = sorted(some, key=lambda run: run[1])
                if all(one[2] < two[1] for one, two in pairwise(chosen)):
                    ways += run_all(buffer, memories, memories[home], accesses, chosen)
    return ways


def count_bytes(buffer: mp.Buffer, times: float) -> int:
    """Return how many bytes are touched; halves are rounded up."""
    return math.floor(buffer.size * times + 0.5)


def run_all(
    buffer: mp.Buffer,
    memories: list[mp.Memory],
    home: mp.Memory,
    accesses: list[tuple[int, int, float]],
    chosen: list[tuple[int, int, int]],
) -> list[Way]:
    """Return the way that some runs are, with each choice of copies that gives right bytes."""
    size, found = buffer.size, []
    is_new = bool(accesses) and accesses[0][0] == buffer.start and accesses[0][2] > 0
    for copies in product((False, True), repeat=2 * len(chosen)):
        version = 0  # of the newest bytes; a place that has them has their number
        at_home, cost, is_right, copy = (None if is_new else 0), 0, True, None
        for at, (_, reads, writes) in enumerate(accesses):
            run = next((n for n, each in enumerate(chosen) if each[1] <= at <= each[2]), None)
            place = home if run is None else memories[chosen[run][0]]
            if run is not None and chosen[run][1] == at:
                copy = None
                if copies[2 * run]:
                    is_right &= at_home == version
                    copy, cost = at_home, cost + size * (home.read + place.write)
            there = at_home if run is None else copy
            is_first = at == 0 and is_new
            if reads and not is_first:
                is_right &= there == version
            cost += size * reads * place.read + count_bytes(buffer, writes) * place.write
            if writes:  # of a part, what is not written has to be there
                is_whole = is_first or there == version or count_bytes(buffer, writes) == size
                version += 1
                if run is None:
                    at_home = version if is_whole else None
                else:
                    copy = version if is_whole else None
            if run is not None and chosen[run][2] == at and copies[2 * run + 1]:
                is_right &= copy == version
                at_home, cost = copy, cost + size * (place.read + home.write)
        if accesses and accesses[-1][0] + 1 < buffer.end:
            is_right &= at_home == version
        if is_right:
            spans = ((run[0], accesses[run[1]][0], accesses[run[2]][0] + 1) for run in chosen)
            found.append(Way(cost, tuple(spans)))
    return found[:1] if not found else [min(found)]


def find_least(problem: mp.Problem, memories: list[mp.Memory], accesses: Accesses) -> int:
    """Return what the best way costs, by trying all."""
    buffers = list(problem.buffers)

    @cache
    def is_fitting(number: int, pieces: tuple[tuple[int, int, int], ...]) -> bool:
        rows = [
            replace(buffers[row], id=str(at), start=start, end=end)
            for at, (row, start, end) in enumerate(pieces)
        ]
        part = mp.Problem(rows, reserved=problem.reserved)
        return oracle.fit(part, memories[number].capacity or 0) is not None

    def is_roomy(number: int) -> bool:
        most = memories[number].capacity
        whole = tuple(
            (row, each.start, each.end)
            for row, each in enumerate(buffers)
            if most is not None and each.size <= most
        )
        return most is None or is_fitting(number, whole)

    roomy = set(filter(is_roomy, range(len(memories))))
    ways = [list_ways(each, memories, roomy, accesses[each.id]) for each in buffers]
    for cost, picked in sorted(
        (sum(way.cost for way in picked), picked) for picked in product(*ways)
    ):
        held = [(m, row, a, b) for row, way in enumerate(picked) for m, a, b in way.held]
        if all(
            is_fitting(number, tuple(each[1:] for each in held if each[0] == number))
            for number in set(range(len(memories))) - roomy
        ):
            return cost
    raise AssertionError("everything fits into the last memory")


@pytest.mark.parametrize("seed", range(rounds(2, 200)))
def test_what_moves_is_that_of_brute_force(seed: int) -> None:
    """Tests traffic, bound and status; the referee has checked that accesses find their bytes."""
    rng = random.Random(seed)
    for _ in range(rounds(30, 100)):
        problem, memories, accesses = draw_case(rng)
        best = find_least(problem, memories, accesses)
        found = assign(problem, memories, accesses, residency=True)
        assert (found.traffic, found.bound, str(found.status)) == (best, best, "optimal")
        still = assign(problem, memories, accesses)
        if still.traffic == found.traffic:
            assert found.stretches == ()
        for each in found.stretches:
            own = problem.buffer(each.buffer)
            is_home = (each.start, each.end) == (own.start, own.end)
            assert not is_home or each.fetched or each.stored


def test_a_buffer_leaves_between_its_accesses() -> None:
    """Tests a buffer that makes room for another one, and comes back for its last read."""
    problem = mp.Problem([mp.Buffer("x", 0, 9, 10), mp.Buffer("y", 2, 7, 10)])
    accesses = {"x": [(0, 0, 1), (1, 2, 0), (7, 1, 0), (8, 2, 0)], "y": [(2, 0, 1), (6, 3, 0)]}
    still = assign(problem, [FAST, SLOW], accesses)
    found = assign(problem, [FAST, SLOW], accesses, residency=True)
    assert (still.traffic, still.stretches) == (40, ())
    assert (found.traffic, found.bound) == (20, 20)
    assert found.memory_of("x") == "psram"
    assert found.stretches == (
        Stretch("x", "x@1", "sram", 0, 2, fetched=False, stored=True),
        Stretch("x", "x@3", "sram", 7, 9, fetched=True, stored=False),
    )
    assert set(found.plans[0].ids) == {"y", "x@1", "x@3"}


def test_each_memory_may_be_the_home() -> None:
    """Tests two memories of which one is faster to read, and the other to write."""
    problem = mp.Problem([mp.Buffer("x", 5, 7, 2)])
    memories = [mp.Memory("m0", 9, 0, 1), mp.Memory("m1", read=2, write=0)]
    found = assign(problem, memories, {"x": [(5, 1, 1), (6, 0, 1)]}, residency=True)
    assert (found.traffic, found.bound, len(found.stretches)) == (2, 2, 1)


@pytest.mark.parametrize(
    ("later", "traffic", "is_fetched"),
    [
        ([(3, 0, 0.5), (5, 0, 1), (6, 4, 0)], 0, False),  # what was there before is never read
        ([(3, 0, 0.5), (5, 0, 0.5), (6, 4, 0)], 10, True),
    ],
)
def test_a_part_is_written_first(
    later: list[tuple[int, int, float]], traffic: int, is_fetched: bool
) -> None:
    """Tests runs that begin with half of the bytes: the others are fetched if they are read."""
    problem = mp.Problem([mp.Buffer("x", 0, 7, 10), mp.Buffer("y", 0, 3, 10)])
    accesses: Accesses = {"x": later, "y": [(0, 20, 0)]}
    found = assign(problem, [FAST, SLOW], accesses, residency=True)
    assert (found.traffic, found.bound) == (traffic, traffic)
    assert any(each.fetched for each in found.stretches) is is_fetched


def test_what_may_stay_stays() -> None:
    """Tests a buffer without bytes before its first write: the fast memory is its home."""
    problem = mp.Problem([mp.Buffer("x", 0, 9, 4), mp.Buffer("y", 0, 3, 10)])
    accesses = {"x": [(4, 0, 1), (8, 1, 0)], "y": [(0, 0, 1), (2, 1, 0)]}
    for room, stretches in ((16, 0), (13, 1)):
        fast = replace(FAST, capacity=room)
        found = assign(problem, [fast, SLOW], accesses, residency=True)
        assert (found.traffic, len(found.stretches)) == (0, stretches)
        assert found.memory_of("x") == ("psram" if stretches else "sram")


def test_a_program_says_when_it_reads_and_writes() -> None:
    """Tests a graph: its long connection moves out and back, and nothing else has to."""
    names = ("in", "skip", "b", "c", "out")
    kinds = (Kind.INPUT, Kind.INTERMEDIATE, Kind.INTERMEDIATE, Kind.INTERMEDIATE, Kind.OUTPUT)
    tensors = tuple(Tensor(name, 100, kind) for name, kind in zip(names, kinds, strict=True))
    graph = Graph(
        "net",
        tensors,
        (
            Operator("first", "RELU", (0,), (1,)),
            Operator("second", "RELU", (1,), (2,)),
            Operator("third", "RELU", (2,), (3,)),
            Operator("add", "ADD", (3, 1), (4,)),
        ),
        (0,),
        (4,),
    )
    memories = [replace(FAST, capacity=200), SLOW]
    still = assign(of_graph(graph), memories)
    found = assign(of_graph(graph), memories, residency=True)
    assert found.traffic <= still.traffic
    assert found.bound <= found.traffic
    assert set(found.accessed) == set(names)


def test_what_cannot_move_stays() -> None:
    """Tests that groups, gaps and listed conflicts stay, and names what is missing."""
    rows = [mp.Buffer("x", 0, 9, 10), mp.Buffer("y", 2, 7, 10)]
    accesses = {"x": [(0, 0, 1), (1, 2, 0), (8, 2, 0)], "y": [(2, 0, 1), (6, 3, 0)]}
    for problem in (
        mp.Problem(rows, conflicts=["xy"]),
        mp.Problem([replace(rows[0], gaps=(mp.Gap(3, 5),)), rows[1]]),
    ):
        assert assign(problem, [FAST, SLOW], accesses, residency=True).stretches == ()
    two = mp.Problem(rows)
    for wrong, options, words in (
        ({"x": (1, 1)}, {}, "its accesses need times"),
        ({"x": [(9, 1, 0)]}, {}, "cannot be accessed at 9: .* from 0 to 8"),
        ({"x": [(1, 1, 0), (1, 0, 1)]}, {}, "cannot be accessed at 1"),
        ({"x": [(1.5, 1, 0)]}, {}, "cannot be accessed at 1.5: .* from 0 to 8"),
        (accesses, {"apart": [("x", "y")]}, "buffers that are apart cannot move"),
    ):
        with pytest.raises(mp.MemplanError, match=words):
            assign(two, [FAST, SLOW], wrong, residency=True, **options)  # type: ignore[arg-type]


def test_the_referee_follows_the_bytes() -> None:
    """Tests stretches that are changed by hand: each access must find its bytes."""
    problem = mp.Problem([mp.Buffer("x", 0, 9, 10), mp.Buffer("y", 2, 7, 10)])
    steps = {"x": [(0, 0, 10), (1, 20, 0), (7, 10, 0), (8, 20, 0)], "y": [(2, 0, 10), (6, 30, 0)]}
    accesses = {id: [(t, r // 10, w // 10) for t, r, w in each] for id, each in steps.items()}
    found = assign(problem, [FAST, SLOW], accesses, residency=True)
    first, second = found.stretches

    def check(stretches: list[Stretch], **options: Any) -> int:
        given: dict[str, Any] = {"allowed": {}, "accessed": found.accessed, "steps": steps}
        return verify_assigned(
            problem, found.memories, found.plans, stretches=stretches, **(given | options)
        )

    assert check([first, second]) == found.traffic
    for stretches, options, words in (
        ([first], {}, '"x@3" is in .*plan but not in the problem|"x@3"'),
        ([replace(first, stored=False), second], {}, "copied from its home, which has not"),
        ([first, replace(second, fetched=False)], {}, 'in "sram", which has not its bytes'),
        ([replace(first, fetched=True), second], {}, "copied from its home, which has not"),
        ([first, replace(second, start=1)], {}, "moves at 1, which is not after 2"),
        ([first, replace(second, memory="psram")], {}, "sram: |which is its home"),
        ([first, second], {"allowed": {"x": ["psram"]}}, "may not lie"),
        ([first, second], {"steps": {}}, "have no times"),
        ([first, second], {"accessed": {"x": (0, 0), "y": (30, 10)}}, "not those of its times"),
    ):
        with pytest.raises(mp.PlanError, match=words):
            check(stretches, **options)


def run_bytes(
    buffer: mp.Buffer, accesses: list[tuple[int, int, int]], stretches: list[Stretch]
) -> bool:
    """Return whether each access finds the newest of every byte; a part is always the first bytes.

    A byte is the number of its last write.
    """
    is_new = bool(accesses) and accesses[0][0] == buffer.start and accesses[0][2] > 0
    newest: list[int] = [0] * buffer.size
    home: list[int | None] = [None if is_new else 0] * buffer.size
    piece: list[int | None] = []
    by_time = {time: (read, written) for time, read, written in accesses}
    for time in range(buffer.start, buffer.end + 1):
        for each in stretches:
            if each.end == time and each.stored:
                if piece != newest:
                    return False
                home = list(piece)
        for each in stretches:
            if each.start == time:
                piece = list(home) if each.fetched else [None] * buffer.size
                if each.fetched and home != newest:
                    return False
        if time not in by_time:
            continue
        read, written = by_time[time]
        is_first = is_new and time == accesses[0][0]
        place = piece if any(each.start <= time < each.end for each in stretches) else home
        if read and not is_first and place != newest:
            return False
        count = buffer.size if is_first else min(written, buffer.size)
        newest[:count] = place[:count] = [time + 1] * count
    return home == newest or (bool(accesses) and accesses[-1][0] + 1 >= buffer.end)


def test_no_bytes_are_lost_that_the_referee_accepts() -> None:
    """Tests random moves and copies, most of which are wrong, byte for byte."""
    accepted = 0
    home, fast = mp.Memory("home", None, 2, 3), mp.Memory("fast", None, 1, 1)
    for seed in range(rounds(1500, 100_000)):
        rng = random.Random(seed)
        start = rng.randrange(3)
        buffer = mp.Buffer("x", start, start + rng.randint(2, 7), rng.randint(2, 4))
        times = range(buffer.start, buffer.end)
        accesses = [
            (time, rng.choice((0, 1, buffer.size)), rng.choice((0, 0, 1, buffer.size)))
            for time in times
            if rng.random() < 0.6
        ]
        accesses = [each for each in accesses if each[1] or each[2]]
        most = (buffer.end - buffer.start + 1) // 2
        ends = sorted(rng.sample(range(buffer.start, buffer.end + 1), 2 * rng.randint(1, most)))
        stretches = [
            Stretch("x", f"x@{at}", "fast", *both, rng.random() < 0.5, rng.random() < 0.5)
            for at, both in enumerate(zip(ends[::2], ends[1::2], strict=True))
        ]
        problem = mp.Problem([buffer])
        try:
            count_moved(problem, [home, fast], {"x": home}, {}, stretches, {"x": accesses})
        except mp.PlanError:
            continue
        accepted += 1
        assert run_bytes(buffer, accesses, stretches), seed
    assert accepted > 300

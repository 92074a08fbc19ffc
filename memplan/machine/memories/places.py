"""The places among which the core chooses: a unit in a memory, at home or for some time.

A unit that moves has a home, a memory with room for all. If one memory is faster than another both
in reading and in writing, the slower one is never the better home of the two. Where neither is, the
home is a choice of its own: each unit with more than one home has a second unit in the core, of
which one item must be chosen, and runs from other homes are refused beside it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from memplan.machine.memories.accesses import Access
from memplan.machine.memories.memory import Memory
from memplan.machine.memories.moves import Run, list_runs, most_saved
from memplan.machine.memories.question import Item, Question

__all__ = ["Places", "list_places"]


@dataclass(slots=True)
class Places:
    """Columns with one row for each place."""

    out: list[int]  # by unit: what it costs if none of its places is chosen
    # What lies where, what it holds there, and what is saved by that.
    unit: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    item: list[Item] = field(default_factory=list)
    worth: list[int] = field(default_factory=list)
    run: list[Run | None] = field(default_factory=list)  # for how long; `None` for a home
    # Which unit of the core: of its places, two never share a moment.
    choice: list[int] = field(default_factory=list)
    # The units of the core of which one place must be chosen.
    must: set[int] = field(default_factory=set)
    # Sets of places that are not chosen together.
    refused: list[list[int]] = field(default_factory=list)
    # By unit and memory: the place that is its home in a memory without room for all.
    homes: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(
        self,
        unit: int,
        memory: int,
        worth: int,
        item: Item,
        run: Run | None = None,
        choice: int | None = None,
    ) -> int:
        """Add a place, and return its number."""
        self.unit.append(unit)
        self.memory.append(memory)
        self.worth.append(worth)
        self.item.append(item)
        self.run.append(run)
        self.choice.append(unit if choice is None else choice)
        return len(self.unit) - 1

    def list_tied(self, question: Question, chosen: Sequence[int]) -> list[int]:
        """Return the runs after which a unit costs as much as if that memory were its home."""
        count: dict[int, int] = {}
        for unit, run, is_in in zip(self.unit, self.run, chosen, strict=True):
            count[unit] = count.get(unit, 0) + bool(is_in and run is not None)
        found = []
        for at, run in enumerate(self.run):
            if run is not None and chosen[at] and count[self.unit[at]] == 1:
                costs = question.cost[self.unit[at]]
                if (costs[run.home] or 0) - self.worth[at] == costs[run.memory]:
                    found.append(at)
        return found

    @property
    def have_runs(self) -> bool:
        """Whether something may move."""
        return any(self.run)


def list_places(
    question: Question,
    whole: Container[int],
    free: Sequence[int | None],
    accesses: Sequence[Sequence[Access]] | None,
) -> Places:
    """Return all places that may save something, or that are needed.

    `whole` are the memories with room for all units that may lie there, and `free` is by unit the
    cheapest of these where it may lie whatever others do, or `None`. Accesses are by row, with
    their times, if buffers may move; empty for those that stay.
    """
    apart = {unit for pair in question.apart for unit in pair}
    places = Places(
        [
            max(cost for cost in costs if cost is not None) if at is None else costs[at] or 0
            for costs, at in zip(question.cost, free, strict=True)
        ]
    )
    for unit, costs in enumerate(question.cost):
        if free[unit] is None:
            places.must.add(unit)
        for memory, cost in enumerate(costs):
            if cost is None or (memory in whole and not apart):
                continue
            worth = places.out[unit] - cost
            if free[unit] is None or (memory not in whole and worth > 0):
                at = places.add(unit, memory, worth, question.items[unit])
                places.homes[unit, memory] = at
    for one, other in question.apart:
        for memory in range(len(question.memories)):
            if (one, memory) in places.homes and (other, memory) in places.homes:
                places.refused.append([places.homes[one, memory], places.homes[other, memory]])
    for unit, first in enumerate(free):
        if accesses is not None and first is not None:
            _add_runs(places, question, whole, unit, first, accesses)
    return places


def _add_runs(
    places: Places,
    question: Question,
    whole: Container[int],
    unit: int,
    first: int,
    accesses: Sequence[Sequence[Access]],
) -> None:
    """Add the runs of a unit from each memory that may be its home."""
    costs, memories = question.cost[unit], question.memories
    row = question.units[unit][0]
    may = [memory for memory, cost in enumerate(costs) if cost is not None]
    runs: dict[int, list[tuple[Run, int]]] = {
        home: [
            found
            for memory in may
            if not _is_as_fast(memories[home], memories[memory])
            for found in list_runs(question.problem, row, accesses[row], memories, home, memory)
        ]
        for home in _find_homes(memories, [memory for memory in may if memory in whole])
    }
    homes = _drop_useless(runs, {home: costs[home] or 0 for home in runs}, first, whole)
    number = len(question.units) + unit
    life, size = question.items[unit], int(question.problem.size[row])
    chosen = {}
    if len(homes) > 1:
        most = max(costs[home] or 0 for home in homes)
        places.must.add(number)
        places.out[unit] = most
        for home in homes:
            worth, nothing = most - (costs[home] or 0), Item(life.start, life.end, 0)
            chosen[home] = places.add(unit, home, worth, nothing, None, number)
    for home in homes:
        for run, worth in runs[home]:
            at = places.add(unit, run.memory, worth, Item(run.start, run.end, size), run)
            places.refused += [[at, chosen[other]] for other in chosen if other != home]
    for (owner, _), at in places.homes.items() if chosen else ():
        if owner == unit:  # such a place is a home itself, and saves what it saves beside the first
            places.refused += [[at, chosen[other]] for other in chosen if other != first]


def _drop_useless(
    runs: Mapping[int, Sequence[tuple[Run, int]]],
    costs: Mapping[int, int],
    first: int,
    whole: Container[int],
) -> list[int]:
    """Return the homes from which a unit may cost less than it may from the first one anyway."""
    if len(runs) == 1:
        return [*runs]
    anyway = [each for each in runs[first] if each[0].memory in whole]
    most = costs[first] - most_saved(anyway)
    return [home for home in runs if home == first or costs[home] - most_saved(runs[home]) < most]


def _find_homes(memories: Sequence[Memory], roomy: Sequence[int]) -> list[int]:
    """Return the memories with room for all of which no other one is as fast in both ways."""
    found: list[int] = []
    for at in roomy:  # the fastest comes first
        if not any(_is_as_fast(memories[other], memories[at]) for other in found):
            found.append(at)
    return found


def _is_as_fast(one: Memory, other: Memory) -> bool:
    return one.read <= other.read and one.write <= other.write

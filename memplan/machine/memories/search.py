"""Finds which unit lies in which memory, so that accesses cost least, and places all of them.

What a unit saves in a memory with a limit, against the cheapest memory that has room for all, is
its worth there. The core chooses where units are worth most together within the capacities at each
time, with a bound. Then they are placed. Units that are proved not to fit together, because their
addresses do not suit them all, are refused together from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from memplan import _core
from memplan.base.errors import InfeasibleError, MemplanError, NoPlanError, listed, quoted
from memplan.machine.memories.accesses import Access
from memplan.machine.memories.assigned import Price, Stretch
from memplan.machine.memories.filling import Filling, fill_memory, is_simple
from memplan.machine.memories.mending import mend_memory
from memplan.machine.memories.moves import Run
from memplan.machine.memories.places import list_places
from memplan.machine.memories.question import Question
from memplan.problem import Problem
from memplan.problem.columns import Column
from memplan.problem.loads import Loads
from memplan.problem.plan import Plan, Status
from memplan.solvers.limits import MAX_COUNT, check_whole
from memplan.solvers.planning import SharedBudget
from memplan.solvers.refereed import check_plan, find_plan, quick_plan
from memplan.solvers.stopping import note_interrupt

__all__ = ["Found", "choose_items", "find_assignment"]

_NODES: Final = 5_000_000  # partial choices that are looked at
_LEAST_NODES: Final = 200_000  # of a choice after the first one
_NODES_OF_PLAN: Final = 100_000
_NODES_OF_LOW_PEAK: Final = 10_000  # where there is no limit, any plan will do
_MOST_LEFT_OUT: Final = 64  # places of a set from which single ones are left out
_MOST_REFUSED: Final = 500  # sets of units that do not fit together
_MOST_LARGE: Final = 20  # of them with so many places that each excludes hardly any choice
_MOST_WORTH: Final = 1 << 53  # in the core
_MOST_TIED: Final = 64  # buffers that are tried one by one
_MOST_MEMORIES: Final = 16  # in the core


@dataclass(slots=True)
class Found:
    """An assignment: a plan for each memory, what it costs, and what it costs at least."""

    plans: tuple[Plan, ...]
    traffic: int
    bound: int
    prices: tuple[tuple[Price, ...], ...]
    nodes: int  # partial choices that were looked at
    stretches: tuple[Stretch, ...] = ()


def find_assignment(
    question: Question,
    timeout: float | None,
    nodes: int | None,
    accesses: Sequence[Sequence[Access]] | None = None,
) -> Found:
    """Return the best assignment that is found.

    Accesses are by row, with their times, if buffers may leave the memory that is their home. An
    `InfeasibleError` says that what must be in a memory does not fit there, a `NoPlanError` that no
    assignment was found in time.
    """
    return _Search(question, timeout, nodes, accesses).find()


def choose_items(
    start: Column,
    end: Column,
    bytes: Column,
    worth: Column,
    must: Column,
    room: int,
    refused: list[list[int]],
    seconds: float | None,
    nodes: int,
) -> tuple[int, Column]:
    """Return what the best items of one memory are worth, and which they are; -1 without any."""
    alone = np.arange(len(start), dtype=np.int32)
    choice = _ask(
        *(start, end, bytes, worth, np.zeros_like(alone), alone, must.astype(np.uint8)),
        *([room], refused, seconds, nodes),
    )
    if not Status(choice.status).has_plan:
        return -1, np.zeros(0, np.int64)
    return choice.worth, np.flatnonzero(np.asarray(choice.chosen))


def _ask(*given: Any) -> _core.Choice:
    """Return what the core chooses; Ctrl-C ends the question with it."""
    choice = _core.choose(*given)
    if choice.interrupted and not note_interrupt():
        raise KeyboardInterrupt
    return choice


class _Search:
    """One call of `assign`."""

    def __init__(
        self,
        question: Question,
        timeout: float | None,
        nodes: int | None,
        accesses: Sequence[Sequence[Access]] | None,
    ) -> None:
        self._question = question
        self._budget = SharedBudget(timeout, None)
        self._left = _NODES if nodes is None else check_whole(nodes, "nodes", 1, MAX_COUNT)
        self._nodes_of_plan = min(_NODES_OF_PLAN, self._left)
        self._nodes = 0
        # By memory with room for all units that may lie in it: their plan there.
        self._whole: dict[int, Plan] = {}
        for memory in range(len(question.memories)):
            plan, _ = self._plan(question.part(self._allowed(memory), memory))
            if plan.has_offsets:
                self._whole[memory] = plan
        self._apart = {unit for pair in question.apart for unit in pair}
        self._free = [self._find_free(unit) for unit in range(len(question.units))]
        self._places = list_places(question, self._whole, self._free, accesses)
        # What each unit costs where it may always lie; at most, if that is nowhere.
        self._out = self._places.out
        self._chosen_in = [
            m
            for m in range(len(question.memories))
            if self._apart or m not in self._whole or m in self._places.memory
        ]
        if len(self._chosen_in) > _MOST_MEMORIES:
            raise MemplanError(
                f"the choice is between {len(self._chosen_in)} memories; at most {_MOST_MEMORIES} "
                "may have less room than all buffers need"
            )
        if sum(self._places.worth) > _MOST_WORTH:
            raise MemplanError("the accesses cost more than 2^53 together; take a coarser unit")
        self._given_refused = len(self._places.refused)
        # By memory: bytes that the choice leaves unused, after plans of it were not found in time.
        self._unused = dict.fromkeys(self._chosen_in, 0)
        # A plan of what was placed last that is too high, unless all fits or is proved not to fit.
        self._high: Plan | None = None

    def _allowed(self, memory: int) -> list[int]:
        return [unit for unit, costs in enumerate(self._question.cost) if costs[memory] is not None]

    def _find_free(self, unit: int) -> int | None:
        """Return the cheapest memory where a unit may lie whatever the other units do."""
        costs = self._question.cost[unit]
        found = [
            (cost, memory)
            for memory, cost in enumerate(costs)
            if cost is not None and memory in self._whole and unit not in self._apart
        ]
        return min(found)[1] if found else None

    @property
    def _seconds(self) -> float | None:
        return self._budget.share(1).seconds

    def _fit(self, part: Problem) -> Plan:
        """Ask whether what is in a memory fits there."""
        if part.capacity is None:
            return quick_plan(part, nodes=_NODES_OF_LOW_PEAK, timeout=self._seconds)
        return find_plan(part, objective="fit", timeout=self._seconds, nodes=self._nodes_of_plan)

    def _plan(self, part: Problem) -> tuple[Plan, Plan | None]:
        """Return a plan that fits, or the answer that there is none, and a plan that is too high.

        A search for a fit that ends early has no plan, though a quick one may fit.
        """
        plan = self._fit(part)
        if plan.has_offsets or plan.status is Status.INFEASIBLE or part.capacity is None:
            return plan, None
        low = quick_plan(part, timeout=self._seconds)
        if low.has_offsets and (low.peak or 0) <= part.capacity:
            return check_plan(part, Plan.of(part, low.offsets)), None
        return plan, low

    def find(self) -> Found:
        """Choose and place until all that is chosen is placed."""
        first = choice = self._choose()
        most = first.bound  # of the last choice that was free to use all bytes
        worth, best = -1, None
        wanted: list[list[int]] = []
        moved: list[list[Run]] = [[] for _ in self._question.memories]
        settled = None  # the choice of which some runs may be homes as well
        while True:
            is_free = not any(self._unused.values())
            is_least = any(left >= self._room(m)[0] for m, left in self._unused.items() if left)
            if not Status(choice.status).has_plan:
                self._explain(choice.status == Status.INFEASIBLE and is_free)
            inside = self._split(choice.chosen)
            if is_free:
                most, wanted = choice.bound, inside
            runs = self._list_chosen_runs(choice.chosen)
            plans = self._place(inside, runs)
            if plans is not None and choice.worth > worth:
                worth, best, moved = choice.worth, plans, runs
                settled = (runs, choice.chosen) if self._places.have_runs else None
            is_open = plans is not None or self._high is not None  # else proved not to fit
            if self._can_fill and worth < most and is_open and is_free:
                worth, best = self._fill(inside[self._chosen_in[0]], worth, best)
                if best is not None:
                    break  # what is missing is mended, which loses less than a choice of less
            if plans is not None or is_least:
                break
            choice = self._choose()
        if best is None:
            self._explain(False)
        assert best is not None
        if self._can_fill and worth < most:
            worth, best = self._mend(wanted[self._chosen_in[0]], worth, best)
        if settled is not None:
            best, moved = self._settle(best, *settled)
        traffic = sum(self._out) - worth
        bound = min(traffic, max(0, sum(self._out) - most))
        prices, stretches = self._list_prices(first), self._list_stretches(moved)
        return Found(best, traffic, bound, prices, self._nodes, stretches)

    def _settle(
        self, best: tuple[Plan, ...], runs: list[list[Run]], chosen: Sequence[int]
    ) -> tuple[tuple[Plan, ...], list[list[Run]]]:
        """Let buffers stay where they are moved to without copies, as far as there is room."""
        inside, places = self._split(chosen), self._places
        tied = places.list_tied(self._question, chosen)
        for some in (tied, *([at] for at in tied[:_MOST_TIED])):
            homes, there = [list(units) for units in inside], [list(each) for each in runs]
            for at in some:
                run = places.run[at]
                assert run is not None
                if run not in there[run.memory]:
                    break
                there[run.memory].remove(run)
                homes[run.home].remove(places.unit[at])
                homes[run.memory].append(places.unit[at])
            else:
                plans = self._place(homes, there) if some else None
                if plans is not None:
                    best, inside, runs = plans, homes, there
        return best, runs

    def _list_stretches(self, runs: Sequence[Sequence[Run]]) -> tuple[Stretch, ...]:
        """Return the runs in each memory, as the result has them."""
        question = self._question
        return tuple(
            Stretch(
                question.problem.ids[run.row],
                question.name_run(run),
                memory.name,
                *(run.start, run.end, run.fetched, run.stored),
            )
            for memory, there in zip(question.memories, runs, strict=True)
            for run in there
        )

    @property
    def _can_fill(self) -> bool:
        """Whether the only memory that is too small can be filled step by step."""
        limited = [memory for memory in self._chosen_in if memory not in self._whole]
        return (
            len(self._chosen_in) == 1
            and limited == self._chosen_in
            and is_simple(self._question)
            and not self._places.have_runs
        )

    def _fill(
        self, chosen: Sequence[int], worth: int, best: tuple[Plan, ...] | None
    ) -> tuple[int, tuple[Plan, ...] | None]:
        """Return the best of an assignment and of those that fill the memory step by step."""
        filling, needed = self._list_gains()
        high = self._high if best is None else None
        for units, offset in fill_memory(filling, chosen, high):
            found = int(filling.worth[units].sum()) - len(needed)
            if found > worth and set(needed).issubset(units):
                worth, best = found, self._place_at(units, offset)
        return worth, best

    def _mend(
        self, chosen: Sequence[int], worth: int, best: tuple[Plan, ...]
    ) -> tuple[int, tuple[Plan, ...]]:
        """Return the best of an assignment and of those that mend it, so that more is placed."""
        filling, needed = self._list_gains()
        (memory,) = self._chosen_in
        offset = mend_memory(
            filling,
            choose_items,
            self._room(memory),
            filling.keep(best[memory]),
            chosen,
            needed,
            self._nodes_of_plan,
            lambda: self._seconds,
        )
        units = np.flatnonzero(offset >= 0).tolist()
        found = int(filling.worth[units].sum()) - len(needed)
        return (found, self._place_at(units, offset)) if found > worth else (worth, best)

    def _list_gains(self) -> tuple[Filling, list[int]]:
        """Return the only memory that is too small, and the units that can be nowhere else."""
        (memory,) = self._chosen_in
        needed = [unit for unit, free in enumerate(self._free) if free is None]
        gain = np.zeros(len(self._question.units), np.int64)
        gain[self._places.unit] = self._places.worth
        gain[needed] += 1  # so that what can be nowhere else is there whatever it is worth
        return Filling(self._question, memory, gain), needed

    def _place_at(self, units: Sequence[int], offset: Column) -> tuple[Plan, ...]:
        """Return plans with these units at these offsets, by unit, in the memory too small."""
        (memory,), question = self._chosen_in, self._question
        part = question.part(units, memory)
        unit_of = {question.problem.ids[rows[0]]: at for at, rows in enumerate(question.units)}
        plan = check_plan(part, Plan.of(part, [int(offset[unit_of[id]]) for id in part.ids]))
        inside = set(units)
        split = self._split([int(unit in inside) for unit in self._places.unit])
        plans = self._place(split, known={memory: plan})
        assert plans is not None, "all other memories have room for all units"
        return plans

    def _choose(self) -> _core.Choice:
        """Ask the core which places are worth most."""
        places = self._places
        needed = sorted(set(places.choice))
        number = {unit: at for at, unit in enumerate(needed)}
        room = {memory: self._room(memory) for memory in self._chosen_in}
        size = [
            -(-item.bytes // room[memory][1]) * room[memory][1]
            for item, memory in zip(places.item, places.memory, strict=True)
        ]
        choice = _ask(
            np.array([item.start for item in places.item], np.int64),
            np.array([item.end for item in places.item], np.int64),
            np.array(size, np.int64),
            np.array(places.worth, np.int64),
            np.array([self._chosen_in.index(memory) for memory in places.memory], np.int32),
            np.array([number[unit] for unit in places.choice], np.int32),
            np.array([unit in places.must for unit in needed], np.uint8),
            [max(0, room[memory][0] - self._unused[memory]) for memory in self._chosen_in],
            places.refused,
            self._seconds,
            self._left,
        )
        self._nodes += choice.nodes
        # Later choices know more, so that they need as much as is left, but not nothing.
        self._left = max(min(_LEAST_NODES, self._left), self._left - choice.nodes)
        return choice

    def _room(self, memory: int) -> tuple[int, int]:
        if memory in self._whole:  # all that may lie there fits in any case
            return int(self._question.problem.size.sum()), 1
        return self._question.room(memory)

    def _split(self, chosen: Sequence[int]) -> list[list[int]]:
        """Return the units whose home each memory is."""
        inside: list[list[int]] = [[] for _ in self._question.memories]
        places, home = self._places, dict(enumerate(self._free))
        for unit, memory, run, is_in in zip(
            places.unit, places.memory, places.run, chosen, strict=True
        ):
            if is_in and run is None and home[unit] == self._free[unit]:
                home[unit] = memory
        for unit, at in home.items():
            assert at is not None
            inside[at].append(unit)
        return inside

    def _list_chosen_runs(self, chosen: Sequence[int]) -> list[list[Run]]:
        """Return the runs in each memory, by time."""
        found: list[list[Run]] = [[] for _ in self._question.memories]
        for memory, run, is_in in zip(self._places.memory, self._places.run, chosen, strict=True):
            if is_in and run is not None:
                found[memory].append(run)
        return [sorted(runs, key=lambda run: (run.start, run.row)) for runs in found]

    def _place(
        self,
        inside: Sequence[list[int]],
        runs: Sequence[Sequence[Run]] = (),
        known: Mapping[int, Plan] = MappingProxyType({}),
    ) -> tuple[Plan, ...] | None:
        """Return a plan for each memory; `None` if one was not found, so that it is avoided."""
        plans = []
        self._high = None
        for memory, units in enumerate(inside):
            there = runs[memory] if runs else ()
            part, high = self._question.part(units, memory, there), None
            if memory in known:
                plan = known[memory]
            else:
                plan, high = self._plan(part)
            if not plan.has_offsets and memory in self._whole:
                plan = self._restrict(memory, part, there)
            if not plan.has_offsets:
                if plan.status is Status.INFEASIBLE and self._may_refuse:
                    self._refuse(plan.conflict, units, memory, there)
                else:
                    self._high = quick_plan(part, timeout=self._seconds) if high is None else high
                    self._choose_less(memory, self._high.peak or 0)
                return None
            plans.append(plan)
        return tuple(plans)

    def _restrict(self, memory: int, part: Problem, runs: Sequence[Run]) -> Plan:
        """Return the plan of all units that may lie in a memory, of some of them."""
        whole, question = self._whole[memory], self._question
        of_piece = {question.name_run(run): question.problem.ids[run.row] for run in runs}
        offsets = [whole.offset(of_piece.get(id, id)) for id in part.ids]
        return check_plan(part, Plan.of(part, offsets))

    def _choose_less(self, memory: int, peak: int) -> None:
        """Leave bytes of a memory unused, where a plan of what was chosen has this peak."""
        capacity = self._question.memories[memory].capacity or 0
        self._unused[memory] += max(1, capacity // 100, peak - capacity)

    @property
    def _may_refuse(self) -> bool:
        """Whether to refuse one more set, in place of bytes that are left unused."""
        sizes = [len(places) for places in self._places.refused[self._given_refused :]]
        large = sum(size > _MOST_LEFT_OUT for size in sizes)
        return len(sizes) < _MOST_REFUSED and large < _MOST_LARGE

    def _refuse(
        self, conflict: Iterable[str], units: Sequence[int], memory: int, runs: Sequence[Run]
    ) -> None:
        """Refuse what is proved not to fit into a memory."""
        names = set(conflict)
        ids = self._question.problem.ids
        found = [
            unit for unit in units if any(ids[row] in names for row in self._question.units[unit])
        ]
        held = [run for run in runs if self._question.name_run(run) in names]
        if not found and not held:
            found, held = self._leave_out(units, memory, runs)
        homes = self._places.homes
        refused = [homes[unit, memory] for unit in found if (unit, memory) in homes]
        for at, run in enumerate(self._places.run):
            if run in held:
                refused.append(at)
        self._places.refused.append(refused)

    def _leave_out(
        self, units: Sequence[int], memory: int, runs: Sequence[Run]
    ) -> tuple[list[int], list[Run]]:
        """Return units and runs that do not fit into a memory, fewer where they are few enough."""
        question, found, held = self._question, list(units), list(runs)
        if len(units) + len(runs) > _MOST_LEFT_OUT:
            return found, held
        for unit in units:
            fewer = [each for each in found if each != unit]
            if self._fit(question.part(fewer, memory, held)).status is Status.INFEASIBLE:
                found = fewer
        for run in runs:
            less = [each for each in held if each is not run]
            if self._fit(question.part(found, memory, less)).status is Status.INFEASIBLE:
                held = less
        return found, held

    def _explain(self, is_proved: bool) -> None:
        """Raise an error that says what does not fit."""
        question = self._question
        for memory in self._chosen_in:
            only = [
                unit
                for unit, costs in enumerate(question.cost)
                if [m for m, cost in enumerate(costs) if cost is not None] == [memory]
            ]
            part, name = question.part(only, memory), quoted(question.memories[memory].name)
            if part.capacity is None:
                continue
            loads = Loads(part)
            section = loads.peak_section
            if section is not None and loads.peak > part.capacity:
                held = [each.id for each in loads.held(section)]
                raise InfeasibleError(
                    f"{name} has {part.capacity} bytes, but at time {int(loads.start[section])}, "
                    f"{listed(held)} hold {loads.peak} bytes that may lie nowhere else"
                )
            plan = self._fit(part)
            if plan.status is Status.INFEASIBLE:
                raise InfeasibleError(
                    f"{listed(plan.conflict or part.ids)} may lie only in {name}, and do not fit "
                    f"into its {part.capacity} bytes together"
                )
        names = listed([question.memories[memory].name for memory in self._chosen_in])
        if is_proved:
            raise InfeasibleError(
                f"proved: there is no room in {names} for what may lie nowhere else"
            )
        raise NoPlanError(
            f"no assignment to {names} was found; give the search more time, or a memory more room"
        )

    def _list_prices(self, choice: _core.Choice) -> tuple[tuple[Price, ...], ...]:
        found: list[tuple[Price, ...]] = [() for _ in self._question.memories]
        for memory, prices in zip(self._chosen_in, choice.prices, strict=True):
            spans = zip(choice.times, choice.times[1:], prices, strict=False)
            found[memory] = tuple(
                Price(start, end, price / (1 << choice.shift))
                for start, end, price in spans
                if price
            )
        return tuple(found)

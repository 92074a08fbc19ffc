"""Machines: where a problem is placed, and what that costs.

One arena is the default. A machine with memories chooses one for each buffer; a memory with a
largest block is placed in blocks; where sharing costs, each place is planned so that it costs
least. So a machine is placed from the outside to the inside, and no two of these know each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

from memplan.answer import Axis, Claim, Part
from memplan.ask.scenarios import Joint
from memplan.base.errors import InfeasibleError, MemplanError, NoPlanError, quoted
from memplan.base.notes import Note
from memplan.machine.apart.penalties import Penalties, may_share, read_penalties, take_penalties
from memplan.machine.blocks.planning import place_blocks
from memplan.machine.description import read_description
from memplan.machine.memories import Memory
from memplan.machine.memories.accesses import Given, Times
from memplan.machine.memories.assigning import place as place_in_memories
from memplan.machine.memories.moves import require_times
from memplan.machine.memories.text import parse_reads
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.scenarios.paths import PathPlans
from memplan.scenarios.together import Together
from memplan.solvers.apart import search as place_apart
from memplan.solvers.planning import SharedBudget, leave_to_referee
from memplan.solvers.refereed import find_plan

__all__ = ["Machine", "Placed", "Search"]


@dataclass(frozen=True)
class Search:
    """How plans are searched for; see `memplan.solve` for all of them."""

    solver: str = "auto"
    objective: str | None = None
    threads: int | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `memplan.solve`."""
        return {
            "solver": self.solver,
            "objective": self.objective,
            "threads": self.threads,
            "seed": self.seed,
            **self.options,
        }


class Placed(NamedTuple):
    """What a machine made of a problem."""

    # Of each place: its name, what lies there, and where. One without a name is the arena.
    places: tuple[tuple[str, Problem, Plan], ...]
    axes: tuple[Axis, ...]  # what was minimised, in order of importance
    claims: tuple[Claim, ...] = ()  # what the referee checks beyond that each plan is valid
    notes: tuple[Note, ...] = ()
    # The parts of the programs, where an engine made them; otherwise they are split.
    parts: tuple[Part, ...] = ()
    detail: Any = None


@dataclass(frozen=True)
class Machine:
    """Where buffers may lie.

    Attributes
    ----------
    memories
        The fastest first; none or one is one arena. See `memplan.Memory`.
    capacity
        Of the one arena, or of all blocks, in bytes; a single memory with a size says the same.
    block
        The most bytes of a block of the one arena; a single memory with a largest block says the
        same.
    penalties
        By pair of buffers: what it costs if they share addresses; or a file of them. See
        `memplan.plan_apart`. The buffers of several programs are "program/buffer".
    allowed, apart, reads, residency, accesses
        See `memplan.machine.memories.assign`.
    reserved
        Addresses `(lower, upper)` that no buffer may use, in every place.
    """

    memories: tuple[Memory, ...] = ()
    capacity: int | None = None
    block: int | None = None
    penalties: Penalties | None = None
    allowed: Mapping[str, Iterable[str]] = field(default_factory=dict)
    apart: tuple[tuple[str, str], ...] = ()
    reads: Mapping[str, Times | Sequence[Times]] = field(default_factory=dict)
    residency: bool = False
    reserved: tuple[tuple[int, int], ...] = ()
    accesses: Mapping[str, Given] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Machine:
        """Read a machine from a file in TOML; see `memplan.machine.description`.

        The board that it names is an argument of `memplan.load`. A wrong file is a `FormatError`.
        """
        found = read_description(path)
        memories = found.list_memories()
        reads = parse_reads(found.reads) if len(memories) > 1 else {}
        return cls(memories, reads=reads, reserved=found.list_reserved())

    def __post_init__(self) -> None:
        object.__setattr__(self, "memories", tuple(self.memories))
        given = (self.allowed, self.apart, self.residency, self.reads, self.accesses)
        if len(self.memories) == 1 and not any(given):
            (only,) = self.memories
            object.__setattr__(self, "memories", ())
            object.__setattr__(self, "capacity", _pick("capacity", self.capacity, only.capacity))
            object.__setattr__(self, "block", _pick("block", self.block, only.block))
        if not self.memories and any(given):
            raise MemplanError(
                "allowed, apart, reads, accesses and residency are about memories; name at least "
                "one"
            )
        if self.memories and self.capacity is not None:
            raise MemplanError("the capacity is of one arena; give each memory a size instead")
        if self.memories and self.block is not None:
            raise MemplanError("the largest block is of one arena; give it to a memory instead")

    @property
    def is_arena(self) -> bool:
        """Whether it is one arena, in which sharing costs nothing."""
        return not self.memories and self.block is None and self.penalties is None

    @property
    def kinds(self) -> tuple[str, ...]:
        """What it is made of, as rows of the table of what combines."""
        found = ["memories"] if self.memories else []
        if self.block is not None or any(memory.block for memory in self.memories):
            found.append("blocks")
        return (*found, *(["penalties"] if self.penalties is not None else []))

    def list_goals(self, load: int, *, parallel: bool = False) -> tuple[int, ...]:
        """Return the bytes that a program of so many live bytes should need, the most first.

        Of several memories, the fastest may hold all of a program, or more of what is hot. Programs
        on parallel streams need more than is live in one sequence, unless they wait.
        """
        if self.memories:
            fast = self.memories[0].capacity
            if fast is None:
                return ()
            if fast >= load:
                return (fast,) if parallel else ()
            steps = (fast + (load - fast) * share // 4 for share in (4 if parallel else 3, 2, 1, 0))
            return tuple(dict.fromkeys(steps))
        if self.capacity is not None:
            return (self.capacity,)
        if self.block is not None:
            most = -(-load // self.block) - (
                0 if parallel else 1
            )  # one block less than for the load
            return tuple(self.block * count for count in range(most, max(0, most - 3), -1))
        return ()

    def place(self, joint: Joint, budget: SharedBudget, parts: int, search: Search) -> Placed:
        """Place all of a problem, in one of so many parts of what is left of a budget.

        Raises
        ------
        InfeasibleError, NoPlanError
            If there is no plan, or none was found, except in one arena: its plan then says so.
        """
        problem = joint.problem
        if self.reserved:
            problem = problem.with_reserved([*problem.reserved, *self.reserved])
            joint = replace(joint, problem=problem)
        if self.memories:
            return self._place_in_memories(joint, budget, parts, search)
        if self.block is not None:
            return _place_in_blocks(
                problem.with_capacity(self.capacity), self.block, budget, parts, search
            )
        if self.penalties is not None:
            return self._place_apart(joint, budget, parts, search)
        return _place_in_arena(joint, self.capacity, budget, parts, search)

    def _place_in_memories(
        self, joint: Joint, budget: SharedBudget, parts: int, search: Search
    ) -> Placed:
        if self.residency:
            require_times(joint.problem, joint.kept, self.accesses)
        inner = [memory for memory in self.memories if memory.block is not None]
        share = budget.share(parts * (1 + len(inner) + (self.penalties is not None)))
        found = place_in_memories(
            joint.problem,
            self.memories,
            joint.find_accesses(self.reads, self.accesses),
            joint.kept,
            allowed=self.allowed,
            apart=self.apart,
            residency=self.residency,
            timeout=share.seconds,
            nodes=share.nodes,
        )
        axes = [Axis("traffic", "bytes x cost", found.traffic, found.bound)]
        claims: list[Claim] = [found]
        places = []
        notes: list[Note] = []
        for memory, plan in zip(found.memories, found.plans, strict=True):
            problem = found.problem_of(memory.name)
            nested = self.nest(memory)
            if not len(problem) or not nested.kinds:
                places.append((memory.name, problem, plan))
                continue
            if nested.penalties is not None and nested.capacity is None:
                nested = replace(nested, capacity=plan.peak or 1)
            below = nested.place(_of_place(problem, joint.names), budget, parts, search)
            places += [
                (f"{memory.name}/{name}" if name else memory.name, one, other)
                for name, one, other in below.places
            ]
            scope = f"of what was chosen to lie in {memory.name}"
            axes += [
                replace(axis, name=f"{axis.name} in {memory.name}", scope=scope)
                for axis in below.axes
            ]
            claims += below.claims
            notes += below.notes
        return Placed(tuple(places), tuple(axes), tuple(claims), tuple(notes), detail=found)

    def nest(self, memory: Memory) -> Machine:
        """Return one of the memories as a machine of its own."""
        if memory.block is None and self.penalties is None:
            return Machine()
        return Machine(capacity=memory.capacity, block=memory.block, penalties=self.penalties)

    def check(self, joint: Joint) -> Machine:
        """Return this machine, with what was said of the programs as they are checked for them.

        Raises
        ------
        MemplanError
            For penalties of buffers that are not there, or live at the same time anyhow.
        """
        if self.penalties is None:
            return self
        if self.capacity is None and not self.memories:
            raise MemplanError(
                "penalties need a capacity: without one, all buffers lie apart and nothing is "
                "shared"
            )
        return replace(self, penalties=read_penalties(joint.problem, self.penalties))

    def _place_apart(
        self, joint: Joint, budget: SharedBudget, parts: int, search: Search
    ) -> Placed:
        problem = joint.problem.with_capacity(self.capacity)
        share = budget.share(parts)
        pairs = take_penalties(problem, self.list_penalties(problem, joint.names))
        found = place_apart(problem, pairs, share.seconds, share.nodes, search.seed)
        if not found.plan.has_offsets:
            is_proved = found.status is Status.INFEASIBLE
            raise (InfeasibleError if is_proved else NoPlanError)(
                f"{'proved: ' * is_proved}the buffers do not fit into {problem.capacity} bytes"
                if is_proved
                else f"no plan within {problem.capacity} bytes was found"
            )
        axes = (
            Axis("penalties", "cost", found.cost, found.bound),
            Axis("peak", "bytes", found.plan.peak, found.peak_bound),
        )
        return Placed((("", problem, found.plan),), axes, (found,), detail=found)

    def list_penalties(
        self, problem: Problem, names: Mapping[str, tuple[str, ...]]
    ) -> dict[tuple[str, str], int]:
        """Return the penalties of pairs that lie here and may share.

        A lever may make two buffers live at the same time, so that they never share; or put one
        into the memory of the other, which is a plan that always pays. Copies that run again, and
        parts in bands, cost what their tensor does, each pair of them.
        """
        assert isinstance(self.penalties, Mapping)
        known = set(problem.ids)
        found: dict[tuple[str, str], int] = {}
        for given, cost in self.penalties.items():
            ones, others = (names.get(id, (id,)) for id in given)
            if cost and not known.isdisjoint(set(ones) & set(others)):
                raise NoPlanError(f"{quoted(given[0])} and {quoted(given[1])} are one buffer")
            for one, other in product(ones, others):
                if one in known and other in known and may_share(problem, one, other):
                    found[one, other] = max(cost, found.get((one, other), 0))
        return found


def _pick(name: str, one: int | None, other: int | None) -> int | None:
    if one is not None and other is not None and one != other:
        raise MemplanError(f"the {name} is {one}, and that of the one memory {other}; give one")
    return other if one is None else one


def _of_place(problem: Problem, names: Mapping[str, tuple[str, ...]]) -> Joint:
    """Return what lies in one place, which is a problem of its own."""
    plain = problem.with_capacity(None)
    return Joint(plain, (("", plain, ()),), lambda reads, accesses: [], (), names=names)


def _place_in_blocks(
    problem: Problem, limit: int, budget: SharedBudget, parts: int, search: Search
) -> Placed:
    share = budget.share(parts)
    found = place_blocks(
        problem,
        limit,
        timeout=share.seconds,
        nodes=share.nodes,
        threads=search.threads,
        seed=search.seed,
    )
    places = tuple(
        (f"block {number}", problem.subset([problem.index(id) for id in plan.ids]), plan)
        for number, plan in enumerate(found.plans, 1)
    )
    axes = (
        Axis("blocks", "", found.count, found.count_bound),
        Axis("all blocks", "bytes", found.total, found.total_bound),
    )
    return Placed(places, axes, (found,), found.notes, detail=found)


def _place_in_arena(
    joint: Joint, capacity: int | None, budget: SharedBudget, parts: int, search: Search
) -> Placed:
    is_plain = search.solver == "auto" and not search.options and not joint.problem.has_reserved
    if joint.found is not None and is_plain:
        return _take_envelope(joint, capacity)
    if joint.paths is not None:
        return _take_paths(joint.paths, joint.programs[0][0], capacity)
    problem = joint.problem.with_capacity(capacity)
    share = leave_to_referee(budget.share(parts), problem)
    if joint.joined is not None:
        joined = replace(joint.joined, problem=problem)
        found = joined.place(timeout=share.seconds, nodes=share.nodes, **search.arguments())
        made = tuple(_make_part(found, number, problem) for number in range(len(found.names)))
        axis = Axis("peak", "bytes", found.peak, found.plan.lower_bound)
        return Placed((("", problem, found.plan),), (axis,), (found,), parts=made, detail=found)
    plan = find_plan(problem, budget=share, **search.arguments())
    budget.spend(plan, share)
    axis = Axis("peak", "bytes", plan.peak, plan.lower_bound)
    return Placed((("", problem, plan),), (axis,))


def _make_part(found: Together, number: int, problem: Problem) -> Part:
    """Return the part of a program with its states, which may be placed beside its buffers."""
    name, own, plan = found.names[number], found.problems[number], found.programs[number].plan
    if len(own) != len(plan) or problem.has_reserved:
        own = own.with_reserved(problem.reserved)
        offsets = [found.offset(name, id) for id in own.ids]
        bound, solver, stats = plan.lower_bound, plan.solver, plan.stats
        plan = Plan.of(own, offsets, lower_bound=bound, solver=solver, stats=stats)
    return Part(name, own, plan, name)


def _take_paths(found: PathPlans, name: str, capacity: int | None) -> Placed:
    """Return the plans of all paths, and that of the whole program, with which runs begin."""
    whole = found.fallback
    made = [Part(name, whole.problem, whole.plan, name)]
    made += [Part(each.name, each.planned.problem, each.planned.plan) for each in found.paths]
    counted = made[1:] if found.complete else made  # a run that is on no path keeps the first
    bound = max(part.plan.lower_bound for part in counted)
    if capacity is not None and found.peak > capacity:
        if bound > capacity:
            raise InfeasibleError(
                f"proved: one of the paths needs at least {bound} bytes, and the capacity is "
                f"{capacity}"
            )
        raise NoPlanError(
            f"no plans of all paths within {capacity} bytes were found; the best ones need "
            f"{found.peak}"
        )
    axis = Axis("peak", "bytes", found.peak, bound)
    return Placed((("", whole.problem, whole.plan),), (axis,), parts=tuple(made), detail=found)


def _take_envelope(joint: Joint, capacity: int | None) -> Placed:
    """Return the plan for all sizes, which was made with them."""
    found = joint.found
    assert found is not None
    plan, bound = found.plan, found.plan.lower_bound
    if capacity is not None and (plan.peak or 0) > capacity:
        if bound > capacity and not found.premise:
            raise InfeasibleError(
                f"proved: one plan for all sizes needs at least {bound} bytes, and the capacity is "
                f"{capacity}"
            )
        raise NoPlanError(
            f"no plan for all sizes within {capacity} bytes was found; the best one needs "
            f"{plan.peak}"
        )
    axis = Axis("peak", "bytes", plan.peak, bound, found.premise)
    return Placed((("", found.problem, plan),), (axis,), detail=found)

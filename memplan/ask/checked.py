"""Checks an answer in a file: everything that it says is held against its programs again.

The steps are done to the programs again, the scenario joins them, and the referee checks where the
parts of the file are. No search runs, except that of many sizes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from memplan.answer import Answer, Axis
from memplan.ask.fitted import ARENA
from memplan.ask.machines import Machine
from memplan.ask.question import Model, Question
from memplan.ask.saved import load_answer, read_machine
from memplan.ask.scenarios import Joint
from memplan.base.errors import MemplanError, PlanError, quoted
from memplan.levers import Candidate, Lever, Variant
from memplan.machine.blocks import Blocks
from memplan.machine.memories import Assigned, Memory
from memplan.machine.memories.accesses import sum_bytes
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.referee import verify, verify_apart

__all__ = ["check_answer"]


def check_answer(
    programs: Model | Sequence[Model],
    path: str | os.PathLike[str],
    *,
    levers: Iterable[Lever] = (),
) -> tuple[str, ...]:
    """Check all that an answer in a file says of its programs.

    Parameters
    ----------
    programs
        As `memplan.plan` got them.
    path
        What `memplan.save_answer` has written.
    levers
        Levers of the caller's own that the answer has steps of.

    Returns
    -------
    tuple
        One sentence for each claim that the file gives no proof of, so that it was not checked.

    Raises
    ------
    MemplanError
        One sentence: if the file cannot be read, is of other programs, or says what is not true.
    """
    saved = load_answer(path)
    saved.verify()
    try:
        return _Check(programs, saved, os.fspath(path), tuple(levers)).check()
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, MemplanError):
            raise
        raise PlanError(f"the answer is not of these programs: {error}") from None


class _Place(NamedTuple):
    """What lies in one place, by the ids of the joint problem."""

    name: str
    ids: tuple[str, ...]
    offsets: tuple[int, ...]

    def plan(self, problem: Problem) -> Plan:
        """Return it as a plan of a problem with the same ids."""
        where = dict(zip(self.ids, self.offsets, strict=True))
        return Plan.of(problem, [where[id] for id in problem.ids])


class _Check:
    """One answer, and its programs."""

    def __init__(
        self, programs: Model | Sequence[Model], saved: Answer, path: str, levers: tuple[Lever, ...]
    ) -> None:
        asked = saved.question
        self.saved, self.path = saved, path
        models = list(programs) if isinstance(programs, (list, tuple)) else [programs]
        self.question = Question(
            models=models,
            place=read_machine(asked["machine"], path),
            levers=levers,
            names=tuple(asked["names"]),
            keep=tuple(asked["keep"]),
            overlap=tuple((a, b) for a, b in asked["overlap"]),
            often=asked["often"],
            sizes=asked["sizes"],
            where=tuple(asked["where"]),
            read_all=asked["read_all"] is True,
            pins=asked["pins"],
        )
        self.question.check()
        self.unchecked: list[str] = []

    def check(self) -> tuple[str, ...]:
        """Check everything; return what could not be."""
        saved, machine = self.saved, self.question.machine
        if saved.capacity != machine.capacity:
            raise PlanError("the capacity of the answer is not that of its machine")
        if any(not part.plan.has_offsets for part in saved):
            return ("it has no plan, and nothing in the file proves that there is none",)
        chosen = self._redo()
        joint = self.question.join(self.question.scenario(), chosen)
        self._check_parts(joint)
        places = list(self._collect(joint))
        axes = [*self._check_machine(machine, joint, places), *joint.axes]
        for claim in joint.list_claims(saved.parts):
            claim.verify()
        self._check_axes(axes, joint)
        return tuple(self.unchecked)

    def _redo(self) -> list[Candidate]:
        """Return the programs with the steps of the answer done to them again."""
        chosen = []
        several = len(self.question.models) > 1
        known = set(self.question.called) if several else {""}
        for step in self.saved.steps:
            if step.program not in known:
                raise PlanError(f"a step is of program {quoted(step.program)}, which is not there")
        for number, (name, loaded) in enumerate(
            zip(self.question.called, self.question.given, strict=True)
        ):
            steps = tuple(
                s for s in self.saved.steps if s.taken and (not several or s.program == name)
            )
            for step in steps:
                loaded = self.question.find_lever(step).redo(loaded, step)
            loaded = self.question.pin(number, loaded)
            runs = [list(s.data["runs"]) for s in steps if "runs" in s.data]
            for part in self.saved.parts:
                said = part.plan.stats.get("order") if part.program == name else None
                if said is not None and [said] != runs:
                    raise PlanError(f"{part.name}: its order is not that of the steps")
            chosen.append(Candidate(Variant(loaded), steps))
        return chosen

    def _collect(self, joint: Joint) -> Iterator[_Place]:
        """Yield what the parts put into each place, with the ids of the joint problem."""
        several = len(joint.programs) > 1
        found: dict[str, list[tuple[str, int]]] = {}
        for part in self.saved:
            begin = f"{part.program}/" if several else ""
            assert part.plan.offsets is not None
            rows = zip(part.plan.ids, part.plan.offsets.tolist(), strict=True)
            found.setdefault(part.place, []).extend((f"{begin}{id}", at) for id, at in rows)
        for name, both in found.items():
            yield _Place(name, tuple(id for id, _ in both), tuple(at for _, at in both))

    def _check_parts(self, joint: Joint) -> None:
        """Check that the problems of the parts are those of the programs."""
        owners = {name: own for name, own, _ in joint.programs}
        pieces = {each.copy.rpartition("/")[2]: each for each in self.saved.stretches}
        units = {each.name: each.alignment for each in self.question.machine.memories}
        for part in self.saved:
            own = owners.get(part.program)
            if own is None:
                raise PlanError(f"{part.name}: no program has the name {quoted(part.program)}")
            rows = [own.index(id) for id in part.problem.ids if id not in pieces]
            is_moved = len(rows) < len(part.problem)
            expected = own.subset(rows).with_reserved(part.problem.reserved)
            expected = expected.with_alignment(units.get(part.place.partition("/")[0], 1))
            same = expected.with_capacity(part.problem.capacity).same_rows(part.problem)
            if not is_moved and not same:
                raise PlanError(f"{part.name}: its problem is not that of the program")

    def _check_machine(
        self, machine: Machine, joint: Joint, places: Sequence[_Place]
    ) -> list[Axis]:
        """Check what lies in a machine, and return what its axes are."""
        problem = joint.problem
        if machine.reserved:
            problem = problem.with_reserved([*problem.reserved, *machine.reserved])
        if machine.memories:
            return self._check_memories(machine, replace(joint, problem=problem), places)
        if {id for place in places for id in place.ids} != set(problem.ids):
            raise PlanError("the parts of the answer are not the buffers of the programs")
        problem = problem.with_capacity(machine.capacity)
        if machine.block is not None:
            plans = [place.plan(_pick(problem, place)) for place in places]
            blocks = Blocks(problem, machine.block, tuple(plans), 0, 0)
            blocks.verify()
            return [
                Axis("blocks", "", blocks.count, 0),
                Axis("all blocks", "bytes", blocks.total, 0),
            ]
        (place,) = places
        plan = place.plan(problem)
        verify(problem, plan)
        peak = Axis("peak", "bytes", plan.peak, problem.max_load)
        if machine.penalties is None:
            return [peak]
        pairs = machine.list_penalties(problem, joint.names)
        cost = int(self._take("penalties", "penalties in " + place.name).found or 0)
        verify_apart(problem, pairs, plan, cost)
        return [Axis("penalties", "cost", cost, 0), peak]

    def _take(self, *names: str) -> Axis:
        for axis in self.saved.axes:
            if axis.name in names:
                return axis
        raise PlanError(f"the answer has no axis {quoted(names[-1])}")

    def _check_memories(
        self, machine: Machine, joint: Joint, places: Sequence[_Place]
    ) -> list[Axis]:
        problem = joint.problem
        accesses = joint.find_accesses(machine.reads, machine.accesses)
        moves = {each.buffer for each in self.saved.stretches}
        plans, axes = [], []
        for memory in machine.memories:
            inside = [each for each in places if each.name.split("/")[0] == memory.name]
            plans.append(self._stack(problem, memory, inside))
        found = Assigned(
            machine.memories,
            tuple(plans),
            self._take("traffic").found or 0,
            0,
            Status.FEASIBLE,
            problem,
            None,
            dict(zip(problem.ids, sum_bytes(accesses), strict=True)),
            self.saved.stretches,
            {
                id: [(each.time, each.read, each.written) for each in row]
                for id, row in zip(problem.ids, accesses, strict=True)
                if id in moves
            },
            allowed={id: tuple(names) for id, names in machine.allowed.items()},
            apart=machine.apart,
        )
        axes.append(Axis("traffic", "bytes x cost", found.verify(), 0))
        for memory in machine.memories:
            nested = machine.nest(memory)
            inside = [each for each in places if each.name.split("/")[0] == memory.name]
            if inside and nested.kinds:
                part = found.problem_of(memory.name).with_capacity(None)
                if nested.penalties is not None and nested.capacity is None:
                    nested = replace(nested, capacity=max(1, *map(_top(part), inside)))
                below = Joint(part, (("", part, ()),), joint.find_accesses, (), names=joint.names)
                for axis in self._check_machine(nested, below, inside):
                    axes.append(replace(axis, name=f"{axis.name} in {memory.name}"))
        return axes

    def _stack(self, problem: Problem, memory: Memory, inside: Sequence[_Place]) -> Plan:
        """Return one plan of all blocks of a memory, one above the other."""
        pieces = {each.copy: each for each in self.saved.stretches}
        ids: list[str] = []
        sizes: list[int] = []
        offsets: list[int] = []
        base = 0
        for place in inside:
            own = [
                int(problem.size[problem.index(pieces[id].buffer if id in pieces else id)])
                for id in place.ids
            ]
            ids += place.ids
            sizes += own
            offsets += [base + at for at in place.offsets]
            top = max((at + size for at, size in zip(place.offsets, own, strict=True)), default=0)
            unit = int(np.lcm.reduce([memory.alignment, *problem.alignment.tolist()]))
            base += -(-top // unit) * unit
        peak = max((at + size for at, size in zip(offsets, sizes, strict=True)), default=0)
        return Plan(ids=ids, size=sizes, offsets=offsets, status=Status.FEASIBLE, peak=peak)

    def _check_axes(self, axes: Sequence[Axis], joint: Joint) -> None:
        """Check what was found; note bounds that the file does not prove."""
        saved = self.saved
        extra = [axis for axis in saved.axes if axis.name == "more work"]
        known = [(axis.name, axis.unit, axis.found) for axis in axes]
        measured = [axis for axis in saved.axes if axis.name == ARENA]
        other = (*extra, *measured)
        claimed = [(axis.name, axis.unit, axis.found) for axis in saved.axes if axis not in other]
        if known != claimed:
            raise PlanError(f"the axes of the answer are {claimed}, but its plans have {known}")
        if extra and extra[0].found != sum(step.extra for step in saved.steps if step.taken):
            raise PlanError("the work that the answer adds is not that of its steps")
        if any(step.extra for step in saved.steps if step.taken):
            if not extra:
                raise PlanError("the answer does not say the work that its steps add")
            self.unchecked.append("how much work the steps add")
        if measured:
            self.unchecked.append("what the runtime needs")
        for axis in saved.axes:
            if axis.found is not None and axis.bound > axis.found:
                raise PlanError(f"{axis.name}: the bound is above what the answer has")
        proved = {axis.name: axis.bound for axis in axes}
        has_levers = bool(saved.question["levers"])
        for axis in saved.axes:
            if axis.bound > (0 if has_levers and not axis.scope else proved.get(axis.name, 0)):
                self.unchecked.append(f"that nothing has {axis.name} below {axis.bound:,}")


def _pick(problem: Problem, place: _Place) -> Problem:
    return problem.subset([problem.index(id) for id in place.ids])


def _top(problem: Problem) -> Any:
    return lambda place: place.plan(_pick(problem, place)).peak or 0

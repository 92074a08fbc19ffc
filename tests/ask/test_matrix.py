"""Tests that every pair of levers, scenarios and machines is planned, or refused with its reason.

Each cell is asked of small programs. The answer is verified, run on a machine of bytes, and
compared with what the functions of the engines give one after the other.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from random import Random

import pytest
from asked import (
    BURSTS,
    LEVERS,
    PARALLEL,
    PLAIN,
    RESIDUAL,
    SIZES,
    Question,
    Sketch,
    draw_sketch,
    meet,
)
from placed import ClobberedError, change_as, run_answer
from rounds import rounds

import memplan as mp
from memplan.ask.supports import explain_pair
from memplan.base.errors import MemplanError
from memplan.levers.rewrite import recompute, reorder
from memplan.levers.rewrite.waits import plan_waits
from memplan.machine.apart import plan_apart
from memplan.machine.blocks import plan_blocks
from memplan.machine.memories import assign
from memplan.machine.memories.accesses import list_accesses, sum_bytes
from memplan.problem.plan import Plan
from memplan.programs.sources import Loaded
from memplan.scenarios.together import plan_together
from memplan.solvers.planning import layouts

EIGHT = ("order", "again", "memories", "in turn", "blocks", "penalties", "waits", "sizes")
PAIRS = [*combinations(EIGHT, 2), *(("in place", each) for each in EIGHT)]

# ==================================================================================================
# By hand
# ==================================================================================================


def name_of(id: str) -> str:
    """Return the tensor of the program that a buffer is, or is a copy of."""
    return re.sub(r" \((again|moved back)( \d+)?\)$", "", id)


def pull(question: Question, loaded: Loaded) -> Loaded:
    """Return a program after one lever after the other, each as good as it is by itself."""
    goals = question.machine().list_goals(question.load()) or (loaded.problem.max_load,)
    if "order" in question.ideas:
        loaded = reorder(loaded, in_place="in place" in question.ideas).loaded
    elif "again" in question.ideas:
        with suppress(mp.PlanError):
            loaded = recompute(loaded, goals[0]).loaded
    elif "waits" in question.ideas:
        loaded = plan_waits(loaded, capacity=goals[0]).loaded
    loaded = layouts(loaded, in_place="in place" in question.ideas)[-1]
    return replace(loaded, problem=loaded.problem.with_capacity(None))


def ask_by_hand(question: Question) -> float | None:
    """Return the first axis of what the engines give one after the other; `None` for no plan."""
    pulled = [pull(question, each.at(question.largest)) for each in question.sketches]
    machine = question.machine()
    if question.is_sized and question.levers:
        return None  # a step is found at one size, and done again at the others
    problem = question.join(pulled)
    if machine.memories:
        accessed: dict[str, tuple[Fraction, Fraction]] = {}
        for name, loaded in zip(question.names, pulled, strict=True):
            rows = sum_bytes(list_accesses(loaded))
            for id, size, both in zip(
                loaded.problem.ids, loaded.problem.size.tolist(), rows, strict=True
            ):
                whole = f"{name}/{id}" if len(pulled) > 1 else id
                times = question.often.get(name, 1)
                read, written = (Fraction(each * times, size or 1) for each in both)
                accessed[whole] = (read, written)
        accessed = {id: accessed.get(id, (Fraction(0), Fraction(0))) for id in problem.ids}
        if question.residency:
            return None  # bytes by time: no function of one engine takes several programs
        return assign(problem, machine.memories, accessed, nodes=5000).traffic  # type: ignore[arg-type]
    if machine.block is not None:
        return plan_blocks(problem, machine.block, nodes=5000).count
    if machine.penalties is not None:
        given = dict(machine.penalties)  # type: ignore[arg-type]
        known = set(problem.ids)
        pairs = {
            (one, other): cost
            for (a, b), cost in given.items()
            for one, other in product(known, known)
            if (name_of(one), name_of(other)) == (a, b) and not meet(problem, one, other)
        }
        if len(pairs) < len(given) and "in place" in question.ideas:
            return None  # pairs in one buffer, which is a matter of names
        try:
            found = plan_apart(problem, pairs, capacity=machine.capacity, nodes=5000)
        except mp.PlanError:
            return None
        return found.cost if found.plan.has_offsets else None
    return mp.solve(problem, nodes=5000).peak


# ==================================================================================================
# Checks
# ==================================================================================================


def check(question: Question, answer: mp.Answer, *, verify: bool = True) -> None:
    """Check an answer by its own claims, and on bytes at every size."""
    if verify:
        answer.verify()
    machine = question.machine()
    several = len(question.sketches) > 1
    steps = {
        each.name: [
            step
            for step in answer.steps
            if step.taken and (not several or step.program == each.name)
        ]
        for each in question.sketches
    }
    kept = {each.name: each.results for each in question.sketches}
    costs = {each.name: (int(each.read), int(each.write)) for each in machine.memories}
    for n in SIZES if question.is_sized else (1,):
        programs = {
            each.name: change_as(each.at(n), steps[each.name]) for each in question.sketches
        }
        if len(programs) == 1:
            programs = {answer.parts[0].program: next(iter(programs.values()))}
        cost = run_answer(
            answer,
            programs,
            Random(0),
            kept=kept if len(programs) > 1 else {},
            costs=costs,
            often=question.often,
        )
        if machine.memories and n == question.largest:
            assert cost == answer.axis("traffic").found
    for memory in machine.memories:
        peaks = [each.plan.peak or 0 for each in answer if each.place.split("/")[0] == memory.name]
        assert memory.capacity is None or max(peaks, default=0) <= memory.capacity
    check_cost(machine, answer)


def check_cost(machine: mp.Machine, answer: mp.Answer) -> None:
    """Check penalties against the addresses that are shared, and blocks against their limit."""
    several = len({part.program for part in answer}) > 1
    lies: dict[str, list[tuple[str, int, int]]] = {}
    for part in answer:
        for id, size in zip(part.plan.ids, part.plan.size.tolist(), strict=True):
            name = name_of(f"{part.program}/{id}" if several else id)
            offset = part.plan.offset(id)
            lies.setdefault(name, []).append((part.place, offset, offset + size))
    if machine.penalties is not None and not machine.memories:
        assert isinstance(machine.penalties, dict)
        cost = 0
        for (a, b), price in machine.penalties.items():
            for one in lies.get(a, ()):
                for other in lies.get(b, ()):
                    meets = one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
                    cost += price * meets
        found = answer.axis("penalties").found or 0
        in_place = any(each.lever == "in place" and each.taken for each in answer.steps)
        assert cost <= found if in_place else cost == found
    if machine.block is not None:
        tops: dict[str, int] = {}
        for part in answer:
            tops[part.place] = max(tops.get(part.place, 0), part.plan.peak or 0)
        assert answer.axis("blocks").found == len(tops)
        assert max(tops.values()) <= machine.block


def questions_of(pair: tuple[str, str]) -> list[Question]:
    """Return a cell asked of three programs, or of three pairs of these."""
    ideas = frozenset(pair)
    sketches = PARALLEL if "waits" in ideas else PLAIN
    if "in turn" in ideas:
        return [Question(ideas, two) for two in combinations(sketches, 2)]
    return [Question(ideas, (each,)) for each in sketches]


# ==================================================================================================
# Tests
# ==================================================================================================


@pytest.mark.parametrize("pair", PAIRS, ids=" x ".join)
def test_a_pair_is_planned_or_refused_with_its_reason(pair: tuple[str, str]) -> None:
    """Tests three programs, against the engines by hand, and on bytes; levers do something."""
    reason = explain_pair(*pair)
    pulled: set[str] = set()
    for question in questions_of(pair):
        if reason:
            with pytest.raises(MemplanError, match=reason):
                question.ask()
        else:
            pulled |= {step.lever for step in compare(question).steps if step.taken}
    if not reason and "in turn" not in pair:
        assert {each for each in pair if each in LEVERS} <= pulled | {"in place"}


def compare(question: Question) -> mp.Answer:
    """Ask a question, check its answer, and compare it with the engines by hand."""
    answer = question.ask()
    check(question, answer)
    found, hand = answer.axes[0].found, ask_by_hand(question)
    assert found is not None
    goal = question.machine().capacity if answer.axes[0].name == "peak" else None
    assert hand is None or found <= max(hand, goal or 0)
    return answer


@pytest.mark.parametrize("ideas", [("memories",), ("memories", "in turn"), ("memories", "order")])
def test_buffers_move(ideas: tuple[str, ...]) -> None:
    """Tests that what moves between memories is where it is read, and costs what is said."""
    moved = 0
    for other in PLAIN:
        sketches = (BURSTS, other) if "in turn" in ideas else (BURSTS,)
        question = Question(frozenset(ideas), sketches, residency=True)
        answer = question.ask()
        check(question, answer)
        (found,) = (each for each in answer.claims if isinstance(each, mp.Assigned))
        moved += len(found.stretches)
    assert moved


@pytest.mark.parametrize("in_turn", [False, True])
def test_the_machine_sees_a_wrong_place(in_turn: bool) -> None:
    """Tests that the runs can fail: a buffer that lies at the place of another one is noticed."""
    pair = ("memories", "in turn") if in_turn else ("memories", "order")
    question = questions_of(pair)[0]
    answer = question.ask()
    noticed = 0
    for number, part in enumerate(answer.parts):
        for row in range(len(part.plan)):
            assert part.plan.offsets is not None
            offsets = part.plan.offsets.copy()
            offsets[row] = offsets[row - 1]
            parts = list(answer.parts)
            parts[number] = replace(part, plan=Plan.of(part.problem, offsets))
            wrong = replace(answer, parts=tuple(parts))
            try:
                check(question, wrong, verify=False)
            except ClobberedError:
                noticed += 1
    assert noticed > 3


@pytest.mark.deep
@pytest.mark.parametrize("pair", [each for each in PAIRS if not explain_pair(*each)])
def test_many_programs(pair: tuple[str, str]) -> None:
    """Tests random programs in each cell."""
    for seed in range(rounds(10, 300)):
        compare_drawn(pair, seed)


def compare_drawn(pair: tuple[str, str], seed: int) -> None:
    """Compare a cell on random programs; one that does not fit is not compared."""
    random = Random(seed)
    streams = 2 if "waits" in pair else 1
    count = 2 if "in turn" in pair else 1
    sketches = tuple(draw_sketch(random, f"p{at}", streams=streams) for at in range(count))
    residency = "memories" in pair and streams == 1 and random.random() < 0.5
    has_often = {"memories", "in turn"} <= {*pair} and not residency
    often = {"p0": random.randint(1, 3)} if has_often else {}
    question = Question(frozenset(pair), sketches, residency, random.randint(0, 3), often)
    try:
        answer = question.ask()
    except mp.PlanError:
        return
    if all(part.plan.has_offsets for part in answer):
        compare(question)


def test_what_is_kept_is_not_written_over() -> None:
    """Tests a kept tensor over which an operator could write its result."""
    names = ("x", "a", "b", "c", "y")
    chain = [((one,), (other,), 0) for one, other in pairwise(names)]
    first = Sketch("one", dict(zip(names, (1, 8, 8, 8, 1), strict=True)), chain)
    programs = {"one": first.at(), "two": RESIDUAL.at()}
    kept = ["one:a"]
    found = mp.plan([*programs.values()], names=[*programs], keep=kept, levers=["in place"])
    left = {
        name: change_as(each, [s for s in found.steps if s.taken and s.program == name])
        for name, each in programs.items()
    }
    run_answer(found, left, Random(0), kept={"one": ["a"]}, runs=12)
    with pytest.raises(mp.PlanError, match="cannot be kept"):
        plan_together([*programs.values()], names=[*programs], keep=kept, in_place=True)

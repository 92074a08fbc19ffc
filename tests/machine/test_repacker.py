"""Tests of the repacker: sequences of calls against brute force, fresh solves and the referee."""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import oracle
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from strategies import buffers

import memplan as mp
from memplan_lab.bench import generators

Family = Callable[[int, int], mp.Problem]
RESERVED = [(5, 6)]
SMALL = frozenset({"alignment", "gaps", "windows", "zero"})


class Sequences(RuleBasedStateMachine):
    """Buffers come and go; questions are asked in between. What is in is known to the test."""

    def __init__(self) -> None:
        super().__init__()
        self.repacker = mp.Repacker(reserved=RESERVED)
        self.inside: dict[str, mp.Buffer] = {}
        self.count = 0
        self.answered = False

    def asked(self) -> mp.Problem:
        """Return the problem of all that is in, made without the repacker."""
        return mp.Problem(self.inside.values(), reserved=RESERVED)

    @rule(data=st.data(), pinned=st.booleans())
    def add(self, data: st.DataObject, pinned: bool) -> None:
        """Put a buffer in, perhaps a pinned one; those that no problem has are refused."""
        if len(self.inside) >= 6:
            return
        self.count += 1
        new = data.draw(buffers(f"b{self.count}", SMALL, max_size=5, max_time=6))
        if pinned:
            pin = data.draw(st.integers(0, 8)) * new.alignment
            new = mp.Buffer(new.id, new.start, new.end, new.size, new.alignment, pin, gaps=new.gaps)
        try:
            mp.Problem([*self.inside.values(), new], reserved=RESERVED)
        except mp.ProblemError as expected:
            with pytest.raises(mp.ProblemError, match=re.escape(str(expected))):
                self.repacker.add(new)
            return
        self.repacker.add(new)
        self.inside[new.id] = new
        self.answered = False

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Take some out."""
        if not self.inside:
            return
        ids = data.draw(st.lists(st.sampled_from(sorted(self.inside)), unique=True, max_size=3))
        self.repacker.remove(*ids)
        for id in ids:
            del self.inside[id]
        self.answered = self.answered and not ids

    @rule(capacity=st.integers(1, 20))
    def fits(self, capacity: int) -> None:
        """Ask, and compare with brute force."""
        before = {id: self.place(id) for id in self.inside}
        fits = self.repacker.fits(capacity)
        self.answered = bool(fits)
        assert fits is (oracle.fit(self.asked(), capacity) is not None)
        after = {id: self.place(id) for id in self.inside}
        moved = [id for id, at in before.items() if at is not None and at != after[id]]
        assert self.repacker.moved == len(moved)
        if not fits:
            assert not moved

    @rule()
    def least(self) -> None:
        """Ask for the least peak, and compare with brute force."""
        plan = self.repacker.plan("min_peak")
        assert plan.problem == self.repacker.problem()
        assert plan.capacity == self.repacker.capacity
        self.answered = plan.has_offsets
        best = oracle.minimum_peak(self.repacker.problem())
        if best is None:
            assert plan.status == "infeasible"
            return
        assert plan.peak == best
        assert plan.status == "optimal"
        assert plan.lower_bound <= best
        mp.verify(self.repacker.problem(), plan)

    @invariant()
    def holds_what_was_put_in(self) -> None:
        """Check that ids, problem and places are those of the buffers that are in."""
        assert len(self.repacker) == len(self.inside)
        assert all(id in self.repacker for id in self.inside)
        problem = self.repacker.problem()
        assert problem == self.asked().with_capacity(self.repacker.capacity)
        if not self.answered:
            return
        offsets = [self.repacker.offset(id) for id in problem.ids]
        mp.verify(problem, mp.Plan.of(problem, offsets))

    def place(self, id: str) -> int | None:
        """Return where a buffer lies, or None."""
        try:
            return self.repacker.offset(id)
        except mp.ProblemError:
            return None


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


def network(count: int, seed: int) -> list[mp.Buffer]:
    """Return buffers as an inference run has them."""
    problem = generators.nn_like(count, seed)
    return [mp.Buffer(f"{seed}/{b.id}", b.start, b.end, b.size) for b in problem.buffers]


def changes(seed: int, steps: int) -> list[tuple[list[mp.Buffer], list[mp.Buffer]]]:
    """Return for every step the buffers that go and those that come, of 120."""
    chance = random.Random(seed)
    inside, outside = network(120, 1), network(120, 2)
    made = []
    for _ in range(steps):
        chance.shuffle(inside)
        chance.shuffle(outside)
        gone, new = inside[:6], outside[:6]
        inside, outside = inside[6:] + new, outside[6:] + gone
        made.append((gone, new))
    return made


@pytest.mark.parametrize("family", [generators.nn_like, generators.training_like])
def test_the_least_peak_of_a_sequence_is_that_of_fresh_solves(family: Family) -> None:
    """Tests each way to a new plan: mended, in the order of the last one, by auto's first try."""
    pool = [
        mp.Buffer(f"{half}/{b.id}", b.start, b.end, b.size)
        for half in (0, 1)
        for b in family(150, half).buffers
    ]
    chance = random.Random(3)
    inside, outside = pool[:150], pool[150:]
    repacker, twin = mp.Repacker(inside), mp.Repacker(inside)
    ways = set()
    for step in range(60):
        count = 1 if step % 3 == 0 else 8
        chance.shuffle(inside)
        chance.shuffle(outside)
        gone, new = inside[:count], outside[:count]
        inside, outside = inside[count:] + new, outside[count:] + gone
        for each in (repacker, twin):
            each.remove(*(b.id for b in gone))
            each.add(*new)
        plan = repacker.plan()
        fresh = mp.solve(inside)
        assert (plan.peak, plan.status, plan.lower_bound) == (fresh.peak, "optimal", fresh.peak)
        assert plan.problem == repacker.problem() == mp.Problem(repacker.problem().buffers)
        mp.verify(repacker.problem(), plan)
        same = twin.plan()
        assert plan.offsets is not None
        assert same.offsets is not None
        assert plan.offsets.tolist() == same.offsets.tolist()
        assert plan.stats["moved"] == same.stats["moved"]
        ways.add((repacker.found_by, "plan before" in str(plan.stats["note"])))
    assert {("repack", False), ("greedy", True), ("greedy", False)} <= ways


def test_the_problem_keeps_hints_gaps_and_pins_as_they_come_and_go() -> None:
    """Tests that a problem made from the core's columns is the one that objects make."""
    repacker = mp.Repacker([mp.Buffer("a", 0, 4, 8, 4)], capacity=64)
    plain = [mp.Buffer("a", 0, 4, 8, 4), mp.Buffer("p", 1, 5, 8, pin=16)]
    special = [mp.Buffer("h", 2, 6, 4, hint=8), mp.Buffer("g", 0, 9, 4, gaps=(mp.Gap(2, 3),))]
    repacker.add(plain[1])
    assert repacker.problem() == mp.Problem(plain, 64)
    repacker.add(*special)
    assert repacker.fits()
    assert repacker.problem() == mp.Problem(plain + special, 64)
    mp.verify(repacker.problem(), repacker.plan())
    repacker.remove("h", "g")
    assert repacker.plan("min_peak").problem == mp.Problem(plain, 64)


@pytest.mark.parametrize("others", [[], [mp.Buffer("h", 2, 6, 4, hint=8)]])
def test_a_capacity_below_the_end_of_a_pin_is_an_answer(others: list[mp.Buffer]) -> None:
    """Tests that no call raises after it, with and without what the core's columns do not show."""
    rows = [mp.Buffer("a", 0, 4, 8, 4), mp.Buffer("p", 1, 5, 8, pin=16), *others]
    repacker = mp.Repacker(rows)
    assert repacker.fits(16) is False
    assert repacker.problem() == mp.Problem(rows, 16)
    for objective in (None, "fit", "min_peak"):
        plan = repacker.plan(objective)
        assert (plan.status, plan.capacity, plan.offsets) == ("infeasible", 16, None)
        assert plan.lower_bound >= 24
        assert "p" in plan.conflict
    assert repacker.capacity == 16
    repacker.remove("p")
    assert repacker.plan().status != "infeasible"
    assert repacker.problem().capacity == 16


def test_a_long_sequence_keeps_up_with_fresh_solves() -> None:
    """Tests that all fits whenever a fresh solve says so, and that most of the plan stays."""
    repacker = mp.Repacker(network(120, 1))
    mended = 0
    for gone, new in changes(5, 40):
        repacker.remove(*(buffer.id for buffer in gone))
        repacker.add(*new)
        best = mp.solve(repacker.problem().with_capacity(None))
        assert best.peak is not None
        assert repacker.fits(best.peak + best.peak // 4) is True
        mended += repacker.found_by == "repack"
        assert repacker.fits(best.peak) is True
        plan = repacker.plan()
        mp.verify(repacker.problem(), plan)
        assert plan.peak == best.peak
        assert repacker.fits(best.peak - 1) is False
    assert mended > 35


def test_the_least_peak_is_that_of_a_fresh_solve() -> None:
    """Tests min_peak along a sequence, and the bound that comes with it."""
    repacker = mp.Repacker(network(120, 1))
    for gone, new in changes(7, 20):
        repacker.remove(*(buffer.id for buffer in gone))
        repacker.add(*new)
        plan = repacker.plan()
        fresh = mp.solve(repacker.problem())
        assert (plan.peak, plan.status) == (fresh.peak, "optimal")
        assert plan.lower_bound == plan.peak
        mp.verify(repacker.problem(), plan)


def test_the_same_calls_give_the_same_plans() -> None:
    """Tests that two repackers agree, whatever the number of threads."""
    plans = []
    for threads in (1, 3):
        repacker = mp.Repacker(network(120, 1), threads=threads, seed=4)
        seen = []
        for gone, new in changes(9, 15):
            repacker.remove(*(buffer.id for buffer in gone))
            repacker.add(*new)
            offsets = repacker.plan("min_peak").offsets
            assert offsets is not None
            seen.append(offsets.tolist())
        plans.append(seen)
    assert plans[0] == plans[1]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_adding_makes_no_plan_illegal(seed: int) -> None:
    """Tests that the same buffers in another order, or one by one, fit all the same."""
    rows = network(60, 3)
    best = mp.solve(rows).peak
    assert best is not None
    random.Random(seed).shuffle(rows)
    repacker = mp.Repacker(capacity=best)
    for row in rows[:30]:
        repacker.add(row)
        assert repacker.fits()
    repacker.add(*rows[30:])
    assert repacker.fits()
    mp.verify(mp.Problem(rows, best), mp.Plan.of(mp.Problem(rows), repacker.plan().offsets))


def test_what_fits_into_the_holes_moves_nobody() -> None:
    """Tests that the plan stays, and that a new buffer goes where one has gone."""
    repacker = mp.Repacker([mp.Buffer(name, 0, 4, 4) for name in "abc"], capacity=12)
    assert repacker.fits()
    before = {name: repacker.offset(name) for name in "ac"}
    hole = repacker.offset("b")
    repacker.remove("b")
    repacker.add(mp.Buffer("d", 1, 3, 4))
    assert repacker.fits()
    assert repacker.offset("d") == hole
    assert {name: repacker.offset(name) for name in "ac"} == before
    assert repacker.moved == 0
    assert repacker.plan().stats["moved"] == 0


def test_no_comes_with_a_proof_and_leaves_all_where_it_is() -> None:
    """Tests an infeasible question: which buffers cause it, and that the old plan stays."""
    repacker = mp.Repacker([mp.Buffer("a", 0, 4, 4), mp.Buffer("b", 2, 6, 4)], capacity=8)
    assert repacker.fits()
    repacker.add(mp.Buffer("c", 3, 5, 1), mp.Buffer("far", 9, 10, 8))
    assert repacker.fits() is False
    plan = repacker.plan()
    assert plan.status == "infeasible"
    assert set(plan.conflict) == {"a", "b", "c"}
    assert {repacker.offset("a"), repacker.offset("b")} == {0, 4}
    with pytest.raises(mp.ProblemError, match='"c" has no place yet'):
        repacker.offset("c")
    repacker.remove("c")
    assert repacker.fits()
    assert repacker.moved == 0


def test_out_of_time_is_not_no() -> None:
    """Tests that a budget that ends gives None, and a plan of status unknown."""
    repacker = mp.Repacker(network(120, 1), capacity=1 << 40)
    assert repacker.fits(nodes=5) is None
    assert repacker.plan(nodes=5).status == "unknown"
    assert repacker.fits() is True


class Stopped:
    """A repacker of the core whose every answer was cut short by Ctrl-C."""

    def __init__(self, native: object) -> None:
        self.native = native

    def __getattr__(self, name: str) -> object:
        return getattr(self.native, name)

    def repack(self, *arguments: object) -> object:
        """Answer, and say that it was stopped."""
        answer = self.native.repack(*arguments)  # type: ignore[attr-defined]
        names = [name for name in dir(answer) if not name.startswith("_")]
        fields = {name: getattr(answer, name) for name in names}
        return SimpleNamespace(**(fields | {"interrupted": True}))


def test_ctrl_c_brings_the_plan_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the step from the core's word to the exception, without a signal."""
    repacker = mp.Repacker([mp.Buffer("a", 0, 4, 4)], capacity=8)
    monkeypatch.setattr(repacker, "_native", Stopped(repacker._native))
    with pytest.raises(mp.Interrupted) as caught:
        repacker.fits()
    assert caught.value.plan.offset("a") == 0


def test_a_copy_is_a_state_to_come_back_to() -> None:
    """Tests that what is tried on a copy does not touch the repacker."""
    repacker = mp.Repacker([mp.Buffer("a", 0, 4, 4)], capacity=8)
    repacker.plan()
    trial = repacker.copy()
    trial.remove("a")
    trial.add(mp.Buffer("b", 0, 4, 8))
    assert trial.fits()
    assert (list(repacker.problem().ids), list(trial.problem().ids)) == (["a"], ["b"])
    assert repacker.fits()
    assert repacker.offset("a") == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_pickled_repacker_goes_on_as_the_first_one(seed: int) -> None:
    """Tests that the same calls give the same answers, offsets and costs after a pickle."""
    first = mp.Repacker(network(120, 1), reserved=[(300, 310)], threads=1, seed=seed)
    second = pickle.loads(pickle.dumps(first))
    for step, (gone, new) in enumerate(changes(seed, 12)):
        answers = []
        for each in (first, second):
            each.remove(*(buffer.id for buffer in gone if buffer.id in each))
            each.add(*(buffer for buffer in new if buffer.id not in each))
            if step % 2:
                plan = each.plan("min_peak", nodes=5000)
                answer = (plan.status, plan.lower_bound, plan.offsets, plan.stats["note"])
            else:
                answer = each.fits(each._native.lower_bound() + 40, nodes=5000), each.problem()
            answers.append((*map(repr, answer), each.moved, each.nodes, each.found_by))
        assert answers[0] == answers[1]
        second = pickle.loads(pickle.dumps(second))


def test_numbers_of_numpy_are_taken() -> None:
    """Tests what only a problem can take: integers of other types, and gaps."""
    number = np.int64
    repacker = mp.Repacker(capacity=8)
    repacker.add(mp.Buffer("a", number(0), number(6), number(8), gaps=(mp.Gap(2, 4),)))  # type: ignore[arg-type]
    repacker.add(mp.Buffer("b", 2, 4, 8))
    assert repacker.fits()
    mp.verify(repacker.problem(), repacker.plan())


def test_a_problem_brings_its_capacity_and_ranges() -> None:
    """Tests the ways to begin."""
    problem = mp.Problem([mp.Buffer("a", 0, 4, 4)], capacity=12, reserved=[(0, 4)])
    repacker = mp.Repacker(problem)
    assert repacker.capacity == 12
    assert repacker.problem() == problem
    assert repacker.plan().offset("a") == 4
    assert mp.Repacker(problem, capacity=20, reserved=()).plan().offset("a") == 0
    assert mp.Repacker().plan().peak == 0


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (lambda r: r.add(mp.Buffer("a", 0, 1, 1)), "the id occurs twice"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, 1), mp.Buffer("x", 0, 1, 1)), "the id occurs twi"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, -1)), "size is -1"),
        (lambda r: r.add(mp.Buffer("x", 3, 3, 1)), "end is 3"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, 1.5)), "size is 1.5"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, True)), "size is True"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, 1, alignment=0)), "alignment is 0"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, 1, pin=-2)), "pin is -2"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, 4, pin=1 << 62)), "pin is 46"),
        (lambda r: r.add(mp.Buffer("x", 1, 2, 4, pin=98)), "its pin and that of"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, 1 << 62)), "2\\^62"),
        (lambda r: r.add(mp.Buffer("x", 9, 10, 1 << 62)), "at most 2\\^62 bytes in all"),
        (lambda r: r.add(mp.Buffer("", 0, 1, 1)), "is empty"),
        (lambda r: r.add(mp.Buffer(7, 0, 1, 1)), "must be a string"),
        (lambda r: r.add(mp.Buffer(["x"], 0, 1, 1)), "must be a string"),
        (lambda r: r.add(mp.Buffer("x", 0, 1, 1, gaps=(mp.Gap(0, 9),))), "gap"),
        (lambda r: r.add("x"), "not a Buffer"),
        (lambda r: r.add([mp.Buffer("x", 0, 1, 1)]), "not a Buffer"),
        (lambda r: r.remove("x"), 'no buffer has the id "x"'),
        (lambda r: r.remove("a", "a"), '"a" is to be removed twice'),
        (lambda r: r.remove(["a"]), "no buffer has the id a list"),
        (lambda r: r.remove(7), "no buffer has the id 7"),
        (lambda r: r.offset("x"), 'no buffer has the id "x"'),
        (lambda r: r.fits(0), "capacity is 0"),
        (lambda r: r.fits(-5), "capacity is -5"),
        (lambda r: r.fits("12"), "must be a whole number"),
        (lambda r: r.fits((1 << 62) + 1), "capacity is"),
        (lambda r: r.fits(nodes=0), "nodes is 0"),
        (lambda r: r.fits(timeout=-1), "timeout is -1"),
        (lambda r: r.plan("best"), "objective is"),
    ],
)
def test_mistakes_are_refused_and_change_nothing(action: object, sentence: str) -> None:
    """Tests that every mistake is one sentence, and that the state is as before."""
    repacker = mp.Repacker([mp.Buffer("a", 0, 4, 4), mp.Buffer("p", 0, 4, 4, pin=96)], capacity=100)
    assert repacker.fits()
    before = (repacker.problem(), repacker.plan(), repacker.capacity)
    with pytest.raises(mp.MemplanError, match=sentence) as refused:
        action(repacker)  # type: ignore[operator]
    assert "\n" not in str(refused.value)
    assert (repacker.problem(), repacker.plan(), repacker.capacity) == before
    assert repacker.moved == 0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: mp.Repacker(capacity=0), "capacity is 0"),
        (lambda: mp.Repacker(solver="nobody"), "there is no solver"),
        (lambda: mp.Repacker(solver="mip"), "cannot plan with"),
        (lambda: mp.Repacker(solver="exact:twins=off"), "without options"),
        (lambda: mp.Repacker(threads=0), "threads is 0"),
        (lambda: mp.Repacker(seed=-1), "seed is -1"),
        (lambda: mp.Repacker(reserved=[(4, 2)]), "reserved range"),
        (lambda: mp.Repacker([mp.Buffer("a", 0, 1, -1)]), "size is -1"),
        (lambda: mp.Repacker().fits(), "needs a capacity"),
        (lambda: mp.Repacker().plan("fit"), "needs a capacity"),
    ],
)
def test_a_repacker_is_not_made_of_nonsense(make: object, sentence: str) -> None:
    """Tests the arguments of the constructor, and questions that want a capacity."""
    with pytest.raises(mp.MemplanError, match=sentence):
        make()  # type: ignore[operator]


def test_what_it_does_not_keep_is_refused_by_name() -> None:
    """Tests conflicts and groups."""
    rows = [mp.Buffer("a", 0, 1, 1), mp.Buffer("b", 2, 3, 1)]
    with pytest.raises(mp.UnsupportedError, match="conflicts"):
        mp.Repacker(mp.Problem(rows, conflicts=[("a", "b")]))
    with pytest.raises(mp.UnsupportedError, match="groups"):
        mp.Repacker(mp.Problem(rows, groups=[("a", "b")]))

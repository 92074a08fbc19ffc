"""Tests that every pair of levers, scenarios and machines is planned, or refused with its reason.

Each cell is asked of small programs. The answer is verified, run on a machine of bytes, and
compared with what the functions of the engines give one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from random import Random
from typing import Any

import pytest
from oracle import held_by_time
from placed import ClobberedError, change_as, run_answer
from rounds import rounds

import memplan as mp
from memplan.ask.supports import explain_pair
from memplan.base.errors import MemplanError
from memplan.graph import Graph, Kind, Operator, Tensor
from memplan.memories.accesses import list_accesses, sum_bytes
from memplan.planning import layouts
from memplan.problem.plan import Plan
from memplan.sources import Loaded, of_graph, of_problem

EIGHT = ("order", "again", "memories", "in turn", "blocks", "penalties", "waits", "sizes")
LEVERS = ("in place", "order", "again", "waits")
PAIRS = [*combinations(EIGHT, 2), *(("in place", each) for each in EIGHT)]
SIZES = (1, 2, 3)

# ==================================================================================================
# Programs
# ==================================================================================================


@dataclass(frozen=True)
class Sketch:
    """A program: its tensors by name, and operators as (what is read, what is made, stream)."""

    name: str
    bytes: Mapping[str, int]
    operators: Sequence[tuple[tuple[str, ...], tuple[str, ...], int]]
    fixed: frozenset[str] = frozenset()  # tensors of which the bytes are no matter of the size

    def at(self, n: int = 1) -> Loaded:
        """Return it with so many times the bytes."""
        names = list(self.bytes)
        made = {each for _, outputs, _ in self.operators for each in outputs}
        read = {each for inputs, _, _ in self.operators for each in inputs}
        kinds = {
            name: Kind.OUTPUT
            if name not in read
            else (Kind.INTERMEDIATE if name in made else Kind.INPUT)
            for name in names
        }
        tensors = tuple(
            Tensor(name, size * (1 if name in self.fixed else n), kinds[name])
            for name, size in self.bytes.items()
        )
        index = {name: at for at, name in enumerate(names)}
        operators = []
        for at, (inputs, outputs, stream) in enumerate(self.operators):
            ins, outs = (tuple(index[each] for each in row) for row in (inputs, outputs))
            over = tuple((each, outs[0]) for each in ins[:1])
            operators.append(Operator(f"op{at}", "CONV", ins, outs, stream=stream, in_place=over))
        given = tuple(index[name] for name in names if kinds[name] is Kind.INPUT)
        wanted = tuple(index[name] for name in names if kinds[name] is Kind.OUTPUT)
        return of_graph(Graph(self.name, tensors, tuple(operators), given, wanted))

    @property
    def results(self) -> tuple[str, ...]:
        """The names of what it returns."""
        loaded = self.at()
        assert loaded.graph is not None
        return tuple(loaded.graph.tensors[each].name for each in loaded.graph.outputs)


# Two wide branches, of which each should be over before the other begins.
BRANCHES = Sketch(
    "branches",
    {"x": 3, "a": 10, "b": 10, "c": 1, "d": 2, "y": 3},
    [
        (("x",), ("a",), 0),
        (("x",), ("b",), 0),
        (("a",), ("c",), 0),
        (("b",), ("d",), 0),
        (("c", "d"), ("y",), 0),
    ],
)
# What goes in is added at the end, and the middle is wide.
RESIDUAL = Sketch(
    "residual",
    {"x": 4, "h": 6, "wide": 12, "back": 6, "sum": 6, "y": 4},
    [
        (("x",), ("h",), 0),
        (("h",), ("wide",), 0),
        (("wide",), ("back",), 0),
        (("back", "h"), ("sum",), 0),
        (("sum",), ("y",), 0),
    ],
    frozenset({"y"}),
)
# What is made on the way there is read on the way back, so that it pays to make it again.
STEP = Sketch(
    "step",
    {"x": 2, "f0": 8, "f1": 8, "f2": 8, "f3": 8, "g2": 8, "g1": 8, "y": 2},
    [
        (("x",), ("f0",), 0),
        (("f0",), ("f1",), 0),
        (("f1",), ("f2",), 0),
        (("f2",), ("f3",), 0),
        (("f3", "f2"), ("g2",), 0),
        (("g2", "f1"), ("g1",), 0),
        (("g1", "f0"), ("y",), 0),
    ],
)


def on_streams(sketch: Sketch, every: int) -> Sketch:
    """Return a program of which some operators run on a second stream."""
    operators = [
        (inputs, outputs, int(at % every == every - 1))
        for at, (inputs, outputs, _) in enumerate(sketch.operators)
    ]
    return replace(sketch, operators=operators)


# Two tables that are read in bursts, so that each should be in the fast memory for a while.
BURSTS = Sketch(
    "bursts",
    {"a": 8, "b": 8, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "y": 1},
    [
        (("a",), ("c",), 0),
        (("a", "c"), ("d",), 0),
        (("a", "d"), ("e",), 0),
        (("b", "e"), ("f",), 0),
        (("b", "f"), ("g",), 0),
        (("b", "g"), ("y",), 0),
    ],
)
PLAIN = (BRANCHES, RESIDUAL, STEP)
PARALLEL = (
    on_streams(BRANCHES, 2),
    Sketch(
        "lanes",
        {"x": 2, "a": 6, "b": 6, "c": 6, "d": 6, "y": 2},
        [
            (("x",), ("a",), 0),
            (("x",), ("b",), 1),
            (("a",), ("c",), 0),
            (("b",), ("d",), 1),
            (("c", "d"), ("y",), 0),
        ],
    ),
    Sketch(
        "apart",
        {"x": 2, "a": 5, "b": 7, "c": 3, "d": 4, "e": 4, "y": 2, "z": 2},
        [
            (("x",), ("a",), 0),
            (("x",), ("b",), 1),
            (("a",), ("c",), 0),
            (("b",), ("d",), 1),
            (("d",), ("e",), 1),
            (("c",), ("y",), 0),
            (("e",), ("z",), 1),
        ],
    ),
)


def draw_sketch(random: Random, name: str, *, streams: int) -> Sketch:
    """Return a random program."""
    count = random.randint(3, 7)
    bytes = {f"t{at}": random.randint(1, 12) for at in range(count + 1)}
    operators = []
    for at in range(count):
        pool = [f"t{each}" for each in range(at + 1)]
        some = random.sample(pool, min(len(pool), random.randint(1, 2)))
        if random.random() < 0.6 and f"t{at}" not in some:
            some[0] = f"t{at}"
        operators.append((tuple(some), (f"t{at + 1}",), random.randrange(streams)))
    if streams > 1:
        operators[0] = (*operators[0][:2], 0)
        operators[-1] = (*operators[-1][:2], 1)
    if not any("t0" in inputs for inputs, *_ in operators):
        operators[0] = (("t0",), *operators[0][1:])
    return Sketch(name, bytes, operators)


# ==================================================================================================
# Questions
# ==================================================================================================


@dataclass
class Question:
    """A cell of the table, asked of programs."""

    ideas: frozenset[str]
    sketches: tuple[Sketch, ...]
    residency: bool = False
    block_of: int = 0
    often: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the programs."""
        return tuple(each.name for each in self.sketches)

    @property
    def levers(self) -> list[str]:
        """The levers that are asked for."""
        return [each for each in LEVERS if each in self.ideas]

    @property
    def is_sized(self) -> bool:
        """Whether programs have many sizes."""
        return "sizes" in self.ideas

    @property
    def largest(self) -> int:
        """The largest size."""
        return SIZES[-1] if self.is_sized else 1

    def load(self) -> int:
        """Return what is live at most in one program."""
        return max(each.at(self.largest).problem.max_load for each in self.sketches)

    @cached_property
    def goal(self) -> int | None:
        """The capacity, where levers need one: a byte less than what is needed without them."""
        if not {"again", "waits", "penalties"} & self.ideas:
            return None
        plain = replace(self, ideas=self.ideas & {"in turn", "sizes"})
        peak = mp.solve(plain.join([each.at(self.largest) for each in self.sketches])).peak
        assert peak is not None
        return peak - 1 if {"again", "waits"} & self.ideas else peak * 5 // 4

    def join(self, pulled: Sequence[Loaded]) -> mp.Problem:
        """Return programs, which levers may have changed, as one problem."""
        if not self.is_sized:
            return join(self, pulled)

        def read(n: int) -> Loaded:
            return of_problem(join(self, [each.at(n) for each in self.sketches]))

        return mp.envelope(read, {"n": SIZES}, nodes=5000).problem

    def machine(self) -> mp.Machine:
        """Return where all is placed."""
        load, block = self.load(), None
        if "blocks" in self.ideas:
            sizes = [each.at(self.largest).problem.size.max() for each in self.sketches]
            block = max(int(max(sizes)), load * 2 // 3) + self.block_of
        goal = self.goal
        if "memories" in self.ideas:
            fast = mp.Memory("fast", load * 3 // 5, 0, 1, block=block)
            slow = mp.Memory("slow", None, 3, 5)
            penalties = self.penalties() if "penalties" in self.ideas else None
            return mp.Machine((fast, slow), penalties=penalties, residency=self.residency)
        penalties = self.penalties() if "penalties" in self.ideas else None
        if block is not None:
            goal = None
        return mp.Machine(capacity=goal, block=block, penalties=penalties)

    def penalties(self) -> dict[tuple[str, str], int]:
        """Return what some pairs cost that do not live at the same time as the programs are."""
        found: dict[tuple[str, str], int] = {}
        for sketch in self.sketches:
            problem = sketch.at().problem
            begin = f"{sketch.name}/" if len(self.sketches) > 1 else ""
            known = set(map(tuple, problem.conflicts.pairs().tolist()))
            for a, b in combinations(range(len(problem)), 2):
                one, other = problem.ids[a], problem.ids[b]
                if not _meet(problem, one, other) and (a, b) not in known:
                    found[f"{begin}{one}", f"{begin}{other}"] = 1 + (a + b) % 3
        if len(self.sketches) > 1:
            one, other = self.sketches[:2]
            first = [f"{each.name}/{next(iter(each.bytes))}" for each in (one, other)]
            found[first[0], first[1]] = 2
        return found

    def ask(self, **more: Any) -> mp.Answer:
        """Ask `memplan.plan`."""
        programs: list[Any] = [
            (lambda n, each=each: each.at(n)) if self.is_sized else each.at()
            for each in self.sketches
        ]
        if self.is_sized:
            more["sizes"] = {"n": SIZES}
        if len(programs) > 1:
            more |= {"names": self.names, "keep": ["outputs"]}
            if self.often:
                more["often"] = self.often
        machine = self.machine()
        if "max_extra" not in more:
            more["max_extra"] = 10.0
        return mp.plan(
            programs if len(programs) > 1 else programs[0],
            machine=machine,
            levers=self.levers,
            nodes=5000,
            threads=1,
            **more,
        )


# ==================================================================================================
# By hand
# ==================================================================================================


def pull(question: Question, loaded: Loaded) -> Loaded:
    """Return a program after one lever after the other, each as good as it is by itself."""
    goals = question.machine().list_goals(question.load()) or (loaded.problem.max_load,)
    if "order" in question.ideas:
        loaded = mp.reorder(loaded, in_place="in place" in question.ideas).loaded
    elif "again" in question.ideas:
        with suppress(mp.PlanError):
            loaded = mp.recompute(loaded, goals[0]).loaded
    elif "waits" in question.ideas:
        loaded = mp.plan_waits(loaded, capacity=goals[0]).loaded
    loaded = layouts(loaded, in_place="in place" in question.ideas)[-1]
    return replace(loaded, problem=loaded.problem.with_capacity(None))


def join(question: Question, programs: Sequence[Loaded]) -> mp.Problem:
    """Return programs as one problem."""
    if len(programs) == 1:
        return programs[0].problem.with_capacity(None)
    found = mp.plan_together(programs, names=question.names, keep=["outputs"], nodes=5000)
    return found.problem.with_capacity(None)


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
        return mp.assign(problem, machine.memories, accessed, nodes=5000).traffic  # type: ignore[arg-type]
    if machine.block is not None:
        return mp.plan_blocks(problem, machine.block, nodes=5000).count
    if machine.penalties is not None:
        given = dict(machine.penalties)  # type: ignore[arg-type]
        known = set(problem.ids)
        pairs = {
            (a, b): cost
            for (a, b), cost in given.items()
            if {a, b} <= known and not _meet(problem, a, b)
        }
        if len(pairs) < len(given) and "in place" in question.ideas:
            return None  # pairs in one buffer, which is a matter of names
        try:
            found = mp.plan_apart(problem, pairs, capacity=machine.capacity, nodes=5000)
        except mp.PlanError:
            return None
        return found.cost if found.plan.has_offsets else None
    return mp.solve(problem, nodes=5000).peak


def _meet(problem: mp.Problem, a: str, b: str) -> bool:
    """Return whether two buffers hold bytes at the same moment."""
    one, other = (
        {time for time, bits in held_by_time(problem, problem.index(id)) if bits} for id in (a, b)
    )
    return bool(one & other)


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
        each.name: [step for step in answer.steps if not several or step.program == each.name]
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
            name = f"{part.program}/{id}" if several else id
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
        in_place = any(each.lever == "in place" for each in answer.steps)
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
            pulled |= {step.lever for step in compare(question).steps}
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

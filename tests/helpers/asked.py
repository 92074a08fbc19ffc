"""Small programs, and questions about them that are made of any ideas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from random import Random
from typing import Any

from oracle import held_by_time

import memplan as mp
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph, of_problem
from memplan.scenarios.envelope import envelope
from memplan.scenarios.together import plan_together

LEVERS = ("in place", "order", "again", "waits")
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

        return envelope(read, {"n": SIZES}, nodes=5000).problem

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
                if not meet(problem, one, other) and (a, b) not in known:
                    found[f"{begin}{one}", f"{begin}{other}"] = 1 + (a + b) % 3
        if len(self.sketches) > 1:
            first = [f"{each.name}/{next(iter(each.bytes))}" for each in self.sketches[:2]]
            found[first[0], first[1]] = 2
        return found

    def ask(self, **more: Any) -> mp.Answer:
        """Ask `memplan.plan`."""
        programs: list[Any] = [each.at if self.is_sized else each.at() for each in self.sketches]
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


def join(question: Question, programs: Sequence[Loaded]) -> mp.Problem:
    """Return programs as one problem."""
    if len(programs) == 1:
        return programs[0].problem.with_capacity(None)
    found = plan_together(programs, names=question.names, keep=["outputs"], nodes=5000)
    return found.problem.with_capacity(None)


def meet(problem: mp.Problem, a: str, b: str) -> bool:
    """Return whether two buffers hold bytes at the same moment."""
    one, other = (
        {time for time, bits in held_by_time(problem, problem.index(id)) if bits} for id in (a, b)
    )
    return bool(one & other)

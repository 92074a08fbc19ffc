"""Tests that programs which are not pure compute the same in every order that memplan allows.

Random programs draw random numbers, talk to the world, update tensors in place, share memory, keep
state, and have branches and loops. They are run with real values: first as given, with memory of
its own for every storage; then in other orders, in the memory of a plan for that order. Outputs,
state and effects must be the same. Without one kind of arc they must not be: so the runs can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from rounds import rounds

import memplan as mp
from memplan.levers.rewrite import columns, effects, hazards, reorder
from memplan.problem import OrderProblem
from memplan.programs.graph import Block, Graph, Kind, Layout, Operator, Tensor, View, lay_out
from memplan.programs.sources import Loaded, lay_out_again, of_graph
from memplan.programs.sources.dialects import Shared

GIVEN = frozenset({Kind.INPUT, Kind.CONSTANT, Kind.VARIABLE})
WANTED = frozenset({Kind.OUTPUT, Kind.CONSTANT, Kind.VARIABLE})

# ==================================================================================================
# What types of operators do
# ==================================================================================================


@dataclass(frozen=True)
class Types:
    """The types that programs of one format are made of."""

    compute: tuple[str, ...]
    look: tuple[str, ...]  # the result is some bytes of the input, which stay as they are
    branch: str
    loop: str
    update: tuple[str, ...] = ()
    draw: tuple[str, ...] = ()  # random numbers
    world: tuple[str, ...] = ()


FORMATS = {
    "": Types(("Op", "Fill"), ("Reshape", "slice"), "If", "While", ("add_", "fill_")),
    "onnx": Types(
        ("Conv", "com.microsoft.Gelu"),
        ("Reshape",),
        "If",
        "Loop",
        draw=("RandomNormalLike", "Bernoulli"),
        world=("com.microsoft.AllReduce",),
    ),
    "tflite": Types(
        ("CONV_2D", "SVDF"),
        ("RESHAPE",),
        "IF",
        "WHILE",
        draw=("RANDOM_UNIFORM", "MULTINOMIAL"),
        world=("ASSIGN_VARIABLE", "READ_VARIABLE", "HASHTABLE_FIND"),
    ),
    "torch": Types(
        ("aten.mm", "prims.mul"),
        ("aten.view", "aten.t"),
        "cond",
        "while_loop",
        ("aten.add_", "aten.add_.Tensor", "aten.copy_", "aten.bernoulli_"),
        draw=("aten.rand_like", "aten.native_dropout", "aten.bernoulli_"),
        world=("aten._print", "aten._assert_async", "_c10d_functional.all_reduce"),
    ),
}
LOOKS = frozenset(type_ for types in FORMATS.values() for type_ in types.look)
UPDATES = frozenset(type_ for types in FORMATS.values() for type_ in types.update)
DRAWS = frozenset(type_ for types in FORMATS.values() for type_ in types.draw)
WORLDS = frozenset(type_ for types in FORMATS.values() for type_ in types.world)


def find_written(graph: Graph, operator: Operator) -> tuple[int, ...]:
    """Return the tensors that an operator writes as it ends."""
    if operator.type in LOOKS:
        return ()
    written: tuple[int, ...] = ()
    if operator.type in UPDATES:
        written = operator.inputs[-1:] if operator.type == "aten.copy_" else operator.inputs[:1]
    if graph.source == "tflite":  # a kernel replaces the state that it reads
        written = tuple(i for i in operator.inputs if graph.tensors[i].kind is Kind.VARIABLE)
    return (*written, *operator.outputs)


# ==================================================================================================
# Running
# ==================================================================================================


@dataclass(frozen=True)
class Outcome:
    """What a caller can see of a run."""

    values: dict[str, bytes]  # outputs and state, by name
    log: tuple[bytes, ...]  # each entry depends on those before it
    drawn: int


class Machine:
    """Runs operators of a layout, each of which hashes all that it reads into all that it writes.

    Memory that has no value yet holds the byte `poison`. Without offsets, every storage has memory
    of its own; otherwise those that are planned have the offsets of their rows.
    """

    def __init__(
        self, layout: Layout, offsets: npt.NDArray[np.int64] | None = None, poison: int = 0xA5
    ) -> None:
        self._graph = layout.graph
        self._poison = poison
        self._tensors: dict[int, slice] = {}
        self._scratch: dict[int, slice] = {}
        begins = {} if offsets is None else dict(zip(layout.rows, offsets.tolist(), strict=True))
        top = max((begin + layout.storages[i].bytes for i, begin in begins.items()), default=0)
        for number, storage in enumerate(layout.storages):
            if number not in begins:
                begins[number] = top
                top += storage.bytes
            begin = begins[number]
            for tensor, offset in zip(storage.tensors, storage.offsets, strict=True):
                first = begin + offset
                self._tensors[tensor] = slice(first, first + self._graph.tensors[tensor].bytes)
            if storage.workspace_of is not None:
                self._scratch[id(storage.workspace_of)] = slice(begin, begin + storage.bytes)
        self._memory = bytearray([poison]) * top
        self._log = [b""]
        self._drawn = 0
        for index, each in enumerate(self._graph.tensors):
            if each.kind in GIVEN:
                self._write(index, b"given", index)

    def run(self, operators: Iterable[Operator]) -> Outcome:
        """Run operators one after the other, and return what the caller sees then."""
        self._run(operators)
        graph = self._graph
        wanted = {i for i, tensor in enumerate(graph.tensors) if tensor.kind in WANTED}
        values = {graph.tensors[i].name: self._read(i) for i in wanted.union(graph.outputs)}
        return Outcome(values, tuple(self._log), self._drawn)

    def _run(self, operators: Iterable[Operator]) -> None:
        for operator in operators:
            self._scribble(operator)
            seed = _hash(operator.name.encode(), *map(self._read, operator.inputs))
            if operator.type in DRAWS:
                self._drawn += 1
                seed = _hash(seed, bytes([self._drawn]))
            if operator.type in WORLDS:
                seed = _hash(seed, self._log[-1])
                self._log.append(seed)
            if operator.blocks:
                seed = self._run_blocks(operator, seed)
            for number, tensor in enumerate(find_written(self._graph, operator)):
                self._write(tensor, seed, number)
            self._scribble(operator)

    def _run_blocks(self, operator: Operator, seed: bytes) -> bytes:
        """Run a branch, or a loop twice; return a hash of the results."""
        branch = operator.blocks[seed[0] % len(operator.blocks)]
        for block in operator.blocks * 2 if operator.loop else (branch,):
            for number, tensor in enumerate(block.inputs):
                self._write(tensor, seed, number)
            self._run(block.operators)
            seed = _hash(seed, *map(self._read, block.outputs))
        return seed

    def _read(self, tensor: int) -> bytes:
        return bytes(self._memory[self._tensors[tensor]])

    def _write(self, tensor: int, seed: bytes, number: int) -> None:
        place = self._tensors[tensor]
        digest = _hash(seed, bytes([number]))
        self._memory[place] = digest[: place.stop - place.start]

    def _scribble(self, operator: Operator) -> None:
        """Overwrite the workspace of an operator, as it may at any time while it runs."""
        place = self._scratch.get(id(operator), slice(0, 0))
        self._memory[place] = bytes([self._poison]) * (place.stop - place.start)


def _hash(*values: bytes) -> bytes:
    digest = blake2b()
    for value in values:
        digest.update(bytes([len(value)]) + value)
    return digest.digest()


def run_planned(loaded: Loaded) -> Outcome:
    """Run a program in the memory of a plan."""
    assert loaded.layout is not None
    plan = mp.solve(loaded, threads=1)
    assert plan.offsets is not None
    return Machine(loaded.layout, plan.offsets).run(loaded.layout.graph.operators)


# ==================================================================================================
# Random programs
# ==================================================================================================


class Builder:
    """Draws a program; `scope` is what may be read at a place, and `mine` what its block makes."""

    def __init__(self, random: Random, source: str) -> None:
        self.random = random
        self.source = source
        self.types = FORMATS[source]
        self.tensors: list[Tensor] = []
        self.views: list[View] = []
        self.aliases: list[tuple[int, int]] = []
        self.root: list[int] = []
        self.read: set[int] = set()
        self.operators = 0

    def graph(self) -> Graph:
        """Draw a program."""
        kinds = [Kind.INPUT, *self.random.choices(sorted(GIVEN), k=self.random.randint(1, 3))]
        scope = [self.tensor(kind) for kind in kinds]
        inputs = tuple(i for i in scope if self.tensors[i].kind is Kind.INPUT)
        mine: list[int] = []
        operators = self.sequence(scope, mine, self.random.randint(3, 12), depth=0)
        outputs = [i for i in mine if i not in self.read and self.random.random() < 0.7]
        outputs += self.random.sample(mine, min(1, len(mine)))
        for index in outputs:
            self.tensors[index] = replace(self.tensors[index], kind=Kind.OUTPUT)
        everything = self.random.random() < 0.5
        return Graph(
            "net",
            tuple(self.tensors),
            operators,
            inputs,
            tuple(dict.fromkeys(outputs)),
            tuple(self.views),
            tuple(self.aliases),
            alignment=self.random.choice((1, 1, 4)),
            planned=frozenset(Kind if everything else (Kind.INTERMEDIATE, Kind.WORKSPACE)),
            source=self.source,
        )

    def tensor(self, kind: Kind = Kind.INTERMEDIATE, bytes: int | None = None) -> int:
        """Make a tensor with memory of its own, and return its index."""
        size = self.random.choice((8, self.random.randint(4, 32))) if bytes is None else bytes
        self.root.append(len(self.tensors))
        self.tensors.append(Tensor(f"t{len(self.tensors)}", size, kind))
        return len(self.tensors) - 1

    def view(self, base: int) -> int:
        """Make a tensor that is some bytes of another, or all of them."""
        most = self.tensors[base].bytes
        begin, end = self.random.choice(
            ((0, most), (0, most), (0, (most + 1) // 2), (most // 2, most))
        )
        index = self.tensor(bytes=end - begin)
        self.views.append(View(index, base, begin))
        self.root[index] = self.root[base]
        return index

    def sequence(
        self, scope: list[int], mine: list[int], count: int, depth: int
    ) -> tuple[Operator, ...]:
        """Draw operators; what they make is added to `scope` and `mine`."""
        ways: list[Callable[[list[int], list[int]], Operator | None]] = [
            *(self.compute, self.compute, self.compute, self.look, self.update),
            *(self.part, self.alias, self.draw, self.meet_world),
        ]
        if depth < 2:
            ways.append(lambda scope, _: self.with_blocks(scope, depth))
        found: list[Operator] = []
        while len(found) < count:
            operator = self.random.choice(ways)(scope, mine)
            if operator is not None:
                found.append(operator)
                scope += operator.outputs
                mine += operator.outputs
        return tuple(found)

    def operator(
        self, types: Sequence[str], inputs: Sequence[int], outputs: Sequence[int] = ()
    ) -> Operator:
        """Return an operator of one of these types."""
        self.operators += 1
        self.read.update(inputs)
        workspace = self.random.choice((0, 0, 0, 0, 8))
        type_ = self.random.choice(types)
        name = f"op{self.operators}"
        return Operator(name, type_, tuple(inputs), tuple(outputs), workspace=workspace)

    def inputs(self, scope: Sequence[int], *, without: int | None = None) -> list[int]:
        """Draw what an operator reads; it is not in the memory of `without`."""
        possible = [i for i in scope if without is None or self.root[i] != self.root[without]]
        return self.random.sample(possible, min(len(possible), self.random.randint(0, 3)))

    def target(self, scope: Sequence[int], mine: Sequence[int]) -> int | None:
        """Draw what an operator writes that has memory already."""
        kinds = {i: self.tensors[self.root[i]].kind for i in scope}
        possible = [i for i in scope if kinds[i] is not Kind.CONSTANT]
        return self.random.choice(possible) if possible else None

    def compute(self, scope: list[int], _: list[int]) -> Operator:
        """Draw an operator that makes one or two results."""
        inputs = self.inputs(scope)
        outputs = [self.tensor() for _ in range(self.random.randint(1, 2))]
        pairs = tuple((i, outputs[0]) for i in inputs[:1] if self.random.random() < 0.5)
        return replace(self.operator(self.types.compute, inputs, outputs), in_place=pairs)

    def look(self, scope: list[int], _: list[int]) -> Operator:
        """Draw an operator whose result is a part of its input."""
        base = self.random.choice(scope)
        return self.operator(self.types.look, [base], [self.view(base)])

    def update(self, scope: list[int], mine: list[int]) -> Operator | None:
        """Draw an operator that writes over an input, which it may also return."""
        target = self.target(scope, mine)
        if target is None or not self.types.update:
            return None
        outputs = [self.view(target)] if self.random.random() < 0.3 else []
        operator = self.operator(self.types.update, [target], outputs)
        others = self.inputs(scope)
        self.read.update(others)
        last = operator.type == "aten.copy_"
        return replace(operator, inputs=(*others, target) if last else (target, *others))

    def part(self, scope: list[int], mine: list[int]) -> Operator | None:
        """Draw an operator that makes a part of a tensor that there is already."""
        target = self.target(scope, mine)
        if target is None:
            return None
        inputs = self.inputs(scope, without=target if self.source == "torch" else None)
        return self.operator(self.types.compute, inputs, [self.view(target)])

    def alias(self, scope: list[int], mine: list[int]) -> Operator | None:
        """Draw an operator whose result replaces a tensor, as that of a new state does."""
        target = self.target(scope, mine)
        if target is None:
            return None
        inputs = self.inputs(scope)
        result = self.tensor(bytes=self.tensors[target].bytes)
        self.aliases.append((target, result))
        self.root[result] = self.root[target]
        return self.operator(self.types.compute, inputs, [result])

    def draw(self, scope: list[int], _: list[int]) -> Operator | None:
        """Draw an operator that makes random numbers."""
        types = [type_ for type_ in self.types.draw if type_ not in self.types.update]
        return self.operator(types, self.inputs(scope), [self.tensor()]) if types else None

    def meet_world(self, scope: list[int], _: list[int]) -> Operator | None:
        """Draw an operator that tells the world, or asks it."""
        outputs = [self.tensor() for _ in range(self.random.randint(0, 1))]
        types = self.types.world
        return self.operator(types, self.inputs(scope), outputs) if types else None

    def with_blocks(self, scope: list[int], depth: int) -> Operator:
        """Draw branches, or a loop."""
        loop = self.random.random() < 0.5
        operator = self.operator([self.types.loop if loop else self.types.branch], [])
        blocks: list[Block] = []
        for _ in range(self.random.randint(1, 2)):
            inputs = [self.tensor() for _ in range(self.random.randint(0, 2))]
            inside = scope + inputs
            mine: list[int] = []
            count = self.random.randint(1, 4)
            operators = self.sequence(inside, mine, count, depth + 1)
            outputs = [i for i in mine if i not in self.read] or self.random.sample(inside, 1)
            self.read.update(outputs)
            blocks.append(Block(f"block{len(blocks)}", operators, tuple(inputs), tuple(outputs)))
        result = self.tensor()
        carried = blocks[0].inputs
        if loop and carried and self.random.random() < 0.5:
            result = self.tensor(bytes=self.tensors[carried[0]].bytes)
            self.aliases.append((carried[0], result))
            self.root[result] = self.root[carried[0]]
        conditions = tuple(self.inputs(scope))
        self.read.update(conditions)
        return replace(
            operator, inputs=conditions, outputs=(result,), blocks=tuple(blocks), loop=loop
        )


@dataclass(frozen=True)
class DrawnProgram:
    """A random program, and what it computes."""

    graph: Graph
    layout: Layout
    expected: Outcome


def draw_programs(
    count: int, *, begin: int = 0, sources: Iterable[str] = FORMATS
) -> Iterator[tuple[Random, DrawnProgram]]:
    """Yield programs of all formats, each with what draws its orders."""
    found = sorted(sources)
    for seed in range(begin, begin + count):
        random = Random(seed)
        graph = Builder(random, found[seed % len(found)]).graph()
        layout = lay_out(graph)
        expected = Machine(layout).run(graph.operators)
        assert Machine(layout, poison=0x5A).run(graph.operators) == expected, "reads no value"
        yield random, DrawnProgram(graph, layout, expected)


# ==================================================================================================
# Random orders
# ==================================================================================================


def draw_order(random: Random, layout: Layout) -> tuple[Operator, ...]:
    """Return the operators of a program in a random order that memplan allows, blocks included."""
    operators = tuple(_shuffle_blocks(random, layout, each) for each in layout.graph.operators)
    return _shuffle(random, operators, columns.order_problem(layout))


def _shuffle_blocks(random: Random, layout: Layout, operator: Operator) -> Operator:
    blocks = []
    for block in operator.blocks:
        asked = columns.columns_of_block(layout, operator, block).problem
        inner = tuple(_shuffle_blocks(random, layout, each) for each in block.operators)
        blocks.append(replace(block, operators=_shuffle(random, inner, asked)))
    return replace(operator, blocks=tuple(blocks)) if blocks else operator


def _shuffle(
    random: Random, operators: Sequence[Operator], asked: OrderProblem
) -> tuple[Operator, ...]:
    """Return operators in a random order that has the first of each arc before the second."""
    before: list[set[int]] = [set() for _ in operators]
    for one, other in asked.arcs.tolist():
        before[other].add(one)
    order: list[int] = []
    while len(order) < len(operators):
        ready = [at for at, others in enumerate(before) if at not in order and others <= {*order}]
        order.append(random.choice(ready))
    return tuple(operators[at] for at in order)


def is_wrong(random: Random, program: DrawnProgram, orders: int = 4) -> bool:
    """Return whether one of some random orders computes something else, in memory of its own."""
    runs = (draw_order(random, program.layout) for _ in range(orders))
    return any(Machine(program.layout).run(run) != program.expected for run in runs)


def check_orders(random: Random, program: DrawnProgram, orders: int) -> int:
    """Run random orders, in memory of their own and in plans; return how many are not as given."""
    changed = 0
    for _ in range(orders):
        operators = draw_order(random, program.layout)
        changed += operators != program.graph.operators
        assert Machine(program.layout).run(operators) == program.expected
        apart = of_graph(replace(program.graph, operators=operators))
        for in_place in (False, True):
            assert run_planned(lay_out_again(apart, in_place=in_place)) == program.expected
    return changed


def check_best(program: DrawnProgram, *, in_place: bool) -> int:
    """Run the best order in a plan; return whether it is not as given."""
    found = reorder(program.graph, in_place=in_place, states=2000)
    assert Machine(program.layout).run(found.graph.operators) == program.expected
    assert run_planned(found.loaded) == program.expected
    return found.graph.operators != program.graph.operators


# ==================================================================================================
# Tests
# ==================================================================================================


@pytest.mark.slow
class TestSoundness:
    """Every order that memplan allows computes the same."""

    def test_random_orders(self) -> None:
        """Tests orders that the arcs of the question allow, which are worse than the best ones."""
        changed = sum(check_orders(random, each, 3) for random, each in draw_programs(240))
        assert changed > 400

    @pytest.mark.parametrize("in_place", [False, True])
    def test_best_orders(self, in_place: bool) -> None:
        """Tests what `reorder` returns, also if it has writes over inputs."""
        moved = sum(check_best(each, in_place=in_place) for _, each in draw_programs(400))
        assert moved > 80

    @pytest.mark.deep
    def test_many_programs(self) -> None:
        """Tests all of it on many more programs."""
        for random, program in draw_programs(rounds(1_500, 6_000), begin=1_000):
            check_orders(random, program, 3)
            check_best(program, in_place=random.random() < 0.5)


class TestArcs:
    """Without one kind of arc, random orders compute something else: each kind is needed."""

    def check_needed(self) -> None:
        """Assert that some program is wrong in some order."""
        assert any(is_wrong(random, program) for random, program in draw_programs(300))

    def test_nothing_is_wrong_with_all_arcs(self) -> None:
        """Tests that it is the missing arcs which the other tests see."""
        assert not any(is_wrong(random, program) for random, program in draw_programs(300))

    def test_waits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tests operators that do not wait for results."""
        monkeypatch.setattr(columns, "waits", lambda operators, _: [{} for _ in operators])
        self.check_needed()

    @pytest.mark.parametrize(
        ("earlier", "later"),
        [
            pytest.param(False, True, id="write-after-read"),
            pytest.param(True, False, id="read-after-write"),
            pytest.param(True, True, id="write-after-write"),
        ],
    )
    def test_hazards(self, monkeypatch: pytest.MonkeyPatch, earlier: bool, later: bool) -> None:
        """Tests each pair of a read and a write, or of two writes."""
        find = hazards._conflicts

        def find_others(uses: Sequence[hazards._Use]) -> Iterator[tuple[int, int]]:
            for pair in combinations(uses, 2):
                if (pair[0].writes, pair[1].writes) != (earlier, later):
                    yield from find(pair)

        monkeypatch.setattr(hazards, "_conflicts", find_others)
        self.check_needed()

    @pytest.mark.parametrize("shared", Shared)
    def test_effects(self, monkeypatch: pytest.MonkeyPatch, shared: Shared) -> None:
        """Tests random numbers, and what the world sees."""

        def find_others(graph: Graph, operator: Operator) -> set[Shared]:
            return effects.shared_by(graph, operator) - {shared}

        monkeypatch.setattr(columns, "shared_by", find_others)
        self.check_needed()

    def test_the_plan_of_another_order(self) -> None:
        """Tests that runs see wrong lifetimes: the plan is one of the given order."""

        def is_spoiled(random: Random, program: DrawnProgram) -> bool:
            plan = mp.solve(of_graph(program.graph), threads=1)
            order = draw_order(random, program.layout)
            return Machine(program.layout, plan.offsets).run(order) != program.expected

        assert any(is_spoiled(random, program) for random, program in draw_programs(100))


class TestFound:
    """What random orders have found."""

    def test_state_of_a_block(self) -> None:
        """Tests the bound if only a block touches a state, which is live all the time."""
        tensors = (
            Tensor("state", 100, Kind.VARIABLE),
            Tensor("inner", 4),
            Tensor("outer", 4, Kind.OUTPUT),
        )
        block = Block("then", (Operator("a", "Op", (0,), (1,)),), (), (1,))
        branch = Operator("b", "If", (), (2,), blocks=(block,))
        graph = Graph("net", tensors, (branch,), (), (2,), planned=frozenset(Kind))
        found = reorder(graph)
        assert found.bound <= found.peak == 108


class TestRefusals:
    """What no order is sound for."""

    def test_several_streams(self) -> None:
        """Tests that the order on streams is left alone, and the sentence says so."""
        operators = (Operator("a", "Op", (0,), (1,)), Operator("b", "Op", (0,), (2,), stream=7))
        tensors = (Tensor("x", 8, Kind.INPUT), Tensor("y", 8), Tensor("z", 8))
        graph = Graph("net", tensors, operators, (0,), (1, 2))
        with pytest.raises(mp.MemplanError, match="the operators run on 2 streams"):
            reorder(graph)

    @pytest.mark.parametrize("inside", [False, True])
    def test_unknown_effects(self, inside: bool) -> None:
        """Tests a type outside of the tables, also in a branch: it is named, and can be vouched."""
        tensors = [Tensor("x", 8, Kind.INPUT), Tensor("y", 8), Tensor("z", 8, Kind.OUTPUT)]
        operators: tuple[Operator, ...] = (
            Operator("send", "mylib.op", (0,), (1,)),
            Operator("last", "aten.neg", (1,), (2,)),
        )
        if inside:
            tensors.append(Tensor("result", 8))
            blocks = (Block("then", operators, (), (2,)),)
            operators = (Operator("if", "cond", (0,), (3,), blocks=blocks),)
        graph = Graph("net", tuple(tensors), operators, (0,), (2,), source="torch")
        with pytest.raises(mp.MemplanError, match=r'"send" of type "mylib\.op" may do more'):
            reorder(graph)
        assert reorder(graph, pure=["mylib.op"]).graph.operators == operators

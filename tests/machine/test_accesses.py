"""Tests of what a program reads and writes: constants, states, views, parts, and how often."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import oracle
import pytest
from rounds import rounds

import memplan as mp
from memplan.machine.memories import assign
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View
from memplan.programs.sources import of_graph

SRAM, FLASH = mp.Memory("sram", 16, 1, 1), mp.Memory("flash", None, 4, 100)
WEIGHTS = ("constant", "variable", "input", "output", "intermediate", "workspace")


def count(graph: Graph, **options: Any) -> dict[str, tuple[int, int]]:
    """Return what is read and written of each buffer, constants and states too."""
    loaded = of_graph(graph, include=WEIGHTS, in_place=options.pop("in_place", False))
    room = mp.Memory("all", None)
    return dict(assign(loaded, [room], options.pop("accesses", None), **options).accessed)


def draw_program(rng: random.Random) -> Graph:
    """Return a chain of operators, of which each reads some constants, and some read a state."""
    tensors = [Tensor("in", rng.randint(1, 5), Kind.INPUT)]
    operators: list[Operator] = []
    for step in range(rng.randint(1, 3)):
        inputs = [len(tensors) - 1]
        if step and rng.random() < 0.3:
            inputs.append(0)
        for kind, share in ((Kind.CONSTANT, 0.8), (Kind.CONSTANT, 0.3), (Kind.VARIABLE, 0.2)):
            if rng.random() < share:
                known = [at for at, each in enumerate(tensors) if each.kind is kind]
                if known and rng.random() < 0.3:
                    inputs.append(rng.choice(known))
                    continue
                tensors.append(Tensor(f"{kind} {len(tensors)}", rng.randint(1, 6), kind))
                inputs.append(len(tensors) - 1)
        tensors.append(Tensor(f"t{len(tensors)}", rng.randint(1, 5)))
        inputs = list(dict.fromkeys(inputs))
        made = (len(tensors) - 1,)
        operators.append(Operator(f"op{step}", rng.choice("AB"), tuple(inputs), made))
    return Graph("net", tuple(tensors), tuple(operators), (0,), (len(tensors) - 1,))


def count_by_hand(graph: Graph, reads: dict[str, tuple[int, ...]]) -> dict[str, list[int]]:
    """Return what is read and written, from the definition."""
    found = {each.name: [0, 0] for each in graph.tensors}
    for operator in graph.operators:
        given = reads.get(operator.type, (1,))
        for at, tensor in enumerate(operator.inputs):
            times = given[0] if len(given) == 1 else [*given, 1, 1, 1, 1][at]
            found[graph.tensors[tensor].name][0] += times * graph.tensors[tensor].bytes
        found[graph.tensors[operator.outputs[0]].name][1] += graph.tensors[
            operator.outputs[0]
        ].bytes
    first, last = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    found[first.name][1] += first.bytes
    found[last.name][0] += last.bytes
    return found


def find_least(
    problem: mp.Problem, memories: list[mp.Memory], touched: dict[str, list[int]]
) -> int:
    """Return what the best assignment costs, by trying all."""
    ways = []
    for where in product(range(len(memories)), repeat=len(problem)):
        cost = sum(
            touched[id][0] * int(memories[at].read) + touched[id][1] * int(memories[at].write)
            for id, at in zip(problem.ids, where, strict=True)
        )
        ways.append((cost, where))
    for cost, where in sorted(ways):
        for number, memory in enumerate(memories):
            rows = [row for row, at in enumerate(where) if at == number]
            part = problem.subset(np.array(rows, np.int64))
            limit = int(part.size.sum()) if memory.capacity is None else memory.capacity
            if oracle.fit(part, limit) is None:
                break
        else:
            return cost
    raise AssertionError("the last memory has room for all")


@pytest.mark.parametrize("seed", range(rounds(2, 50)))
def test_weights_lie_where_brute_force_puts_them(seed: int) -> None:
    """Tests programs with constants and states, in SRAM, flash and a memory between them."""
    rng = random.Random(seed)
    for _ in range(rounds(30, 100)):
        graph = draw_program(rng)
        memories = [mp.Memory("sram", rng.randint(1, 16), 1, 1)]
        if rng.random() < 0.4:
            memories.append(mp.Memory("psram", rng.randint(1, 12), rng.randint(1, 6), 6))
        memories.append(mp.Memory("flash", None, rng.randint(4, 9), rng.choice((9, 100))))
        types = sorted({each.type for each in graph.operators})
        reads = {
            each: tuple(rng.randint(0, 4) for _ in range(rng.randint(1, 3)))
            for each in types
            if rng.random() < 0.5
        }
        loaded = of_graph(graph, include=WEIGHTS)
        touched = count_by_hand(graph, reads)
        best = find_least(loaded.problem, memories, touched)
        for residency in (False, True):
            found = assign(loaded, memories, reads=reads, residency=residency)
            assert {id: list(both) for id, both in found.accessed.items()} == {
                id: touched[id] for id in loaded.problem.ids
            }
            kept = {each.name for each in graph.tensors if each.kind in WEIGHTS[:2]}
            assert not kept & {each.buffer for each in found.stretches}
            if residency:
                assert found.bound <= found.traffic <= best
            else:
                assert (found.traffic, found.bound, str(found.status)) == (best, best, "optimal")


def make_graph(
    types: str, *, views: tuple[View, ...] = (), source: str = "", **kinds: Kind
) -> Graph:
    """Return a graph from words such as "ADD:x,y>z:16 RELU:z>out" with 8 bytes for each tensor."""
    names = list(dict.fromkeys(name for word in types.split() for name in _list_names(word)))
    tensors = tuple(
        Tensor(
            name.split("=")[0],
            int(name.partition("=")[2] or 8),
            kinds.get(name[0], Kind.INTERMEDIATE),
        )
        for name in names
    )
    operators = []
    for word in types.split():
        type_, _, ends = word.partition(":")
        given, made = ([names.index(n) for n in side.split(",")] for side in ends.split(">"))
        pair = ((given[0], made[0]),) if type_.endswith("!") else ()
        operators.append(
            Operator(type_, type_.rstrip("!"), tuple(given), tuple(made), in_place=pair)
        )
    given = [at for at, each in enumerate(tensors) if at == 0 or each.kind is Kind.WORKSPACE]
    last = (len(names) - 1,)
    return Graph("net", tensors, tuple(operators), tuple(given), last, views, source=source)


def _list_names(word: str) -> list[str]:
    given, _, made = word.partition(":")[2].partition(">")
    return [*given.split(","), *made.split(",")]


@pytest.mark.parametrize(
    ("graph", "in_place", "expected"),
    [
        # A result that is only another name of an input, declared or written over it.
        (make_graph("VIEW:x>y RELU:y>z", views=(View(1, 0),)), False, {"x": (8, 8)}),
        (make_graph("RELU:x>y RESHAPE!:y>z"), True, {"x": (8, 8), "y": (8, 8)}),
        (make_graph("RELU:x>y RESHAPE!:y>z"), False, {"y": (8, 8), "z": (8, 8)}),
        # A result that is computed in the place of its input.
        (make_graph("RELU!:x>y ADD:y>z", views=(View(1, 0),)), False, {"x": (16, 16)}),
        (make_graph("RELU:x>y RELU!:y>z"), True, {"x": (8, 8), "y": (16, 16)}),
        (
            make_graph("aten.relu_:x>y aten.add:y>z", views=(View(1, 0),), source="torch"),
            False,
            {"x": (16, 16)},
        ),
        # Parts that lie in a result already, all of them or some, and a part of an input.
        (
            make_graph("A:x>p=4,q=4 JOIN:p=4,q=4>y B:y>z", views=(View(1, 3), View(2, 3, 4))),
            False,
            {"y": (8, 8)},
        ),
        (
            make_graph("A:x>p=4,q=4 JOIN:p=4,q=4>y B:y>z", views=(View(1, 3),)),
            False,
            {"y": (8, 8), "q=4": (4, 4)},
        ),
        (make_graph("SLICE:x>p=4 A:p=4>z", views=(View(1, 0, 2),)), False, {"x": (4, 8)}),
        # The scratch of an accelerator has no value: what lies in it is computed.
        (
            make_graph("NPU:x,s=24>y B:y>z", views=(View(2, 1),), s=Kind.WORKSPACE),
            False,
            {"x": (8, 8), "s=24": (32, 32)},
        ),
        # State that a kernel of TFLite replaces.
        (
            make_graph("SVDF:x,v>y B:y>z", source="tflite", v=Kind.VARIABLE),
            False,
            {"v": (8, 8)},
        ),
        (make_graph("MATMUL:x,w>y B:y,w>z", w=Kind.CONSTANT), False, {"w": (16, 0)}),
    ],
)
def test_only_bytes_that_move_count(
    graph: Graph, in_place: bool, expected: dict[str, tuple[int, int]]
) -> None:
    """Tests operators that hand on, join, cut and replace what they read."""
    found = count(graph, in_place=in_place)
    assert {id: found[id.split("=")[0]] for id in expected} == expected


def test_how_often_is_a_number_of_any_kind() -> None:
    """Tests parts of buffers, factors for types of operators, and the sentences about others."""
    graph = make_graph("CONV:x,w=100>y FC:y,v=10>z", w=Kind.CONSTANT, v=Kind.CONSTANT)
    plain = count(graph)
    assert (plain["w"], plain["v"], plain["x"]) == ((100, 0), (10, 0), (8, 8))
    more = count(graph, reads={"CONV": (9, 2.5), "FC": Fraction(1, 4)})
    assert (more["w"], more["v"], more["x"], more["y"]) == ((250, 0), (3, 0), (72, 8), (2, 8))
    given = count(graph, accesses={"w": (0.5, 0), "v": [(0, Fraction(1, 3), 0), (1, 0.1, 0)]})
    assert (given["w"], given["v"]) == ((50, 0), (4, 0))
    loaded = of_graph(graph, include=WEIGHTS)
    still = assign(loaded, [SRAM, FLASH], {"w": (3, 0)}, residency=True)
    assert still.accessed["w"] == (300, 0)
    for options, words in (
        ({"reads": {"POOL": 2}}, 'no operator has the type "POOL"; there are "CONV", "FC"'),
        ({"reads": {"FC": -1}}, 'how often operators of type "FC" read an input is -1'),
        ({"reads": {"FC": float("nan")}}, "is nan; it must be a number"),
        ({"reads": {"FC": ()}}, "is an empty list"),
        ({"accesses": {"w": (float("inf"), 0)}}, "the number of reads of .* is inf"),
        ({"accesses": {"x": (1, 1)}, "residency": True}, '"x" may move, so its accesses need'),
    ):
        with pytest.raises(mp.MemplanError, match=words):
            assign(loaded, [SRAM, FLASH], **options)
    with pytest.raises(mp.MemplanError, match="there are no operators"):
        assign(mp.Problem([mp.Buffer("a", 0, 1, 1)]), [SRAM, FLASH], reads={"FC": 2})


def test_a_read_weight_goes_to_fast_memory() -> None:
    """Tests that a constant that is read has its traffic, and lies in SRAM where that has room."""
    graph = make_graph("FC:x,w=1000>y", w=Kind.CONSTANT)
    loaded = of_graph(graph, include=WEIGHTS)
    for room, memory, traffic in ((16, "flash", 4032), (2000, "sram", 1032)):
        sram = mp.Memory("sram", room, 1, 1)
        found = assign(loaded, [sram, FLASH])
        assert (found.memory_of("w"), found.traffic) == (memory, traffic)


def test_costs_are_fractions_and_the_answer_is_exact() -> None:
    """Tests that costs in another unit change nothing but the unit of the traffic."""
    buffers = [mp.Buffer(str(at), at % 3, at % 3 + 3, 3 + at) for at in range(6)]
    for unit in (1, Fraction(1, 3), 0.1, 2.5):
        memories = [
            mp.Memory("fast", 12, unit, 2 * unit),
            mp.Memory("slow", None, 3 * unit, 7 * unit),
        ]
        found = assign(mp.Problem(buffers), memories)
        exact = Fraction(str(unit)) if isinstance(unit, float) else Fraction(unit)
        assert found.traffic == float(246 * exact)
        assert str(found.status) == "optimal"
    assert mp.Memory("m", read=1 / 3).read == Fraction("0.333333")
    assert mp.Memory("m", read=12.0).read == 12
    apart = [mp.Memory("fast", 12, Fraction(1, 3**19)), mp.Memory("slow", None, 4096)]
    with pytest.raises(mp.MemplanError, match="costs of the memories differ too much"):
        assign(mp.Problem(buffers), apart)

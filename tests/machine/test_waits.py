"""Tests of streams that wait for each other: what waits cost, and that plans are safe with them."""

from __future__ import annotations

import itertools
import random

import pytest

import memplan as mp
from memplan.base.errors import MemplanError
from memplan.levers.rewrite.waits import plan_waits
from memplan.programs.graph import Graph, Kind, Operator, Tensor, lay_out
from memplan.programs.graph.sync import find_users, measure_freedom, synchronise
from memplan.programs.sources import of_graph


def draw_graph(seed: int) -> Graph:
    """Return a random program on two or three streams."""
    draw = random.Random(seed)
    count, streams = draw.randint(4, 7), draw.randint(2, 3)
    tensors = [Tensor(f"t{i}", draw.randint(1, 6), Kind.INTERMEDIATE) for i in range(count)]
    operators = []
    for i in range(count):
        read = tuple(j for j in range(i) if draw.random() < 0.35)
        operators.append(Operator(f"op{i}", "OP", read, (i,), stream=draw.randrange(streams)))
    operators[0] = Operator("op0", "OP", (), (0,), stream=0)
    operators[1] = Operator("op1", "OP", operators[1].inputs, (1,), stream=1)
    return Graph("drawn", tuple(tensors), tuple(operators), (), ())


def price(graph: Graph, a: int, b: int) -> int:
    """Return how much freedom the waits of one pair take, by adding them to the program."""
    layout = lay_out(graph)
    users, free = find_users(layout), measure_freedom(graph)
    start = layout.problem.start
    a, b = sorted((a, b), key=lambda row: int(start[row]))
    maker = users[b][0]
    arcs = [(user, maker) for user in users[a] if free.stream[user] != free.stream[maker]]
    return free.pairs - measure_freedom(synchronise(graph, arcs)).pairs


@pytest.mark.parametrize("seed", range(25))
def test_waits_cost_least(seed: int) -> None:
    """Tests costs and plans of random programs against all sets of pairs that may share."""
    graph = draw_graph(seed)
    loaded = of_graph(graph)
    problem, ids = loaded.problem, loaded.problem.ids
    pairs = [tuple(pair) for pair in problem.conflicts.pairs().tolist()]
    least = mp.solve(problem.without_conflicts()).peak
    assert least is not None
    capacity = least + seed % 3
    found = plan_waits(loaded, capacity=capacity)
    assert found.apart.status is mp.Status.OPTIMAL
    prices = {(a, b): price(graph, a, b) for a, b in pairs}
    assert found.apart.penalties == {(ids[a], ids[b]): cost for (a, b), cost in prices.items()}
    best = None
    for count in range(len(pairs) + 1) if len(pairs) <= 7 else ():
        for some in itertools.combinations(pairs, count):
            cost = sum(prices[pair] for pair in some)
            apart = problem.with_conflicts([pair for pair in pairs if pair not in some])
            if (best is None or cost < best) and mp.solve(
                apart.with_capacity(capacity)
            ).has_offsets:
                best = cost
    assert best in (None, found.apart.cost)
    mp.verify(lay_out(found.loaded.graph or graph).problem, found.plan)
    lost = measure_freedom(graph).pairs - measure_freedom(found.loaded.graph or graph).pairs
    assert found.lost == lost


def test_room_for_all_needs_no_wait() -> None:
    """Tests that a program that fits as it is does not wait, and that one byte less makes it."""
    loaded = of_graph(draw_graph(3))
    peak = mp.solve(loaded.problem).peak
    assert peak is not None
    free = plan_waits(loaded, capacity=peak)
    assert (free.arcs, free.lost, free.chain, free.apart.cost) == ((), 0, 0, 0)


def test_waits_are_refused() -> None:
    """Tests programs for which no wait makes sense, and one that fits with none."""
    graph = draw_graph(0)
    alone = Graph(
        "one",
        graph.tensors,
        tuple(Operator(each.name, "OP", each.inputs, each.outputs) for each in graph.operators),
        (),
        (),
    )
    with pytest.raises(MemplanError, match="only one stream"):
        plan_waits(of_graph(alone), capacity=100)
    with pytest.raises(MemplanError, match="has no operators"):
        plan_waits(mp.Problem([mp.Buffer("a", 0, 1, 1)]), capacity=100)  # type: ignore[arg-type]
    with pytest.raises(MemplanError, match="need a capacity"):
        plan_waits(of_graph(graph))
    found = plan_waits(of_graph(graph), capacity=1)
    assert found.apart.status is mp.Status.INFEASIBLE
    assert not found.plan.has_offsets

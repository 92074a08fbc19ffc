"""Tests of bounds on programs with branches and loops, against all their orders and re-runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations
from random import Random

import pytest

import memplan as mp
from memplan.levers.rewrite import find_floor, reorder
from memplan.levers.rewrite.again import NoRunsError, again_of, recompute, verify_recompute
from memplan.levers.rewrite.again.emitted import emit
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View
from memplan.programs.sources import of_graph


def draw(seed: int) -> Graph:
    """Return a program of four or five operators, of which one or two have blocks."""
    random = Random(seed)
    count = random.randint(4, 5)
    tensors = [Tensor("x", random.randint(1, 8), Kind.INPUT)]
    operators: list[Operator] = []
    views: list[View] = []
    scope = [0]
    branches = set(random.sample(range(1, count), random.randint(1, 2)))
    for at in range(count):
        reads = {random.choice(scope[-2:]), random.choice(scope)}
        made = len(tensors)
        kind = Kind.OUTPUT if at == count - 1 else Kind.INTERMEDIATE
        tensors.append(Tensor(f"t{at}", random.randint(1, 16), kind))
        blocks = []
        for number in range(random.randint(1, 2) if at in branches else 0):
            inside, inner = [*reads], []
            for _ in range(random.randint(1, 3)):
                tensors.append(Tensor(f"i{len(tensors)}", random.randint(1, 16)))
                read = {random.choice(inside), random.choice(inside)}
                inner.append(Operator(f"o{len(tensors)}", "CONV", (*read,), (len(tensors) - 1,)))
                inside.append(len(tensors) - 1)
            if random.random() < 0.5 and tensors[-1].bytes <= tensors[made].bytes:
                views.append(View(len(tensors) - 1, made, 0))  # as torch.cond hands out its result
            blocks.append(Block(f"{at}.{number}", tuple(inner), (), (len(tensors) - 1,)))
        type_ = "If" if blocks else "CONV"
        operators.append(Operator(f"op{at}", type_, (*reads,), (made,), blocks=tuple(blocks)))
        scope.append(made)
    last = scope[-1]
    return Graph("net", tuple(tensors), tuple(operators), (0,), (last,), views=tuple(views))


def is_legal(operators: tuple[Operator, ...], given: set[int]) -> bool:
    """Return whether each operator runs after what makes what it and its blocks read."""
    made = set(given)
    inside = {t for outer in operators for each in outer.walk() for t in each.outputs}
    for operator in operators:
        needs = {t for each in operator.walk() for t in each.inputs}
        own = {t for each in operator.walk() for t in each.outputs}
        if (needs - own) & inside - made:
            return False
        made |= own
    return True


def iterate_orders(graph: Graph) -> Iterator[Graph]:
    """Yield the program in every order of its operators, and of those in its blocks."""

    def ways(operator: Operator) -> list[Operator]:
        found = [operator]
        for at, block in enumerate(operator.blocks):
            legal = [p for p in permutations(block.operators) if is_legal(p, set())]
            found = [
                replace(
                    each,
                    blocks=(
                        *each.blocks[:at],
                        replace(block, operators=inner),
                        *each.blocks[at + 1 :],
                    ),
                )
                for each in found
                for inner in legal
            ]
        return found

    inner: list[tuple[Operator, ...]] = [()]
    for operator in graph.operators:
        inner = [(*each, way) for each in inner for way in ways(operator)]
    for operators in inner:
        for order in permutations(operators):
            if is_legal(order, set(graph.inputs)):
                yield replace(graph, operators=order)


def list_outcomes(graph: Graph, most: int = 2) -> list[tuple[int, int]]:
    """Return load and extra cost of all orders, with up to so many re-runs."""
    found = []
    for ordered in iterate_orders(graph):
        layout = of_graph(ordered).layout
        assert layout is not None
        question = again_of(layout)
        count = len(ordered.operators)
        may = [at for at in range(count) if question.problem.again[at]]
        cost = question.problem.cost.tolist()
        for more in range(most + 1):
            for again in combinations(may, more):
                for sequence in insert(tuple(range(count)), again):
                    load = of_graph(emit(question, sequence).graph).problem.max_load
                    found.append((load, sum(cost[at] for at in again)))
    return found


def insert(sequence: tuple[int, ...], again: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the sequences in which some operators run again somewhere behind their first run."""
    if not again:
        yield sequence
        return
    for at in range(sequence.index(again[0]) + 2, len(sequence) + 1):
        yield from insert((*sequence[:at], again[0], *sequence[at:]), again[1:])


@pytest.mark.parametrize("seed", range(8))
def test_no_order_and_no_re_runs_are_below_a_bound(seed: int) -> None:
    """Tests floors, bounds and what is called impossible in every capacity around the loads."""
    graph = draw(seed)
    outcomes = list_outcomes(graph)
    least = min(load for load, _ in outcomes)
    best = min(load for load, extra in outcomes if not extra)
    assert find_floor(graph)[0] <= least
    ordered = reorder(graph)
    assert ordered.bound <= best <= ordered.peak
    mp.verify_order(graph, ordered)
    given = of_graph(graph).problem.max_load
    for capacity in sorted({least - 1, least, best - 1, best, given - 1, given} - {0}):
        fitting = [extra for load, extra in outcomes if load <= capacity]
        try:
            found = recompute(graph, capacity, states=2_000)
        except NoRunsError as error:
            limits = error.limits
            assert not (limits.is_impossible and fitting)
            assert capacity < given
        else:
            limits = found.limits
            verify_recompute(graph, found)
            assert found.peak <= capacity
            assert found.extra >= min(fitting, default=0)
        assert limits.floor <= least
        assert limits.bound <= min(fitting, default=limits.bound)
    points = mp.tradeoff(graph, points=3, nodes=500).points
    assert points[-1].arena >= least

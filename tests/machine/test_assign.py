"""Tests of buffers in several memories, against every assignment and the referee."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import rounds
from strategies import FEATURES, problems, related

import memplan as mp
from memplan.base.errors import ProblemError
from memplan.machine.memories import assign
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View
from memplan.programs.sources import of_graph
from memplan.referee import verify_assigned

pytestmark = pytest.mark.slow

BASE = 840  # a multiple of all alignments


class Case(NamedTuple):
    """A question to `assign`."""

    problem: mp.Problem
    memories: tuple[mp.Memory, ...]
    accesses: dict[str, tuple[int, int]]
    allowed: dict[str, list[str]]
    apart: list[tuple[str, str]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw small problems, with two or three memories of which some have no limit."""
    features = FEATURES - {"capacity", "hints"}
    drawn = problems(min_buffers=1, max_buffers=5, max_size=5, max_time=6, features=features)
    problem = draw(related(drawn) if draw(st.booleans()) else drawn).with_capacity(None)
    names = ["a", "b", "c"][: draw(st.integers(2, 3))]
    costs = sorted(draw(st.integers(0, 9)) for _ in names)
    limits = st.integers(1, 10) if draw(st.booleans()) else st.integers(1, 10) | st.none()
    memories = [
        mp.Memory(name, draw(limits), cost, cost, draw(st.sampled_from((1, 1, 1, 2, 4))), BASE)
        for name, cost in zip(names, costs, strict=True)
    ]
    times = st.tuples(st.integers(0, 3), st.integers(0, 2))
    accesses = draw(st.dictionaries(st.sampled_from(problem.ids), times))
    some = st.lists(st.sampled_from(names), min_size=1, unique=True)
    few = st.lists(st.sampled_from(problem.ids), max_size=2, unique=True)
    allowed = {id: draw(some) for id in draw(few)}
    pairs = [(one, other) for one in problem.ids for other in problem.ids if one < other]
    apart = draw(st.lists(st.sampled_from(pairs), max_size=2)) if pairs else []
    return Case(problem, tuple(memories), accesses, allowed, apart)


def cost_of(case: Case, id: str, memory: mp.Memory) -> int:
    """Return what the accesses to a buffer cost in a memory."""
    reads, writes = case.accesses.get(id, (1, 1))
    size = int(case.problem.size[case.problem.index(id)])
    return size * (reads * memory.read + writes * memory.write)


def least_traffic(case: Case) -> int | None:
    """Return what the best assignment costs, by trying all; `None` where none fits."""
    problem, fits = case.problem, {}

    def is_fitting(memory: mp.Memory, inside: tuple[int, ...]) -> bool:
        if (memory.name, inside) not in fits:
            part = problem.subset(np.array(inside, np.int64)).with_alignment(memory.alignment)
            tops = part.size + part.alignment + np.maximum(part.pin, 0)
            limit = int(tops.sum()) + 20 if memory.capacity is None else memory.capacity
            fits[memory.name, inside] = oracle.fit(part, limit) is not None
        return fits[memory.name, inside]

    for cost, where in sorted(rank(case)):
        sets = (
            tuple(row for row, at in enumerate(where) if at == number)
            for number in range(len(case.memories))
        )
        if all(map(is_fitting, case.memories, sets)):
            return cost
    return None


def may_lie(case: Case, row: int, memory: str) -> bool:
    """Return whether a buffer may lie in a memory, with all of its group."""
    rows = next((rows for rows in case.problem.groups if row in rows), (row,))
    ids = (case.problem.ids[each] for each in rows)
    return all(memory in case.allowed.get(id, [memory]) for id in ids)


def rank(case: Case) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield every assignment that is allowed, with its cost."""
    ids, memories = case.problem.ids, case.memories
    for where in product(range(len(memories)), repeat=len(ids)):
        name = {id: memories[at].name for id, at in zip(ids, where, strict=True)}
        if any(name[id] not in names for id, names in case.allowed.items()):
            continue
        if any(name[one] == name[other] for one, other in case.apart):
            continue
        if any(len({where[row] for row in rows}) > 1 for rows in case.problem.groups):
            continue
        yield sum(cost_of(case, id, memories[at]) for id, at in zip(ids, where, strict=True)), where


@settings(max_examples=rounds(150, 5_000))
@given(cases())
def test_the_assignment_is_that_of_brute_force(case: Case) -> None:
    """Tests traffic, bound, status and plans for any mix of constraints and memories."""
    try:
        for memory in case.memories:
            rows = [row for row in range(len(case.problem)) if may_lie(case, row, memory.name)]
            case.problem.subset(rows).with_alignment(memory.alignment)
    except ProblemError:
        with pytest.raises(mp.MemplanError):
            assign(*case[:3], allowed=case.allowed)
        return
    best = least_traffic(case)
    if best is None:
        with pytest.raises(mp.MemplanError):
            assign(*case[:3], allowed=case.allowed, apart=case.apart)
        return
    found = assign(*case[:3], allowed=case.allowed, apart=case.apart)
    assert (found.traffic, found.bound, str(found.status)) == (best, best, "optimal")
    where = {id: found.memory_of(id) for id in case.problem.ids}
    by_name = {memory.name: memory for memory in case.memories}
    assert sum(cost_of(case, id, by_name[name]) for id, name in where.items()) == best


FAST = mp.Memory("sram", 10, 1, 1)
SLOW = mp.Memory("psram", None, 8, 8)
THREE = mp.Problem(
    [mp.Buffer("a", 0, 4, 6), mp.Buffer("b", 0, 4, 5), mp.Buffer("c", 3, 6, 5)], groups=[["b", "c"]]
)


def test_a_model_is_read_with_its_accesses() -> None:
    """Tests that operators count: what each reads and writes, and what the caller gives."""
    graph = Graph(
        "net",
        (
            Tensor("image", 100, Kind.INPUT),
            Tensor("wide", 400),
            Tensor("flat", 400),
            Tensor("result", 8, Kind.OUTPUT),
        ),
        (
            Operator("conv", "CONV", (0,), (1,), workspace=32),
            Operator("reshape", "RESHAPE", (1,), (2,)),
            Operator("add", "ADD", (1, 2, 0), (3,)),
        ),
        (0,),
        (3,),
        views=(View(2, 1),),
    )
    found = assign(of_graph(graph), [replace(FAST, capacity=420), SLOW])
    accessed = dict(found.accessed)
    assert accessed.pop("wide") == (800, 400)  # once by its name and once as `flat`
    assert accessed == {"image": (200, 100), "result": (8, 8), "conv (workspace)": (32, 32)}
    assert found.loaded is not None
    assert found.memory_of("wide") == "sram"
    assert found.memory_of("image") == "psram"
    with pytest.raises(mp.PlanError, match='no memory has a buffer "flat"'):
        found.memory_of("flat")


def test_prices_say_when_a_byte_is_missing() -> None:
    """Tests the prices of a memory that is too small at one time only."""
    buffers = [mp.Buffer("a", 0, 4, 6), mp.Buffer("b", 2, 6, 6), mp.Buffer("c", 6, 9, 9)]
    found = assign(mp.Problem(buffers), [FAST, SLOW])
    fast, slow = found.prices
    assert [(price.start, price.end) for price in fast] == [(2, 4)]
    assert fast[0].saved == pytest.approx(14)
    assert slow == ()


@pytest.mark.parametrize(
    ("memories", "options", "words"),
    [
        ([], {}, "memories is a list of memplan.Memory"),
        ([FAST, FAST], {}, 'two memories have the name "sram"'),
        ([SLOW, FAST], {}, 'a byte costs more in "psram" than in "sram", named after it'),
        ([replace(FAST, base=3, alignment=2), SLOW], {}, "base 3 of .* no multiple of .* 2"),
        ([FAST, SLOW], {"allowed": {"a": ["flash"]}}, '"a" may lie in "flash", but the memories'),
        ([FAST, SLOW], {"allowed": {"x": ["sram"]}}, '"x"'),
        ([FAST, SLOW], {"allowed": {"a": []}}, '"a" may lie in no memory'),
        ([FAST, SLOW], {"allowed": {"b": ["sram"], "c": "psram"}}, "group of .* no memory"),
        ([FAST, SLOW], {"apart": [("a", "a")]}, "another memory than itself"),
        ([FAST, SLOW], {"apart": ["ab"]}, "list of pairs"),
        ([FAST, SLOW], {"apart": [("b", "c")]}, 'group of "b" cannot be apart'),
        ([FAST, SLOW], {"accesses": {"a": (-1, 0)}}, "number of reads of .* is -1"),
        ([FAST, SLOW], {"accesses": {"a": (1 << 55, 0)}}, "coarser unit"),
        ([FAST], {}, '"sram" has 10 bytes, but at time 3, .* hold 16 bytes'),
        ([replace(FAST, capacity=4)], {}, '"b" needs 5 bytes, and there are fewer in "sram"'),
        (["sram"], {}, "memories is a list of memplan.Memory"),
        ([FAST, SLOW], {"accesses": {"a": 3}}, 'accesses of "a" are 3; they are .reads, writes.'),
        ([FAST, SLOW], {"accesses": {"a": (1, 1, 1)}}, "accesses of .*, or a list of .time, "),
        ([FAST, SLOW], {"nodes": 0}, "nodes is 0"),
    ],
)
def test_a_wrong_question_is_refused(
    memories: list[mp.Memory], options: dict[str, Any], words: str
) -> None:
    """Tests the sentences for what contradicts itself or cannot be."""
    with pytest.raises(mp.MemplanError, match=words):
        assign(THREE, memories, **options)


def test_a_pin_counts_where_its_buffer_may_lie() -> None:
    """Tests alignments, bases and pins of buffers that are in other memories."""
    problem = mp.Problem(
        [mp.Buffer("a", 0, 4, 6, pin=6), mp.Buffer("b", 0, 4, 5, 4), mp.Buffer("c", 0, 4, 5)],
        groups=[["b", "c"]],
    )
    wide, odd = mp.Memory("sram", 64, alignment=4), mp.Memory("psram", None, 8, 8, base=6)
    with pytest.raises(mp.MemplanError, match=r'memory "sram": .*"a".*pin.*say where'):
        assign(problem, [wide, SLOW])
    with pytest.raises(mp.MemplanError, match=r'base 6 of "psram" is no multiple of .* 4'):
        assign(problem, [FAST, odd])
    found = assign(problem, [FAST, odd], allowed={"c": ["sram"]})
    assert found.memory_of("b") == found.memory_of("c") == "sram"
    with pytest.raises(mp.InfeasibleError, match='"a", pinned to 6, needs 12 bytes'):
        assign(problem, [FAST, odd], allowed={"a": ["sram"], "c": ["sram"]})
    other = mp.Problem(problem.buffers)
    found = assign(other, [wide, SLOW], allowed={"a": ["psram"]})
    assert (found.memory_of("a"), found.memory_of("b")) == ("psram", "sram")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": ""}, "needs a name"),
        ({"capacity": 0}, "the capacity of .* is 0"),
        ({"read": -1}, "the cost of reading a byte of .* is -1"),
        ({"write": "8"}, "the cost of writing a byte of .* is .8.; it must be a number"),
        ({"read": float("inf")}, "the cost of reading a byte of .* is inf"),
        ({"alignment": 0}, "the alignment of .* is 0"),
        ({"base": -8}, "the base of .* is -8"),
    ],
)
def test_a_wrong_memory_is_refused(wrong: dict[str, Any], words: str) -> None:
    """Tests the sentences of the constructor."""
    with pytest.raises(mp.MemplanError, match=words):
        mp.Memory(**{"name": "sram", **wrong})


def test_a_small_budget_gives_an_assignment_and_a_bound() -> None:
    """Tests that a search that ends early is legal, and its bound is not above what is found."""
    rows = [
        mp.Buffer(f"b{i}", i % 30, i % 30 + 3 + i % 7, 16 + 16 * (i * i % 5)) for i in range(120)
    ]
    problem = mp.Problem(rows)
    memories = [replace(FAST, capacity=320), mp.Memory("near", 480, 3, 3), SLOW]
    small, large = (assign(problem, memories, nodes=nodes) for nodes in (1, 500_000))
    assert max(small.bound, large.bound) <= min(small.traffic, large.traffic)


def test_a_search_without_time_ends_after_few_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a quick plan stands in for a search for a fit whose time is over."""
    from memplan.machine.memories import search

    count, choose = 0, search._core.choose

    def counted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return choose(*arguments)

    rng = np.random.default_rng(0)
    rows = []
    for i, (start, length, size) in enumerate(rng.integers(1, 60, (120, 3)).tolist()):
        rows.append(mp.Buffer(f"b{i}", start, start + length, size))
    problem = mp.Problem(rows)
    monkeypatch.setattr(search._core, "choose", counted)
    fast, slow = mp.Memory("fast", problem.max_load // 2), mp.Memory("slow", None, 8, 8)
    found = assign(problem, [fast, slow], timeout=0.0)
    assert found.bound <= found.traffic
    assert 1 <= count <= 10


def test_the_referee_refuses_what_is_wrong() -> None:
    """Tests each of its sentences, on plans that are changed by hand."""
    problem = mp.Problem([mp.Buffer("a", 0, 4, 6), mp.Buffer("b", 0, 4, 6)])
    found = assign(problem, [FAST, SLOW])
    memories, (fast, slow) = found.memories, found.plans
    costs = {"a": (6, 6), "b": (6, 6)}
    assert verify_assigned(problem, memories, (fast, slow), {}, costs) == found.traffic == 108

    def refuse(plans: list[mp.Plan], words: str, **options: Any) -> None:
        with pytest.raises(mp.PlanError, match=words):
            verify_assigned(problem, memories, plans, options.pop("allowed", {}), costs, **options)

    both = mp.solve(problem)
    refuse([fast], "1 plans for 2 memories")
    refuse([fast, both], 'is in "sram" and "psram"')
    refuse([fast, mp.solve(mp.Problem([]))], "is in no memory")
    refuse([both, mp.solve(mp.Problem([]))], "sram: ")
    refuse([fast, slow], "may not lie", allowed={fast.ids[0]: ["psram"]})
    refuse([mp.solve(mp.Problem([])), both], "must be apart", apart=[("a", "b")])
    tied = mp.Problem(problem.buffers, groups=[["a", "b"]])
    with pytest.raises(mp.PlanError, match="is in two memories"):
        verify_assigned(tied, memories, found.plans, {}, costs)

"""Tests of `memplan.analysis.savings` and `memplan.graph.remake`: what the load comes down to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from memplan.analysis.savings import Change, Worst, savings
from memplan.errors import ProblemError
from memplan.graph import Block, Graph, Kind, Operator, Tensor, View, lay_out
from memplan.graph.remake import find_remakes
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.loads import Loads


def half(buffer: Buffer) -> Buffer:
    """Return a buffer that holds half of what it held at every time, rounded up."""
    gaps = []
    for gap in buffer.gaps:
        window = gap.window
        if window is not None:
            window = (window[0] // 2, window[0] // 2 + -((window[0] - window[1]) // 2))
        gaps.append(Gap(gap.start, gap.end, window))
    return replace(buffer, size=-(-buffer.size // 2), gaps=tuple(gaps))


def load_with(problem: Problem, row: int, change: Change) -> int:
    """Return the greatest load after a change, from buffers as objects."""
    buffers = [replace(buffer, pin=None) for buffer in problem.buffers]
    changed = [half(buffers[row])] if change is Change.HALVED else []
    return Problem([*buffers[:row], *changed, *buffers[row + 1 :]]).max_load


@given(strategies.problems())
def test_every_change_agrees_with_brute_force(problem: Problem) -> None:
    """Tests halving and removing each buffer at the peak, with gaps and windows, by recounting."""
    found = savings(problem)
    assert found.peak == problem.max_load
    for at, row in enumerate(found.rows.tolist()):
        for change in (Change.HALVED, Change.REMOVED):
            assert found.after[change][at] == load_with(problem, row, change)
    assert (found.after[Change.RECOMPUTED] == -1).all()


@given(strategies.problems())
def test_nobody_else_can_bring_the_load_down(problem: Problem) -> None:
    """Tests that the rows are those held in the first section of the peak, largest first."""
    found, loads = savings(problem), Loads(problem)
    if loads.peak_section is None:
        assert len(found) == found.peak == found.start == found.end == found.count == 0
        return
    held = loads.held(loads.peak_section)
    ids = [problem.ids[row] for row in found.rows]
    assert list(zip(ids, found.bytes, strict=True)) == [(each.id, each.bytes) for each in held]
    assert found.count == (loads.load == loads.peak).sum() > 0
    for row in set(range(len(problem))).difference(found.rows.tolist()):
        assert load_with(problem, row, Change.REMOVED) == found.peak


@given(strategies.related(strategies.problems(features=frozenset({"gaps", "windows", "zero"}))))
def test_the_changed_problem_has_the_load_that_was_said(problem: Problem) -> None:
    """Tests `changed` and `worst` against `after`, with conflicts and groups in the problem."""
    found = savings(problem)
    for at, row in enumerate(found.rows.tolist()):
        for change in (Change.HALVED, Change.REMOVED):
            changed, worst = found.changed([row], change), found.worst([row], change)
            assert changed.max_load == worst.load == found.after[change][at]
            if len(Loads(changed)):
                level = sum(each.bytes for each in held_at(changed, worst.start))
                assert level == worst.load
        assert problem.ids[row] not in found.changed([row], Change.REMOVED).ids
        assert found.changed([row], Change.HALVED).ids == problem.ids


def held_at(problem: Problem, time: int) -> list:  # type: ignore[type-arg]
    """Return what is held at a time."""
    loads = Loads(problem)
    return loads.held(int(np.searchsorted(loads.start, time, side="right")) - 1)


def test_the_second_worst_moment_limits_what_is_saved() -> None:
    """Tests the example: without the largest, the next moment is the worst."""
    rows = [Buffer("a", 0, 2, 10), Buffer("b", 0, 6, 3), Buffer("c", 4, 6, 7)]
    found = savings(Problem(rows))
    assert (found.peak, found.start, found.end) == (13, 0, 2)
    assert found.after[Change.REMOVED].tolist() == [10, 10]
    assert found.after[Change.HALVED].tolist() == [10, 12]
    assert found.worst([0], Change.REMOVED) == Worst(10, 4, 6)
    assert found.worst([1], Change.HALVED) == Worst(12, 0, 2)
    assert found.saved(Change.REMOVED).tolist() == [3, 3]
    assert found.best(Change.REMOVED) == 0
    assert found.best(Change.HALVED) == 0
    assert found.best(Change.RECOMPUTED) is None
    assert found.within(10, Change.HALVED).tolist() == [0]
    assert found.within(9, Change.REMOVED).tolist() == []


def test_two_peaks_take_two_buffers() -> None:
    """Tests that a change that leaves another section as high is of no use, and what would be."""
    rows = [Buffer("a", 0, 2, 8), Buffer("b", 4, 6, 8), Buffer("c", 8, 9, 8), Buffer("d", 5, 9, 0)]
    found = savings(Problem(rows))
    assert found.count == 3
    assert found.after[Change.REMOVED].tolist() == [8]
    assert found.best(Change.REMOVED) is None
    assert found.together == (0, 1, 2)
    assert found.worst(found.together, Change.HALVED) == Worst(4, 0, 2)
    assert found.worst(found.together, Change.REMOVED) == Worst(0, 0, 0)
    many = Problem([Buffer(str(at), 2 * at, 2 * at + 1, 8) for at in range(101)])
    assert savings(many).together == ()


@given(strategies.problems(max_buffers=12, max_time=12))
def test_together_they_are_live_in_every_peak(problem: Problem) -> None:
    """Tests that without them no section has the load that was greatest, with gaps as well."""
    found = savings(problem)
    loads = Loads(problem)
    assert bool(found.together) is (found.peak > 0)
    assert len(set(found.together)) == len(found.together)
    if found.peak:
        assert found.worst(found.together, Change.REMOVED).load < found.peak
    for section in np.flatnonzero(loads.load == loads.peak).tolist() if found.peak else ():
        held = {problem.index(each.id) for each in loads.held(section)}
        assert held & set(found.together)


def test_half_of_a_group_keeps_it_together() -> None:
    """Tests that a buffer behind a halved one moves up, and that a pin may forbid that."""
    rows = [Buffer("a", 0, 2, 9), Buffer("b", 0, 2, 4), Buffer("c", 0, 2, 4)]
    changed = savings(Problem(rows, groups=[["b", "a", "c"]])).changed([0], Change.HALVED)
    assert changed.size.tolist() == [5, 4, 4]
    assert changed.lead.tolist() == [4, 0, 9]
    pinned = [replace(rows[0], pin=0), rows[1], replace(rows[2], pin=9)]
    found = savings(Problem(pinned, groups=[["a", "c"]]))
    with pytest.raises(ProblemError, match="group"):
        found.changed([0], Change.HALVED)


def test_sizes_near_the_limit_do_not_overflow() -> None:
    """Tests loads of 2^62."""
    far = 1 << 62
    rows = [Buffer("a", -far, far, far - 1), Buffer("b", 0, 1, 1), Buffer("c", 3, 4, 1)]
    found = savings(Problem(rows))
    assert found.peak == far
    assert found.after[Change.REMOVED].tolist() == [1, far]
    assert found.after[Change.HALVED].tolist() == [(far >> 1) + 1, far]


# What is dropped and made again ------------------------------------------------------------------

PLANNED = frozenset({Kind.INPUT, Kind.OUTPUT, Kind.INTERMEDIATE, Kind.WORKSPACE})


@st.composite
def programs(draw: DrawFn) -> Graph:
    """Draw a program of one operator after the other, each with one result and maybe scratch."""
    count = draw(st.integers(2, 9))
    tensors = [Tensor("t0", draw(st.integers(1, 9)), Kind.INPUT)]
    operators = []
    for number in range(1, count):
        inputs = draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=3, unique=True))
        tensors.append(Tensor(f"t{number}", draw(st.integers(1, 9))))
        workspace = draw(st.sampled_from((0, 0, 0, 2)))
        operators.append(
            Operator(f"op{number}", "Op", tuple(inputs), (number,), workspace=workspace)
        )
    outputs = draw(st.lists(st.integers(1, count - 1), max_size=2, unique=True))
    for index in outputs:
        tensors[index] = replace(tensors[index], kind=Kind.OUTPUT)
    return Graph("net", tuple(tensors), tuple(operators), (0,), tuple(outputs), planned=PLANNED)


def with_copy(graph: Graph, tensor: int, step: int) -> Graph:
    """Return the program in which a tensor is made a second time just before a step."""
    new = len(graph.tensors)
    (maker,) = (each for each in graph.operators if tensor in each.outputs)
    copy = replace(maker, name="copy", outputs=(new,))

    def other(index: int) -> int:
        return new if index == tensor else index

    later = [
        replace(each, inputs=tuple(map(other, each.inputs))) for each in graph.operators[step:]
    ]
    old = graph.tensors[tensor]
    tensors = list(graph.tensors)
    tensors[tensor] = replace(old, kind=Kind.INTERMEDIATE)
    return replace(
        graph,
        tensors=(*tensors, replace(old, name="copy")),
        operators=(*graph.operators[:step], copy, *later),
        outputs=tuple(map(other, graph.outputs)),
    )


@given(programs())
def test_making_again_agrees_with_a_program_that_does_so(graph: Graph) -> None:
    """Tests the load with every tensor dropped, against the program with its operator twice."""
    layout = lay_out(graph)
    found = savings(layout.problem, layout)
    for at, row in enumerate(found.rows.tolist()):
        if row not in found.remakes:
            assert found.after[Change.RECOMPUTED][at] == -1
            continue
        remake = found.remakes[row]
        (tensor,) = layout.storages[layout.rows[row]].tensors
        by_hand = lay_out(with_copy(graph, tensor, remake.again)).problem
        changed = found.changed([row], Change.RECOMPUTED)
        assert changed.max_load == by_hand.max_load
        assert found.after[Change.RECOMPUTED][at] == min(by_hand.max_load, found.peak)
        assert sorted(changed.size) == sorted(by_hand.size)
        worst = found.worst([row], Change.RECOMPUTED)
        assert worst.load == by_hand.max_load


@given(programs(), st.integers(0, 8), st.integers(1, 3))
def test_who_can_be_dropped_is_idle(graph: Graph, start: int, length: int) -> None:
    """Tests that all that is made before a time, used after it and not in it is found."""
    end = start + length
    layout = lay_out(graph)
    expected = {}
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        if not storage.tensors or storage.kind is Kind.INPUT:
            continue
        (tensor,) = storage.tensors
        steps = [
            step
            for step, each in enumerate(graph.operators)
            if tensor in (*each.inputs, *each.outputs)
        ]
        steps += [len(graph.operators) - 1] if tensor in graph.outputs else []
        before = [step for step in steps if step < start]
        after = [step for step in steps if step >= end]
        if before and after and len(before) + len(after) == len(steps):
            expected[row] = (max(before) + 1, min(after))
    found = find_remakes(layout, start, end)
    assert {each.row: (each.dropped, each.again) for each in found} == expected


def program(*operators: Operator, views: tuple[View, ...] = (), count: int = 6) -> Graph:
    """Return a program over tensors t0 (given), t1, ... of 8 bytes."""
    tensors = tuple(
        Tensor(f"t{i}", 8, Kind.INTERMEDIATE if i else Kind.INPUT) for i in range(count)
    )
    return Graph("net", tensors, operators, (0,), views=views, planned=PLANNED)


def op(name: str, inputs: tuple[int, ...], *outputs: int, **more: object) -> Operator:
    """Return an operator of this name and type."""
    return Operator(name, name.title(), inputs, outputs, **more)  # type: ignore[arg-type]


BUSY = (op("pad", (0,), 3), op("pool", (3,), 4))
LAST = op("last", (2, 4), 5)


def test_all_that_has_written_runs_again() -> None:
    """Tests that a result that was changed in place is made again by both operators."""
    graph = program(op("conv", (0,), 1), op("relu_", (1,), 2), *BUSY, LAST, views=(View(2, 1),))
    (found,) = find_remakes(lay_out(graph), 2, 4)
    assert found.by == ("conv (Conv)", "relu_ (Relu_)")
    assert (found.dropped, found.again) == (2, 4)
    assert [lay_out(graph).problem.ids[row] for row in found.kept] == ["t0"]


def test_what_was_overwritten_cannot_be_read_again() -> None:
    """Tests that a tensor is not made of something that has another content by then."""
    first = (op("conv", (0,), 1), op("add", (1,), 2))
    assert [each.by for each in find_remakes(lay_out(program(*first, *BUSY, LAST)), 2, 4)] == [
        ("add (Add)",)
    ]
    graph = program(*first, op("relu_", (1,), 3), op("pool", (0,), 4), LAST, views=(View(3, 1),))
    assert find_remakes(lay_out(graph), 2, 4) == ()


def test_other_results_and_scratch_are_needed_for_a_moment() -> None:
    """Tests that making one of two results again needs the other and the workspace, too."""
    split = op("split", (0,), 1, 2, workspace=4)
    graph = program(split, op("use", (1,), 3), op("pool", (3,), 4), LAST)
    layout = lay_out(graph)
    (found,) = find_remakes(layout, 1, 3)
    ids = layout.problem.ids
    assert ids[found.row] == "t2"
    assert [ids[row] for row in found.extra] == ["t1", "split (workspace)"]
    assert [ids[row] for row in found.kept] == ["t0"]


def test_who_cannot_be_made_again() -> None:
    """Tests groups, streams and what a branch writes."""
    straight = (op("conv", (0,), 1), op("add", (1,), 2), *BUSY, LAST)
    assert len(find_remakes(lay_out(program(*straight)), 2, 4)) == 1
    grouped = replace(program(*straight), groups=((2, 5),))
    assert find_remakes(lay_out(grouped), 2, 4) == ()
    apart = (*straight[:3], replace(straight[3], stream=1), straight[4])
    assert find_remakes(lay_out(program(*apart)), 2, 4) == ()
    branch = op("if", (1,), 2, blocks=(Block("then", (op("inner", (1,), 6),), (), (6,)),))
    inside = program(straight[0], branch, *straight[2:], count=7)
    layout = lay_out(inside)
    row = layout.problem.index("t2")
    assert layout.problem.start[row] < 4 < layout.problem.end[row]
    assert find_remakes(layout, 4, 5) == ()
    assert find_remakes(layout, 4, 4) == ()


def test_a_moment_of_its_own_can_be_the_worst() -> None:
    """Tests that the worst may be where a buffer is made again, and how that is said."""
    sizes = (8, 2, 10, 40, 30, 1)
    graph = program(op("conv", (0,), 1), op("add", (1,), 2, workspace=35), *BUSY, LAST)
    tensors = tuple(
        replace(each, bytes=size) for each, size in zip(graph.tensors, sizes, strict=True)
    )
    layout = lay_out(replace(graph, tensors=tensors))
    found = savings(layout.problem, layout)
    assert (found.peak, found.start, found.end) == (80, 3, 4)
    at = found.best(Change.RECOMPUTED)
    assert at is not None
    assert layout.problem.ids[found.rows[at]] == "t2"
    # t4, t2 itself, t1 that is kept for it, and the scratch of "add"
    row = int(found.rows[at])
    assert found.worst([row], Change.RECOMPUTED) == Worst(30 + 10 + 2 + 35, 4, 4)


def test_ids_of_what_is_made_again_are_new() -> None:
    """Tests that a buffer that has the new name already does not stop it."""
    graph = program(op("conv", (0,), 1), op("add", (1,), 2), *BUSY, LAST)
    tensors = [*graph.tensors]
    tensors[3] = Tensor("t2 (again)", 50)
    layout = lay_out(replace(graph, tensors=tuple(tensors)))
    found = savings(layout.problem, layout)
    row = layout.problem.index("t2")
    assert found.changed([row], Change.RECOMPUTED).ids[-1] == "t2 (again)+"

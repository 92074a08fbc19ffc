"""Tests of `analysis.savings` and `programs.graph.remake`: what the load comes down to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
import strategies
import strategies_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from memplan import solve
from memplan.analysis.changed import fuse
from memplan.analysis.inspection import inspect
from memplan.analysis.savings import Change, Worst, savings
from memplan.base.errors import ProblemError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.loads import Loads
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View, lay_out
from memplan.programs.graph.fusion import choose_together, find_fusions
from memplan.programs.graph.remake import find_remakes
from memplan.programs.sources.loaded import of_graph


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


# Fused operators -------------------------------------------------------------------------------


def fuse_by_hand(graph: Graph, first: int, last: int) -> tuple[Graph, set[int]] | None:
    """Return the program with a run as one operator, and what is not stored; or `None`."""
    run = graph.operators[first : last + 1]
    readers = {
        index: [at for at, each in enumerate(graph.operators) if index in each.inputs]
        for index in range(len(graph.tensors))
    }
    gone = {
        index
        for each in run
        for index in each.outputs
        if index not in graph.outputs
        and len(readers[index]) == 1
        and first <= readers[index][0] <= last
    }
    if any(not gone & {*run[i].outputs} & {*run[i + 1].inputs} for i in range(len(run) - 1)):
        return None
    fused = Operator(
        "fused",
        "Fused",
        tuple({t: None for each in run for t in each.inputs if t not in gone}),
        tuple(t for each in run for t in each.outputs if t not in gone),
        workspace=sum(each.workspace for each in run),
    )
    # A result that another operator of the run reads is made by the fused operator, not read.
    inputs = tuple(t for t in fused.inputs if t not in fused.outputs)
    fused = replace(fused, inputs=inputs)
    operators = (*graph.operators[:first], fused, *graph.operators[last + 1 :])
    return replace(graph, operators=operators), gone


@given(programs())
def test_fusing_agrees_with_a_program_that_does_so(graph: Graph) -> None:
    """Tests the load with every run of up to four operators fused, against that program."""
    layout = lay_out(graph)
    found = savings(layout.problem, layout)
    best: dict[str, int] = {}
    for first in range(len(graph.operators)):
        for last in range(first + 1, min(first + 4, len(graph.operators))):
            by_hand = fuse_by_hand(graph, first, last)
            if by_hand is None:
                continue
            load = lay_out(by_hand[0]).problem.max_load
            for index in by_hand[1]:
                name = graph.tensors[index].name
                best[name] = min(best.get(name, load), load)
    ids = layout.problem.ids
    for at, row in enumerate(found.rows.tolist()):
        if row not in found.fusions:
            assert found.after[Change.FUSED][at] == -1
            assert ids[row] not in best
            continue
        fusion = found.fusions[row]
        assert found.after[Change.FUSED][at] == min(best[ids[row]], found.peak)
        fused, gone = fuse_by_hand(graph, fusion.start, fusion.end - 1) or (graph, set())
        assert {ids[each] for each in fusion.rows} == {graph.tensors[t].name for t in gone}
        changed, same = found.changed([row], Change.FUSED), lay_out(fused).problem
        assert changed.max_load == same.max_load == best[ids[row]]
        spans = zip(changed.ids, changed.start, changed.end, changed.size, strict=True)
        others = zip(same.ids, same.start, same.end, same.size, strict=True)
        scratch = "(workspace)"
        kept = {each for each in spans if scratch not in each[0]}
        assert kept == {each for each in others if scratch not in each[0]}
        worst = found.worst([row], Change.FUSED)
        assert worst.load == changed.max_load
        # The section is told in the steps of the program as it is.
        assert 0 <= worst.start < worst.end <= layout.lives.steps
        inside = worst.start < fusion.end and fusion.start < worst.end
        assert not inside or (worst.start <= fusion.start and fusion.end <= worst.end)


@pytest.mark.slow
@settings(max_examples=300)  # one in forty has such a run
@given(strategies_graph.graphs(), st.booleans())
def test_fusing_programs_of_all_kinds(graph: Graph, in_place: bool) -> None:
    """Tests the load of every fusion with views, aliases, branches, loops and workspaces."""
    layout = lay_out(graph, pins=False, in_place=in_place, round_up=False)
    position = {
        layout.lives.spans[number][0]: at
        for at, number in enumerate(
            np.cumsum([0, *(len(list(each.walk())) for each in graph.operators)]).tolist()[:-1]
        )
    }
    for fusion in find_fusions(layout):
        first = position[fusion.start]
        run = graph.operators[first : first + len(fusion.operators)]
        assert fusion.end - fusion.start == len(run)
        gone = {layout.storages[layout.rows[row]].tensors[0] for row in fusion.rows}
        outputs = [t for each in run for t in each.outputs if t not in gone]
        inputs = {t for each in run for t in each.inputs} - gone - set(outputs)
        one = Operator(
            "fused",
            "Fused",
            tuple(inputs),
            tuple(outputs),
            workspace=sum(each.workspace for each in run),
            in_place=tuple(
                pair
                for each in run
                for pair in each.in_place
                if pair[0] in inputs and pair[1] in outputs
            ),
        )
        operators = (*graph.operators[:first], one, *graph.operators[first + len(run) :])
        by_hand = lay_out(
            replace(graph, operators=operators), pins=False, in_place=in_place, round_up=False
        )
        assert fuse(layout.problem, fusion).max_load == by_hand.problem.max_load


def test_only_what_one_operator_reads_is_fused_away() -> None:
    """Tests an example, and what keeps a tensor stored: readers, views, groups, pins, streams."""
    straight = (op("conv", (0,), 1), op("add", (1,), 2), op("relu", (2,), 3))
    graph = program(*straight)
    names = [(each.start, each.end, each.operators) for each in find_fusions(lay_out(graph))]
    conv, add, relu = "conv (Conv)", "add (Add)", "relu (Relu)"
    assert names == [(0, 2, (conv, add)), (0, 3, (conv, add, relu)), (1, 3, (add, relu))]

    def fused(graph: Graph, **how: bool) -> set[str]:
        layout = lay_out(graph, **how)
        rows = {row for each in find_fusions(layout) for row in each.rows}
        return {layout.problem.ids[row] for row in rows}

    assert fused(graph) == {"t1", "t2"}
    assert fused(program(*straight, op("late", (1,), 4))) == {"t2"}
    assert fused(replace(graph, outputs=(1,))) == {"t2"}
    assert fused(program(*straight, op("late", (4,), 5), views=(View(4, 1),))) == {"t2"}
    assert fused(replace(graph, aliases=((2, 5),))) == {"t1"}
    assert fused(replace(graph, groups=((1,),))) == {"t2"}
    pinned = (*graph.tensors[:2], replace(graph.tensors[2], pin=64), *graph.tensors[3:])
    assert fused(replace(graph, tensors=pinned)) == {"t1"}
    assert fused(replace(graph, planned=frozenset({Kind.INPUT}))) == set()
    apart = (*straight[:2], replace(straight[2], stream=1))
    assert fused(program(*apart)) == set()
    branch = replace(straight[1], blocks=(Block("then", (), (), ()),))
    assert fused(program(straight[0], branch, straight[2])) == set()
    over = (straight[0], replace(straight[1], in_place=((1, 2),)), straight[2])
    assert fused(program(*over), in_place=True) == set()
    assert fused(program(*over)) == {"t1", "t2"}


def test_what_the_run_reads_is_not_overwritten() -> None:
    """Tests a run whose last operator changes in place what its first one reads."""
    graph = program(op("conv", (0,), 1), op("add_", (1, 0), 2))
    assert len(find_fusions(lay_out(graph))) == 1
    assert find_fusions(lay_out(replace(graph, aliases=((0, 2),)))) == ()


def test_pins_that_meet_are_not_fused() -> None:
    """Tests that operators stay apart if their results have the same address."""
    graph = program(op("conv", (0,), 1), op("add", (1,), 2))
    layout = lay_out(graph)
    at = layout.problem.index("t1")
    found = savings(layout.problem.with_pins({"t0": 0, "t2": 0}), layout)
    assert at not in found.fusions
    assert found.after[Change.FUSED].max() == -1
    assert at in savings(layout.problem, layout).fusions


def equal_blocks(count: int) -> Graph:
    """Return a network of equal blocks: wide, activated, and narrow again."""
    tensors, operators = [Tensor("x", 40, Kind.INPUT)], []
    for number in range(count):
        at = len(tensors) - 1
        for name, size in (("wide", 100), ("act", 100), ("y", 40)):
            tensors.append(Tensor(f"{name}{number}", size))
        for step, kind in enumerate(("Conv", "Relu", "Pool")):
            reads = (at + step,)
            operators.append(Operator(f"{kind.lower()}{number}", kind, reads, (at + step + 1,)))
    return Graph("blocks", tuple(tensors), tuple(operators), (0,), (len(tensors) - 1,))


def test_equal_blocks_are_fused_together() -> None:
    """Tests that one fusion saves nothing where several times have the load, and several do."""
    layout = lay_out(equal_blocks(3))
    found = savings(layout.problem, layout)
    assert (found.peak, found.count) == (200, 3)
    assert not found.saved(Change.FUSED).any()
    # With the whole block as one step, only its input and its output are there.
    assert [(each.start, each.end) for each in found.runs] == [(0, 3), (3, 6), (6, 9)]
    assert found.worst(found.runs_rows, Change.FUSED) == Worst(80, 0, 3)
    problem = found.changed(found.runs_rows, Change.FUSED)
    assert problem.ids == ("x", "y0", "y1", "y2")
    assert problem.max_load == 80
    (trial,) = (each for each in inspect(of_graph(layout.graph)).trials if each.change == "fused")
    assert (trial.rows, trial.plan.peak) == (found.runs_rows, 80)


def test_one_block_is_fused_alone() -> None:
    """Tests that nothing is fused together if one run does as much."""
    layout = lay_out(equal_blocks(1))
    found = savings(layout.problem, layout)
    assert found.saved(Change.FUSED).max() == 120
    assert found.runs == ()
    assert choose_together(layout.problem, (), 200) is None


@settings(max_examples=200)
@given(programs(), st.data())
def test_fusing_together_is_best(graph: Graph, data: st.DataObject) -> None:
    """Tests the load and the count against all sets of runs that share no step, also with pins."""
    layout = lay_out(graph)
    problem = layout.problem
    plan = solve(problem, "greedy")
    pinned = data.draw(st.sets(st.sampled_from(problem.ids), max_size=4)) if problem.ids else ()
    problem = problem.with_pins({id: plan.offset(id) for id in pinned})
    fusions = find_fusions(layout)[:9]
    outcomes = []
    for count in range(len(fusions) + 1):
        for some in combinations(fusions, count):
            if all(one.end <= other.start for one, other in pairwise(some)):
                with suppress(ProblemError):
                    outcomes.append((fuse(problem, *some).max_load, count))
    best = min(outcomes)
    for limit in (problem.max_load, best[0], min(best[0] + 1, problem.max_load)):
        chosen = choose_together(problem, fusions, limit)
        if best[0] >= limit:
            assert chosen is None
        else:
            assert chosen is not None
            assert (fuse(problem, *chosen).max_load, len(chosen)) == best


def test_fusing_together_in_a_long_network() -> None:
    """Tests a thousand equal blocks, with the load that their programs have by hand."""
    layout = lay_out(equal_blocks(1000))
    found = savings(layout.problem, layout)
    assert len(found.runs) == 1000
    assert found.worst(found.runs_rows, Change.FUSED).load == 80


def test_ids_of_what_is_made_again_are_new() -> None:
    """Tests that a buffer that has the new name already does not stop it."""
    graph = program(op("conv", (0,), 1), op("add", (1,), 2), *BUSY, LAST)
    tensors = [*graph.tensors]
    tensors[3] = Tensor("t2 (again)", 50)
    layout = lay_out(replace(graph, tensors=tuple(tensors)))
    found = savings(layout.problem, layout)
    row = layout.problem.index("t2")
    assert found.changed([row], Change.RECOMPUTED).ids[-1] == "t2 (again)+"

"""Tests of what `lay_out` makes of streams and contiguous groups."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from memplan.base.errors import GraphError
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View, lay_out, unsafe_pairs
from memplan_lab.bench.generators import multi_stream, pangu_like


def net(operators: tuple[Operator, ...], *sizes: int, **more: Any) -> Graph:
    """Return a program of tensors "0", "1", ... of some sizes."""
    tensors = tuple(Tensor(str(number), size) for number, size in enumerate(sizes))
    return Graph("net", tensors, operators, **more)


@pytest.mark.parametrize("seed", range(10))
def test_conflicts_are_what_lifetimes_do_not_say(seed: int) -> None:
    """Tests that lifetimes and conflicts together are the unsafe pairs, each pair once."""
    layout = lay_out(multi_stream(25, 4, seed))
    problem = layout.problem
    rows = range(len(problem))
    start, end = problem.start.tolist(), problem.end.tolist()
    meet = {(i, j) for i, j in combinations(rows, 2) if start[i] < end[j] and start[j] < end[i]}
    conflicts = {(i, j) for i, j in problem.conflicts.pairs().tolist()}
    unsafe = unsafe_pairs(layout)
    assert not meet & conflicts
    assert meet | conflicts == {pair for pair in combinations(rows, 2) if pair in unsafe}
    assert conflicts


def test_one_stream_has_no_conflicts() -> None:
    """Tests that a program on one stream is a problem of lifetimes alone."""
    assert not lay_out(multi_stream(25, 1, 0)).problem.has_conflicts


def test_groups_of_the_graph() -> None:
    """Tests that groups are rows in the order of the group, rounded sizes apart."""
    graph = pangu_like(1000, 5, 20)
    layout = lay_out(graph)
    ids = layout.problem.ids
    found = [[ids[row] for row in rows] for rows in layout.problem.groups]
    assert found == [[graph.tensors[index].name for index in group] for group in graph.groups]
    make = (Operator("make", "Make", (), (0, 1, 2)),)
    problem = lay_out(net(make, 5, 0, 9, groups=((2, 1, 0),), alignment=8)).problem
    assert problem.groups == ((1, 0),)
    assert problem.lead.tolist() == [16, 0]


def test_a_group_in_views() -> None:
    """Tests that what is written over a member, all of it, is in the same place."""
    operators = (
        Operator("make", "Make", (), (0, 1)),
        Operator("reduce", "AllReduce", (0, 1), (2, 3), 1),
        Operator("use", "Use", (2, 3), ()),
    )
    graph = net(operators, 4, 6, 4, 6, views=(View(2, 0), View(3, 1)), groups=((0, 1),))
    problem = lay_out(graph).problem
    assert (problem.ids, problem.groups) == (("0", "1"), ((0, 1),))
    assert problem.lead.tolist() == [0, 4]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"views": (View(1, 0),)}, '"1" of group 0 is only a part of "0"; groups are of whole'),
        ({"views": (View(2, 0),), "groups": ((0, 2),)}, "two tensors of group 0 have the same"),
        ({"groups": ((0, 3),)}, '"3" of group 0 is not planned, but "0" of the same group is'),
    ],
)
def test_groups_that_cannot_be(changes: dict[str, Any], sentence: str) -> None:
    """Tests that a group of parts, of one memory, or of what is not planned is refused."""
    operators = (Operator("make", "Make", (3,), (0,)), Operator("next", "Next", (0,), (1, 2)))
    graph = net(operators, 8, 4, 8, 8, groups=((0, 1),), inputs=(3,))
    tensors = (*graph.tensors[:3], replace(graph.tensors[3], kind=Kind.CONSTANT))
    with pytest.raises(GraphError, match=sentence):
        lay_out(replace(replace(graph, tensors=tensors), **changes))


def test_a_group_that_is_not_planned() -> None:
    """Tests that a group that is not planned at all is left alone."""
    operators = (Operator("make", "Make", (0, 1), (2,)),)
    graph = net(operators, 8, 8, 8, groups=((0, 1),), inputs=(0, 1))
    given = tuple(replace(tensor, kind=Kind.INPUT) for tensor in graph.tensors[:2])
    graph = replace(graph, tensors=(*given, graph.tensors[2]))
    assert lay_out(graph).problem.has_groups
    assert not lay_out(graph, include={Kind.INTERMEDIATE}).problem.has_groups


@pytest.mark.parametrize(("stream", "rows"), [(0, 1), (1, 2)])
def test_nothing_is_written_over_what_another_stream_reads(stream: int, rows: int) -> None:
    """Tests that an in-place choice is taken only if all readers of the input are on one stream."""
    operators = (
        Operator("make", "Make", (), (0,)),
        Operator("look", "Look", (0,), (), stream),
        Operator("change", "Relu", (0,), (1,), in_place=((0, 1),)),
        Operator("end", "End", (1,), ()),
    )
    assert len(lay_out(net(operators, 8, 8), in_place=True).problem) == rows


def test_nothing_is_moved_out_of_its_group() -> None:
    """Tests that an in-place choice is not taken for a result that lies in a group."""
    operators = (
        Operator("make", "Make", (), (0,)),
        Operator("change", "Relu", (0,), (1, 2), in_place=((0, 1),)),
        Operator("end", "End", (1, 2), ()),
    )
    graph = net(operators, 8, 8, 8)
    assert len(lay_out(graph, in_place=True).problem) == 2
    layout = lay_out(replace(graph, groups=((2, 1),)), in_place=True)
    assert layout.problem.ids == ("0", "1", "2")
    assert layout.problem.groups == ((2, 1),)

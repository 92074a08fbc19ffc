"""Tests of memplan.programs.graph: what is refused, when tensors live, and which share memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
import strategies_graph
from hypothesis import given
from hypothesis import strategies as st
from machine import Machine
from strategies_graph import FEATURES

from memplan.base.errors import GraphError
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.programs.graph import (
    Block,
    Graph,
    Kind,
    Layout,
    Operator,
    Tensor,
    View,
    lay_out,
    lives,
)
from memplan.referee import verify

EVERYTHING = frozenset(Kind)


def tensors(text: str, size: int = 4) -> tuple[Tensor, ...]:
    """Return tensors of these names; a name after `>` is an input, one before `>` an output."""
    found = []
    for name in text.split():
        kind = Kind.INTERMEDIATE
        if name.startswith(">"):
            kind = Kind.INPUT
        elif name.endswith(">"):
            kind = Kind.OUTPUT
        found.append(Tensor(name.strip(">"), size, kind))
    return tuple(found)


def graph(names: str, *operators: Operator, **more: Any) -> Graph:
    """Return a graph of tensors of four bytes; `names` as in `tensors`."""
    made = more.pop("tensors", tensors(names))
    inputs = tuple(i for i, t in enumerate(made) if t.kind is Kind.INPUT)
    outputs = tuple(i for i, t in enumerate(made) if t.kind is Kind.OUTPUT)
    return Graph("g", made, operators, inputs, outputs, **more)


def op(inputs: Iterable[int], outputs: Iterable[int], **more: Any) -> Operator:
    """Return an operator without a name."""
    return Operator("", "Op", tuple(inputs), tuple(outputs), **more)


def spans(layout: Layout) -> dict[str, tuple[int, int]]:
    """Return the lifetimes of a layout's storages by name."""
    return {storage.name: (storage.start, storage.end) for storage in layout.storages}


def first_fit(problem: Problem, order: Iterable[int]) -> list[int]:
    """Place rows in this order, each at the lowest offset that is free and aligned."""
    offsets = [-1] * len(problem)
    rows = list(problem.buffers)
    for row in order:
        buffer = rows[row]
        others = [
            (offset, offset + rows[at].size)
            for at, offset in enumerate(offsets)
            if offset >= 0 and rows[at].start < buffer.end and buffer.start < rows[at].end
        ]
        place = 0
        for lower, upper in sorted(others):
            if place + buffer.size > lower and place < upper:
                place = -(-upper // buffer.alignment) * buffer.alignment
        offsets[row] = place
    return offsets


class TestChecks:
    """What is not a graph."""

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"alignment": 0}, "the alignment is 0; it must be between 1 and 2^62"),
            ({"inputs": (3,)}, "an input of the graph names a tensor that does not exist"),
            ({"outputs": (-1,)}, "an output of the graph names a tensor that does not exist"),
            ({"aliases": ((0, 3),)}, "an alias names a tensor that does not exist"),
            ({"views": (View(3, 0),)}, "a view names a tensor that does not exist"),
            ({"views": (View(1, 0, -2),)}, 'the view "a" begins 2 bytes before its base'),
            ({"views": (View(1, 0), View(1, 2))}, 'tensor "a" is a view of two tensors'),
            ({"views": (View(1, 2), View(2, 1))}, 'the view "a" is a view of itself'),
            ({"views": (View(1, 1),)}, 'the view "a" is a view of itself'),
        ],
    )
    def test_bad_graphs(self, change: dict[str, Any], sentence: str) -> None:
        """Tests that each thing that is wrong with a graph is one sentence."""
        good = graph(">x a b>", op([0], [1]), op([1], [2]))
        with pytest.raises(GraphError) as caught:
            replace(good, **change)
        assert str(caught.value) == sentence

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"bytes": -1}, 'tensor "a" has a size of -1 bytes; it must be between 0 and 2^62'),
            ({"bytes": (1 << 62) + 1}, 'tensor "a" has a size of 4611686018427387905 bytes'),
            ({"pin": -4}, 'tensor "a" is pinned to offset -4; it must be between 0 and 2^62'),
            ({"name": ""}, "tensor number 1 has no name"),
            ({"name": "x"}, 'two tensors have the name "x"'),
        ],
    )
    def test_bad_tensors(self, change: dict[str, Any], sentence: str) -> None:
        """Tests that each thing that is wrong with a tensor is one sentence."""
        x, a = tensors(">x a")
        with pytest.raises(GraphError) as caught:
            Graph("g", (x, replace(a, **change)), (op([0], [1]),), (0,))
        assert str(caught.value).startswith(sentence)

    @pytest.mark.parametrize(
        ("operators", "sentence"),
        [
            ([op([7], [1])], 'operator "Op" names a tensor that does not exist'),
            ([op([0], [-1])], 'operator "Op" names a tensor that does not exist'),
            ([op([0], [1], workspace=-5)], 'operator "Op" has a workspace of -5 bytes'),
            ([op([0], [1], in_place=((0, 9),))], 'operator "Op" names a tensor that does not'),
            ([op([0], [1], in_place=((1, 0),))], 'operator "Op" has an in-place pair that is not'),
            (
                [op([0], [1], blocks=(Block("b", (), outputs=(8,)),))],
                'operator "Op" names a tensor that does not exist',
            ),
            ([op([2], [1])], 'nothing makes tensor "b", which is read by operator "Op"'),
            ([op([1], [2]), op([0], [1])], 'tensor "a", which is read by operator "Op", is not ma'),
            (
                [op([2], [1]), op([1], [2])],
                'the operators run in a cycle: "Op" waits for "Op" (ten',
            ),
            ([op([0], [1]), op([0], [1])], 'two operators make tensor "a"'),
            ([op([0], [1, 1])], 'two operators make tensor "a"'),
            (
                [op([0], [1], blocks=(Block("then", (), outputs=(2,)),))],
                'nothing makes tensor "b", which is handed out by block "then"',
            ),
            (
                [op([], [], blocks=(Block("then", (op([], [1]),)), Block("", (op([], [1]),))))],
                'two operators make tensor "a"',
            ),
        ],
    )
    def test_bad_operators(self, operators: list[Operator], sentence: str) -> None:
        """Tests that dangling names, cycles and doubled makers are one sentence each."""
        with pytest.raises(GraphError) as caught:
            graph(">x a b", *operators)
        assert str(caught.value).startswith(sentence)

    def test_an_output_that_nobody_makes(self) -> None:
        """Tests that the outputs of a graph have to come from somewhere."""
        with pytest.raises(GraphError, match='nothing makes tensor "y", which is an output'):
            graph(">x y>", op([0], []))

    def test_a_view_of_what_is_not_made(self) -> None:
        """Tests that a view is as good as its base."""
        seen = View(2, 1)
        with pytest.raises(GraphError, match='nothing makes tensor "a", which has the view "v", '):
            graph(">x a v", op([2], []), views=(seen,))
        assert graph(">x a v", op([0], [1]), op([2], []), views=(seen,)).views == (seen,)

    def test_depth(self) -> None:
        """Tests that blocks may be nested a hundred deep and no deeper, without recursion."""

        def nested(depth: int) -> Operator:
            operator = op([0], [])
            for _ in range(depth):
                operator = op([], [], blocks=(Block("b", (operator,)),))
            return operator

        assert lives(graph(">x", nested(99))).steps == 199
        for depth in (100, 5000):
            with pytest.raises(GraphError, match="blocks are nested more than 100 deep"):
                graph(">x", nested(depth))


class TestSource003:
    """The four operators of static memory planning."""

    def four(self) -> Graph:
        """Return T1 = Conv(Input), T2 = ReLU(T1), T3 = MaxPool(T1), T4 = Add(T2, T3)."""
        return graph(
            ">Input T1 T2 T3 T4>",
            Operator("", "Conv", (0,), (1,)),
            Operator("", "ReLU", (1,), (2,), in_place=((1, 2),)),
            Operator("", "MaxPool", (1,), (3,)),
            Operator("", "Add", (2, 3), (4,), in_place=((2, 4), (3, 4))),
        )

    def test_interference(self) -> None:
        """Tests the edges among T1 to T4, and that the input meets what is made of it."""
        alive = lives(self.four())
        edges = {
            (one, other)
            for one, other in combinations(range(5), 2)
            if alive.start[one] < alive.end[other] and alive.start[other] < alive.end[one]
        }
        assert edges == {(0, 1), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)}

    def test_live_ranges(self) -> None:
        """Tests that a tensor lives from its maker to its last reader, both included."""
        alive = lives(self.four())
        assert alive.start == (0, 0, 1, 2, 3)
        assert alive.end == (1, 3, 4, 4, 4)
        assert [operator.type for operator in alive.operators] == ["Conv", "ReLU", "MaxPool", "Add"]

    def test_in_place(self) -> None:
        """Tests that ReLU cannot go over what MaxPool reads, and Add goes over one input only."""
        layout = lay_out(self.four(), in_place=True)
        assert [storage.tensors for storage in layout.storages] == [(0,), (1,), (2, 4), (3,)]
        assert layout.storages[2].kind is Kind.OUTPUT


class TestLives:
    """Lifetimes with control flow; `Machine` says whether they are long enough."""

    def test_not_over_what_a_block_hands_out(self) -> None:
        """Tests that the last operator of a branch does not destroy the branch's result."""
        inner = op([1], [2], in_place=((1, 2),))
        outer = op([0], [3], blocks=(Block("then", (op([], [1]), inner), (), (1,)),))
        layout = lay_out(graph(">x a b y>", outer), in_place=True)
        assert [storage.tensors for storage in layout.storages] == [(0,), (1,), (2,), (3,)]

    def test_a_view_of_an_input_is_no_result(self) -> None:
        """Tests that the first operator cannot put one input over another by a view of it."""
        first = op([0, 1], [2], in_place=((1, 2),))
        program = graph(">x >y v", first, views=(View(2, base=0),))
        layout = lay_out(program, include=EVERYTHING, in_place=True)
        assert [storage.tensors for storage in layout.storages] == [(0, 2), (1,)]

    @pytest.mark.parametrize("features", [FEATURES, {"in_place", "views"}, {"blocks", "views"}])
    @given(st.data())
    def test_on_a_machine(self, features: frozenset[str], data: st.DataObject) -> None:
        """Tests that programs run in planned memory, whatever branch or count is chosen."""
        program = data.draw(strategies_graph.graphs(frozenset(features)))
        layout = lay_out(program, include=EVERYTHING, in_place=data.draw(st.booleans()), pins=False)
        order = data.draw(st.permutations(range(len(layout.problem))))
        offsets = first_fit(layout.problem, order)
        verify(layout.problem, Plan.of(layout.problem, offsets))
        for _ in range(2):
            Machine(layout, offsets, lambda low, high: data.draw(st.integers(low, high))).run()

    @given(strategies_graph.graphs(frozenset({"views"})))
    def test_no_longer_than_needed(self, program: Graph) -> None:
        """Tests lifetimes of straight programs against sets, computed backwards as in the text."""
        base = {view.tensor: view.base for view in program.views}

        def owners(indices: Iterable[int]) -> set[int]:
            found = set()
            for index in indices:
                while index in base:
                    index = base[index]
                found.add(index)
            return found

        kinds = enumerate(program.tensors)
        always = {i for i, t in kinds if t.kind in (Kind.CONSTANT, Kind.VARIABLE)}
        held = [owners(program.outputs) | always]
        for operator in reversed(program.operators):
            held.append((held[-1] - set(operator.outputs)) | owners(operator.inputs))
        held.reverse()
        steps: dict[int, set[int]] = {}
        touched = {*program.outputs}.union(*((*o.inputs, *o.outputs) for o in program.operators))
        unread = {i for i in program.inputs if program.tensors[i].bytes} - owners(touched)
        begin = -1 if unread and Kind.INPUT in program.planned else 0
        for index in (*program.inputs, *(always if begin else ())):
            steps.setdefault(index, set()).add(begin)
        for step, operator in enumerate(program.operators):
            busy = held[step] | held[step + 1] | owners(operator.outputs)
            for index in busy:
                steps.setdefault(index, set()).add(step)
        if not program.operators:
            for index in held[0]:
                steps.setdefault(index, set()).add(0)
        expected = {
            program.tensors[i].name: (min(live), max(live) + 1)
            for i, live in steps.items()
            if program.tensors[i].bytes
        }
        assert spans(lay_out(program, include=EVERYTHING)) == expected

    def test_branches(self) -> None:
        """Tests that branches share no time, and that what both read lives through both."""
        #           0 enter, 1 then, 2 else, 3 leave
        alive = lives(
            graph(
                ">x t e y>",
                op(
                    [],
                    [3],
                    blocks=(
                        Block("then", (op([0], [1]),), (), (1,)),
                        Block("else", (op([0], [2]),), (), (2,)),
                    ),
                ),
            )
        )
        assert alive.steps == 4
        assert list(zip(alive.start, alive.end, strict=True)) == [(0, 3), (1, 2), (2, 3), (1, 4)]
        assert alive.spans == ((0, 4), (1, 2), (2, 3))

    def test_a_loop(self) -> None:
        """Tests that what is carried or comes from outside lives until the loop ends."""
        #  0 before, 1 enter, 2 and 3 body, 4 leave, 5 after
        body = Block("body", (op([1, 3], [4]), op([0, 4], [5])), (3,), (5,))
        alive = lives(
            graph(
                "",
                op([], [1]),
                op([2], [6], blocks=(body,), loop=True),
                op([6], []),
                tensors=(*tensors(">x w"), Tensor("v", 4, Kind.CONSTANT), *tensors("s i n y")),
            )
        )
        assert list(zip(alive.start, alive.end, strict=True)) == [
            (0, 5),  # the input, though the body reads it for the first time
            (0, 5),
            (0, 6),
            (1, 5),
            (2, 4),
            (1, 5),
            (3, 6),
        ]

    def test_a_view_in_a_loop(self) -> None:
        """Tests that a base lives until the loop ends of which the body reads a view."""
        body = Block("body", (op([1], []), op([], [2])))
        alive = lives(
            graph(
                "a v t",
                op([], [0]),
                op([], [], blocks=(body,), loop=True),
                views=(View(1, 0),),
            )
        )
        assert (alive.start[0], alive.end[0]) == (0, 5)

    def test_nothing(self) -> None:
        """Tests that a program of no operators has one step, and unused tensors no lifetime.

        An input that nothing reads is over before that step.
        """
        alive = lives(graph(">x a"))
        assert (alive.steps, alive.start, alive.end) == (1, (-1, 0), (0, 0))


class TestLayOut:
    """Which tensors share memory, and what of it is planned."""

    def test_views(self) -> None:
        """Tests that views, also of views, live in their base and keep it alive."""
        program = graph(
            ">x a v w y",
            op([0], [1]),
            op([1], [2]),
            op([2], [3]),
            op([3], [4]),
            views=(View(2, 1, 4), View(3, 2, 2)),
            tensors=(
                *tensors(">x"),
                Tensor("a", 12),
                Tensor("v", 8),
                Tensor("w", 4),
                *tensors("y"),
            ),
        )
        layout = lay_out(program)
        storage = layout.storages[1]
        assert (storage.name, storage.tensors, storage.offsets) == ("a", (1, 2, 3), (0, 4, 6))
        assert (storage.bytes, storage.start, storage.end) == (12, 0, 4)

    def test_a_view_beyond_its_base(self) -> None:
        """Tests that a view must lie in what it is a view of."""
        program = graph(">x v", op([0], [1]), views=(View(1, 0, 1),))
        with pytest.raises(GraphError) as caught:
            lay_out(program)
        assert str(caught.value) == 'the view "v" reaches 5 bytes into "x", which has 4'

    def test_aliases(self) -> None:
        """Tests that aliases have one memory, for as long as any of them is needed."""
        layout = lay_out(
            graph(">x a b c", op([0], [1]), op([1], [2]), op([2], [3]), aliases=((2, 0),))
        )
        assert spans(layout) == {"x": (0, 3), "a": (0, 2), "c": (2, 3)}
        assert layout.storages[0].tensors == (0, 2)

    def test_an_alias_of_a_view(self) -> None:
        """Tests that an alias of a view lies where the view lies."""
        made = (Tensor("big", 12), Tensor("v", 4), Tensor("a", 4), Tensor("b", 8))
        program = Graph(
            "g",
            made,
            (op([], [3, 2]), op([], [0]), op([0, 2, 3], [])),
            views=(View(1, 0, 8),),
            aliases=((2, 1), (3, 0)),
        )
        (storage,) = lay_out(program).storages
        assert dict(zip(storage.tensors, storage.offsets, strict=True)) == {2: 8, 3: 0, 0: 0, 1: 8}
        assert (storage.bytes, storage.start, storage.end) == (12, 0, 3)
        with pytest.raises(GraphError, match="lie at offsets 8 and 0 of"):
            lay_out(replace(program, aliases=((2, 1), (2, 0))))

    def test_in_place_over_part_of_an_input(self) -> None:
        """Tests that a result over a view lies where the view lies, if the rest is not read."""
        made = (Tensor("a", 8), Tensor("v", 4), Tensor("y", 4))
        views = (View(1, 0, 4),)
        alone = op([1], [2], in_place=((1, 2),))
        layout = lay_out(Graph("g", made, (op([], [0]), alone), views=views), in_place=True)
        assert [s.tensors for s in layout.storages] == [(0, 1, 2)]
        assert layout.storages[0].offsets == (0, 4, 4)
        both = op([1, 0], [2], in_place=((1, 2),))
        layout = lay_out(Graph("g", made, (op([], [0]), both), views=views), in_place=True)
        assert [s.tensors for s in layout.storages] == [(0, 1), (2,)]

    @pytest.mark.parametrize(
        ("program", "taken"),
        [
            (graph("a b", op([], [0]), op([0], [1], in_place=((0, 1),))), True),
            (graph(">a b", op([0], [1], in_place=((0, 1),))), True),
            (graph(">a b>", op([0], [1], in_place=((0, 1),))), False),
            (graph("a> b", op([], [0]), op([0], [1], in_place=((0, 1),))), False),
            (graph("a b", op([], [0]), op([0], [1], in_place=((0, 1),)), op([0], [])), False),
            (
                graph(
                    "a b",
                    op([], [0]),
                    op([0], [1], in_place=((0, 1),)),
                    tensors=(Tensor("a", 4), Tensor("b", 5)),
                ),
                False,
            ),
            (
                graph(
                    "a b",
                    op([], [0]),
                    op([0], [1], in_place=((0, 1),)),
                    tensors=(Tensor("a", 4, pin=0), Tensor("b", 4, pin=8)),
                ),
                False,
            ),
            (
                graph(
                    "a b",
                    op([], [0]),
                    op([0], [1], in_place=((0, 1),)),
                    tensors=(Tensor("a", 4, pin=8), Tensor("b", 4, pin=8)),
                ),
                True,
            ),
        ],
    )
    def test_in_place(self, program: Graph, taken: bool) -> None:
        """Tests that a result goes over an input that dies, of its size, and of no caller."""
        assert len(lay_out(program, in_place=True).storages) == 2 - taken
        assert len(lay_out(program, pins=False).storages) == 2

    def test_in_place_only_among_what_is_planned(self) -> None:
        """Tests that nothing is written over a caller's input that is not in the arena."""
        program = graph(">a b", op([0], [1], in_place=((0, 1),)))
        layout = lay_out(program, in_place=True, include=[Kind.INTERMEDIATE])
        assert [s.name for s in layout.storages] == ["a", "b"]

    def test_in_place_not_over_what_is_handed_out(self) -> None:
        """Tests that an input which the caller also gets back is not written over."""
        once = op([0], [1], in_place=((0, 1),))
        program = Graph("g", tensors(">a b"), (once,), inputs=(0,), outputs=(0,))
        assert len(lay_out(program, in_place=True).storages) == 2

    def test_kinds(self) -> None:
        """Tests that the graph says what is planned, unless the caller does, also in words."""
        made = (Tensor("w", 4, Kind.CONSTANT), *tensors(">x a y>"))
        program = Graph(
            "g", made, (op([0, 1], [2], workspace=3), op([2], [3])), inputs=(1,), outputs=(3,)
        )
        assert lay_out(program).problem.ids == ("x", "a", "y", "Op (workspace)")
        assert lay_out(program, include=["constant"]).problem.ids == ("w",)
        assert lay_out(program, include=[]).problem.ids == ()
        small = replace(program, planned=frozenset({Kind.INTERMEDIATE}))
        assert lay_out(small).problem.ids == ("a",)
        assert len(lay_out(small).storages) == 5

    def test_sizes(self) -> None:
        """Tests that sizes are rounded up as the runtime does, and offsets are aligned."""
        program = graph("a b", op([], [0]), op([0], [1]), alignment=16)
        problem = lay_out(program).problem
        assert (problem.size.tolist(), problem.alignment.tolist()) == ([16, 16], [16, 16])
        assert lay_out(program, round_up=False).problem.size.tolist() == [4, 4]

    def test_nothing_takes_no_memory(self) -> None:
        """Tests that tensors of no elements and tensors that no operator uses are not placed."""
        program = Graph("g", (Tensor("a", 0), Tensor("b", 4), Tensor("c", 4)), (op([], [0, 1]),))
        assert lay_out(program).problem.ids == ("b",)

    def test_workspaces(self) -> None:
        """Tests that scratch lives as long as its operator, its blocks included."""
        inner = replace(op([], [], workspace=2), name="in")
        outer = op([], [], workspace=3, blocks=(Block("b", (inner, inner)),))
        layout = lay_out(graph("", op([], []), outer))
        assert spans(layout) == {
            "Op (workspace)": (1, 5),
            "in (workspace)": (2, 3),
            "in (workspace) 2": (3, 4),
        }

    def test_pins(self) -> None:
        """Tests that a pin is that of the whole storage, also where the file pins a view."""
        made = (Tensor("a", 8), Tensor("v", 4, pin=20))
        program = Graph("g", made, (op([], [0]), op([1], [])), views=(View(1, 0, 4),))
        assert lay_out(program).problem.pin.tolist() == [16]
        assert lay_out(program, pins=False).problem.pin.tolist() == [-1]
        other = replace(program, tensors=(replace(made[0], pin=0), made[1]))
        with pytest.raises(GraphError, match='"a" shares its memory with a tensor that is pinned'):
            lay_out(other)
        assert lay_out(other, pins=False).problem.ids == ("a",)
        low = replace(program, tensors=(made[0], replace(made[1], pin=3)))
        with pytest.raises(GraphError, match='a view of "a" is pinned so low'):
            lay_out(low)

    def test_pins_that_overlap(self) -> None:
        """Tests that pins that no plan can have are an error about the graph."""
        made = (Tensor("a", 8, pin=0), Tensor("b", 8, pin=4))
        with pytest.raises(GraphError, match="its pin and that of"):
            lay_out(Graph("g", made, (op([], [0, 1]),)))

    def test_more_than_everything(self) -> None:
        """Tests that too many bytes at one time are an error about the graph."""
        made = (Tensor("a", 1 << 62), Tensor("b", 1 << 62))
        with pytest.raises(GraphError, match=r"more than 2\^62"):
            lay_out(Graph("g", made, (op([], [0, 1]),)))
        with pytest.raises(GraphError, match="size is"):
            lay_out(Graph("g", made, (op([], [0]),), alignment=(1 << 62) - 1))

    @given(strategies_graph.graphs(), st.booleans())
    def test_every_byte_is_somewhere(self, program: Graph, in_place: bool) -> None:
        """Tests that every tensor that lives is in one storage, inside of it, and in its time."""
        layout = lay_out(program, include=EVERYTHING, in_place=in_place, pins=False)
        found = {}
        for storage in layout.storages:
            for tensor, offset in zip(storage.tensors, storage.offsets, strict=True):
                assert tensor not in found
                found[tensor] = storage
                assert 0 <= offset <= storage.bytes - program.tensors[tensor].bytes
                if layout.lives.end[tensor] > layout.lives.start[tensor]:
                    assert storage.start <= layout.lives.start[tensor]
                    assert layout.lives.end[tensor] <= storage.end
        for index, tensor in enumerate(program.tensors):
            lived = layout.lives.end[index] > layout.lives.start[index]
            assert index in found or not (lived and tensor.bytes)


def test_walk() -> None:
    """Tests that operators are walked in the order in which they are written."""
    inner = Block("b", (Operator("1", ""), Operator("2", "")))
    program = Graph("g", (), (Operator("0", "", blocks=(inner, inner)), Operator("3", "")))
    assert "".join(operator.name for operator in program.walk()) == "012123"

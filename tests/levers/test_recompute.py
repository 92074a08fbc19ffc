"""Tests of `recompute`: a program with re-runs computes the same, in the memory that is said."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import again_oracle as oracle
import numpy as np
import pytest
import strategies_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from small_programs import training_step

import memplan as mp
from memplan import _core
from memplan.base.errors import GraphError
from memplan.base.sizes import parse_rates
from memplan.levers.rewrite import reorder
from memplan.levers.rewrite.again import NoRunsError, recompute, search, verify_recompute
from memplan.levers.rewrite.again.columns import Again, again_of
from memplan.levers.rewrite.again.emitted import emit
from memplan.levers.rewrite.again.native import core_recompute_problem
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View, lay_out
from memplan.programs.graph.liveness import iterate_given, iterate_wanted
from memplan.programs.graph.updates import updates
from memplan.programs.sources import lay_out_again, of_graph
from memplan.programs.sources.dialects import is_view
from memplan.referee import verify_recompute as check_runs


def make(operators: list[Operator], tensors: list[Tensor], **fields: Any) -> Graph:
    """Return a graph, whose inputs and outputs are the tensors of these kinds."""
    inputs = tuple(i for i, tensor in enumerate(tensors) if tensor.kind is Kind.INPUT)
    outputs = tuple(i for i, tensor in enumerate(tensors) if tensor.kind is Kind.OUTPUT)
    return Graph("net", tuple(tensors), tuple(operators), inputs, outputs, **fields)


def step(depth: int = 5) -> Graph:
    """Return a training step with an input of 8 bytes, and 100 for all else."""
    return training_step(depth, 100, 8)


def question_of(graph: Graph, rates: tuple[int, int] | None = None) -> Again:
    """Return the question of a graph."""
    layout = lay_out_again(of_graph(graph), in_place=False).layout
    assert layout is not None
    return again_of(layout, rates=rates)


def names_again(graph: Graph) -> set[str]:
    """Return the names of the operators that may run again."""
    again = question_of(graph).problem.again.tolist()
    return {each.name for each, may in zip(graph.operators, again, strict=True) if may}


def contents(graph: Graph, numbers: Sequence[int]) -> dict[int, list[Any]]:
    """Return what each byte of each result is, by running the operators on memory.

    Operator -1 copies bytes to another memory, or back. What others write depends on which one it
    is, and on all bytes that it reads.
    """
    place = {}
    layout = lay_out(graph, include=graph.planned | {Kind.OUTSIDE})
    memory: list[list[Any]] = []
    for number, storage in enumerate(layout.storages):
        memory.append([None] * storage.bytes)
        for tensor, offset in zip(storage.tensors, storage.offsets, strict=True):
            place[tensor] = number, slice(offset, offset + graph.tensors[tensor].bytes)

    def read(tensor: int) -> Any:
        number, part = place.get(tensor, (0, slice(0, 0)))
        return tuple(memory[number][part]) if memory else ()

    declared = {view.tensor for view in graph.views}
    for tensor in {*iterate_given(graph)} & place.keys():
        number, part = place[tensor]
        name = graph.tensors[tensor].name
        memory[number][part] = [(name, i) for i in range(part.stop - part.start)]
    for op, operator in zip(numbers, graph.operators, strict=True):
        if op < 0:
            number, part = place[operator.outputs[0]]
            memory[number][part] = read(operator.inputs[0])
            continue
        inside = list(operator.walk())
        blocks = [block for each in inside for block in each.blocks]
        reads = [tensor for each in inside for tensor in each.inputs]
        reads += [tensor for block in blocks for tensor in block.outputs]
        seen = hash((op, *map(read, reads)))
        written = [t for each in inside for t in each.outputs]
        written += [tensor for block in blocks for tensor in block.inputs]
        if updates(operator):
            written += operator.inputs
        for at, tensor in enumerate(written):
            if tensor in place:
                number, part = place[tensor]
                among = any(place.get(each, (-1,))[0] == number for each in operator.inputs)
                if not (among and is_view(graph, operator, tensor in declared)):
                    memory[number][part] = [
                        hash((seen, at, i)) for i in range(part.stop - part.start)
                    ]
    return {tensor: [*read(tensor)] for tensor in {*iterate_wanted(graph)} & place.keys()}


def find_moves_alone(graph: Graph, capacity: int, rate: str) -> float:
    """Return what moves cost if nothing may run again; infinite if nothing is found."""
    layout = lay_out_again(reorder(graph, states=300).loaded, in_place=False).layout
    assert layout is not None
    problem = again_of(layout, rates=parse_rates(rate)).problem
    once = replace(problem, again=np.zeros_like(problem.again))
    found = _core.recompute(core_recompute_problem(once), capacity, None, 300, True, [])
    return found.extra if found.runs else inf


class TestPrograms:
    """What is emitted for a sequence."""

    @given(
        graph=strategies_graph.graphs(strategies_graph.FEATURES - {"pins"}),
        seed=st.integers(0, 2**32),
    )
    def test_it_computes_the_same_in_the_same_load(self, graph: Graph, seed: int) -> None:
        """Tests random sequences of random programs, byte by byte, and their loads."""
        question = question_of(graph, (10**9, 10**9) if seed % 2 else None)
        runs = oracle.random_runs(question.problem, Random(seed))
        emitted = emit(question, runs)
        made = replace(emitted.graph)  # checks it
        result = contents(made, emitted.operators)
        plain = contents(graph, range(len(graph.operators)))
        assert {tensor: result[tensor] for tensor in plain} == plain
        ran = [op for op in emitted.operators if op >= 0 and op not in question.views]
        count = len(graph.operators)
        assert ran == [op for op in runs if op < count and op not in question.views]
        layout = lay_out(made, pins=False)
        before = sum(layout.problem.size[layout.problem.start < 0].tolist())
        load = max(check_runs(question.problem, runs, 2**62).peak, before)
        if any(operator.blocks for operator in graph.operators):
            assert layout.problem.max_load <= load
        elif graph.operators:
            assert layout.problem.max_load == load

    def test_views_are_made_beside_their_readers(self) -> None:
        """Tests that a reader of a view gets one of the latest copy."""
        tensors = [Tensor("x", 8, Kind.INPUT), Tensor("a", 100), Tensor("v", 50), Tensor("b", 150)]
        tensors += [Tensor("c", 10), Tensor("y", 1, Kind.OUTPUT)]
        operators = [
            Operator("first", "CONV", (0,), (1,)),
            Operator("view", "RESHAPE", (1,), (2,)),
            Operator("grow", "CONV", (2,), (3,)),
            Operator("shrink", "CONV", (3,), (4,)),
            Operator("end", "CONV", (4, 2), (5,)),
        ]
        graph = make(operators, tensors, views=(View(2, 1, 50),), source="tflite")
        question = question_of(graph)
        made = emit(question, (0, 1, 2, 3, 0, 4))
        assert made.operators == (0, 1, 2, 3, 0, 1, 4)
        names = [each.name for each in made.graph.operators]
        assert names == ["first", "view", "grow", "shrink", "first (again)", "view (again)", "end"]
        inputs = [made.graph.tensors[t].name for t in made.graph.operators[-1].inputs]
        assert inputs == ["c", "v (again)"]
        assert View(7, 6, 50) in made.graph.views
        assert lay_out(made.graph).problem.max_load == 258
        assert check_runs(question.problem, (0, 1, 2, 3, 0, 4), 258).peak == 258

    def test_results_keep_their_names(self) -> None:
        """Tests that a result that is made again is handed out in its last copy."""
        tensors = [Tensor("x", 1, Kind.INPUT), Tensor("y", 100, Kind.OUTPUT), Tensor("a", 50)]
        tensors += [Tensor("b", 200), Tensor("z", 1, Kind.OUTPUT)]
        operators = [Operator("make", "CONV", (0,), (1,)), Operator("read", "CONV", (1,), (2,))]
        operators += [Operator("grow", "CONV", (2,), (3,)), Operator("end", "CONV", (3,), (4,))]
        graph = make(operators, tensors)
        made = emit(question_of(graph), (0, 1, 2, 3, 0)).graph
        assert lay_out(graph).problem.max_load == 350
        assert lay_out(made).problem.max_load == 251
        assert made.outputs == graph.outputs
        first, read, *_, last = made.operators
        assert made.tensors[first.outputs[0]].name == "y (again)"
        assert read.inputs == first.outputs
        assert (last.name, last.outputs) == ("make (again)", (1,))
        assert [tensor.kind for tensor in made.tensors[5:]] == [Kind.INTERMEDIATE]


class TestWhatMayRunAgain:
    """The operators that run once, and why."""

    def test_what_computes_only(self) -> None:
        """Tests that all operators of a training step may run again."""
        assert names_again(step(2)) == {"f0", "f1", "b1", "b0"}

    @pytest.mark.parametrize(
        ("source", "type_"),
        [
            *(("onnx", "Dropout"), ("onnx", "RandomNormalLike"), ("tflite", "CALL_ONCE")),
            *(("torch", "aten.rand"), ("torch", "aten.relu_"), ("torch", "c10d.broadcast")),
        ],
    )
    def test_random_numbers_effects_and_writes(self, source: str, type_: str) -> None:
        """Tests types that do more than compute their results, beside one that does not."""
        graph = replace(step(2), source=source)
        first = replace(graph.operators[0], type=type_)
        others = [replace(each, type="aten.conv") for each in graph.operators[1:]]
        again = names_again(replace(graph, operators=(first, *others)))
        assert "f0" not in again
        assert "f1" in again

    def test_blocks_state_and_shared_memory(self) -> None:
        """Tests an operator with a block, a state that is replaced, and an alias."""
        graph = step(2)
        block = Block("then", (Operator("inside", "CONV", (1,), ()),))
        branch = replace(graph.operators[1], blocks=(block,))
        assert names_again(
            replace(graph, operators=(graph.operators[0], branch, *graph.operators[2:]))
        ) == {
            *("b1", "b0"),
        }
        assert names_again(replace(graph, aliases=((1, 2),))) == set()
        state = Tensor("state", 4, Kind.VARIABLE)
        new = Tensor("new", 4)
        update = Operator("update", "CONV", (4,), (6,))
        tensors = (*graph.tensors, state, new)
        reader = replace(graph.operators[1], inputs=(1, 5))
        operators = (graph.operators[0], reader, *graph.operators[2:], update)
        once = replace(graph, tensors=tensors, operators=operators, aliases=((5, 6),))
        assert names_again(once) == {"f0", "b1", "b0"}
        kept = replace(graph, tensors=tensors, operators=operators)
        assert names_again(kept) == {"f0", "f1", "b1", "b0", "update"}

    def test_results_beside_each_other_and_outside(self) -> None:
        """Tests a group, and tensors that are not in the arena."""
        graph = step(2)
        assert names_again(replace(graph, groups=((1, 2),))) == {"b1", "b0"}
        inside = replace(graph, planned=frozenset({Kind.INTERMEDIATE}))
        assert names_again(inside) == {"f0", "f1", "b1"}


class TestRecompute:
    """The search, and what is said of its result."""

    def test_a_training_step_in_every_capacity(self) -> None:
        """Tests that less memory costs more, that bounds hold, and that plans need the load."""
        graph, extra = step(), 0
        assert lay_out(graph).problem.max_load == 600
        for capacity in range(650, 350, -50):
            found = recompute(graph, capacity)
            assert found.peak <= capacity
            assert found.bound <= found.order_bound <= found.extra
            assert (found.status is mp.Status.OPTIMAL) == (found.bound == found.extra)
            assert found.extra >= extra
            extra = found.extra
            claim = verify_recompute(graph, found)
            assert (claim.peak, claim.extra) == (found.peak, found.extra)
            assert claim.bound >= found.bound
            assert claim.floor >= found.floor == 308
            assert mp.solve(found.loaded).peak == found.peak
        assert extra > 0
        assert found.moment.startswith("b")

    def test_moves_and_re_runs_cost_no_more_than_either(self) -> None:
        """Tests twelve bandwidths: both together, the bound, and what each rate moves."""
        graph, again = step(8), recompute(step(8), 500, states=300)
        moved = []
        for power in range(12):
            rate = f"{10 * 4**power}GB/s"
            found = recompute(graph, 500, spill=rate, states=300)
            claim = verify_recompute(graph, found, spill=rate)
            assert (claim.peak, claim.extra) == (found.peak, found.extra)
            assert claim.bound >= found.bound
            alone = find_moves_alone(graph, 500, rate)
            assert found.bound <= found.extra <= min(again.extra, alone)
            moved.append(len(found.moved))
        assert (moved[0], found.repeated) == (0, 0)
        assert len(set(moved)) > 2

    def test_a_tensor_is_moved_out_and_back(self) -> None:
        """Tests the operators and tensors of moves, and that each tool reads them."""
        found = recompute(step(), 450, spill="100TB/s,50TB/s")
        assert (found.moved, found.repeated) == (("x1", "x0"), 0)
        assert [each.name for each in found.graph.operators] == [
            *("f0", "f1", "x0 (out)", "f2", "x1 (out)", "f3", "f4", "b4", "b3", "b2"),
            *("x1 (back)", "b1", "x0 (back)", "b0"),
        ]
        back = found.graph.operators[-2]
        names = [found.graph.tensors[tensor].name for tensor in (*back.inputs, *back.outputs)]
        assert names == ["x0 (outside)", "x0 (moved back)"]
        assert found.outside == 200
        assert found.extra == 2 * (1 + 2)
        assert found.operators.count(-1) == 4
        assert mp.solve(found.loaded).peak == found.peak <= 450
        assert reorder(found.loaded).peak <= found.peak
        assert recompute(found.loaded, 400).peak <= 400

    @pytest.mark.parametrize(
        ("sizes", "hidden"),
        [
            ((100, 100, 0), 2000),  # it leaves beside one operator, and comes back beside another
            ((150, 50, 50), 1000),  # the next operator waits until it has left
            ((100, 100, 100), 1000),  # it is back once the last one but its reader is done
        ],
    )
    def test_moves_beside_operators(self, sizes: tuple[int, ...], hidden: int) -> None:
        """Tests how much of two moves of a nanosecond hides behind operators that take as long."""
        made = [Tensor(name, size) for name, size in zip("yzw", sizes, strict=True)]
        tensors = [Tensor("in", 0, Kind.INPUT), Tensor("x", 100), *made]
        tensors.append(Tensor("out", 0, Kind.OUTPUT))
        inputs = {"make": (0,), "a": (0,), "b": (2,), "c": (3,), "join": (1, 4)}
        operators = [
            Operator(name, "CONV", reads, (at,))
            for at, (name, reads) in enumerate(inputs.items(), 1)
        ]
        costs = dict.fromkeys(inputs, 1e-9) | {"make": 1e-6}
        graph = make(operators, tensors)
        found = recompute(graph, 200, spill="100GB/s", costs=costs, order=False)
        assert (found.moved, found.moving, found.hidden) == (("x",), 2000, hidden)

    def test_what_never_moves(self) -> None:
        """Tests what several operators write, what is given and handed out, and blocks."""
        names = ("image", *(f"x{i}" for i in range(5)), *(f"g{i}" for i in range(4, -1, -1)))

        def movable(graph: Graph) -> set[str]:
            return {graph.tensors[tensor].name for tensor in question_of(graph).moved.values()}

        graph = step()
        assert movable(graph) == set(names)
        assert movable(replace(graph, outputs=(0, 10))) == {*names} - {"image"}
        assert movable(replace(graph, aliases=((1, 2),))) == {*names} - {"x0", "x1"}
        inside = replace(graph, planned=frozenset({Kind.INTERMEDIATE}))
        assert movable(inside) == {*names} - {"image", "g0"}

    @pytest.mark.parametrize("rate", ["25GB", "0GB/s", "fast/s", "1GB/s,2GB/s,3GB/s", "", "-1GB/s"])
    def test_wrong_rates(self, rate: str) -> None:
        """Tests the sentence."""
        with pytest.raises(mp.MemplanError, match="is not a rate; write 25GB/s, or 12GB/s,25GB/s"):
            recompute(step(), 450, spill=rate)

    def test_rates_that_take_for_ever(self) -> None:
        """Tests that times above the limit of costs are refused, or counted in coarser units."""
        found = recompute(step(30), 3000, spill="1B/s", states=100)
        assert found.moved == ()
        assert found.plain < recompute(step(30), 3000, states=100).plain
        verify_recompute(step(30), found, spill="1B/s")
        times = {operator.name: 900.0 for operator in step(5).operators}
        with pytest.raises(GraphError, match="operators and moves take more than 9,007 s"):
            recompute(step(5), 450, spill="1B/s", costs=times)

    def test_what_fits_stays(self) -> None:
        """Tests that a program that fits is not changed."""
        found = recompute(step(), 600)
        assert (found.repeated, found.extra, found.status) == (0, 0, mp.Status.OPTIMAL)
        assert found.graph.operators == step().operators
        assert found.runs == found.order == found.operators == tuple(range(10))

    def test_the_best_order_comes_first(self) -> None:
        """Tests that nothing runs again where another order is enough, unless the order is kept."""
        tensors = [Tensor("x", 8, Kind.INPUT)]
        tensors += [Tensor(f"large{i}", 100) for i in range(3)]
        tensors += [Tensor(f"small{i}", 1) for i in range(3)] + [Tensor("y", 1, Kind.OUTPUT)]
        operators = [Operator(f"grow{i}", "CONV", (0,), (1 + i,)) for i in range(3)]
        operators += [Operator(f"shrink{i}", "CONV", (1 + i,), (4 + i,)) for i in range(3)]
        operators.append(Operator("join", "CONV", (4, 5, 6), (7,)))
        graph = make(operators, tensors)
        assert (recompute(graph, 150).extra, recompute(graph, 150).repeated) == (0, 0)
        kept = recompute(graph, 250, order=False)
        assert kept.repeated > 0
        assert [*dict.fromkeys(kept.runs)] == list(range(7))
        verify_recompute(graph, kept)

    def test_an_order_that_was_found_is_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tests that no other search for an order is made, and that the result is the same."""
        graph = step(8)
        first = recompute(graph, 600, states=500)
        order = reorder(graph, states=500)
        monkeypatch.setattr(search, "reorder", None)
        second = recompute(order, 600, states=500)
        assert (second.runs, second.order, second.bound) == (first.runs, first.order, first.bound)
        verify_recompute(graph, second)

    def test_what_is_proved_where_nothing_fits(self) -> None:
        """Tests that the error has the floor and the bounds, and can be sent."""
        with pytest.raises(NoRunsError, match="below the floor of 308") as caught:
            recompute(step(8), 200)
        error = pickle.loads(pickle.dumps(caught.value))
        assert (str(error), error.limits) == (str(caught.value), caught.value.limits)
        assert (error.limits.capacity, error.limits.floor) == (200, 308)

    def test_a_chain_gains_nothing(self) -> None:
        """Tests that it is proved, and said with the floor and its operator."""
        tensors = [Tensor("x", 50, Kind.INPUT), Tensor("a", 100), Tensor("b", 70)]
        tensors.append(Tensor("y", 1, Kind.OUTPUT))
        names = ("one", "two", "three")
        chain = [Operator(name, "CONV", (i,), (i + 1,)) for i, name in enumerate(names)]
        graph = make(chain, tensors)
        found = recompute(graph, 170)
        assert found.gains_nothing
        assert (found.floor, found.floor_operator) == (170, "two")
        assert not recompute(step(), 600).gains_nothing
        words = (
            '169 bytes are below the floor of 170: operator "two" needs as much, in any order and '
            "whatever runs again; running operators again gains nothing"
        )
        with pytest.raises(mp.PlanError, match=words):
            recompute(graph, 169)

    def test_a_program_that_fits_is_not_called_impossible(self) -> None:
        """Tests a branch whose inner memory and result are not there at one time."""
        tensors = [Tensor("x", 64, Kind.INPUT), Tensor("y", 128), Tensor("y in t", 128)]
        tensors += [Tensor("sin", 128), Tensor("mul", 128), Tensor("out", 128, Kind.OUTPUT)]
        inner = (Operator("sin", "SIN", (2,), (3,)), Operator("mul", "MUL", (3,), (4,)))
        branch = Block("t", inner, (), (4,))
        operators = (
            Operator("lin", "CONV", (0,), (1,)),
            Operator("cond", "cond", (1,), (5,), blocks=(branch,)),
        )
        views = (View(2, 1, 0), View(4, 5, 0))
        graph = Graph("branch", tuple(tensors), operators, (0,), (5,), views=views)
        load = of_graph(graph).problem.max_load
        found = recompute(graph, load)
        assert (found.peak, found.extra, found.status) == (load, 0, mp.Status.OPTIMAL)
        verify_recompute(graph, found)
        with pytest.raises(mp.PlanError, match="but the capacity is"):
            verify_recompute(graph, replace(found, capacity=load - 1))
        assert [each.arena for each in mp.tradeoff(graph).points] == [load]

    def test_an_input_that_nothing_reads_is_in_the_floor(self) -> None:
        """Tests that all inputs are there before the first operator."""
        graph = step(2)
        tensors = (*graph.tensors, Tensor("unread", 900, Kind.INPUT))
        graph = replace(graph, tensors=tensors, inputs=(0, len(tensors) - 1))
        found = recompute(graph, 908)
        assert (found.floor, found.floor_operator, found.gains_nothing) == (908, "", True)
        verify_recompute(graph, found)
        with pytest.raises(mp.PlanError, match="floor of 908: what is given or wanted needs as"):
            recompute(graph, 907)

    @pytest.mark.parametrize("sizes", [(), (64,), (64, 0, 36)])
    def test_a_program_without_operators_fits_where_its_tensors_do(
        self, sizes: tuple[int, ...]
    ) -> None:
        """Tests that it needs what is given, and nothing beside it."""
        tensors = [Tensor(f"t{at}", size, Kind.INPUT) for at, size in enumerate(sizes)]
        graph = make([], tensors)
        least = sum(sizes)
        found = recompute(graph, max(least, 1))
        assert (found.peak, found.floor, found.runs) == (least, least, ())
        assert (found.status, found.gains_nothing) == (mp.Status.OPTIMAL, True)
        verify_recompute(graph, found)
        assert [each.arena for each in mp.tradeoff(graph).points] == [least]
        if least:
            with pytest.raises(mp.PlanError, match=f"floor of {least}: what is given or wanted"):
                recompute(graph, least - 1)

    @given(
        graph=strategies_graph.graphs(strategies_graph.FEATURES - {"pins"}),
        share=st.floats(0, 1),
        order=st.booleans(),
    )
    @settings(max_examples=20)  # a hundred take a minute
    def test_any_program(self, graph: Graph, share: float, order: bool) -> None:
        """Tests that what is found is verified, and that otherwise one sentence says why."""
        load = lay_out(graph, pins=False).problem.max_load
        capacity = max(1, round(load * (0.5 + share / 2)))
        spill = "1GB/s" if share < 0.5 else None
        try:
            found = recompute(graph, capacity, spill=spill, order=order, states=200)
        except mp.PlanError:
            return
        claim = verify_recompute(graph, found, spill=spill)
        assert 0 <= found.hidden <= found.moving <= max(found.extra, 0)
        assert found.peak <= capacity
        assert claim.bound >= found.bound

    def test_the_same_again(self) -> None:
        """Tests that a limit on the work gives the same result twice."""
        first, second = (recompute(step(8), 600, states=500) for _ in range(2))
        assert (first.runs, first.bound, first.states) == (second.runs, second.bound, second.states)


class TestVerify:
    """What is refused."""

    def test_what_is_changed(self) -> None:
        """Tests claims, sequences and programs that are not those of the model."""
        graph = step()
        found = recompute(graph, 400)
        for changes, error, words in (
            ({"extra": found.extra - 1}, mp.PlanError, "claims re-runs that cost"),
            ({"peak": found.peak - 1}, mp.PlanError, "claim a load of"),
            ({"bound": found.extra + 1}, mp.ProofError, "is not proved"),
            ({"floor": 600}, mp.ProofError, "needs 600 bytes is not proved"),
            ({"capacity": 300}, mp.PlanError, "but the capacity is 300"),
            ({"runs": found.order}, mp.PlanError, "but the capacity is"),
            ({"loaded": found.given}, mp.PlanError, "does not run this sequence"),
            ({"certificate": None}, mp.ProofError, "is not proved"),
        ):
            with pytest.raises(error, match=words):
                verify_recompute(graph, replace(found, **changes))
        with pytest.raises(mp.MemplanError):
            verify_recompute(step(6), found)
        other = replace(
            graph, operators=(replace(graph.operators[0], macs=10**6), *graph.operators[1:])
        )
        with pytest.raises(mp.PlanError, match="not those of the program"):
            verify_recompute(other, found)
        with pytest.raises(mp.PlanError, match="with other costs"):
            verify_recompute(graph, found, costs={each.name: 1 for each in graph.operators})


class TestCosts:
    """Times by a roofline, and as they were measured."""

    def test_the_roofline(self) -> None:
        """Tests bytes, multiplications, and views, which cost nothing."""
        tensors = [Tensor("x", 39, Kind.INPUT), Tensor("w", 39, Kind.CONSTANT), Tensor("a", 39)]
        tensors += [Tensor("v", 39), Tensor("y", 39, Kind.OUTPUT)]
        operators = [
            Operator("few", "CONV", (0, 1), (2,), macs=1),
            Operator("view", "RESHAPE", (2,), (3,)),
            Operator("many", "CONV", (3, 1), (4,), macs=1000),
        ]
        graph = make(operators, tensors, views=(View(3, 2),), source="tflite")
        assert question_of(graph).problem.cost.tolist() == [75, 0, 103]

    def test_a_table_of_times(self, tmp_path: Path) -> None:
        """Tests times in picoseconds, of a file and of a mapping."""
        graph, path = step(3), tmp_path / "times.csv"
        seconds = {each.name: 2e-6 for each in graph.operators} | {"f0": 5e-6, "b0": 1e-13}
        lines = [f"{name},{time}" for name, time in seconds.items()]
        path.write_text("\n".join(["operator,seconds", *lines, ""]))
        found = recompute(graph, 400, costs=path)
        assert found.problem.cost.tolist() == [5_000_000, *[2_000_000] * 4, 0]
        verify_recompute(graph, found, costs=seconds)
        layout = lay_out(graph)
        assert again_of(layout, seconds).problem.plain == found.plain == 13_000_000

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("operator,seconds\nf9,1\n", 'the program has no operator "f9"'),
            ("operator,seconds\nf0,-1\n", '"f0" takes "-1" seconds; it must be a number of at'),
            ("operator,seconds\nf0,nan\n", '"f0" takes "nan" seconds; it must be a number of at'),
            ("operator,seconds\nf0,fast\n", '"f0" takes "fast" seconds; it must be a number'),
            ("operator,seconds\nf0,1\n", 'there is no time for operator "f1"'),
            ("operator,seconds\nf0,1\nf0,2\n", ':3: operator "f0" has two times'),
            ("operator,seconds\nf0,1,2\n", ":2: a line must have an operator and its seconds"),
            ("f0,1\n", ":1: the first line must be: operator,seconds"),
            ("operator,seconds\nf0,1e9\nf1,1\nb1,1\nb0,1\n", "the operators take more than"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, text: str, words: str) -> None:
        """Tests one sentence each, which names the file."""
        path = tmp_path / "times.csv"
        path.write_text(text)
        with pytest.raises(mp.MemplanError, match=words) as caught:
            recompute(step(2), 300, costs=path)
        assert str(path) in str(caught.value)

    def test_types_that_do_not_exist(self) -> None:
        """Tests `pure`, and sizes that are none."""
        with pytest.raises(mp.MemplanError, match='no operator is of the type "Missing"'):
            recompute(step(), 300, pure=["Missing"])
        with pytest.raises(mp.MemplanError, match="is not a size"):
            recompute(step(), "much")
        with pytest.raises(mp.MemplanError, match="no operators"):
            recompute(mp.load("examples/five.csv"), 300)

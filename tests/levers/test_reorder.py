"""Tests of `mp.reorder`: what it says is what layouts need, in every order that the arcs allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import strategies_graph
from hypothesis import given
from hypothesis import strategies as st

import memplan as mp
from memplan.levers.rewrite import columns, effects, plannable, reorder, reorder_to_plan
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View, lay_out
from memplan.programs.sources import of_graph

EXAMPLES = Path(__file__).parents[2] / "examples"


def make(operators: list[Operator], tensors: list[Tensor], **fields: object) -> Graph:
    """Return a graph, whose outputs are the tensors of that kind."""
    outputs = tuple(i for i, tensor in enumerate(tensors) if tensor.kind is Kind.OUTPUT)
    inputs = tuple(i for i, tensor in enumerate(tensors) if tensor.kind is Kind.INPUT)
    return Graph("net", tuple(tensors), tuple(operators), inputs, outputs, **fields)  # type: ignore[arg-type]


def fan(source: str = "", *, type_: str = "CONV") -> Graph:
    """Return a program that first makes four large tensors, and then reduces each of them."""
    tensors = [Tensor("image", 8, Kind.INPUT)]
    tensors += [Tensor(f"large {i}", 100) for i in range(4)]
    tensors += [Tensor(f"small {i}", 4) for i in range(4)]
    tensors.append(Tensor("result", 4, Kind.OUTPUT))
    grow = [Operator(f"grow {i}", type_, (0,), (1 + i,)) for i in range(4)]
    shrink = [Operator(f"shrink {i}", "POOL", (1 + i,), (5 + i,)) for i in range(4)]
    join = Operator("join", "CONCAT", (5, 6, 7, 8), (9,))
    return make([*grow, *shrink, join], tensors, source=source)


def legal_orders(graph: Graph, *, in_place: bool) -> Iterator[Graph]:
    """Yield the program in each order that its columns allow."""
    layout = lay_out(graph)
    bounds = [0] * len(graph.operators)
    arcs = columns.columns_of(layout, in_place=in_place, inner_bounds=bounds).problem.arcs.tolist()
    for order in permutations(range(len(graph.operators))):
        if all(order.index(one) < order.index(other) for one, other in arcs):
            yield replace(graph, operators=tuple(graph.operators[at] for at in order))


def load_of(graph: Graph, *, in_place: bool) -> int:
    """Return the load of the better layout."""
    ways = (False, True) if in_place else (False,)
    return min(lay_out(graph, in_place=way, pins=False).problem.max_load for way in ways)


class TestLoads:
    """What is said of an order, against `lay_out`."""

    def test_a_fan_is_reduced_branch_by_branch(self) -> None:
        """Tests the order, the loads, and that both bounds are the same."""
        found = reorder(fan())
        assert (found.given_peak, found.peak, found.bound) == (408, 120, 120)
        assert found.status is mp.Status.OPTIMAL
        assert len(found.moved) == 3
        assert mp.solve(found.loaded).peak == found.peak
        mp.verify_order(fan(), found)

    @pytest.mark.parametrize("in_place", [False, True])
    def test_an_input_that_nothing_reads(self, in_place: bool) -> None:
        """Tests that it is over before the first operator, and counts in the bound as in the load.

        So it does beside an input that is read, in an alias, and where there is no operator.
        """
        tensors = [Tensor("x", 1, Kind.INPUT), Tensor("unread", 50, Kind.INPUT)]
        tensors += [Tensor("u", 5), Tensor("y", 5, Kind.OUTPUT), Tensor("also", 50, Kind.INPUT)]
        chain = [Operator("a", "Op", (0,), (2,)), Operator("b", "Op", (2,), (3,))]
        for graph, load in (
            (make(chain, tensors[:4]), 51),
            (make(chain, tensors, aliases=((1, 4),)), 51),
            (Graph("none", tuple(tensors[:2]), (), (0, 1), (0,)), 51),
            (make(chain, tensors), 101),
        ):
            found = reorder(graph, in_place=in_place)
            assert (found.peak, found.bound, str(found.status)) == (load, load, "optimal")
            assert mp.verify_order(graph, found).bound == load
            assert mp.solve(found.loaded).peak == load

    def test_writes_that_no_layout_makes_lower_no_bound(self) -> None:
        """Tests results over an input of the caller, over a part, and over what is smaller."""
        result = Tensor("result", 50, Kind.OUTPUT)
        over_input = make(
            [Operator("copy", "Op", (0,), (1,), in_place=((0, 1),))],
            [Tensor("x", 50, Kind.INPUT), result],
        )
        tensors = [Tensor("whole", 60), Tensor("part", 5), result]
        view = Operator("view", "Op", (0,), (1,))
        start = Operator("start", "Op", (), (0,))
        over_part = make(
            [start, view, Operator("end", "Op", (1,), (2,), in_place=((1, 2),))],
            tensors,
            views=(View(1, 0, 0),),
        )
        more = Operator("end", "Op", (0,), (1, 2), in_place=((0, 1),))
        over_small = make([start, more], [Tensor("small", 5), Tensor("large", 50), result])
        for graph, load in ((over_input, 100), (over_part, 110), (over_small, 105)):
            found = reorder(graph, in_place=True)
            assert (found.peak, found.bound, str(found.status)) == (load, load, "optimal")

    def test_a_best_order_is_kept(self) -> None:
        """Tests that nothing moves if nothing is gained."""
        graph = reorder(fan()).graph
        again = reorder(graph)
        assert (again.moved, again.order) == ((), tuple(range(9)))
        assert again.graph.operators == graph.operators

    @given(
        graph=strategies_graph.graphs(strategies_graph.FEATURES - {"blocks", "pins"}),
        in_place=st.booleans(),
    )
    def test_every_order_needs_the_bound(self, graph: Graph, in_place: bool) -> None:
        """Tests the bound, and the best order, against all legal orders of small programs.

        Without in-place writes, of which layouts make all that they can or none, the best order is
        found and proved.
        """
        if len(graph.operators) > 4:
            return
        found = reorder(graph, in_place=in_place)
        mp.verify_order(graph, found)
        loads = [
            load_of(each, in_place=in_place) for each in legal_orders(graph, in_place=in_place)
        ]
        assert found.bound <= min(loads) <= found.peak
        if not in_place:
            assert found.bound == found.peak
            assert found.status is mp.Status.OPTIMAL
        assert found.peak <= found.given_peak
        assert load_of(found.graph, in_place=in_place) == found.peak

    @given(
        graph=strategies_graph.graphs(features=strategies_graph.FEATURES - {"pins"}),
        in_place=st.booleans(),
    )
    def test_any_program(self, graph: Graph, in_place: bool) -> None:
        """Tests blocks and workspaces: the order is legal, and its load is as said."""
        found = reorder(graph, in_place=in_place)
        mp.verify_order(graph, found)
        assert found.bound <= found.peak <= found.given_peak
        if len(graph.operators) <= 4:
            orders = legal_orders(graph, in_place=in_place)
            assert found.bound <= min(load_of(each, in_place=in_place) for each in orders)

    @given(graph=strategies_graph.graphs(features=frozenset({"views", "aliases", "workspace"})))
    def test_columns_have_the_peak_of_layouts(self, graph: Graph) -> None:
        """Tests the peak of the question against `lay_out`, if every input is used."""
        layout = lay_out(graph, pins=False)
        asked = columns.columns_of(
            layout, in_place=False, inner_bounds=[0] * len(graph.operators)
        ).problem
        needed = mp.referee.verify_order(asked, range(len(asked))).peak
        unused = sum(
            layout.problem.size[row]
            for row, index in enumerate(layout.rows)
            if layout.storages[index].end <= 1
        )
        assert needed <= layout.problem.max_load <= needed + unused

    @pytest.mark.parametrize("file", ["models/residual.graph.json", "models/mobile.tflite"])
    def test_examples(self, file: str) -> None:
        """Tests files: a path is enough."""
        found = reorder(EXAMPLES / file)
        assert found.status is mp.Status.OPTIMAL
        mp.verify_order(EXAMPLES / file, found)

    def test_blocks_are_ordered_first(self) -> None:
        """Tests that a branch is reduced, and the operator around it keeps its place."""
        plain = fan()
        body = tuple(plain.operators)
        tensors = [*plain.tensors, Tensor("chosen", 4, Kind.OUTPUT)]
        tensors[9] = Tensor("result", 4)
        branch = Operator("if", "If", (0,), (10,), blocks=(Block("then", body, (), (9,)),))
        graph = make([branch], tensors)
        found = reorder(graph)
        assert found.peak < found.given_peak == load_of(graph, in_place=False)
        inner = found.graph.operators[0].blocks[0].operators
        assert [each.name for each in inner[:2]] == ["grow 0", "shrink 0"]
        mp.verify_order(graph, found)


class TestEffects:
    """Operators that keep their order for more than their results."""

    def check_kept(self, graph: Graph) -> None:
        """Assert that the large tensors are made in the given order, one after the other."""
        asked = columns.columns_of(
            lay_out(graph), in_place=False, inner_bounds=[0] * len(graph.operators)
        ).problem
        assert {(0, 1), (1, 2), (2, 3)} <= set(map(tuple, asked.arcs.tolist()))

    def test_random_operators_share_a_generator(self) -> None:
        """Tests each format's names."""
        self.check_kept(fan("onnx", type_="RandomNormalLike"))
        self.check_kept(fan("torch", type_="aten.bernoulli_"))
        self.check_kept(fan("tflite", type_="RANDOM_UNIFORM"))

    def test_what_reaches_the_world_keeps_its_order(self) -> None:
        """Tests state behind handles, collectives and assertions."""
        self.check_kept(fan("tflite", type_="ASSIGN_VARIABLE"))
        self.check_kept(fan("torch", type_="_c10d_functional.all_reduce"))
        self.check_kept(fan("torch", type_="aten._assert_async"))

    @pytest.mark.parametrize(
        ("source", "type_"),
        [
            ("tflite", "MyOwnKernel"),
            ("onnx", "com.example.Send"),
            ("torch", "mylib.launch"),
        ],
    )
    def test_unknown_operators_are_refused_by_name(self, source: str, type_: str) -> None:
        """Tests the sentence, and that the user can insist."""
        graph = fan(source, type_=type_)
        with pytest.raises(mp.MemplanError, match=f'"grow 0" of type "{type_}" may do more'):
            reorder(graph)
        assert reorder(graph, pure=[type_]).peak == 120

    def test_known_custom_operators_move(self) -> None:
        """Tests that a domain or a namespace is known as a whole."""
        assert (
            effects.shared_by(fan("onnx", type_="com.microsoft.Gelu"), fan().operators[0]) == set()
        )
        assert reorder(fan("onnx", type_="com.microsoft.Gelu")).peak == 120
        assert reorder(fan("torch", type_="aten.conv2d")).peak == 120

    def test_readers_stay_between_the_writes_around_them(self) -> None:
        """Tests state that is read, updated in place, and read again."""
        tensors = [
            Tensor("state", 8, Kind.VARIABLE),
            *(Tensor(name, 8, Kind.OUTPUT) for name in ("before", "after")),
            Tensor("new", 8, Kind.INPUT),
        ]
        graph = make(
            [
                Operator("first", "aten.neg", (0,), (1,)),
                Operator("update", "aten.copy_", (3, 0), ()),
                Operator("second", "aten.neg", (0,), (2,)),
            ],
            tensors,
            source="torch",
        )
        asked = columns.columns_of(lay_out(graph), in_place=False, inner_bounds=[0] * 3).problem
        assert asked.arcs.tolist() == [[0, 1], [1, 2]]

    def test_disjoint_parts_of_a_buffer_need_no_order(self) -> None:
        """Tests two writers of one storage: of its halves, and of the same bytes."""
        for offset, arcs in ((4, []), (2, [[0, 1]])):
            tensors = [Tensor("whole", 8), Tensor("low", 4), Tensor("high", 4)]
            graph = make(
                [Operator("a", "Fill", (), (1,)), Operator("b", "Fill", (), (2,))],
                [*tensors, Tensor("x", 1, Kind.INPUT)],
                views=(View(1, 0), View(2, 0, offset)),
            )
            graph = replace(graph, outputs=(1, 2))
            asked = columns.columns_of(lay_out(graph), in_place=False, inner_bounds=[0, 0]).problem
            assert asked.arcs.tolist() == arcs


class TestRefusals:
    """One sentence for each mistake."""

    def test_several_streams(self) -> None:
        """Tests that the order on streams is the program's own."""
        operators = fan().operators
        graph = replace(fan(), operators=(replace(operators[0], stream=1), *operators[1:]))
        with pytest.raises(mp.MemplanError, match="run on 2 streams"):
            reorder(graph)

    def test_a_problem_has_no_operators(self) -> None:
        """Tests a file of buffers."""
        with pytest.raises(
            mp.MemplanError,
            match="a problem has no operators, so that nothing can be put in another order",
        ):
            reorder(EXAMPLES / "five.csv")

    def test_an_order_of_another_program(self) -> None:
        """Tests that an order belongs to one program."""
        found = reorder(fan())
        other = replace(fan(), tensors=(*fan().tensors[:1], Tensor("x", 50), *fan().tensors[2:]))
        with pytest.raises(mp.PlanError, match="another program"):
            mp.verify_order(other, found)
        with pytest.raises(mp.PlanError, match="another program"):
            mp.verify_order(EXAMPLES / "models/residual.graph.json", found)

    def test_false_claims(self) -> None:
        """Tests that the load, the bound, the order and the operators are checked."""
        found = reorder(fan())
        with pytest.raises(mp.PlanError, match="claims a load of 119"):
            mp.verify_order(fan(), replace(found, peak=119))
        with pytest.raises(mp.ProofError, match="bound of 121 bytes is above"):
            mp.verify_order(fan(), replace(found, bound=121))
        with pytest.raises(mp.PlanError, match="waits for it"):
            mp.verify_order(fan(), replace(found, order=found.order[::-1]))
        with pytest.raises(mp.PlanError, match="not those of the program"):
            mp.verify_order(fan(), replace(found, loaded=of_graph(fan())))

    def test_offsets_of_the_file_are_left_out_with_a_note(self) -> None:
        """Tests that pins of the given order do not bind the new one."""
        tensors = list(fan().tensors)
        tensors[1] = replace(tensors[1], pin=64)
        found = reorder(replace(fan(), tensors=tuple(tensors)))
        assert not (found.loaded.problem.pin >= 0).any()
        assert [note.code for note in found.loaded.notes] == ["pins-dropped"]

    def test_a_capacity_is_kept(self) -> None:
        """Tests that the limit of the user holds for the new order."""
        loaded = of_graph(fan())
        loaded = replace(loaded, problem=loaded.problem.with_capacity(200))
        assert reorder(loaded).loaded.problem.capacity == 200

    def test_budgets(self) -> None:
        """Tests that a budget of states gives the same answer, and wrong ones are refused."""
        random = np.random.default_rng(1)
        tensors = [Tensor("in", 4, Kind.INPUT)]
        operators = []
        for at in range(60):
            reads = tuple({int(each) for each in random.integers(max(0, at - 9), at + 1, 2)})
            tensors.append(Tensor(f"t{at}", int(random.integers(1, 99))))
            operators.append(Operator(f"o{at}", "Conv", reads, (at + 1,)))
        graph = make(operators, tensors)
        one, two = (reorder(graph, states=300) for _ in range(2))
        assert (one.order, one.bound) == (two.order, two.bound)
        with pytest.raises(mp.MemplanError, match="states"):
            reorder(graph, states=0)


class TestOrdersWithPlans:
    """Orders of which a plan needs no more than the load."""

    def test_the_untidied_order_is_taken_if_only_that_has_a_plan(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Tests both choices, with a stand-in for the search for a plan."""
        model = "examples/structures/fan.graph.json"
        near = reorder(model)
        far = reorder(model, without=("tidying",))
        assert (near.peak, far.peak) == (37_888, 37_888)
        assert reorder_to_plan(model).order == near.order
        monkeypatch.setattr(plannable, "_has_plan", lambda found, _: found.order == far.order)
        assert reorder_to_plan(model).order == far.order
        monkeypatch.setattr(plannable, "_has_plan", lambda found, _: False)
        assert reorder_to_plan(model).order == near.order

    def test_ctrl_c_keeps_the_order_that_was_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tests an interrupt in the search for a plan."""

        def stop(found: mp.Reordered, _: float | None) -> bool:
            raise mp.Interrupted(mp.solve(found.loaded.problem))

        monkeypatch.setattr(plannable, "_has_plan", stop)
        found = reorder_to_plan("examples/structures/fan.graph.json", timeout=60)
        assert (found.peak, found.interrupted) == (37_888, True)

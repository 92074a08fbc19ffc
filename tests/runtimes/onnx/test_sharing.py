"""Tests of what shares memory in ONNX models, and of their sub-graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import (
    BOOL,
    FLOAT,
    branching,
    graph,
    index,
    ints,
    loaded,
    looping,
    model,
    node,
    sharing,
    value,
    weight,
)

from memplan.base.errors import FormatError
from memplan.base.notes import Code, Note
from memplan.programs.graph import Layout, lay_out
from memplan.runtimes.onnx.read import graph_of


def lives_of(layout: Layout) -> dict[str, tuple[int, int]]:
    """Return start and end of every storage."""
    return {storage.name: (storage.start, storage.end) for storage in layout.storages}


def test_views_share_the_memory_of_their_input() -> None:
    """Tests every operator that onnxruntime runs without a copy, one after the other."""
    found = graph_of(
        model(
            [
                node("Exp", "x", "a"),
                node("Reshape", "a to", "b"),
                node("Squeeze", "b", "c"),
                node("Unsqueeze", "c axis", "d"),
                node("Flatten", "d", "e"),
                node("Identity", "e", "f"),
                node("Dropout", "f", "g mask"),
                node("Exp", "g", "y"),
            ],
            [value("x", [2, 3])],
            [value("y", None)],
            [ints("to", [6, 1]), ints("axis", [0])],
        )
    )
    assert sharing(found) == [set("abcdefg")]
    assert "mask" not in {tensor.name for tensor in found.tensors}


def test_what_leaves_the_graph_is_a_copy() -> None:
    """Tests that the output of a view operator has memory of its own if it is an output."""
    found = graph_of(
        model(
            [node("Exp", "x", "a"), node("Identity", "a", "y"), node("Exp", "a", "z")],
            [value("x", [2])],
            [value("y", None), value("z", None)],
        )
    )
    assert not found.views


def test_a_dropout_that_trains_is_no_view() -> None:
    """Tests that it is one only where neither its mask nor its mode can matter."""
    nodes = [node("Dropout", "x - mode", "d"), node("Neg", "d", "y")]
    inputs = [value("x", [2]), value("mode", [], BOOL)]
    assert not graph_of(model(nodes, inputs, [value("y", None)])).views
    nodes = [node("Dropout", "x", "d m"), node("Neg", "d", "y"), node("Not", "m", "n")]
    outputs = [value("y", None), value("n", None, BOOL)]
    assert not graph_of(model(nodes, inputs[:1], outputs)).views


def test_in_place_choices() -> None:
    """Tests which inputs may be overwritten: made by operators, of the same shape."""
    found = graph_of(
        model(
            [
                node("Exp", "x", "a"),
                node("Exp", "row", "b"),
                node("Add", "a b", "c"),  # over a: b is only a row
                node("Mul", "c x", "d"),  # over c: x is the caller's
                node("Add", "d c", "e"),  # over either
                node("Softmax", "e", "f"),
                node("Cast", "f", "g", to=onnx.TensorProto.DOUBLE),  # larger
                node("Transpose", "g", "h"),  # all elements move
                node("Neg", "h", "y"),  # leaves the graph
            ],
            [value("x", [2, 3]), value("row", [3])],
            [value("y", None, onnx.TensorProto.DOUBLE)],
        )
    )
    names = [tensor.name for tensor in found.tensors]
    choices = [names[s] + names[t] for operator in found.operators for s, t in operator.in_place]
    assert choices == ["ac", "cd", "de", "ce", "ef"]
    # c dies where e is made, so that e may take its place; d is made while c is needed
    assert sharing(found, in_place=True) == [{"a", "c"}, {"d", "e", "f"}]


def test_branches_are_blocks() -> None:
    """Tests that both run within the If, read what is outside, and give their results to it."""
    found = graph_of(
        branching([node("Neg", "a", "t"), node("Abs", "t", "r")], [node("Neg", "a", "r")])
    )
    operator = found.operators[1]
    assert {block.name for block in operator.blocks} == {"then", "else"}
    assert not operator.loop
    names = {tensor.name for tensor in found.tensors}
    assert names == {"x", "c", "a", "t", "r", "z", "y", "If.then_branch/r"}
    assert [len(shared) for shared in sharing(found)] == [3]  # both r, and z
    layout = lay_out(found)
    assert lives_of(layout)["a"][1] > lives_of(layout)["t"][0]


def test_results_that_a_branch_does_not_make_are_copied() -> None:
    """Tests a branch that hands on a value from outside."""
    found = graph_of(branching([node("Neg", "a", "r")], [node("Identity", "a", "r")]))
    names = [tensor.name for tensor in found.tensors]
    assert not found.views
    assert {names[one] for pair in found.aliases for one in pair} >= {"z", "r"}


def test_a_branch_whose_condition_is_known_is_opened() -> None:
    """Tests the If that exporters write for a squeeze: its branches have different ranks."""
    then = graph([node("Squeeze", "x one", "s")], (), [value("s", None)], (), "then")
    other = graph([node("Identity", "x", "i")], (), [value("i", None)], (), "else")
    found = graph_of(
        model(
            [
                node("Shape", "x", "shape"),
                node("Gather", "shape one", "size"),
                node("Equal", "size one", "c"),
                node("If", "c", "z", then_branch=then, else_branch=other, name="squeeze"),
                node("Neg", "z", "y"),
            ],
            [value("x", [4, 1, 2])],
            [value("y", None)],
            [ints("one", [1])],
        )
    )
    assert [operator.type for operator in found.operators] == ["Squeeze", "Identity", "Neg"]
    assert found.tensors[index(found, "y")].shape == (4, 2)
    assert sharing(found) == [{"x", "s", "z"}]


def test_a_branch_that_contradicts_the_sizes_is_left_out(tmp_path: Path) -> None:
    """Tests that it is not planned, and that a note says so."""
    fits = [node("MatMul", "a four", "r")]
    fails = [node("MatMul", "a five", "t"), node("Relu", "t", "r")]
    what = branching(fits, fails)
    what.graph.initializer.extend([weight("four", [4, 7]), weight("five", [5, 7])])
    found = loaded(tmp_path, what)
    text = (
        'operator "If" (If) is planned without its else_branch, whose shapes contradict the '
        "sizes given"
    )
    assert found.notes == (Note(Code.BRANCH_DROPPED, text, ("z",)),)
    assert found.graph is not None
    assert found.graph.tensors[index(found.graph, "y")].shape == (7,)


def test_a_branch_that_lacks_a_size_is_not_left_out(tmp_path: Path) -> None:
    """Tests that a contradiction elsewhere is no reason to drop what only depends on data."""
    open_ = [node("NonZero", "a", "n"), node("Cast", "n", "r", to=FLOAT)]
    what = branching(open_, [node("Identity", "a", "r")])
    what.graph.node.append(node("Abs", "x", "w"))
    what.graph.value_info.append(value("w", [77]))  # not what Abs gives
    with pytest.raises(FormatError, match=r"n:1 \(axis 1 of"):
        loaded(tmp_path, what)


def test_the_state_of_a_loop_keeps_its_shape() -> None:
    """Tests the shapes in the body, and that state and captured values live until it ends."""
    found = graph_of(looping([], []))
    assert found.tensors[index(found, "s")].shape == (3,)
    assert found.tensors[index(found, "z")].shape == (3,)
    assert found.operators[1].loop
    assert sharing(found) == []  # onnxruntime copies the state of the last round
    times = lives_of(lay_out(found))
    enter, leave = times["s"]
    assert times["k"][1] == leave
    assert times["t"] == (enter, leave)
    assert enter < times["z"][0] < leave
    assert times["z"][1] == leave + 1  # it is read by the next


def test_what_a_loop_gathers_is_held_in_pieces(tmp_path: Path) -> None:
    """Tests that the number of rounds is asked for, and the pieces count until they are joined."""
    what = looping([node("Exp", "t", "e")], [value("e", None)])
    with pytest.raises(FormatError, match=r'all:0 \(axis 0 of "all"\)'):
        loaded(tmp_path, what)
    found = loaded(tmp_path, what, **{"all:0": 10})
    assert found.graph is not None
    assert found.graph.tensors[index(found.graph, "all")].shape == (10, 3)
    assert found.graph.operators[1].workspace == 120


def test_a_scan_reads_and_writes_slices() -> None:
    """Tests that slices have no memory of their own, and the state does."""
    body = graph(
        [node("Add", "s row", "t"), node("Neg", "t", "out")],
        [value("s", [3]), value("row", [3])],
        [value("t", [3]), value("out", [3])],
        (),
        "body",
    )
    found = graph_of(
        model(
            [
                node("Exp", "x", "a"),
                node("Scan", "s0 a", "last all", body=body, num_scan_inputs=1),
                node("Neg", "all", "y"),
            ],
            [value("x", [5, 3]), value("s0", [3])],
            [value("y", None), value("last", None)],
        )
    )
    assert sorted(map(sorted, sharing(found))) == [["a", "row"], ["all", "out"], ["last", "t"]]
    assert found.tensors[index(found, "all")].shape == (5, 3)


def test_functions_are_inlined(tmp_path: Path) -> None:
    """Tests that the operators of a function are planned, and one without an end is refused."""
    domain = onnx.helper.make_opsetid("own", 1)
    default = onnx.helper.make_opsetid("", 18)
    body = [node("Exp", "a", "t"), node("Neg", "t", "b")]
    make = onnx.helper.make_function
    call = onnx.helper.make_node("Twice", ["x"], ["y"], "call", domain="own")
    what = model([call], [value("x", [3])], [value("y", None)])
    what.opset_import.append(domain)
    what.functions.append(make("own", "Twice", ["a"], ["b"], body, [default]))
    found = loaded(tmp_path, what)
    assert found.graph is not None
    assert [operator.type for operator in found.graph.operators] == ["Exp", "Neg"]
    again = onnx.helper.make_node("Twice", ["a"], ["b"], domain="own")
    del what.functions[0].node[:]
    what.functions[0].node.append(again)
    with pytest.raises(FormatError, match='the function "Twice" calls itself'):
        loaded(tmp_path, what)

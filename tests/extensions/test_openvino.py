"""Tests of memplan.extensions.openvino: what is planned, what shares memory, and damaged models."""

from __future__ import annotations

from pathlib import Path

import pytest
from openvino_models import edge, layer, model, net, small

import memplan as mp
from memplan.base.errors import FormatError, MemplanError
from memplan.base.notes import Code
from memplan.levers.rewrite.effects import require_known
from memplan.programs.graph import Kind
from memplan.programs.sources import Loaded, detect, load


def loaded(folder: Path, text: str, **options: bool) -> Loaded:
    """Write a model and read it."""
    (folder / "m.xml").write_text(text, "utf-8")
    return load(folder / "m.xml", **options)


def kinds(found: Loaded) -> dict[str, Kind]:
    """Return by name of a tensor what it is."""
    assert found.graph is not None
    return {tensor.name: tensor.kind for tensor in found.graph.tensors}


def lives(found: Loaded) -> dict[str, tuple[int, int, int]]:
    """Return by id of a buffer its start, end and size."""
    rows = found.problem
    return {id: (rows.start[at], rows.end[at], rows.size[at]) for at, id in enumerate(rows.ids)}


class TestWhatIsPlanned:
    """Tests of buffers and their lifetimes."""

    def test_a_model_is_planned_with_the_lifetimes_of_its_layers(self, tmp_path):
        """Tests that constants and what is made of them are no buffers, nor a reshaped tensor."""
        found = loaded(tmp_path, small())
        assert (found.source, detect(tmp_path / "m.xml")) == ("openvino", "openvino")
        assert lives(found) == {
            "a": (0, 2, 64),
            "b": (1, 4, 64),
            "halves:1": (3, 4, 64),
            "halves:2": (3, 4, 64),
        }
        assert kinds(found) == {
            "x": Kind.INPUT,
            **dict.fromkeys(("w", "unpacked", "shape"), Kind.CONSTANT),
            **dict.fromkeys(("a", "b", "c"), Kind.INTERMEDIATE),
            **dict.fromkeys(("halves:1", "halves:2"), Kind.OUTPUT),
        }
        assert mp.plan_model(tmp_path / "m.xml").plan.status is mp.Status.OPTIMAL

    def test_what_openvino_decides_when_it_compiles_is_a_note(self, tmp_path):
        """Tests that a reader of the plan learns that it is of the file."""
        assert [note.code for note in loaded(tmp_path, small()).notes] == [Code.ORDER_OF_RUNTIME]

    def test_in_place_layers_write_over_their_inputs(self, tmp_path):
        """Tests that element-wise layers may, if they are asked to."""
        found = loaded(tmp_path, small(), in_place=True)
        assert len(found.problem) == 3

    @pytest.mark.parametrize(
        ("precision", "size"),
        [("FP32", 12), ("BF16", 6), ("I4", 2), ("U1", 1), ("BOOL", 3), ("I64", 24), ("NF4", 2)],
    )
    def test_sizes_are_those_of_the_precision(self, tmp_path, precision, size):
        """Tests that elements of less than a byte are packed."""
        layers = [
            layer(0, "Parameter", 0, [[3]]),
            layer(1, "Floor", 1, [[3]], precision=precision),
            layer(2, "Result", 1, []),
        ]
        found = loaded(tmp_path, model(layers, [edge(0, 0, 1), edge(1, 1, 2)]))
        assert found.graph is not None
        assert found.graph.tensors[1].bytes == size

    def test_strings_are_named_as_not_planned(self, tmp_path):
        """Tests that a tensor whose size the file does not know is said, not planned as nothing."""
        layers = [
            layer(0, "Parameter", 0, [[3]], name="words", precision="STRING"),
            layer(1, "StringTensorUnpack", 1, [[3]], name="y"),
            layer(2, "Result", 1, []),
        ]
        found = loaded(tmp_path, model(layers, [edge(0, 0, 1), edge(1, 1, 2)]))
        assert [note.tensors for note in found.notes] == [(), ("words",)]

    def test_a_state_is_no_buffer_of_a_run_and_keeps_its_order(self, tmp_path):
        """Tests that a variable outlives the run, and that its layers are not moved."""
        layers = [
            layer(0, "Parameter", 0, [[4]], name="x"),
            layer(1, "ReadValue", 1, [[4]], name="old"),
            layer(2, "Add", 2, [[4]], name="new"),
            layer(3, "Assign", 1, [[4]], name="kept"),
            layer(4, "Result", 1, []),
        ]
        edges = [edge(0, 0, 1), edge(0, 0, 2), edge(1, 1, 2, 1), edge(2, 2, 3), edge(2, 2, 4)]
        found = loaded(tmp_path, model(layers, edges))
        assert kinds(found)["old"] is Kind.VARIABLE
        assert list(lives(found)) == ["new"]


class TestBodies:
    """Tests of branches and loops."""

    @staticmethod
    def body() -> str:
        """Return a body with a large tensor inside."""
        layers = [
            layer(0, "Parameter", 0, [[4]], name="p"),
            layer(1, "Exp", 1, [[64]], name="large"),
            layer(2, "ReduceSum", 1, [[4]], name="sum"),
            layer(3, "Result", 1, []),
        ]
        return net(layers, [edge(0, 0, 1), edge(1, 1, 2), edge(2, 1, 3)])

    @pytest.mark.parametrize(
        ("type_", "names", "loop"),
        [
            ("If", ("then_body", "else_body"), False),
            ("Loop", ("body",), True),
            ("TensorIterator", ("body",), True),
        ],
    )
    def test_bodies_are_planned_inside_their_layer(self, tmp_path, type_, names, loop):
        """Tests that what a body makes lives while its layer runs, beside what waits outside."""
        inside = "".join(f"<{name}>{self.body()}</{name}>" for name in names)
        layers = [
            layer(0, "Parameter", 0, [[4]], name="x"),
            layer(1, "Abs", 1, [[4]], name="waits"),
            layer(2, type_, 1, [[4]], name="inner", inside=inside),
            layer(3, "Add", 2, [[4]], name="y"),
            layer(4, "Result", 1, []),
        ]
        edges = [edge(0, 0, 1), edge(1, 1, 2), edge(1, 1, 3), edge(2, 1, 3, 1), edge(3, 2, 4)]
        found = loaded(tmp_path, model(layers, edges))
        assert found.graph is not None
        (operator,) = (each for each in found.graph.operators if each.name == "inner")
        assert ([block.name for block in operator.blocks], operator.loop) == ([*names], loop)
        assert {f"inner.{name}/large" for name in names} <= set(found.problem.ids)
        # "p", "large" and "sum" of one body, while "waits" and the result "inner" are held.
        assert found.problem.max_load == 64 + 256 + 64 + 2 * 64

    def test_a_layer_of_another_library_is_not_moved_unasked(self, tmp_path):
        """Tests that only types of OpenVINO's operation sets are known to be pure."""
        layers = [
            layer(0, "Parameter", 0, [[4]]),
            layer(1, "Mine", 1, [[4]], version="extension"),
            layer(2, "Result", 1, []),
        ]
        graph = loaded(tmp_path, model(layers, [edge(0, 0, 1), edge(1, 1, 2)])).graph
        assert graph is not None
        with pytest.raises(mp.MemplanError, match=r"--pure extension\.Mine"):
            require_known(graph, ())


X, R = layer(0, "Parameter", 0, [[4]], name="x"), layer(2, "Result", 1, [], name="r")


class TestErrors:
    """Tests of files that are refused."""

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('<net name="n" version="11"><layers>', "the XML is damaged at line 1, column 36"),
            ('<net name="n" version="7"><layers/></net>', 'version "7" of OpenVINO'),
            ('<net name="n" ></net>', 'version "" of OpenVINO'),
            (
                '<net name="n" version="11"><!ENTITY a "b"></net>',
                "declares entities",
            ),
            (
                model([layer(0, "Parameter", 0, [[-1, 4]], name="x")], []),
                "the file leaves sizes open: x:0; give each a value, like --dim x:0=8",
            ),
            (
                model([X, layer(1, "ReLU", 1, [[4]], precision="FP7"), R], [edge(0, 0, 1)]),
                'output 1 of layer "relu" has the precision "FP7"',
            ),
            (
                model([X, layer(1, "ReLU", 1, [[4]]), R], [edge(0, 0, 1)]),
                'input 0 of layer "r" has no edge',
            ),
            (
                model([X, R], [edge(5, 1, 2)]),
                'input 0 of layer "r" comes from an output that no layer before it has',
            ),
            (model([X, X], []), 'output 0 of layer "x" is in the file twice'),
            (
                model([layer(0, "Parameter", 0, [[-2]], name="x")], []),
                'output 0 of layer "x" has the size -2',
            ),
            (
                model([layer(0, "Parameter", 0, [[4]], name="x")], []).replace(">4<", ">four<"),
                'output 0 of layer "x" has the size "four", which is no number',
            ),
            (
                model([layer(0, "Parameter", 0, [[2**40, 2**40]], name="x")], []),
                "must be between 0 and 2^62",
            ),
        ],
    )
    def test_a_model_that_is_not_right_gets_one_sentence(self, tmp_path, text, message):
        """Tests that damaged models are rejected with the layer and what is wrong."""
        with pytest.raises(FormatError) as caught:
            loaded(tmp_path, text)
        assert message.replace("\\", "") in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_bodies_without_end_are_rejected(self, tmp_path):
        """Tests that nested bodies end in a sentence, not in a traceback."""
        inside = ""
        for _ in range(150):
            parts = net([layer(0, "Loop", 0, [[1]], inside=inside)], [])
            inside = f"<body>{parts}</body>"
        with pytest.raises(FormatError, match="nested more than"):
            loaded(tmp_path, model([layer(0, "Loop", 0, [[1]], inside=inside)], []))


class TestOpenSizes:
    """Tests of sizes that the file leaves open."""

    @staticmethod
    def text(ranges: str = "1..10,3,8,8") -> str:
        """Return a network whose input has sizes in a range: -1 in the shapes of its layers."""
        layers = [
            layer(0, "Parameter", 0, [[-1, 3, 8, 8]], name="x"),
            layer(1, "Const", 0, [[4, 3, 3, 3]], name="w"),
            layer(2, "Convolution", 2, [[-1, 4, 8, 8]], name="c"),
            layer(3, "ReLU", 1, [[-1, 4, 8, 8]], name="r"),
            layer(4, "Add", 2, [[-1, 4, 8, 8]], name="s"),
            layer(5, "Const", 0, [[2]], name="shape", precision="I64"),
            layer(6, "Reshape", 2, [[-1, 256]], name="flat"),
            layer(7, "Const", 0, [[256, 10]], name="m"),
            layer(8, "MatMul", 2, [[-1, 10]], name="y"),
            layer(9, "Result", 1, []),
        ]
        layers[0] = layers[0].replace("<input>", f'<data shape="{ranges}"/><input>')
        pads = '<data strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>'
        layers[2] = layers[2].replace("<input>", pads + "<input>")
        edges = [
            *(edge(0, 0, 2), edge(1, 0, 2, 1), edge(2, 2, 3), edge(2, 2, 4), edge(3, 1, 4, 1)),
            *(edge(4, 2, 6), edge(5, 0, 6, 1), edge(6, 2, 8), edge(7, 0, 8, 1), edge(8, 2, 9)),
        ]
        return model(layers, edges)

    @pytest.mark.parametrize(("ranges", "most"), [("1..10,3,8,8", 10), ("..6,3,8,8", 6)])
    def test_a_bound_is_planned_and_said(self, tmp_path, ranges, most):
        """Tests that the most that an input can be is planned, unless another size is given."""
        found = loaded(tmp_path, self.text(ranges))
        assert lives(found)["c"][2] == most * 4 * 8 * 8 * 4
        assert found.problem.size[-1] == -(-most * 10 * 4 // 64) * 64
        (note,) = [note for note in found.notes if note.code is Code.DIM_ASSUMED]
        assert f"x:0 = {most}" in note.text
        given = load(tmp_path / "m.xml", dims={"x:0": 2})
        assert lives(given)["c"][2] == 2 * 4 * 8 * 8 * 4
        assert [note.code for note in given.notes] == [Code.ORDER_OF_RUNTIME]

    @pytest.mark.parametrize("ranges", ["?,3,8,8", "5..,3,8,8", "-1,3,8,8", ""])
    def test_sizes_without_a_bound_are_asked_for(self, tmp_path, ranges):
        """Tests that one size is enough where all others follow."""
        text = self.text(ranges)
        with pytest.raises(FormatError, match="sizes open: x:0; give each a value"):
            loaded(tmp_path, text)
        assert lives(load(tmp_path / "m.xml", dims={"x:0": 6}))["c"][2] == 6 * 4 * 8 * 8 * 4

    @pytest.mark.parametrize(
        ("ranges", "dims", "message"),
        [
            ("1..10,3,8,8", {"x:0": 11}, r'axis 0 of "x" has the size 1..10; it cannot be 11'),
            ("5..,3,8,8", {"x:0": 4}, r'axis 0 of "x" has the size 5..; it cannot be 4'),
            ("?,3,8,8", {"x:0": 4, "x:1": 4}, r'axis 1 of "x" has the size 3; it cannot be 4'),
            ("?,3,8,8", {"x:0": 4, "y:0": 4}, ""),
            ("?,3,8,8", {"x:0": 4, "y:0": 5}, r'axis 0 of "y" has the size 4; it cannot be 5'),
            ("?,3,8,8", {"z:0": 4}, r'the model has no dimension "z:0"'),
        ],
    )
    def test_what_is_given_agrees_with_the_file(self, tmp_path, ranges, dims, message):
        """Tests sizes that contradict the file, or that it does not have."""
        (tmp_path / "m.xml").write_text(self.text(ranges), "utf-8")
        if not message:
            load(tmp_path / "m.xml", dims=dims)
            return
        with pytest.raises(MemplanError, match=message):
            load(tmp_path / "m.xml", dims=dims)

    def test_what_does_not_follow_is_asked_for(self, tmp_path):
        """Tests two inputs, and a layer whose result depends on data of the weights file."""
        layers = [
            layer(0, "Parameter", 0, [[-1, 4]], name="x"),
            layer(1, "Parameter", 0, [[-1, 4]], name="z"),
            layer(2, "Concat", 2, [[-1, 4]], name="both"),
            layer(3, "StridedSlice", 1, [[-1, 4]], name="part"),
            layer(4, "Exp", 1, [[-1, 4]], name="y"),
            layer(5, "Result", 1, []),
        ]
        layers[2] = layers[2].replace("<input>", '<data axis="0"/><input>')
        edges = [edge(0, 0, 2), edge(1, 0, 2, 1), edge(2, 2, 3), edge(3, 1, 4), edge(4, 1, 5)]
        text = model(layers, edges)
        with pytest.raises(FormatError, match=r"sizes open: x:0, z:0; give"):
            loaded(tmp_path, text)
        with pytest.raises(FormatError, match=r"sizes open: part:0; give"):
            load(tmp_path / "m.xml", dims={"x:0": 3, "z:0": 5})
        found = load(tmp_path / "m.xml", dims={"x:0": 3, "z:0": 5, "part:0": 7})
        assert lives(found) == {"both": (0, 2, 128), "part": (1, 3, 128), "y": (2, 3, 128)}

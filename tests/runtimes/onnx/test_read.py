"""Tests of ONNX models: real ones, dimensions, types and constants."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import (
    FLOAT,
    INT64,
    LIGHT,
    WHEELS,
    in_wheel,
    index,
    ints,
    light,
    loaded,
    model,
    node,
    on_disk,
    value,
    weight,
)

from memplan import lower_bound, solve, verify
from memplan.base.errors import FormatError, MemplanError
from memplan.base.notes import Code, Note
from memplan.problem.plan import Status
from memplan.programs.graph import Kind
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.read import graph_of, read
from memplan.runtimes.onnx.read.protos import bits_of, dtype_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", LIGHT)
def test_networks_of_the_wheel_are_planned_optimally(name: str) -> None:
    """Tests operators, bound and peak of the nine light networks."""
    operators, bound = LIGHT[name]
    found = read(light(name), Options())
    assert found.graph is not None
    assert len(found.graph.operators) == operators
    assert {note.code for note in found.notes} <= {Code.ORDER_OF_RUNTIME}
    assert lower_bound(found.problem) == bound
    plan = solve(found.problem)
    assert (plan.status, plan.peak) == (Status.OPTIMAL, bound)
    verify(found.problem, plan)


@pytest.mark.parametrize(("package", "file", "dims"), WHEELS, ids=[w[1] for w in WHEELS])
def test_models_of_other_wheels_are_planned(package: str, file: str, dims: dict[str, int]) -> None:
    """Tests that they read, ask for just these dimensions, and are planned with a proof."""
    path = in_wheel(package, file)
    found = read(path, Options(dims=dims))
    assert solve(found.problem).status is Status.OPTIMAL
    if dims:
        with pytest.raises(FormatError) as refused:
            read(path, Options())
        assert all(name in str(refused.value) for name in dims)


def test_all_missing_dimensions_are_in_one_error(tmp_path: Path) -> None:
    """Tests that names, nameless axes and what depends on data are listed together, once."""
    what = model(
        [node("Add", "x y", "s"), node("Mul", "s s", "z"), node("NonZero", "w", "found")],
        [value("x", ["batch", 3]), value("y", ["batch", None]), value("w", [4])],
        [value("z", None), value("found", None, INT64)],
    )
    with pytest.raises(FormatError) as refused:
        loaded(tmp_path, what)
    message = refused.value.message
    assert message == (
        'the file leaves sizes open: batch (axis 0 of "x"), y:1 (axis 1 of "y"), '
        'found:1 (axis 1 of "found"); give each a value, like --dim batch=8'
    )
    dims = {"batch": 2, "y:1": 3, "found:1": 4}
    found = read(tmp_path / "model.onnx", Options(dims=dims))
    assert found.graph is not None
    shapes = {tensor.name: tensor.shape for tensor in found.graph.tensors}
    assert (shapes["z"], shapes["found"]) == ((2, 3), (1, 4))


def test_what_follows_from_a_given_dimension_is_inferred(tmp_path: Path) -> None:
    """Tests that a size that depends on data is carried on once it is given."""
    what = model(
        [node("NonZero", "x", "n"), node("Transpose", "n", "t"), node("Cast", "t", "c", to=FLOAT)],
        [value("x", [4, 4])],
        [value("c", ["found", 2])],
    )
    found = loaded(tmp_path, what, **{"n:1": 5})
    assert found.graph is not None
    assert found.graph.tensors[index(found.graph, "c")].shape == (5, 2)


def test_a_question_mark_is_no_name(tmp_path: Path) -> None:
    """Tests that axes that all have the name "?" are asked for one by one."""
    what = model([node("Neg", "x", "y")], [value("x", ["?", "?"])], [value("y", ["?", "?"])])
    with pytest.raises(FormatError, match=r"x:0.*x:1"):
        loaded(tmp_path, what)
    found = loaded(tmp_path, what, **{"x:0": 2, "x:1": 3})
    assert found.graph is not None
    assert found.graph.tensors[index(found.graph, "y")].bytes == 24


def test_a_dimension_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Tests that a typing error does not pass for a value, and that the names are told."""
    what = model([node("Neg", "x", "y")], [value("x", ["batch", 2])], [value("y", None)])
    for dims in ({"batch": 1, "bach": 1}, {"bach": 4}):
        with pytest.raises(MemplanError, match=r'no dimension "bach".*did you mean "batch"\?'):
            loaded(tmp_path, what, **dims)
    with pytest.raises(MemplanError, match=r'no dimension "xs:0".*did you mean "x:0"\?'):
        loaded(tmp_path, what, **{"xs:0": 4})
    with pytest.raises(MemplanError, match='dimension "batch" is -1; it must be'):
        loaded(tmp_path, what, batch=-1)
    with pytest.raises(MemplanError, match=r'axis 1 of "x" has the size 2; it cannot be 3'):
        loaded(tmp_path, what, **{"batch": 1, "x:1": 3})


def test_names_are_told_on_one_line(tmp_path: Path) -> None:
    """Tests a dimension whose name has a line break."""
    what = model([node("Neg", "x", "y")], [value("x", ["a\nb"])], [value("y", None)])
    with pytest.raises(FormatError, match=r'"a\\nb"'):
        loaded(tmp_path, what)


def test_nothing_is_no_size_to_refuse(tmp_path: Path) -> None:
    """Tests that what has no elements takes no memory, and that inputs of no size are noted."""
    nodes = [node("Slice", "x none none", "v"), node("Concat", "v y", "z", axis=0)]
    weights = [ints("none", [0])]
    inputs = [value("x", ["past", 2]), value("y", [1, 2])]
    found = loaded(tmp_path, model(nodes, inputs, [value("z", None)], weights), past=3)
    assert found.graph is not None
    assert [tensor.bytes for tensor in found.graph.tensors] == [8, 24, 8, 0, 8]
    assert (found.problem.ids, found.notes) == (("z",), ())
    fixed = model(nodes, [value("x", [0, 2]), *inputs[1:]], [value("z", None)], weights)
    (note,) = loaded(tmp_path, fixed).notes
    assert note.text == "sizes of inputs are 0 in the file: x:0; --dim x:0=N gives another"
    again = loaded(tmp_path, fixed, **{"x:0": 5})
    assert again.graph is not None
    assert (again.graph.tensors[index(again.graph, "x")].shape, again.notes) == ((5, 2), ())
    assert not loaded(tmp_path, fixed, **{"x:0": 0}).notes


def test_sizes_below_zero_are_refused_or_inferred(tmp_path: Path) -> None:
    """Tests that -1 of an input has to be given, and of an output is found out."""
    nodes = [node("Neg", "x", "y")]
    wrong = model(nodes, [value("x", [-1, 2])], [value("y", [-1, 2])])
    with pytest.raises(FormatError, match=r'sizes open: x:0 \(axis 0 of "x"\)'):
        loaded(tmp_path, wrong)
    assert loaded(tmp_path, wrong, **{"x:0": 3}).problem.size.tolist() == [256]
    right = model(nodes, [value("x", [3, 2])], [value("y", [-1, 2])])
    assert len(loaded(tmp_path, right).problem) == 1


def test_shapes_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    """Tests that what the library finds is in the sentence."""
    what = model(
        [node("MatMul", "x y", "z")], [value("x", [2, 3]), value("y", [4, 5])], [value("z", None)]
    )
    with pytest.raises(FormatError, match="Incompatible dimensions") as refused:
        loaded(tmp_path, what)
    assert "\n" not in str(refused.value)


def test_an_operator_that_the_library_does_not_know(tmp_path: Path) -> None:
    """Tests that its result has to be declared in the file, and is taken from there."""
    own = onnx.helper.make_node("Own", ["x"], ["y"], "it", domain="com.example")
    nodes = [own, node("Neg", "y", "z")]
    what = model(nodes, [value("x", [2])], [value("z", None)])
    what.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    with pytest.raises(FormatError, match=r'tensor "y" \(made by operator "it" \(Own\)\)'):
        loaded(tmp_path, what)
    what.graph.value_info.append(value("y", [5]))
    found = loaded(tmp_path, what)
    assert found.graph is not None
    assert found.graph.operators[0].type == "com.example.Own"
    assert found.graph.tensors[index(found.graph, "z")].shape == (5,)


@pytest.mark.parametrize(
    ("element", "dtype", "size"),
    [
        ("FLOAT", "float32", 28),
        ("DOUBLE", "float64", 56),
        ("FLOAT16", "float16", 14),
        ("BFLOAT16", "bfloat16", 14),
        ("FLOAT8E4M3FN", "float8e4m3fn", 7),
        ("FLOAT8E5M2FNUZ", "float8e5m2fnuz", 7),
        ("BOOL", "bool", 7),
        ("INT64", "int64", 56),
        ("COMPLEX128", "complex128", 112),
        ("INT4", "int4", 4),  # two to the byte, the last one alone
        ("UINT4", "uint4", 4),
        ("FLOAT4E2M1", "float4e2m1", 4),
    ],
)
def test_sizes_of_element_types(tmp_path: Path, element: str, dtype: str, size: int) -> None:
    """Tests that seven elements take as many bytes as their type says."""
    number = onnx.TensorProto.DataType.Value(element)
    what = model(
        [node("Identity", "x", "y")], [value("x", [7], number)], [value("y", None)], (), 23
    )
    what.graph.output[0].type.tensor_type.elem_type = number
    found = loaded(tmp_path, what).graph
    assert found is not None
    made = found.tensors[index(found, "y")]
    assert (made.dtype, made.bytes, made.shape) == (dtype, size, (7,))


def test_bits_of_each_element_type_of_the_library() -> None:
    """Tests every type that onnx has, by the NumPy type that onnx itself gives it."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tried = 0
    for name, number in onnx.TensorProto.DataType.items():
        if name in ("UNDEFINED", "STRING"):
            continue
        dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
        bits = 8 * dtype.itemsize
        if dtype.kind not in "biufc":  # of ml_dtypes, whose small elements take a byte each
            has_point = "float" in dtype.name
            bits = (ml_dtypes.finfo(dtype) if has_point else ml_dtypes.iinfo(dtype)).bits
        assert bits_of(number) == bits, name
        assert dtype_of(number) == {"FLOAT": "float32", "DOUBLE": "float64"}.get(name, name.lower())
        tried += 1
    assert tried >= 22


def test_texts_and_sequences_are_noted(tmp_path: Path) -> None:
    """Tests that values of unknown size take nothing, and are reported."""
    what = model(
        [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s at", "y")],
        [value("x", [3]), value("t", [2], onnx.TensorProto.STRING)],
        [value("y", [3])],
        [ints("at", 0)],
    )
    found = loaded(tmp_path, what)
    assert found.graph is not None
    text = 'sequences and strings have no size in the file and are not planned: "t", "s"'
    assert found.notes == (Note(Code.NOT_PLANNED, text, ("t", "s")),)
    assert found.graph.tensors[index(found.graph, "s")].bytes == 0
    assert found.graph.tensors[index(found.graph, "t")].dtype == "string"


def test_a_type_that_onnx_does_not_have_is_refused(tmp_path: Path) -> None:
    """Tests that an unknown number of an element type is named."""
    what = model([node("Neg", "x", "y")], [value("x", [2], 99)], [value("y", [2], 99)])
    with pytest.raises(FormatError, match="99"):
        loaded(tmp_path, what)


def test_weights_and_literals_are_constants(tmp_path: Path) -> None:
    """Tests initializers, those that are inputs too, Constant, and what is computed of them."""
    what = model(
        [
            node("Constant", "", "c", value=onnx.helper.make_tensor("v", FLOAT, [2], [1, 2])),
            node("Add", "w c", "folded"),
            node("Add", "x folded", "y"),
        ],
        [value("x", [2]), value("w", [2])],
        [value("y", None)],
        [weight("w", [2])],
    )
    # Since version 4 a caller may replace a weight that is an input, so nothing is computed of it.
    for version, folded in ((3, Kind.CONSTANT), (4, Kind.INTERMEDIATE)):
        what.ir_version = version
        found = read(on_disk(tmp_path, what), Options())
        assert found.graph is not None
        kinds = {tensor.name: tensor.kind for tensor in found.graph.tensors}
        assert kinds == {
            "w": Kind.CONSTANT,
            "x": Kind.INPUT,
            "c": Kind.CONSTANT,
            "folded": folded,
            "y": Kind.OUTPUT,
        }
        planned = ["y"] if folded is Kind.CONSTANT else ["folded", "y"]
        assert len(found.graph.operators) == len(planned)
        assert list(found.problem.ids) == planned
        every = read(on_disk(tmp_path, what), Options(include=frozenset(Kind)))
        assert sorted(every.problem.ids) == ["c", "folded", "w", "x", "y"]


def test_chance_is_not_folded_and_shapes_are() -> None:
    """Tests that random numbers are made in every run, and the shape of an input in none."""
    found = graph_of(
        model(
            [
                node("RandomNormal", "", "r", shape=[2]),
                node("Shape", "x", "s"),
                node("Add", "x r", "y"),
            ],
            [value("x", [2])],
            [value("y", None)],
        )
    )
    kinds = {tensor.name: tensor.kind for tensor in found.tensors}
    assert kinds["r"] is Kind.INTERMEDIATE
    assert kinds["s"] is Kind.CONSTANT


def test_inputs_that_are_left_out() -> None:
    """Tests that an empty name is no tensor."""
    found = graph_of(
        model([node("Clip", "x - hi", "y")], [value("x", [2]), value("hi", [])], [value("y", None)])
    )
    assert len(found.operators[0].inputs) == 2
    assert [tensor.name for tensor in found.tensors] == ["x", "hi", "y"]

"""Tests of the arithmetic on shapes that ONNX models contain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import INT64, branching, index, ints, model, node, value

from memplan.runtimes.onnx.operators import TABLE
from memplan.runtimes.onnx.read import graph_of
from memplan.runtimes.onnx.read.shapes_arithmetic import (
    array_of,
    evaluate,
    evaluate_shape_query,
)


def test_shapes_are_computed_as_exporters_write_them() -> None:
    """Tests the padding of a convolution as torch exports it, which the library cannot follow."""
    found = graph_of(
        model(
            [
                node("ConstantOfShape", "count", "none", value=ints("v", [0])),
                node("Concat", "some none", "flat", axis=0),
                node("Reshape", "flat pairs", "table"),
                node("Slice", "table back end first step", "turned"),
                node("Transpose", "turned", "columns", perm=[1, 0]),
                node("Reshape", "columns all", "list"),
                node("Cast", "list", "pads", to=INT64),
                node("Pad", "x pads", "y"),
            ],
            [value("x", [1, 2, 8])],
            [value("y", None)],
            [
                ints("count", [4]),
                ints("some", [3, 5]),
                ints("pairs", [-1, 2]),
                ints("back", [-1]),
                ints("end", [-(2**63) + 1]),
                ints("first", [0]),
                ints("step", [-1]),
                ints("all", [-1]),
            ],
        )
    )
    assert found.tensors[index(found, "y")].shape == (1, 2, 16)
    assert [operator.type for operator in found.operators] == ["Pad"]


def test_constants_outside_are_seen_in_a_branch() -> None:
    """Tests a reshape in a branch, to a shape that stands around it."""
    inside = [node("Reshape", "a to", "m"), node("Abs", "m", "r")]
    what = branching(inside, [node("Reshape", "a to", "r")])
    what.graph.initializer.append(ints("to", [2, 2]))
    found = graph_of(what)
    assert found.tensors[index(found, "z")].shape == (2, 2)
    assert [tensor.name for tensor in found.tensors].count("to") == 1
    assert not [tensor.name for tensor in found.tensors if tensor.name.endswith("/to")]


A = np.array([[7, -7, 3], [-3, 2, 9]])
B = np.array([[2, 2, -2], [2, -5, 4]])
F = np.array([1.5, -2.5, 2.0], np.float32)

# Operator, inputs, attributes: what it gives has to be what the library's reference gives.
SAMPLES: list[tuple[str, list[Any], dict[str, Any]]] = [
    *((kind, [A, B], {}) for kind in ("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max")),
    *((kind, [A, B], {}) for kind in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")),
    *((kind, [A > 0, B > 0], {}) for kind in ("And", "Or")),
    *((kind, [F], {}) for kind in ("Abs", "Ceil", "Floor", "Neg")),
    ("Not", [A > 0], {}),
    ("Div", [F, F + 1], {}),
    ("Mod", [A, B], {"fmod": 1}),
    ("Identity", [A], {}),
    ("Where", [A > 0, A, B], {}),
    ("Cast", [F], {"to": INT64}),
    ("Concat", [A, B], {"axis": -1}),
    ("ConstantOfShape", [np.array([2, 3])], {}),
    ("ConstantOfShape", [np.array([2])], {"value": onnx.helper.make_tensor("v", INT64, [1], [7])}),
    ("Constant", [], {"value": onnx.helper.make_tensor("v", INT64, [2], [1, 2])}),
    ("Compress", [A, np.array([True, False, True])], {"axis": 1}),
    ("Compress", [A, np.array([False, True, True, False, True])], {}),
    ("NonZero", [A > 0], {}),
    ("Expand", [np.array([[1], [2]]), np.array([3, 1, 4])], {}),
    ("Gather", [A, np.array([[2, -1]])], {"axis": 1}),
    ("Range", [np.array(9), np.array(0), np.array(-2)], {}),
    ("Range", [np.float32(1), np.float32(2), np.float32(0.5)], {}),
    ("ReduceProd", [A, np.array([0])], {"keepdims": 0}),
    ("ReduceSum", [A], {}),
    ("Reshape", [A, np.array([0, -1, 1])], {}),
    ("Slice", [A, np.array([-1]), np.array([-9]), np.array([1]), np.array([-2])], {}),
    ("Slice", [A, np.array([0, 1]), np.array([1, 99])], {}),
    ("Squeeze", [A[None, :, :, None]], {}),
    ("Squeeze", [A[None, :, :, None], np.array([-1])], {}),
    ("Transpose", [A], {}),
    ("Transpose", [A[None]], {"perm": [2, 0, 1]}),
    ("Unsqueeze", [A, np.array([0, -1])], {}),
]


def test_there_is_a_sample_of_every_rule() -> None:
    """Tests that no rule goes unchecked."""
    assert {kind for kind, _, _ in SAMPLES} == {name for name, row in TABLE.items() if row.value}


@pytest.mark.parametrize(("kind", "inputs", "attributes"), SAMPLES, ids=lambda v: str(v)[:20])
def test_rules_are_those_of_the_format(
    kind: str, inputs: list[Any], attributes: dict[str, Any]
) -> None:
    """Tests value, shape and type against the reference of the onnx library."""
    names = [f"i{at}" for at in range(len(inputs))]
    one = onnx.helper.make_node(kind, names, ["o"], **attributes)
    reference = pytest.importorskip("onnx.reference")
    declared = [value(name, None) for name in names]
    for declaration, array in zip(declared, inputs, strict=True):
        element = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        declaration.type.tensor_type.elem_type = element
    evaluator = reference.ReferenceEvaluator(model([one], declared, [value("o", None)]))
    (expected,) = evaluator.run(None, dict(zip(names, inputs, strict=True)))
    found = evaluate(one, inputs)
    assert found is not None
    assert (found.shape, found.dtype) == (np.shape(expected), expected.dtype)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes"),
    [
        ("Nonesuch", [A], {}),
        ("Reshape", [A, np.array([5, 5])], {}),  # does not fit
        ("Concat", [A, A], {}),  # lacks its axis
        ("Gather", [A, np.array([99])], {}),
        ("ConstantOfShape", [np.array([2**40, 2**20])], {}),  # too large
        ("Expand", [np.array([1]), np.array([10**6])], {}),
        ("Range", [np.array(0), np.array(10**9), np.array(1)], {}),
        ("Range", [np.array(0), np.array(1), np.array(0)], {}),
        ("Neg", [None], {}),  # not known
    ],
)
def test_what_is_not_computed(kind: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    """Tests that what is unknown, large or wrong has no value, and is no error."""
    names = [f"i{at}" for at in range(len(inputs))]
    assert evaluate(onnx.helper.make_node(kind, names, ["o"], **attributes), inputs) is None


def test_attributes_of_old_operators() -> None:
    """Tests axes and bounds as attributes, as they were before opset 10 and 13."""
    make = onnx.helper.make_node
    found = evaluate(make("Slice", ["x"], ["y"], starts=[1], ends=[3], axes=[1]), [A])
    assert found is not None
    assert found.tolist() == [[-7, 3], [2, 9]]
    found = evaluate(make("Unsqueeze", ["x"], ["y"], axes=[0]), [A])
    assert found is not None
    assert found.shape == (1, 2, 3)


def test_shapes_as_values() -> None:
    """Tests Shape with its bounds, and Size."""
    make = onnx.helper.make_node
    for attributes, expected in (
        ({}, [2, 3, 4]),
        ({"start": 1}, [3, 4]),
        ({"start": -2, "end": -1}, [3]),
    ):
        found = evaluate_shape_query(make("Shape", ["x"], ["y"], **attributes), (2, 3, 4))
        assert found is not None
        assert found.tolist() == expected
    found = evaluate_shape_query(make("Size", ["x"], ["y"]), (2, 3, 4))
    assert found is not None
    assert found.item() == 24
    assert evaluate_shape_query(make("Size", ["x"], ["y"]), (2**40, 2**40)) is None


def test_data_that_is_not_small_numbers_in_the_file() -> None:
    """Tests tensors that are elsewhere, large, texts, or shorter than their shape."""
    assert array_of(ints("v", [1, 2])) is not None
    elsewhere = ints("v", [1])
    elsewhere.data_location = onnx.TensorProto.EXTERNAL
    text = onnx.helper.make_tensor("t", onnx.TensorProto.STRING, [1], [b"a"])
    short = ints("v", [1, 2])
    short.dims[0] = 3
    below = ints("v", [1])
    below.dims[0] = -1
    for tensor in (elsewhere, ints("v", range(2000)), text, short, below):
        assert array_of(tensor) is None


@pytest.mark.parametrize("opset", [7, 9])
def test_sizes_are_rounded_in_single_precision(opset: int) -> None:
    """Tests scales and steps whose products are whole numbers in single precision alone."""
    scales = np.array([1, 1, 10 / 3, 2], np.float32)
    held = [onnx.numpy_helper.from_array(scales, "s")] if opset > 7 else []
    extra = {} if held else {"scales": scales.tolist()}
    up = node("Upsample", "x s" if held else "x", "y", **extra)
    found = graph_of(model([up], [value("x", [1, 1, 6, 2])], [value("y", None)], held, opset))
    assert found.tensors[index(found, "y")].shape == (1, 1, 20, 4)
    three = [np.float32(one) for one in (0.1, 5, 0.1)]
    steps = evaluate(onnx.helper.make_node("Range", ["a", "b", "c"], ["o"]), three)
    assert steps is not None
    assert steps.shape == (49,)

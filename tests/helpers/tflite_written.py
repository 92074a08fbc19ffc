"""Small TFLite models of what TFLM plans in ways of its own: control flow, pins, scratch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from tflite_models import Writer, chain, constant, floats

from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo

KEEP_DIMS_OFF = (27, {0: ("b", 0)})
ALONG_FIRST = (10, {0: ("i", 0)})


def doubling(name: str) -> tuple[tuple[TensorInfo, ...], tuple[OperatorInfo, ...]]:
    """Return tensors 0 to 3 and operators of a sub-graph that doubles eight floats, using 16."""
    tensors = (
        floats(f"{name}.a", 1, 8),
        floats(f"{name}.b", 2, 8),
        floats(f"{name}.c", 1, 8),
        constant("first axis", "int32", 1),
    )
    operators = (
        OperatorInfo("CONCATENATION", (0, 0), (1,)),
        OperatorInfo("SUM", (1, 3), (2,)),
    )
    return tensors, operators


def branching(shared: bool) -> Model:
    """Return two IFs in a row; with the same sub-graphs, or with one that is entered always."""
    main = (
        TensorInfo("choice", "bool", (1,)),
        floats("x", 1, 8),
        floats("y", 1, 8),
        floats("z", 1, 8),
        floats("out", 1, 8),
    )
    operators = (
        OperatorInfo("RELU", (1,), (2,)),
        OperatorInfo("IF", (0, 2), (3,), (1, 2)),
        OperatorInfo("IF", (0, 3), (4,), (1, 1) if shared else (2, 1)),
    )
    then_tensors, then_operators = doubling("then")
    other = (floats("else.a", 1, 8), floats("else.b", 1, 8))
    return Model(
        "m",
        (
            SubGraph("main", main, operators, (0, 1), (4,)),
            SubGraph("then", then_tensors, then_operators, (0,), (2,)),
            SubGraph("else", other, (OperatorInfo("TANH", (0,), (1,)),), (0,), (1,)),
        ),
    )


def looping() -> Model:
    """Return a WHILE that doubles its eight floats until their sum is 100 or more."""
    main = (floats("x", 1, 8), floats("y", 1, 8), floats("z", 1, 8))
    operators = (OperatorInfo("WHILE", (0,), (1,), (1, 2)), OperatorInfo("RELU", (1,), (2,)))
    condition = (
        floats("a", 1, 8),
        floats("t", 1),
        constant("limit", "float32", 1),
        TensorInfo("go", "bool", (1,)),
        constant("both axes", "int32", 2),
    )
    test = (OperatorInfo("SUM", (0, 4), (1,)), OperatorInfo("LESS", (1, 2), (3,)))
    body_tensors, body = doubling("body")
    return Model(
        "m",
        (
            SubGraph("main", main, operators, (0,), (2,)),
            SubGraph("condition", condition, test, (0,), (3,)),
            SubGraph("body", body_tensors, body, (0,), (2,)),
        ),
    )


WRITER = {
    "options": {"SUM": KEEP_DIMS_OFF, "MEAN": KEEP_DIMS_OFF, "CONCATENATION": ALONG_FIRST},
    "values": {
        "first axis": np.array([0], "<i4").tobytes(),
        "both axes": np.array([0, 1], "<i4").tobytes(),
        "limit": np.array([100], "<f4").tobytes(),
    },
}


def one_operator(
    type_: str, inputs: tuple[TensorInfo, ...], output: TensorInfo, *, given: int = 1
) -> Model:
    """Return a model of one operator; its first inputs are the model's."""
    tensors = (*inputs, output)
    step = OperatorInfo(type_, tuple(range(len(inputs))), (len(inputs),))
    subgraph = SubGraph("main", tensors, (step,), tuple(range(given)), (len(inputs),))
    return Model("m", (subgraph,))


def int8(name: str, *shape: int) -> TensorInfo:
    """Return a tensor of int8."""
    return TensorInfo(name, "int8", shape)


WRITTEN = {
    "one": chain("RELU"),
    "chain": chain("RELU", "TANH", "NEG"),
    "unused": replace(
        chain("RELU"),
        subgraphs=(
            replace(
                chain("RELU").subgraphs[0],
                tensors=(*chain("RELU").subgraphs[0].tensors, floats("u", 9), floats("v", 99)),
            ),
        ),
    ),
    "branching": branching(shared=False),
    "branching to one": branching(shared=True),
    "looping": looping(),
    "pinned": replace(chain("RELU", "TANH", "NEG"), offsets=(-1, 640, -1, 16)),
    "in place": replace(chain("RELU", "TANH", "NEG"), offsets=(0, 0, 0, 64)),
    "mean": one_operator(
        "MEAN", (int8("a", 4, 100), constant("first axis", "int32", 1)), int8("o", 100)
    ),
    "int4": one_operator(
        "FULLY_CONNECTED",
        (int8("a", 1, 40), TensorInfo("w", "int4", (10, 40), data=200)),
        int8("o", 1, 10),
    ),
    "add_n": one_operator("ADD_N", (floats("a", 9), floats("b", 9)), floats("o", 9), given=2),
    "mirror_pad": one_operator(
        "MIRROR_PAD", (floats("a", 2, 9), constant("pads", "int32", 2, 2)), floats("o", 4, 11)
    ),
    "svdf": one_operator(
        "SVDF",
        (
            floats("a", 1, 8),
            constant("f", "float32", 40, 8),
            constant("t", "float32", 40, 4),
            constant("bias", "float32", 40),
            floats("state", 1, 160, variable=True),
        ),
        floats("o", 1, 40),
    ),
    "transpose_conv": one_operator(
        "TRANSPOSE_CONV",
        (
            constant("size", "int32", 4),
            constant("w", "int8", 1, 1, 1, 1),
            int8("a", 1, 9, 9, 1),
        ),
        int8("o", 1, 9, 9, 1),
        given=0,
    ),
}
KERNELS = {
    "SVDF": (6, {0: ("i", 1)}),
    "TRANSPOSE_CONV": (49, {0: ("b", 1), 1: ("i", 1), 2: ("i", 1)}),
    "FULLY_CONNECTED": (8, {}),
}
# At the edges: no operator, tensors of a byte and of none, many sub-graphs, odd names.
_BYTES = tuple(TensorInfo(name, "int8", (at % 2,)) for at, name in enumerate(("", "b", "*/", "d")))
SMALL = {
    "nothing": chain(),
    "bytes": Model(
        "m",
        (
            SubGraph(
                "main",
                _BYTES,
                tuple(OperatorInfo("RELU", (at,), (at + 2,)) for at in (0, 1)),
                (0, 1),
                (2, 3),
            ),
        ),
    ),
    "many": replace(
        chain("RELU"),
        subgraphs=tuple(replace(chain("RELU").subgraphs[0], name=f"s{at}") for at in range(40)),
    ),
}


def written(folder: Path, name: str) -> Path:
    """Return one of the models above as a file."""
    path = folder / "model.tflite"
    options = {**WRITER["options"], **KERNELS}
    model = WRITTEN[name]
    if name == "transpose_conv":
        main = replace(model.subgraphs[0], inputs=(2,))
        model = replace(model, subgraphs=(main,))
    path.write_bytes(Writer(options, WRITER["values"]).write(model))
    return path

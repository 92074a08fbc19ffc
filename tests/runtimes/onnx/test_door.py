"""Tests of the door for ONNX models: attributes and constants that onnxruntime refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import ints, model, node, value, weight

from memplan.cli import main


def _damaged(kind: str) -> Any:
    """Return a model with a convolution and a constant, damaged in one way."""
    made = model(
        [
            node("Conv", "x w", "a", strides=[1, 1], pads=[0, 0, 0, 0]),
            node("DepthToSpace", "a", "b", blocksize=2),
            node("Pad", "b p", "y"),
        ],
        [value("x", [1, 4, 8, 8])],
        [value("y", None)],
        [weight("w", [4, 4, 1, 1]), ints("p", [0] * 8)],
    )
    convolution, space, _ = made.graph.node
    pads, strides = convolution.attribute  # in the order of their names
    constant = made.graph.initializer[1]
    if kind == "type":
        strides.CopyFrom(onnx.helper.make_attribute("strides", 1))
    elif kind == "length":
        pads.ints.append(0)
    elif kind == "zero":
        strides.ints[0] = 0
    elif kind == "negative":
        space.attribute[0].i = -2
    elif kind == "missing":
        del space.attribute[:]
    elif kind == "reference":
        strides.ref_attr_name = "steps"
    elif kind == "alone":
        made.graph.node.append(onnx.helper.make_node("Own", [], []))
    elif kind == "inputs":
        del convolution.input[1:]
    elif kind == "huge":
        strides.ints[0] = 2**62
    elif kind == "bytes":
        constant.raw_data = b"123456789"
        del constant.int64_data[:]
    elif kind == "numbers":
        constant.int64_data.append(1)
    elif kind == "element":
        constant.data_type = 1
    elif kind == "dims":
        constant.dims[0] = 9
    elif kind == "negative dims":
        constant.dims[0] = -8
    elif kind == "weights":
        made.graph.initializer[0].CopyFrom(weight("w", [64, 32, 3, 3]))
        made.graph.initializer[0].raw_data = bytes(9000)
    elif kind == "auto_pad":
        convolution.attribute.append(onnx.helper.make_attribute("auto_pad", "SAME"))
    return made


DAMAGES = {
    "type": '"strides" of the type INT; it must be INTS',
    "length": 'has "strides" and "pads" for a different number of axes',
    "zero": r'has \[0, 1\] as "strides"; none may be below 1',
    "negative": r'has \[-2\] as "blocksize"; none may be below 1',
    "reference": 'takes its attribute "strides" from a function, but is in none',
    "alone": None,
    "missing": 'has no attribute "blocksize", which it needs',
    "inputs": "has 1 inputs; it must have from 2 to 3",
    "huge": None,
    "bytes": r'tensor "p" has 9 bytes of data; its type and its shape \[8\] have 64',
    "numbers": r'tensor "p" has 9 numbers of data; its type and its shape \[8\] have 8',
    "element": None,
    "dims": r'tensor "p" has 8 numbers of data; its type and its shape \[9\] have 9',
    "negative dims": r'tensor "p" has a negative size in its shape \[-8\]',
    "weights": 'has 9000 bytes of data for tensor "w"; its type and its shape have 73728',
    "auto_pad": 'has an unknown "auto_pad", "SAME"',
}


@pytest.mark.parametrize("command", ["plan", "order", "bands", "apply"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_every_command_has_the_same_door(
    kind: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests damaged attributes and constants: one sentence from every command, or an answer."""
    path, more = tmp_path / "m.onnx", []
    path.write_bytes(_damaged(kind).SerializeToString())
    if command == "plan":
        more = ["--no-runtime"]
    elif command == "apply":
        more = ["--bands", "--allow-inexact", "-o", str(tmp_path / "o.onnx")]
    code = main([command, str(path), *more])
    said = capsys.readouterr().err
    sentence = DAMAGES[kind]
    assert code == 2 if sentence else code in (0, 2)
    assert said.count("\n") == (code == 2)
    assert sentence is None or re.search(sentence, said), said

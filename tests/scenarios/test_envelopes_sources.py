"""Tests envelopes of models in files against a plan of each size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tflite_models import Writer, floats

import memplan as mp
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph
from memplan.scenarios.envelope import envelope


def hold_against_plans(path: Path, found: mp.Envelope, sizes: list[dict[str, int]]) -> None:
    """Compare an envelope with plans of some sizes, by themselves and with the same offsets."""
    for dims in sizes:
        planned = mp.plan_model(path, dims=dims)
        assert found.peak_at(**dims) == planned.plan.peak
        mp.verify(planned, found.plan_at(**dims))
        offsets = [found.plan.offset(id) for id in planned.problem.ids]
        mp.verify(planned, mp.Plan.of(planned.problem, offsets))


def test_attention_in_onnx(tmp_path: Path) -> None:
    """Tests a batch and tokens, whose square the scores grow with."""
    onnx = pytest.importorskip("onnx")
    make, weights = onnx.helper, ("wq", "wk", "wv")
    shape = ["batch", "tokens", 32]
    steps = [
        *(make.make_node("MatMul", ["x", name], [name[1]]) for name in weights),
        make.make_node("Transpose", ["k"], ["turned"], perm=[0, 2, 1]),
        make.make_node("MatMul", ["q", "turned"], ["scores"]),
        make.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        make.make_node("MatMul", ["shares", "v"], ["mixed"]),
        make.make_node("Add", ["mixed", "x"], ["y"]),
    ]
    graph = make.make_graph(
        steps,
        "attention",
        [make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [make.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)],
        [onnx.numpy_helper.from_array(np.zeros((32, 32), np.float32), name) for name in weights],
    )
    path = tmp_path / "attention.onnx"
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)]), path)
    found = envelope(path, {"batch": "1:32", "tokens": "1:512"}, "batch*tokens<=2048")
    assert (found.status, found.plan.peak) == (mp.Status.OPTIMAL, int(found.peaks.max()))
    tried = [(1, 1), (1, 512), (4, 511), (32, 64), (7, 133)]
    hold_against_plans(path, found, [{"batch": b, "tokens": t} for b, t in tried])


def test_a_batch_in_tflite(tmp_path: Path) -> None:
    """Tests a model whose file leaves its batch open."""
    tensors = (floats("in", 1, 9, open_axes=(0,)), floats("mid", 1, 9), floats("out", 1, 9))
    steps = (OperatorInfo("RELU", (0,), (1,)), OperatorInfo("TANH", (1,), (2,)))
    path = tmp_path / "model.tflite"
    path.write_bytes(Writer().write(Model("m", (SubGraph("", tensors, steps, (0,), (2,)),))))
    found = envelope(path, {"batch": "1:500"})
    assert (found.open, "polynomials" in found.how) == (0, True)
    hold_against_plans(path, found, [{"batch": batch} for batch in (1, 2, 77, 500)])

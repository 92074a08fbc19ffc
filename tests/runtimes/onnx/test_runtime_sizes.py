"""Tests of the sizes of all operators against those of onnxruntime: attributes, and all opsets."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from rounds import rounds

pytest.importorskip("onnx")
import numpy as np
import onnx
from onnx_models import ints, loaded, model, node, value
from onnx_operators import OPSETS, Drawn, draw, join

from memplan.base.errors import MemplanError
from memplan.runtimes.onnx import measure as yardstick
from memplan.runtimes.onnx.read import graph_of
from memplan.runtimes.onnx.write import apply as onnx_bands

ELEMENTS = {"float": "float32", "double": "float64"}


def run(made: Any) -> list[Any] | None:
    """Return what onnxruntime computes of ones; `None` if it refuses the model."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = runtime.InferenceSession(made.SerializeToString(), options)
        kinds = {one.name: one.type[7:-1] for one in session.get_inputs()}
        feeds = {
            one.name: np.ones(one.shape, ELEMENTS.get(kinds[one.name], kinds[one.name]))
            for one in session.get_inputs()
        }
        found: list[Any] = session.run(None, feeds)
    except Exception:  # the runtime has classes of its own for each reason
        return None
    return found


def sizes(draws: list[Drawn]) -> list[list[tuple[int, ...] | None]]:
    """Return the shapes of what operators make, as the reader finds them."""
    shapes = {one.name: one.shape for one in graph_of(join(draws)).tensors}
    return [
        [shapes[f"o{number}_{at}"] for at in range(one.outputs)] for number, one in enumerate(draws)
    ]


def compare(seeds: range) -> tuple[int, list[str]]:
    """Return how many operators ran in the runtime, and those that have other sizes here."""
    batches: dict[int, list[tuple[Drawn, list[tuple[int, ...]]]]] = {}
    count = 0
    for seed in seeds:
        chance = random.Random(seed)
        one = draw(chance, chance.choice(OPSETS))
        truth = run(join([one]))
        if truth is None or any(not found.size for found in truth):
            continue  # it cannot run, or makes nothing, about which the reader asks
        batches.setdefault(one.opset, []).append((one, [found.shape for found in truth]))
        count += 1
    wrong = []
    for batch in batches.values():
        for one, truth, found in _read(batch):
            if found != truth:
                wrong.append(f"{one} makes {truth}, not {found}")
    return count, wrong


def _read(batch: list[tuple[Drawn, list[tuple[int, ...]]]]) -> Any:
    try:
        found: list[Any] = list(sizes([one for one, _ in batch]))
    except MemplanError:  # one is refused: which one?
        found = []
        for one, _ in batch:
            try:
                found += sizes([one])
            except MemplanError as error:
                found.append(str(error))
    for (one, truth), sizes_here in zip(batch, found, strict=True):
        yield one, truth, sizes_here


def is_lenient(wrong: str) -> bool:
    """Return whether the runtime runs what ONNX forbids."""
    return wrong.startswith("PRelu")  # a slope is repeated to the input, not the input to the slope


def test_operators_have_the_sizes_of_the_runtime() -> None:
    """Tests 400 random operators of all kinds and opsets."""
    pytest.importorskip("onnxruntime")
    count, wrong = compare(range(400))
    assert count > 250
    assert [one for one in wrong if not is_lenient(one)] == []


@pytest.mark.deep
@pytest.mark.parametrize("first", range(1_000, rounds(5_000, 21_000), 1_000))
def test_thousands_of_operators_have_the_sizes_of_the_runtime(first: int) -> None:
    """Tests thousands more."""
    pytest.importorskip("onnxruntime")
    assert [one for one in compare(range(first, first + 1_000))[1] if not is_lenient(one)] == []


def pooled(opset: int, side: int = 16) -> Any:
    """Return poolings of which the last windows begin behind the input, with true declarations."""
    ends = {"ceil_mode": 1, "strides": [2, 2], "kernel_shape": [2, 2]}
    nodes = [
        node("Relu", "x", "a"),
        node("MaxPool", "a", "b", **(ends | {"pads": [0, 0, 1, 1]})),
        node("MaxPool", "b", "c", **(ends | {"pads": [1, 1, 0, 0]})),
        node("LpPool", "c", "y", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    made = model(nodes, [value("x", [1, 3, side, side])], [value("y", None)], opset=opset)
    made.graph.value_info.append(value("b", [1, 3, side // 2, side // 2]))
    return made


@pytest.mark.parametrize("opset", [13, 17, 22])
def test_a_last_window_behind_the_input_is_none(opset: int, tmp_path: Path) -> None:
    """Tests sizes, notes and bands of a network whose poolings round up, in versions of ONNX."""
    made = pooled(opset)
    found = loaded(tmp_path, made)
    assert found.graph is not None
    shapes = {one.name: one.shape for one in found.graph.tensors}
    assert (shapes["b"], shapes["c"], shapes["y"]) == ((1, 3, 8, 8), (1, 3, 5, 5), (1, 3, 2, 2))
    assert "shape-overridden" not in {str(note.code) for note in found.notes}
    written = onnx_bands.put_in_bands(tmp_path / "model.onnx", max_extra=1.0, fused=False).data
    pytest.importorskip("onnxruntime")
    assert yardstick.measure_difference(made.SerializeToString(), written) == 0.0


OTHERS = {
    "no axes are all axes": (node("Squeeze", "x e", "y"), [2, 1, 3, 1], (2, 3)),
    "a result that is smaller than the input": (
        node("ConvTranspose", "z w", "y", output_shape=[1, 2]), [2, 1, 3, 1], (1, 2, 1, 2)
    ),
    "one element": (node("GatherND", "x p", "y"), [2, 1, 3, 1], ()),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
def test_results_that_the_library_does_not_know(what: str, tmp_path: Path) -> None:
    """Tests operators for which the library infers no result, or another one."""
    one, shape, expected = OTHERS[what]
    weights = [ints("p", [0, 0, 0, 0]), onnx.helper.make_tensor("w", 1, [2, 2, 2, 2], [1.0] * 16)]
    weights = [*weights, ints("e", [])] if "Squeeze" in one.op_type else weights
    inputs = [value("x", shape), value("z", [1, 2, 3, 3])]
    made = model([one], inputs, [value("y", None)], weights)
    found = loaded(tmp_path, made).graph
    assert found is not None
    assert {one.name: one.shape for one in found.tensors}["y"] == expected
    truth = run(made)
    assert truth is None or truth[0].shape == expected

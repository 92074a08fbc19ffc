"""Tests of what onnxruntime says of the same models: its tensors, and its memory."""

from __future__ import annotations

import json
import random
from math import prod
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import numpy as np
import onnx
import onnxruntime
from onnx_models import BOOL, FLOAT, INT64, LIGHT, graph, ints, light, model, node, value
from ort_orders import random_model, run

import memplan as mp
from memplan import solve
from memplan.base.errors import MemplanError
from memplan.base.notes import Code
from memplan.cli import main
from memplan.programs.graph import Graph
from memplan.programs.sources import measuring
from memplan.programs.sources.options import Options
from memplan.runtimes.fitting import fit
from memplan.runtimes.onnx import measure as runtime
from memplan.runtimes.onnx._measure_child import _FUSIONS
from memplan.runtimes.onnx.read import read, shapes_rounds

pytestmark = pytest.mark.slow

_DTYPES = {"float": "float32", "int64": "int64", "bool": "bool"}

Made = dict[str, list[tuple[str, tuple[int, ...], int]]]


def made_by_onnxruntime(path: Path, folder: Path) -> Made:
    """Return type, shape and bytes of what every operator makes that is run without fusions."""
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(
        path, options, ["CPUExecutionProvider"], disabled_optimizers=_FUSIONS.split()
    )
    session.run(None, {one.name: np.zeros(one.shape, np.float32) for one in session.get_inputs()})
    made: Made = {}
    for event in json.loads(Path(session.end_profiling()).read_text()):
        if event["name"].endswith("_kernel_time"):
            types = event["args"]["output_type_shape"]
            sizes = [(_DTYPES[t], tuple(shape)) for one in types for t, shape in one.items()]
            results = [(d, shape, prod(shape) * np.dtype(d).itemsize) for d, shape in sizes]
            assert sum(size for *_, size in results) == int(event["args"]["output_size"])
            made[event["name"].removesuffix("_kernel_time")] = results
    return made


def made_in(graph: Graph) -> Made:
    """Return the same of a graph that was read."""
    return {
        operator.name: [
            (graph.tensors[i].dtype, graph.tensors[i].shape or (), graph.tensors[i].bytes)
            for i in operator.outputs
        ]
        for operator in graph.operators
        if operator.type != "Dropout"  # which it takes out
    }


@pytest.mark.parametrize("name", LIGHT)
def test_tensors_are_those_of_onnxruntime(name: str, tmp_path: Path) -> None:
    """Tests that it makes the same intermediate tensors, all of them, of the same sizes."""
    found = read(light(name), Options()).graph
    assert found is not None
    assert made_in(found) == made_by_onnxruntime(light(name), tmp_path)


def test_a_measured_peak_is_told_as_such() -> None:
    """Tests the figure of one network: not below its bound in place, and above our plan."""
    path = light("light_squeezenet")
    figure = measuring.measure("onnx", path, Options())
    assert figure is not None
    assert figure.runtime == f"onnxruntime {onnxruntime.__version__}"
    assert figure.how == "measured"
    assert "kernel scratch" in figure.what
    in_place = solve(read(path, Options(in_place=True)).problem)
    assert in_place.peak <= figure.bytes < read(path, Options()).problem.size.sum()


@pytest.fixture
def transformed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a model of which the library infers a wrong shape, if it is not helped."""
    monkeypatch.setattr(shapes_rounds, "_write_defaults", lambda graph: None)
    path = tmp_path / "model.onnx"
    what = model(
        [node("STFT", "x step - length", "s"), node("Exp", "s", "t"), node("Relu", "t", "y")],
        [value("x", [1, 160, 1])],
        [value("y", [1, 9, 17, 2])],
        [ints("step", 16), ints("length", 32)],
    )
    what.graph.value_info.extend([value("s", [1, 9, 17, 2]), value("t", [1, 9, 17, 2])])
    path.write_bytes(what.SerializeToString())
    return path


def test_a_declared_shape_that_the_runtime_makes_is_planned(
    transformed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests which of two shapes is planned, and what is said of both, with and without a word."""
    both = '"s" is [1, 9, 32, 2], not [1, 9, 17, 2]'
    loaded = mp.load(transformed)
    assert loaded.problem.max_load == 2 * 2304
    (note,) = loaded.notes
    assert both in note.text
    planned = mp.plan_model(transformed)
    assert planned.plan.peak == 2 * 1280
    (note,) = planned.notes
    assert (note.code, note.tensors) == (Code.SHAPE_OVERRIDDEN, ("s",))
    assert 'was asked and makes "s" as [1, 9, 17, 2], not [1, 9, 32, 2]' in note.text
    for options, peak in ([], 2560), (["--no-runtime"], 4608):
        assert main(["plan", str(transformed), "--json", *options]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["peak"] == peak
        (said,) = found["notes"]
        assert said["text"] == note.text if peak == 2560 else both in said["text"]
    assert [each.text for each in fit(transformed).notes] == [note.text]
    out = transformed.with_name("out.onnx")
    assert main(["apply", str(transformed), "--order", "-o", str(out)]) == 0
    assert "was asked and makes" in capsys.readouterr().out
    assert main(["plan", str(transformed), "--strict"]) == 2
    assert main(["order", str(transformed)]) == 0
    assert "2,560 bytes" in capsys.readouterr().out


def test_both_shapes_are_said_where_the_runtime_is_not_installed(
    transformed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the inferred shape is planned then."""
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    planned = mp.plan_model(transformed)
    assert planned.plan.peak == 4608
    assert '"s" is [1, 9, 32, 2], not [1, 9, 17, 2]' in planned.notes[0].text


def test_a_stale_shape_is_not_planned(tmp_path: Path) -> None:
    """Tests that the runtime agrees with the inference where only the inputs were edited."""
    path = tmp_path / "model.onnx"
    what = model([node("Exp", "x", "a"), node("Neg", "a", "y")], [value("x", [8, 4])])
    what.graph.output.append(value("y", [2, 4]))
    what.graph.value_info.append(value("a", [2, 4]))
    path.write_bytes(what.SerializeToString())
    assert runtime.settle(path, Options()) is None
    planned = mp.plan_model(path)
    assert [note.code for note in planned.notes] == [Code.SHAPE_OVERRIDDEN]
    assert [one.shape for one in planned.loaded.graph.tensors] == [(8, 4)] * 3  # type: ignore[union-attr]


def test_a_declaration_that_cannot_be_planned_is_a_note(transformed: Path) -> None:
    """Tests what is said where the runtime makes neither the declared nor the inferred shape."""
    loaded = read(transformed, Options())
    (note,) = runtime._doubt_override(loaded, [("Add", 4, 8), ("STFT", 196, 200)])
    assert note.code is Code.SHAPE_OVERRIDDEN
    assert "196 bytes with operator STFT, and 200 are planned" in note.text
    assert runtime._doubt_override(loaded, [("Add", 4, 8)]) == ()


def test_sizes_that_are_declared_and_given_count(transformed: Path) -> None:
    """Tests the way to plan a declared shape without the runtime, and that no other size passes."""
    sizes = {"s:0": 1, "s:1": 9, "s:2": 17, "s:3": 2}
    loaded = mp.load(transformed, dims=sizes)
    assert loaded.notes == ()
    assert loaded.problem.max_load == 2560
    assert loaded.graph is not None
    assert [one.type for one in loaded.graph.operators] == ["STFT", "Exp", "Relu"]
    with pytest.raises(MemplanError, match="axis 2"):
        mp.load(transformed, dims=sizes | {"s:2": 18})


def test_networks_raise_no_alarm(tmp_path: Path) -> None:
    """Tests that placing worse than a plan is none: a network, and models in several orders."""
    paths = [light("light_squeezenet")]
    for seed in range(4):
        paths.append(tmp_path / f"{seed}.onnx")
        paths[-1].write_bytes(random_model(random.Random(seed)).SerializeToString())
    for path in paths:
        figure = runtime.measure(path, Options())
        assert figure is not None
        assert Code.MEASURED_ABOVE not in {
            note.code for note in measuring.join_notes((), (figure,))
        }


def test_dimensions_are_handed_on(tmp_path: Path) -> None:
    """Tests that named and nameless sizes reach the runtime, with inputs of other types."""
    what = model(
        [node("Exp", "x", "a"), node("Exp", "a", "b"), node("Where", "c b a", "y")],
        [value("x", ["n", None]), value("c", [None, 1], BOOL)],
        [value("y", None)],
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(what.SerializeToString())
    figure = runtime.measure(path, Options(dims={"n": 100, "x:1": 64, "c:0": 100}))
    assert figure is not None
    assert figure.bytes == 3 * 100 * 64 * 4


@pytest.mark.parametrize("kind", ["none", "garbage", "unknown operator"])
def test_what_cannot_run_has_no_figure(tmp_path: Path, kind: str) -> None:
    """Tests that a runtime that refuses a model is no error."""
    path = tmp_path / "model.onnx"
    if kind == "garbage":
        path.write_bytes(b"\x08\x07garbage")
    elif kind == "unknown operator":
        what: Any = model([node("Nonesuch", "x", "y")], [value("x", [2])], [value("y", [2])])
        path.write_bytes(what.SerializeToString())
    assert runtime.measure(path, Options()) is None


def test_without_the_library_there_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that nothing is run where onnxruntime is not installed."""
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    assert runtime.measure(light("light_squeezenet"), Options()) is None


def test_what_shares_memory_there_shares_it_here(tmp_path: Path) -> None:
    """Tests views against what the runtime asks its arena for: one tensor instead of six."""
    nodes = [node("Exp", "x", "a")]
    for number, kind in enumerate(("Flatten", "Identity", "Flatten", "Identity")):
        nodes.append(node(kind, "abcd"[number], "bcde"[number]))
    what = model([*nodes, node("Exp", "e", "y")], [value("x", [64, 64])], [value("y", None)])
    path = tmp_path / "model.onnx"
    path.write_bytes(what.SerializeToString())
    figure = runtime.measure(path, Options())
    assert figure is not None
    assert figure.bytes == solve(read(path, Options()).problem).peak == 2 * 64 * 64 * 4


@pytest.mark.parametrize("name", LIGHT)
def test_a_network_runs_in_the_order_of_the_runtime(name: str) -> None:
    """Tests the model of its default order against what it runs."""
    found = read(light(name), Options(runtime_order=True)).graph
    assert found is not None
    order = [operator.name for operator in found.operators]
    feeds = {
        one.name: np.zeros(one.shape, np.float32)
        for one in onnxruntime.InferenceSession(light(name)).get_inputs()
    }
    ran, _ = run(light(name), feeds)
    assert [each for each in ran if each in set(order)] == order


def test_random_models_run_in_the_order_of_the_runtime(tmp_path: Path) -> None:
    """Tests the model of its default order on a hundred random models, some with branches."""
    path = tmp_path / "model.onnx"
    other = 0
    for seed in range(100):
        made = random_model(random.Random(seed))
        path.write_bytes(made.SerializeToString())
        found = read(path, Options(runtime_order=True)).graph
        assert found is not None
        order = [operator.name for operator in found.operators]
        assert run(path, {"x": np.ones(4, np.float32)})[0] == order
        other += order != [each.name for each in made.graph.node]
    assert other > 50


def test_operators_inside_branches_run_in_the_order_of_the_runtime(tmp_path: Path) -> None:
    """Tests the order in both branches, and that what they read comes before them."""
    branch = graph(
        [
            node("Neg", "b", "p", name="p"),
            node("Exp", "a", "q", name="q"),
            node("Sum", "q p", "r", name="r"),
        ],
        outputs=[value("r", [4])],
    )
    other = graph([node("Abs", "c", "s", name="s")], outputs=[value("s", [4])])
    nodes = [
        *(node("Exp", "x", name, name=name) for name in "abc"),
        node("If", "flag", "y", name="if", then_branch=branch, else_branch=other),
    ]
    what = model(nodes, [value("x", [4]), value("flag", [1], BOOL)], [value("y", [4])])
    path = tmp_path / "model.onnx"
    path.write_bytes(what.SerializeToString())
    found = read(path, Options(runtime_order=True)).graph
    assert found is not None
    otherwise, then = ([op.name for op in each.operators] for each in found.operators[-1].blocks)
    outer = [operator.name for operator in found.operators]
    for flag, inside in ((True, then), (False, otherwise)):
        ran, _ = run(path, {"x": np.ones(4, np.float32), "flag": np.array([flag])})
        assert [name for name in ran if name != "if"] == [*outer[:-1], *inside]


def test_models_are_compared_whatever_they_read_and_make() -> None:
    """Tests single numbers, texts and sequences, of which two runs once were not compared."""

    def made(kind: str) -> bytes:
        nodes = [
            node("Cast", "n", "f", to=FLOAT),
            node(kind, "x f", "y"),
            node("SequenceConstruct", "y x", "s"),
            *(node("Identity", one, f"{one}2") for one in "tbw"),
        ]
        kinds = {"n": INT64, "t": onnx.TensorProto.STRING, "b": BOOL, "w": onnx.TensorProto.UINT8}
        inputs = [value("x", [3]), *(value(name, [], one) for name, one in kinds.items())]
        outputs = [value(f"{name}2", [], kinds[name]) for name in "tbw"]
        sequence = onnx.helper.make_tensor_sequence_value_info("s", FLOAT, None)
        data: bytes = model(nodes, inputs, [*outputs, sequence], opset=17).SerializeToString()
        return data

    assert runtime.measure_difference(made("Add"), made("Add")) == 0
    assert runtime.measure_difference(made("Add"), made("Add"), default=True) == 0
    assert (runtime.measure_difference(made("Add"), made("Sub")) or 0) > 1


def test_what_a_scan_holds_before_its_body_counts(tmp_path: Path) -> None:
    """Tests that the arena is empty before the operator that begins first, not that ends first."""
    body = onnx.helper.make_graph(
        [node("Add", "s i", "t"), node("Mul", "t i", "o")],
        "body",
        [value("s", [64]), value("i", [64])],
        [value("t", [64]), value("o", [64])],
    )
    nodes = [node("Scan", "f x", "l r", body=body, num_scan_inputs=1), node("Relu", "r", "y")]
    inputs = [value("x", [8, 64]), value("f", [64])]
    path = tmp_path / "scan.onnx"
    onnx.save(model(nodes, inputs, [value("y", None), value("l", None)], opset=17), path)
    held = runtime.measure_file(path, {"x": (8, 64), "f": (64,)}, default=True)
    assert held is not None
    assert held.once[0] == (64 + 2 * 8 * 64) * 4

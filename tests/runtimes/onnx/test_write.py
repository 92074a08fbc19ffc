"""Tests of ONNX models that are written in another order: the files, and what onnxruntime does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
import numpy as np
import onnx
from onnx_models import BOOL, FLOAT, graph, in_wheel, light, model, node, value, weight
from ort_orders import random_model, run, two_branches
from typer.testing import CliRunner

from memplan.base.errors import FormatError
from memplan.base.notes import Code
from memplan.cli import app, main
from memplan.problem.plan import Status
from memplan.programs.sources import load
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx import measure as yardstick
from memplan.runtimes.onnx.read import read
from memplan.runtimes.onnx.write import writer as target

pytestmark = pytest.mark.slow


def saved(made: Any, folder: Path) -> Path:
    """Return the path of a model that was written."""
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def names(path: Path) -> list[str]:
    """Return the first result of every operator of the outermost graph, in the order of a file."""
    return [each.output[0] for each in onnx.load(path, load_external_data=False).graph.node]


def test_the_measured_peak_falls_as_said(tmp_path: Path) -> None:
    """Tests the arena of onnxruntime in the order of both files, and in its own: bit-equal."""
    runtime = pytest.importorskip("onnxruntime")
    path, out = saved(two_branches(), tmp_path), tmp_path / "ordered.onnx"
    found = target.reorder(path, out, fused=False)
    assert found.status is Status.OPTIMAL
    for file, peak in ((path, found.given_peak), (out, found.peak)):
        held = yardstick.measure_file(file, {"x": (256, 64)}, default=False)
        assert held is not None
        assert held.requested == peak
    default = yardstick.measure(path, Options())
    assert default is not None
    own = load(path, runtime_order=True).problem.max_load
    unit = 256 * 64 * 4
    assert (found.given_peak, own, found.peak) == (13 * unit, 11 * unit, 9 * unit)
    assert default.bytes > own  # its own places have gaps
    assert f"{found.given_peak + 256} and" in default.what
    feeds = {"x": np.random.default_rng(0).normal(size=(256, 64)).astype(np.float32)}
    results = [
        run(file, feeds, order)[1]
        for file in (path, out)
        for order in runtime.ExecutionOrder.__members__.values()
        if order != runtime.ExecutionOrder.MEMORY_EFFICIENT
    ]
    assert all(np.array_equal(each[0], results[0][0]) for each in results)


def test_a_real_network_needs_less(tmp_path: Path) -> None:
    """Tests basic-pitch: less load, and less with the settings that are said."""
    pytest.importorskip("onnxruntime")
    options = Options(dims={"unk__749": 1})
    path = in_wheel("basic_pitch", "saved_models/icassp_2022/nmp.onnx")
    out = tmp_path / "ordered.onnx"
    found = target.reorder(path, out, options, fused=False)
    assert (found.given_peak, found.peak, found.bound) == (4_843_520, 4_177_920, 4_177_920)
    shapes = yardstick.find_shapes(load(path, dims=options.dims))
    held = [yardstick.measure_file(file, shapes, default=False) for file in (path, out)]
    before, after = (each.requested for each in held if each is not None)
    assert after < 0.95 * before


@pytest.mark.parametrize("name", ["light_shufflenet", "light_squeezenet"])
def test_only_operators_change_places(name: str, tmp_path: Path) -> None:
    """Tests that all bytes are there, and that a best file stays as it is."""
    path, out = light(name), tmp_path / "ordered.onnx"
    found = target.reorder(path, out, fused=False)
    before, after = onnx.load(path), onnx.load(out)
    assert before.ByteSize() == after.ByteSize()
    assert (out.read_bytes() == path.read_bytes()) == (not found.moved)
    order = [found.graph.tensors[each.outputs[0]].name for each in found.graph.operators]
    assert [each for each in names(out) if each in set(order)] == order
    for one in (before, after):
        one.graph.node.sort(key=lambda each: each.output[0])
    assert before == after


def test_random_models_run_in_the_order_of_their_new_files(tmp_path: Path) -> None:
    """Tests what onnxruntime runs of twenty random models, and that results are bit-equal."""
    runtime = pytest.importorskip("onnxruntime")
    feeds = {"x": np.array([0.5, -1, 2, 0], np.float32)}
    moved = 0
    for seed in range(20):
        path, out = saved(random_model(random.Random(seed)), tmp_path), tmp_path / "ordered.onnx"
        found = target.reorder(path, out, fused=False)
        kept = runtime.ExecutionOrder.PRIORITY_BASED
        order, results = run(out, feeds, kept)
        assert order == [operator.name for operator in found.graph.operators]
        for one, other in zip(results, run(path, feeds, kept)[1], strict=True):
            assert np.array_equal(one, other, equal_nan=True)
        assert found.peak <= found.given_peak
        moved += bool(found.moved)
    assert moved > 5


def test_operators_with_graphs_move_as_a_whole(tmp_path: Path) -> None:
    """Tests branches that read tensors from outside, with equal names in both."""
    pytest.importorskip("onnxruntime")
    bodies = {
        f"{kind}_branch": graph(
            [node("Exp" if kind == "then" else "Neg", "d", "t"), node("Abs", "t", f"{kind}_out")],
            outputs=[value(f"{kind}_out", [512, 64])],
        )
        for kind in ("then", "else")
    }
    made = two_branches()
    made.graph.input.append(value("flag", [1], BOOL))
    made.graph.node.insert(4, node("If", "flag", "f", **bodies))
    made.graph.node[5].input[1] = "f"
    path, out = saved(made, tmp_path), tmp_path / "ordered.onnx"
    found = target.reorder(path, out, fused=False)
    assert found.peak < found.given_peak
    assert load(out).problem.max_load == found.peak
    x = np.ones((256, 64), np.float32)
    for flag in (True, False):
        feeds = {"x": x, "flag": np.array([flag])}
        assert np.array_equal(run(path, feeds)[1][0], run(out, feeds)[1][0])


def test_weights_in_another_file_stay_there(tmp_path: Path) -> None:
    """Tests a model whose weights are missing: the order needs none of them."""
    made = two_branches()
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((256, 64)), "w"))
    onnx.external_data_helper.convert_model_to_external_data(
        made, location="w", size_threshold=1024
    )
    path, out = saved(made, tmp_path), tmp_path / "ordered.onnx"
    found = target.reorder(path, out, fused=False)
    assert found.moved
    assert not (tmp_path / "w").exists()
    after = onnx.load(out, load_external_data=False)
    assert list(after.graph.initializer) == list(made.graph.initializer)


@pytest.mark.parametrize("wrong", ["cycle", "garbage", "two graphs"])
def test_nothing_is_written_for_a_bad_file(wrong: str, tmp_path: Path) -> None:
    """Tests one sentence, and no file."""
    made = two_branches()
    if wrong == "cycle":
        made.graph.node[0].input[0] = "c"
    path, out = saved(made, tmp_path), tmp_path / "ordered.onnx"
    if wrong == "garbage":
        path.write_bytes(path.read_bytes()[:-9])
    elif wrong == "two graphs":
        more = onnx.ModelProto(graph=onnx.GraphProto(doc_string="x"))
        path.write_bytes(path.read_bytes() + more.SerializeToString())
    with pytest.raises(FormatError, match=r"model\.onnx"):
        target.reorder(path, out, fused=False)
    assert not out.exists()


def test_the_command_line_writes_the_order(tmp_path: Path) -> None:
    """Tests `apply --order`, what it says of onnxruntime, and what it refuses."""
    path, out = saved(two_branches(), tmp_path), tmp_path / "ordered.onnx"
    cli = CliRunner()
    answer = cli.invoke(app, ["apply", str(path), "-o", str(out), "--order", "--no-fused"])
    assert answer.exit_code == 0, answer.output
    assert "PRIORITY_BASED" in answer.output
    assert load(out).problem.max_load == 9 * 256 * 64 * 4
    for option in (["--capacity", "1MiB"], ["--c-header", f"{out}.h"], ["--alignment", "64"]):
        refused = cli.invoke(
            app, ["apply", str(path), "-o", str(out), "--order", "--no-fused", *option]
        )
        assert refused.exit_code == 2
    again = cli.invoke(app, ["plan", str(path), "--runtime-order", "--no-runtime"])
    assert again.exit_code == 0
    assert "order of its own" not in again.output


@pytest.mark.parametrize("option", ["--order", "--bands"])
def test_operators_that_are_not_sorted_are_written_sorted(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that onnxruntime's checker accepts what is written, and that a note says what moved."""
    branch = [node("Add", "p q", "r"), node("Neg", "x", "p"), node("Exp", "x", "q")]
    branches = {
        "then_branch": graph(branch, outputs=[value("r", [4])]),
        "else_branch": graph([node("Abs", "x", "r")], outputs=[value("r", [4])]),
    }
    nodes = [node("Neg", "z", "y"), node("If", "c", "z", **branches)]
    made = model(nodes, [value("x", [4]), value("c", [], BOOL)], [value("y", [4])])
    path, out = saved(made, tmp_path), tmp_path / "sorted.onnx"
    words = ["apply", str(path), "-o", str(out), option, "--no-fused"]
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "operators come before those that they read from, and are sorted" in shown
    written = onnx.load(out)
    onnx.checker.check_model(written)
    assert [one.op_type for one in written.graph.node] == ["If", "Neg"]
    inner = onnx.helper.get_node_attr_value(written.graph.node[0], "then_branch")
    assert [one.op_type for one in inner.node] == ["Neg", "Exp", "Add"]
    assert main([*words, "--strict"]) == 2
    capsys.readouterr()
    assert main(["bands", str(path), "--json"]) == 0
    assert "operators-sorted" in capsys.readouterr().out


def test_functions_are_written_sorted(tmp_path: Path) -> None:
    """Tests that a function whose operators were not sorted runs in onnxruntime."""
    body = [node("Add", "a b", "r"), node("Neg", "x", "a"), node("Exp", "x", "b")]
    opset = onnx.helper.make_opsetid("", 18)
    function = onnx.helper.make_function("d", "F", ["x"], ["r"], body, [opset])
    call = onnx.helper.make_node("F", ["x"], ["z"], domain="d")
    nodes = [call, node("Neg", "z", "y")]
    made = model(nodes, [value("x", [4])], [value("y", [4])], functions=[function])
    made.opset_import.add(domain="d", version=1)
    path, out = saved(made, tmp_path), tmp_path / "sorted.onnx"
    target.reorder(path, out, fused=False)
    (found,) = onnx.load(out).functions
    assert [one.op_type for one in found.node] == ["Neg", "Exp", "Add"]
    runtime = pytest.importorskip("onnxruntime")
    (result,) = runtime.InferenceSession(out).run(None, {"x": np.zeros(4, np.float32)})
    assert result.tolist() == [-1.0] * 4


@pytest.mark.parametrize("option", ["--order", "--bands"])
def test_sizes_are_given_for_a_model_that_is_written(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests a model whose pictures have open sides, named by nothing but a question mark."""
    kernel = weight("k", [8, 3, 3, 3])
    nodes = [node("Conv", "x k", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "y")]
    made = model(nodes, [value("x", [1, 3, "?", "?"])], [value("y", [1, 8, "P", "Q"])], [kernel])
    path, out = saved(made, tmp_path), tmp_path / "out.onnx"
    for dims in (["?=64"], ["x:2=64", "x:3=64"]):
        words = ["apply", str(path), "-o", str(out), option, "--no-fused"]
        assert main([*words, *(word for one in dims for word in ("--dim", one))]) == 0
        assert "262,144 bytes" in capsys.readouterr().out
        assert names(out) == ["c", "y"]
        out.unlink()
    assert main(words) == 2
    assert not out.exists()


@pytest.mark.parametrize("key", ["found", "nz:1"])
def test_sizes_that_depend_on_data_are_given_for_bands(key: str, tmp_path: Path) -> None:
    """Tests a detector of open sides: what the bands read again knows all sizes of the first."""
    nodes = [
        node("Conv", "x k", "a", pads=[1, 1, 1, 1]),
        node("MaxPool", "a", "b", kernel_shape=[4, 4], strides=[4, 4]),
        node("Flatten", "b", "f"),
        node("NonZero", "f", "nz"),
        node("Cast", "nz", "y", to=FLOAT),
    ]
    inputs = [value("x", [1, 3, "H", "W"])]
    made = model(nodes, inputs, [value("y", [2, "found"])], [weight("k", [8, 3, 3, 3])])
    path, out = saved(made, tmp_path), tmp_path / "bands.onnx"
    sizes = {"H": 64, "W": 64, key: 100}
    words = [word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")]
    assert main(["apply", str(path), "-o", str(out), "--bands", "--no-fused", *words]) == 0
    assert sum(one.op_type == "Conv" for one in onnx.load(out).graph.node) > 1


def test_a_note_says_that_the_runtime_has_another_order(tmp_path: Path) -> None:
    """Tests the note, and that it is not there for what the runtime does run."""
    path = saved(two_branches(), tmp_path)
    assert [note.code for note in read(path, Options()).notes] == [Code.ORDER_OF_RUNTIME]
    assert not read(path, Options(runtime_order=True)).notes
    same = light("light_squeezenet")
    assert read(same, Options()).notes == ()


def at_the_edges() -> dict[str, Any]:
    """Return models without an operator, with one, without elements, and with any names."""
    ends = [value("x", [4])], [value("y", [4])]
    empty = [value("x", [0, 4])], [value("y", [0, 4])]
    odd = ["in put", 'a"b', "*/", "漢字", "x" * 300, "\\u0041", "line\nbreak", "-o"]
    last = ["z", "q w"]
    wide = [
        onnx.helper.make_node("Concat", [odd[0]] * 8, [name], name, axis=0) for name in odd[1:5]
    ]
    sums = [
        onnx.helper.make_node("ReduceSum", [one], [other], keepdims=0)
        for one, other in zip(odd[1:5], [*odd[5:], last[0]], strict=True)
    ]
    joined = onnx.helper.make_node("Sum", [*odd[5:], last[0]], [last[1]])
    return {
        "nothing": model([], [value("x", [4])], [value("x", [4])]),
        "one": model([node("Relu", "x", "y")], *ends),
        "no elements": model([node("Relu", "x", "a"), node("Tanh", "a", "y")], *empty),
        "names": model([*wide, *sums, joined], [value(odd[0], [64, 4])], [value(last[1], [])]),
    }


@pytest.mark.parametrize("options", [["--order"], ["--recompute", "-c", "1MiB"], ["--bands"]])
def test_models_at_the_edges_run(tmp_path: Path, options: list[str]) -> None:
    """Tests bits of what `apply` writes of them, and what it writes again of that."""
    for name, made in at_the_edges().items():
        path, out = saved(made, tmp_path), tmp_path / "out.onnx"
        feeds = {
            each.name: np.ones([one.dim_value for one in each.type.tensor_type.shape.dim], "f4")
            for each in made.graph.input
        }
        for given in (path, out):
            again = tmp_path / "again.onnx"
            assert main(["apply", str(given), "-o", str(again), *options]) == 0, name
            again.replace(out)
            for one, other in zip(run(out, feeds)[1], run(path, feeds)[1], strict=True):
                assert one.tobytes() == other.tobytes()

"""Tests that sessions of onnxruntime with default settings keep what is written for them."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx
import onnxruntime
from onnx_models import LIGHT, WHEELS, in_wheel, light, model, node, value
from onnx_networks import Builder
from ort_orders import two_branches

from memplan.base.errors import MemplanError
from memplan.base.notes import Code
from memplan.cli import main
from memplan.levers.pipeline import arrange
from memplan.programs.sources import load
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.measure import Held, find_shapes, measure_difference, measure_file
from memplan.runtimes.onnx.read import fused as fusing
from memplan.runtimes.onnx.read import read_bytes
from memplan.runtimes.onnx.read.fused import fuse
from memplan.runtimes.onnx.write import put_in_bands, reorder
from memplan.runtimes.onnx.write import writer as targets_onnx
from memplan.runtimes.onnx.write.hold import hold
from memplan.runtimes.onnx.write.writer import HOW_TO_RUN, OnnxFile

pytestmark = pytest.mark.slow


def saved(made: Any, folder: Path, name: str = "model.onnx") -> Path:
    """Return the path of a model that was written."""
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path


def _weight(name: str, *shape: int) -> Any:
    values = np.random.default_rng(len(name)).normal(size=shape) / 8
    return onnx.numpy_helper.from_array(values.astype(np.float32), name)


def gate(size: int = 48) -> Any:
    """Return convolutions of which the first result is read again at the end."""
    nodes, weights, last = [], [], "x"
    for name, given, made, kernel in (
        ("a", 3, 32, 1), ("b", 32, 32, 3), ("c", 32, 32, 3), ("c3", 32, 32, 3), ("d", 32, 1, 1)
    ):  # fmt: skip
        weights.append(_weight(f"{name}_w", made, given, kernel, kernel))
        nodes.append(node("Conv", f"{last} {name}_w", name, pads=[kernel // 2] * 4))
        last = name
    weights.append(_weight("y_w", 2, 32, 3, 3))
    nodes += [node("Mul", "a d", "m"), node("Conv", "m y_w", "y", pads=[1] * 4)]
    given, made = value("x", [1, 3, size, size]), value("y", [1, 2, size, size])
    return model(nodes, [given], [made], weights, opset=17)


def products(width: int = 128) -> Any:
    """Return products of matrices, of which the first one is fused with an addition."""
    weights = [_weight("wa", 16, width), _weight("ba", width), _weight("wd", width, 1)]
    nodes = [node("MatMul", "x wa", "a0"), node("Add", "a0 ba", "a")]
    last = "a"
    for at in range(3):
        weights.append(_weight(f"w{at}", width, width))
        nodes.append(node("MatMul", f"{last} w{at}", f"h{at}"))
        last = f"h{at}"
    nodes += [node("MatMul", f"{last} wd", "d"), node("Mul", "a d", "y")]
    return model(nodes, [value("x", [width, 16])], [value("y", [width, width])], weights, opset=17)


def needs(path: Path, given: Path | None = None, **dims: int) -> int:
    """Return what a default session needs without a memory pattern, with the scratch of kernels.

    `given` is the model that the file was made of.
    """
    held = measure_file(path, find_shapes(load(given or path, dims=dims)), default=True)
    assert held is not None
    return held.once[1]


@pytest.mark.parametrize(("made", "share"), [(gate, 0.75), (products, 0.9)])
def test_operators_run_again_where_the_file_says(made: Any, share: float, tmp_path: Path) -> None:
    """Tests re-runs, which an optimization makes one run of, in a session with default settings."""
    path, out = saved(made(), tmp_path), tmp_path / "again.onnx"
    given = needs(path)
    asked = partial(arrange, in_place=True, order=True, again=True)
    found = asked(OnnxFile(path, takes_offsets=False), capacity=int(share * given))
    assert found.fits
    assert found.again is not None
    assert found.best.written.how.startswith("measured")
    assert "default settings" in found.best.written.run
    assert found.comparison is not None
    assert found.comparison.difference == 0
    out.write_bytes(found.data)
    assert needs(out) <= found.arena <= share * given
    assert measure_difference(path, out, default=True) == 0
    assert measure_difference(path, out) is not None  # also sessions that optimize nothing run it


def test_bands_are_kept(tmp_path: Path) -> None:
    """Tests convolutions in bands, whose pictures may be in blocks of channels."""
    path, out = saved(gate(32), tmp_path), tmp_path / "bands.onnx"
    found = put_in_bands(path, out, max_extra=0.2)
    assert found.comparison is not None
    assert found.comparison.difference == 0
    assert needs(out, path) <= found.arena < 0.4 * needs(path)
    again = load(out)
    assert again.problem.max_load <= found.arena + 4096
    assert [note for note in again.notes if note.code is not Code.ORDER_OF_RUNTIME] == []


def test_an_order_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a model for which both the order of the file and the runtime's need more."""
    path, out = saved(two_branches(), tmp_path), tmp_path / "ordered.onnx"
    assert main(["apply", str(path), "-o", str(out), "--order"]) == 0
    shown = capsys.readouterr().out
    assert "run     with default settings" in shown or "enable_mem_pattern = False" in shown
    unit = 256 * 64 * 4
    assert needs(path) >= 11 * unit
    assert needs(out) <= 9 * unit + 512
    assert load(out, runtime_order=True).problem.max_load == 9 * unit
    assert measure_difference(path, out, default=True) == 0
    # What was written can be read, and written once more.
    assert main(["apply", str(out), "-o", str(tmp_path / "twice.onnx"), "--order"]) == 0
    assert needs(tmp_path / "twice.onnx", path) <= 9 * unit + 512


def test_memory_is_not_kept_for_others_of_its_size(tmp_path: Path) -> None:
    """Tests a file whose order is the best one: the runtime gives memory away only as planned."""
    nodes, count = [node("Exp", "x", "t0")], 6
    for at in range(count):  # the memory of t0 waits for the next tensor of its shape
        nodes += [node("Concat", f"t{at} t{at}", f"u{at}", axis=0)]
        nodes += [
            node("Slice", f"u{at} zero one", f"v{at}"),
            node("Tile", f"v{at} two", f"t{at + 1}"),
        ]
    weights = [
        onnx.numpy_helper.from_array(np.array(numbers), name)
        for name, numbers in (("zero", [0]), ("one", [2]), ("two", [32, 1]))
    ]
    made = model(nodes, [value("x", [64, 256])], [value(f"t{count}", [64, 256])], weights)
    path, out = saved(made, tmp_path), tmp_path / "held.onnx"
    reorder(path, out)
    assert needs(out) <= needs(path)
    assert measure_difference(path, out, default=True) == 0


def test_random_networks_in_bands_compute_the_same(tmp_path: Path) -> None:
    """Tests bands of what onnxruntime makes of random networks, in default sessions."""
    found = 0
    for seed in range(6):
        builder = Builder(random.Random(seed))
        for _ in range(6):
            builder.add()
        path = saved(builder.model(), tmp_path)
        writer = OnnxFile(path, takes_offsets=False)
        try:
            made = arrange(writer, in_place=True, bands=True, max_extra=5.0, exact=False)
        except MemplanError:
            continue
        if made.comparison is not None:
            assert made.comparison.difference < 1e-4
            found += 1
    assert found > 2


def test_other_processors_refuse_the_file(tmp_path: Path) -> None:
    """Tests that a file with weights for blocks of other channels computes nothing."""
    fused = fuse(saved(gate(), tmp_path))
    if not fused.block:
        pytest.skip("onnxruntime has no kernels for blocks of channels on this machine")
    graph = read_bytes(fused.data, tmp_path, Options()).graph
    assert graph is not None
    feeds = {"x": np.zeros((1, 3, 48, 48), np.float32)}
    for block in (fused.block, 24 - fused.block):
        data = hold(fused.data, graph, block=block, is_open=True)
        session = onnxruntime.InferenceSession(data)
        if block == fused.block:
            assert session.run(None, feeds)[0].shape == (1, 2, 48, 48)
            continue
        with pytest.raises(Exception, match=f"processors with blocks of {block} channels"):
            session.run(None, feeds)


def test_without_the_library_the_settings_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that nothing measured is promised where nothing was measured."""
    monkeypatch.setattr(fusing, "find_spec", lambda name: None)
    path, out = saved(two_branches(), tmp_path), tmp_path / "ordered.onnx"
    assert main(["apply", str(path), "-o", str(out), "--order"]) == 0
    shown = capsys.readouterr().out
    assert f"run     {HOW_TO_RUN}" in shown
    assert "not measured" in shown
    assert main(["plan", str(path), "--fused", "--no-runtime"]) == 2
    assert "install" in capsys.readouterr().err


def test_the_fused_model_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `--fused`: the note that asks for it, and what is planned then."""
    nodes, last = [], "x"
    weights = [_weight("w", 32, 32, 3, 3)]
    for at in range(2):  # an addition that is done in the memory of one of its inputs
        nodes += [
            node("Conv", f"{last} w", f"c{at}", pads=[1] * 4),
            node("Conv", f"c{at} w", f"d{at}", pads=[1] * 4),
            node("Add", f"{last} d{at}", f"e{at}"),
            node("Relu", f"e{at}", f"f{at}"),
        ]
        last = f"f{at}"
    nodes = [node("Conv", "i w", "x", pads=[1] * 4), *nodes, node("GlobalAveragePool", last, "y")]
    shape = [1, 32, 40, 40]
    path = saved(model(nodes, [value("i", shape)], [value("y", None)], weights), tmp_path)
    assert main(["plan", str(path)]) == 0
    shown = capsys.readouterr()
    assert "--read fused" in shown.out + shown.err
    plain, fused = load(path), load(path, fused=True)
    assert len(fused.problem) < len(plain.problem)
    least = min(load(path, fused=True, in_place=way).problem.max_load for way in (True, False))
    assert least < load(path, in_place=True).problem.max_load
    assert main(["plan", str(path), "--fused", "--in-place"]) == 0
    assert "--read fused" not in capsys.readouterr().err
    other = tmp_path / "p.csv"
    other.write_text("id,lower,upper,size\na,0,1,2\n")
    with pytest.raises(MemplanError, match="not an ONNX model"):
        load(other, fused=True)


def test_weights_in_other_files_are_fused_too(tmp_path: Path) -> None:
    """Tests that the fused model has all weights, wherever it is read."""
    path, out = tmp_path / "model.onnx", tmp_path / "other" / "ordered.onnx"
    onnx.save(gate(16), path, save_as_external_data=True, location="w.bin", size_threshold=16)
    assert len(load(path, fused=True).problem) > 0
    fused = onnx.load_from_string(fuse(path).data)
    assert not any(one.data_location for one in fused.graph.initializer)
    out.parent.mkdir()
    reorder(path, out)
    assert measure_difference(path, out, default=True) == 0
    alone = out.with_name("alone.onnx")
    alone.write_bytes(path.read_bytes())
    with pytest.raises(MemplanError, match="onnxruntime does not take the model"):
        load(alone, fused=True)


def test_a_run_that_takes_the_small_branch_promises_nothing_for_the_other(tmp_path: Path) -> None:
    """Tests that a measured figure says what the branch needs that did not run."""
    branches = {
        "then_branch": onnx.helper.make_graph(
            [node("Concat", "a a a a", "l", axis=0), node("ReduceSum", "l", "t")],
            "then",
            [],
            [value("t", None)],
        ),
        "else_branch": onnx.helper.make_graph(
            [node("ReduceSum", "a", "e")], "else", [], [value("e", None)]
        ),
    }
    flag = value("c", [], onnx.TensorProto.BOOL)
    nodes = [node("Exp", "x", "a"), node("If", "c", "z", **branches), node("Neg", "z", "y")]
    path = saved(model(nodes, [value("x", [64, 64]), flag], [value("y", None)], opset=17), tmp_path)
    found = arrange(OnnxFile(path, takes_offsets=False), in_place=True, order=True)
    assert found.arena < 5 * 64 * 64 * 4
    assert "with other data up to 8" in found.best.written.how


def test_memory_patterns_that_change_from_session_to_session_promise_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a pattern with gaps in the last session counts, though others had none."""
    nodes = [node("Exp", "x", "a"), node("MatMul", "a x", "b"), node("Neg", "b", "y")]
    path = saved(model(nodes, [value("x", [64, 64])], [value("y", None)], opset=17), tmp_path)
    asked = []

    def measure(file: Path, *_: Any, **__: Any) -> Held:
        asked.append(file.read_bytes())
        gaps = 80_000 * (asked.count(asked[-1]) == 3)
        return Held("1", {}, (40_000, 41_000), (40_000 + gaps, 41_000 + gaps))

    monkeypatch.setattr(targets_onnx, "measure_file", measure)
    found = arrange(OnnxFile(path, takes_offsets=False), in_place=True, order=True)
    held = {each.written.data: each.written for each in found.drafts}
    for data, written in held.items():
        rewritten = data != path.read_bytes()
        assert asked.count(data) == 3
        assert written.arena == (41_000 if rewritten else 121_000)
        assert ("mem_pattern" in written.run) == rewritten


REAL = [
    *((f"light/{name}", partial(light, name), {}) for name in LIGHT if "vgg" not in name),
    *((f"{package}/{Path(file).name}", partial(in_wheel, package, file), dims)
      for package, file, dims in WHEELS),
]  # fmt: skip


@pytest.mark.deep
@pytest.mark.parametrize(("find", "dims"), [each[1:] for each in REAL], ids=[e[0] for e in REAL])
def test_real_models_need_what_is_promised(find: Any, dims: dict[str, int], tmp_path: Path) -> None:
    """Tests each lever on models of wheels: what default sessions need, and that bits are equal."""
    path, out = find(), tmp_path / "out.onnx"
    shapes = find_shapes(load(path, dims=dims))
    given = measure_file(path, shapes, default=True)
    if given is None:  # `sr` of silero_vad.onnx chooses branches, which refuse 0 and 1 with 512
        found = arrange(OnnxFile(path, Options(dims=dims)), in_place=True, order=True)
        assert "not measured" in found.best.written.how
        return
    for lever in ({"order": True}, {"bands": True, "max_extra": 0.1}):
        writer = OnnxFile(path, Options(dims=dims), takes_offsets=False)
        found = arrange(writer, in_place=True, exact=True, **lever)
        out.write_bytes(found.data)
        held = measure_file(out, shapes, default=True)
        assert held is not None
        need = held.once if "mem_pattern" in found.best.written.run else held.both
        assert need[1] <= found.arena <= given.both[1]
        assert measure_difference(path, out, shapes, default=True) == 0

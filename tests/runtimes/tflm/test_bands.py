"""Tests of TFLite models in bands: arenas, outputs, plans, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tflite_models import WINDOW, floats, for_each_model

from memplan import load, solve, verify
from memplan.base.errors import MemplanError
from memplan.levers.pipeline import Arranged, Comparison
from memplan.levers.rewrite.bands import Region, Uncut, find_frontier
from memplan.runtimes.tflm.read.graph import graph_of
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo, parse
from memplan.runtimes.tflm.write import TfliteMicro, apply_in_bands, writer

pytest.importorskip("tflite_micro")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an int8 network with early feature maps that are large."""
    from memplan_lab.bench.int8_networks import mobilenet_v2

    path = tmp_path_factory.mktemp("bands") / "network.tflite"
    path.write_bytes(mobilenet_v2(96, width=0.35, classes=10))
    return path


@pytest.fixture(scope="module")
def smallest(network: Path, tmp_path_factory: pytest.TempPathFactory) -> Arranged:
    """Return that network in bands, with the smallest arena."""
    return apply_in_bands(network, tmp_path_factory.mktemp("bands") / "o.tflite")


def check(found: Arranged, model: Path, folder: Path) -> None:
    """Check a result: never worse, as predicted, the same bits, and a model that is read again."""
    assert found.arena <= found.plain.arena
    if found.point is None:
        return
    assert found.comparison is not None
    assert found.comparison.difference == 0
    plan = found.planned.plan
    assert plan.peak == found.best.written.details.after.bytes
    if found.planned.in_place:  # results over inputs need less than bands alone
        assert plan.peak == plan.lower_bound <= found.point.load
    else:
        assert plan.peak == found.point.load
    assert found.best.written.details.after.how == "measured"
    out = folder / "out.tflite"
    out.write_bytes(found.data)
    again = load(out)
    found_again = solve(again.problem)
    verify(again.problem, found_again)
    assert found_again.peak == plan.peak
    main = parse(found.data, "out").subgraphs[0]
    touched = {i for o in main.operators for i in (*o.inputs, *o.outputs)}
    assert {*range(len(main.tensors))} <= touched | {*main.inputs, *main.outputs}


def test_a_network_in_int8(network: Path, smallest: Arranged, tmp_path: Path) -> None:
    """Tests a MobileNetV2 of 96 pixels: less than half of the head of TFLM's arena."""
    found = smallest
    check(found, network, tmp_path)
    assert found.extra <= 0.1
    assert found.best.written.details.after.bytes < found.best.written.details.before.bytes / 2


# The smallest arenas of two networks in float, which TFLM's plan needs twice.
SMALLEST = {"face_detection_short_range.tflite": 640_000, "face_landmark.tflite": 1_020_000}


@pytest.mark.deep
@for_each_model()
def test_every_model_of_the_wheels(path: Path | None, tmp_path: Path) -> None:
    """Tests that bands are never worse, in place or not, and give the same bits."""
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    if not any(step.reads for step in load(path).graph.operators):
        pytest.skip("this model has no pictures")
    for in_place in (False, True) if path.stat().st_size < 210_000 else (False,):
        found = apply_in_bands(path, tmp_path / "o.tflite", in_place=in_place)
        check(found, path, tmp_path)
        assert found.arena is not None
        assert found.arena <= SMALLEST.get(path.name, found.arena)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "share"),
    [("mobilenet_v2", 0.1), ("mcunet", 0.3), ("mnasnet", 0.1), ("proxyless", 0.3)],
)
def test_int8_networks(name: str, share: float, tmp_path: Path) -> None:
    """Tests networks of 128 pixels within 10 % or 30 % more work."""
    from memplan_lab.bench.int8_networks import NETWORKS

    model = tmp_path / "network.tflite"
    model.write_bytes(NETWORKS[name](128))
    found = apply_in_bands(model, tmp_path / "o.tflite", max_extra=share)
    check(found, model, tmp_path)
    assert found.extra <= share
    assert found.arena < found.plain.arena


def test_the_least_work_within_an_arena(network: Path, smallest: Arranged, tmp_path: Path) -> None:
    """Tests that a budget is met with less work than the smallest arena takes."""
    out = tmp_path / "o.tflite"
    budget = (smallest.arena + smallest.plain.arena) // 2
    found = apply_in_bands(network, out, capacity=budget)
    check(found, network, tmp_path)
    assert smallest.arena <= found.arena <= budget
    assert found.point is not None
    assert smallest.point is not None
    assert found.point.work < smallest.point.work
    whole = apply_in_bands(network, out, capacity=smallest.plain.arena)
    assert whole.point is None
    assert whole.data == smallest.plain.written.data


def test_an_arena_that_cannot_be_met(network: Path, tmp_path: Path) -> None:
    """Tests that the error names the smallest arena, and what holds it up."""
    with pytest.raises(
        MemplanError, match=r"smallest arena found has \d+ bytes with at most 1% more work, .* hold"
    ):
        apply_in_bands(network, tmp_path / "o.tflite", capacity=10_000, max_extra=0.01)


@pytest.mark.parametrize(
    ("comparison", "sentence"),
    [
        (Comparison(0.5, 1.0), "outputs differ from those of the model by up to 0.5"),
        (None, "were not compared"),
    ],
)
def test_outputs_that_are_not_the_same(
    network: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    comparison: Comparison | None,
    sentence: str,
) -> None:
    """Tests that other outputs are refused, unless they are allowed."""
    monkeypatch.setattr(writer, "compare_results", lambda *_: comparison)
    out = tmp_path / "o.tflite"
    with pytest.raises(MemplanError, match=sentence):
        apply_in_bands(network, out, max_extra=0.01)
    assert apply_in_bands(network, out, max_extra=0.01, allow_inexact=True).point is not None
    assert not out.exists()


def picture(name: str, *shape: int, **more: Any) -> TensorInfo:
    """Return a tensor of float32 with rows and columns."""
    return floats(name, *shape, **more)


@pytest.mark.parametrize(
    ("operator", "tensors", "why"),
    [
        (
            OperatorInfo("RELU", (0,), (1,)),
            (picture("a", 4, 8, 8, 2), picture("b", 4, 8, 8, 2)),
            "a batch of 4",
        ),
        (
            OperatorInfo("RELU", (0,), (1,)),
            (picture("a", 8, 2), picture("b", 8, 2)),
            "no rows and columns",
        ),
        (
            OperatorInfo("RESHAPE", (0,), (1,)),
            (picture("a", 1, 8, 8, 2), picture("b", 1, 4, 16, 2)),
            "it mixes all rows",
        ),
        (
            OperatorInfo("CUMSUM", (0,), (1,)),
            (picture("a", 1, 8, 8, 2), picture("b", 1, 8, 8, 2)),
            "does not know which rows of its inputs CUMSUM needs",
        ),
        (
            OperatorInfo("MAX_POOL_2D", (0,), (1,)),
            (picture("a", 1, 8, 8, 2), picture("b", 1, 4, 4, 2)),
            "does not have its options",
        ),
        (
            OperatorInfo("PAD", (0, 1), (2,)),
            (picture("a", 1, 8, 8, 2), picture("n", 8), picture("b", 1, 9, 9, 2)),
            "known only at run time",
        ),
        (
            OperatorInfo("CONV_2D", (0, 1), (2,), options=WINDOW),
            (picture("a", 1, 8, 8, 2), picture("w", 2, 3, 3, 2), picture("b", 1, 8, 8, 2)),
            "its weights are not in the file",
        ),
        (
            OperatorInfo("FULLY_CONNECTED", (0, 0), (1,)),
            (picture("a", 1, 8, 8, 2), picture("b", 1, 8, 8, 2)),
            "it reads a picture as a weight",
        ),
    ],
)
def test_what_ends_a_region(
    operator: OperatorInfo, tensors: tuple[TensorInfo, ...], why: str
) -> None:
    """Tests the reasons for which an operator is done as a whole."""
    inputs = tuple(i for i in operator.inputs if i >= 0)
    main = SubGraph("main", tensors, (operator,), inputs, operator.outputs)
    model = Model("model", (main,))
    (step,) = graph_of(model).operators
    assert why in step.why_whole
    assert len(find_frontier(Uncut(graph_of(model))).points) == 1


def test_open_dimensions_are_those_of_the_file(network: Path) -> None:
    """Tests that a model whose dimensions are open (-1) is refused before the work."""
    stored = parse(network.read_bytes(), "network")
    main = stored.subgraphs[0]
    open_ = replace(main.tensors[main.inputs[0]], shape=(-1, 96, 96, 3), open_axes=(0,))
    tensors = tuple(open_ if i == main.inputs[0] else t for i, t in enumerate(main.tensors))
    model = replace(stored, subgraphs=(replace(main, tensors=tensors),))
    with pytest.raises(MemplanError, match="no size along dimension 0"):
        graph_of(model)


def _pin(model: Model, offsets: dict[str, int]) -> Model:
    names = [tensor.name for tensor in model.subgraphs[0].tensors]
    return replace(model, offsets=tuple(offsets.get(name, -1) for name in names))


def _joined() -> Model:
    tensors = (
        picture("x", 1, 4, 4, 4),
        picture("a", 1, 4, 4, 4),
        picture("b", 1, 4, 4, 4),
        picture("y", 1, 8, 4, 4),
        picture("z", 1, 8, 4, 4),
    )
    operators = (
        OperatorInfo("RELU", (0,), (1,)),
        OperatorInfo("ABS", (0,), (2,)),
        OperatorInfo("CONCATENATION", (1, 2), (3,), options={"axis": 1}),
        OperatorInfo("NEG", (3,), (4,)),
    )
    return Model("joined", (SubGraph("main", tensors, operators, (0,), (4,)),))


def test_parts_at_their_places_are_views() -> None:
    """Tests a file whose offsets put both inputs of a join at their places in the result."""
    found = graph_of(_pin(_joined(), {"a": 1024, "b": 1280, "y": 1024, "x": 0, "z": 0}))
    assert {(view.tensor, view.base, view.offset) for view in found.views} == {
        (1, 3, 0),
        (2, 3, 256),
    }


@pytest.mark.parametrize("offsets", [{"a": 1040, "b": 1280}, {"a": 1024, "b": 1024}, {"a": 1024}])
def test_parts_at_other_places_are_no_views(offsets: dict[str, int]) -> None:
    """Tests that a part elsewhere stays a tensor of its own, and an overlap of both is seen."""
    model = _pin(_joined(), {**offsets, "y": 1024, "x": 0, "z": 2048})
    views = {view.tensor for view in graph_of(model).views}
    right = {"a": 1024, "b": 1280}
    names = {"a": 1, "b": 2}
    assert views == {names[n] for n, at in offsets.items() if right[n] == at}


def test_a_slice_that_is_overwritten_is_seen() -> None:
    """Tests that a result over a slice in its picture is no view while the picture is read."""
    tensors = (
        picture("x", 1, 8, 4, 4),
        TensorInfo("begin", "int32", (4,), data=16, values=(0, 4, 0, 0)),
        TensorInfo("size", "int32", (4,), data=16, values=(1, 4, 4, 4)),
        picture("s", 1, 4, 4, 4),
        picture("r", 1, 4, 4, 4),
        picture("y", 1, 8, 4, 4),
    )
    operators = (
        OperatorInfo("SLICE", (0, 1, 2), (3,)),
        OperatorInfo("RELU", (3,), (4,)),
        OperatorInfo("CONCATENATION", (4, 3), (5,), options={"axis": 1}),
        OperatorInfo("NEG", (0,), (0,)),
    )
    main = SubGraph("main", tensors, operators[:3], (0,), (5, 0))
    pins = {"x": 0, "s": 256, "r": 256, "y": 1024}
    found = graph_of(_pin(Model("m", (main,)), pins))
    assert {view.tensor for view in found.views} == {3}


def test_bands_keep_the_signatures(network: Path, tmp_path: Path) -> None:
    """Tests that the inputs and outputs which a signature names are those of the new file."""
    schema: Any = pytest.importorskip(
        "tflite_micro.tensorflow.lite.micro.python.schema_py_generated"
    )
    import flatbuffers

    tree = schema.ModelT.InitFromPackedBuf(network.read_bytes(), 0)
    main = tree.subgraphs[0]
    signature = schema.SignatureDefT()
    signature.signatureKey = b"serving"
    signature.subgraphIndex = 0
    for field, indices in (("inputs", main.inputs), ("outputs", main.outputs)):
        entry = schema.TensorMapT()
        entry.name, entry.tensorIndex = field.encode(), int(indices[0])
        setattr(signature, field, [entry])
    tree.signatureDefs = [signature]
    builder = flatbuffers.Builder(0)
    builder.Finish(tree.Pack(builder), b"TFL3")
    model = tmp_path / "signed.tflite"
    model.write_bytes(bytes(builder.Output()))
    found = apply_in_bands(model, tmp_path / "o.tflite")
    assert found.point is not None
    new = schema.ModelT.InitFromPackedBuf(found.data, 0)
    (kept,) = new.signatureDefs
    assert kept.inputs[0].tensorIndex == new.subgraphs[0].inputs[0]
    assert kept.outputs[0].tensorIndex == new.subgraphs[0].outputs[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda program: Region(0, len(program.operators), (2, 1)),
        lambda program: Region(0, 3, (1000, 1)),
    ],
)
def test_regions_that_cannot_be_cut(network: Path, make: Callable[[Any], Region]) -> None:
    """Tests that a region with an operator as a whole, or too many bands, is refused."""
    from memplan.levers.rewrite.bands import cut

    file = TfliteMicro(network)
    program = file.uncut(file.open())
    with pytest.raises(ValueError, match=r"mixes all rows|no rows|more bands"):
        cut(program, [make(program)])

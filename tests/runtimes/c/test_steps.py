"""Tests of headers for C that run random networks: every byte that is read has its right writer."""

from __future__ import annotations

import importlib
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rounds import rounds

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tflite_micro")
import onnxruntime
import steps_onnx
import steps_tflite
import tflite_networks
from steps_in_c import Batch, Network, check_command, compile_runtime, draw_bands
from steps_tflite import add_conv
from tflite_networks import File, Value

from memplan.levers.rewrite import reorder_to_plan
from memplan.levers.rewrite.bands import Uncut
from memplan.programs.sources import load, of_graph
from memplan.runtimes.c.header import write_header
from memplan.runtimes.c.writer import CHeader
from memplan.runtimes.tflm.operators import TABLE
from memplan.solvers.planning import plan_model

pytestmark = pytest.mark.slow

tflm: Any = importlib.import_module("tflite_micro").runtime

STEEP = {
    *("CEIL", "DIV", "EXP", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "LOG", "ROUND", "RSQRT", "SQRT"),
    *("Ceil", "Div", "Exp", "Floor", "Round", "Sign"),
}
NODES = 2_000  # of the search for a plan: any plan will do


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled kernels."""
    return compile_runtime(tmp_path_factory.mktemp("steps"))


def load_program(path: Path) -> Uncut:
    """Return the program of a file for kernels of one's own."""
    writer = CHeader(load(path))
    return writer.uncut(writer.open())


def add(batch: Batch, number: int, network: Network, rng: random.Random, path: Path) -> str:
    """Add a network with a header of one kind to a batch, and return the kind."""
    path.write_bytes(network.data)
    loaded = load(path)
    assert loaded.graph is not None
    name, in_place = f"p{number}", rng.random() < 0.4
    how = rng.choice(("bands", "bands", "bands", "bands", "order", "plain"))
    if how == "bands":
        program = load_program(path)
        network.check(loaded.graph, program)
        found = draw_bands(rng, program)
        if found is not None:
            read = of_graph(found.graph())
            planned = plan_model(read, in_place=in_place, nodes=NODES)
            header = write_header(planned.loaded, planned.plan, name=name, bands=found)
            batch.add(network, loaded.graph, header, ["STEPS"])
            return "columns" if any(r.bands[1] > 1 for r in found.regions) else "rows"
        how = "plain"
    network.check(loaded.graph, None)
    if how == "order":
        ordered = reorder_to_plan(loaded, in_place=in_place, states=NODES)
        planned = plan_model(ordered.loaded, in_place=in_place, nodes=NODES)
        header = write_header(planned.loaded, planned.plan, name=name, order=ordered.order)
        batch.add(network, loaded.graph, header, ["ORDER"])
        return "moved" if ordered.moved else "order"
    planned = plan_model(loaded, in_place=in_place, nodes=NODES)
    header = write_header(planned.loaded, planned.plan, name=name)
    batch.add(network, loaded.graph, header, [])
    return "plain"


def run_many(seed: int, count: int, folder: Path, runtime: Path) -> Counter[str]:
    """Run a batch of random networks by their headers, and return what they were."""
    rng, batch, counts = random.Random(seed), Batch(folder, runtime), Counter[str]()
    for number in range(count):
        draw: Any = steps_onnx if number % 2 else steps_tflite
        network: Network = draw.draw_network(rng)
        counts[add(batch, number, network, rng, folder / f"model.{network.suffix}")] += 1
        counts.update(network.kinds)
    for network, found in zip(batch.networks, batch.run(), strict=True):
        counts["compared"] += compare(network, found)
    return counts


def compare(network: Network, found: list[Any]) -> bool:
    """Compare results of the plain kernels with those of the format's own runtime, if it is exact.

    Kernels of whole numbers are other ones, and where a result jumps, the last bit decides.
    """
    if STEEP.intersection(network.kinds) or any(
        network.parts[op.result].dtype != "float32" for op in network.ops
    ):
        return False
    given = [network.parts[at].values.astype(np.float32) for at in network.inputs]
    expected = run_onnx(network, given) if network.is_nchw else run_tflite(network, given)
    if expected is None:
        return False
    for one, other in zip(found, expected, strict=True):
        largest = float(np.abs(other).max())
        assert np.allclose(one, other, rtol=1e-3, atol=1e-4 * max(largest, 1)), network.kinds
    return True


def run_onnx(network: Network, given: list[Any]) -> list[Any] | None:
    """Return what onnxruntime computes; `None` if it does not run the file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(network.data, options)
        names = [network.parts[at].name for at in network.inputs]
        found: list[Any] = session.run(None, dict(zip(names, given, strict=True)))
    except Exception:  # it has no kernel, or not with this padding
        return None
    return found


def run_tflite(network: Network, given: list[Any]) -> list[Any] | None:
    """Return what TFLM computes; `None` if it does not run the file."""
    try:
        interpreter = tflm.Interpreter.from_bytes(network.data, arena_size=8 << 20)
        for at, values in enumerate(given):
            interpreter.set_input(values, at)
        interpreter.invoke()
    except (RuntimeError, ValueError):
        return None
    return [np.array(interpreter.get_output(at)) for at in range(len(network.outputs))]


def test_random_networks_run_as_their_headers_say(tmp_path: Path, runtime: Path) -> None:
    """Tests bands, orders and plain plans of 80 networks from TFLite and ONNX."""
    counts = run_many(0, 80, tmp_path, runtime)
    assert min(counts[how] for how in ("rows", "columns", "moved", "plain")) > 0
    assert counts["compared"] >= 20


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1, rounds(5, 21)))
def test_hundreds_of_networks_run_as_their_headers_say(
    seed: int, tmp_path: Path, runtime: Path
) -> None:
    """Tests hundreds of networks more."""
    run_many(seed, 100, tmp_path, runtime)


def end_with_pad(file: File, x: Value) -> Value:
    """Return the result of a convolution with six rows of padding below."""
    made, amounts = add_conv(file, x, 8), np.zeros((4, 2), np.int32)
    amounts[1, 1] = 6
    shape = (1, made.shape[1] + 6, *made.shape[2:])
    result = file.value(shape, "int8", made)
    return file.operator("PAD", (made, file.constant(amounts)), result, "PadOptions")


def end_with_transposed(file: File, x: Value) -> Value:
    """Return the result of a convolution, twice as large by TRANSPOSE_CONV."""
    made = add_conv(file, x, 8)
    shape = np.array([1, 2 * made.shape[1], 2 * made.shape[2], 4], np.int32)
    weights = file.constant(file.draw.integers(-9, 9, (4, 4, 4, 8)).astype(np.int8), [0.1] * 4)
    inputs, result = (file.constant(shape), weights, made), file.value(shape.tolist(), "int8")
    options = {"padding": 0, "strideH": 2, "strideW": 2}
    return file.operator("TRANSPOSE_CONV", inputs, result, "TransposeConvOptions", **options)


def end_with_blocks(file: File, x: Value) -> Value:
    """Return the result of a convolution, whose channels become blocks of two rows."""
    made = add_conv(file, x, 8)
    result = file.value((1, 2 * made.shape[1], 2 * made.shape[2], 2), "int8", made)
    return file.operator("DEPTH_TO_SPACE", (made,), result, "DepthToSpaceOptions", blockSize=2)


def end_with_resize(file: File, x: Value) -> Value:
    """Return the result of a convolution, twice as large by interpolation."""
    made = add_conv(file, x, 8)
    shape = (1, 2 * made.shape[1], 2 * made.shape[2], 8)
    sizes = file.constant(np.array(shape[1:3], np.int32))
    options = {"alignCorners": False, "halfPixelCenters": True}
    result = file.value(shape, "int8", made)
    table = "ResizeBilinearOptions"
    return file.operator("RESIZE_BILINEAR", (made, sizes), result, table, **options)


def add_constant_rows(file: File, x: Value) -> Value:
    """Return what two convolutions make, with a constant for each row added between."""
    made = add_conv(file, x, 8)
    rows = file.numbers((1, made.shape[1], 1, 1), "int8")
    result = file.value(made.shape, "int8")
    options = {"fusedActivationFunction": 0}
    added = file.operator("ADD", (made, rows), result, "AddOptions", **options)
    return add_conv(file, added, 4, stride=2)


def join_constant_rows(file: File, x: Value) -> Value:
    """Return rows of a convolution between rows that are constants, and a convolution of them."""
    made = add_conv(file, x, 8)
    ends = [file.numbers((1, rows, *made.shape[2:]), "int8", made) for rows in (9, 5)]
    shape = (1, made.shape[1] + 14, *made.shape[2:])
    parts, result = (ends[0], made, ends[1]), file.value(shape, "int8", made)
    joined = file.operator("CONCATENATION", parts, result, "ConcatenationOptions", axis=1)
    return add_conv(file, joined, 4, stride=2)


@pytest.mark.parametrize(
    "end",
    [
        *(end_with_pad, end_with_transposed, end_with_blocks, end_with_resize),
        *(add_constant_rows, join_constant_rows),
    ],
)
def test_what_ends_a_region_is_written(
    end: Callable[[File, Value], Value], tmp_path: Path, runtime: Path
) -> None:
    """Tests bands behind which rows were never written, or read where a constant is not."""
    file = File(random.Random(0))
    x = file.image((1, 24, 24, 3), "int8")
    network = steps_tflite.network_of(file, [end(file, x)])
    check_command(network, tmp_path, runtime, "--max-extra-macs", "100%")


def add_convs(model: steps_onnx.Model, x: int) -> int:
    """Add two convolutions, of which the second one makes half of the rows."""
    for stride in (1, 2):
        _, channels, rows, columns = model.shape(x)
        weights = model.noise(8, channels, 3, 3)
        kernel = ("conv", (1, 2, 1, 0, stride, stride, 1, 1, 1, 1, 1))
        shape, options = (1, 8, rows // stride, columns // stride), {"strides": [stride] * 2}
        x = model.operator("Conv", [x, weights], shape, kernel, pads=[1] * 4, **options)
    return x


def test_pieces_of_onnx_are_planes(tmp_path: Path, runtime: Path) -> None:
    """Tests that a header says that pieces are NCHW, and that an input of the model has none."""
    model = steps_onnx.Model(random.Random(0))
    add_convs(model, model.image((1, 3, 32, 32)))
    header = check_command(model.network(), tmp_path, runtime)
    assert "NCHW" in header
    assert re.search(r"\{0, \d+u, 1u, 32u, \{\d+u, 0, \d+, 0, 32\}, 8u\}", header)
    assert "t0 */" not in header


def test_a_view_of_what_the_caller_keeps_is_no_input(tmp_path: Path, runtime: Path) -> None:
    """Tests bands of an operator that reads an input of an ONNX model in another shape."""
    model = steps_onnx.Model(random.Random(0))
    x = steps_onnx.turn(model, model.image((1, 2, 20, 30)), "Reshape")
    add_convs(model, x)
    check_command(model.network(), tmp_path, runtime)


def test_every_operator_with_a_map_is_drawn() -> None:
    """Tests that no map of TFLite is without a kernel, but those of operators that TFLM lacks."""
    drawn = {*tflite_networks.OPERATORS, *tflite_networks.NOT_IN_TFLM}
    assert drawn == {name for name, row in TABLE.items() if row.rows not in ("", "mixes")}

"""Tests of ONNX models in bands: every operator, real networks, and what cannot be cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rounds import rounds

pytest.importorskip("onnx")
import numpy as np
import onnx
from onnx_models import WHEELS, in_wheel, light, model, node, value

from memplan.base.errors import MemplanError
from memplan.levers.rewrite.bands import Region, Uncut, cut
from memplan.programs.graph import lay_out
from memplan.programs.sources import load
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx import measure as yardstick
from memplan.runtimes.onnx.read import read_bytes
from memplan.runtimes.onnx.write import apply as target
from memplan.runtimes.onnx.write.bands import write_bands

pytestmark = pytest.mark.slow

Drawn = tuple[list[Any], list[Any], int]
"""Operators from x to y, their weights, and a version of ONNX."""


def array(name: str, values: Any, kind: str = "float32") -> Any:
    """Return a weight with values."""
    return onnx.numpy_helper.from_array(np.asarray(values).astype(kind), name)


def noise(name: str, *shape: int) -> Any:
    """Return a weight of random numbers."""
    return array(name, np.random.default_rng(len(name)).normal(size=shape))


def padding(draw: random.Random, kernel: list[int]) -> dict[str, Any]:
    """Return some padding that is less than the kernel."""
    if draw.random() < 0.3:
        return {"auto_pad": draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])}
    return {"pads": [draw.randrange(kernel[axis]) for axis in (0, 1, 0, 1)]}


def convolve(draw: random.Random) -> Drawn:
    """Draw a convolution."""
    kernel, dilation = [draw.randint(1, 5) for _ in "hw"], [draw.randint(1, 2) for _ in "hw"]
    options = padding(draw, kernel)
    if "auto_pad" in options:
        dilation = [1, 1]
    group = draw.choice([1, 2, 4])
    weights = [noise("w", 4, 4 // group, *kernel)] + [noise("b", 4)] * draw.randint(0, 1)
    steps = [draw.randint(1, 3) for _ in "hw"]
    names = "x w b" if len(weights) == 2 else "x w"
    options |= {"strides": steps, "dilations": dilation, "group": group}
    return [node("Conv", names, "y", **options)], weights, draw.choice([9, 13, 18])


def pool(draw: random.Random) -> Drawn:
    """Draw a pooling."""
    kernel = [draw.randint(1, 4) for _ in "hw"]
    kind = draw.choice(["MaxPool", "AveragePool"])
    options = padding(draw, kernel) | {"strides": [draw.randint(1, 3) for _ in "hw"]}
    if kind == "AveragePool":
        options["count_include_pad"] = draw.randint(0, 1)
    elif "pads" in options:
        options["dilations"] = [draw.randint(1, 2) for _ in "hw"]
    return [node(kind, "x", "y", kernel_shape=kernel, **options)], [], 18


def transpose(draw: random.Random) -> Drawn:
    """Draw a transposed convolution."""
    step = [draw.randint(1, 3) for _ in "hw"]
    kernel = [one + draw.randint(0, 2) for one in step]
    options = {
        "strides": step,
        "pads": [draw.randrange(kernel[axis]) for axis in (0, 1, 0, 1)],
        "output_padding": [draw.randrange(one) for one in step],
        "group": draw.choice([1, 4]),
    }
    return [node("ConvTranspose", "x w", "y", **options)], [noise("w", 4, 1, *kernel)], 13


def resize(draw: random.Random) -> Drawn:
    """Draw a resize by a power of two."""
    up, columns = draw.choice([(2, 2), (4, 4), (2, 1), (0.5, 0.5), (1, 2)])
    where = draw.choice(["asymmetric", "half_pixel", "pytorch_half_pixel"])
    rounding = draw.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    mode = draw.choice(["linear", "nearest"])
    weights = [array("e", []), array("s", [1, 1, up, columns])]
    names = "x e s"
    if draw.random() < 0.5:
        weights = [array("e", []), array("n", [1, 4, int(16 * up), int(12 * columns)], "int64")]
        names = "x e e n"
    options = {"coordinate_transformation_mode": where, "nearest_mode": rounding, "mode": mode}
    return [node("Resize", names, "y", **options)], weights, draw.choice([11, 13, 18])


def element(draw: random.Random) -> Drawn:
    """Draw an operator on elements."""
    one = draw.choice(["Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Tanh", "Elu", "Clip", "Neg"])
    if draw.random() < 0.5:
        if one == "Clip":
            return [node("Clip", "x low", "y")], [array("low", -0.5)], 14
        return [node(one, "x", "y")], [], 14
    kind = draw.choice(["Add", "Mul", "Sub", "Div", "Max", "PRelu"])
    shapes = [[4, 1, 1], [1, 4, 1, 1], [1], [], [1, 4, 16, 12], [1, 1, 16, 12], [1, 4, 16, 1]]
    shape = draw.choice([*shapes, [1, 4, 1, 12], [1, 1, 1, 1]])
    return [node(kind, "x w", "y")], [noise("w", *shape)], 14


def move(draw: random.Random) -> Drawn:
    """Draw an operator that moves or joins rows."""
    kind = draw.choice(["Concat", "DepthToSpace", "SpaceToDepth", "Pad", "Slice"])
    if kind == "Concat":
        nodes = [node("Neg", "x", "n"), node("Concat", "x n x", "y", axis=draw.randint(1, 3))]
        return nodes, [], 13
    if kind == "Slice":
        weights = [array(name, [at], "int64") for name, at in (("a", 1), ("b", 3), ("c", 1))]
        return [node("Slice", "x a b c", "y")], weights, 13
    if kind == "Pad":
        pads = [draw.randint(0, 3) if at % 4 else 0 for at in range(8)]
        if draw.random() < 0.3:
            return [node("Pad", "x", "y", pads=pads, value=0.5)], [], 9
        if draw.random() < 0.3:
            weights = [array("p", pads[2:4] + pads[6:], "int64"), array("v", 0.5)]
            return [node("Pad", "x p v a", "y")], [*weights, array("a", [2, -1], "int64")], 18
        return [node("Pad", "x p", "y")], [array("p", pads, "int64")], 13
    return [node(kind, "x", "y", blocksize=2)], [], 13


def channel(draw: random.Random) -> Drawn:
    """Draw an operator on the channels of a point."""
    kind = draw.choice(["BatchNormalization", "LRN", "Softmax", "DequantizeLinear"])
    if kind == "BatchNormalization":
        weights = [noise("s", 4), noise("bb", 4), noise("mmm", 4), array("v", [1, 2, 3, 4])]
        return [node(kind, "x s bb mmm v", "y")], weights, 15
    if kind == "DequantizeLinear":
        size = draw.choice([(), (4,)])
        weights = [array("s", np.full(size, 0.1)), array("z", np.full(size, 3), "int8")]
        nodes = [node("QuantizeLinear", "x s z", "q"), node(kind, "q s z", "y")]
        return nodes, weights, 13
    return [node(kind, "x", "y", **({"axis": 1} if kind == "Softmax" else {"size": 3}))], [], 13


def quantized(draw: random.Random) -> Drawn:
    """Draw a convolution of whole numbers, whose padding is the zero point."""
    kernel = [draw.randint(1, 3) for _ in "hw"]
    weights = [array("s", 0.05), array("z", 3, "uint8"), array("zw", 0, "int8")]
    values = np.random.default_rng(0).integers(-9, 9, size=(4, 4, *kernel))
    weights.append(array("w", values, "int8"))
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("QLinearConv", "q s z w s zw s z", "r", **padding(draw, kernel)),
        node("DequantizeLinear", "r s z", "y"),
    ]
    return nodes, weights, 13


DRAWS: list[Callable[[random.Random], Drawn]] = [
    *(convolve, pool, transpose, resize, element, move, channel, quantized),
]


def picture(drawn: Drawn) -> Any:
    """Return a model on a picture of 16 rows and 12 columns, with an operator on both sides."""
    nodes, weights, opset = drawn
    return model(
        [node("Neg", "i", "x"), *nodes, node("Neg", "y", "o")],
        [value("i", [1, 4, 16, 12])],
        [value("o", None)],
        weights,
        opset=opset,
    )


def cut_as(data: bytes, region: Region | None, draw: random.Random) -> bytes | None:
    """Return a file with a region in bands, and test that it needs what its cut says."""
    path = Path("model.onnx")
    loaded = read_bytes(data, path, Options())
    assert loaded.graph is not None
    program = Uncut(loaded.graph)
    if region is None:
        last = len(program.operators)
        bands = draw.choice([(2, 1), (3, 1), (5, 1), (1, 2), (2, 2), (3, 4)])
        kept = [step.makes for step in program.operators if draw.random() < 0.5]
        first = draw.randrange(2)
        region = Region(first, last, bands, frozenset(kept[first:] if bands[1] == 1 else ()))
    assert not any(step.why_whole for step in program.operators)
    try:
        found = cut(program, [region])
    except ValueError:  # there are more bands than rows
        return None
    written, again = write_bands(data, found, path, Options())
    made = onnx.load_from_string(written)
    onnx.checker.check_model(made, full_check=True)
    assert again.problem.max_load <= lay_out(found.graph()).problem.max_load
    read = {name for each in made.graph.node for name in each.input}
    assert read >= {one.name for one in made.graph.initializer}
    return written


def check(draw_one: Callable[[random.Random], Drawn], seed: int) -> bool:
    """Test one random operator in random bands: bit-equal."""
    draw = random.Random(seed)
    made = picture(draw_one(draw))
    try:
        data = onnx.shape_inference.infer_shapes(made, strict_mode=True).SerializeToString()
    except Exception:  # it has no result
        return False
    if yardstick.measure_difference(data, data) is None:  # the runtime lacks this kind
        return False
    written = cut_as(data, None, draw)
    if written is None:
        return False
    apart = yardstick.measure_difference(data, written)
    assert apart is not None
    assert apart <= 1e-5, (seed, apart)
    return apart == 0.0


@pytest.mark.parametrize("draw_one", DRAWS, ids=lambda one: one.__name__)
def test_parts_of_operators_are_equal_to_the_whole(draw_one: Any) -> None:
    """Tests 40 random operators of each kind, in random bands."""
    assert sum(check(draw_one, seed) for seed in range(40)) > 20


def test_a_band_of_one_row_is_no_picture_of_one_row() -> None:
    """Tests resizes for which `pytorch_half_pixel` has a rule of its own for one row."""
    assert all(check(resize, seed) for seed in (40, 75))


@pytest.mark.deep
@pytest.mark.parametrize("draw_one", DRAWS, ids=lambda one: one.__name__)
def test_parts_of_many_operators_are_equal_to_the_whole(draw_one: Any) -> None:
    """Tests hundreds more of each kind."""
    count = rounds(200, 1_000)
    assert sum(check(draw_one, seed) for seed in range(40, 40 + count)) > count // 2


# Networks


def network(side: int = 32, batch: int | str = 1, **changes: Any) -> Any:
    """Return a network whose first pictures are the largest; `changes` are for its third layer."""
    nodes = [
        node("Conv", "x w1", "a", pads=[1] * 4),
        node("Relu", "a", "b"),
        node("Conv", "b w2", "c", pads=[1] * 4, strides=[2, 2]),
        changes.get("third", node("LeakyRelu", "c", "d")),
        node("Conv", "d w3", "e", pads=[1] * 4, strides=[2, 2]),
        node("Relu", "e", "f"),
        node("GlobalAveragePool", "f", "y"),
    ]
    weights = [noise("w1", 8, 3, 3, 3), noise("w2", 8, 8, 3, 3), noise("w3", 8, 8, 3, 3)]
    shape = [batch, 3, side, side]
    return model(nodes, [value("x", shape)], [value("y", [batch, 8, 1, 1])], weights)


def save(made: Any, folder: Path) -> Path:
    """Return the path of a model that was written."""
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_a_network_needs_less(tmp_path: Path) -> None:
    """Tests the file, what onnxruntime allocates for it, and its results."""
    pytest.importorskip("onnxruntime")
    path, out = save(network(), tmp_path), tmp_path / "bands.onnx"
    found = target.put_in_bands(path, out, max_extra=0.2, fused=False)
    onnx.checker.check_model(onnx.load(out), full_check=True)
    assert found.peak < 0.6 * found.given_peak
    assert 0 < found.extra <= 0.2
    assert found.point is not None
    assert yardstick.measure_difference(path.read_bytes(), out.read_bytes()) == 0.0
    shapes = yardstick.find_shapes(load(path))
    for file, peak in ((path, found.given_peak), (out, found.peak)):
        held = yardstick.measure_file(file, shapes, default=False)
        assert held is not None
        assert 0.85 * peak <= held.requested <= 2 * peak


def test_the_least_work_within_a_budget(tmp_path: Path) -> None:
    """Tests that a budget asks for no more than it needs, and one that cannot be met."""
    path = save(network(), tmp_path)
    least = target.put_in_bands(path, max_extra=0.5, fused=False)
    budget = (least.peak + least.given_peak) // 2
    found = target.put_in_bands(path, max_extra=0.5, capacity=budget, fused=False)
    assert least.peak < found.peak <= budget
    assert found.extra < least.extra
    assert (
        target.put_in_bands(path, capacity=found.given_peak, fused=False).data == path.read_bytes()
    )
    with pytest.raises(
        MemplanError, match=r"found has \d+ bytes .* \d+ more than the capacity of 10: "
    ):
        target.put_in_bands(path, max_extra=0.5, capacity=10, fused=False)
    with pytest.raises(MemplanError, match=r"at most 0% more work, .* holds? it up"):
        target.put_in_bands(path, max_extra=0.0, capacity=10, fused=False)


def test_sizes_that_are_open_are_written(tmp_path: Path) -> None:
    """Tests a file without a size, which is for the given one afterwards."""
    path, out = save(network(batch="n"), tmp_path), tmp_path / "bands.onnx"
    with pytest.raises(MemplanError, match="give each a value, like --dim n="):
        target.put_in_bands(path, out, fused=False)
    target.put_in_bands(path, out, Options(dims={"n": 1}), max_extra=0.2, fused=False)
    (given,) = onnx.load(out).graph.input
    assert [dim.dim_value for dim in given.type.tensor_type.shape.dim] == [1, 3, 32, 32]
    assert yardstick.measure_difference(path.read_bytes(), out.read_bytes()) in (0.0, None)


def test_shapes_of_what_is_gone_are_constants(tmp_path: Path) -> None:
    """Tests a network that reads the shape of a picture that is now in bands."""
    made = network()
    made.graph.node.insert(2, node("Shape", "b", "s", start=1, end=3))
    made.graph.output.append(value("z", None))
    made.graph.node.append(node("Cast", "s", "z", to=onnx.TensorProto.FLOAT))
    path = save(made, tmp_path)
    found = target.put_in_bands(path, max_extra=0.2, fused=False)
    assert found.point is not None
    assert yardstick.measure_difference(path.read_bytes(), found.data) in (0.0, None)


WHOLE = {
    "memplan does not know which rows of its inputs InstanceNormalization needs": node(
        "InstanceNormalization", "c s s", "d"
    ),
    "its positions depend on all rows (align_corners)": node(
        "Resize", "c - r", "d", mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "its last windows may reach beyond the padding (ceil_mode)": node(
        "MaxPool", "c", "d", kernel_shape=[2, 2], ceil_mode=1
    ),
    "its scale of 16 to 48 is not exact in binary numbers": node("Resize", "c - r", "d"),
    "it has sub-graphs, or several results": node("MaxPool", "c", "d i", kernel_shape=[2, 2]),
    "it repeats rows": node("Pad", "c p", "d", mode="reflect"),
    "it normalizes by all rows or columns": node("Softmax", "c", "d", axis=2),
}


def test_elements_of_half_a_byte_have_no_rows(tmp_path: Path) -> None:
    """Tests a picture of int4, of which a band may begin within a byte."""
    made = network(third=node("QuantizeLinear", "c s z", "q"))
    made.graph.node.insert(4, node("DequantizeLinear", "q s z", "d"))
    zero = onnx.helper.make_tensor("z", onnx.TensorProto.INT4, [], [0])
    made.graph.initializer.extend([array("s", 0.1), zero])
    made.opset_import[0].version = 21
    graph = load(save(made, tmp_path)).graph
    assert graph is not None
    steps = graph.operators
    whole = [at for at, step in enumerate(steps) if "share a byte" in step.why_whole]
    assert whole == [3, 4]


@pytest.mark.parametrize("why", WHOLE)
def test_an_operator_without_a_map_ends_a_region(why: str, tmp_path: Path) -> None:
    """Tests that it is as it was, that both sides may be in bands, and that its reason is told."""
    made = network(third=WHOLE[why])
    made.graph.initializer.extend(
        [noise("s", 8), array("r", [1, 1, 3, 3]), array("p", [0, 0, 1, 1, 0, 0, 1, 1], "int64")]
    )
    path = save(made, tmp_path)
    found = target.put_in_bands(path, max_extra=0.5, fused=False)
    assert found.frontier is not None
    operators = found.frontier.uncut.operators[:-1]
    assert [(at, o.why_whole) for at, o in enumerate(operators) if o.why_whole] == [(3, why)]
    assert all(not r.first <= 3 < r.last for p in found.frontier.points for r in p.regions)
    assert yardstick.measure_difference(path.read_bytes(), found.data) in (0.0, None)


def test_a_batch_is_whole(tmp_path: Path) -> None:
    """Tests two pictures at once: nothing is cut, and the reason is told."""
    path = save(network(batch=2), tmp_path)
    found = target.put_in_bands(path, fused=False)
    assert (found.peak, found.extra) == (found.given_peak, 0.0)
    assert found.data == path.read_bytes()
    assert found.frontier is not None
    assert found.frontier.uncut.operators[0].why_whole == "its result has a batch of 2"
    with pytest.raises(MemplanError, match="has a batch of 2"):
        target.put_in_bands(path, capacity=1, fused=False)


REAL = {
    "light_squeezenet": (3928576, 1352192),
    "light_inception_v1": (4646400, 1773056),
    "light_vgg19": (25690112, 3756032),
}


@pytest.mark.parametrize("name", REAL)
def test_real_networks_need_less(name: str) -> None:
    """Tests networks of the onnx wheel: opset 9, with weights that are inputs."""
    path = light(name)
    given, least = REAL[name]
    found = target.put_in_bands(path, max_extra=0.05, fused=False)
    assert found.given_peak == given
    assert found.peak <= 1.02 * least
    assert yardstick.measure_difference(path.read_bytes(), found.data) in (0.0, None)


def test_models_of_wheels_need_less() -> None:
    """Tests the detection of text: slices, nearest resizes and transposed convolutions."""
    package, file, dims = WHEELS[0]
    path = in_wheel(package, file)
    found = target.put_in_bands(path, None, Options(dims=dims), fused=False)
    assert found.peak < 0.9 * found.given_peak
    assert yardstick.measure_difference(path.read_bytes(), found.data) in (0.0, None)

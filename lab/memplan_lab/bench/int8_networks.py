"""TFLite files of mobile networks for images in int8, with seeded random weights.

Each network is a table of inverted bottlenecks: a 1 x 1 convolution that expands, a depthwise
convolution, and a 1 x 1 convolution that projects, linearly. Files are as a converter leaves them:
a batch of one, NHWC, weights with one scale per channel, RELU6 fused into the convolutions.

The mean and the deviation of each channel follow from the weights of a layer and its expected
inputs. Scales and biases make the values fill the range of int8, as batch normalization does. So
each result depends on the whole image, and a mistake in any layer changes it. Weights are random
integers, and scales need only operations that every machine rounds alike, so a file is the same
everywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from memplan.base.extras import require
from memplan.runtimes.tflm.read.model import IDENTIFIER

__all__ = [
    "NETWORKS",
    "Network",
    "efficientnet_lite0",
    "mcunet",
    "mnasnet",
    "mobilenet_v2",
    "proxyless",
]

_Shape = tuple[int, ...]
_Floats = NDArray[np.float64]
_Moments = tuple[float, float]  # a mean and a deviation
# Expansion, channels, blocks, stride of the first block, and kernel.
_Row = tuple[int, int, int, int, int]

_EXTRA: Final = "tflm"
_SCHEMA: Final = "tflite_micro.tensorflow.lite.micro.python.schema_py_generated"
# The version of each operator that first had int8, or weights with one scale per channel.
_VERSIONS: Final = {"ADD": 2, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "MEAN": 2}
_MOST: Final = 127  # the largest weight
_RANGE: Final = 4.0  # deviations from the mean to the end of a linear result's range
_LINEAR: Final[_Moments] = 0.0, 1.0  # the results of a convolution without RELU6
_RELU6_INPUT: Final[_Moments] = 2.0, 2.0  # the input of RELU6
_RELU6_OUTPUT: Final[_Moments] = 2.15, 1.68  # the output of RELU6 for this input
_ZERO_POINTS: Final = -11, -5, 3, 8  # of linear results; zero would hide mistakes

_MOBILENET_V2: Final[Sequence[_Row]] = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3),
    (6, 160, 3, 2, 3), (6, 320, 1, 1, 3),
)  # fmt: skip
_MNASNET: Final[Sequence[_Row]] = (
    (1, 16, 1, 1, 3), (3, 24, 3, 2, 3), (3, 40, 3, 2, 5), (6, 80, 3, 2, 5), (6, 96, 2, 1, 3),
    (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip
_EFFICIENTNET_LITE0: Final[Sequence[_Row]] = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip
_PROXYLESS: Final[Sequence[_Row]] = (
    (1, 16, 1, 1, 3), (3, 32, 1, 2, 5), (3, 32, 1, 1, 3), (3, 40, 1, 2, 7), (3, 40, 1, 1, 3),
    (3, 40, 2, 1, 5), (6, 80, 1, 2, 7), (3, 80, 3, 1, 5), (6, 96, 1, 1, 5), (3, 96, 3, 1, 5),
    (6, 192, 1, 2, 7), (6, 192, 1, 1, 7), (3, 192, 2, 1, 7), (6, 320, 1, 1, 7),
)  # fmt: skip
_MCUNET: Final[Sequence[_Row]] = (
    (1, 8, 1, 1, 3), (3, 16, 1, 2, 7), (5, 16, 1, 1, 3), (5, 16, 1, 1, 7), (4, 16, 1, 1, 5),
    (5, 24, 1, 2, 5), (5, 24, 2, 1, 5), (5, 40, 1, 2, 3), (6, 40, 1, 1, 7), (4, 40, 1, 1, 5),
    (5, 48, 1, 1, 5), (5, 48, 1, 1, 7), (5, 48, 1, 1, 3), (6, 96, 1, 2, 3), (5, 96, 1, 1, 7),
    (4, 96, 1, 1, 3), (5, 160, 1, 1, 7),
)  # fmt: skip


def mobilenet_v2(size: int, width: float = 1.0, classes: int = 1000, seed: int = 0) -> bytes:
    """Return MobileNetV2 (Sandler et al. 2018, table 2) as a TFLite file."""
    rows = [(row[0], _round_channels(row[1] * width), *row[2:]) for row in _MOBILENET_V2]
    last = _round_channels(1280 * max(1.0, width))
    return _build(size, _round_channels(32 * width), rows, last, classes, seed)


def mcunet(size: int, classes: int = 1000, seed: int = 0) -> bytes:
    """Return the MCUNet for 320 kB of memory (Lin et al. 2020), published for images of 176 pixels.

    See `mobilenet_v2` for the parameters. Its kernels are 3 to 7, and there is no last convolution.
    """
    return _build(size, 16, _MCUNET, None, classes, seed)


def mnasnet(size: int, classes: int = 1000, seed: int = 0) -> bytes:
    """Return MnasNet-B1 (Tan et al. 2019), which has no squeeze-and-excitation.

    See `mobilenet_v2` for the parameters.
    """
    return _build(size, 32, _MNASNET, 1280, classes, seed)


def proxyless(size: int, classes: int = 1000, seed: int = 0) -> bytes:
    """Return ProxylessNAS for mobile phones (Cai et al. 2019, figure 4).

    See `mobilenet_v2` for the parameters.
    """
    return _build(size, 32, _PROXYLESS, 1280, classes, seed)


def efficientnet_lite0(size: int, classes: int = 1000, seed: int = 0) -> bytes:
    """Return EfficientNet-Lite0: EfficientNet (Tan and Le 2019) without squeeze-and-excitation.

    See `mobilenet_v2` for the parameters.
    """
    return _build(size, 32, _EFFICIENTNET_LITE0, 1280, classes, seed)


NETWORKS: Final[dict[str, Callable[[int], bytes]]] = {
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v2_035": partial(mobilenet_v2, width=0.35),
    "mcunet": mcunet,
    "mnasnet": mnasnet,
    "proxyless": proxyless,
    "efficientnet_lite0": efficientnet_lite0,
}


def _round_channels(channels: float) -> int:
    """Return the nearest multiple of eight that is at least eight and nine tenths of `channels`."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * channels else nearest + 8


def _build(
    size: int, stem: int, rows: Sequence[_Row], last: int | None, classes: int, seed: int
) -> bytes:
    network = Network(size, seed)
    x = network.convolve("stem", network.image, stem, kernel=3, stride=2, relu6=True)
    number = 0
    for expansion, channels, blocks, first_stride, kernel in rows:
        for block in range(blocks):
            stride = 1 if block else first_stride
            x = network.bottleneck(f"block{number}", x, expansion, channels, kernel, stride)
            number += 1
    if last is not None:
        x = network.convolve("last", x, last, relu6=True)
    return network.pack(network.connect("scores", network.average("average", x), classes))


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor of activations, and the moments that its values are expected to have."""

    number: int
    shape: _Shape
    scale: float
    mean: float
    deviation: float


class Network:
    """A file as it grows, operator by operator, for an image of `size` times `size` pixels."""

    def __init__(self, size: int, seed: int) -> None:
        self._schema = require(_SCHEMA, extra=_EXTRA)
        self._seed = seed
        self._codes: dict[str, Any] = {}  # by kind of operator
        self._operators: list[Any] = []
        self._tensors: list[Any] = []
        self._buffers: list[Any] = [self._schema.BufferT()]  # the first one is that of no value
        uniform = 0.0, sqrt(1 / 3)
        self.image = self._add_activation("image", (1, size, size, 3), 1 / 128, -1, uniform)

    def bottleneck(
        self, name: str, x: _Tensor, expansion: int, channels: int, kernel: int, stride: int
    ) -> _Tensor:
        """Add an inverted bottleneck, with a residual where the shape stays the same."""
        y = x
        if expansion != 1:
            y = self.convolve(f"{name}.expand", x, x.shape[3] * expansion, relu6=True)
        y = self.convolve(f"{name}.depthwise", y, None, kernel=kernel, stride=stride, relu6=True)
        y = self.convolve(f"{name}.project", y, channels)
        return self.add(f"{name}.add", x, y) if x.shape == y.shape else y

    def convolve(
        self,
        name: str,
        x: _Tensor,
        channels: int | None,
        *,
        kernel: int = 1,
        stride: int = 1,
        relu6: bool = False,
    ) -> _Tensor:
        """Add CONV_2D with the padding SAME, or DEPTHWISE_CONV_2D where `channels` is `None`."""
        schema, depthwise = self._schema, channels is None
        first, last = (1, x.shape[3]) if channels is None else (channels, x.shape[3])
        weights = self._draw(name, (first, kernel, kernel, last))
        taps = weights.astype(np.float64).reshape(first, kernel**2, last)
        # These are sums over channels of x, by place in the kernel and channel of the result.
        sums, squares = (t[0] if depthwise else t.sum(axis=2).T for t in (taps, taps**2))
        # At the border, less of the kernel is over the image; padding is zero, and shifts the mean.
        line = _find_inside(x.shape[1], kernel, stride)
        inside = np.kron(line, line)
        shifts = inside @ sums  # by place of the result: its mean, if that of x were one
        noise = inside.sum(axis=0) @ squares / len(inside) * x.deviation**2
        mean, deviation = _RELU6_INPUT if relu6 else _LINEAR
        spread = self._make_random(f"{name}.spread").integers(96, 161, shifts.shape[1]) / 128
        variance = shifts.var(axis=0) * x.mean**2 + noise
        # In an image of one pixel, all weights that are read may be zero.
        scales = spread * deviation / np.sqrt(np.maximum(variance, 1.0))
        bias = mean - x.mean * scales * shifts.mean(axis=0)
        inputs = self._add_parameters(name, x, weights, scales, bias, axis=3 if depthwise else 0)
        shape = (1, len(line), len(line), shifts.shape[1])
        if depthwise:
            kind, options = "DEPTHWISE_CONV_2D", schema.DepthwiseConv2DOptionsT(depthMultiplier=1)
        else:
            kind, options = "CONV_2D", schema.Conv2DOptionsT()
        options.padding = schema.Padding.SAME
        options.strideH = options.strideW = stride
        if relu6:
            options.fusedActivationFunction = schema.ActivationFunctionType.RELU6
            result = self._add_activation(name, shape, 6 / 255, -128, _RELU6_OUTPUT)
        else:
            result = self._add_linear(name, shape, deviation)
        return self._add_operator(kind, inputs, result, options)

    def add(self, name: str, x: _Tensor, y: _Tensor) -> _Tensor:
        """Add ADD, of two tensors of the same shape."""
        deviation = sqrt(x.deviation**2 + y.deviation**2)
        result = self._add_linear(name, x.shape, deviation)
        return self._add_operator("ADD", [x.number, y.number], result, self._schema.AddOptionsT())

    def average(self, name: str, x: _Tensor) -> _Tensor:
        """Add MEAN over height and width, which are not kept."""
        deviation = x.deviation / sqrt(x.shape[1] * x.shape[2])
        axes = self._add_constant(f"{name}.axes", np.array([1, 2], np.int32))
        shape = (1, x.shape[3])
        if x.mean:
            moments = x.mean, deviation
            most = x.mean + _RANGE * deviation
            result = self._add_activation(name, shape, most / 255, -128, moments)
        else:
            result = self._add_linear(name, shape, deviation)
        return self._add_operator("MEAN", [x.number, axes], result, self._schema.ReducerOptionsT())

    def connect(self, name: str, x: _Tensor, outputs: int) -> _Tensor:
        """Add FULLY_CONNECTED, whose weights have one scale."""
        weights = self._draw(name, (outputs, x.shape[1]))
        taps = weights.astype(np.float64)
        scales = np.array([1 / (x.deviation * sqrt((taps**2).sum() / outputs))])
        inputs = self._add_parameters(name, x, weights, scales, -x.mean * scales * taps.sum(axis=1))
        result = self._add_linear(name, (1, outputs), 1.0)
        options = self._schema.FullyConnectedOptionsT()
        return self._add_operator("FULLY_CONNECTED", inputs, result, options)

    def pack(self, result: _Tensor) -> bytes:
        """Return the file of the network that returns this tensor."""
        schema, ends = self._schema, ([self.image.number], [result.number])
        graph = schema.SubGraphT(self._tensors, *ends, self._operators, "main")
        model = schema.ModelT(3, list(self._codes.values()), [graph], "", self._buffers)
        builder = require("flatbuffers", extra=_EXTRA).Builder(1 << 20)
        builder.Finish(model.Pack(builder), IDENTIFIER)
        return bytes(builder.Output())

    def _make_random(self, name: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self._seed, zlib.crc32(name.encode())]))

    def _draw(self, name: str, shape: _Shape) -> NDArray[np.int8]:
        return self._make_random(name).integers(-_MOST, _MOST, shape, np.int8, endpoint=True)

    def _add_parameters(
        self, name: str, x: _Tensor, weights: Any, scales: _Floats, bias: _Floats, axis: int = 0
    ) -> list[int]:
        """Return the inputs of an operator: a tensor, and new constants for weights and bias."""
        units = x.scale * scales
        whole = np.rint(bias / units).astype(np.int32)
        filters = self._add_constant(f"{name}.weights", weights, scales, axis)
        return [x.number, filters, self._add_constant(f"{name}.bias", whole, units)]

    def _add_linear(self, name: str, shape: _Shape, deviation: float) -> _Tensor:
        """Return a new tensor of values on both sides of zero."""
        zero = int(self._make_random(f"{name}.zero").choice(_ZERO_POINTS))
        return self._add_activation(name, shape, _RANGE * deviation / _MOST, zero, (0.0, deviation))

    def _add_activation(
        self, name: str, shape: _Shape, scale: float, zero: int, moments: _Moments
    ) -> _Tensor:
        number = self._add_tensor(name, shape, "INT8", 0, self._describe(np.array([scale]), zero))
        return _Tensor(number, shape, scale, *moments)

    def _add_constant(
        self, name: str, values: NDArray[Any], scales: _Floats | None = None, axis: int = 0
    ) -> int:
        """Add a tensor with values, and return its number."""
        self._buffers.append(self._schema.BufferT(values.reshape(-1).view(np.uint8)))
        quantized = None if scales is None else self._describe(scales, 0, axis)
        last = len(self._buffers) - 1
        return self._add_tensor(name, values.shape, values.dtype.name.upper(), last, quantized)

    def _describe(self, scales: _Floats, zero: int, axis: int = 0) -> Any:
        stored, zeros = scales.astype(np.float32), np.full(len(scales), zero, np.int64)
        return self._schema.QuantizationParametersT(
            scale=stored, zeroPoint=zeros, quantizedDimension=axis
        )

    def _add_tensor(self, name: str, shape: _Shape, kind: str, buffer: int, quantized: Any) -> int:
        """Add a tensor, and return its number."""
        code, sides = getattr(self._schema.TensorType, kind), np.array(shape, np.int32)
        self._tensors.append(self._schema.TensorT(sides, code, buffer, name, quantized))
        return len(self._tensors) - 1

    def _add_operator(self, kind: str, inputs: list[int], result: _Tensor, options: Any) -> _Tensor:
        """Add an operator, and return its result."""
        schema, code = self._schema, getattr(self._schema.BuiltinOperator, kind)
        self._codes.setdefault(kind, schema.OperatorCodeT(code, None, _VERSIONS[kind], code))
        table = getattr(schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
        fields = list(self._codes).index(kind), inputs, [result.number], table, options
        self._operators.append(schema.OperatorT(*fields))
        return result


def _find_inside(size: int, kernel: int, stride: int) -> _Floats:
    """Return 1 where the kernel is over the image, by place of the result; 0 is padding (SAME)."""
    results = -(-size // stride)
    before = max(0, (results - 1) * stride + kernel - size) // 2
    places = np.arange(results)[:, None] * stride + np.arange(kernel) - before
    return ((places >= 0) & (places < size)).astype(np.float64)

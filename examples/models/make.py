"""Make the models beside this script: small networks of four formats, a few kilobytes each.

Run it with what the tests have installed: `python examples/models/make.py`. The weights are
constant; shapes and operators are those of networks that are used.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import flatbuffers
import numpy as np
import onnx
import tflite
import torch
from onnx import TensorProto, helper
from torch import nn

from memplan.programs.graph import Kind
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes.torch.read import graph_of

HERE = Path(__file__).parent


class Block(nn.Module):
    """An inverted residual: wider, a depthwise convolution, narrower, and the input added."""

    def __init__(self, channels: int, expansion: int) -> None:
        super().__init__()
        wide = channels * expansion
        self.expand = nn.Conv2d(channels, wide, 1)
        self.depthwise = nn.Conv2d(wide, wide, 3, padding=1, groups=wide)
        self.project = nn.Conv2d(wide, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the shape of `x`."""
        return x + self.project(self.depthwise(self.expand(x).relu()).relu())


def make_module() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return a network of inverted residuals for images of 32 x 32, and an input."""
    torch.manual_seed(0)
    blocks = [Block(8, 4) for _ in range(3)]
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    return module.eval(), (torch.randn(1, 3, 32, 32),)


def make_onnx() -> onnx.ModelProto:
    """Return three branches over an image, joined; the size of the batch is left open."""
    shapes = {"one": (8, 3, 1, 1), "three": (8, 3, 3, 3), "five": (8, 3, 5, 5), "last": (10, 24)}
    weights = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, np.full(shape, 0.01, np.float32).ravel())
        for name, shape in shapes.items()
    ]
    nodes = [
        node
        for name, size in (("one", 1), ("three", 3), ("five", 5))
        for node in (
            helper.make_node("Conv", ["image", name], [f"conv_{name}"], pads=[size // 2] * 4),
            helper.make_node("Relu", [f"conv_{name}"], [f"relu_{name}"]),
        )
    ]
    joined = [f"relu_{name}" for name in ("one", "three", "five")]
    nodes += [
        helper.make_node("Concat", joined, ["joined"], axis=1),
        helper.make_node("GlobalAveragePool", ["joined"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "last"], ["scores"], transB=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 32, 32])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])
    graph = helper.make_graph(nodes, "branches", [image], [scores], weights)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


class TFLiteFile:
    """Writes one sub-graph of int8 tensors, by the schema's own builders."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1 << 14)
        tflite.BufferStart(self.builder)
        self.buffers = [tflite.BufferEnd(self.builder)]
        self.tensors: list[int] = []
        self.operators: list[int] = []
        self.codes: list[int] = []

    def vector(self, offsets: list[int]) -> int:
        """Write a vector of tables."""
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def tensor(self, name: str, shape: tuple[int, ...], dtype: int, constant: bool = False) -> int:
        """Add a tensor, with ones in the file if it is a constant; return its number."""
        buffer = 0
        if constant:
            width = 4 if dtype == tflite.TensorType.INT32 else 1
            data = self.builder.CreateByteVector(
                bytes([1, *[0] * (width - 1)]) * int(np.prod(shape))
            )
            tflite.BufferStart(self.builder)
            tflite.BufferAddData(self.builder, data)
            buffer = len(self.buffers)
            self.buffers.append(tflite.BufferEnd(self.builder))
        dims = self.builder.CreateNumpyVector(np.array(shape, np.int32))
        scale = self.builder.CreateNumpyVector(np.array([0.05], np.float32))
        zero = self.builder.CreateNumpyVector(np.array([0], np.int64))
        tflite.QuantizationParametersStart(self.builder)
        tflite.QuantizationParametersAddScale(self.builder, scale)
        tflite.QuantizationParametersAddZeroPoint(self.builder, zero)
        quantization = tflite.QuantizationParametersEnd(self.builder)
        text = self.builder.CreateString(name)
        tflite.TensorStart(self.builder)
        tflite.TensorAddShape(self.builder, dims)
        tflite.TensorAddType(self.builder, dtype)
        tflite.TensorAddBuffer(self.builder, buffer)
        tflite.TensorAddName(self.builder, text)
        tflite.TensorAddQuantization(self.builder, quantization)
        self.tensors.append(tflite.TensorEnd(self.builder))
        return len(self.tensors) - 1

    def operator(
        self, code: int, inputs: list[int], outputs: list[int], kind: int, options: int
    ) -> None:
        """Add an operator with its options, a table of the schema."""
        if code not in self.codes:
            self.codes.append(code)
        read = self.builder.CreateNumpyVector(np.array(inputs, np.int32))
        written = self.builder.CreateNumpyVector(np.array(outputs, np.int32))
        tflite.OperatorStart(self.builder)
        tflite.OperatorAddOpcodeIndex(self.builder, self.codes.index(code))
        tflite.OperatorAddInputs(self.builder, read)
        tflite.OperatorAddOutputs(self.builder, written)
        tflite.OperatorAddBuiltinOptionsType(self.builder, kind)
        tflite.OperatorAddBuiltinOptions(self.builder, options)
        self.operators.append(tflite.OperatorEnd(self.builder))

    def convolution(self, name: str, x: int, shape: tuple[int, ...], channels: int) -> int:
        """Add a 1 x 1 convolution with a bias; return its output."""
        b = self.builder
        weights = self.tensor(f"{name}/weights", (channels, 1, 1, shape[3]), 9, constant=True)
        bias = self.tensor(f"{name}/bias", (channels,), tflite.TensorType.INT32, constant=True)
        y = self.tensor(name, (*shape[:3], channels), tflite.TensorType.INT8)
        tflite.Conv2DOptionsStart(b)
        tflite.Conv2DOptionsAddStrideW(b, 1)
        tflite.Conv2DOptionsAddStrideH(b, 1)
        options = tflite.Conv2DOptionsEnd(b)
        kind = tflite.BuiltinOptions.Conv2DOptions
        self.operator(tflite.BuiltinOperator.CONV_2D, [x, weights, bias], [y], kind, options)
        return y

    def depthwise(self, name: str, x: int, shape: tuple[int, ...]) -> int:
        """Add a 3 x 3 depthwise convolution that keeps the shape; return its output."""
        b = self.builder
        weights = self.tensor(f"{name}/weights", (1, 3, 3, shape[3]), 9, constant=True)
        bias = self.tensor(f"{name}/bias", (shape[3],), tflite.TensorType.INT32, constant=True)
        y = self.tensor(name, shape, tflite.TensorType.INT8)
        tflite.DepthwiseConv2DOptionsStart(b)
        tflite.DepthwiseConv2DOptionsAddStrideW(b, 1)
        tflite.DepthwiseConv2DOptionsAddStrideH(b, 1)
        tflite.DepthwiseConv2DOptionsAddDepthMultiplier(b, 1)
        options = tflite.DepthwiseConv2DOptionsEnd(b)
        kind = tflite.BuiltinOptions.DepthwiseConv2DOptions
        code = tflite.BuiltinOperator.DEPTHWISE_CONV_2D
        self.operator(code, [x, weights, bias], [y], kind, options)
        return y

    def add(self, name: str, a: int, b: int, shape: tuple[int, ...]) -> int:
        """Add a sum of two tensors of one shape; return its output."""
        y = self.tensor(name, shape, tflite.TensorType.INT8)
        tflite.AddOptionsStart(self.builder)
        options = tflite.AddOptionsEnd(self.builder)
        kind = tflite.BuiltinOptions.AddOptions
        self.operator(tflite.BuiltinOperator.ADD, [a, b], [y], kind, options)
        return y

    def finish(self, x: int, y: int) -> bytes:
        """Return the file, with an input and an output."""
        b = self.builder
        tensors, operators = self.vector(self.tensors), self.vector(self.operators)
        inputs = b.CreateNumpyVector(np.array([x], np.int32))
        outputs = b.CreateNumpyVector(np.array([y], np.int32))
        tflite.SubGraphStart(b)
        tflite.SubGraphAddTensors(b, tensors)
        tflite.SubGraphAddInputs(b, inputs)
        tflite.SubGraphAddOutputs(b, outputs)
        tflite.SubGraphAddOperators(b, operators)
        graph = tflite.SubGraphEnd(b)
        codes = []
        for code in self.codes:
            tflite.OperatorCodeStart(b)
            tflite.OperatorCodeAddDeprecatedBuiltinCode(b, code)
            tflite.OperatorCodeAddBuiltinCode(b, code)
            tflite.OperatorCodeAddVersion(b, 3 if code != tflite.BuiltinOperator.ADD else 2)
            codes.append(tflite.OperatorCodeEnd(b))
        graphs, written, buffers = (
            self.vector([graph]),
            self.vector(codes),
            self.vector(self.buffers),
        )
        tflite.ModelStart(b)
        tflite.ModelAddVersion(b, 3)
        tflite.ModelAddOperatorCodes(b, written)
        tflite.ModelAddSubgraphs(b, graphs)
        tflite.ModelAddBuffers(b, buffers)
        b.Finish(tflite.ModelEnd(b), b"TFL3")
        return bytes(b.Output())


def make_tflite() -> bytes:
    """Return an int8 network of inverted residuals, as a microcontroller runs it."""
    file = TFLiteFile()
    shape = (1, 24, 24, 12)
    image = x = file.tensor("image", shape, tflite.TensorType.INT8)
    widths = ((24, 20), (32, 24), (32, 20), (32, 32))
    for number, (wide, channels) in enumerate(widths):
        name = f"block{number}"
        expanded = file.convolution(f"{name}/expand", x, shape, wide)
        inner = (*shape[:3], wide)
        filtered = file.depthwise(f"{name}/depthwise", expanded, inner)
        projected = file.convolution(f"{name}/project", filtered, inner, channels)
        same = channels == shape[3]
        shape = (*shape[:3], channels)
        x = file.add(f"{name}/add", x, projected, shape) if same else projected
    return file.finish(image, x)


def main() -> None:
    """Write one file of each format."""
    module, inputs = make_module()
    program = torch.export.export(module, inputs)
    graph = graph_of(program)
    for node in program.graph.nodes:  # the lines of source have the folder of this script in them
        node.meta.pop("stack_trace", None)
    torch.export.save(program, HERE / "residual.pt2")
    assert any(tensor.kind is Kind.CONSTANT for tensor in graph.tensors)
    (HERE / "residual.graph.json").write_text(write_graph(replace(graph, name="residual")))
    onnx.save(make_onnx(), HERE / "branches.onnx")
    (HERE / "mobile.tflite").write_bytes(make_tflite())


if __name__ == "__main__":
    main()

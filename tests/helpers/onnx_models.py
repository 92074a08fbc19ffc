"""Small ONNX models, and the real ones that installed wheels carry."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
import onnx

from memplan.programs.graph import Graph, lay_out
from memplan.programs.sources.loaded import Loaded
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.read import read
from memplan.runtimes.onnx.read.protos import bytes_of

FLOAT = onnx.TensorProto.FLOAT
BOOL = onnx.TensorProto.BOOL
INT64 = onnx.TensorProto.INT64

# The nine networks of the onnx wheel: operators that run, bytes of the largest section.
LIGHT = {
    "light_bvlc_alexnet": (24, 2239488),
    "light_densenet121": (668, 8429568),
    "light_inception_v1": (143, 6422528),
    "light_inception_v2": (371, 6422528),
    "light_resnet50": (176, 9633792),
    "light_shufflenet": (203, 3110912),
    "light_squeezenet": (66, 6308352),
    "light_vgg19": (46, 25690112),
    "light_zfnet512": (22, 9124864),
}

# Models of other wheels: package, file in it, the dimensions that it leaves open.
WHEELS: list[tuple[str, str, dict[str, int]]] = [
    (
        "rapidocr_onnxruntime",
        "models/ch_PP-OCRv4_det_infer.onnx",
        {f"p2o.DynamicDimension.{axis}": size for axis, size in enumerate((1, 320, 320))},
    ),
    (
        "rapidocr_onnxruntime",
        "models/ch_PP-OCRv4_rec_infer.onnx",
        {"p2o.DynamicDimension.0": 1, "x:2": 48, "p2o.DynamicDimension.1": 320},
    ),
    (
        "rapidocr_onnxruntime",
        "models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x:0": 1, "x:2": 48, "x:3": 192},
    ),
    ("silero_vad", "data/silero_vad.onnx", {"input:0": 1, "input:1": 512, "state:1": 1}),
    ("silero_vad", "data/silero_vad_16k_op15.onnx", {"batch": 1, "sequence": 512}),
    ("silero_vad", "data/silero_vad_16k_sequence.onnx", {"sequence_length": 16}),
    ("silero_vad", "data/silero_vad_half.onnx", {"batch": 1, "sequence": 512}),
    ("silero_vad", "data/silero_vad_op18_ifless.onnx", {"batch": 1, "sequence": 512}),
    ("silero_vad", "data/silero_vad_openvino_16k.onnx", {}),
    ("basic_pitch", "saved_models/icassp_2022/nmp.onnx", {"unk__749": 1}),
]


def light(name: str) -> Path:
    """Return the path of a network of the onnx wheel, or skip the test."""
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"{name}.onnx"
    if not path.is_file():
        pytest.skip("this onnx wheel has no light models")
    return path


def in_wheel(package: str, file: str) -> Path:
    """Return the path of a file in an installed package, or skip the test."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    return Path(spec.origin).parent / file


def value(name: str, shape: Sequence[int | str | None] | None, element: int = FLOAT) -> Any:
    """Return the declaration of a tensor."""
    return onnx.helper.make_tensor_value_info(name, element, shape)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """Return an operator; names are separated by blanks, "-" is one that is left out."""
    names = [[("" if n == "-" else n) for n in part.split()] for part in (inputs, outputs)]
    return onnx.helper.make_node(kind, *names, **attributes)


def ints(name: str, values: Sequence[int] | int) -> Any:
    """Return a weight of integers: a scalar, or a list."""
    many = not isinstance(values, int)
    listed = list(values) if many else [values]
    return onnx.helper.make_tensor(name, INT64, [len(listed)] if many else [], listed)


def weight(name: str, shape: Sequence[int], element: int = FLOAT) -> Any:
    """Return a weight of zeros."""
    data = bytes(bytes_of(element, tuple(shape)))
    return onnx.TensorProto(name=name, data_type=element, dims=shape, raw_data=data)


def graph(
    nodes: Sequence[Any],
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    weights: Sequence[Any] = (),
    name: str = "g",
) -> Any:
    """Return a graph."""
    return onnx.helper.make_graph(nodes, name, inputs, outputs, weights)


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    weights: Sequence[Any] = (),
    opset: int = 18,
    **others: Any,
) -> Any:
    """Return a model of one graph."""
    return onnx.helper.make_model(
        graph(nodes, inputs, outputs, weights),
        opset_imports=[onnx.helper.make_opsetid("", opset)],
        ir_version=10,
        **others,
    )


def simple(*nodes: Any, outputs: str = "y") -> Any:
    """Return a model of one input x of two elements."""
    return model(nodes, [value("x", [2])], [value(name, None) for name in outputs.split()])


def branching(then: list[Any], other: list[Any]) -> Any:
    """Return a model that has an If with these branches, after an operator and before another."""
    branches = {
        "then_branch": graph(then, (), [value("r", None)], (), "then"),
        "else_branch": graph(other, (), [value("r", None)], (), "else"),
    }
    nodes = [node("Exp", "x", "a"), node("If", "c", "z", **branches), node("Neg", "z", "y")]
    return model(nodes, [value("x", [4]), value("c", [], BOOL)], [value("y", None)])


def looping(extra: list[Any], results: list[Any]) -> Any:
    """Return a model with a loop that adds a captured value to its state."""
    body = graph(
        [node("Add", "s k", "t"), node("Identity", "go", "on"), *extra],
        [value("i", [], INT64), value("go", [], BOOL), value("s", None)],
        [value("on", [], BOOL), value("t", None), *results],
        (),
        "body",
    )
    outputs = "z" + " all" * len(results)
    return model(
        [node("Exp", "x", "k"), node("Loop", "n go0 x", outputs, body=body), node("Neg", "z", "y")],
        [value("x", [3]), value("n", [], INT64), value("go0", [], BOOL)],
        [value("y", None)],
    )


def on_disk(folder: Path, what: Any) -> Path:
    """Return the path of a model that has been written."""
    path = folder / "model.onnx"
    path.write_bytes(what if isinstance(what, bytes) else what.SerializeToString())
    return path


def loaded(folder: Path, what: Any, **dims: int) -> Loaded:
    """Return what is read of a model."""
    return read(on_disk(folder, what), Options(dims=dims))


def index(of: Graph, name: str) -> int:
    """Return the index of a tensor."""
    return [tensor.name for tensor in of.tensors].index(name)


def sharing(of: Graph, **options: Any) -> list[set[str]]:
    """Return the sets of names that share memory, where more than one does."""
    layout = lay_out(of, **options)
    names = [{of.tensors[t].name for t in storage.tensors} for storage in layout.storages]
    return [shared for shared in names if len(shared) > 1]

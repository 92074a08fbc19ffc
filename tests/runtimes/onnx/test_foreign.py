"""Tests of what the tools of onnxruntime write: sizes are those that the runtime makes."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx
from onnx_models import FLOAT, INT64, loaded, node, value
from ort_models import INT32, convolutions, decoder, encoder, foreign, numbers, optimised, whole
from stale_onnx import Tally, plan

from memplan.base.errors import FormatError
from memplan.runtimes.onnx.operators import NCHWC, TABLE
from memplan.runtimes.onnx.read.protos import type_of

pytestmark = pytest.mark.slow

RULED = {name for name, row in TABLE.items() if row.shape or row.like}

UINT8, INT8 = onnx.TensorProto.UINT8, onnx.TensorProto.INT8
PICTURE = {"N": 2, "H": 17, "W": 19}
TEXT = {"batch": 3}
PROMPT = {
    "batch_size": 1,
    "sequence_length": 3,
    "past_sequence_length": 5,
    "total_sequence_length": 8,
}
STEP = PROMPT | {"batch_size": 2, "sequence_length": 1, "total_sequence_length": 6}


class Samples:
    """What a quantiser measures a model with, once."""

    def __init__(self, what: Any) -> None:
        rng = np.random.default_rng(0)
        text = what.graph.input[0].name == "ids"
        names = [one.name for one in what.graph.input]
        self.left: list[dict[str, Any]] = [
            {name: np.ones((2, 8), np.int64) for name in names}
            if text
            else {"x": rng.random((2, 3, 17, 19), np.float32)}
        ]

    def get_next(self) -> dict[str, Any] | None:
        """Return inputs, or `None` at the end."""
        return self.left.pop() if self.left else None


def statically(what: Any, folder: Path, layout: str) -> Any:
    """Return a model after the quantiser that measures."""
    from onnxruntime import quantization

    one = quantization.QuantFormat.from_string(layout)
    to = folder / "quantised.onnx"
    quantization.quantize_static(what, to, Samples(what), quant_format=one)
    return onnx.load(to)


def dynamically(what: Any, folder: Path) -> Any:
    """Return a model after the quantiser that does not measure."""
    from onnxruntime import quantization

    quantization.quantize_dynamic(what, folder / "quantised.onnx")
    return onnx.load(folder / "quantised.onnx")


def in_blocks(what: Any, _: Path) -> Any:
    """Return a model with weights of four bits."""
    module = pytest.importorskip("onnxruntime.quantization.matmul_nbits_quantizer")
    kinds = ("MatMul", "Gather")
    one = module.MatMulNBitsQuantizer(what, bits=4, block_size=16, op_types_to_quantize=kinds)
    one.process()
    return one.model.model


def fused(what: Any, folder: Path) -> Any:
    """Return a model after the tool that fuses transformers; it forgets the version of a domain."""
    module = pytest.importorskip("onnxruntime.transformers.optimizer")
    onnx.save(what, folder / "plain.onnx")
    path = str(folder / "plain.onnx")
    return module.optimize_model(path, "bert", num_heads=2, hidden_size=16, opt_level=0).model


def there_and_back(what: Any, folder: Path) -> Any:
    """Return a model that was written in onnxruntime's own format, and then as ONNX again."""
    ort, level = {"session__save_model_format": "ORT"}, "ORT_ENABLE_EXTENDED"
    path = optimised(what, folder / "model.ort", level, **ort)
    onnx_format = {"session__save_model_format": "ONNX"}
    return optimised(path, folder / "back.onnx", "ORT_DISABLE_ALL", **onnx_format)


def at(level: str) -> Callable[[Any, Path], Any]:
    """Return the optimiser at a level."""
    return lambda what, folder: optimised(what, folder / "optimised.onnx", f"ORT_ENABLE_{level}")


def quantised(layout: str) -> Callable[[Any, Path], Any]:
    """Return the quantiser that measures."""
    return lambda what, folder: statically(what, folder, layout)


_Tool = Callable[[Any, Path], Any]
FILES: dict[str, tuple[Callable[[], Any], list[_Tool], dict[str, int]]] = {
    "pictures, basic": (convolutions, [at("BASIC")], PICTURE),
    "pictures, extended": (convolutions, [at("EXTENDED")], PICTURE),
    "pictures, all": (convolutions, [at("ALL")], PICTURE),
    "pictures, by way of ort": (convolutions, [there_and_back], PICTURE),
    "pictures, QOperator": (convolutions, [quantised("QOperator")], PICTURE),
    "pictures, QOperator, all": (convolutions, [quantised("QOperator"), at("ALL")], PICTURE),
    "pictures, QDQ": (convolutions, [quantised("QDQ")], PICTURE),
    "pictures, QDQ, all": (convolutions, [quantised("QDQ"), at("ALL")], PICTURE),
    "text, all": (encoder, [at("ALL")], TEXT),
    "text, QOperator": (encoder, [quantised("QOperator")], TEXT),
    "text, dynamic": (encoder, [dynamically], TEXT),
    "text, dynamic, all": (encoder, [dynamically, at("ALL")], TEXT),
    "text, 4 bits": (encoder, [in_blocks], TEXT),
    "text, 4 bits, all": (encoder, [in_blocks, at("ALL")], TEXT),
    "text, fused": (encoder, [fused], TEXT),
    "language, prompt": (decoder, [], PROMPT),
    "language, step": (decoder, [at("ALL")], STEP),
}


@functools.cache
def made(name: str) -> Any:
    """Return the file that the tools make; they are run once."""
    what, tools, _ = FILES[name]
    found = what()
    with tempfile.TemporaryDirectory() as folder:
        for tool in tools:
            found = tool(found, Path(folder))
    return found


def kinds(what: Any) -> set[str]:
    """Return the operators of a model that have a rule."""
    return {type_of(one) for one in what.graph.node} & RULED


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("bare", [False, True], ids=["as written", "bare"])
def test_sizes_are_those_of_the_runtime(name: str, bare: bool) -> None:
    """Tests every tensor, with what the tool declares and without."""
    what = onnx.ModelProto.FromString(made(name).SerializeToString())
    if bare:
        del what.graph.value_info[:]
    tally = Tally()
    tally.judge(name, what, FILES[name][2], {"attention_mask": 1})
    assert tally.verdicts == {"same": 1}, tally.sentences
    assert tally.tensors > 10


def test_all_that_is_open_is_asked_for_at_once() -> None:
    """Tests that a language model asks for the four names of its inputs."""
    sentence = plan(decoder(), {})
    assert isinstance(sentence, str)
    asked = sentence.partition("open: ")[2].partition(";")[0].split(", ")
    assert sorted(asked) == sorted(PROMPT)
    assert "present" not in sentence


def test_a_deep_model_is_followed_in_one_pass() -> None:
    """Tests more layers than there are rounds of inference."""
    assert not isinstance(plan(decoder(40), PROMPT), str)


def test_nothing_is_written_in_place() -> None:
    """Tests that operators of onnxruntime write over no input but what a convolution adds to."""
    for name in ("text, fused", "pictures, all", "language, prompt"):
        found = plan(made(name), FILES[name][2])
        assert not isinstance(found, str)
        own = [one for one in found[0].operators if one.type.startswith("com.microsoft")]
        assert own
        adds = [one for one in own if one.type == f"{NCHWC}.Conv" and len(one.inputs) == 4]
        assert not any(one.in_place for one in own if one not in adds)
        assert all(one.in_place in ((), ((one.inputs[3], one.outputs[0]),)) for one in adds)


def raw(name: str, element: int, *shape: int) -> Any:
    """Return a weight of ones."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    return onnx.numpy_helper.from_array(np.ones(shape, dtype), name)


SCALES = [raw("s", FLOAT), raw("u", UINT8), raw("i", INT8)]
_X = value("x", [2, 3, 16])


def _heads(length: int, name: str) -> Any:
    return value(name, [2, 4, length, 16])


# Operators alone: the operator, what it reads, weights.
ALONE: list[tuple[Any, list[Any], list[Any]]] = [
    (foreign("FastGelu", "x b", "y"), [_X], [numbers("b", 16)]),
    (foreign("FastGelu", "x", "y"), [_X], []),
    (foreign("QuickGelu", "x", "y"), [_X], []),
    (foreign("QuantizeLinear", "x s i", "y"), [_X], SCALES),
    (foreign("DequantizeLinear", "x s u", "y"), [value("x", [3, 4], UINT8)], SCALES),
    (
        foreign("QLinearWhere", "c x s u z s u s u", "y"),
        [value("c", [3, 1], onnx.TensorProto.BOOL), value("x", [1, 4], UINT8)],
        [*SCALES, raw("z", UINT8, 1)],
    ),
    (
        foreign("MatMulIntegerToFloat", "x w s s u u", "y"),
        [value("x", [2, 3, 16], UINT8)],
        [*SCALES, raw("w", UINT8, 16, 5)],
    ),
    (
        node("GatherND", "x p", "y"),
        [value("x", [3, 4])],
        [onnx.helper.make_tensor("p", onnx.TensorProto.INT64, [2], [1, 2])],
    ),
    (foreign("TransposeMatMul", "x w", "y", transA=1), [_X], [numbers("w", 3, 5)]),
    (foreign("FusedMatMul", "x w", "y", transB=1), [_X], [numbers("w", 2, 5, 16)]),
    (
        foreign("FusedConv", "x w b z", "y"),
        [value("x", [1, 3, 9, 9]), value("z", [1, 4, 7, 7])],
        [numbers("w", 4, 3, 3, 3), numbers("b", 4)],
    ),
    (
        foreign("QLinearAveragePool", "x s u s u", "y", kernel_shape=[3, 3], channels_last=1),
        [value("x", [1, 9, 8, 16], UINT8)],
        SCALES,
    ),
    (
        foreign("QLinearGlobalAveragePool", "x s u s u", "y", channels_last=1),
        [value("x", [1, 9, 8, 16], UINT8)],
        SCALES,
    ),
    (
        foreign("MatMulBnb4", "x w m", "y", K=16, N=5, block_size=16, quant_type=1),
        [_X],
        [raw("w", UINT8, 40), numbers("m", 5)],
    ),
    (
        foreign("RotaryEmbedding", "x p c c", "y"),
        [value("x", [2, 4, 3, 16]), value("p", [2, 3], INT64)],
        [numbers("c", 9, 8)],
    ),
    (
        foreign("EmbedLayerNormalization", "a a w p k g g m", "y n e"),
        [value("a", [2, 3], INT32), value("m", [2, 3], INT32)],
        [numbers("w", 9, 16), numbers("p", 9, 16), numbers("k", 9, 16), numbers("g", 16)],
    ),
    (
        foreign("Attention", "x w b - past", "y z", num_heads=4),
        [value("x", [2, 3, 64]), value("past", [2, 2, 4, 5, 16])],
        [numbers("w", 64, 192), numbers("b", 192)],
    ),
    (
        foreign("Attention", "x w b", "y", num_heads=4, qkv_hidden_sizes=[64, 64, 32]),
        [value("x", [2, 3, 64])],
        [numbers("w", 64, 160), numbers("b", 160)],
    ),
    (
        foreign("QAttention", "x w b s s - u u past", "y z", num_heads=4),
        [value("x", [2, 3, 64], UINT8), value("past", [2, 2, 4, 5, 16])],
        [*SCALES, raw("w", UINT8, 64, 192), numbers("b", 192)],
    ),
    (
        foreign("QAttention", "x w b s s - u u", "y", num_heads=4),
        [value("x", [2, 3, 64], UINT8)],
        [*SCALES, raw("w", UINT8, 64, 192), numbers("b", 192)],
    ),
    (
        foreign("MultiHeadAttention", "q k v", "y z1 z2", num_heads=4),
        [value("q", [2, 3, 64]), value("k", [2, 7, 64]), value("v", [2, 7, 32])],
        [],
    ),
    (
        foreign("MultiHeadAttention", "q k v", "y", num_heads=4),
        [value("q", [2, 3, 64]), _heads(7, "k"), _heads(7, "v")],
        [],
    ),
    (
        foreign("MultiHeadAttention", "q k v - - - pk pv", "y z1 z2", num_heads=4),
        [*(value(name, [2, 3, 64]) for name in "qkv"), _heads(5, "pk"), _heads(5, "pv")],
        [],
    ),
    (
        foreign("GroupQueryAttention", "q - - pk pv l t", "y z1 z2", num_heads=4, kv_num_heads=4),
        [value("q", [1, 3, 192]), *(value(name, [1, 4, 5, 16]) for name in ("pk", "pv"))],
        [
            onnx.numpy_helper.from_array(np.array([7], np.int32), "l"),
            onnx.numpy_helper.from_array(np.array(8, np.int32), "t"),
        ],
    ),
    (
        foreign("DynamicQuantizeLSTM", "x w r - - - - - ws wz rs rz", "y z1 z2", hidden_size=8),
        [value("x", [3, 2, 16])],
        [
            raw("w", UINT8, 1, 16, 32),
            raw("r", UINT8, 1, 8, 32),
            *(numbers(name, 1) for name in ("ws", "rs")),
            *(raw(name, UINT8, 1) for name in ("wz", "rz")),
        ],
    ),
    (node("LayerNormalization", "x g g", "y"), [_X], [numbers("g", 16)]),
    (node("SimplifiedLayerNormalization", "x g", "y"), [_X], [numbers("g", 16)]),
]


def alone(operator: Any, inputs: list[Any], weights: list[Any]) -> Any:
    """Return a model of one operator."""
    outputs = [onnx.ValueInfoProto(name=name) for name in operator.output if name]
    return whole([operator], inputs, outputs, weights, 13)


@pytest.mark.parametrize(
    ("operator", "inputs", "weights"), ALONE, ids=lambda v: getattr(v, "op_type", "")
)
def test_operators_alone(operator: Any, inputs: list[Any], weights: list[Any]) -> None:
    """Tests each against its kernel."""
    tally = Tally()
    tally.judge(operator.op_type, alone(operator, inputs, weights), {}, {})
    assert tally.verdicts == {"same": 1}, tally.sentences
    assert tally.tensors


def blocked(*nodes: Any, channels: int = 16) -> Any:
    """Return a model of plain operators after the optimiser that changes their layout."""
    weights = [numbers("w", 32, channels, 3, 3), numbers("d", 32, 1, 3, 3)]
    used = {name for one in nodes for name in one.input}
    weights = [one for one in weights if one.name in used]
    what = whole(nodes, [value("x", [2, channels, 18, 18])], [value("y", None)], weights, 13)
    with tempfile.TemporaryDirectory() as folder:
        return optimised(what, Path(folder) / "m.onnx", "ORT_ENABLE_ALL")


def _resize() -> Any:
    scales = onnx.numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32))
    return [
        node("Constant", "", "by", value=scales),
        node(
            "Resize",
            "a - by",
            "y",
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
    ]


_CONV = node("Conv", "x w", "a")
BLOCKED: dict[str, Any] = {
    "MaxPool": [_CONV, node("MaxPool", "a", "y", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)],
    "AveragePool": [_CONV, node("AveragePool", "a", "y", kernel_shape=[2, 2], pads=[1, 0, 0, 1])],
    "GlobalMaxPool": [_CONV, node("GlobalMaxPool", "a", "y")],
    "GlobalAveragePool": [_CONV, node("GlobalAveragePool", "a", "y")],
    "Upsample": [_CONV, *_resize()],
    "Conv": [_CONV, node("Conv", "a d", "y", group=32, dilations=[2, 2])],
}


@pytest.mark.parametrize("kind", BLOCKED)
@pytest.mark.parametrize("channels", [3, 16, 20])
def test_blocks_of_channels(kind: str, channels: int) -> None:
    """Tests the layout of convolutions, where the optimiser knows one for this processor."""
    what = blocked(*BLOCKED[kind], channels=channels)
    if ("com.microsoft.nchwc", kind) not in kinds(what):
        pytest.skip("the optimiser leaves the layout as it is here")
    tally = Tally()
    tally.judge(kind, what, {}, {})
    assert tally.verdicts == {"same": 1}, tally.sentences


def test_every_rule_is_held_against_the_runtime() -> None:
    """Tests that no rule goes unchecked, but for those of a layout that this processor lacks."""
    seen = {kind for name in FILES for kind in kinds(made(name))}
    seen |= {type_of(one) for one, _, _ in ALONE}
    seen |= {kind for nodes in BLOCKED.values() for kind in kinds(blocked(*nodes))}
    assert not {one for one in RULED - seen if not one.startswith(NCHWC)}


UNFIT: list[tuple[Any, list[Any], list[Any]]] = [
    (foreign("FusedConv", "x w", "y"), [value("x", [1, 3, 9, 9])], [numbers("w", 4, 2, 3, 3)]),
    (foreign("FusedGemm", "x w", "y"), [value("x", [4, 6])], [numbers("w", 5, 6)]),
    (foreign("FusedMatMul", "x w", "y"), [_X], [numbers("w", 15, 2)]),
    (foreign("BiasGelu", "x w", "y"), [_X], [numbers("w", 15)]),
    (foreign("SkipLayerNormalization", "x x w", "y"), [_X], [numbers("w", 15)]),
    (
        foreign("MultiHeadAttention", "q k k", "y", num_heads=4),
        [value("q", [2, 3, 64]), value("k", [2, 7, 32])],
        [],
    ),
    (
        foreign("GroupQueryAttention", "q - - - - l t", "y", num_heads=4, kv_num_heads=4),
        [value("q", [1, 3, 190])],
        [
            onnx.numpy_helper.from_array(np.array([2], np.int32), "l"),
            onnx.numpy_helper.from_array(np.array(3, np.int32), "t"),
        ],
    ),
    (
        foreign("Attention", "x w w1", "y", num_heads=4),
        [value("x", [2, 3, 60])],
        [numbers("w", 64, 192), numbers("w1", 192)],
    ),
]


@pytest.mark.parametrize(
    ("operator", "inputs", "weights"), UNFIT, ids=lambda v: getattr(v, "op_type", "")
)
def test_operators_that_cannot_run(
    tmp_path: Path, operator: Any, inputs: list[Any], weights: list[Any]
) -> None:
    """Tests that the operator is named, and that onnxruntime agrees, whatever is declared."""
    what = alone(operator, inputs, weights)
    del what.graph.output[:]
    what.graph.output.append(value("y", [1, 1, 1]))
    with pytest.raises(FormatError, match=rf"\({operator.op_type}\) cannot run at these sizes"):
        loaded(tmp_path, what)
    tally = Tally()
    tally.judge(operator.op_type, what, {}, {})
    assert tally.verdicts == {"refused": 1}, tally.sentences


@pytest.mark.parametrize(
    "operator",
    [
        foreign("Nonesuch", "x", "y"),
        foreign("MultiHeadAttention", "x", "y", num_heads=4),
        foreign("MatMulNBits", "x w", "y"),
    ],
    ids=lambda one: one.op_type,
)
def test_what_no_rule_covers_is_refused(tmp_path: Path, operator: Any) -> None:
    """Tests an operator without a rule, a layout that its rule lacks, and a missing attribute."""
    what = alone(operator, [_X], [numbers("w", 16)])
    with pytest.raises(FormatError, match=rf"made by .*\({operator.op_type}\)\) has no"):
        loaded(tmp_path, what)
    what.graph.output[0].CopyFrom(value("y", [2, 3]))
    found = loaded(tmp_path, what).graph
    assert found is not None
    assert found.tensors[-1].shape == (2, 3)


def test_a_cache_of_a_length_that_is_not_known(tmp_path: Path) -> None:
    """Tests that the one open size of a cache is asked for, and can be given."""
    what = decoder(1)
    what.graph.node[6].CopyFrom(node("Cast", "last", "total", to=INT32))
    what.graph.output[1].type.tensor_type.shape.dim[2].Clear()
    dims: Mapping[str, int] = PROMPT
    with pytest.raises(FormatError, match=r"present\.0\.key:2 \(axis 2"):
        loaded(tmp_path, what, **dims)
    found = loaded(tmp_path, what, **dims, **{"present.0.key:2": 8}).graph
    assert found is not None
    (cache,) = (one for one in found.tensors if one.name == "present.0.key")
    assert cache.shape == (1, 2, 8, 16)


def test_shapes_that_are_written_down_do_not_hide_the_true_ones(tmp_path: Path) -> None:
    """Tests a stale declaration behind a fused operator."""
    what = alone(foreign("Gelu", "x", "y"), [_X], [])
    what.graph.output[0].CopyFrom(value("y", [1, 3, 16]))
    found = loaded(tmp_path, what)
    assert found.graph is not None
    assert found.graph.tensors[-1].shape == (2, 3, 16)
    assert [note.code for note in found.notes] == ["shape-overridden"]


def test_branches_have_operators_of_onnxruntime_too(tmp_path: Path) -> None:
    """Tests an operator in a branch, which reads what is outside."""
    from onnx_models import branching

    what = branching([foreign("Gelu", "a", "r")], [node("Abs", "a", "r")])
    found = loaded(tmp_path, what).graph
    assert found is not None
    assert {one.name: one.shape for one in found.tensors}["y"] == (4,)

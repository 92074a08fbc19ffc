"""Models as the tools of onnxruntime write them: optimised, quantised, and of language models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx_models import FLOAT, INT64, ints, model, node, value
from onnx_models import graph as make_graph

INT32 = onnx.TensorProto.INT32
MICROSOFT = "com.microsoft"


def numbers(name: str, *shape: int, seed: int = 0) -> Any:
    """Return a weight of random numbers."""
    array = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return onnx.numpy_helper.from_array(array, name)


def foreign(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """Return an operator of onnxruntime."""
    return node(kind, inputs, outputs, domain=MICROSOFT, **attributes)


def whole(
    nodes: Sequence[Any], inputs: Any, outputs: Any, weights: Any = (), opset: int = 17
) -> Any:
    """Return a model that may have operators of onnxruntime."""
    made = model(nodes, inputs, outputs, weights, opset)
    made.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return made


def convolutions() -> Any:
    """Return a network of convolutions with 20 channels, sums and pools, for any batch."""
    nodes = [
        node("Conv", "x w0 b0", "c0", pads=[1, 1, 1, 1]),
        node("Relu", "c0", "r0"),
        node("Conv", "r0 w1 b0", "c1", pads=[1, 1, 1, 1]),
        node("Add", "c1 r0", "s"),
        node("Relu", "s", "r1"),
        node("MaxPool", "r1", "m", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        node("Conv", "m w1 b0", "c2", strides=[2, 2]),
        node("LeakyRelu", "c2", "r2", alpha=0.1),
        node("AveragePool", "m", "a", kernel_shape=[3, 3], strides=[2, 2]),
        node("Concat", "r2 a", "j", axis=1),
        node("Sigmoid", "j", "g0"),
        node("Mul", "j g0", "g1"),
        node("GlobalAveragePool", "g1", "p"),
        node("Flatten", "p", "f"),
        node("Gemm", "f w2 b2", "h", transB=1),
        node("Relu", "h", "h1"),
        node("Gemm", "h1 w3 b3", "l"),
        node("Softmax", "l", "y"),
    ]
    weights = [
        numbers("w0", 20, 3, 3, 3),
        numbers("w1", 20, 20, 3, 3),
        numbers("b0", 20),
        numbers("w2", 32, 40),
        numbers("b2", 32),
        numbers("w3", 32, 10),
        numbers("b3", 10),
    ]
    return model(nodes, [value("x", ["N", 3, "H", "W"])], [value("y", ["N", 10])], weights, 17)


def _project(to: str, at: str, name: str) -> list[Any]:
    return [node("MatMul", f"{to} W{name}", f"{at}m"), node("Add", f"{at}m B{name}", at)]


def encoder(layers: int = 2) -> Any:
    """Return an encoder as exporters write BERT: attention, GELU and normalisation in pieces."""
    heads, hidden, inner = 2, 16, 32
    nodes = [
        node("Gather", "words ids", "e0"),
        node("Gather", "kinds types", "e1"),
        node("Add", "e0 e1", "e2"),
        node("Add", "e2 places", "e3"),
        node("LayerNormalization", "e3 G Z", "t0", axis=-1),
        node("Unsqueeze", "mask one", "u0"),
        node("Unsqueeze", "u0 two", "u1"),
        node("Cast", "u1", "u2", to=FLOAT),
        node("Sub", "unit u2", "u3"),
        node("Mul", "u3 far", "bias"),
    ]
    for at in range(layers):
        p, x = f"l{at}", f"t{at}"
        for each in "qkv":
            nodes += _project(x, f"{p}{each}", each)
            nodes.append(node("Reshape", f"{p}{each} split", f"{p}{each}r"))
        nodes += [
            node("Transpose", f"{p}qr", f"{p}qt", perm=[0, 2, 1, 3]),
            node("Transpose", f"{p}kr", f"{p}kt", perm=[0, 2, 3, 1]),
            node("Transpose", f"{p}vr", f"{p}vt", perm=[0, 2, 1, 3]),
            node("MatMul", f"{p}qt {p}kt", f"{p}s0"),
            node("Div", f"{p}s0 root", f"{p}s1"),
            node("Add", f"{p}s1 bias", f"{p}s2"),
            node("Softmax", f"{p}s2", f"{p}s3", axis=-1),
            node("MatMul", f"{p}s3 {p}vt", f"{p}c0"),
            node("Transpose", f"{p}c0", f"{p}c1", perm=[0, 2, 1, 3]),
            node("Reshape", f"{p}c1 join", f"{p}c2"),
            *_project(f"{p}c2", f"{p}o", "o"),
            node("Add", f"{p}o {x}", f"{p}a"),
            node("LayerNormalization", f"{p}a G Z", f"{p}n", axis=-1),
            *_project(f"{p}n", f"{p}i", "i"),
            node("Div", f"{p}i sqrt2", f"{p}g0"),
            node("Erf", f"{p}g0", f"{p}g1"),
            node("Add", f"{p}g1 unit", f"{p}g2"),
            node("Mul", f"{p}i {p}g2", f"{p}g3"),
            node("Mul", f"{p}g3 half", f"{p}g4"),
            *_project(f"{p}g4", f"{p}f", "f"),
            node("Add", f"{p}f {p}n", f"{p}b"),
            node("LayerNormalization", f"{p}b G Z", f"t{at + 1}", axis=-1),
        ]
    scalars = {"unit": 1.0, "far": -10000.0, "root": 8**0.5, "sqrt2": 2**0.5, "half": 0.5}
    weights = [
        numbers("words", 30, hidden),
        numbers("kinds", 2, hidden),
        numbers("places", 1, 8, hidden),
        numbers("G", hidden),
        numbers("Z", hidden),
        *(numbers(f"W{each}", hidden, hidden) for each in "qkvo"),
        *(numbers(f"B{each}", hidden) for each in "qkvof"),
        numbers("Wi", hidden, inner),
        numbers("Bi", inner),
        numbers("Wf", inner, hidden),
        ints("one", [1]),
        ints("two", [2]),
        ints("split", [0, 0, heads, hidden // heads]),
        ints("join", [0, 0, hidden]),
        *(onnx.numpy_helper.from_array(np.float32(one), name) for name, one in scalars.items()),
    ]
    inputs = [value(name, ["batch", 8], INT64) for name in ("ids", "types", "mask")]
    return model(nodes, inputs, [value(f"t{layers}", ["batch", 8, hidden])], weights, 17)


def decoder(layers: int = 2) -> Any:
    """Return a language model as onnxruntime's model builder writes it, with its cache."""
    heads, groups, wide, inner = 4, 2, 16, 48
    hidden = heads * wide
    nodes = [
        node("Gather", "words input_ids", "e"),
        node("ReduceSum", "attention_mask one", "lengths", keepdims=0),
        node("Sub", "lengths one", "last"),
        node("Cast", "last", "seqlens_k", to=INT32),
        node("Shape", "attention_mask", "mask_shape"),
        node("Gather", "mask_shape at1", "total64", axis=0),
        node("Cast", "total64", "total", to=INT32),
        node("SimplifiedLayerNormalization", "e G", "n0", axis=-1, epsilon=1e-5, stash_type=1),
    ]
    weights = [
        numbers("words", 40, hidden),
        numbers("G", hidden),
        numbers("cos", 32, wide // 2),
        numbers("sin", 32, wide // 2),
        ints("one", [1]),
        ints("at1", 1),
    ]

    def product(to: str, name: str, out: str, size: int, length: int) -> Any:
        blocks = length // 16
        if not any(one.name == f"{name}.q" for one in weights):
            packed = np.full((size, blocks, 8), 0x79, np.uint8)
            weights.append(onnx.numpy_helper.from_array(packed, f"{name}.q"))
            weights.append(numbers(f"{name}.s", size * blocks))
        options = {"K": length, "N": size, "bits": 4, "block_size": 16}
        return foreign("MatMulNBits", f"{to} {name}.q {name}.s", out, **options)

    residual = "e"
    inputs = [value(name, ["batch_size", "sequence_length"], INT64) for name in ("input_ids",)]
    inputs.append(value("attention_mask", ["batch_size", "total_sequence_length"], INT64))
    outputs = [value("logits", ["batch_size", "sequence_length", 40])]
    for at in range(layers):
        p = f"l{at}."
        last = at == layers - 1
        nodes += [
            product(f"n{2 * at}", "Wq", f"{p}q", hidden, hidden),
            product(f"n{2 * at}", "Wk", f"{p}k", groups * wide, hidden),
            product(f"n{2 * at}", "Wv", f"{p}v", groups * wide, hidden),
            foreign(
                "GroupQueryAttention",
                f"{p}q {p}k {p}v past.{at}.key past.{at}.value seqlens_k total cos sin",
                f"{p}a present.{at}.key present.{at}.value",
                num_heads=heads,
                kv_num_heads=groups,
                do_rotary=1,
            ),
            product(f"{p}a", "Wo", f"{p}o", hidden, hidden),
            foreign(
                "SkipSimplifiedLayerNormalization",
                f"{residual} {p}o G",
                f"n{2 * at + 1} - - {p}r",
                epsilon=1e-5,
            ),
            product(f"n{2 * at + 1}", "Wg", f"{p}g", inner, hidden),
            product(f"n{2 * at + 1}", "Wu", f"{p}u", inner, hidden),
            foreign("QuickGelu", f"{p}g", f"{p}s", alpha=1.0),
            node("Mul", f"{p}s {p}u", f"{p}h"),
            product(f"{p}h", "Wd", f"{p}d", hidden, inner),
            foreign(
                "SkipSimplifiedLayerNormalization",
                f"{p}r {p}d G",
                f"n{2 * at + 2}" + ("" if last else f" - - {p}e"),
                epsilon=1e-5,
            ),
        ]
        residual = f"{p}e"
        for each in ("key", "value"):
            kept: list[int | str | None] = ["batch_size", groups, "past_sequence_length", wide]
            grown: list[int | str | None] = ["batch_size", groups, "total_sequence_length", wide]
            inputs.append(value(f"past.{at}.{each}", kept))
            outputs.append(value(f"present.{at}.{each}", grown))
    nodes.append(product(f"n{2 * layers}", "Wl", "logits", 40, hidden))
    return whole(nodes, inputs, outputs, weights)


def optimised(what: Any, path: Path, level: str, **config: str) -> Any:
    """Return a model after the optimiser of onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    for name, setting in config.items():
        options.add_session_config_entry(name.replace("__", "."), setting)
    source = str(what) if isinstance(what, Path) else what.SerializeToString()
    onnxruntime.InferenceSession(source, options, ["CPUExecutionProvider"])
    return path if path.suffix == ".ort" else onnx.load(path)


__all__ = [
    "convolutions",
    "decoder",
    "encoder",
    "foreign",
    "make_graph",
    "numbers",
    "optimised",
    "whole",
]

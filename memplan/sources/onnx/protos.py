"""Types of ONNX: the declared types of values, and the sizes of elements."""

from __future__ import annotations

from math import prod
from typing import Any

__all__ = [
    "STRING",
    "bits_of",
    "bytes_of",
    "dtype_of",
    "is_known",
    "known_shape",
    "opsets_of",
    "tensor_type",
    "types_of",
]

STRING = 8

# By number of `TensorProto.DataType`, also of types that an old version of the library lacks.
_TYPES: dict[int, tuple[str, int]] = {
    1: ("float32", 32),
    2: ("uint8", 8),
    3: ("int8", 8),
    4: ("uint16", 16),
    5: ("int16", 16),
    6: ("int32", 32),
    7: ("int64", 64),
    STRING: ("string", 0),  # objects elsewhere on the heap
    9: ("bool", 8),
    10: ("float16", 16),
    11: ("float64", 64),
    12: ("uint32", 32),
    13: ("uint64", 64),
    14: ("complex64", 64),
    15: ("complex128", 128),
    16: ("bfloat16", 16),
    17: ("float8e4m3fn", 8),
    18: ("float8e4m3fnuz", 8),
    19: ("float8e5m2", 8),
    20: ("float8e5m2fnuz", 8),
    21: ("uint4", 4),
    22: ("int4", 4),
    23: ("float4e2m1", 4),
    24: ("float8e8m0", 8),
    25: ("uint2", 2),
    26: ("int2", 2),
}


def dtype_of(number: int) -> str | None:
    """Return the name of an element type, or `None` for one that ONNX does not have."""
    return _TYPES[number][0] if number in _TYPES else None


def bits_of(number: int) -> int:
    """Return the bits of an element of a type that ONNX has."""
    return _TYPES[number][1]


def bytes_of(number: int, shape: tuple[int, ...]) -> int:
    """Return the bytes of a tensor; types below a byte are packed, and the last byte padded."""
    return -(-prod(shape) * _TYPES[number][1] // 8)


def opsets_of(model: Any) -> dict[str, int]:
    """Return the versions of the domains that a model uses; that of ONNX is ""."""
    return {
        "" if one.domain == "ai.onnx" else one.domain: one.version for one in model.opset_import
    }


def types_of(graph: Any) -> dict[str, Any]:
    """Return the types that a graph declares for its values, by name."""
    values = (*graph.value_info, *graph.output, *graph.input)
    return {value.name: value.type for value in values}


def tensor_type(declared: Any) -> Any | None:
    """Return the type of a tensor (also of one that may be absent), `None` for other values."""
    if declared.HasField("optional_type"):
        declared = declared.optional_type.elem_type
    return declared.tensor_type if declared.HasField("tensor_type") else None


def is_known(declared: Any | None) -> bool:
    """Whether no size is to be found: it is known, or the value is a sequence or a text."""
    if declared is None:
        return False
    one = tensor_type(declared)
    if one is None:
        return bool(declared.WhichOneof("value"))
    return one.elem_type != 0 and known_shape(declared) is not None


def known_shape(declared: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor, if all of it is known."""
    one = tensor_type(declared)
    if one is None or not one.HasField("shape"):
        return None
    if not all(dim.HasField("dim_value") for dim in one.shape.dim):
        return None
    return tuple(dim.dim_value for dim in one.shape.dim)

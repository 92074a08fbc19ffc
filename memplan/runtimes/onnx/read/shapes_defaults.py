"""Inputs with a default, which a caller may replace: sizes that rest on one are then others.

A weight that is listed as an input is such a default since version 4 of the format. Before, all
weights had to be listed, and onnxruntime lets callers replace none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memplan.base.errors import MemplanError, listed
from memplan.base.notes import Code, Note
from memplan.runtimes.onnx.read.protos import copy, make_type, tensor_type
from memplan.runtimes.onnx.read.shapes_rounds import with_shapes

__all__ = ["find_defaults", "find_sizes"]

_FIRST_VERSION = 4
_MOST_NAMED = 16  # defaults that are tried one by one; of more, all are named
_LARGEST = 64  # elements of a default that may be sizes, axes, or a condition

_Found = tuple[Any, tuple[Note, ...]]


def find_defaults(model: Any) -> set[str]:
    """Return the names of the inputs that have a default."""
    if model.ir_version < _FIRST_VERSION:
        return set()
    weights = {one.name for one in model.graph.initializer}
    return weights.intersection(value.name for value in model.graph.input)


def find_sizes(model: Any, dims: Mapping[str, int], limit_factor: int) -> _Found:
    """Return what `with_shapes` does, with a note where sizes rest on defaults of inputs.

    Sizes are found without the values of defaults, if that is possible. Raises as `with_shapes`.
    """
    names = find_defaults(model)
    if not names:
        return with_shapes(model, dims, limit_factor)
    bare = _try_without(model, names, dims, limit_factor)
    if bare is not None and not _list_assumed(bare):
        return bare
    before = copy(model)
    found = with_shapes(model, dims, limit_factor)
    assumed = _list_assumed(found)
    if bare is not None and _list_assumed(bare) <= assumed:
        return bare

    def is_reason(some: Sequence[str]) -> bool:
        other = _try_without(before, some, dims, limit_factor)
        return other is None or not _list_assumed(other) <= assumed

    sizes = {one.name: tuple(one.dims) for one in before.graph.initializer}
    tried = sorted(name for name in names if _may_be_sizes(sizes[name]))
    reasons = tried
    if len(tried) <= _MOST_NAMED:
        reasons = [name for name in tried if is_reason([name])] or tried
    text = (
        f"sizes rest on the defaults of inputs, which a caller may replace: {listed(reasons)}; "
        "give them with --dim TENSOR:AXIS=N for other values"
    )
    return found[0], (*found[1], Note(Code.DIM_ASSUMED, text, tuple(reasons)))


def _may_be_sizes(shape: tuple[int, ...]) -> bool:
    return len(shape) <= 1 and all(size <= _LARGEST for size in shape)


def _list_assumed(found: _Found) -> set[Note]:
    """Return the notes on sizes that were assumed."""
    return {note for note in found[1] if note.code is Code.DIM_ASSUMED}


def _try_without(
    model: Any, names: Sequence[str] | set[str], dims: Mapping[str, int], limit_factor: int
) -> _Found | None:
    """Return what is found without the values of some defaults; `None` if sizes are missing."""
    bare = copy(model)
    taken = [one for one in model.graph.initializer if one.name in names]
    for one in [one for one in bare.graph.initializer if one.name in names]:
        bare.graph.initializer.remove(one)
    types = {one.name: make_type(one.data_type, tuple(one.dims)) for one in taken}
    for value in bare.graph.input:
        if value.name in types and tensor_type(value.type) is not None:
            value.type.CopyFrom(types[value.name])
    try:
        found, notes = with_shapes(bare, dims, limit_factor)
    except MemplanError:
        return None
    found.graph.initializer.extend(taken)
    return found, notes

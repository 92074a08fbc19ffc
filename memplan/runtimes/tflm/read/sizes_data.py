"""Finds tensors whose sizes only the kernels know, and kernels whose scratch is not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from memplan.base.errors import listed
from memplan.base.notes import Code, Note
from memplan.runtimes.tflm.names import is_custom, is_on_heap
from memplan.runtimes.tflm.read.graph import find_scratch_inputs
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph

__all__ = ["find_loose", "note_sizes"]

_ALWAYS: Final = frozenset({"UNIQUE", "WHERE"})
# By operator: the inputs whose values decide the size of a result.
_DECIDED_BY: Final[dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(("FILL", "CONV_3D_TRANSPOSE", "TRANSPOSE_CONV"), (0,)),
    **dict.fromkeys(("RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"), (0,)),
    **dict.fromkeys(("BROADCAST_TO", "TILE"), (1,)),
    **dict.fromkeys(("MIRROR_PAD", "PAD", "PADV2"), (1,)),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), (1,)),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "MEAN", "SUM"), (1,)),
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"), (1,)),
    **dict.fromkeys(("MULTINOMIAL", "ONE_HOT", "SEGMENT_SUM", "SPARSE_TO_DENSE"), (1,)),
    **dict.fromkeys(("SPLIT_V", "TOPK_V2"), (1,)),
    **dict.fromkeys(("BATCH_TO_SPACE_ND", "SLICE", "SPACE_TO_BATCH_ND"), (1, 2)),
    **dict.fromkeys(("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND"), (2,)),
    **{f"UNSORTED_SEGMENT_{what}": (2,) for what in ("MAX", "MIN", "PROD", "SUM")},
    "RANGE": (0, 1, 2),
    "STRIDED_SLICE": (1, 2, 3),
}


def note_sizes(model: Model) -> Iterator[Note]:
    """Yield notes on what the file does not say: results without a size, and scratch.

    TFLM allocates what the file stores, and a kernel that makes more writes beyond it.
    """
    bare: dict[str, str] = {}  # by result: the custom operator that makes it
    decided: dict[str, str] = {}  # by result: the operator whose values decide its size
    follow: list[str] = []  # results without a shape of what reads those
    scratch: dict[str, None] = {}
    given = find_scratch_inputs(model)
    for first, subgraph in zip(model.first, model.subgraphs, strict=False):
        for index, operator in _find_decided_by_data(subgraph):
            decided[subgraph.tensors[index].name] = operator.type
        loose = find_loose(subgraph)
        for operator in subgraph.operators:
            if not loose.isdisjoint(operator.inputs):
                follow += [subgraph.tensors[i].name for i in _find_bare(operator, subgraph)]
        for operator in filter(lambda each: is_custom(each.type), subgraph.operators):
            results = _find_bare(operator, subgraph)
            bare |= {subgraph.tensors[i].name: operator.type for i in results}
            if given.isdisjoint(first + i for i in operator.inputs):
                scratch[operator.type] = None
    if bare:
        types = listed(dict.fromkeys(bare.values()), quote=False)
        text = (
            f"the file stores no shape for results of custom operators ({types}): their sizes are "
            "known only to the kernel, and one element of each is planned, as in TFLM"
        )
        yield Note(Code.NOT_PLANNED, text, tuple(dict.fromkeys((*bare, *follow))))
    if decided:
        types = listed(dict.fromkeys(decided.values()), quote=False)
        text = (
            f"the sizes of results of {types} depend on values that are known only at run time: "
            "the sizes in the file are planned, as in TFLM"
        )
        yield Note(Code.DIM_ASSUMED, text, tuple(decided))
    if scratch:
        text = (
            "kernels of custom operators may ask for scratch, which the file does not show: "
            f"{listed(scratch, quote=False)}"
        )
        yield Note(Code.SCRATCH_UNKNOWN, text)
    heap = [each.name for each in model.tensors() if is_on_heap(each.dtype)]
    if heap:
        text = "strings and variants are not planned: their sizes are known only at run time"
        yield Note(Code.NOT_PLANNED, text, tuple(heap))


def find_loose(subgraph: SubGraph) -> set[int]:
    """Return the tensors whose sizes only the run knows, whatever the file stores for them.

    These are results of custom operators for which no shape is stored, what is made of them if no
    shape is stored for it either, and results whose sizes depend on data.
    """
    found = {index for index, _ in _find_decided_by_data(subgraph)}
    for operator in subgraph.operators:
        if is_custom(operator.type) or not found.isdisjoint(operator.inputs):
            found.update(_find_bare(operator, subgraph))
    return found


def _find_bare(operator: OperatorInfo, subgraph: SubGraph) -> list[int]:
    """Return the results of an operator for which the file stores no shape."""
    return [i for i in operator.outputs if i >= 0 and not subgraph.tensors[i].shape]


def _find_decided_by_data(subgraph: SubGraph) -> Iterator[tuple[int, OperatorInfo]]:
    """Yield the tensors whose sizes depend on data, each with its maker.

    Values that follow from constants and from shapes do not depend on data.
    """
    tensors = subgraph.tensors
    known = {index for index, tensor in enumerate(tensors) if tensor.data}
    loose: set[int] = set()
    for operator in subgraph.operators:
        inputs = [index for index in operator.inputs if index >= 0]
        results = [index for index in operator.outputs if index >= 0]
        if operator.type in ("RANK", "SHAPE"):
            known.update(results if loose.isdisjoint(inputs) else ())
            continue
        if inputs and known.issuperset(inputs) and not operator.type.startswith("RANDOM_"):
            known.update(results)
        opens = any(tensors[index].open_axes for index in results)
        opened = opens and not any(tensors[index].open_axes for index in inputs)
        if opened or _is_decided_by_data(operator, subgraph, known):
            loose.update(results)
            yield from ((index, operator) for index in results)


def _is_decided_by_data(operator: OperatorInfo, subgraph: SubGraph, known: set[int]) -> bool:
    if operator.type in _ALWAYS:
        return True
    positions = _DECIDED_BY.get(operator.type, ())
    deciding = [operator.inputs[at] for at in positions if at < len(operator.inputs)]
    tensors = subgraph.tensors
    if operator.type == "SLICE" and len(deciding) == 2 and deciding[1] in known:
        values = tensors[deciding[1]].values  # with sizes of its own, its begin does not matter
        if values is not None and min(values, default=0) >= 0:
            return False
    if operator.type == "STRIDED_SLICE" and operator.outputs and operator.inputs:
        whole, part = tensors[operator.inputs[0]], tensors[operator.outputs[0]]
        if len(part.shape) < len(whole.shape):
            return False  # it takes single elements of a dimension, whose number is fixed
    return any(index >= 0 and index not in known for index in deciding)

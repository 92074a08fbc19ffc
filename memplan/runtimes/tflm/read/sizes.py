"""Computes the sizes of a model at another batch, and checks the sizes that a file stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Final

from memplan.base.errors import FormatError, MemplanError, listed, quoted, suggest
from memplan.base.notes import Code, Note
from memplan.runtimes.tflm.names import format_place, format_shape, is_custom
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo
from memplan.runtimes.tflm.read.shapes import infer_shape
from memplan.runtimes.tflm.read.sizes_data import find_loose

__all__ = ["check_shapes", "note_guesses", "resize"]

BATCH: Final = "batch"  # the name of the one open dimension for `--dim`; a file has no names
_MOVES: Final = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")  # as many elements as before


def resize(model: Model, dims: Mapping[str, int]) -> Model:
    """Return a model with another size for its one open dimension.

    Sizes are computed from the inputs, operator by operator (`shapes.infer_shape`). Where that is
    not possible for an operator, the dimensions that the file leaves open get the new size. A
    `FormatError` names an operator that cannot run at this size.
    """
    if not dims:
        return model
    for name, size in dims.items():
        if name != BATCH:
            raise MemplanError(
                f"{model.name} has no dimension {quoted(name)}: the open dimension of a TFLite "
                f"file is called {BATCH}{suggest(name, [BATCH])}"
            )
        if size < 1:
            raise MemplanError(f"dimension {BATCH} is {size}; it must be 1 or more")
    if not any(tensor.open_axes for tensor in model.tensors()):
        raise MemplanError(f"{model.name} has no open dimension: leave {BATCH} out")
    for tensor in model.tensors():
        if len(tensor.open_axes) > 1:
            raise MemplanError(
                f"tensor {quoted(tensor.name)} of {model.name} has {len(tensor.open_axes)} open "
                "dimensions, and the file does not say how other sizes depend on them: convert "
                "the model with fixed shapes"
            )
    size = dims[BATCH]
    return replace(
        model,
        subgraphs=tuple(
            replace(subgraph, tensors=_propagate(model.name, number, subgraph, size))
            for number, subgraph in enumerate(model.subgraphs)
        ),
    )


def _propagate(name: str, number: int, subgraph: SubGraph, size: int) -> tuple[TensorInfo, ...]:
    """Return the tensors of a sub-graph at a batch."""
    tensors = [_with_batch(tensor, size) for tensor in subgraph.tensors]
    loose = find_loose(subgraph)
    for index, operator in enumerate(subgraph.operators):
        if not loose.isdisjoint(operator.inputs):
            continue
        where = f"operator {format_place(number, index)} ({operator.type})"
        given = [None if i < 0 else tensors[i] for i in operator.inputs]
        try:
            shape = infer_shape(operator, given)
        except ValueError as error:
            raise FormatError(name, f"{where} {error}, at {BATCH}={size}") from None
        if shape is not None and not tensors[operator.outputs[0]].data:
            made = tensors[operator.outputs[0]]
            tensors[operator.outputs[0]] = replace(made, shape=shape, open_axes=())
        elif operator.type in _MOVES and given and given[0] is not None:
            made = tensors[operator.outputs[0]]
            if made.elements != given[0].elements:
                raise FormatError(
                    name,
                    f"{where} cannot make {made.elements} elements of {given[0].elements}, at "
                    f"{BATCH}={size}",
                )
    return tuple(tensors)


def _with_batch(tensor: TensorInfo, size: int) -> TensorInfo:
    if not tensor.open_axes or tensor.data:
        return tensor
    shape = list(tensor.shape)
    axis = tensor.open_axes[0]
    # A dimension may be a multiple of the batch ([batch * time, ...]); the file stores the one of
    # batch 1.
    shape[axis] = size * max(shape[axis], 1)
    return replace(tensor, shape=tuple(shape), open_axes=())


def note_guesses(stored: Model, model: Model) -> tuple[Note, ...]:
    """Return a note on tensors of a resized model with sizes that its inputs do not determine."""
    types: dict[str, None] = {}
    names: list[str] = []
    for before, after in zip(stored.subgraphs, model.subgraphs, strict=True):
        for operator, given in _pair_with_inputs(after):
            moved = any(
                i >= 0 and before.tensors[i].shape != after.tensors[i].shape
                for i in operator.inputs
            )
            if moved and operator.outputs and infer_shape(operator, given) is None:
                types[operator.type] = None
                names += [after.tensors[i].name for i in operator.outputs if i >= 0]
    if not names:
        return ()
    text = (
        f"memplan has no rule for {listed(types, quote=False)}: the sizes of their results at this "
        f"{BATCH} follow from the open dimensions in the file"
    )
    return (Note(Code.DIM_ASSUMED, text, tuple(names)),)


def check_shapes(model: Model) -> tuple[Note, ...]:
    """Check the shapes in a file against its operators; refuse a file that contradicts itself.

    There is a note if the file leaves dimensions open and its operators cannot run at the sizes
    that it stores for them, and one if they cannot run at those of results of custom operators.
    """
    faults = list(_find_faults(model))
    guessed = [tensors for _, tensors, is_guess in faults if is_guess]
    notes: tuple[Note, ...] = ()
    if guessed:
        text = (
            "the sizes stored for results of custom operators contradict what is made of them, and "
            "only the kernels know them: the sizes in the file are planned, as in TFLM"
        )
        notes = (Note(Code.NOT_PLANNED, text, tuple(dict.fromkeys(sum(guessed, ())))),)
    fault = next((each for each in faults if not each[2]), None)
    if fault is None:
        return notes
    sentence, tensors, _ = fault
    if not any(tensor.open_axes for tensor in model.tensors()):
        raise FormatError(model.name, f"the model contradicts itself: {sentence}")
    text = f"the model cannot run at the sizes stored for its open dimensions: {sentence}"
    return (*notes, Note(Code.DIM_ASSUMED, text, tensors))


def _find_faults(model: Model) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Yield a sentence on each operator that contradicts the stored shapes, and some tensors.

    These are the results of custom operators that it reads, whose stored shapes are guesses of a
    converter, and then the last value is true; or its own results.
    """
    for number, subgraph in enumerate(model.subgraphs):
        loose = find_loose(subgraph)
        custom = {i for o in subgraph.operators if is_custom(o.type) for i in o.outputs}
        for index, (operator, given) in enumerate(_pair_with_inputs(subgraph)):
            if not loose.isdisjoint(operator.inputs):
                continue
            where = f"operator {format_place(number, index)} ({operator.type})"
            made = [subgraph.tensors[i] for i in operator.outputs if i >= 0]
            guesses = [subgraph.tensors[i] for i in operator.inputs if i in custom]
            names = tuple(tensor.name for tensor in guesses or made)
            try:
                shape = infer_shape(operator, given)
            except ValueError as error:
                yield f"{where} {error}", names, bool(guesses)
                continue
            # Only the number of elements counts, as it gives TFLM the same bytes.
            if shape is not None and made and not made[0].data and prod(shape) != made[0].elements:
                stored = f"tensor {quoted(made[0].name)} is stored as {format_shape(made[0].shape)}"
                yield f"{where} makes {format_shape(shape)}, but {stored}", names, bool(guesses)


def _pair_with_inputs(subgraph: SubGraph) -> Iterator[tuple[OperatorInfo, list[TensorInfo | None]]]:
    for operator in subgraph.operators:
        yield operator, [None if i < 0 else subgraph.tensors[i] for i in operator.inputs]

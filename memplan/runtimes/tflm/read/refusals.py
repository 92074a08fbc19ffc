"""What TensorFlow Lite Micro has no kernel for: operators, and the types of their tensors.

This is what its reference kernels take when they prepare and run a model, tried operator by
operator and type by type (tests/runtimes/tflm/test_refusals.py tries them again). It stands in
where the package `tflite-micro` is not installed; where it is, the runtime itself is asked.
"""

from __future__ import annotations

from typing import Final

from memplan.base.errors import listed
from memplan.runtimes.tflm.names import format_place, is_custom
from memplan.runtimes.tflm.operators import TABLE, find_row
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, TensorInfo

__all__ = ["CUSTOM", "KERNELS", "find_typed", "list_refusals"]

KERNELS: Final = frozenset(name for name, row in TABLE.items() if row.types is not None)
"""The operators that TFLM has kernels for."""

_CUSTOM: Final = """
    CIRCULAR_BUFFER SignalDelay SignalEnergy SignalFftAutoScale SignalFilterBank SignalFilterBankLog
    SignalFilterBankSpectralSubtraction SignalFilterBankSquareRoot SignalFramer SignalIrfft
    SignalOverlapAdd SignalPCAN SignalRfft SignalStacker SignalWindow TFLM_DECODE
    TFLite_Detection_PostProcess
"""
CUSTOM: Final = frozenset(_CUSTOM.split())
"""The custom operators that TFLM has kernels for."""


def list_refusals(model: Model) -> tuple[list[str], list[str]]:
    """Return what TFLM has no kernel for, a part of a sentence each, and the results concerned.

    Operators that only unpack weights are left out, because they are not in a file for TFLM.
    """
    folded = find_folded(model)
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for number, subgraph in enumerate(model.subgraphs):
        for index, operator in enumerate(subgraph.operators):
            what = None if index in folded[number] else _refuse(operator, subgraph.tensors)
            if what is not None:
                found.setdefault(what, []).append(format_place(number, index))
                names += [subgraph.tensors[i].name for i in operator.outputs if i >= 0]
    return [f"{what} ({listed(at, quote=False)})" for what, at in found.items()], names


def _refuse(operator: OperatorInfo, tensors: tuple[TensorInfo, ...]) -> str | None:
    """Return what its kernels lack for an operator, or `None`."""
    row = find_row(operator.type)
    if row.types is None:
        if operator.type in CUSTOM:
            return None
        custom = "the custom operator " if is_custom(operator.type) else ""
        return f"no kernel for {custom}{operator.type}"
    taken, types = row.taken, find_typed(operator, tensors)
    if not taken or types is None or types in taken:
        return None
    return f"no kernel for {operator.type} of {' with '.join(types)}"


def find_typed(operator: OperatorInfo, tensors: tuple[TensorInfo, ...]) -> tuple[str, ...] | None:
    """Return the types that decide whether a kernel takes an operator; `None` if one is missing."""
    row = find_row(operator.type)
    default = (0, 1) if "+" in (row.types or "") else (0,)
    found = []
    for at in row.typed or default:
        ends = operator.outputs[:1] if at < 0 else operator.inputs[at : at + 1]
        if not ends or ends[0] < 0:
            return None
        found.append(tensors[ends[0]].dtype)
    return tuple(found)

"""The options for reading a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memplan.graph import Kind

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options for turning a model into a problem.

    Attributes
    ----------
    dims
        Values of symbolic dimensions, by name.
    include
        The kinds of tensors to plan; `None` for those that the format's own runtime plans.
    in_place
        Whether operators that may do so write over inputs.
    pins
        Whether to keep offsets that the file gives.
    limit_factor
        How many times the usual limits (`memplan.sources._limits`) a file may expand while it is
        read.
    runtime_order
        Whether operators of an ONNX model run in the order of onnxruntime's default, and not in
        that of the file.
    part
        The device of a CUDA snapshot, or the allocation of an XLA dump; `None` for the largest.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    include: frozenset[Kind] | None = None
    in_place: bool = False
    pins: bool = True
    limit_factor: int = 1
    runtime_order: bool = False
    part: int | None = None

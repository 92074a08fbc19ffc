"""The options for reading a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memplan.programs.graph import Kind

if TYPE_CHECKING:
    from memplan.runtimes.tflm.read.boards import Board

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options for turning a model into a problem; `memplan.load` explains them.

    `include` is `None` for the kinds that the format's own runtime plans, `part` for the largest
    one, and `board` for the kernels of TFLM's Python package.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    include: frozenset[Kind] | None = None
    in_place: bool = False
    pins: bool = True
    limit_factor: int = 1
    runtime_order: bool = False
    part: int | None = None
    fused: bool = False
    board: Board | None = None

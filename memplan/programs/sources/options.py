"""The options for reading a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memplan.programs.graph import Kind

__all__ = ["Board", "Options"]


@dataclass(frozen=True, slots=True)
class Board:
    """A chip, as far as TFLM's arena depends on it."""

    name: str  # as users write it: "cortex-m4"
    pointer: int  # bytes of a pointer
    enumeration: int  # the least bytes of one: compilers for Arm without an operating system take 1
    kernels: str  # the name of their library
    # The instructions that a library of kernels uses: "" for plain C, "dsp" or "mve" of Arm,
    # "esp32", "esp32-s3" or "esp32-p4".
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name} with {self.kernels} kernels"


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

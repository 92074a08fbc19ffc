"""The options for reading a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memplan.graph import Kind

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options for turning a model into a problem; `memplan.load` explains them.

    `include` is `None` for the kinds that the format's own runtime plans, and `part` for the
    largest one.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    include: frozenset[Kind] | None = None
    in_place: bool = False
    pins: bool = True
    limit_factor: int = 1
    runtime_order: bool = False
    part: int | None = None

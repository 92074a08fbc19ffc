"""Notes: what a reader of models assumed or left out, as data for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Code", "Note"]


class Code(StrEnum):
    """What a note is about; docs/sources.md lists them for users."""

    ARENA_UNMEASURED = "arena-unmeasured"  # a capacity was compared with a part of the arena only
    AUTOCAST_ASSUMED = "autocast-assumed"  # autocast keeps casts of weights in its cache
    BLOCK_LIMIT = "block-limit"  # a block is larger than the host's limit on blocks
    BRANCH_DROPPED = "branch-dropped"  # a branch that cannot run at these sizes is not planned
    DIM_ASSUMED = "dim-assumed"  # a dimension has a size that the user did not give
    FUSED_BELOW = "fused-below"  # the runtime fuses operators, and needs less than any plan
    GUARD_UNCHECKED = "guard-unchecked"  # a condition on sizes cannot be computed
    HOST_PLANS = "host-plans"  # a runtime of another release keeps its own plans
    KINDS_MISSING = "kinds-missing"  # the format has no tensors of a kind that was asked for
    LIFETIMES_UNKNOWN = "lifetimes-unknown"  # a plan does not hold all lifetimes
    MEASURED_ABOVE = "measured-above"  # a runtime needs more than the planned sizes explain
    NOT_PLANNED = "not-planned"  # tensors are left out
    OPERATORS_SORTED = "operators-sorted"  # the file has operators before what they read
    ORDER_OF_RUNTIME = "order-of-runtime"  # the runtime has an order of its own, with another load
    OUT_OF_MEMORY = "out-of-memory"  # the recorded run asked for memory that it did not get
    PARTLY_READ = "partly-read"  # the file holds several programs, and one is planned
    PINS_DROPPED = "pins-dropped"  # offsets in the file are of another order of operators
    PRIVATE_POOL = "private-pool"  # memory that a CUDA graph writes again is kept apart
    RUNTIME_REFUSES = "runtime-refuses"  # the format's own runtime does not run the model
    SCRATCH_UNKNOWN = "scratch-unknown"  # kernels need memory that the file does not show
    SHAPE_OVERRIDDEN = "shape-overridden"  # the file declares a shape that its inputs contradict
    TRACE_INCOMPLETE = "trace-incomplete"  # a recording began after its first allocation
    WEIGHTS_UNPACKED = "weights-unpacked"  # operators that only unpack weights are not planned


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was assumed or left out, and that a user can change."""

    code: Code  # the subject of the note
    text: str  # a sentence for a person, without a full stop
    # Those or the allocations that it is about; empty if it is about all.
    tensors: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

"""Writes plans for TensorFlow Lite Micro: into the model's own file, or as a C struct next to it.

TFLM uses the offsets of `OfflineMemoryAllocation` metadata as they are, without a check. So a plan
is only written after it has passed `memplan.verify` and the checks of the graph.
"""

from memplan.runtimes.tflm.arena import minimal_arena
from memplan.runtimes.tflm.write.apply import apply, apply_in_bands, apply_in_order, patch
from memplan.runtimes.tflm.write.folding import require_library
from memplan.runtimes.tflm.write.planning import plan_file
from memplan.runtimes.tflm.write.shim import shim_header
from memplan.runtimes.tflm.write.writer import Applied, TfliteMicro

__all__ = [
    "Applied",
    "TfliteMicro",
    "apply",
    "apply_in_bands",
    "apply_in_order",
    "minimal_arena",
    "patch",
    "plan_file",
    "require_library",
    "shim_header",
]

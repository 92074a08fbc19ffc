"""Writes plans for TensorFlow Lite Micro: into the model's own file, or as a C struct next to it.

TFLM uses the offsets of `OfflineMemoryAllocation` metadata as they are, without a check. So a plan
is only written after it has passed `memplan.verify` and the checks of the graph.
"""

from memplan.targets.tflite_micro.apply import apply, apply_in_bands, apply_in_order, patch
from memplan.targets.tflite_micro.folding import require_library
from memplan.targets.tflite_micro.planning import plan_file
from memplan.targets.tflite_micro.shim import shim_header
from memplan.targets.tflite_micro.writer import Applied, TfliteMicro
from memplan.yardsticks.tflite_micro_arena import minimal_arena

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

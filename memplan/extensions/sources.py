"""The formats that extensions read: `memplan.programs.sources.registry` looks for this table.

It may be missing with all of this folder: then files of these formats are not recognised.
"""

from typing import Final

from memplan.programs.sources.registry import Source

__all__ = ["SOURCES"]

SOURCES: Final = {
    "cuda-snapshot": Source(
        "memplan.extensions.cuda_snapshot",
        "a CUDA memory snapshot of PyTorch",
        "a recorded run",
        binary="CUDA memory snapshots",
        takes=("part",),
    ),
    "openvino": Source(
        "memplan.extensions.openvino",
        "an OpenVINO model",
        takes=("dims",),
        dialect="memplan.extensions.openvino.effects",
    ),
    "xla": Source(
        "memplan.extensions.xla",
        "a dump of XLA",
        "an XLA dump",
        binary="XLA dumps",
        takes=("part",),
    ),
    "ggml-events": Source(
        "memplan.extensions.ggml",
        "a list of what ggml allocated for a graph",
        "a list of ggml's events",
    ),
}

"""Runs a captured model on parallel streams from one slab, at planned offsets (SOMAS).

    from memplan.extensions.streams import StreamRunner, capture_training

    program = capture_training(model, inputs, loss=loss, streams="overlap")
    plan = memplan.solve(program.problem)
    fast = StreamRunner(plan, program)
    result = fast(*inputs)

On a CPU each stream is a thread, on a CUDA device it is a CUDA stream. An operator waits for the
operators before it on its stream, and for those that the graph names; nothing else orders it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memplan.extensions.streams.program import Program, capture_inference, capture_training
    from memplan.extensions.streams.runner import StreamRunner

__all__ = ["Program", "StreamRunner", "capture_inference", "capture_training"]


def __getattr__(name: str) -> object:
    """Import PyTorch with the first name that needs it; training steps are traced without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "runner" if name == "StreamRunner" else "program"
    return getattr(import_module(f"{__name__}.{home}"), name)

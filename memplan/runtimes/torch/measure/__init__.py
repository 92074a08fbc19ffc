"""Computes what PyTorch needs for an exported program that runs operator by operator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memplan.programs.sources.loaded import Figure
from memplan.programs.sources.options import Options
from memplan.runtimes.torch.measure.caching_allocator import replay
from memplan.runtimes.torch.read import read

__all__ = ["measure"]


def measure(path: Path, options: Options) -> Figure | None:
    """Return the bytes that the CUDA caching allocator would reserve for a program's tensors.

    Every tensor is freed after the last operator that reads it. No code of a file is run,
    so this follows the allocator's policy instead of measuring the allocator.
    """
    peak = replay(read(path, replace(options, in_place=False)).problem)
    return Figure(
        "PyTorch's CUDA caching allocator",
        peak.reserved,
        "re-implemented",
        f"reserved in segments; {peak.allocated} bytes of them are in use at the worst moment",
    )

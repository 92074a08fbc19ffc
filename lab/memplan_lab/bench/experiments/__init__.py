"""The benchmarks of `memplan-lab bench`, one file each."""

from __future__ import annotations

from importlib import import_module

from memplan_lab.bench.experiment import Experiment

__all__ = ["NAMES", "find"]

NAMES = (
    *("bands", "blocks", "contention", "envelopes", "ggml", "latency", "memories", "order"),
    *("penalties", "recompute", "repack", "residency", "somas", "tinygrad", "training"),
)


def find(name: str) -> Experiment:
    """Return an experiment of `NAMES`."""
    found: Experiment = import_module(f"memplan_lab.bench.experiments.{name}").EXPERIMENT
    return found

"""Peaks of each format's own runtime for the same program, measured or re-implemented."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final, cast

from memplan.sources.loaded import Figure
from memplan.sources.options import Options

__all__ = ["measure"]

# By source: the module of this package with the `measure(path, options)` to call.
_RUNTIMES: Final = {
    "onnx": "onnxruntime",
    "tflite": "tflite_micro",
    "torch": "torch_export",
}


def measure(source: str, path: Path, options: Options) -> Figure | None:
    """Return the peak of a source's own runtime, or `None` if there is no way to get it.

    Parameters
    ----------
    source
        As in `memplan.sources.Loaded.source`.
    path
        The file, which the source has read without an error.
    options
        The options that the source read it with.
    """
    name = _RUNTIMES.get(source)
    if name is None:
        return None
    module = importlib.import_module(f"memplan.yardsticks.{name}")
    return cast("Figure | None", module.measure(path, options))

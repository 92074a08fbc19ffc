"""Writes an ONNX model that computes its first large tensors one band of rows at a time.

    found = memplan.targets.onnx_bands.put_in_bands("model.onnx", "bands.onnx", max_extra=0.1)
    print(found.given_peak, found.peak, found.extra)

Onnxruntime has to be told to keep the order of the file, and to free tensors after their last use:

    options = onnxruntime.SessionOptions()
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    options.enable_mem_reuse = False
    options.enable_mem_pattern = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC

Otherwise it gives the memory of a band to the next tensor of that size and keeps it until the last
of these, also where none of them is live. An operator that it takes apart, as it does HardSwish,
runs later than its place in the file, and its bands then are all live at one time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from memplan.files import write_files
from memplan.pipeline import Arranged, arrange
from memplan.rewrite.bands import MAX_EXTRA
from memplan.sources.options import Options
from memplan.targets.onnx import OnnxFile

__all__ = ["HOW_TO_RUN", "put_in_bands"]

HOW_TO_RUN: Final = (
    "set SessionOptions.execution_order = ExecutionOrder.PRIORITY_BASED, and enable_mem_reuse and "
    "enable_mem_pattern to False: else onnxruntime keeps the memory of bands for others of their "
    "size"
)


def put_in_bands(
    path: Path | str,
    out: Path | str | None = None,
    options: Options | None = None,
    *,
    max_extra: float = MAX_EXTRA,
    budget: int | None = None,
) -> Arranged:
    """Write a model that computes its large pictures in bands, where this needs less memory.

    Weights in other files are not touched: `out` belongs into the folder of `path` if there are
    any. Dimensions that `options` gives are written into the file, as bands are for that size.

    Parameters
    ----------
    path, out
        The model, and the file to write; it may be the same. Without one, none is written: the
        result has its bytes.
    options
        See `memplan.load`.
    max_extra
        The most work that may be added, as a share of the multiplications of the model.
    budget
        Bytes that are enough: the least work within them is chosen. Without it, the least memory.

    Raises
    ------
    FormatError
        If the file is no model, or cannot be cut: nothing is written.
    MemplanError
        If no bands are within the budget, and if the library `onnx` is missing.
    """
    writer = OnnxFile(Path(path), options, takes_offsets=False)
    found = arrange(writer, in_place=True, bands=True, max_extra=max_extra, capacity=budget)
    found.require_fit(max_extra)
    if out is not None:
        write_files({str(out): found.data})
    return found


stripe = put_in_bands  # the old name

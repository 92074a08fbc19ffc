"""Writes an ONNX model that computes its first large tensors one band of rows at a time.

    found = memplan.runtimes.onnx.write.put_in_bands("model.onnx", "bands.onnx", max_extra=0.1)
    print(found.given_peak, found.peak, found.extra)

If onnxruntime is installed, it fuses operators first, and the file is for sessions with default
settings; otherwise they need those of `memplan.runtimes.onnx.write.writer`.
"""

from __future__ import annotations

from pathlib import Path

from memplan.base.files import write_files
from memplan.levers.pipeline import Arranged, arrange
from memplan.levers.rewrite.bands import MAX_EXTRA
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.write.writer import OnnxFile

__all__ = ["put_in_bands"]


def put_in_bands(
    path: Path | str,
    out: Path | str | None = None,
    options: Options | None = None,
    *,
    max_extra: float = MAX_EXTRA,
    capacity: int | None = None,
    fused: bool = True,
) -> Arranged:
    """Write a model that computes its large pictures in bands, where this needs less memory.

    Dimensions that `options` gives are written into the file, as bands are for that size.

    Parameters
    ----------
    path, out
        The model, and the file to write; it may be the same. Without one, none is written: the
        result has its bytes.
    options
        See `memplan.load`.
    max_extra
        The most work that may be added, as a share of the multiplications of the model.
    capacity
        Bytes that are enough: the least work within them is chosen. Without it, the least memory.
    fused
        See `memplan.runtimes.onnx.write.OnnxFile`.

    Raises
    ------
    FormatError
        If the file is no model, or cannot be cut: nothing is written.
    MemplanError
        If no bands are within the budget, and if the library `onnx` is missing.
    """
    writer = OnnxFile(Path(path), options, takes_offsets=False, fused=fused)
    found = arrange(writer, in_place=True, bands=True, max_extra=max_extra, capacity=capacity)
    found.require_fit(max_extra)
    if out is not None:
        write_files({str(out): found.data})
    return found


stripe = put_in_bands  # the old name

"""Writes ONNX models in another order of operators, or in bands: the `Writer` of `memplan.arrange`.

    found = memplan.targets.onnx.reorder("model.onnx", "ordered.onnx")

Onnxruntime allocates while it runs, so that what counts is the load of the nodes in their order. It
runs them in the order of the file only if it is told to:

    options = onnxruntime.SessionOptions()
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from memplan.errors import FormatError
from memplan.files import read_bytes as read_file
from memplan.files import write_files
from memplan.notes import Code
from memplan.pipeline import Comparison, Variant, Writer, Written, arrange, graph_of
from memplan.planning import Planned, settle_sizes
from memplan.rewrite import Recomputed, Reordered
from memplan.rewrite.again import Emitted
from memplan.rewrite.bands import Cut
from memplan.sources import Loaded
from memplan.sources.loaded import lay_out_again
from memplan.sources.onnx import read, read_bytes
from memplan.sources.options import Options
from memplan.targets._onnx_again import write_again
from memplan.targets._onnx_bands import write_bands
from memplan.targets._onnx_order import write_order
from memplan.yardsticks.onnxruntime import measure_difference, measure_least

__all__ = ["HOW_TO_RUN", "HOW_TO_RUN_AGAIN", "OnnxFile", "reorder"]

HOW_TO_RUN: Final = (
    "set SessionOptions.execution_order = ExecutionOrder.PRIORITY_BASED: onnxruntime keeps no "
    "order of a file without it"
)
HOW_TO_RUN_AGAIN: Final = (
    "and leave out an optimizer, which makes one operator of equal ones: InferenceSession(..., "
    'disabled_optimizers=["CommonSubexpressionElimination"])'
)


def reorder(
    path: Path | str,
    out: Path | str,
    options: Options | None = None,
    *,
    timeout: float | None = None,
    states: int | None = None,
    pure: Iterable[str] = (),
) -> Reordered:
    """Write a model with its operators in the order with the least load.

    Weights, names and everything else stay, and weights in other files are not touched: `out`
    belongs into the folder of `path` if there are any.

    Parameters
    ----------
    path, out
        The model, and the file to write; it may be the same.
    options
        See `memplan.load`: dimensions, kinds of tensors. Operators write over inputs that are not
        needed any more, as they do in onnxruntime.
    timeout, states, pure
        As of `memplan.reorder`.

    Raises
    ------
    FormatError
        If the file is no model, or its operators cannot be put into the order: nothing is written.
    MemplanError
        As `memplan.reorder`, and if the library `onnx` is missing.
    """
    writer = OnnxFile(Path(path), options, takes_offsets=False)
    found = arrange(writer, in_place=True, order=True, timeout=timeout, nodes=states, pure=pure)
    write_files({str(out): found.data})
    assert found.order is not None, "it was asked for"
    return found.order


class OnnxFile(Writer):
    """An ONNX model as onnxruntime runs it, in the order of the file.

    Weights in other files are not touched: what is written belongs into the folder of the model.

    Parameters
    ----------
    path
        The model.
    options
        See `memplan.load`. Dimensions that it gives are written into a file in bands, as bands are
        for that size.
    takes_offsets
        Whether programs are planned too, and measured where onnxruntime is installed.
    """

    has_runtime = True
    runs_again = True

    def __init__(
        self, path: Path, options: Options | None = None, *, takes_offsets: bool = True
    ) -> None:
        self.name, self.takes_offsets = str(path), takes_offsets
        self._path = path
        self._options = replace(options or Options(), in_place=True, runtime_order=False)
        self._measured: dict[bytes, tuple[int, bool] | None] = {}  # by the file

    def open(self) -> Variant:
        """See `memplan.pipeline.Writer`."""
        loaded = settle_sizes(self._read(self._options.dims), self._path, self._options, self._read)
        return Variant(loaded, read_file(self._path))

    def _read(self, dims: Mapping[str, int]) -> Loaded:
        """Return the model with these sizes, which all that is written of it has too."""
        self._options = replace(self._options, dims=dims)
        return read(self._path, self._options)

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """See `memplan.pipeline.Writer`."""
        data = write_order(given.data, self.name, found.graph)
        loaded = self._read_back(data, found.peak, given, in_place=found.in_place)
        return replace(given, loaded=loaded, data=data, order=found)

    def put_again(self, given: Variant, found: Recomputed) -> Variant:
        """See `memplan.pipeline.Writer`."""
        emitted = Emitted(found.graph, found.operators)
        data = write_again(given.data, graph_of(given), emitted, self._path)
        loaded = self._read_back(data, found.peak, given, in_place=False)
        return replace(given, loaded=loaded, data=data, again=found)

    def _read_back(self, data: bytes, peak: int, given: Variant, *, in_place: bool) -> Loaded:
        """Return what was written, which must need no more than it did before."""
        loaded = read_bytes(data, self._path, self._options)
        ways = (lay_out_again(loaded, in_place=way) for way in {False, in_place})
        if (load := min(way.problem.max_load for way in ways)) > peak:
            raise FormatError(
                self.name,
                f"the program needs {peak} bytes, but {load} as the nodes of a file: inline the "
                "functions of the model first",
            )
        return replace(loaded, notes=given.loaded.notes)

    def put_in_bands(self, given: Variant, found: Cut) -> Variant:
        """See `memplan.pipeline.Writer`."""
        data, banded = write_bands(given.data, found, self._path, self._options)
        loaded = replace(banded, notes=given.loaded.notes)
        return replace(given, loaded=loaded, data=data, cut=found)

    def write(self, given: Variant, planned: Planned) -> Written:
        """See `memplan.pipeline.Writer`."""
        data = given.data
        is_sorted = all(note.code is not Code.OPERATORS_SORTED for note in given.loaded.notes)
        if not (is_sorted or given.cut or given.order or given.again):
            data = write_order(data, self.name, graph_of(given))
        if self.takes_offsets:
            return self._measure(data, given)
        return Written(data, given.loaded.problem.max_load, "the load of its nodes")

    def _measure(self, data: bytes, given: Variant) -> Written:
        """Return what the runtime needs: its own figure, or else what it needs without reuse."""
        if data not in self._measured:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                path.write_bytes(data)
                self._measured[data] = measure_least(path, self._options, given.loaded)
        found = self._measured[data]
        if found is None:
            load = lay_out_again(given.loaded, in_place=False).problem.max_load
            return Written(data, load, "the load of its nodes")
        return Written(data, found[0], f"measured with enable_mem_reuse = {found[1]}")

    def compare(self, given: Variant, written: Written) -> Comparison | None:
        """See `memplan.pipeline.Writer`."""
        apart = measure_difference(given.data, written.data)
        return None if apart is None else Comparison(apart)

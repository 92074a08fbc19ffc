"""Writes ONNX models in another order of operators, or in bands: the `Writer` of `memplan.arrange`.

Onnxruntime allocates while it runs, so that what counts is the load of the nodes in their order.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memplan.files import read_bytes
from memplan.notes import Code
from memplan.pipeline import Comparison, Variant, Written, graph_of
from memplan.planning import Planned
from memplan.rewrite import Reordered
from memplan.rewrite.bands import Cut, Uncut
from memplan.sources import Loaded
from memplan.sources.onnx import read
from memplan.sources.options import Options
from memplan.targets.onnx import write_order
from memplan.targets.onnx_bands import sort_file, write_bands
from memplan.yardsticks.onnxruntime import measure_difference

__all__ = ["OnnxFile"]


class OnnxFile:
    """An ONNX model as onnxruntime runs it, in the order of the file.

    Weights in other files are not touched: what is written belongs into the folder of the model.

    Parameters
    ----------
    path
        The model.
    options
        See `memplan.load`. Dimensions that it gives are written into a file in bands, as bands are
        for that size.
    """

    trials = 1
    has_runtime = True

    def __init__(self, path: Path, options: Options | None = None) -> None:
        self.name = str(path)
        self._path = path
        self._options = replace(options or Options(), in_place=True, runtime_order=False)

    def open(self) -> Variant:
        """See `memplan.pipeline.Writer`."""
        return Variant(read(self._path, self._options), read_bytes(self._path))

    def bare(self, given: Variant) -> Loaded:
        """See `memplan.pipeline.Writer`."""
        return given.loaded

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """See `memplan.pipeline.Writer`."""
        data, loaded = write_order(given.data, found, self._path, self._options)
        return replace(given, loaded=loaded, data=data, order=found)

    def uncut(self, given: Variant) -> Uncut:
        """See `memplan.pipeline.Writer`."""
        return Uncut(graph_of(given))

    def put_in_bands(self, given: Variant, found: Cut) -> Variant:
        """See `memplan.pipeline.Writer`."""
        data, banded = write_bands(given.data, found, self._path, self._options)
        loaded = replace(banded, notes=given.loaded.notes)
        return replace(given, loaded=loaded, data=data, cut=found)

    def write(self, given: Variant, planned: Planned) -> Written:
        """See `memplan.pipeline.Writer`."""
        data, load = given.data, given.loaded.problem.max_load
        is_sorted = all(note.code is not Code.OPERATORS_SORTED for note in given.loaded.notes)
        if not (is_sorted or given.cut or given.order):
            data = sort_file(data)
        return Written(data, load, "the load of its nodes")

    def compare(self, given: Variant, written: Written) -> Comparison | None:
        """See `memplan.pipeline.Writer`."""
        apart = measure_difference(given.data, written.data)
        return None if apart is None else Comparison(apart)

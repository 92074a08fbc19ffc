"""Writes ONNX models in another order of operators, or in bands, as a `Writer`.

    found = memplan.runtimes.onnx.write.reorder("model.onnx", "ordered.onnx")

Onnxruntime allocates while it runs, so that what counts is the load of the nodes in their order. It
fuses operators and orders them itself. So if it is installed, it fuses them first; what it then
runs is rewritten, and written so that a session with default settings keeps it (`hold`).

Otherwise, and with `fused=False`, the operators of the file are written. Onnxruntime keeps their
order, and frees tensors after their last reader, only if it is told to; it then fuses nothing:

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    options.enable_mem_reuse = False
    options.enable_mem_pattern = False
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from memplan.base.errors import FormatError, MemplanError
from memplan.base.files import read_bytes as read_file
from memplan.base.files import write_files
from memplan.base.notes import Code
from memplan.levers.pipeline import Comparison, Variant, Writer, Written, arrange, graph_of
from memplan.levers.rewrite import Recomputed, Reordered
from memplan.levers.rewrite.again import Emitted
from memplan.levers.rewrite.bands import Cut
from memplan.programs.graph import Graph
from memplan.programs.sources import Loaded, of_graph
from memplan.programs.sources.loaded import lay_out_again
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.measure import (
    Held,
    find_shapes,
    measure_difference,
    measure_file,
)
from memplan.runtimes.onnx.operators import NCHWC, find_row
from memplan.runtimes.onnx.read import read, read_bytes
from memplan.runtimes.onnx.read.fused import Fused, fuse
from memplan.runtimes.onnx.write.again import write_again
from memplan.runtimes.onnx.write.bands import write_bands
from memplan.runtimes.onnx.write.hold import hold
from memplan.runtimes.onnx.write.order import write_order
from memplan.solvers.planning import Planned, settle_sizes

__all__ = ["HOW_TO_RUN", "OnnxFile", "reorder"]

HOW_TO_RUN: Final = (
    "set SessionOptions.graph_optimization_level = ORT_DISABLE_ALL, execution_order = "
    "ExecutionOrder.PRIORITY_BASED, and enable_mem_reuse and enable_mem_pattern to False: else "
    "onnxruntime runs other operators in an order of its own"
)

_PLAIN: Final = "with default settings"
_NO_PATTERN: Final = (
    "with SessionOptions.enable_mem_pattern = False, and else with default settings"
)
_UNMEASURED: Final = "the load of its nodes, not measured"
_NEAR: Final = 1.01  # a memory pattern that needs so much more is still taken
_SESSIONS: Final = 3  # of one model, as not each of them makes the same memory pattern


def reorder(
    path: Path | str,
    out: Path | str,
    options: Options | None = None,
    *,
    timeout: float | None = None,
    states: int | None = None,
    pure: Iterable[str] = (),
    fused: bool = True,
) -> Reordered:
    """Write a model with its operators in the order with the least load.

    Parameters
    ----------
    path, out
        The model, and the file to write; it may be the same.
    options
        See `memplan.load`: dimensions, kinds of tensors. Operators write over inputs that are not
        needed any more, as they do in onnxruntime.
    timeout, states, pure
        As of `memplan.levers.rewrite.reorder`.
    fused
        See `OnnxFile`.

    Raises
    ------
    FormatError
        If the file is no model, or its operators cannot be put into the order: nothing is written.
    MemplanError
        As `memplan.levers.rewrite.reorder`, and if the library `onnx` is missing.
    """
    writer = OnnxFile(Path(path), options, takes_offsets=False, fused=fused)
    found = arrange(writer, in_place=True, order=True, timeout=timeout, nodes=states, pure=pure)
    write_files({str(out): found.data})
    assert found.order is not None, "it was asked for"
    return found.order


class OnnxFile(Writer):
    """An ONNX model as onnxruntime runs it.

    Dimensions that the options of `memplan.load` give are written into a file in bands, as bands
    are for that size. `takes_offsets` says whether programs are planned too.

    With `fused`, onnxruntime fuses operators first, if it is installed and takes the model: then
    sessions with default settings keep what is written, and all weights are in the file. Otherwise
    weights in other files are not touched, so that what is written belongs into the folder of the
    model, and sessions need settings (`HOW_TO_RUN`).
    """

    has_runtime = True
    runs_again = True
    keeps_order = True

    def __init__(
        self,
        path: Path,
        options: Options | None = None,
        *,
        takes_offsets: bool = True,
        fused: bool = True,
    ) -> None:
        self.name, self.takes_offsets = str(path), takes_offsets
        self._path, self._fuses = path, fused
        self._fused: Fused | None = None
        self._block = 0  # channels in a block, if the fused model has operators on them
        self._options = replace(
            options or Options(), in_place=True, runtime_order=False, fused=False
        )
        self._measured: dict[bytes, Held | None] = {}  # by the file
        self._shapes: dict[str, Sequence[int]] = {}  # of the inputs

    def open(self) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        loaded = settle_sizes(self._read(self._options.dims), self._path, self._options, self._read)
        self._shapes = find_shapes(loaded)
        if self._fuses:
            try:
                fused = fuse(self._path)
                found = self._as_run(read_bytes(fused.data, self._path, self._options))
            except MemplanError:  # it is not installed, or it writes what cannot be planned
                pass
            else:
                self._fused = fused
                kinds = {one.type for one in graph_of(Variant(found)).operators}
                self._block = fused.block * any(one.startswith(NCHWC) for one in kinds)
                notes = dict.fromkeys((*loaded.notes, *found.notes))
                return Variant(replace(found, notes=tuple(notes)), fused.data)
        return Variant(self._as_run(loaded), read_file(self._path))

    def _as_run(self, loaded: Loaded) -> Loaded:
        """Return a model whose operators write over inputs only where the runtime's kernels do."""
        graph = loaded.graph
        assert graph is not None, "it is a model"
        operators = tuple(
            one if find_row(one.type).in_runtime else replace(one, in_place=())
            for one in graph.operators
        )
        made = of_graph(graph.changed(operators=operators), in_place=loaded.in_place)
        return replace(made, notes=loaded.notes)

    def _read(self, dims: Mapping[str, int]) -> Loaded:
        """Return the model with these sizes, which all that is written of it has too."""
        self._options = replace(self._options, dims=dims)
        return read(self._path, self._options)

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        data = write_order(given.data, self.name, found.graph)
        loaded = self._read_back(data, found.peak, given, in_place=found.in_place)
        return replace(given, loaded=loaded, data=data, order=found)

    def put_again(self, given: Variant, found: Recomputed) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        emitted = Emitted(found.graph, found.operators)
        data = write_again(given.data, graph_of(given), emitted, self._path)
        loaded = self._read_back(data, found.peak, given, in_place=False)
        return replace(given, loaded=loaded, data=data, again=found)

    def _read_back(self, data: bytes, peak: int, given: Variant, *, in_place: bool) -> Loaded:
        """Return what was written, which must need no more than it did before."""
        loaded = self._as_run(read_bytes(data, self._path, self._options))
        ways = (lay_out_again(loaded, in_place=way) for way in {False, in_place})
        if (load := min(way.problem.max_load for way in ways)) > peak:
            raise FormatError(
                self.name,
                f"the program needs {peak} bytes, but {load} as the nodes of a file: inline the "
                "functions of the model first",
            )
        return replace(loaded, notes=given.loaded.notes)

    def put_in_bands(self, given: Variant, found: Cut) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        data, banded = write_bands(given.data, found, self._path, self._options, self._block)
        loaded = replace(banded, notes=given.loaded.notes)
        return replace(given, loaded=loaded, data=data, cut=found)

    def write(self, given: Variant, planned: Planned) -> Written:
        """See `memplan.levers.pipeline.Writer`."""
        rewritten = bool(given.cut or given.order or given.again)
        if self._fused is None:
            data = given.data
            is_sorted = all(n.code is not Code.OPERATORS_SORTED for n in given.loaded.notes)
            if not (is_sorted or rewritten):
                data = write_order(data, self.name, graph_of(given))
            if not self.takes_offsets:
                load = given.loaded.problem.max_load
                return Written(data, load, _UNMEASURED, run=HOW_TO_RUN)
            tried = [data]
        elif rewritten:
            tried = self._hold(given.data, graph_of(given))
        else:  # nothing is to be kept that the runtime would not do
            tried = [read_file(self._path)]
        measured = [(data, held) for data in tried if (held := self._measure(data)) is not None]
        if not measured:
            load = lay_out_again(given.loaded, in_place=False).problem.max_load
            return Written(tried[0], load, _UNMEASURED, run=self._tell(rewritten=rewritten))
        data, held = min(measured, key=lambda each: each[1].once[::-1])
        held = self._measure_again(data, held)
        # What the runtime lays out after the first run may have gaps, but a file as it is has them.
        pattern = not rewritten or held.both[1] <= held.once[1] * _NEAR
        tensors, arena = held.both if pattern else held.once
        how = f"measured with kernel scratch; {tensors} bytes of tensors"
        load = given.loaded.problem.max_load
        if load > arena and any(one.blocks for one in graph_of(given).operators):
            how += f"; with other data up to {load}, as the run took one way through its branches"
        return Written(data, arena, how, run=self._tell(rewritten=rewritten, pattern=pattern))

    def _tell(self, *, rewritten: bool, pattern: bool = True) -> str:
        """Return what a session has to be told to run a file as it was measured."""
        if self._fused is None:
            return HOW_TO_RUN
        words = _PLAIN if pattern else _NO_PATTERN
        if rewritten:
            words += f"; onnxruntime {self._fused.version} fused the operators"
            if self._block:
                words += f", for processors with blocks of {self._block} channels as this one has"
        return words

    def _hold(self, data: bytes, graph: Graph) -> list[bytes]:
        """Return files that a session with default settings runs in the order of the nodes."""
        return [hold(data, graph, block=self._block, is_open=way) for way in (True, False)]

    def _measure(self, data: bytes) -> Held | None:
        """Return what the runtime needs for a file, with the settings that are printed."""
        if data not in self._measured:
            with tempfile.TemporaryDirectory() as folder:
                path = self._path  # beside which its weights may be
                if data != read_file(path):
                    path = Path(folder) / "model.onnx"
                    path.write_bytes(data)
                default = self._fused is not None
                self._measured[data] = measure_file(path, self._shapes, default=default)
        return self._measured[data]

    def _measure_again(self, data: bytes, held: Held) -> Held:
        """Return the most that sessions need whose memory pattern has no gaps, or the first gaps.

        Onnxruntime makes another pattern of the same model in other sessions: one of two for `nmp`
        of basic-pitch, of 49 and of 80 MB. Without a pattern all need the same.
        """
        sessions = 1 if self._fused is None else _SESSIONS
        while sessions > 1 and held.both[1] <= held.once[1] * _NEAR:
            sessions -= 1
            self._measured.pop(data)
            other = self._measure(data)
            if other is None:
                break
            held = held._replace(both=max(held.both, other.both, key=lambda both: both[1]))
        self._measured[data] = held
        return held

    def compare(self, given: Variant, written: Written) -> Comparison | None:
        """See `memplan.levers.pipeline.Writer`."""
        default = self._fused is not None
        apart = measure_difference(self._path, written.data, self._shapes, default=default)
        return None if apart is None else Comparison(apart)

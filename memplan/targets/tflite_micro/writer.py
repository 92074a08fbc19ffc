"""Writes TFLite models for TensorFlow Lite Micro: in their order or another one, or in bands.

TFLM runs operators in the order of the file, and places kernel scratch itself where the file cannot
say it. So a smaller load is no promise of a smaller arena; where tflite-micro is installed, every
file is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from memplan.errors import MemplanError
from memplan.files import read_bytes
from memplan.graph import Graph, Operator, View
from memplan.pipeline import Arranged, Comparison, Variant, Written, arrange
from memplan.planning import Planned
from memplan.rewrite import Reordered
from memplan.rewrite.bands import Cut, Uncut
from memplan.sources import Loaded, of_graph
from memplan.sources.loaded import Figure
from memplan.sources.options import Options
from memplan.sources.tflite import read_model
from memplan.sources.tflite.graph import graph_of
from memplan.sources.tflite.model import Model, parse
from memplan.targets.tflite_micro.apply import write_plan
from memplan.targets.tflite_micro.bands import write_bands
from memplan.targets.tflite_micro.comparing import compare_results
from memplan.targets.tflite_micro.folding import unpack
from memplan.targets.tflite_micro.metadata import with_order
from memplan.targets.tflite_micro.planning import check_peak

__all__ = ["FAN_IN", "TfliteMicro", "apply_in_bands", "apply_in_order", "uncut_of"]

FAN_IN: Final = 10  # the most inputs of TFLM's CONCATENATION
_KEPT: Final = 200  # bytes in the tail of TFLM's arena for an operator
_KEPT_BY_COPIES: Final = 110


class TfliteMicro:
    """A TFLite model as TFLM runs it: the `Writer` of `memplan.arrange` for it.

    Parameters
    ----------
    model
        A `.tflite` file.
    out
        The file that will be written, for sentences.
    options
        See `memplan.load`; with `pins=False`, offsets in the file are dropped.
    allow_refused
        Whether a model may be written that TFLM refuses, as another build of it may have the
        kernels. A note says why TFLM refuses it.
    head_only
        Whether the head of the arena counts, which is what a plan can make smaller, and not what
        TFLM needs beside it.
    """

    trials = 4
    has_runtime = True

    def __init__(
        self,
        model: Path,
        out: Path | None = None,
        options: Options | None = None,
        *,
        allow_refused: bool = False,
        head_only: bool = False,
    ) -> None:
        self.name = str(model)
        self._path, self._out = model, out or model
        self._options = options or Options()
        self._allow_refused, self._head_only = allow_refused, head_only
        self._models: dict[bytes, Model] = {}  # by file: what is in it
        self._before: Figure | None = None  # the head of the arena for the model as it is

    def _parse(self, data: bytes) -> Model:
        if data not in self._models:
            self._models[data] = parse(data, self.name)
        return self._models[data]

    def open(self) -> Variant:
        """See `memplan.pipeline.Writer`."""
        data = read_bytes(self._path)
        return Variant(read_model(self._parse(data), self._path, self._options), data)

    def bare(self, given: Variant) -> Loaded:
        """See `memplan.pipeline.Writer`."""
        if not self._parse(given.data).offsets or not self._options.pins:
            return given.loaded
        return self._read(given.data)

    def _read(self, data: bytes) -> Loaded:
        """Return a model without the offsets of its file."""
        return read_model(self._parse(data), self._path, replace(self._options, pins=False))

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """See `memplan.pipeline.Writer`."""
        model = self._parse(given.data)
        data = with_order(given.data, self.name, find_orders(model, found.graph), model)
        return replace(given, loaded=self._read(data), data=data, order=found)

    def uncut(self, given: Variant) -> Uncut:
        """See `memplan.pipeline.Writer`."""
        return uncut_of(graph_of(replace(self._parse(self._unpack(given.data)), offsets=())))

    def _unpack(self, data: bytes) -> bytes:
        return unpack(data, self._parse(data))

    def put_in_bands(self, given: Variant, found: Cut) -> Variant:
        """See `memplan.pipeline.Writer`."""
        data, numbers = write_bands(self._unpack(given.data), self.name, found)
        loaded = self._read(data)
        assert loaded.graph is not None
        views = [View(numbers[part], numbers[base], at) for part, (base, at) in found.views.items()]
        return replace(given, loaded=with_views(loaded, views), data=data, cut=found)

    def write(self, given: Variant, planned: Planned) -> Written:
        """See `memplan.pipeline.Writer`."""
        check_peak(self.name, planned.plan)
        applied, data, arena = write_plan(
            given.data,
            self._parse(given.data),
            self._out,
            planned,
            allow_refused=self._allow_refused,
            whole=not self._head_only,
            before=self._before,
        )
        self._before = applied.before
        head, before = applied.after, applied.before.bytes
        if arena is None:
            whole = self._head_only
            return Written(data, head.bytes, head.how, whole, applied.notes, before, applied)
        before += arena - head.bytes
        return Written(data, arena, "measured", True, applied.notes, before, applied)

    def compare(self, given: Variant, written: Written) -> Comparison | None:
        """See `memplan.pipeline.Writer`."""
        return compare_results(self._unpack(given.data), written.data)


def apply_in_order(
    model: Path,
    out: Path,
    *,
    in_place: bool = False,
    replan: bool = False,
    allow_refused: bool = False,
    **asked: Any,
) -> Arranged:
    """Plan a model in its own order and in the one with the least load; take the smaller arena.

    No file is written.

    Parameters
    ----------
    model, out, in_place, replan, allow_refused
        See `memplan.targets.tflite_micro.apply`.
    asked
        Arguments of `memplan.arrange`: `capacity`, `pure`, `timeout`, `nodes`.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `memplan.arrange` and `memplan.targets.tflite_micro.apply` do; if nothing meets the
        capacity.
    """
    options = Options(pins=not replan)
    writer = TfliteMicro(model, out, options, allow_refused=allow_refused)
    found = arrange(writer, in_place=in_place, order=True, **asked)
    if not found.fits:
        raise MemplanError(found.explain_excess())
    return found


def apply_in_bands(
    model: Path,
    out: Path,
    *,
    max_extra: float | None = None,
    allow_inexact: bool = False,
    in_place: bool = False,
    replan: bool = False,
    allow_refused: bool = False,
    **asked: Any,
) -> Arranged:
    """Cut a model into bands, plan it, and compare its outputs with those of the model.

    No file is written. The best programs in bands by their loads are planned and measured, beside
    the model without bands; so the arena is never larger than that of `apply_in_order`.

    Parameters
    ----------
    model, out, in_place, replan, allow_refused, asked
        See `apply_in_order`.
    max_extra
        See `memplan.arrange`.
    allow_inexact
        Whether outputs may differ from those of the model in some bits, or are not compared because
        TFLM does not run the model.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `apply_in_order`; if no bands meet the capacity (the sentence says what is the least, and
        what holds it up); or if outputs differ.
    """
    options = Options(pins=not replan)
    writer = TfliteMicro(model, out, options, allow_refused=allow_refused)
    found = arrange(writer, in_place=in_place, order=True, bands=True, max_extra=max_extra, **asked)
    if not found.fits:
        raise MemplanError(found.explain_excess(max_extra))
    if not allow_inexact:
        found.require_equal()
    return found


def uncut_of(graph: Graph) -> Uncut:
    """Return a graph with what TFLM keeps for its operators."""
    kept = tuple(_find_kept(graph, operator) for operator in graph.operators)
    return Uncut(graph, FAN_IN, kept, _KEPT_BY_COPIES)


def _find_kept(graph: Graph, operator: Operator) -> int:
    """Return what TFLM keeps for an operator in the tail of its arena, in bytes.

    Measured on a machine with pointers of 64 bits: structs of the operator and of its result, and
    eight bytes for each channel that is quantized on its own.
    """
    if operator.type not in ("CONV_2D", "DEPTHWISE_CONV_2D") or not operator.outputs:
        return _KEPT
    output = graph.tensors[operator.makes]
    return _KEPT + (8 * output.shape[-1] if output.dtype == "int8" and output.shape else 0)


def with_views(loaded: Loaded, views: Sequence[View]) -> Loaded:
    """Return a model in which some tensors lie in others."""
    assert loaded.graph is not None
    graph = replace(loaded.graph, views=(*loaded.graph.views, *views))
    return replace(
        of_graph(graph, figures=loaded.figures, notes=loaded.notes), source=loaded.source
    )


def find_orders(model: Model, graph: Graph) -> dict[int, list[int]]:
    """Return the order of each sub-graph of a file, from the graph of it in its new order.

    Operators that only unpack weights are not in the graph; they come first. A sub-graph that is
    entered several times keeps its order, unless all its copies have the same one.
    """
    runs: dict[int, list[list[int]]] = {0: [[op.place[1] for op in graph.operators]]}
    for operator in graph.walk():
        for block in operator.blocks:
            places = [step.place for step in block.operators[1:-1]]
            for number in {number for number, _ in places}:
                runs.setdefault(number, []).append([index for _, index in places])
    orders = {}
    for number, found in runs.items():
        if any(order != found[0] for order in found):
            continue
        count = len(model.subgraphs[number].operators)
        missing = sorted(set(range(count)) - set(found[0]))
        orders[number] = missing + found[0]
    return orders

"""Writes TFLite models for TensorFlow Lite Micro: in their order or another one, or in bands.

TFLM runs operators in the order of the file, and places kernel scratch itself where the file cannot
say it. So a smaller load is no promise of a smaller arena; where tflite-micro is installed, every
file is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memplan.base import extras
from memplan.base.errors import CapacityError, MemplanError, listed
from memplan.base.files import read_bytes, temporary_folder
from memplan.base.notes import Code, Note
from memplan.levers.pipeline import Comparison, Variant, Writer, Written
from memplan.levers.rewrite import Reordered
from memplan.levers.rewrite.bands import Cut, Uncut
from memplan.problem.plan import Plan
from memplan.programs.graph import Graph, Layout, Operator, View
from memplan.programs.sources import Loaded, of_graph
from memplan.programs.sources.loaded import Figure
from memplan.programs.sources.measuring import join_notes
from memplan.programs.sources.options import Board, Options
from memplan.runtimes.tflm import measure as runtime
from memplan.runtimes.tflm.arena import minimal_arena
from memplan.runtimes.tflm.board_arena import compute_arena
from memplan.runtimes.tflm.read import read_model
from memplan.runtimes.tflm.read.boards import find_board, put_on_board
from memplan.runtimes.tflm.read.graph import find_folded, graph_of
from memplan.runtimes.tflm.read.model import Model, parse
from memplan.runtimes.tflm.write.bands import write_bands
from memplan.runtimes.tflm.write.comparing import compare_results
from memplan.runtimes.tflm.write.folding import require_library, unpack
from memplan.runtimes.tflm.write.metadata import with_offsets, with_order, without_tensors
from memplan.runtimes.tflm.write.planning import (
    check_peak,
    find_offsets,
    find_unused,
    get_layout,
    put_states,
    require_scratch_in_place,
)
from memplan.solvers.planning import Planned

__all__ = ["FAN_IN", "Applied", "TfliteMicro", "uncut_of"]

FAN_IN: Final = 10  # the most inputs of TFLM's CONCATENATION
_KEPT: Final = 200  # bytes in the tail of TFLM's arena for an operator
_KEPT_BY_COPIES: Final = 110


@dataclass(frozen=True)
class Applied:
    """What was written, and what it saves.

    Attributes
    ----------
    path
        The file that was written.
    plan, layout
        The plan, and the tensors that share memory in it.
    offsets
        By tensor of all sub-graphs, as written: bytes, or -1 for a tensor that TFLM places.
    before, after
        The head of TFLM's arena for the model as it was and as it is, measured where tflite-micro
        is installed. No file can place the kernels' scratch; `after` is above `planned` only if
        TFLM finds no room for scratch at its place in the plan.
    arena
        The smallest whole arena with which TFLM accepts the model, on this machine or a board, if
        there was a capacity and it could be found; else `None`.
    how
        How that arena is known.
    unknown
        The types of operators for which nothing is counted in it, as it is not known on a board.
    saves_nothing
        Whether the whole arena of the model as it was is no larger: measured where `arena` is, else
        computed for the board, or for any machine of 64 bits.
    in_place
        The number of tensors that are written over another one.
    folded
        The number of operators that were removed, as they only unpacked weights.
    kept
        The number of tensors that keep their offset from the old file.
    notes
        What was assumed when the model was read, and which part of a capacity was not checked.
    """

    path: Path
    plan: Plan
    layout: Layout
    offsets: tuple[int, ...]
    before: Figure
    after: Figure
    arena: int | None
    how: str
    unknown: tuple[str, ...]
    saves_nothing: bool
    in_place: int
    folded: int
    kept: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def planned(self) -> int:
        """The peak of the plan in bytes."""
        return self.plan.peak or 0


class TfliteMicro(Writer):
    """A TFLite model as TFLM runs it: the `Writer` of `memplan.levers.pipeline.arrange` for it.

    `out` is the file that will be written, for sentences. With `pins=False` in the options of
    `memplan.load`, offsets in the file are dropped; with a board, arenas are computed for it, and
    not measured. `allow_refused` lets a model be written that TFLM refuses, as another build of it
    may have the kernels; a note says why. With `head_only`, the head of the arena counts, which is
    what a plan can make smaller, and not what TFLM needs beside it.

    What needs more than the capacity is refused. Where tflite-micro is installed, the smallest
    whole arena is measured; elsewhere only its head is computed and compared with the capacity, and
    a note says so.
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
        capacity: int | None = None,
    ) -> None:
        self.name = str(model)
        self._path, self._out = model, out or model
        self._options = options or Options()
        self._allow_refused, self._head_only, self._capacity = allow_refused, head_only, capacity
        self._models: dict[bytes, Model] = {}  # by file: what is in it
        self._before: Figure | None = None  # the head of the arena for the model as it is
        self._given_arena: int | None = None  # its whole arena

    def _parse(self, data: bytes) -> Model:
        if data not in self._models:
            self._models[data] = parse(data, self.name)
        return self._models[data]

    def check_bands(self) -> None:
        """See `memplan.levers.pipeline.Writer`."""
        extras.check("tflm")

    def open(self) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        data = read_bytes(self._path)
        require_library(self._parse(data))
        return Variant(read_model(self._parse(data), self._path, self._options), data)

    def bare(self, given: Variant) -> Loaded:
        """See `memplan.levers.pipeline.Writer`."""
        if not self._parse(given.data).offsets or not self._options.pins:
            return given.loaded
        return self._read(given.data)

    def _read(self, data: bytes) -> Loaded:
        """Return a model without the offsets of its file."""
        return read_model(self._parse(data), self._path, replace(self._options, pins=False))

    def put_in_order(self, given: Variant, found: Reordered) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        model = self._parse(given.data)
        data = with_order(given.data, self.name, find_orders(model, found.graph), model)
        return replace(given, loaded=self._read(data), data=data, order=found)

    def uncut(self, given: Variant) -> Uncut:
        """See `memplan.levers.pipeline.Writer`."""
        model, _ = put_on_board(self._parse(self._unpack(given.data)), self._options.board)
        return uncut_of(graph_of(replace(model, offsets=())))

    def _unpack(self, data: bytes) -> bytes:
        return unpack(data, self._parse(data))

    def put_in_bands(self, given: Variant, found: Cut) -> Variant:
        """See `memplan.levers.pipeline.Writer`."""
        data, numbers = write_bands(self._unpack(given.data), self.name, found)
        loaded = self._read(data)
        assert loaded.graph is not None
        views = [View(numbers[part], numbers[base], at) for part, (base, at) in found.views.items()]
        return replace(given, loaded=with_views(loaded, views), data=data, cut=found)

    def write(self, given: Variant, planned: Planned) -> Written:
        """See `memplan.levers.pipeline.Writer`."""
        check_peak(self.name, planned.plan)
        stored, layout = self._parse(given.data), get_layout(planned)
        offsets = find_offsets(stored, layout, planned.plan)
        shared = planned.plan.shared
        if shared is not None:
            put_states(offsets, stored, layout.graph, shared)
        data, made = self._put_offsets(given.data, offsets, layout, planned.plan.peak or 0)
        with temporary_folder(self.name) as folder:
            trial = Path(folder) / "model.tflite"
            if self._before is None:
                trial.write_bytes(given.data)
                self._before = self._measure_head(trial, stored)
            trial.write_bytes(data)
            after = self._measure_head(trial, made)
            notes = join_notes(planned.notes, (after,))
            refused = self._find_refusal(notes)
            arena = given_arena = None
            if self._capacity is not None:
                self._require("the plan with kernel scratch", after.bytes)
            if refused is None and (self._capacity is not None or not self._head_only):
                arena = self._find_arena(trial, made)
                given_arena = self._find_given_arena(trial)
        computed, unknown = self._compute_arena(made)
        if unknown and arena is not None:
            notes = (*notes, _note_unknown(unknown, self._options.board))
        if self._capacity is not None:
            if arena is None:
                notes = (*notes, _note_unmeasured(after, self._capacity))
            else:
                self._require("the smallest arena that TFLM accepts", arena)
        board = self._options.board
        how = "measured" if board is None else f"computed for {board}"
        if arena is None or given_arena is None:
            model = self._parse(self._unpack(read_bytes(self._path)))
            saves_nothing = computed >= self._compute_arena(model)[0]
        else:
            saves_nothing = arena >= given_arena
        applied = Applied(
            path=self._out,
            plan=planned.plan,
            layout=layout,
            offsets=tuple(offsets),
            before=self._before,
            after=after,
            arena=None if self._capacity is None else arena,
            how=how,
            unknown=unknown,
            saves_nothing=saves_nothing,
            in_place=sum(max(0, len(layout.storages[row].tensors) - 1) for row in layout.rows),
            folded=sum(map(len, find_folded(stored).values())),
            kept=sum(a == b != -1 for a, b in zip(stored.offsets, offsets, strict=False)),
            notes=notes,
        )
        if arena is None:
            whole, before = self._head_only, self._before.bytes
            return Written(data, after.bytes, after.how, whole, notes, before, applied)
        return Written(data, arena, how, True, notes, given_arena, applied)

    def require_scratch_in_place(self, planned: Planned) -> None:
        """Raise `MemplanError` if TFLM would place scratch elsewhere in an arena of programs."""
        if planned.plan.shared is None:
            return
        data, layout = read_bytes(self._path), get_layout(planned)
        offsets = find_offsets(self._parse(data), layout, planned.plan)
        _, made = self._put_offsets(data, offsets, layout, planned.plan.peak or 0)
        made, _ = put_on_board(made, self._options.board)
        require_scratch_in_place(made, layout, planned.plan)

    def _measure_head(self, path: Path, model: Model) -> Figure:
        """Return the head of TFLM's arena for a file, in which this model is."""
        figure = runtime.measure(path, Options(board=self._options.board), model)
        assert figure is not None  # it has a figure for every model that can be read
        return figure

    def _find_arena(self, path: Path, model: Model) -> int | None:
        """Return the smallest whole arena for a file, in which this model is."""
        board = self._options.board
        return minimal_arena(path, model) if board is None else compute_arena(model, board).size

    def _find_given_arena(self, trial: Path) -> int | None:
        """Return the smallest whole arena for the model as it was; `None` if TFLM takes none.

        Packed weights are unpacked, as TFLM needs them. `trial` is a file that may be written.
        """
        if self._given_arena is None:
            data = self._unpack(read_bytes(self._path))
            trial.write_bytes(data)
            with suppress(MemplanError):
                self._given_arena = self._find_arena(trial, self._parse(data))
        return self._given_arena

    def _compute_arena(self, model: Model) -> tuple[int, tuple[str, ...]]:
        """Return the computed arena on the board or any machine of 64 bits, and what is unknown."""
        board = self._options.board
        found = compute_arena(model, find_board("64-bit") if board is None else board)
        return found.size, () if board is None else found.unknown

    def _put_offsets(
        self, data: bytes, offsets: Sequence[int], layout: Layout, peak: int
    ) -> tuple[bytes, Model]:
        """Return a file with offsets, and what is in it."""
        stored = self._parse(data)
        bare = unpack(data, stored)
        # At offset 0 an unused tensor costs nothing, unless it is larger than the whole plan.
        sizes = [tensor.bytes for tensor in stored.tensors()]
        large = [number for number in find_unused(layout.graph) if sizes[number] > peak]
        if large:
            bare = without_tensors(bare, self.name, large)
        same = bare is data
        made = with_offsets(bare, self.name, offsets, stored if same else None)
        return made, replace(stored, offsets=tuple(offsets)) if same else parse(made, self.name)

    def _find_refusal(self, notes: Iterable[Note]) -> Note | None:
        """Return the note that TFLM refuses a model; raise `MemplanError` if it must not."""
        refused = next((each for each in notes if each.code is Code.RUNTIME_REFUSES), None)
        if refused is not None and not self._allow_refused:
            raise MemplanError(
                f"{refused.text}: {self._out} was not written; --accept refused writes it "
                "nevertheless, for a build of TensorFlow Lite Micro that takes it"
            )
        return refused

    def _require(self, what: str, size: int) -> None:
        if self._capacity is not None and size > self._capacity:
            raise CapacityError(
                f"{what} needs {size} bytes, {size - self._capacity} more than the capacity of "
                f"{self._capacity}: {self._out} was not written"
            )

    def compare(self, given: Variant, written: Written) -> Comparison | None:
        """See `memplan.levers.pipeline.Writer`."""
        return compare_results(self._unpack(given.data), written.data)


def _note_unknown(types: Sequence[str], board: Board | None) -> Note:
    text = f"the arena is without what is not known of {listed(types, quote=False)} on {board}"
    return Note(Code.ARENA_UNMEASURED, text)


def _note_unmeasured(head: Figure, capacity: int) -> Note:
    return Note(
        Code.ARENA_UNMEASURED,
        f"the capacity of {capacity} bytes was compared with the head of the arena only "
        f"({head.bytes} bytes, {head.how}); the whole arena is measured where "
        "tflite-micro is installed (pip install 'memplan[tflm]') and takes the model",
    )


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

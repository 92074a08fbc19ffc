"""Computes the first large tensors of a TFLite model in bands, and plans that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Final

from memplan.errors import MemplanError
from memplan.files import temporary_folder
from memplan.graph import Graph, Operator, View
from memplan.planning import Planned, plan_model
from memplan.rewrite.bands import MAX_EXTRA, Frontier, Point, Uncut, find_frontier
from memplan.sources import Loaded, load, of_graph
from memplan.sources.tflite.graph import graph_of
from memplan.sources.tflite.model import parse
from memplan.targets.tflite_micro.apply import Applied, is_refused, read_bytes, write_plan
from memplan.targets.tflite_micro.bands import write_bands
from memplan.targets.tflite_micro.comparing import Comparison, compare_results
from memplan.targets.tflite_micro.folding import unpack
from memplan.targets.tflite_micro.metadata import with_order
from memplan.targets.tflite_micro.ordering import InOrder, apply_in_order, find_orders
from memplan.yardsticks.tflite_micro_arena import minimal_arena

__all__ = ["FAN_IN", "InBands", "apply_in_bands", "load_program", "uncut_of"]

_WORK: Final = 300_000  # for the search: planning and measuring take longer
_MANY: Final = 4_000_000  # nodes of a longer search for a plan, half a minute
FAN_IN: Final = 10  # the most inputs of TFLM's CONCATENATION
_KEPT: Final = 200  # bytes in the tail of TFLM's arena for an operator
_KEPT_BY_COPIES: Final = 110
_TRIALS: Final = 4  # programs in bands that are planned and measured


@dataclass(frozen=True)
class InBands:
    """A model with its first large tensors in bands, or without where these do not help.

    Attributes
    ----------
    frontier
        What bands can do for the model.
    point
        The bands that were written; it has no regions if they do not help.
    plain
        The model without bands, in its best order.
    planned, applied, data
        The plan, what it saves, and the bytes of the new file.
    arena
        What the file needs in bytes: the smallest arena that TFLM accepts, or the head of the arena
        where it cannot be measured.
    comparison
        How its outputs compare with those of the model; `None` without bands, or if TFLM does not
        run the model.
    """

    frontier: Frontier
    point: Point
    plain: InOrder
    planned: Planned
    applied: Applied
    data: bytes
    arena: int
    comparison: Comparison | None

    @property
    def macs(self) -> int:
        """Multiplications that are repeated."""
        return self.frontier.cut(self.point).macs - self.frontier.uncut.macs


def load_program(model: Path) -> Uncut:
    """Return what is known of the operators of a model, for `find_frontier`.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `apply_in_bands` does.
    """
    data = read_bytes(model)
    return _read_program(unpack(data, parse(data, str(model))), model)


def apply_in_bands(
    model: Path,
    out: Path,
    *,
    max_extra: float | None = None,
    arena_budget: int | None = None,
    allow_inexact: bool = False,
    allow_refused: bool = False,
    in_place: bool = False,
    replan: bool = False,
    pure: Iterable[str] = (),
    timeout: float | None = None,
    nodes: int | None = None,
) -> InBands:
    """Cut a model into bands, plan it, and compare its outputs with those of the model.

    No file is written. The best programs in bands by their loads are planned and measured, beside
    the model without bands; so the arena is never larger than that of `apply_in_order`.

    Parameters
    ----------
    model, out, in_place, replan, allow_refused, pure, timeout, nodes
        See `memplan.targets.tflite_micro.apply_in_order`.
    max_extra
        The most work that bands may add, as a share of the multiplications of the model; copied
        elements count as one each. Without it, 0.1, or no limit if there is a budget.
    arena_budget
        Bytes that the arena may have: the file has the bands with the least work that fit. Without
        it, the file has the smallest arena.
    allow_inexact
        Whether outputs may differ from those of the model in some bits, or are not compared because
        TFLM does not run the model.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `apply_in_order`; if no bands meet the budget (the sentence says what is the least, and
        what holds it up); or if outputs differ.
    """
    half = None if timeout is None else timeout / 2
    plain = apply_in_order(
        model,
        out,
        in_place=in_place,
        replan=replan,
        allow_refused=allow_refused,
        pure=pure,
        timeout=half,
        nodes=nodes,
    )
    data = read_bytes(model)
    if plain.is_new:
        orders = find_orders(parse(data, str(model)), plain.reordered.graph)
        data = with_order(data, str(model), orders)
    bare = unpack(data, parse(data, str(model)))
    frontier = find_frontier(_read_program(bare, model), work=_WORK)
    tail = plain.arena - plain.planned.plan.peak if plain.planned.plan.peak else 0
    if max_extra is None:
        max_extra = MAX_EXTRA if arena_budget is None else inf
    begin = InBands(
        frontier,
        frontier.points[0],
        plain,
        plain.planned,
        plain.applied,
        plain.data,
        plain.arena,
        None,
    )
    best = begin
    share = None if half is None else half / _TRIALS
    if arena_budget is None or best.arena > arena_budget:
        for point in _iterate_candidates(frontier, max_extra, arena_budget, tail):
            found = _try(begin, point, bare, model, out, in_place, share, nodes)
            best = min(best, found, key=lambda each: each.arena)
            if arena_budget is not None and best.arena <= arena_budget:
                break
    peak = best.planned.plan.peak or 0
    if best.point.regions and peak > best.point.load and timeout is None and nodes is None:
        # The plan of so many small tensors needs a longer search; the best bands are worth one.
        found = _try(begin, best.point, bare, model, out, in_place, None, _MANY)
        best = min(best, found, key=lambda each: each.arena)
    if arena_budget is not None and best.arena > arena_budget:
        raise MemplanError(
            f"{model}: the smallest arena found has {best.arena} bytes"
            + (f" with at most {max_extra:.0%} more work" if max_extra < inf else "")
            + f", {best.arena - arena_budget} more than the budget of {arena_budget}: "
            + f"{frontier.explain(best.point)}; nothing was written"
        )
    if not best.point.regions:
        return best
    comparison = compare_results(bare, best.data)
    if not allow_inexact:
        _require_equal(model, comparison)
    return replace(best, comparison=comparison)


def _read_program(data: bytes, model: Path) -> Uncut:
    return uncut_of(graph_of(replace(parse(data, str(model)), offsets=())))


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


def _iterate_candidates(
    frontier: Frontier, max_extra: float, budget: int | None, tail: int
) -> Iterator[Point]:
    """Yield the bands to try, the most promising first."""
    fit = [p for p in frontier.points[1:] if frontier.extra(p) <= max_extra + 1e-12]
    by_arena = sorted(fit, key=lambda point: (point.arena, point.work))
    if budget is None:
        yield from by_arena[:_TRIALS]
        return
    inside = [p for p in fit if p.arena + tail <= budget]
    by_work = sorted(inside, key=lambda point: (point.work, point.arena))
    near = [p for p in by_arena if p not in inside]
    yield from (*by_work[: _TRIALS - 1], *by_arena[:2], *near[:1])


def _try(
    begin: InBands,
    point: Point,
    bare: bytes,
    model: Path,
    out: Path,
    in_place: bool,
    timeout: float | None,
    nodes: int | None,
) -> InBands:
    """Return the model in these bands, planned and measured."""
    found = begin.frontier.cut(point)
    data, numbers = write_bands(bare, str(model), found)
    with temporary_folder(model) as folder:
        path, written = Path(folder) / model.name, Path(folder) / "planned.tflite"
        path.write_bytes(data)
        views = [
            View(numbers[tensor], numbers[base], at) for tensor, (base, at) in found.views.items()
        ]
        loaded = _with_views(load(path), views)
        planned = plan_model(loaded, in_place=in_place, timeout=timeout, nodes=nodes)
        refused = is_refused(begin.plain.applied)
        applied, result = write_plan(path, out, planned, allow_refused=refused)
        written.write_bytes(result)
        arena = None if refused else minimal_arena(written)
    applied = replace(applied, before=begin.plain.applied.before)
    return replace(
        begin,
        point=point,
        planned=planned,
        applied=applied,
        data=result,
        arena=applied.after.bytes if arena is None else arena,
    )


def _with_views(loaded: Loaded, views: Sequence[View]) -> Loaded:
    """Return a model in which some tensors lie in others."""
    assert loaded.graph is not None
    graph = replace(loaded.graph, views=(*loaded.graph.views, *views))
    return replace(
        of_graph(graph, figures=loaded.figures, notes=loaded.notes), source=loaded.source
    )


def _require_equal(model: Path, comparison: Comparison | None) -> None:
    if comparison is None:
        raise MemplanError(
            f"{model}: TensorFlow Lite Micro does not run this model here, so the outputs of its "
            "bands were not compared; --allow-inexact writes them nevertheless"
        )
    if comparison.difference:
        raise MemplanError(
            f"{model}: in bands, outputs differ from those of the model by up to "
            f"{comparison.difference:g}; --allow-inexact writes the bands nevertheless"
        )

"""Which plan a TFLite model gets, in which of its layouts, and where that puts its tensors."""

from __future__ import annotations

from pathlib import Path

from memplan.errors import FormatError, MemplanError, PlanError
from memplan.graph import Layout
from memplan.plan import Plan
from memplan.planning import Planned, layout_of, plan_model
from memplan.sources import load
from memplan.sources.tflite.model import Model

__all__ = ["LARGEST", "layout_in", "offsets_of", "planned"]

LARGEST = (1 << 31) - 1  # TFLM's offsets are int32


def planned(
    path: Path,
    plan: Plan | None,
    *,
    in_place: bool = False,
    replan: bool = False,
    timeout: float | None = None,
    nodes: int | None = None,
) -> Planned:
    """Return the plan that a model gets, in the layout that it is for.

    Parameters
    ----------
    path
        A `.tflite` file.
    plan
        Made before: it says itself whether operators write over inputs, and whether it keeps the
        offsets of the file. `None` makes one.
    in_place, timeout, nodes
        As `memplan.plan_model` takes them.
    replan
        Whether offsets that the file gives are forgotten.

    Raises
    ------
    FormatError
        If the file is damaged.
    PlanError
        What the referee says, if the plan is not one of this model.
    MemplanError
        If there is no plan in time, or it is beyond what TFLM can count.
    """
    if plan is not None:
        found = _matched(path, plan)
    else:
        found = plan_model(path, in_place=in_place, pins=not replan, timeout=timeout, nodes=nodes)
    if not found.plan.has_offsets:
        raise MemplanError(f"{path}: there is no plan to write ({found.plan.status})")
    peak = found.plan.peak or 0
    if peak > LARGEST:
        raise MemplanError(f"{path}: the plan has {peak} bytes; TFLM counts up to 2^31 - 1")
    return found


def _matched(path: Path, plan: Plan) -> Planned:
    try:
        return Planned(layout_of(load(path, pins=False), plan, in_place=True), plan)
    except PlanError as error:
        try:  # a plan that keeps the offsets of the file
            return Planned(layout_of(load(path), plan, in_place=True), plan)
        except (PlanError, FormatError):
            raise PlanError(f"this is no plan of {path}: {error}") from None


def layout_in(model: Planned) -> Layout:
    """Return what shares memory in a planned model.

    Raises
    ------
    MemplanError
        If it is no TFLite model.
    """
    layout = model.loaded.layout
    if model.loaded.source != "tflite" or layout is None:
        raise MemplanError("this is no TFLite model; only these carry their plan in them")
    return layout


def offsets_of(model: Model, layout: Layout, plan: Plan) -> list[int]:
    """Return by tensor of the file where the plan puts it; -1 where that is left to TFLM.

    Left to it are constants, state that outlives a run, kernel scratch, and unused tensors.
    """
    offsets = [-1] * model.first[-1]
    for row in layout.rows:
        storage = layout.storages[row]
        base = plan.offset(storage.name)
        for tensor, inside in zip(storage.tensors, storage.offsets, strict=True):
            if tensor < len(offsets):  # behind them are scratch and copies
                offsets[tensor] = base + inside
    return offsets

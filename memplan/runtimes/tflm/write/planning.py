"""Finds the plan and the layout of a TFLite model, and the offsets of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from memplan.base.errors import FormatError, MemplanError, PlanError
from memplan.problem.plan import Plan, Shared
from memplan.programs.graph import Graph, Kind, Layout
from memplan.programs.sources import load
from memplan.programs.sources.options import Board
from memplan.runtimes.tflm.measure import LARGEST, Request, list_requests, place_requests
from memplan.runtimes.tflm.read.graph import find_handles, find_workspaces
from memplan.runtimes.tflm.read.model import Model, Scratch
from memplan.solvers.planning import Planned, layout_of, plan_model

__all__ = [
    *("Places", "check_peak", "find_offsets", "find_places", "find_unused", "get_layout"),
    *("plan_file", "put_states", "require_scratch_in_place"),
]


def plan_file(
    path: Path,
    plan: Plan | None,
    *,
    in_place: bool = False,
    replan: bool = False,
    timeout: float | None = None,
    nodes: int | None = None,
    board: Board | None = None,
) -> Planned:
    """Return the plan of a `.tflite` model, with its layout.

    An existing plan shows whether operators write over inputs, and whether it keeps the offsets in
    the file, which `replan` drops; the referee refuses one that does not fit. Offsets that are too
    large for TFLM are refused too. The board is where the model will run, if not on this machine.
    """
    if plan is not None:
        found = _match(path, plan, board)
    else:
        loaded = load(path, pins=not replan, board=board)
        found = plan_model(loaded, in_place=in_place, timeout=timeout, nodes=nodes)
    if not found.plan.has_offsets:
        raise MemplanError(f"{path}: there is no plan to write ({found.plan.status})")
    check_peak(str(path), found.plan)
    return found


def check_peak(name: str, plan: Plan) -> None:
    """Raise `MemplanError` if the offsets of a plan are too large for TFLM."""
    size = (plan.peak or 0) if plan.shared is None else plan.shared.arena
    if size > LARGEST:
        raise MemplanError(f"{name}: the plan has {size} bytes; TFLM counts up to 2^31 - 1")


def _match(path: Path, plan: Plan, board: Board | None) -> Planned:
    try:
        return Planned(layout_of(load(path, pins=False, board=board), plan, in_place=True), plan)
    except PlanError as error:
        try:  # the plan may keep the offsets in the file
            return Planned(layout_of(load(path, board=board), plan, in_place=True), plan)
        except (PlanError, FormatError):
            raise PlanError(f"this is not a plan of {path}: {error}") from None


def get_layout(model: Planned) -> Layout:
    """Return the layout of a planned TFLite model, which says what shares memory."""
    layout = model.loaded.layout
    if model.loaded.source != "tflite" or layout is None:
        raise MemplanError("this is not a TFLite model; only these can contain a plan")
    return layout


class Places(Protocol):
    """Where buffers lie: a plan, or plans in several memories whose addresses are one range."""

    def offset(self, id: str) -> int:
        """Return the address of a buffer."""


def find_offsets(model: Model, layout: Layout, plan: Places) -> list[int]:
    """Return by tensor of the file its offset in the plan, or -1 if TFLM places it.

    TFLM places constants, state that outlives a run, and kernel scratch. It would give tensors that
    no operator touches memory of their own, as if all of them were needed before the first one; at
    offset 0 they share what the others have.
    """
    offsets = [-1] * model.first[-1]
    for tensor in find_unused(layout.graph):
        offsets[tensor] = 0
    for row in layout.rows:
        storage = layout.storages[row]
        base = plan.offset(storage.name)
        for tensor, inside in zip(storage.tensors, storage.offsets, strict=True):
            if tensor < len(offsets):  # scratch and copies have higher numbers
                offsets[tensor] = base + inside
    return offsets


def put_states(offsets: list[int], model: Model, graph: Graph, shared: Shared) -> None:
    """Add the offsets of variables that are kept in a shared arena.

    TFLM obeys those of variable tensors; it places the values of handles itself.
    """
    places = {each.id: each.offset for each in shared.kept}
    handles = find_handles(model)
    for number, info in enumerate(model.tensors()):
        if info.variable and number not in handles:
            name = graph.tensors[number].name
            offsets[number] = places.get(name, places.get(f"{name} (state)", offsets[number]))


def require_scratch_in_place(model: Model, layout: Layout, plan: Plan) -> None:
    """Raise `MemplanError` if TFLM places scratch otherwise than the plan of a shared arena.

    No file can place scratch. Where TFLM puts it, other programs may keep bytes. The model is the
    file that TFLM will read, with offsets, on the board of the plan.
    """
    bare = replace(model, offsets=())
    planned = {request.of: offset for request, offset in find_places(bare, layout, plan)}
    for offset, request in place_requests(model):
        if isinstance(request.of, Scratch) and request.size and offset != planned[request.of]:
            raise MemplanError(
                f"{model.name}: TFLM would place kernel scratch at {offset} and not at "
                f"{planned[request.of]}, where no other program of the shared arena keeps bytes; "
                "write the plan as a header for its shim (--shim), which places scratch too"
            )


def find_places(model: Model, layout: Layout, plan: Places) -> list[tuple[Request, int]]:
    """Return what TFLM asks its planner for, in its order, each with its offset in the plan.

    The model is the file that TFLM will read, without offsets and packed weights, on the board of
    the plan. It may have been made of the one that was planned: tensors keep their numbers. Plans
    for kernels that ask for other scratch are refused.
    """
    graph = layout.graph
    tensors = find_offsets(model, layout, plan)
    holders = find_workspaces(graph)
    base = {
        tensor: plan.offset(storage.name)
        for storage in (layout.storages[row] for row in layout.rows)
        for tensor in storage.tensors
    }
    ends = {result: 0 for result in holders if result < len(tensors)}  # of the parts so far
    found = []
    for request in list_requests(model):
        of = request.of
        if not isinstance(of, Scratch):
            found.append((request, max(0, tensors[of])))  # an unused tensor can have any offset
            continue
        before = ends.get(of.result, 0)
        offset = base[holders[of.result]] + before if of.result in holders else 0
        ends[of.result] = before + request.size
        found.append((request, offset))
    if any(size != _size_of_scratch(graph, holders, result) for result, size in ends.items()):
        raise PlanError(f"{model.name}: the plan is for kernels that ask for other scratch")
    return found


def _size_of_scratch(graph: Graph, holders: Mapping[int, int], result: int) -> int:
    return graph.tensors[holders[result]].bytes if result in holders else 0


def find_unused(graph: Graph) -> list[int]:
    """Return the tensors of the file that take memory though nothing reads or writes them."""
    used = {*graph.inputs, *graph.outputs}
    for operator in graph.walk():
        used.update(operator.inputs, operator.outputs)
        for block in operator.blocks:
            used.update(block.inputs, block.outputs)
    return [
        number
        for number, tensor in enumerate(graph.tensors)
        if tensor.kind is Kind.INTERMEDIATE and tensor.bytes and number not in used
    ]

"""Puts the operators of a TFLite model in the order with the least load, and plans that.

TensorFlow Lite Micro runs operators in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from memplan.files import temporary_folder
from memplan.graph import Graph
from memplan.planning import Planned
from memplan.rewrite import Reordered, reorder
from memplan.sources import load
from memplan.sources.tflite.model import Model, parse
from memplan.targets.tflite_micro.apply import Applied, is_refused, patch, read_bytes
from memplan.targets.tflite_micro.metadata import with_order
from memplan.targets.tflite_micro.planning import plan_file
from memplan.yardsticks.tflite_micro_arena import minimal_arena

__all__ = ["InOrder", "apply_in_order", "find_orders"]


@dataclass(frozen=True)
class InOrder:
    """A model in the order with the smaller arena, its own or the one with the least load.

    Attributes
    ----------
    reordered
        The order with the least load.
    planned, applied, data
        The plan, what it saves, and the bytes of the new file.
    is_new
        Whether the file is in that order; otherwise its own order needs no larger arena.
    arena, other
        What the file needs, and what it would need in the other order, in bytes: the smallest arena
        that TFLM accepts, or the head of the arena where tflite-micro is not installed. They are
        equal if there is no better order.
    is_measured
        Whether these are the smallest arenas.
    """

    reordered: Reordered
    planned: Planned
    applied: Applied
    data: bytes
    is_new: bool
    arena: int
    other: int
    is_measured: bool


def apply_in_order(
    model: Path,
    out: Path,
    *,
    in_place: bool = False,
    replan: bool = False,
    arena_budget: int | None = None,
    allow_refused: bool = False,
    pure: Iterable[str] = (),
    timeout: float | None = None,
    nodes: int | None = None,
) -> InOrder:
    """Plan a model in its own order and in the one with the least load; take the smaller arena.

    No file is written. TFLM places kernel scratch itself where the file cannot, so a smaller load
    is no promise of a smaller arena; where tflite-micro is installed, both are measured.

    Parameters
    ----------
    model, out, in_place, replan, arena_budget, allow_refused, nodes
        See `memplan.targets.tflite_micro.apply`.
    pure
        See `memplan.rewrite.reorder`.
    timeout
        In seconds: half for the order, and the other half for the plans.

    Raises
    ------
    FormatError, GraphError, MemplanError
        As `memplan.rewrite.reorder` and `memplan.targets.tflite_micro.apply` do.
    """
    share = None if timeout is None else timeout / 4
    loaded = load(model, pins=False)
    found = reorder(
        loaded, in_place=in_place, pure=pure, timeout=None if share is None else 2 * share
    )
    data = read_bytes(model)
    stored = parse(data, str(model))
    given = found.given.graph
    moves = given is not None and found.graph.operators != given.operators
    new = with_order(data, str(model), find_orders(stored, found.graph)) if moves else data
    with temporary_folder(model) as folder:
        trial, written = Path(folder) / model.name, Path(folder) / "planned.tflite"
        trial.write_bytes(new)
        ways = []
        for path, dropped in ((model, replan), (trial, True))[: 2 if moves else 1]:
            planned = plan_file(
                path, None, in_place=in_place, replan=dropped, timeout=share, nodes=nodes
            )
            applied, result = patch(path, out, planned.plan, allow_refused=allow_refused)
            written.write_bytes(result)
            smallest = None if is_refused(applied) else minimal_arena(written)
            is_measured = smallest is not None
            arena = applied.after.bytes if smallest is None else smallest
            ways.append((arena, path is trial, planned, applied, result, is_measured))
        before = ways[0][3].before
        ways.sort(key=lambda way: way[:2])
        arena, is_new, planned, applied, result, is_measured = ways[0]
        if arena_budget is not None:  # this refuses what is above the budget
            applied, _ = patch(
                trial if is_new else model,
                out,
                planned.plan,
                arena_budget,
                allow_refused=allow_refused,
            )
    applied = replace(applied, before=before)
    return InOrder(found, planned, applied, result, is_new, arena, ways[-1][0], is_measured)


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

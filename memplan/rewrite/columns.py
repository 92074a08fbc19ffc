"""Converts a layout for the question in which order its operators should run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memplan.graph import Layout, Operator
from memplan.graph.liveness import iterate_given, iterate_wanted
from memplan.graph.order import waits
from memplan.problem import OrderProblem

__all__ = ["order_problem"]


def order_problem(layout: Layout) -> OrderProblem:
    """Return the question for the outermost operators of a graph, and its planned storages.

    Parameters
    ----------
    layout
        The graph laid out without in-place writes; in-place pairs become pairs of storages.
    """
    graph = layout.graph
    size = layout.problem.size.tolist()
    given = set(iterate_given(graph))
    wanted = set(iterate_wanted(graph))
    storage_of: dict[int, int] = {}
    workspace = [0] * len(graph.operators)
    number_of = {id(inner): at for at, op in enumerate(graph.operators) for inner in op.walk()}
    kept: list[int] = []
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        if storage.workspace_of is not None:
            workspace[number_of[id(storage.workspace_of)]] += size[row]
            continue
        storage_of.update(dict.fromkeys(storage.tensors, len(kept)))
        kept.append(row)
    users: list[set[int]] = [set() for _ in kept]
    in_place = set()
    for at, operator in enumerate(graph.operators):
        for tensor in _iterate_touched(operator):
            if tensor in storage_of:
                users[storage_of[tensor]].add(at)
        for old, new in operator.in_place:
            if old in storage_of and new in storage_of and storage_of[old] != storage_of[new]:
                in_place.add((at, storage_of[old], storage_of[new]))
    arcs = [
        (other, at)
        for at, awaited in enumerate(waits(graph.operators, graph.views))
        for other in awaited
    ]
    storages = [layout.storages[layout.rows[row]] for row in kept]
    return OrderProblem(
        np.array(workspace, dtype=np.int64),
        np.array(arcs, dtype=np.int32).reshape(-1, 2),
        np.array([size[row] for row in kept], dtype=np.int64),
        np.array([not given.isdisjoint(each.tensors) for each in storages], dtype=np.bool_),
        np.array([not wanted.isdisjoint(each.tensors) for each in storages], dtype=np.bool_),
        np.cumsum([0, *map(len, users)], dtype=np.int64),
        np.array([user for each in users for user in sorted(each)], dtype=np.int32),
        np.array(sorted(in_place), dtype=np.int32).reshape(-1, 3),
        tuple(operator.name or operator.type for operator in graph.operators),
        tuple(each.name for each in storages),
    )


def _iterate_touched(operator: Operator) -> Iterator[int]:
    for inner in operator.walk():
        yield from inner.inputs
        yield from inner.outputs
        for block in inner.blocks:
            yield from block.inputs
            yield from block.outputs

"""Assigns the operators of a training step to streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from memplan.graph import Graph, Operator
from memplan.sources.torch_training.step import ALL_REDUCE, Optimizer

__all__ = ["LIMIT", "Streams", "assign_streams"]

Streams = Literal["ddp", "overlap", "category", "one"]

LIMIT = 512


def assign_streams(graph: Graph, streams: Streams, limit: int) -> Graph:
    """Return a step on several streams, made from one on a single stream; see `training_step`."""
    if streams == "category":
        numbers = _number_streams(graph, limit)
    else:
        side = {"one": (), "ddp": ("communication",), "overlap": ("communication", "update")}
        numbers = [int(_get_category(one) in side[streams]) for one in graph.operators]
    operators = zip(graph.operators, numbers, strict=True)
    return replace(graph, operators=tuple(replace(one, stream=at) for one, at in operators))


def _number_streams(graph: Graph, limit: int) -> list[int]:
    """Return by operator a stream that has only its category; a new stream follows a full one.

    Streams are numbered as they begin.
    """
    open_: dict[str, int] = {}
    left: dict[str, int] = {}
    numbers = []
    begun = 0
    for operator in graph.operators:
        category = _get_category(operator)
        if not left.get(category):
            open_[category], left[category] = begun, limit
            begun += 1
        left[category] -= 1
        numbers.append(open_[category])
    return numbers


def _get_category(operator: Operator) -> str:
    if operator.type == ALL_REDUCE:
        return "communication"
    return "update" if operator.type in get_args(Optimizer) else "compute"

"""Moves storages of PyTorch's tensors to host memory and back, for steps that spill."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from memplan.base.extras import require
from memplan.levers.rewrite.effects import MOVE_OUT
from memplan.programs.graph import Operator

__all__ = ["Moves"]


class Outside(NamedTuple):
    """A copy in host memory, and what the tensor was."""

    bytes: Any
    device: Any
    dtype: Any
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]


def move_out(tensor: Any) -> Outside:
    """Copy the storage of a tensor to host memory: pinned for a GPU, and NumPy's for a CPU.

    What PyTorch allocates on the CPU is the memory that a step on the CPU saves.
    """
    torch: Any = require("torch", extra="torch")
    inside = _see_bytes(tensor.untyped_storage(), tensor.device)
    if tensor.device.type == "cpu":
        outside = torch.from_numpy(np.empty(len(inside), np.uint8))
    else:
        outside = torch.empty(len(inside), dtype=torch.uint8, pin_memory=True)
    outside.copy_(inside)
    shape, steps = tuple(tensor.shape), tensor.stride()
    return Outside(outside, tensor.device, tensor.dtype, tensor.storage_offset(), shape, steps)


def move_back(outside: Outside) -> Any:
    """Return a tensor like the one that was moved out, in a new storage."""
    torch: Any = require("torch", extra="torch")
    storage = torch.UntypedStorage(len(outside.bytes), device=outside.device)
    _see_bytes(storage, outside.device).copy_(outside.bytes)
    empty = torch.empty(0, dtype=outside.dtype, device=outside.device)
    return empty.set_(storage, outside.offset, outside.shape, outside.steps)


def _see_bytes(storage: Any, device: Any) -> Any:
    torch: Any = require("torch", extra="torch")
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage)


class Moves:
    """Writes operators that move tensors as nodes of a `torch.fx.Graph`.

    `now` has by node of the given graph its latest copy in the new one.
    """

    def __init__(self, graph: Any, now: dict[Any, Any]) -> None:
        self._graph, self._now = graph, now
        self._given: dict[int, Any] = {}  # by tensor: the node of which it is a copy
        self._outside: dict[int, Any] = {}  # by tensor in the other memory: the new node

    def note_results(self, node: Any, made: Operator) -> None:
        """Remember which tensors a copy of a node makes."""
        if len(made.outputs) == 1:
            self._given[made.outputs[0]] = node
        for part in node.users if len(made.outputs) > 1 else ():
            if part.target is operator.getitem:
                self._given[made.outputs[part.args[1]]] = part

    def write(self, move: Operator) -> None:
        """Add the node of a move."""
        (read,), (made,) = move.inputs, move.outputs
        node = self._given[made] = self._given[read]
        if move.type == MOVE_OUT:
            self._outside[made] = self._graph.call_function(move_out, (self._now[node],))
        else:
            self._now[node] = self._graph.call_function(move_back, (self._outside[read],))

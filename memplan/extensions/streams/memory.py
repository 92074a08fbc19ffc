"""The tensors of a program: at planned offsets of one slab, or in memory of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from memplan.base.errors import PlanError, quoted
from memplan.extensions.streams.program import Program
from memplan.programs.graph import Storage
from memplan.runtimes.torch.read.values import Value, dense_strides

__all__ = ["Memory"]

POISON = 0xFF  # as float32 and float64 it is NaN


class Memory:
    """All tensors of a program, made once, at offsets in bytes, by row of its problem."""

    def __init__(self, program: Program, offsets: npt.NDArray[np.int64]) -> None:
        layout = program.layout
        ends = offsets + layout.problem.size
        self.device = torch.device(program.origin.program.device)
        # One tensor of bytes.
        self.slab = torch.empty(int(ends.max(initial=0)), dtype=torch.uint8, device=self.device)
        # By row of the problem: its bytes in the slab.
        self.rows = [
            self.slab[begin:end] for begin, end in zip(offsets.tolist(), ends.tolist(), strict=True)
        ]
        # By index in the graph, without those that are only waits. Inputs of the caller have memory
        # of their own here, into which a call copies them.
        self.tensors: dict[int, torch.Tensor] = {}
        # By name of an operator: the bytes of its workspace.
        self.workspaces: dict[str, torch.Tensor] = {}
        # All memory that was made here: the slab, and that of inputs and optimizer state.
        self.own = [self.slab]
        self._program = program
        self._describe()
        row_of = {storage: row for row, storage in enumerate(layout.rows)}
        for number, storage in enumerate(layout.storages):
            row = row_of.get(number)
            if storage.workspace_of is not None and row is not None:
                self.workspaces[storage.workspace_of.name] = self.rows[row]
            elif row is not None:
                self._place(storage, self.slab, int(offsets[row]))
            else:
                self._place(storage, *self._find_own(storage))
        for index, tensor in enumerate(program.graph.tensors):
            if index not in self.tensors and tensor.shape is not None:  # it has no bytes
                sizes, strides, dtype, _ = self._described[index]
                self.tensors[index] = torch.empty_strided(
                    sizes, strides, dtype=dtype, device=self.device
                )

    def flat(self, indices: tuple[int, ...]) -> torch.Tensor:
        """Return tensors that lie side by side as one, including the padding between them."""
        first = self.tensors[indices[0]]
        row_of = {
            tensor: row
            for row, storage in enumerate(self._program.layout.rows)
            for tensor in self._program.layout.storages[storage].tensors
        }
        rows = [self.rows[row_of[index]] for index in indices if index in row_of]
        begin = min(row.storage_offset() for row in rows)
        end = max(row.storage_offset() + len(row) for row in rows)
        return self.slab[begin:end].view(first.dtype)

    def _describe(self) -> None:
        """Find sizes, strides, type and place of every tensor that has a shape."""
        origin, graph = self._program.origin, self._program.graph
        value_of: dict[int, Value] = {
            index: origin.program.values[name] for name, index in origin.indices.items()
        }
        base = {view.tensor: view.base for view in graph.views}
        self._described: dict[int, tuple[Any, Any, torch.dtype, int]] = {}
        for index, tensor in enumerate(graph.tensors):
            # A reduced gradient is all of a gradient, with its strides.
            value = value_of.get(index) or value_of.get(base.get(index, -1))
            if value is not None:
                dtype = getattr(torch, value.dtype)
                self._described[index] = (value.sizes, value.strides, dtype, value.offset)
            elif tensor.shape is not None:
                strides = dense_strides(tensor.shape)
                self._described[index] = (tensor.shape, strides, getattr(torch, tensor.dtype), 0)

    def _find_own(self, storage: Storage) -> tuple[torch.Tensor, int]:
        """Return memory outside of the slab, and where the storage begins there, in bytes."""
        given = self._program.tensors
        for index in storage.tensors:
            if index in given:
                tensor = given[index]
                at = tensor.storage_offset() - self._described[index][3]
                return tensor, at * tensor.element_size()
        self.own.append(torch.zeros(storage.bytes, dtype=torch.uint8, device=self.device))
        return self.own[-1], 0

    def _place(self, storage: Storage, memory: torch.Tensor, begin: int) -> None:
        for index in storage.tensors:
            sizes, strides, dtype, at = self._described[index]
            if begin % dtype.itemsize:
                raise PlanError(
                    f"buffer {quoted(storage.name)} is at offset {begin}; its elements of "
                    f"{dtype.itemsize} bytes need a multiple of that"
                )
            given = self._program.tensors.get(index)
            if given is not None and given.stride() != tuple(strides):
                raise PlanError(
                    f"weight {quoted(storage.name)} has other strides than when it was captured; "
                    "capture the model again"
                )
            view = torch.empty(0, dtype=dtype, device=self.device)
            where = begin // dtype.itemsize + at
            view.set_(memory.untyped_storage(), where, sizes, strides)
            self.tensors[index] = view

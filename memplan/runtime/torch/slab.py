"""A model that runs from one slab: a planned offset for every allocation of a forward pass.

MemoMalloc's runtime (source 002, chapter 3.2), with two differences: an allocation is found by the
modules and operators around it, so that these may run in another order; and what is planned is
only done when it is safe at that moment, so that nothing else may be wrong with the plan or run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import compress
from typing import Any

import numpy as np
import torch

from memplan.errors import MemplanError, PlanError
from memplan.plan import Plan
from memplan.referee import verify
from memplan.runtime.torch.binding import Binding, tensors
from memplan.runtime.torch.extension import load
from memplan.trace import Scope, Trace

__all__ = ["Slab", "Statistics", "most_slabs", "table_of"]

_ALIGNMENT = 64
_NOT_PLANNED = -1


@dataclass(frozen=True)
class Statistics:
    """What became of the allocations of all calls so far.

    Of a program that runs as it was recorded, `unknown`, `resized` and `occupied` are 0.

    Attributes
    ----------
    calls
        That ran in a slab.
    hits, hit_bytes
        Allocations that had their planned range, and their bytes in sum.
    outliving
        In ordinary memory as planned: what outlived the recorded call, the results.
    unknown
        In ordinary memory, because no such allocation was recorded.
    resized
        In ordinary memory, because it was larger than recorded; what is smaller, at a smaller
        batch size, has its range.
    occupied
        In ordinary memory, because something in the planned range was alive.
    elsewhere
        In ordinary memory, because another stream of the device asked.
    other_bytes
        Bytes in sum of all that took ordinary memory.
    without
        Calls that ran in ordinary memory altogether, since all slabs were in use.
    slabs, slab_bytes
        Slabs made, and the bytes of one.
    """

    calls: int = 0
    hits: int = 0
    hit_bytes: int = 0
    outliving: int = 0
    unknown: int = 0
    resized: int = 0
    occupied: int = 0
    elsewhere: int = 0
    other_bytes: int = 0
    without: int = 0
    slabs: int = 0
    slab_bytes: int = 0

    def __add__(self, other: Statistics) -> Statistics:
        """Return the counts of both together; `slab_bytes` is that of the larger slabs."""
        sums = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
        }
        return Statistics(**{**sums, "slab_bytes": max(self.slab_bytes, other.slab_bytes)})

    def since(self, before: Statistics) -> Statistics:
        """Return what happened after `before`; `slabs` and `slab_bytes` are as they are now."""
        change = {
            field.name: getattr(self, field.name) - getattr(before, field.name)
            for field in fields(self)
        }
        return Statistics(**{**change, "slabs": self.slabs, "slab_bytes": self.slab_bytes})


class Slab:
    """Runs a model in memory that is planned; a context manager.

    Every call takes a slab of `plan.peak` bytes that no other call uses, and gives it back when it
    has returned and no tensor in it is alive. What is returned never lies in it.

    Parameters
    ----------
    plan
        For `trace.problem()`.
    trace
        What was recorded.
    model
        Runs when the slab is called; that of the recording, if there is one. Other models of the
        same architecture are bound by `slab(model)`.
    slabs
        At most so many slabs; calls for which none is left run in ordinary memory. `None`: twice
        as many as there are processors, and 16 at least. They are made when they are needed: for
        calls at the same time, and for calls that left tensors behind, which would otherwise take
        a whole slab for every tensor that the caller keeps.

    Raises
    ------
    PlanError
        If the plan has no offsets, or is not of this trace.
    MemplanError
        Without a C++ compiler, which the first use needs; see `memplan.runtime.torch.extension`.
    """

    _closed = True  # until it is made

    def __init__(
        self, plan: Plan, trace: Trace, model: Any = None, slabs: int | None = None
    ) -> None:
        self._limit = most_slabs(slabs)
        self._rows = table_of(plan, trace)
        self._model = getattr(trace, "model", None) if model is None else model
        self._pool: Any = None
        self._native: Any = None
        self._bindings: list[Binding] = []
        self._runners: dict[int, Callable[..., Any]] = {}
        self._own: Any = None
        self._lock = threading.Lock()  # for making and deleting the pool and the runners
        self._closed = False
        self._last = Statistics()

    def __enter__(self) -> Slab:
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def open(self) -> None:
        """Put the allocator in its place; a `with` statement does, and so does the first call.

        Raises
        ------
        MemplanError
            If the slab was closed, and as `memplan.runtime.torch.extension.load`.
        """
        with self._lock:
            self._ready()

    def close(self) -> None:
        """Undo everything; the memory of tensors that are alive goes with the last of them."""
        if self._closed:
            return
        with self._lock:
            self._last = self._counts()
            self._closed = True
            for binding in self._bindings:
                binding.undo()
            self._bindings.clear()
            self._runners.clear()
            self._own = None
            if self._pool is not None:
                self._pool.close()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model in a slab; with another model as the one argument, bind that (`bind`)."""
        if len(args) == 1 and isinstance(args[0], torch.nn.Module) and not kwargs:
            return self.bind(args[0])
        own = self._own
        if own is None:
            if self._model is None:
                raise MemplanError("this trace has no model; bind one first: slab(model)(*inputs)")
            own = self._own = self.bind(self._model)
        return own(*args, **kwargs)

    def bind(self, model: Any) -> Callable[..., Any]:
        """Return what runs a model in these slabs, called like the model; until they are closed.

        Parameters
        ----------
        model
            Of the architecture that was recorded; what it does otherwise gets ordinary memory.
        """
        with self._lock:
            self._ready()
            runner = self._runners.get(id(model))
            if runner is None:
                binding = Binding(self._native, model)
                self._bindings.append(binding)
                runner = self._native.Runner(self._pool, model, binding, self._settle)
                self._runners[id(model)] = runner
            return runner

    def _settle(self, result: Any) -> None:
        """Move what is returned out of the slab; views go with what they look at."""
        for tensor in tensors(result):
            self._native.move_out(tensor.untyped_storage()._cdata)

    def stats(self) -> Statistics:
        """Return the counts of all calls so far; of one that is under way, in part."""
        with self._lock:
            return self._counts()

    def _ready(self) -> None:
        if self._closed:
            raise MemplanError("this slab is closed; make another of the same plan and trace")
        if self._pool is None:
            self._native = load()
            self._pool = self._native.Pool(self._rows, self._limit)

    def _counts(self) -> Statistics:
        if self._closed or self._pool is None:
            return self._last
        return Statistics(*self._pool.totals())


def most_slabs(asked: int | None) -> int:
    """Return how many slabs there may be, for the parameter `slabs`."""
    if asked is not None and asked < 1:
        raise MemplanError(f"slabs is {asked}; it must be at least 1")
    return asked or max(16, 2 * (os.cpu_count() or 1))


def table_of(plan: Plan, trace: Trace) -> list[tuple[Scope, int, int, int]]:
    """Return scope, ordinal, size and offset of what the calling thread allocated."""
    problem = trace.problem()
    verify(problem, plan)
    if trace.alignment % _ALIGNMENT:
        raise PlanError(
            f"the trace is aligned to {trace.alignment} bytes; PyTorch's kernels need a multiple "
            f"of {_ALIGNMENT}"
        )
    offsets = np.full(len(trace), _NOT_PLANNED)
    offsets[trace.planned] = [plan.offset(name) for name in problem.ids]
    rows = zip(
        trace.scopes,
        trace.ordinal.tolist(),
        trace.size.tolist(),
        offsets.tolist(),
        strict=True,
    )
    return list(compress(rows, trace.thread == 0))

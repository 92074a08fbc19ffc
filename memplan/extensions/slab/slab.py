"""Runs a model in one slab, with a planned offset for every allocation of a forward pass.

This is MemoMalloc's runtime (chapter 3.2) with two differences. It identifies an
allocation by the modules and operators around it, so these may run in another order. And it gives
out a planned range only if that is free at this moment, so a wrong plan or another run is safe.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import compress
from typing import Any, Protocol

import numpy as np
import torch

from memplan.base.errors import MemplanError, PlanError
from memplan.extensions.slab.binding import Binding, iterate_tensors
from memplan.extensions.slab.extension import load
from memplan.problem.plan import Plan
from memplan.problem.trace import Scope, Trace
from memplan.referee import verify
from memplan.referee.assigned import MemoryClaim, verify_assigned

__all__ = ["Slab", "Statistics", "make_table", "most_slabs"]

_ALIGNMENT = 64
_NOT_PLANNED = -1


class Plans(Protocol):
    """Plans in several memories: what `memplan.assign` returns."""

    @property
    def memories(self) -> Sequence[MemoryClaim]:
        """The memories."""

    @property
    def plans(self) -> Sequence[Plan]:
        """By memory."""

    @property
    def accessed(self) -> Mapping[str, tuple[int, int]]:
        """By id: bytes that are read, and written."""


@dataclass(frozen=True)
class Statistics:
    """Counts of the allocations in all calls so far, by the memory that they got.

    If a program runs as it was recorded, `unknown`, `resized` and `occupied` are 0.

    Attributes
    ----------
    calls
        Calls that ran in a slab.
    hits, hit_bytes
        Allocations that got their planned range, and their bytes in total.
    outliving
        In ordinary memory as planned, because they outlived the recorded call: the results, and
        gradients that a training step leaves.
    unknown
        In ordinary memory, because no such allocation was recorded.
    resized
        In ordinary memory, because they were larger than recorded. Smaller ones, of a smaller batch
        size, get their range.
    occupied
        In ordinary memory, because another tensor was alive in the planned range.
    elsewhere
        In ordinary memory, because they were made for another stream of the device.
    other_bytes
        Total bytes of the allocations in ordinary memory.
    without
        Calls that ran only in ordinary memory, because all slabs were in use.
    slabs, slab_bytes
        The number of slabs that were made, and the bytes of one.
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
        """Return the sums of both counts; `slab_bytes` is that of the larger slabs."""
        return replace(self._add(other, 1), slab_bytes=max(self.slab_bytes, other.slab_bytes))

    def since(self, before: Statistics) -> Statistics:
        """Return the counts since `before`; `slabs` and `slab_bytes` are the present ones."""
        return replace(self._add(before, -1), slabs=self.slabs, slab_bytes=self.slab_bytes)

    def _add(self, other: Statistics, sign: int) -> Statistics:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Statistics(*(one + sign * another for one, another in pairs))


class Slab:
    """Runs a model in planned memory; a context manager.

    Every call takes a slab of `plan.peak` bytes that no other call uses, and gives it back when the
    call has returned and no tensor in the slab is alive. Results never lie in it.

    Parameters
    ----------
    plan
        A plan of `trace.problem()`, or plans of it in several memories (`memplan.assign`): then a
        slab has a block of memory for each.
    trace
        The recording, or another trace.
    model
        The model to run; by default that of the recording, if there is one. `slab(model)` binds
        other models of the same architecture, and `bind` also other training steps.
    slabs
        The most slabs; calls without a free slab run in ordinary memory. `None` allows twice the
        number of processors, and at least 16. Slabs are made when they are needed: for calls at
        the same time, and after calls that left live tensors in theirs. The limit keeps a caller
        that holds such tensors from using a whole slab for each of them.

    Raises
    ------
    PlanError
        If the plan has no offsets, or does not fit this trace.
    MemplanError
        If there is no C++ compiler for the first use; see `memplan.extensions.slab.extension`.
    """

    _closed = True  # until `__init__` has succeeded

    def __init__(
        self,
        plan: Plan | Plans,
        trace: Trace,
        model: Any = None,
        slabs: int | None = None,
    ) -> None:
        self._limit = most_slabs(slabs)
        self._rows = make_table(plan, trace)
        self._model = getattr(trace, "model", None) if model is None else model
        self._trains = getattr(trace, "trains", None) if model is None else None
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
        """Install the allocator; a `with` statement or the first call does this too.

        Raises
        ------
        MemplanError
            If the slab is closed, and as `memplan.extensions.slab.extension.load`.
        """
        with self._lock:
            self._make_ready()

    def close(self) -> None:
        """Undo everything; the memory of live tensors is freed with the last of them."""
        if self._closed:
            return
        with self._lock:
            self._last = self._count()
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
            own = self._own = self.bind(self._model, self._trains)
        return own(*args, **kwargs)

    def bind(self, model: Any, trains: Any = None) -> Callable[..., Any]:
        """Return a function that runs a model in these slabs, until they are closed.

        Parameters
        ----------
        model
            A model of the recorded architecture; other allocations of it get ordinary memory.
        trains
            If `model` is a training step, the `torch.nn.Module` that it trains, as for `record`.
        """
        with self._lock:
            self._make_ready()
            runner = self._runners.get(id(model))
            if runner is None:
                binding = Binding(self._native, model if trains is None else trains)
                self._bindings.append(binding)
                runner = self._native.Runner(self._pool, model, binding, self._settle)
                self._runners[id(model)] = runner
            return runner

    def _settle(self, result: Any) -> None:
        """Move the tensors of a result out of the slab, together with all views of them."""
        for tensor in iterate_tensors(result):
            self._native.move_out(tensor.untyped_storage()._cdata)

    def stats(self) -> Statistics:
        """Return the counts of all calls so far, also of a call that still runs."""
        with self._lock:
            return self._count()

    def _make_ready(self) -> None:
        if self._closed:
            raise MemplanError("this slab is closed; make another of the same plan and trace")
        if self._pool is None:
            self._native = load()
            self._pool = self._native.Pool(self._rows, self._limit)

    def _count(self) -> Statistics:
        if self._closed or self._pool is None:
            return self._last
        return Statistics(*self._pool.totals())


def most_slabs(asked: int | None) -> int:
    """Return the limit on slabs, for the parameter `slabs`."""
    if asked is not None and asked < 1:
        raise MemplanError(f"slabs is {asked}; it must be at least 1")
    return asked or max(16, 2 * (os.cpu_count() or 1))


def make_table(plan: Plan | Plans, trace: Trace) -> list[tuple[Scope, int, int, int, int]]:
    """Return scope, ordinal, size, offset and memory of the calling thread's allocations."""
    problem = trace.problem()
    if isinstance(plan, Plan):
        verify(problem, plan)
        plans: Sequence[Plan] = (plan,)
    else:
        verify_assigned(problem, plan.memories, plan.plans, {}, plan.accessed)
        plans = plan.plans
    if trace.alignment % _ALIGNMENT:
        raise PlanError(
            f"the trace is aligned to {trace.alignment} bytes; PyTorch's kernels need a multiple "
            f"of {_ALIGNMENT}"
        )
    places = {id: (each.offset(id), at) for at, each in enumerate(plans) for id in each.ids}
    offsets, memories = np.full(len(trace), _NOT_PLANNED), np.zeros(len(trace), np.int64)
    offsets[trace.planned] = [places[id][0] for id in problem.ids]
    memories[trace.planned] = [places[id][1] for id in problem.ids]
    rows = zip(
        trace.scopes,
        trace.ordinal.tolist(),
        trace.size.tolist(),
        offsets.tolist(),
        memories.tolist(),
        strict=True,
    )
    return list(compress(rows, trace.thread == 0))

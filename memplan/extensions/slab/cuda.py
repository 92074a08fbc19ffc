"""Runs a forward pass on a CUDA device with its tensors in one slab of device memory.

    from memplan.extensions.slab import record
    from memplan.extensions.slab import cuda

    cuda.install()                                       # before the first tensor on a device
    trace = record(model.cuda(), inputs, device="cuda")
    with cuda.CudaSlab(memplan.solve(trace.problem()), trace) as fast:
        y = fast(*inputs)

With a `torch.cuda.MemPool`, PyTorch requests whole segments, and its caching allocator chooses the
places of tensors in them. To follow a plan, each tensor needs a request of its own. So this uses a
`CUDAPluggableAllocator`, which replaces the caching allocator in the whole process. It keeps freed
memory outside of plans, and reuses it by exact size and stream. With every pluggable allocator
PyTorch has no memory statistics, snapshots and memory pools; a call can still be captured into a
CUDA graph.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from memplan.base.errors import MemplanError
from memplan.extensions.slab.binding import Binding, iterate_tensors
from memplan.extensions.slab.extension import load
from memplan.extensions.slab.slab import Statistics, make_table, most_slabs
from memplan.problem.plan import Plan
from memplan.problem.trace import Trace

__all__ = ["CudaSlab", "install"]


@functools.cache
def install() -> None:
    """Replace PyTorch's CUDA allocator, in this process and until it ends.

    Raises
    ------
    MemplanError
        Without a CUDA device, without a C++ compiler, or if CUDA's memory is in use already, as
        PyTorch cannot change its allocator then.
    """
    if not torch.cuda.is_available():
        raise MemplanError("there is no CUDA device, or a PyTorch without CUDA; slabs need both")
    library = str(load().__file__)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        library, "memplan_cuda_allocate", "memplan_cuda_release"
    )
    hooks = allocator.allocator()
    hooks.set_record_stream_fn(_find_address(library, "memplan_cuda_record_stream"))
    hooks.set_reset_fn(_find_address(library, "memplan_cuda_trim"))  # torch.cuda.empty_cache()
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError:
        raise MemplanError(
            "CUDA's memory is in use already; call install() before the first tensor on a device"
        ) from None


def _find_address(library: str, name: str) -> int | None:
    return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value


def _is_installed() -> bool:
    return install.cache_info().currsize > 0


def _get_stream() -> tuple[int, int]:
    """Return the current device, and the handle of its current stream."""
    stream = torch.cuda.current_stream()
    return stream.device_index, stream.cuda_stream


_prepared = threading.local()


def _make_workspaces(where: tuple[int, int]) -> None:
    """Let cuBLAS and cuBLASLt make their workspaces for this thread and stream.

    They make them at their first use there, and keep them. Made during a call, they could get the
    range of a tensor of the model, and hold the slab for ever.
    """
    streams: set[tuple[int, int]] = vars(_prepared).setdefault("streams", set())
    if where in streams:
        return
    with torch.no_grad():
        matrix = torch.zeros(16, 16, device="cuda")
        torch.mm(matrix, matrix)
        torch.addmm(matrix[0], matrix, matrix)
    streams.add(where)


class CudaSlab(AbstractContextManager["CudaSlab"]):
    """Runs a model in planned memory of a CUDA device; a context manager, for many threads.

    A slab belongs to one stream, which is the current one when the model is called. Work on a
    stream runs in order, so the memory of a freed tensor can be reused immediately. Allocations of
    the model on other streams get memory outside of the plan, and count as `elsewhere`. Results do
    not lie in the slab.

    Parameters
    ----------
    plan
        A plan of `trace.problem()`.
    trace
        The result of `record` with `device="cuda"`.
    model
        The model to run; by default that of the recording, if there is one.
    slabs
        The most slabs of every stream; `None` as for `memplan.extensions.slab.Slab`.

    Raises
    ------
    PlanError
        If the plan has no offsets, or is not of this trace.
    MemplanError
        If no model is known, if `slabs` is below 1, or before `install()`, as only its allocator
        can follow the plan.
    """

    def __init__(
        self, plan: Plan, trace: Trace, model: Any = None, slabs: int | None = None
    ) -> None:
        model = getattr(trace, "model", None) if model is None else model
        if model is None:
            raise MemplanError("this trace has no model; pass the one that shall run")
        self._rows = make_table(plan, trace)
        self._model = model
        self._limit = most_slabs(slabs)
        if not _is_installed():
            raise MemplanError(
                "slabs on a device need their allocator; call "
                "memplan.extensions.slab.cuda.install() before the first tensor on a device"
            )
        self._native = load()
        self._move_out = ctypes.CDLL(self._native.__file__).memplan_cuda_move_out
        self._move_out.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._binding = Binding(self._native, model)
        self._pools: dict[tuple[int, int], Any] = {}
        self._runners: dict[tuple[int, int], Callable[..., Any]] = {}
        self._lock = threading.Lock()
        self._last: Statistics | None = None

    def __exit__(self, *error: object) -> None:
        self.close()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model in a slab of the current stream."""
        where = _get_stream()
        _make_workspaces(where)
        runner = self._runners.get(where)
        return (runner or self._open(where))(*args, **kwargs)

    def close(self) -> None:
        """Close the slabs; memory of live tensors is freed with the last of them."""
        with self._lock:
            if self._last is not None:
                return
            self._last = self._add_up()
            self._binding.undo()
            self._runners.clear()
            for pool in self._pools.values():
                pool.close()

    def stats(self) -> Statistics:
        """Return the counts of all calls so far, on all streams."""
        with self._lock:
            return self._add_up() if self._last is None else self._last

    def _open(self, where: tuple[int, int]) -> Callable[..., Any]:
        _, stream = where

        def settle(result: Any) -> None:
            for tensor in iterate_tensors(result, "cuda"):
                storage = tensor.untyped_storage()
                if not self._move_out(storage._cdata, stream):
                    raise torch.cuda.OutOfMemoryError(
                        f"CUDA out of memory: {storage.nbytes()} bytes to move a result to"
                    )

        with self._lock:
            if self._last is not None:
                raise MemplanError("this slab is closed; make another of the same plan and trace")
            if where not in self._runners:
                pool = self._pools[where] = self._native.Pool(self._rows, self._limit, *where)
                self._runners[where] = self._native.Runner(pool, self._model, self._binding, settle)
            return self._runners[where]

    def _add_up(self) -> Statistics:
        return sum((Statistics(*pool.totals()) for pool in self._pools.values()), Statistics())

"""memplan as the memory planner of torch.compile (Inductor), where that needs least.

    with planning() as choices:
        torch.compile(model)(x)

Inductor generates a list of lines for each graph: allocations, kernels and frees. Here the list is
planned in three ways: by default (each buffer is allocated, and reused by others of its size), by
Inductor's pools (`memory_planning=True`), and by pools whose offsets memplan chose. For each way
the peak is counted from its lines, and the lines with the least are kept, the default first. If
kernels such as convolutions allocate memory themselves, the default is kept: its buffers come and
go, but a pool is still there while such a kernel takes its scratch.

Outputs are regions of one line of addresses: each output begins its own region, one reserved unit
keeps neighbours apart, and the slab of all other buffers is the region above the last. A buffer may
lie in the region of an output before that is written, as in Inductor's own pools.

PyTorch's caches of compiled graphs are off in the context: what is in them was planned without it,
and what is planned in it would come out of them where no context is.

Written for PyTorch 2.13 and tested with it. docs/inductor.md says when it is worth while.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import sympy
import torch._dynamo.config as dynamo
import torch._functorch.config as autograd
from torch._inductor import compile_fx, config, ir
from torch._inductor.codegen import memory_planning as pools
from torch._inductor.codegen import wrapper
from torch._inductor.utils import get_dtype_size
from torch._inductor.virtualized import V

import memplan as mp

_UNIT = 64  # bytes; Inductor aligns buffers in pools to it


@dataclasses.dataclass
class Choice:
    """What one graph needs in each way, in bytes, and which of the three its code uses.

    A note says why it has the default. `memplan` and `stock` are `None` if they were not possible.
    """

    default: int
    stock: int | None = None
    memplan: int | None = None
    chosen: str = "default"
    note: str = ""


class _CannotPlanError(Exception):
    pass


@contextmanager
def planning(mode: str = "auto", nodes: int = 2_000) -> Iterator[list[Choice]]:
    """Plan what this thread compiles while the context is open; each graph adds to the list.

    It warns at its end if nothing was compiled, as what was compiled before is not compiled again.

    Parameters
    ----------
    mode
        "auto" takes the least of the three ways, and "memplan" always memplan's, where possible.
    nodes
        The budget of a search.
    """
    if mode not in ("auto", "memplan"):
        raise ValueError(f"mode is {mode!r}; it must be 'auto' or 'memplan'")
    if compile_fx.fx_compile_mode == compile_fx.FxCompileMode.SUBPROCESS:
        raise RuntimeError(
            "TORCHINDUCTOR_FX_COMPILE_MODE has graphs compiled in a process that is not planned; "
            "unset it"
        )
    stock = wrapper.PythonWrapperCodegen.run_wrapper_ir_passes
    choices: list[Choice] = []
    owner = threading.get_ident()

    def run_passes(self: Any, is_inference: bool) -> None:
        if threading.get_ident() != owner:  # another thread has its caches on
            stock(self, is_inference)
            return
        given = self.lines
        self.lines = _copy(given)
        with config.patch(memory_planning=False):
            stock(self, is_inference)
        ways = {"default": self.lines}
        choice = Choice(_count_peak(self.lines))
        choices.append(choice)
        try:
            _check(given, is_inference)
            ways["stock"] = pools.MemoryPlanner(self).plan(_copy(given))
            ways["memplan"] = _Planner(self, nodes=nodes).plan(_copy(given))
        except _CannotPlanError as error:
            choice.note = str(error)
            return
        peaks = {name: _count_peak(lines) for name, lines in ways.items()}
        choice.stock, choice.memplan = peaks["stock"], peaks["memplan"]
        if mode == "memplan":
            choice.chosen = "memplan"
        elif any(isinstance(line, wrapper.ExternKernelAllocLine) for line in given):
            choice.note = "some kernels allocate memory themselves, which the lines do not show"
        else:
            choice.chosen = min(peaks, key=lambda name: peaks[name])
        self.lines = ways[choice.chosen]

    wrapper.PythonWrapperCodegen.run_wrapper_ir_passes = run_passes
    try:
        with _no_caches():
            yield choices
    finally:
        wrapper.PythonWrapperCodegen.run_wrapper_ir_passes = stock
    if not choices:
        warnings.warn(
            "this thread compiled nothing in the context; "
            "torch._dynamo.reset() forgets what was compiled before",
            stacklevel=3,
        )


@contextmanager
def _no_caches() -> Iterator[None]:
    """Let graphs be compiled that are in a cache, and keep what is compiled out of all caches."""
    with ExitStack() as stack:
        stack.enter_context(config.patch(fx_graph_cache=False, fx_graph_remote_cache=False))
        stack.enter_context(
            autograd.patch(enable_autograd_cache=False, enable_remote_autograd_cache=False)
        )
        stack.enter_context(dynamo.patch(caching_precompile=False))
        yield


def _copy(lines: list[Any]) -> list[Any]:
    """Return lines that a planner may change."""
    return [copy.copy(line) for line in lines]


def _check(lines: list[Any], is_inference: bool) -> None:
    if not is_inference:
        raise _CannotPlanError("a graph of training: its default needs less")
    for line in lines:
        if isinstance(line, wrapper.EnterSubgraphLine):
            raise _CannotPlanError("a graph with control flow has the default")
        if isinstance(line, wrapper.AllocateLine) and not _has_size(line.node):
            raise _CannotPlanError(f"{line.node.get_name()} has a symbolic size")


def _has_size(node: Any) -> bool:
    return isinstance(sympy.sympify(V.graph.get_allocation_storage_size(node)), sympy.Integer)


class _Planner(pools.MemoryPlanner):
    """Inductor's planner with offsets from memplan."""

    def __init__(self, code: Any, nodes: int) -> None:
        super().__init__(code)
        self._nodes = nodes

    def allocate_groups(self) -> None:
        """Place each group of buffers that share memory."""
        devices = defaultdict(list)
        for group in self.buffer_groups:
            group.make_allocation()
            devices[group.allocation.device].append(group)
        for device, groups in devices.items():
            groups.sort(key=lambda group: not group.is_output)
            found = self.pools.device_to_pools.setdefault(device, [])
            found += _place(device, groups, self._nodes)
        self.pools.finalize()


@dataclasses.dataclass
class _Slab(pools.AllocationTreeNode):
    """The buffers of a pool, whose offsets are known."""

    buffers: list[Any]
    extent: int

    @property
    def allocations(self) -> list[Any]:
        return self.buffers

    def get_live_ranges(self) -> Any:
        return pools.LiveRanges(buffer.live_range for buffer in self.buffers)

    def get_size_hint(self) -> int:
        return self.extent

    def get_symbolic_size(self) -> Any:
        return sympy.Integer(self.extent)

    def finalize(self, pool: Any, offset: Any) -> Any:
        return self


def _place(device: Any, groups: list[Any], nodes: int) -> list[Any]:
    """Return the pools of a device; its outputs are the first of the groups."""
    buffers, reserved, bases, top = [], [], [], 0
    for row, group in enumerate(groups):
        size = _round_up(max(1, group.allocation.size_hint))
        begin = int(group.allocation.live_range.begin)
        end = max(int(group.allocation.live_range.end), begin + 1)
        pin = top if group.is_output else None
        buffers.append(mp.Buffer(str(row), begin, end, size, alignment=_UNIT, pin=pin))
        if group.is_output:
            bases.append(top)
            reserved.append((top + size, top + size + _UNIT))
            top += size + _UNIT
    problem = mp.Problem(buffers, reserved=[mp.Reserved(*each) for each in reserved])
    plan = mp.solve(problem, nodes=nodes, threads=1)
    mp.verify(problem, plan)
    regions = defaultdict(list)
    for row, group in enumerate(groups):
        offset = plan.offset(str(row))
        base = max(each for each in [*bases, top] if each <= offset)
        regions[base].append((group.allocation, offset - base, buffers[row].size))
    found = []
    for _, placed in sorted(regions.items()):
        extent = max(offset + size for _, offset, size in placed)
        slab = _Slab([buffer for buffer, _, _ in placed], extent)
        pool = pools.AllocationPool(device, slab, can_expand=False)
        for buffer, offset, _ in placed:
            buffer.mark_allocated()
            buffer.finalize(pool, sympy.Integer(offset))
        found.append(pool)
    return found


def _round_up(size: int) -> int:
    return -(-size // _UNIT) * _UNIT


def _count_peak(lines: list[Any]) -> int:
    """Return the most bytes that generated code holds at once, without what kernels take."""
    live: dict[Any, int] = {}
    peak = 0
    for line in lines:
        if isinstance(line, (wrapper.AllocateLine, wrapper.ExternKernelAllocLine)):
            live[line.node.get_name()] = _size_of(line.node)
        elif isinstance(line, wrapper.MultiOutputLine):
            live[line.result_name] = _size_of(V.graph.get_buffer(line.result_name))
        elif isinstance(line, wrapper.ReuseLine):
            if line.delete_old and line.node.get_name() in live:
                live[line.reused_as.get_name()] = live.pop(line.node.get_name())
        elif isinstance(line, pools.AllocFromPoolLine):
            if line.is_first_pool_usage:
                pool = line.group.allocation.pool
                live[pool] = int(pool.root.get_size_hint())
        elif isinstance(line, pools.DeallocFromPoolLine):
            if line.is_last_pool_usage:
                live.pop(line.group.allocation.pool, None)
        elif isinstance(line, wrapper.FreeLine) or (
            isinstance(line, wrapper.FreeIfNotReusedLine) and not line.is_reused
        ):
            live.pop(line.node.get_name(), None)
        peak = max(peak, sum(live.values()))
    return peak


def _size_of(node: Any) -> int:
    if isinstance(node.layout, (ir.MultiOutputLayout, ir.NoneLayout)):
        return 0
    elements = V.graph.sizevars.optimization_hint(
        V.graph.get_allocation_storage_size(node), fallback=0
    )
    return int(elements) * get_dtype_size(node.get_dtype())

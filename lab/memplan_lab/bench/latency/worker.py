"""One network under one allocator: `python -m memplan_lab.bench.latency.worker < request`.

An allocator is chosen when a process starts, so that each has one of its own.
"""

from __future__ import annotations

import copy
import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.solvers import solve
from memplan_lab.bench.latency.rows import Outcome, Request
from memplan_lab.bench.latency.timing import alternate

_LARGE = 128 << 10  # bytes; see `Outcome.large_bytes`
_PLANNED = 5  # times, of which the median counts
_PATIENCE = 1.0  # seconds that the default solver has; it mostly needs a thousandth


def main() -> None:
    """Answer the request on standard input."""
    request = Request(**json.load(sys.stdin))
    try:
        outcome = measure(request)
    except MemplanError as error:
        outcome = Outcome(error=str(error))
    print(json.dumps(asdict(outcome)), flush=True)


def measure(request: Request) -> Outcome:
    """Record, plan and run a network; a `MemplanError` says why that cannot be.

    Two modules with equal weights are used, so that the slab of one does not slow down the other.
    """
    check_loaded(request.library)
    import torch

    from memplan.extensions.slab import Slab, record
    from memplan_lab.bench.models import NETWORKS

    torch.set_num_threads(1)
    model, inputs = NETWORKS[request.network](request.batch, request.size)
    twin = copy.deepcopy(model)
    if request.training:
        eager, step = _make_step(model), _make_step(twin)
        trace = record(step, inputs, trains=twin)
        for _ in range(2):  # as `record` did
            eager(*inputs)
    else:
        eager = model
        trace = record(twin, inputs)
    problem = trace.problem()
    sizes = problem.size
    _, greedy_s = _make_plan(problem, "greedy_by_size")
    plan, auto_s = _make_plan(problem, "auto")

    def of(call: Any) -> Callable[[], Any]:
        def inference() -> Any:
            with torch.inference_mode(not request.training):
                return call(*inputs)

        return inference

    with Slab(plan, trace) as fast:
        kinds = (of(eager), of(fast))
        equal = _are_equal(*kinds)
        eagerly, fastly = alternate(
            kinds, threads=request.threads, runs=request.runs, seconds=request.seconds
        )
        equal = _are_equal(*kinds) and equal
        if request.training:
            equal = equal and _have_equal_state(model, twin)
        counts = fast.stats()
        active = _sample_active(kinds[0])
    return Outcome(
        eagerly,
        fastly,
        allocations=len(trace),
        planned=len(trace.planned),
        peak=plan.peak or 0,
        max_load=problem.max_load,
        result_bytes=int(trace.size[trace.outlives].sum()),
        sizes=tuple(np.bincount(np.frexp(sizes.astype(float))[1] - 1).tolist()),
        bytes=int(sizes.sum()),
        large_bytes=int(sizes[sizes >= _LARGE].sum()),
        greedy_s=greedy_s,
        auto_s=auto_s,
        hits=counts.hits / counts.calls,
        fallbacks=(counts.unknown + counts.resized + counts.occupied) / counts.calls,
        active=active,
        equal=equal,
    )


def _make_step(model: Any) -> Callable[..., Any]:
    """Return a training step of a network, which ends with its gradients released."""
    import torch

    updates = torch.optim.SGD(model.train().parameters(), lr=1e-3, momentum=0.9)

    def step(*inputs: Any) -> Any:
        torch.manual_seed(0)  # so that dropout is the same for both kinds
        loss = model(*inputs).square().mean()
        loss.backward()
        updates.step()
        updates.zero_grad()
        return loss.detach()

    return step


def _have_equal_state(first: Any, second: Any) -> bool:
    import torch

    states = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(one, other) for one, other in states)


def check_loaded(library: str) -> None:
    """Refuse a process without the library; the loader itself only prints a warning."""
    if library and os.path.realpath(library) not in Path("/proc/self/maps").read_text():
        raise MemplanError(f"{library} was not loaded; is it a library for this machine?")


def _make_plan(problem: Problem, solver: str) -> tuple[Plan, float]:
    seconds = []
    for _ in range(_PLANNED):
        begin = time.perf_counter()
        timeout = _PATIENCE if solver == "auto" else None
        plan = solve(problem, solver, timeout=timeout, threads=1)  # that of the request
        seconds.append(time.perf_counter() - begin)
    return plan, median(seconds)


def _sample_active(call: Callable[[], Any]) -> tuple[int, ...]:
    """Return what jemalloc holds in active extents after each operator; see `Outcome.active`."""
    mallctl = getattr(ctypes.CDLL(None), "mallctl", None)
    if mallctl is None:
        return ()
    from torch.utils._python_dispatch import TorchDispatchMode

    def active() -> int:
        value, size = ctypes.c_uint64(1), ctypes.c_size_t(8)
        mallctl(b"epoch", None, None, ctypes.byref(value), size)  # statistics are of an epoch
        mallctl(b"stats.active", ctypes.byref(value), ctypes.byref(size), None, 0)
        return int(value.value)

    found: list[int] = []

    class Sampling(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, function: Any, types: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            result = function(*arguments, **(named or {}))
            found.append(active())
            return result

    before = active()
    with Sampling():
        call()
    return tuple(each - before for each in found)


def _are_equal(first: Callable[[], Any], second: Callable[[], Any]) -> bool:
    """Whether two kinds give the same bits, NaN included."""
    import torch

    one, other = (kind().reshape(-1).view(torch.uint8) for kind in (first, second))
    return bool(torch.equal(one, other))


if __name__ == "__main__":
    main()

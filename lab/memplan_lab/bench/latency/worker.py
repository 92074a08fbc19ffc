"""One network under one allocator: `python -m memplan_lab.bench.latency.worker < request`.

An allocator is chosen when a process starts, so that each has one of its own.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from memplan.errors import MemplanError
from memplan.plan import Plan
from memplan.problem import Problem
from memplan.solvers import solve
from memplan_lab.bench.latency.rows import Outcome, Request
from memplan_lab.bench.latency.timing import alternate

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

    Two modules with equal weights are used, so that a slab in the one costs the other nothing.
    """
    check_loaded(request.library)
    import torch

    from memplan.runtime.torch import Slab, record
    from memplan_lab.bench.models import NETWORKS

    torch.set_num_threads(1)
    eager, inputs = NETWORKS[request.network](request.batch, request.size)
    trace = record(copy.deepcopy(eager), inputs)
    problem = trace.problem()
    _, greedy_s = _make_plan(problem, "greedy_by_size")
    plan, auto_s = _make_plan(problem, "auto")

    def of(call: Any) -> Callable[[], Any]:
        def inference() -> Any:
            with torch.inference_mode():
                return call(*inputs)

        return inference

    with Slab(plan, trace) as fast:
        kinds = (of(eager), of(fast))
        equal = _are_equal(*kinds)
        eagerly, fastly = alternate(
            kinds, threads=request.threads, runs=request.runs, seconds=request.seconds
        )
        equal = _are_equal(*kinds) and equal
        counts = fast.stats()
    return Outcome(
        eagerly,
        fastly,
        allocations=len(trace),
        planned=len(trace.planned),
        peak=plan.peak or 0,
        max_load=problem.max_load,
        result_bytes=int(trace.size[trace.outlives].sum()),
        greedy_s=greedy_s,
        auto_s=auto_s,
        hits=counts.hits / counts.calls,
        fallbacks=(counts.unknown + counts.resized + counts.occupied) / counts.calls,
        equal=equal,
    )


def check_loaded(library: str) -> None:
    """Refuse a process without the library, because the loader only complains, and goes on."""
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


def _are_equal(first: Callable[[], Any], second: Callable[[], Any]) -> bool:
    """Whether two kinds give the same bits, NaN included."""
    import torch

    return bool(torch.equal(first().view(torch.uint8), second().view(torch.uint8)))


if __name__ == "__main__":
    main()

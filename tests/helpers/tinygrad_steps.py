"""Steps in tinygrad with either planner, in a process of its own; prints what they did as JSON.

The environment chooses the device, and PYTHONPATH the release. The sizes are such that an allocator
that is asked in the order of time leaves holes that nothing fills.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from contextlib import nullcontext
from types import FunctionType
from typing import Any

from tinygrad import Tensor, TinyJit

from memplan.extensions.tinygrad import planning

UNIT = 2048
UNITS = (5, 1, 6, 1, 2, 5, 1)


def step(x: Any) -> Any:
    """Return the result of a chain of kernels, whose sizes change."""
    length = UNIT
    for at, units in enumerate(UNITS):
        x = (x[: min(length, units * UNIT)] * 3 + at).pad(((0, max(0, units * UNIT - length)),))
        x, length = x.contiguous(), units * UNIT
    return x.realize()


def run(context: Any) -> tuple[Any, list[str]]:
    """Return what the context gave, and hashes of three steps in it and of one after it."""
    capture = TinyJit(step)

    def digest(at: int) -> str:
        given = Tensor([float(each % 97 + at) for each in range(UNIT)]).realize()
        return hashlib.sha256(capture(given).numpy().tobytes()).hexdigest()

    with context as planned:
        results = [digest(at) for at in range(3)]
    return planned, [*results, digest(3)]


def find_planners() -> dict[tuple[str, str], Any]:
    """Return the planners that modules of tinygrad have, by module and name."""
    names = ("memory_plan_rewrite", "_internal_memory_planner")
    return {
        (module, name): vars(sys.modules[module])[name]
        for module in list(sys.modules)
        for name in names
        if module.startswith("tinygrad.") and name in vars(sys.modules[module])
    }


def run_and_keep_schedules() -> tuple[list[str], list[Any]]:
    """Return the hashes of a run without memplan, and what its planner was called with."""
    calls: list[Any] = []
    stock = find_planners()

    def keep(planner: FunctionType) -> Any:
        return lambda *args, **kwargs: (calls.append((args, kwargs)), planner(*args, **kwargs))[1]

    for (module, name), planner in stock.items():
        setattr(sys.modules[module], name, keep(planner))
    _, digests = run(nullcontext())
    for (module, name), planner in stock.items():
        setattr(sys.modules[module], name, planner)
    return digests, calls


def plan_in_threads(calls: list[Any]) -> tuple[Any, list[str]]:
    """Plan what was planned before, in two threads at once; return what they raise."""
    errors: list[str] = []

    def work() -> None:
        for args, kwargs in calls * 40:
            try:
                next(iter(find_planners().values()))(*args, **kwargs)
            except BaseException as error:
                errors.append(repr(error))

    sys.setswitchinterval(1e-5)
    with planning() as planned:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return planned, errors


before = find_planners()
expected, calls = run_and_keep_schedules()
planned, found = run(planning())
in_threads, errors = plan_in_threads(calls)
print(
    json.dumps(
        {
            "equal": found == expected,
            "restored": bool(before) and find_planners() == before,
            "in_threads": len(in_threads.calls),
            "errors": errors,
            "calls": [[(each.bytes, each.host_bytes) for each in call] for call in planned.calls],
            "blocks": sorted(
                {
                    int(unit)
                    for call in planned.calls
                    for each in call
                    for unit in each.problem.alignment
                }
            ),
            "notes": sorted({note.code for note in planned.notes + in_threads.notes}),
        }
    )
)

"""Steps in tinygrad with either planner, in a process of its own; prints what they did as JSON.

The environment chooses the device, and PYTHONPATH the release. The sizes are such that an allocator
that is asked in the order of time leaves holes that nothing fills.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import nullcontext
from typing import Any

from tinygrad import Tensor, TinyJit

from memplan.targets.tinygrad import planning

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


def functions() -> list[int]:
    """Return the planners that modules of tinygrad have."""
    names = ("memory_plan_rewrite", "_internal_memory_planner")
    modules = [each for name, each in sys.modules.items() if name.startswith("tinygrad.")]
    return [id(getattr(each, name)) for each in modules for name in names if hasattr(each, name)]


before = functions()
_, expected = run(nullcontext())
planned, found = run(planning())
print(
    json.dumps(
        {
            "equal": found == expected,
            "restored": bool(before) and functions() == before,
            "calls": [[(each.bytes, each.host_bytes) for each in call] for call in planned.calls],
            "blocks": sorted(
                {
                    int(unit)
                    for call in planned.calls
                    for each in call
                    for unit in each.problem.alignment
                }
            ),
            "notes": [note.code for note in planned.notes],
        }
    )
)

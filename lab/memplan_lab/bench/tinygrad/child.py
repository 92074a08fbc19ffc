"""One network in tinygrad, in a process of its own, whose environment chooses the device.

python -m memplan_lab.bench.tinygrad.child < request
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from importlib.metadata import version
from typing import Any

from memplan.extensions.tinygrad import Arena, Planned, place_by_host, planning
from memplan.referee import verify
from memplan.solvers import solve
from memplan_lab.bench.tinygrad.models import MODELS, Model
from memplan_lab.extras import require

__all__: list[str] = []


def measure(name: str) -> dict[str, object]:
    """Capture a step on a device that computes nothing; return bytes and CPU times of its plan."""
    library = require("tinygrad", extra="tinygrad")
    model = MODELS[name](False)
    for each in model.parameters:  # weights are not computed
        each.replace(library.Tensor.empty(*each.shape, dtype=each.dtype, device=each.device))
    given = model.input.realize()
    step = library.TinyJit(lambda x: model.step(x).realize())
    step(given)
    with planning() as planned:
        step(given)
    arenas = max(planned.calls, key=lambda call: sum(arena.host_bytes for arena in call))
    return {
        "version": version("tinygrad"),
        "buffers": sum(len(arena.problem) for arena in arenas),
        "host": sum(arena.host_bytes for arena in arenas),
        "bytes": sum(arena.bytes for arena in arenas),
        "bound": sum(arena.plan.lower_bound for arena in arenas),
        "host_ms": 1000 * sum(_time_host(arena) for arena in arenas),
        "ms": 1000 * sum(_time_ours(arena) for arena in arenas),
        "notes": [str(note) for note in planned.notes],
    }


def _time_host(arena: Arena) -> float:
    memory = require("tinygrad.schedule.memory", extra="tinygrad")
    best = float("inf")
    for _ in range(3):
        size = int(arena.problem.size.sum())
        host = memory.TLSFAllocator(2 * size, block_size=256, lv2_cnt=32)
        begun = time.process_time()
        place_by_host(arena.problem, host)
        best = min(best, time.process_time() - begun)
    return best


def _time_ours(arena: Arena) -> float:
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        plan = solve(arena.problem, nodes=2_000, threads=1)
        verify(arena.problem, plan)
        best = min(best, time.process_time() - begun)
    return best


def check(name: str) -> dict[str, object]:
    """Run a small network with either planner, from the same weights; return hashes of results."""
    library = require("tinygrad", extra="tinygrad")
    library.Tensor.manual_seed(0)
    model = MODELS[name](True)
    given = model.input.realize()
    kept = [each.realize().numpy() for each in model.parameters]
    hashes, bytes_of = [], 0
    for ours in (False, True):
        for each, value in zip(model.parameters, kept, strict=True):
            each.assign(library.Tensor(value, device=each.device)).realize()
        planned, digest = _run(library, model, given, ours)
        hashes.append(digest)
        bytes_of = sum(arena.bytes for call in planned.calls for arena in call)
    return {"equal": hashes[0] == hashes[1], "hash": hashes[1], "bytes": bytes_of}


def _run(library: Any, model: Model, given: Any, ours: bool) -> tuple[Planned, str]:
    """Return a hash of the outputs of four steps and of all weights after them."""
    step = library.TinyJit(lambda x: model.step(x).realize())
    digest = hashlib.sha256()

    def repeat() -> None:
        for _ in range(4):
            digest.update(step(given).numpy().tobytes())

    planned = Planned()
    if ours:
        with planning() as planned:
            repeat()
    else:
        repeat()
    for each in model.parameters:
        digest.update(each.numpy().tobytes())
    return planned, digest.hexdigest()[:12]


if __name__ == "__main__":
    request = json.load(sys.stdin)
    print(json.dumps((check if request["check"] else measure)(request["name"])))

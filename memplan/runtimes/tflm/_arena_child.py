"""Find the smallest arena in which TensorFlow Lite Micro prepares a model.

Run by `memplan.runtimes.tflm.arena` as a program. TFLM may crash where an arena is
slightly too small, so every trial is a process of its own: a fork of this one, which has TFLM
loaded.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, Final

_GRAIN: Final = 16  # TFLM aligns the head and the tail of its arena to it
_STEP: Final = 1 << 12
_SECONDS: Final = 20  # for one trial


def main() -> None:
    """Read from standard input: path, a size that is too small or just right, and a limit."""
    from tflite_micro import runtime

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    order = json.load(sys.stdin)
    data = Path(order["path"]).read_bytes()
    low, limit = order["low"] // _GRAIN * _GRAIN, order["limit"]
    step = _STEP
    while not _try_size(runtime, data, low + step):
        step *= 2
        if low + step > limit:
            return  # without an answer
    smallest = _bisect(runtime, data, low, low + step)
    print(json.dumps(smallest))


def _bisect(runtime: Any, data: bytes, low: int, high: int) -> int:
    """Return the smallest multiple of 16 in (low, high] that works; `high` must work."""
    while high - low > _GRAIN:
        middle = (low + high) // 2 // _GRAIN * _GRAIN
        if _try_size(runtime, data, middle):
            high = middle
        else:
            low = middle
    return high


def _try_size(runtime: Any, data: bytes, size: int) -> bool:
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            runtime.Interpreter.from_bytes(data, arena_size=size)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    main()

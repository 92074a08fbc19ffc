"""Run two models in TensorFlow Lite Micro on the same random inputs, and compare what they give.

Run by `memplan.runtimes.tflm.write.comparing` as a program: native code may crash, and then only
this process ends.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_RUNS = 3


def main() -> None:
    """Read from standard input: the paths, arena sizes, and numbers of inputs and outputs."""
    from tflite_micro import runtime

    order = json.load(sys.stdin)
    models = [
        runtime.Interpreter.from_bytes(Path(path).read_bytes(), arena_size=arena)
        for path, arena in zip(order["paths"], order["arenas"], strict=True)
    ]
    draw = np.random.default_rng(order["seed"])
    largest, seconds = 0.0, [0.0, 0.0]
    for _ in range(_RUNS):
        inputs = [_draw(draw, models[0].get_input_details(at)) for at in range(order["inputs"])]
        results = []
        for number, model in enumerate(models):
            for at, value in enumerate(inputs):
                model.set_input(value, at)
            begun = time.process_time()
            model.invoke()
            seconds[number] += time.process_time() - begun
            results.append([model.get_output(at).copy() for at in range(order["outputs"])])
        for one, other in zip(*results, strict=True):
            largest = max(largest, _find_difference(one, other))
    print(json.dumps({"difference": largest, "seconds": seconds}))


def _draw(draw: np.random.Generator, details: Any) -> Any:
    """Return random values for an input."""
    shape, dtype = tuple(details["shape"]), np.dtype(details["dtype"])
    if dtype.kind == "f":
        return draw.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return draw.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return draw.integers(max(limits.min, -(1 << 15)), min(limits.max, 1 << 15), shape).astype(dtype)


def _find_difference(one: Any, other: Any) -> float:
    """Return 0 if two results have the same bits, otherwise the largest difference of elements."""
    if one.tobytes() == other.tobytes():
        return 0.0
    if one.shape != other.shape:
        return float("inf")
    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    found = float(np.nanmax(apart, initial=0.0))
    return found or float("inf")  # NaN against a number, or zeros with other signs


if __name__ == "__main__":
    main()

"""Compares what two models compute in TensorFlow Lite Micro, and how long they take."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Final

from memplan.levers.pipeline import Comparison
from memplan.programs.sources.children import run_child
from memplan.runtimes.tflm.measure import LARGEST, SPARE, compute_head, find_version
from memplan.runtimes.tflm.read.model import parse

__all__ = ["compare_results"]

_CHILD: Final = Path(__file__).with_name("_compare_child.py")


def compare_results(one: bytes, other: bytes, *, timeout: float = 600.0) -> Comparison | None:
    """Run two models on the same random inputs, each in an arena that is large enough.

    They have the same inputs and outputs; the timeout is in seconds. `None` if tflite-micro is not
    installed, or does not run one of them.
    """
    if find_version() is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        paths, arenas = [], []
        for number, data in enumerate((one, other)):
            path = Path(folder) / f"{number}.tflite"
            path.write_bytes(data)
            paths.append(str(path))
            arenas.append(min(2 * compute_head(parse(data, str(path))) + SPARE, LARGEST))
        main = parse(one, paths[0]).subgraphs[0]
        order = {
            "paths": paths,
            "arenas": arenas,
            "inputs": len(main.inputs),
            "outputs": len(main.outputs),
            "seed": 0,
        }
        run = run_child(_CHILD, order, timeout)
    if run is None or run.returncode != 0 or not run.stdout:
        return None
    found = json.loads(run.stdout)
    first, second = found["seconds"]
    return Comparison(found["difference"], second / first if first else 1.0)

"""Models that TensorFlow Lite Micro runs, bit for bit; skipped where it is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tflite_models import Writer, chain, models

from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import Model, load

PACKED = [path for path in models() if any(find_folded(load(path)).values())]
RUN = """
import hashlib, json, resource, sys
import numpy as np
from tflite_micro import runtime

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
path, arena, inputs, outputs = json.load(sys.stdin)
interpreter = runtime.Interpreter.from_file(path, arena_size=arena)
rng, found = np.random.default_rng(11), []
for _ in range(3):
    for index in range(inputs):
        details = interpreter.get_input_details(index)
        value = np.asarray(rng.standard_normal(details["shape"]) * 50)
        interpreter.set_input(value.astype(np.dtype(details["dtype"])), index)
    interpreter.invoke()
    for index in range(outputs):
        value = np.array(interpreter.get_output(index))
        found.append([value.shape, value.dtype.str, hashlib.sha256(value.tobytes()).hexdigest()])
print(json.dumps(found))
"""


def require_tflm(path: Path | None) -> Path:
    """Return a model of the wheels, or skip the test where these or TFLM are missing."""
    pytest.importorskip("tflite_micro")
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    return path


def ran(path: Path, arena: int) -> list[object] | None:
    """Return what a file computes on three random inputs, bit for bit; `None` where it fails."""
    program = load(path).subgraphs[0]
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([str(path), arena, len(program.inputs), len(program.outputs)]).encode(),
        capture_output=True,
        check=False,
    )
    return list(json.loads(run.stdout)) if run.returncode == 0 else None


def tree(data: bytes) -> object:
    """Return all objects of a file."""
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated

    return schema_py_generated.ModelT.InitFromPackedBuf(data, 0)


def small(folder: Path, model: Model | None = None) -> Path:
    """Return a small model as a file."""
    path = folder / "model.tflite"
    path.write_bytes(Writer().write(model or chain("RELU", "TANH", "NEG")))
    return path

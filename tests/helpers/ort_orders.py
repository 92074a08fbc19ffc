"""Random ONNX models, and the order in which onnxruntime runs a model."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx_models import model, node, value


def two_branches() -> Any:
    """Return a model for which the order of the file and onnxruntime's are bad.

    In tensors of the size of the input, a branch of 8 leaves 1, and one of 4 leaves 2. One after
    the other they need 9, in onnxruntime's order 11; the file makes both wide tensors first: 13.
    """
    nodes = [
        node("Concat", " ".join("x" * 8), "a", axis=0),
        node("Concat", " ".join("x" * 4), "b", axis=0),
        node("Slice", "a zero one", "c"),
        node("Slice", "b zero two", "d"),
        node("Concat", "c d", "e", axis=0),
        node("Slice", "e zero last", "y"),
    ]
    weights = [
        onnx.numpy_helper.from_array(np.array([at]), name)
        for name, at in (("zero", 0), ("one", 256), ("two", 512), ("last", 1))
    ]
    return model(nodes, [value("x", [256, 64])], [value("y", [1, 64])], weights)


def random_model(draw: random.Random) -> Any:
    """Return a model of up to 24 operators, each with a name, on vectors of four numbers."""
    names = ["x"]
    nodes = []
    for at in range(draw.randrange(4, 25)):
        count = draw.choice([1, 1, 2, 2, 3])
        kind = "Concat" if count > 1 else draw.choice(["Exp", "Identity", "Neg"])
        read = " ".join(draw.choice(names[-8:]) for _ in range(count))
        made = f"t{at}"
        extra = {"axis": 0} if kind == "Concat" else {}
        nodes.append(node(kind, read, made, name=f"n{at}", **extra))
        names.append(made)
    read_names = {name for each in nodes for name in each.input}
    results = [name for name in names[1:] if name not in read_names or draw.random() < 0.1]
    return model(nodes, [value("x", [4])], [value(name, None) for name in results])


def run(path: Path, feeds: dict[str, Any], order: Any = None) -> tuple[list[str], list[Any]]:
    """Return the names of the operators that ran, in order, and the results."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.enable_profiling = True
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if order is not None:
        options.execution_order = order
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        results = session.run(None, feeds)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    ran = [one["name"] for one in events if one["name"].endswith("_kernel_time")]
    return [name.removesuffix("_kernel_time") for name in ran], results

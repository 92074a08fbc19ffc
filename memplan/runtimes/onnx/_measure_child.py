"""Let onnxruntime run a model twice, and say what its arena held (on standard output, as JSON).

Run by `memplan.runtimes.onnx.measure` as a program: native code may crash, and then
only this process ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(string)": np.object_,
}

# These are onnxruntime's names for its fusions. Without them it still folds constants, and removes
# operators that do nothing. It ignores names that a version lacks.
_FUSIONS = """
    CastElimination ClipQuantFusion CommonSubexpressionElimination ConcatSliceElimination
    ConstantSharing ConvAddFusion ConvBNFusion ConvMulFusion DivMulFusion DoubleQDQPairsRemover
    EnsureUniqueDQForNodeUnit FuseReluClip GemmActivationFusion GemmSumFusion GemmTransposeFusion
    LabelEncoderFusion MatMulAddFusion MatMulScaleFusion MatMul_BatchNormalization_Fusion
    NoopElimination NotWhereFusion Pad_Fusion PreShapeNodeElimination QDQPropagationTransformer
    ReluQuantFusion ReshapeFusion TransposeOptimizer
"""


def main() -> None:
    """Read from standard input: path, shapes, dimensions, what to optimize, order, reuse, folder.

    A session that optimizes all and reuses memory has default settings; with one thread, it does
    the same in each run.
    """
    import onnxruntime

    order = json.load(sys.stdin)
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_profiling = True
    options.profile_file_prefix = str(Path(order["folder"]) / "profile")
    # The arena must not hold weights, as a plan does not place them.
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    _count_exactly(onnxruntime, options)
    left_out: list[str] = []
    if order["optimizes"] == "nothing":
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    elif order["optimizes"] == "what does not fuse":
        for name, size in order["dims"].items():
            options.add_free_dimension_override_by_name(name, size)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        left_out = _FUSIONS.split()
    if order["in_file_order"]:
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    if not order["reuse"]:
        options.enable_mem_reuse = options.enable_mem_pattern = False
    session = onnxruntime.InferenceSession(
        order["path"], options, ["CPUExecutionProvider"], disabled_optimizers=left_out
    )
    try:
        _run_twice(session, order["shapes"], 0)
    except Exception:  # any native error: zero may be too small
        _run_twice(session, order["shapes"], 1)
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    ran = [event for event in events if "mem_in_use_peak" in event.get("args", {})]
    seen = [event["args"] | {"begun": event["ts"]} for event in ran]
    once = seen[: len(seen) // 2]
    found: dict[str, Any] = {"version": onnxruntime.__version__, "made": _list_made(once)}
    print(json.dumps(found | {"once": _find_peaks(once), "both": _find_peaks(seen)}))


def _count_exactly(runtime: Any, options: Any) -> None:
    """Let the arena count bytes as requested: it gives no piece of more than was asked for."""
    memory = runtime.OrtMemoryInfo(
        "Cpu", runtime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, runtime.OrtMemType.DEFAULT
    )
    exact = {"max_mem": 0, "arena_extend_strategy": 1, "initial_chunk_size_bytes": 256}
    arena = runtime.OrtArenaCfg({**exact, "max_dead_bytes_per_chunk": 1})
    runtime.create_and_register_allocator(memory, arena)
    options.add_session_config_entry("session.use_env_allocators", "1")


def _run_twice(session: Any, shapes: Mapping[str, Sequence[int]], value: int) -> None:
    """Run once so that the runtime records all sizes, and once with its plan for these sizes."""
    feeds = {}
    for one in session.get_inputs():
        shape = shapes[one.name]
        dtype = _TYPES.get(one.type) or np.dtype(one.type.removeprefix("tensor(").rstrip(")"))
        feeds[one.name] = np.full(shape, value, dtype)
    for _ in range(2):
        session.run(None, feeds)


def _list_made(seen: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Return by type of operator the bytes that each of them made in one run."""
    made: dict[str, list[int]] = {}
    for one in seen:
        made.setdefault(one["op_name"], []).append(int(one["output_size"]))
    return made


def _find_peaks(seen: list[dict[str, Any]]) -> tuple[int, int]:
    """Return the most bytes that were requested after an operator, and in use with scratch."""
    # Operators are listed as they end: those in a Scan before it, which holds its results then.
    first, last = min(seen, key=lambda one: int(one["begun"])), seen[-1]
    # The arena is not empty before the first operator: it holds weights in another layout.
    loaded = int(first["mem_bytes_in_use"]) - int(first["mem_in_use_delta"])
    initial = int(first["mem_bytes_requested_in_use"]) - int(first["mem_requested_in_use_delta"])
    in_use = max(int(one["mem_bytes_in_use"]) for one in seen)
    # The arena's own high-water mark also counts scratch that a kernel frees before it ends. If the
    # mark did not rise during the run, it is from loading the model.
    if int(last["mem_in_use_peak"]) > int(first["mem_in_use_peak"]):
        in_use = max(in_use, int(last["mem_in_use_peak"]))
    requested = max(int(one["mem_bytes_requested_in_use"]) for one in seen)
    return requested - initial, max(in_use - loaded, requested - initial)


if __name__ == "__main__":
    main()

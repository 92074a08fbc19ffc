"""Let TensorFlow Lite Micro plan a model, and say what its arena holds (on standard error).

Run by `memplan.runtimes.tflm.measure` as a program: native code may crash, and then
only this process ends. TFLM writes its reasons on standard error too; where it refuses the model,
the exit code is 3. The model is only run where a kernel is in doubt.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

_FLOAT32 = 0  # of the schema's TensorType
_REFUSED = 3


def main() -> None:
    """Read from standard input: path, arena in bytes, operators to fold, and whether to run it."""
    from tflite_micro import runtime

    order = json.load(sys.stdin)
    data = Path(order["path"]).read_bytes()
    if any(order["folded"]):
        data = _fold(data, order["folded"])
    try:
        interpreter = runtime.Interpreter.from_bytes(data, arena_size=order["arena"])
        interpreter.print_allocations()
        if order["run"]:  # some kernels look at types as they run
            interpreter.invoke()
    except (RuntimeError, ValueError):
        sys.exit(_REFUSED)


def _fold(data: bytes, folded: list[list[int]]) -> bytes:
    """Return the model without some operators; their outputs become constants of zeros.

    Zeros are enough, as the plan depends only on sizes and the model is not run.
    """
    import flatbuffers
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(data, 0)
    for subgraph, operators in zip(model.subgraphs, folded, strict=True):
        for index in operators:
            for output in subgraph.operators[index].outputs:
                tensor = subgraph.tensors[output]
                tensor.buffer = len(model.buffers)
                model.buffers.append(_make_zeros(schema, tensor))
        gone = set(operators)
        subgraph.operators = [o for i, o in enumerate(subgraph.operators) if i not in gone]
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _make_zeros(schema: Any, tensor: Any) -> Any:
    shape = [] if tensor.shape is None else [int(size) for size in tensor.shape]
    width = 4 if tensor.type == _FLOAT32 else 2
    buffer = schema.BufferT()
    buffer.data = np.zeros(int(np.prod(shape, dtype=np.int64)) * width, dtype=np.uint8)
    return buffer


if __name__ == "__main__":
    main()

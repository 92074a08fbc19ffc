"""Let onnxruntime fuse the operators of a model, and save what it would run (JSON in and out).

Run by `memplan.runtimes.onnx.read.fused` as a program: native code may crash, and then only this
process ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Read from standard input: the path of a model, and where to save what is run of it."""
    import onnxruntime

    order = json.load(sys.stdin)
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.optimized_model_filepath = order["out"]
    try:
        session = onnxruntime.InferenceSession(order["path"], options, ["CPUExecutionProvider"])
    except Exception as error:  # the runtime has classes of its own for each reason
        print(json.dumps({"error": str(error)}))
        return
    try:
        _complete(order["out"], order["path"], {one.name for one in session.get_inputs()})
    except Exception as error:  # as a file of weights that is gone, or more than 2 GiB of them
        print(json.dumps({"error": f"what it fuses cannot be one file: {error}"}))
        return
    print(json.dumps({"version": onnxruntime.__version__, "block": _find_block(onnxruntime)}))


def _complete(path: str, given: str, names: set[str]) -> None:
    """Put weights of other files into what was saved, and drop inputs that were weights.

    The runtime leaves weights in other files there, by names relative to the given model. Old files
    list weights as inputs, also those of which fusions left none.
    """
    import onnx
    from onnx.external_data_helper import load_external_data_for_model

    model = onnx.load(path, load_external_data=False)
    known = names | {one.name for one in model.graph.initializer}
    left = [one for one in model.graph.input if one.name in known]
    outside = any(one.data_location for one in model.graph.initializer)
    if outside:
        load_external_data_for_model(model, str(Path(given).parent))
    if len(left) < len(model.graph.input) or outside:
        del model.graph.input[:]
        model.graph.input.extend(left)
        onnx.save(model, path)


def _find_block(runtime: Any) -> int:
    """Return how many channels a block of the layout NCHWc has on this machine; 0 without it."""
    import numpy as np
    import onnx

    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")
    graph = helper.make_graph(
        [node],
        "block",
        [helper.make_tensor_value_info("x", kind, [1, 4, 1, 1])],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft.nchwc", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    try:
        session = runtime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        return int(session.run(None, {"x": np.zeros((1, 4, 1, 1), np.float32)})[0].shape[1])
    except Exception:  # the runtime has no kernels for blocks here
        return 0


if __name__ == "__main__":
    main()

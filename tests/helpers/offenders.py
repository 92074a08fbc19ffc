"""Files that once took memory or time without measure, or ended in a traceback; made, not kept.

Every maker returns the bytes of a file that is small compared with what it used to cost.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from typing import Any

__all__ = ["OFFENDERS", "archive", "called"]


def archive(text: bytes, times: int = 1) -> bytes:
    """Return a `.pt2` of one graph, `text` so many times, as compressed as zip files get."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        zipped.writestr("m/archive_format", "pt2")
        with zipped.open("m/models/model.json", "w") as graph:
            for _ in range(times):
                graph.write(text)
    return file.getvalue()


def _bomb() -> bytes:
    """Return 60 kB that unpack to 60 MB, of which JSON makes 20 million objects."""
    return archive(b"[" + b"{}," * 1_000_000, 20)


def _larger_bomb() -> bytes:
    """Return 1 MB that unpacks to 1 GB."""
    return archive(b" " * 1_000_000, 1000)


def _lying_archive() -> bytes:
    """Return an archive whose directory says that the graph has 100 bytes, and it has 300 MB."""
    data = bytearray(archive(b" " * 1_000_000, 300))
    for signature, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.rfind(signature)
        data[start + at : start + at + 4] = struct.pack("<I", 100)
    return bytes(data)


def _bzip() -> bytes:
    """Return an archive in a way that unpacks a thousandfold more than torch's."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as zipped:
        zipped.writestr("m/models/model.json", b" " * 100_000_000)
    return file.getvalue()


def _program(sizes: list[Any]) -> bytes:
    record = {
        "dtype": 7,
        "sizes": sizes,
        "strides": [{"as_int": 1} for _ in sizes],
        "storage_offset": {"as_int": 0},
        "requires_grad": False,
        "layout": 7,
    }
    graph = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {"x": record}}
    signature: dict[str, Any] = {"input_specs": [], "output_specs": []}
    module = {"graph": graph, "signature": signature, "module_call_graph": []}
    return archive(json.dumps({"graph_module": module, "range_constraints": {}}).encode())


def _long_expression() -> bytes:
    """Return a size that is a product of 60 000 fractions."""
    factors = ",".join(
        f"Rational(Integer({2**127 - i}),Integer({2**89 + i}))" for i in range(60_000)
    )
    return _program([{"as_expr": {"expr_str": f"Mul({factors})"}}])


def _many_axes() -> bytes:
    """Return a tensor of 30 000 axes of 4 000 digits each."""
    return _program([{"as_int": 10**4000}] * 30_000)


def _onnx(nodes: list[Any], functions: list[Any] = [], **more: Any) -> bytes:  # noqa: B006
    import onnx
    from onnx import helper

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        more.get("inputs") or [value("x", onnx.TensorProto.FLOAT, [4])],
        more.get("outputs") or [value("y", onnx.TensorProto.FLOAT, [4])],
        more.get("initializers") or [],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=8)
    data: bytes = model.SerializeToString()
    return data


def _function(name: str, calls: list[str], inputs: list[str]) -> Any:
    from onnx import helper

    names = ["x", *(f"t{i}" for i in range(len(calls) - 1)), "y"]
    nodes = [
        helper.make_node(call, [names[at]], [names[at + 1]], domain="" if call == "Relu" else "own")
        for at, call in enumerate(calls)
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, inputs, ["y"], nodes, opsets)


def _call(name: str, inputs: str = "x", outputs: str = "y") -> Any:
    from onnx import helper

    return helper.make_node(name, inputs.split(), outputs.split(), domain="own")


def _nested_functions() -> bytes:
    """Return 25 functions, of which each calls the one before it twice and more."""
    functions = [_function("f0", ["Relu"], ["x"])]
    functions += [_function(f"f{at}", [f"f{at - 1}"] * 3, ["x"]) for at in range(1, 25)]
    return _onnx([_call("f24")], functions)


def _deep_functions() -> bytes:
    """Return 30 000 functions, of which each calls the one before it."""
    functions = [_function("f0", ["Relu"], ["x"])]
    functions += [_function(f"f{at}", [f"f{at - 1}"], ["x"]) for at in range(1, 30_000)]
    return _onnx([_call("f29999")], functions)


def _twin_functions() -> bytes:
    """Return two functions of one name."""
    return _onnx([_call("f")], [_function("f", ["Relu"], ["x"])] * 2)


def _too_many_arguments() -> bytes:
    """Return a call with two arguments of a function that takes one."""
    return _onnx([_call("f", "x x")], [_function("f", ["Relu"], ["x"])])


def _too_many_results() -> bytes:
    """Return a call with two results of a function that has one."""
    return _onnx([_call("f", "x", "y z")], [_function("f", ["Relu"], ["x"])])


def _circle() -> bytes:
    """Return two functions that call each other."""
    return _onnx([_call("f")], [_function("f", ["g"], ["x"]), _function("g", ["f"], ["x"])])


def _branches() -> bytes:
    """Return 500 Ifs, of which each has one branch that cannot run."""
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info

    def branch(name: str, node: Any) -> Any:
        return helper.make_graph([node], name, [], [value("a", TensorProto.FLOAT, None)])

    nodes = [
        helper.make_node(
            "If",
            ["c"],
            [f"y{at}"],
            then_branch=branch("t", helper.make_node("Relu", ["x"], ["a"])),
            else_branch=branch("e", helper.make_node("MatMul", ["x", "z"], ["a"])),
        )
        for at in range(500)
    ]
    inputs = [
        value("x", TensorProto.FLOAT, [4]),
        value("z", TensorProto.FLOAT, [4, 3, 2]),
        value("c", TensorProto.BOOL, []),
    ]
    return _onnx(nodes, inputs=inputs, outputs=[value("y0", TensorProto.FLOAT, None)])


def _too_few_outputs() -> bytes:
    """Return an If of which the branch that is always taken returns nothing."""
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    then = helper.make_graph([helper.make_node("Neg", ["x"], ["r"])], "then", [], [])
    result = value("r", TensorProto.FLOAT, None)
    other = helper.make_graph([helper.make_node("Abs", [""], ["r"])], "else", [], [result])
    nodes = [
        helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=other),
        helper.make_node("Neg", ["z"], ["y"]),
    ]
    always = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    outputs = [value("y", TensorProto.FLOAT, None)]
    return _onnx(nodes, initializers=[always], outputs=outputs)


def _doubled_shape() -> bytes:
    """Return a shape that is put behind itself 40 times."""
    from onnx import helper

    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [
        helper.make_node("Concat", [f"s{at}"] * 2, [f"s{at + 1}"], axis=0) for at in range(40)
    ]
    nodes += [helper.make_node("Reshape", ["x", "s40"], ["y"])]
    return _onnx(nodes)


def _long_vector() -> bytes:
    """Return a sum of vectors of 10^9 numbers, which are taken for shapes of as many axes."""
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    return _onnx(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        inputs=[value("x", TensorProto.FLOAT, [10**9])],
        outputs=[value("y", TensorProto.FLOAT, None)],
    )


def _ranks() -> bytes:
    """Return 20 000 operators on a tensor of 4 000 axes."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    shape = numpy_helper.from_array(np.ones(500, np.int64), "shape")
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["t0"])]
    nodes += [helper.make_node("Relu", [f"t{at}"], [f"t{at + 1}"]) for at in range(50_000)]
    value = helper.make_tensor_value_info
    return _onnx(
        nodes,
        initializers=[shape],
        inputs=[value("x", TensorProto.FLOAT, [1])],
        outputs=[value("t50000", TensorProto.FLOAT, None)],
    )


def _frames(allocations: int, frames: int) -> bytes:
    """Return a snapshot in which all allocations share one long list of frames."""
    frame = {"filename": "/" + "x" * 20, "line": 1, "name": "f"}
    shared = [dict(frame) for _ in range(frames)]
    events = [
        {"action": "alloc", "addr": 512 * at, "size": 512, "stream": 0, "frames": shared}
        for at in range(allocations)
    ]
    return pickle.dumps({"segments": [], "device_traces": [events]}, 4)


def _shared_names() -> bytes:
    """Return a snapshot whose frames share one name of 100 000 letters."""
    name = "n" * 100_000
    events = [
        {
            "action": "alloc",
            "addr": 512 * at,
            "size": 512,
            "frames": [{"filename": "/a.py", "line": at, "name": name}],
        }
        for at in range(20_000)
    ]
    return pickle.dumps({"segments": [], "device_traces": [events]}, 4)


def _colliding_keys() -> bytes:
    """Return a dictionary of numbers that all have one hash."""
    return pickle.dumps({"segments": [], "more": {k * (2**61 - 1): 0 for k in range(1, 2**15)}}, 4)


def _xla_report() -> bytes:
    """Return a report of XLA with many values, each behind the other."""
    lines = ["BufferAssignment:", f"allocation 1: size {1 << 40}, preallocated-temp:"]
    lines += [f" value: <{at} v{at} @0> (size=8,offset={8 * at}): f32[2]" for at in range(12_000)]
    return "\n".join([*lines, ""]).encode()


def _xla(values: int, users: int, step: int) -> bytes:
    """Return a dump of values that one instruction makes and many read."""
    from memplan.extensions.xla.schema import hlo_proto

    hlo = hlo_proto()()
    hlo.hlo_module.name = "module"
    computation = hlo.hlo_module.computations.add(name="c")
    computation.instructions.add(id=1, name="made", opcode="add")
    for at in range(users):
        user = computation.instructions.add(id=2 + at, name=f"user{at}", opcode="add")
        user.operand_ids.append(1)
    assignment = hlo.buffer_assignment
    allocation = assignment.buffer_allocations.add(index=0, size=1 << 30)
    trace = assignment.heap_simulator_traces.add()
    for at in range(1, values + 1):
        assignment.logical_buffers.add(id=at, size=8, defined_at={"instruction_id": 1})
        allocation.assigned.add(logical_buffer_id=at, offset=step * at, size=8)
        if step or at % 2:
            trace.events.add(kind=0, buffer_id=at)
    data: bytes = hlo.SerializeToString()
    return data


def _views() -> bytes:
    """Return a graph in which every tensor is a view of the one before it."""
    count = 20_000
    tensors = [{"name": f"t{at}", "bytes": 8} for at in range(count)]
    views = [{"tensor": f"t{at + 1}", "of": f"t{at}"} for at in range(count - 1)]
    operators = [{"inputs": [f"t{at}"], "outputs": [f"t{at + 1}"]} for at in range(count - 1)]
    return json.dumps(
        {
            "memplan_graph": 1,
            "tensors": tensors,
            "views": views,
            "operators": operators,
            "inputs": ["t0"],
            "outputs": [f"t{count - 1}"],
        }
    ).encode()


OFFENDERS: dict[str, Callable[[], bytes]] = {
    "bomb.pt2": _bomb,
    "larger_bomb.pt2": _larger_bomb,
    "lying.pt2": _lying_archive,
    "bzip.pt2": _bzip,
    "long_expression.pt2": _long_expression,
    "many_axes.pt2": _many_axes,
    "nested.onnx": _nested_functions,
    "deep.onnx": _deep_functions,
    "twins.onnx": _twin_functions,
    "arguments.onnx": _too_many_arguments,
    "results.onnx": _too_many_results,
    "circle.onnx": _circle,
    "doubled.onnx": _doubled_shape,
    "ranks.onnx": _ranks,
    "vector.onnx": _long_vector,
    "outputs.onnx": _too_few_outputs,
    "branches.onnx": _branches,
    "frames.pickle": lambda: _frames(11_000, 11_000),
    "names.pickle": _shared_names,
    "keys.pickle": _colliding_keys,
    "views.json": _views,
    "m.buffer-assignment.txt": _xla_report,
    "users.hlo.pb": lambda: _xla(8000, 8000, 8),
    "same.hlo.pb": lambda: _xla(60_000, 1, 0),
}


def called() -> bytes:
    """Return a small model with functions, which is read."""
    functions = [_function("f0", ["Relu"], ["x"]), _function("f1", ["f0", "f0"], ["x"])]
    return _onnx([_call("f1")], functions)

"""Exported PyTorch programs as torch writes them: records in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOAT = 7
S = "Symbol('s77', positive=True, integer=True)"
Json = dict[str, Any]


def size(value: int | str) -> Json:
    """Return a size as torch writes it: a number, or an expression."""
    return {"as_int": value} if isinstance(value, int) else {"as_expr": {"expr_str": value}}


def tensor(*sizes: int | str, strides: tuple[int | str, ...] = (), offset: int = 0) -> Json:
    """Return a tensor's record; the strides are those of a dense tensor of numbers."""
    if not strides:
        numbers = [1 if isinstance(one, str) else one for one in sizes]
        strides = tuple(int(np.prod(numbers[axis + 1 :])) for axis in range(len(sizes)))
    return {
        "dtype": FLOAT,
        "sizes": [size(one) for one in sizes],
        "strides": [size(one) for one in strides],
        "storage_offset": size(offset),
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "layout": 7,
    }


def named(*names: str) -> list[Json]:
    """Return tensors as arguments."""
    return [{"as_tensor": {"name": name}} for name in names]


def node(target: str, inputs: list[str], outputs: list[str], **more: Json) -> Json:
    """Return an operator whose tensor arguments are called `t0`, `t1`, ..."""
    arguments = [{"name": f"t{i}", "arg": arg} for i, arg in enumerate(named(*inputs))]
    arguments += [{"name": name, "arg": arg} for name, arg in more.items()]
    return {
        "target": f"torch.ops.{target}",
        "name": outputs[0] if outputs else "nothing",
        "inputs": arguments,
        "outputs": named(*outputs),
        "metadata": {"nn_module_stack": "L__self__,,__main__.Net;L__self___fc,fc,torch.nn.Linear"},
    }


def model(batch: int | str = 4) -> Json:
    """Return x @ weight, its transpose, and a copy of it; a counter is advanced beside it."""
    values = {
        "p_w": tensor(8, 16),
        "b_n": tensor(1),
        "x": tensor(batch, 8),
        "mm": tensor(batch, 16),
        "t": tensor(16, batch, strides=(1, 16)),
        "relu": tensor(16, batch, strides=(1, 16)),
        "add_": tensor(1),
    }
    nodes = [
        node("aten.add_.Tensor", ["b_n"], ["add_"]),
        node("aten.mm.default", ["x", "p_w"], ["mm"]),
        node("aten.t.default", ["mm"], ["t"]),
        node("aten.relu.default", ["t"], ["relu"]),
    ]
    inputs = [
        {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "fc.weight"}},
        {"buffer": {"arg": {"name": "b_n"}, "buffer_name": "count", "persistent": True}},
        {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
    ]
    return {
        "graph_module": {
            "graph": {
                "inputs": named("p_w", "b_n", "x"),
                "outputs": named("relu"),
                "nodes": nodes,
                "tensor_values": values,
                "sym_int_values": {},
            },
            "signature": {
                "input_specs": inputs,
                "output_specs": [
                    {"buffer_mutation": {"arg": {"name": "add_"}, "buffer_name": "count"}},
                    {"user_output": {"arg": named("relu")[0]}},
                ],
            },
        },
        "range_constraints": {"s77": {"min_val": 2, "max_val": 64}},
        "schema_version": {"major": 8, "minor": 20},
    }

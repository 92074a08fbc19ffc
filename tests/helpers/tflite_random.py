"""Random TFLite programs that TensorFlow Lite Micro prepares, with every odd kind of tensor."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence

from tflite_models import constant, floats

from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo


def random_program(rng: random.Random) -> Model:
    """Return a program of a few operators.

    Inputs may be read by nothing or be outputs, results may be read by nothing, tensors may be used
    by nothing or outlive a run, outputs may be constants, and an operator may use one tensor twice.
    """
    shape = (rng.randint(1, 9), 4)
    tensors: list[TensorInfo] = []

    def add(**more: bool) -> int:
        tensors.append(floats(f"t{len(tensors)}", *shape, **more))
        return len(tensors) - 1

    inputs = [add() for _ in range(rng.randint(1, 4))]
    read = rng.sample(inputs, rng.randint(1, len(inputs)))
    known = list(read)
    if rng.random() < 0.3:
        known.append(add(variable=True))
    if rng.random() < 0.3:
        tensors.append(constant("weights", "float32", *shape))
        known.append(len(tensors) - 1)
    operators = []
    for _ in range(rng.randint(1, 7)):
        if rng.random() < 0.3:
            tensors.append(floats(f"unused {len(tensors)}", rng.randint(1, 40), 4))
        operand = tuple(rng.choice(known) for _ in range(rng.randint(1, 3)))
        type_ = "ADD_N" if len(operand) > 1 else rng.choice(("RELU", "TANH", "ABS"))
        made = add()
        operators.append(OperatorInfo(type_, operand, (made,)))
        if rng.random() < 0.8:
            known.append(made)
    outputs = rng.sample(range(len(tensors)), rng.randint(1, 2))
    possible = {*inputs, *known, *(i for each in operators for i in each.outputs)}
    outputs = [i for i in outputs if i in possible] or [operators[-1].outputs[0]]
    wide = [i for i in inputs if i not in read and i not in outputs]
    for index in wide:  # what nothing reads may be of any size
        tensors[index] = floats(f"t{index}", rng.randint(1, 200), 4)
    graph = SubGraph("main", tuple(tensors), tuple(operators), tuple(inputs), tuple(outputs))
    return Model("random", (graph,))


_HEADS = """
import json, os, re, sys
from tflite_micro import runtime

found = []
for data in map(bytes.fromhex, json.load(sys.stdin)):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 2)
        try:
            runtime.Interpreter.from_bytes(data, arena_size=1 << 20).print_allocations()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        head = re.search(r"head (\\d+) bytes", pipe.read())
    os.waitpid(child, 0)
    found.append(int(head[1]) if head else None)
print(json.dumps(found))
"""


def measure_heads(files: Sequence[bytes]) -> list[int | None]:
    """Return the head of TFLM's arena for each of many files; `None` where TFLM refuses one."""
    run = subprocess.run(
        [sys.executable, "-c", _HEADS],
        input=json.dumps([data.hex() for data in files]).encode(),
        capture_output=True,
        check=True,
    )
    return list(json.loads(run.stdout))

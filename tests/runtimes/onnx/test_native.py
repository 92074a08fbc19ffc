"""Tests of the library's compiled code in a process of its own: no file ends this one."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import ints, loaded, model, node, on_disk, simple, value

import memplan as mp
from memplan.base.errors import FormatError
from memplan.runtimes.onnx.read import library as native


def large_kernel(*, inner: bool = False) -> Any:
    """Return a model of a window that is larger than its input, before an operator that asserts."""
    cut = [ints("a", [0]), ints("b", [3]), ints("d", [3])]
    nodes = [node("MaxPool", "x", "t", kernel_shape=[2, 100]), node("Slice", "t a b d", "y")]
    if inner:
        nodes[1] = node("If", "c", "y", then_branch=_branch("a"), else_branch=_branch("b"))
    inputs = [value("x", [1, 2, 16, 8]), value("c", [], onnx.TensorProto.BOOL)]
    return model(nodes, inputs, [value("y", None)], cut, opset=14)


def _branch(name: str) -> Any:
    made = onnx.helper.make_node("Slice", ["t", "a", "b", "d"], [name + "r"])
    return onnx.helper.make_graph([made], name, [], [value(name + "r", None)])


@pytest.mark.parametrize("inner", [False, True])
def test_a_kernel_that_is_larger_than_its_input(inner: bool, tmp_path: Path) -> None:
    """Tests that the operator is named whose sizes the library asserts to be positive."""
    sentence = r'"MaxPool" \(MaxPool\) cannot run .* reads \[1, 2, 16, 8\] and makes .*, -91\]'
    for _ in range(2):
        with pytest.raises(FormatError, match=sentence):
            loaded(tmp_path, large_kernel(inner=inner))
    assert loaded(tmp_path, simple(node("Exp", "x", "y"))).problem.max_load > 0


def test_the_process_does_not_outlive_a_fork() -> None:
    """Tests that a forked process asks a process of its own, while the first one goes on."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    made = simple(node("Exp", "x", "y"))
    assert native.infer_shapes(made, strict=True, follow_data=True).graph.value_info is not None
    before = native._state.worker
    program = f"""
import os, onnx
from memplan.runtimes.onnx.read import library as native
made = onnx.ModelProto.FromString({made.SerializeToString()!r})
def ask():
    found = native.infer_shapes(made, strict=True, follow_data=True)
    assert [d.dim_value for d in found.graph.output[0].type.tensor_type.shape.dim] == [2]
ask()
first = native._state.worker
child = os.fork()
ask()
assert (native._state.worker is first) == (child != 0)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert native._state.worker is before


@pytest.mark.parametrize("how", ["sys.frozen = True", "sys.executable = '/bin/blender'"])
def test_an_embedded_interpreter_has_no_other_process(how: str, tmp_path: Path) -> None:
    """Tests that shapes are inferred in this process where `sys.executable` is no interpreter."""
    path = on_disk(tmp_path, simple(node("Exp", "x", "y")))
    program = f"""
import sys
{how}
import memplan as mp
from memplan.runtimes.onnx.read import library as native
assert mp.load({str(path)!r}).problem.max_load > 0
assert native._state.worker._process is None
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_process_is_left(tmp_path: Path) -> None:
    """Tests that the process ends with the one that started it."""
    path = on_disk(tmp_path, simple(node("Exp", "x", "y")))
    program = f"""
import memplan as mp
from memplan.runtimes.onnx.read import library as native
mp.load({str(path)!r})
print(native._state.worker._process.pid)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(run.stdout), 0)


USUAL = (1, 2, 3, 1, 2, 100)
HOSTILE = (0, 1, -1, 2, 3, 7, 100, -(2**31), 2**31, 2**62, -(2**63), 2**63 - 1)


def hostile_model(draw: random.Random) -> Any:
    """Return a model of two operators of the library, with attributes and sizes of any kind."""
    nodes, names = [], ["x", "z"]
    for at in range(2):
        schema = draw.choice(_SCHEMAS)
        least = schema.min_input
        most = max(least, min(schema.max_input, 6))
        read = [draw.choice([*names, "i", "f", "e"]) for _ in range(draw.randint(least, most))]
        made = [f"r{at}{number}" for number in range(max(1, schema.min_output))]
        one = onnx.helper.make_node(schema.name, read, made, domain=schema.domain)
        for name, asked in schema.attributes.items():
            if asked.required or draw.random() < 0.5:
                one.attribute.append(_attribute(draw, name, int(asked.type.value)))
        nodes.append(one)
        names = [*made[:1], *names]
    ranks = (draw.choice((0, 1, 2, 3, 4, 4, 4, 5)) for _ in "xz")
    sizes = [[draw.choice((1, 2, 3, 8, 0)) for _ in range(rank)] for rank in ranks]
    inputs = [value(name, shape) for name, shape in zip("xz", sizes, strict=True)]
    held = _numbers(draw)
    weights = [ints("i", held), onnx.helper.make_tensor("f", 1, [2], [-1.0, 1e30])]
    weights.append(onnx.TensorProto(name="e", data_type=draw.randint(0, 23), dims=held[:2]))
    opset = draw.choice((6, 9, 11, 13, 17, 20, 22, onnx.defs.onnx_opset_version()))
    return model(nodes, inputs, [value(names[0], None)], weights, opset=opset)


def _numbers(draw: random.Random) -> list[int]:
    kind = _kind(draw)
    return [draw.choice(kind) for _ in range(draw.choice((0, 1, 2, 2, 2, 3, 4, 4)))]


def _kind(draw: random.Random) -> tuple[int, ...]:
    return HOSTILE if draw.random() < 0.3 else USUAL


def _attribute(draw: random.Random, name: str, kind: int) -> Any:
    one = onnx.AttributeProto(name=name, type=kind)
    if draw.random() < 0.05:
        one.type = draw.randint(1, 14)
    one.i = draw.choice(_kind(draw))
    one.f = draw.choice((0.0, -1.0, 1e30, float("nan")))
    one.s = draw.choice((b"", b"SAME_UPPER", b"VALID", b"linear", b"\xff", b"ij,jk->ik"))
    one.ints.extend(_numbers(draw))
    one.floats.extend(draw.choice((0.0, -1.0, 1e30)) for _ in range(draw.randint(0, 4)))
    one.t.CopyFrom(onnx.TensorProto(data_type=draw.randint(0, 12), dims=_numbers(draw)[:2]))
    one.g.CopyFrom(onnx.helper.make_graph([], "g", [value("gi", None)], [value("x", None)]))
    return one


_SCHEMAS = sorted(onnx.defs.get_all_schemas(), key=lambda each: (each.domain, each.name))


def test_hostile_operators_do_not_end_this_process(tmp_path: Path) -> None:
    """Tests random operators of the library: each is planned, or refused in one line."""
    path, refused = tmp_path / "model.onnx", 0
    for seed in range(150):
        path.write_bytes(hostile_model(random.Random(seed)).SerializeToString())
        try:
            mp.load(path)
        except mp.MemplanError as error:
            refused += "\n" not in str(error)
    assert refused > 100

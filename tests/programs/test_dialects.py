"""Tests of what is known of the operators of each format."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources.dialects import Shared, find_dialect, find_state
from memplan.programs.sources.registry import list_sources


def test_each_format_with_operators_has_a_dialect() -> None:
    """Tests that a new reader of models says what its operators do."""
    with_dialect = {name for name, source in list_sources().items() if source.dialect}
    assert with_dialect == {"tflite", "onnx", "torch", "openvino"}
    assert len({id(find_dialect(name)) for name in with_dialect}) == 4
    assert find_dialect("csv") is find_dialect("") is find_dialect("a compiler")


@pytest.mark.parametrize(
    ("source", "type_", "shared", "known"),
    [
        ("tflite", "RANDOM_UNIFORM", Shared.GENERATOR, True),
        ("tflite", "ASSIGN_VARIABLE", Shared.WORLD, True),
        ("tflite", "SignalRfft", None, True),
        ("tflite", "MyKernel", None, False),
        ("onnx", "RandomNormal", Shared.GENERATOR, True),
        ("onnx", "my.domain.Op", None, False),
        ("torch", "aten.dropout_", Shared.GENERATOR, True),
        ("torch", "c10d.allreduce_", Shared.WORLD, True),
        ("torch", "mylib.op", None, False),
        ("openvino", "ReadValue", Shared.WORLD, True),
        ("openvino", "extension.Op", None, False),
        ("", "RANDOM_UNIFORM", None, True),
    ],
)
def test_types(source: str, type_: str, shared: Shared | None, known: bool) -> None:
    """Tests a type of each kind, by the dialect of its format alone."""
    dialect = find_dialect(source)
    assert (dialect.shared_by(type_), dialect.is_known(type_)) == (shared, known)


def test_only_kernels_of_tflite_replace_their_state() -> None:
    """Tests a variable among the inputs of an operator."""
    tensors = (Tensor("x", 4, Kind.INPUT), Tensor("v", 4, Kind.VARIABLE), Tensor("y", 4))
    operator = Operator("f", "SVDF", (0, 1), (2,))
    for source in ("tflite", "onnx", ""):
        graph = Graph("g", tensors, (operator,), (0,), (2,), source=source)
        assert find_state(graph, operator) == ({1} if source == "tflite" else set())


def test_a_dialect_loads_no_reader() -> None:
    """Tests that a graph that a user made does not wait for a reader of files."""
    program = """
import sys
from memplan.programs.sources.dialects import find_dialect

for source in ("", "tflite", "onnx", "torch", "openvino"):
    find_dialect(source)
print([name for name in sys.modules if name.endswith((".read", "extensions.xla", "flatbuffer"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr

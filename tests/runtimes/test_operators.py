"""Tests that a row of a table of operators is all that a reader needs to know of an operator."""

from __future__ import annotations

import inspect
from dataclasses import fields
from types import ModuleType
from typing import Any

import pytest

from memplan.runtimes.onnx import operators as onnx_operators
from memplan.runtimes.onnx.read import (
    faults_rules,
    graph_pictures,
    shapes_arithmetic,
    shapes_growth,
    shapes_runtime,
    shapes_windows,
    sizes_data,
    sizes_formulas,
)
from memplan.runtimes.tflm import operators as tflm_operators
from memplan.runtimes.tflm.names import OPERATORS
from memplan.runtimes.tflm.read import kernels, pictures, shapes
from memplan.runtimes.torch import operators as torch_operators
from memplan.runtimes.torch.read import aten, autocast
from memplan.runtimes.torch.read import pictures as torch_pictures

# By table and column that names rules: the module that has them.
COLUMNS: dict[tuple[str, str], ModuleType] = {
    ("onnx", "rows"): graph_pictures,
    ("onnx", "work"): graph_pictures,
    ("onnx", "value"): shapes_arithmetic,
    ("onnx", "grows"): shapes_growth,
    ("onnx", "amends"): shapes_windows,
    ("onnx", "formula"): sizes_formulas,
    ("onnx", "sizes"): sizes_data,
    ("onnx", "shape"): shapes_runtime,
    ("onnx", "fits"): faults_rules,
    ("tflm", "shape"): shapes,
    ("tflm", "rows"): pictures,
    ("tflm", "scratch"): kernels,
    ("tflm", "parts"): kernels,
    ("torch", "shares"): aten,
    ("torch", "rows"): torch_pictures,
    ("torch", "in_place"): aten,
    ("torch", "work"): torch_pictures,
    ("torch", "autocast"): autocast,
}
TABLES: dict[str, Any] = {"onnx": onnx_operators, "tflm": tflm_operators, "torch": torch_operators}


def list_named(table: str, *columns: str) -> set[str]:
    """Return the rules that rows name in some columns."""
    rows = TABLES[table].TABLE.values()
    return {getattr(row, column) for row in rows for column in columns} - {""}


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=lambda word: word)
def test_names_of_rules_are_those_of_the_rules(table: str, column: str) -> None:
    """Tests that no row names what is not there, and that no rule is without a row."""
    module = COLUMNS[table, column]
    rules, text = {*getattr(module, "_RULES", {})}, inspect.getsource(module)
    assert not {name for name in list_named(table, column) - rules if f'"{name}"' not in text}
    beside = [each for (name, each), held in COLUMNS.items() if (name, held) == (table, module)]
    assert rules <= list_named(table, *beside)


@pytest.mark.parametrize("table", TABLES)
def test_a_rule_is_a_cell(table: str) -> None:
    """Tests that every column of names is in the list above."""
    words = {each.name for each in fields(TABLES[table].Row) if each.default == ""}
    keeps = {"keeps_of_int8"}  # letters of a struct
    assert words - keeps == {column for name, column in COLUMNS if name == table}


def test_rows_of_onnx_contradict_nothing() -> None:
    """Tests cells that only make sense together, and types against the library's."""
    onnx = pytest.importorskip("onnx")
    table = onnx_operators.TABLE
    for name, row in table.items():
        assert (row.work == "filter") == bool(row.filter), name
        assert not row.in_runtime or row.in_place, name
        assert not row.is_view or row.fits == "same_count", name
        assert not (row.is_view and row.in_place), name
        assert not (row.shape and row.like), name
        assert row != onnx_operators.Row(), name
        kind = name if "." not in name else row.like.kind if row.like else None
        assert kind is None or onnx.defs.has(kind) or name in ("SimplifiedLayerNormalization",)
    windows = {name for name, row in table.items() if row.is_windowed}
    attributes = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if schema.domain == "" and {"kernel_shape", "strides"} <= {*schema.attributes}
    }
    assert windows == attributes


def test_rows_of_tflm_contradict_nothing() -> None:
    """Tests that cells that only make sense with others have these, and types are the schema's."""
    table = tflm_operators.TABLE
    assert table.keys() - {"ethos-u"} <= {*OPERATORS}  # what Vela makes is a custom operator
    for name, row in table.items():
        assert row.options or row.rows not in pictures._WITH_OPTIONS, name
        assert row.types is not None or not (row.typed or row.parameters), name
        assert not (row.in_place and row.in_place.moves) or row.rows in ("", "mixes"), name
        assert row.rows != "each" or row.shape or not row.in_place or name == "ADD_N", name
        assert row.keeps is not None or not row.keeps_of_int8, name


def test_rows_of_torch_contradict_nothing() -> None:
    """Tests that cells that only make sense with others have these, and names are ATen's."""
    torch = pytest.importorskip("torch")
    names = {schema.name.removeprefix("aten::") for schema in torch._C._jit_get_all_schemas()}
    ours, newer = {"read_generator", "write_generator"}, {"linalg_matrix_sqrth"}
    assert {name.partition(".")[0] for name in torch_operators.TABLE} - ours - newer <= names
    for name, row in torch_operators.TABLE.items():
        assert row.in_place != "any" or row.rows == "each", name
        assert not (row.shares and (row.in_place or row.rows or row.is_metadata)), name
        assert not row.long or row.work == "product", name
        assert row.autocast == "reduced" or not row.work, name
        assert row != torch_operators.Row(), name


def test_a_new_operator_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that shape, memory and rows of an operator of onnxruntime follow from its row."""
    onnx = pytest.importorskip("onnx")
    from memplan.base.errors import GraphError
    from memplan.runtimes.onnx.read import graph_of

    make, floats = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        make.make_node("Relu", ["x"], ["a"]),
        make.make_node("Novel", ["a"], ["b"], domain="com.microsoft"),
        make.make_node("Relu", ["b"], ["y"]),
    ]
    x = make.make_tensor_value_info("x", floats, [1, 2, 8, 4])
    y = make.make_tensor_value_info("y", floats, None)
    opsets = [make.make_opsetid("", 17), make.make_opsetid("com.microsoft", 1)]
    model = make.make_model(make.make_graph(nodes, "g", [x], [y]), opset_imports=opsets)
    with pytest.raises(GraphError, match="has no known shape"):
        graph_of(model)
    like = onnx_operators.Like("Relu", (0,))
    row = onnx_operators.Row(rows="first", in_place=(0,), like=like)
    monkeypatch.setitem(onnx_operators.TABLE, "com.microsoft.Novel", row)
    graph = graph_of(model)
    novel = graph.operators[1]
    assert [graph.tensors[at].shape for at in novel.outputs] == [(1, 2, 8, 4)]
    assert len(novel.in_place) == len(novel.reads) == 1


def test_an_operator_of_torch_is_known_by_its_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that rows and in-place writes of an operator of PyTorch are gone with its row."""
    torch = pytest.importorskip("torch")
    from memplan.runtimes.torch.read import graph_of

    class Net(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.relu(torch.cat([x, x * 2.0], 1)) + 1.0

    program = torch.export.export(Net(), (torch.ones(1, 2, 8, 4),))

    def describe() -> dict[str, tuple[bool, int]]:
        graph = graph_of(program)
        return {each.type: (bool(each.reads), len(each.in_place)) for each in graph.operators}

    before = describe()
    assert (before["aten.cat"], before["aten.relu"]) == ((True, 0), (True, 1))
    for name in ("cat", "relu"):
        monkeypatch.delitem(torch_operators.TABLE, name)
    after = describe()
    assert (after["aten.cat"], after["aten.relu"]) == ((False, 0), (False, 0))

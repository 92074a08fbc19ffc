"""Tests of which rows operators of PyTorch need: a program and its file give one answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from fx_operators import DRAWS, export  # noqa: E402
from slab_models import Calls  # noqa: E402

from memplan.programs.graph import Graph, Operator  # noqa: E402
from memplan.programs.graph.pictures import Each, Even, Joined, Once, Read  # noqa: E402
from memplan.programs.sources.options import Options  # noqa: E402
from memplan.runtimes.torch.operators import TABLE, find_row  # noqa: E402
from memplan.runtimes.torch.read import (  # noqa: E402
    graph_of,
    pictures,
    read,
)

nn = torch.nn
functional = nn.functional

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CHECKED: list[Callable[[Any], Any]] = [
    lambda x: functional.max_pool2d(x, 2, return_indices=True),
    lambda x: functional.max_pool2d(x, 2, return_indices=True)[0],
    lambda x: torch.cat([x, x + 1, x], 2),
    lambda x: torch.ops.aten.max_pool2d(x, [2, 3], [], [1, 1]),
    lambda x: torch.cat([x.reshape(1, 4, 12, 16), x.transpose(2, 3)], 1),
    lambda x: functional.conv2d(x + 1, x[:, :, :3, :3].relu()),
    lambda x: torch.max(x, x.neg()) + torch.max(x).to(torch.float64),
    lambda x: torch.where(x > 0, x.clone(), x.mean((2, 3), keepdim=True)),
    lambda x: functional.interpolate(x, scale_factor=3).add_(1),
    lambda x: functional.batch_norm(x, x[0, :, 0, 0].abs(), x[0, :, 0, 0].abs(), training=False),
    lambda x: nn.functional.pad(x, (1, 1, 0, 0), mode="reflect") + x.sum(3, keepdim=True),
    lambda x: functional.conv_transpose2d(x, x[:, :, :2, :2].reshape(4, 1, 2, 2)),
    lambda x: torch.linspace(0, 1, 12) * x @ torch.ones(12, 5),
]


def assert_one_answer(program: Any, path: Path, **dims: int) -> Graph:
    """Assert that a program and its file are one graph, and return it."""
    torch.export.save(program, path)
    found = read(path, Options(dims=dims)).graph
    assert found is not None
    live = graph_of(program, dims)
    assert found.operators == live.operators
    assert [each.origin for each in found.walk()] == [each.origin for each in live.walk()]
    names = {node.name for node in program.graph.nodes}
    assert {each.origin for each in found.operators if not each.name.startswith("update")} <= names
    return found


def graph_in_memory(run: Callable[[Any], Any], *shape: int) -> Graph:
    """Return the graph of a function."""
    return graph_of(export(Calls(lambda _, x: run(x)), torch.randn(shape or (1, 4, 16, 12))))


def whys(graph: Graph) -> list[str]:
    """Return why operators are done as a whole."""
    return [each.why_whole for each in graph.operators]


@pytest.mark.parametrize("draw_one", DRAWS, ids=lambda one: one.__name__)
def test_random_operators_in_memory_and_in_files(draw_one: Any, tmp_path: Path) -> None:
    """Tests random operators of each kind with others around, as traced and decomposed."""
    draw = random.Random(draw_one.__name__)
    layers = [layer for _ in range(4) for layer in (draw_one(draw), nn.ReLU())]
    model = Calls(lambda own, x: [getattr(own, f"n{at}")(x) for at in range(8)], **{
        f"n{at}": layer for at, layer in enumerate(layers)
    })  # fmt: skip
    program = export(model, torch.randn(1, 4, 16, 12))
    graph = assert_one_answer(program, tmp_path / "net.pt2")
    assert not any(whys(graph)[::2]) or draw_one.__name__ == "channel"
    assert_one_answer(program.run_decompositions(), tmp_path / "core.pt2")


def test_what_ends_a_band_in_memory_and_in_files(tmp_path: Path) -> None:
    """Tests results that are read or not, views, writes, weights that are computed, and casts."""
    for run in CHECKED:
        program = export(Calls(lambda _, x, run=run: run(x)), torch.randn(1, 4, 16, 12))
        graph = assert_one_answer(program, tmp_path / "net.pt2")
        assert "its options are known only at run time" not in whys(graph)
        assert_one_answer(program.run_decompositions(), tmp_path / "core.pt2")


def test_indices_of_a_pool() -> None:
    """Tests that a pool is done in parts unless its second result is read."""
    first, second = (graph_in_memory(run) for run in (CHECKED[1], CHECKED[0]))
    assert (first.operators[0].why_whole, first.operators[0].reads) == (
        "",
        (Read(0, Even(2, 2, 0), Even(2, 2, 0)),),
    )
    assert whys(second) == ["it has several results"]


def test_a_picture_that_is_joined_twice() -> None:
    """Tests that each place at which it is read has a map of its own."""
    (*_, joined) = graph_in_memory(CHECKED[2]).operators
    assert [read.rows for read in joined.reads] == [Joined(0), Joined(16), Joined(32)]
    assert [read.tensor for read in joined.reads] == [0, joined.inputs[1], 0]


def test_elements_of_several_pictures() -> None:
    """Tests `max` of two, which is one on elements, and of one, which is not; and a broadcast."""
    graph = graph_in_memory(CHECKED[6])
    reasons = {each.type: each.why_whole for each in graph.operators}
    assert "max" in reasons["aten.max"]
    assert graph.operators[1].reads == tuple(
        Read(tensor, Each(), Each()) for tensor in graph.operators[1].inputs
    )
    (where,) = (each for each in graph_in_memory(CHECKED[7]).operators if "where" in each.type)
    assert [read.rows for read in where.reads] == [Each(), Each(), Once()]


def test_open_sizes_are_those_that_are_asked_for(tmp_path: Path) -> None:
    """Tests that rows are known for the sizes of `--dim`, in memory as in the file."""
    rows = torch.export.Dim("rows", min=8, max=64)
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), torch.randn(1, 3, 32, 16)
    program = torch.export.export(model.eval(), (x,), dynamic_shapes=({2: rows},))
    (symbol,) = map(str, program.range_constraints)
    graph = assert_one_answer(program, tmp_path / "net.pt2", **{symbol: 40})
    assert whys(graph) == ["", ""]
    assert [graph.find_size(each.makes) for each in graph.operators] == [(40, 16)] * 2
    assert graph.operators[0].macs == 8 * 40 * 16 * 3 * 9


def test_multiplications() -> None:
    """Tests sums of products, also of operators that are done as a whole."""
    both = graph_in_memory(lambda x: functional.conv_transpose2d(x, torch.ones(4, 2, 3, 3)))
    assert [each.macs for each in both.operators if "conv" in each.type] == [4 * 16 * 12 * 2 * 9]
    for run, macs in (
        (lambda x: functional.conv2d(x, torch.ones(6, 2, 3, 3), groups=2), 6 * 14 * 10 * 2 * 9),
        (lambda x: functional.linear(x, torch.ones(5, 12)), 4 * 16 * 5 * 12),
        (lambda x: x[0, 0] @ x[0, 1].T, 16 * 16 * 12),
    ):
        assert sum(each.macs for each in graph_in_memory(run).operators) == macs


def test_defaults_are_those_of_the_schemas() -> None:
    """Tests that an argument which a call may leave out has the value that ATen gives it."""
    known = pictures._DEFAULTS | {"stride": 1}
    for name in (name for name, row in TABLE.items() if row.rows not in ("", "each")):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            schema = getattr(packet, overload)._schema
            for one in schema.arguments:
                if not one.has_default_value() or one.name not in known or one.is_out:
                    continue
                value = one.default_value
                expected = {known[one.name]}
                expected |= {(), None} if one.name == "stride" else set()
                expected |= {"valid"} if name == "conv2d" and overload == "padding" else set()
                value = tuple(value) if isinstance(value, list) else value
                value = value[0] if isinstance(value, tuple) and len({*value}) == 1 else value
                assert value in expected, (name, overload, one.name, value)
            if "out" not in overload:
                needed = {one.name for one in schema.arguments if not one.has_default_value()}
                assert {"downscale_factor", "kernel_size", "pad", "upscale_factor"} >= (
                    needed & {*pictures._REQUIRED}
                )


def test_elements_are_those_that_torch_tags() -> None:
    """Tests the tables against the tags: what is tagged is in one of them, and the other way."""
    tagged = set()
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten" and not schema.is_mutable and hasattr(torch.ops.aten, name):
            packet = getattr(torch.ops.aten, name)
            overload = getattr(packet, schema.overload_name or "default", None)
            if torch.Tag.pointwise in getattr(overload, "tags", ()):
                tagged.add(str(overload))
    unknown = {one.split(".")[1] for one in tagged if find_row(one).rows != "each"}
    # A number, two results, a view, and random numbers.
    assert unknown <= {"equal", "frexp", "positive", "rrelu"}
    copied = {name for name, row in TABLE.items() if (row.rows, row.in_place) == ("each", "")}
    named = {one.removeprefix("aten.") for one in tagged}
    assert named | {one.partition(".")[0] for one in named} > copied


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("kernel_size", ("2", 2), "its options make no sense"),
        ("kernel_size", (0, 2), "its options make no sense"),
        ("kernel_size", (), "its options make no sense"),
        ("kernel_size", (..., 2), "its options are known only at run time"),
        ("stride", (3, 3), "its result has other rows than its options make"),
        ("padding", (-1, 0), "its options make no sense"),
        ("ceil_mode", True, "its last windows may reach beyond the padding (ceil_mode)"),
    ],
)
def test_options_that_a_file_may_have(name: str, value: Any, why: str) -> None:
    """Tests a pool with options that torch would not write."""
    program = pictures_node(name, value)
    found = pictures.describe_rows(*program, is_alone=True)
    assert found["why_whole"] == why


def pictures_node(name: str, value: Any) -> tuple[Any, ...]:
    """Return the node of a pool with one option changed, and what it reads."""
    from memplan.runtimes.torch.read.program import Node
    from memplan.runtimes.torch.read.values import Value, dense_strides

    options = {"kernel_size": (2, 2), "padding": 0} | {name: value}
    x, y = (
        Value(key, "float32", 4, size, dense_strides(size))
        for key, size in (("x", (1, 4, 8, 8)), ("y", (1, 4, 4, 4)))
    )
    node = Node("pool", "aten.max_pool2d.default", ("x",), (y,), (None,))
    return replace(node, options=tuple(options.items())), [x], [0], 1


def test_a_sub_graph_is_a_whole() -> None:
    """Tests an operator with branches, whose own operators have rows."""

    def run(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda y: y.relu(), lambda y: y.neg(), (x,))

    cond = next(each for each in graph_in_memory(run).operators if each.blocks)
    assert cond.why_whole == "it has sub-graphs"
    inner: list[Operator] = [each for block in cond.blocks for each in block.operators]
    assert [each.why_whole for each in inner] == ["", ""]
    assert all(str(each.origin).startswith(f"{cond.origin}.") for each in inner)

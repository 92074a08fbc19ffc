"""Tests that programs whose readers know formulas are read at every size in a few runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memplan as mp
from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.programs import sources
from memplan.programs.graph import Graph, Operator, Tensor
from memplan.runtimes.onnx.operators import TABLE
from memplan.runtimes.onnx.read import sizes_formulas
from memplan.scenarios.envelope import Range, envelope, formulas, reading

Make = Callable[[Mapping[str, int]], Graph]


def read_all(model: Any, dims: Mapping[str, str], where: tuple[str, ...] = ()) -> tuple[int, Range]:
    """Compare what the formulas say of every size with what is read there; return the runs."""
    asked = Range.of(dims, where)

    def read(point: tuple[int, ...]) -> Problem:
        return mp.load(model, dims=dict(zip(asked.names, point, strict=True)), pins=False).problem

    found = formulas.compute(model, asked, read)
    assert found is not None
    seen = []
    for problem, rows, bytes in found:
        for at, row in enumerate(rows.tolist()):
            sizes = asked.sizes(row)
            same = read(tuple(sizes.values()))
            lives = same.start.tolist(), same.end.tolist(), same.ids, same.size.tolist()
            mine = problem.start.tolist(), problem.end.tolist(), problem.ids
            assert lives == (*mine, bytes[:, at].tolist()), sizes
            seen.append(row)
    assert sorted(seen) == list(range(len(asked)))
    return len(found), asked


def chain(*sizes: tuple[str, int], late: bool = False) -> Graph:
    """Return operators that each read the result before theirs, and one that reads the first."""
    tensors = tuple(Tensor(name, size, dtype="uint8") for name, size in sizes)
    count = len(sizes)
    operators = [Operator("op", "F", (), (0,))]
    operators += [Operator(f"op{at}", "F", (at,), (at + 1,)) for at in range(count - 1)]
    if late:
        operators.append(Operator("late", "F", (0,), ()))
    return Graph("g", tensors, tuple(operators), alignment=16)


def jump(dims: Mapping[str, int]) -> Graph:
    """Return a program whose bytes jump at some sizes, and that has another buffer at others."""
    n = dims["n"]
    extra = 4096 if 300 <= n < 340 else 0
    more = [("z", n % 7)] if n % 5 == 0 else []
    return chain(("x", 64 * n), ("y", -(-n // 3) + extra), *more, late=n > 700)


@dataclass(frozen=True)
class Program:
    """A program in memory with formulas."""

    make: Make


@pytest.fixture(autouse=True)
def _read_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a `Program` be read by its formulas, and at each size."""
    opened, loaded = sources.open_graphs, sources.load

    def open_graphs(model: Any, names: Any) -> Make | None:
        return model.make if isinstance(model, Program) else opened(model, names)

    def load(model: Any, **how: Any) -> sources.Loaded:
        if isinstance(model, Program):
            return sources.of_graph(model.make(how["dims"]))
        return loaded(model, **how)

    monkeypatch.setattr(formulas, "open_graphs", open_graphs)
    monkeypatch.setattr(reading, "load", load)


def test_what_happens_between_sizes_is_found() -> None:
    """Tests bytes, buffers and lifetimes that differ at a few of many sizes."""
    found = envelope(Program(jump), {"n": "1:1000"})
    assert (found.premise, found.status) == ("", mp.Status.OPTIMAL)
    assert found.how == "computed at every size by the formulas of the program"
    for n in (1, 5, 35, 299, 300, 320, 339, 340, 343, 699, 701, 1000):
        problem = sources.of_graph(jump({"n": n})).problem
        assert found.peak_at(n=n) == mp.solve(problem).peak
        offsets = [found.plan.offset(id) for id in problem.ids]
        mp.verify(problem, mp.Plan.of(problem, offsets))


@pytest.mark.parametrize(
    "make",
    [
        lambda dims: chain(("x", int(dims["n"])), ("y", 8)),
        lambda dims: chain(("x", dims["n"] ** 9), ("y", 8)),
        lambda dims: chain(("x", dims["n"] + float(dims["n"])), ("y", 8)),
        lambda dims: chain(("x", {1: 2}[dims["n"] + 0] if dims["n"] * 0 else dims["m"]), ("y", 8)),
    ],
)
def test_without_formulas_polynomials_have_a_premise(make: Make) -> None:
    """Tests readers that need plain numbers, that are too large, and that lack a name."""

    def plain(dims: Mapping[str, int]) -> Graph:
        number = dims["n"]
        return make(dims) if not isinstance(number, int) else chain(("x", number), ("y", 8))

    found = envelope(Program(plain), {"n": "1:300"})
    assert "sizes that were not read" in found.premise
    assert found.status is mp.Status.FEASIBLE


def test_a_formula_that_says_something_else_is_not_believed() -> None:
    """Tests formulas with other bytes, other buffers and other lifetimes than the reader's."""

    def plain(dims: Mapping[str, int]) -> Graph:
        return chain(("x", dims["n"]), ("y", 8 * dims["n"]))

    wrong: list[Make] = [
        lambda dims: chain(("x", dims["n"] * (dims["n"] + 63) // 64), ("y", 8 * dims["n"])),
        lambda dims: chain(("x", dims["n"]), ("z", 8 * dims["n"])),
        lambda dims: chain(("x", dims["n"]), ("y", 8 * dims["n"]), ("z", 1)),
    ]
    for each in wrong:

        def make(dims: Mapping[str, int], each: Make = each) -> Graph:
            return plain(dims) if isinstance(dims["n"], int) else each(dims)

        assert "sizes that were not read" in envelope(Program(make), {"n": "1:300"}).premise


def test_a_size_that_cannot_be_read_is_an_error() -> None:
    """Tests one size of many at which the program contradicts itself."""

    def make(dims: Mapping[str, int]) -> Graph:
        if dims["n"] == 123:
            raise MemplanError("the program has no such size")
        return chain(("x", dims["n"]), ("y", 8))

    with pytest.raises(MemplanError, match="no such size"):
        envelope(Program(make), {"n": "1:300"})
    assert envelope(Program(make), {"n": "1:122,124:300"}).status is mp.Status.OPTIMAL


class TestTorch:
    """Programs of PyTorch, whose sizes are expressions."""

    def test_convolutions_in_steps(self, tmp_path: Path) -> None:
        """Tests a file and the program in memory, with conditions, at every size."""
        torch = pytest.importorskip("torch")

        class Net(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.first = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
                self.second = torch.nn.Conv2d(8, 4, 3, stride=2, padding=1)

            def forward(self, x: Any) -> Any:
                y = self.second(torch.relu(self.first(x)))
                return y.sum(1).reshape(y.shape[0], -1).softmax(-1)

        batch, side = (
            torch.export.Dim("batch", min=1, max=8),
            torch.export.Dim("side", min=8, max=64),
        )
        shapes = ({0: batch, 2: side},)
        program = torch.export.export(Net(), (torch.randn(2, 3, 32, 8),), dynamic_shapes=shapes)
        path = tmp_path / "net.pt2"
        torch.export.save(program, path)
        (given,) = [node for node in program.graph.nodes if node.name == "x"]
        sizes = given.meta["val"].shape
        dims = {str(sizes[0]): "1:3", str(sizes[2]): "8:32"}
        where = (f"{sizes[0]}*{sizes[2]}<=80",)
        runs, asked = read_all(path, dims, where)
        assert runs < 4
        found = envelope(path, dims, where)
        assert (found.status, found.premise, len(found)) == (mp.Status.OPTIMAL, "", len(asked))
        for row in range(0, len(asked), 5):
            each = asked.sizes(row)
            assert found.peak_at(**each) == mp.plan_model(path, dims=each).plan.peak
        read_all(program, {str(sizes[0]): "1:2", str(sizes[2]): "8:11"})  # slow to read

    def test_conditions_of_the_program(self, tmp_path: Path) -> None:
        """Tests that sizes that break a condition of the program are refused by its sentence."""
        torch = pytest.importorskip("torch")

        class Even(torch.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return torch.relu(x.reshape(-1, 2, 4)).sum(1)

        half = torch.export.Dim("half", min=2, max=100)
        program = torch.export.export(Even(), (torch.randn(8, 4),), dynamic_shapes=({0: 2 * half},))
        name = next(str(key) for key in program.range_constraints if "*" not in str(key))
        path = tmp_path / "even.pt2"
        torch.export.save(program, path)
        found = envelope(path, {name: "2:100"})
        assert (found.status, found.premise) == (mp.Status.OPTIMAL, "")
        with pytest.raises(MemplanError, match="exported for"):
            envelope(path, {name: "2:101"})


def make_network(onnx: Any, path: Path) -> None:
    """Write a network with windows, joins and reshapes, whose sides and batch are open."""
    make, floats = onnx.helper, onnx.TensorProto.FLOAT
    weights = {
        "w1": np.zeros((8, 3, 3, 3), np.float32),
        "w2": np.zeros((8, 8, 1, 1), np.float32),
        "up": np.zeros((8, 8, 2, 2), np.float32),
        "row": np.array([0, -1, 4], np.int64),
    }
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        make.make_node("Conv", ["x", "w1"], ["a"], **window),
        make.make_node("Relu", ["a"], ["b"]),
        make.make_node("Conv", ["b", "w2"], ["c"], kernel_shape=[1, 1]),
        make.make_node("Add", ["b", "c"], ["d"]),
        make.make_node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]),
        make.make_node("ConvTranspose", ["e", "up"], ["f"], strides=[2, 2], kernel_shape=[2, 2]),
        make.make_node("Concat", ["e", "e", "e"], ["g"], axis=2),
        make.make_node("Reshape", ["g", "row"], ["h"]),
        make.make_node("Flatten", ["f"], ["i"]),
        make.make_node("Softmax", ["h"], ["y"]),
        make.make_node("Tanh", ["i"], ["z"]),
    ]
    graph = make.make_graph(
        nodes,
        "net",
        [make.make_tensor_value_info("x", floats, ["batch", 3, "high", 32])],
        [make.make_tensor_value_info(name, floats, None) for name in ("y", "z")],
        [onnx.numpy_helper.from_array(each, name) for name, each in weights.items()],
    )
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)]), path)


class TestOnnx:
    """Models of ONNX, whose sizes are named."""

    def test_windows_joins_and_reshapes(self, tmp_path: Path) -> None:
        """Tests every size of a network against what is read there."""
        onnx = pytest.importorskip("onnx")
        path = tmp_path / "net.onnx"
        make_network(onnx, path)
        runs, _ = read_all(path, {"batch": "1:3", "high": "4:40"})
        assert runs < 8
        found = envelope(path, {"batch": "1:16", "high": "5:200"})
        assert (found.status, found.premise) == (mp.Status.OPTIMAL, "")
        assert (
            found.peak_at(batch=3, high=77)
            == mp.plan_model(path, dims={"batch": 3, "high": 77}).plan.peak
        )

    def test_an_operator_without_a_rule(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Tests that sizes that no rule gives are polynomials with a premise."""
        onnx = pytest.importorskip("onnx")
        path = tmp_path / "net.onnx"
        make_network(onnx, path)
        monkeypatch.setitem(TABLE, "MaxPool", replace(TABLE["MaxPool"], formula=""))
        found = envelope(path, {"batch": "1:16", "high": "5:200"})
        assert "sizes that were not read" in found.premise

    def test_a_rule_that_is_wrong_is_noticed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Tests that formulas are held against sizes that are read."""
        onnx = pytest.importorskip("onnx")
        path = tmp_path / "net.onnx"
        make_network(onnx, path)
        assert not envelope(path, {"batch": "1:16", "high": "5:200"}).premise

        def other(call: Any) -> Any:
            first, *rest = sizes_formulas._pool(call)
            return (first, rest[0], rest[1] + (call.inputs[0][2] >= 50), rest[2])

        monkeypatch.setitem(sizes_formulas._RULES, "another pool", other)
        monkeypatch.setitem(TABLE, "MaxPool", replace(TABLE["MaxPool"], formula="another pool"))
        assert envelope(path, {"batch": "1:16", "high": "5:200"}).premise

    def test_what_has_no_names(self, tmp_path: Path) -> None:
        """Tests a nameless dimension, and a model that chooses between branches."""
        onnx = pytest.importorskip("onnx")
        make, floats = onnx.helper, onnx.TensorProto.FLOAT
        x = make.make_tensor_value_info("x", floats, [None, 8])
        y = make.make_tensor_value_info("y", floats, None)
        graph = make.make_graph([make.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
        path = tmp_path / "g.onnx"
        onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)]), path)
        assert envelope(path, {"x:0": "1:99"}).status is mp.Status.OPTIMAL
        bodies = {}
        for name in ("then_branch", "else_branch"):
            made = make.make_tensor_value_info(name, floats, None)
            node = make.make_node("Relu", ["x"], [name])
            bodies[name] = make.make_graph([node], name, [], [made])
        c = make.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
        graph = make.make_graph([make.make_node("If", ["c"], ["y"], **bodies)], "g", [x, c], [y])
        onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)]), path)
        assert envelope(path, {"x:0": "1:99"}).premise

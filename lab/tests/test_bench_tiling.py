"""Tests of the tilings of graphs: what tiles read, how long they live, how large they are."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from memplan.problem.loads import Loads
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View, lay_out
from memplan_lab.bench.generators.tiling import tile_graph

pytestmark = pytest.mark.slow

K = Kind.INTERMEDIATE


def image(name: str, rows: int, kind: Kind = K, row_bytes: int = 10) -> Tensor:
    """Return a tensor of one channel and so many rows."""
    return Tensor(name, rows * row_bytes, kind, "int8", (1, 1, rows, row_bytes))


def chain(rows: int = 4, kind: str = "Relu") -> Graph:
    """Return an input and two operators behind one another."""
    tensors = (image("x", rows, Kind.INPUT), image("y", rows), image("z", rows, Kind.OUTPUT))
    operators = (Operator("f", kind, (0,), (1,)), Operator("g", kind, (1,), (2,)))
    return Graph("chain", tensors, operators, (0,), (2,))


def network(seed: int) -> Graph:
    """Return a random network of images: skips, strides, vectors, several outputs, and weights."""
    rng = np.random.Generator(np.random.PCG64(seed))
    tensors = [
        image("input", 12, Kind.INPUT),
        Tensor("weights", 30, Kind.CONSTANT, shape=(1, 1, 6, 5)),
    ]
    operators: list[Operator] = []
    read: set[int] = set()
    for number in range(12):
        reads = {int(rng.integers(len(tensors))) for _ in range(int(rng.integers(1, 3)))}
        makes = []
        for _ in range(int(rng.integers(1, 3))):
            rows = int(rng.choice([1, 3, 6, 7, 12]))
            name = f"t{len(tensors)}"
            vector = rng.integers(6) == 0
            made = Tensor(name, 5, shape=(5,)) if vector else image(name, rows, row_bytes=8)
            makes.append(len(tensors))
            tensors.append(made)
        kind = ("Conv", "Add", "MaxPool")[int(rng.integers(3))]
        operators.append(Operator(f"o{number}", kind, tuple(sorted(reads)), tuple(makes)))
        read |= reads
    ends = tuple(index for op in operators for index in op.outputs if index not in read)
    return Graph("network", tuple(tensors), tuple(operators), (0,), ends)


def tiles_of(graph: Graph, name: str) -> list[int]:
    """Return the tiles of a tensor, in the order of its rows."""
    pattern = re.compile(re.escape(name) + r"( \[\d+\])?")
    return [i for i, tensor in enumerate(graph.tensors) if pattern.fullmatch(tensor.name)]


def test_a_chain_in_two_tiles() -> None:
    """Tests order and lifetimes by hand: the second operator begins before the first has ended."""
    graph = tile_graph(chain(), 2)
    assert [operator.name for operator in graph.operators] == ["f [0]", "g [0]", "f [1]", "g [1]"]
    problem = lay_out(graph).problem
    lives = {buffer.id: (buffer.start, buffer.end, buffer.size) for buffer in problem.buffers}
    assert lives == {
        "x [0]": (0, 1, 20),
        "x [1]": (0, 3, 20),
        "y [0]": (0, 2, 20),
        "y [1]": (2, 4, 20),
        "z [0]": (1, 4, 20),
        "z [1]": (3, 4, 20),
    }
    assert lay_out(chain()).problem.max_load == 80
    assert problem.max_load == 60


def test_a_halo_makes_the_operator_below_wait() -> None:
    """Tests that a convolution reads the rows around its own, and so waits for one tile more."""
    graph = tile_graph(chain(kind="Conv"), 2, halo=1)
    assert [operator.name for operator in graph.operators] == ["f [0]", "f [1]", "g [0]", "g [1]"]
    assert graph.operators[2].inputs == tuple(tiles_of(graph, "y"))
    assert [op.name for op in tile_graph(chain(kind="Conv"), 2, halo=0).operators][1] == "g [0]"


@pytest.mark.parametrize("tiles", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("halo", [0, 1, 4])
def test_tiles_read_the_rows_that_they_need(tiles: int, halo: int) -> None:
    """Tests, row by row, that a tile reads every tile with a row that it needs, and no other."""
    for seed in range(10):
        graph = network(seed)
        cut = tile_graph(graph, tiles, halo=halo)
        by_name = {operator.name: operator for operator in cut.operators}
        for operator in graph.operators:
            (made,) = {graph.tensors[i] for i in operator.outputs[:1]}
            count = len(tiles_of(cut, made.name))
            if any(len(tiles_of(cut, graph.tensors[i].name)) != count for i in operator.outputs):
                count = 1
            height = rows_of(made)
            for number in range(count):
                name = operator.name if count == 1 else f"{operator.name} [{number}]"
                own = range(height)
                if count > 1:
                    own = range(height * number // count, height * (number + 1) // count)
                around = halo if operator.type != "Add" else 0
                expected = set()
                for index in operator.inputs:
                    needed = needs(own, height, rows_of(graph.tensors[index]), around)
                    if count == 1:
                        needed = set(range(rows_of(graph.tensors[index])))
                    expected |= tiles_holding(cut, graph.tensors[index], needed)
                assert set(by_name.pop(name).inputs) == expected
        assert not by_name


def rows_of(tensor: Tensor) -> int:
    """Return the third dimension of an image, 1 of anything else."""
    return tensor.shape[2] if tensor.shape is not None and len(tensor.shape) == 4 else 1


def needs(own: range, height: int, rows: int, around: int) -> set[int]:
    """Return the rows of an input that share some height with those of an output, and a halo."""
    touched = {
        row
        for row in range(rows)
        for mine in own
        if row * height < (mine + 1) * rows and (row + 1) * height > mine * rows
    }
    return {
        row + shift
        for row in touched
        for shift in range(-around, around + 1)
        if 0 <= row + shift < rows
    }


def tiles_holding(graph: Graph, tensor: Tensor, rows: set[int]) -> set[int]:
    """Return the tiles of a tensor that have one of these rows, by the bytes before each."""
    found, before = set(), 0
    for tile in tiles_of(graph, tensor.name):
        size = graph.tensors[tile].bytes
        per_row = tensor.bytes / rows_of(tensor)
        if any(before < (row + 1) * per_row and before + size > row * per_row for row in rows):
            found.add(tile)
        before += size
    return found


@pytest.mark.parametrize("tiles", [1, 2, 5, 40])
def test_bytes_are_kept(tiles: int) -> None:
    """Tests that the tiles of a tensor have its bytes together, and differ by a row at most."""
    for seed in range(10):
        graph = network(seed)
        cut = tile_graph(graph, tiles)
        for tensor in graph.tensors:
            sizes = [cut.tensors[tile].bytes for tile in tiles_of(cut, tensor.name)]
            assert sum(sizes) == tensor.bytes
            assert max(sizes) - min(sizes) <= tensor.bytes // rows_of(tensor)
            assert len(sizes) == (
                1 if tensor.kind is Kind.CONSTANT else min(tiles, rows_of(tensor))
            )
        assert sum(t.bytes for t in cut.tensors) == sum(t.bytes for t in graph.tensors)


@pytest.mark.parametrize("tiles", [1, 3, 8])
def test_load_at_every_step(tiles: int) -> None:
    """Tests the load of the tiled problem against what each step holds, counted one by one."""
    for seed in range(10):
        graph = tile_graph(network(seed), tiles)
        problem = lay_out(graph).problem
        made = {i: step for step, op in enumerate(graph.operators) for i in op.outputs}
        last = {i: step for step, op in enumerate(graph.operators) for i in op.inputs}
        steps = len(graph.operators)
        load = np.zeros(steps, dtype=np.int64)
        for index, tensor in enumerate(graph.tensors):
            read = index in last or index in made or index in graph.outputs
            if tensor.kind is Kind.CONSTANT or not read:
                continue  # an input that nothing reads is over before the first operator
            begin = 0 if index in graph.inputs else made[index]
            end = steps - 1 if index in graph.outputs else last.get(index, begin)
            load[begin : end + 1] += tensor.bytes
        held = [
            int(problem.size[(problem.start <= step) & (problem.end > step)].sum())
            for step in range(steps)
        ]
        assert held == load.tolist()
        assert Loads(problem).load.max() == load.max()


def test_every_operator_runs_after_what_it_reads() -> None:
    """Tests that no tile is read before it is made, and every tile is made once."""
    for seed in range(10):
        graph = tile_graph(network(seed), 4)
        known = {i for i, t in enumerate(graph.tensors) if t.kind in (Kind.INPUT, Kind.CONSTANT)}
        for operator in graph.operators:
            assert known.issuperset(operator.inputs)
            assert known.isdisjoint(operator.outputs)
            known.update(operator.outputs)
        assert known == set(range(len(graph.tensors)))


def test_tiling_is_deterministic() -> None:
    """Tests that the same network is cut in the same way each time."""
    assert tile_graph(network(3), 4) == tile_graph(network(3), 4)
    assert tile_graph(network(3), 4) != tile_graph(network(3), 5)


def test_rows_are_the_second_dimension_in_tflite() -> None:
    """Tests that a graph from TensorFlow Lite is cut along rows, not along columns."""
    shape = (1, 2, 6, 1)
    tensors = (
        Tensor("x", 12, Kind.INPUT, shape=shape),
        Tensor("y", 12, Kind.OUTPUT, shape=shape),
    )
    graph = Graph("g", tensors, (Operator("f", "RELU", (0,), (1,)),), (0,), (1,), source="tflite")
    assert [tensor.bytes for tensor in tile_graph(graph, 4).tensors] == [6, 6, 6, 6]
    other = replace(graph, source="onnx")
    assert [tensor.bytes for tensor in tile_graph(other, 4).tensors] == [2, 4, 2, 4] * 2


def test_views_are_read_as_what_they_are_views_of() -> None:
    """Tests that a reshape costs no step, and that readers of its result read the tiles."""
    graph = chain()
    flat = Tensor("flat", 40, shape=(40,))
    tensors = (*graph.tensors[:2], flat, graph.tensors[2])
    operators = (
        Operator("f", "Relu", (0,), (1,)),
        Operator("reshape", "Reshape", (1,), (2,)),
        Operator("g", "Relu", (2,), (3,)),
    )
    graph = Graph("g", tensors, operators, (0,), (3,), views=(View(2, 1),))
    assert tile_graph(graph, 2).operators == tile_graph(chain(), 2).operators


def test_what_cannot_be_cut_is_refused() -> None:
    """Tests that bad counts, streams, aliases, groups and blocks are refused."""
    graph = chain()
    f, g = graph.operators
    inside = replace(g, blocks=(Block("body", (Operator("h", "Relu", (1,), ()),)),))
    for bad, message in (
        (replace(graph, operators=(f, replace(g, stream=1))), "streams"),
        (replace(graph, aliases=((0, 2),)), "aliases"),
        (replace(graph, groups=((1, 2),)), "groups"),
        (replace(graph, operators=(f, inside)), "operators inside operators"),
    ):
        with pytest.raises(ValueError, match=message):
            tile_graph(bad, 2)
    with pytest.raises(ValueError, match="tiles is 0"):
        tile_graph(graph, 0)
    with pytest.raises(ValueError, match="halo -1"):
        tile_graph(graph, 2, halo=-1)

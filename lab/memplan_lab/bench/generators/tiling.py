"""Networks in tiles of rows, with interleaved layers, as a compiler for a scratchpad runs them.

      layer by layer            depth first, in four tiles
    x  ████                     x  █▌
    y     ████                  y   ███▌▌          a tile dies when the last tile
    z        ████               z     █████        above it that reads it has run
       ──────────► steps           ──────────► steps

Lifetimes become short and irregular, and fewer bytes are live at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from memplan.programs.graph import Graph, Kind, Operator, Tensor

_IMAGE = 4  # dimensions of what has rows: batch, channels, rows and columns
_LOOKS_AROUND = re.compile("conv|pool|resize|upsample", re.IGNORECASE)
_WHOLE = frozenset({Kind.CONSTANT, Kind.VARIABLE})


@dataclass(frozen=True, slots=True)
class _Cut:
    """The tiles of a tensor: their numbers among the new tensors, and their rows."""

    first: int
    edges: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.edges[-1]

    @property
    def tiles(self) -> range:
        return range(self.first, self.first + len(self.edges) - 1)

    def within(self, lower: int, upper: int) -> Iterable[int]:
        """Return the tiles that have some of the rows `[lower, upper)`."""
        return (
            tile
            for tile, begin, end in zip(self.tiles, self.edges, self.edges[1:], strict=False)
            if begin < upper and end > lower
        )


def tile_graph(graph: Graph, tiles: int, *, halo: int = 1) -> Graph:
    """Return a graph whose operators are cut into tiles of rows, in depth-first order.

    A tensor of four dimensions is cut into up to `tiles` tiles of as many rows as can be; others
    stay whole. An operator becomes one for each tile of what it makes, which reads the same part of
    the height of its inputs: operators are taken to be local, as convolutions, pooling and what
    goes by elements are (attention is not). Of the tiles that could run, one of the last operator
    of the graph runs next, so that an operator begins before the one below it has ended (source
    001, section 2.2).

    Rows are the second dimension of TensorFlow Lite's tensors, else the third; a kernel reads up to
    `halo` of them above and below its tile. A reader of a view in `graph`, which is on one stream,
    reads the tensor under it. Every tile has the whole workspace. In-place choices and
    pins are dropped.
    """
    if tiles < 1 or halo < 0:
        raise ValueError(f"tiles is {tiles} and halo {halo}; give at least 1 and at least 0")
    streams = {operator.stream for operator in graph.operators}
    if len(streams) > 1 or graph.aliases or graph.groups:
        raise ValueError("a graph with several streams, aliases or groups cannot be cut into tiles")
    if any(operator.blocks for operator in graph.operators):
        raise ValueError("a graph with operators inside operators cannot be cut into tiles")
    tensors, cuts = _cut(graph, tiles)
    layers = [list(_layer(operator, cuts, halo)) for operator in graph.operators]

    def tiles_of(indices: Sequence[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(tile for index in indices for tile in cuts[index].tiles))

    return Graph(
        graph.name,
        tuple(tensors),
        tuple(_depth_first(layers)),
        tiles_of(graph.inputs),
        tiles_of(graph.outputs),
        alignment=graph.alignment,
        planned=graph.planned,
        source=graph.source,
    )


def _cut(graph: Graph, tiles: int) -> tuple[list[Tensor], list[_Cut]]:
    """Return the tiles of all tensors, and by tensor of the graph which are its own."""
    base = {view.tensor: view.base for view in graph.views}
    axis = 1 if graph.source == "tflite" else 2
    made: list[Tensor] = []
    own: dict[int, _Cut] = {}
    for index, tensor in enumerate(graph.tensors):
        if index in base:
            continue
        has_rows = tensor.shape is not None and len(tensor.shape) == _IMAGE
        rows = tensor.shape[axis] if has_rows and tensor.shape else 1
        count = 1 if tensor.kind in _WHOLE else max(1, min(tiles, rows))
        rows = max(rows, 1)
        edges = tuple(rows * tile // count for tile in range(count + 1))
        own[index] = _Cut(len(made), edges)
        bytes = [tensor.bytes * edge // rows for edge in edges]
        for tile in range(count):
            name = tensor.name if count == 1 else f"{tensor.name} [{tile}]"
            size = bytes[tile + 1] - bytes[tile]
            made.append(Tensor(name, size, tensor.kind, tensor.dtype))
    return made, [own[_root(index, base)] for index in range(len(graph.tensors))]


def _root(index: int, base: dict[int, int]) -> int:
    while index in base:
        index = base[index]
    return index


def _layer(operator: Operator, cuts: Sequence[_Cut], halo: int) -> Iterable[Operator]:
    """Yield the tiles of an operator; none if all that it makes is views of what it reads."""
    inputs = list(dict.fromkeys(cuts[index] for index in operator.inputs))
    outputs = [cut for cut in dict.fromkeys(cuts[i] for i in operator.outputs) if cut not in inputs]
    if operator.outputs and not outputs:
        return
    # An operator whose outputs are cut in different ways, or which has none, stays one operator.
    counts = {len(cut.tiles) for cut in outputs}
    count = counts.pop() if len(counts) == 1 else 1
    margin = halo if _LOOKS_AROUND.search(operator.type) else 0
    for number in range(count):
        lower, upper, rows = 0, 1, 1
        if count > 1:
            lower, upper, rows = *outputs[0].edges[number : number + 2], outputs[0].rows
        reads = (
            cut.within(lower * cut.rows // rows - margin, -(-upper * cut.rows // rows) + margin)
            for cut in inputs
        )
        makes = (cut.tiles if count == 1 else [cut.tiles[number]] for cut in outputs)
        yield Operator(
            operator.name if count == 1 else f"{operator.name} [{number}]",
            operator.type,
            tuple(tile for tiles in reads for tile in tiles),
            tuple(tile for tiles in makes for tile in tiles),
            workspace=operator.workspace,
            module=operator.module,
            line=operator.line,
        )


def _depth_first(layers: Sequence[Sequence[Operator]]) -> Iterable[Operator]:
    """Yield all tiles; the next is the first of the last operator that has tiles ready to run."""
    operators = [tile for layer in layers for tile in layer]
    depth = [number for number, layer in enumerate(layers) for _ in layer]
    maker = {index: number for number, tile in enumerate(operators) for index in tile.outputs}
    readers: list[list[int]] = [[] for _ in operators]
    missing = []
    for number, tile in enumerate(operators):
        makers = {maker[index] for index in tile.inputs if index in maker}
        missing.append(len(makers))
        for other in makers:
            readers[other].append(number)
    ready = [(-depth[number], number) for number, count in enumerate(missing) if count == 0]
    heapify(ready)
    while ready:
        _, number = heappop(ready)
        yield operators[number]
        for reader in readers[number]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heappush(ready, (-depth[reader], reader))

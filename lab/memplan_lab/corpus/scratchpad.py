"""Networks on an accelerator with a scratchpad, as in MiniMalloc and TelaMalloc.

Operators are cut into tiles of rows and interleaved; inputs, weights and outputs are moved while
other operators compute. Weights come in chunks, through two buffers that take turns:

    operator            conv [0]           conv [1]
    sub-step            1     2     3      4     5     6       ▓ moved, █ read
    weights, chunk 0 ▓▓▓██████       ▓▓▓▓▓▓██████
             chunk 1    ▓▓▓▓▓▓██████       ▓▓▓▓▓▓██████
             chunk 2          ▓▓▓▓▓▓██████       ▓▓▓▓▓▓██████
    input, tile 0    ▓▓▓██████████████████
    output, tile 0      ██████████████████▓▓▓▓▓▓
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from memplan.problem import Problem
from memplan.programs.graph import Graph, Kind
from memplan_lab.bench.generators.tiling import tile_graph

__all__ = ["on_scratchpad"]

_ALIGNMENT = 64  # bytes that a transfer moves at once
_WEIGHTS = frozenset({Kind.CONSTANT, Kind.VARIABLE})

Span = tuple[int, int, int]  # start and end in sub-steps, bytes


def on_scratchpad(graph: Graph, tiles: int, chunk: int) -> Problem:
    """Return the problem of running a graph from a scratchpad.

    An operator takes a sub-step for each chunk of its weights, at least one. A chunk is moved in
    the sub-step before the one that reads it; weights of one chunk stay while the operators that
    follow read them too. Inputs come one sub-step before their first reader, and outputs leave in
    the one behind their last. Sizes are rounded up to 64 bytes.
    """
    cut = tile_graph(graph, tiles)
    weights = [
        [i for i in operator.inputs if cut.tensors[i].kind in _WEIGHTS and cut.tensors[i].bytes]
        for operator in cut.operators
    ]
    chunks = [-(-tensor.bytes // chunk) for tensor in cut.tensors]
    steps = (max([1, *(chunks[index] for index in read)]) for read in weights)
    begin = list(accumulate(steps, initial=1))  # in sub-step 0 the first operator's are moved
    spans = [*_tensors(cut, begin), *_workspaces(cut, begin)]
    for at, read in enumerate(weights):
        for index in read:
            size = cut.tensors[index].bytes
            if chunks[index] > 1:
                spans += _split_in_turns(begin[at], size, chunk)
            elif at == 0 or index not in weights[at - 1]:
                behind = (to for to in range(at, len(weights)) if index not in weights[to])
                spans.append((begin[at] - 1, begin[next(behind, len(weights))], size))
    starts, ends, sizes = np.array(sorted(spans), dtype=np.int64).reshape(-1, 3).T
    return Problem.from_arrays(starts, ends, -(-sizes // _ALIGNMENT) * _ALIGNMENT)


def _split_in_turns(first: int, size: int, chunk: int) -> Iterator[Span]:
    """Yield the chunks of a weight that is read from sub-step `first` on."""
    for number, offset in enumerate(range(0, size, chunk)):
        yield first + number - 1, first + number + 1, min(chunk, size - offset)


def _tensors(cut: Graph, begin: Sequence[int]) -> Iterator[Span]:
    """Yield what operators make and what the caller gives, from the first that touches it."""
    given, wanted = frozenset(cut.inputs), frozenset(cut.outputs)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, operator in enumerate(cut.operators):
        for index in (*operator.inputs, *operator.outputs):
            first.setdefault(index, at)
            last[index] = at
    for index, at in first.items():
        tensor = cut.tensors[index]
        if tensor.bytes and tensor.kind not in _WEIGHTS:
            end = begin[last[index] + 1] + (index in wanted)
            yield begin[at] - (index in given), end, tensor.bytes


def _workspaces(cut: Graph, begin: Sequence[int]) -> Iterator[Span]:
    for at, operator in enumerate(cut.operators):
        if operator.workspace:
            yield begin[at], begin[at + 1], operator.workspace

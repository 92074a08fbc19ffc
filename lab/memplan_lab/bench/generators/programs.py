"""Seeded graphs of operators, for the search for orders.

Every operator makes one tensor. Inputs of the whole graph are not planned, and a tensor that no
operator reads is live only while it is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from memplan.problem import OrderProblem

__all__ = ["gpt_step", "layered", "of_arcs", "randwire"]

_MAP = 64 * 56 * 56 * 4  # bytes of the maps of a node in the first stage of RandWire
_STAGES = 3
_FLOAT = 4  # bytes


def randwire(nodes: int, seed: int) -> OrderProblem:
    """Return a network of RandWire: three stages of random graphs of Watts and Strogatz.

    As in Xie et al., "Exploring Randomly Wired Neural Networks", every stage is WS(4, 0.75): a ring
    whose nodes are linked to two on each side, and each link is turned to another node with the
    probability 0.75; links lead from lower to higher nodes. A node adds up its inputs, then it
    convolves the sum. A stage ends with the mean of the nodes without readers; the next one has
    twice the channels and a quarter of the pixels.
    """
    rng = np.random.Generator(np.random.PCG64([seed, nodes]))
    sizes: list[int] = []
    arcs: list[tuple[int, int]] = []

    def add(bytes: int, reads: Sequence[int]) -> int:
        arcs.extend((other, len(sizes)) for other in reads)
        sizes.append(bytes)
        return len(sizes) - 1

    last = add(2 * _MAP, [])
    for stage in range(_STAGES):
        size = _MAP >> stage
        links = _small_world(rng, nodes)
        made: list[int] = []
        for node in range(nodes):
            reads = [made[first] for first, second in links if second == node] or [last]
            total = reads[0] if len(reads) == 1 else add(size, reads)
            made.append(add(size, [total]))
        read = {first for first, _ in links}
        last = add(size, [made[node] for node in range(nodes) if node not in read])
    return of_arcs(sizes, arcs)


def _small_world(rng: np.random.Generator, nodes: int) -> list[tuple[int, int]]:
    links = {(node, (node + step) % nodes) for node in range(nodes) for step in (1, 2)}
    links = {(min(link), max(link)) for link in links}
    for step in (1, 2):
        for node in range(nodes):
            old = min(node, (node + step) % nodes), max(node, (node + step) % nodes)
            other = int(rng.integers(nodes))
            new = min(node, other), max(node, other)
            if rng.integers(4) < 3 and other != node and new not in links and old in links:
                links.remove(old)
                links.add(new)
    return sorted(links)


def layered(
    nodes: int, seed: int, *, width: int = 35, spread: int = 75, near: int = 25, far: int = 14
) -> OrderProblem:
    """Return a random layered graph, as in "Neural Topological Ordering for Computation Graphs".

    Sizes and numbers of arcs are like those in Moccasin's files. One operator comes first and one
    last, and the given order goes from layer to layer. Shares are in per cent.
    """
    rng = np.random.Generator(np.random.PCG64([seed, nodes, width, spread, near, far]))
    mean = 2 * width * math.isqrt(nodes)  # per cent
    low, high = mean * (100 - spread) // 10_000, mean * (100 + spread) // 10_000
    layers = [[0]]
    begin = 1
    while begin < nodes - 1:
        end = min(begin + int(rng.integers(max(low, 1), high, endpoint=True)), nodes - 1)
        layers.append(list(range(begin, end)))
        begin = end
    layers.append([nodes - 1])
    arcs: set[tuple[int, int]] = set()
    for depth in range(1, len(layers)):
        above, own = layers[depth - 1], layers[depth]
        for node in own:
            reads = [other for other in above if rng.integers(100) < near]
            arcs.update((other, node) for other in reads or [_pick(rng, above)])
            for distance in range(2, depth + 1):
                if rng.integers(100 * distance) < far:
                    arcs.add((_pick(rng, layers[depth - distance]), node))
        read = {first for first, _ in arcs}
        arcs.update((other, _pick(rng, own)) for other in above if other not in read)
    draws = rng.integers(1, 650, size=(nodes, 2), endpoint=True)
    return of_arcs((10 * (draws[:, 0] * draws[:, 1] // 650 + 1)).tolist(), sorted(arcs))


def gpt_step(
    layers: int, *, batch: int = 4, tokens: int = 512, width: int = 768, heads: int = 12
) -> tuple[OrderProblem, list[int]]:
    """Return a training step of a GPT in float32, and what its operators cost.

    Gradients of weights are wanted; weights are not planned. A cost is that of memplan's roofline:
    multiplications, or bytes that are moved, whichever takes longer.
    """
    step = _Step()
    rows = batch * tokens
    x = step.add(rows * width, [])
    forward: list[tuple[int, list[int], int, int]] = []  # operator, reads, multiplications, weight

    def run(amount: int, reads: list[int], macs: int = 0, weight: int = 0) -> int:
        made = step.add(amount, reads, macs, weight)
        forward.append((made, reads, macs, weight))
        return made

    flat = rows * width
    square = batch * heads * tokens * tokens
    for _ in range(layers):
        qkv = run(3 * flat, [run(flat, [x])], 3 * flat * width, 3 * width * width)
        scores = run(square, [run(square, [qkv], square * width // heads)])
        mixed = run(flat, [scores, qkv], square * width // heads)
        x = run(flat, [x, run(flat, [mixed], flat * width, width * width)])
        wide = run(4 * flat, [run(flat, [x])], 4 * flat * width, 4 * width * width)
        narrow = run(flat, [run(4 * flat, [wide])], 4 * flat * width, 4 * width * width)
        x = run(flat, [x, narrow])
    gradient = {x: step.add(flat, [step.add(1, [x]), x])}
    for made, reads, macs, weight in reversed(forward):
        if weight:
            step.add(weight, [gradient[made], *reads], macs, wanted=True)
        is_sum = len(reads) == 2 and not macs
        for read in reads:
            own = gradient[made]
            if not is_sum:
                own = step.add(step.size[read] // _FLOAT, [own, *reads], macs, weight)
            if read in gradient:
                own = step.add(step.size[read] // _FLOAT, [gradient[read], own])
            gradient[read] = own
    return of_arcs(step.size, step.arcs, step.wanted), step.cost


class _Step:
    """The operators of a step so far; each makes one tensor of numbers of four bytes."""

    def __init__(self) -> None:
        self.size: list[int] = []
        self.cost: list[int] = []
        self.wanted: list[bool] = []
        self.arcs: list[tuple[int, int]] = []

    def add(
        self,
        amount: int,
        reads: Sequence[int],
        macs: int = 0,
        weight: int = 0,
        wanted: bool = False,
    ) -> int:
        """Add an operator that reads tensors and a weight, and return its number."""
        number = len(self.size)
        self.arcs.extend((read, number) for read in set(reads))
        self.size.append(_FLOAT * amount)
        moved = _FLOAT * (amount + weight) + sum(self.size[read] for read in set(reads))
        self.cost.append(max(4 * macs, 25 * moved) // 39)
        self.wanted.append(wanted)
        return number


def _pick(rng: np.random.Generator, nodes: Sequence[int]) -> int:
    return nodes[int(rng.integers(len(nodes)))]


def of_arcs(
    size: Sequence[int], arcs: Sequence[tuple[int, int]], wanted: Sequence[bool] = ()
) -> OrderProblem:
    """Return the problem of operators that make one storage each, which others read."""
    count = len(size)
    users = [[at] for at in range(count)]
    for first, second in sorted(set(arcs)):
        users[first].append(second)
    return OrderProblem(
        np.zeros(count, dtype=np.int64),
        np.array(sorted(set(arcs)), dtype=np.int32).reshape(-1, 2),
        np.array(size, dtype=np.int64),
        np.zeros(count, dtype=np.bool_),
        np.array(wanted or [False] * count, dtype=np.bool_),
        np.cumsum([0, *map(len, users)], dtype=np.int64),
        np.array([user for own in users for user in own], dtype=np.int32),
        np.zeros((0, 3), dtype=np.int32),
    )

"""Programs on parallel streams: small ones for tests, and one of the size of PanGu-alpha's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from memplan.programs.graph import Graph, Kind, Operator, Tensor

_UNIT = 512  # bytes, as accelerators align
_LAYER = 24  # operators of a layer's forward pass
_SAVED = (0, 1, 3, 4, 7, 8, 10, 11, 15, 19, 20)  # those whose inputs the backward pass reads
_ACTIVATIONS = (4, 8, 8, 8, 16, 32, 32, 64)  # sizes of a layer's results, in units of `_UNIT` KiB
_WEIGHTS = (8, 8, 8, 32)  # and of its weights


def multi_stream(operators: int, streams: int, seed: int) -> Graph:
    """Return a small random program whose streams wait for each other in both directions.

    Operators are put on streams at random. Each makes up to two tensors, which no, one or several
    operators read on any stream; some have a workspace. The first reads the caller's input, and
    some results are the caller's outputs.

    Parameters
    ----------
    operators
        How many, at least 1.
    streams
        How many at most.
    seed
        The same seed gives the same program, on any machine.
    """
    rng = np.random.Generator(np.random.PCG64([seed, operators, streams]))
    program = _GraphDraft()
    given = [program.tensor("given", 1, Kind.INPUT) for _ in range(int(rng.integers(1, 3)))]
    readable = list(given)
    for number in range(operators):
        inputs = {readable[int(rng.integers(len(readable)))] for _ in range(int(rng.integers(3)))}
        if number == 0:
            inputs.update(given)
        outputs = []
        for _ in range(int(rng.integers(3))):
            kind = Kind.OUTPUT if rng.integers(8) == 0 else Kind.INTERMEDIATE
            outputs.append(program.tensor("result", int(rng.integers(1, 9)), kind))
        workspace = int(rng.integers(1, 5)) if rng.integers(4) == 0 else 0
        program.operator("Op", sorted(inputs), outputs, int(rng.integers(streams)), workspace)
        readable = (readable + outputs)[-8:]
    return program.graph("multi-stream")


def pangu_like(n: int = 20_000, streams: int = 10, groups: int = 678, seed: int = 0) -> Graph:
    """Return a training step of a transformer on many devices, as the paper's largest.

    Forward and backward pass are chains of layers on compute streams. Twice in a layer each waits
    for an all-reduce on a communication stream. Gradients of weights are gathered in buckets, each
    a contiguous group that a communication operator reduces while the backward pass goes on, and
    an update on a third kind of stream reads. A stream has operators of one category; when it is
    full, the next one of the category begins (SOMAS, section 5.1).

    Parameters
    ----------
    n
        The number of tensors: 12 for each group, and 66, are enough.
    streams
        How many, at least 3.
    groups
        How many contiguous groups, each of two tensors or more.
    seed
        The same seed gives the same program, on any machine.

    Raises
    ------
    ValueError
        If there are too few streams, or too few tensors for the groups.
    """
    if streams < 3:
        raise ValueError(f"streams is {streams}; there are three categories of operators")
    # A forward operator stands for 1 result, 1 gradient, 1/2 gradient of a weight, 1/6 reduced.
    layers = int((n - groups) / (2.7 * _LAYER))
    if layers < 1 or groups < 1 or layers * _LAYER // 2 < 2 * groups:
        raise ValueError(f"{n} tensors are too few for {groups} groups, or there are no groups")
    step = _TrainingStep(np.random.Generator(np.random.PCG64([seed, n, streams, groups])))
    step.forward(layers)
    step.backward(groups)
    step.fill(n)
    return step.program.graph("pangu-like", _on_streams(step.program.operators, streams))


@dataclass
class _GraphDraft:
    """A graph in the making. Until the end, `stream` may be a category."""

    tensors: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    groups: list[tuple[int, ...]] = field(default_factory=list)

    def tensor(self, name: str, bytes: int, kind: Kind = Kind.INTERMEDIATE) -> int:
        self.tensors.append(Tensor(f"{name} {len(self.tensors)}", bytes, kind))
        return len(self.tensors) - 1

    def operator(
        self,
        type: str,
        inputs: Iterable[int],
        outputs: Iterable[int],
        stream: int,
        workspace: int = 0,
    ) -> None:
        name = f"{type} {len(self.operators)}"
        self.operators.append(
            Operator(name, type, tuple(inputs), tuple(outputs), stream, workspace)
        )

    def graph(self, name: str, operators: Sequence[Operator] | None = None) -> Graph:
        indices = range(len(self.tensors))
        return Graph(
            name,
            tuple(self.tensors),
            tuple(self.operators if operators is None else operators),
            tuple(i for i in indices if self.tensors[i].kind is Kind.INPUT),
            tuple(i for i in indices if self.tensors[i].kind is Kind.OUTPUT),
            groups=tuple(self.groups),
        )


_COMPUTE, _COMMUNICATION, _UPDATE = range(3)


class _TrainingStep:
    """The operators of a step in the order of one stream."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.program = _GraphDraft()
        self._rng = rng
        self._sources: list[int] = []  # by forward operator: what it reads first
        self._at = self.program.tensor("batch", 8 * _UNIT, Kind.INPUT)

    def forward(self, layers: int) -> None:
        skipped = self._at
        for number in range(layers * _LAYER):
            if number % (_LAYER // 2) == 0:
                skipped = self._at
            source = self._at
            size = _UNIT * 1024 * _ACTIVATIONS[number % len(_ACTIVATIONS)]
            self._at = self.program.tensor("activation", size)
            last = number % (_LAYER // 2) == _LAYER // 2 - 1
            inputs = dict.fromkeys((source, skipped) if last else (source,))
            self.program.operator("Forward", inputs, (self._at,), _COMPUTE)
            self._sources.append(source)
            if last:
                self._all_reduce()

    def backward(self, groups: int) -> None:
        """Go back through all operators; every second has weights, whose gradients fill buckets."""
        weighted = (len(self._sources) + 1) // 2
        ends = {(number + 1) * weighted // groups for number in range(groups)}
        bucket: list[int] = []
        seen = 0
        for number, source in enumerate(reversed(self._sources)):
            inputs = [self._at]
            if (len(self._sources) - 1 - number) % _LAYER in _SAVED:
                inputs.append(source)
            self._at = self.program.tensor("gradient", self.program.tensors[source].bytes)
            outputs = [self._at]
            if number % 2 == 0:
                size = _UNIT * 1024 * _WEIGHTS[number // 2 % len(_WEIGHTS)]
                bucket.append(self.program.tensor("weight gradient", size))
                outputs.append(bucket[-1])
                seen += 1
            self.program.operator("Backward", inputs, outputs, _COMPUTE)
            if number % (_LAYER // 2) == _LAYER // 2 - 1:
                self._all_reduce()
            if seen in ends and bucket:
                self._reduce(bucket)
                bucket = []

    def fill(self, n: int) -> None:
        """Add masks to random forward operators, read on the way back, until there are `n`."""
        operators = self.program.operators
        back = [i for i, operator in enumerate(operators) if operator.type == "Backward"]
        front = [i for i, operator in enumerate(operators) if operator.type == "Forward"]
        for _ in range(n - len(self.program.tensors)):
            at = int(self._rng.integers(len(front)))
            mask = self.program.tensor("mask", _UNIT * int(self._rng.integers(1, 1025)))
            maker, reader = front[at], back[len(front) - 1 - at]
            operators[maker] = replace(operators[maker], outputs=(*operators[maker].outputs, mask))
            operators[reader] = replace(operators[reader], inputs=(*operators[reader].inputs, mask))

    def _all_reduce(self) -> None:
        reduced = self.program.tensor("reduced", self.program.tensors[self._at].bytes)
        self.program.operator("AllReduce", (self._at,), (reduced,), _COMMUNICATION)
        self._at = reduced

    def _reduce(self, bucket: list[int]) -> None:
        """Reduce a bucket into a smaller piece, as each device updates its own part."""
        self.program.groups.append(tuple(bucket))
        total = sum(self.program.tensors[index].bytes for index in bucket)
        piece = self.program.tensor("piece", -(-total // (8 * _UNIT)) * _UNIT)
        self.program.operator("ReduceScatter", bucket, (piece,), _COMMUNICATION)
        self.program.operator("Update", (piece,), (), _UPDATE)


def _on_streams(operators: Sequence[Operator], streams: int) -> list[Operator]:
    """Put every category on streams of its own, one filled after the other."""
    communication = max(1, streams * 3 // 10)
    update = max(1, streams // 10)
    count = {_COMMUNICATION: communication, _UPDATE: update}
    count[_COMPUTE] = streams - communication - update
    first = {_COMPUTE: 0, _COMMUNICATION: count[_COMPUTE], _UPDATE: streams - update}
    total = {c: sum(operator.stream == c for operator in operators) for c in count}
    seen = dict.fromkeys(count, 0)
    placed = []
    for operator in operators:
        category = operator.stream
        stream = first[category] + seen[category] * count[category] // total[category]
        seen[category] += 1
        placed.append(replace(operator, stream=stream))
    return placed

"""Writes offsets or an order into a TFLite file, and keeps all bytes that were there.

FlatBuffers refer only forward, so new tables go in front. The file becomes

    [new root │ its lists of buffers and of metadata │ the offsets][the whole old file]
        └──────────────┴───── refer to ────────────────────────────────►

and the rest of the schema does not matter. If the file has an offline plan already, only its
numbers are overwritten.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from memplan.base.errors import FormatError
from memplan.runtimes.tflm.read.flatbuffer import Table, root
from memplan.runtimes.tflm.read.model import IDENTIFIER, OFFLINE_PLAN, Model, parse

__all__ = ["with_offsets", "with_order", "without_tensors"]

_SUBGRAPHS: Final = 2  # slots of the outermost table
_BUFFERS: Final = 4
_METADATA: Final = 6
_TENSORS: Final = 0  # of a sub-graph
_OPERATORS: Final = 3
_SLOTS: Final = 10  # in the current schema; each takes four bytes
_GRAIN: Final = 64  # bytes; files align their weights to at most this
_VERSION: Final = 1  # of the layout of the metadata


def with_offsets(
    data: bytes, name: str, offsets: Sequence[int], model: Model | None = None
) -> bytes:
    """Return a file with an offline plan, which reads back correctly.

    Offsets are by tensor of all sub-graphs: bytes from the head of the arena, or -1 if TFLM places
    it. The model is what is in the file, if it was parsed before. Files with weights after the
    FlatBuffer (over 2 GB), or with unknown fields in their outermost table, are refused.
    """
    model = model or parse(data, name)  # this checks that all offsets below lie in the file
    _refuse_absolute(data, name)
    words = [_VERSION, len(model.subgraphs), len(offsets), *offsets]
    plan = np.array(words, "<i4").tobytes()
    try:
        place = _find_old_plan(data, name, len(plan)) if model.offsets else None
        if place is None:
            result = _write_in_front(data, name, plan)
        else:
            result = data[:place] + plan + data[place + len(plan) :]
    except struct.error:  # `parse` does not check fields that are only copied here
        raise FormatError(name, "the file is damaged: its root tables lead nowhere") from None
    return _read_back(result, name, replace(model, offsets=tuple(offsets)))


def with_order(
    data: bytes, name: str, orders: Mapping[int, Sequence[int]], model: Model | None = None
) -> bytes:
    """Return a file whose operators are in another order, which reads back correctly.

    A list of tables holds references to them, so another order is the same list with its references
    exchanged; nothing else moves. Orders are by sub-graph the numbers of all its operators, in
    their new order; others are left as they are. The model is what is in the file, if it was parsed
    before.
    """
    model = model or parse(data, name)  # this checks that all references below lie in the file
    result = bytearray(data)
    subgraphs = list(model.subgraphs)
    try:
        tables = list(root(data, name, IDENTIFIER).tables(_SUBGRAPHS))
        for number, order in orders.items():
            targets = [each.at for each in tables[number].tables(_OPERATORS)]
            first, _ = tables[number].vector(_OPERATORS, 4)
            for place, operator in enumerate(order):
                at = first + 4 * place
                struct.pack_into("<I", result, at, targets[operator] - at)
            operators = tuple(subgraphs[number].operators[operator] for operator in order)
            subgraphs[number] = replace(subgraphs[number], operators=operators)
    except struct.error:  # a reference to what lies before it
        raise FormatError(name, "the file is damaged: its operators lead nowhere") from None
    return _read_back(bytes(result), name, replace(model, subgraphs=tuple(subgraphs)))


def without_tensors(data: bytes, name: str, unused: Collection[int]) -> bytes:
    """Return a file in which unused tensors are as small as the smallest one.

    All tensors keep their numbers, which count over all sub-graphs: in the list of tensors, the
    references to the unused ones, which no operator touches, are replaced by one to the smallest
    tensor of the sub-graph that has no value of its own.
    """
    model = parse(data, name)
    result = bytearray(data)
    subgraphs = list(model.subgraphs)
    try:
        tables = list(root(data, name, IDENTIFIER).tables(_SUBGRAPHS))
        for number, subgraph in enumerate(model.subgraphs):
            base = model.first[number]
            tensors = list(subgraph.tensors)
            gone = [index for index in range(len(tensors)) if base + index in unused]
            plain = [
                at for at, tensor in enumerate(tensors) if not (tensor.data or tensor.variable)
            ]
            smallest = min(plain, key=lambda index: tensors[index].bytes, default=-1)
            targets = [each.at for each in tables[number].tables(_TENSORS)]
            first, _ = tables[number].vector(_TENSORS, 4)
            for index in gone:
                at = first + 4 * index
                if targets[smallest] > at:
                    struct.pack_into("<I", result, at, targets[smallest] - at)
                    tensors[index] = tensors[smallest]
            subgraphs[number] = replace(subgraph, tensors=tuple(tensors))
    except struct.error:  # a reference to what lies before it
        raise FormatError(name, "the file is damaged: its tensors lead nowhere") from None
    return _read_back(bytes(result), name, replace(model, subgraphs=tuple(subgraphs)))


def _read_back(data: bytes, name: str, expected: Model) -> bytes:
    """Return the new file, if it reads as the model that it has to be."""
    if parse(data, name) != expected:
        raise FormatError(name, "the file is damaged: its tables overlap")
    return data


def _refuse_absolute(data: bytes, name: str) -> None:
    """Raise `FormatError` if fields hold absolute positions in the file, as these would move."""
    table = root(data, name, IDENTIFIER)
    behind = any(buffer.number(1, "Q") > 1 for buffer in table.tables(_BUFFERS)) or any(
        operator.number(9, "Q") > 1 for graph in table.tables(2) for operator in graph.tables(3)
    )
    if behind:
        raise FormatError(
            name,
            "the file has weights behind the FlatBuffer, as models over 2 GB do: no "
            "microcontroller runs it, and no plan can be written into it",
        )


def _find_plan_entries(top: Table) -> list[Table]:
    """Return the metadata tables that hold an offline plan; TFLM obeys the last."""
    plan = OFFLINE_PLAN.encode()
    return [each for each in top.tables(_METADATA) if each.raw(0).tobytes() == plan]


def _find_old_plan(data: bytes, name: str, size: int) -> int | None:
    """Return where the numbers of the file's plan are, if it has this size and is not shared."""
    top = root(data, name, IDENTIFIER)
    entries = _find_plan_entries(top)
    if len(entries) != 1:
        return None
    number = entries[0].number(1, "I")
    values = [buffer.vector(0, 1) for buffer in top.tables(_BUFFERS)]
    first, count = values[number]
    if count != size or _is_value(data, number):
        return None
    shared = any(
        begin < first + count and first < begin + length
        for i, (begin, length) in enumerate(values)
        if i != number
    )
    return None if shared else first


def _is_value(data: bytes, number: int) -> bool:
    """Whether a buffer holds the value of a tensor."""
    graphs = root(data, "", IDENTIFIER).tables(2)
    return any(tensor.number(2, "I") == number for graph in graphs for tensor in graph.tables(0))


class _Front:
    """The bytes before the old file; links to that are set when the length of these is known."""

    def __init__(self) -> None:
        self.data = bytearray(struct.pack("<I4s", 0, IDENTIFIER))
        self._links: list[tuple[int, int, bool]] = []

    def put(self, raw: bytes, *, before: int = 0) -> int:
        """Add bytes, at a multiple of 4 (of 16 for what lies `before` bytes behind it)."""
        grain = 16 if before else 4
        self.data += bytes(-(len(self.data) + before) % grain)
        self.data += raw
        return len(self.data) - len(raw)

    def table(self, slots: Sequence[int]) -> tuple[int, dict[int, int]]:
        """Add a table with empty fields of four bytes; return where it and they are."""
        entries = [0] * (max(slots) + 1)
        for order, slot in enumerate(slots):
            entries[slot] = 4 + 4 * order
        sizes = (4 + 2 * len(entries), 4 + 4 * len(slots))
        layout = self.put(struct.pack(f"<{2 + len(entries)}H", *sizes, *entries))
        at = self.put(bytes(sizes[1]))
        struct.pack_into("<i", self.data, at, at - layout)
        return at, {slot: at + entries[slot] for slot in slots}

    def vector(self, entries: Sequence[int]) -> int:
        """Add a vector of tables of the old file, with room for one more."""
        at = self.put(struct.pack("<I", len(entries) + 1) + bytes(4 * len(entries) + 4))
        for order, entry in enumerate(entries):
            self.link(at + 4 + 4 * order, entry, old=True)
        return at

    def link(self, at: int, target: int, *, old: bool = False) -> None:
        self._links.append((at, target, old))

    def before(self, data: bytes) -> bytes:
        """Return these bytes, followed by the old file."""
        self.data += bytes(-len(self.data) % _GRAIN)
        for at, target, old in self._links:
            struct.pack_into("<I", self.data, at, target + old * len(self.data) - at)
        return bytes(self.data) + data


def _write_in_front(data: bytes, name: str, plan: bytes) -> bytes:
    old = root(data, name, IDENTIFIER)
    fields = old.fields()
    if max(fields, default=0) >= _SLOTS:
        raise FormatError(
            name, f"its outermost table has a field {max(fields)}, newer than memplan"
        )
    buffers = [each.at for each in old.tables(_BUFFERS)]
    obsolete = {each.at for each in _find_plan_entries(old)}
    metadata = [each.at for each in old.tables(_METADATA) if each.at not in obsolete]

    front = _Front()
    top, slots = front.table(sorted({*fields, _BUFFERS, _METADATA}))
    front.link(0, top)
    for slot, at in fields.items():
        if slot == 0:
            front.data[slots[0] : slots[0] + 4] = data[at : at + 4]
        elif slot not in (_BUFFERS, _METADATA):
            target = old.target(slot)
            assert target is not None  # it is one of the fields
            front.link(slots[slot], target, old=True)
    buffer_list, metadata_list = front.vector(buffers), front.vector(metadata)
    front.link(slots[_BUFFERS], buffer_list)
    front.link(slots[_METADATA], metadata_list)

    buffer, buffer_slots = front.table([0])
    front.link(buffer_list + 4 + 4 * len(buffers), buffer)
    entry, entry_slots = front.table([0, 1])
    front.link(metadata_list + 4 + 4 * len(metadata), entry)
    text = OFFLINE_PLAN.encode()
    front.link(entry_slots[0], front.put(struct.pack("<I", len(text)) + text + b"\0"))
    struct.pack_into("<I", front.data, entry_slots[1], len(buffers))
    numbers = front.put(struct.pack("<I", len(plan)) + plan, before=4)
    front.link(buffer_slots[0], numbers)
    return front.before(data)

"""Reads heaps from an `HloProto`, with lifetimes from the trace of XLA's heap simulator.

    ALLOC 45    ALLOC 51    FREE 51    FREE 45    SHARE_WITH 55, 45    FREE 55

If a result is written over a value, the trace frees the value and then lets the result share its
memory. Values that share memory are one chunk, also those that a loop carries from round to round.
A chunk may have gaps: when the body of a loop has copied the state, the state is not needed until
the body has made the next one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from memplan.base.errors import FormatError
from memplan.base.extras import require
from memplan.base.files import read_bytes
from memplan.extensions.xla.heap import Chunk, Heap, span_all_steps, tidy
from memplan.extensions.xla.schema import hlo_proto
from memplan.programs.graph import Kind
from memplan.programs.sources.loaded import Label
from memplan.programs.sources.origin import line_at
from memplan.programs.sources.wire import WireError, read_varint

__all__ = ["has_assignment", "looks_like_proto", "read_heaps"]

T = TypeVar("T")

_PASSING = ("tuple", "get-tuple-element")
_WRAPPED = re.compile(r"(\w+)\((.*)\)")  # a scope that was transformed: "jvp(Net)"
_COMPILED = ("jit", "pjit", "pmap")
_CONTROL = ("", "while", "body", "cond", "closed_call", "checkpoint")  # scopes that are no modules
_FREE, _SHARE = 1, 2  # the kinds of events; 0 is ALLOC


def looks_like_proto(head: bytes, size: int) -> bool:
    """Whether a file of this size begins with a module that begins with its name."""
    try:
        module, at = read_varint(head, 1, len(head))
        length, start = read_varint(head, at + 1, len(head))
    except WireError:
        return False
    if not head[:1] == head[at : at + 1] == b"\x0a":
        return False
    name = head[start : start + length]
    inside = start + length - at <= module <= size - at
    return inside and 0 < length == len(name) and name.isascii() and name.decode().isprintable()


def read_heaps(path: Path) -> list[Heap]:
    """Return the allocations that XLA's heap simulator planned; none if there is no assignment."""
    return _Assignment(path, _parse(path)).heaps()


def has_assignment(path: Path) -> bool:
    """Whether a program has a buffer assignment, which XLA makes last."""
    return bool(_parse(path).buffer_assignment.buffer_allocations)


def _parse(path: Path) -> Any:
    message = require("google.protobuf.message", extra="xla")
    hlo = hlo_proto()()
    try:
        hlo.ParseFromString(read_bytes(path))
    except message.DecodeError:
        raise FormatError(
            str(path), "the file is not an HLO protocol buffer, or is cut off"
        ) from None
    return hlo


class _Assignment:
    def __init__(self, path: Path, hlo: Any) -> None:
        self._path = path
        self._module = hlo.hlo_module.name
        self._frames = hlo.hlo_module.stack_frame_index
        self._assignment = hlo.buffer_assignment
        self._buffers = {buffer.id: buffer for buffer in self._assignment.logical_buffers}
        self._instructions: dict[int, Any] = {}
        self._users: dict[int, list[Any]] = {}
        self._parts: dict[tuple[int, int], list[int]] = {}  # readers of tuple elements
        self._listed: set[object] = set()  # users already listed; ids may come twice
        self._descriptions: dict[int, str] = {}
        for computation in hlo.hlo_module.computations:
            for instruction in computation.instructions:
                self._instructions[instruction.id] = instruction
                for operand in set(instruction.operand_ids):
                    if instruction.opcode == "get-tuple-element":
                        part = operand, instruction.tuple_index
                        self._parts.setdefault(part, []).append(instruction.id)
                    elif instruction.opcode not in _PASSING:
                        self._users.setdefault(operand, []).append(instruction)

    def heaps(self) -> list[Heap]:
        home = {
            assigned.logical_buffer_id: allocation.index
            for allocation in self._assignment.buffer_allocations
            for assigned in allocation.assigned
        }
        traces: dict[int, Any] = {}
        for trace in self._assignment.heap_simulator_traces:
            # XLA combined allocations after it wrote the trace, so the index in the trace is stale.
            homes = Counter(home[e.buffer_id] for e in trace.events if e.buffer_id in home)
            if homes:
                index = max(homes, key=lambda i: (homes[i], -i))
                traces[index] = max(traces.get(index, trace), trace, key=lambda t: len(t.events))
        return [
            self._heap(allocation, traces[allocation.index])
            for allocation in self._assignment.buffer_allocations
            if allocation.index in traces
        ]

    def _heap(self, allocation: Any, trace: Any) -> Heap:
        places = {assigned.logical_buffer_id: assigned for assigned in allocation.assigned}
        for id, assigned in places.items():
            if not 0 <= assigned.offset <= allocation.size - assigned.size or assigned.size < 0:
                raise self._error(f"has logical buffer {id} outside of its allocation")
            defined = self._buffers.get(id)
            if defined is not None and defined.size and defined.size != assigned.size:
                raise self._error(
                    f"gives logical buffer {id} {assigned.size} bytes, but defines it with "
                    f"{defined.size}"
                )
        groups = self._groups(trace, places)
        seen = {id for group in groups for id in group.ids}
        rest = [self._chunk(_Group([id], [(0, 1)]), places) for id in places if id not in seen]
        steps = max(len(trace.events), 1)
        chunks = [self._chunk(group, places) for group in groups]
        placed = tidy([*chunks, *span_all_steps(rest, steps)])
        return Heap(self._module, allocation.size, placed, allocation.index)

    def _groups(self, trace: Any, places: dict[int, Any]) -> list[_Group]:
        """Return which values share their memory, and when one of them is needed."""
        groups: list[_Group] = []
        group_of: dict[int, _Group] = {}
        for step, event in enumerate(trace.events):
            id = event.buffer_id
            if id not in places:
                continue  # in another allocation
            if event.kind == _FREE:
                if id not in group_of:
                    raise self._error(f"frees logical buffer {id}, which is not allocated")
                group_of[id].free(id, step)
                continue
            if id in group_of:
                raise self._error(f"allocates logical buffer {id} twice")
            if event.kind == _SHARE:
                group = group_of.get(event.share_with_canonical_id)
            else:
                group = _Group()
                groups.append(group)
            if group is None:
                raise self._error(f"shares logical buffer {id} with nothing")
            group_of[id] = group
            group.allocate(id, step)
        starts = sorted(start for group in groups for start, _ in group.spans)
        for group in groups:
            group.close(len(trace.events), starts)
        return groups

    def _chunk(self, group: _Group, places: dict[int, Any]) -> Chunk:
        offsets = {places[id].offset for id in group.ids}
        if len(offsets) > 1:
            raise self._error(f"shares logical buffer {group.ids[0]} with one at another offset")
        maker = next((site for id in group.ids if (site := self._site(id)) is not None), None)
        users = [self._describe(user) for id in group.ids for user in self._find_users(id)]
        origin = Label((), str(Kind.INTERMEDIATE), used_by=tuple(dict.fromkeys(users)))
        if maker is not None:
            origin = replace(
                origin,
                made_by=self._describe(maker),
                operator=maker.opcode,
                module=_module(maker.metadata.op_name),
                line=self._line(maker.metadata),
            )
        return Chunk(
            values=tuple(self._name(id) for id in group.ids),
            bytes=max(places[id].size for id in group.ids),
            offset=offsets.pop(),
            start=group.spans[0][0],
            end=group.spans[-1][1],
            gaps=tuple((one[1], two[0]) for one, two in pairwise(group.spans)),
            origin=origin,
        )

    def _site(self, id: int) -> Any:
        """Return the instruction that defines a value, or `None`."""
        buffer = self._buffers.get(id)
        return None if buffer is None else self._instructions.get(buffer.defined_at.instruction_id)

    def _find_users(self, id: int) -> Iterator[Any]:
        """Yield the instructions that read a value; those on tuples only pass it on."""
        site = self._site(id)
        if site is None:
            return
        index = tuple(self._buffers[id].defined_at.shape_index)
        if not index:
            yield from self._find_readers(site.id)
        elif len(index) == 1 and (site.id, *index) not in self._listed:
            self._listed.add((site.id, *index))
            for part in self._parts.get((site.id, index[0]), ()):
                yield from self._find_readers(part)

    def _find_readers(self, instruction: int) -> Iterator[Any]:
        """Yield the instructions that read a result, but only at the first call for it."""
        if instruction not in self._listed:
            self._listed.add(instruction)
            yield from self._users.get(instruction, ())

    def _name(self, id: int) -> str:
        buffer, site = self._buffers.get(id), self._site(id)
        if buffer is None:
            return f"buffer {id}"
        name = buffer.defined_at.instruction_name if site is None else site.name
        index = ",".join(map(str, buffer.defined_at.shape_index))
        return f"{name or f'buffer {id}'}{{{index}}}" if index else name or f"buffer {id}"

    def _describe(self, instruction: Any) -> str:
        text = self._descriptions.get(instruction.id)
        if text is None:
            text = f"{instruction.metadata.op_name or instruction.name} ({instruction.opcode})"
            self._descriptions[instruction.id] = text
        return text

    def _line(self, origin: Any) -> str:
        """Return the line that an instruction comes from: the innermost one in the user's code.

        Older releases of XLA store it in the instruction, later ones in a table of frames and one
        of locations, both counted from 1.
        """
        if origin.source_file:
            return line_at(origin.source_file, origin.source_line)
        frame = _get_row(self._frames.stack_frames, origin.stack_frame_id)
        place = (
            None if frame is None else _get_row(self._frames.file_locations, frame.file_location_id)
        )
        file = None if place is None else _get_row(self._frames.file_names, place.file_name_id)
        return "" if place is None or file is None else line_at(file, place.line)

    def _error(self, message: str) -> FormatError:
        return FormatError(
            str(self._path), f"the buffer assignment {message}, so it contradicts itself"
        )


def _get_row(rows: Sequence[T], number: int) -> T | None:
    """Return a row by its number from 1, or `None` where there is none."""
    return rows[number - 1] if 0 < number <= len(rows) else None


def _module(op_name: str) -> str:
    """Return the module in the name that JAX gives an instruction.

    "jit(step)/jit(main)/transpose(jvp(Net))/Dense_0/dot_general" is in "Net.Dense_0": a compiled
    function is not a module, a differentiated scope may be one.
    """
    scopes = []
    for scope in op_name.split("/")[:-1]:
        inner = scope
        while (wrapped := _WRAPPED.fullmatch(inner)) is not None:
            inner = "" if wrapped[1] in _COMPILED else wrapped[2]
        if inner not in _CONTROL:
            scopes.append(inner)
    return ".".join(scopes)


@dataclass(slots=True)
class _Group:
    """Values that share their memory, and the spans of time when one of them is needed."""

    ids: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    _needed: set[int] = field(default_factory=set)

    def allocate(self, id: int, step: int) -> None:
        self.ids.append(id)
        if not self._needed:
            self.spans.append((step, step))
        self._needed.add(id)

    def free(self, id: int, step: int) -> None:
        self._needed.discard(id)
        if not self._needed:
            self.spans[-1] = (self.spans[-1][0], step)

    def close(self, end: int, starts: list[int]) -> None:
        """End values that are never freed, and drop the gaps in which no other memory begins."""
        if self._needed:
            self.spans[-1] = (self.spans[-1][0], end)
        kept: list[tuple[int, int]] = []
        for span in self.spans:
            if kept and bisect_right(starts, kept[-1][1]) == bisect_left(starts, span[0]):
                kept[-1] = (kept[-1][0], span[1])
            else:
                kept.append(span)
        self.spans = kept

"""Reads heaps from XLA's reports: `*buffer-assignment.txt` with its `*live-range.txt`.

    allocation 8: size 32768, preallocated-temp:
     value: <45 wrapped_tanh @0> (size=16384,offset=0): f32[32,128]{1,0}

      BufferLiveRange:
        wrapped_tanh{}:7-12

The reports do not say which values must share memory. Two values do if XLA put them on common bytes
at a common time, or if one has the place of a value that a loop carries (a `phi`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from heapq import heappop, heappush
from pathlib import Path

from memplan.base.errors import FormatError
from memplan.base.files import read_text
from memplan.extensions.xla.heap import Chunk, Heap, tidy

__all__ = ["END", "HEAD", "read_heaps"]

HEAD = b"BufferAssignment:"
END = "buffer-assignment.txt"

_MOST_STEPS = 5_000_000  # visits of values, over all passes that merge them

_ALLOCATION = re.compile(r"allocation (\d{1,19}): size (\d{1,19})(,.*)?:")
_VALUE = re.compile(
    r" *value: <\d{1,19} (.+?)(\{[\d,]*\})?( \(phi\))? @\d{1,19}> "
    r"\(size=(\d{1,19}),offset=(\d{1,19})\)"
)
_RANGE = re.compile(r" {4}(\S+?)(\{[\d,]*\}):(\d{1,18})-(\d{1,18})")


def read_heaps(path: Path) -> list[Heap]:
    """Return the temporary allocations of a report; refuse a report that lacks the lifetimes."""
    text = read_text(path)
    if not text.startswith(HEAD.decode()):
        raise FormatError(str(path), "the file is not a buffer assignment of XLA")
    lines = text.splitlines()
    found: list[tuple[int, int, list[re.Match[str]]]] = []
    for number, line in enumerate(lines, 1):
        if (head := _ALLOCATION.fullmatch(line)) is not None:
            size = int(head[2]) if "preallocated-temp" in (head[3] or "") else -1
            found.append((int(head[1]), size, []))
        elif (value := _VALUE.match(line)) is not None and found:
            found[-1][2].append(value)
        elif line.lstrip().startswith(("allocation ", "value: ")):
            raise FormatError(
                str(path), "the report is cut off, or not in the format of XLA", line=number
            )
    planned = [(number, size, values) for number, size, values in found if size > 0 and values]
    if not planned:
        return []
    spans = _read_spans(path)
    steps = max((end for _, end in spans.values()), default=1)
    module = path.name.removesuffix(END).rstrip("-.")
    return [
        Heap(module, size, _place(path, size, values, spans, steps), number)
        for number, size, values in planned
    ]


def _read_spans(path: Path) -> dict[str, tuple[int, int]]:
    """Return when every value is needed, from the report in the same folder."""
    report = path.with_name(path.name.removesuffix(END) + "live-range.txt")
    if not path.name.endswith(END) or not report.is_file():
        raise FormatError(
            str(path),
            "the file has no lifetimes: put XLA's *live-range.txt into the same folder, or dump "
            "protocol buffers (--xla_dump_hlo_as_proto)",
        )
    ranges = (_RANGE.match(line) for line in read_text(report).splitlines())
    # The report includes both ends, a lifetime here only the first.
    return {m[1] + m[2]: (int(m[3]), int(m[4]) + 1) for m in ranges if m is not None}


def _place(
    path: Path,
    size: int,
    matches: list[re.Match[str]],
    spans: dict[str, tuple[int, int]],
    steps: int,
) -> tuple[Chunk, ...]:
    """Return the values of an allocation as chunks."""
    carried: dict[tuple[int, int], list[Chunk]] = {}
    values, looped = [], set()
    for match in matches:
        index = match[2] or "{}"
        start, end = spans.get(match[1] + index, (0, steps))
        name = match[1] + (index if index != "{}" else "")
        value = Chunk((name,), int(match[4]), int(match[5]), start, end)
        if value.offset + value.bytes > size:
            raise FormatError(str(path), f"the value {name} is outside of its allocation")
        if match[3]:
            looped.add((value.offset, value.bytes))
        values.append(value)
    chunks: list[Chunk] = []
    for value in values:
        if (value.offset, value.bytes) in looped:
            carried.setdefault((value.offset, value.bytes), []).append(value)
        elif value.bytes:
            chunks.append(value)
    merged = _merge(path, [*chunks, *map(_unite, carried.values())])
    return tidy(merged)


def _merge(path: Path, chunks: list[Chunk]) -> list[Chunk]:
    """Return chunks of which no two overlap; those that do are merged, so XLA's plan stays legal.

    A merged chunk may overlap another one, so this is repeated until no two do.
    """
    chunks = [chunk for chunk in chunks if chunk.start < chunk.end]
    steps = 0
    while True:
        steps += len(chunks)
        if steps > _MOST_STEPS:
            raise FormatError(str(path), "too many values share memory in a chain")
        found = _merge_once(chunks)
        if len(found) == len(chunks):
            return found
        chunks = found


def _merge_once(chunks: list[Chunk]) -> list[Chunk]:
    """Go through time once, and merge chunks that overlap."""
    active: list[Chunk] = []  # by offset; no two have a byte in common
    offsets: list[int] = []
    ends: list[tuple[int, int]] = []  # a heap: when an offset of `active` becomes free
    done: list[Chunk] = []
    for new in sorted(chunks, key=lambda chunk: chunk.start):
        while ends and ends[0][0] <= new.start:
            end, offset = heappop(ends)
            at = bisect_left(offsets, offset)
            # The chunk may have become part of a merged one, which ends later.
            if at < len(active) and offsets[at] == offset and active[at].end == end:
                done.append(active.pop(at))
                del offsets[at]
        first = bisect_left(offsets, new.offset)
        if first and active[first - 1].offset + active[first - 1].bytes > new.offset:
            first -= 1
        last = bisect_left(offsets, new.offset + new.bytes)
        if last > first:
            new = _unite([*sorted(active[first:last], key=lambda chunk: chunk.start), new])
        active[first:last], offsets[first:last] = [new], [new.offset]
        heappush(ends, (new.end, new.offset))
    return [*done, *active]


def _unite(chunks: list[Chunk]) -> Chunk:
    chunks = sorted(chunks, key=lambda chunk: chunk.start)
    offset = min(chunk.offset for chunk in chunks)
    return Chunk(
        values=tuple(value for chunk in chunks for value in chunk.values),
        bytes=max(chunk.offset + chunk.bytes for chunk in chunks) - offset,
        offset=offset,
        start=chunks[0].start,
        end=max(chunk.end for chunk in chunks),
    )

"""Memory snapshots of PyTorch's CUDA caching allocator.

`torch.cuda.memory._dump_snapshot` pickles a dictionary: `device_traces` has the events of the
allocator on every device, oldest first, and `segments` the memory that it has at the end.

    alloc ............. free_requested .... free_completed      one buffer, on one address
         |<------------------- lifetime ------------------>|

Buffers have the names of the viewer at pytorch.org/memory_viz: `b7f064c000000_2` is the third
allocation at this address.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplan.errors import FormatError, ProblemError, listed, shown
from memplan.notes import Code, Note
from memplan.sources._plain_pickle import PickleError, load
from memplan.sources.foreign import TORCH_PICKLE
from memplan.sources.loaded import Figure, Label, Loaded
from memplan.sources.options import Options
from memplan.trace import Trace, format_scope

__all__ = ["ALIGNMENT", "matches", "read"]

ALIGNMENT = 512  # of every block of the caching allocator

_SHOWN = 200  # characters of a file's or function's name, because many frames may share a long one
_STEPS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_LIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")


def matches(head: bytes, path: Path) -> bool:
    """Return whether a file with this beginning is a pickle (of protocol 2 or later)."""
    is_pickle = len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5
    return is_pickle and not head.startswith(TORCH_PICKLE)


def read(path: Path, options: Options) -> Loaded:
    """Read a snapshot: the allocations on its busiest device.

    Raises
    ------
    FormatError
        If the file is no pickle, has anything but plain data, or is no snapshot.
    """
    try:
        data = path.read_bytes()
        snapshot = load(data)
    except OSError as error:
        raise FormatError(str(path), f"the file cannot be read: {error.strerror}") from None
    except PickleError as error:
        raise FormatError(str(path), str(error)) from None
    try:
        return _Snapshot(snapshot, len(data)).load()
    except (_BadFieldError, ProblemError) as error:
        raise FormatError(str(path), str(error)) from None


class _BadFieldError(ValueError):
    """An error for a field that PyTorch would not write."""


@dataclass(slots=True)
class _Allocation:
    address: int
    bytes: int
    start: int
    frames: object
    end: int = -1  # not yet


class _Snapshot:
    """Checks a snapshot field by field; every error names the place in it."""

    def __init__(self, snapshot: object, bytes: int) -> None:
        if isinstance(snapshot, list):  # torch.cuda.memory_snapshot() has segments only
            snapshot = {"segments": snapshot, "device_traces": []}
        if not isinstance(snapshot, dict) or "segments" not in snapshot:
            raise _BadFieldError("this is a pickle, but not a memory snapshot: it has no segments")
        self.segments = _check_rows(snapshot["segments"], "segments")
        traces = snapshot.get("device_traces", [])
        if not isinstance(traces, list):
            raise _BadFieldError(f"device_traces is {shown(traces)}; it must be a list")
        lists = [*traces, *(segment.get("blocks") for segment in self.segments)]
        if sum(len(entries) for entries in lists if isinstance(entries, list)) > bytes:
            # A pickle may put one list in many places, so that reading all would take years.
            raise _BadFieldError("the file is damaged: it has more entries than bytes")
        self.traces = [
            _check_rows(trace, f"device_traces[{device}]") for device, trace in enumerate(traces)
        ]

    def load(self) -> Loaded:
        device, notes = self._find_busiest()
        trace = self.traces[device] if device < len(self.traces) else []
        where = f"device_traces[{device}]"
        segments = [
            (f"segments[{at}]", segment)
            for at, segment in enumerate(self.segments)
            if segment.get("device", 0) == device
        ]
        history = _History(trace, where)
        history.add_blocks(segments)
        notes += history.notes()
        return _load_trace(
            _make_trace(history.found), self._find_figures(trace, where, segments), notes
        )

    def _find_busiest(self) -> tuple[int, tuple[Note, ...]]:
        """Return the device with the most entries, and a note on the others."""
        entries: Counter[int] = Counter()
        for at, segment in enumerate(self.segments):
            device = _get_whole(segment, "device", f"segments[{at}]", 0)
            entries[device] += 1
        for device, trace in enumerate(self.traces):
            entries[device] += len(trace)
        entries = +entries
        if not entries:
            raise _BadFieldError("the memory snapshot has no allocations")
        device = min(entries, key=lambda d: (-entries[d], d))
        others = [str(d) for d in sorted(entries) if d != device]
        if not others:
            return device, ()
        rest = listed(others, quote=False)
        text = f"only device {device}, the busiest, is planned; the snapshot also has {rest}"
        return device, (Note(Code.PARTLY_READ, text),)

    def _find_figures(
        self, trace: list[dict[str, Any]], where: str, segments: list[tuple[str, dict[str, Any]]]
    ) -> tuple[Figure, ...]:
        """Return the most that was reserved, computed backwards from the end of the trace."""
        now = sum(_get_whole(segment, "total_size", place) for place, segment in segments)
        peak = now
        for at in range(len(trace) - 1, -1, -1):
            sign = _STEPS.get(_get_action(trace[at], f"{where}[{at}]"), 0)
            if sign:
                now -= sign * _get_whole(trace[at], "size", f"{where}[{at}]")
                peak = max(peak, now)
        if peak == 0:
            return ()
        return (Figure("CUDA caching allocator", peak, "recorded", "reserved, in whole segments"),)


class _History:
    """The lifetimes of allocations; every `alloc` and `free_completed` is one step of time."""

    def __init__(self, trace: list[dict[str, Any]], where: str) -> None:
        self.found: list[_Allocation] = []
        self._live: dict[int, _Allocation] = {}
        self._now = 0
        self._early = 0
        for at, event in enumerate(trace):
            if _get_action(event, f"{where}[{at}]") in ("alloc", "free_completed"):
                self._take_event(event, f"{where}[{at}]")
        self._now = max(self._now, 1)
        for allocation in self._live.values():
            allocation.end = self._now

    def _take_event(self, event: dict[str, Any], where: str) -> None:
        address, size = _get_whole(event, "addr", where), _get_whole(event, "size", where)
        old = self._live.pop(address, None)
        if old is not None:
            old.end = self._now
        if event["action"] == "alloc":
            self._live[address] = _Allocation(address, size, self._now, event.get("frames"))
            self.found.append(self._live[address])
        elif old is None:  # the beginning of the trace is lost
            self.found.append(_Allocation(address, size, 0, event.get("frames"), self._now))
            self._early += 1
        self._now += 1

    def add_blocks(self, segments: list[tuple[str, dict[str, Any]]]) -> None:
        """Add the blocks that are live at the end and are not allocated in the trace."""
        for address, block, where in _iterate_blocks(segments):
            if block.get("state") not in _LIVE or address in self._live:
                continue
            field = "requested_size" if "requested_size" in block else "size"
            size = _get_whole(block, field, where)
            self.found.append(_Allocation(address, size, 0, block.get("frames"), self._now))
            self._early += 1

    def notes(self) -> tuple[Note, ...]:
        """Return notes on what a better recording would have."""
        if self._early == 0:
            return ()
        text = (
            f"{self._early} buffers are older than the trace and planned as live from its start: "
            "to get their lifetimes, start recording earlier, with a larger max_entries"
        )
        return (Note(Code.TRACE_INCOMPLETE, text),)


def _iterate_blocks(
    segments: list[tuple[str, dict[str, Any]]],
) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Yield the blocks of segments with their addresses, which old snapshots lack."""
    for place, segment in segments:
        address = _get_whole(segment, "address", place)
        for at, block in enumerate(_check_rows(segment.get("blocks", []), f"{place}.blocks")):
            where = f"{place}.blocks[{at}]"
            yield _get_whole(block, "address", where, address), block, where
            address += _get_whole(block, "size", where)


def _make_trace(found: list[_Allocation]) -> Trace:
    """Return the allocations as a trace, whose scopes are lines of Python."""
    kept = sorted((a for a in found if a.end > a.start and a.bytes), key=lambda a: a.start)
    named = _Places()
    places = [named.of(a.frames) for a in kept]
    return Trace.from_arrays(
        [a.start for a in kept],
        [a.end for a in kept],
        [a.bytes for a in kept],
        [((place, 0),) if place else () for place in places],
        address=[a.address for a in kept],
        alignment=ALIGNMENT,
    )


def _load_trace(trace: Trace, figures: tuple[Figure, ...], notes: tuple[Note, ...]) -> Loaded:
    times: Counter[int] = Counter()
    ids = []
    for address in [] if trace.address is None else trace.address.tolist():
        ids.append(f"b{address:x}_{times[address]}")
        times[address] += 1
    labels = tuple(
        Label((id,), "intermediate", format_scope(scope), line=_get_line(format_scope(scope)))
        for id, scope in zip(ids, trace.scopes, strict=True)
    )
    return Loaded(
        trace.problem(ids=ids),
        "cuda-snapshot",
        len(trace),
        labels,
        figures=figures,
        notes=notes,
        trace=trace,
    )


class _Places:
    """Names lists of frames; a list that many allocations share is examined only once."""

    def __init__(self) -> None:
        # By identity, which is safe because the snapshot keeps all lists alive.
        self._of_list: dict[int, str] = {}
        self._of_frame: dict[int, tuple[int, str]] = {}

    def of(self, frames: object) -> str:
        """Return the innermost line of the user's Python code, as `model.py:12 forward`."""
        if not isinstance(frames, list):
            return ""
        found = self._of_list.get(id(frames))
        if found is None:
            # The first of the frames of one rank is the innermost.
            found = max(map(self._rank, frames), key=lambda one: one[0], default=(0, ""))[1]
            self._of_list[id(frames)] = found
        return found

    def _rank(self, frame: object) -> tuple[int, str]:
        found = self._of_frame.get(id(frame))
        if found is None:
            found = self._of_frame[id(frame)] = _rank(frame)
        return found


def _rank(frame: object) -> tuple[int, str]:
    """Return the rank of a frame, higher for the user's code and 0 for no frame, and its name."""
    if not isinstance(frame, dict):
        return 0, ""
    file, line, name = (frame.get(field) for field in ("filename", "line", "name"))
    if not (type(file) is str and type(name) is str and type(line) is int):
        return 0, ""
    parts = file.replace("\\", "/").split("/")
    python = file.endswith(".py")
    own = 3 if python and "torch" not in parts else 2 if python else 1
    return own, f"{parts[-1][-_SHOWN:]}:{line} {name[:_SHOWN]}"


def _get_line(place: str) -> str:
    """Return the line of a place, without the function."""
    found = re.match(r".+?:\d+(?= )", place)
    return found[0] if found else ""


def _check_rows(value: object, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise _BadFieldError(f"{where} is {shown(value)}; it must be a list")
    if not set(map(type, value)) <= {dict}:
        at = next(at for at, row in enumerate(value) if type(row) is not dict)
        raise _BadFieldError(f"{where}[{at}] is {shown(value[at])}; it must be a dictionary")
    return value


def _get_action(event: dict[str, Any], where: str) -> str:
    action = event.get("action")
    if type(action) is not str:
        raise _BadFieldError(f"{where}.action is {shown(action)}; it must be a string")
    return action


def _get_whole(row: dict[str, Any], field: str, where: str, default: int | None = None) -> int:
    value = row.get(field, default)
    # Addresses may have their highest bit set; `Problem` checks sizes again.
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise _BadFieldError(f"{where}.{field} is {shown(value)}; it must be a whole number")
    return value

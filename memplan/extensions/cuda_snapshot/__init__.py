"""Memory snapshots of PyTorch's CUDA caching allocator.

`torch.cuda.memory._dump_snapshot` pickles a dictionary: `device_traces` has the events of the
allocator on every device, oldest first, and `segments` the memory that it has at the end.

    alloc ............. free_requested .... free_completed      one buffer, on one address
         |<------------------- lifetime ------------------>|

Buffers have the names of the viewer at pytorch.org/memory_viz: `b7f064c000000_2` is the third
allocation at this address. A private pool, which a CUDA graph writes again at each replay, is one
buffer: `pool_0_1`.
"""

from __future__ import annotations

import json
import re
import zipfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplan.base.errors import FormatError, MemplanError, ProblemError, listed, shown
from memplan.base.files import read_bytes
from memplan.base.notes import Code, Note
from memplan.extensions.cuda_snapshot.plain_pickle import PickleError, load
from memplan.problem.trace import Trace, format_scope
from memplan.programs.sources.foreign import TORCH_PICKLE
from memplan.programs.sources.loaded import Failure, Figure, Label, Loaded
from memplan.programs.sources.options import Options

__all__ = ["matches", "read"]

_ALIGNMENT = 512  # of every block of the caching allocator

_SHOWN = 200  # characters of a file's or function's name, because many frames may share a long one
_STEPS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
_LIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")
_JSON = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*"(?:segments|device_traces|allocator_settings'
    rb'|external_annotations)"|\[\s*\{\s*"device"\s*:\s*\d+\s*,\s*"address")'
)
_DEFAULT_POOL = (0, 0)

_Rows = list[tuple[str, dict[str, Any]]]  # segments with their places in the snapshot
_Pool = tuple[int, int]


def matches(head: bytes, path: Path) -> bool:
    """Return whether a file with this beginning is a pickle (of protocol 2 or later).

    Snapshots that were saved as JSON or with `torch.save` are known by their fields.
    """
    is_pickle = len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5
    if is_pickle:
        return not head.startswith(TORCH_PICKLE)
    if head.startswith(b"PK\x03\x04"):
        inner = _unpack(path)
        return inner is not None and b"segments" in inner and b"total_size" in inner
    return _JSON.match(head) is not None


def read(path: Path, options: Options) -> Loaded:
    """Read a snapshot: the allocations on one device, which `options` may name."""
    data = read_bytes(path)
    try:
        snapshot = _parse(data, path)
    except ValueError as error:
        raise FormatError(str(path), str(error)) from None
    try:
        return _Snapshot(snapshot, len(data)).load(options.part)
    except (_BadFieldError, ProblemError) as error:
        raise FormatError(str(path), str(error)) from None


def _parse(data: bytes, path: Path) -> Any:
    """Return what is in a pickle, in JSON, or in what `torch.save` writes."""
    if data.startswith(b"\x80"):
        return load(data)
    if not data.startswith(b"PK"):
        try:
            return json.loads(data)
        except ValueError as error:
            raise PickleError(f"the file is not JSON, or is cut off: {error}") from None
    inner = _unpack(path)
    if inner is None:
        raise PickleError("the archive is damaged")
    return load(inner)


def _unpack(path: Path) -> bytes | None:
    """Return the pickle in a file of `torch.save`, which does not compress, or `None`."""
    try:
        with zipfile.ZipFile(path) as archive:
            for one in archive.infolist():
                if one.filename.endswith("/data.pkl") and one.compress_type == zipfile.ZIP_STORED:
                    return archive.read(one)
    except Exception:  # a damaged directory raises errors of many types
        return None
    return None


class _BadFieldError(ValueError):
    """An error for a field that PyTorch would not write."""


@dataclass(slots=True)
class _Allocation:
    address: int
    bytes: int
    start: int
    frames: object
    end: int = -1  # not yet
    pool: _Pool = _DEFAULT_POOL
    name: str = ""  # of a whole pool


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

    def load(self, asked: int | None) -> Loaded:
        histories = {device: self._read_history(device) for device in self._find_devices()}
        if not histories:
            raise _BadFieldError("the memory snapshot has no allocations")
        device, notes = _choose(histories, asked)
        history = histories[device]
        figures, failures = history.find_reserved()
        return _load_trace(
            history.found, figures, (*notes, *history.notes(), *_describe(failures)), failures
        )

    def _find_devices(self) -> list[int]:
        """Return the devices that have segments or events."""
        found = {
            _get_whole(segment, "device", f"segments[{at}]", 0)
            for at, segment in enumerate(self.segments)
        }
        return sorted(found | {device for device, trace in enumerate(self.traces) if trace})

    def _read_history(self, device: int) -> _History:
        trace = self.traces[device] if device < len(self.traces) else []
        segments = [
            (f"segments[{at}]", segment)
            for at, segment in enumerate(self.segments)
            if segment.get("device", 0) == device
        ]
        return _History(trace, f"device_traces[{device}]", segments)


def _choose(histories: dict[int, _History], asked: int | None) -> tuple[int, tuple[Note, ...]]:
    """Return the device that is asked for, or the one that held the most, and a note on others."""
    if asked is not None:
        if asked not in histories:
            known = listed([str(device) for device in histories], quote=False)
            raise MemplanError(f"the snapshot has no device {asked}; it has {known}")
        return asked, ()
    most = {device: history.find_peak() for device, history in histories.items()}
    device = max(most, key=lambda d: (most[d], -d))
    if len(most) == 1:
        return device, ()
    others = [f"{d} ({most[d]:,} bytes)" for d in most if d != device]
    failed = [str(d) for d in most if d != device and histories[d].failed]
    text = (
        f"only device {device} is planned, which held the most ({most[device]:,} bytes at once); "
        f"the snapshot also has {listed(others, quote=False)}: choose one with --read device=N"
    )
    if failed:
        text += f"; memory ran out on {listed(failed, quote=False)}"
    return device, (Note(Code.PARTLY_READ, text),)


def _describe(failures: tuple[Failure, ...]) -> tuple[Note, ...]:
    """Return a note on requests that the allocator could not serve, which no plan has."""
    if not failures:
        return ()
    one = max(failures, key=lambda each: each.asked)
    times = "" if len(failures) == 1 else f" {len(failures)} times, the largest"
    place = f" in {one.place}" if one.place else ""
    text = (
        f"PyTorch ran out of memory{times} at time {one.time}{place}: it asked for "
        f"{one.asked:,} bytes when the device had {one.free:,} free; the plan leaves this request "
        "out, and `memplan inspect` shows what held the rest"
    )
    return (Note(Code.OUT_OF_MEMORY, text),)


class _History:
    """The lifetimes of allocations; every `alloc`, `free_completed` and `oom` is a step of time."""

    def __init__(self, trace: list[dict[str, Any]], where: str, segments: _Rows) -> None:
        self.found: list[_Allocation] = []  # the allocations
        # By position in the trace: the time of each request that could not be served.
        self.failed: dict[int, int] = {}
        self._trace, self._where, self._segments = trace, where, segments
        self._pools = _Pools(segments, trace, where)
        self._live: dict[int, _Allocation] = {}
        self._now = 0
        self._early = 0
        self._joined = 0  # allocations that are in private pools
        for at, event in enumerate(trace):
            action = _get_action(event, f"{where}[{at}]")
            if action in ("alloc", "free_completed"):
                self._take_event(event, at, f"{where}[{at}]")
            elif action == "oom":
                self.failed[at] = self._now
                self._now += 1
        self._now = max(self._now, 1)
        for allocation in self._live.values():
            allocation.end = self._now
        self._add_blocks()
        self._join_pools()

    def _take_event(self, event: dict[str, Any], at: int, where: str) -> None:
        address, size = _get_whole(event, "addr", where), _get_whole(event, "size", where)
        old = self._live.pop(address, None)
        if old is not None:
            old.end = self._now
        made = _Allocation(address, size, self._now, event.get("frames"))
        made.pool = self._pools.find(address, at, event, where)
        if event["action"] == "alloc":
            self._live[address] = made
            self.found.append(made)
        elif old is None:  # the beginning of the trace is lost
            made.start, made.end = 0, self._now
            self.found.append(made)
            self._early += made.pool == _DEFAULT_POOL
        self._now += 1

    def _add_blocks(self) -> None:
        """Add the blocks that are live at the end and are not allocated in the trace."""
        for address, block, pool, where in _iterate_blocks(self._segments):
            if block.get("state") not in _LIVE or address in self._live:
                continue
            field = "requested_size" if "requested_size" in block else "size"
            size = _get_whole(block, field, where)
            made = _Allocation(address, size, 0, block.get("frames"), self._now, pool)
            self.found.append(made)
            self._early += pool == _DEFAULT_POOL

    def _join_pools(self) -> None:
        """Replace the allocations of each private pool by one, which lives to the end.

        A CUDA graph writes to its addresses again at each replay, when none of them is allocated.
        The places that the allocator chose are legal, so the bytes that any of them covers suffice.
        """
        inside: dict[_Pool, list[_Allocation]] = {pool: [] for pool in self._pools.old}
        for each in self.found:
            if each.pool != _DEFAULT_POOL:
                inside.setdefault(each.pool, []).append(each)
        self._joined = sum(map(len, inside.values()))
        self.found = [each for each in self.found if each.pool == _DEFAULT_POOL]
        for pool, members in sorted(inside.items()):
            old = self._pools.old.get(pool, [])
            spans = [(each.address, each.address + _round_up(each.bytes)) for each in members]
            start = 0 if old else min(each.start for each in members)
            size = _measure_union([*old, *spans])
            address = min(begin for begin, _ in [*old, *spans])
            name = f"pool_{pool[0]}_{pool[1]}"
            self.found.append(_Allocation(address, size, start, None, self._now, pool, name))

    def find_peak(self) -> int:
        """Return the most bytes that were live at once."""
        changes: Counter[int] = Counter()
        for each in self.found:
            changes[each.start] += each.bytes
            changes[each.end] -= each.bytes
        load = peak = 0
        for time in sorted(changes):
            load += changes[time]
            peak = max(peak, load)
        return peak

    def find_reserved(self) -> tuple[tuple[Figure, ...], tuple[Failure, ...]]:
        """Return the most that was reserved, computed backwards from the end, and each failure."""
        now = peak = sum(_get_whole(one, "total_size", place) for place, one in self._segments)
        failures = []
        for at in range(len(self._trace) - 1, -1, -1):
            event, place = self._trace[at], f"{self._where}[{at}]"
            action = _get_action(event, place)
            sign = _STEPS.get(action, 0)
            if sign:
                now -= sign * _get_whole(event, "size", place)
                peak = max(peak, now)
            elif action == "oom":
                asked, free = (
                    _get_whole(event, "size", place),
                    _get_whole(event, "device_free", place, 0),
                )
                line = _Places().of(event.get("frames"))
                kept = max(now, 0)
                failures.append(Failure(self.failed[at], asked, free, kept, line, _ALIGNMENT))
        figure = Figure("CUDA caching allocator", peak, "recorded", "reserved, in whole segments")
        return (figure,) if peak > 0 else (), tuple(reversed(failures))

    def notes(self) -> tuple[Note, ...]:
        """Return notes on what a better recording would have, and on private pools."""
        found = []
        if self._early:
            text = (
                f"{self._early} buffers are older than the trace and planned as live from its "
                "start: to get their lifetimes, start recording earlier, with a larger max_entries"
            )
            found.append(Note(Code.TRACE_INCOMPLETE, text))
        pools = [each for each in self.found if each.name]
        if pools:
            names = tuple(each.name for each in pools)
            size = sum(each.bytes for each in pools)
            text = (
                f"{self._joined} allocations are in private pools, which CUDA graphs write again "
                f"at each replay: each pool is one buffer ({listed(names, quote=False)}; "
                f"{size:,} bytes) that shares its memory with no later one"
            )
            found.append(Note(Code.PRIVATE_POOL, text, names))
        return tuple(found)


class _Pools:
    """Finds the pool of an address."""

    def __init__(self, segments: _Rows, trace: list[dict[str, Any]], where: str) -> None:
        born = {
            _get_whole(event, "addr", f"{where}[{at}]"): at
            for at, event in enumerate(trace)
            if event.get("action") in ("segment_alloc", "segment_map")
        }
        # By private pool: its segments `[begin, end)` that are older than the trace, so that the
        # trace may lack what was written there.
        self.old: dict[_Pool, list[tuple[int, int]]] = {}
        self._segments: list[tuple[int, int, int, _Pool]] = []  # begin, end, birth, pool
        for place, segment in segments:
            begin = _get_whole(segment, "address", place)
            end = begin + _get_whole(segment, "total_size", place)
            pool = _get_pool(segment, "segment_pool_id", place)
            self._segments.append((begin, end, born.get(begin, -1), pool))
            if pool != _DEFAULT_POOL and begin not in born:
                self.old.setdefault(pool, []).append((begin, end))
        self._segments.sort()
        self._begins = [segment[0] for segment in self._segments]

    def find(self, address: int, at: int, event: dict[str, Any], where: str) -> _Pool:
        """Return the pool of an event; older releases of PyTorch say it of segments only."""
        if "pool_id" in event:
            return _get_pool(event, "pool_id", where)
        row = bisect_right(self._begins, address) - 1
        if row >= 0:
            _, end, born, pool = self._segments[row]
            if address < end and at > born:
                return pool
        return _DEFAULT_POOL


def _round_up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _measure_union(spans: Iterable[tuple[int, int]]) -> int:
    """Return how many addresses are in at least one span."""
    total = top = 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, top))
        top = max(top, end)
    return total


def _iterate_blocks(segments: _Rows) -> Iterator[tuple[int, dict[str, Any], _Pool, str]]:
    """Yield the blocks of segments with their addresses, which old snapshots lack, and pools."""
    for place, segment in segments:
        address = _get_whole(segment, "address", place)
        pool = _get_pool(segment, "segment_pool_id", place)
        for at, block in enumerate(_check_rows(segment.get("blocks", []), f"{place}.blocks")):
            where = f"{place}.blocks[{at}]"
            yield _get_whole(block, "address", where, address), block, pool, where
            address += _get_whole(block, "size", where)


def _load_trace(
    found: list[_Allocation],
    figures: tuple[Figure, ...],
    notes: tuple[Note, ...],
    failures: tuple[Failure, ...],
) -> Loaded:
    """Return the allocations as a trace, whose scopes are lines of Python, and as a problem."""
    kept = sorted((a for a in found if a.end > a.start and a.bytes), key=lambda a: a.start)
    named = _Places()
    places = [f"private pool {a.pool}" if a.name else named.of(a.frames) for a in kept]
    trace = Trace.from_arrays(
        [a.start for a in kept],
        [a.end for a in kept],
        [a.bytes for a in kept],
        [((place, 0),) if place else () for place in places],
        address=[a.address for a in kept],
        alignment=_ALIGNMENT,
    )
    times: Counter[int] = Counter()
    ids = []
    for each in kept:
        ids.append(each.name or f"b{each.address:x}_{times[each.address]}")
        times[each.address] += not each.name
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
        failures=failures,
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


def _get_pool(row: dict[str, Any], field: str, where: str) -> _Pool:
    """Return the number of a pool; old snapshots have none, and JSON has lists for tuples."""
    value = row.get(field, _DEFAULT_POOL)
    match value:
        case [int(first), int(second)] if first >= 0 and second >= 0:
            return first, second
    raise _BadFieldError(f"{where}.{field} is {shown(value)}; it must be two whole numbers")

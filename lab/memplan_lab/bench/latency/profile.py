"""Memory in a profile: the CPU time by its use, and the time spent waiting.

`perf script` writes a stanza for each sample, innermost frame first:

    16785 23593.419005:   task-clock:
            ffffffff815ebeb5 do_anonymous_page ([kernel.kallsyms])
            ffffffff82000c82 asm_exc_page_fault ([kernel.kallsyms])
                       98109 _int_malloc (/usr/lib/x86_64-linux-gnu/libc.so.6)

and for each time that a thread stops and goes on:

    16785 23593.420110:   sched:sched_switch: prev_comm=... prev_state=S ==> next_comm=...
            ...
    16785 23593.420294: PERF_RECORD_SWITCH IN

In libraries without frame pointers a stack ends early. It still has the frames that are needed:
those of the kernel, and the function of the program that was running or called the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

_HEAD = re.compile(r"\s*(?:\S.*\s)?(\d+)\s+(\d+\.\d+):\s+(.*)")
_FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)$")
_STATE = re.compile(r"prev_state=(\S+)")

_FAULT = re.compile(r"exc_page_fault|do_page_fault|do_mem_abort")
_CALL = re.compile(r"_sys_(mmap|munmap|mremap|madvise|brk)$")
_LOCK = re.compile(r"rwsem_down|rwbase_|down_(read|write)")
_MUTEX = re.compile(r"__lll_lock_(wait|wake)|pthread_mutex_lock")
# These are the C library's; other allocators are recognised by their files.
_HEAP = re.compile(
    r"(_?_?(libc_)?(malloc|calloc|realloc|c?free|memalign|posix_memalign|aligned_alloc))$"
    r"|_int_(malloc|free|realloc|memalign)|_mid_memalign|sysmalloc|systrim|heap_trim"
    r"|malloc_consolidate|unlink_chunk|munmap_chunk|tcache|arena_get|alloc_perturb|__lll_lock"
)
_RUNNABLE = "R"


class Frame(NamedTuple):
    """A function, and the file it is in."""

    symbol: str
    file: str

    @property
    def in_kernel(self) -> bool:
        """Whether the kernel is at work."""
        return self.file.startswith("[")


class Sample(NamedTuple):
    """A moment of a thread; `event` is as perf writes it, `frames` begin with the innermost."""

    thread: int
    time: float
    event: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of some threads went."""

    samples: int  # on a CPU
    # allocator, faults, calls: Of these: in the allocator's own code; in page faults; in system
    # calls that map and unmap.
    allocator: int
    faults: int
    calls: int
    # Seconds off the CPU because of a lock of the allocator, or of the kernel's for memory.
    waiting_s: float
    waits: int  # how often


def read(lines: Iterable[str], threads: Collection[int], libraries: Collection[str]) -> Profile:
    """Count the samples of some threads."""
    counts = dict.fromkeys(("allocator", "faults", "calls", "other"), 0)
    stopped: dict[int, float] = {}
    waiting_s, waits = 0.0, 0
    for sample in _samples(lines):
        if sample.thread not in threads:
            continue
        if sample.event.startswith("task-clock"):
            counts[_kind(sample.frames, libraries)] += 1
        elif sample.event.startswith("sched:sched_switch"):
            if _waits(sample, libraries):
                stopped[sample.thread] = sample.time
        elif sample.event.startswith("PERF_RECORD_SWITCH IN") and sample.thread in stopped:
            waiting_s += sample.time - stopped.pop(sample.thread)
            waits += 1
    total = sum(counts.values())
    counts.pop("other")
    return Profile(total, **counts, waiting_s=waiting_s, waits=waits)


def _samples(lines: Iterable[str]) -> Iterator[Sample]:
    """Yield the stanzas; a line with a frame belongs to the head above it."""
    head: re.Match[str] | None = None
    frames: list[Frame] = []
    for line in lines:
        if frame := _FRAME.match(line):
            frames.append(Frame(frame[1], frame[2]))
        elif found := _HEAD.match(line):
            if head:
                yield Sample(int(head[1]), float(head[2]), head[3], tuple(frames))
            head, frames = found, []
    if head:
        yield Sample(int(head[1]), float(head[2]), head[3], tuple(frames))


def _kind(frames: Iterable[Frame], libraries: Collection[str]) -> str:
    for frame in frames:
        if not frame.in_kernel:
            return "allocator" if _is_allocator(frame, libraries) else "other"
        if _FAULT.search(frame.symbol):
            return "faults"
        if _CALL.search(frame.symbol):
            return "calls"
    return "other"


def _waits(sample: Sample, libraries: Collection[str]) -> bool:
    """Whether a thread stopped for a lock of the allocator, or of its address space."""
    state = _STATE.search(sample.event)
    if state is None or state[1].startswith(_RUNNABLE):
        return False  # it only lost its turn
    if any(_LOCK.search(frame.symbol) for frame in sample.frames):
        return _kind(sample.frames, libraries) in ("faults", "calls")
    outside = next((frame for frame in sample.frames if not frame.in_kernel), None)
    if outside is None:
        return False
    # The mutexes of a library wait in the C library, so that its own frame may be missing.
    return _is_allocator(outside, libraries) or bool(_MUTEX.match(outside.symbol))


def _is_allocator(frame: Frame, libraries: Collection[str]) -> bool:
    name = frame.file.rpartition("/")[2]
    if any(library in name for library in libraries):
        return True
    return name.startswith("libc.so") and bool(_HEAP.match(frame.symbol))

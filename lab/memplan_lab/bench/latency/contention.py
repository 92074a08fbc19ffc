"""The share of CPU time that goes into memory, and waiting for it (MemoMalloc, chapter 2.2).

A process serves a network with several request threads, under `perf record`, which samples its CPU
time, and every moment at which a thread stops. The paper measured one function of jemalloc; here
all functions that manage memory count, so that allocators can be compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from memplan.base.errors import MemplanError
from memplan_lab.bench.bar import bar, no_step
from memplan_lab.bench.child import ChildError, ask
from memplan_lab.bench.latency.allocators import KNOWN, Allocator
from memplan_lab.bench.latency.profile import Profile, read
from memplan_lab.bench.latency.rows import Case
from memplan_lab.bench.latency.runner import GRACE, ONE_EACH, cases
from memplan_lab.bench.latency.server import Load, Served

_SERVER = (sys.executable, "-m", "memplan_lab.bench.latency.server")
_HERTZ = 3999
_FIELDS = "tid,time,event,ip,sym,dso,trace"

_EXTENSION = "memplan_slab"  # the allocator of `memplan.extensions.slab`


@dataclass(frozen=True, slots=True)
class Contention:
    """One process under the profiler."""

    case: Case  # what was served
    allocator: str  # under which it ran
    slab: bool  # whether through a slab
    # Its request threads and inferences, or None where there was an error.
    served: Served | None = None
    # Where the time of the request threads went, or None where there was an error.
    profile: Profile | None = None
    error: str = ""  # one sentence, or empty


def run(
    networks: Sequence[str] | None = None,
    *,
    sizes: Sequence[int] = (128,),
    batches: Sequence[int] = (1,),
    threads: Sequence[int] = (1, 2, 4, 8),
    allocators: Sequence[Allocator] = (KNOWN["glibc"],),
    seconds: float = 3.0,
    progress: bool = False,
    on_row: Callable[[Contention], None] | None = None,
) -> list[Contention]:
    """Profile every network eager under every allocator, and through a slab under the first."""
    if shutil.which("perf") is None:
        raise MemplanError(
            "contention is measured with perf, which is not installed; install linux-perf"
        )
    ways = [(allocators[0], True), *((allocator, False) for allocator in allocators)]
    todo = list(product(cases(networks, sizes, batches, threads), ways))
    rows = []
    with bar(len(todo)) if progress else nullcontext(no_step) as step:
        for case, (allocator, slab) in todo:
            step(f"{case.name} · {case.threads} threads · {'slab' if slab else allocator.name}")
            row = _row(case, allocator, slab, seconds)
            rows.append(row)
            if on_row:
                on_row(row)
    return rows


def _row(case: Case, allocator: Allocator, slab: bool, seconds: float) -> Contention:
    try:
        served, profile = _profile_server(case, allocator, slab, seconds)
    except ChildError as error:
        return Contention(case, allocator.name, slab, error=str(error))
    return Contention(case, allocator.name, slab, served, profile)


def _profile_server(
    case: Case, allocator: Allocator, slab: bool, seconds: float
) -> tuple[Served, Profile]:
    with TemporaryDirectory(prefix="memplan-perf-") as folder:
        data, control, acknowledge = (Path(folder) / name for name in ("data", "control", "answer"))
        os.mkfifo(control)
        os.mkfifo(acknowledge)
        load = Load(
            network=case.network,
            size=case.size,
            batch=case.batch,
            threads=case.threads,
            library=allocator.library,
            slab=slab,
            seconds=seconds,
            control=str(control),
            acknowledge=str(acknowledge),
        )
        recorder = (
            *("perf", "record", "-q", "-g", "-F", str(_HERTZ), "-o", str(data)),
            *("-e", "task-clock", "-e", "sched:sched_switch", "--switch-events"),
            *("-D", "-1", "--control", f"fifo:{control},{acknowledge}", "--"),
            # The profiler itself keeps its own allocator.
            *("env", *(f"{name}={value}" for name, value in allocator.environment.items())),
        )
        answer = ask(
            (*recorder, *_SERVER), asdict(load), timeout=GRACE + seconds, environment=ONE_EACH
        )
        served = Served(tuple(answer["threads"]), answer["inferences"])
        libraries = {_EXTENSION}
        if allocator.library:  # maps have the names of files, not of links to them
            libraries.add(os.path.basename(os.path.realpath(allocator.library)))
        return served, _read(data, served, libraries)


def _read(data: Path, served: Served, libraries: set[str]) -> Profile:
    command = ("perf", "script", "-i", str(data), "-F", _FIELDS, "--show-switch-events")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    ) as script:
        assert script.stdout is not None
        profile = read(script.stdout, served.threads, libraries)
    if not profile.samples:
        raise ChildError(
            "perf recorded no samples; lower kernel.perf_event_paranoid, or run as root"
        )
    return profile

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
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memplan.base.errors import MemplanError
from memplan_lab.bench import experiment
from memplan_lab.bench.child import ChildError, ask
from memplan_lab.bench.experiment import (
    Arm,
    Experiment,
    Rows,
    Setting,
    Settings,
    read_count,
    read_list,
    read_seconds,
    ready,
)
from memplan_lab.bench.experiments import latency
from memplan_lab.bench.experiments.latency import GRACE, ONE_EACH
from memplan_lab.bench.latency import report
from memplan_lab.bench.latency.allocators import Allocator
from memplan_lab.bench.latency.profile import Profile, read
from memplan_lab.bench.latency.rows import Case, Contention, Served
from memplan_lab.bench.latency.server import Load
from memplan_lab.bench.tables import Shown

_SERVER = (sys.executable, "-m", "memplan_lab.bench.latency.server")
_HERTZ = 3999
_FIELDS = "tid,time,event,ip,sym,dso,trace"
_EXTENSION = "memplan_slab"  # the allocator of `memplan.extensions.slab`


def _list_cases(settings: Settings) -> Iterator[experiment.Case]:
    if shutil.which("perf") is None:
        raise MemplanError(
            "contention is measured with perf, which is not installed; install linux-perf"
        )
    for case in latency.list_cases(settings):
        yield experiment.Case(case.name, ready(case))


def _list_arms(settings: Settings) -> Iterator[Arm]:
    """Yield a slab under the first allocator, and each of them in eager mode."""
    allocators = latency.list_allocators(settings, ("glibc",))
    for slab, allocator in ((True, allocators[0]), *((False, each) for each in allocators)):
        run = partial(measure, allocator, slab, settings["seconds"])
        yield Arm("slab" if slab else allocator.name, run)


def measure(allocator: Allocator, slab: bool, seconds: float, case: Case) -> Mapping[str, Any]:
    """Profile a process; a failure in it is a row."""
    try:
        served, profile = _profile_server(case, allocator, slab, seconds)
    except ChildError as error:
        return Contention(case, allocator.name, slab, error=str(error)).figures()
    return Contention(case, allocator.name, slab, served, profile).figures()


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


def _make_tables(rows: Rows, _: Settings) -> Iterator[Shown]:
    yield from report.failures(rows)
    yield report.contention([Contention.of(row) for row in rows if not row["error"]])


EXPERIMENT = Experiment(
    "contention",
    "the share of CPU time spent on memory when requests run in parallel; needs perf",
    figures={
        "slab": "whether through a slab, or eager",
        "served": "request threads by the system's number, and inferences",
        "profile": "samples of CPU time by where they were, and seconds of waiting for locks",
        "error": "one sentence, or empty",
    },
    cases=_list_cases,
    arms=_list_arms,
    tables=_make_tables,
    takes=("case", "peer", "limit"),
    own={
        "networks": latency.NETWORKS,
        "inputs": Setting((128,), latency.INPUTS, read_list(read_count)),
        "batches": Setting((1,), latency.BATCHES, read_list(read_count)),
        "threads": Setting((1, 2, 4, 8), latency.THREADS, read_list(read_count)),
        "seconds": Setting(3.0, "for which each process is profiled", read_seconds),
    },
    wrong=latency.explain_failures,
)

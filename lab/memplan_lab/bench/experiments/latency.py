"""Latency of networks in PyTorch, eager and through a slab, under several allocators.

This is chapter 4 of MemoMalloc on open tools. Each network is measured in a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
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
from memplan_lab.bench.latency import report
from memplan_lab.bench.latency.allocators import Allocator, parse
from memplan_lab.bench.latency.rows import Case, Outcome, Request, Row
from memplan_lab.bench.tables import Shown

_WORKER = (sys.executable, "-m", "memplan_lab.bench.latency.worker")
_ALLOCATORS = ("glibc", "glibc-tuned")

# Seconds to import, to compile the extension on first use, to record and to plan.
GRACE = 300.0

# Operators run on the thread of their request, so that its CPU time is all that an inference takes.
ONE_EACH = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _list_cases(settings: Settings) -> Iterator[experiment.Case]:
    training = settings["training"]
    threads = (1,) if training else _cap(settings["threads"])
    for case in list_cases({**settings, "threads": threads}):
        whole = replace(case, training=training)
        yield experiment.Case(whole.name, ready(whole))


def list_cases(settings: Settings) -> Iterator[Case]:
    """Yield each network with each input, for each number of request threads."""
    from memplan_lab.bench.models import NETWORKS

    for network in settings["networks"]:
        if network not in NETWORKS:
            raise MemplanError(
                f"there is no network {network!r}; choose from {', '.join(NETWORKS)}"
            )
    names = settings["networks"] or NETWORKS
    for threads, network, size, batch in product(
        settings["threads"], names, settings["inputs"], settings["batches"]
    ):
        yield Case(network, size, batch, threads)


def _cap(threads: Sequence[int]) -> Sequence[int]:
    """Return the numbers of threads without those above the cores of this machine, with a note."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    capped = tuple(dict.fromkeys(min(count, cores or 1) for count in threads))
    if capped != tuple(threads):
        text = ",".join(map(str, capped))
        sys.stderr.write(f"memplan: this machine has {cores} cores; measured threads: {text}\n")
    return capped


def list_allocators(settings: Settings, default: Sequence[str] = _ALLOCATORS) -> list[Allocator]:
    """Return the allocators that are asked for; the first is the one that slabs run under."""
    found = [parse(text) for text in settings["peer"] or default]
    if len({allocator.name for allocator in found}) < len(found):
        raise MemplanError(
            "two allocators have the same name; the tables could not distinguish them"
        )
    return found


def _list_arms(settings: Settings) -> Iterator[Arm]:
    """Yield the allocators, which take turns in every round."""
    for number, allocator in product(range(settings["rounds"]), list_allocators(settings)):
        limits = settings["runs"], settings["seconds"]
        yield Arm(allocator.name, partial(_measure, allocator, number, *limits))


def _measure(
    allocator: Allocator, number: int, runs: int, seconds: float, case: Case
) -> Mapping[str, Any]:
    """Measure a case in a process; a failure in it (a crash, a missing library) is a row."""
    request = Request(**asdict(case), library=allocator.library, runs=runs, seconds=seconds)
    try:
        answer = ask(
            _WORKER,
            asdict(request),
            timeout=GRACE + 10 * seconds,
            environment=allocator.environment | ONE_EACH,
        )
        outcome = Outcome.from_json(answer)
    except ChildError as error:
        outcome = Outcome(error=str(error))
    return Row(case, allocator.name, number, outcome).figures()


def _make_tables(rows: Rows, _: Settings) -> Iterator[Shown]:
    every = [Row.of(row) for row in rows]
    yield from report.failures(rows)
    if any(not row["error"] for row in rows):
        yield report.overview(every)
        yield report.spread(every)


def _make_details(rows: Rows, _: Settings) -> Iterator[Shown]:
    if any(not row["error"] for row in rows):
        every = [Row.of(row) for row in rows]
        yield report.decided(every)
        yield report.by_network(every)
        yield report.cases(every)
        yield report.plans(every)


def explain_failures(rows: Rows) -> str:
    """Return a sentence if nothing was measured."""
    if all(row["error"] for row in rows):
        return f"nothing was measured; {rows[0]['case']} ({rows[0]['arm']}): {rows[0]['error']}"
    return ""


NETWORKS = Setting(
    (), "networks of `memplan_lab.bench.models`, with commas; default: all", read_list(str)
)
BATCHES = "batch sizes"
INPUTS = "sides of images, or numbers of tokens"
THREADS = "numbers of concurrent requests"

EXPERIMENT = Experiment(
    "latency",
    "networks of PyTorch from one slab and in eager mode, under each allocator",
    figures={
        "eager": "seconds of CPU and by the clock, and page faults, of an inference; and `slab`",
        "allocations": "of an inference; `planned` of them lie in the slab",
        "peak": "bytes of the plan, and `max_load` that are live at the worst moment",
        "result_bytes": "bytes of an inference that outlive it",
        "sizes": "by k: planned allocations of at least 2^k and less than 2^(k+1) bytes",
        "bytes": "of all planned allocations, and `large_bytes` of those of 128 KiB or more",
        "greedy_s": "seconds to plan by size, and `auto_s` with the default solver",
        "hits": "allocations of an inference that the slab served, and `fallbacks` that it did not",
        "active": "bytes in active extents of jemalloc after each operator",
        "equal": "whether outputs were those of eager, bit for bit",
        "error": "one sentence, or empty",
    },
    cases=_list_cases,
    arms=_list_arms,
    tables=_make_tables,
    details=_make_details,
    takes=("case", "peer", "limit"),
    own={
        "networks": NETWORKS,
        "inputs": Setting((128, 256), INPUTS, read_list(read_count)),
        "batches": Setting((1, 4, 8), BATCHES, read_list(read_count)),
        "threads": Setting((1, 2), THREADS, read_list(read_count)),
        "training": Setting(False, "training steps, with one request thread"),
        "rounds": Setting(3, "processes for each allocator and input", read_count),
        "runs": Setting(24, "inferences of each process; at least 3 within `seconds`", read_count),
        "seconds": Setting(4.0, "measuring time of a process", read_seconds),
    },
    wrong=explain_failures,
)

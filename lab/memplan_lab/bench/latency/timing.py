"""Inferences of several kinds, measured in turns by one or more threads at once."""

from __future__ import annotations

import gc
import math
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from statistics import median
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

from memplan_lab.bench.latency.rows import Timing

# Kinds take turns in blocks, so that a slower machine affects all of them, and within a block the
# caches have the data of the same kind.
_BLOCK_SECONDS = 0.1
_BLOCK_RUNS = 8
_LEAST_RUNS = 3

T = TypeVar("T")

Timed = Callable[[], object]
Sample = tuple[float, float, int]  # CPU, wall clock, page faults


def alternate(
    calls: Sequence[Timed], *, threads: int, runs: int, seconds: float
) -> tuple[Timing, ...]:
    """Return medians for each kind."""
    estimate = max(_take_sample(call)[1] for call in calls for _ in range(2))
    block = min(_BLOCK_RUNS, runs, max(1, int(_BLOCK_SECONDS / estimate)))
    session = _Session(calls, threads, block, math.ceil(runs / block), seconds)
    gc.collect()
    gc.disable()  # its pauses would count for the kind that runs
    try:
        with ThreadPoolExecutor(threads) as pool:
            done = [pool.submit(session.serve) for _ in range(threads)]
            samples = results(done)
    finally:
        gc.enable()
    return tuple(
        _medians([sample for mine in samples for sample in mine[kind]])
        for kind in range(len(calls))
    )


def results(threads: Sequence[Future[T]]) -> list[T]:
    """Return the results of threads; raise the first cause, not the broken barrier after it."""
    wait(threads)
    errors = [error for thread in threads if (error := thread.exception())]
    for error in sorted(errors, key=lambda error: isinstance(error, BrokenBarrierError)):
        raise error
    return [thread.result() for thread in threads]


class _Session:
    """What the threads share: when a block begins, and when it was the last."""

    def __init__(
        self, calls: Sequence[Timed], threads: int, block: int, blocks: int, seconds: float
    ) -> None:
        self._calls = calls
        self._block = block
        self._blocks = blocks
        self._deadline = time.monotonic() + seconds
        self._begun = 0
        self._over = False
        self._start = Barrier(threads)
        self._turn = Barrier(threads, self._next)

    def _next(self) -> None:
        enough = self._begun * self._block >= _LEAST_RUNS
        late = enough and time.monotonic() > self._deadline
        self._over = late or self._begun == self._blocks
        self._begun += 1

    def serve(self) -> list[list[Sample]]:
        """Return the samples of one thread, kind by kind."""
        try:
            return self._blocks_of_samples()
        except BaseException:
            self._start.abort()
            self._turn.abort()
            raise

    def _blocks_of_samples(self) -> list[list[Sample]]:
        samples: list[list[Sample]] = [[] for _ in self._calls]
        while self._turn.wait() >= 0 and not self._over:
            kinds = list(enumerate(self._calls))
            for kind, call in kinds if self._begun % 2 else reversed(kinds):
                self._start.wait()
                if self._block > 1:
                    call()  # so that the caches are its own
                samples[kind] += [_take_sample(call) for _ in range(self._block)]
        return samples


def _take_sample(call: Timed) -> Sample:
    faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    wall, cpu = time.perf_counter(), time.thread_time()
    call()
    cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
    return cpu, wall, resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - faults


def _medians(samples: Sequence[Sample]) -> Timing:
    return Timing(*(float(median(values)) for values in zip(*samples, strict=True)))

"""Request threads that only serve one network, while a profiler records them.

`python -m memplan_lab.bench.latency.server < request`; see `memplan_lab.bench.latency.contention`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Barrier, BrokenBarrierError, get_native_id
from typing import Any

from memplan_lab.bench.latency.rows import Served
from memplan_lab.bench.latency.timing import results
from memplan_lab.bench.latency.worker import check_loaded

_WARM_RUNS = 3


@dataclass(frozen=True, slots=True)
class Load:
    """What to serve."""

    # network, size, batch, threads: See `Case`.
    network: str
    size: int
    batch: int
    threads: int
    library: str  # what has to be loaded, or ""
    slab: bool  # whether through a slab, or eager
    seconds: float  # how long
    # control, acknowledge: Pipes to and from the profiler.
    control: str
    acknowledge: str


def main() -> None:
    """Serve the request on standard input."""
    load = Load(**json.load(sys.stdin))
    print(json.dumps(asdict(serve(load))), flush=True)


def serve(load: Load) -> Served:
    """Warm up, let the profiler begin, serve, let it end."""
    check_loaded(load.library)
    import torch

    from memplan_lab.bench.models import NETWORKS

    torch.set_num_threads(1)
    module, inputs = NETWORKS[load.network](load.batch, load.size)
    with ExitStack() as stack:
        call = stack.enter_context(_slab(module, inputs)) if load.slab else module
        warm = Barrier(load.threads + 1)
        go = Barrier(load.threads + 1)

        def thread() -> tuple[int, int]:
            try:
                with torch.inference_mode():
                    for _ in range(_WARM_RUNS):
                        call(*inputs)
                    warm.wait()
                    go.wait()
                    return get_native_id(), _count(lambda: call(*inputs), load.seconds)
            except BaseException:
                warm.abort()
                raise

        with ThreadPoolExecutor(load.threads) as pool:
            serving = [pool.submit(thread) for _ in range(load.threads)]
            with suppress(BrokenBarrierError):  # a thread failed: its error is a result
                warm.wait()
                with _profile(Path(load.control), Path(load.acknowledge)):
                    go.wait()
                    wait(serving)
            done = results(serving)
    return Served(tuple(number for number, _ in done), sum(count for _, count in done))


@contextmanager
def _slab(module: Any, inputs: tuple[Any, ...]) -> Iterator[Any]:
    from memplan.extensions.slab import Slab, record
    from memplan.solvers import solve

    trace = record(module, inputs)
    with Slab(solve(trace.problem(), timeout=1.0), trace) as fast:
        yield fast


def _count(call: Callable[[], object], seconds: float) -> int:
    """Call again and again; return how often."""
    deadline = time.monotonic() + seconds
    count = 0
    while time.monotonic() < deadline:
        call()
        count += 1
    return count


@contextmanager
def _profile(control: Path, acknowledge: Path) -> Iterator[None]:
    """Switch `perf record` on, and off again."""
    with control.open("w") as commands, acknowledge.open() as answers:

        def send(command: str) -> None:
            print(command, file=commands, flush=True)
            answers.readline()

        send("enable")
        yield
        send("disable")


if __name__ == "__main__":
    main()

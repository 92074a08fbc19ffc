"""Networks x inputs x allocators -> rows, each measured in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import product

from memplan.base.errors import MemplanError
from memplan_lab.bench.bar import bar, no_step
from memplan_lab.bench.child import ChildError, ask
from memplan_lab.bench.latency.allocators import KNOWN, Allocator
from memplan_lab.bench.latency.rows import Case, Outcome, Request, Row

_WORKER = (sys.executable, "-m", "memplan_lab.bench.latency.worker")

# Seconds to import, to compile the extension on first use, to record and to plan.
GRACE = 300.0

# Operators run on the thread of their request, so that its CPU time is all that an inference takes.
ONE_EACH = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def run(
    networks: Sequence[str] | None = None,  # names of `memplan_lab.bench.models.NETWORKS`
    *,
    sizes: Sequence[int] = (128, 256),
    batches: Sequence[int] = (1, 4, 8),
    threads: Sequence[int] = (1, 2),
    allocators: Sequence[Allocator] = tuple(KNOWN.values()),
    training: bool = False,
    rounds: int = 3,
    runs: int = 24,
    seconds: float = 4.0,
    progress: bool = False,
    on_row: Callable[[Row], None] | None = None,  # called with each row as it comes
) -> list[Row]:
    """Measure every network, for every input, under every allocator.

    Allocators take turns in every round, so that a slower machine affects all of them. A failure in
    a process (a crash, a library that does not load) becomes a row.
    """
    _check_counts(rounds=[rounds], runs=[runs])
    if len({allocator.name for allocator in allocators}) < len(allocators):
        raise MemplanError(
            "two allocators have the same name; the tables could not distinguish them"
        )
    if training and set(threads) != {1}:
        raise MemplanError(
            "threads that train one model at the same time would change each other's parameters; "
            "training takes one thread"
        )
    found = [replace(case, training=training) for case in cases(networks, sizes, batches, threads)]
    todo = list(product(found, range(rounds), allocators))
    rows = []
    with bar(len(todo)) if progress else nullcontext(no_step) as step:
        for case, number, allocator in todo:
            step(f"{case.name} · {allocator.name}")
            request = Request(**asdict(case), library=allocator.library, runs=runs, seconds=seconds)
            row = Row(case, allocator.name, number, _measure(request, allocator))
            rows.append(row)
            if on_row:
                on_row(row)
    return rows


def cases(
    networks: Sequence[str] | None,
    sizes: Sequence[int],
    batches: Sequence[int],
    threads: Sequence[int],
) -> Iterator[Case]:
    """Yield every case; an unknown network or a count below 1 is a `MemplanError`."""
    from memplan_lab.bench.models import NETWORKS

    _check_counts(sizes=sizes, batches=batches, threads=threads)
    for network in networks or ():
        if network not in NETWORKS:
            raise MemplanError(
                f"there is no network {network!r}; choose from {', '.join(NETWORKS)}"
            )
    for count, network, size, batch in product(threads, networks or NETWORKS, sizes, batches):
        yield Case(network, size, batch, count)


def _check_counts(**counts: Sequence[int]) -> None:
    """Refuse what is below 1, by its name."""
    for what, values in counts.items():
        if min(values) < 1:
            raise MemplanError(f"{what} is {min(values)}; it must be at least 1")


def _measure(request: Request, allocator: Allocator) -> Outcome:
    try:
        answer = ask(
            _WORKER,
            asdict(request),
            timeout=GRACE + 10 * request.seconds,
            environment=allocator.environment | ONE_EACH,
        )
    except ChildError as error:
        return Outcome(error=str(error))
    return Outcome.from_json(answer)

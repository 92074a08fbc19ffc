"""A sweep from its settings to its folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memplan.base.errors import MemplanError
from memplan_lab.bench.files import find_versions, machine
from memplan_lab.extras import require
from memplan_lab.sweep.cluster import LOCAL, connect, describe_workers
from memplan_lab.sweep.dataset import Dataset, check
from memplan_lab.sweep.dispatch import Dispatcher
from memplan_lab.sweep.results import Result
from memplan_lab.sweep.tasks import Settings, items

if TYPE_CHECKING:
    from distributed import Client

_LIBRARIES = ("memplan", "numpy", "dask", "distributed", "pyarrow")


@dataclass(frozen=True, slots=True)
class Effort:
    """What this session cost."""

    ran: int  # tasks that it ran
    runs: int  # solves: short ones are repeated
    solve_s: float  # seconds of them all
    wall_s: float  # seconds from the first task to the last row
    threads: int  # tasks that the workers could run at once

    @property
    def overhead(self) -> float | None:
        """The time beyond solving, as a share of the time of solving; None where none was done."""
        return self.wall_s * self.threads / self.solve_s - 1 if self.solve_s else None


def run(
    settings: Settings,
    folder: str | os.PathLike[str],
    *,
    scheduler: str = LOCAL,
    workers: int | None = None,
    resume: bool = False,
    command: Sequence[str] = (),
    on_begin: Callable[[int, int], object] | None = None,
    on_result: Callable[[Result], object] | None = None,
) -> Effort:
    """Run all tasks of a sweep that have no row yet.

    A task that fails (an error, a crash, too much time or memory, a worker that dies) is tried once
    more, and then is a row like any other. An interrupt (`KeyboardInterrupt`) passes through, and
    leaves a folder that can be read and resumed.

    Parameters
    ----------
    settings
        Which tasks.
    folder
        Of the results; see `memplan_lab.sweep.results`.
    scheduler
        "local" for processes of this machine, or the address of a scheduler of Dask.
    workers
        How many processes, where they are local; None: one for each CPU.
    resume
        Go on with the sweep that the folder holds.
    command
        What a user typed, for the metadata.
    on_begin
        Called once with the number of tasks, and how many of them have a row.
    on_result
        Called with each row as it comes.

    Raises
    ------
    MemplanError
        For an unknown suite or solver, a folder with other contents, and a cluster that cannot be
        used.
    MissingExtraError
        Without Dask distributed and pyarrow, or what a solver needs.
    """
    for library in ("distributed", "pyarrow.dataset"):
        require(library, extra="sweep")
    if workers is not None and workers < 1:
        raise MemplanError(f"workers is {workers}; there must be at least 1")
    cases = settings.cases()
    total = len(cases) * settings.tasks_of_a_case()
    check(Path(folder), settings, resume=resume)
    with connect(scheduler, workers, settings.memory) as client:
        session = _session(client, settings, scheduler, command)
        with Dataset(Path(folder), settings, total) as dataset:
            dataset.begin(session)
            meter = _Meter(on_result)
            if on_begin:
                on_begin(total, len(dataset.done))
            Dispatcher(client, dataset, total, meter).run(items(settings, cases))
            effort = meter.effort(sum(client.nthreads().values()))
            dataset.compact()
    return effort


class _Meter:
    """Counts what comes, on its way to the caller."""

    def __init__(self, on_result: Callable[[Result], object] | None) -> None:
        self._on_result = on_result
        self._begun_at = time.monotonic()
        self._ran = 0
        self._runs = 0
        self._solve_s = 0.0

    def __call__(self, result: Result) -> None:
        self._ran += 1
        self._runs += result.runs or 0
        self._solve_s += result.solve_s or 0.0
        if self._on_result:
            self._on_result(result)

    def effort(self, threads: int) -> Effort:
        wall_s = time.monotonic() - self._begun_at
        return Effort(self._ran, self._runs, self._solve_s, wall_s, threads)


def _session(
    client: Client, settings: Settings, scheduler: str, command: Sequence[str]
) -> dict[str, Any]:
    """Return what `metadata.json` says of one run: the command, versions and machines."""
    libraries = settings.libraries()
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "scheduler": scheduler,
        "versions": find_versions((*_LIBRARIES, *libraries)),
        "machine": machine(),
        "workers": describe_workers(client, libraries),
    }

"""What runs on a worker of Dask: tasks, each in a process of its own."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from memplan_lab.bench import processes
from memplan_lab.bench.files import machine
from memplan_lab.bench.processes import Work
from memplan_lab.bench.rows import Outcome

_ENOUGH = 2.0  # seconds, after which a bundle is returned incomplete: the rest may take long


@dataclass(frozen=True, slots=True)
class Bundle:
    """One task of Dask: works that run one after the other."""

    # session, ticket: The sweep that it belongs to, and a name of its own.
    session: str
    ticket: str
    # Several where they are short, so that they share the few milliseconds of Dask's own.
    works: Sequence[Work]


@dataclass(frozen=True, slots=True)
class Reply:
    """How a work ended."""

    outcome: Outcome  # of the task
    started: datetime  # by the clock of the worker
    seconds: float  # that it took altogether, on the worker
    worker: str  # its address

    def event(self, ticket: str) -> dict[str, Any]:
        """Return it as what Dask takes for an event, for the next work of a bundle."""
        return {"ticket": ticket, "reply": pickle.dumps(self)}

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Reply:
        """Return the reply of an event that `event` made."""
        reply: Reply = pickle.loads(event["reply"])
        return reply


def run_bundle(bundle: Bundle) -> None:
    """Run the works of a bundle, unless it has already begun on a worker that died.

    Dask runs the tasks of a dead worker again, as often as the scheduler is configured to. The
    sweep counts the attempts of a task itself, so a bundle that has begun is not started again; a
    bundle that only waited on the dead worker is. Each reply is sent at once as an event of Dask,
    and survives the worker. The function returns nothing, because the client would have to fetch
    it.
    """
    from distributed import get_worker

    worker = get_worker()
    if not _claim(worker, bundle.session, bundle.ticket):
        worker.log_event(bundle.session, {"ticket": bundle.ticket, "lost": True})
        return
    begun_at = time.monotonic()
    for work in bundle.works:
        if work is not bundle.works[0] and time.monotonic() - begun_at > _ENOUGH:
            break
        reply = _run(work, worker.address)
        worker.log_event(bundle.session, reply.event(bundle.ticket))


def _run(work: Work, worker: str) -> Reply:
    started, begun_at = datetime.now(UTC), time.monotonic()
    with processes.borrow() as zygote:
        outcome = zygote.run(work)
    return Reply(outcome, started, time.monotonic() - begun_at, worker)


def _claim(worker: Any, session: str, ticket: str) -> bool:
    """Note that a bundle begins, at the scheduler, which outlives the worker; false if it had."""
    from distributed.utils import sync

    async def claim() -> bool:
        keys = [session, ticket]
        if await worker.scheduler.get_metadata(keys=keys, default=None):
            return False
        await worker.scheduler.set_metadata(keys=keys, value=worker.address)
        return True

    return bool(sync(worker.loop, claim))


def describe(libraries: Sequence[str]) -> dict[str, Any]:
    """Return what a worker is and which of these libraries it lacks; start its warm process."""
    with processes.borrow():
        pass
    return {**machine(), "missing": [name for name in libraries if find_spec(name) is None]}

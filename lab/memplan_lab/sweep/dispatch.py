"""The client's side of a running sweep: a few tasks in flight, rows as they come, one retry."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from itertools import count, islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from memplan.base.errors import MemplanError
from memplan_lab.bench.processes import Work
from memplan_lab.bench.rows import SOLVED, Outcome
from memplan_lab.sweep.dataset import Dataset
from memplan_lab.sweep.remote import Bundle, Reply, run_bundle
from memplan_lab.sweep.results import Result
from memplan_lab.sweep.tasks import Item

if TYPE_CHECKING:
    from distributed import Client, Future

_ATTEMPTS = 2
_DEPTH = 3  # bundles in flight for each thread of a worker: one runs, one waits there, one here
_BUNDLE = 1.0  # seconds that a bundle should take
_MOST = 64  # tasks in it
_NEW = 0.3  # how much the last task counts for the size of the next bundle
_LEAST = 1e-3  # seconds of a task
_LOOK = 5.0  # seconds between two looks at the workers
_PATIENCE = 0.5  # seconds to wait for a result before a look at the workers
# After these ends a second attempt may have an answer.
_FAILURES = frozenset({"error", "killed", "failed"})


class _Event(Enum):
    """What workers say of a bundle, other than replies."""

    LOST = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class _Try:
    item: Item
    attempt: int


@dataclass(slots=True)
class _Flight:
    tries: Sequence[_Try]
    future: Future
    replies: int = 0  # so many of the first tries have ended
    lost: bool = False  # the bundle began on a worker that died


class Dispatcher:
    """Runs items on a cluster and hands their rows to a dataset."""

    def __init__(
        self,
        client: Client,
        dataset: Dataset,
        total: int,
        on_result: Callable[[Result], object],
    ) -> None:
        self._client = client
        self._dataset = dataset
        self._total = total
        self._on_result = on_result
        self._session = f"memplan-sweep-{secrets.token_hex(4)}"
        self._tickets = map(str, count())
        self._flights: dict[str, _Flight] = {}  # by ticket
        self._landed: SimpleQueue[tuple[str, Reply | _Event | BaseException]] = SimpleQueue()
        self._waiting: deque[_Try] = deque()  # before all that is new
        self._seconds = _BUNDLE  # that a task took of late, with all that is around it
        self._threads = 1
        self._looked_at = -_LOOK

    def run(self, items: Iterator[Item]) -> None:
        """Run all items that have no row yet; return when every one has."""
        todo = (item for item in items if item.task.key not in self._dataset.done)
        self._client.subscribe_topic(self._session, self._on_event)
        try:
            while self._fill(todo):
                self._dataset.tick()
                try:
                    landed = self._landed.get(timeout=_PATIENCE)
                except Empty:
                    continue
                self._land(*landed)
        finally:
            self._forget()

    def _fill(self, todo: Iterator[Item]) -> bool:
        """Send bundles until the workers have enough; return whether any is in flight."""
        self._look()
        while len(self._flights) < _DEPTH * self._threads:
            tries = list(islice(self._tries(todo), self._size()))
            if not tries:
                break
            self._send(tries)
        return bool(self._flights)

    def _size(self) -> int:
        """Return how many tasks go into a bundle; few at the end, so that all end together."""
        left = (
            self._total
            - len(self._dataset.done)
            - sum(len(flight.tries) - flight.replies for flight in self._flights.values())
        )
        share = left // (_DEPTH * self._threads)
        return max(1, min(_MOST, int(_BUNDLE / self._seconds), share))

    def _tries(self, todo: Iterator[Item]) -> Iterator[_Try]:
        while True:
            if self._waiting:
                yield self._waiting.popleft()
                continue
            item = next(todo, None)
            if item is None:
                return
            if item.order is None:
                outcome = Outcome("failed", error=item.error)
                self._record(_Try(item, 1), Reply(outcome, datetime.now(UTC), 0.0, worker=""))
            else:
                yield _Try(item, 1)

    def _look(self) -> None:
        """Count the threads of the workers, because workers come and go."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK:
            self._looked_at = now
            self._threads = max(1, sum(self._client.nthreads().values()))

    def _send(self, tries: Sequence[_Try]) -> None:
        ticket = next(self._tickets)
        works = [
            Work(each.item.order, each.item.problem())
            for each in tries
            if each.item.order is not None  # `_tries` yields no others
        ]
        future = self._client.submit(
            run_bundle,
            Bundle(self._session, ticket, works),
            key=f"{self._session}-{ticket}",
            pure=False,
        )
        self._flights[ticket] = _Flight(tries, future)
        future.add_done_callback(lambda done: self._landed.put((ticket, _end_of(done))))

    def _on_event(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Take a worker's message before its bundle ends; called in the client's thread."""
        _, message = event
        self._landed.put(
            (message["ticket"], _Event.LOST if "lost" in message else Reply.of(message))
        )

    def _land(self, ticket: str, what: Reply | _Event | BaseException) -> None:
        if isinstance(what, CancelledError):
            raise MemplanError("the scheduler is gone; restart it, and continue with --resume")
        flight = self._flights.get(ticket)
        if flight is None:  # the worker was out of reach and taken for dead, and is back
            return
        if isinstance(what, Reply):
            self._end(flight.tries[flight.replies], what)
            flight.replies += 1
        elif what is _Event.LOST:
            flight.lost = True
        else:
            del self._flights[ticket]
            left = flight.tries[flight.replies :]
            if left and (flight.lost or what is not _Event.END):
                # Only the first of these was running, so the others keep their attempts.
                outcome = Outcome("error", error=_words(what))
                self._end(left[0], Reply(outcome, datetime.now(UTC), self._seconds, worker=""))
                left = left[1:]
            self._waiting.extendleft(reversed(left))

    def _end(self, each: _Try, reply: Reply) -> None:
        """Record how a try ended, or try once more."""
        self._seconds += _NEW * (max(reply.seconds, _LEAST) - self._seconds)
        if reply.outcome.status not in _FAILURES:
            self._record(each, reply)
        elif each.attempt < _ATTEMPTS:
            self._waiting.append(_Try(each.item, each.attempt + 1))
        else:
            outcome = reply.outcome
            self._record(each, replace(reply, outcome=outcome.with_status("failed", outcome.error)))

    def _record(self, each: _Try, reply: Reply) -> None:
        result = _result(each, reply)
        self._dataset.add(result)
        self._on_result(result)

    def _forget(self) -> None:
        """Cancel waiting bundles, and delete the state of this session in the scheduler."""
        if self._client.status != "running":
            return
        self._client.unsubscribe_topic(self._session)
        self._client.cancel([flight.future for flight in self._flights.values()], force=True)
        self._client.set_metadata([self._session], {})


def _end_of(future: Future) -> _Event | BaseException:
    if future.status == "finished":
        return _Event.END
    try:
        error: BaseException = future.exception()
    except BaseException as raised:  # the connection is closed
        return raised
    return error


def _words(end: _Event | BaseException) -> str:
    if isinstance(end, _Event) or type(end).__name__ == "KilledWorker":  # Dask's text fills a page
        return "the worker died"
    return f"{type(end).__name__}: {end}"


def _result(each: _Try, reply: Reply) -> Result:
    outcome = reply.outcome
    solved, invalid = outcome.status in SOLVED, outcome.status == "invalid"
    ran = len(outcome.wall) or None
    return Result(
        **asdict(each.item.task),
        **outcome.columns(),
        runs=ran,
        first_cpu_s=outcome.cpu[0] if ran else None,
        solve_s=sum(outcome.wall) if ran else None,
        verified=solved if solved or invalid else None,
        attempt=each.attempt,
        worker=reply.worker,
        started=reply.started,
    )

"""Tests of `memplan_lab.sweep.dispatch` with workers that die on command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memplan.base.errors import MemplanError, MissingExtraError
from memplan_lab import sweep
from memplan_lab.bench.rows import Outcome
from memplan_lab.sweep import remote
from memplan_lab.sweep.cluster import describe_workers
from memplan_lab.sweep.dataset import Dataset
from memplan_lab.sweep.dispatch import Dispatcher
from memplan_lab.sweep.remote import Bundle, Reply
from memplan_lab.sweep.results import Result
from memplan_lab.sweep.tasks import Settings, items

pytest.importorskip("pyarrow")

pytestmark = pytest.mark.slow

SETTINGS = Settings(suites=["synthetic"], sample=40)
SOLVED = Outcome("optimal", peak=12, lower_bound=12, wall=(0.01,), cpu=(0.01,))


class Future:
    """One that is done at once, one way or the other."""

    def __init__(self, end: object) -> None:
        self._end = end

    @property
    def status(self) -> str:
        """How it ended."""
        return "error" if isinstance(self._end, BaseException) else "finished"

    def exception(self) -> object:
        """Return what it was made of."""
        return self._end

    def add_done_callback(self, call: Callable[[Future], None]) -> None:
        """Call at once."""
        call(self)


class Client:
    """What the dispatcher asks of Dask, with one worker.

    `script` says of every task of Dask what becomes of its works, and how it ends; the last entry
    is that of all that follow.
    """

    def __init__(
        self, *script: Callable[[Sequence[Any]], tuple[Sequence[Outcome], object]]
    ) -> None:
        self.status = "running"
        self.sizes: list[int] = []
        self.in_flight: list[int] = []
        self._script = list(script)
        self._handlers: dict[str, Callable[[Any], None]] = {}

    def nthreads(self) -> dict[str, int]:
        """Return one worker."""
        return {"tcp://127.0.0.1:1": 1}

    def subscribe_topic(self, topic: str, handler: Callable[[Any], None]) -> None:
        """Remember the handlers of events."""
        self._handlers[topic] = handler

    def unsubscribe_topic(self, topic: str) -> None:
        """Forget it."""
        del self._handlers[topic]

    def cancel(self, futures: Sequence[Future], force: bool) -> None:
        """Note what was in flight at the end."""
        self.in_flight = [len(futures)]

    def set_metadata(self, keys: Sequence[str], value: object) -> None:
        """Take what the scheduler would."""

    def submit(self, run: object, bundle: Bundle, **_: object) -> Future:
        """Follow the script."""
        assert run is remote.run_bundle
        self.sizes.append(len(bundle.works))
        step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        outcomes, end = step(bundle.works)
        for outcome in outcomes:
            event = Reply(outcome, sweep_started(), 0.01, "tcp://127.0.0.1:1").event(bundle.ticket)
            self._handlers[bundle.session]((0.0, event))
        if end == "lost":
            self._handlers[bundle.session]((0.0, {"ticket": bundle.ticket, "lost": True}))
        return Future(end)


def sweep_started() -> Any:
    """Return a moment."""
    from datetime import UTC, datetime

    return datetime(2026, 1, 1, tzinfo=UTC)


def whole(works: Sequence[Any]) -> tuple[Sequence[Outcome], object]:
    """Solve all of a bundle."""
    return [SOLVED] * len(works), None


def dies_after(count: int, end: object = "lost") -> Callable[[Sequence[Any]], Any]:
    """Solve so many of a bundle, then die."""
    return lambda works: ([SOLVED] * count, end)


class DiesOnce:
    """Solves all, but of the first bundle that is large enough so many, and dies."""

    def __init__(self, after: int, end: object) -> None:
        self.after, self.end = after, end
        self.has_died = False

    def __call__(self, works: Sequence[Any]) -> tuple[Sequence[Outcome], object]:
        """Follow that plan."""
        if self.has_died or len(works) < self.after + 2:
            return whole(works)
        self.has_died = True
        return [SOLVED] * self.after, self.end


def run(folder: Path, client: Client, settings: Settings = SETTINGS) -> list[Result]:
    """Run a sweep on this client; return its rows as they came."""
    seen: list[Result] = []
    with Dataset(folder, settings, settings.tasks_of_a_case()) as dataset:
        dataset.begin({})
        Dispatcher(client, dataset, 40, seen.append).run(items(settings, settings.cases()))  # type: ignore[arg-type]
    return seen


def test_short_tasks_share_a_bundle(tmp_path: Path) -> None:
    """Tests that bundles grow with what is learned of the tasks, and no task is in two of them."""
    client = Client(whole)
    rows = run(tmp_path, client)
    assert len(rows) == len({row.key for row in rows}) == sum(client.sizes) == 40
    assert client.sizes[0] == 1
    assert max(client.sizes) > 3
    assert sweep.read(tmp_path).num_rows == 40
    assert client.in_flight == [0]


def test_long_tasks_do_not(tmp_path: Path) -> None:
    """Tests that what fills a worker for a while goes alone."""

    def slow(works: Sequence[Any]) -> tuple[Sequence[Outcome], object]:
        return [SOLVED], None

    # The worker gives back what it has not begun after a second.
    client = Client(whole, whole, whole, *[slow] * 3, whole)
    rows = run(tmp_path, client)
    assert len(rows) == len({row.key for row in rows}) == 40
    assert {row.attempt for row in rows} == {1}


@pytest.mark.parametrize("end", ["lost", RuntimeError("no memplan here")])
def test_a_death_costs_the_task_that_ran(tmp_path: Path, end: object) -> None:
    """Tests that what was done before counts, and what had not begun has lost no attempt."""
    mortal = DiesOnce(2, end)
    rows = run(tmp_path, Client(mortal))
    assert mortal.has_died
    assert len(rows) == len({row.key for row in rows}) == 40
    assert Counter(row.attempt for row in rows) == {1: 39, 2: 1}
    assert {row.status for row in rows} == {"optimal"}


def test_a_death_after_all_is_done_costs_nothing(tmp_path: Path) -> None:
    """Tests that a worker may die with nothing but the end of a bundle unsaid."""

    def unsaid(works: Sequence[Any]) -> tuple[Sequence[Outcome], object]:
        return [SOLVED] * len(works), "lost"

    rows = run(tmp_path, Client(unsaid))
    assert Counter(row.attempt for row in rows) == {1: 40}


def test_two_deaths_are_a_row(tmp_path: Path) -> None:
    """Tests that a task whose workers all die is given up after two, with a sentence."""
    settings = Settings(suites=["synthetic"], sample=3)
    rows = run(tmp_path, Client(dies_after(0)), settings)
    assert [(row.status, row.error, row.attempt, row.worker) for row in rows] == [
        ("failed", "the worker died", 2, "")
    ] * 3
    assert {row.verified for row in rows} == {None}


def test_a_failure_that_passes_is_no_row(tmp_path: Path) -> None:
    """Tests that a second attempt counts where the first failed, and says so."""
    settings = Settings(suites=["synthetic"], sample=1)
    failed = Outcome("killed", error="it was killed")
    (row,) = run(tmp_path, Client(lambda _: ([failed], None), whole), settings)
    assert (row.status, row.attempt, row.error) == ("optimal", 2, "")


def test_a_scheduler_that_goes(tmp_path: Path) -> None:
    """Tests that a lost scheduler ends the sweep with what to do; what came is kept."""
    client = Client(whole, whole, dies_after(0, CancelledError("lost")))
    with pytest.raises(MemplanError, match=r"the scheduler is gone; .* --resume"):
        run(tmp_path, client)
    assert sweep.read(tmp_path).num_rows == 2


def test_a_row_has_the_median_of_its_runs(tmp_path: Path) -> None:
    """Tests that a repeated short solve is reported as one, together with its first run."""
    repeated = replace(SOLVED, wall=(0.05, 0.01, 0.02), cpu=(0.04, 0.01, 0.01))
    settings = Settings(suites=["synthetic"], sample=1)
    (row,) = run(tmp_path, Client(lambda _: ([repeated], None)), settings)
    assert (row.wall_s, row.cpu_s, row.runs, row.first_cpu_s) == (0.02, 0.01, 3, 0.04)
    assert row.solve_s == pytest.approx(0.08)


def test_replies_travel() -> None:
    """Tests that a reply is the same at the other end."""
    reply = Reply(SOLVED, sweep_started(), 0.5, "tcp://127.0.0.1:1")
    event = reply.event("7")
    assert event["ticket"] == "7"
    assert Reply.of(event) == reply


def test_a_worker_without_a_library() -> None:
    """Tests that it is named before anything runs, with the extra that has it."""

    class Workers:
        def run(self, call: object, libraries: Sequence[str]) -> dict[str, Any]:
            assert call is remote.describe
            return {"tcp://10.0.0.7:1": {"host": "far", "missing": list(libraries)}}

    with pytest.raises(MissingExtraError, match=r"7:1 lacks ortools.*memplan-lab\[ortools\]"):
        describe_workers(Workers(), {"ortools": "memplan-lab[ortools]"})  # type: ignore[arg-type]


def test_a_worker_that_cannot_start_tasks() -> None:
    """Tests that whatever a worker raises is one sentence."""

    class Workers:
        def run(self, call: object, libraries: Sequence[str]) -> dict[str, Any]:
            raise ModuleNotFoundError("No module named 'memplan_lab.sweep'\nand more")

    with pytest.raises(MemplanError, match=r"^a worker cannot run tasks: No module .*sweep'$"):
        describe_workers(Workers(), {})  # type: ignore[arg-type]

"""Tests of `memplan_lab.bench.processes` and `zygote`: a process for each solve, and its limits."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import misbehaving
import pytest

from memplan.problem import Problem
from memplan.solvers.registry import SOLVERS
from memplan_lab.bench import exchange, processes
from memplan_lab.bench.processes import Order, Work, Zygote
from memplan_lab.bench.rows import Request

pytestmark = pytest.mark.slow

if sys.platform != "linux":
    pytest.skip("limits of memory are those of Linux", allow_module_level=True)


def work(
    problem: Problem, solver: str = "auto", capacity: int | None = 12, **changes: object
) -> Work:
    """Return a task with limits that nothing here reaches by itself."""
    objective = "min_peak" if capacity is None else "fit"
    request = Request(solver, objective, 10.0, None, 1, 0, 1)
    order = Order(request, capacity, **{"seconds": 60.0, "memory": 4 << 30, **changes})  # type: ignore[arg-type]
    return Work(order, exchange.pack(problem.with_capacity(None)))


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or will be soon; a zombie without a parent to reap it is gone."""
    for _ in range(6_000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def stubborn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Zygote]:
    """Yield a warm process in which some solvers misbehave."""
    for name, value in misbehaving.install(tmp_path).items():
        monkeypatch.setenv(name, value)
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    """Yield a warm process."""
    made = Zygote()
    yield made
    made.close()


def test_a_task_is_solved_and_verified(zygote: Zygote, five: Problem) -> None:
    """Tests capacity, measurements and counts of a real solve."""
    found = zygote.run(work(five, "telamalloc", 12))
    assert (found.status, found.peak, found.error) == ("optimal", 12, "")
    assert found.backtracks is not None
    assert len(found.wall) == len(found.cpu) >= 1
    tight = zygote.run(work(five, "exact", 11))
    assert tight.status == "infeasible"
    assert zygote.run(work(five, "auto", None)).peak == 12


def test_a_solver_that_lacks_a_constraint(zygote: Zygote, five: Problem) -> None:
    """Tests that a refusal is an answer, and not a failure."""
    lacking = next(
        name
        for name, solver in SOLVERS.items()
        if "reserved" not in solver.supports and not solver.libraries
    )
    found = zygote.run(work(five.with_reserved([(0, 4)]), lacking, None))
    assert found.status == "unsupported"
    assert "does not support reserved" in found.error


def test_a_capacity_below_a_pin_is_infeasible(zygote: Zygote, five: Problem) -> None:
    """Tests a problem that nothing places under its capacity."""
    pinned = five.with_capacity(None).with_pins({"b1": 100})
    found = zygote.run(work(pinned, "auto", 50))
    assert (found.status, found.error) == ("infeasible", "")


def test_every_task_has_a_process_of_its_own(
    stubborn: Zygote, five: Problem, tmp_path: Path
) -> None:
    """Tests that what runs is neither the warm process nor twice the same one."""
    for _ in range(3):
        assert stubborn.run(work(five, "many_objects", None)).peak == 12
    processes = [int(start[2]) for start in misbehaving.starts(tmp_path)]
    assert len(set(processes)) == 3
    assert all(map(has_ended, processes))


@pytest.mark.parametrize(
    ("solver", "changes", "status", "error"),
    [
        ("greedy_by_size", {}, "error", "crashed with SIGSEGV: terminate called: out of luck"),
        ("gergov", {"seconds": 2.0}, "killed", "it was killed after 2 s, long after its timeout"),
        (
            *("single_object", {"memory": 600 << 20}, "error"),
            "it needs more memory than its 600 MiB",
        ),
    ],
)
def test_tasks_that_fail_are_said_to(
    stubborn: Zygote,
    five: Problem,
    tmp_path: Path,
    solver: str,
    changes: dict[str, int],
    status: str,
    error: str,
) -> None:
    """Tests a crash, a hang and too much memory; and that the next task does not notice."""
    found = stubborn.run(work(five, solver, None, **changes))
    assert (found.status, found.peak) == (status, None)
    assert error in found.error
    (start,) = misbehaving.starts(tmp_path)
    assert has_ended(int(start[2]))
    if solver == "gergov":  # with what it has started
        assert has_ended(int((tmp_path / "hanging").read_text()))
    assert stubborn.run(work(five, "exact", None)).status == "optimal"


def test_a_limit_of_memory_is_one_for_a_real_solver(zygote: Zygote, five: Problem) -> None:
    """Tests that a task cannot have more than its limit, whatever asks for it."""
    count = 200_000
    large = Problem.from_arrays(range(count), range(1, count + 1), [1] * count)
    tight = work(large, "auto", None, memory=40 << 20)
    assert zygote.run(tight).status == "error"
    assert zygote.run(work(five, "auto", None)).status == "optimal"


def children(pid: int) -> list[int]:
    """Return the processes that a process has forked and not reaped."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_nothing_outlives_a_worker(five: Problem, tmp_path: Path) -> None:
    """Tests that warm process, solve and what it has started end when the caller is killed."""
    program = (
        "import pickle, sys\nfrom pathlib import Path\n"
        "from memplan_lab.bench.processes import Zygote\n"
        "work = pickle.loads(Path(sys.argv[1]).read_bytes())\n"
        "zygote = Zygote()\nprint(zygote._process.pid, flush=True)\n"
        "zygote.run(work)\n"
    )
    file = tmp_path / "work"
    file.write_bytes(pickle.dumps(work(five, "gergov", None)))
    with subprocess.Popen(
        [sys.executable, "-c", program, str(file)],
        stdout=subprocess.PIPE,
        env=os.environ | misbehaving.install(tmp_path),
    ) as worker:
        assert worker.stdout is not None
        zygote = int(worker.stdout.readline())
        note = tmp_path / "hanging"
        while not (note.exists() and note.read_text()):
            time.sleep(0.05)
        tasks = children(zygote)
        worker.send_signal(signal.SIGKILL)
    (start,) = misbehaving.starts(tmp_path)
    assert [int(start[2])] == tasks
    for pid in (zygote, *tasks, int(note.read_text())):
        assert has_ended(pid)


def test_a_warm_process_that_dies_is_replaced(five: Problem) -> None:
    """Tests that its task fails with a sentence, and the next one gets another process."""
    with processes.borrow() as first:
        os.kill(first._process.pid, signal.SIGKILL)
        found = first.run(work(five))
        assert (found.status, found.error) == ("error", "the process that forks for solves died")
    with processes.borrow() as second:
        assert second is not first
        assert second.run(work(five)).status == "optimal"
    with processes.borrow() as third:
        assert third is second
    processes.close_idle()
    assert not third.alive


def test_a_solve_may_have_no_limits(zygote: Zygote, five: Problem) -> None:
    """Tests that neither time nor memory needs a limit."""
    assert zygote.run(work(five, "exact", None, seconds=None, memory=None)).status == "optimal"

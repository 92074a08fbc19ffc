"""Tests of `memplan_lab.bench.latency`: processes, arithmetic, tables, and what a profile says."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memplan.base.errors import MemplanError
from memplan_lab.bench import files
from memplan_lab.bench.experiment import Experiment
from memplan_lab.bench.experiments import contention, latency
from memplan_lab.bench.latency import (
    Case,
    Contention,
    Outcome,
    Row,
    Timing,
    compare,
    profile,
    report,
    timing,
)
from memplan_lab.bench.latency.allocators import Allocator, parse
from memplan_lab.bench.latency.profile import Profile
from memplan_lab.bench.latency.rows import Served
from memplan_lab.bench.latency.summary import causes
from memplan_lab.cli import main

pytestmark = pytest.mark.slow

GLIBC = parse("glibc")


def outcome(eager: float, slab: float, **other: object) -> Outcome:
    """Return an outcome with CPU times in milliseconds; by wall clock each takes one more."""
    timings = (Timing(ms / 1e3, (ms + 1) / 1e3, 0.0) for ms in (eager, slab))
    return Outcome(*timings, equal=True, **other)  # type: ignore[arg-type]


def rows_of(*measured: tuple[Case, str, int, Outcome]) -> list[Row]:
    """Return rows."""
    return [Row(*one) for one in measured]


SMALL = Case("resnet18", 128, 1, 1)
LARGE = Case("resnet18", 256, 8, 1)
MEASURED = rows_of(
    (SMALL, "glibc", 0, outcome(10, 8)),
    (SMALL, "jemalloc", 0, outcome(16, 12)),
    (SMALL, "glibc", 1, outcome(20, 10)),
    (SMALL, "jemalloc", 1, outcome(40, 10)),
    (SMALL, "glibc", 2, outcome(10, 9)),
    (SMALL, "jemalloc", 2, outcome(10, 10)),
    (LARGE, "glibc", 0, outcome(100, 90, peak=102, max_load=100, planned=7, allocations=8)),
    (LARGE, "jemalloc", 0, outcome(200, 50)),
)


# Allocators


def test_allocators_are_read(tmp_path: Path) -> None:
    """Tests names, a library, and variables; a preload of the user's does not leak."""
    library = tmp_path / "liballoc.so"
    library.touch()
    assert GLIBC.environment == {"LD_PRELOAD": ""}
    assert parse("glibc-tuned").environment["MALLOC_TRIM_THRESHOLD_"] == str(2 << 30)
    found = parse(f"mine={library} CONF=a:1,b:2 OTHER=x")
    assert found == Allocator("mine", str(library), {"CONF": "a:1,b:2", "OTHER": "x"})
    assert found.environment == {"LD_PRELOAD": str(library), "CONF": "a:1,b:2", "OTHER": "x"}
    assert parse("arenas=MALLOC_ARENA_MAX=1").environment["MALLOC_ARENA_MAX"] == "1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jemalloc", "is not known"),
        ("mine=/no/such/library.so", "there is no library"),
        ("=MALLOC_ARENA_MAX=1", "must have a name"),
        ("mine=a.so b.so", "at most one library"),
        ("mine='a", "cannot be read"),
    ],
)
def test_allocators_that_cannot_be(text: str, words: str) -> None:
    """Tests that a mistake is one sentence."""
    with pytest.raises(MemplanError, match=words):
        parse(text)


# Arithmetic


def test_ratios() -> None:
    """Tests that rounds are paired, their median counts, and cases are averaged geometrically."""
    glibc, jemalloc = compare(MEASURED)
    assert (glibc.threads, glibc.allocator, glibc.cases) == (1, "glibc", 2)
    # 0.8, 0.5, 0.9 of the small case; 0.9 of the large one.
    assert glibc.across.mean == pytest.approx(math.sqrt(0.8 * 0.9))
    assert (glibc.across.worst, glibc.across.worst_case) == (pytest.approx(0.9), "resnet18 8x256")
    assert glibc.inside == glibc.across
    # The slab of glibc over eager of jemalloc: 8/16, 10/40, 9/10, and 90/200.
    assert jemalloc.across.mean == pytest.approx(math.sqrt(0.5 * 0.45))
    assert jemalloc.across_wall.worst == pytest.approx(9 / 17)
    # Both of jemalloc: 12/16, 10/40, 10/10, and 50/200.
    assert jemalloc.inside.mean == pytest.approx(math.sqrt(0.75 * 0.25))


def test_failed_cases_count_nowhere() -> None:
    """Tests that a case that failed under one allocator is left out for all of them."""
    rows = [*MEASURED, *rows_of((SMALL, "jemalloc", 3, Outcome(error="it crashed")))]
    assert [(one.allocator, one.cases) for one in compare(rows)] == [("glibc", 1), ("jemalloc", 1)]
    last = {"case": SMALL.name, "arm": "jemalloc", **rows[-1].figures()}
    (shown,) = report.failures([last])
    assert shown.lines == [("resnet18 1x128", "jemalloc", "it crashed")]


# Tables


def test_tables() -> None:
    """Tests the cells of all tables, and that there are as many as headings."""
    overview = report.overview(MEASURED)
    assert overview.lines[1][:6] == ("1", "jemalloc", "2", "0.474", "0.500", "resnet18 1x128")
    assert report.by_network(MEASURED).lines == [("1", "resnet18", "0.849", "0.474")]
    small, large = report.cases(MEASURED).lines
    assert small[:5] == ("1", "resnet18 1x128", "10 ms", "9 ms", "0.800")
    assert large[:5] == ("1", "resnet18 8x256", "100 ms", "90 ms", "0.900")
    plans = report.plans(MEASURED)
    assert plans.lines[1][2:5] == ("8", "7", "1.0200")
    assert plans.lines[1][-1] == "equal"
    assert {len(line) for line in overview.lines} == {len(overview.headings)}


def test_different_outputs_are_shown() -> None:
    """Tests that one round with other outputs is enough."""
    good, bad = outcome(2, 1), Outcome(*(outcome(2, 1).eager,) * 2, equal=False)
    rows = rows_of((SMALL, "glibc", 0, good), (SMALL, "glibc", 1, bad))
    assert report.plans(rows).lines[0][-1] == "DIFFERENT"


def test_rows_can_be_read_back(tmp_path: Path) -> None:
    """Tests the rows of both experiments, with and without an error, in a file."""
    path = tmp_path / "rows.parquet"
    files.write([row.figures() for row in MEASURED], path)
    assert [Row.of(row) for row in files.read(path)] == MEASURED
    case = Case("vgg16", 128, 1, 2)
    rows = [
        Contention(case, "glibc", False, Served((1, 2), 7), Profile(100, 5, 2, 1, 0.5, 3)),
        Contention(case, "glibc", True, error="it crashed"),
    ]
    files.write([row.figures() for row in rows], path)
    assert [Contention.of(row) for row in files.read(path)] == rows


def test_the_whole_range_is_shown() -> None:
    """Tests least, median and largest ratio of the slab to each allocator, and where they were."""
    glibc, jemalloc = report.spread(MEASURED).lines
    assert glibc[:4] == ("1", "glibc", "2", "0.800")
    assert glibc[4:] == ("resnet18 1x128", "0.850", "0.900", "resnet18 8x256")
    assert jemalloc[3:] == ("0.450", "resnet18 8x256", "0.475", "0.500", "resnet18 1x128")


def test_what_decides_the_ratio_is_ranked() -> None:
    """Tests rank correlations: faults fall as the ratio rises here, and sizes have no part."""

    def case(side: int, faults: float, slab: float, planned: int) -> tuple[Case, str, int, Outcome]:
        eager = Timing(0.01, 0.01, faults)
        made = Outcome(eager, Timing(slab, slab, 0.0), planned=planned, bytes=1 << 20, equal=True)
        return Case("resnet18", side, 1, 1), "glibc", 0, made

    rows = rows_of(case(32, 900, 0.005, 10), case(64, 500, 0.007, 30), case(96, 100, 0.009, 20))
    first, second, *others = causes(rows)
    assert (first.name, first.correlation) == ("page faults per ms, eager", pytest.approx(-1.0))
    assert (first.least, first.most) == (10.0, 90.0)
    assert (second.name, second.correlation) == ("allocations per ms", pytest.approx(0.5))
    assert all(cause.correlation == 0.0 for cause in others)
    assert report.decided(rows).lines[0][:2] == ("page faults per ms, eager", "-1.00")
    assert causes(rows[:2]) == []


# Timing


@pytest.mark.parametrize("threads", [1, 3])
def test_kinds_take_turns(threads: int) -> None:
    """Tests that every thread runs every kind equally often, and no two kinds at a time."""
    calls: Counter[str] = Counter()
    running: Counter[str] = Counter()
    mixed = []
    lock = threading.Lock()

    def kind(name: str):
        def call() -> None:
            with lock:
                calls[name] += 1
                running[name] += 1
                mixed.append(min(running["a"], running["b"]))
            threading.Event().wait(0.002)
            with lock:
                running[name] -= 1

        return call

    timings = timing.alternate([kind("a"), kind("b")], threads=threads, runs=20, seconds=60.0)
    assert calls["a"] == calls["b"] >= 2 + 20 * threads
    assert set(mixed) == {0}
    assert all(one.wall_s >= 0.002 for one in timings)


def test_time_ends_a_measurement() -> None:
    """Tests that slow calls are made three times, whatever the time, and then no more."""
    calls = []

    def slow() -> None:
        calls.append(threading.Event().wait(0.06))

    timing.alternate([slow], threads=1, runs=1000, seconds=0.01)
    assert len(calls) == 2 + 3


def test_errors_of_threads_come_out() -> None:
    """Tests that a call that fails in one thread ends them all."""
    calls = []

    def sometimes() -> None:
        calls.append(1)
        if len(calls) > 4:
            raise MemplanError("no more")

    with pytest.raises(MemplanError, match="no more"):
        timing.alternate([sometimes], threads=2, runs=50, seconds=60.0)


# Processes


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch):
    """Return a function that sets what the processes of a run do."""

    def be(program: str) -> None:
        monkeypatch.setattr(latency, "_WORKER", (sys.executable, "-c", program))

    return be


ONE = ("inputs=32", "batches=1", "threads=1", "rounds=1")


def run(
    experiment: Experiment, *own: str, peers: Sequence[str] = ("glibc",)
) -> list[dict[str, Any]]:
    """Return the rows of an experiment with these settings."""
    rows: list[dict[str, Any]] = []
    experiment.run(experiment.settle({"peer": peers}, own), rows.append)
    return rows


def test_processes_that_die(child, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a crash is a row with a sentence, and the end of the command is 2."""
    pytest.importorskip("torch")
    child("import os; os.abort()")
    (row,) = run(latency.EXPERIMENT, "networks=resnet18", *ONE)
    assert row["error"].startswith("the process crashed with SIGABRT")
    own = [word for text in ("networks=resnet18", *ONE) for word in ("--set", text)]
    assert main(["bench", "latency", *own]) == 2
    out, err = capsys.readouterr()
    assert "Failures" in out
    assert "resnet18 1x32 (glibc): the process crashed with SIGABRT" in err


def test_mistakes_cost_no_process(child) -> None:
    """Tests that what cannot be measured is refused at once."""
    pytest.importorskip("torch")
    child("raise SystemExit(1)")
    for own, words in (
        ("networks=resnet19", "there is no network 'resnet19'; choose from resnet18"),
        ("rounds=0", "rounds=0 is not what it takes"),
        ("threads=1,0", "threads=1,0 is not"),
    ):
        with pytest.raises(MemplanError, match=words):
            run(latency.EXPERIMENT, own)
    with pytest.raises(MemplanError, match="the same name"):
        run(latency.EXPERIMENT, *ONE, peers=["glibc", "glibc"])


def test_an_allocator_that_does_not_load(tmp_path: Path) -> None:
    """Tests that what the loader ignores is an error here."""
    pytest.importorskip("torch")
    library = tmp_path / "liballoc.so"
    library.write_text("no library")
    (row,) = run(latency.EXPERIMENT, "networks=resnet18", *ONE, peers=[f"mine={library}"])
    assert "was not loaded" in row["error"]


def test_a_small_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the whole way: outputs are equal, and the slab serves all that is planned."""
    pytest.importorskip("torch")
    require_slab()
    path = tmp_path / "rows.parquet"
    settings = ("networks=squeezenet", "inputs=32", "batches=2", "threads=2", "rounds=1", "runs=2")
    own = [word for text in settings for word in ("--set", text)]
    options = ["--peer", "glibc", "--details", "--output", str(path)]
    assert main(["bench", "latency", *own, *options]) == 0
    assert "squeezenet 2x32" in capsys.readouterr().out
    (row,) = files.read(path)
    measured = Row.of(row).outcome
    assert measured.error == ""
    assert measured.equal
    assert measured.hits == measured.planned == measured.allocations - 1
    assert measured.fallbacks == 0
    assert measured.result_bytes == 2 * 1000 * 4
    assert measured.peak >= measured.max_load > 0
    assert measured.eager is not None
    assert measured.slab is not None
    assert measured.slab.faults <= 2
    assert min(measured.eager.cpu_s, measured.slab.cpu_s) > 0


# Profiles

SCRIPT = """\
    11 100.000100:   task-clock:
            ffffffff815ebeb5 do_anonymous_page ([kernel.kallsyms])
            ffffffff82000c82 asm_exc_page_fault ([kernel.kallsyms])
                       98109 conv<int (*)(char)> (/usr/lib/libtorch_cpu.so)

    11 100.000200:   task-clock:
                       98109 _int_malloc (/usr/lib/libc.so.6)

    11 100.000300:   task-clock:
                       98109 memcpy (/usr/lib/libc.so.6)

    11 100.000400:   task-clock:
            ffffffff815ebeb5 unmap_page_range ([kernel.kallsyms])
            ffffffff815ebeb6 __x64_sys_munmap ([kernel.kallsyms])
                       98109 munmap (/usr/lib/libc.so.6)

    11 100.000450:   task-clock:
                       98109 [unknown] (/cache/memplan_slab.so)

    12 100.000500:   task-clock:
                       98109 malloc (/usr/lib/libc.so.6)

    11 100.001000: sched:sched_switch: prev_comm=a b prev_pid=11 prev_state=S ==> next_comm=x
            ffffffff815ebeb5 schedule ([kernel.kallsyms])
            ffffffff815ebeb6 __x64_sys_futex ([kernel.kallsyms])
                       98109 __lll_lock_wait_private (/usr/lib/libc.so.6)

    11 100.001001: PERF_RECORD_SWITCH OUT
    11 100.004000: PERF_RECORD_SWITCH IN
    11 100.005000: sched:sched_switch: prev_comm=a b prev_pid=11 prev_state=D ==> next_comm=x
            ffffffff815ebeb5 schedule ([kernel.kallsyms])
            ffffffff815ebeb5 rwsem_down_write_slowpath ([kernel.kallsyms])
            ffffffff815ebeb6 __x64_sys_munmap ([kernel.kallsyms])
                       98109 munmap (/usr/lib/libc.so.6)

    11 100.005001: PERF_RECORD_SWITCH OUT
    11 100.006000: PERF_RECORD_SWITCH IN
    11 100.007000: sched:sched_switch: prev_comm=a b prev_pid=11 prev_state=R+ ==> next_comm=x
            ffffffff815ebeb5 schedule ([kernel.kallsyms])
                       98109 malloc (/usr/lib/libc.so.6)

    11 100.007001: PERF_RECORD_SWITCH OUT
    11 100.018000: PERF_RECORD_SWITCH IN
    11 100.020000: sched:sched_switch: prev_comm=a b prev_pid=11 prev_state=S ==> next_comm=x
            ffffffff815ebeb5 schedule ([kernel.kallsyms])
            ffffffff815ebeb6 __x64_sys_futex ([kernel.kallsyms])
                       98109 __futex_abstimed_wait_common (/usr/lib/libc.so.6)

    11 100.020001: PERF_RECORD_SWITCH OUT
    11 100.030000: PERF_RECORD_SWITCH IN
"""


def test_a_profile_is_counted() -> None:
    """Tests each kind of sample, of one thread; a lost turn and another lock are no waiting."""
    found = profile.read(SCRIPT.splitlines(keepends=True), {11}, {"memplan_slab"})
    assert (found.samples, found.allocator, found.faults, found.calls) == (5, 2, 1, 1)
    assert found.waiting_s == pytest.approx(0.003 + 0.001)
    assert found.waits == 2
    row = Contention(SMALL, "glibc", False, Served((11,), 2), found)
    cells = report.contention([row]).lines[0]
    assert cells[2:] == ("glibc", "2", "40.0 %", "20.0 %", "20.0 %", "80.0 %", "2 ms", "1.00")


def test_an_allocator_is_known_by_its_library() -> None:
    """Tests that all code of a preloaded library is the allocator's."""
    lines = SCRIPT.replace("memcpy (/usr/lib/libc.so.6)", "f (/opt/libjemalloc.so.2)").splitlines()
    assert profile.read(lines, {11}, set()).allocator == 1
    assert profile.read(lines, {11}, {"libjemalloc.so.2"}).allocator == 2


def test_contention_without_perf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a missing profiler is one sentence that says what to install."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(MemplanError, match="linux-perf"):
        run(contention.EXPERIMENT)


def require_slab() -> None:
    """Skip the test where the slab cannot be built."""
    from slab_models import require_slab

    require_slab()


def can_profile() -> bool:
    """Whether perf may look at this machine's scheduler."""
    if shutil.which("perf") is None:
        return False
    command = ("perf", "record", "-q", "-e", "sched:sched_switch", "-o", "/dev/null", "true")
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.deep
@pytest.mark.skipif(not can_profile(), reason="needs perf, and the right to use it")
def test_contention() -> None:
    """Tests that two request threads serve, eager and through a slab, while perf looks on."""
    pytest.importorskip("torch")
    require_slab()
    own = ("networks=squeezenet", "inputs=32", "threads=2", "seconds=0.5")
    rows = [Contention.of(row) for row in run(contention.EXPERIMENT, *own)]
    assert [(row.slab, row.error) for row in rows] == [(True, ""), (False, "")]
    for row in rows:
        assert row.served is not None
        assert row.profile is not None
        assert len(set(row.served.threads)) == 2
        assert row.served.inferences >= 2
        assert row.profile.samples > 0

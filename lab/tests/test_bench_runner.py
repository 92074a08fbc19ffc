"""Tests of `memplan_lab.bench`: suites, the runner, its workers and peers."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import misbehaving
import pytest

from memplan.base.errors import MemplanError, UnsupportedError
from memplan.problem import Buffer, Gap, Problem, formats
from memplan.problem.plan import Plan, Status
from memplan.solvers import registry
from memplan_lab import bench
from memplan_lab.bench import bar, exchange, peers, processes, suites, worker
from memplan_lab.bench.generators import with_size_noise
from memplan_lab.bench.peers import command
from memplan_lab.bench.rows import Outcome, Request, Row

pytestmark = pytest.mark.slow

# A whole planner: it stacks all buffers, in the order of the file.
STACK = """
import csv, sys
source, target = sys.argv[1:3]
rows = list(csv.DictReader(open(source)))
offset = 0
with open(target, "w", newline="") as file:
    out = csv.DictWriter(file, ["id", "lower", "upper", "size", "offset"])
    out.writeheader()
    for row in rows:
        row = {name: row[name] for name in ("id", "lower", "upper", "size")}
        out.writerow({**row, "offset": offset})
        offset += int(row["size"])
"""


@pytest.fixture
def peer(tmp_path: Path):
    """Return a function that makes a command line of a Python program and its arguments."""

    def make(program: str, arguments: str = "{input} {output}") -> str:
        file = tmp_path / f"peer-{len(list(tmp_path.glob('peer-*')))}.py"
        file.write_text(program)
        return f"{shlex.quote(sys.executable)} {shlex.quote(str(file))} {arguments}"

    return make


@pytest.fixture
def data(tmp_path: Path, five: Problem) -> Path:
    """Return a folder with two CSVs, of which the names say the capacities."""
    folder = tmp_path / "data"
    folder.mkdir()
    formats.save(five, folder / "five.12.csv")
    formats.save(five, folder / "wide.100.csv")
    return folder


# Suites


@pytest.mark.parametrize(
    ("suite", "count"),
    [
        ("bundled", 12),
        ("microbenchmarks", 4),
        ("synthetic", 525),
        ("perfect", 25),
        ("flat-load", 20),
        ("dense", 20),
        ("robustness", 144),
        ("robustness-gap-cliques", 8),
        ("robustness-tight", 128),
        ("nn-like", 4),
        ("training-like", 4),
        ("models", 11),
    ],
)
def test_suites(suite: str, count: int) -> None:
    """Tests that a suite has so many cases, of different names."""
    cases = suites.cases(suite)
    assert len(cases) == len({case.name for case in cases}) == count
    assert {case.suite for case in cases} == {suite}


def test_the_networks_of_memomalloc_are_recorded() -> None:
    """Tests that a case is what an inference of its network allocates, results left out."""
    pytest.importorskip("torch")
    cases = {case.name: case for case in suites.cases("memomalloc")}
    assert len(cases) == 9
    problem = cases["squeezenet"].make()
    assert len(problem) > 50
    assert any(name.endswith("aten::mkldnn_convolution#0") for name in problem.ids)


def test_microbenchmarks_have_their_published_names() -> None:
    """Tests that the names are those of the paper, and say the number of buffers."""
    cases = suites.cases("microbenchmarks")
    assert {case.name: len(case.make()) for case in cases} == {
        "non-overlapping-1K": 1_000,
        "non-overlapping-10K": 10_000,
        "full-overlap-100": 100,
        "full-overlap-1K": 1_000,
    }


def test_limit_spreads_over_a_suite() -> None:
    """Tests that a few cases of many come from all sizes, not from the first alone."""
    cases = suites.cases("synthetic", suites.Options(limit=3))
    assert [len(case.make()) for case in cases] == [20, 34, 48]


def test_sizes_and_seeds_are_a_choice() -> None:
    """Tests that sizes and seeds replace those of the suite."""
    cases = suites.cases("nn-like", suites.Options(sizes=[1_000, 70], seeds=2))
    assert [case.name for case in cases] == [
        "nn-like-1K-0",
        "nn-like-1K-1",
        "nn-like-70-0",
        "nn-like-70-1",
    ]
    assert [len(case.make()) for case in cases] == [1_000, 1_000, 70, 70]


def test_challenging_reads_capacities_from_names(data: Path, five: Problem) -> None:
    """Tests that a folder is read, and `X.CAPACITY.csv` says the capacity."""
    cases = suites.cases("challenging", suites.Options(data=data))
    assert [(case.name, case.make().capacity) for case in cases] == [("five", 12), ("wide", 100)]
    assert cases[0].make() == five


def test_variants(data: Path, five: Problem) -> None:
    """Tests that every suite can be shuffled, reversed and disturbed, with the seeds asked for."""
    options = suites.Options(data=data / "five.12.csv", seeds=3)
    shuffled = suites.cases("challenging-shuffled", options)
    assert [case.name for case in shuffled] == [f"five-shuffled-{seed}" for seed in range(3)]
    assert all(sorted(case.make().ids) == sorted(five.ids) for case in shuffled)
    assert len({case.make().ids for case in shuffled}) > 1
    (mirrored,) = suites.cases("csv-reversed", options)
    assert mirrored.make() == five.reversed_in_time()
    assert len(suites.cases("challenging-shuffled", suites.Options(data=data))) == 40
    assert suites.cases("csv-noise", options)[0].make().capacity is None


def test_variants_of_variants(data: Path, five: Problem) -> None:
    """Tests that variants behind one another are applied from left to right, with one seed."""
    options = suites.Options(data=data / "five.12.csv", seeds=3)
    cases = suites.cases("csv-noise-shuffled-reversed", options)
    assert [case.name for case in cases] == [f"five-noise-shuffled-reversed-{s}" for s in range(3)]
    expected = with_size_noise(five, 2).shuffled(2).reversed_in_time()
    assert cases[2].make() == expected


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ("nothing", "there is no suite 'nothing'; the suites are bundled, challenging"),
        ("synthetic-upside", "there is no suite 'synthetic-upside'"),
        ("challenging", "name them with --data"),
    ],
)
def test_unknown_suites(suite: str, message: str) -> None:
    """Tests that a suite that cannot be had is refused in one sentence."""
    with pytest.raises(MemplanError, match=message):
        suites.cases(suite)


def test_missing_files(tmp_path: Path, five: Problem) -> None:
    """Tests that an empty folder, a missing one, and a name without a capacity are refused."""
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(MemplanError, match="there is no CSV file for the suite"):
            suites.cases("csv", suites.Options(data=folder))
    formats.save(five, tmp_path / "five.csv")
    with pytest.raises(MemplanError, match=r"call it NAME\.CAPACITY\.csv"):
        suites.cases("challenging", suites.Options(data=tmp_path))
    assert suites.cases("csv", suites.Options(data=tmp_path))[0].make().capacity is None


# Exchange


def test_exchange_keeps_everything() -> None:
    """Tests that a problem with every constraint comes back equal from its bytes."""
    problem = Problem(
        [
            Buffer(
                "ä", start=-5, end=9, size=64, alignment=8, gaps=(Gap(-2, 3), Gap(4, 5, (0, 8)))
            ),
            Buffer("b", start=0, end=9, size=1 << 40, pin=128),
            Buffer("c", start=0, end=9, size=0, hint=8),
            Buffer("d", start=20, end=21, size=8),
            Buffer("e", start=21, end=22, size=8),
        ],
        capacity=1 << 41,
        reserved=[(64, 128)],
        conflicts=[("ä", "d"), ("b", "e")],
        groups=[["d", "e"]],
    )
    assert all(registry._constraints(problem).values())
    numbered = Problem.from_arrays([0, 1], [2, 3], [4, 5])
    for each in (problem, numbered, Problem([])):
        back = exchange.unpack(exchange.pack(each))
        assert back == each
        assert back.fingerprint == each.fingerprint


# Peers by command line


def only(rows: list[Row]) -> Row:
    """Return the one row there is."""
    (row,) = rows
    return row


def run_peer(line: str, data: Path, **options: object) -> Row:
    """Run one peer on one file, as the row that comes of it."""
    return only(bench.run(["csv"], [], data=data, commands={"peer": line}, **options))  # type: ignore[arg-type]


def test_peer_is_measured_and_judged(peer, data: Path) -> None:
    """Tests that a program that stacks buffers gets a row with its peak, ratio and times."""
    row = run_peer(peer(STACK), data / "wide.100.csv", repeat=2)
    assert (row.suite, row.case, row.n, row.solver) == ("csv", "wide", 5, "peer")
    assert (row.objective, row.status) == ("fit", "fits")
    assert (row.peak, row.max_load, row.lower_bound) == (20, 12, 12)
    assert row.ratio == pytest.approx(20 / 12)
    assert row.wall_s is not None
    assert row.cpu_s is not None
    assert row.wall_min_s is not None
    assert 0 < row.wall_min_s <= row.wall_s
    assert row.error == ""


def test_peer_is_feasible_where_the_least_is_asked(peer, data: Path) -> None:
    """Tests that a plan above the load is only feasible under `min_peak`."""
    row = run_peer(peer(STACK), data / "wide.100.csv", objective="min_peak")
    assert (row.objective, row.status) == ("min_peak", "feasible")


def test_peer_beyond_the_capacity(peer, data: Path) -> None:
    """Tests that a plan that does not fit is no answer, but says by how much."""
    row = run_peer(peer(STACK), data / "five.12.csv")
    assert (row.status, row.peak) == ("unknown", 20)
    assert row.error == "the plan is 8 bytes beyond the capacity"


@pytest.mark.parametrize(
    ("program", "status", "error"),
    [
        ("import sys\nsys.exit('out of ideas')", "failed", "exit code 1: out of ideas"),
        ("import sys\nsys.exit(3)", "failed", "exit code 3: it said nothing"),
        ("pass", "failed", "it ended well but wrote no plan"),
        (STACK.replace('int(row["size"])', "0"), "invalid", 'buffer "b1" and buffer "b3" overlap'),
        ("import sys\nopen(sys.argv[2], 'w').write('hello')", "invalid", "plan.csv:"),
    ],
)
def test_peers_that_fail(peer, data: Path, program: str, status: str, error: str) -> None:
    """Tests that whatever a peer does wrong ends as a row that says so."""
    row = run_peer(peer(program), data / "wide.100.csv")
    assert row.status == status
    assert error in row.error
    assert os.sep not in row.error  # no path of a folder that is gone


def test_peer_that_hangs_is_killed(peer, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a program that does not stop is killed with its children, after one run."""
    hang = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(data / 'child')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )

    class Patient(threading.Timer):
        """A timer that waits at its end until the child of the program has begun."""

        def __init__(self, limit: float, expire: Callable[[], None]) -> None:
            def expire_late() -> None:
                wait_for_text(data / "child")
                expire()

            super().__init__(limit, expire_late)

    monkeypatch.setattr(command.threading, "Timer", Patient)
    monkeypatch.setattr(command, "_GRACE", 0.0)
    row = run_peer(peer(hang), data / "wide.100.csv", timeout=0.1, repeat=3)
    assert row.status == "killed"
    assert row.peak is None
    assert has_ended(int((data / "child").read_text()))


def wait_for_text(path: Path) -> str:
    """Wait until a file has a text; return it."""
    while not (path.exists() and path.read_text()):
        time.sleep(0.05)
    return path.read_text()


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that no process has waited for yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(1_000_000):  # SIGKILL is on its way
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX":
            return True
    return False


def test_placeholders(peer, data: Path) -> None:
    """Tests that a program gets capacity, time-out, threads and seed, in a folder of its own."""
    tell = STACK + "\nimport os\nsys.exit(' '.join([*sys.argv[3:], *sorted(os.listdir('.'))]))"
    line = peer(tell, "{input} {output} --c={capacity} {timeout} {threads} {seed} '{seed} {seed}'")
    row = run_peer(line, data / "five.12.csv", timeout=30, threads=2, seed=7)
    assert row.error == "exit code 1: --c=12 30 2 7 7 7 messages plan.csv problem.csv"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no-such-program {input} {output}", "peer 'p': there is no program 'no-such-program'"),
        ("", "peer 'p': there is no program ''"),
        ("python3 {input}", "does not use {output}"),
        ("python3 {output}", "does not use {input}"),
        ("python3 {input} {output} {speed}", "{speed} is unknown; there are {input}, {capacity}"),
        ("python3 '{input} {output}", "the command cannot be split"),
    ],
)
def test_command_lines_that_cannot_work(line: str, message: str) -> None:
    """Tests that a bad command line is refused before anything runs."""
    with pytest.raises(MemplanError) as caught:
        bench.run(["microbenchmarks"], [], commands={"p": line})
    assert message in str(caught.value)


def test_judge_believes_proofs_of_peers(five: Problem, five_offsets: list[int]) -> None:
    """Tests that statuses follow capacity, bound, objective and a peer's own claim."""
    measured = Outcome("unknown", wall=(1.0,))
    tall = [offset + 4 for offset in five_offsets]
    free = five.with_capacity(None)

    def status(offsets: list[int], problem: Problem, objective: str, claim: Status) -> str:
        bound = 16 if claim is Status.OPTIMAL else 0
        plan = Plan.of(free, offsets, status=claim, lower_bound=bound)
        return peers.judge(problem, plan, objective, measured).status

    assert status(five_offsets, five, "min_peak", Status.FEASIBLE) == "optimal"
    assert status(tall, free, "min_peak", Status.FEASIBLE) == "feasible"
    assert status(tall, free, "min_peak", Status.OPTIMAL) == "optimal"
    assert status(tall, five, "fit", Status.FEASIBLE) == "unknown"
    assert status(tall, five.with_capacity(16), "fit", Status.FEASIBLE) == "fits"
    assert status(tall, five.with_capacity(16), "fit", Status.OPTIMAL) == "optimal"
    assert status(five_offsets, five.with_capacity(16), "fit", Status.FEASIBLE) == "optimal"
    nothing = Plan.of(free, None, status=Status.UNKNOWN)
    assert peers.judge(five, nothing, "fit", measured).status == "unknown"


# The runner


def test_rows_come_in_order_and_one_by_one(peer, data: Path) -> None:
    """Tests that suites, cases and solvers keep their order, and each row is reported at once."""
    seen: list[Row] = []
    line = peer(STACK)
    rows = bench.run(
        ["challenging-reversed", "csv"],
        [],
        data=data,
        commands={"x": line, "a": line},
        on_row=seen.append,
    )
    assert seen == rows
    assert [(row.suite, row.case, row.solver) for row in rows] == [
        (suite, case, solver)
        for suite, cases in (
            ("challenging-reversed", ("five-reversed", "wide-reversed")),
            ("csv", ("five", "wide")),
        )
        for case in cases
        for solver in ("x", "a")
    ]


def test_a_size_that_cannot_be_made_is_a_row(peer) -> None:
    """Tests that a generator's refusal costs its own rows."""
    line = peer(STACK)
    rows = bench.run(["flat-load"], [], sizes=[3, 20], seeds=1, commands={"peer": line})
    assert [(row.n, row.status) for row in rows] == [(0, "error"), (20, "feasible")]
    assert "at least 18" in rows[0].error


def test_a_bad_file_is_a_row(peer, data: Path) -> None:
    """Tests that a file that cannot be read costs its own rows, and not the sweep."""
    (data / "broken.csv").write_text("id,lower,upper,size\na,3,1,4\n")
    rows = bench.run(["csv"], [], data=data, commands={"peer": peer(STACK)})
    assert [(row.case, row.status) for row in rows] == [
        ("broken", "error"),
        ("five", "unknown"),
        ("wide", "fits"),
    ]
    assert "broken.csv:2" in rows[0].error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solvers": []}, "name a solver or a peer"),
        ({"commands": {"auto": "python3 {input} {output}"}}, "has the name of a solver"),
        ({"repeat": 0}, "repeat is 0; it must be at least 1"),
        ({"limit": 0}, "limit: 0 is below 1"),
        ({"seeds": -1}, "seeds: -1 is below 1"),
        ({"sizes": [10, 0]}, "sizes: 0 is below 1"),
    ],
)
def test_sweeps_that_make_no_sense(data: Path, options: dict[str, object], message: str) -> None:
    """Tests that a sweep without a solver, or with counts below 1, is refused at once."""
    arguments: dict[str, object] = {"suites": ["csv"], "solvers": ["auto"], "data": data}
    with pytest.raises(MemplanError, match=message):
        bench.run(**{**arguments, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("solver", "status", "error"),
    [
        ("greedy_by_size", "error", "crashed with SIGSEGV: terminate called: out of luck"),
        ("gergov", "killed", "long after its timeout"),
    ],
)
def test_solvers_that_die(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    solver: str,
    status: str,
    error: str,
) -> None:
    """Tests that a solver which crashes or hangs becomes a row, and the next one runs."""
    let_solvers_misbehave(monkeypatch, tmp_path)
    monkeypatch.setattr(processes, "_GRACE", 2.0 if status == "killed" else 60.0)
    died, solved = bench.run(["csv"], [solver, "auto"], data=data / "five.12.csv", timeout=0.1)
    assert (died.status, died.peak) == (status, None)
    assert error in died.error
    assert solved.status == "optimal"


def let_solvers_misbehave(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let some solvers misbehave in the processes that begin from here on."""
    for name, value in misbehaving.install(folder).items():
        monkeypatch.setenv(name, value)


def test_interrupt_leaves_no_process(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that Ctrl-C during a run ends the solve and passes through."""
    let_solvers_misbehave(monkeypatch, tmp_path)
    note = tmp_path / "hanging"

    def interrupt() -> None:
        wait_for_text(note)
        os.kill(os.getpid(), signal.SIGINT)

    seen: list[Row] = []
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        bench.run(["csv"], ["gergov"], data=data, on_row=seen.append)
    thread.join()
    assert seen == []
    assert all(has_ended(int(start[2])) for start in misbehaving.starts(tmp_path))
    assert has_ended(int(note.read_text()))


def test_progress_is_lines_where_there_is_no_terminal(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a step that takes long is named again and again, and a short run says nothing."""
    bench.run(["csv"], ["greedy"], data=data, progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(bar, "_PAUSE", 0.001)
    said = ""
    with bar.bar(3) as step:
        step("first")
        step("second")
        while "second" not in said:
            said += capsys.readouterr().err
    assert re.search(r"^memplan: \d+ s, 2 of 3: second$", said, re.MULTILINE)
    teller = [thread for thread in threading.enumerate() if "tell" in thread.name]
    assert not teller


def test_progress_goes_to_standard_error(
    peer, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that the bar leaves standard output alone."""
    line = peer(STACK)
    rows = bench.run(["csv"], [], data=data, commands={"peer": line}, progress=True)
    assert len(rows) == 2
    assert capfd.readouterr().out == ""


# Workers


def test_libraries_are_loaded_before_the_clock_runs() -> None:
    """Tests that the first solve of a baseline does not pay for importing its library."""
    pytest.importorskip("ortools")
    pytest.importorskip("pandas")
    code = (
        "import sys\nfrom memplan_lab.bench import worker\n"
        "from memplan_lab.bench.rows import Request\n"
        "from memplan.problem import Problem\n"
        "seen, timed = [], worker._measure\n"
        "def spy(prepare, repeat):\n"
        "    seen.append('ortools.sat' in sys.modules)\n"
        "    return timed(prepare, repeat)\n"
        "worker._measure = spy\n"
        "request = Request('cp_sat:start=off', 'fit', 60.0, None, 1, 0, 1)\n"
        "worker.warm_up(request)\n"
        "found = worker.answer(Problem.from_arrays([0], [1], [1], capacity=1), request)\n"
        "assert (found.status, seen) == ('optimal', [True])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_time_of_children_counts() -> None:
    """Tests that CPU time has that of a process that a solver starts, as `mip` does."""
    burn = "import time\nwhile time.process_time() < 0.1: pass\nprint(time.process_time())"
    seconds, measured = worker._measure(
        lambda: lambda: float(subprocess.check_output([sys.executable, "-c", burn])), repeat=2
    )
    assert len(measured.cpu) == 2
    assert measured.cpu[1] >= seconds


@pytest.mark.parametrize(
    ("seconds", "repeat", "runs"),
    [(0.001, 1, 11), (0.006, 1, 4), (0.5, 1, 1), (0.001, 3, 13), (0.009, 3, 3), (0.5, 3, 3)],
)
def test_short_runs_are_repeated(
    monkeypatch: pytest.MonkeyPatch, seconds: float, repeat: int, runs: int
) -> None:
    """Tests that some 20 ms or 10 further runs are spent, and each begins with what is its own."""
    now, prepared = [0.0], []
    monkeypatch.setattr(worker.time, "perf_counter", lambda: now[0])

    def prepare() -> Callable[[], int]:
        number = len(prepared)
        prepared.append(number)
        now[0] += 7.0  # which is no part of any run

        def call() -> int:
            now[0] += seconds
            return number

        return call

    last, measured = worker._measure(prepare, repeat)
    assert prepared == list(range(runs))
    assert last == runs - 1
    assert measured.wall == pytest.approx([seconds] * runs)
    assert len(measured.cpu) == runs


def test_no_run_knows_what_another_has_learned(
    monkeypatch: pytest.MonkeyPatch, five: Problem
) -> None:
    """Tests that what a problem keeps once it is derived is derived again by every run."""
    from memplan import solvers

    problems: list[Problem] = []
    known: list[set[str]] = []
    solve = solvers.solve

    def spy(problem: Problem, **arguments: Any) -> Plan:
        problems.append(problem)
        known.append(set(vars(problem)))
        plan = solve(problem, **arguments)
        assert set(vars(problem)) > known[-1]
        return plan

    monkeypatch.setattr(solvers, "solve", spy)
    outcome = worker.answer(five, Request("auto", "min_peak", 60.0, None, 1, 0, 3))
    assert outcome.status == "optimal"
    assert len({id(problem) for problem in problems}) == len(outcome.wall) >= 3
    assert all(names == known[0] for names in known)


def test_workers_are_light() -> None:
    """Tests that the warm process loads nothing to show results, nor for other solvers."""
    heavy = ("rich", "typer", "pyarrow", "matplotlib", "omnimalloc")
    program = (
        f"import sys, memplan_lab.bench.zygote; print([m for m in {heavy} if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout == "[]\n", answer.stderr


def test_omnimalloc(data: Path) -> None:
    """Tests that the library's default, and an allocator that proves, run as solvers."""
    pytest.importorskip("omnimalloc")
    rows = bench.run(
        ["csv"],
        ["omnimalloc", "omnimalloc:supermalloc", "omnimalloc:nothing"],
        data=data / "wide.100.csv",
        objective="min_peak",
        timeout=5,
        repeat=2,
    )
    assert [row.status for row in rows] == ["optimal", "optimal", "error"]
    assert [row.peak for row in rows] == [12, 12, None]
    assert "omnimalloc has no allocator 'nothing'; it has" in rows[2].error
    assert rows[0].wall_s is not None
    assert rows[0].peak_rss_mib is not None
    assert rows[0].peak_rss_mib > 5


def test_omnimalloc_takes_what_it_can() -> None:
    """Tests that sizes of 0, negative times and pins are passed around the library's limits."""
    pytest.importorskip("omnimalloc")
    problem = Problem(
        [
            Buffer("a", start=-3, end=2, size=4, pin=8),
            Buffer("b", start=-1, end=2, size=4),
            Buffer("z", start=0, end=2, size=0),
        ]
    )
    plan = peers.prepare(problem, "omnimalloc", None, 1, 0)()()
    assert plan.offset("a") == 8
    assert plan.peak == 12


@pytest.mark.parametrize(
    ("problem", "what"),
    [
        (Problem([Buffer("a", start=0, end=3, size=4, alignment=4)]), "alignments"),
        (Problem([Buffer("a", start=0, end=3, size=4, gaps=(Gap(1, 2),))]), "gaps"),
        (Problem([], reserved=[(0, 4)]), "reserved ranges"),
    ],
)
def test_omnimalloc_refuses_what_it_lacks(problem: Problem, what: str) -> None:
    """Tests that a constraint that the library does not have is named."""
    pytest.importorskip("omnimalloc")
    with pytest.raises(UnsupportedError, match=what):
        peers.prepare(problem, "omnimalloc", None, 1, 0)


def test_worker_measures_our_solvers(data: Path) -> None:
    """Tests that `greedy` runs in a worker, with counts, memory and a verified plan."""
    pytest.importorskip("memplan._core")
    rows = bench.run(["csv"], ["greedy", "auto"], data=data, repeat=3)
    assert [row.solver for row in rows] == ["greedy", "auto", "greedy", "auto"]
    assert [row.peak for row in rows if row.solver == "auto"] == [12, 12]
    for row in rows:
        assert row.solved
        assert row.nodes is not None
        assert row.peak_rss_mib is not None
        assert row.wall_min_s is not None
        assert row.wall_s is not None
        assert row.wall_min_s <= row.wall_s


def test_unknown_solvers_are_named_before_anything_runs(data: Path) -> None:
    """Tests that a solver that does not exist is refused by name, not found out case by case."""
    with pytest.raises(MemplanError, match='"no-such"'):
        bench.run(["csv"], ["no-such"], data=data / "five.12.csv")


def test_challenging_data_when_it_is_there() -> None:
    """Tests that the published instances are found, each with its capacity."""
    folder = Path(__file__).parents[1] / ".." / "shared" / "data" / "challenging"
    if not folder.is_dir():
        pytest.skip("the data is not here")
    cases = suites.cases("challenging", suites.Options(data=folder))
    assert [case.name for case in cases] == list("ACEGIK")
    assert all(case.make().capacity == 1 << 20 for case in cases)

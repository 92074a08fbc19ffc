"""Tests of `memplan-lab sweep` on Dask: kills, limits, several hosts, interrupts."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import misbehaving
import pytest

from memplan.problem import Problem, formats
from memplan_lab import study, sweep
from memplan_lab.bench import processes
from memplan_lab.cli import main

pytest.importorskip("distributed")
pytest.importorskip("pyarrow.dataset")
psutil = pytest.importorskip("psutil")

pytestmark = pytest.mark.deep
if sys.platform != "linux":
    pytest.skip("hosts are addresses of 127.0.0.0/8 here", allow_module_level=True)

# What two runs of a task have in common, wherever they ran.
ANSWER = ("key", "suite", "instance", "fingerprint", "n", "max_load", "solver", "options")
ANSWER += ("objective", "capacity_ratio", "capacity_base", "capacity")
ANSWER += ("timeout", "node_limit", "seed", "repeat")
ANSWER += ("status", "peak", "lower_bound", "verified", "error", "attempt")
SMALL = ("--suite", "synthetic", "--sample", "6", "--timeout", "20")
SMALL += ("--solver", "auto", "--solver", "greedy")
SMALL += ("--capacity-factor", "none", "--capacity-factor", "1.5")


def command(out: Path, *arguments: str) -> list[str]:
    """Return a sweep as a program of its own."""
    return [sys.executable, "-m", "memplan_lab", "sweep", "-o", str(out), *arguments]


def answers(out: Path) -> list[dict[str, object]]:
    """Return what of the rows does not depend on machine and moment."""
    rows: list[dict[str, object]] = sweep.read(out).select(list(ANSWER)).to_pylist()
    return rows


def wait_for(what: object, seconds: float = 300.0) -> None:
    """Wait until a call returns something true."""
    assert callable(what)
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def family(process: psutil.Process) -> list[psutil.Process]:
    """Return all that a process has started, and they in turn."""
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def is_worker(process: psutil.Process) -> bool:
    """Whether it is a worker process of a local cluster."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def has_ended(process: psutil.Process) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def rows_so_far(out: Path) -> int:
    """Return how many rows there are, while another process writes them."""
    try:
        return int(sweep.read(out).num_rows)
    except (ValueError, OSError):  # not yet begun
        return 0


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of the small sweep on two processes of this machine."""
    out = tmp_path_factory.mktemp("local") / "out"
    done = subprocess.run(command(out, *SMALL, "--workers", "2"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "24 tasks" in done.stderr
    assert "an overhead of" in done.stderr
    assert "optimal" in done.stdout
    return out


def test_a_small_sweep(local: Path) -> None:
    """Tests that every task has one row, verified, and that the metadata name its worker."""
    rows = answers(local)
    assert len(rows) == len({row["key"] for row in rows}) == 24
    assert Counter((row["solver"], row["objective"]) for row in rows) == {
        (solver, objective): 6 for solver in ("auto", "greedy") for objective in ("min_peak", "fit")
    }
    found = {row["status"] for row in rows if (row["solver"], row["objective"]) == ("auto", "fit")}
    assert found <= {"fits", "optimal"}
    best = (row for row in rows if (row["solver"], row["objective"]) == ("auto", "min_peak"))
    assert {row["status"] for row in best} == {"optimal"}
    assert all(row["verified"] for row in rows if row["peak"] is not None)
    assert {row["attempt"] for row in rows} == {1}
    about = sweep.read_metadata(local)
    (session,) = about["sessions"]
    assert about["total"] == 24
    assert session["command"][:2] == ["memplan-lab", "sweep"]
    assert session["versions"]["distributed"]
    assert set(sweep.read(local)["worker"].to_pylist()) <= set(session["workers"])
    assert len(list((local / "rows").rglob("*.parquet"))) == 2


def test_resuming_what_is_done_runs_nothing(local: Path, tmp_path: Path) -> None:
    """Tests that a task that has a row is not run again, and other settings are refused."""
    before = sweep.read(local)
    again = command(local, *SMALL, "--workers", "1")
    done = subprocess.run([*again, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "an overhead of" not in done.stderr
    assert sweep.read(local).equals(before)
    assert len(sweep.read_metadata(local)["sessions"]) == 2

    refused = subprocess.run(again, capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "continue it with --resume" in refused.stderr
    other = subprocess.run([*again, "--resume", "--seed", "3"], capture_output=True, text=True)
    assert other.returncode == 2
    assert "was started with seed 0 and not 3" in other.stderr


def test_a_limit_of_nodes(tmp_path: Path) -> None:
    """Tests that solves stop after these nodes, and that a sweep with other ones is not resumed."""
    out = tmp_path / "out"
    limited = ("--suite", "flat-load", "--sample", "3", "--workers", "1", "--nodes")
    solvers = ("--solver", "telamalloc", "--solver", "minimalloc")
    begin = command(out, *limited, "50", *solvers)
    done = subprocess.run(begin, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = sweep.read(out).to_pylist()
    assert len(rows) == 6
    assert {row["node_limit"] for row in rows} == {50}
    assert 40 < max(row["nodes"] for row in rows) <= 50
    assert "optimal" not in {row["status"] for row in rows}
    assert {row.node_limit for row in sweep.read_rows(out)} == {50}
    assert sweep.read_metadata(out)["settings"]["node_limit"] == 50
    again = command(out, *limited, "60", *solvers, "--resume")
    other = subprocess.run(again, capture_output=True, text=True)
    assert other.returncode == 2
    assert "was started with node_limit 50 and not 60" in other.stderr


def test_figure_14_is_a_sweep(tmp_path: Path) -> None:
    """Tests which block TelaMalloc places next, on three problems, and the report of the rules."""
    out = tmp_path / "figure-14"
    arguments = ["--suite", "flat-load", "--capacity-factor", "1.1", "--nodes", "300"]
    arguments += ["--timeout", "20", "--workers", "1", "--sample", "3", "--solver", "telamalloc"]
    for rule in ("size", "area", "lifetime", "lowest"):
        arguments += ["--solver", f"telamalloc:select={rule}"]
    done = subprocess.run(command(out, *arguments), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = sweep.read(out).to_pylist()
    rules = ["", *(f"select={rule}" for rule in ("size", "area", "lifetime", "lowest"))]
    assert Counter((row["solver"], row["options"]) for row in rows) == {
        ("telamalloc", rule): 3 for rule in rules
    }
    assert all(row["nodes"] <= 300 and row["capacity_ratio"] == 1.1 for row in rows)
    assert {row["objective"] for row in rows} == {"fit"}
    made = dict(study.sections.sections(study.read([out])))
    (table,) = made["Ablations"].blocks
    assert [row[0] for row in table.lines] == ["(default)", *sorted(rules[1:])]


# Tasks that fail


def test_tasks_that_fail_are_tried_twice(
    tmp_path: Path, five: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests a crash, a hang, too much memory, one bad moment, and a file that is broken."""
    for name, value in misbehaving.install(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(processes, "_GRACE", 2.0)
    data = tmp_path / "data"
    data.mkdir()
    formats.save(five, data / "five.12.csv")
    (data / "broken.csv").write_text("id,lower,upper,size\nb1,3,0,4\n")
    solvers = ["greedy_by_size", "large", "gergov", "single_object", "exact"]
    settings = sweep.Settings(
        ["csv"], solvers, capacities=["1.0"], timeout=0.5, memory=500 << 20, data=str(data)
    )
    seen: list[sweep.Result] = []
    effort = sweep.run(settings, tmp_path / "out", workers=1, on_result=seen.append)
    assert effort.ran == len(seen) == 10
    assert effort.runs == sum(row.runs or 0 for row in seen) >= 2
    assert effort.solve_s == pytest.approx(sum(row.solve_s or 0.0 for row in seen))
    rows = {(row["instance"], row["solver"]): row for row in answers(tmp_path / "out")}
    assert len(rows) == 10
    ends = {solver: rows["five", solver] for solver in solvers}
    assert {name: (row["status"], row["attempt"]) for name, row in ends.items()} == {
        "greedy_by_size": ("failed", 2),
        "large": ("optimal", 2),
        "gergov": ("failed", 2),
        "single_object": ("failed", 2),
        "exact": ("optimal", 1),
    }
    assert "crashed with SIGSEGV" in str(ends["greedy_by_size"]["error"])
    assert "long after its timeout" in str(ends["gergov"]["error"])
    assert "more memory than its 500 MiB" in str(ends["single_object"]["error"])
    assert {rows["broken", solver]["status"] for solver in solvers} == {"failed"}
    assert "broken.csv:2" in str(rows["broken", "exact"]["error"])
    began = Counter(start[0] for start in misbehaving.starts(tmp_path))
    assert began == {**dict.fromkeys(solvers, 2), "exact": 1}


# Kills


def begin(out: Path, environment: dict[str, str], *more: str) -> subprocess.Popen[bytes]:
    """Start a sweep of 60 slow tasks; return when it has written a row more than there were."""
    before = rows_so_far(out)
    arguments = ("--suite", "synthetic", "--sample", "60", "--solver", "shared_objects")
    client = subprocess.Popen(command(out, *arguments, "--workers", "2", *more), env=environment)
    wait_for(lambda: rows_so_far(out) > before)
    return client


def kill_workers(client: int, count: int, moment: random.Random) -> None:
    """Kill a worker that lives, again and again, at random moments."""
    parent = psutil.Process(client)
    for _ in range(count):
        workers: list[psutil.Process] = []
        wait_for(lambda found=workers: found.extend(filter(is_worker, family(parent))) or found)
        moment.choice(workers).kill()
        time.sleep(moment.uniform(0.0, 1.0))


def test_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    """Tests ten kills of workers at random moments, one of the client, and a resumed sweep.

    A row may say that a task failed because its worker was killed twice; all others are those of a
    sweep without disturbances.
    """
    out, environment = tmp_path / "out", os.environ | misbehaving.install(tmp_path)
    moment = random.Random(10)
    client = begin(out, environment)
    kill_workers(client.pid, 5, moment)
    children = family(psutil.Process(client.pid))
    client.kill()
    client.wait()
    wait_for(lambda: all(map(has_ended, children)))
    assert rows_so_far(out) < 45, "it ended before it could be killed"
    client = begin(out, environment, "--resume")
    kill_workers(client.pid, 5, moment)
    assert client.wait() == 0
    rows = answers(out)
    assert len(rows) == len({row["key"] for row in rows}) == 60
    assert {(row["status"], row["error"]) for row in rows} <= {
        ("feasible", ""),
        ("optimal", ""),
        ("failed", "the worker died"),
    }
    began = Counter(start[1] for start in misbehaving.starts(tmp_path))
    assert set(began) == {row["fingerprint"] for row in rows}
    assert max(began.values()) <= 4  # two attempts before the client's end, two after it
    # A kill costs the task that ran, and no other.
    costs = [(row["attempt"] == 2) + (row["status"] == "failed") for row in rows]
    assert sum(costs) <= 10


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_a_readable_folder(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Tests that the code is the shell's, the sentence says how to go on, and no process stays."""
    out, environment = tmp_path / "out", os.environ | misbehaving.install(tmp_path)
    arguments = ("--suite", "synthetic", "--sample", "60", "--solver", "shared_objects")
    client = subprocess.Popen(
        command(out, *arguments, "--workers", "1"),
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: rows_so_far(out) > 0)
    children = family(psutil.Process(client.pid))
    # A terminal sends Ctrl-C to all of its foreground; `kill` sends to one.
    (os.killpg if number == signal.SIGINT else os.kill)(client.pid, number)
    _, error = client.communicate()
    assert client.returncode == code, error
    assert f"of 60 tasks, which are in {out}; add --resume" in error
    assert "Traceback" not in error
    assert 0 < rows_so_far(out) < 60
    wait_for(lambda: all(map(has_ended, children)))


def test_an_interrupt_while_workers_start(tmp_path: Path) -> None:
    """Tests that an impatient user sees one sentence, and leaves neither folder nor process."""
    client = subprocess.Popen(
        command(tmp_path / "out", *SMALL, "--workers", "2"),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    parent = psutil.Process(client.pid)
    wait_for(lambda: any(map(is_worker, family(parent))))
    children = family(parent)
    os.killpg(client.pid, signal.SIGINT)
    _, error = client.communicate()
    assert client.returncode == 130
    assert error.strip() == "memplan: interrupted before the first task"
    assert not (tmp_path / "out").exists()
    wait_for(lambda: all(map(has_ended, children)))


# Other hosts


@contextmanager
def scheduler(port: int, environment: dict[str, str]) -> Iterator[str]:
    """Run a scheduler on 127.0.0.1."""
    program = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    with running([*program, "--port", str(port), "--no-dashboard"], environment):
        wait_for(lambda: listens(port))
        yield f"tcp://127.0.0.1:{port}"


@contextmanager
def worker(address: str, host: str, environment: dict[str, str]) -> Iterator[None]:
    """Run a worker with an address of its own."""
    program = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--host", host]
    options = ["--nthreads", "1", "--no-dashboard", "--local-directory", environment["TMPDIR"]]
    with running([*program, *options], environment):
        yield


@contextmanager
def running(program: list[str], environment: dict[str, str]) -> Iterator[None]:
    """Run a program while the context lasts."""
    process = subprocess.Popen(
        program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def listens(port: int) -> bool:
    """Whether a process takes connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """Return a port that no process uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return that of hosts without a disk in common: each starts in a folder of its own."""
    return {**os.environ, "TMPDIR": str(tmp_path)}


def test_other_hosts_give_the_same_table(
    tmp_path: Path, local: Path, environment: dict[str, str]
) -> None:
    """Tests a scheduler and two workers at three addresses against processes of this machine."""
    out = tmp_path / "out"
    with (
        scheduler(free_port(), environment) as address,
        worker(address, "127.0.0.2", environment),
        worker(address, "127.0.0.3", environment),
    ):
        assert main(["sweep", *SMALL, "--scheduler", address, "-o", str(out)]) == 0
    assert answers(out) == answers(local)
    workers = sweep.read_metadata(out)["sessions"][0]["workers"]
    hosts = {name.rpartition("/")[2].partition(":")[0] for name in workers}
    assert hosts <= {"127.0.0.2", "127.0.0.3"}
    used = {
        name.rpartition("/")[2].partition(":")[0] for name in sweep.read(out)["worker"].to_pylist()
    }
    assert used == {"127.0.0.2", "127.0.0.3"}


def test_a_scheduler_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that it is one sentence with what to do, and no folder is made."""
    out = tmp_path / "out"
    for address in (f"tcp://127.0.0.1:{free_port()}", "nonsense", "tcp://nowhere.invalid:8786"):
        assert main(["sweep", *SMALL, "--scheduler", address, "-o", str(out)]) == 2
        error = capsys.readouterr().err
        assert (
            f"the scheduler {address!r} does not answer; start one with `dask scheduler`" in error
        )
        assert len(error.splitlines()) == 1
    assert not out.exists()


def test_workers_are_given_where_they_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the number of workers of a cluster is not the client's to choose."""
    arguments = [*SMALL, "--scheduler", "tcp://127.0.0.1:8786", "--workers", "2"]
    assert main(["sweep", *arguments, "-o", str(tmp_path / "out")]) == 2
    assert (
        "workers is 2, but the workers of tcp://127.0.0.1:8786 are running already"
        in capsys.readouterr().err
    )


def test_a_cluster_that_cannot_solve(
    tmp_path: Path,
    environment: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests a scheduler without workers, and a worker without memplan."""
    from memplan_lab.sweep import cluster

    monkeypatch.setattr(cluster, "_FIRST_WORKER", 0.5)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import sys\nfrom importlib import metadata\n"
        "sys.modules['memplan'], version = None, metadata.version\n"
        "metadata.version = lambda name: version('none' if name == 'memplan' else name)\n"
    )
    out = tmp_path / "out"
    with scheduler(free_port(), environment) as address:
        arguments = ["sweep", *SMALL, "--scheduler", address, "-o", str(out)]
        assert main(arguments) == 2
        assert f"has no workers; start some with `dask worker {address}`" in capsys.readouterr().err
        monkeypatch.setattr(cluster, "_FIRST_WORKER", 60.0)
        with worker(address, "127.0.0.2", {**environment, "PYTHONPATH": str(site)}):
            assert main(arguments) == 2
            assert "the worker tcp://127.0.0.2:" in (error := capsys.readouterr().err)
            assert "has no memplan; install" in error
    assert not out.exists()

"""Tests of `memplan_lab.sweep` without Dask: tasks and their keys, and the folder of results."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
import sweep_folder

from memplan.base.errors import FormatError, MemplanError
from memplan.problem import Buffer, Problem, formats
from memplan_lab import sweep
from memplan_lab.bench.suites import Case
from memplan_lab.cli import main
from memplan_lab.sweep import tasks
from memplan_lab.sweep.cluster import check_versions
from memplan_lab.sweep.dataset import Dataset, check
from memplan_lab.sweep.results import Result
from memplan_lab.sweep.tasks import Settings, items

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")

pytestmark = pytest.mark.slow

RESULT = replace(
    sweep_folder.RESULT,
    suite="csv",
    instance="five",
    n=5,
    max_load=12,
    objective="fit",
    capacity_ratio=1.1,
    capacity_base="own",
    capacity=13,
    peak=12,
    lower_bound=12,
    worker="tcp://127.0.0.1:1",
    started=datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
)
SETTINGS = Settings(suites=["synthetic"])


def numbered(count: int, solver: str = "auto", since: int = 0) -> list[Result]:
    """Return results with keys of their own."""
    return [replace(RESULT, key=f"{at:032}", solver=solver) for at in range(since, since + count)]


def keys(folder: Path) -> list[int]:
    """Return the keys of `numbered` that are in a folder."""
    return [int(key) for key in sweep.read(folder)["key"].to_pylist()]


@pytest.fixture
def data(tmp_path: Path, five: Problem) -> Path:
    """Return a folder of two CSVs: with a capacity of their own, and without."""
    folder = tmp_path / "data"
    folder.mkdir()
    formats.save(five, folder / "five.20.csv")
    formats.save(five, folder / "free.csv")
    return folder


# Settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"suites": []}, "suites is empty"),
        ({"solvers": []}, "solvers is empty"),
        ({"solvers": ["nothing"]}, 'there is no solver "nothing"; choose one of auto, greedy'),
        ({"solvers": ["exact:luck=on"]}, 'exact has no option "luck"; it has portfolio'),
        ({"capacities": ["0"]}, 'capacity "0" is neither a ratio such as 1.1 nor none'),
        ({"capacities": ["much"]}, 'capacity "much" is neither'),
        ({"capacities": ["1/0"]}, 'capacity "1/0" is neither'),
        ({"capacities": ["inf"]}, 'capacity "inf" is neither'),
        ({"timeout": 0.0}, "timeout is 0.0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"node_limit": 0}, "node_limit is 0; it must be at least 1"),
        ({"memory": 1000}, "memory is 1000; it must be at least 1048576"),
        ({"repeat": 0}, "repeat is 0"),
        ({"sample": 0}, "sample is 0; it must be at least 1"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, object], message: str) -> None:
    """Tests that a mistake is reported before anything runs."""
    with pytest.raises(MemplanError, match=message.replace("(", r"\(")):
        Settings(**{"suites": ["synthetic"], **changes})  # type: ignore[arg-type]


def test_a_suite_that_is_not_there() -> None:
    """Tests that the suites are named."""
    with pytest.raises(MemplanError, match="there is no suite 'nothing'; the suites are"):
        Settings(suites=["nothing"]).cases()


def test_a_sample_of_too_many() -> None:
    """Tests that a sample is not larger than the suite."""
    with pytest.raises(MemplanError, match="a sample of 600 is more than all 525 problems"):
        Settings(suites=["synthetic"], sample=600).cases()


def test_a_sample_depends_on_the_seed_alone() -> None:
    """Tests that a sample is in the order of the suite, distinct, and repeats."""
    first, again, other = (
        [case.name for case in replace(SETTINGS, sample=40, seed=seed).cases()]
        for seed in (1, 1, 2)
    )
    everything = [case.name for case in SETTINGS.cases()]
    assert first == again != other
    assert len(set(first)) == 40
    assert first == sorted(first, key=everything.index)


def test_a_name_given_twice_counts_once() -> None:
    """Tests that a task which is typed twice is there once."""
    settings = Settings(suites=["csv"], solvers=["auto", "auto"], capacities=["1.0", "none", "1.0"])
    assert (settings.solvers, settings.capacities) == (("auto",), ("1.0", "none"))
    assert settings.tasks_of_a_case() == 2


# Tasks


def test_capacities_are_exact_shares() -> None:
    """Tests that 1.1 is eleven tenths, and not the next double."""
    assert tasks.ratio("1.1") == Fraction(11, 10)
    assert tasks.ratio("none") is None


def test_tasks_of_a_folder(data: Path) -> None:
    """Tests capacities of all bases, the order of tasks, and that keys are distinct."""
    settings = Settings(
        suites=["csv"],
        solvers=["auto", "telamalloc:learned=on"],
        capacities=["none", "1.1"],
        repeat=2,
        data=str(data),
    )
    found = [item.task for item in items(settings, settings.cases())]
    assert len(found) == 2 * settings.tasks_of_a_case() == len({task.key for task in found})
    assert [(t.solver, t.options) for t in found[:2]] == [
        ("auto", ""),
        ("telamalloc", "learned=on"),
    ]
    facts = {
        (t.instance, t.objective, t.capacity_ratio, t.capacity_base, t.capacity) for t in found
    }
    assert facts == {
        ("five", "min_peak", None, None, None),
        ("five", "fit", 1.1, "own", 22),
        ("free", "min_peak", None, None, None),
        ("free", "fit", 1.1, "bound", 13),
    }
    assert {(t.n, t.max_load, t.repeat) for t in found} == {(5, 12, 0), (5, 12, 1)}


def test_shares_are_of_the_best_peak_that_is_known(five: Problem) -> None:
    """Tests that a peak that a suite knows comes before the problem's own capacity."""
    case = Case("corpus", "five", lambda: five, best_peak=100)
    (item,) = items(replace(SETTINGS, capacities=["1.07"]), [case])
    assert (item.task.capacity_base, item.task.capacity) == ("best", 107)


def test_keys_change_with_all_that_decides(five: Problem) -> None:
    """Tests that another problem, name, solver, limit or seed is another task, and no more."""
    case = Case("mine", "five", lambda: five)
    other = Problem([Buffer("b", 0, 1, 4)], capacity=12)

    def key(case: Case = case, **changes: object) -> str:
        (item,) = items(replace(SETTINGS, **changes), [case])  # type: ignore[arg-type]
        return item.task.key

    assert key() == key(memory=1 << 30) == key(data="elsewhere")
    assert len(key()) == 32
    different = [
        key(),
        key(replace(case, name="six")),
        key(replace(case, suite="other")),
        key(replace(case, make=lambda: other)),
        key(solvers=["greedy"]),
        key(solvers=["exact:twins=off"]),
        key(capacities=["1.0"]),
        key(capacities=["1.1"]),
        key(timeout=1.0),
        key(node_limit=1),
        key(seed=1),
    ]
    assert len(set(different)) == len(different)


def test_a_problem_that_cannot_be_made_is_a_task_without_an_order(data: Path) -> None:
    """Tests that a broken file costs its own rows."""
    (data / "five.20.csv").write_text("id,lower,upper,size\nb1,3,0,4\n")
    settings = Settings(suites=["csv"], data=str(data))
    broken, whole = items(settings, settings.cases())
    assert broken.order is None
    assert "five.20.csv:2" in broken.error
    assert whole.order is not None
    assert whole.error == ""


# The folder


def test_rows_come_back(tmp_path: Path) -> None:
    """Tests that a row is read as it was written, of every type, with and without values."""
    empty = replace(
        RESULT,
        key="1" * 32,
        solver="cp_sat",
        **dict.fromkeys(
            ("capacity_ratio", "capacity_base", "capacity", "peak", "lower_bound", "nodes"), None
        ),
        wall_s=None,
        verified=None,
        error='it said "no", in two\nlines',
    )
    with Dataset(tmp_path / "out", SETTINGS, 2) as dataset:
        dataset.begin({"command": ["memplan"]})
        dataset.add(empty)
        dataset.add(RESULT)
    rows = sweep.read(tmp_path / "out")
    assert rows.schema == sweep.schema()
    assert [Result(**row) for row in rows.to_pylist()] == [RESULT, empty]
    about = sweep.read_metadata(tmp_path / "out")
    assert about["total"] == 2
    assert about["settings"] == SETTINGS.as_json()
    assert about["sessions"] == [{"command": ["memplan"]}]


def test_other_readers_need_nothing_of_ours(tmp_path: Path) -> None:
    """Tests that the rows are a Hive-partitioned dataset: one folder a solver."""
    folder = tmp_path / "out"
    with Dataset(folder, SETTINGS, 5) as dataset:
        dataset.begin({})
        for row in (*numbered(3), *numbered(2, "greedy", since=3)):
            dataset.add(row)
    found = ds.dataset(folder / "rows", partitioning="hive").to_table()
    assert sorted(found["solver"].to_pylist()) == ["auto"] * 3 + ["greedy"] * 2
    assert set(found.schema.names) == set(sweep.schema().names)


def test_parts_are_merged(tmp_path: Path) -> None:
    """Tests that many small files become one, also where a kill has left others."""
    folder = tmp_path / "out"
    with Dataset(folder, SETTINGS, 9) as dataset:
        dataset.begin({})
        for row in numbered(9):
            dataset.add(row)
            dataset.flush()
        rows = folder / "rows" / "solver=auto"
        assert len(list(rows.iterdir())) == 9
        (rows / ".part-0123.parquet.abcd.tmp").write_bytes(b"PAR1 half of")
        assert keys(folder) == list(range(9))
        dataset.compact()
        assert len(list(rows.iterdir())) == 1
    assert keys(folder) == list(range(9))


def test_a_kill_between_merging_and_removing_doubles_nothing(tmp_path: Path) -> None:
    """Tests that a row that is in two files is read once, and once is left by the next merge."""
    folder = tmp_path / "out"
    with Dataset(folder, SETTINGS, 4) as dataset:
        dataset.begin({})
        for row in (*numbered(3), *numbered(2, since=1)):
            dataset.add(row)
            dataset.flush()
    assert keys(folder) == [0, 1, 2]
    with Dataset(folder, SETTINGS, 4) as dataset:
        assert len(dataset.done) == 3
        dataset.compact()
    (part,) = (folder / "rows" / "solver=auto").iterdir()
    assert ds.dataset(part).count_rows() == 3


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """Tests that another process is refused while the first lives, and that a kill frees it."""
    folder = tmp_path / "out"
    program = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "from memplan_lab.sweep.dataset import Dataset\n"
        "from memplan_lab.sweep.tasks import Settings\n"
        f"dataset = Dataset(Path({str(folder)!r}), Settings(suites=['synthetic']), 1)\n"
        "dataset.begin({})\nprint('open', flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(FormatError, match=f"being written by process {other.pid} of"):
            Dataset(folder, SETTINGS, 1)
        other.kill()
    Dataset(folder, SETTINGS, 1).close()


def test_folders_that_are_refused(tmp_path: Path) -> None:
    """Tests every reason not to write into a folder, and that each says what to do."""
    file = tmp_path / "file"
    file.write_text("mine")
    used, made = tmp_path / "used", tmp_path / "made"
    used.mkdir()
    (used / "thesis.tex").write_text("mine")
    with Dataset(made, SETTINGS, 1) as dataset:
        dataset.begin({})
    refused = [
        (file, SETTINGS, False, "is a file; name a folder"),
        (used, SETTINGS, False, "is neither empty nor a sweep"),
        (used, SETTINGS, True, "is not a sweep: it has no metadata.json"),
        (tmp_path / "new", SETTINGS, True, "is not a sweep"),
        (made, SETTINGS, False, "continue it with --resume"),
        (
            made,
            replace(SETTINGS, timeout=30.0, node_limit=9, solvers=["auto", "greedy"]),
            True,
            "was started with solvers auto and not auto,greedy, timeout 60.0 and not 30.0, "
            "node_limit None and not 9;",
        ),
    ]
    for folder, settings, resume, reason in refused:
        with pytest.raises(FormatError, match=reason):
            check(folder, settings, resume=resume)
    check(made, SETTINGS, resume=True)
    check(tmp_path / "new", SETTINGS, resume=False)


def test_a_sweep_of_another_release_is_not_gone_on_with(tmp_path: Path) -> None:
    """Tests that results of two releases are not mixed."""
    with Dataset(tmp_path, SETTINGS, 1) as dataset:
        dataset.begin({})
    about = json.loads((tmp_path / "metadata.json").read_text())
    (tmp_path / "metadata.json").write_text(json.dumps({**about, "memplan": "0.0.1"}))
    with pytest.raises(FormatError, match=r"was started with memplan 0\.0\.1, and this is"):
        check(tmp_path, SETTINGS, resume=True)
    (tmp_path / "metadata.json").write_text(json.dumps({**about, "format": 2}))
    with pytest.raises(FormatError, match="does not describe a sweep of format 1"):
        sweep.read_metadata(tmp_path)
    (tmp_path / "metadata.json").write_text('{"format": 1,')
    with pytest.raises(FormatError, match=r"metadata\.json:1: the file is not JSON"):
        sweep.read_metadata(tmp_path)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    """Tests that the error names the file to look at."""
    with Dataset(tmp_path, SETTINGS, 1) as dataset:
        dataset.begin({})
        dataset.add(RESULT)
    (part,) = (tmp_path / "rows" / "solver=auto").iterdir()
    part.write_bytes(b"PAR1 no more")
    with pytest.raises(FormatError, match=part.name):
        sweep.read(tmp_path)


def test_rows_of_before_short_solves_were_repeated(tmp_path: Path) -> None:
    """Tests that columns that a part lacks are empty, and the others are read."""
    with Dataset(tmp_path, SETTINGS, 1) as dataset:
        dataset.begin({})
        dataset.add(RESULT)
    (part,) = (tmp_path / "rows" / "solver=auto").iterdir()
    parquet = pytest.importorskip("pyarrow.parquet")
    new = ["runs", "first_cpu_s", "solve_s"]
    parquet.write_table(parquet.ParquetFile(part).read().drop_columns(new), part)
    (row,) = sweep.read(tmp_path).to_pylist()
    assert Result(**row) == replace(RESULT, runs=None, first_cpu_s=None, solve_s=None)


def test_fits_of_before(tmp_path: Path) -> None:
    """Tests that rows which call a fit above its bound optimal are read as fits."""
    with Dataset(tmp_path, SETTINGS, 2) as dataset:
        dataset.begin({})
        for at, peak in enumerate((12, 13)):
            dataset.add(replace(RESULT, key=f"{at:032}", peak=peak, status="optimal"))
    assert sweep.read(tmp_path)["status"].to_pylist() == ["optimal", "fits"]
    assert [each.status for each in sweep.read_rows(tmp_path)] == ["optimal", "fits"]


def test_a_sweep_without_rows(tmp_path: Path) -> None:
    """Tests that a sweep that was stopped at once can be read."""
    with Dataset(tmp_path, SETTINGS, 1) as dataset:
        dataset.begin({})
    assert sweep.read(tmp_path).num_rows == 0
    assert sweep.read(tmp_path).schema == sweep.schema()


# Versions


def versions(**changes: dict[str, str | None]) -> dict[str, object]:
    """Return what Dask says of a client, a scheduler and a worker; changed for one of them."""
    same = {"python": "3.11.2.final.0", "dask": "2026.1", "distributed": "2026.1", "memplan": "1"}

    def of(name: str) -> dict[str, object]:
        return {"packages": {**same, **changes.get(name, {})}}

    workers = {"tcp://10.0.0.7:4": of("worker")}
    return {"client": of("client"), "scheduler": of("scheduler"), "workers": workers}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"worker": {"distributed": "2024.1"}}, r"worker tcp://10.* has distributed 2024.1, and"),
        ({"scheduler": {"dask": "2024.1"}}, r"the scheduler has dask 2024.1, and this is 2026.1"),
        ({"worker": {"memplan": None}}, r"worker tcp://10.0.0.7:4 has no memplan; install 1 there"),
        ({"worker": {"memplan": "2"}}, r"has memplan 2, and this is 1; install the same"),
        ({"worker": {"python": "3.12.1"}}, r"has Python 3.12, and this is 3.11"),
    ],
)
def test_versions_that_differ(changes: dict[str, dict[str, str | None]], message: str) -> None:
    """Tests that machines that would not understand each other are named."""
    with pytest.raises(MemplanError, match=message):
        check_versions(versions(**changes))


def test_versions_that_do() -> None:
    """Tests that a scheduler needs no memplan, and patches of Python do not matter."""
    check_versions(versions(scheduler={"memplan": None}, worker={"python": "3.11.9"}))


# The command line, before anything runs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--solver", "nothing"], 'there is no solver "nothing"'),
        (["--solver", "exact:luck=on"], 'exact has no option "luck"'),
        (["--sample", "0"], "invalid value for '--sample'"),
        (["--nodes", "0"], "invalid value for '--nodes'"),
        (["--workers", "0"], "invalid value for '--workers'"),
        (["--timeout", "-1"], "'-1' is not a positive number of seconds"),
        (["--capacity-factor", "1.0", "--capacity-factor", "x"], 'capacity "x" is neither a ratio'),
        (["--memory", "much"], '"much" is not a size'),
        (["--suite", ""], "there is no suite ''"),
    ],
)
def test_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Tests that a mistake ends with 2 and one sentence, and makes no folder."""
    out = tmp_path / "out"
    assert main(["sweep", "--suite", "synthetic", "-o", str(out), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not out.exists()

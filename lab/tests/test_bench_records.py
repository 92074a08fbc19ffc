"""Tests of the corpus as a file: written, read, sampled, and refused where it is damaged."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from memplan import Buffer, FormatError, Gap, MemplanError, Problem, solve  # noqa: E402
from memplan_lab import bench  # noqa: E402
from memplan_lab.bench import records, suites  # noqa: E402
from memplan_lab.bench.record_table import FEATURES, LISTS, SCALARS  # noqa: E402
from memplan_lab.bench.records import Record  # noqa: E402

pytestmark = pytest.mark.slow

ABOUT = {"version": "7", "licence": "none"}


def plain(count: int, shift: int = 0) -> Problem:
    """Return a chain of buffers, each of which meets the next."""
    rows = range(count)
    return Problem.from_arrays(rows, [row + 2 for row in rows], [8 + shift + row for row in rows])


def everything() -> Problem:
    """Return a problem with everything that a problem can have."""
    return Problem(
        [
            Buffer("0", 0, 9, 64, alignment=16, gaps=(Gap(2, 4), Gap(5, 6, (8, 16)))),
            Buffer("1", 3, 12, 32, alignment=32, pin=128),
            Buffer("2", 20, 25, 8, hint=24),
            Buffer("3", 21, 26, 8),
        ],
        capacity=4096,
        reserved=[(1000, 1100), (2000, 2001)],
        conflicts=[("0", "2"), ("1", "2")],
        groups=[["2", "3"]],
    )


def record(name: str, problem: Problem, family: str = "made") -> Record:
    """Return a record whose features are made up."""
    features = {feature: float(len(problem)) for feature in FEATURES}
    counts = {"n": len(problem), "sections": 3, "max_load": 9, "conflicts": 0}
    profile = {"largest_alignment": 16, "load_profile": [0.25, 1.0]}
    return Record(
        name,
        family,
        problem,
        {"model": "m", "batch": "1"},
        {**features, **counts, **profile},
        99,
        True,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a corpus of 150 problems in three families, more than are read at once."""
    file = tmp_path / "corpus.parquet"
    made = [record("all", everything()), record("empty", plain(0))]
    made += [record(f"p{at}", plain(at, at), "abc"[at % 3]) for at in range(2, 150)]
    records.write(made, file, ABOUT)
    return file


def test_what_is_written_is_read_again(path: Path) -> None:
    """Tests that every part of a problem and of a record survives, in the order of the file."""
    opened = bench.corpus(path)
    assert len(opened) == 150
    assert opened.names[:3] == ("all", "empty", "p2")
    assert opened["all"] == record("all", everything())
    assert opened["all"].problem.fingerprint == everything().fingerprint
    for at, each in enumerate(opened):
        if at > 1:
            assert each == record(f"p{at}", plain(at, at), "abc"[at % 3])
    assert opened.about["version"] == "7"
    assert "p149" in opened
    assert "p150" not in opened


def test_names_of_buffers_are_dropped(tmp_path: Path) -> None:
    """Tests that buffers come back numbered, and that the fingerprint is that of the numbers."""
    named = Problem([Buffer("a tensor", 0, 1, 8), Buffer("another", 0, 2, 8)])
    records.write([record("one", named)], tmp_path / "c.parquet", ABOUT)
    problem = bench.corpus(tmp_path / "c.parquet")["one"].problem
    assert problem.ids == ("0", "1")
    assert problem.size.tolist() == [8, 8]


def test_the_same_records_make_the_same_file(path: Path, tmp_path: Path) -> None:
    """Tests that a corpus that is read and written is the same, byte by byte, and its checksum."""
    again = tmp_path / "again.parquet"
    total = records.write(bench.corpus(path), again, ABOUT)
    assert again.read_bytes() == path.read_bytes()
    assert total == bench.corpus(path).about["checksum"]


def test_any_reader_of_parquet_can_open_it(path: Path) -> None:
    """Tests that the columns are those that are documented, with nulls where all is as usual."""
    table = pq.read_table(path)
    assert table.column_names == [*SCALARS, *LISTS]
    row = table.slice(2, 1).to_pylist()[0]
    assert row["start"] == [0, 1]
    assert row["size"] == [10, 11]
    assert row["alignment"] is row["gap_start"] is row["conflict_first"] is row["group"] is None
    about = json.loads(table.schema.metadata[b"memplan.corpus"])
    assert about["licence"] == "none"
    assert about["checksum"].startswith("sha256:")


def test_a_sample_has_of_every_family_its_share(path: Path) -> None:
    """Tests that samples are stratified, repeatable, nested, and depend on the seed."""
    opened = bench.corpus(path)
    total = Counter(opened.families)
    for n in (10, 30, 75):
        sample = opened.sample(n, seed=1)
        assert len(sample) == len(set(sample.names)) == n
        for family, count in Counter(sample.families).items():
            assert abs(count - n * total[family] / len(opened)) <= 1
        assert set(sample.names) <= set(opened.sample(n + 5, seed=1).names)
    assert opened.sample(30, seed=1).names == bench.corpus(path).sample(30, seed=1).names
    assert opened.sample(30, seed=1).names != opened.sample(30, seed=2).names
    assert [each.name for each in opened.sample(4)] == list(opened.sample(4).names)
    assert opened.sample(150).names == opened.names


@pytest.mark.parametrize("n", [0, -1, 151])
def test_a_sample_cannot_be_larger_than_all(path: Path, n: int) -> None:
    """Tests the limits of a sample."""
    with pytest.raises(MemplanError, match=f"a sample of {n} must be between 1 and 150"):
        bench.corpus(path).sample(n)


def test_a_name_that_is_not_there_is_refused(path: Path) -> None:
    """Tests the sentence for a problem that the corpus does not have."""
    with pytest.raises(MemplanError, match='has no problem "unknown"'):
        bench.corpus(path)["unknown"]


def test_the_corpus_is_a_suite(path: Path) -> None:
    """Tests that benchmarks run over a corpus, of a file too, with limits and variants."""
    cases = suites.cases("corpus", suites.Options(data=path, limit=5))
    assert [case.name for case in cases] == ["all", "p30", "p60", "p90", "p120"]
    assert cases[1].make() == plain(30, 30)
    shuffled = suites.cases("corpus-shuffled", suites.Options(data=path, limit=1, seeds=1))
    assert len(shuffled[0].make()) == 4


# Files that are none -----------------------------------------------------------------------------


def check_refused(path: Path, reason: str) -> None:
    """Check that a file is refused with a sentence that names it and says what to do."""
    with pytest.raises(FormatError, match=reason) as caught:
        for _ in bench.corpus(path):
            pass
    assert str(path) in str(caught.value)
    assert "memplan-lab corpus build" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """Tests that a path with nothing behind it is an error of the file."""
    check_refused(tmp_path / "none.parquet", "cannot be read: no such file")
    check_refused(tmp_path, "cannot be read: is a directory")


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"id,lower,upper,size\n", b"PAR1" + bytes(99) + b"PAR1"]
)
def test_what_is_no_parquet_is_refused(tmp_path: Path, data: bytes) -> None:
    """Tests files that are empty, cut off, or something else."""
    file = tmp_path / "c.parquet"
    file.write_bytes(data)
    check_refused(file, "is damaged, or no Parquet file")


def test_a_table_of_others_is_refused(tmp_path: Path) -> None:
    """Tests Parquet that is no corpus, also where its metadata is strange."""
    file = tmp_path / "c.parquet"
    table = pa.table({"name": ["a"]})
    pq.write_table(table, file)
    check_refused(file, "is no corpus of memplan")
    pq.write_table(table.replace_schema_metadata({"memplan.corpus": "[1]"}), file)
    check_refused(file, "is no corpus of memplan")
    pq.write_table(table.replace_schema_metadata({"memplan.corpus": "{"}), file)
    check_refused(file, "is damaged")


def test_another_schema_is_refused(path: Path) -> None:
    """Tests that a corpus of another version names both, and that columns cannot be missing."""
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"memplan.corpus"])
    old = json.dumps({**about, "schema": 99})
    pq.write_table(table.replace_schema_metadata({"memplan.corpus": old}), path)
    check_refused(path, "has schema 99 and this version of memplan reads 1")
    pq.write_table(table.drop_columns(["size"]), path)
    check_refused(path, "has other columns")


@pytest.mark.parametrize("column", ["best_peak", "name", "size"])
def test_changed_values_are_refused(path: Path, column: str) -> None:
    """Tests that the checksum sees a change of what is known, fingerprints one of a problem."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    changed = {"best_peak": 1, "name": "other", "size": [8] * 100}
    rows[100][column] = changed[column]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    check_refused(
        path, 'damaged in the problem "p100"' if column == "size" else "its checksum is wrong"
    )


def test_every_flipped_byte_is_refused_or_harmless(path: Path) -> None:
    """Tests that damage never ends in anything but an error of the file, or the same records."""
    data = path.read_bytes()
    right = list(bench.corpus(path))
    for at in range(0, len(data), len(data) // 60):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:
            read = list(bench.corpus(path))
        except FormatError:
            continue
        assert read == right


# What is shipped ---------------------------------------------------------------------------------


@pytest.mark.deep
def test_what_is_shipped_is_whole() -> None:
    """Tests every record of the corpus: its size, its structure, and a peak that can be."""
    opened = bench.corpus()
    assert len(opened) >= 1_000
    assert len(set(opened.names)) == len(opened)
    for each in opened:
        assert each.features["n"] == len(each.problem)
        assert each.features["max_load"] == each.problem.max_load <= each.best_peak
        assert each.problem.capacity is None
        assert {"library", "model", "run"} <= each.provenance.keys()


def test_best_peaks_can_be_reached() -> None:
    """Tests that plans of a sample are no worse than what is known, and no better than proved."""
    for each in bench.corpus().sample(40, seed=3):
        plan = solve(each.problem, nodes=20_000, threads=1)
        assert plan.peak is not None
        assert plan.lower_bound <= each.best_peak
        if each.best_proved:
            assert plan.peak >= each.best_peak

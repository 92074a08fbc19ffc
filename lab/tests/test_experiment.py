"""Tests of experiments: cases, arms, settings, tables and files; and that all of them are told."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

import pytest

from memplan.base.errors import FormatError, MemplanError
from memplan_lab.bench import experiments, files
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Row,
    Setting,
    Table,
    ready,
    tell,
)
from memplan_lab.cli import main

TABLE = Table(
    "Sums",
    (
        Column("kind", "{kind}"),
        Column("number", tell("{}", len, "sum")),
        Column("mean", tell("{:.1f}", mean, "sum")),
        Column("largest", tell("{}", max, lambda row: row.get("more"))),
    ),
    by=("kind",),
    total={"kind": "all"},
)
SUMS = Experiment(
    "sums",
    "sums of numbers",
    figures={"sum": "of a case and what an arm adds"},
    cases=lambda settings: (
        Case(f"{kind}-{at}", ready(at), {"kind": kind})
        for kind in "ab"
        for at in range(settings["count"])
    ),
    arms=lambda settings: [
        Arm("one", lambda at: {"sum": at + 1}),
        Arm("two", lambda at: ({"sum": at + more, "more": more} for more in (10, 20))),
    ],
    tables=lambda rows, settings: [TABLE],
    own={"count": Setting(2, "cases of a kind", int), "loud": Setting(False, "with a noise")},
    peers=("three",),
)


def run(own: tuple[str, ...] = (), **given: object) -> list[Row]:
    """Return the rows of `SUMS`."""
    rows: list[Row] = []
    SUMS.run(SUMS.settle(given, own), rows.append)
    return rows


def test_each_arm_is_measured_on_each_case() -> None:
    """Tests the rows: names, labels and figures, of arms that take turns on a case."""
    rows = run(case=["a-*"])
    assert [(row["case"], row["arm"], row["sum"]) for row in rows] == [
        *(("a-0", "one", 1), ("a-0", "two", 10), ("a-0", "two", 20)),
        *(("a-1", "one", 2), ("a-1", "two", 11), ("a-1", "two", 21)),
    ]
    assert {(row["experiment"], row["kind"]) for row in rows} == {("sums", "a")}
    assert len(run(limit=1)) == 3
    assert len(run(("count=3",))) == 18


def test_lines_are_groups_of_rows() -> None:
    """Tests cells of groups and of all rows, and that an unknown figure is a dash."""
    (shown,) = SUMS.show(run(), SUMS.settle({}))
    assert shown.lines == [
        ("a", "6", "10.8", "20"),
        ("b", "6", "10.8", "20"),
        ("all", "12", "10.8", "20"),
    ]
    assert shown.markdown().startswith("| kind | number | mean | largest |\n| :-- | --: |")
    (plain,) = Table("", TABLE.columns).show([{"kind": None, "sum": 1}]).lines
    assert plain == ("–", "1", "1.0", "–")


@pytest.mark.parametrize(
    ("given", "own", "sentence"),
    [
        ({"case": ["c-*", "d"]}, (), 'sums has no case "c-*" or "d"'),
        ({"nodes": 3}, (), "sums takes no --nodes"),
        ({"peer": ["four"]}, (), "sums takes no --peer"),
        ({}, ("size=3",), 'sums has no setting "size"; it has count, loud'),
        ({}, ("count=x",), "--set count=x is not what it takes: cases of a kind"),
        ({}, ("count",), "count is set by --set count=VALUE"),
        ({}, ("loud=no",), "loud is set by --set loud"),
    ],
)
def test_what_cannot_be_set(given: dict[str, object], own: tuple[str, ...], sentence: str) -> None:
    """Tests one sentence for each mistake."""
    with pytest.raises(MemplanError, match="^" + sentence.replace("*", r"\*")):
        run(own, **given)


def test_files_keep_rows_and_say_what_they_are(tmp_path: Path) -> None:
    """Tests both formats: all columns, and in Parquet units, machine and versions."""
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"case": "a", "sum": 1, "parts": [1, 2]}, {"case": "b", "sum": None, "more": 0.5}]
    for name in ("rows.parquet", "rows.csv"):
        files.write(rows, tmp_path / name, SUMS.figures)
    read = files.read(tmp_path / "rows.parquet")
    assert read == [{**rows[0], "more": None}, {**rows[1], "parts": None}]
    about = json.loads(parquet.read_schema(tmp_path / "rows.parquet").metadata[b"memplan.bench"])
    assert about["figures"] == SUMS.figures
    assert about["machine"]["cores"] >= 1
    assert about["versions"]["memplan"]
    first, second = files.read(tmp_path / "rows.csv")
    assert first == {"case": "a", "sum": "1", "parts": "[1, 2]", "more": ""}
    assert (second["sum"], second["more"]) == ("", "0.5")
    (tmp_path / "rows.csv").write_text("case,sum\na\n")
    with pytest.raises(FormatError, match=r"rows\.csv.*is damaged"):
        files.read(tmp_path / "rows.csv")


@pytest.mark.parametrize("name", experiments.NAMES)
def test_every_experiment_says_what_it_measures(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the list of what an experiment takes, which needs no library and runs nothing."""
    assert main(["bench", name, "--list"]) == 0
    text = capsys.readouterr().out
    experiment = experiments.find(name)
    assert text.startswith(f"{name}: {experiment.about}\n")
    assert all(f"\n{each}: " in text for each in experiment.figures)
    assert all(f"--set {each}" in text for each in experiment.own)

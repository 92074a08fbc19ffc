"""Tests of the benchmark of repacking: what it counts, not how long it takes."""

from __future__ import annotations

import pytest

from memplan_lab.bench.experiment import Row
from memplan_lab.bench.experiments import repack
from memplan_lab.cli import main

pytestmark = pytest.mark.slow


def test_a_sequence_changes_as_many_as_asked() -> None:
    """Tests that each step is the one before with some gone and as many new, and repeats."""
    first, steps = repack._make_sequence(repack.FAMILIES["nn"], 60, 5, 8, seed=1)
    inside = {buffer.id for buffer in first}
    assert len(inside) == 60
    for step in steps:
        assert len(step.gone) == len(step.new) == 5
        assert set(step.gone) <= inside
        inside = inside.difference(step.gone) | {buffer.id for buffer in step.new}
        assert {buffer.id for buffer in step.inside} == inside
    assert repack._make_sequence(repack.FAMILIES["nn"], 60, 5, 8, seed=1) == (first, steps)


def run(*own: str) -> list[Row]:
    """Return the rows of a family with these settings."""
    rows: list[Row] = []
    settings = repack.EXPERIMENT.settle({"case": ["nn"]}, own)
    repack.EXPERIMENT.run(settings, rows.append)
    return rows


def test_rows_have_what_they_say() -> None:
    """Tests that there is a time for every step, and that what moved is the same in every run."""
    own = ("buffers=60", "changed=3", "steps=4", "capacity-factor=1,1.2", "seeds=2")
    rows = run(*own)
    assert [row["capacity"] for row in rows] == ["100 %", "120 %", repack.LEAST]
    for row in rows:
        assert len(row["repack"]) == len(row["fresh"]) == len(row["with_problem"]) == 8
        assert set(row["replanned"]) <= {0, 1}
    assert [(row["moved"], row["replanned"]) for row in run(*own)] == [
        (row["moved"], row["replanned"]) for row in rows
    ]


def set_all(**settings: object) -> list[str]:
    """Return the words of a command with these settings."""
    words = [("--set", f"{name.replace('_', '-')}={value}") for name, value in settings.items()]
    return ["bench", "repack", *(word for pair in words for word in pair)]


def test_the_command_prints_both_kinds_of_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `memplan-lab bench repack`, on a terminal and in Markdown."""
    small = set_all(buffers=40, changed=2, steps=2, seeds=1, capacity_factor=1.1)
    assert main([*small, "--case", "nn"]) == 0
    assert "110 %" in capsys.readouterr().out
    assert main([*small, "--case", "nn", "--markdown"]) == 0
    assert "| nn | 110 % |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--case", "cnn"], 'repack has no case "cnn"'),
        (["--set", "buffers=10", "--set", "changed=11"], "changed is 11"),
        (["--set", "capacity-factor=x"], "'x' is not a ratio"),
        (["--set", "buffers=ten"], "--set buffers=ten is not what it takes: the number of buffers"),
        (["--set", "buffers"], "buffers is set by --set buffers=VALUE"),
        (["--set", "pages=3"], 'repack has no setting "pages"; it has buffers, changed'),
        (["--sizes", "10"], "--sizes"),
        (["--data", "x"], "repack takes no --data"),
        (["order"], "an experiment runs by itself"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests bad options: exit code 2, and what is wrong."""
    assert main(["bench", "repack", *arguments]) == 2
    assert sentence in capsys.readouterr().err

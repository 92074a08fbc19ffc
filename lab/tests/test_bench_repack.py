"""Tests of the benchmark of repacking: what it counts, not how long it takes."""

from __future__ import annotations

import pytest

from memplan.base.errors import MemplanError
from memplan_lab.bench import repack
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


def test_rows_have_what_they_say() -> None:
    """Tests that there is a time for every step, and that what moved is the same in every run."""
    seen: list[repack.Row] = []
    arguments = {"buffers": 60, "changed": 3, "steps": 4, "percents": (100, 120), "seeds": 2}
    rows = repack.run(["nn"], **arguments, on_row=seen.append)  # type: ignore[arg-type]
    assert rows == seen
    assert [row.capacity for row in rows] == ["100 %", "120 %", repack.LEAST]
    for row in rows:
        assert len(row.repack) == len(row.fresh) == len(row.with_problem) == row.steps == 8
        assert 0 <= row.replanned <= 1
    again = repack.run(["nn"], **arguments)  # type: ignore[arg-type]
    assert [(row.moved, row.replanned) for row in again] == [
        (row.moved, row.replanned) for row in rows
    ]
    table = repack.markdown(rows)
    assert table.count("\n") == 5
    assert "| nn | 120 % |" in table


def test_the_command_prints_both_kinds_of_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `memplan-lab bench-repack`, on a terminal and in Markdown."""
    small = [
        "--family",
        "nn",
        "--buffers",
        "40",
        "--changed",
        "2",
        "--steps",
        "2",
        "--seeds",
        "1",
    ]
    assert main(["bench-repack", *small, "--capacity-factor", "1.1"]) == 0
    assert "110 %" in capsys.readouterr().out
    assert main(["bench-repack", *small, "--capacity-factor", "1.1", "--markdown"]) == 0
    assert "| nn | 110 % |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--family", "cnn"], "there is no family 'cnn'"),
        (["--buffers", "10", "--changed", "11"], "changed is 11"),
        (["--capacity-factor", "x"], "'x' is not a ratio"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests bad options: exit code 2, and what is wrong."""
    assert main(["bench-repack", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_family_has_to_exist() -> None:
    """Tests the function behind the command."""
    with pytest.raises(MemplanError, match="choose from nn, training"):
        repack.run(["unknown"])

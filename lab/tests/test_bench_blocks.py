"""Tests of `memplan-lab bench blocks`."""

from __future__ import annotations

import json

import pytest

from memplan.problem import Buffer, Problem
from memplan_lab.bench.experiments.blocks import constrain, place_in_chunks
from memplan_lab.cli import main


def test_a_row_for_each_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that bounds are below what is found, and ggml's rule is never below ours."""
    assert main(["bench", "blocks", "--set", "problems=1", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["share"] for row in rows] == [2, 3, 5, 8]
    for row in rows:
        assert row["count_bound"] <= row["count"] <= len(row["chunks"])
        assert row["total_bound"] <= min(row["total"], sum(row["chunks"]))


def test_the_rule_for_chunks() -> None:
    """Tests the smallest hole, the top of the first chunk with room, and a new chunk."""
    rows = [Buffer("a", 0, 2, 6), Buffer("b", 0, 3, 3), Buffer("c", 1, 4, 4), Buffer("d", 2, 4, 5)]
    assert place_in_chunks(Problem(rows), 10) == [9, 4]


def test_drawn_constraints_are_of_all_kinds() -> None:
    """Tests that a problem gets constraints of all kinds, the same for the same name."""
    plain = Problem([Buffer(str(row), row // 2, row // 2 + 6, 100 + row) for row in range(60)])
    drawn = constrain(plain, "name")
    assert drawn == constrain(plain, "name")
    assert drawn.has_alignment
    assert drawn.has_gaps
    assert drawn.has_conflicts
    assert drawn.has_groups
    assert drawn.has_pins
    assert drawn.has_reserved

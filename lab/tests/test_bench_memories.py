"""Tests of the comparison of memories: no rule of compilers is better than the search."""

from __future__ import annotations

import pytest

from memplan_lab.bench.experiments import memories
from memplan_lab.cli import main

pytestmark = pytest.mark.slow


def test_networks_are_proved_and_no_rule_is_better() -> None:
    """Tests the smallest network of the suite, by all rules."""
    (case,) = memories.networks([memories.NETWORKS[-1]])
    rows = list(memories.measure(case))
    assert [row["share"] for row in rows] == list(case.shares)
    assert [row["traffic"] for row in rows] == [row["bound"] for row in rows]
    assert all(row["traffic"] <= min(row["rules"].values()) for row in rows)
    assert [row["gap"] for row in rows] == [0] * 4
    slow = 10 * sum(
        int(case.problem.size[case.problem.index(id)]) * sum(times)
        for id, times in case.accesses.items()
    )
    assert all(slow // 10 <= row["traffic"] < slow for row in rows)


def test_the_command_prints_a_line_for_each_family(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests both tables, with the five networks alone."""
    assert main(["bench", "memories", "--set", "problems=0", "--details", "--markdown"]) == 0
    _, runs, _, families = capsys.readouterr().out.strip().split("\n\n")
    assert len(runs.splitlines()) == 22
    heading, _, networks, total = families.splitlines()
    assert heading.startswith("| family | runs | proved |")
    assert networks.split(" | ")[:3] == ["| networks", "20", "20"]
    assert total.split(" | ")[1:3] == ["20", "20"]

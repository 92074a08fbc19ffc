"""Tests of the comparison of memories: no rule of compilers is better than the search."""

from __future__ import annotations

import pytest

from memplan_lab.bench import memories
from memplan_lab.cli import main

pytestmark = pytest.mark.slow


def test_networks_are_proved_and_no_rule_is_better() -> None:
    """Tests the smallest network of the suite, by all rules."""
    (case,) = memories.networks([memories.NETWORKS[-1]])
    rows = [memories.measure(case, share) for share in case.shares]
    assert [row.traffic for row in rows] == [row.bound for row in rows]
    assert all(row.traffic <= min(row.rules.values()) for row in rows)
    assert [row.gap for row in rows] == [0] * 4
    slow = 10 * sum(
        int(case.problem.size[case.problem.index(id)]) * sum(times)
        for id, times in case.accesses.items()
    )
    assert all(slow // 10 <= row.traffic < slow for row in rows)


def test_the_command_prints_a_line_for_each_family(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the table, with the five networks alone."""
    assert main(["bench-memories", "--problems", "0", "--worst", "1", "--markdown"]) == 0
    worst, heading, _, networks, total = capsys.readouterr().out.strip().splitlines()
    assert worst.endswith(" s")
    assert heading.startswith("| family | runs | proved |")
    assert networks.split(" | ")[:3] == ["| networks", "20", "20"]
    assert total.split(" | ")[1:3] == ["20", "20"]

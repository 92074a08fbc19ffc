"""Tests of programs.sources.trace_json: which files are traces, and what is planned of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from strategies_trace import same, traces

from memplan.base.errors import FormatError
from memplan.base.notes import Code, Note
from memplan.problem import Buffer, Problem, formats
from memplan.problem.formats.trace_json import write_trace
from memplan.problem.plan import Plan, Status
from memplan.problem.trace import Scope, Trace
from memplan.programs.sources import detect, load
from memplan.programs.sources.trace_json import matches, of_trace

INNER: Scope = ((".", 0), (".a", 0), ("aten::conv2d", 1), ("aten::empty", 0))
TRACE = Trace.from_arrays(
    [0, 1, 2, 3],
    [2, 4, 5, 5],
    [10, 20, 0, 30],
    [INNER, INNER[:2], (), INNER[2:]],
    outlives=[False, False, False, True],
)


def known(text: str) -> bool:
    """Whether a file that begins like this is taken for a trace."""
    return matches(text.encode(), Path("f.json"))


class TestDetection:
    """What a file is, its first field says."""

    @given(traces())
    def test_traces(self, trace: Trace) -> None:
        """Tests that every trace is known, whatever its modules are called."""
        assert known(write_trace(trace)[:4096])

    @pytest.mark.parametrize(
        "text",
        [
            '\ufeff {"memplan":{"version":1,"kind":"trace"}}',
            '{"alignment": 64, "memplan" : { "kind" : "trace", "version": 2}',
        ],
    )
    def test_other_layouts(self, text: str) -> None:
        """Tests that the order of fields, spaces, a mark and the version do not matter."""
        assert known(text)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            '"memplan": {"kind": "trace"}',
            '{"memplan": {"kind": "problem"}, "buffers": [{"id": "\\"kind\\": \\"trace\\""',
            '{"memplan": {"kind": "plan"}, "stats": {"memplan": {"kind": "trace"}}',
            '{"memplan_graph": 1, "name": "\\"memplan\\": {\\"kind\\": \\"trace\\"}"',
        ],
    )
    def test_what_is_none(self, text: str) -> None:
        """Tests that a problem, plan or graph is no trace, whatever names it has."""
        assert not known(text)

    def test_among_the_others(self, tmp_path: Path) -> None:
        """Tests that traces, graphs and problems with each other's words are told apart."""
        about = {"model": '"memplan_graph"'}
        trace = Trace.from_arrays([0], [1], [4], [(('"memplan_graph": 1', 0),)], about=about)
        problem = Problem([Buffer('"memplan": {"kind": "trace"}', 0, 1, 4)])
        plan = Plan(ids=["a"], size=[4], offsets=[0], status=Status.FEASIBLE, peak=4)
        for what, name in ((trace, "trace"), (problem, "json"), (plan, "json")):
            formats.save(what, tmp_path / "f.json")
            assert detect(tmp_path / "f.json") == name


class TestLoading:
    """A trace as what is to be planned."""

    def test_labels_and_notes(self, tmp_path: Path) -> None:
        """Tests that buffers say which module and operator wanted them, and what is not planned."""
        formats.save(TRACE, tmp_path / "trace.json")
        loaded = load(tmp_path / "trace.json")
        assert loaded.problem == TRACE.problem()
        assert (loaded.source, loaded.tensors) == ("trace", 4)
        assert [label.made_by for label in loaded.labels] == [".a (aten::conv2d:1)", ".a"]
        places = [(label.module, label.operator) for label in loaded.labels]
        assert places == [("a", "aten::conv2d"), ("a", "")]
        text = "1 of 4 allocations (30 bytes) outlive the run, as results do, and are not planned"
        assert loaded.notes == (Note(Code.NOT_PLANNED, text, (TRACE.ids[3],)),)
        assert loaded.trace is not None
        assert same(loaded.trace, TRACE)

    def test_operators_without_modules(self) -> None:
        """Tests that what a function allocates is said by its operator alone."""
        trace = Trace.from_arrays([0, 0], [1, 1], [4, 4], [INNER[2:], ()])
        loaded = of_trace(trace)
        assert [label.made_by for label in loaded.labels] == ["aten::conv2d:1", ""]
        assert loaded.notes == ()

    def test_capacity(self, tmp_path: Path) -> None:
        """Tests that the caller's capacity is the problem's."""
        formats.save(TRACE, tmp_path / "trace.json")
        assert load(tmp_path / "trace.json", capacity=77).problem.capacity == 77

    def test_what_is_wrong(self, tmp_path: Path) -> None:
        """Tests that the file and the field are said, and too many bytes are refused."""
        document = json.loads(write_trace(TRACE))
        document["allocations"][0]["size"] = "x"
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(document))
        with pytest.raises(FormatError, match=r'trace\.json: allocations\[0\]\.size is "x"'):
            load(path)
        huge = Trace.from_arrays([0, 0], [1, 1], [1 << 62] * 2, [(), ()])
        formats.save(huge, path)
        with pytest.raises(FormatError, match=r"trace\.json: .*2\^62"):
            load(path)

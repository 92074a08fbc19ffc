"""Tests that the page reads files as memplan does, in a browser; they need no em++."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutants import Mutants
from playground_models import FILES, find

import memplan as mp
from memplan.base.errors import MemplanError
from memplan.problem import formats
from memplan.runtimes.tflm.measure import compute_head
from memplan.runtimes.tflm.read.model import load
from memplan.runtimes.tflm.write.metadata import with_offsets
from memplan.runtimes.tflm.write.planning import find_offsets

pytestmark = pytest.mark.deep

Ask = Callable[..., Any]
MUTANTS = 200


def rows_of(loaded: mp.Loaded, *, pinned: bool) -> list[list[object]]:
    """Return the rows of a problem, as the page has them."""
    problem = loaded.problem
    columns = [problem.start, problem.end, problem.size, problem.alignment]
    pins = problem.pin if pinned else [-1] * len(problem)
    return [[id, *map(int, row)] for id, *row in zip(problem.ids, *columns, pins, strict=True)]


@pytest.mark.parametrize("name", FILES)
def test_rows(name: str, ask: Ask) -> None:
    """Tests that every buffer of a model has the lifetime and the size that memplan gives it."""
    path = find(name)
    found = ask("rowsOf", path.read_bytes())
    assert found.get("rows") == rows_of(mp.load(path, pins=False), pinned=False), found
    if path.suffix == ".tflite":
        assert found["greedy"] == compute_head(load(path))


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".tflite")])
def test_planned_file(name: str, ask: Ask) -> None:
    """Tests that a plan is written into a model with the bytes of `memplan apply`."""
    path = find(name)
    planned = mp.plan_model(path, pins=False, nodes=2000)
    offsets = [planned.plan.offset(id) for id in planned.problem.ids]
    text = ask("written", path.read_bytes(), offsets)
    if any(note.code == "weights-unpacked" for note in planned.notes):
        assert text is None
        return
    model, layout = load(path), planned.loaded.layout
    assert layout is not None
    expected = with_offsets(path.read_bytes(), name, find_offsets(model, layout, planned.plan))
    assert base64.b64decode(text) == expected
    again = ask("written", expected, offsets)  # the plan that is there is overwritten
    assert base64.b64decode(again) == expected


def test_mutants(ask: Ask, tmp_path: Path) -> None:
    """Tests that a damaged file gives a sentence, or the rows that memplan reads in it."""
    mutants = Mutants(tmp_path, ("csv", "graph", "tflite", "onnx"))
    for number in range(MUTANTS):
        mutant = mutants[number]
        content = mutant.content
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        found = ask("rowsOf", data)
        assert "fault" not in found, (number, found)
        if refusal := found.get("refusal"):
            assert refusal == refusal.strip()
            assert "\n" not in refusal
        assert mutant.place is not None
        path = mutant.place(content)
        try:
            loaded = mp.load(path, pins=mutant.reader != "tflite")
        except MemplanError:
            continue
        if refusal is not None:
            assert "memplan plan" in refusal or "shape" in refusal, (number, mutant.reader, refusal)
        else:
            pinned = mutant.reader != "tflite"
            assert found["rows"] == rows_of(loaded, pinned=pinned), (number, mutant.reader)


def test_what_is_no_model(ask: Ask) -> None:
    """Tests the sentences about files of other kinds."""
    for data, words in (
        (b"", "empty"),
        (b"PK\3\4 an archive", "archive"),
        (b"# a text\nof two lines\n", "no model"),
        (b'{"memplan": {"kind": "problem"}}', "memplan plan"),
        (formats.minimalloc_csv.write_problem(mp.Problem([])).encode(), ""),
    ):
        assert words in str(ask("rowsOf", data))

"""Tests that no field of a format that the pages document is read and then not used.

A field is used if the answer to its file changes with it: what is loaded, or a note. Each page says
which fields there are, so a field that a page adds has to be added here.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from memplan.base.errors import FormatError
from memplan.machine.apart.penalties import take_penalties
from memplan.problem import Buffer, Problem
from memplan.problem.formats import load_plan, save
from memplan.problem.formats._fields import Fields
from memplan.problem.formats.json import write_problem
from memplan.problem.formats.trace_json import write_trace
from memplan.programs.sources import Loaded, load
from memplan.programs.sources._maps_json import KINDS, read_map
from memplan.programs.sources.graph_json import write_graph
from memplan.solvers import solve

DOCS = Path(__file__).parents[2] / "docs"

PROBLEM = {
    "memplan": {"kind": "problem", "version": 1},
    "capacity": 64,
    "reserved": [[48, 56]],
    "groups": [["a", "b"]],
    "buffers": [
        {"id": "a", "start": 0, "end": 4, "size": 4, "conflicts": ["d"]},
        {"id": "b", "start": 0, "end": 4, "size": 4, "gaps": [{"start": 1, "end": 2}]},
        {"id": "c", "start": 5, "end": 9, "size": 8, "alignment": 2, "pin": 16, "hint": 8},
        {"id": "d", "start": 5, "end": 9, "size": 8},
    ],
}
PLAN = {
    "memplan": {"kind": "plan", "version": 1},
    "problem": "sha256:" + 64 * "0",
    "status": "feasible",
    "peak": 8,
    "lower_bound": 4,
    "capacity": 16,
    "solver": "auto",
    "stats": {"nodes": 3},
    "conflict": [],
    "buffers": [{"id": "a", "size": 4, "offset": 0}],
}
TRACE = {
    "memplan": {"kind": "trace", "version": 1},
    "alignment": 64,
    "about": {"model": "a"},
    "frames": [{"name": "."}, {"name": "op", "ordinal": 0, "parent": 0}],
    "allocations": [
        {"start": 0, "end": 2, "size": 4096, "ordinal": 0, "frame": 1, "thread": 0, "address": 0},
        {"start": 1, "end": 3, "size": 64, "ordinal": 0, "address": 8192, "outlives": False},
    ],
}
WINDOW = {"window": {"kernel": 3, "before": 1}}
GRAPH = {
    "memplan_graph": 1,
    "name": "net",
    "alignment": 16,
    "planned": ["input", "output", "intermediate", "workspace"],
    "row_axis": 1,
    "inputs": ["x", "b"],
    "outputs": ["y"],
    "tensors": [
        {"name": "x", "dtype": "int8", "shape": [1, 64, 64, 3]},
        {"name": "a", "dtype": "int8", "shape": [1, 64, 64, 16]},
        {"name": "y", "dtype": "int8", "shape": [1, 64, 64, 16]},
        {"name": "s", "bytes": 64, "kind": "variable"},
        {"name": "t", "bytes": 64},
        {"name": "u", "bytes": 32},
        {"name": "v", "bytes": 64, "pin": 0},
        {"name": "w", "bytes": 16},
        {"name": "z", "bytes": 16},
        {"name": "e", "bytes": 16},
        {"name": "b", "dtype": "int8", "shape": [1, 64, 64, 1]},
    ],
    "views": [{"tensor": "u", "of": "t", "offset": 32}],
    "aliases": [["s", "t"]],
    "groups": [["w", "z"]],
    "operators": [
        {"type": "Conv", "inputs": ["x", "b"], "outputs": ["a"], "macs": 100, "workspace": 256,
         "module": "layer", "line": "m.py:1", "stream": 0,
         "reads": [{"tensor": "x", "rows": WINDOW, "columns": WINDOW}]},
        {"name": "relu", "type": "Relu", "inputs": ["a"], "outputs": ["y"], "in_place": []},
        {"type": "Cell", "inputs": ["s"], "outputs": ["t"], "why_whole": "sums"},
        {"type": "If", "inputs": ["t"], "outputs": ["v", "w", "z"], "loop": False,
         "blocks": [{"name": "then", "inputs": [], "outputs": [], "operators": []}]},
    ],
}  # fmt: skip
EVENTS = "ggml-events 1\nalignment 32\nlimit 64\nggml 160\n+ 65\n+ 32\n- 0 33\n+ 32\n- 0\n+ 64\n"
TABLE = "id,lower,upper,size,alignment,hint,gaps,offset\na,0,9,8,1,,4-6,\nb,2,5,8,1,,,\n"

# By field of the line beside a plan in CSV, another value.
CLAIMS = {
    "status": "feasible",
    "peak": "17",
    "lower_bound": "15",
    "solver": "greedy",
    "problem": "sha256:" + 64 * "0",
    "table": "sha256:" + 64 * "0",
}

# By document: a place in it, and another value there.
CHANGES: dict[str, tuple[Any, list[tuple[str, Any]]]] = {
    "problem": (PROBLEM, [
        ("capacity", 65), ("reserved", []), ("groups", []), ("buffers/2/id", "e"),
        ("buffers/2/start", 6), ("buffers/2/end", 8), ("buffers/2/size", 9),
        ("buffers/2/alignment", 4), ("buffers/2/pin", 18), ("buffers/2/hint", 10),
        ("buffers/1/gaps", []), ("buffers/0/conflicts", []), ("buffers/1/gaps/0/start", 0),
        ("buffers/1/gaps/0/end", 3), ("buffers/1/gaps/0/window", [0, 2]), ("buffers/2/pin", None),
    ]),
    "plan": (PLAN, [
        ("problem", "sha256:" + 64 * "1"), ("status", "optimal"), ("peak", 4), ("lower_bound", 3),
        ("capacity", 8), ("solver", "greedy"), ("stats", {}), ("conflict", ["a"]),
        ("buffers/0/id", "b"), ("buffers/0/size", 3), ("buffers/0/offset", 4), ("buffers", []),
    ]),
    "trace": (TRACE, [
        ("alignment", 128), ("about", {}), ("frames/0/name", ".a"), ("frames/1/ordinal", 1),
        ("frames/1/parent", None), ("allocations/0/start", 1), ("allocations/0/end", 3),
        ("allocations/0/size", 64), ("allocations/1/ordinal", 1), ("allocations/1/frame", 0),
        ("allocations/1/thread", 1), ("allocations/1/address", 64),
        ("allocations/1/outlives", True),
    ]),
    "graph": (GRAPH, [
        ("name", "other"), ("alignment", 32), ("planned", ["output"]), ("inputs", ["x", "b", "e"]),
        ("outputs", ["y", "v"]), ("row_axis", None), ("tensors/9/name", "f"),
        ("tensors/4/bytes", 96),
        ("tensors/0/dtype", "int16"), ("tensors/5/shape", [32]), ("tensors/3/kind", "constant"),
        ("tensors/6/pin", 64), ("views/0/offset", 0), ("views/0/of", "x"), ("views/0/tensor", "e"),
        ("aliases", []), ("groups", []), ("operators/1/name", ""), ("operators/1/type", "Tanh"),
        ("operators/1/inputs", ["a", "x"]), ("operators/2/outputs", ["t", "e"]),
        ("operators/1/in_place", [["a", "y"]]), ("operators/0/workspace", 0),
        ("operators/0/module", ""), ("operators/0/line", ""), ("operators/0/stream", 1),
        ("operators/3/blocks", []), ("operators/3/loop", True), ("operators/0/reads", None),
        ("operators/2/why_whole", "other"), ("operators/0/macs", 1),
        ("operators/3/blocks/0/name", "else"), ("operators/3/blocks/0/inputs", ["w"]),
        ("operators/3/blocks/0/outputs", ["t"]),
        ("operators/3/blocks/0/operators", [{"type": "Add", "inputs": ["x"]}]),
        ("operators/0/reads/0/tensor", "b"), ("operators/0/reads/0/rows", "each"),
        ("operators/0/reads/0/columns", "each"),
    ]),
}  # fmt: skip


def put(document: Any, place: str, value: Any) -> Any:
    """Return a copy of a document with another value; `None` leaves a field out."""
    document = copy.deepcopy(document)
    *steps, last = place.split("/")
    inner = document
    for step in steps:
        inner = inner[int(step) if isinstance(inner, list) else step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return document


def show(loaded: Loaded) -> dict[str, str]:
    """Return all that is loaded as text."""
    shown = {each.name: repr(getattr(loaded, each.name)) for each in fields(loaded)}
    shown["problem"] = write_problem(loaded.problem)
    shown["graph"] = "" if loaded.graph is None else write_graph(loaded.graph)
    shown["trace"] = "" if loaded.trace is None else write_trace(loaded.trace)
    return shown


def answer(text: str, kind: str, folder: Path) -> object:
    """Return what a file is read as, or the sentence in which it is refused."""
    path = folder / "file"
    path.write_text(text)
    try:
        if kind == "plan":
            return {name: repr(each) for name, each in vars(load_plan(path)).items()}
        return show(load(path))
    except FormatError as error:
        return str(error)


@pytest.mark.parametrize("kind", CHANGES)
def test_each_field_of_json_changes_the_answer(kind: str, tmp_path: Path) -> None:
    """Tests problems, plans, traces and graphs, one field after the other."""
    document, changes = CHANGES[kind]
    before = answer(json.dumps(document), kind, tmp_path)
    assert not isinstance(before, str)
    for place, value in changes:
        text = json.dumps(put(document, place, value))
        assert answer(text, kind, tmp_path) != before, place


def test_each_column_of_csv_changes_the_answer(tmp_path: Path) -> None:
    """Tests each cell of a row, under all names of its column."""
    before = answer(TABLE, "table", tmp_path)
    head, row, other = TABLE.splitlines()
    cells = ("c", "1", "8", "9", "2", "16", "4-5", "32")
    for at, (name, cell) in enumerate(zip(head.split(","), cells, strict=True)):
        changed = row.split(",")
        changed[at] = cell
        text = "\n".join((head, ",".join(changed), other))
        assert answer(text, "table", tmp_path) != before, name
    for name, also in (
        ("id", "buffer"),
        ("id", "buffer_id"),
        ("lower", "start"),
        ("lower", "begin"),
    ):
        assert answer(TABLE.replace(name, also, 1), "table", tmp_path) == before
    assert answer(TABLE.replace("upper", "end", 1), "table", tmp_path) != before


def test_each_claim_beside_a_plan_in_csv_changes_the_plan(tmp_path: Path) -> None:
    """Tests the line that memplan writes beside a table."""
    path, beside = tmp_path / "plan.csv", tmp_path / "plan.csv.memplan"
    save(solve(Problem([Buffer("a", 0, 2, 8), Buffer("b", 1, 3, 8)])), path)
    claims, plan = beside.read_text(), load_plan(path)
    assert set(re.findall(r" (\w+)=", claims)) == set(CLAIMS)
    for field, value in CLAIMS.items():
        beside.write_text(re.sub(rf"( {field}=)\S+", rf"\g<1>{value}", claims))
        assert load_plan(path) != plan, field


def test_each_word_of_a_list_of_events_changes_the_answer(tmp_path: Path) -> None:
    """Tests a list of ggml's events, one line after the other."""
    before = answer(EVENTS, "events", tmp_path)
    lines = EVENTS.splitlines()
    for at in range(1, len(lines)):
        other = re.sub(r"\d+$", lambda number: str(int(number[0]) // 2 or 1), lines[at])
        text = "\n".join((*lines[:at], other, *lines[at + 1 :]))
        assert answer(text, "events", tmp_path) != before, lines[at]


# By map of rows: another value of each field.
MAPS: dict[str, dict[str, Any]] = {
    "window": {
        "kernel": 3, "stride": 2, "dilation": 2, "before": 1, "padding": "same", "zeros": True
    },
    "even": {"reach": 3, "stride": 2, "padding": 1},
    "spread": {"reach": 3, "stride": 2, "before": 1},
    "transposed": {"kernel": 3, "stride": 2, "before": 1, "extra": 1},
    "resized": {"up": 2, "down": 2, "before": 1, "after": 1},
    "blocks": {"up": 2, "down": 2},
    "shifted": {"before": 2},
    "joined": {"offset": 1},
    "told": {"rule": "once"},
}  # fmt: skip
FIRST = {
    "kernel": 1,
    "reach": 1,
    "stride": 1,
    "padding": 0,
    "before": 0,
    "offset": 0,
    "rule": "each",
}


def test_each_field_of_a_map_of_rows_changes_the_map() -> None:
    """Tests every map of rows that the page documents, one field after the other."""
    table = (
        (DOCS / "sources.md").read_text().partition("| map | which rows")[2].partition("\n\n")[0]
    )
    rows = re.findall(r"^\| `(.*?)` \|(.*)", table, re.M)
    written = {re.findall(r"\w+", cell)[0]: cell + text for cell, text in rows}
    assert written.keys() == {*MAPS, "each", "once"}
    for name, changes in MAPS.items():
        assert set(re.findall(r'"(\w+)"', written[name])) - {"same"} == {name, *changes}
        needed = {one.name for one in fields(KINDS[name]) if one.default is MISSING}
        row = {key: FIRST[key] for key in changes if key in needed}
        before = read_map(Fields("map"), {name: row}, "rows")
        for key, value in changes.items():
            assert read_map(Fields("map"), {name: {**row, key: value}}, "rows") != before, key


def test_each_column_of_penalties_changes_the_pairs(tmp_path: Path) -> None:
    """Tests the cells of a table of penalties."""
    path = tmp_path / "pairs.csv"
    head = "first,second,cost"
    assert head in (DOCS / "penalties.md").read_text()
    problem = Problem([Buffer(name, at, at + 1, 8) for at, name in enumerate("abc")])

    def read(*cells: str) -> tuple[list[int], ...]:
        path.write_text(f"{head}\n{','.join(cells)}\n")
        return tuple(each.tolist() for each in take_penalties(problem, path))

    before = read("a", "b", "5")
    for cells in (("c", "b", "5"), ("a", "c", "5"), ("a", "b", "4")):
        assert read(*cells) != before


def find(page: str, pattern: str, *names: str) -> set[str]:
    """Return what a pattern finds in the part of a page that the names bound."""
    text = (DOCS / page).read_text()
    for name in names:
        text = text.partition(name)[2]
    return set(re.findall(pattern, text.partition("\n\n")[0], re.M))


def test_the_pages_document_no_other_field() -> None:
    """Tests that every field of the tables in docs/ is changed above, and no other one is."""
    tested = {
        kind: {step for place, _ in changes for step in place.split("/") if not step.isdigit()}
        for kind, (_, changes) in CHANGES.items()
    }
    objects = find("formats.md", r"`(\w+)`", "| object | required fields | optional fields |")
    assert tested["problem"] | tested["plan"] == objects - {"memplan"}
    columns = find("formats.md", r"^\| `(\w+)`", "| column | also called | meaning |")
    assert columns == {*TABLE.splitlines()[0].split(","), "end"}
    cells = find("sources.md", r"^\| (`[^|]*)", "| field | meaning | default |")
    graph = {name for cell in cells for name in re.findall(r"(\w+)`", cell)}
    inner = find("sources.md", r"`\{((?:\"\w+\"[, ]*)+)\}`", "| field | meaning | default |")
    graph |= {name for cell in inner for name in re.findall(r"\w+", cell)}
    others = {"name", "type", "inputs", "outputs", "tensors", "of", "offset"}  # in the example
    assert tested["graph"] == graph | others
    written = find("slab.md", r'"(\w+)":', "The file is JSON:", "```json")
    assert tested["trace"] == written - {"memplan", "kind", "version"}
    words = find("ggml.md", r"`([+a-z-]+)[ `]", "- 0\n+ 64\n```\n\n")
    assert words - {"--block-limit"} == {line.split()[0] for line in EVENTS.splitlines()[1:]}

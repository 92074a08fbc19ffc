"""Tests of which rows operators need, as fields of graph JSON: there and back, and mistakes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan.base.errors import FormatError
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.graph.pictures import (
    Blocks,
    Each,
    Even,
    Joined,
    Map,
    Once,
    Padding,
    Read,
    Resized,
    Shifted,
    Spread,
    Told,
    Transposed,
    Window,
    fits,
)
from memplan.programs.sources._maps_json import KINDS
from memplan.programs.sources.graph_json import read_graph, write_graph

SIDE = st.integers(1, 5)
MAPS: st.SearchStrategy[Any] = st.one_of(
    st.builds(Blocks, SIDE, SIDE),
    st.builds(Each),
    st.builds(Even, SIDE, SIDE, st.integers(0, 3)),
    st.builds(Joined, st.integers(0, 3)),
    st.builds(Once),
    st.builds(Resized, SIDE, SIDE, st.integers(0, 1), st.integers(0, 1)),
    st.builds(Shifted, st.integers(-3, 3)),
    st.builds(Spread, SIDE, SIDE, st.integers(0, 3)),
    st.builds(Transposed, SIDE, SIDE, st.integers(0, 3), st.integers(-2, 3)),
    st.builds(
        Window, SIDE, SIDE, SIDE, st.sampled_from(Padding), st.integers(-1, 3), st.booleans()
    ),
)


def graph_of(rows: Map, size: int, result: int) -> Graph:
    """Return a graph of one operator with this map of rows."""
    x = Tensor("x", size * 6, Kind.INPUT, "uint8", (1, size, 3, 2))
    y = Tensor("y", result * 6, Kind.OUTPUT, "uint8", (1, result, 3, 2))
    reads = (Read(0, rows, Each()),)
    operator = Operator("op", "Op", (0,), (1,), reads=reads, why_whole="", macs=7)
    return Graph("net", (x, y), (operator,), (0,), (1,), row_axis=1)


@given(MAPS, st.booleans(), st.integers(1, 9), st.integers(1, 12))
def test_maps_there_and_back(rule: Map, told: bool, size: int, result: int) -> None:
    """Tests that every map that fits its sizes survives, and that another one is refused."""
    rule = Told(rule) if told else rule
    graph = graph_of(rule, size, result)
    text = write_graph(graph)
    if fits(rule, size, result):
        assert read_graph(text, "g") == graph
    else:
        with pytest.raises(FormatError, match=rf"rows does not make {result} rows of {size}$"):
            read_graph(text, "g")


@given(MAPS, st.integers(1, 9), st.integers(1, 12))
def test_a_map_that_fits_makes_every_row(rule: Map, size: int, result: int) -> None:
    """Tests that what is fed lies in the input, and what is made has what was wanted."""
    if not fits(rule, size, result):
        return
    for begin in range(result):
        for end in range(begin + 1, result + 1):
            fed, made = rule.feed((begin, end), size, result)
            assert 0 <= fed[0] <= fed[1] <= size
            assert made[0] <= begin < end <= made[1]


def test_every_map_has_a_word() -> None:
    """Tests that no map is forgotten, and how a reader of the documentation would write some."""
    assert {*KINDS.values()} == {
        *(Blocks, Each, Even, Joined, Once, Resized, Shifted, Spread, Told, Transposed, Window),
    }
    for rule, size, result, text in (
        (Once(), 3, 3, "once"),
        (Resized(), 3, 3, "resized"),
        (Window(3, 2, before=1), 8, 4, {"window": {"kernel": 3, "stride": 2, "before": 1}}),
        (Window(2, padding=Padding.SAME), 8, 8, {"window": {"kernel": 2, "padding": "same"}}),
        (Told(Shifted(2)), 3, 5, {"told": {"rule": {"shifted": {"before": 2}}}}),
    ):
        operator = json.loads(write_graph(graph_of(rule, size, result)))["operators"][0]
        assert operator["reads"] == [{"tensor": "x", "rows": text, "columns": "each"}]
        assert operator["macs"] == 7
        assert "why_whole" not in operator


def test_what_is_done_as_a_whole() -> None:
    """Tests the reason, what has none, and what reads no picture of which it needs some rows."""
    graph = graph_of(Each(), 4, 4)
    (operator,) = graph.operators
    for fields, text in (
        ({"why_whole": "it sorts"}, '"why_whole": "it sorts"'),
        ({"why_whole": ""}, '"reads": []'),
        ({"why_whole": Operator("", "").why_whole}, '"outputs": ["y"], "macs": 7}'),
    ):
        changed = replace(graph, operators=(replace(operator, reads=(), **fields),))
        assert text in write_graph(changed)
        assert read_graph(write_graph(changed), "g") == changed
    assert '"row_axis": 1' in write_graph(graph)
    assert "row_axis" not in write_graph(replace(graph, row_axis=2))


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("reads", {}, "operators[0].reads is an object; it must be an array"),
        ("reads", [{"tensor": "x"}], 'operators[0].reads[0] has no field "rows"'),
        ("reads.0.tensor", "z", 'operators[0].reads[0].tensor is "z"; no tensor has this name'),
        ("reads.0.tensor", "v", 'reads[0].tensor is "v", which is no picture: a shape of four'),
        ("outputs", [], "operators[0] has reads, but no outputs"),
        ("outputs", ["v"], 'operators[0].outputs[0] is "v", which is no picture'),
        ("why_whole", "it sorts", "operators[0] has reads and why_whole; give one of them"),
        ("why_whole", 3, "operators[0].why_whole is 3; it must be a string"),
        ("macs", -1, "operators[0].macs is -1; it must be a whole number between 0 and 2^62"),
        ("inputs", ["v"], "reads rows of a tensor that is not an input"),
        ("reads.0.rows", 3, "operators[0].reads[0].rows is 3; it must be one of blocks, each"),
        ("reads.0.rows", "all", 'reads[0].rows is "all"; it must be one of blocks, each'),
        ("reads.0.rows", {"all": {}}, 'reads[0].rows is "all"; it must be one of blocks'),
        ("reads.0.rows", {}, "reads[0].rows is an object; it must be one of blocks"),
        ("reads.0.rows", "window", 'reads[0].rows has no field "kernel"'),
        ("reads.0.rows", {"window": 3}, "reads[0].rows.window is 3; it must be an object"),
        ("reads.0.rows", {"window": {"kernel": None}}, 'rows.window has no field "kernel"'),
        ("reads.0.rows", {"window": {"kernal": 1}}, 'has the unknown field "kernal"'),
        (
            "reads.0.rows",
            {"window": {"kernel": 1, "stride": 0}},
            "rows.window.stride is 0; it must be a whole number between 1 and 1024",
        ),
        (
            "reads.0.rows",
            {"window": {"kernel": 1, "before": 1 << 70}},
            "it must be a whole number between -2^62 and 2^62",
        ),
        (
            "reads.0.rows",
            {"window": {"kernel": 1, "padding": "valid"}},
            'rows.window.padding is "valid"; it must be one of same, none, free',
        ),
        ("reads.0.rows", {"window": {"kernel": 1, "zeros": 1}}, "zeros is 1; it must be true or"),
        ("reads.0.rows", {"told": {"rule": {"told": {"rule": "each"}}}}, "is told twice which"),
        ("reads.0.rows", {"shifted": {"before": 9}}, "rows does not make 4 rows of 4"),
    ],
)
def test_mistakes(field: str, value: Any, sentence: str) -> None:
    """Tests one sentence with the place."""
    document = json.loads(write_graph(graph_of(Each(), 4, 4)))
    document["tensors"].append({"name": "v", "bytes": 1, "kind": "input"})
    *path, last = [int(key) if key.isdigit() else key for key in field.split(".")]
    place = document["operators"][0]
    for key in path:
        place = place[key]
    place[last] = value
    with pytest.raises(FormatError) as caught:
        read_graph(json.dumps(document), "g.json")
    assert sentence in str(caught.value)


def test_the_axis_of_rows() -> None:
    """Tests an axis that is none of the two."""
    document = json.loads(write_graph(graph_of(Each(), 4, 4))) | {"row_axis": 3}
    with pytest.raises(FormatError, match=r"document\.row_axis is 3; it must be 1 or 2"):
        read_graph(json.dumps(document), "g.json")

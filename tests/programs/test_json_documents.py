"""Tests what all documents in JSON have in common: what is written is read, all else refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
import strategies
import strategies_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from small_programs import training_step
from strategies_trace import traces

import memplan as mp
from memplan.ask.saved import load_answer, write_answer
from memplan.base.errors import FormatError
from memplan.problem.formats.json import read_plan, read_problem, write_plan, write_problem
from memplan.problem.formats.trace_json import read_trace, write_trace
from memplan.problem.trace import Trace
from memplan.programs.sources import of_graph
from memplan.programs.sources.graph_json import read_graph, write_graph


class Document(NamedTuple):
    """One kind of document: how it is read and written, some, one, and its first field."""

    read: Callable[[str, str], Any]
    write: Callable[[Any], str]
    some: st.SearchStrategy[Any]
    one: Any
    begin: str = '"memplan": {"kind": "KIND", "version": 1}'


def read_answer(text: str, name: str) -> mp.Answer:
    """Read an answer, which is read from a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            return load_answer(path)
        except FormatError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)
            raise


STEPS = [of_graph(training_step(depth)) for depth in (2, 3)]
ANSWER = mp.plan(STEPS, names=["a", "b"], keep=["outputs"])
PROBLEM, PROBLEMS = STEPS[0].problem, strategies.problems(names=strategies.ids())
TRACE = Trace.from_arrays([0, 1], [3, 4], [9, 64], [((".", 0), ("op", 0)), ((".", 0),)])
DOCUMENTS = {
    "problem": Document(read_problem, write_problem, PROBLEMS, PROBLEM),
    "plan": Document(read_plan, write_plan, PROBLEMS.flatmap(strategies.plans), mp.solve(PROBLEM)),
    "trace": Document(read_trace, write_trace, traces(), TRACE),
    "answer": Document(read_answer, write_answer, st.just(ANSWER), ANSWER),
    "graph": Document(
        read_graph, write_graph, strategies_graph.graphs(), STEPS[0].graph, '"memplan_graph": 1'
    ),
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)
each_kind = pytest.mark.parametrize("kind", DOCUMENTS)


def refuse(kind: str, text: str) -> str:
    """Return the sentence with which a text is refused."""
    with pytest.raises(FormatError) as caught:
        DOCUMENTS[kind].read(text, "x.json")
    assert "\n" not in str(caught.value)
    assert "x.json" in str(caught.value)
    return str(caught.value)


@each_kind
@settings(max_examples=40)
@given(st.data())
def test_any_change_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    """Tests something else in any place; what is read is written and read again."""
    of = DOCUMENTS[kind]
    document: Any = json.loads(of.write(data.draw(of.some)))
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(place[key], (dict, list)) and place[key]) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(ANYTHING | st.sampled_from([1 << 70, ["x"], [["x"]], [{}]]))
    text = json.dumps(document)
    try:
        found = of.read(text, "x.json")
    except FormatError:
        refuse(kind, text)
    else:
        again = of.write(found)
        assert of.write(of.read(again, "x.json")) == again


@each_kind
@settings(max_examples=40)
@given(st.data())
def test_what_is_cut_or_no_document_is_refused(kind: str, data: st.DataObject) -> None:
    """Tests the beginning of a document, also with something else behind it, and any text."""
    of = DOCUMENTS[kind]
    whole = of.write(of.one)
    begin = whole[: data.draw(st.integers(0, len(whole.rstrip()) - 1))]
    refuse(kind, begin)
    refuse(kind, data.draw(st.text() | st.text(st.sampled_from(whole), max_size=60)))
    with suppress(FormatError):
        of.read(begin + data.draw(st.text(max_size=40)), "x.json")


@each_kind
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{BEGIN,\n 2}", "x.json:2: the file is not valid JSON: Expecting property name"),
        ("{BEGIN,\n[1, 2\n", "x.json:2: the file is not valid JSON"),
        ("[]", "x.json: the file is JSON, but not "),
        ('{"memplan": 3}', "x.json: the file is JSON, but not "),
        ('{BEGIN, "a": NaN}', "x.json: the file has NaN, which is not valid JSON"),
        ('{BEGIN, "a": -Infinity}', "x.json: the file has -Infinity, which is not valid JSON"),
        ('{BEGIN, "b": 2, "b": 3}', 'x.json: the file has the field "b" twice in one object'),
        ('{BEGIN, "a": NINES}', "x.json: the file has a number with thousands of digits"),
        ('{BEGIN, "a": DEEP', "x.json: the file is nested too deeply"),
        ('{"memplan": {"kind": "none", "version": 1}}', 'is of the kind "none", not "KIND"'),
        ('{"memplan": {"kind": [], "version": 1}}', 'is of the kind an array, not "KIND"'),
        ('{"memplan": {"kind": "KIND", "version": 9}}', "version 9 of the format; this"),
        ('{"memplan": {"kind": "KIND", "version": true}}', "has version true of the format"),
    ],
)
def test_what_is_not_json_is_refused(kind: str, text: str, sentence: str) -> None:
    """Tests what is not JSON, or would be taken for something else, and other kinds."""
    if kind == "graph" and '"memplan": {' in text:
        sentence = "the file is JSON, but not a graph"
    words = {"BEGIN": DOCUMENTS[kind].begin, "NINES": "9" * 5000, "DEEP": "[" * 100_000}
    for word, given_text in (*words.items(), ("KIND", kind)):
        text = text.replace(word, given_text)
    assert sentence.replace("KIND", kind) in refuse(kind, text)

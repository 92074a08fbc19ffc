"""Tests of sources.graph_json: the schema, round trips, and documents that are not good."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies_graph
from documents import changed
from hypothesis import given

from memplan.base.errors import FormatError
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View
from memplan.programs.sources.graph_json import BITS, matches, read, read_graph, write_graph
from memplan.programs.sources.loaded import Label
from memplan.programs.sources.options import Options
from memplan_lab.bench.generators import multi_stream

NET = Graph(
    "net",
    (
        Tensor("x", 32, Kind.INPUT, "float32", (1, 8)),
        Tensor("a", 64, pin=0),
        Tensor("head", 32),
        Tensor("y", 32, Kind.OUTPUT),
    ),
    (
        Operator("", "Gemm", (0,), (1,), workspace=256),
        Operator("relu", "Relu", (2,), (3,), in_place=((2, 3),)),
    ),
    (0,),
    (3,),
    (View(2, 1, 32),),
    alignment=16,
)

NET_TEXT = """\
{
  "memplan_graph": 1,
  "name": "net",
  "alignment": 16,
  "planned": ["input", "intermediate", "output", "workspace"],
  "inputs": ["x"],
  "outputs": ["y"],
  "tensors": [
    {"name": "x", "bytes": 32, "kind": "input", "dtype": "float32", "shape": [1, 8]},
    {"name": "a", "bytes": 64, "kind": "intermediate", "pin": 0},
    {"name": "head", "bytes": 32, "kind": "intermediate"},
    {"name": "y", "bytes": 32, "kind": "output"}
  ],
  "views": [
    {"tensor": "head", "of": "a", "offset": 32}
  ],
  "operators": [
    {"type": "Gemm", "inputs": ["x"], "outputs": ["a"], "workspace": 256},
    {"name": "relu", "type": "Relu", "inputs": ["head"], "outputs": ["y"], \
"in_place": [["head", "y"]]}
  ]
}
"""

BRANCHES = Graph(
    "",
    (Tensor("c", 1, Kind.INPUT), Tensor("i", 4), Tensor("t", 4), Tensor("y", 4)),
    (
        Operator(
            "if",
            "If",
            (0,),
            (3,),
            stream=1,
            blocks=(Block("then", (Operator("", "T", (1,), (2,)),), (1,), (2,)), Block("else", ())),
            loop=True,
        ),
    ),
    (0,),
    aliases=((1, 2),),
)


def refusal(text: str) -> str:
    """Return the sentence with which a text is refused."""
    with pytest.raises(FormatError) as caught:
        read_graph(text, "g.json")
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestRoundTrips:
    """Graphs there and back."""

    def test_text(self) -> None:
        """Tests the text of a graph, which is the schema's documentation."""
        assert write_graph(NET) == NET_TEXT
        assert read_graph(NET_TEXT, "g") == NET

    def test_blocks(self) -> None:
        """Tests that branches, loops, streams and aliases survive."""
        text = write_graph(BRANCHES)
        assert json.loads(text)["operators"] == [
            {
                "name": "if",
                "type": "If",
                "inputs": ["c"],
                "outputs": ["y"],
                "stream": 1,
                "blocks": [
                    {
                        "name": "then",
                        "inputs": ["i"],
                        "outputs": ["t"],
                        "operators": [{"type": "T", "inputs": ["i"], "outputs": ["t"]}],
                    },
                    {"name": "else", "operators": []},
                ],
                "loop": True,
            }
        ]
        assert read_graph(text, "g") == BRANCHES

    def test_streams_and_groups(self) -> None:
        """Tests that both survive, and that a file without them has one stream and no groups."""
        graph = multi_stream(20, 3, seed=5)
        graph = replace(graph, groups=((2, 1), (4, 3)))
        text = write_graph(graph)
        names = [tensor.name for tensor in graph.tensors]
        assert json.loads(text)["groups"] == [[names[2], names[1]], [names[4], names[3]]]
        assert read_graph(text, "g") == graph
        assert {operator.stream for operator in NET.operators} == {0}
        assert NET.groups == ()

    def test_streams_may_be_listed_one_after_the_other(self) -> None:
        """Tests that operators are put in an order in which they can run, each stream as it is."""
        rows = [
            {"name": "c", "inputs": ["b"], "stream": 1},
            {"name": "a", "outputs": ["x"]},
            {"name": "b", "inputs": ["x"], "outputs": ["b"]},
            {"name": "d", "stream": 1},
        ]
        tensors = [{"name": "x", "bytes": 1}, {"name": "b", "bytes": 1}]
        document = {"memplan_graph": 1, "tensors": tensors, "operators": rows}
        graph = read_graph(json.dumps(document), "g")
        assert [operator.name for operator in graph.operators] == ["a", "b", "c", "d"]
        rows[1]["stream"] = 1
        said = refusal(json.dumps(document))
        assert said == (
            "g.json: the order of operators on their streams contradicts the arcs: "
            '"c" waits for "b" (tensor "b"), "b" waits for "a" (tensor "x"), '
            '"a" waits for "c" (stream 1)'
        )

    @given(strategies_graph.graphs(scale=(1 << 55) + 1))
    def test_any(self, graph: Graph) -> None:
        """Tests that any graph survives, numbers above 2^53 to the byte."""
        assert read_graph(write_graph(graph), "g") == graph

    def test_largest_number(self) -> None:
        """Tests that 2^62 bytes are 2^62 bytes."""
        graph = Graph("", (Tensor("a", 1 << 62), Tensor("b", (1 << 62) - 1)), ())
        assert read_graph(write_graph(graph), "g") == graph

    def test_nothing_may_be_said_as_null(self) -> None:
        """Tests that null is none for what may be left out."""
        empty = dict.fromkeys(("name", "source", "alignment", "planned", "inputs", "outputs"))
        more = {"memplan_graph": 1, "views": None, "aliases": None, "groups": None}
        row = {"name": "t", "bytes": 1, "dtype": None, "shape": None, "kind": None, "pin": None}
        step = dict.fromkeys(
            ("name", "type", "inputs", "outputs", "stream", "workspace", "in_place", "blocks")
        )
        text = json.dumps(
            {**empty, **more, "tensors": [row], "operators": [{**step, "loop": None}]}
        )
        assert read_graph(text, "g") == Graph("", (Tensor("t", 1),), (Operator("", ""),))


class TestDefaults:
    """What need not be said."""

    def test_kinds(self) -> None:
        """Tests that the lists of inputs and outputs make kinds, and a tensor may say otherwise."""
        row = {"bytes": 1}
        names = ["x", "y", "z", "w"]
        tensors = [{"name": name, **row} for name in names]
        tensors[3]["kind"] = "constant"
        document = {"memplan_graph": 1, "inputs": ["x", "z"], "outputs": ["z", "w", "y"]}
        operators = [{"outputs": ["y"]}]
        text = json.dumps({**document, "tensors": tensors, "operators": operators})
        kinds = [tensor.kind for tensor in read_graph(text, "g").tensors]
        assert kinds == [Kind.INPUT, Kind.OUTPUT, Kind.INPUT, Kind.CONSTANT]

    @pytest.mark.parametrize(
        ("dtype", "shape", "size"),
        [
            ("float32", [2, 3], 24),
            ("int4", [3], 2),
            ("bool", [], 1),
            ("float64", [7, 0], 0),
            ("complex128", [1], 16),
            ("bfloat16", [1 << 61], 1 << 62),
        ],
    )
    def test_sizes(self, dtype: str, shape: list[int], size: int) -> None:
        """Tests that a type and a shape are a size, and that bytes go before them."""
        text = changed(NET_TEXT, "tensors.0", {"name": "x", "dtype": dtype, "shape": shape})
        assert read_graph(text, "g").tensors[0].bytes == size
        more = min(size + 5, 1 << 62)  # padding
        assert read_graph(changed(text, "tensors.0.bytes", more), "g").tensors[0].bytes == more


class TestRefusals:
    """One sentence each, with the place in the document."""

    @pytest.mark.parametrize(
        ("path", "value", "sentence"),
        [
            (
                "memplan_graph",
                ...,
                'the file is JSON, but not a graph: it does not contain "memplan_graph": 1',
            ),
            ("memplan_graph", 2, "the graph has version 2; this memplan reads version 1"),
            ("memplan_graph", True, "the graph has version true"),
            ("color", 1, 'the document has the unknown field "color"'),
            ("tensors", ..., 'the document has no field "tensors"'),
            ("tensors", {}, "tensors is an object; it must be an array"),
            ("tensors.1", 7, "tensors[1] is 7; it must be an object"),
            ("tensors.1.name", ..., 'tensors[1] has no field "name"'),
            ("tensors.1.name", 7, "tensors[1].name is 7; it must be a string"),
            ("tensors.1.name", "", 'tensors[1].name is ""; every tensor needs a name'),
            ("tensors.1.name", "x", 'tensors[1].name is "x"; another tensor has this name'),
            ("tensors.1.size", 7, 'tensors[1] has the unknown field "size"'),
            ("tensors.1.bytes", 1.0, "tensors[1].bytes is 1.0; it must be a whole number between"),
            ("tensors.1.bytes", -1, "tensors[1].bytes is -1; it must be a whole number between 0"),
            ("tensors.1.bytes", True, "tensors[1].bytes is true; it must be a whole number"),
            ("tensors.1.bytes", (1 << 62) + 1, "tensors[1].bytes is 4611686018427387905; it must"),
            ("tensors.1.bytes", ..., "tensors[1] has no size: give bytes, or both dtype and"),
            ("tensors.1.pin", -1, "tensors[1].pin is -1; it must be a whole number"),
            ("tensors.1.kind", "weights", 'tensors[1].kind is "weights"; it must be one of input,'),
            ("tensors.1.kind", [], "tensors[1].kind is an array; it must be one of input,"),
            ("tensors.0.shape", [-1], "tensors[0].shape[0] is -1; it must be a whole number"),
            ("tensors.0.shape", "8", 'tensors[0].shape is "8"; it must be an array'),
            ("tensors.0.shape", [1] * 65, "tensors[0].shape has 65 dimensions; at most 64"),
            (
                "tensors.0",
                {"name": "x", "dtype": "posit", "shape": [1]},
                'tensors[0].dtype is "posit", of unknown size: give bytes, or one of int2',
            ),
            (
                "tensors.0",
                {"name": "x", "dtype": "int8", "shape": [1 << 62, 1 << 62]},
                'tensor "x" has a size of 21267647932558653966460912964485513216 bytes',
            ),
            ("alignment", 0, "the alignment is 0; it must be between 1 and 2^62"),
            ("planned", ["output", "everything"], 'planned[1] is "everything"; it must be one of'),
            ("inputs", ["z"], 'inputs[0] is "z"; no tensor has this name'),
            ("inputs", [["x"]], "inputs[0] is an array; it must be the name of a tensor"),
            ("outputs", "y", 'outputs is "y"; it must be an array'),
            ("views.0.of", "z", 'views[0].of is "z"; no tensor has this name'),
            ("views.0.offset", -4, "views[0].offset is -4; it must be a whole number"),
            ("views.0.base", "x", 'views[0] has the unknown field "base"'),
            ("views.0.of", "head", 'the view "head" is a view of itself'),
            ("aliases", [["x", "y", "a"]], "aliases[0] has 3 names; it must have two"),
            ("aliases", ["x"], 'aliases[0] is "x"; it must be an array'),
            ("groups", [["x", "z"]], 'groups[0][1] is "z"; no tensor has this name'),
            ("groups", ["x"], 'groups[0] is "x"; it must be an array'),
            ("groups", [["x", "a", "x"]], 'group 0 lists tensor "x" twice'),
            ("groups", [["x", "a"], ["a"]], 'groups 0 and 1 share tensor "a"; a tensor may be'),
            ("operators.1", [], "operators[1] is an array; it must be an object"),
            ("operators.1.inputs", ["hat"], 'operators[1].inputs[0] is "hat"; no tensor has this'),
            ("operators.1.in_place", [["y"]], "operators[1].in_place[0] has 1 names; it must"),
            ("operators.1.in_place", [["y", "y"]], 'operator "relu" has an in-place pair that is'),
            ("operators.1.stream", "0", 'operators[1].stream is "0"; it must be a whole number'),
            ("operators.1.loop", 1, "operators[1].loop is 1; it must be true or false"),
            ("operators.1.blocks", [{"ops": []}], "operators[1].blocks[0] has the unknown field"),
            (
                "operators.1.blocks",
                [{}, {"operators": [{}, {"outputs": [3]}]}],
                "operators[1].blocks[1].operators[1].outputs[0] is 3; it must be the name of",
            ),
            (
                "operators.0.inputs",
                ["y"],
                'the operators run in a cycle: "Gemm" waits for "relu" (tensor "y"), '
                '"relu" waits for "Gemm" (tensor "head")',
            ),
            (
                "operators.0.outputs",
                [],
                'nothing makes tensor "a", which has the view "head", ',
            ),
        ],
    )
    def test_bad_documents(self, path: str, value: Any, sentence: str) -> None:
        """Tests that each thing that is wrong is one sentence with its place in the document."""
        said = refusal(changed(NET_TEXT, path, value))
        assert said.startswith(f"g.json: {sentence}")

    @pytest.mark.parametrize("depth", [101, 150, 3000])
    def test_blocks_in_blocks(self, depth: int) -> None:
        """Tests that a hundred levels are read and more refused, whatever Python's own limit."""

        def nested(levels: int) -> str:
            start = '{"memplan_graph": 1, "tensors": [], "operators": [' + "".join(
                ['{"blocks": [{"operators": ['] * levels
            )
            return start + "{}" + "]}]}" * levels + "]}"

        assert read_graph(nested(99), "g").operators
        assert refusal(nested(depth)) in (
            "g.json: the graph has blocks nested more than 100 deep",
            "g.json: the file is nested too deeply",
        )


class TestFiles:
    """The source, as the command line uses it."""

    def test_read(self, tmp_path: Path) -> None:
        """Tests that a file becomes a problem whose buffers know what makes and uses them."""
        path = tmp_path / "net"
        path.write_text(NET_TEXT, encoding="utf-8-sig")
        assert matches(path.read_bytes()[:4096], path)
        loaded = read(path, Options())
        assert (loaded.source, loaded.tensors, loaded.graph) == ("graph", 4, NET)
        assert loaded.problem.ids == ("x", "a", "y", "Gemm (workspace)")
        assert loaded.problem.size.tolist() == [32, 64, 32, 256]
        assert loaded.problem.pin.tolist() == [-1, 0, -1, -1]
        assert loaded.labels[1] == Label(
            ("a", "head"), "intermediate", "Gemm", ("relu (Relu)",), "Gemm"
        )
        assert loaded.labels[3].operator == "Gemm"

    def test_where_operators_come_from(self, tmp_path: Path) -> None:
        """Tests that modules and lines are read, written, and said of buffers and workspaces."""
        path = tmp_path / "net.json"
        path.write_text(changed(NET_TEXT, "operators.0.module", "layer1.0.fc"))
        path.write_text(changed(path.read_text(), "operators.0.line", "model.py:41"))
        loaded = read(path, Options())
        assert loaded.graph is not None
        assert read_graph(write_graph(loaded.graph), "again") == loaded.graph
        places = [(label.module, label.line) for label in loaded.labels]
        here = ("layer1.0.fc", "model.py:41")
        assert places == [("", ""), here, ("", ""), here]

    def test_options(self, tmp_path: Path) -> None:
        """Tests that kinds and in-place choices are the user's."""
        path = tmp_path / "net.json"
        path.write_text(NET_TEXT)
        chosen = Options(include=frozenset({Kind.INTERMEDIATE, Kind.OUTPUT}))
        assert read(path, chosen).problem.ids == ("a", "y")

    def test_bytes_that_the_shape_contradicts(self, tmp_path: Path) -> None:
        """Tests that a tensor holds its elements: padding is allowed, fewer bytes are refused."""
        path = tmp_path / "net.json"
        path.write_text(changed(NET_TEXT, "tensors.0.bytes", 31))
        with pytest.raises(FormatError, match=r"tensors\[0\]\.bytes is 31, .* take 32"):
            read(path, Options())
        path.write_text(changed(NET_TEXT, "tensors.0.bytes", 48))
        assert read(path, Options()).problem.ids

    def test_a_bad_layout_names_the_file(self, tmp_path: Path) -> None:
        """Tests that what only shows when memory is laid out is about the file, too."""
        path = tmp_path / "net.json"
        path.write_text(changed(NET_TEXT, "views.0.offset", 33))
        with pytest.raises(FormatError, match=r'net\.json: the view "head" reaches 65 bytes into'):
            read(path, Options())

    @pytest.mark.parametrize("head", [b"", b"{}", b'{"memplan": {}}', b'x "memplan_graph"'])
    def test_other_files(self, head: bytes) -> None:
        """Tests that other files are not taken for graphs."""
        assert not matches(head, Path("x"))


def test_bits_are_those_of_numpy() -> None:
    """Tests the types that NumPy has; names of the others begin with their kind and have bits."""
    known = [name for name in BITS if hasattr(np, name)]
    assert len(known) > 12
    assert {name: 8 * np.dtype(name).itemsize for name in known} == {n: BITS[n] for n in known}
    for name in set(BITS) - set(known):
        assert BITS[name] == int(re.findall(r"\d+", name)[0]), name

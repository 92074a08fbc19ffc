"""Tests of the interference graph: its edges by brute force, and the files and pictures of it."""

from __future__ import annotations

import ast
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from strategies import ids, problems, related

from memplan.base.errors import MemplanError
from memplan.problem import Buffer, Gap, Problem, Reserved, formats
from memplan.problem.formats import interference
from memplan.problem.interference import Cause, find_edges
from memplan.problem.plan import Plan
from memplan.problem.spans import first_overlap, first_shared, spans

XML = "{http://graphml.graphdrawing.org/xmlns}"
AWKWARD = Problem(
    [
        Buffer('"; n9 [label="x"]; --', 0, 3, 4),
        Buffer("\n\t\r\\n\\N\\", 1, 4, 2),
        Buffer("</data> & &amp; ]]> <!--", 2, 5, 1),
        Buffer("\x01\x1b\u2028\ufffe é漢", 4, 6, 3),
        Buffer("\\x01\\x1b", 4, 6, 3),
        Buffer("\0", 5, 6, 1),  # which CSV cannot store
    ]
)


def clash(problem: Problem, first: int, second: int) -> bool:
    """Return whether the referee rejects some offsets because of these two buffers alone."""
    pair = problem.subset([first, second])
    high = int(pair.size.max())
    for low in range(2 * high + 1):
        offset = np.array([low, high])
        if first_overlap(spans(pair), offset) or first_shared(pair, offset):
            return True
    return False


def bytes_held(buffer: Buffer, time: int) -> int:
    """Return how many bytes a buffer holds at a time, by the definition of gaps."""
    if not buffer.start <= time < buffer.end:
        return 0
    for gap in buffer.gaps:
        if gap.start <= time < gap.end:
            return 0 if gap.window is None else gap.window[1] - gap.window[0]
    return buffer.size


def find_cause(problem: Problem, first: int, second: int) -> Cause:
    """Return the first cause that holds for two buffers that must be apart."""
    one, other = problem.subset([first, second]).buffers
    times = range(max(one.start, other.start), min(one.end, other.end))
    if any(bytes_held(one, t) == one.size and bytes_held(other, t) == other.size for t in times):
        return Cause.LIFETIME
    return Cause.CONFLICT if second in problem.conflicts.of(first) else Cause.WINDOW


@given(related(problems(max_buffers=8)))
def test_edges_are_what_the_referee_rejects(problem: Problem) -> None:
    """Tests every pair of problems with gaps, windows, conflicts and groups by brute force."""
    bare = problem.with_capacity(None).with_reserved(())
    pairs = combinations(range(len(problem)), 2)
    expected = [(*pair, find_cause(bare, *pair)) for pair in pairs if clash(bare, *pair)]
    edges = find_edges(problem, 100)
    found = list(zip(*(c.tolist() for c in (edges.first, edges.second, edges.cause)), strict=True))
    assert found == expected
    assert len(edges) == len(expected)


@given(related(problems(min_buffers=2, max_buffers=8)))
def test_chunks_change_nothing(problem: Problem) -> None:
    """Tests that edges which are found a few at a time are the same."""
    whole = find_edges(problem, 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memplan.problem.interference._CHUNK", 1)
        parts = find_edges(problem, 100)
    for name in ("first", "second", "cause"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))


@given(related(problems(min_buffers=2, max_buffers=8)))
def test_limit_is_exact(problem: Problem) -> None:
    """Tests that a graph of as many edges as allowed is made, and that one more is refused."""
    count = len(find_edges(problem, 100))
    assert len(find_edges(problem, count)) == count
    if count:
        with pytest.raises(MemplanError, match="the interference graph would have") as refusal:
            find_edges(problem, count - 1)
        if not problem.has_gaps:
            assert f"would have {count} edges; at most {count - 1} are" in str(refusal.value)
        else:
            low, high = map(int, re.findall(r"between (\d+) and (\d+)", str(refusal.value))[0])
            assert low <= count <= high


def test_many_edges_are_counted_and_not_made() -> None:
    """Tests that a problem with half a million million edges is refused at once."""
    count = 1_000_000
    times = np.zeros(count, dtype=np.int64)
    problem = Problem.from_arrays(times, times + 9, times + 1)
    with pytest.raises(MemplanError, match="would have 499,999,500,000 edges; at most 1,000,000 "):
        interference.write_dot(problem)


def read_graphml(text: str) -> tuple[list[dict[str, str]], list[tuple[str, str, str]]]:
    """Return the attributes of every node, and the edges."""
    root = ElementTree.fromstring(text)
    keys = {key.get("id"): key.get("attr.type") for key in root.iter(f"{XML}key")}
    assert {data.get("key") for data in root.iter(f"{XML}data")} <= keys.keys()
    nodes = []
    for at, node in enumerate(root.iter(f"{XML}node")):
        assert node.get("id") == f"n{at}"
        nodes.append({str(data.get("key")): data.text or "" for data in node})
    edges = [
        (str(edge.get("source")), str(edge.get("target")), str(edge[0].text))
        for edge in root.iter(f"{XML}edge")
    ]
    return nodes, edges


def restore(label: str) -> str:
    """Return the id that a label was made from."""
    quoted = label.replace('"', '\\"')
    return str(ast.literal_eval(f'"{quoted}"'))


def list_edges(problem: Problem) -> list[tuple[str, str, str]]:
    """Return the edges as files have them."""
    edges = find_edges(problem, 100)
    return [
        (f"n{first}", f"n{second}", Cause(cause).name.lower())
        for first, second, cause in zip(edges.first, edges.second, edges.cause, strict=True)
    ]


@given(related(problems(names=ids())))
@example(AWKWARD)
def test_graphml_comes_back(problem: Problem) -> None:
    """Tests that an XML parser finds every buffer with its id and numbers, and every edge."""
    nodes, edges = read_graphml(interference.write_graphml(problem))
    assert tuple(restore(node["label"]) for node in nodes) == problem.ids
    assert edges == list_edges(problem)
    for buffer, node in zip(problem.buffers, nodes, strict=True):
        for name in ("size", "start", "end", "alignment"):
            assert int(node[name]) == getattr(buffer, name)
        assert node.get("pin") == (None if buffer.pin is None else str(buffer.pin))
        assert len(node.get("gaps", "").split()) == len(buffer.gaps)
    groups = {int(node["group"]) for node in nodes if "group" in node}
    assert groups == set(range(len(problem.groups)))
    # The buffers at the greatest load are a clique, and they hold that load.
    assert sum(int(node["at_max_load"]) for node in nodes) == problem.max_load
    peak = [f"n{row}" for row, node in enumerate(nodes) if int(node["at_max_load"])]
    assert {(a, b) for a, b in combinations(peak, 2)} <= {(a, b) for a, b, _ in edges}


# The parts of DOT (https://graphviz.org/doc/info/lang.html) that a string may not leave.
STRING = r'"(?:[^"\\]|\\.)*"'
VALUE = rf"(?:{STRING}|-?[0-9.]+|[a-z]+)"
ATTRIBUTES = rf"\[((?:[a-z_]+={VALUE}(?:, )?)*)\]"
NODE = re.compile(rf"  n(\d+) {ATTRIBUTES};")
EDGE = re.compile(rf"  (n\d+) -- (n\d+) {ATTRIBUTES};")


def read_dot(text: str) -> tuple[list[dict[str, str]], list[tuple[str, str, str]]]:
    """Return nodes and edges as `read_graphml` does; labels as Graphviz draws them."""
    lines = text.split("\n")
    assert (lines[0], lines[-2:]) == ("graph interference {", ["}", ""])
    at = lines.index("  node [shape=circle];")
    assert all(re.fullmatch(r"  [a-z_]+=\d+;", line) for line in lines[1:at])
    nodes: list[dict[str, str]] = []
    edges: list[tuple[str, str, str]] = []
    for line in lines[at + 1 : -2]:
        if edge := EDGE.fullmatch(line):
            cause = re.match('cause="([a-z]+)"', edge[3])
            assert cause
            edges.append((edge[1], edge[2], cause[1]))
            continue
        node = NODE.fullmatch(line)
        assert node, line
        assert int(node[1]) == len(nodes)
        nodes.append(dict(re.findall(rf"([a-z_]+)=({VALUE})", node[2])))
        drawn = re.sub(r"\\(.)", r"\1", nodes[-1]["label"][1:-1])
        nodes[-1]["label"] = drawn.replace("&amp;", "&")
    return nodes, edges


@given(related(problems(names=ids())))
@example(AWKWARD)
def test_dot_comes_back(problem: Problem) -> None:
    """Tests that no id leaves its string in DOT, and that nodes and edges are those of GraphML."""
    text = interference.write_dot(problem)
    assert text.isascii() or text.replace("\n", "").isprintable()
    nodes, edges = read_dot(text)
    assert tuple(restore(node["label"]) for node in nodes) == problem.ids
    assert edges == list_edges(problem)
    others, _ = read_graphml(interference.write_graphml(problem))
    for node, other in zip(nodes, others, strict=True):
        same = {key: text.strip('"') for key, text in node.items() if key in other}
        assert same | {"label": node["label"]} == other


def test_dot_has_looks() -> None:
    """Tests an example by letter: areas, dashes, and what is live at the greatest load."""
    problem = Problem(
        [
            Buffer("a", 0, 2, 4),
            Buffer("b", 1, 4, 16, alignment=8, gaps=[Gap(2, 3, (0, 4))]),
            Buffer("c", 2, 3, 1, pin=32),
        ],
        capacity=64,
        conflicts=[("a", "c")],
        groups=[["a"]],
    )
    assert interference.write_dot(problem).splitlines() == [
        "graph interference {",
        "  buffers=3;",
        "  edges=3;",
        "  max_load=20;",
        "  capacity=64;",
        "  node [shape=circle];",
        '  n0 [label="a", size=4, start=0, end=2, alignment=1, group=0, at_max_load=4, '
        'width=1.000, style=filled, fillcolor="#7aa6cc"];',
        '  n1 [label="b", size=16, start=1, end=4, alignment=8, at_max_load=16, gaps="2-3@0:4", '
        'width=2.000, style=filled, fillcolor="#7aa6cc"];',
        '  n2 [label="c", size=1, start=2, end=3, alignment=1, pin=32, at_max_load=0, '
        "width=0.500];",
        '  n0 -- n1 [cause="lifetime"];',
        '  n0 -- n2 [cause="conflict", style=dashed];',
        '  n1 -- n2 [cause="window", style=dotted];',
        "}",
    ]


def test_save_chooses_by_suffix(tmp_path: Path, five: Problem) -> None:
    """Tests names and formats, and that plans are never written as graphs."""
    for name in ("a.dot", "a.GV"):
        formats.save(five, tmp_path / name)
        assert (tmp_path / name).read_text() == interference.write_dot(five)
    formats.save(five, tmp_path / "a.graphml")
    assert (tmp_path / "a.graphml").read_text() == interference.write_graphml(five)
    formats.save(five, tmp_path / "a.txt", format="dot")
    assert (tmp_path / "a.txt").read_text() == interference.write_dot(five)
    plan = Plan.of(five, [0, 4, 8, 12, 16])
    with pytest.raises(MemplanError, match="GraphML cannot store a plan; write it as CSV or JSON"):
        formats.save(plan, tmp_path / "plan", format="graphml")
    with pytest.raises(MemplanError, match="unknown format"):
        formats.save(five, tmp_path / "a", format="gexf")  # type: ignore[arg-type]


def test_empty_problem(tmp_path: Path) -> None:
    """Tests that there is a graph without nodes, and a picture of it."""
    nothing = Problem(())
    assert read_dot(interference.write_dot(nothing)) == ([], [])
    assert read_graphml(interference.write_graphml(nothing)) == ([], [])
    pytest.importorskip("matplotlib")
    from memplan.view import interference as drawn
    from memplan.view import picture

    picture.write(drawn.draw(nothing), tmp_path / "nothing.svg")


def test_picture(tmp_path: Path) -> None:
    """Tests that every buffer is a node, every edge a line of its cause, and every name a text."""
    pytest.importorskip("matplotlib")
    from memplan.view import interference as drawn
    from memplan.view import picture

    problem = Problem(
        [
            Buffer("first", 0, 2, 4),
            Buffer("$x_1$ with a very long name", 1, 4, 16, gaps=[Gap(2, 3, (0, 4))]),
            Buffer("third", 2, 3, 1, pin=32),
        ],
        conflicts=[("first", "third")],
        reserved=[Reserved(64, 80)],
    )
    axes = drawn.draw(problem).axes[0]
    kinds = {artist.get_gid(): artist for artist in axes.collections}
    assert set(kinds) == {"buffers", "lifetime", "conflict", "window"}
    areas = kinds["buffers"]._widths ** 2  # type: ignore[attr-defined]
    assert areas / areas.max() == pytest.approx([4 / 16, 1, 1 / 16])
    nodes = kinds["buffers"].get_offsets()
    (line,) = kinds["conflict"].get_segments()  # type: ignore[attr-defined]
    assert line.tolist() == nodes[[0, 2]].tolist()
    names = [text.get_text() for text in axes.texts]
    assert names == ["first", "$x_1$ wit…long name", "third (pinned)"]
    assert axes.get_title(loc="left") == (
        "3 buffers, 3 conflicts; 20 bytes are live at the greatest load (dark)"
    )
    picture.write(drawn.draw(problem), tmp_path / "a.svg")
    picture.write(drawn.draw(problem), tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    many = Problem([Buffer(str(row), row, row + 1, 1) for row in range(201)])
    with pytest.raises(MemplanError, match="a picture of 201 buffers cannot be read; at most 200"):
        picture.write(drawn.draw(many), tmp_path / "c.svg")
    assert not (tmp_path / "c.svg").exists()

"""Tests of ONNX files: what is read of them, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
import onnx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx_models import (
    FLOAT,
    LIGHT,
    branching,
    light,
    loaded,
    looping,
    model,
    node,
    on_disk,
    simple,
    value,
    weight,
)

from memplan.base.errors import FormatError, GraphError, MemplanError
from memplan.base.notes import Code
from memplan.programs.sources.options import Options
from memplan.programs.sources.wire import WireError
from memplan.runtimes.onnx.read import graph_of, matches, read
from memplan.runtimes.onnx.read.read_weights import strip_weights


def test_weights_outside_of_the_file_are_not_needed(tmp_path: Path) -> None:
    """Tests that external data is never looked for."""
    external = weight("w", [1000, 3])
    external.ClearField("raw_data")
    external.data_location = onnx.TensorProto.EXTERNAL
    external.external_data.add(key="location", value="not there.bin")
    what = model(
        [node("MatMul", "x w", "y")], [value("x", [2, 1000])], [value("y", None)], [external]
    )
    assert loaded(tmp_path, what).problem.size.tolist() == [256]


def test_the_weights_of_a_large_file_are_not_read(tmp_path: Path) -> None:
    """Tests that 100 MB of weights take at most 2.5 times the file, and in fact do not count."""
    if not Path("/proc/self/status").is_file():
        pytest.skip("the peak of a process is read from /proc")
    tensor = onnx.TensorProto(name="w", data_type=FLOAT, dims=[25_000, 1000])
    tensor.raw_data = bytes(100_000_000)
    what = model(
        [node("MatMul", "x w", "y")], [value("x", [2, 25_000])], [value("y", None)], [tensor]
    )
    path = on_disk(tmp_path, what)
    program = (
        "import sys; from pathlib import Path\n"
        "from memplan.runtimes.onnx.read import read\n"
        "from memplan.programs.sources.options import Options\n"
        "print(len(read(Path(sys.argv[1]), Options()).problem))\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    run = [sys.executable, "-c", program]
    small, large = (
        [int(line) for line in subprocess.check_output([*run, str(one)]).split()]
        for one in (light("light_squeezenet"), path)
    )
    assert large[0] == 1
    assert large[1] * 1024 <= 2.5 * path.stat().st_size
    assert (large[1] - small[1]) * 1024 < path.stat().st_size / 10


def test_a_skeleton_lacks_nothing_but_large_data() -> None:
    """Tests that all but the data of large tensors stays, in sub-graphs and attributes too."""
    what = branching(
        [node("Constant", "", "r", value=weight("v", [4]))],
        [node("Constant", "", "big", value=weight("v", [4000])), node("Neg", "a", "r")],
    )
    what.graph.initializer.extend([weight("small", [10]), weight("large", [5000])])
    found = onnx.ModelProto.FromString(strip_weights(what.SerializeToString()))
    what.graph.initializer[1].ClearField("raw_data")
    branch = next(a.g for a in what.graph.node[1].attribute if a.name == "else_branch")
    branch.node[0].attribute[0].t.ClearField("raw_data")
    assert found == what


def test_the_model_in_memory_is_left_as_it_is() -> None:
    """Tests that `graph_of` changes nothing of what it is given."""
    what = branching([node("Neg", "a", "r")], [node("Abs", "a", "r")])
    before = what.SerializeToString()
    graph_of(what)
    assert what.SerializeToString() == before


def test_models_are_told_by_their_content() -> None:
    """Tests that real models match, whatever comes first in them, and other formats do not."""
    for name in LIGHT:
        assert matches(light(name).read_bytes()[:4096], Path("x.bin"))
    what = model([node("Neg", "x", "y")], [value("x", [2])], [value("y", None)])
    assert matches(what.SerializeToString(), Path("x"))
    for head in (
        b"",
        b"\x08",
        b"\x1c\0\0\0TFL3" + bytes(100),
        b'{"format": "memplan"}',
        b"id,lower,upper,size\n",
        b"PK\x03\x04" + bytes(100),
        b"\x80\x02}q\x00.",
        b"\x0a\x04name\x12\x02hi",
        b"HloModule jit_f, is_scheduled=true",
    ):
        assert not matches(head, Path("x.onnx"))


def chained(names: str, kinds: str) -> list[Any]:
    """Return operators, each of which reads the result of the one before."""
    made = names.split()
    return [node(kind, *made[at : at + 2]) for at, kind in enumerate(kinds.split())]


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (b"", "the file is empty"),
        (b"\0" * 100, "the file is not a protocol buffer: no field begins at byte 0"),
        (b"\x08\x07\xff", "the file is cut off at byte 3"),
        (b"\x08" + b"\xff" * 20, "the number before byte 11 does not end"),
        (b"\x08\x07", "the file is not an ONNX model: it has no graph"),
        (simple(node("Neg", "x", "y")).SerializeToString()[:-9], "the file is cut off"),
        (simple(node("Neg", "q", "y")), 'no operator makes tensor "q", which operator "Neg" reads'),
        (simple(node("Neg", "x", "q")), 'no operator makes tensor "y", an output of graph "g"'),
        (
            simple(node("Abs", "x", "w"), node("Add", "z w", "q"), *chained("q y z", "Neg Exp")),
            'operators form a cycle, each reads from the one before it: "Neg", "Exp", "Add"',
        ),
        (simple(node("Add", "y x", "y")), 'operator "Add" reads its own result'),
        (simple(node("Neg", "x", "y"), node("Abs", "x", "y")), 'two operators make tensor "y"'),
        (
            simple(node("Neg", "x", "y")).SerializeToString().replace(b"Neg", b"N\xff\xfe"),
            'a name in graph "g" is not UTF-8',
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, what: Any, sentence: str) -> None:
    """Tests that it is one sentence, which names the file."""
    path = on_disk(tmp_path, what)
    with pytest.raises(FormatError) as refused:
        read(path, Options())
    assert str(refused.value).startswith(f"{path}: ")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def backwards(kinds: str = "Relu Neg Add") -> list[Any]:
    """Return operators that make r of x; none comes behind what it reads."""
    first, second, last = kinds.split()
    return [node(last, "p q", "r"), node(second, "p", "q"), node(first, "x", "p")]


def test_operators_are_sorted(tmp_path: Path) -> None:
    """Tests that those of the graph, of a branch and of a function come behind what they read."""
    function = onnx.helper.make_function(
        "d", "F", ["x"], ["r"], backwards(), [onnx.helper.make_opsetid("", 18)]
    )
    call = onnx.helper.make_node("F", ["v"], ["w"], domain="d")
    what = branching(backwards(), [node("Neg", "a", "r")])
    what.graph.node.insert(0, call)
    what.graph.node.extend([node("Abs", "z", "v")])
    what.functions.append(function)
    what.opset_import.add(domain="d", version=1)
    found = loaded(tmp_path, what)
    assert [note.code for note in found.notes] == [Code.OPERATORS_SORTED]
    assert 'graph "then", "g", "F"' in found.notes[0].text
    assert found.graph is not None
    operators = found.graph.operators
    assert [one.type for one in operators] == ["Exp", "If", "Neg", "Abs", "Relu", "Neg", "Add"]
    blocks = next(one for one in operators if one.type == "If").blocks
    assert ["Relu", "Neg", "Add"] in [[one.type for one in each.operators] for each in blocks]


def test_operators_in_order_keep_their_places(tmp_path: Path) -> None:
    """Tests that nothing moves, and no note comes, where each operator can run at its place."""
    nodes = [node("Neg", "x", "b"), node("Abs", "x", "c"), node("Exp", "b", "d")]
    found = loaded(tmp_path, simple(*nodes, node("Sum", "b c d", "y")))
    assert found.notes == ()
    assert found.graph is not None
    assert [one.type for one in found.graph.operators] == ["Neg", "Abs", "Exp", "Sum"]


def test_no_file(tmp_path: Path) -> None:
    """Tests a file that is not there, and a folder."""
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(FormatError, match="cannot be read"):
            read(path, Options())


def field(number: int, data: bytes) -> bytes:
    """Return a field of a protocol buffer that holds these bytes."""
    length, size = bytearray(), len(data)
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + data


def test_endless_nesting_is_refused() -> None:
    """Tests that messages inside of messages do not exhaust the stack."""
    data = bytes([10]) * 5000  # large enough to be looked into
    for number in [6, 5, 1] * 40:  # the graph of an attribute of a node
        data = field(number, data)
    with pytest.raises(WireError, match="nests messages more than 100 deep"):
        strip_weights(field(7, data))


def test_more_bytes_than_a_problem_holds_are_refused(tmp_path: Path) -> None:
    """Tests that sizes do not overflow."""
    what = model([node("Neg", "x", "y")], [value("x", [2**40, 2**40])], [value("y", None)])
    with pytest.raises(FormatError, match=r"more than 2\^62"):
        loaded(tmp_path, what)
    many = model(
        [node("Exp", "x", "a"), node("Exp", "a", "b")],
        [value("x", [2**60])],
        [value("a", None), value("b", None)],
    )
    with pytest.raises(FormatError, match=r"2\^62"):
        loaded(tmp_path, many)


def test_a_weight_of_negative_size_is_refused(tmp_path: Path) -> None:
    """Tests that there is no size to give in its place."""
    broken = weight("w", [2])
    broken.dims[0] = -2
    what = model([node("Add", "x w", "y")], [value("x", [2])], [value("y", [2])], [broken])
    with pytest.raises(FormatError, match=r"-2"):
        loaded(tmp_path, what)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the sentence says what to install."""
    path = on_disk(tmp_path, simple(node("Neg", "x", "y")))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MemplanError, match=r"memplan\[onnx\]"):
        read(path, Options())


def test_errors_of_graphs_in_memory_name_no_file() -> None:
    """Tests that they are about the graph alone."""
    with pytest.raises(GraphError, match=r"^no operator makes"):
        graph_of(simple(node("Neg", "q", "y")))


SEED = looping([node("Exp", "t", "e")], [value("e", [3])]).SerializeToString()


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, len(SEED) - 1), st.integers(0, 255)), max_size=6),
    st.integers(1, len(SEED)),
)
def test_damaged_files_are_read_or_refused(
    tmp_path: Path, changes: list[tuple[int, int]], kept: int
) -> None:
    """Tests that nothing but a sentence comes of bytes that were changed, or of a part of them."""
    data = bytearray(SEED)
    for at, byte in changes:
        data[at] = byte
    refused = []
    for part in (bytes(data), bytes(data[:kept])):
        try:
            read(on_disk(tmp_path, part), Options(dims={"all:0": 2}))
        except MemplanError as error:
            refused.append(str(error))
    assert not [sentence for sentence in refused if "\n" in sentence]

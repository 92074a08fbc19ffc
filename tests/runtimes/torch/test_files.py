"""Tests of reading exported PyTorch programs from files, which needs no torch."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_records import Json, S, model, named, node, size, tensor

from memplan.base.errors import FormatError, MemplanError
from memplan.programs.graph import Kind
from memplan.programs.sources.options import Options
from memplan.runtimes.torch.read import matches, read
from memplan.runtimes.torch.read.values import DTYPES

pytestmark = pytest.mark.slow


def looped() -> Json:
    """Return a program that doubles `relu` in a loop, and tests the result in another graph."""
    content = model()
    graph = content["graph_module"]["graph"]
    state = tensor(16, 4, strides=(1, 16))

    def body(name: str, target: str, result: Json) -> Json:
        inner = {
            "inputs": named("arg"),
            "outputs": named("made"),
            "nodes": [node(target, ["arg"], ["made"])],
            "tensor_values": {"arg": state, "made": result},
        }
        return {"as_graph": {"name": name, "graph": inner}}

    graph["tensor_values"]["loop"] = state
    call = node("higher_order.while_loop", [], ["loop"])
    call["inputs"] = [
        {"name": "", "arg": body("test", "aten.any.default", tensor())},
        {"name": "", "arg": body("double", "aten.exp.default", state)},
        {"name": "", "arg": {"as_tensors": [{"name": "relu"}]}},
        {"name": "", "arg": {"as_tensors": []}},
    ]
    graph["nodes"].append(call)
    graph["outputs"] = named("loop")
    content["graph_module"]["signature"]["output_specs"][1]["user_output"]["arg"] = named("loop")[0]
    return content


def write(path: Path, content: Json | bytes, **more: bytes) -> Path:
    """Write an archive as `torch.export.save` lays it out."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in more.items():
            archive.writestr(f"net/data/weights/{name}", data)
        text = content if isinstance(content, bytes) else json.dumps(content).encode()
        archive.writestr("net/models/model.json", text)
        archive.writestr("net/archive_format", b"pt2")
    return path


def test_reads_a_program(tmp_path: Path) -> None:
    """Tests that sizes, sharing and lifetimes of a small program are as its operators say."""
    loaded = read(write(tmp_path / "net.pt2", model()), Options())
    graph = loaded.graph
    assert graph is not None
    assert (loaded.source, graph.name, loaded.tensors) == ("torch", "net", 7)
    assert loaded.problem.ids == ("mm", "relu")
    assert loaded.problem.size.tolist() == [256, 256]
    assert loaded.problem.start.tolist() == [1, 3]
    assert loaded.problem.end.tolist() == [4, 4]
    mm, relu = loaded.labels
    assert mm.tensors == ("mm", "t")
    assert mm.made_by == "fc.mm (aten.mm)"
    assert mm.used_by == ("fc.t (aten.t)", "fc.relu (aten.relu)")
    assert relu.kind == "output"
    kinds = {t.name: t.kind for t in graph.tensors}
    assert kinds["fc.weight"] is Kind.CONSTANT
    assert kinds["count"] is Kind.VARIABLE
    assert kinds["x"] is Kind.INPUT


def test_a_loop(tmp_path: Path) -> None:
    """Tests that a loop keeps its state in one place, apart from what a round makes."""
    loaded = read(write(tmp_path / "net.pt2", looped()), Options())
    buffers = {label.tensors: label for label in loaded.labels}
    state = buffers["loop.test/arg", "loop", "loop.double/arg"]
    assert state.kind == "output"
    assert ("loop.double/made",) in buffers
    assert loaded.graph is not None
    loop = loaded.graph.operators[-1]
    assert (loop.type, loop.loop) == ("while_loop", True)
    assert [block.name for block in loop.blocks] == ["loop.test", "loop.double"]


def test_in_place_over_a_view(tmp_path: Path) -> None:
    """Tests that an operator may write over a storage that dies, seen through a view of it."""
    path = write(tmp_path / "net.pt2", model())
    loaded = read(path, Options(in_place=True))
    assert loaded.problem.ids == ("mm",)
    everything = read(path, Options(include=frozenset(Kind)))
    assert set(everything.problem.ids) == {"fc.weight", "count", "x", "mm", "relu"}


def test_element_types_are_those_of_torch() -> None:
    """Tests each code of a serialized program: the name, and the bytes of an element."""
    pytest.importorskip("torch")
    serialize = pytest.importorskip("torch._export.serde.serialize")
    known = {
        int(code): (str(dtype).removeprefix("torch."), dtype.itemsize)
        for code, dtype in serialize._SERIALIZE_TO_TORCH_DTYPE.items()
    }
    assert len(known) > 15
    assert {code: DTYPES.get(code) for code in known} == known


def test_needs_no_torch(tmp_path: Path) -> None:
    """Tests that reading a file imports no torch."""
    path = write(tmp_path / "net.pt2", model())
    code = (
        "import sys; from pathlib import Path\n"
        "from memplan.programs.sources.options import Options\n"
        "from memplan.runtimes.torch.read import read\n"
        f"read(Path({str(path)!r}), Options()); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Bomb:
    """Unpickled, it raises."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return exec, ("raise SystemExit('a pickle was run')",)


def test_runs_nothing(tmp_path: Path) -> None:
    """Tests that pickles in an archive stay unread."""
    bomb = pickle.dumps(Bomb())
    with pytest.raises(SystemExit):
        pickle.loads(bomb)
    path = write(tmp_path / "net.pt2", model(), weight_0=bomb, sample=bomb)
    assert len(read(path, Options()).problem) == 2


def test_matches_by_content(tmp_path: Path) -> None:
    """Tests that an archive is known whatever it is called, and that other archives are not."""
    path = write(tmp_path / "net.zip", model())
    assert matches(path.read_bytes()[:4096], path)
    whole = path.read_bytes()
    cut = tmp_path / "cut.pt2"
    cut.write_bytes(whole[: len(whole) // 2])
    assert matches(cut.read_bytes()[:4096], cut)
    other = tmp_path / "other.pt2"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("readme.txt", "no model")
    assert not matches(other.read_bytes()[:4096], other)
    assert not matches(b"", tmp_path)
    assert not matches(b"lower,upper,size\n", path)


def test_old_layout(tmp_path: Path) -> None:
    """Tests that the layout of torch before 2.8 is read."""
    path = tmp_path / "old.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("serialized_exported_program.json", json.dumps(model()))
        archive.writestr("version", "8.3")
    assert matches(path.read_bytes()[:4096], path)
    assert len(read(path, Options()).problem) == 2


def test_files_that_are_no_program(tmp_path: Path) -> None:
    """Tests that each kind of wrong file is refused in a sentence that says what it is."""
    path = tmp_path / "net.pt2"

    def refused(sentence: str) -> None:
        with pytest.raises(FormatError, match=sentence) as caught:
            read(path, Options())
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)

    path.write_bytes(b"")
    refused("damaged, or cut short")
    whole = write(path, model()).read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        refused("damaged, or cut short")
    path.write_bytes(whole.replace(b"aten.mm", b"aten.bm"))
    refused("damaged, or cut short")  # the checksum
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no model")
    refused("has no exported program")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data/aotinductor/model/net.so", "")
    refused("has compiled code and no graph")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/models/a.json", "{}")
        archive.writestr("net/models/b.json", "{}")
    refused("has 2 programs")
    for text, sentence in (
        (b"{", "is not valid JSON"),
        (b"[" * 10**5, "is not valid JSON"),
        (b"[]", "program"),
    ):
        write(path, text)
        refused(sentence)
    write(path, {})
    refused('the file has no "graph_module"')
    path.unlink()
    refused("No such file")


def change(*keys: str | int, to: Any) -> Callable[[Json], None]:
    """Return what sets a field of the graph, deep inside."""

    def apply(content: Json) -> None:
        place: Any = content["graph_module"]["graph"]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return apply


def forget_buffer(content: Json) -> None:
    """Let a mutation name no buffer."""
    content["graph_module"]["signature"]["output_specs"][0]["buffer_mutation"]["buffer_name"] = []


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (change("tensor_values", "mm", "sizes", 0, to=size(-4)), "negative size"),
        (change("tensor_values", "mm", "sizes", to=[]), "0 sizes but 2 strides"),
        (change("tensor_values", "mm", "sizes", 0, to=size(2**62)), "larger than 2\\^62"),
        (change("tensor_values", "mm", "sizes", 0, to={"as_int": True}), 'no "as_int"'),
        (change("tensor_values", "mm", "dtype", to=99), "unknown element type"),
        (change("tensor_values", "mm", "layout", to=1), "sparse"),
        (change("tensor_values", "t", "storage_offset", to=size(1)), "reaches 260 bytes"),
        (change("tensor_values", to={}), "has no size in the file"),
        (change("nodes", 1, "inputs", 0, "arg", to=named("relu")[0]), "before it is read"),
        (change("nodes", 1, "inputs", 0, "arg", to=named("ghost")[0]), "has no size"),
        (change("nodes", 1, "outputs", to=named("x")), "two operators make"),
        (change("nodes", 1, "outputs", to=named("relu")), "before it is read"),
        (change("nodes", 1, "inputs", to=7), 'no "inputs"'),
        (change("nodes", 1, to=None), 'no "inputs"'),
        (change("nodes", to={}), 'no "nodes"'),
        (forget_buffer, "replaces an unknown input"),
    ],
)
def test_programs_that_are_wrong(
    tmp_path: Path, damage: Callable[[Json], None], sentence: str
) -> None:
    """Tests that a program that contradicts itself is refused in one sentence."""
    content = model()
    damage(content)
    with pytest.raises(FormatError, match=sentence) as caught:
        read(write(tmp_path / "net.pt2", content), Options())
    assert "\n" not in str(caught.value)


def test_cycles_are_refused(tmp_path: Path) -> None:
    """Tests that operators that need each other's results are refused."""
    content = model()
    nodes = content["graph_module"]["graph"]["nodes"]
    nodes[1]["inputs"][0]["arg"] = named("relu")[0]
    nodes[1], nodes[3] = nodes[3], nodes[1]
    with pytest.raises(FormatError, match="before it is read"):
        read(write(tmp_path / "net.pt2", content), Options())


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    """Tests that sub-graphs inside of each other end in a sentence, not in a full stack."""
    content = model()
    graph = content["graph_module"]["graph"]
    inner = '{"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}'
    for _ in range(400):
        call = node("higher_order.cond", [], [], t9={"as_graph": {"name": "g", "graph": None}})
        outer = {"inputs": [], "outputs": [], "nodes": [call], "tensor_values": {}}
        inner = json.dumps(outer).replace("null", inner)
    graph["nodes"].append(node("higher_order.cond", [], [], t9={"as_graph": None}))
    text = json.dumps(content).replace(
        '"as_graph": null', f'"as_graph": {{"name": "g", "graph": {inner}}}'
    )
    with pytest.raises(FormatError, match=r"nested too deeply|is not valid JSON"):
        read(write(tmp_path / "net.pt2", text.encode()), Options())


def test_zero_elements(tmp_path: Path) -> None:
    """Tests that tensors without elements take no memory."""
    loaded = read(write(tmp_path / "net.pt2", model(0)), Options())
    assert loaded.problem.size.sum() == 0
    assert loaded.tensors == 7


def test_symbols(tmp_path: Path) -> None:
    """Tests that sizes are the given ones, otherwise the largest, and otherwise asked for."""
    path = write(tmp_path / "net.pt2", model(S))
    largest = read(path, Options())
    assert largest.problem.size.tolist() == [64 * 64] * 2
    assert "s77 (dimension 0 of x) is planned as 64" in largest.notes[0].text
    chosen = read(path, Options(dims={"s77": 8}))
    assert chosen.problem.size.tolist() == [64 * 8] * 2
    assert chosen.notes == ()
    with pytest.raises(FormatError, match="exported for 2 to 64"):
        read(path, Options(dims={"s77": 65}))
    with pytest.raises(FormatError, match=r'symbolic dimensions: s77 .*did you mean "s77"\?'):
        read(path, Options(dims={"s7": 4}))
    with pytest.raises(FormatError, match=r'no size depends on "batch".*s77 \(dimension 0 of x\)'):
        read(path, Options(dims={"batch": 8}))
    open_ended = model(S)
    open_ended["range_constraints"] = {}
    with pytest.raises(FormatError, match=r"s77 \(dimension 0 of x\) has no value.*--dim s77=N"):
        read(write(path, open_ended), Options())


def places(content: Any) -> list[tuple[Any, Any]]:
    """Return every field of a JSON document: its container, and the key there."""
    found: list[tuple[Any, Any]] = []
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in list(pairs):
        found.append((content, key))
        if isinstance(value, (dict, list)):
            found += places(value)
    return found


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.sampled_from(["x", "mm", "t", "", "s77", S, "Add", "aten.relu_.default"]),
    st.just([]),
    st.just({}),
    st.sampled_from([*named("mm"), size(S), {"as_graph": {"name": "g", "graph": {}}}]),
    st.lists(st.sampled_from(named("x", "t")), max_size=2),
)


def assert_read_or_refused(path: Path, options: Options) -> None:
    """Assert that a file is read, or refused in one sentence."""
    sentence = ""
    try:
        loaded = read(path, options)
    except MemplanError as error:
        sentence = str(error)
        assert sentence.startswith(str(path))
    else:
        assert len(loaded.labels) == len(loaded.problem)
    assert "\n" not in sentence


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_json_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Tests that a program with damaged fields is planned, or refused with an error of ours."""
    content = data.draw(st.sampled_from([model(4), model(S), looped()]))
    content = copy.deepcopy(content)
    for _ in range(data.draw(st.integers(1, 3))):
        fields = places(content)
        container, key = fields[data.draw(st.integers(0, len(fields) - 1))]
        container[key] = copy.deepcopy(data.draw(junk))
    path = write(tmp_path / "net.pt2", content)
    assert_read_or_refused(path, Options(in_place=data.draw(st.booleans())))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """Tests that an archive with damaged bytes is read, or refused with an error of ours."""
    buffer = io.BytesIO()
    packed = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    with zipfile.ZipFile(buffer, "w", packed) as archive:
        archive.writestr("net/models/model.json", json.dumps(model()))
    content = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(-200, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "net.pt2"
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    matches(path.read_bytes()[:4096], path)
    assert_read_or_refused(path, Options())

"""Tests of programs.sources: files are told apart by their content, and bad ones are a sentence."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import xla_dumps
from hypothesis import given
from hypothesis import strategies as st

import memplan
from memplan.base.errors import FormatError, MemplanError
from memplan.problem import Problem
from memplan.programs.graph import Graph, Operator, Tensor
from memplan.programs.sources import Loaded, detect, load
from memplan.programs.sources.graph_json import write_graph


def a_graph() -> bytes:
    """Return a graph as JSON."""
    tensors = (Tensor("a", 4), Tensor("b", 4))
    steps = (Operator("", "A", (), (0,)), Operator("", "B", (0,), (1,)))
    return write_graph(Graph("g", tensors, steps)).encode()


def a_snapshot() -> bytes:
    """Return a memory snapshot."""
    trace = [{"action": "alloc", "addr": 4096, "size": 7, "frames": []}]
    return pickle.dumps({"segments": [], "device_traces": [trace]})


def a_dump() -> bytes:
    """Return a dump of XLA."""
    pytest.importorskip("google.protobuf")
    dump: bytes = xla_dumps.hlo().SerializeToString()
    return dump


def an_onnx_model() -> bytes:
    """Return an ONNX model."""
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    ends = [value(name, onnx.TensorProto.FLOAT, [4]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:])
    data: bytes = onnx.helper.make_model(graph).SerializeToString()
    return data


CSV = b"id,lower,upper,size\na,0,3,4\nb,1,5,4\n"
JSON = b"""{"memplan": {"kind": "problem", "version": 1},
 "buffers": [{"id": "a", "start": 0, "end": 3, "size": 4}]}"""

FILES: dict[str, Callable[[], bytes]] = {
    "graph": a_graph,
    "cuda-snapshot": a_snapshot,
    "xla": a_dump,
    "onnx": an_onnx_model,
    "csv": lambda: CSV,
    "json": lambda: JSON,
}


def outcome(path: Path) -> str:
    """Return the sentence with which a file is refused, or nothing."""
    try:
        load(path)
    except MemplanError as error:
        return str(error)
    return ""


class TestDetection:
    """What a file is, its content says."""

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("suffix", ["", ".onnx", ".tflite", ".pt2", ".csv", ".json", ".pickle"])
    def test_a_wrong_suffix_is_no_obstacle(self, tmp_path: Path, name: str, suffix: str) -> None:
        """Tests that files are read under any name."""
        path = tmp_path / f"what{suffix}"
        path.write_bytes(FILES[name]())
        assert detect(path) == name
        loaded = load(str(path))
        assert isinstance(loaded, Loaded)
        assert loaded.source == name
        assert len(loaded.problem) >= 1
        assert len(loaded.labels) in (0, len(loaded.problem))

    def test_problems(self, tmp_path: Path) -> None:
        """Tests that problems are read as they are, a byte order mark and blank lines before."""
        path = tmp_path / "p"
        path.write_bytes(b"\xef\xbb\xbf\n" + CSV)
        loaded = load(path)
        assert isinstance(loaded.problem, Problem)
        assert (loaded.source, loaded.tensors, loaded.labels) == ("csv", 2, ())
        assert memplan.load is load
        assert memplan.load(path, capacity=9).problem == loaded.problem.with_capacity(9)

    def test_a_folder(self, tmp_path: Path) -> None:
        """Tests that a folder is a dump of XLA, or none of ours."""
        (tmp_path / "readme.txt").touch()
        sentence = f"{tmp_path}: this folder has no files of an XLA dump (--xla_dump_to)"
        assert outcome(tmp_path) == sentence
        (tmp_path / "a.hlo.pb").write_bytes(a_dump())
        assert (detect(tmp_path), load(tmp_path).source) == ("xla", "xla")

    def test_options(self, tmp_path: Path) -> None:
        """Tests that options reach the source."""
        path = tmp_path / "g"
        path.write_bytes(a_graph())
        assert len(load(path, include=()).problem) == 0
        with pytest.raises(MemplanError, match='include has "weights"; the kinds of'):
            load(path, include=["weights"])


def is_a_sentence(message: str) -> bool:
    """Return whether a message is one line; lines to type may follow, indented."""
    return all(line.startswith("    ") for line in message.split("\n")[1:])


class TestBadFiles:
    """One sentence each."""

    @pytest.mark.parametrize(
        ("data", "sentence"),
        [
            (b"", "is empty"),
            (b"\n  \n", "is empty"),
            (
                b"\x00\x01\x02",
                "this is a binary file of an unknown format; memplan reads ONNX, TFLite",
            ),
            (b"\xff\xfe\xfd", "is not UTF-8 text"),
            (b"{}", "is JSON, but not of memplan"),
            (b"hello\n", "this is no table of buffers"),
            (b"[INFO] ready\n", "this is no table of buffers"),
            (b"[1, 2]\n", "this is no table of buffers"),
            (b'["a", 2]\n', "is JSON, but not of memplan"),
        ],
    )
    def test_nobody_knows_it(self, tmp_path: Path, data: bytes, sentence: str) -> None:
        """Tests that a file of unknown format is an error that names it."""
        path = tmp_path / "what"
        path.write_bytes(data)
        said = outcome(path)
        assert said.startswith(f"{path}:")
        assert sentence in said

    @pytest.mark.parametrize("name", ["none", "none\0", "x" * 5000])
    def test_no_file(self, tmp_path: Path, name: str) -> None:
        """Tests that a file that is not there, or cannot be, is a sentence."""
        assert "cannot be read: " in outcome(tmp_path / name)

    @pytest.mark.parametrize("name", FILES)
    @given(st.data())
    def test_damage(
        self, tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
    ) -> None:
        """Tests that any file that is cut off or damaged is read, or refused in a sentence."""
        good = FILES[name]()
        bad = bytearray(good[: data.draw(st.integers(0, len(good)))])
        for _ in range(data.draw(st.integers(0, 3)) if bad else 0):
            bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path_factory.mktemp("damage") / "f"
        path.write_bytes(bytes(bad))
        assert is_a_sentence(outcome(path))

    @given(
        st.sampled_from([b"", b"\x80\x04", b"\x08\x08", b"\x0a", b"PK\x03\x04", b"\0\0\0\0TFL3"]),
        st.binary(max_size=200),
    )
    def test_any_bytes(
        self, tmp_path_factory: pytest.TempPathFactory, head: bytes, data: bytes
    ) -> None:
        """Tests that any bytes, also behind the first ones of a format, are a sentence."""
        path = tmp_path_factory.mktemp("bytes") / "f"
        path.write_bytes(head + data)
        said = outcome(path)
        assert said.startswith(str(path)) or said == ""
        assert is_a_sentence(said)

    def test_errors_are_of_the_file(self, tmp_path: Path) -> None:
        """Tests that what is wrong with a file is a `FormatError`, which knows its path."""
        path = tmp_path / "f"
        path.write_bytes(CSV + b"c\n")
        with pytest.raises(FormatError) as caught:
            load(path)
        assert (caught.value.path, caught.value.line) == (str(path), 4)


def test_importing_sources_loads_no_library() -> None:
    """Tests that what is only needed for one format is loaded when that is read."""
    heavy = ["onnx", "torch", "tflite", "flatbuffers", "google.protobuf"]
    program = (
        "import sys; before = set(sys.modules); import memplan.programs.sources as s; "
        "import tempfile, pathlib; f = pathlib.Path(tempfile.mkdtemp()) / 'p'; "
        f"f.write_bytes({CSV!r}); s.load(f); "
        f"print([m for m in {heavy} if m in sys.modules and m not in before])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "[]\n", run.stderr

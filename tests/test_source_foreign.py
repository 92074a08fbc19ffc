"""Tests of memplan.sources.foreign: files of others are named, with what leads to a plan."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan.errors import FormatError
from memplan.sources import detect, foreign, load


def an_archive(*names: str) -> bytes:
    """Return a ZIP archive with these files, all empty."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    return data.getvalue()


def a_flatbuffer(identifier: bytes) -> bytes:
    """Return the beginning of a FlatBuffer with an identifier."""
    return struct.pack("<I", 0x1C) + identifier + bytes(64)


def a_safetensors() -> bytes:
    """Return a file with one tensor of four bytes."""
    head = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(4)


def a_core_ml(kind: int) -> bytes:
    """Return a model with a description and an empty model of a kind, as field `kind`."""
    tag = kind << 3 | 2
    return b"\x08\x01\x12\x05\x0a\x03\x0a\x01x" + bytes([tag & 0x7F | 0x80, tag >> 7, 0])


def an_mnn() -> bytes:
    """Return the root of a net with the identity that the converter writes."""
    identity = b"2153685a-671e-4a02-a188-cd36cdaa7270"
    return struct.pack("<I", 0x20) + bytes(60) + struct.pack("<I", 36) + identity + bytes(40)


FILES: dict[str, tuple[str, Callable[[], bytes], str, str]] = {
    "TorchScript": (
        "m.pt",
        lambda: an_archive("m/data.pkl", "m/code/__torch__.py", "m/constants.pkl", "m/version"),
        "is a TorchScript program",
        'torch.export.save(torch.export.export(module, inputs), "m.pt2")\n    memplan plan m.pt2',
    ),
    "torch.save": (
        "m.pth",
        lambda: an_archive("m/data.pkl", "m/byteorder", "m/data/0", "m/version"),
        "is a torch.save file, which has weights",
        "memplan plan m.pt2",
    ),
    "torch.save, old": (
        "m.pth",
        lambda: b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.",
        "is a torch.save file in the old format",
        "memplan plan m.pt2",
    ),
    "AOTInductor": (
        "m.pt2",
        lambda: an_archive("m/data/aotinductor/model/x.wrapper.so"),
        "is an AOTInductor package",
        "memplan plan m.pt2",
    ),
    "ORT": ("m.ort", lambda: a_flatbuffer(b"ORTM"), "in the ORT format", "memplan plan m.onnx"),
    "ExecuTorch": (
        "m.pte",
        lambda: a_flatbuffer(b"ET12"),
        "is an ExecuTorch program, whose memory is already planned",
        "memplan.targets.executorch.planner()",
    ),
    "GGUF": ("m.gguf", lambda: b"GGUF\3\0\0\0" + bytes(16), "is a GGUF file", "memplan plan m.pt2"),
    "safetensors": (
        "m.safetensors",
        a_safetensors,
        "is a safetensors file",
        'load_file("m.safetensors")',
    ),
    "OpenVINO": (
        "m.xml",
        lambda: b'<?xml version="1.0"?>\n<net name="IR" version="11">\n<layers>',
        "is an OpenVINO model",
        "memplan plan m.onnx",
    ),
    "StableHLO": (
        "m.mlir",
        lambda: b"#loc = loc(unknown)\nmodule @jit_f attributes {mhlo.num_partitions = 1 : i32} {",
        "is an MLIR program (text)",
        "--xla_dump_to=dump",
    ),
    "MLIR": (
        "m.mlir",
        lambda: b"module {\n  func.func @f()",
        "an MLIR program (text)",
        "memplan plan dump",
    ),
    "MLIR bytecode": (
        "m.mlirbc",
        lambda: b"ML\xefR\rStableHLO_v1.0.0\0" + bytes(8),
        "is an MLIR program (bytecode)",
        "memplan plan dump",
    ),
    "HLO": (
        "m.txt",
        lambda: b"HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}\n",
        "is an HLO program (text)",
        "memplan plan dump",
    ),
    "Core ML": (
        "m.mlmodel",
        lambda: a_core_ml(500),
        "this is a Core ML model",
        "memplan plan m.pt2",
    ),
    "Core ML program": ("m.mlmodel", lambda: a_core_ml(502), "this is a Core ML model", ".pt2"),
    "MNN": ("m.mnn", an_mnn, "is an MNN model", "memplan plan m.onnx"),
    "MNN, by another name": ("model", an_mnn, "is an MNN model", "memplan plan model.onnx"),
    "ncnn": (
        "m.param",
        lambda: b"7767517\n4 4\nInput  in0  0 1 in0\n",
        "is an ncnn or PNNX model",
        "memplan plan m.pt2",
    ),
    "ncnn, binary": (
        "m.param.bin",
        lambda: struct.pack("<3i", 7767517, 4, 4),
        "is a binary ncnn model",
        "memplan plan",
    ),
    "Keras": (
        "m.keras",
        lambda: an_archive("metadata.json", "config.json", "model.weights.h5"),
        "is a Keras model",
        'load_model("m.keras").export("m.onnx", format="onnx")',
    ),
    "HDF5": (
        "m.h5",
        lambda: b"\x89HDF\r\n\x1a\n" + bytes(32),
        "is an HDF5 file",
        "memplan plan m.tflite",
    ),
    "SavedModel, its file": (
        "saved_model.pb",
        lambda: b"\x08\x01\x12\x02\x0a\x00",
        "this is a TensorFlow SavedModel",
        "from_saved_model",
    ),
    "Python": (
        "m.py",
        lambda: b"import torch\n\ndef make_model():\n",
        "is a Python script",
        "memplan record m.py:make_model -o trace.json",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_named_with_the_way_to_a_plan(name: str, tmp_path: Path) -> None:
    """Tests what is said of a file of each format: what it is, and the lines to type."""
    file_name, make, what, step = FILES[name]
    file = tmp_path / file_name
    file.write_bytes(make())
    with pytest.raises(FormatError) as caught:
        load(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: this is a")
    assert what in message
    assert step in message
    assert "{" not in message.split("\n", 1)[1].replace("{}", "")


@pytest.mark.parametrize(
    ("inside", "what"),
    [
        ("saved_model.pb", "this is a TensorFlow SavedModel"),
        ("saved_model.pbtxt", "this is a TensorFlow SavedModel"),
        ("Manifest.json", "this is a Core ML model"),
        ("coremldata.bin", "this is a Core ML model"),
    ],
)
def test_a_folder_is_named(inside: str, what: str, tmp_path: Path) -> None:
    """Tests the folders of others; any other folder is still said to be no dump."""
    (tmp_path / inside).write_bytes(b"{}")
    with pytest.raises(FormatError, match=what):
        detect(tmp_path)
    (tmp_path / inside).rename(tmp_path / "something")
    with pytest.raises(FormatError, match="this folder has no files of an XLA dump"):
        detect(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        b"id,lower,upper,size\na,0,3,4\n",
        b"module,lower,upper,size\n",
        b'{"memplan": {"kind": "problem", "version": 1}}',
        b"buffer_id,start,end,size\n7767517,0,1,4\n",
    ],
)
def test_problems_are_not_taken_for_files_of_others(text: bytes, tmp_path: Path) -> None:
    """Tests text that begins as some files of others do."""
    (tmp_path / "m.csv").write_bytes(text)
    assert foreign.advise(text, tmp_path / "m.csv") is None


@given(name=st.sampled_from(sorted(FILES)), cut=st.integers(0, 80), at=st.integers(0, 80))
def test_damaged_files(
    tmp_path_factory: pytest.TempPathFactory, name: str, cut: int, at: int
) -> None:
    """Tests that a file that is cut off or changed is still one error, or read."""
    file_name, make, _, _ = FILES[name]
    data = bytearray(make())
    if at < len(data):
        data[at] ^= 0x55
    file = tmp_path_factory.getbasetemp() / file_name
    file.write_bytes(bytes(data[:cut]))
    with suppress(FormatError):
        detect(file)

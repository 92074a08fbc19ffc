"""Tests of programs.sources.foreign: files of others are named, with what leads to a plan."""

from __future__ import annotations

import io
import json
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplan.base.errors import FormatError
from memplan.problem.formats import save
from memplan.programs.sources import detect, foreign, load


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
        "memplan.extensions.executorch.planner()",
    ),
    "GGUF": ("m.gguf", lambda: b"GGUF\3\0\0\0" + bytes(16), "is a GGUF file", "memplan plan m.pt2"),
    "safetensors": (
        "m.safetensors",
        a_safetensors,
        "is a safetensors file",
        'load_file("m.safetensors")',
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
    "jaxpr": (
        "m.txt",
        lambda: b"{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }\n",
        "is a jaxpr of JAX",
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
    assert len(message.split("\n", 1)[0]) - len(str(file)) < 300
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


NO_MODELS: dict[str, tuple[str, bytes, str, str]] = {
    "Git LFS": (
        "m.tflite",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
        "a pointer of Git LFS",
        "git lfs pull --include m.tflite",
    ),
    "git-annex": ("m.bin", b"/annex/objects/MD5E-s1--0.bin\n", "git-annex", "git annex get m.bin"),
    "page": ("m.onnx", b"<!DOCTYPE html>\n<html><head>", "a web page", "download the file itself"),
    "page of XML": ("m", b'<?xml version="1.0"?>\n<!-- a -->\n<HTML>', "a web page", "download"),
    "answer": ("m.onnx", b"404: Not Found", "the answer of a server", "download the file again"),
    "answer in JSON": ("m", b'{"error":"Repository not found"}', "the answer of a", "download"),
    "xxd -i": (
        "my model.cc",
        b"unsigned char model_tflite[] = {\n  0x1c, 0x00, 0x54,\n};\n",
        "a file as an array of bytes",
        "grep -oE '0x[0-9a-fA-F]{2}' 'my model.cc' | cut -c3- | xxd -r -p > 'my model'.tflite",
    ),
    "array": (
        "m.h",
        b'#include "m.h"\nalignas(16) const uint8_t g_model[kSize] = {\n  28, 0, 84,\n',
        "a file as an array of bytes",
        "xxd -r",
    ),
    "xxd": ("m.txt", b"00000000: 1c00 0000 5446 4c33  ....TFL3\n", "a hexadecimal dump", "xxd -r"),
    "gzip": ("s.pickle.gz", b"\x1f\x8b\x08\0\0", "gzip compressed", "memplan plan s.pickle"),
    "tar.gz": (
        "m.tar.gz",
        b"\x1f\x8b\x08\0\0",
        "an archive (tar, compressed)",
        "tar -xvf m.tar.gz",
    ),
    "bzip2": ("m.onnx.bz2", b"BZh91AY", "bzip2 compressed", "memplan plan m.onnx"),
    "xz": ("m.xz", b"\xfd7zXZ\0\0", "xz compressed", "xz --decompress --keep m.xz"),
    "zstd": ("m.zst", b"\x28\xb5\x2f\xfd\0", "zstd compressed", "zstd --decompress m.zst"),
    "7z": ("m.7z", b"7z\xbc\xaf\x27\x1c\0", "an archive", "unpack it"),
    "tar": ("m.tar", bytes(257) + b"ustar\x00", "an archive (tar)", "tar -xvf m.tar"),
    "zip": ("m.zip", an_archive("model.onnx"), "an archive (ZIP)", "unzip m.zip"),
    "NumPy": ("x.npy", b"\x93NUMPY\1\0", "an array of NumPy", "plan the model"),
    "TensorRT": ("m.engine", b"ftrt\0\0\0", "a compiled engine", "memplan plan m.onnx"),
    "PNG": ("p.png", b"\x89PNG\r\n\x1a\n", "a picture or a document", "give a model"),
    "PDF": ("p.pdf", b"%PDF-1.7\n", "a picture or a document", "give a model"),
    "ELF": ("run", b"\x7fELF\2\1", "a program or a library", "give the model"),
    **{
        f"{said}, {encoding}": (
            "p.csv",
            "id,lower,upper,size\n".encode(encoding),
            f"is text in {said};",
            f"iconv -f {said} -t UTF-8 p.csv > p.utf8",
        )
        for said, encoding in (
            *(("UTF-16", "utf-16"), ("UTF-16LE", "utf-16-le"), ("UTF-16BE", "utf-16-be")),
            *(("UTF-32", "utf-32"), ("UTF-32LE", "utf-32-le")),
        )
    },
    "Chrome": (
        "t.json",
        b'{"schemaVersion": 1, "traceEvents": []}',
        "a profiler",
        "memplan record",
    ),
    "notebook": ("n.ipynb", b'{\n "cells": []}', "a notebook", "export the model"),
    "settings": ("config.json", b'{"architectures": ["A"]}', "the settings of a model", "plan the"),
    "textproto": ("m.txt", b"ir_version: 8\ngraph {", "an ONNX model as text", 'onnx.load("m.txt"'),
    "DOT": ("g.dot", b"digraph G {\n a -> b\n}\n", "a graph for drawing", "give the problem"),
    "JAX": (
        "oom.txt",
        b"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory.\n",
        "a log of XLA",
        "its *.hlo.pb",
    ),
    "XLA": ("oom.txt", b"BufferAssignment OOM Debugging.\n", "a log of XLA", "memplan plan dump"),
    "live ranges": (
        "a-live-range.txt",
        b"HloLiveRange (max 9):\n",
        "a report of XLA",
        "or the fol",
    ),
    "summary": (
        "s.txt",
        b"|===|\n| PyTorch CUDA memory summary, |\n",
        "a log of PyTorch",
        "snapsho",
    ),
    "PyTorch": (
        "oom.txt",
        b"Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory.\n",
        "a log of PyTorch",
        "memplan plan snapshot.pickle",
    ),
    "TFLM": ("log", b"AllocateTensors() failed\n", "a log of TFLite Micro", "memplan plan model"),
    "onnxruntime": ("log", b"E onnxruntime BFCArena::AllocateRaw", "a log of onnx", "memplan plan"),
    "TensorFlow": ("log", b"W tensorflow bfc_allocator.cc:1 ran out", "a log of Te", "convert the"),
    "ExecuTorch": (
        "log",
        b"Required memory for activation in bytes:  [0, 4096, 64]\n",
        "a log of ExecuTorch",
        "memplan plan model.pt2",
    ),
    "ExecuTorch, running": (
        "log",
        b"E 00:00:00.1 executorch:memory_allocator.h:88] Memory allocation failed: 9B requested\n",
        "a log of ExecuTorch",
        "extensions.executorch.planner()",
    ),
    "ExecuTorch, inspector": (
        "t.csv",
        b"event_block_name,event_name,raw,p10 (ms)\n",
        "a log of ExecuTorch",
        "memplan plan model.pt2",
    ),
    "IREE, statistics": (
        "log",
        b"[[ iree_hal_allocator_t memory statistics ]]\n  HOST_LOCAL:            0B peak\n",
        "a log of IREE",
        "memplan plan model.onnx",
    ),
    "Vela, operators": (
        "m_per-layer.csv",
        b"TFLite_operator,NNG Operator,SRAM Usage,Peak%,Op Cycles\n",
        "a report of Vela",
        "_vela.tflite",
    ),
    "nvidia-smi, table": (
        "smi.csv",
        b"timestamp, name, memory.used [MiB]\n",
        "what nvidia-smi",
        "snapshot",
    ),
    "TensorRT, log": (
        "log",
        b"[TRT] [I] Total Activation Memory: 1098907648 bytes\n",
        "a log of TensorRT",
        "memplan plan model.onnx",
    ),
    "trtexec": ("log", b"[11/27/2026-10:00:00] [I] [TRT] Total Scratch", "a log of Tens", "onnx"),
    "TFLite": (
        "state.txt",
        b"Interpreter has 1 subgraphs.\n\n-----------Subgraph-0 has 65 tensors and 31 nodes---\n",
        "a report of TFLite's interpreter",
        "memplan plan model.tflite",
    ),
    "TFLite, tensors": (
        "state.txt",
        b"Tensor   0 input   kTfLiteInt8  kTfLiteArenaRw  602112 / 0.57 [1,224,224,3]\n",
        "a report of TFLite's interpreter",
        "memplan plan model.tflite",
    ),
    "llama.cpp": (
        "log",
        b"llama_context:      CUDA0 compute buffer size =   304.00 MiB\n",
        "a log of llama.cpp",
        "memplan plan graph.events",
    ),
    "ggml": ("log", b"ggml_gallocr_reserve_n: reallocating CUDA0 buffer\n", "llama.cpp", ".events"),
    "Vela": (
        "log",
        b"\nNetwork summary for m\nAccelerator configuration  Ethos_U55_256\n",
        "a report of Vela",
        "memplan plan model_vela.tflite",
    ),
    "Vela, addresses": (
        "log",
        b"####\n#  Tensor Allocation for mem_area Sram\nStart Time -    End Time: Start Addr\n",
        "a report of Vela",
        "_vela.tflite",
    ),
    "Vela, table": (
        "m_summary.csv",
        b"experiment,network,accelerator_configuration,system_config\n",
        "a report of Vela",
        "_vela.tflite",
    ),
    "XLA, usage": (
        "usage.txt",
        b"BufferAssignment usage:\nTotal bytes used: 2048 (2.0KiB)\n",
        "a log of XLA",
        "memplan plan dump",
    ),
    "XLA, TPU": ("log", b"Total hbm usage >= 25.9G:\n    reserved 530M\n", "a log of XLA", "dump"),
    "JAX, statistics": (
        "log",
        b"CompiledMemoryStats(generated_code_size_in_bytes=0, temp_size_in_bytes=64)\n",
        "a log of XLA",
        "dump",
    ),
    "IREE": (
        "log",
        b"iree/runtime/src/iree/hal/allocator.c:1: RESOURCE_EXHAUSTED; failed\n",
        "a log of IREE",
        "memplan plan model.onnx",
    ),
    "ST": ("report.txt", b"ST Edge AI Core v2.0.0\n", "a report of ST Edge AI", "model.tflite"),
    "OpenVINO": ("log", b"[Step 1/11] Parsing and validating\n", "a log of OpenVINO", "model.xml"),
    "TFLite, profile": (
        "log",
        b"Number of nodes executed: 31\n=== Summary by node type ===\n",
        "a report of TFLite's interpreter",
        "model.tflite",
    ),
    "TFLite, benchmark": ("log", b"INFO: STARTING!\nINFO: Log", "TFLite's interp", "model.tflite"),
    "TFLite, delegate": (
        "log",
        b"VERBOSE: Replacing 31 out of 31 node(s) with delegate (TfLiteXNNPackDelegate) node\n",
        "a report of TFLite's interpreter",
        "model.tflite",
    ),
    "ExecuTorch, buffers": (
        "log",
        b"Setting up planned buffer 0, size 752640.\n",
        "a log of ExecuTorch",
        "memplan plan model.pt2",
    ),
    "TensorRT, layers": (
        "log",
        b"Engine Layer Information:\nLayer(CaskConvolution): conv1\n",
        "a log of TensorRT",
        "model.onnx",
    ),
    "Vela, warnings": (
        "log",
        b"Warning: Unsupported TensorFlow Lite semantics for RESHAPE 'x'. Placing on CPU\n",
        "a report of Vela",
        "_vela.tflite",
    ),
    "ST, older": ("log", b" Neural Network Tools for STM32 v1.7.0\n", "ST Edge AI", "model.tflite"),
    "onnxruntime, profile": (
        "t.json",
        b'[{"cat":"Session","pid":1,"tid":1,"dur":10,"ts":1,"ph":"X","name":"n","args":{}}]',
        "a profiler",
        "memplan record",
    ),
    "TVM": ("log", b"TVMError: Check failed: (data) is false\n", "a log of TVM", "model.onnx"),
    "nvidia-smi": ("smi.txt", b"| NVIDIA-SMI 550.54  Driver |\n", "what nvidia-smi", "snapshot"),
    "traceback": (
        "log",
        b"Traceback (most recent call last):\n File",
        "a traceback",
        "plan the mod",
    ),
}


@pytest.mark.parametrize("name", NO_MODELS)
def test_what_is_no_model_is_named(name: str, tmp_path: Path) -> None:
    """Tests that a file in place of a model is named, with what to do, and no traceback."""
    file, data, what, advice = NO_MODELS[name]
    path = tmp_path / file
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        load(path)
    first, *steps = str(caught.value).split("\n")
    assert len(first) - len(str(path)) < 300
    assert first.startswith(f"{path}: this is ")
    assert what in first
    assert advice in str(caught.value)
    assert all(step.startswith("    ") for step in steps)


def test_an_array_is_converted_back(tmp_path: Path) -> None:
    """Tests that the lines that are said give back the bytes of the file."""
    if shutil.which("xxd") is None:
        pytest.skip("xxd is not installed")
    data = bytes(range(256))
    text = "".join(f"{'' if at % 12 else chr(10)} 0x{byte:02x}," for at, byte in enumerate(data))
    path = tmp_path / "a b.cc"
    path.write_text(f"const unsigned char m[] = {{{text}\n}};\nunsigned int m_len = 256;\n")
    with pytest.raises(FormatError) as caught:
        load(path)
    line = next(one.strip() for one in str(caught.value).split("\n") if "xxd -r -p" in one)
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True, timeout=300)
    assert (tmp_path / "a b.tflite").read_bytes() == data


@pytest.mark.parametrize(
    "data", [b"<!---->" * 600, b"char [" * 700, b"char x[]" * 500, b"\n" * 4096]
)
def test_no_text_takes_long(data: bytes, tmp_path: Path) -> None:
    """Tests texts that make patterns try many ways; the time limit of the test ends a hang."""
    path = tmp_path / "m"
    path.write_bytes(data)
    with pytest.raises(FormatError):
        load(path)


def test_names_in_ours_mean_nothing(tmp_path: Path) -> None:
    """Tests that a buffer may be called as in a log."""
    path = tmp_path / "p.csv"
    names = ("OutOfMemoryError", "jaxlib", "tensor arena", "[TRT]", "ggml_add: x")
    for head, separator in (("", ","), ("# TensorRT\n\n", ";"), ("", "\t")):
        rows = [("size", "id", "start", "end"), *(("4", name, "0", "1") for name in names)]
        path.write_text(head + "\n".join(map(separator.join, rows)))
        assert load(path).problem.ids == names
    save(load(path), path, format="json")
    assert load(path).problem.ids == names


def test_folders_say_what_is_in_them(tmp_path: Path) -> None:
    """Tests a folder without a dump: empty, with models, and with other files."""
    with pytest.raises(FormatError, match="this folder is empty"):
        detect(tmp_path)
    (tmp_path / "readme.txt").touch()
    with pytest.raises(FormatError, match=r"no files of an XLA dump \(--xla_dump_to\)$"):
        detect(tmp_path)
    (tmp_path / "m.onnx").touch()
    with pytest.raises(FormatError, match=r'give one of its files: "m.onnx"'):
        detect(tmp_path)

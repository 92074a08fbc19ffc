"""Recognises files that memplan does not read, and says what leads from each of them to a plan."""

from __future__ import annotations

import mmap
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from memplan.programs.sources._no_models import NO_MODELS, XLA_DUMP
from memplan.programs.sources.recognise import (
    ForeignFormat,
    has_identifier,
    holds,
    is_archive_with,
    is_text,
    starts_with,
)
from memplan.programs.sources.wire import WireError, iterate_fields

__all__ = ["TORCH_PICKLE", "advise"]

# The first bytes of `torch.save` before PyTorch 1.6: a pickle of this number.
TORCH_PICKLE: Final = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def advise(head: bytes, path: Path) -> str | None:
    """Return what a file is and how to come from it to a plan, or `None` if it is not recognised.

    The head is some thousands of bytes, and empty for a folder. An archive, and the fields of a
    Core ML model, are looked into.
    """
    try:
        for each in (*_FORMATS, *NO_MODELS, _ARCHIVE):
            if each.matches(head, path):
                return f"this is {each.what}; " + "\n    ".join(_filled(each.steps, path))
    except OSError:  # it was there when its first bytes were read
        return None
    return None


def _filled(steps: tuple[str, ...], path: Path) -> Iterator[str]:
    """Yield the lines with the names of the file in them, quoted where a shell reads them."""
    for step in steps:
        quote = shlex.quote if step.startswith(_SHELL) else str
        yield step.replace("{stem}", quote(path.stem)).replace("{name}", quote(path.name))


# ---- how each is recognised


def _is_safetensors(head: bytes, path: Path) -> bool:
    """Return whether the file begins with the length of a JSON object, and that object."""
    return head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= path.stat().st_size - 8


_UUID = re.compile(rb"\x24\0\0\0[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\0")


def _is_mnn(head: bytes, path: Path) -> bool:
    """Return whether the file is one of MNN, which has no identifier.

    Its converter writes the identity of the model next to the root of the FlatBuffer; files of
    earlier versions are known by their names.
    """
    root = int.from_bytes(head[:4], "little")
    if not 4 <= root < len(head):
        return False
    return path.suffix == ".mnn" or _UUID.search(head, 0, root + 256) is not None


# A model of Core ML begins with its version and the description of its inputs and outputs, and has
# its kind (`neuralNetwork` is field 500, `mlProgram` 502) as the number of a later field.
_CORE_ML_KINDS: Final = range(200, 3001)
_FIELDS: Final = 16  # fields at the top of a Core ML model, of which most are left out
_ENDLESS: Final = 1 << 62  # bytes: a model that is cut off has the same beginning


def _is_core_ml(head: bytes, path: Path) -> bool:
    if head[:1] != b"\x08" or head[2:3] != b"\x12":
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        fields = islice(iterate_fields(data, 0, _ENDLESS), _FIELDS)
        with suppress(WireError, IndexError):  # it is no protocol buffer, or is cut off
            return any(field.number in _CORE_ML_KINDS for field in fields)
    return False


# ---- what leads from each to a plan

_EXPORT: Final = (
    'torch.export.save(torch.export.export(module, inputs), "{stem}.pt2")',
    "memplan plan {stem}.pt2",
)

# Lines that a shell reads begin with one of these.
_SHELL: Final = (
    *("memplan ", "git ", "gunzip ", "bunzip2 ", "xz ", "zstd ", "tar ", "unzip "),
    *("grep ", "iconv "),
)

_FORMATS: Final = (
    ForeignFormat(
        is_archive_with(r"[^/]+/code/.*\.py"),
        "a TorchScript program, which has no tensor sizes",
        ("in Python, export the module that it was made from, with example inputs:", *_EXPORT),
    ),
    ForeignFormat(
        is_archive_with(r"[^/]+/data\.pkl"),
        "a torch.save file, which has weights or a pickled module but no program",
        ("in Python, load it into its module, and export that with example inputs:", *_EXPORT),
    ),
    ForeignFormat(
        starts_with(TORCH_PICKLE),
        "a torch.save file in the old format, which has weights but no program",
        ("in Python, load it into its module, and export that with example inputs:", *_EXPORT),
    ),
    ForeignFormat(
        is_archive_with(r"(?:[^/]+/)?data/aotinductor/.*|.*\.wrapper\.so"),
        "an AOTInductor package, which is compiled and whose memory is already planned",
        ("plan the exported program that it was compiled from:", *_EXPORT),
    ),
    ForeignFormat(
        has_identifier(b"ORTM"),
        "a model in the ORT format, which memplan does not read",
        (
            "plan the .onnx file that it was converted from, or convert it back to ONNX:",
            "options = onnxruntime.SessionOptions()",
            "off = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL",
            "options.graph_optimization_level = off",
            'options.optimized_model_filepath = "{stem}.onnx"',
            'options.add_session_config_entry("session.save_model_format", "ONNX")',
            'onnxruntime.InferenceSession("{name}", options)',
            "memplan plan {stem}.onnx",
        ),
    ),
    ForeignFormat(
        has_identifier(b"ET"),
        "an ExecuTorch program, whose memory is already planned",
        (
            "use memplan as the planner when the program is made:",
            "planning = MemoryPlanningPass(memplan.extensions.executorch.planner())",
            "edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))",
        ),
    ),
    ForeignFormat(
        starts_with(b"GGUF"),
        "a GGUF file, which has weights and settings but no graph",
        ("plan the same network as ONNX or as an exported PyTorch program:", *_EXPORT),
    ),
    ForeignFormat(
        _is_safetensors,
        "a safetensors file, which has weights but no program",
        (
            "in Python, load it into its module, and export that with example inputs:",
            'module.load_state_dict(safetensors.torch.load_file("{name}"))',
            *_EXPORT,
        ),
    ),
    ForeignFormat(
        is_text(
            r"(?:(?://|#)[^\n]*\n\s*)*"
            r'(?:(?:builtin\.)?module(?:\s+@[\w.$"-]+)?\s*(?:attributes\s*)?\{'
            r'|"builtin\.module"|func\.func\b)'
        ),
        "an MLIR program (text), in which buffers have no lifetimes yet",
        ("let XLA compile it and dump its buffer assignment, then plan that folder:", *XLA_DUMP),
    ),
    ForeignFormat(
        starts_with(b"ML\xefR"),
        "an MLIR program (bytecode), in which buffers have no lifetimes yet",
        ("let XLA compile it and dump its buffer assignment, then plan that folder:", *XLA_DUMP),
    ),
    ForeignFormat(
        is_text(r"\{ lambda\b"),
        "a jaxpr of JAX, in which buffers have no lifetimes yet",
        ("let XLA compile it and dump its buffer assignment, then plan that folder:", *XLA_DUMP),
    ),
    ForeignFormat(
        is_text(r"HloModule\s"),
        "an HLO program (text), which has no buffer assignment",
        ("let XLA dump both, then plan that folder:", *XLA_DUMP),
    ),
    ForeignFormat(
        lambda head, path: (
            holds("coremldata.bin", "Manifest.json")(head, path) or _is_core_ml(head, path)
        ),
        "a Core ML model, which memplan does not read",
        ("plan the module or the model that it was converted from:", *_EXPORT),
    ),
    ForeignFormat(
        _is_mnn,
        "an MNN model, which memplan does not read",
        ("plan the model that it was converted from:", "memplan plan {stem}.onnx"),
    ),
    ForeignFormat(
        is_text(r"7767517\s"),
        "an ncnn or PNNX model, which memplan does not read",
        ("plan the module or the model that it was converted from:", *_EXPORT),
    ),
    ForeignFormat(
        starts_with((7767517).to_bytes(4, "little")),
        "a binary ncnn model, which memplan does not read",
        ("plan the module or the model that it was converted from:", *_EXPORT),
    ),
    ForeignFormat(
        is_archive_with(r"model\.weights\.h5"),
        "a Keras model, which memplan does not read",
        (
            "in Python, export it to ONNX (Keras 3) or convert it to TFLite:",
            'keras.saving.load_model("{name}").export("{stem}.onnx", format="onnx")',
            "memplan plan {stem}.onnx",
        ),
    ),
    ForeignFormat(
        starts_with(b"\x89HDF\r\n\x1a\n"),
        "an HDF5 file, as Keras writes for models and weights",
        (
            "in Python, convert the model to TFLite:",
            'model = tf.keras.models.load_model("{name}")',
            "converter = tf.lite.TFLiteConverter.from_keras_model(model)",
            'pathlib.Path("{stem}.tflite").write_bytes(converter.convert())',
            "memplan plan {stem}.tflite",
        ),
    ),
    ForeignFormat(
        lambda head, path: (
            holds("saved_model.pb", "saved_model.pbtxt")(head, path)
            or path.name in ("saved_model.pb", "saved_model.pbtxt")
        ),
        "a TensorFlow SavedModel, which memplan does not read",
        (
            "convert the folder to TFLite in Python, or to ONNX on the command line:",
            'data = tf.lite.TFLiteConverter.from_saved_model("FOLDER").convert()',
            "python -m tf2onnx.convert --saved-model FOLDER --output model.onnx",
            "memplan plan model.onnx",
        ),
    ),
    ForeignFormat(
        lambda head, path: path.suffix == ".py" and bool(head) and b"\0" not in head,
        "a Python script",
        (
            "name a function in it that returns a PyTorch module and its inputs, and record a run:",
            "memplan record {name}:make_model -o trace.json",
            "memplan plan trace.json",
        ),
    ),
)

# Any other archive; it comes last, because those above have a better name.
_ARCHIVE: Final = ForeignFormat(
    starts_with(b"PK\x03\x04", b"PK\x05\x06"),
    "an archive (ZIP)",
    ("unpack it, and plan the model in it:", "unzip {name}"),
)

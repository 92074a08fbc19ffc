"""Plans and programs for the runtimes that use them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memplan.base.errors import MemplanError
from memplan.programs.sources import Loaded, detect, load
from memplan.programs.sources.options import Options
from memplan.programs.sources.registry import find_writer

if TYPE_CHECKING:
    from memplan.levers.pipeline import Writer

__all__ = ["choose_writer"]

_SUFFIXES = ("", ".h", ".hpp", ".hh", ".onnx", ".tflite")


def choose_writer(
    model: Path | Loaded,
    out: Path | None = None,
    options: Options | None = None,
    *,
    allow_refused: bool = False,
    head_only: bool = False,
    written: bool = False,
    fused: bool = True,
) -> Writer:
    """Return the writer for a model, by the suffix of the output, or else by the model itself.

    The outputs `.tflite` and `.onnx` are of a model of that kind; `.h` is a header in C, of any
    program. Without one, a program is for the runtime of its own file, and otherwise for none in
    particular; with `written`, the output is the file of the model's own runtime, whatever its
    suffix. The options say how the file is read; for the others, see
    `memplan.runtimes.tflm.write.TfliteMicro` and `memplan.runtimes.onnx.write.OnnxFile`. It is
    refused if there is no such output of the model.
    """
    options = options or Options()
    if options.board is not None and not (isinstance(model, Path) and detect(model) == "tflite"):
        what = "was read before" if isinstance(model, Loaded) else "is not a TFLite model"
        raise MemplanError(f"{_name(model)} {what}; a board is for the file of a TFLite model")
    if not written and out is not None and out.suffix.lower() in (".h", ".hpp", ".hh"):
        from memplan.runtimes.c.writer import CHeader

        return CHeader(_load(model, options), _name(model))
    suffix = "" if written or out is None else out.suffix.lower()
    make = None if suffix in _SUFFIXES else find_writer(suffix)
    if make is not None:
        made: Writer = make(_load(model, options), _name(model))
        return made
    if isinstance(model, Path):
        kind = detect(model)
        suffix = out.suffix.lower() if out else ""
        other = {".onnx": "onnx", ".tflite": "tflite"}.get(suffix)
        own = suffix in ("", model.suffix.lower())
        if not written and out is not None and not own and other != kind:
            raise MemplanError(
                f"{model} is not written as {out}: what is written is a {kind} model, or a header "
                "in C (.h)"
            )
        if kind == "tflite":
            from memplan.runtimes.tflm.write import TfliteMicro

            return TfliteMicro(
                model, out, options, allow_refused=allow_refused, head_only=head_only
            )
        if kind == "onnx":
            from memplan.runtimes.onnx.write.writer import OnnxFile

            return OnnxFile(model, options, takes_offsets=not written, fused=fused)
    if out is not None:
        raise MemplanError(
            f"{_name(model)} is neither a TFLite nor an ONNX model: no other file is written in "
            "another order or in bands; -o FILE.h writes them, with their plan, as a header"
        )
    from memplan.levers.pipeline import Plain

    return Plain(_load(model, options), _name(model))


def _load(model: Path | Loaded, options: Options) -> Loaded:
    if isinstance(model, Loaded):
        return model
    return load(
        model,
        dims=options.dims,
        include=options.include,
        pins=options.pins,
        limit_factor=options.limit_factor,
        board=options.board,
    )


def _name(model: Path | Loaded) -> str:
    return str(model) if isinstance(model, Path) else f"the {model.source} program"

"""What `memplan plan` writes: each `-o FILE` by its suffix, or as `-o model:FILE` says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from memplan.cli import output
from memplan.cli.inputs import is_copy, keep
from memplan.cli.options import PlanFormat

__all__ = ["Outputs", "Writing", "check_plan", "sort_outputs"]

_HEADERS: Final = (".h", ".hh", ".hpp", ".hxx", ".inc")
_MODELS: Final = (".tflite", ".onnx")
_KINDS: Final = ("plan", "model", "header", "drawing")
_DRAWINGS: Final = (".html", ".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Writing:
    """What is written."""

    out: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the plan (.json, .csv), the model with it (.tflite, .onnx), a header in C "
            "and C++ (.h), a page or a picture (.html, .png, .svg, .pdf); the plans of several "
            "programs, blocks or memories go into this folder. `model:FILE`, `header:FILE` say it "
            "of other names. May be repeated.",
        ),
    ] = None
    shim: Annotated[
        str | None,
        typer.Option(
            "--shim",
            metavar="FILE",
            help="Write the plan as a NonPersistentMemoryPlannerShim of TFLM, in C++.",
        ),
    ] = None
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="PLAN",
            help="Write this plan into a model or a header, instead of a new one.",
            callback=keep,
        ),
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write the plan into the model's own file.")
    ] = False
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the declarations in C.")
    ] = None
    format: Annotated[
        PlanFormat | None,
        typer.Option("--format", help="Format of the plan; by default its suffix decides."),
    ] = None
    program: Annotated[
        str | None,
        typer.Option(
            "--program",
            metavar="FILE",
            help="With --levers: write the program as they left it, as graph JSON.",
        ),
    ] = None
    proof: Annotated[
        str | None,
        typer.Option(
            "--proof",
            metavar="FILE",
            help="Write a proof that no plan is better; `memplan verify --proof` checks it.",
        ),
    ] = None
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Write one line of JSON for each round of the search.",
        ),
    ] = None


@dataclass(frozen=True)
class Outputs:
    """The files that are asked for; `plan` is a folder where there are plans of several parts."""

    plan: str | None = None
    model: str | None = None
    header: str | None = None
    shim: str | None = None
    drawing: str | None = None

    @property
    def is_for_runtime(self) -> bool:
        """Whether a runtime, or a program in C, reads one of them."""
        return bool(self.model or self.header or self.shim)

    def by_option(self) -> dict[str, str | None]:
        """Return all files by a word for each, as `output.check_outputs` takes them."""
        words = {"the plan": self.plan, "the model": self.model, "the header": self.header}
        return {**words, "--shim": self.shim, "the drawing": self.drawing}


def sort_outputs(writing: Writing, inputs: Sequence[str]) -> Outputs:
    """Return which file is what; two of one kind are refused."""
    found: dict[str, str] = {}
    if writing.overwrite:
        if len(inputs) > 1 or is_copy(inputs[0]):
            raise typer.BadParameter(
                "the input is not one file on disk", param_hint="'--overwrite'"
            )
        found["model"] = inputs[0]
    if writing.shim is not None:
        output.check_suffix(writing.shim, dict.fromkeys(_HEADERS, "a header"))
        found["shim"] = writing.shim
    for text in writing.out or ():
        said, colon, rest = text.partition(":")
        is_said = bool(colon) and said in _KINDS
        kind, path = (said, rest) if is_said else (_find_kind(text, inputs), text)
        if kind == "model" and writing.overwrite:
            raise typer.BadParameter(f"{path!r} is another file", param_hint="'--overwrite'")
        if kind in found:
            what = {"plan": "plan or folder", "drawing": "page or picture"}.get(kind, kind)
            raise typer.BadParameter(
                f"{found[kind]!r} and {path!r} are both a {what}; name one", param_hint="'--output'"
            )
        if kind == "header":
            output.check_suffix(path, dict.fromkeys(_HEADERS, "a header"))
        found[kind] = path
    return Outputs(**found)


def _find_kind(path: str, inputs: Sequence[str]) -> str:
    """Return the field of `Outputs` for a file; what is no regular file holds a plan."""
    suffix = os.path.splitext(path)[1].lower()
    if os.path.isdir(path) or (os.path.exists(path) and not os.path.isfile(path)):
        return "plan"
    if suffix in _HEADERS:
        return "header"
    if suffix in _DRAWINGS:
        return "drawing"
    if suffix in _MODELS:
        return "model"
    return "model" if suffix and suffix not in output.PLANS and _is_own(suffix, inputs) else "plan"


def _is_own(suffix: str, inputs: Sequence[str]) -> bool:
    """Whether a suffix is that of an input which is a model that can be written."""
    from memplan.programs.sources import detect
    from memplan.programs.sources.registry import find_format

    return any(
        Path(output.names.get(each, each)).suffix.lower() == suffix
        and os.path.exists(each)
        and find_format(detect(each)).suffix
        for each in inputs
    )


def check_plan(path: str | None) -> None:
    """Refuse a plan with the suffix of something else; the error has all that can be written."""
    kinds = output.PLANS | dict.fromkeys(_MODELS, "the model")
    kinds |= {".h": "a header", ".html": "a page"} | dict.fromkeys(_DRAWINGS[1:], "a picture")
    output.check_suffix(path, kinds)

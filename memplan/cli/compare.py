"""`memplan compare`: what grew between two models, problems or plans; a gate for CI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output, reading
from memplan.cli.inputs import keep

if TYPE_CHECKING:
    from memplan.analysis.compare import Comparison
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Loaded

NAME = "compare"
EXAMPLES = (
    "memplan compare old.tflite new.tflite",
    "memplan compare old.csv new.csv --fail-if-peak-grows 1%",
)


class ReportFormat(StrEnum):
    """How a comparison is written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


_PERCENT_OR_BYTES = 1024  # a smaller number without a unit may be meant as either

_FORMATS = {
    ".txt": ReportFormat.TEXT,
    ".json": ReportFormat.JSON,
    ".md": ReportFormat.MARKDOWN,
    ".html": ReportFormat.HTML,
}


def parse_growth(text: str) -> Fraction | int:
    """Read `1%` or `0.5 %` as a share, and `4KiB` or `0` as bytes."""
    if not text.rstrip().endswith("%"):
        try:
            size = options.parse_bytes(text)
        except typer.BadParameter:
            raise typer.BadParameter(f"{text!r} is not a growth; write 1%, 0% or 4KiB") from None
        if getattr(size, "is_bare", False) and 0 < size < _PERCENT_OR_BYTES:
            raise typer.BadParameter(f"{text!r} has no unit; write {size}% or {size}B")
        return size
    number = text.rstrip().removesuffix("%").strip()
    if not number.isascii() or len(number) > 20 or number.strip("0123456789") not in ("", "."):
        raise typer.BadParameter(f"{text!r} is not a growth; write 1%, 0% or 4KiB")
    try:
        return Fraction(number) / 100
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a growth; write 1%, 0% or 4KiB") from None


_APART = (
    "Failed: the two have no name in common, and few buffers or none that look the same, so that "
    "growth says nothing; compare two versions of one program."
)
_WHAT = "A model, a dump, a snapshot, a trace, a graph, a problem or a plan. `-` is standard input."


@dataclass(frozen=True)
class _Asked:
    """The options that only this command has."""

    peak_limit: Annotated[
        str | None,
        typer.Option(
            "--fail-if-peak-grows",
            metavar="GROWTH",
            help="Exit with 1 if the peak grows by more than this: 1%, 0%, 4KiB.",
        ),
    ] = None
    load_limit: Annotated[
        str | None,
        typer.Option(
            "--fail-if-load-grows",
            metavar="GROWTH",
            help="Exit with 1 if the max load grows by more than this; it needs no plan.",
        ),
    ] = None
    format: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="Format of the output; by default its suffix decides."),
    ] = None
    out: Annotated[
        str | None,
        options.write_to("Write the comparison to this file instead of printing it."),
    ] = None


def command(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=_WHAT, callback=keep)],
    after: Annotated[
        str, typer.Argument(metavar="AFTER", help="The same, after the change.", callback=keep)
    ],
    *,
    model: options.Model,
    trials: options.Trials,
    as_json: options.AsJson = False,
    top: options.Top = 10,
    asked: _Asked,
) -> None:
    """Show what grew from BEFORE to AFTER, and which buffers are live at the peak now.

    A plan has a peak; models and problems are planned first, without regard to their capacity. The
    exit code is 1 if a limit on growth is exceeded, or if the two have no buffer in common, and 3
    if no plan was found to compare with it.
    """
    format = asked.format
    if as_json and format not in (None, ReportFormat.JSON):
        raise typer.BadParameter("--format names another format", param_hint="'--json'")
    if as_json:
        format = ReportFormat.JSON
    gates = _parse_gates(asked.peak_limit, asked.load_limit)
    output.check_output(asked.out, before, after)
    if format is None:
        output.check_suffix(asked.out, {each: kind.value for each, kind in _FORMATS.items()})
    output.check_libraries(before, after)

    from memplan.analysis.compare import NODES, compare

    budget = vars(trials) | {"nodes": trials.nodes or NODES}
    found = compare(_read(before, model), _read(after, model), in_place=model.in_place, **budget)
    verdicts = [gate.verdict(found) for gate in gates]
    if found.shares_nothing:
        verdicts = [Verdict(_APART, output.INFEASIBLE)]
    _write(
        found,
        (output.names.get(before, before), output.names.get(after, after)),
        verdicts,
        format or _format_of(asked.out),
        top,
        asked.out,
    )
    output.tell_interrupted(found.interrupted, "the best plans so far")
    codes = {verdict.code for verdict in verdicts}
    raise typer.Exit(output.INFEASIBLE if output.INFEASIBLE in codes else max(codes, default=0))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a limit on growth is kept, as a sentence and an exit code."""

    sentence: str
    code: int


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit on growth."""

    what: str  # "peak" or "load"
    limit: Fraction | int
    text: str

    def verdict(self, found: Comparison) -> Verdict:
        """Return whether a comparison keeps this limit."""
        from memplan.analysis.compare import grows_beyond

        before, after = getattr(found.before, self.what), getattr(found.after, self.what)
        growth = f"by more than {self.text}"
        cut_short = self.what == "peak" and found.interrupted
        if before is None or after is None or cut_short:
            return Verdict(
                f"It is not known whether the {self.what} grew {growth}.", output.UNKNOWN
            )
        if not grows_beyond(before, after, self.limit):
            return Verdict(f"Passed: the {self.what} did not grow {growth}.", output.OK)
        doubt = ""
        if self.what == "peak" and not found.after.proved:
            doubt = "; a smaller one is not ruled out"
        return Verdict(f"Failed: the {self.what} grew {growth}{doubt}.", output.INFEASIBLE)


def _parse_gates(peak: str | None, load: str | None) -> list[Gate]:
    gates = []
    for what, text in (("peak", peak), ("load", load)):
        if text is not None:
            try:
                gates.append(Gate(what, parse_growth(text), text.strip()))
            except typer.BadParameter as error:
                hint = f"'--fail-if-{what}-grows'"
                raise typer.BadParameter(error.message, param_hint=hint) from None
    return gates


def _read(path: str, model: options.Model) -> Loaded | Plan:
    """Read a model or a problem, or a plan that says that it is one."""
    from memplan.base.errors import FormatError
    from memplan.programs import sources

    try:
        return reading.read_input(path, model=model)
    except FormatError:
        plan = reading.find_plan(path) if sources.detect(path) in ("csv", "json") else None
        if plan is None:
            raise
        return plan


def _format_of(out: str | None) -> ReportFormat:
    return _FORMATS.get(os.path.splitext(out or "")[1].lower(), ReportFormat.TEXT)


def _write(
    found: Comparison,
    names: tuple[str, str],
    verdicts: Sequence[Verdict],
    format: ReportFormat,
    most: int,
    out: str | None,
) -> None:
    """Write a comparison to a file, or print it."""
    from memplan.problem import formats
    from memplan.view.comparison import make_report
    from memplan.view.markdown import format_report
    from memplan.view.reports import format_page, render_plain
    from memplan.view.words.comparisons import comparison

    report = make_report(found, names, [verdict.sentence for verdict in verdicts], most)
    if format is ReportFormat.TEXT and out is None:
        output.console().print(comparison(report))
        return
    if format is ReportFormat.TEXT:
        text = render_plain(comparison(report))
    elif format is ReportFormat.MARKDOWN:
        text = format_report(report)
    elif format is ReportFormat.HTML:
        text = format_page(report, f"{names[0]} and {names[1]}")
    else:
        text = output.make_json(_summary(found, verdicts)) + "\n"
    if out is None:
        output.line(text.removesuffix("\n"))
    else:
        formats.write_text(out, text)
        output.tell_written(out)


def _summary(found: Comparison, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return all that is known, for scripts to read; amounts are in bytes."""
    lists = ("added", "removed", "grown", "shrunk", "renamed", "arrived", "left")
    sides = {"before": asdict(found.before), "after": asdict(found.after)}
    notes = [{"side": side, **note} for side in sides for note in sides[side].pop("notes")]
    return {
        **sides,
        **{name: [asdict(match) for match in getattr(found, name)] for name in lists},
        "limits": [asdict(verdict) for verdict in verdicts],
        "interrupted": found.interrupted,
        "notes": notes,
    }

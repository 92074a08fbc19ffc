"""`memplan plan --dim NAME=RANGE`: the peak at every size, and the files of that."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from memplan.base.errors import FormatError
from memplan.cli import options, output, reading

if TYPE_CHECKING:
    from memplan.programs.sources import Loaded
    from memplan.scenarios.envelope import Envelope

__all__ = ["has_ranges", "make_reader", "parse_ranges", "run"]

_WRITES = {
    **dict.fromkeys((".json", ".csv"), "plan"),
    **dict.fromkeys((".png", ".svg", ".pdf"), "picture"),
    ".h": "header",
}


def run(
    input: str,
    model: options.Model,
    where: Sequence[str],
    search: options.Search,
    outs: Sequence[str],
    *,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Find the envelope of a file, print it, and write what the suffixes of `outs` say.

    Plans at few sizes say which buffers lie below which, and that is evaluated at all sizes. One
    plan with the same offsets for all sizes is shown too.
    """
    kinds = {out: os.path.splitext(out)[1].lower() for out in outs}
    for out, kind in kinds.items():
        output.check_output(out, input)
        if kind not in _WRITES:
            raise FormatError(
                out,
                "the suffix must be .json or .csv for the plan of all sizes, .h for a C header, "
                "or .png, .svg or .pdf for a picture",
            )
    drawn = "picture" in map(_WRITES.get, kinds.values())
    output.check_libraries(input, extras=("plot",) * drawn)
    ranges = parse_ranges(model.dim or ())

    from memplan.scenarios.envelope import envelope

    limits = {name: value for name, value in vars(search).items() if value is not None}
    # A file is given by its name, as formulas are in it, unless it is to be read in another way.
    plain = [each for each in model.read or () if each != "every-size"]
    is_plain = replace(model, read=None) == options.Model(model.dim) and not plain
    found = envelope(
        input if is_plain else make_reader(input, model),
        ranges,
        where,
        read_all=model.every_size,
        **limits,
    )
    if as_json or not quiet:
        _show(found, as_json=as_json)
    for out, kind in kinds.items():
        written = _write(found, out, _WRITES[kind])
        if not (as_json or quiet):
            output.tell_written(*written)


def _write(found: Envelope, out: str, what: str) -> tuple[str, ...]:
    """Write an envelope, and return the files."""
    if what == "plan":
        from memplan.problem import formats

        return formats.save(found.plan, out)
    if what == "header":
        from memplan.problem.formats import write_text
        from memplan.runtimes.c.sizes import write_sizes_header

        write_text(out, write_sizes_header(found, name=Path(out).stem))
    else:
        from memplan.view import envelope, picture

        picture.write(envelope.draw(found), out)
    return (out,)


def make_reader(input: str, model: options.Model) -> Callable[..., Loaded]:
    """Return a function that reads a file at a size."""

    def read(**dims: int) -> Loaded:
        at = [f"{name}={value}" for name, value in dims.items()]
        return reading.read_input(input, replace(model, dim=at, pins=False))

    return read


def has_ranges(texts: Sequence[str] | None) -> bool:
    """Return whether a dimension has several sizes."""
    return any(set(",:") & set(text.rpartition("=")[2]) for text in texts or ())


def parse_ranges(texts: Sequence[str]) -> dict[str, str]:
    """Read `NAME=RANGE`, each name once."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, values = text.rpartition("=")
        if not name or not values:
            raise typer.BadParameter(f"{text!r} is not NAME=RANGE", param_hint="'--dim'")
        if name in found:
            raise typer.BadParameter(
                f"{name!r} is given twice; give all of its sizes at once, as in {name}=1,2,4:8",
                param_hint="'--dim'",
            )
        found[name] = values
    return found


def _show(found: Envelope, *, as_json: bool) -> None:
    """Print an envelope."""
    if as_json:
        from memplan.ask.facts import summarise_envelope

        record = summarise_envelope(found)
        record |= {"interrupted": found.interrupted, "seconds": round(found.seconds, 6)}
        record["notes"] = [asdict(note) for note in found.notes]
        output.line(output.make_json(record))
    else:
        from memplan.view.words.envelope import describe_envelope

        output.console().print(describe_envelope(found))
    output.tell_interrupted(found.interrupted, found.status)

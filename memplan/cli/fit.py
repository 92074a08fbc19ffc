"""`memplan fit`: make a program fit into the memory that there is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import options, output, reading
from memplan.cli.memories import Memories, put_into

if TYPE_CHECKING:
    from memplan.levers.pipeline import Arranged
    from memplan.programs.sources import Loaded

NAME = "fit"
EXAMPLES = (
    "memplan fit model.tflite 256KiB -o fits.tflite",
    "memplan fit model.tflite --memory sram=256KiB --memory psram=8MiB -o out",
)


@dataclass(frozen=True)
class _Asked:
    """The options that only this command has."""

    out: Annotated[
        str | None,
        options.write_to(
            "Write what fits: a model of the same kind, or a header in C (.h); with --memory, into "
            "this folder."
        ),
    ] = None
    head: Annotated[
        bool,
        typer.Option(
            "--head", help="SIZE is for the plan alone, without what TFLM keeps beside it."
        ),
    ] = False


def command(
    input: options.Input,
    size: Annotated[
        int | None,
        typer.Argument(
            parser=options.parse_bytes,
            metavar="SIZE",
            help="The memory that there is: 256KiB, 1MB. Without it, show what each lever needs.",
        ),
    ] = None,
    *,
    rewriting: options.Rewriting,
    limits: options.Limits,
    on: options.OnBoard,
    several: Memories,
    dim: options.Dim = None,
    strict: options.Strict = False,
    as_json: options.AsJson = False,
    asked: _Asked,
) -> None:
    """Make a program fit into the memory that there is, at the least cost, and say what was done.

    What costs nothing comes first: offsets, results written over inputs, the order of operators.
    Then large tensors are computed in bands of rows, with as little repeated work as possible. It
    stops at the first program that fits, and compares its outputs with those of the model. If
    nothing fits, nothing is written, and the exit code is 1.

    With several --memory, the fastest one is used alone if the program fits into it with little
    more work. Otherwise buffers are assigned to all of them, with the least traffic in slow ones.
    """
    if several.texts:
        single = {"SIZE": size is not None, "--head": asked.head}
        output.refuse_given(single, "it is of one memory; leave out --memory")
        _fit_memories(
            input, several, rewriting, limits, on, dim, asked.out, strict=strict, as_json=as_json
        )
        return
    from memplan.runtimes.fitting import find_fit

    output.check_output(asked.out, input)
    if asked.out is not None and size is None:
        raise typer.BadParameter("give a SIZE: only what fits is written", param_hint="'--output'")
    allowed = rewriting.list_limits()
    if rewriting.max_extra is None:
        allowed["max_extra"] = inf
    found = find_fit(
        input,
        size,
        out=asked.out,
        dims=options.parse_dims(dim or ()),
        head_only=asked.head,
        board=several.find_board(on),
        **allowed | vars(limits),
    )
    reading.refuse_notes(input, found.notes if strict else ())
    _finish(found, asked.out, as_json=as_json)


def _finish(found: Arranged, out: str | None, *, as_json: bool) -> None:
    """Write what fits, and say what was done."""
    written = out if found.fits and out is not None else None
    if written is not None:
        from memplan.problem import formats

        formats.write_files({written: found.data})
    if as_json:
        output.line(output.make_json(summarise(found, written)))
    else:
        from memplan.view.words.fitting import describe_arranged

        output.console().print(describe_arranged(found, has_output=out is not None))
        output.tell_written(written)
    output.tell_interrupted(found.interrupted, "the best so far")
    if not found.fits:
        raise typer.Exit(output.INTERRUPTED if found.interrupted else output.INFEASIBLE)


def _fit_memories(
    input: str,
    several: Memories,
    rewriting: options.Rewriting,
    limits: options.Limits,
    on: options.OnBoard,
    dim: list[str] | None,
    folder: str | None,
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """Do the same for several memories: print the levers, what is where, and what it costs."""
    memories, where = several.parse()
    output.check_folder(folder)

    from memplan.problem import formats
    from memplan.runtimes.fitting import fit_memories

    dims = options.parse_dims(dim or ())
    asked = rewriting.list_limits() | vars(limits)
    found = fit_memories(input, memories, dims=dims, board=several.find_board(on), **where, **asked)
    reading.refuse_notes(input, found.notes if strict else ())
    files = {} if folder is None else put_into(folder, found.files)
    formats.write_files(files)
    if as_json:
        from memplan.ask.facts import summarise_assigned

        assigned = None if found.housed is None else summarise_assigned(found.housed.found)
        record = summarise(found.alone, None) | {"assigned": assigned, "output": [*files]}
        record |= {"assigned_change": found.change, "assigned_extra": round(found.extra, 6)}
        record["notes"] = [asdict(note) for note in found.notes]
        output.line(output.make_json(record))
    else:
        from memplan.view.words.fitting import describe_memories

        output.console().print(describe_memories(found, memories, has_output=bool(files)))
        output.tell_written(*files)
    output.tell_interrupted(found.interrupted, "the best so far")


def suggest(path: str, loaded: Loaded, capacity: int | None, dim: list[str] | None = None) -> str:
    """Return which command changes a program that does not fit so that it may, or nothing."""
    if loaded.graph is None or capacity is None:
        return ""
    return f"no plan fits the program as it is; {_name_command(path, capacity, dim)}"


def _name_command(path: str, capacity: int, dim: list[str] | None, *more: str) -> str:
    from memplan.base.sizes import write_size

    words = [output.names.get(path, path), write_size(capacity), *more]
    for each in dim or ():
        words += ["--dim", each]
    return f"memplan fit {shlex.join(words)} tries results in place, another order, and bands"


@contextmanager
def naming_fit(
    path: str,
    capacity: int | None,
    dim: list[str] | None,
    on: options.OnBoard,
    header: str | None = None,
) -> Iterator[None]:
    """Let an error about a capacity that is too small name the command that tries everything.

    `header` is the only file that is written: what counts for it is the plan, in `fit` too.
    """
    from memplan.base.errors import CapacityError

    try:
        yield
    except CapacityError as error:
        loaded = reading.read_input(path, options.Model(dim, runtime=False))
        if loaded.graph is None or capacity is None:
            raise
        given = {"--board": on.board, "-o": header}
        more = [word for pair in given.items() if pair[1] is not None for word in pair]
        advice = _name_command(path, capacity, dim, *map(str, more))
        raise CapacityError(f"{error}; {advice}") from None


def summarise(found: Arranged, written: str | None) -> dict[str, Any]:
    """Return the facts for scripts; amounts are in bytes."""
    floor, why = found.find_floor()
    return {
        "model": Path(found.name).name,
        "capacity": found.capacity,
        "interrupted": found.interrupted,
        "fits": found.fits if found.capacity is not None else None,
        "arena": found.arena,
        "how": found.best.written.how,
        "plan": {"peak": found.plan.peak, "bound": found.bound, "status": str(found.plan.status)},
        "bound_of_orders": found.bound_of_orders,
        "floor": {"bytes": floor, "why": why},
        "steps": [asdict(step) for step in found.steps],
        "extra": round(found.extra, 6),
        "difference": None if found.comparison is None else found.comparison.difference,
        "output": written,
        "notes": [asdict(note) for note in found.notes],
    }

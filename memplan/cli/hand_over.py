"""What `memplan plan -o` writes for a runtime: a model, a header in C, or TFLM's shim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from memplan.cli import fit, options, output, reading
from memplan.cli.outputs import check_plan

if TYPE_CHECKING:
    from memplan.base.notes import Note
    from memplan.cli.request import Request
    from memplan.levers.pipeline import Arranged, Writer
    from memplan.problem.plan import Plan
    from memplan.runtimes.tflm.write import Applied
    from memplan.solvers.planning import Planned

__all__ = ["run"]

_ALONE: Final = "a model or a header holds one plan"


@dataclass(frozen=True)
class _Written:
    """What was written, and what is said of it."""

    planned: Planned
    files: Mapping[str, bytes]
    notes: tuple[Note, ...]
    applied: Applied | None = None
    arranged: Arranged | None = None
    interrupted: bool = False

    def summarise(self, request: Request) -> dict[str, Any]:
        """Return the same for scripts."""
        from memplan.cli.reports import Report

        plan, applied = self.planned.plan, self.applied
        seconds = self.planned.seconds if self.arranged is None else self.arranged.seconds
        report = Report(self.planned.loaded, plan, seconds, self.interrupted, (), None)
        record = report.summary(None, None)
        if applied is not None:
            stored = {"before": asdict(applied.before), "after": asdict(applied.after)}
            record |= stored | {"model_arena": applied.arena, "unknown": [*applied.unknown]}
        if self.arranged is not None:
            record |= fit.summarise(self.arranged, None)
        return record | {
            "capacity": request.constraints.capacity,
            "output": [*self.files],
            "notes": [asdict(note) for note in self.notes],
        }


def run(request: Request) -> None:
    """Plan a program, and write what was asked for; all files hold the same plan, or none is.

    Without `--levers` it is the plan of the program as it is. The plan is one with the least peak,
    also where there is a capacity, which is checked.
    """
    _check(request)
    capacity, files = request.constraints.capacity, request.outputs
    alone = None if files.model or files.shim else files.header
    with fit.naming_fit(request.inputs[0], capacity, request.model.dim, request.on, alone):
        if request.paths.path:
            _write_paths(request)
            return
        made = _write_arranged(request) if request.changes else _write_plan(request)
    reading.refuse_notes(request.inputs[0], made.notes if request.model.strict else ())
    _write(request, made)
    output.tell_interrupted(made.interrupted, "the best so far")


def _check(request: Request) -> None:
    """Refuse what a runtime's file cannot hold, before the work."""
    from memplan.programs.sources import detect
    from memplan.programs.sources.registry import find_format

    input, files, writing = request.inputs[0], request.outputs, request.writing
    if request.memories.texts and len(request.inputs) == 1:
        raise typer.BadParameter(
            f"{_ALONE}, of one arena; memplan fit --memory writes one for several memories into a "
            "folder",
            param_hint="'--output'",
        )
    if not request.is_one_arena:
        raise typer.BadParameter(
            f"{_ALONE}: of one program, of one size, in one arena; write plans into a folder",
            param_hint="'--output'",
        )
    others = {
        "--program": writing.program,
        "--proof": writing.proof,
        "--trace": writing.trace,
        "--format": writing.format,
        "--measure": request.showing.measure,
        "--progress": request.showing.progress,
        "--costs": request.question.costs,
        "--spill": request.question.spill,
    }
    output.refuse_given(
        {option: bool(given) for option, given in others.items()},
        f"{_ALONE}, and this says nothing about it; write a plan (.json)",
    )
    given = [writing.plan] if writing.plan else []
    read = [] if writing.overwrite else [input]
    output.check_outputs(files.by_option(), *read, *given)
    check_plan(files.plan)
    suffix = find_format(detect(input)).suffix
    if suffix:
        own = Path(output.names.get(input, input)).suffix.lower()
        output.check_suffix(files.model, dict.fromkeys((suffix, own), "the model"))
    if request.model.dim and (files.model or files.shim) and detect(input) != "onnx":
        message = (
            "TFLM uses the sizes that are stored in the file: convert the model with other sizes"
        )
        raise typer.BadParameter(message, param_hint="'--dim'")
    _check_levers(request)
    _check_libraries(request)


def _check_levers(request: Request) -> None:
    """Refuse levers and limits on them that do not go together."""
    levers, rewriting, files = request.changes, request.rewriting, request.outputs
    for each in levers - {"order", "again", "bands"}:
        raise typer.BadParameter(
            f"{each!r}: no model and no header holds it; write --program", param_hint="'--levers'"
        )
    if "again" in levers and request.constraints.capacity is None:
        raise typer.BadParameter(
            "again needs to know how much memory there is: give --capacity",
            param_hint="'--levers'",
        )
    if rewriting.pure and not levers:
        raise typer.BadParameter("it needs --levers order, again or bands", param_hint="'--pure'")
    limits = {"--max-extra-macs": rewriting.max_extra is not None}
    limits["--accept"] = rewriting.allow_inexact
    if not levers & {"again", "bands"}:
        output.refuse_given(limits, "it needs --levers bands or again")
    if levers:
        given = {
            "--shim": bool(files.shim),
            "--plan": bool(request.writing.plan),
            "--path": bool(request.paths.path),
            "--pin": bool(request.constraints.pin),
            "--reserve": bool(request.constraints.reserve),
            "--alignment": "bands" in levers and request.model.alignment > 1,
        }
        output.refuse_given(given, "it is of a program as it is; leave it out with --levers")
        if bool(files.model) == bool(files.header) or files.plan:
            raise typer.BadParameter(
                "with --levers one file is written: a model, or a header",
                param_hint="'--output'",
            )
    if request.writing.plan is not None:
        given = {
            "--in-place": bool(request.levers),
            "--alignment": request.model.alignment > 1,
            "--read": bool(request.model.read),
        }
        output.refuse_given(given, "the plan is there already; leave it out with --plan")
    if request.paths.path and (files.model or files.shim or files.plan or request.writing.plan):
        raise typer.BadParameter("plans of paths need a header alone", param_hint="'--path'")
    if request.paths.path and request.board is not None:
        raise typer.BadParameter("it is of one path; leave out --path", param_hint="'--board'")


def _check_libraries(request: Request) -> None:
    output.check_libraries(request.inputs[0], solvers=[request.question.solver])
    if request.outputs.drawing is not None:
        output.choose_drawing(request.outputs.drawing, request.inputs[0])


def _write(request: Request, made: _Written) -> None:
    """Write the files, and say so."""
    from memplan.problem import formats

    drawing, showing = request.outputs.drawing, request.showing
    formats.write_files(made.files)
    if drawing is not None:
        from memplan.cli.view import draw_plan

        draw_plan(request.inputs[0], made.planned.loaded, made.planned.plan, drawing)
    if showing.as_json:
        output.line(output.make_json(made.summarise(request)))
    elif not showing.quiet:
        output.tell_written(*made.files, drawing)
        _show(request, made)
        alone = request.outputs.header and not (request.outputs.model or request.outputs.shim)
        if alone and request.constraints.capacity is not None and _has_arena(request):
            output.line(
                "counted the plan alone, as a header is for a runtime of yours; with a model or "
                "--shim, the whole arena of TensorFlow Lite Micro counts"
            )


def _has_arena(request: Request) -> bool:
    """Whether the runtime of the input has one arena for all, which a plan in its file lays out."""
    from memplan.programs.sources import detect
    from memplan.programs.sources.registry import find_format

    return find_format(detect(request.inputs[0])).has_arena


def _make_model(request: Request) -> options.Model:
    """Return how the input is read."""
    in_place = bool({*request.levers} - request.changes)
    return replace(request.model, in_place=in_place, allow_refused=request.rewriting.allow_refused)


def _write_plan(request: Request) -> _Written:
    """Make all outputs that hold one plan of the program as it is."""
    from memplan.problem import formats

    files, input, board = request.outputs, request.inputs[0], request.board
    model, capacity = _make_model(request), request.constraints.capacity
    if files.model and _has_arena(request):
        from memplan.runtimes.tflm.read.model import load
        from memplan.runtimes.tflm.write import require_library

        require_library(load(Path(input)))
    chosen, interrupted = _make_plan(request, model)
    _check_capacity(capacity, chosen.plan.peak or 0)
    made: dict[str, bytes] = {}
    applied = None
    if files.model or files.shim:
        stored = chosen.plan
        if model.alignment > 1 or request.constraints.pin or request.constraints.reserve:
            stored = _plan_of_file(request, chosen)
        from memplan.runtimes.tflm.write import patch, shim_header

        applied, data = patch(
            Path(input),
            Path(files.model or files.shim or ""),
            stored,
            capacity,
            allow_refused=model.allow_refused,
            board=board,
            as_file=bool(files.model),
        )
        made |= {files.model: data} if files.model else {}
        if files.shim:
            name = request.writing.name or "memory_plan"
            made[files.shim] = shim_header(Path(input), stored, name, board=board).encode()
    if files.header:
        from memplan.runtimes.c.header import write_header

        text = write_header(chosen.loaded, chosen.plan, name=request.writing.name)
        made[files.header] = text.encode()
    if files.plan:
        made |= formats.render(chosen.plan, files.plan)
    notes = chosen.notes if applied is None else applied.notes
    shown = applied if files.model else None
    return _Written(chosen, made, tuple(notes), shown, interrupted=interrupted)


def _make_plan(request: Request, model: options.Model) -> tuple[Planned, bool]:
    """Return the one plan of all outputs, and whether Ctrl-C cut its search short."""
    from memplan.base.errors import MemplanError
    from memplan.problem import formats
    from memplan.programs.sources import detect
    from memplan.solvers.planning import Planned, layout_of, plan_model
    from memplan.solvers.stopping import stoppable

    input, board, capacity = request.inputs[0], request.board, request.constraints.capacity
    is_stored = bool(request.outputs.model or request.outputs.shim)
    if is_stored and not _has_arena(request):
        also = "; of an ONNX model, --levers order or bands write another one"
        raise MemplanError(
            f"{input} is not a TFLite model; only TFLite models carry their plan"
            + also * (detect(input) == "onnx")
        )
    plan = request.writing.plan
    given = formats.load_plan(plan) if plan else None
    if given is not None and is_stored:
        from memplan.runtimes.tflm.write import plan_file

        found = plan_file(Path(input), given, board=board)
        reading.refuse_notes(input, found.notes if model.strict else ())
        reading.require_unit(capacity, found.loaded)
        return found, False
    kept = replace(request.constraints, capacity=None)
    loaded = reading.read_input(input, model, kept, board)
    reading.require_unit(capacity, loaded)
    if given is not None:
        return Planned(layout_of(loaded, given, in_place=True), given), False
    with stoppable() as stop:
        found = plan_model(
            loaded, in_place=model.in_place, solver=request.question.solver, **vars(request.search)
        )
    _require_offsets(found)
    return found, stop.is_set


def _write_arranged(request: Request) -> _Written:
    """Make one output: a program in another order, with re-runs, or in bands."""
    from memplan.levers.pipeline import arrange
    from memplan.programs.sources import detect

    files, model, levers = request.outputs, _make_model(request), request.changes
    input, is_header = request.inputs[0], bool(files.header)
    is_onnx = not is_header and detect(input) == "onnx"
    if not (is_header or levers & {"bands", "again"}) and (
        model.alignment > 1 or (is_onnx and request.constraints.capacity)
    ):
        raise typer.BadParameter(
            "leave out --alignment and, for an ONNX model, --capacity", param_hint="'--levers'"
        )
    in_order = not is_header and _has_arena(request)
    found = arrange(
        _choose_writer(request, model),
        in_place=model.in_place or is_onnx,
        max_extra=request.rewriting.max_extra,
        pure=request.rewriting.pure or (),
        order=bool(levers & {"order", "again"}) or in_order,
        again="again" in levers,
        bands="bands" in levers,
        capacity=request.constraints.capacity,
        solver=request.question.solver,
        **vars(request.search),
    )
    found.require_fit(request.rewriting.max_extra)
    if not request.rewriting.allow_inexact and not is_header:
        found.require_equal()
    details = found.best.written.details
    notes = found.notes if details is None else _join_notes(found.planned.notes, details)
    made = {files.header or files.model or "": found.data}
    return _Written(found.planned, made, tuple(notes), details, found, found.interrupted)


def _choose_writer(request: Request, model: options.Model) -> Writer:
    """Return the writer of a file, or of a header of any program."""
    input, files = request.inputs[0], request.outputs
    if files.header:
        from memplan.runtimes.c.writer import CHeader

        loaded = reading.read_input(input, model=model, board=request.board)
        return CHeader(loaded, input, prefix=request.writing.name)
    from memplan.runtimes.choosing import choose_writer

    return choose_writer(
        Path(input),
        Path(files.model or ""),
        replace(model.reading(), board=request.board),
        allow_refused=model.allow_refused,
        written=True,
        fused=model.may_fuse is not False,
    )


def _write_paths(request: Request) -> None:
    """Write one header with the plans of several paths."""
    from memplan.problem import formats
    from memplan.runtimes.c.paths import write_paths_header
    from memplan.scenarios.paths import plan_paths
    from memplan.view.words import paths as words

    model, header = _make_model(request), request.outputs.header
    if header is None:
        raise typer.BadParameter("plans of paths need a header alone", param_hint="'--path'")
    loaded = reading.read_input(request.inputs[0], model=model)
    capacity = request.constraints.capacity
    reading.require_unit(capacity, loaded)
    asked = request.paths.arguments(request.search.nodes)
    found = plan_paths(loaded, **asked, in_place=model.in_place, timeout=request.search.timeout)
    output.tell_interrupted(found.interrupted, "the best so far")
    _check_capacity(capacity, found.peak)
    data = write_paths_header(found, name=request.writing.name).encode()
    formats.write_files({header: data})
    if request.showing.as_json:
        from memplan.ask.facts import summarise_paths

        record = {"interrupted": found.interrupted, "output": [header]}
        record["notes"] = [asdict(note) for note in loaded.notes]
        output.line(output.make_json(summarise_paths(found) | record))
    elif not request.showing.quiet:
        output.tell_written(header)
        output.console().print(words.describe_paths(found))


def _plan_of_file(request: Request, chosen: Planned) -> Plan:
    """Return a plan that keeps to more than the file asks as a plan of the problem in the file."""
    from memplan.problem.plan import Plan
    from memplan.solvers.planning import layouts

    model = replace(options.Model(), pins=request.model.keeps_offsets)
    loaded = reading.read_input(request.inputs[0], model=model, board=request.board)
    problem = layouts(loaded, in_place=chosen.in_place)[-1].problem
    return Plan.of(problem, [chosen.plan.offset(id) for id in problem.ids])


def _require_offsets(found: Planned) -> None:
    """Refuse to write anything without a plan; exit as a search does."""
    if not found.plan.has_offsets:
        from memplan.view.words.plans import status_text

        output.message(f"{status_text(found.plan, interrupted=False)}; nothing was written")
        raise typer.Exit(output.exit_code(found.plan, interrupted=False))


def _join_notes(given: tuple[Note, ...], applied: Applied) -> tuple[Note, ...]:
    """Return the notes on a model with those on what was written; of refusals only the latter."""
    from memplan.base.notes import Code

    kept = (note for note in given if note.code is not Code.RUNTIME_REFUSES)
    return tuple(dict.fromkeys((*kept, *applied.notes)))


def _check_capacity(capacity: int | None, peak: int) -> None:
    """Refuse a plan above the capacity for the arena; a later check counts what TFLM adds to it."""
    from memplan.base.errors import CapacityError

    if capacity is not None and peak > capacity:
        raise CapacityError(
            f"the plan alone needs {peak} bytes, {peak - capacity} more than the capacity of "
            f"{capacity}: nothing was written"
        )


def _show(request: Request, made: _Written) -> None:
    """Say what was written, what it needs, and what was assumed."""
    from memplan.view.words import handed, parts

    console, found = output.console(), made.arranged
    levers = {*request.levers}
    for sentence in handed.describe_levers(found, levers, is_header=bool(request.outputs.header)):
        output.line(sentence)
    if found is not None and found.best.written.run:
        output.line(f"run     {found.best.written.run}")
    else:
        for sentence in handed.describe_plan(made.planned.plan, made.applied):
            output.line(sentence)
    if made.notes:
        console.print(parts.render_notes(made.notes))

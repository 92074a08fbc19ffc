"""`memplan plan`: the main job."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from memplan.cli import fit, hand_over, options, output, question, reading, sizes
from memplan.cli.inputs import keep_each
from memplan.cli.memories import Memories
from memplan.cli.outputs import Writing, check_plan
from memplan.cli.progress import ProgressLine
from memplan.cli.reports import Report
from memplan.cli.request import Question, Request, Showing, refuse_unused
from memplan.cli.rounds import open_log

if TYPE_CHECKING:
    from memplan.answer import Answer
    from memplan.programs.sources import Loaded
    from memplan.solvers.planning import Planned

NAME = "plan"
EXAMPLES = (
    "memplan plan problem.csv -o plan.csv --proof best.proof",
    "memplan plan model.tflite --levers order -o planned.tflite",
)


def command(
    context: typer.Context,
    input: options.Input,
    others: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MORE]...",
            help="Other programs, which run in turn with the first one in the same memory.",
            callback=keep_each,
        ),
    ] = None,
    *,
    asked: Question,
    memories: Memories,
    on: options.OnBoard,
    rewriting: options.Rewriting,
    model: options.Model,
    constraints: options.Constraints,
    paths: options.Paths,
    search: options.Search,
    writing: Writing,
    showing: Showing,
) -> None:
    """Place every buffer, report how good the plan is, and write it where a runtime uses it.

    With a capacity, the search stops at the first plan that fits. Without one, or with --minimize,
    it looks for the smallest peak. Ctrl-C ends the search with the best plan so far. Levers,
    several programs, memories, blocks, penalties and sizes (--dim batch=1,2,4 or batch=1:64)
    combine. The input file is not changed unless --overwrite is given; all outputs are written, or
    none.
    """
    inputs, constraints = [input, *(others or ())], memories.add_reserved(constraints)
    request = Request(
        inputs, asked, memories, on, rewriting, model, constraints, paths, search, writing, showing
    )
    if request.is_envelope:
        _refuse_of_one(request)
        quiet, as_json = showing.quiet, showing.as_json
        outs, where = writing.out or (), asked.where or ()
        sizes.run(input, model, where, search, outs, as_json=as_json, quiet=quiet)
    elif request.outputs.is_for_runtime:
        hand_over.run(request)
    elif request.is_as_it_is:
        _plan_one(context, request)
    else:
        _refuse_of_one(request)
        question.run(request, partial(_show, request))


def _refuse_of_one(request: Request) -> None:
    """Refuse what is only of one program as it is, of one size, in one arena."""
    writing, showing = request.writing, request.showing
    given = {
        "--proof": writing.proof is not None
        and bool(request.paths.path or not request.is_one_arena),
        "--trace": writing.trace is not None,
        "--measure": showing.measure,
        "--format": writing.format is not None,
        "--progress": showing.progress is True,
        "--plan": writing.plan is not None,
    }
    output.refuse_given(given, "it is of one program as it is, of one size, in one arena")


def _show(request: Request, found: Answer) -> None:
    """Print an answer that is one part in one arena."""
    question.make_report(request, found).show(request.showing.top)
    beside = question.find_beside(request, found)
    for step in found.steps:
        question.describe_step(step, request, beside)


def _plan_one(context: typer.Context, request: Request) -> NoReturn:
    """Plan one program as it is, of one size, in one arena."""
    _check_one(request)
    input, model, showing = request.inputs[0], request.model, request.showing
    loaded = reading.read_input(input, model, request.constraints, request.board)
    planned, interrupted = _search(context, request, loaded)
    reading.refuse_notes(input, planned.notes if model.strict else ())
    in_place = bool(request.levers)
    if in_place and planned.loaded.graph is not None and not planned.in_place:
        output.message("--in-place does not reduce the peak: the plan overwrites no input")
    loaded, figures = planned.loaded, planned.loaded.figures
    if model.runtime and (showing.as_json or model.strict or not showing.quiet):
        loaded, more = reading.ask_runtime(loaded, input, model, request.board)
        figures += more
    measured = None
    if showing.measure:
        loaded, measured = reading.measure(loaded, input, model)
    planned = replace(planned, loaded=loaded)
    written = _write(request, planned)
    report = Report(loaded, planned.plan, planned.seconds, interrupted, figures, measured)
    proof = request.writing.proof if planned.plan.stats.get("proof") else None
    if showing.as_json:
        output.line(output.make_json(report.summary(request.outputs.plan, proof)))
    elif not showing.quiet:
        report.show(showing.top)
        output.tell_written(*written, proof, request.writing.trace)
    output.tell_interrupted(interrupted, planned.plan.status)
    _tell_unwritten(request, planned)
    raise typer.Exit(output.exit_code(planned.plan, interrupted))


def _check_one(request: Request) -> None:
    """Refuse what says nothing here, and files that could not be written, before the work."""
    refuse_unused(request)
    writing, files, input = request.writing, request.outputs, request.inputs[0]
    named = {"--output": files.plan, "--proof": writing.proof, "--trace": writing.trace}
    output.check_outputs(named | {"the drawing": files.drawing}, input)
    if writing.format is None:
        check_plan(files.plan)
    if request.levers and writing.proof is not None:
        raise typer.BadParameter(
            "a proof is of one layout; leave out --in-place", param_hint="'--proof'"
        )
    extras = ("torch",) * request.showing.measure
    output.check_libraries(input, extras=extras, solvers=[request.question.solver])
    if files.drawing is not None:
        output.choose_drawing(files.drawing, input)


def _search(context: typer.Context, request: Request, loaded: Loaded) -> tuple[Planned, bool]:
    """Return the plan, and whether Ctrl-C cut the search short."""
    from memplan.solvers.planning import PlanningInterrupted, plan_model

    trace, showing = request.writing.trace, request.showing
    tracer = None if trace is None else context.with_resource(open_log(trace))
    progress = showing.progress
    if progress is None:
        progress = sys.stderr.isatty() and not (showing.quiet or showing.as_json)
    asked: dict[str, Any] = {"proof": request.writing.proof, **vars(request.search)}
    with ProgressLine() if progress else nullcontext() as watch:
        try:
            return plan_model(
                loaded,
                in_place=bool(request.levers),
                solver=request.question.solver,
                objective="min_peak" if request.question.minimize else None,
                progress=watch,
                trace=tracer,
                **asked,
            ), False
        except PlanningInterrupted as stop:
            return stop.planned, True


def _write(request: Request, planned: Planned) -> tuple[str, ...]:
    """Write the plan, if there is one; return the files."""
    from memplan.problem import formats

    files, format = request.outputs, request.writing.format
    written: tuple[str, ...] = ()
    if not planned.plan.has_offsets:
        return written
    if files.plan is not None:
        kind: Any = None if format is None else format.value
        written = formats.save(planned.plan, files.plan, format=kind)
    if files.drawing is not None:
        from memplan.cli.view import draw_plan

        draw_plan(request.inputs[0], planned.loaded, planned.plan, files.drawing)
        written += (files.drawing,)
    return written


def _tell_unwritten(request: Request, planned: Planned) -> None:
    """Say what was not written, and what may help."""
    plan, files, board = planned.plan, request.outputs, request.board
    capacity, proof = request.constraints.capacity, request.writing.proof
    input, dim = request.inputs[0], request.model.dim
    advice = None if board is not None else fit.suggest(input, planned.loaded, capacity, dim)
    if advice and str(plan.status) == "infeasible":
        output.message(advice)
    for unwritten in (files.plan, files.drawing):
        if unwritten is not None and not plan.has_offsets:
            output.message(f"no plan was found; {unwritten} was not changed")
    if proof is not None and not plan.stats.get("proof"):
        why = "no complete proof was found" if plan.peak != 0 else "a peak of 0 needs no proof"
        output.message(f"{why}; {proof} was not changed")

"""`memplan plan`: the main job."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from memplan.cli import envelope, fit, memories, options, output, question, reading
from memplan.cli.inputs import keep_each
from memplan.cli.progress import ProgressLine
from memplan.cli.rounds import open_log

if TYPE_CHECKING:
    from memplan.answer import Answer
    from memplan.levers.rewrite import Recomputed, Reordered
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Figure, Loaded
    from memplan.runtimes.torch.measure.run import Measured
    from memplan.solvers.planning import Planned

NAME = "plan"
EXAMPLES = (
    "memplan plan model.onnx --dim batch=8 -o plan.json",
    "memplan plan problem.csv -o plan.csv --proof best.proof",
)


def command(
    context: typer.Context,
    input: options.Input,
    model: options.Model,
    constraints: options.Constraints,
    search: options.Search,
    asked: question.Question,
    sizes: options.Sizes,
    on: options.OnBoard,
    several: memories.Memories,
    others: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MORE]...",
            help="Other programs, which run in turn with the first one in the same memory.",
            callback=keep_each,
        ),
    ] = None,
    minimize: options.Minimize = False,
    out: Annotated[
        str | None,
        options.write_to(
            "Write the plan to this file; those of several programs, blocks or memories into this "
            "folder."
        ),
    ] = None,
    format: Annotated[
        options.PlanFormat | None,
        typer.Option("--format", help="Format of the output; by default its suffix decides."),
    ] = None,
    solver: Annotated[
        str,
        typer.Option("--solver", metavar="NAME", help="The solver; see `memplan solvers`."),
    ] = "auto",
    spill: options.Spill = None,
    pure: options.Pure = None,
    measure: options.Measure = False,
    top: options.Top = 10,
    as_json: options.AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary.")] = False,
    proof: Annotated[
        str | None,
        typer.Option(
            "--proof",
            metavar="FILE",
            help="Write a proof that no plan is better; `memplan verify --proof` checks it.",
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Write one line of JSON for each round of the search.",
        ),
    ] = None,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Show the best plan so far; by default on a terminal.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Place every buffer, and report how good the plan is.

    With a capacity, the search stops at the first plan that fits. Without one, or with --minimize,
    it looks for the smallest peak. Ctrl-C ends the search with the best plan so far. Levers,
    several programs, memories, blocks, penalties and sizes (--dim batch=1,2,4 or batch=1:64)
    combine.
    """
    board = on.find()
    request = question.Request(
        inputs=[input, *(others or ())],
        model=model,
        constraints=constraints,
        search=search,
        question=asked,
        sizes=sizes,
        memories=several,
        board=board,
        solver=solver,
        minimize=minimize,
        pure=pure or (),
        spill=spill,
        out=out,
        proof=proof,
        top=top,
        as_json=as_json,
        quiet=quiet,
    )
    changes = {*request.levers} - {"in-place", "in place"}
    if request.is_one_arena and not changes and asked.program is None:
        question.refuse_unused(request)
        _plan_one(
            context,
            request,
            format,
            measure=measure,
            trace=trace,
            progress=progress,
        )
    of_one = {
        "--proof": proof is not None and not request.is_one_arena,
        "--trace": trace is not None,
        "--measure": measure,
        "--format": format is not None,
        "--progress": progress is True,
    }
    output.refuse_given(of_one, "it is of one program as it is, of one size, in one arena")
    if question.is_envelope(request):
        envelope.run(input, model, sizes, search, out, as_json=as_json, quiet=quiet)
        return

    def show(found: Answer) -> None:
        loaded, order = found.programs[0], question.find_change(found)
        figures: tuple[Figure, ...] = loaded.figures
        if model.runtime:
            loaded, asked_figures = reading.ask_runtime(loaded, input, model, board)
            figures += asked_figures
        if order is not None:
            figures = tuple(_of_given_order(figure) for figure in figures)
        interrupted = found.interrupted and str(found.plan.status) != "optimal"
        report = Report(loaded, found.plan, found.seconds, interrupted, figures, None, order)
        report.show(top)
        for step in found.steps:
            question.describe_waits(step)

    question.run(request, show)


def _plan_one(
    context: typer.Context,
    request: question.Request,
    format: options.PlanFormat | None,
    *,
    measure: bool,
    trace: str | None,
    progress: bool | None,
) -> NoReturn:
    """Plan one program as it is, of one size, in one arena."""
    input, model, out = request.inputs[0], request.model, request.out
    as_json, quiet, board = request.as_json, request.quiet, request.board
    proof = request.proof
    output.check_outputs({"--output": out, "--proof": proof, "--trace": trace}, input)
    if format is None:
        output.check_suffix(out, output.PLANS)
    in_place = bool(request.levers)
    if in_place and proof is not None:
        raise typer.BadParameter(
            "a proof is of one layout; leave out --in-place", param_hint="'--proof'"
        )
    output.check_libraries(input, extras=("torch",) * measure, solvers=[request.solver])
    loaded = reading.read_input(input, model, request.constraints, board)

    from memplan.problem import formats

    tracer = None if trace is None else context.with_resource(open_log(trace))
    if progress is None:
        progress = sys.stderr.isatty() and not quiet and not as_json
    with ProgressLine() if progress else nullcontext() as watch:
        planned, interrupted = _plan(
            loaded,
            in_place=in_place,
            solver=request.solver,
            objective="min_peak" if request.minimize else None,
            progress=watch,
            trace=tracer,
            proof=proof,
            **vars(request.search),
        )
    reading.refuse_notes(input, planned.notes if model.strict else ())
    found = planned.plan
    if in_place and planned.loaded.graph is not None and not planned.in_place:
        output.message("--in-place does not reduce the peak: the plan overwrites no input")
    loaded, figures = planned.loaded, planned.loaded.figures
    if model.runtime and (as_json or model.strict or not quiet):
        loaded, measured_figures = reading.ask_runtime(loaded, input, model, board)
        figures += measured_figures
    measured = None
    if measure:
        loaded, measured = reading.measure(loaded, input, model)
    written: tuple[str, ...] = ()
    if out is not None and found.has_offsets:
        written = formats.save(found, out, format=format.value if format else None)
    if as_json or not quiet:
        report = Report(loaded, found, planned.seconds, interrupted, figures, measured)
        if as_json:
            output.line(output.make_json(report.summary(out, proof)))
        else:
            report.show(request.top)
    if not (as_json or quiet):
        has_proof = bool(found.stats.get("proof"))
        output.tell_written(*written, proof if has_proof else None, trace)
    output.tell_interrupted(interrupted, found.status)
    capacity = request.constraints.capacity
    advice = None if board is not None else fit.suggest(input, loaded, capacity, model.dim)
    if advice and str(found.status) == "infeasible":
        output.message(advice)
    if out is not None and not found.has_offsets:
        output.message(f"no plan was found; {out} was not changed")
    if proof is not None and not found.stats.get("proof"):
        why = "no complete proof was found" if found.peak != 0 else "a peak of 0 needs no proof"
        output.message(f"{why}; {proof} was not changed")
    raise typer.Exit(output.exit_code(found, interrupted))


def _of_given_order(figure: Figure) -> Figure:
    what = ", ".join(filter(None, (figure.what, "in the order of the file")))
    return replace(figure, what=what)


def _plan(loaded: Loaded, **search: Any) -> tuple[Planned, bool]:
    """Return the plan, and whether Ctrl-C cut the search short."""
    from memplan.solvers.planning import PlanningInterrupted, plan_model

    try:
        return plan_model(loaded, **search), False
    except PlanningInterrupted as stop:
        return stop.planned, True


@dataclass(frozen=True)
class Report:
    """What the command says of a plan, to people and to scripts."""

    loaded: Loaded
    plan: Plan
    elapsed: float
    interrupted: bool
    figures: Sequence[Figure]
    measured: Measured | None
    order: Reordered | Recomputed | None = None

    def show(self, top: int) -> None:
        """Print the report for people."""
        from memplan.view.words import measured, parts, plans

        problem, console = self.loaded.problem, output.console()
        console.print(
            plans.plan_summary(
                problem,
                self.plan,
                elapsed=self.elapsed,
                interrupted=self.interrupted,
                loaded=self.loaded,
                figures=self.figures,
                order=self.order,
            )
        )
        if self.loaded.notes:
            console.print(parts.render_notes(self.loaded.notes))
        if self.measured is not None:
            console.print()
            console.print(measured.describe_run(self.measured, self.plan.peak))
        if self.plan.has_offsets and len(problem):
            console.print()
            console.print(plans.peak_buffers(problem, self.plan, top, self.loaded.labels))

    def summary(self, out: str | None, proof: str | None) -> dict[str, object]:
        """Return the report for scripts."""
        problem, plan = self.loaded.problem, self.plan
        return {
            "source": self.loaded.source,
            "in_place": self.loaded.in_place,
            "tensors": self.loaded.tensors,
            "status": str(plan.status),
            "interrupted": self.interrupted,
            "peak": plan.peak,
            "lower_bound": plan.lower_bound,
            "gap": plan.gap,
            "capacity": problem.capacity,
            "arena": None if self.loaded.arena is None else asdict(self.loaded.arena),
            "buffers": len(problem),
            "sum_of_sizes": sum(problem.size.tolist()),
            "max_load": problem.max_load,
            "runtimes": [asdict(figure) for figure in self.figures],
            "measured": None if self.measured is None else asdict(self.measured),
            "solver": plan.solver,
            "seconds": round(self.elapsed, 6),
            "nodes": plan.stats.get("nodes"),
            "conflict": list(plan.conflict),
            "problem": problem.fingerprint,
            "output": out if plan.has_offsets else None,
            "proof": proof if plan.stats.get("proof") else None,
            "notes": [asdict(note) for note in self.loaded.notes],
        }

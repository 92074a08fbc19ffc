"""`memplan plan`: the main job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import (
    apart,
    blocks,
    envelope,
    fit,
    memories,
    options,
    output,
    reading,
    together,
)
from memplan.cli.inputs import keep_each
from memplan.cli.order import summarise
from memplan.cli.progress import ProgressLine
from memplan.cli.recompute import summarise_again
from memplan.cli.rounds import open_log

if TYPE_CHECKING:
    from memplan.planning import Planned
    from memplan.problem import Problem
    from memplan.problem.plan import Plan
    from memplan.rewrite import Recomputed, Reordered
    from memplan.runtimes.torch.measure.run import Measured
    from memplan.sources import Figure, Loaded

NAME = "plan"
EXAMPLES = (
    "memplan plan model.onnx --dim batch=8 -o plan.json",
    "memplan plan problem.csv -o plan.csv --proof best.proof",
)

_TOP = 10


def command(
    context: typer.Context,
    input: options.Input,
    model: options.Model,
    constraints: options.Constraints,
    search: options.Search,
    shared: together.Together,
    on: options.OnBoard,
    sharing: apart.Sharing,
    several: memories.Memories,
    others: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MORE]...",
            help="With --together: the other programs of the arena.",
            callback=keep_each,
        ),
    ] = None,
    block_limit: Annotated[
        int | None,
        typer.Option(
            "--block-limit",
            parser=options.parse_bytes,
            metavar="SIZE",
            help="Place the buffers in several blocks, none larger than this or its largest "
            "buffer: as few as possible, of as few bytes as possible.",
        ),
    ] = None,
    minimize: options.Minimize = False,
    out: Annotated[
        str | None,
        options.write_to(
            "Write the plan to this file; with --together, --block-limit and --memory, into this "
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
    order: Annotated[
        bool,
        typer.Option(
            "--order", help="First find the order of operators with the least load, and plan that."
        ),
    ] = False,
    recompute: Annotated[
        bool,
        typer.Option(
            "--recompute", help="Run operators again so that the plan fits into --capacity."
        ),
    ] = False,
    spill: options.Spill = None,
    pure: options.Pure = None,
    measure: options.Measure = False,
    top: options.Top = _TOP,
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
    it looks for the smallest peak. Ctrl-C ends the search with the best plan so far. Several sizes
    (--dim batch=1,2,4 or batch=1:64) are shown as by `memplan envelope`.
    """
    single = {
        "--proof": proof is not None,
        "--trace": trace is not None,
        "--measure": measure,
        "--order": order,
        "--recompute": recompute,
        "--spill": spill is not None,
        "--pure": bool(pure),
        "--format": format is not None,
        "--solver": solver != "auto",
        "--minimize": minimize,
        "--progress": progress is True,
    }
    of_one = {
        **single,
        "--pin": bool(constraints.pin),
        "--reserve": bool(constraints.reserve),
        "--block-limit": block_limit is not None,
        "--penalties": sharing.penalties is not None,
        "--sync": sharing.sync is not None,
    }
    if several.memory:
        of_one |= {
            "--together": shared.together,
            "--capacity": constraints.capacity is not None,
            "--threads": search.threads is not None,
            "--seed": search.seed != 0,
            "--progress": progress is True,
            "--dim": envelope.has_ranges(model.dim),
            "MORE": bool(others),
        }
        output.refuse_given(of_one, "it is of one memory; leave out --memory")
        board = on.find()
        memories.run(
            input, model, search, several, out, board, top=top, as_json=as_json, quiet=quiet
        )
        return
    single["--top"] = of_one["--top"] = top != _TOP  # these list no buffers
    if envelope.has_ranges(model.dim):
        of_one |= {
            "--board": on.find() is not None,
            "--capacity": constraints.capacity is not None,
            "--together": shared.together,
            "--in-place": model.in_place,
        }
        output.refuse_given(of_one, "it is of one size; give each --dim one value")
        if not others:
            envelope.run(input, model, (), search, out, as_json=as_json, quiet=quiet)
            return
    if shared.together:
        output.refuse_given(of_one, "it is of one program; leave out --together")
        inputs, capacity = [input, *(others or ())], constraints.capacity
        together.run(
            inputs, model, capacity, search, shared, out, on.find(), as_json=as_json, quiet=quiet
        )
        return
    if others:
        raise typer.BadParameter("several programs need --together", param_hint="'MORE'")
    if sharing.option is not None:
        one_search = {"--block-limit": block_limit is not None, "--in-place": model.in_place}
        output.refuse_given(
            {**single, **one_search}, f"it says nothing about the plan of {sharing.option}"
        )
        output.check_outputs({"--output": out, "--sync": sharing.sync}, input)
        output.check_suffix(out, output.PLANS)
        output.check_libraries(input)
        loaded = reading.read_input(input, model, constraints, on.find())
        apart.run(loaded, sharing, out, as_json=as_json, quiet=quiet, **vars(search))
        return
    if block_limit is not None:
        one_layout = {**single, "--in-place": model.in_place}
        output.refuse_given(one_layout, "it is of one arena; leave out --block-limit")
        output.check_libraries(input)
        loaded = reading.read_input(input, model, constraints, on.find(), blocks.SETTLED)
        several_blocks = blocks.plan(loaded, block_limit, out, **vars(search))
        reading.refuse_notes(input, several_blocks.notes if model.strict else ())
        blocks.report(several_blocks, loaded, out, as_json=as_json, quiet=quiet)
        return
    output.check_outputs({"--output": out, "--proof": proof, "--trace": trace}, input)
    if format is None:
        output.check_suffix(out, output.PLANS)
    if model.in_place and proof is not None:
        raise typer.BadParameter(
            "a proof is of one layout; leave out --in-place", param_hint="'--proof'"
        )
    _check_order(order or recompute, pure, out, format, measure)
    if recompute and (order or constraints.capacity is None):
        raise typer.BadParameter(
            "it needs --capacity, and takes the best order itself", param_hint="'--recompute'"
        )
    if spill is not None and not recompute:
        raise typer.BadParameter("it needs --recompute", param_hint="'--spill'")
    output.check_libraries(input, extras=("torch",) * measure, solvers=[solver])
    # Reserved ranges and pins are for what is planned.
    held = options.Constraints(constraints.capacity) if order or recompute else constraints
    board = on.find()
    loaded = reading.read_input(input, model, held, board)

    from memplan import formats

    tracer = None if trace is None else context.with_resource(open_log(trace))
    if progress is None:
        progress = sys.stderr.isatty() and not quiet and not as_json

    def take_order(found: Reordered | Recomputed) -> Loaded:
        if found.interrupted:
            output.message("interrupted: the best order so far is planned")
        if out is not None:
            from memplan.rewrite import require_stored

            require_stored(loaded, _list_runs(found), found.loaded, input)
        return constraints.add_to(found.loaded)

    with ProgressLine() if progress else nullcontext() as watch:
        planned, interrupted, ordered = _plan(
            loaded,
            take_order if order or recompute else None,
            constraints.capacity if recompute else None,
            in_place=model.in_place,
            solver=solver,
            objective="min_peak" if minimize else None,
            progress=watch,
            trace=tracer,
            proof=proof,
            pure=pure or (),
            spill=spill,
            **vars(search),
        )
    reading.refuse_notes(input, planned.notes if model.strict else ())
    found = planned.plan
    if model.in_place and planned.loaded.graph is not None and not planned.in_place:
        output.message("--in-place does not reduce the peak: the plan overwrites no input")
    if ordered is not None:
        found = _with_order(found, planned.problem, ordered)
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
        if ordered is not None:
            figures = tuple(_of_given_order(figure) for figure in figures)
        report = Report(loaded, found, planned.seconds, interrupted, figures, measured, ordered)
        if as_json:
            output.line(output.make_json(report.summary(out, proof)))
        else:
            report.show(top)
    if not (as_json or quiet):
        has_proof = bool(found.stats.get("proof"))
        output.tell_written(*written, proof if has_proof else None, trace)
    output.tell_interrupted(interrupted, found.status)
    advice = (
        None if board is not None else fit.suggest(input, loaded, constraints.capacity, model.dim)
    )
    if advice and str(found.status) == "infeasible":
        output.message(advice)
    if out is not None and not found.has_offsets:
        output.message(f"no plan was found; {out} was not changed")
    if proof is not None and not found.stats.get("proof"):
        why = "no complete proof was found" if found.peak != 0 else "a peak of 0 needs no proof"
        output.message(f"{why}; {proof} was not changed")
    raise typer.Exit(output.exit_code(found, interrupted))


def _check_order(
    order: bool,
    pure: Sequence[str] | None,
    out: str | None,
    format: options.PlanFormat | None,
    measure: bool,
) -> None:
    """Refuse what says nothing about the plan of another order."""
    if not order:
        if pure:
            raise typer.BadParameter("it needs --order or --recompute", param_hint="'--pure'")
        return
    if measure:
        raise typer.BadParameter(
            "PyTorch runs the order of the file; leave out --order and --recompute",
            param_hint="'--measure'",
        )
    csv = format is options.PlanFormat.CSV or (format is None and not (out or "").endswith(".json"))
    if out is not None and csv:
        raise typer.BadParameter(
            "a plan in CSV cannot say which order it is for; write JSON (.json)",
            param_hint="'--output'",
        )


def _list_runs(found: Reordered | Recomputed) -> Sequence[int]:
    """Return which operator of the file runs at each place."""
    from memplan.rewrite import Recomputed

    return found.runs if isinstance(found, Recomputed) else found.order


def _with_order(plan: Plan, problem: Problem, found: Reordered | Recomputed) -> Plan:
    """Return a plan that says which order of the operators it is for."""
    from memplan.problem.plan import Plan

    return Plan.of(
        problem,
        plan.offsets,
        status=plan.status,
        lower_bound=plan.lower_bound,
        solver=plan.solver,
        stats={**plan.stats, "order": list(_list_runs(found))},
        conflict=plan.conflict,
    )


def _of_given_order(figure: Figure) -> Figure:
    what = ", ".join(filter(None, (figure.what, "in the order of the file")))
    return replace(figure, what=what)


def _plan(
    loaded: Loaded,
    take_order: Callable[[Reordered | Recomputed], Loaded] | None,
    capacity: int | None,
    *,
    pure: Sequence[str],
    spill: str | None,
    **search: Any,
) -> tuple[Planned, bool, Reordered | Recomputed | None]:
    """Return the plan, whether Ctrl-C cut the search short, and the order that was looked for."""
    from memplan.planning import PlanningInterrupted, plan_model

    if take_order is not None:
        from memplan.pipeline import Plain, plan_again, plan_in_order

        if capacity is not None:
            writer = Plain(loaded, constrain=take_order)
            again = plan_again(writer, capacity, spill=spill, pure=pure, **search)
            return again.planned, again.interrupted, again.again
        found = plan_in_order(Plain(loaded, constrain=take_order), pure=pure, **search)
        return found.planned, found.interrupted, found.order
    try:
        return plan_model(loaded, **search), False, None
    except PlanningInterrupted as stop:
        return stop.planned, True, None


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
            **_summarise_lever(self.order),
            "output": out if plan.has_offsets else None,
            "proof": proof if plan.stats.get("proof") else None,
            "notes": [asdict(note) for note in self.loaded.notes],
        }


def _summarise_lever(found: Reordered | Recomputed | None) -> dict[str, object]:
    from memplan.rewrite import Recomputed, Reordered

    return {
        "order": summarise(found) if isinstance(found, Reordered) else None,
        "again": summarise_again(found) if isinstance(found, Recomputed) else None,
    }

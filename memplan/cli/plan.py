"""`memplan plan`: the main job."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import options, output
from memplan.cli.progress import ProgressLine

if TYPE_CHECKING:
    from memplan.plan import Plan
    from memplan.problem import Problem

NAME = "plan"


def command(
    input: options.Input,
    capacity: options.Capacity = None,
    minimize: options.Minimize = False,
    out: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the plan here.")
    ] = None,
    format: Annotated[
        options.Format | None,
        typer.Option("--format", help="Of the output; by default its suffix decides."),
    ] = None,
    solver: Annotated[str, typer.Option("--solver", help="See `memplan solvers`.")] = "auto",
    timeout: options.Timeout = None,
    nodes: options.Nodes = None,
    threads: options.Threads = None,
    seed: options.Seed = 0,
    reserve: options.Reserve = None,
    pin: options.Pin = None,
    top: options.Top = 10,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON object, for scripts.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary.")] = False,
    proof: Annotated[
        str | None,
        typer.Option(
            "--proof", metavar="FILE", help="Write down why no plan is better; see verify-proof."
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
    """Place every buffer, and say how good the plan is.

    With a capacity, the first plan that fits is taken; without one, or with --minimize, the
    smallest peak is looked for. Ctrl-C ends the search with the best plan so far.
    """
    output.check_output(out, input)
    output.check_output(proof, input)
    if out is not None and proof is not None and os.path.realpath(out) == os.path.realpath(proof):
        raise typer.BadParameter("the plan is written there", param_hint="'--proof'")
    problem = options.read_problem(input, capacity, reserve, pin)

    from memplan import formats, solvers

    if progress is None:
        progress = sys.stderr.isatty() and not quiet and not as_json
    begun = time.perf_counter()
    with ProgressLine() if progress else nullcontext() as watch:
        found, interrupted = _until_interrupted(
            lambda: solvers.solve(
                problem,
                solver=solver,
                objective="min_peak" if minimize else None,
                timeout=timeout,
                nodes=nodes,
                threads=threads,
                seed=seed,
                progress=watch,
                proof=proof,
            )
        )
    elapsed = time.perf_counter() - begun
    _referee(problem, found)
    if out is not None and found.has_offsets:
        formats.save(found, out, format=format.literal if format else None)
    if as_json:
        output.line(json.dumps(_summary(problem, found, elapsed, interrupted, out, proof)))
    elif not quiet:
        _show(problem, found, elapsed, interrupted, top)
    if interrupted:
        output.message(f"interrupted: {found.status}, not proved")
    if out is not None and not found.has_offsets:
        output.message(f"there is no plan to write; {out} was not touched")
    if proof is not None and not found.stats.get("proof"):
        output.message(f"there is no complete proof to write; {proof} was not touched")
    raise typer.Exit(_exit_code(found, interrupted))


def _until_interrupted(solve: Callable[[], Plan]) -> tuple[Plan, bool]:
    """Return the plan, and whether Ctrl-C cut the search short."""
    from memplan.solvers import Interrupted

    try:
        return solve(), False
    except Interrupted as stop:
        return stop.plan, True


def _referee(problem: Problem, plan: Plan) -> None:
    """Check before anything is printed or written: what is wrong here is our own mistake."""
    from memplan.errors import PlanError
    from memplan.verify import verify

    if plan.has_offsets:
        try:
            verify(problem, plan)
        except PlanError as error:
            raise RuntimeError(f"{plan.solver} made a plan that is wrong: {error}") from error


def _show(problem: Problem, plan: Plan, elapsed: float, interrupted: bool, top: int) -> None:
    from memplan.view import text

    console = output.console()
    console.print(text.plan_summary(problem, plan, elapsed=elapsed, interrupted=interrupted))
    if plan.has_offsets and len(problem):
        console.print()
        console.print(text.peak_buffers(problem, plan, top))


def _summary(
    problem: Problem,
    plan: Plan,
    elapsed: float,
    interrupted: bool,
    out: str | None,
    proof: str | None,
) -> dict[str, object]:
    return {
        "status": str(plan.status),
        "interrupted": interrupted,
        "peak": plan.peak,
        "lower_bound": plan.lower_bound,
        "gap": plan.gap,
        "capacity": problem.capacity,
        "buffers": len(problem),
        "sum_of_sizes": sum(problem.size.tolist()),
        "max_load": problem.max_load,
        "solver": plan.solver,
        "seconds": round(elapsed, 6),
        "nodes": plan.stats.get("nodes"),
        "conflict": list(plan.conflict),
        "problem": problem.fingerprint,
        "output": out if plan.has_offsets else None,
        "proof": proof if plan.stats.get("proof") else None,
    }


def _exit_code(plan: Plan, interrupted: bool) -> int:
    if plan.has_offsets:
        return output.OK
    if interrupted:
        return output.INTERRUPTED
    return output.INFEASIBLE if plan.status == "infeasible" else output.UNKNOWN

"""`memplan verify`: the independent check of a plan, and of a proof that no plan is better."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memplan.cli import blocks, memories, options, output, reading, shared
from memplan.cli.inputs import keep, keep_each

if TYPE_CHECKING:
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Loaded

NAME = "verify"
_KIND, _BEGIN = re.compile(rb'"kind"\s*:\s*"answer"'), 256  # of a whole answer, in its first bytes
EXAMPLES = (
    "memplan verify problem.csv plan.csv",
    "memplan verify problem.csv plan.csv --proof best.proof",
)


def command(
    problem: options.Input,
    model: options.Model,
    on: options.OnBoard,
    constraints: options.Constraints,
    rest: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MORE]... [PLAN]",
            help="A plan (CSV or JSON), or the folder of several; in front of the last, the other "
            "programs of its arena. The plan may be left out if there is a proof.",
            callback=keep_each,
        ),
    ] = None,
    proof: Annotated[
        str | None,
        typer.Option(
            "--proof",
            metavar="FILE",
            help="Check this proof, written by `memplan plan --proof`, and whether it shows that "
            "the plan is optimal.",
            callback=keep,
        ),
    ] = None,
) -> None:
    """Check a plan, a proof, or both: exit code 0 if they are right, 1 if one is not.

    A plan of `plan A B` is checked with those of the other programs, beside its file.

    The check shares no code with any solver. Give the options that the plan was made with:
    --pin, --reserve, --alignment, --dim, ...
    """
    others, plan = (rest[:-1], rest[-1]) if rest else ([], None)
    if plan is None and proof is None:
        raise typer.BadParameter("say what to check: a PLAN, a --proof, or both")
    if model.in_place and proof is not None:
        raise typer.BadParameter(
            "a proof is of one layout; leave out --in-place", param_hint="'--proof'"
        )
    answer = _find_answer(plan, [problem, *others])
    if answer is not None:
        if plan is not None and os.path.isdir(plan):
            _check_beside(plan, answer)
        _check_answer([problem, *others], answer, model, on)
        return
    if plan is not None and os.path.isdir(plan):
        if proof is not None:
            raise typer.BadParameter(
                "a proof is of one arena, not of several", param_hint="'--proof'"
            )
        _check_folder([problem, *others], plan, model, on, constraints)
        return
    _refuse_others(others, plan)
    _check_one(problem, plan, proof, model, on, constraints)


def _check_one(
    problem: str,
    plan: str | None,
    proof: str | None,
    model: options.Model,
    on: options.OnBoard,
    constraints: options.Constraints,
) -> None:
    """Check a plan of one program in one arena, and its proof."""
    held = options.Constraints(constraints.capacity)
    loaded = reading.read_input(problem, model, held, on.find())

    from memplan.view.words.plans import verified

    answered, peak = None, None
    if plan is not None:
        answered, loaded = _load_plan(loaded, plan)
    loaded = constraints.add_to(loaded)
    if plan is not None and answered is not None:
        layout = _check_plan(loaded, answered, plan, model.in_place)
        lines: list[str] = []
        if answered.shared is not None:
            lines = shared.verify_beside(layout, answered, plan, in_place=model.in_place)
        output.console().print(verified(layout.problem, answered))
        for line in lines:
            output.line(line)
        peak = answered.peak
    if proof is not None:
        ordered = answered is not None and "order" in answered.stats
        _check_proof(loaded, proof, peak, " of this order" if ordered else "")


def _find_answer(plan: str | None, inputs: Sequence[str]) -> str | None:
    """Return the file of a whole answer: the one that is named, or of several programs and places.

    Plans of one kind in a folder are checked one by one, so that what is wrong has a file.
    """
    if plan is None:
        return None
    if os.path.isfile(plan):
        return plan if _is_answer(plan) else None
    path = os.path.join(plan, reading.ANSWER)
    if len(inputs) < 2 or not os.path.isfile(path):
        return None
    from memplan.base.errors import FormatError

    try:
        is_one_kind = reading.read_plans(plan)[0] == "shared"
    except FormatError:  # parts of several programs in several places
        is_one_kind = False
    return None if is_one_kind else path


def _is_answer(path: str) -> bool:
    """Return whether a file is a whole answer: its content decides, as a plan may have its name."""
    with open(path, "rb") as file:
        return _KIND.search(file.read(_BEGIN)) is not None


def _check_answer(
    inputs: Sequence[str], path: str, model: options.Model, on: options.OnBoard
) -> None:
    """Check all of an answer with its programs; say why, and exit with 1, if it is wrong."""
    from memplan.ask import check_answer
    from memplan.base.errors import PlanError
    from memplan.view.units import plural

    programs = [reading.read_input(each, model, board=on.find()) for each in inputs]
    try:
        unproved = check_answer(programs if len(programs) > 1 else programs[0], path)
    except PlanError as error:
        output.message(f"{path}: {error}")
        raise typer.Exit(output.INFEASIBLE) from None
    output.line(f"valid: the answer for {plural(len(inputs), 'program')}, with all of its parts")
    for sentence in unproved:
        output.line(f"not checked: {sentence}")


def _check_beside(folder: str, path: str) -> None:
    """Check that a folder has the plan of each part of its answer; say what is wrong, exit with 1.

    Each plan was made for a problem, by which its part is found.
    """
    from memplan.ask import load_answer
    from memplan.problem import formats

    left = {part.name: part.plan for part in load_answer(path)}
    for name in sorted(os.listdir(folder)):
        file = os.path.join(folder, name)
        if not name.endswith(reading.PLAN_SUFFIX):
            continue
        lies = _find_places(formats.load_plan(file))
        part = next((each for each, plan in left.items() if _find_places(plan) == lies), None)
        if part is None:
            output.message(f"{file}: it is not the plan of a part of {path}")
            raise typer.Exit(output.INFEASIBLE)
        del left[part]
    if left:
        output.message(f"{folder}: there is no plan of {next(iter(left))}, a part of {path}")
        raise typer.Exit(output.INFEASIBLE)


def _find_places(plan: Plan) -> tuple[str | None, dict[str, int]]:
    """Return the problem of a plan, and where its buffers lie."""
    return plan.fingerprint, {id: plan.offset(id) for id in plan.ids}


def _load_plan(loaded: Loaded, path: str) -> tuple[Plan, Loaded]:
    """Read a plan, and return it with the program in the order that it is for.

    For an order that the referee rejects, say why, and exit with 1. An order of other operators is
    no order at all: a `FormatError`.
    """
    from memplan.base.errors import FormatError, GraphError, PlanError
    from memplan.problem import formats

    plan = formats.load_plan(path)
    blocks.refuse_alone(plan, path)
    memories.refuse_alone(plan, path)
    try:
        return plan, reading.follow_order(loaded, plan)
    except PlanError as error:
        output.message(f"{path}: {error}")
        raise typer.Exit(output.INFEASIBLE) from None
    except GraphError as error:
        raise FormatError(path, str(error)) from None


def _check_folder(
    inputs: Sequence[str],
    folder: str,
    model: options.Model,
    on: options.OnBoard,
    constraints: options.Constraints,
) -> None:
    """Check the plans in a folder: of programs in one arena, or of blocks or memories of one."""
    what, plans = reading.read_plans(folder)
    if what == "shared":
        given = {"--pin": bool(constraints.pin)}
        output.refuse_given(given, "it is of one program, and these plans are of several")
        shared.verify(inputs, folder, plans, model, constraints, on.find())
        return
    problem, *others = inputs
    _refuse_others(others, folder)
    if what == "blocks":
        loaded = reading.read_input(problem, model, constraints, on.find())
        blocks.verify(loaded, folder, plans, in_place=model.in_place)
        return
    given = {"--capacity": constraints.capacity is not None}
    output.refuse_given(given, "it is of one memory, and these plans are of several")
    loaded = reading.read_input(problem, model, constraints, on.find())
    memories.verify(loaded, folder, plans, in_place=model.in_place)


def _refuse_others(inputs: Sequence[str], plan: str | None) -> None:
    """Refuse several programs where the plan is of one, or there is none."""
    if inputs and plan is not None and not os.path.exists(plan):
        from memplan.base.errors import FormatError

        raise FormatError(plan, "there is no such file or folder")
    if inputs:
        raise typer.BadParameter(
            "several programs need the folder of `plan A B`, last", param_hint="'PLAN'"
        )


def _check_plan(loaded: Loaded, plan: Plan, path: str, in_place: bool) -> Loaded:
    """Return the layout that a plan is for, if the referee accepts the plan.

    For a plan that it rejects, say why, and exit with 1.
    """
    from memplan.base.errors import PlanError
    from memplan.solvers.planning import layout_of

    try:
        return layout_of(loaded, plan, in_place=in_place)
    except PlanError as error:
        output.message(f"{path}: {error}")
        raise typer.Exit(output.INFEASIBLE) from None


def _check_proof(loaded: Loaded, path: str, peak: int | None, what: str) -> None:
    """Say what a proof proves, and whether a plan with this peak is optimal; exit with 1 if not.

    `what` says of which order the plans are, if it is not the file's.
    """
    from memplan.base.errors import ProofError
    from memplan.referee import verify_proof
    from memplan.view.units import exact, plural

    try:
        claim = verify_proof(loaded, path)
    except ProofError as error:
        output.message(f"{path}: {error}")
        raise typer.Exit(output.INFEASIBLE) from None
    length = plural(claim.clauses, "clause")
    output.line(f"proved: no plan{what} has a peak of at most {exact(claim.cap)} ({length})")
    if peak is None:
        return
    if peak > claim.lower_bound:
        least = exact(claim.lower_bound)
        output.line(f"the plan may not be optimal: its peak is {exact(peak)}, not {least}")
        raise typer.Exit(output.INFEASIBLE)
    output.line(f"the plan is optimal: its peak is {exact(peak)}")

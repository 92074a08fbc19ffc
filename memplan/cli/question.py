"""What `memplan plan` is asked beyond one program in one arena: levers, scenarios and machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import typer

from memplan.cli import options, output, reading, sizes
from memplan.cli.memories import tell_memory
from memplan.cli.outputs import check_plan
from memplan.cli.reports import Report
from memplan.cli.request import Request, refuse_handed, refuse_without_levers

if TYPE_CHECKING:
    from memplan.answer import Answer, Step
    from memplan.ask import Machine
    from memplan.programs.sources import Figure, Loaded
    from memplan.programs.sources.loaded import Beside
    from memplan.runtimes.tflm.board_arena import BoardArena

__all__ = ["describe_step", "find_beside", "find_change", "make_report", "run"]


def find_change(found: Answer) -> Any:
    """Return the order or the re-runs of an answer about one program; `None` without them."""
    from memplan.levers.rewrite import Recomputed, Reordered

    changes = [step.change for step in found.steps if step.taken]
    return next((each for each in changes if isinstance(each, (Reordered, Recomputed))), None)


def make_report(request: Request, found: Answer) -> Report:
    """Return what is said of the one plan of an answer: of the program as the levers left it."""
    loaded, order = found.programs[0], find_change(found)
    figures: tuple[Figure, ...] = loaded.figures
    if request.model.runtime:
        loaded, more = reading.ask_runtime(loaded, request.inputs[0], request.model, request.board)
        figures += more
    if order is not None:
        figures = tuple(_of_given_order(figure) for figure in figures)
    interrupted = found.interrupted and str(found.plan.status) != "optimal"
    return Report(loaded, found.plan, found.seconds, interrupted, figures, None, order)


def _of_given_order(figure: Figure) -> Figure:
    what = ", ".join(filter(None, (figure.what, "in the order of the file")))
    return replace(figure, what=what)


def find_beside(request: Request, found: Answer) -> Beside | None:
    """Return what the runtime of one program needs beside its plan, whatever its order."""
    if len(found.programs) != 1 or not found.steps or not request.model.runtime:
        return None
    from pathlib import Path

    from memplan.programs.sources import measuring

    return measuring.find_beside(found.programs[0].source, Path(request.inputs[0]))


def describe_step(step: Step, request: Request, beside: Beside | None) -> None:
    """Print what a lever found: which operators move or wait, and what is proved of that."""
    from memplan.levers.rewrite import Recomputed, Reordered
    from memplan.levers.rewrite.waits import Waits

    output.line("")
    if isinstance(step.change, Waits):
        from memplan.view.words.apart import describe_apart

        output.console().print(describe_apart(step.change.apart, step.change))
    elif isinstance(step.change, Reordered):
        from memplan.view.words.orders import describe_order

        output.console().print(describe_order(step.change, request.showing.top, beside))
    elif isinstance(step.change, Recomputed):
        from memplan.view.words.again import describe_recomputed

        output.console().print(describe_recomputed(step.change))
    else:
        output.line(f"{step.lever}: {step.words}")


def run(request: Request, show: Callable[[Answer], None]) -> None:
    """Answer a question, print the answer, and write its plans.

    Parameters
    ----------
    request
        The options.
    show
        Prints an answer that is one part in one arena.
    """
    showing = request.showing
    _check(request)
    machine = _make_machine(request)
    output.check_libraries(*request.inputs)
    ranges = sizes.parse_ranges(request.model.dim or ()) if request.has_sizes else None
    programs, given = _read(request, machine, ranges)

    from memplan.scenarios.together import name_programs

    names = name_programs([output.names.get(each, each) for each in request.inputs])
    found = _ask(request, programs, names=names, machine=machine, sizes=ranges)
    notes = tuple(dict.fromkeys((*found.notes, *_list_board_notes(request))))
    found = replace(found, notes=notes)
    if request.writing.proof is not None:
        found = _prove(request, found)
    for path in request.inputs:
        reading.refuse_notes(path, notes if request.model.strict else ())
    is_whole = all(part.plan.has_offsets for part in found.parts)
    written = _write(request, found, given) if is_whole else []
    beside = _find_beside(request)
    is_one = len(found.parts) == 1 and machine.is_arena and not ranges
    if showing.as_json:
        own = find_beside(request, found)
        record: dict[str, Any] = {"source": [each.source for each in given]}
        if is_one:
            record = make_report(request, found).summary(None, request.writing.proof)
        record |= {**found.summary(), "output": written}
        record["beside"] = [asdict(each) for each in beside or filter(None, [own])]
        output.line(output.make_json(record))
    elif is_one and not showing.quiet:
        show(found)
    elif not showing.quiet:
        from memplan.view.words.answers import describe_answer

        output.console().print(describe_answer(found, showing.top))
        _tell_beside(request, found, beside, names)
    if not (showing.as_json or showing.quiet):
        output.tell_written(*written)
    output.tell_interrupted(found.interrupted, found.status)
    if not is_whole:
        _tell_unwritten(request)
        raise typer.Exit(output.exit_code(found.plan, found.interrupted))


def _tell_unwritten(request: Request) -> None:
    """Say which files keep what they have."""
    files = (request.outputs.plan, request.writing.program, request.outputs.drawing)
    for path in filter(None, files):
        output.message(f"no plan was found; {path} was not changed")


def _ask(request: Request, programs: list[Any], **given: Any) -> Answer:
    """Return the answer of `memplan.plan`; for scripts, also what there is none for."""
    from memplan.ask import plan
    from memplan.base.errors import InfeasibleError, PlanError

    asked, paths = request.question, request.paths.arguments(None)
    is_plain = len(programs) == 1 and not (given["sizes"] or request.paths.path)
    if request.paths.path:
        given |= {"paths": paths["paths"] or (), "known": paths["known"]}
    try:
        return plan(
            programs,
            levers=request.levers,
            keep=asked.keep or (),
            overlap=asked.list_pairs(),
            often=asked.count_runs(),
            where=asked.where or (),
            read_all=request.model.every_size,
            pure=request.rewriting.pure or (),
            max_extra=request.rewriting.max_extra,
            spill=asked.spill,
            costs=asked.costs,
            minimize=asked.minimize,
            solver=asked.solver,
            constrain=request.constraints.add_to if is_plain else None,
            **given,
            **vars(request.search),
        )
    except PlanError as error:
        if request.showing.as_json:
            _tell_unwritten(request)
            status = "infeasible" if isinstance(error, InfeasibleError) else "unknown"
            output.line(output.make_json({"status": status, "error": str(error)}))
        raise


def _prove(request: Request, found: Answer) -> Answer:
    """Return an answer whose one plan has a proof in a file: of the program that was chosen."""
    from memplan.solvers.refereed import find_plan

    objective = "min_peak" if request.question.minimize else None
    words = {**vars(request.search), "proof": request.writing.proof}
    plan = find_plan(found.problem, request.question.solver, objective, **words)
    if plan.peak is None or found.plan.peak is None or plan.peak > found.plan.peak:
        return found
    stats = {key: found.plan.stats[key] for key in ("order",) if key in found.plan.stats}
    (part,) = found.parts
    return replace(found, parts=(replace(part, plan=plan.with_stats(**stats)),))


def _check(request: Request) -> None:
    """Refuse what says nothing about several programs, or cannot be written, before the work."""
    asked, several, out = request.question, len(request.inputs) > 1, request.outputs.plan
    if not several:
        of_several = {"--keep": asked.keep, "--overlap": asked.overlap, "--often": asked.often}
        for option, is_given in of_several.items():
            if is_given:
                raise typer.BadParameter("it is of several programs", param_hint=f"'{option}'")
    if several or request.has_sizes:
        given = {"--pin": bool(request.constraints.pin)}
        output.refuse_given(given, "it is of one program, at one size")
    program = request.writing.program
    if request.paths.path:
        constraints = request.constraints
        named = {"--pin": bool(constraints.pin), "--reserve": bool(constraints.reserve)}
        output.refuse_given(named, "plans of paths do not keep to it; leave out --path")
        if out is not None or request.outputs.drawing is not None:
            raise typer.BadParameter(
                "plans of paths go into a header in C: -o FILE.h", param_hint="'--output'"
            )
    if program is not None:
        if several or not request.levers:
            raise typer.BadParameter(
                "it writes what --levers made of one program", param_hint="'--program'"
            )
        output.check_suffix(program, {".json": "the program"})
    if asked.penalties is not None and request.search.threads is not None:
        raise typer.BadParameter(
            "the search of --penalties runs in one thread", param_hint="'--threads'"
        )
    if request.memories.texts and len(request.memories.texts) > 1:
        given = {"--threads": request.search.threads is not None, "--seed": request.search.seed > 0}
        output.refuse_given(given, "it is of one arena; leave out --memory")
    refuse_without_levers(request)
    refuse_handed(request)
    drawing, proof = request.outputs.drawing, request.writing.proof
    files = {"--output": out, "--program": program, "--proof": proof, "the drawing": drawing}
    if drawing is not None:
        _check_drawing(request, drawing)
    if request.is_one_arena:
        output.check_outputs(files, *request.inputs)
        check_plan(out)
        is_csv = out is not None and not out.endswith(".json")
        if is_csv and {"again", "order"} & {*request.levers}:
            raise typer.BadParameter(
                "a plan in CSV cannot say which order it is for; write JSON (.json)",
                param_hint="'--output'",
            )
    elif _has_parts(request):
        output.check_folder(out)
        output.check_output(program, *request.inputs)
    else:
        output.check_outputs(files, *request.inputs)
        check_plan(out)


def _check_drawing(request: Request, drawing: str) -> None:
    """Refuse a page or a picture of what it cannot show, before the work."""
    if not request.is_one_arena:
        raise typer.BadParameter(
            f"{drawing} is of one plan in one arena; write the plans into a folder, and draw each "
            "with memplan view",
            param_hint="'--output'",
        )
    output.choose_drawing(drawing, *request.inputs)


def _has_parts(request: Request) -> bool:
    """Return whether the answer has a plan for each of several parts."""
    asked = request.question
    return bool(len(request.inputs) > 1 or request.memories.texts or asked.block_limit)


def _make_machine(request: Request) -> Machine:
    """Return the machine that the options say."""
    from memplan.ask import Machine

    constraints = request.constraints
    memories, rest = request.memories.parse()
    several = len(request.inputs) > 1 or request.has_sizes
    capacity = constraints.capacity if several or not constraints.capacity else None
    if memories and constraints.capacity is not None:
        raise typer.BadParameter(
            "it is of one arena; give each --memory a size", param_hint="'--capacity'"
        )
    return Machine(
        memories,
        capacity=capacity,
        block=request.question.block_limit,
        penalties=request.question.penalties,
        reserved=tuple(constraints.list_reserved()) if several else (),
        **(rest if memories else {}),
    )


def _read(
    request: Request, machine: Machine, ranges: Mapping[str, str] | None
) -> tuple[list[Any], list[Loaded]]:
    """Return the programs as `memplan.plan` takes them, and as they were read."""
    model = request.model
    if ranges is not None:
        is_plain = replace(model, read=None) == options.Model(model.dim) and not model.read
        alone = len(request.inputs) == 1 and is_plain
        made = [each if alone else sizes.make_reader(each, model) for each in request.inputs]
        return made, []
    limits = options.Constraints(request.constraints.capacity if len(request.inputs) == 1 else None)
    settled = {"block-limit"} if request.question.block_limit else ()
    loaded = [
        reading.read_input(each, model, limits, request.board, settled) for each in request.inputs
    ]
    for memory in machine.memories:
        reading.require_unit(memory.capacity, *loaded)
    reading.require_unit(request.constraints.capacity, *loaded)
    reading.require_unit(request.question.block_limit, *loaded)
    return list(loaded), loaded


def _list_board_notes(request: Request) -> list[Any]:
    """Return how much of one of the memories TFLM takes for itself."""
    from memplan.cli.memories import note_kept

    if request.board is None or not request.memories.texts:
        return []
    return [note_kept(path, request.board) for path in request.inputs]


def _find_beside(request: Request) -> list[BoardArena]:
    """Return the arena of each program, of which TFLM keeps a part beside the shared one."""
    if request.board is None or len(request.inputs) == 1:
        return []
    from pathlib import Path

    from memplan.runtimes.tflm.board_arena import compute_arena

    return [compute_arena(Path(each), request.board) for each in request.inputs]


def _tell_beside(
    request: Request, found: Answer, beside: Sequence[BoardArena], names: Sequence[str]
) -> None:
    if not beside or not request.is_arena:
        return
    from memplan.view.words.parts import tell_unknown

    sizes = zip(beside, names, strict=True)
    kept = ", ".join(f"{each.persistent:,} for {name}" for each, name in sizes)
    arena = int(found.axis("peak").found or 0)
    whole = f"{arena + sum(each.persistent for each in beside):,} bytes"
    unknown = sorted({type for each in beside for type in each.unknown})
    output.line(
        f"TFLM on {request.board} keeps beside it {kept}: {whole} in all{tell_unknown(unknown)}"
    )


def _write(request: Request, found: Answer, given: Sequence[Loaded]) -> list[str]:
    """Write the plans, and the program that was planned; return the files."""
    from memplan.problem import formats
    from memplan.problem.formats.json import write_plan

    files: dict[str, bytes] = {}
    change, out, program = find_change(found), request.outputs.plan, request.writing.program
    if out is not None and change is not None and len(given) == 1:
        from memplan.levers.rewrite import Recomputed, require_stored

        runs = change.runs if isinstance(change, Recomputed) else change.order
        require_stored(given[0], runs, change.loaded, request.inputs[0])
    if out is not None and _has_parts(request):
        names = {part.name: _name_file(part.name, part.program, part.place) for part in found}
        plans = {
            os.path.join(out, names[part.name]): tell_memory(
                found, part, request.memories.all_reads
            )
            for part in found
        }
        _refuse_left(out, plans)
        files |= _save_whole(found, out) if plans else {}
        files |= {path: write_plan(plan).encode() for path, plan in plans.items()}
    elif out is not None:
        files |= formats.render(found.plan, out)
    if program is not None:
        from memplan.programs.sources.graph_json import write_graph

        graph = found.programs[0].graph
        files[program] = write_graph(graph).encode()
    formats.write_files(files)
    drawing = request.outputs.drawing
    if drawing is not None:
        from memplan.cli.view import draw_plan

        draw_plan(request.inputs[0], found.programs[0], found.plan, drawing)
    return [*files, *([drawing] if drawing else [])]


def _save_whole(found: Answer, folder: str) -> dict[str, bytes]:
    """Return the file with the whole answer, which `memplan verify` checks with all programs."""
    from memplan.ask.saved import write_answer
    from memplan.base.errors import MemplanError

    try:
        return {os.path.join(folder, reading.ANSWER): write_answer(found).encode()}
    except MemplanError:  # it says what JSON does not have; the plans are there all the same
        return {}


def _name_file(name: str, program: str, place: str) -> str:
    """Return the file of a part: that of its program, its memory or its block, or of both."""
    both = place and name != place
    stem = f"{program}.{place}" if both else name
    return f"{stem.replace(' ', '-').replace('/', '.')}{reading.PLAN_SUFFIX}"


def _refuse_left(folder: str, files: Mapping[str, Any]) -> None:
    """Refuse a folder with plans of another answer, which would be taken for a part of this one."""
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        if name.endswith(reading.PLAN_SUFFIX) and path not in files:
            raise typer.BadParameter(
                f"{path} is there, and is none of these {len(files)} plans; give another folder",
                param_hint="'--output'",
            )

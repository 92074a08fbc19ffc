"""`memplan inspect`: how much a problem needs, when, because of which buffers, and if it fits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memplan.cli import boards, fit, options, output, reading

if TYPE_CHECKING:
    from rich.console import Console

    from memplan.analysis.inspection import Inspection, Refusal, Trial
    from memplan.programs.sources import Figure, Loaded
    from memplan.scenarios.paths import PathPlans

NAME = "inspect"
EXAMPLES = (
    "memplan inspect model.tflite --capacity 64KiB --board cortex-m4",
    "memplan inspect model.onnx --dim batch=8 --in-place",
)


@dataclass(frozen=True)
class _Asked:
    """The options that only this command has."""

    why: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--why",
            metavar="A B",
            help="Only explain why these two tensors of a program may share memory, or may not.",
        ),
    ] = None
    suggest_sync: Annotated[
        bool,
        typer.Option(
            "--suggest-sync",
            help="Also show which synchronization between streams of a program would save "
            "most memory.",
        ),
    ] = False


def command(
    input: options.Input,
    *,
    model: options.Model,
    constraints: options.Constraints,
    trials: options.Trials,
    paths: options.Paths,
    on: options.OnBoard,
    measure: options.Measure = False,
    top: options.Top = 10,
    as_json: options.AsJson = False,
    asked: _Asked,
) -> None:
    """Show how much memory is needed and when, which buffers cause it, and what would reduce it.

    With a capacity, also show whether a plan fits; if not, how many bytes are missing, when,
    which buffers cannot be placed together, and which single change would help. The exit code is 0
    whenever there is an answer, even if the problem does not fit.
    """
    if as_json and (asked.why is not None or asked.suggest_sync):
        raise typer.BadParameter("--why and --suggest-sync answer in words", param_hint="'--json'")
    output.check_libraries(input, extras=("torch",) * measure)
    board = on.find()
    loaded = reading.read_input(input, model, constraints, board)
    if asked.why is not None:
        output.line(_explain_sharing(loaded, *asked.why))
        return

    from memplan.analysis.inspection import inspect

    figures: tuple[Figure, ...] = ()
    measured = None
    if model.runtime:
        loaded, figures = reading.ask_runtime(loaded, input, model, board)
    if measure:
        loaded, measured = reading.measure(loaded, input, model)
    found = inspect(loaded, in_place=model.in_place, figures=figures, **vars(trials))
    output.tell_interrupted(found.interrupted, "the best so far")
    needs = None if board is None else boards.compute(Path(input), found, board)
    planned = _plan_paths(found.loaded, trials, paths)
    if as_json:
        record = None if measured is None else asdict(measured)
        outcome = None if planned is None else _summarise_paths(planned)
        more = {"measured": record, "paths": outcome, "board": needs and needs.summarise()}
        output.line(output.make_json(_summary(found) | more))
        return

    console = output.console()
    _print_needs(input, found, needs, top, constraints.capacity, model.dim)
    _print_paths(found.loaded, planned, console)
    _print_streams(found.loaded, console, asked.suggest_sync, model.in_place)
    if loaded.notes:
        from memplan.view.words import parts

        console.print(parts.render_notes(loaded.notes))
    if measured is not None:
        from memplan.view.words import measured as words

        console.print()
        console.print(words.describe_run(measured, found.plan.peak))


def _plan_paths(loaded: Loaded, trials: options.Trials, paths: options.Paths) -> PathPlans | None:
    """Return the plans of the paths that are asked for."""
    if not paths.path:
        return None
    from memplan.scenarios.paths import plan_paths

    limits: dict[str, Any] = vars(trials) | paths.arguments(trials.nodes)
    return plan_paths(loaded, **limits)


def _print_needs(
    input: str,
    found: Inspection,
    needs: boards.Needs | None,
    top: int,
    capacity: int | None,
    dim: list[str] | None,
) -> None:
    """Print what is needed, here or on a board, and what may help if that is too much."""
    from memplan.view.words import problems

    console = output.console()
    console.print(problems.inspection(found, top))
    misses = needs is None and found.shortage is not None and not found.shortage.fits
    if misses and (advice := fit.suggest(input, found.loaded, capacity, dim)):
        output.line(f"\n{advice}.")
    if needs is not None:
        console.print()
        console.print(needs.describe())


def _summary(found: Inspection) -> dict[str, Any]:
    """Return all that is known, for scripts to read; amounts are in bytes."""
    problem, savings, shortage = found.loaded.problem, found.savings, found.shortage
    return {
        "source": found.loaded.source,
        "in_place": found.loaded.in_place,
        "tensors": found.loaded.tensors,
        "buffers": len(problem),
        "problem": problem.fingerprint,
        "naive": sum(problem.size.tolist()),
        "runtimes": [asdict(figure) for figure in found.figures],
        "planned": {
            "peak": found.plan.peak,
            "proved": found.proved,
            "solver": found.plan.stats.get("solver"),
        },
        "lower_bound": found.lower_bound,
        "max_load": {
            "bytes": savings.peak,
            "start": savings.start,
            "end": savings.end,
            "sections": savings.count,
        },
        "live": _list_live(found),
        "trials": [_summarise_trial(found, trial) for trial in found.trials],
        "capacity": None
        if shortage is None
        else {
            "bytes": shortage.capacity,
            "available": shortage.available,
            "fits": shortage.fits,
            "required": shortage.required,
            "sufficient": shortage.sufficient,
            "excess": shortage.excess,
            "sections": [asdict(section) for section in shortage.sections],
            "section_count": shortage.section_count,
            "subset": list(shortage.subset),
            "irreducible": shortage.irreducible,
        },
        "order": _summarise_order(found),
        "less": _summarise_less(found),
        "outside": _summarise_outside(found),
        "arena": None if found.loaded.arena is None else asdict(found.loaded.arena),
        "out_of_memory": [_summarise_refusal(each) for each in found.refusals],
        "notes": [asdict(note) for note in found.loaded.notes],
        "interrupted": found.interrupted,
    }


def _summarise_refusal(refusal: Refusal) -> dict[str, Any]:
    """Return what is known of a request for memory that the recorded run did not get."""
    return {
        **asdict(refusal.failure),
        "room": refusal.failure.room,
        "live": refusal.live,
        "held": [{"id": each.id, "bytes": each.bytes} for each in refusal.held],
        "planned": None
        if refusal.plan is None
        else {"peak": refusal.plan.peak, "lower_bound": refusal.plan.lower_bound},
        "fits": refusal.fits,
    }


def _summarise_order(found: Inspection) -> dict[str, Any] | None:
    """Return what other orders need, or why they were not tried."""
    if isinstance(found.order, str):
        return {"refused": found.order}
    from memplan.ask.facts import summarise_change

    return None if found.order is None else summarise_change(found.order)


def _summarise_less(found: Inspection) -> dict[str, Any] | None:
    """Return what a tenth less memory costs, as a share of one plain run; `None` if not tried."""
    from memplan.levers.rewrite import Recomputed

    less = found.less
    if less is None:
        return None
    plain, limits = less.plain or 1, less.limits if isinstance(less, Recomputed) else less
    return {
        "capacity": less.capacity,
        "extra": round(less.share, 9) if isinstance(less, Recomputed) else None,
        "bound": round(less.bound / plain, 9),
        "order_bound": round(less.order_bound / plain, 9),
        "impossible": limits.is_impossible,
        "floor": {"bytes": less.floor, "operator": less.floor_operator},
    }


def _summarise_outside(found: Inspection) -> dict[str, Any] | None:
    """Return what a second memory would serve, and what 1 KiB more of this one saves, and when."""
    from memplan.view.words.memories import save_by_more

    outside = found.outside
    if outside is None:
        return None
    return {
        "traffic": outside.traffic,
        "bound": outside.bound,
        "buffers": list(outside.plans[1].ids),
        "saved_by_1_kib": [
            {"start": each.start, "end": each.end, "bytes": round(each.saved)}
            for each in save_by_more(outside.prices[0])
        ],
    }


def _list_live(found: Inspection) -> list[dict[str, Any]]:
    """Return the buffers live at the greatest load, the most bytes first, with their savings."""
    from memplan.analysis.savings import Change

    problem, savings, labels = found.loaded.problem, found.savings, found.loaded.labels
    enough = {change: set(found.enough(change)) for change in Change}
    after = {change: savings.after[change].tolist() for change in Change}
    live: list[dict[str, Any]] = []
    for at, (row, held) in enumerate(
        zip(savings.rows.tolist(), savings.bytes.tolist(), strict=True)
    ):
        changes: dict[str, Any] = {}
        for change in Change:
            load = after[change][at]
            changes[change] = None
            if load >= 0:
                changes[change] = {"max_load": load, "saved": savings.peak - load}
                if found.shortage is not None:
                    changes[change]["load_fits"] = (
                        at in enough[change] or savings.peak <= found.shortage.available
                    )
        changes["moved"] = changes[Change.REMOVED]
        live.append(
            {
                "id": problem.ids[row],
                "bytes": held,
                "share": held / savings.peak,
                "size": int(problem.size[row]),
                "start": int(problem.start[row]),
                "end": int(problem.end[row]),
                **(asdict(labels[row]) if labels else {}),
                **changes,
            }
        )
    return live


def _summarise_trial(found: Inspection, trial: Trial) -> dict[str, Any]:
    """Return what was found of one change."""
    from memplan.analysis.savings import Change

    savings = found.savings
    ids = savings.problem.ids
    record: dict[str, Any] = {
        "change": trial.change,
        "ids": [ids[row] for row in trial.rows],
        "max_load": trial.worst.load,
        "saved": savings.peak - trial.worst.load,
        "start": trial.worst.start,
        "end": trial.worst.end,
        "planned": {"peak": trial.plan.peak, "proved": trial.proved},
    }
    if trial.change is Change.RECOMPUTED:
        remake = savings.remakes[trial.rows[0]]
        record |= {"dropped": remake.dropped, "again": remake.again, "by": remake.by}
        record["kept"] = [ids[each] for each in remake.kept]
    if trial.change is Change.FUSED:
        fusions = savings.fusions_for(trial.rows)
        record |= {
            "operators": [name for each in fusions for name in each.operators],
            "not_stored": [ids[row] for each in fusions for row in each.rows],
            "runs": [each.operators for each in fusions],
        }
    return record


def _summarise_paths(found: PathPlans) -> dict[str, Any]:
    from memplan.ask.facts import summarise_paths

    return summarise_paths(found)


def _print_paths(loaded: Loaded, found: PathPlans | None, console: Console) -> None:
    """Show the plans of paths, or that there could be some."""
    from memplan.scenarios.paths import list_choices
    from memplan.view.words import paths as words

    choices = list_choices(loaded)
    if found is not None or choices:
        console.print()
        console.print(words.describe_paths(found) if found else words.describe_choices(choices))


def _print_streams(loaded: Loaded, console: Console, suggest: bool, in_place: bool) -> None:
    """Show what the streams of a program cost, and what would make it less."""
    from memplan.base.errors import MemplanError
    from memplan.programs.sources.loaded import explain_bare

    graph, layout = loaded.graph, loaded.layout
    if graph is None or layout is None:
        if suggest:
            raise MemplanError(explain_bare(loaded.source, "which --suggest-sync is about"))
        return
    if len({operator.stream for operator in graph.operators}) < 2:
        if suggest:
            raise MemplanError(
                "the program has only one stream, so there is nothing to synchronize"
            )
        return

    from memplan.analysis import sync
    from memplan.view import sync as view

    console.print()
    console.print(view.cost_of_safety(graph, sync.cost_of_safety(layout)))
    if suggest:
        console.print()
        found = sync.suggest_sync(graph, in_place=in_place)
        console.print(view.suggestions(graph, found))


def _explain_sharing(loaded: Loaded, a: str, b: str) -> str:
    from memplan.base.errors import MemplanError
    from memplan.programs.graph import why
    from memplan.programs.sources.loaded import explain_bare

    if loaded.layout is None:
        raise MemplanError(explain_bare(loaded.source, "which --why is about"))
    return str(why(loaded.layout, a, b))

"""Reads inputs as the options of the command line say."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from memplan.cli import options

if TYPE_CHECKING:
    from memplan.base.notes import Note
    from memplan.problem.plan import Plan
    from memplan.programs.graph import Graph, Kind
    from memplan.programs.sources import Figure, Loaded
    from memplan.programs.sources.options import Board
    from memplan.runtimes.torch.measure.run import Measured


PLAN_SUFFIX: Final = ".plan.json"  # of the files in a folder of plans
ANSWER: Final = "answer.json"  # the whole of it, in the same folder
_PLAIN, _NONE = options.Model(), options.Constraints()


def measure(loaded: Loaded, path: str, model: options.Model) -> tuple[Loaded, Measured]:
    """Run a program for `--measure`; the input gets a note if the run held more than is planned."""
    hint = "'--measure'"
    if loaded.source != "torch":
        raise typer.BadParameter(
            f"only programs of PyTorch (.pt2) can be run, not {loaded.source}", param_hint=hint
        )
    if model.include or model.exclude:
        raise typer.BadParameter("leave out --read include and exclude", param_hint=hint)
    from memplan.runtimes.torch.measure.run import measure_file

    found = measure_file(Path(path), model.reading())
    notes = found.make_notes()
    refuse_notes(path, notes if model.strict else ())
    return replace(loaded, notes=(*loaded.notes, *notes)), found


def ask_runtime(
    loaded: Loaded, path: str, model: options.Model, board: Board | None = None
) -> tuple[Loaded, tuple[Figure, ...]]:
    """Ask the format's own runtime, if it is installed, what it needs and what it refuses."""
    if loaded.graph is None:
        return loaded, ()
    from memplan.programs.sources import measuring

    asked = replace(model.reading(), board=board)
    figure = measuring.measure(loaded.source, Path(path), asked)
    figures = () if figure is None else (figure,)
    notes = measuring.join_notes(loaded.notes, figures)
    refuse_notes(path, notes if model.strict else ())
    return replace(loaded, notes=notes), figures


def read_input(
    path: str,
    model: options.Model = _PLAIN,
    constraints: options.Constraints = _NONE,
    board: Board | None = None,
    settled: Collection[str] = (),
) -> Loaded:
    """Load an input of any kind, and add to its problem what the command line says.

    Nothing is laid out in place, because `memplan.plan_model` chooses between the layouts. With
    `--strict` notes are errors, but for those with a code in `settled`, which the caller settles.
    """

    def refuse() -> None:
        notes = [note for note in loaded.notes if note.code not in settled]
        refuse_notes(path, notes if model.strict else ())

    from memplan.programs import sources
    from memplan.solvers.planning import capacity_to_load, hold_capacity, settle_sizes

    read = partial(
        sources.load,
        path,
        capacity=capacity_to_load(path, constraints.capacity),
        pins=model.keeps_offsets,
        limit_factor=model.limit_factor,
        runtime_order=model.runtime_order,
        fused=model.fused,
        part=model.part,
        board=board,
    )
    loaded = read(dims=model.reading().dims)
    require_unit(constraints.capacity, loaded)
    if model.runtime:
        loaded = settle_sizes(loaded, path, model.reading(), read)
    if model.strict and any(note.code == "runtime-refuses" for note in loaded.notes):
        loaded, _ = ask_runtime(loaded, path, model)  # it knows better what it takes
    refuse()
    if model.include or model.exclude:
        loaded = _with_kinds(loaded, model)
    if model.alignment > 1:
        loaded = _with_alignment(loaded, model.alignment)
    loaded = hold_capacity(loaded, path, constraints.capacity, board)
    refuse()
    return constraints.add_to(loaded)


def require_unit(size: int | None, *programs: Loaded) -> None:
    """Ask for the unit of a size that is absurdly little for programs, before the work."""
    from memplan.base import sizes

    largest = (int(each.problem.size.max(initial=0)) for each in programs)
    sizes.require_unit(size, max(largest, default=0))


def follow_order(loaded: Loaded, plan: Plan) -> Loaded:
    """Return a program in the order that a plan of `plan --levers order` says, if it says one."""
    if "order" not in plan.stats:
        return loaded
    from memplan.levers.rewrite import put_in_order

    return put_in_order(loaded, plan.stats["order"])


# By the field of its `stats` that says it: what the plan in a folder of several is.
_PARTS: Final = {
    "shared": "of a program that shares its arena",
    "blocks": "of one of several blocks",
    "memory": "of one of several memories",
}


def read_plans(folder: str) -> tuple[str, dict[str, Plan]]:
    """Return the plans in a folder by path, and which they are: a key of `_PARTS`."""
    from memplan.base.errors import FormatError
    from memplan.problem import formats

    names = sorted(name for name in os.listdir(folder) if name.endswith(PLAN_SUFFIX))
    plans = {path: formats.load_plan(path) for path in (os.path.join(folder, n) for n in names)}
    if not plans:
        raise FormatError(
            folder,
            f"this folder has no plan (*{PLAN_SUFFIX}), as `memplan plan` writes them of several "
            "programs, memories or blocks",
        )
    first = next((each for each in _PARTS if any(each in p.stats for p in plans.values())), "")
    what = _PARTS.get(first, "of one of several programs, memories or blocks")
    for path, plan in plans.items():
        if first not in plan.stats:
            raise FormatError(path, f"this plan is not {what}; a folder of plans has only such")
    return first, plans


def find_plan(path: str) -> Plan | None:
    """Return the plan in a file, or `None` if the file is not a plan."""
    from memplan.base.errors import FormatError
    from memplan.problem import formats

    try:
        return formats.load_plan(path)
    except FormatError:
        return None


def refuse_notes(path: str, notes: Sequence[Note]) -> None:
    """Make an error of what was assumed or left out, as `--strict` asks."""
    from memplan.base.errors import FormatError
    from memplan.view.units import plural

    if notes:
        others = f" (and {plural(len(notes) - 1, 'more note')})" if len(notes) > 1 else ""
        raise FormatError(path, f"{notes[0].text} [{notes[0].code}]{others}")


def _with_kinds(loaded: Loaded, model: options.Model) -> Loaded:
    from memplan.base.errors import MemplanError

    graph = loaded.graph
    also = _parse_kinds(model.include or (), "'--read'")
    never = _parse_kinds(model.exclude or (), "'--read'")
    if graph is None:
        raise MemplanError(f"a {loaded.source} file does not distinguish kinds of tensors")
    return _with_graph(loaded, replace(graph, planned=(graph.planned | also) - never))


def _with_alignment(loaded: Loaded, unit: int) -> Loaded:
    """Align every offset to `unit` too; a program aligns the offsets of all its layouts."""
    if loaded.graph is None:
        return replace(loaded, problem=loaded.problem.with_alignment(unit))
    both = math.lcm(loaded.graph.alignment, unit)
    return _with_graph(loaded, replace(loaded.graph, alignment=both))


def _with_graph(loaded: Loaded, graph: Graph) -> Loaded:
    """Return an input whose graph was changed, laid out again."""
    from memplan.programs import sources

    made = sources.of_graph(graph, figures=loaded.figures, notes=loaded.notes)
    problem = made.problem.with_capacity(loaded.problem.capacity)
    return replace(made, problem=problem, source=loaded.source)


def _parse_kinds(texts: Sequence[str], hint: str) -> frozenset[Kind]:
    from memplan.programs.graph import Kind

    kinds = []
    for text in texts:
        try:
            kinds.append(Kind(text.removesuffix("s")))
        except ValueError:
            known = ", ".join(f"{kind}s" for kind in Kind)
            raise typer.BadParameter(f"{text!r} is none of {known}", param_hint=hint) from None
    return frozenset(kinds)

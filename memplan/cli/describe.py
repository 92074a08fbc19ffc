"""`memplan FILE`: what a file is, and what can be done with it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memplan.cli import options, output, reading

if TYPE_CHECKING:
    from memplan.problem.plan import Plan
    from memplan.programs.sources import Loaded

NAME = "file"

_Steps = list[tuple[str, str]]  # commands, each with what it does


def command(input: options.Input, dim: options.Dim = None, read: options.Read = None) -> None:
    """Show what a file is, and what can be done with it. `memplan FILE` is enough."""
    from memplan.base.errors import MemplanError
    from memplan.programs import sources
    from memplan.programs.sources import registry

    name = output.names.get(input, input)
    if _is_proof(input):
        output.line(f"{name} is a proof that no plan is better.")
        _show([(f"memplan verify PROBLEM PLAN --proof {shlex.quote(name)}", "check it")])
        return
    kind = sources.detect(input)
    try:
        loaded = reading.read_input(input, model=options.Model(dim, read=read))
    except MemplanError:
        plan = reading.find_plan(input) if kind in ("csv", "json") else None
        if plan is None:
            if kind not in ("csv", "json"):  # any text passes for CSV
                output.line(f"{name} is {registry.find_format(kind).what}.")
            raise
        _describe_plan(name, plan)
    else:
        _describe_input(name, loaded, dim or ())


def _is_proof(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(14) == b"memplan-proof "
    except OSError:  # the reader of the input says why
        return False


def _describe_plan(name: str, plan: Plan) -> None:
    from memplan.view.units import exact, plural

    quoted = shlex.quote(name)
    size = f" with a peak of {exact(plan.peak)}" if plan.peak is not None else ""
    output.line(f"{name} is a plan of {plural(len(plan.ids), 'buffer')}{size}.")
    _show(
        [
            (f"memplan verify PROBLEM {quoted}", "check it against its problem"),
            (f"memplan view PROBLEM {quoted}", "draw it"),
            (f"memplan compare OLD_PLAN {quoted}", "show what grew"),
        ]
    )


def _describe_input(name: str, loaded: Loaded, dims: Sequence[str]) -> None:
    from memplan.programs.sources import registry
    from memplan.view.units import human, plural
    from memplan.view.words.parts import add_up

    problem, kind = loaded.problem, registry.find_format(loaded.source).what
    buffers = plural(len(problem), "buffer")
    tensors = f"{plural(loaded.tensors, 'tensor')} in " if loaded.labels else ""
    output.line(f"{name} is {kind} with {tensors}{buffers} to plan.")
    output.line(
        f"Without sharing they need {human(add_up(problem.size))}; "
        f"{human(problem.max_load)} are live at one time."
    )
    file = " ".join([shlex.quote(name), *(f"--dim {shlex.quote(each)}" for each in dims)])
    stem = "stdin" if name == "-" else os.path.splitext(os.path.basename(name))[0]
    stem = shlex.quote(stem)
    steps = [
        (f"memplan inspect {file}", "show where the memory goes"),
        (f"memplan plan {file} -o {stem}.plan.csv", "place the buffers"),
        (f"memplan view {file} -o {stem}.html", "write a page to look around in"),
    ]
    if loaded.graph is not None:
        steps.append((f"memplan fit {file} 256KiB", "make it fit, and see what that costs"))
    if registry.find_format(loaded.source).has_arena:
        steps.append(
            (f"memplan plan {file} -o {stem}.planned.tflite", "write the plan into the model")
        )
    steps.append((f"memplan plan {file} -o {stem}.h", "write the offsets for C and C++"))
    _show(steps)


def _show(steps: _Steps) -> None:
    """Print commands as lines to copy, each with what it does."""
    width = max(len(line) for line, _ in steps)
    output.line("")
    for line, what in steps:
        output.line(f"  {line:<{width}}   # {what}")

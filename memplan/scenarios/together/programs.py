"""The programs that share an arena: their names, and what each of them keeps."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memplan.base.errors import MemplanError, PlanError, listed, quoted
from memplan.problem import Problem
from memplan.programs.graph.states import State, add_states, find_states
from memplan.solvers.planning import Planned

__all__ = ["Program", "check_names", "find_pairs", "keep_tensors", "name_programs"]

_STATES: Final = "states"
_KINDS: Final = ("inputs", "outputs", "variables")  # all of which can be kept at once


@dataclass(frozen=True)
class Program:
    """A program, and what is placed of it."""

    name: str  # for people
    planned: Planned  # its plan in an arena of its own
    problem: Problem  # its buffers, and then its states that are placed
    # The rows that keep their bytes until it runs again; states are among them.
    kept: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """The number of buffers without states."""
        return len(self.planned.problem)

    @property
    def kept_ids(self) -> tuple[str, ...]:
        """The ids of what is kept."""
        return tuple(self.problem.ids[row] for row in self.kept)


def name_programs(paths: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Return a name for each file, without folder and suffix; files of one name are numbered."""
    seen: Counter[str] = Counter()
    called = []
    for path in paths:
        stem = Path(path).name.partition(".")[0] or "program"
        seen[stem] += 1
        called.append(stem if seen[stem] == 1 else f"{stem}-{seen[stem]}")
    return tuple(called)


def check_names(names: Sequence[str], programs: int) -> tuple[str, ...]:
    """Return names that are as many as the programs, and differ."""
    if len(names) != programs:
        raise MemplanError(f"there are {len(names)} names for {programs} programs")
    for name, times in Counter(names).items():
        if times > 1:
            raise MemplanError(f"two programs have the name {quoted(name)}; name them differently")
    return tuple(names)


def keep_tensors(programs: Sequence[Program], keep: Iterable[str]) -> list[Program]:
    """Return the programs with what they keep, as `plan_together` is asked."""
    found = list(programs)
    for text in keep:
        for at, rows, states in _find_kept(programs, text):
            each = found[at]
            if states:
                layout = each.planned.loaded.layout
                assert layout is not None  # it has the states
                each = replace(each, problem=add_states(each.planned.problem, layout, states))
                rows = list(range(each.rows, len(each.problem)))
            found[at] = replace(each, kept=tuple(sorted({*each.kept, *rows})))
    return found


def _find_kept(
    programs: Sequence[Program], text: str
) -> list[tuple[int, list[int], tuple[State, ...]]]:
    """Return which rows and states of which programs a text names."""
    called = [each.name for each in programs]
    owner, colon, rest = text.partition(":")
    choices = [(range(len(called)), text)]
    if colon and owner in called:
        choices.append((range(called.index(owner), called.index(owner) + 1), rest))
    for which, name in choices:
        found = []
        for at in which:
            rows = _find_rows(programs[at].planned, name)
            states = _find_states(programs[at].planned) if name == _STATES else ()
            if rows or states:
                found.append((at, rows, states))
        if len(found) > 1 and name not in (*_KINDS, _STATES):
            several = listed([called[at] for at, *_ in found])
            raise MemplanError(f"{several} each have a tensor {quoted(name)}; write PROGRAM:TENSOR")
        if found:
            return found
    raise MemplanError(
        f"no tensor {quoted(text)} is planned in {listed(called)}; name a tensor, a "
        f"PROGRAM:TENSOR, or all {', '.join((*_KINDS, _STATES))}"
    )


def _find_rows(planned: Planned, name: str) -> list[int]:
    """Return the rows of a tensor, of a buffer, or of all tensors of a kind."""
    problem = planned.problem
    _refuse_overwritten(planned, name)
    if name in problem.ids:
        return [problem.index(name)]
    return [
        row
        for row, label in enumerate(planned.loaded.labels)
        if name in label.tensors or (name in _KINDS and f"{label.kind}s" == name)
    ]


def _refuse_overwritten(planned: Planned, name: str) -> None:
    """Refuse to keep what an operator writes its result over in this layout."""
    layout = planned.loaded.layout
    if layout is None or not planned.loaded.in_place:
        return
    graph = layout.graph
    over = {target for each in graph.walk() for _, target in each.in_place}
    for row in layout.rows:
        storage = layout.storages[row]
        for at, tensor in enumerate(storage.tensors):
            known = graph.tensors[tensor]
            is_kept = name == known.name or (name in _KINDS and f"{known.kind}s" == name)
            if is_kept and over & set(storage.tensors[at + 1 :]):
                raise PlanError(
                    f"{quoted(known.name)} cannot be kept, as an operator writes over it; plan "
                    "without writes over inputs"
                )


def _find_states(planned: Planned) -> tuple[State, ...]:
    layout = planned.loaded.layout
    return () if layout is None else find_states(layout)


def find_pairs(
    called: Sequence[str], overlap: Iterable[tuple[str, str]]
) -> tuple[tuple[int, int], ...]:
    """Return the programs that may run at the same time, by number, each pair once."""
    found = set()
    for pair in overlap:
        for name in pair:
            if name not in called:
                raise MemplanError(
                    f"no program has the name {quoted(name)}; they are {listed(list(called))}"
                )
        first, second = sorted(called.index(name) for name in pair)
        if first == second:
            raise MemplanError(
                f"{quoted(called[first])} cannot overlap with itself: two runs of one program at a "
                "time need two of its buffers; name the program twice"
            )
        found.add((first, second))
    return tuple(sorted(found))

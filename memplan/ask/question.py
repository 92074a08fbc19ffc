"""What is asked: programs, what runs when, and where; how they become one problem."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from memplan.answer import Step
from memplan.ask.machines import Machine, Search
from memplan.ask.scenarios import AtSizes, InTurn, Joint, Once, OnPaths, Scenario, find_pin
from memplan.base.errors import MemplanError, listed, quoted
from memplan.levers import Aim, Candidate, Lever, find_lever
from memplan.problem import problem_of
from memplan.programs.graph import Graph
from memplan.programs.sources import Loaded, load, of_graph, of_problem
from memplan.scenarios.envelope.ranges import Range, Values
from memplan.scenarios.together import name_programs
from memplan.scenarios.together.programs import check_names
from memplan.solvers.planning import SharedBudget, load_model
from memplan.solvers.refereed import NODES

__all__ = ["Model", "Question"]

Model = Any  # a file, what `memplan.load` returns, a problem, or a function of sizes


@dataclass(frozen=True)
class Question:
    """What one call of `plan` asks; see there."""

    models: list[Model]
    place: Machine
    levers: tuple[Lever, ...] = ()
    names: Sequence[str] | None = None
    keep: tuple[str, ...] = ()
    overlap: tuple[tuple[str, str], ...] = ()
    often: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, Values] = field(default_factory=dict)
    where: tuple[str, ...] = ()
    read_all: bool = False
    paths: tuple[Mapping[str, str], ...] | None = None  # none, all of them if it is empty
    known: tuple[str, ...] | None = None
    pins: Mapping[str, int] = field(default_factory=dict)
    constrain: Callable[[Loaded], Loaded] | None = None
    aim: Aim = field(default_factory=Aim)
    search: Search = field(default_factory=Search)
    budget: SharedBudget = field(default_factory=lambda: SharedBudget(None, None))
    nodes: int | None = None

    def check(self) -> None:
        """Refuse what would be ignored."""
        if (self.where or self.read_all) and not self.sizes:
            raise MemplanError("where and read_all are about many sizes; give sizes")
        if self.known is not None and self.paths is None:
            raise MemplanError("known is about paths; give paths, or an empty list for all of them")
        if self.paths is not None and self.place.reserved:
            raise MemplanError("reserved addresses are not kept free of plans of paths")
        if self.often and not self.place.memories:
            raise MemplanError(
                "how often a program runs weighs its traffic, which only several memories have; "
                "leave often out, or give a machine with memories"
            )
        if self.often and self.place.residency:
            raise MemplanError(
                "copies of buffers that move are counted once, so they do not combine with how "
                "often a program runs; leave often or residency out"
            )
        if self.place.accesses and (self.levers or self.sizes):
            raise MemplanError(
                "accesses are of the buffers of the programs as they are, at one size; leave the "
                "levers and sizes out, or say by `reads` how often operators read"
            )
        for name in self.often:
            if name not in self.called:
                raise MemplanError(
                    f"no program has the name {quoted(name)}; they are {listed([*self.called])}"
                )
        is_default = self.search.solver == "auto" and not self.search.options
        if not (self.place.is_arena and self.paths is None) and not is_default:
            options = listed([self.search.solver, *self.search.options])
            raise MemplanError(f"{options}: a solver and its options are of plans in one arena")

    def list_ideas(self) -> Iterator[str]:
        """Yield what it is made of, as rows of the table of what combines."""
        yield from (lever.name for lever in self.levers)
        yield from self.place.kinds
        if len(self.models) > 1:
            yield "in turn"
        if self.sizes:
            yield "sizes"
        if self.paths is not None:
            yield "paths"

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The names of the programs."""
        if self.names is not None:
            return check_names(self.names, len(self.models))
        is_path = [isinstance(each, (str, os.PathLike)) for each in self.models]
        paths = [
            each if known else "program" for each, known in zip(self.models, is_path, strict=True)
        ]
        return name_programs(paths)

    @cached_property
    def machine(self) -> Machine:
        """The machine that was asked for, with the least capacity of the files if it has none."""
        limits = [loaded.problem.capacity for loaded in self.given]
        known = [limit for limit in limits if limit is not None]
        if self.place.capacity is None and not self.place.memories and known:
            return replace(self.place, capacity=min(known))
        return self.place

    @cached_property
    def given(self) -> list[Loaded]:
        """The programs as they are; of several sizes, at the largest."""
        if not self.sizes:
            return [_load(model) for model in self.models]
        asked = Range.of(self.sizes, self.where)
        largest = asked.points[int(asked.points.astype(float).prod(axis=1).argmax())].tolist()
        return self._read_at(dict(zip(asked.names, largest, strict=True)))

    def _read_at(self, dims: Mapping[str, int]) -> list[Loaded]:
        return [_load(model, dims) for model in self.models]

    def pin(self, number: int, loaded: Loaded) -> Loaded:
        """Return a program with what its plan has to keep to."""
        if self.constrain is not None:
            loaded = self.constrain(loaded)
        begin = f"{self.called[number]}/" if len(self.models) > 1 else ""
        mine = {id: at for id, at in self.pins.items() if id.startswith(begin)}
        if not mine:
            return loaded
        pins = dict(find_pin(loaded, id.removeprefix(begin), at) for id, at in mine.items())
        return replace(loaded, problem=loaded.problem.with_pins(pins))

    def scenario(self) -> Scenario:
        """Return what runs when, at one size."""
        if self.paths is not None:
            words = {"threads": self.search.threads, "seed": self.search.seed}
            words["nodes"] = NODES if self.nodes is None else self.nodes
            return OnPaths(self.paths or None, self.known, words)
        if len(self.given) == 1 and not (self.keep or self.overlap):
            return Once()
        return self.in_turn

    @cached_property
    def in_turn(self) -> InTurn:
        """The scenario of several programs."""
        words = {"threads": self.search.threads, "seed": self.search.seed}
        is_compared = self.machine.is_arena and not self.sizes
        return InTurn(self.keep, self.overlap, self.often, words, plan_first=is_compared)

    def join(self, inner: Scenario, chosen: Sequence[Candidate]) -> Joint:
        """Return the chosen programs as one problem."""
        loaded = [each.variant.loaded for each in chosen]
        named = list(zip(self.called, loaded, strict=True))
        if not self.sizes:
            return inner.join(named, self.budget)
        is_given = not any(each.steps for each in chosen)
        is_free = not (self.pins or self.constrain)
        plain = len(self.models) == 1 and is_given and is_free
        nodes = {"nodes": NODES if self.nodes is None else self.nodes}
        words = {**nodes, "threads": self.search.threads, "seed": self.search.seed}
        return AtSizes(
            self.sizes,
            self.where,
            lambda dims: self._replay(dims, chosen),
            inner,
            self.models[0] if plain else None,
            self.read_all,
            words,
        ).join(named, self.budget)

    def _replay(
        self, dims: Mapping[str, int], chosen: Sequence[Candidate]
    ) -> list[tuple[str, Loaded]]:
        """Return the programs at other sizes, with the same done to them."""
        found = []
        for number, (loaded, candidate) in enumerate(zip(self._read_at(dims), chosen, strict=True)):
            for step in candidate.steps:
                loaded = self.find_lever(step).redo(loaded, step)
            found.append((self.called[number], self.pin(number, loaded)))
        return found

    def find_lever(self, step: Step) -> Lever:
        """Return the lever of a step."""
        return find_lever(step.lever, self.levers)


def _load(model: Model, dims: Mapping[str, int] | None = None) -> Loaded:
    """Return a program, at some sizes if these are given."""
    if dims is not None and callable(model) and not hasattr(model, "graph_signature"):
        made = model(**dims)
        return made if isinstance(made, Loaded) else of_problem(problem_of(made))
    if isinstance(model, (str, os.PathLike)):
        return load_model(model, dims=dims, pins=dims is None)
    if isinstance(model, Graph):
        return of_graph(model)
    if hasattr(model, "graph_signature"):  # a program of PyTorch
        return load(model, dims=dims)
    return load_model(model)

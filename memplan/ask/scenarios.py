"""Scenarios: what runs when. Each joins programs to one problem, and splits what is placed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from memplan.answer import Axis, Claim, Part
from memplan.base.errors import MemplanError, quoted
from memplan.base.notes import Note
from memplan.machine.memories.accesses import Access, Given, Times, find_kept, list_accesses
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.programs.sources import Loaded, of_problem
from memplan.referee import Tenant, verify_together
from memplan.scenarios.envelope import Envelope, envelope
from memplan.scenarios.envelope.ranges import Values
from memplan.scenarios.paths import PathPlans, plan_paths
from memplan.scenarios.together.planning import Joined, join_programs, plan_alone
from memplan.scenarios.together.programs import Program, find_pairs
from memplan.solvers.limits import MAX_COUNT, check_whole
from memplan.solvers.planning import Planned, SharedBudget

__all__ = ["AtSizes", "InTurn", "Joint", "OnPaths", "Once", "Scenario", "find_pin"]

Reads = Mapping[str, Times | Sequence[Times]]
Accesses = Mapping[str, Given]
_SLASH: Final = "/"  # between a program and its buffer, in ids of several programs


@dataclass(frozen=True)
class Joint:
    """Programs as one problem."""

    problem: Problem  # all of them, without a capacity
    # Each by name, with what is placed of it.
    programs: tuple[tuple[str, Problem, tuple[str, ...]], ...]
    # Returns by row what is read and written, in bytes, and when; given how often operators read,
    # and what is said of buffers instead.
    find_accesses: Callable[[Reads, Accesses], list[tuple[Access, ...]]]
    kept: tuple[bool, ...]  # by row: whether it stays where it is from run to run
    notes: tuple[Note, ...] = ()
    axes: tuple[Axis, ...] = ()  # what the scenario found by itself, behind those of the machine
    claims: tuple[Claim, ...] = ()  # what the referee can check of the joining
    # The programs in turn, which one arena places in a way of its own.
    joined: Joined | None = None
    # The envelope of all sizes, which comes with a plan of one arena.
    found: Envelope | None = None
    # The plans of all paths of the program, which come with a plan of one arena.
    paths: PathPlans | None = None
    pairs: tuple[tuple[int, int], ...] = ()  # of programs that may run at the same time, by number
    # By name of a tensor that lies in the buffer of another one, or that a lever copied or parted:
    # the ids of the buffers in which it lies now.
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def split(self, place: str, problem: Problem, plan: Plan) -> list[Part]:
        """Return the parts that the programs have of what lies in one place; "" is the one arena.

        Ids are those of the joint problem, or of pieces of its buffers.
        """
        if len(self.programs) == 1:
            name = self.programs[0][0]
            return [Part(place or name, problem, plan, name, place)]
        parts = []
        for name, own, _ in self.programs:
            begin = f"{name}{_SLASH}"
            rows = [row for row, id in enumerate(problem.ids) if id.startswith(begin)]
            if not rows:
                continue
            ids = [problem.ids[row].removeprefix(begin) for row in rows]
            known = set(own.ids)
            if all(id in known for id in ids):
                part = own.subset([own.index(id) for id in ids])
                part = part.with_reserved(problem.reserved)
            else:  # pieces of buffers that move have the times of all programs
                part = problem.subset(rows).with_names(ids)
            offsets = None
            if plan.offsets is not None:
                offsets = [plan.offset(f"{begin}{id}") for id in part.ids]
            status = plan.status if offsets is None else Status.FEASIBLE
            made = Plan.of(part, offsets, status=status, solver=plan.solver)
            title = f"{name} in {place}" if place else name
            parts.append(Part(title, part, made, name, place))
        return parts

    def list_claims(self, parts: Sequence[Part]) -> tuple[Claim, ...]:
        """Return what the referee checks of parts beyond each of them."""
        if len(self.programs) == 1:
            return self.claims
        return (*self.claims, _Sharing(tuple(parts), self.programs, self.pairs))


@dataclass(frozen=True)
class _Sharing:
    """That programs share each place, in any order of their runs."""

    parts: tuple[Part, ...]
    programs: tuple[tuple[str, Problem, tuple[str, ...]], ...]
    pairs: tuple[tuple[int, int], ...]

    def verify(self) -> None:
        """See `Claim`."""
        for place in dict.fromkeys(part.place for part in self.parts):
            here = {part.program: part for part in self.parts if part.place == place}
            numbers = [at for at, (name, *_) in enumerate(self.programs) if name in here]
            tenants = []
            for at in numbers:
                name, _, kept = self.programs[at]
                part = here[name]
                ids = set(part.problem.ids)
                tenants.append(
                    Tenant(name, part.problem, part.plan, tuple(id for id in kept if id in ids))
                )
            pairs = [(a, b) for a, b in self.pairs if a in numbers and b in numbers]
            verify_together(tenants, [(numbers.index(a), numbers.index(b)) for a, b in pairs])


class Scenario(Protocol):
    """What runs when."""

    def join(self, programs: Sequence[tuple[str, Loaded]], budget: SharedBudget) -> Joint:
        """Return programs, as the levers left them, as one problem."""


@dataclass(frozen=True)
class Once(Scenario):
    """One program runs."""

    def join(self, programs: Sequence[tuple[str, Loaded]], budget: SharedBudget) -> Joint:
        """See `Scenario`."""
        ((name, loaded),) = programs
        problem = loaded.problem.with_capacity(None)
        return Joint(
            problem,
            ((name, problem, ()),),
            lambda reads, accesses: list_accesses(loaded, accesses, reads),
            tuple(find_kept(loaded)),
            loaded.notes,
            names=_list_names("", loaded),
        )


@dataclass(frozen=True)
class OnPaths(Scenario):
    """One program runs, of which each run takes one path; see `memplan.plan_paths`."""

    paths: tuple[Mapping[str, str], ...] | None = None  # all of them if it is `None`
    known: tuple[str, ...] | None = None
    # `nodes`, `threads` and `seed` of each plan.
    search: Mapping[str, Any] = field(default_factory=dict)

    def join(self, programs: Sequence[tuple[str, Loaded]], budget: SharedBudget) -> Joint:
        """See `Scenario`; the problem is the program with room for all branches."""
        ((name, loaded),) = programs
        left = budget.share(1).seconds
        found = plan_paths(loaded, self.paths, known=self.known, timeout=left, **self.search)
        chosen = found.fallback.loaded
        problem = found.fallback.problem
        return Joint(
            problem,
            ((name, problem, ()),),
            lambda reads, accesses: list_accesses(chosen, accesses, reads),
            tuple(find_kept(chosen)),
            loaded.notes,
            claims=(found,),
            paths=found,
            names=_list_names("", chosen),
        )


def find_pin(loaded: Loaded, name: str, offset: int) -> tuple[str, int]:
    """Return a pin of a tensor as one of the buffer that it lies in."""
    layout = loaded.layout
    if layout is not None and name not in loaded.problem.ids:
        tensors = layout.graph.tensors
        for row in layout.rows:
            storage = layout.storages[row]
            for at, inside in zip(storage.tensors, storage.offsets, strict=True):
                if tensors[at].name == name:
                    return storage.name, offset - inside
    return name, offset


def _list_names(begin: str, loaded: Loaded) -> dict[str, tuple[str, ...]]:
    """Return by name of a tensor the ids of its buffers, where these are not just one of its name.

    Copies and parts that a lever made of a tensor are that tensor.
    """
    tensors = () if loaded.layout is None else loaded.layout.graph.tensors
    origin = {tensor.name: tensor.origin for tensor in tensors if tensor.origin}
    found: dict[str, dict[str, None]] = {}
    for id, label in zip(loaded.problem.ids, loaded.labels, strict=False):
        for tensor in label.tensors:
            name = origin.get(tensor, tensor)
            found.setdefault(f"{begin}{name}", {})[f"{begin}{id}"] = None
    return {name: tuple(ids) for name, ids in found.items() if [*ids] != [name]}


@dataclass(frozen=True)
class InTurn(Scenario):
    """Several programs run one after another, in any order; see `memplan.plan_together`."""

    keep: tuple[str, ...] = ()
    overlap: tuple[tuple[str, str], ...] = ()
    # By name of a program: how often it runs while the others run once.
    often: Mapping[str, int] = field(default_factory=dict)
    # `threads` and `seed` of `memplan.solve`.
    search: Mapping[str, Any] = field(default_factory=dict)
    # Whether each program is planned by itself, to compare; not where many sizes are joined.
    plan_first: bool = True
    _alone: dict[tuple[str, int], Program] = field(default_factory=dict, repr=False, compare=False)

    def join(self, programs: Sequence[tuple[str, Loaded]], budget: SharedBudget) -> Joint:
        """See `Scenario`."""
        names = [name for name, _ in programs]
        for name, count in self.often.items():
            if name not in names:
                raise MemplanError(f"no program has the name {quoted(name)}, which runs {count} x")
            check_whole(count, f"how often {quoted(name)} runs", 1, MAX_COUNT)
        pairs = find_pairs(names, self.overlap)
        alone = [self._plan(name, loaded, budget, len(programs)) for name, loaded in programs]
        joined = join_programs(alone, self.keep, pairs, None)
        notes = (note for _, loaded in programs for note in loaded.notes)
        return Joint(
            joined.problem,
            tuple((each.name, each.problem, each.kept_ids) for each in joined.programs),
            lambda reads, accesses: self._list_accesses(joined, reads, accesses),
            tuple(flag for each in joined.programs for flag in _list_kept(each)),
            tuple(dict.fromkeys(notes)),
            joined=joined,
            pairs=pairs,
            names={
                tensor: id
                for name, loaded in programs
                for tensor, id in _list_names(f"{name}{_SLASH}", loaded).items()
            },
        )

    def _plan(self, name: str, loaded: Loaded, budget: SharedBudget, count: int) -> Program:
        """Return a program with a plan of its own, which is made once."""
        if not self.plan_first:
            unknown = Plan.of(loaded.problem, None, status=Status.UNKNOWN)
            return Program(name, Planned(loaded, unknown), loaded.problem)
        known = self._alone.get((name, id(loaded)))
        if known is None or known.planned.loaded.layout is not loaded.layout:
            known = plan_alone(name, loaded, budget, count, **self.search)
            self._alone[name, id(loaded)] = known
        return known

    def _list_accesses(
        self, joined: Joined, reads: Reads, accesses: Accesses
    ) -> list[tuple[Access, ...]]:
        """Return what all programs read and write, each as often as it runs."""
        found: list[tuple[Access, ...]] = []
        begin = 0
        types = {
            name: None if each.planned.loaded.graph is None else _list_types(each.planned.loaded)
            for name, each in zip(joined.names, joined.programs, strict=True)
        }
        _check_types(reads, types)
        for id in accesses:
            joined.problem.index(id)  # refuses what is not there
        for each in joined.programs:
            loaded, problem = each.planned.loaded, each.problem
            known = types[each.name]
            mine = {type_: count for type_, count in reads.items() if type_ in (known or ())}
            begins = f"{each.name}{_SLASH}"
            own = {
                id.removeprefix(begins): given
                for id, given in accesses.items()
                if id.startswith(begins)
            }
            shift = begin - int(problem.start.min(initial=0))
            times = self.often.get(each.name, 1)
            rows: list[tuple[Access, ...]] = list(list_accesses(loaded, own, mine))
            for row in range(each.rows, len(problem)):  # a state is read and assigned in a run
                size = int(problem.size[row])
                rows.append((Access(int(problem.start[row]), size, size),))
            found += [
                tuple(Access(a.time + shift, a.read * times, a.written * times) for a in row)
                for row in rows
            ]
            begin += int(problem.end.max(initial=1)) - int(problem.start.min(initial=0))
        return found


def _list_types(loaded: Loaded) -> set[str]:
    assert loaded.graph is not None
    return {operator.type for operator in loaded.graph.walk()}


def _check_types(reads: Reads, types: Mapping[str, set[str] | None]) -> None:
    """Refuse a type that no operator of any program has."""
    for type_ in reads:
        if not any(type_ in (known or ()) for known in types.values()):
            raise MemplanError(f"no operator of the programs has the type {quoted(type_)}")


def _list_kept(program: Program) -> list[bool]:
    """Return which rows of a program stay where they are; its states do."""
    states = len(program.problem) - program.rows
    return [*find_kept(program.planned.loaded), *[True] * states]


@dataclass(frozen=True)
class AtSizes(Scenario):
    """Programs of which each run has one of many sizes; one plan is for all of them."""

    # As `memplan.scenarios.envelope.envelope` has them, with `where` and `read_all`.
    sizes: Mapping[str, Values]
    where: tuple[str, ...]
    # Returns the programs, as the levers left them, at sizes of the dimensions.
    read: Callable[[Mapping[str, int]], Sequence[tuple[str, Loaded]]]
    inner: Scenario  # what runs when at each size
    source: Any = None  # the program as `envelope` reads it, if there is one, as it is
    read_all: bool = False
    # `nodes`, `threads` and `seed` of each plan.
    search: Mapping[str, Any] = field(default_factory=dict)

    def join(self, programs: Sequence[tuple[str, Loaded]], budget: SharedBudget) -> Joint:
        """See `Scenario`; what the programs are at the largest size says what they read."""

        def read(**dims: int) -> Loaded:
            joint = self.inner.join(self.read(dims), budget)
            return replace(of_problem(joint.problem), notes=joint.notes)

        left = budget.share(1).seconds
        found = envelope(
            read if self.source is None else self.source,
            self.sizes,
            self.where,
            timeout=left,
            read_all=self.read_all,
            **self.search,
        )
        largest = found.range.points[int(found.bounds.argmax())].tolist()
        inner = self.inner.join(
            self.read(dict(zip(found.range.names, largest, strict=True))), budget
        )
        row_of = {id: row for row, id in enumerate(inner.problem.ids)}
        problem = found.problem

        def find_accesses(reads: Reads, accesses: Accesses) -> list[tuple[Access, ...]]:
            """Bytes are those of the largest size; times are of its own run, where they count."""
            known = inner.find_accesses(reads, accesses)
            return [
                _move_into(problem, row, known[row_of[id]] if id in row_of else ())
                for row, id in enumerate(problem.ids)
            ]

        return Joint(
            problem,
            tuple(
                (name, _take_own(problem, name, own, len(inner.programs)), kept)
                for name, own, kept in inner.programs
            ),
            find_accesses,
            tuple(id in row_of and inner.kept[row_of[id]] for id in problem.ids),
            found.notes,
            claims=(found,),
            found=found,
            names=inner.names,
        )


def _move_into(problem: Problem, row: int, accesses: Sequence[Access]) -> tuple[Access, ...]:
    """Return accesses at times at which a buffer of all sizes lives."""
    start, end = int(problem.start[row]), int(problem.end[row])
    times: dict[int, Access] = {}
    for each in accesses:
        time = min(max(each.time, start), end - 1)
        known = times.get(time, Access(time, 0, 0))
        times[time] = Access(time, known.read + each.read, known.written + each.written)
    return tuple(times[time] for time in sorted(times))


def _take_own(problem: Problem, name: str, own: Problem, count: int) -> Problem:
    """Return what is placed of a program at all sizes, with its own ids."""
    if count == 1:
        return problem
    begin = f"{name}{_SLASH}"
    rows = [row for row, id in enumerate(problem.ids) if id.startswith(begin)]
    part = problem.subset(rows)
    return part.with_names(id.removeprefix(begin) for id in part.ids)

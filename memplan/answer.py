"""The answer to every question of `memplan.plan`: parts, axes, steps and notes.

    axes    what was minimised, in order of importance: what was found, and what is proved of it
    parts   what is placed where: a program in an arena, in a memory, in a block
    steps   what the levers did to the programs
    notes   what readers assumed, and what is not known

How an answer is told, checked and stored is written here once, for all kinds of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from memplan.base.drawing import Reported
from memplan.base.errors import InfeasibleError, NoPlanError, PlanError, quoted
from memplan.base.notes import Note
from memplan.problem import Problem
from memplan.problem.plan import Plan, Status
from memplan.referee import verify

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Answer", "Axis", "Claim", "Part", "Step"]

Found = TypeVar("Found")


class Claim(Protocol):
    """What the referee can check of an answer, besides that each plan is one of its problem."""

    def verify(self) -> object:
        """Check it again; raise a `PlanError` if it does not hold."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One number that was minimised.

    Attributes
    ----------
    name
        What it is: "peak", "traffic", "blocks", "penalties", "more work".
    unit
        Of both numbers; empty for a count.
    found
        In this answer; `None` if there is no plan.
    bound
        Proved: no other answer has less, of those that `scope` names.
    scope
        What the bound is about; empty for every answer to the question. For an axis behind another
        one, that is of every answer with no more of those before it.
    """

    name: str
    unit: str
    found: float | None
    bound: float
    scope: str = ""

    @property
    def is_proved(self) -> bool:
        """Whether no answer to the question has less."""
        return self.found == self.bound and not self.scope


@dataclass(frozen=True, slots=True)
class Part:
    """What is placed of one program in one place.

    Attributes
    ----------
    name
        For people; no two parts of an answer have the same.
    problem, plan
        The buffers there, and their offsets from the beginning of the place. The plan has none if
        its status is `infeasible` or `unknown`.
    program
        The name of the program.
    place
        The name of the memory or block; empty in the one arena.
    """

    name: str
    problem: Problem
    plan: Plan
    program: str = ""
    place: str = ""


@dataclass(frozen=True)
class Step:
    """What a lever brought.

    Attributes
    ----------
    lever
        The name of the lever; "given" or "offsets" where nothing was changed.
    arena
        What the best program needs after it, in bytes.
    extra
        The work that it adds, as a share of that of the program.
    words
        What was done, or why nothing was.
    facts
        What the lever found, for scripts.
    program
        Of which program, where there are several.
    change
        What changed, with its proof; `None` if nothing did.
    data
        What the lever needs to do the same to a program again, as JSON holds it.
    taken
        Whether it was done; otherwise these are words about what was not better, or not found.
    """

    lever: str
    arena: int
    extra: float = 0.0
    words: str = ""
    program: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    change: Any = field(default=None, repr=False, compare=False)
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    taken: bool = True


@dataclass(frozen=True, repr=False)
class Answer(Reported):
    """Where everything lies, how good that is, and what was done for it.

    Attributes
    ----------
    parts
        What is placed where.
    axes
        What was minimised, in order of importance.
    steps
        What the levers did.
    notes
        What was assumed when the programs were read, or is not known of their runtime.
    claims
        What the referee checks beyond the parts: that programs share an arena, that memories cost
        so much, bounds on all sizes, orders and re-runs.
    programs
        The programs as the levers left them: what `memplan.load` returns for a model.
    capacity
        What the arena, or all blocks, may have, in bytes.
    seconds
        Wall time.
    interrupted
        Whether Ctrl-C ended the search; this is the best so far.
    facts
        What else a command tells of it.
    stretches
        When buffers are in another memory than their own; see `memplan.Stretch`.
    question
        What was asked: the machine and the scenario, as `memplan.save_answer` writes them.
    """

    _report = "answer"

    parts: tuple[Part, ...]
    axes: tuple[Axis, ...]
    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()
    claims: tuple[Claim, ...] = ()
    programs: tuple[Any, ...] = field(default=(), repr=False)
    capacity: int | None = None
    seconds: float = 0.0
    interrupted: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    stretches: tuple[Any, ...] = ()
    question: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def status(self) -> Status:
        """`optimal` if every axis is proved, else as far as the plans go."""
        for part in self.parts:
            if not part.plan.has_offsets:
                return part.plan.status
        if not self.fits:
            return Status.UNKNOWN
        if all(axis.is_proved for axis in self.axes):
            return Status.OPTIMAL
        return Status.FEASIBLE if self.capacity is None else Status.FITS

    @property
    def fits(self) -> bool:
        """Whether all lies within the capacity, if there is one."""
        found = [axis.found for axis in self.axes if axis.unit == "bytes"]
        if self.capacity is None or not found:
            return self.capacity is None
        return found[0] is not None and found[0] <= self.capacity

    @property
    def peak(self) -> int | None:
        """The bytes of the largest place; `None` without a plan."""
        peaks = [part.plan.peak for part in self.parts]
        return None if None in peaks else max((peak or 0 for peak in peaks), default=0)

    @property
    def plan(self) -> Plan:
        """The plan of an answer with one part.

        Raises
        ------
        PlanError
            If there are several.
        """
        return self._only_part().plan

    @property
    def problem(self) -> Problem:
        """The problem of an answer with one part; raises as `plan`."""
        return self._only_part().problem

    def _only_part(self) -> Part:
        if len(self.parts) != 1:
            raise PlanError(f"the answer has {len(self.parts)} parts; name one, with answer.part()")
        return self.parts[0]

    def axis(self, name: str) -> Axis:
        """Return the axis of a name.

        Raises
        ------
        PlanError
            If there is none.
        """
        for each in self.axes:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.axes)
        raise PlanError(f"the answer has no axis {quoted(name)}; it has {known}")

    def part(self, program: str = "", place: str = "") -> Part:
        """Return the part of a program, or in a place; raises as `plan` if that is not one part."""
        found = [
            each
            for each in self.parts
            if program in ("", each.program) and place in ("", each.place)
        ]
        if len(found) == 1:
            return found[0]
        raise PlanError(
            f"{len(found)} parts of the answer are of program {quoted(program)} in place "
            f"{quoted(place)}; its parts are {', '.join(each.name for each in self.parts)}"
        )

    def find(self, kind: type[Found]) -> Found:
        """Return what an engine found beyond parts and axes, by its class.

        Parameters
        ----------
        kind
            Such as `memplan.Assigned` of several memories, or `memplan.Reordered` of the lever
            "order".

        Raises
        ------
        PlanError
            If there is none, as in an answer that was read from a file, or if there are several:
            `claims` and the changes of `steps` have all of them.
        """
        changes = (step.change for step in self.steps)
        found = [each for each in (*self.claims, *changes) if isinstance(each, kind)]
        if len(found) != 1:
            raise PlanError(f"the answer has {len(found)} results of the class {kind.__name__}")
        return found[0]

    def __getattr__(self, name: str) -> Any:
        """Return what an engine found under this name: `traffic`, `memory_of`, `peak_at`, `order`.

        Fields and methods of an answer go first; of several results, the first that has it.
        """
        if not name.startswith("_"):
            steps = vars(self).get("steps", ())
            changes = (step.change for step in steps if step.taken)
            others = (step.change for step in steps if not step.taken)
            for found in (*vars(self).get("claims", ()), *changes, *others):
                if hasattr(found, name):
                    return getattr(found, name)
        raise AttributeError(f"'Answer' object has no attribute {name!r}, nor has what it found")

    def require_plan(self) -> Answer:
        """Return this, for callers who need offsets.

        Raises
        ------
        InfeasibleError, NoPlanError
            If there are none: proved, or within the budget.
        """
        for part in self.parts:
            if not part.plan.has_offsets:
                is_proved = part.plan.status is Status.INFEASIBLE
                raise (InfeasibleError if is_proved else NoPlanError)(
                    f"{part.name}: no plan was found ({part.plan.status})"
                )
        return self

    def verify(self) -> None:
        """Check every part, and every claim beyond the parts, with the referee again.

        Raises
        ------
        PlanError
            If one does not hold.
        """
        for part in self.parts:
            if part.plan.has_offsets:
                verify(part.problem, part.plan)
        for claim in self.claims:
            claim.verify()

    def __repr__(self) -> str:
        axes = ", ".join(f"{each.name} {_number(each.found)}" for each in self.axes)
        return f"<Answer: {self.status}, {axes}, {len(self.parts)} parts>"

    def summary(self) -> dict[str, Any]:
        """Return all of the answer but its offsets, as JSON holds it."""
        return {
            "status": str(self.status),
            "interrupted": self.interrupted,
            "capacity": self.capacity,
            "axes": [asdict(each) for each in self.axes],
            "parts": [
                {
                    "name": part.name,
                    "program": part.program,
                    "place": part.place,
                    "peak": part.plan.peak,
                    "buffers": len(part.problem),
                    "problem": part.problem.fingerprint,
                    "status": str(part.plan.status),
                    "conflict": list(part.plan.conflict),
                }
                for part in self.parts
            ],
            "steps": [
                {
                    "lever": step.lever,
                    "program": step.program,
                    "arena": step.arena,
                    "extra": step.extra,
                    "words": step.words,
                    "taken": step.taken,
                    **step.facts,
                }
                for step in self.steps
            ],
            **self.facts,
            "notes": [asdict(note) for note in self.notes],
            "seconds": round(self.seconds, 6),
        }

    def plot(self, *, width: float | None = None, load: bool = False) -> Figure:
        """Draw the plan of an answer with one part; see `memplan.Plan.plot`."""
        part = self._only_part()
        return part.plan.plot(part.problem, width=width, load=load)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,}"

"""The peak of a program as a function of its dimensions, and one plan for all sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memplan.base.drawing import find_artist
from memplan.base.errors import NoPlanError
from memplan.base.notes import Note
from memplan.problem import Problem
from memplan.problem.columns import Column, frozen
from memplan.problem.immutable import Immutable
from memplan.problem.plan import Plan, Status
from memplan.referee import Layers, verify_envelope
from memplan.scenarios.envelope.fixed import join_scenarios
from memplan.scenarios.envelope.ranges import Range, Values
from memplan.scenarios.envelope.reading import find_scenarios
from memplan.scenarios.envelope.relations import (
    Relation,
    carry_bound,
    find_pairs,
    measure_loads,
    relate,
)
from memplan.scenarios.envelope.sizes import Scenario
from memplan.solvers.planning import SharedBudget
from memplan.solvers.refereed import NODES, quick_plan
from memplan.solvers.stopping import stoppable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Envelope", "Layer", "envelope"]

_MOST_PLANS: Final = 64  # for each scenario
_MOST_WORK: Final = 1 << 33  # sizes, times buffers, times plans


@dataclass(frozen=True, eq=False)
class Layer:
    """A plan at one size, and what it says about all sizes of its scenario."""

    scenario: int  # its number
    row: int  # the size that was planned, as a row of the range
    plan: Plan  # at that size
    relation: Relation  # which buffers lie below which


@dataclass(frozen=True, eq=False, repr=False)
class Envelope(Immutable):
    """The peak of a program at every size of a range; the referee has accepted it.

    Where the source did not say the bytes of all sizes, all of it rests on `premise`.

    Attributes
    ----------
    range
        The sizes: `range.points` has the value of each dimension at each size.
    scenarios
        The sizes by what lives when; nearly always one.
    layers
        Plans of single sizes, each with its relation; some only prove a bound.
    peaks, bounds
        At each size: the bytes that the best of the relations needs, and bytes that any plan of
        this size needs; shape (N,).
    chosen
        At each size: the layer that gives the peak; shape (N,).
    problem, plan
        One plan for all sizes: the problem of fixed offsets that are legal at every size, and its
        plan. Its bound is about such offsets; its `stats` have the range, and the premise.
    how
        How the bytes of the buffers are known; see also `premise`.
    notes
        The assumptions and omissions of the reader of the model.
    seconds
        Wall time.
    interrupted
        Whether Ctrl-C ended the search; this is the best so far.
    """

    range: Range
    scenarios: tuple[Scenario, ...]
    layers: tuple[Layer, ...]
    peaks: Column
    bounds: Column
    chosen: Column
    problem: Problem
    plan: Plan
    how: str
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.peaks)

    def __repr__(self) -> str:
        names = ", ".join(self.range.names)
        status = str(Status.OPTIMAL if self.open == 0 else Status.FEASIBLE)
        if self.premise:
            status += " if sizes are polynomials"
        return f"<Envelope: {names}, {len(self):,} sizes, {status}, {self.plan!r}>"

    @property
    def status(self) -> Status:
        """Whether the peak is proved to be the least at every size, without a premise."""
        return Status.OPTIMAL if self.open == 0 and not self.premise else Status.FEASIBLE

    @property
    def premise(self) -> str:
        """What peaks, bounds and plans rest on, in words; empty if the source said all bytes."""
        return _tell_premise(self.scenarios)

    @property
    def open(self) -> int:
        """The number of sizes whose peak is not proved to be the least."""
        return int((self.peaks > self.bounds).sum())

    @property
    def used(self) -> tuple[Layer, ...]:
        """The layers that give the peaks of all sizes."""
        return tuple(self.layers[number] for number in np.unique(self.chosen))

    def peak_at(self, **dims: int) -> int:
        """Return the bytes that are needed at a size of the range.

        Raises
        ------
        MemplanError
            If it is not of the range.
        """
        return int(self.peaks[self.range.index(dims)])

    def bound_at(self, **dims: int) -> int:
        """Return bytes that any plan of this size needs; raises as `peak_at`."""
        return int(self.bounds[self.range.index(dims)])

    def problem_at(self, **dims: int) -> Problem:
        """Return the problem at a size of the range; raises as `peak_at`."""
        return self._find(self.range.index(dims))[1]

    def plan_at(self, **dims: int) -> Plan:
        """Return the plan of a size of its own, with `peak_at` bytes; raises as `peak_at`."""
        row = self.range.index(dims)
        layer, problem = self._find(row)
        offsets = layer.relation.offsets(problem.size[:, None], problem.alignment)[:, 0]
        bound = int(self.bounds[row])
        proved = self.peaks[row] == bound and not self.premise
        status = Status.OPTIMAL if proved else Status.FEASIBLE
        return Plan.of(problem, offsets, status=status, lower_bound=bound, solver="envelope")

    def _find(self, row: int) -> tuple[Layer, Problem]:
        layer = self.layers[self.chosen[row]]
        scenario = self.scenarios[layer.scenario]
        return layer, scenario.problem(int(np.searchsorted(scenario.rows, row)))

    def plot(self, *, width: float | None = None) -> Figure:
        """Draw the peak over the dimension with the most values; extra `plot`.

        Parameters
        ----------
        width
            Millimetres, from 40 to 2,000; `None` is 178.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        drawn: Figure = find_artist().draw("envelope", self, width=width)
        return drawn

    def verify(self) -> None:
        """Check all sizes, and the plan for all of them, with the referee again.

        Raises
        ------
        PlanError
            As `memplan.referee.verify_envelope`.
        """
        for number, scenario in enumerate(self.scenarios):
            mine = [at for at, layer in enumerate(self.layers) if layer.scenario == number]
            proved = [(self.layers[at].plan.size, self.layers[at].plan.lower_bound) for at in mine]
            below = [
                [
                    (other, row)
                    for row, rows in zip(relation.order, relation.below, strict=True)
                    for other in rows
                ]
                for relation in (self.layers[at].relation for at in mine)
            ]
            layers = Layers(
                below=below,
                chosen=np.searchsorted(mine, self.chosen[scenario.rows]),
                peaks=self.peaks[scenario.rows],
                bounds=self.bounds[scenario.rows],
                proved=proved,
                read=scenario.read,
                said=scenario.said,
                are_least=self.status is Status.OPTIMAL,
            )
            verify_envelope(scenario.template, scenario.chunks(), layers, self.plan)


def envelope(
    model: Any,
    dims: Mapping[str, Values],
    where: str | Iterable[str] = (),
    *,
    timeout: float | None = None,
    nodes: int = NODES,
    threads: int | None = None,
    seed: int = 0,
    read_all: bool = False,
) -> Envelope:
    """Find the peak of a program at every size of a range, and one plan for all sizes.

    Parameters
    ----------
    model
        A file of a program with symbolic dimensions, a `torch.export.ExportedProgram`, or a
        function that returns a problem for values of the dimensions, which are passed by name.
    dims
        The values of each dimension: a number, a list, a Python `range`, or text such as "1:64",
        "64:4096:64" and "1,2,4". Both ends of a range that is text are in it.
    where
        What all sizes keep to, such as "batch*tokens<=4096"; one text, or several.
    timeout
        Seconds for all plans together.
    nodes, threads, seed
        Of each plan; see `memplan.solve`.
    read_all
        Whether to read the program at every size, so that nothing is presumed. Otherwise, if there
        are more than 64 sizes, some are read, and polynomials stand for the rest
        (`Envelope.premise`).

    Raises
    ------
    MemplanError
        One sentence: for a range or a condition that is empty, malformed or too large, sizes that
        are no polynomials and too many to be read one by one; and as `memplan.load`.

    Examples
    --------
    >>> import memplan as mp
    >>> from memplan.scenarios.envelope import envelope
    >>> def program(batch):
    ...     return mp.Problem([mp.Buffer("x", 0, 2, 8 * batch), mp.Buffer("y", 1, 3, 100)])
    >>> found = envelope(program, {"batch": range(1, 65)})
    >>> found.peak_at(batch=3), found.bound_at(batch=3), str(found.status)
    (124, 124, 'optimal')
    >>> found.plan.peak
    612
    """
    budget = SharedBudget(timeout, None)  # each plan has all nodes
    asked = Range.of(dims, [where] if isinstance(where, str) else where)
    scenarios, notes, how = find_scenarios(model, asked, read_all=read_all)

    def plan(problem: Problem) -> Plan:
        left = budget.share(1).seconds
        found = quick_plan(problem, nodes=nodes, timeout=left, threads=threads, seed=seed)
        if not found.has_offsets:
            raise NoPlanError("no plan was found in time; allow more time or more nodes")
        return found

    def is_late() -> bool:
        return budget.share(1).seconds == 0

    peaks = np.full(len(asked), np.iinfo(np.int64).max)
    bounds, chosen = np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64)
    layers: list[Layer] = []
    with stoppable() as stop:
        for number, scenario in enumerate(scenarios):
            work = _Search(number, scenario, len(layers), plan, is_late)
            work.run()
            peaks[scenario.rows], bounds[scenario.rows] = work.peaks, work.bounds
            chosen[scenario.rows] = work.chosen
            layers += work.layers
        problem = join_scenarios(scenarios)
        fixed = _with_range(problem, plan(problem), asked, _tell_premise(scenarios))
        found = Envelope(
            range=asked,
            scenarios=scenarios,
            layers=tuple(layers),
            peaks=frozen(peaks),
            bounds=frozen(bounds),
            chosen=frozen(chosen),
            problem=problem,
            plan=fixed,
            how=how,
            notes=notes,
            seconds=budget.elapsed,
            interrupted=stop.is_set,
        )
        found.verify()
    return found


def _tell_premise(scenarios: Iterable[Scenario]) -> str:
    count = sum(scenario.presumed for scenario in scenarios)
    if not count:
        return ""
    sizes = "one size that was" if count == 1 else f"{count:,} sizes that were"
    return f"at the {sizes} not read, buffers and bytes are as these polynomials say"


def _with_range(problem: Problem, plan: Plan, asked: Range, premise: str) -> Plan:
    """Return the plan for all sizes, which says of which sizes it is, and what it rests on."""
    proved = plan.status is Status.OPTIMAL and not premise
    stats: dict[str, object] = {**plan.stats, **asked.write()}
    if premise:
        stats["premise"] = premise
    return Plan.of(
        problem,
        plan.offsets,
        status=Status.OPTIMAL if proved else Status.FEASIBLE,
        lower_bound=plan.lower_bound,
        solver=plan.solver,
        stats=stats,
    )


class _Search:
    """Plans sizes of a scenario until their relations meet the bound at every size."""

    def __init__(
        self,
        number: int,
        scenario: Scenario,
        first: int,
        plan: Callable[[Problem], Plan],
        is_late: Callable[[], bool],
    ) -> None:
        self._number, self._scenario, self._first = number, scenario, first
        self._plan, self._is_late = plan, is_late
        self._pairs = find_pairs(scenario.template)
        count = len(scenario.rows)
        self.peaks = np.full(count, np.iinfo(np.int64).max)
        self.bounds: Column = np.zeros(count, np.int64)
        self.chosen: Column = np.zeros(count, np.int64)
        self.layers: list[Layer] = []

    def run(self) -> None:
        """Plan the largest size, and then where the best relation is farthest from the bound."""
        for begin, end, sizes in self._scenario.chunks():
            self.bounds[begin:end] = measure_loads(self._scenario.template, sizes)
        tried = np.zeros(len(self.peaks), np.bool_)
        at = int(self.bounds.argmax())
        work = max(1, len(self.peaks) * len(self._scenario.template))
        for _ in range(max(1, min(_MOST_PLANS, _MOST_WORK // work))):
            tried[at] = True
            self._take_plan(at)
            if self._is_late():
                break
            missing = np.where(tried, 0, (self.peaks - self.bounds) / np.maximum(self.bounds, 1))
            at = int(missing.argmax())
            if missing[at] <= 0:
                break

    def _take_plan(self, at: int) -> None:
        """Plan a size, and use its relation and its bound at all sizes."""
        problem = self._scenario.problem(at)
        plan = self._plan(problem)
        assert plan.offsets is not None
        relation = relate(self._pairs, plan.offsets, problem.size)
        number = self._first + len(self.layers)
        used, proved = False, plan.lower_bound > self.bounds[at]
        for begin, end, sizes in self._scenario.chunks():
            peaks = relation.peaks(sizes, problem.alignment)
            better = peaks < self.peaks[begin:end]
            self.peaks[begin:end][better] = peaks[better]
            self.chosen[begin:end][better] = number
            used |= bool(better.any())
            if proved:
                bounds = self.bounds[begin:end]
                np.maximum(bounds, carry_bound(problem, plan.lower_bound, sizes), out=bounds)
        if used or proved:
            self.layers.append(Layer(self._number, int(self._scenario.rows[at]), plan, relation))

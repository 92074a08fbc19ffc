"""The one pipeline: what the levers make of each program, joined by a scenario, placed, compared.

Each program has a pool: itself, and what the levers made of it. The chosen ones are joined and
placed by the machine; the best answer by its axes counts. A few combinations are all placed; of
many, one program is changed at a time, as long as that helps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import inf, prod
from typing import Any, Final, NamedTuple

from memplan.answer import Answer, Axis, Claim, Part, Step
from memplan.ask.facts import list_facts, summarise_change
from memplan.ask.fitted import is_for_runtime, place_for_runtime
from memplan.ask.machines import Machine, Placed, Search
from memplan.ask.question import Model, Question
from memplan.ask.saved import describe_question
from memplan.ask.scenarios import Joint
from memplan.ask.supports import refuse_pairs
from memplan.base.errors import (
    InfeasibleError,
    MemplanError,
    NoPlanError,
    PlanError,
    ProblemError,
)
from memplan.base.notes import Code, Note
from memplan.levers import Aim, Candidate, Lever, Plain, Writer, find_levers
from memplan.levers.rewrite.again import Costs
from memplan.levers.rewrite.bands import MAX_EXTRA
from memplan.problem.plan import Plan, Status
from memplan.programs.sources import Loaded
from memplan.scenarios.envelope.ranges import Values
from memplan.scenarios.together.programs import find_pairs
from memplan.solvers.planning import SharedBudget
from memplan.solvers.stopping import is_stopped, stoppable

__all__ = ["Model", "Question", "plan"]

_MOST_CHOICES: Final = 32  # combinations of candidates that are all placed
_MOST_POOL: Final = 16  # candidates of one program
_CHOSEN: Final = "of the programs that were chosen"


def plan(
    programs: Model | Sequence[Model],
    *,
    machine: Machine | None = None,
    levers: Iterable[str | Lever] = (),
    capacity: int | None = None,
    names: Sequence[str] | None = None,
    keep: Iterable[str] = (),
    overlap: Iterable[tuple[str, str]] = (),
    often: Mapping[str, int] | None = None,
    sizes: Mapping[str, Values] | None = None,
    where: str | Iterable[str] = (),
    read_all: bool = False,
    paths: Iterable[Mapping[str, str]] | None = None,
    known: Iterable[str] | None = None,
    pins: Mapping[str, int] | None = None,
    pure: Iterable[str] = (),
    costs: Costs | None = None,
    spill: str | None = None,
    max_extra: float | None = None,
    minimize: bool = False,
    solver: str = "auto",
    timeout: float | None = None,
    nodes: int | None = None,
    threads: int | None = None,
    seed: int = 0,
    writers: Sequence[Writer] | None = None,
    constrain: Callable[[Loaded], Loaded] | None = None,
    **options: Any,
) -> Answer:
    """Place programs in a machine, with the least memory, traffic or cost that is found.

    Parameters
    ----------
    programs
        What `memplan.load` takes (a file, or a `torch.export.ExportedProgram`), its result, a
        graph, or a problem; or several of these, which run in turn. With `sizes`, a file, or a
        function that returns one of these for values of the dimensions, which are passed by name.
    machine
        Where buffers may lie; by default one arena. See `memplan.Machine`.
    levers
        What may be done to the programs: names of `memplan.levers.LEVERS`, such as "in place" and
        "order", or levers of your own.
    capacity
        Of the one arena, or of all blocks, in bytes: shorter than a machine with that.
    names, keep, overlap
        Of several programs; see `memplan.scenarios.together.plan_together`.
    often
        By name of a program: how often it runs while the others run once; traffic is weighted so.
    sizes, where, read_all
        The values of dimensions; see `memplan.scenarios.envelope`. One plan is for all of them.
    paths, known
        Of a program that chooses between branches: the paths that have plans of their own, an empty
        list for all of them; see `memplan.scenarios.paths`. The parts of the answer are the plan
        with which runs begin, and those of the paths.
    pins
        By id: the offset at which a buffer has to lie. The buffers of several programs are
        "program/buffer".
    pure
        See `memplan.levers.rewrite.reorder`.
    costs, spill
        See `memplan.levers.rewrite.recompute`.
    max_extra
        The most work that levers may add, as a share of that of the program. By default there is no
        limit where a capacity has to be met, and a tenth elsewhere.
    minimize
        Whether the smallest peak is looked for although a capacity is given.
    timeout, nodes
        For all searches together; see `memplan.solve`.
    solver, threads, seed, options
        See `memplan.solve`; they are of plans in one arena.
    writers
        For each program, what its runtime takes; by default none in particular. Of one program in
        one arena, what the runtime needs is measured where it can be, and decides:
        `answer.find(memplan.Arranged)` has the file.
    constrain
        Adds what a plan has to keep to; it is called for each program that is planned.

    Returns
    -------
    Answer
        If one arena was asked for and no plan was found, its plan has no offsets and says so.

    Raises
    ------
    MemplanError
        One sentence: if two of these do not combine, or as `memplan.load`, the levers and the
        machine.
    InfeasibleError, NoPlanError
        If nothing fits: proved, or as far as was searched.
    KeyboardInterrupt
        On Ctrl-C before there is an answer; after that, the best one is returned.

    Examples
    --------
    >>> import memplan as mp
    >>> graph = "examples/models/residual.graph.json"
    >>> found = mp.plan(graph, levers=["order", "in place"])
    >>> str(found.status), found.peak
    ('optimal', 73728)
    >>> fast, slow = mp.Memory("sram", 40_000), mp.Memory("psram", read=8, write=8)
    >>> found = mp.plan([graph, graph], names=["a", "b"], machine=mp.Machine((fast, slow)))
    >>> [axis.name for axis in found.axes], len(found.parts)
    (['traffic'], 4)
    """
    several = isinstance(programs, (list, tuple))
    given = list(programs) if several else [programs]
    if not given:
        raise MemplanError("there is no program to plan; name at least one")
    place = machine or Machine()
    if capacity is not None:
        place = replace(place, capacity=capacity)
    question = Question(
        models=given,
        place=place,
        levers=find_levers(levers),
        names=names,
        keep=tuple(keep),
        overlap=tuple(overlap),
        often=dict(often or {}),
        sizes={
            name: values if isinstance(values, (int, str)) else list(values)
            for name, values in (sizes or {}).items()
        },
        where=(where,) if isinstance(where, str) else tuple(where),
        read_all=read_all,
        paths=None if paths is None else tuple(paths),
        known=None if known is None else tuple(known),
        aim=Aim(pure=tuple(pure), costs=costs, spill=spill, states=nodes),
        search=Search(solver, "min_peak" if minimize else None, threads, seed, options),
        budget=SharedBudget(timeout, nodes),
        nodes=nodes,
        pins=dict(pins or {}),
        constrain=constrain,
    )
    question.check()
    if writers is not None and len(writers) != len(given):
        raise MemplanError(f"there are {len(writers)} writers for {len(given)} programs")
    with stoppable() as stop:
        if writers is not None and is_for_runtime(question):
            found = place_for_runtime(question, writers[0], max_extra)
        else:
            found = _Search(question, max_extra, writers).answer()
    changes = (step.change for step in found.steps)
    interrupted = stop.is_set or any(getattr(each, "interrupted", False) for each in changes)
    return replace(found, seconds=question.budget.elapsed, interrupted=interrupted)


class _Outcome(NamedTuple):
    """What a choice of candidates gave, the best first by its key."""

    key: tuple[float, ...]
    chosen: tuple[Candidate, ...]
    joint: Joint
    placed: Placed


@dataclass(frozen=True)
class _Search:
    """Looks for the best choice of what the levers make of the programs."""

    asked: Question
    max_extra: float | None
    writers: Sequence[Writer] | None
    failed: dict[str, PlanError] = field(default_factory=dict)  # by lever, why it made nothing

    def answer(self) -> Answer:
        """Return the best answer that is found."""
        refuse_pairs(self.asked.list_ideas())
        pools = self._fill_pools()
        first = self.asked.scenario()
        machine = self.asked.machine
        if machine.penalties is not None:
            given = tuple(pool[0] for pool in pools)
            machine = machine.check(self.asked.join(first, given))
        best = self._search(pools, machine)
        return self._finish(best, pools, machine)

    def _fill_pools(self) -> list[list[Candidate]]:
        """Return by program what could be planned: itself first, and what the levers made."""
        load = max(loaded.problem.max_load for loaded in self.asked.given)
        parallel = any(
            each.graph is not None and each.graph.has_streams for each in self.asked.given
        )
        goals = self.asked.machine.list_goals(load, parallel=parallel)
        knows_goal = bool(goals or self.asked.machine.capacity or self.asked.machine.memories)
        for lever in self.asked.levers:
            if lever.needs_goal and not knows_goal:
                raise MemplanError(
                    f"{lever.name} needs to know how much memory there is; give a capacity, or "
                    "memories of which the fastest has a size"
                )
        limit = self.max_extra
        if limit is None:
            limit = MAX_EXTRA if self.asked.machine.capacity is None else inf
        aim = replace(
            self.asked.aim,
            goals=goals,
            in_place=any(lever.name == "in place" for lever in self.asked.levers),
            has_order=any(lever.name == "order" for lever in self.asked.levers),
            max_extra=limit,
            seconds=lambda: self.asked.budget.share(2).seconds,
        )
        pools = []
        for number, loaded in enumerate(self.asked.given):
            beside = self._beside[number] if goals else 0
            less = [goal - beside for goal in goals if goal > beside]
            aim = replace(aim, goals=tuple(dict.fromkeys((*goals, *less))))
            writer = Plain(loaded) if self.writers is None else self.writers[number]
            given = writer.open()
            pool = [Candidate(given)]
            for lever in self.asked.levers:
                reason = lever.explain_refusal(given, writer)
                if reason:
                    raise MemplanError(f"{lever.name}: {reason}")
                for each in list(pool):
                    if len(pool) >= _MOST_POOL or (is_stopped() and len(pool) > 1):
                        break
                    try:
                        pool += lever.list_candidates(each, writer, aim)
                    except PlanError as error:
                        self.failed.setdefault(lever.name, error)
            pools.append([*self._name_all(number, pool)])
        return pools

    def _name_all(self, number: int, pool: list[Candidate]) -> Iterator[Candidate]:
        """Yield what could be planned of a program, but changes that contradict the pins."""
        yield self._named(number, pool[0])
        for each in pool[1:]:
            with suppress(ProblemError):
                yield self._named(number, each)

    @cached_property
    def _beside(self) -> list[int]:
        """By program: the bytes of others that are there whenever it runs, or may be."""
        found = [sum(self._kept) - each for each in self._kept]
        for pair in find_pairs(self.asked.called, self.asked.overlap):
            for one, other in (pair, pair[::-1]):
                found[one] += self.asked.given[other].problem.max_load - self._kept[other]
        return found

    @cached_property
    def _kept(self) -> list[int]:
        """By program: the bytes that it keeps while others run, whatever the levers do."""
        if len(self.asked.given) == 1:
            return [0]
        named = list(zip(self.asked.called, self.asked.given, strict=True))
        joint = self.asked.in_turn.join(named, self.asked.budget)
        return [
            0 if loaded.in_place else sum(int(own.size[own.index(id)]) for id in ids)
            for loaded, (_, own, ids) in zip(self.asked.given, joint.programs, strict=True)
        ]

    def _named(self, number: int, candidate: Candidate) -> Candidate:
        """Return a candidate with what its plan has to keep to; its steps name the program."""
        if len(self.asked.models) > 1:
            name = self.asked.called[number]
            steps = tuple(replace(step, program=name) for step in candidate.steps)
            candidate = replace(candidate, steps=steps)
        loaded = self.asked.pin(number, candidate.variant.loaded)
        return replace(candidate, variant=replace(candidate.variant, loaded=loaded))

    def _search(self, pools: list[list[Candidate]], machine: Machine) -> _Outcome:
        """Return the best choice of candidates."""
        known: dict[tuple[int, ...], _Outcome | None] = {}
        errors: list[PlanError] = []
        inner = self.asked.scenario()
        count = prod(map(len, pools))
        is_small = count <= _MOST_CHOICES
        total = count if is_small else sum(map(len, pools))

        def look_at(choice: tuple[int, ...]) -> _Outcome | None:
            if choice not in known:
                chosen = tuple(pool[at] for pool, at in zip(pools, choice, strict=True))
                left = max(1, total - len(known))
                try:
                    joint = self.asked.join(inner, chosen)
                    placed = machine.place(joint, self.asked.budget, left, self.asked.search)
                    known[choice] = _Outcome(self._rank(placed, chosen), chosen, joint, placed)
                except PlanError as error:
                    errors.append(error)
                    known[choice] = None
            return known[choice]

        best: _Outcome | None = None
        choices = product(*(range(len(pool)) for pool in pools))
        if is_small:
            for choice in choices:
                found = look_at(choice)
                if found is not None and (best is None or found.key < best.key):
                    best = found
                if best is not None and (is_stopped() or self._is_enough(best)):
                    break
        else:
            best = self._descend(pools, look_at)
        if best is None:
            raise self._explain(errors, pools)
        if best.placed.axes[0].found is None and not self._is_proved(pools):
            over_inputs = any(lever.name == "in place" for lever in self.asked.levers)
            over_inputs |= any(loaded.in_place for loaded in self.asked.given)
            for error in self.failed.values():  # it says why not even a lever helps
                if not over_inputs:  # what it proves is of programs without writes over inputs
                    raise error
        return best

    def _descend(
        self,
        pools: list[list[Candidate]],
        look_at: Callable[[tuple[int, ...]], _Outcome | None],
    ) -> _Outcome | None:
        """Change one program at a time, from the given ones on, as long as that helps."""
        at = tuple(0 for _ in pools)
        best = look_at(at)
        is_better = True
        while is_better and not is_stopped():
            is_better = False
            for number, pool in enumerate(pools):
                for other in range(len(pool)):
                    choice = (*at[:number], other, *at[number + 1 :])
                    found = look_at(choice)
                    if found is not None and (best is None or found.key < best.key):
                        best, at, is_better = found, choice, True
        return best

    def _rank(self, placed: Placed, chosen: Sequence[Candidate]) -> tuple[float, ...]:
        """Return what is compared, the least first: what fits, then the axes, then work."""
        extra = sum(each.extra for each in chosen)
        found = [inf if axis.found is None else float(axis.found) for axis in placed.axes]
        limit = self.asked.machine.capacity
        if (
            self.asked.machine.is_arena
            and limit is not None
            and self.asked.search.objective is None
        ):
            return (max(0.0, found[0] - limit), extra, *found)
        return (*found, extra)

    def _is_enough(self, best: _Outcome) -> bool:
        """Whether nothing can be better: it fits, and nothing was repeated for it."""
        limit, first = self.asked.machine.capacity, best.placed.axes[0].found
        asks_fit = self.asked.machine.is_arena and self.asked.search.objective is None
        is_free = not any(each.extra for each in best.chosen)
        return asks_fit and limit is not None and first is not None and first <= limit and is_free

    def _explain(self, errors: Sequence[PlanError], pools: list[list[Candidate]]) -> PlanError:
        """Return why no candidate was placed; that is a proof only if levers can do no more."""
        first = errors[0]
        if not isinstance(first, InfeasibleError) or self._is_proved(pools):
            return first
        text = str(first).removeprefix("proved: ")
        return NoPlanError(f"{text}; nor does it with any of the changes that were looked at")

    def _is_proved(self, pools: list[list[Candidate]]) -> bool:
        """Whether what has no plan has none whatever the levers do."""
        limit = self.asked.machine.capacity
        is_below = self._has_one_load and limit is not None
        return not self.asked.levers or (is_below and self._find_bound(pools) > (limit or 0))

    @property
    def _has_one_load(self) -> bool:
        """Whether what no lever goes below bounds the arena: of all branches, at one size."""
        return self.asked.machine.is_arena and not self.asked.sizes and self.asked.paths is None

    def _weaken(self, part: Part, pools: list[list[Candidate]]) -> Part:
        """Return a part that says no more than what is proved of all that the levers can do."""
        if part.plan.status is not Status.INFEASIBLE or self._is_proved(pools):
            return part
        bound, solver = part.plan.lower_bound, part.plan.solver
        return replace(
            part,
            plan=Plan.of(
                part.plan.problem or part.problem,
                None,
                status=Status.UNKNOWN,
                lower_bound=bound,
                solver=solver,
            ),
        )

    def _settle_notes(self, joint: Joint, machine: Machine) -> Iterator[Note]:
        """Yield the notes of the programs, without that on one arena if blocks keep the limit."""
        hosts = [each.block_limit for each in self.asked.given if each.block_limit is not None]
        is_kept = machine.block is not None and machine.block <= min(hosts, default=0)
        for note in joint.notes:
            if note.code is not Code.BLOCK_LIMIT or not is_kept:
                yield note

    def _finish(self, best: _Outcome, pools: list[list[Candidate]], machine: Machine) -> Answer:
        """Return the answer, which the referee accepts."""
        joint, placed, chosen = best.joint, best.placed, best.chosen
        parts = placed.parts or tuple(
            part for place in placed.places for part in joint.split(*place)
        )
        by_program = dict(zip(self.asked.called, chosen, strict=True))
        parts = tuple(
            self._weaken(_with_order(part, by_program.get(part.program)), pools) for part in parts
        )
        notes = dict.fromkeys((*self._settle_notes(joint, machine), *placed.notes))
        joined = joint.claims if placed.parts else joint.list_claims(parts)
        claims: list[Claim] = [*placed.claims, *joined]
        for candidate, loaded in zip(chosen, self.asked.given, strict=True):
            claims += self._list_claims(loaded, candidate)
        answer = Answer(
            parts,
            self._list_axes(best, pools),
            tuple(self._list_steps(chosen, pools)),
            tuple(notes),
            tuple(claims),
            tuple(each.variant.loaded for each in chosen),
            self.asked.machine.capacity,
            facts=list_facts(claims),
            stretches=getattr(placed.detail, "stretches", ()),
            question=describe_question(self.asked, machine),
        )
        answer.verify()
        return answer

    def _list_claims(self, program: Loaded, made: Candidate) -> Iterator[Claim]:
        """Yield what the referee checks of each step: it is about the program that the step got."""
        for at, step in enumerate(made.steps):
            lever = self.asked.find_lever(step)
            if type(lever).list_claims is not Lever.list_claims:
                given = program
                for before in made.steps[:at]:
                    given = self.asked.find_lever(before).redo(given, before)
                yield from lever.list_claims(given, step, self.asked.aim)

    def _list_steps(
        self, chosen: Sequence[Candidate], pools: list[list[Candidate]]
    ) -> Iterator[Step]:
        """Yield what each lever did to each program, with what it found for scripts."""
        several = len(pools) > 1
        for name, candidate, pool in zip(self.asked.called, chosen, pools, strict=True):
            for step in candidate.steps:
                yield replace(step, facts=summarise_change(step.change))
            for step in self._list_untaken(candidate, pool):
                yield replace(step, program=name if several else "")

    def _list_untaken(self, chosen: Candidate, pool: list[Candidate]) -> Iterator[Step]:
        """Yield what levers found that was not taken, or why they found nothing."""
        taken = {step.lever for step in chosen.steps}
        found = {step.lever: step for each in reversed(pool) for step in each.steps}
        for lever in self.asked.levers:
            if lever.name in found and lever.name not in taken:
                other = found[lever.name]
                facts = summarise_change(other.change)
                words = f"not taken: {other.words}"
                yield replace(other, words=words, data={}, facts=facts, taken=False)
            elif lever.name not in found:
                load = chosen.variant.loaded.problem.max_load
                why = self.failed.get(lever.name, "nothing to do")
                yield Step(lever.name, load, words=f"none: {why}", taken=False)

    def _list_axes(self, best: _Outcome, pools: list[list[Candidate]]) -> tuple[Axis, ...]:
        """Return what was minimised; with levers, a bound has to be of all that they can do."""
        axes = [*best.placed.axes, *best.joint.axes]
        if self.asked.levers:
            axes = [replace(axis, scope=axis.scope or _CHOSEN) for axis in axes]
            if self._has_one_load:
                axes[0] = replace(axes[0], bound=self._find_bound(pools), scope="")
        if any(each.extra for pool in pools for each in pool):
            extra = sum(each.extra for each in best.chosen)
            axes.append(Axis("more work", "share of the program", extra, 0.0))
        return tuple(axes)

    def _find_bound(self, pools: list[list[Candidate]]) -> int:
        """Return what no program that the levers make goes below, with what others keep."""
        return max(
            min(lever.find_bound(pool[0].variant, pool) for lever in self.asked.levers)
            + sum(self._kept)
            - kept
            for pool, kept in zip(pools, self._kept, strict=True)
        )


def _with_order(part: Part, candidate: Candidate | None) -> Part:
    """Return a part whose plan says in which order the operators of the given program run."""
    steps = () if candidate is None else candidate.steps
    runs = [step.data["runs"] for step in steps if "runs" in step.data]
    others = [step for step in steps if "runs" not in step.data and step.lever != "in place"]
    if len(runs) != 1 or others:  # the order would be that of another program
        return part
    return replace(part, plan=part.plan.with_stats(order=list(runs[0])))

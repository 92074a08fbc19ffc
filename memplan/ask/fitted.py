"""One program for a runtime: what that needs in the end is measured, and decides.

The levers are those of all questions; what they make is planned, written and measured by a `Writer`
(`memplan.levers.pipeline`), and what adds no work comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from memplan.answer import Answer, Axis, Part, Step
from memplan.ask.facts import summarise_change
from memplan.ask.machines import Machine
from memplan.ask.question import Question
from memplan.ask.saved import describe_question
from memplan.levers import Writer
from memplan.levers.pipeline import Arranged, arrange

__all__ = ["answer_of", "is_for_runtime", "place_for_runtime"]

ARENA: Final = "arena"  # the axis of what a runtime needs; its plan is the axis "peak"
_LEVERS: Final = frozenset({"in place", "order", "again", "bands"})
_OF_PLAN: Final = "of the plan"  # how the arena is known if nothing was measured


def is_for_runtime(question: Question) -> bool:
    """Whether a question is about one program as it is, in one arena, so that it can be written."""
    asked, aim = question, question.aim
    others = (asked.sizes, asked.keep, asked.overlap, asked.often, asked.pins, asked.constrain)
    has_paths = asked.paths is not None
    is_plain = not (any(others) or has_paths or aim.costs or aim.spill or asked.place.reserved)
    known = {lever.name for lever in asked.levers} <= _LEVERS
    return len(asked.models) == 1 and asked.place.is_arena and is_plain and known


def place_for_runtime(question: Question, writer: Writer, max_extra: float | None) -> Answer:
    """Return what the levers make of a program, as the runtime of a writer needs least for it."""
    names, search = {lever.name for lever in question.levers}, question.search
    found = arrange(
        writer,
        in_place="in place" in names,
        order="order" in names,
        again="again" in names,
        bands="bands" in names,
        max_extra=max_extra,
        capacity=question.place.capacity,
        first_fit=question.place.capacity is not None and search.objective is None,
        pure=question.aim.pure,
        timeout=question.budget.share(1).seconds,
        nodes=question.nodes,
        solver=search.solver,
        threads=search.threads,
        seed=search.seed,
        **search.options,
    )
    return answer_of(found, question)


def answer_of(found: Arranged, question: Question) -> Answer:
    """Return the answer that a program for a runtime is."""
    (name,) = question.called
    machine: Machine = question.place
    return Answer(
        (Part(name, found.planned.problem, found.plan, name),),
        tuple(_list_axes(found, question)),
        tuple(_list_steps(found, question)),
        found.notes,
        (found,),
        (found.planned.loaded,),
        machine.capacity,
        found.seconds,
        found.interrupted,
        facts={"how": found.best.written.how, "fits": found.fits},
        question=describe_question(question, machine),
    )


def _list_axes(found: Arranged, question: Question) -> Iterator[Axis]:
    names = {lever.name for lever in question.levers}
    bound, _ = found.find_floor() if names else (found.bound, "")
    if not names & {"again", "bands"} and found.bound_of_orders is not None:
        bound = max(bound, found.bound_of_orders)
    if found.best.written.how != _OF_PLAN:
        yield Axis(ARENA, "bytes", found.arena, 0)
    if found.plan.has_offsets:
        yield Axis("peak", "bytes", found.plan.peak, bound)
    if names & {"again", "bands"}:
        yield Axis("more work", "share of the program", found.extra, 0.0)


def _list_steps(found: Arranged, question: Question) -> Iterator[Step]:
    """Yield what the levers did to the program, in turn, and then what else was tried."""
    told = {step.lever: step for step in found.steps}
    done = found.best.steps
    for step in done:
        yield replace(step, arena=told[step.lever].arena, facts=summarise_change(step.change))
    is_in_place, was_in_place = found.planned.in_place, found.given.loaded.in_place
    if is_in_place or was_in_place:
        words = f"results {'over' if is_in_place else 'beside'} inputs"
        yield Step("in place", found.arena, words=words, data={"in_place": is_in_place})
    taken = {step.lever for step in done} | ({"in place"} if is_in_place else set())
    for step in found.steps:
        if step.lever not in taken:
            yield replace(step, taken=False)
    for lever in question.levers:
        if lever.name not in told.keys() | taken:
            yield Step(lever.name, found.arena, words="not tried", taken=False)

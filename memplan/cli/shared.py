"""`memplan verify` on plans of programs in one arena, as `memplan plan A B` writes them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from memplan.cli import options, output, reading

if TYPE_CHECKING:
    from memplan.problem.plan import Plan, Shared
    from memplan.programs.sources import Loaded
    from memplan.programs.sources.options import Board
    from memplan.referee import Tenant

__all__ = ["verify", "verify_beside"]


def verify(
    inputs: Sequence[str],
    folder: str,
    plans: Mapping[str, Plan],
    model: options.Model,
    constraints: options.Constraints,
    board: Board | None,
) -> None:
    """Check the plans in a folder as one arena; say why, and exit with 1, if one is wrong.

    Of programs that are not among the inputs, only the places of their buffers are checked. The
    capacity and what is reserved are of the arena.
    """
    capacity, reserved = constraints.capacity, constraints.list_reserved()
    from memplan.base.errors import PlanError

    named = _by_program(folder, plans)
    left = dict(named)
    tenants: dict[str, Tenant] = {}
    for each in inputs:
        loaded = reading.read_input(each, model, board=board)
        if not left:
            raise typer.BadParameter(
                f"there are {len(inputs)} programs, but plans of {len(named)}", param_hint="'INPUT'"
            )
        path, plan = _choose(each, loaded, left, model.in_place)
        del left[_shared(plan).program]
        try:
            tenants[_shared(plan).program] = _settle(loaded, plan, model.in_place)
        except PlanError as error:
            _refuse(path, error)
    _check(folder, named, tenants, capacity)
    _check_reserved(named, reserved)
    for line in _describe(named, left):
        output.line(line)


def verify_beside(loaded: Loaded, plan: Plan, path: str, *, in_place: bool) -> list[str]:
    """Check a plan that is right by itself with the plans of the other programs beside its file.

    `loaded` is the program in the layout of the plan. Return in lines what was checked, and what
    was not; if a plan is wrong, say why, and exit with 1.
    """
    shared, folder = _shared(plan), os.path.dirname(path) or "."
    others = [name for name in shared.programs if name != shared.program]
    files = {os.path.join(folder, f"{name}{reading.PLAN_SUFFIX}"): name for name in others}
    if not all(map(os.path.isfile, files)):
        from memplan.base.errors import listed

        missing = next(file for file in files if not os.path.isfile(file))
        return [
            f"not checked: the arena that it shares with {listed(others, quote=False)}; there is "
            f"no {missing}"
        ]
    from memplan.problem import formats

    plans = {path: plan, **{file: formats.load_plan(file) for file in files}}
    named = _by_program(folder, plans)
    tenant = _settle(loaded, plan, in_place)
    _check(folder, named, {shared.program: tenant}, None)
    return _describe(named, others)


def _shared(plan: Plan) -> Shared:
    assert plan.shared is not None
    return plan.shared


def _by_program(folder: str, plans: Mapping[str, Plan]) -> dict[str, tuple[str, Plan]]:
    """Return path and plan by program; exit with 1 if these are not the plans of one arena."""
    from memplan.base.errors import listed

    first = _shared(next(iter(plans.values())))
    found: dict[str, tuple[str, Plan]] = {}
    for path, plan in plans.items():
        each = plan.shared
        if each is None or {*each.programs} != {*first.programs}:
            of = listed(first.programs, quote=False)
            _refuse(path, f"it is not the plan of one of the programs {of} in one arena")
        if each.program in found:
            _refuse(path, f"it is of {each.program}, as is {found[each.program][0]}")
        if each.arena != first.arena:
            other = f"that of {first.program} has {first.arena}"
            _refuse(path, f"its arena has {each.arena} bytes, but {other}")
        found[each.program] = path, plan
    missing = [name for name in first.programs if name not in found]
    if missing:
        _refuse(folder, f"there is no plan of {listed(missing, quote=False)}")
    for name, (path, plan) in found.items():
        for other in _shared(plan).overlap:
            if name not in _shared(found[other][1]).overlap:
                _refuse(path, f"it may overlap with {other}, whose plan does not say so")
    return found


def _choose(
    path: str, loaded: Loaded, plans: Mapping[str, tuple[str, Plan]], in_place: bool
) -> tuple[str, Plan]:
    """Return the plan of an input: one for this problem, or else that with its name."""
    from memplan.base.errors import listed
    from memplan.solvers.planning import layouts

    stem = Path(output.names.get(path, path)).name.partition(".")[0]
    prints = {each.problem.fingerprint for each in layouts(loaded, in_place=in_place)}
    same = [name for name, (_, plan) in plans.items() if plan.fingerprint in prints]
    if same or stem in plans:
        return plans[stem if stem in same or not same else same[0]]
    raise typer.BadParameter(
        f"{path!r} is none of the programs whose plans are left: {listed(plans, quote=False)}",
        param_hint="'INPUT'",
    )


def _settle(loaded: Loaded, plan: Plan, in_place: bool) -> Tenant:
    """Return a program with its plan, states among them, if the referee accepts it by itself."""
    from memplan.referee import Tenant
    from memplan.solvers.planning import layout_of, place_states

    shared = _shared(plan)
    problem, placed = place_states(layout_of(loaded, plan, in_place=in_place), plan)
    return Tenant(shared.program, problem, placed, _list_kept(plan))


def _of_plan_alone(plan: Plan) -> Tenant:
    """Return a program that is not given: its buffers and states where its plan has them."""
    from memplan.problem.plan import Plan
    from memplan.referee import Tenant

    states = [each for each in _shared(plan).kept if each.id not in plan]
    placed = Plan(
        ids=[*plan.ids, *(each.id for each in states)],
        size=[*plan.size.tolist(), *(each.size for each in states)],
        offsets=[*map(plan.offset, plan.ids), *(each.offset for each in states)],
    )
    return Tenant(_shared(plan).program, None, placed, _list_kept(plan))


def _list_kept(plan: Plan) -> set[str]:
    return {each.id for each in _shared(plan).kept}


def _check(
    folder: str,
    named: Mapping[str, tuple[str, Plan]],
    given: Mapping[str, Tenant],
    capacity: int | None,
) -> None:
    """Exit with 1 if the plans are not right together."""
    from memplan.base.errors import PlanError
    from memplan.referee import verify_shared, verify_together

    order = list(named)
    tenants = [given[name] if name in given else _of_plan_alone(named[name][1]) for name in order]
    pairs = [
        (at, order.index(other))
        for at, name in enumerate(order)
        for other in _shared(named[name][1]).overlap
    ]
    try:
        verify_together(tenants, pairs)
    except PlanError as error:
        _refuse(folder, error)
    for path, plan in named.values():
        try:
            verify_shared(plan)
        except PlanError as error:
            _refuse(path, error)
    size = _shared(named[order[0]][1]).arena
    if capacity is not None and size > capacity:
        _refuse(folder, f"the arena has {size} bytes, above the capacity {capacity}")


def _check_reserved(
    named: Mapping[str, tuple[str, Plan]], reserved: Sequence[tuple[int, int]]
) -> None:
    """Exit with 1 if a buffer, or what a program keeps, lies on reserved addresses."""
    for path, plan in named.values():
        placed = _of_plan_alone(plan).plan
        for id, size in zip(placed.ids, placed.size.tolist(), strict=True):
            at = placed.offset(id)
            for lower, upper in reserved:
                if size and at < upper and lower < at + size:
                    _refuse(path, f'buffer "{id}" lies on the reserved bytes [{lower}, {upper})')


def _describe(named: Mapping[str, tuple[str, Plan]], left: Collection[str]) -> list[str]:
    """Return that the plans are right together, and what was not checked."""
    from memplan.base.errors import listed
    from memplan.view.units import exact, plural

    plans = [_shared(plan) for _, plan in named.values()]
    kept = [each for shared in plans for each in shared.kept]
    what = f"{plural(len(kept), 'buffer')} kept, {exact(sum(each.size for each in kept))}"
    size = exact(plans[0].arena)
    lines = [f"valid: {plural(len(named), 'program')} in an arena of {size}; {what}"]
    if left:
        names = listed(left, quote=False)
        lines.append(f"not checked: {names} alone; give all programs, and the folder of the plans")
    return lines


def _refuse(path: str, error: object) -> NoReturn:
    output.message(f"{path}: {error}")
    raise typer.Exit(output.INFEASIBLE)

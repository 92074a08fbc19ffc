"""The solvers of `memplan._published`, for the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import memplan._published as _published
from memplan.base.errors import MemplanError
from memplan.extensions.published.backtracking import Model, shipped
from memplan.extensions.published.policy import functions_of
from memplan.problem import Problem
from memplan.solvers import native
from memplan.solvers.registry import Solver, native_solver

__all__ = ["SOLVERS"]

# Single Object and Many Objects are two values of one option of the native module.
_SOMAS = {
    "single_object": ("into one arena, hole by hole (SOMAS, Algorithm 6)", "single"),
    "many_objects": ("into objects side by side (SOMAS, Algorithm 7)", "many"),
}


def _listed() -> Iterator[Solver]:
    for each in _published.solvers():
        name = each.name
        describe = partial(
            native_solver, each, _published.options(name), outside=partial(_make, name)
        )
        if name != "somas":
            yield describe()
            continue
        for planner, (summary, objects) in _SOMAS.items():
            yield describe(planner, summary, ("sort", "fit"), objects=objects)


def _make(name: str, options: Mapping[str, object], problem: Problem) -> native.Outside:
    given = _taken(options, problem) if name == "telamalloc" else dict(options)
    try:
        return _published.solver(name, given)
    except ValueError as error:
        raise MemplanError(str(error)) from None


def _taken(options: Mapping[str, object], problem: Problem) -> dict[str, object]:
    """Return the options for the native module, with the shipped model if one is needed."""
    taken = dict(options)
    model = taken.get("model", False)
    if isinstance(model, Model):
        taken["model"] = model.native
    elif model is not False:
        raise MemplanError(
            "the option model of telamalloc must be what "
            "memplan.extensions.published.backtracking.read returns; give it from Python"
        )
    learned = taken.get("learned")
    if isinstance(learned, Model):
        taken |= {"learned": "published", "model": learned.native}
    elif isinstance(learned, bool):
        taken["learned"] = "on" if learned else "off"
    elif learned in ("published", ["published"]):
        taken["model"] = taken.get("model") or shipped()
    elif learned not in (None, "on", "off"):
        raise MemplanError(
            "the option learned of telamalloc must be on, off, published, or a model"
        )
    if taken.get("policy", False) is not False:
        taken["policy"] = functions_of(taken["policy"], problem)
    return taken


SOLVERS = tuple(_listed())

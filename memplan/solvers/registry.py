"""What each solver is, which constraints it keeps, and which options it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from memplan.errors import MemplanError, UnsupportedError, quoted
from memplan.problem import Problem

__all__ = ["CONSTRAINTS", "SOLVERS", "Solver", "check", "parse"]

CONSTRAINTS = (
    "capacity",
    "alignment",
    "pins",
    "reserved",
    "gaps",
    "windows",
    "hints",
    "zero-size",
)


@dataclass(frozen=True, slots=True)
class Solver:
    """One way to solve a problem.

    Attributes
    ----------
    name
        As `memplan.solve(solver=...)` takes it.
    summary
        What it is, in a line.
    supports
        Those of `CONSTRAINTS` that it keeps. Hints are wishes: keeping them out of mind is legal.
    options
        What each keyword does that `memplan.solve` hands on to it.
    """

    name: str
    summary: str
    supports: frozenset[str]
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


_GREEDY = {
    "orders": "names from memplan.solvers.greedy_orders(), tried in this order",
    "first_fit": "place at the lowest offset that is free",
    "best_fit": "place into the tightest hole",
}
_MINIMALLOC = {
    "canonical": "only offset- and index-monotonic sequences (source 000, section 6.1)",
    "section_inference": "bound by the load still to come (6.2, equation 3)",
    "monotonic_floor": "no section floor below the last offset (6.2)",
    "unallocated_floor": "effective height of a section (6.2)",
    "dominance": "no offset that leaves room for another buffer below (6.3)",
    "hatless": "a buffer with nothing overhead has no alternatives (7)",
    "dynamic_ordering": "lowest viable offset first (7)",
    "static_ordering": "sort by the orders (7)",
    "dynamic_decomposition": "split where no unallocated buffer crosses (7)",
    "orders": "static orders of keys W A T Z L U C O, tried round robin (7)",
}
_EXACT = {
    "portfolio": "restarts over several branching rules",
    "release_dates": "a bound that looks at the floors of a section's buffers",
    "backjumping": "return through nodes that a conflict does not depend on",
    "gap_jump": "raise an empty floor to the next level that can carry a buffer",
    "contraction": "drop sections that another one contains",
    "decomposition": "split at times that no buffer crosses",
    "nogoods": "remember refuted problems, compare by dominance",
    "twins": "identical buffers in one order only",
    "full_span": "buffers alive in every section go to the ceiling or the floor",
    "mirror": "half of the portfolio on the reversed time axis",
}


def _solver(name: str, summary: str, options: Mapping[str, str]) -> Solver:
    return Solver(name, summary, frozenset(CONSTRAINTS), MappingProxyType(options))


SOLVERS: Mapping[str, Solver] = MappingProxyType(
    {
        each.name: each
        for each in (
            _solver("auto", "greedy, then exact where that can improve it", _GREEDY | _EXACT),
            _solver("greedy", "first fit and best fit over many orders; no proof", _GREEDY),
            _solver("minimalloc", "the search of MiniMalloc as published", _MINIMALLOC),
            _solver("exact", "branch and bound with learning and proof", _EXACT),
        )
    }
)


def parse(spec: str) -> tuple[str, dict[str, object]]:
    """Split a solver with options, such as `minimalloc:dominance=off,orders=WAT+TAW`.

    Returns
    -------
    tuple
        The name, and its options: `on` and `off` as booleans, anything else as a list of the
        names between `+`.

    Raises
    ------
    MemplanError
        If there is no such solver, or an option is not of the form `name=value`.
    """
    name, _, rest = str(spec).partition(":")
    if name not in SOLVERS:
        raise MemplanError(f"there is no solver {quoted(name)}; choose one of {', '.join(SOLVERS)}")
    options: dict[str, object] = {}
    for option in filter(None, rest.split(",")):
        key, equals, value = option.partition("=")
        if not equals or not value:
            raise MemplanError(
                f"solver option {quoted(option)} is not of the form name=on, name=off or name=a+b"
            )
        options[key] = value == "on" if value in ("on", "off") else value.split("+")
    return name, options


def check(solver: str, problem: Problem, options: Iterable[str] = ()) -> None:
    """Return if a solver keeps all constraints of a problem, and has these options.

    Raises
    ------
    UnsupportedError
        If it lacks a constraint or an option, which is named.
    """
    known = SOLVERS[solver]
    for option in options:
        if option not in known.options:
            raise UnsupportedError(
                f"{solver} has no option {quoted(option)}; it has {', '.join(known.options)}"
            )
    if len(known.supports) == len(CONSTRAINTS):
        return
    for constraint, present in _constraints(problem).items():
        if present and constraint not in known.supports:
            raise UnsupportedError(f"{solver} does not support {constraint}; the problem has some")


def _constraints(problem: Problem) -> dict[str, bool]:
    """Return for every one of `CONSTRAINTS` whether the problem has it."""
    return {
        "capacity": problem.capacity is not None,
        "alignment": problem.has_alignment,
        "pins": problem.has_pins,
        "reserved": problem.has_reserved,
        "gaps": problem.has_gaps,
        "windows": problem.has_windows,
        "hints": problem.has_hints,
        "zero-size": bool((problem.size == 0).any()),
    }

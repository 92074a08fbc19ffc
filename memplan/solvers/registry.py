"""What each solver is, which constraints it keeps, and which options it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING

from memplan.errors import MemplanError, UnsupportedError, listed, quoted
from memplan.problem import Problem

if TYPE_CHECKING:
    from memplan.solvers.run import Run

__all__ = ["CONSTRAINTS", "GROUP", "PLAIN", "SOLVERS", "Solver", "check", "check_proof", "parse"]

GROUP = "memplan.solvers"  # of the entry points under which other packages declare solvers

CONSTRAINTS = (
    "capacity",
    "alignment",
    "pins",
    "reserved",
    "gaps",
    "windows",
    "hints",
    "zero-size",
    "conflicts",
    "groups",
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
    proves
        Whether it can write down why no plan is better.
    core, preset
        The solver of the core that it is, and the options that make it so.
    solve
        What runs a solver that the core does not have: it reads the call from a `Run`, and offers
        it plans.
    libraries, extra
        The modules that it needs beside NumPy, and what installs them, as `pip install` takes it.
    is_baseline
        Whether it is here to be compared with; `auto` uses none of these.
    """

    name: str
    summary: str
    supports: frozenset[str]
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    proves: bool = False
    core: str = ""
    preset: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    solve: Callable[[Run], None] | None = None
    libraries: tuple[str, ...] = ()
    extra: str = ""
    is_baseline: bool = True


_FIRST = {"squeaky_wheel": "first of all: what finds no place goes earlier, and all begins anew"}
_GREEDY = _FIRST | {
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
_TELAMALLOC = {
    "lowest_position": "at the lowest valid offset (off: on top of the skyline; source 001, 5.2)",
    "subproblems": "split at times that no buffer crosses (5.3)",
    "phases": "first within the phase of contention of the last block (5.3, figure 9)",
    "culprits": "go back to the second-to-last placement at fault (off: one step; 5.4)",
    "hoisting": "candidates of a point that failed come first further up (5.4)",
    "bounded": "at most a few candidates at a point (5.4)",
    "stuck_rule": "leave a subtree after 100 backtracks in it (5.4)",
    "select": "tela (default), or one rule: size, area, lifetime or lowest (7.2, figure 14)",
    "learned": "restarts that go back to where a trained model says (6; off by default)",
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
    "tiling": "full sections in a row: all address orders at once",
}


_PROVER = {
    "learning": "of clauses (off: plain backtracking on the last decision)",
    "minimisation": "drop literals of a learned clause that the others imply",
    "lifting": "weaken explanations as far as their use allows",
    "set_bounds": "a buffer is above the sum of what is decided to lie below it",
    "overload": "a set of a clique does not fit between its bounds",
    "edge_finding": "a buffer that does not fit among a set lies above all of it",
    "transitivity": "below what is below something is below it",
    "cuts": "what lives at two times lies on one side of a buffer, whichever",
    "foundation": "a buffer that conflicts with all others goes to the bottom",
    "symmetry": "interchangeable buffers by index; one pair fixes up and down",
    "phases": "decide first as the best plan has it",
    "restarts": "begin anew now and then, and keep what was learned",
}
_LARGE = _FIRST | {
    "core": "the buffers of the tightest sections first, grown by what is rejected",
    "promote": "first fit of a core again, with the rejected ranked as tighter",
    "shells": "around a core, try what is nearly as tight before all the rest",
    "portfolio": "first-fit passes over many orders at the target",
    "bump": "of these, the rejected go to the front of the order, and again",
    "best_fit": "for some orders, after first fit",
    "windows": "stretches around the rejected placed anew, their surroundings pinned",
    "ejection": "with conflicts or groups: the rejected throw others out, which move in turn",
}
_SOMAS = {
    "sort": "who is placed first: size (default), breadth, source or unsafe (source 004, 5.2)",
    "fit": "into the first gap (default) or the best, the smallest",
}
_CSP = {
    "area_order": "largest size times lifetime first (off: as they come)",
    "forward_checking": "what is not placed keeps an offset",
    "wasted_space": "a free run counts only for buffers that are no larger",
    "dominance": "no strip at the floor that nothing can fill",
}
_META_CSP = {
    "forward_checking": "drop above or below once the distances contradict it",
    "fewest_first": "a pair with one value left is next; needs forward_checking",
    "area_order": "then the pair of largest areas (off: as they come)",
    "subsumption": "pairs that the distances order already need no value",
    "cliques": "what lies below a buffer at one time lies below it in a pile",
    "symmetry": "the first pair has one value, where top and bottom are alike",
}
PLAIN = frozenset({"capacity", "alignment", "hints", "zero-size"})  # what every baseline keeps


def _solver(
    name: str,
    summary: str,
    options: Mapping[str, str],
    *,
    lacks: Iterable[str] = (),
    proves: bool = False,
) -> Solver:
    supports = frozenset(CONSTRAINTS).difference(lacks)
    given = MappingProxyType(options)
    return Solver(name, summary, supports, given, proves, core=name, is_baseline=False)


def _greedy_alias(name: str, summary: str, **preset: object) -> Solver:
    supports = frozenset(CONSTRAINTS)
    return Solver(name, summary, supports, core="greedy", preset=MappingProxyType(preset))


def _rectangles(name: str, summary: str, options: Mapping[str, str]) -> Solver:
    supports = frozenset(CONSTRAINTS) - {"windows", "conflicts", "groups"}
    return Solver(name, summary, supports, MappingProxyType(options), core=name)


def _somas(name: str, summary: str, objects: str) -> Solver:
    lacks = {"alignment", "pins", "reserved", "windows"}
    preset = MappingProxyType({"objects": objects})
    supports = frozenset(CONSTRAINTS) - lacks
    return Solver(name, summary, supports, MappingProxyType(_SOMAS), core="somas", preset=preset)


# A switch that several parts of `auto` have is for all of them.
_OF_THE_CORE = {
    each.name: each
    for each in (
        _solver(
            "auto",
            "large and greedy, then exact where that can improve it",
            _LARGE | _GREEDY | _PROVER | _EXACT,
            proves=True,
        ),
        _solver("greedy", "first fit and best fit over many orders; no proof", _GREEDY),
        _solver(
            "minimalloc",
            "the search of MiniMalloc as published",
            _MINIMALLOC,
            lacks=["conflicts", "groups"],
        ),
        _solver(
            "telamalloc",
            "the search of TelaMalloc as published: heuristics over propagation",
            _TELAMALLOC,
            lacks=["windows", "conflicts", "groups"],
        ),
        _solver("exact", "branch and bound beside the prover", _EXACT | _PROVER, proves=True),
        _solver(
            "prover",
            "clause learning over pair orders, by itself",
            _PROVER,
            lacks=["windows"],
            proves=True,
        ),
        _solver("large", "for a million buffers: orders, critical core, windows", _LARGE),
        # Those of source 002 (section 2.3), and the shared objects of source 003.
        _greedy_alias(
            "greedy_by_size",
            "largest first, best fit (Pisarchyk and Lee 2020)",
            orders=["size"],
            first_fit=False,
        ),
        _somas("single_object", "into one arena, gap by gap (source 004, Algorithm 6)", "single"),
        _somas("many_objects", "into objects side by side (source 004, Algorithm 7)", "many"),
        # Those from rectangle packing that source 000 compares with (section 8).
        _rectangles("csp", "a variable a buffer: its offset, of all that there are", _CSP),
        _rectangles("meta_csp", "a variable a pair of buffers: above or below", _META_CSP),
        # Those that source 001 compares with, and the planners of other compilers.
        _greedy_alias(
            "contention_skyline",
            "highest contention first, on the skyline (source 001, 3.1)",
            orders=["tela"],
            best_fit=False,
        ),
        _greedy_alias(
            "xla_best_fit",
            "the better of largest and longest-lived first, best fit (XLA)",
            orders=["size", "lifetime"],
            first_fit=False,
        ),
    )
}


class _Solvers(Mapping[str, Solver]):
    """By name: those of the core, then those of other packages.

    The others are loaded when a name is asked for that the core does not have, or when all are
    listed: who solves by `auto` does not wait for them.
    """

    def __getitem__(self, name: str) -> Solver:
        found = _OF_THE_CORE.get(name)
        return self._others[name] if found is None else found

    def __iter__(self) -> Iterator[str]:
        yield from _OF_THE_CORE
        yield from self._others

    def __len__(self) -> int:
        return len(_OF_THE_CORE) + len(self._others)

    @cached_property
    def _others(self) -> dict[str, Solver]:
        declared = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
        found = {each.name: each for entry in declared for each in _declared(entry)}
        return {name: each for name, each in found.items() if name not in _OF_THE_CORE}


def _declared(entry: EntryPoint) -> Iterable[Solver]:
    """Return the solvers that an entry point leads to: one `Solver`, or several."""
    package = entry.dist.name if entry.dist is not None else entry.value
    try:
        found = entry.load()
    except Exception as error:  # whatever the other package raises while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise MemplanError(
            f"the solvers of the package {package} cannot be loaded: {reason[:150]}"
        ) from error
    solvers = (found,) if isinstance(found, Solver) else tuple(found)
    if any(not isinstance(each, Solver) or each.solve is None for each in solvers):
        raise MemplanError(
            f"the package {package} declares {entry.value} as solvers; each must be a "
            "memplan.solvers.registry.Solver with a function solve"
        )
    return solvers


SOLVERS: Mapping[str, Solver] = _Solvers()


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
        known = listed(SOLVERS, quote=False)
        raise MemplanError(
            f"there is no solver {quoted(name)}; choose one of {known} (see memplan solvers)"
        )
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
                f"{solver} has no option {quoted(option)}; "
                f"it has {', '.join(known.options) or 'none'}"
            )
    if len(known.supports) == len(CONSTRAINTS):
        return
    for constraint, present in _constraints(problem).items():
        if present and constraint not in known.supports:
            raise UnsupportedError(f"{solver} does not support {constraint}; the problem has some")


def check_proof(solver: str, problem: Problem) -> None:
    """Return if a solver can write down a proof about a problem.

    Raises
    ------
    UnsupportedError
        If it has none, or the problem has something of which a proof cannot speak.
    """
    if not SOLVERS[solver].proves:
        able = ", ".join(name for name, each in SOLVERS.items() if each.proves)
        raise UnsupportedError(f"{solver} writes no proof; choose one of {able}")
    present = _constraints(problem)
    for constraint in ("windows", "conflicts", "groups"):
        if present[constraint]:
            raise UnsupportedError(f"a proof cannot speak of {constraint}; the problem has some")


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
        "conflicts": problem.has_conflicts,
        "groups": problem.has_groups,
    }

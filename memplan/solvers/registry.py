"""The registry of solvers: the constraints that each supports, and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from memplan.base.errors import (
    MemplanError,
    MissingExtraError,
    UnsupportedError,
    listed,
    quoted,
    suggest,
)
from memplan.base.extras import is_installed
from memplan.problem import Problem
from memplan.solvers import native

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from memplan.solvers.run import Run

__all__ = [
    "CONSTRAINTS",
    "GROUP",
    "PLAIN",
    "SOLVERS",
    "Solver",
    "check",
    "check_libraries",
    "check_proof",
    "native_solver",
    "options_of",
    "parse",
]

GROUP = "memplan.solvers"  # the entry points with which other packages declare solvers

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
        As in `memplan.solve(solver=...)`.
    summary
        A description in one line.
    supports
        The names in `CONSTRAINTS` that it supports. A solver may ignore hints.
    options
        By keyword of `memplan.solve`: a sentence on the option.
    defaults
        The values of keywords that are not given; only native solvers list them.
    proves
        Whether it can write a proof that no plan is better.
    core, preset
        The native solver that it calls, and the options that it sets there.
    outside
        Makes, of options and the problem of a call, what the core runs in place of a solver of its
        own; for solvers in other native modules.
    solve
        The function of a solver outside of the core: it reads the call from a `Run`, and offers it
        plans.
    libraries, extra
        The modules that it needs other than NumPy, and the argument of `pip install` for them.
    is_baseline
        Whether it is only for comparison; `auto` uses no baseline.
    is_refereed
        Whether `memplan.solve` lets the referee check each plan of `solve`. The laboratory checks
        its planners after it has read the clock, so that the check does not count as their time.
    """

    name: str
    summary: str
    supports: frozenset[str]
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    defaults: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    proves: bool = False
    core: str = ""
    preset: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    outside: Callable[[Mapping[str, object], Problem], native.Outside] | None = None
    solve: Callable[[Run], None] | None = None
    libraries: tuple[str, ...] = ()
    extra: str = ""
    is_baseline: bool = True
    is_refereed: bool = True


PLAIN = frozenset({"capacity", "alignment", "hints", "zero-size"})  # what every baseline keeps


def native_solver(
    solver: native.Solver,
    rows: native.Options,
    name: str = "",
    summary: str = "",
    options: Iterable[str] | None = None,
    outside: Callable[[Mapping[str, object], Problem], native.Outside] | None = None,
    **preset: object,
) -> Solver:
    """Return a native solver, or with `preset` a planner that sets these options.

    Parameters
    ----------
    solver, rows
        What the native module says of the solver and of its options.
    name, summary, options
        In place of its own; `options` are those that a caller may set.
    outside
        As in `Solver`.
    **preset
        The options of the native solver that this planner sets.
    """
    # Several parts of a solver may have an option of the same name; one row stands for all.
    known = {row[0]: row for row in rows}
    kept = known if options is None else options
    return Solver(
        name or solver.name,
        summary or solver.says,
        supports=frozenset(CONSTRAINTS).difference(solver.lacks),
        options=MappingProxyType({option: known[option][2] for option in kept}),
        defaults=MappingProxyType({option: known[option][1] for option in kept}),
        proves=solver.proves and not preset,
        core=solver.name,
        preset=MappingProxyType(preset),
        outside=outside,
        is_baseline=solver.baseline or bool(preset),
    )


_CORE = {each.name: each for each in native.solvers()}
_greedy = partial(native_solver, _CORE["greedy"], native.options("greedy"), options=())
_OF_THE_CORE = {
    each.name: each
    for each in (
        *(native_solver(solver, native.options(name)) for name, solver in _CORE.items()),
        # This is a planner of MemoMalloc (section 2.3).
        _greedy(
            "greedy_by_size",
            "largest first, best fit (Pisarchyk and Lee 2020)",
            orders=["size"],
            first_fit=False,
        ),
        # These are the planners that TelaMalloc compares with, and those of other compilers.
        _greedy(
            "contention_skyline",
            "highest contention first, on the skyline (TelaMalloc, 3.1)",
            orders=["tela"],
            best_fit=False,
        ),
        _greedy(
            "xla_best_fit",
            "the better of largest and longest-lived first, best fit (XLA)",
            orders=["size", "lifetime"],
            first_fit=False,
        ),
    )
}


class _Solvers(Mapping[str, Solver]):
    """All solvers by name: those of the core, then those that entry points declare.

    An entry point is loaded when all are listed, or when a name is neither one of the core nor of
    those before it, so that a solve by `auto` does not wait for them. Ours come first.
    """

    def __getitem__(self, name: str) -> Solver:
        found = _OF_THE_CORE.get(name)
        if found is None:
            found = next((each for each in self._others() if each.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*_OF_THE_CORE, *(each.name for each in self._others())])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _others(self) -> Iterator[Solver]:
        for entry in self._entries:
            yield from _declared(entry)

    @cached_property
    def _entries(self) -> list[EntryPoint]:
        from importlib.metadata import entry_points

        return sorted(entry_points(group=GROUP), key=lambda each: (not _is_ours(each), each.name))


def _is_ours(entry: EntryPoint) -> bool:
    return entry.value.startswith("memplan.")


@cache
def _declared(entry: EntryPoint) -> Iterable[Solver]:
    """Return the solvers that an entry point leads to: one `Solver`, or several."""
    package = entry.dist.name if entry.dist is not None else entry.value
    try:
        found = entry.load()
    except ModuleNotFoundError as error:
        if _is_ours(entry) and str(error.name).startswith("memplan."):
            return ()  # a part of memplan that is left out
        raise _cannot_be_loaded(package, error) from error
    except Exception as error:  # the import of another package may raise any exception
        raise _cannot_be_loaded(package, error) from error
    solvers = (found,) if isinstance(found, Solver) else tuple(found)
    if any(
        not isinstance(each, Solver) or (each.solve is None and each.outside is None)
        for each in solvers
    ):
        raise MemplanError(
            f"the package {package} declares {entry.value} as solvers; each must be a "
            "memplan.solvers.registry.Solver with a function solve"
        )
    return solvers


def _cannot_be_loaded(package: str, error: Exception) -> MemplanError:
    reason = f"{type(error).__name__}: {error}"
    return MemplanError(f"the solvers of the package {package} cannot be loaded: {reason[:150]}")


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
            f"{suggest(name, SOLVERS)}"
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


def options_of(solver: str) -> list[tuple[str, str, str]]:
    """Return name, default and sentence of each option of a solver.

    Defaults are spelled as for `parse`; "-" if a solver of another package has no default.
    """
    known = SOLVERS[solver]
    return [
        (name, _spelled(known.defaults.get(name, "-")), says)
        for name, says in known.options.items()
    ]


def _spelled(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "+".join(value) or "all" if isinstance(value, list) else str(value)


def check_libraries(solver: str) -> None:
    """Refuse a solver whose library is missing; the `MissingExtraError` says what installs it."""
    known = SOLVERS[solver]
    for library in known.libraries:
        if not is_installed(library):
            raise MissingExtraError(
                f"{solver} needs the library {library}: pip install '{known.extra}'"
            )


def check(solver: str, problem: Problem, options: Iterable[str] = ()) -> None:
    """Refuse a problem or options that a solver does not support."""
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
    """Refuse a solver that cannot write down a proof about a problem."""
    if not SOLVERS[solver].proves:
        able = ", ".join(name for name, each in SOLVERS.items() if each.proves)
        raise UnsupportedError(f"{solver} writes no proof; choose one of {able}")
    present = _constraints(problem)
    for constraint in ("windows", "conflicts", "groups"):
        if present[constraint]:
            raise UnsupportedError(f"a proof cannot express {constraint}; the problem has some")


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

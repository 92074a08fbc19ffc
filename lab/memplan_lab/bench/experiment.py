"""Experiments: cases × arms → rows → tables on a terminal, in Markdown and as JSON, and a file.

    settings ──► cases ──make──► a problem, a program, ... ──arm──► figures ──► rows ──► tables
                                                                                  └────► FILE

A benchmark is one file of `memplan_lab.bench.experiments`, which declares an `Experiment`. Where an
arm needs a process of its own, limits, or turns, it sees to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from string import Formatter
from typing import Any

from memplan.base.errors import MemplanError, listed, quoted
from memplan_lab.bench.bar import bar, no_step
from memplan_lab.bench.tables import DASH, Shown

__all__ = [
    *("Arm", "Case", "Column", "Experiment", "Figures", "Row", "Rows", "Setting", "Settings"),
    *("Table", "read_count", "read_list", "read_seconds", "read_share", "ready", "tell"),
]

COMMON = ("case", "peer", "data", "limit", "timeout", "nodes")  # settings of all experiments

Row = dict[str, Any]  # experiment, case, arm, labels of both, and the figures of the arm
Rows = Sequence[Row]
Figures = Mapping[str, Any]
Settings = Mapping[str, Any]
Cell = str | Callable[[Rows], str]


@dataclass(frozen=True)
class Case:
    """What arms are measured on. It is made when its turn comes."""

    name: str
    make: Callable[[], Any]
    labels: Figures = field(default_factory=dict)  # columns of its rows


@dataclass(frozen=True)
class Arm:
    """A way to do it: takes what a case made, and returns the figures of a row, or of several."""

    name: str
    run: Callable[[Any], Figures | Iterable[Figures]]
    labels: Figures = field(default_factory=dict)


class _Cells(Formatter):
    """Formats figures; one that is missing or `None` is a dash."""

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        return kwargs.get(key)

    def format_field(self, value: Any, format_spec: str) -> Any:
        return DASH if value is None else super().format_field(value, format_spec)


def tell(
    form: str, reduce: Callable[[list[Any]], Any], of: str | Callable[[Row], Any]
) -> Callable[[Rows], str]:
    """Return a cell: the figures of a line's rows that are known, reduced to one, as a text."""

    def cell(rows: Rows) -> str:
        each = (row.get(of) if isinstance(of, str) else of(row) for row in rows)
        known = [value for value in each if value is not None]
        return form.format(reduce(known)) if known else DASH

    return cell


@dataclass(frozen=True)
class Column:
    """A column: its heading, and its cell of the rows of a line.

    A text such as "{peak:,}" is filled in from the first of them.
    """

    heading: str
    cell: Cell
    left: bool = False

    def show(self, rows: Rows) -> str:
        """Return the cell of a line."""
        if isinstance(self.cell, str):
            return _Cells().vformat(self.cell, (), rows[0])
        return self.cell(rows)


@dataclass(frozen=True)
class Table:
    """Rows as a table: those that are equal in `by` are one line."""

    title: str
    columns: Sequence[Column]
    by: Sequence[str] | None = None  # `None`: each row is a line
    total: Figures | None = None  # what names a last line for all rows

    def show(self, rows: Rows) -> Shown:
        """Return the table of some rows."""
        groups: dict[object, list[Row]] = {}
        for at, row in enumerate(rows):
            key = at if self.by is None else tuple(row.get(name) for name in self.by)
            groups.setdefault(key, []).append(row)
        lines = list(groups.values())
        if self.total is not None:
            lines.append([{**row, **self.total} for row in rows])
        return Shown(
            self.title,
            [column.heading for column in self.columns],
            [tuple(column.show(line) for column in self.columns) for line in lines],
            [at for at, column in enumerate(self.columns) if column.left or at == 0],
        )


def ready(value: Any) -> Callable[[], Any]:
    """Return what makes a case that is there already."""
    return lambda: value


def read_count(text: str) -> int:
    """Read a number of at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def read_share(text: str) -> float:
    """Read 10% or 0.1."""
    number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= number < math.inf:
        raise ValueError(text)
    return number


def read_seconds(text: str) -> float:
    """Read a positive number of seconds."""
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(text)
    return number


def read_list(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Return what reads the values of a setting, with commas between them."""
    return lambda text: tuple(map(read, text.split(",")))


@dataclass(frozen=True)
class Setting:
    """What a user may set by `--set NAME=VALUE`, or by `--set NAME` where it is off by default."""

    default: Any
    about: str
    read: Callable[[str], Any] = str

    def of(self, name: str, value: str | None) -> Any:
        """Return the value of a text."""
        if self.default is False and value is None:
            return True
        if self.default is False or value is None:
            form = f"--set {name}" if self.default is False else f"--set {name}=VALUE"
            raise MemplanError(f"{name} is set by {form}")
        try:
            return self.read(value)
        except MemplanError:
            raise
        except ValueError:
            raise MemplanError(f"--set {name}={value} is not what it takes: {self.about}") from None


@dataclass(frozen=True)
class Experiment:
    """A benchmark.

    Its functions get all settings: those of `own`, and of `case` (patterns of names), `peer`,
    `data`, `limit`, `timeout` (seconds) and `nodes` those that it `takes`, which are `None` unless
    they are chosen.
    """

    name: str
    about: str  # a sentence for the list of experiments
    figures: Mapping[str, str]  # by column of its rows: what it is, with its unit
    cases: Callable[[Settings], Iterable[Case]]
    arms: Callable[[Settings], Iterable[Arm]]
    tables: Callable[[Rows, Settings], Iterable[Table | Shown]]
    details: Callable[[Rows, Settings], Iterable[Table | Shown]] | None = None  # with --details
    takes: Sequence[str] = ("case", "limit")
    own: Mapping[str, Setting] = field(default_factory=dict)
    peers: Sequence[str] = ()  # names, where they are a closed list
    wrong: Callable[[Rows], str] | None = None  # a sentence on rows that may not be, or ""

    def settle(self, given: Settings, own: Iterable[str] = ()) -> dict[str, Any]:
        """Return all settings from those that are given, and from texts NAME=VALUE.

        Raises
        ------
        MemplanError
            If it takes no such setting, has no such peer, or a text is no value.
        """
        for name, value in given.items():
            if value is not None and name not in self.takes:
                raise MemplanError(f"{self.name} takes no --{name}; its --list says what it takes")
        for name in given.get("peer") or ():
            if self.peers and name not in self.peers:
                known = listed(self.peers, quote=False)
                raise MemplanError(f"there is no peer {quoted(name)}; choose {known}")
        defaults = {name: setting.default for name, setting in self.own.items()}
        settings = {**dict.fromkeys(COMMON), **defaults, **given}
        for text in own:
            name, equals, value = text.partition("=")
            if name not in self.own:
                known = listed(list(self.own), quote=False) or "none"
                raise MemplanError(f"{self.name} has no setting {quoted(name)}; it has {known}")
            settings[name] = self.own[name].of(name, value if equals else None)
        return settings

    def run(
        self, settings: Settings, on_row: Callable[[Row], object], *, progress: bool = False
    ) -> None:
        """Measure each arm on each case.

        Arms take turns on a case, so that a slow moment of the machine slows all of them.

        Raises
        ------
        MemplanError
            If no case has such a name, and what cases and arms raise.
        """
        patterns = settings["case"]
        chosen = (
            case
            for case in self.cases(settings)
            if not patterns or any(fnmatchcase(case.name, each) for each in patterns)
        )
        cases, arms = list(islice(chosen, settings["limit"])), list(self.arms(settings))
        if not cases:
            names = " or ".join(map(quoted, patterns or [""]))
            raise MemplanError(f"{self.name} has no case {names}")
        with bar(len(cases) * len(arms)) if progress else nullcontext(no_step) as step:
            for case in cases:
                taken: Any = None
                for at, arm in enumerate(arms):
                    step(f"{case.name} · {arm.name}")
                    taken = taken if at else case.make()
                    figures = arm.run(taken)
                    for each in (figures,) if isinstance(figures, Mapping) else figures:
                        told = {"experiment": self.name, "case": case.name, "arm": arm.name}
                        on_row({**told, **case.labels, **arm.labels, **each})

    def show(self, rows: Rows, settings: Settings, *, details: bool = False) -> Iterator[Shown]:
        """Yield the tables of some rows."""
        for make in (self.details if details else None, self.tables):
            for each in make(rows, settings) if make and rows else ():
                yield each.show(rows) if isinstance(each, Table) else each

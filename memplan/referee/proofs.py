"""The reader of proofs: checks a proof that every plan has a peak above some number of bytes.

It shares no code with solvers and uses no native code. So a proof that passes is true, whatever
solver wrote it. docs/proofs.md defines proofs; `memplan.referee.orders` has the rules of
derivation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from memplan.base.errors import FormatError, ProofError, UnsupportedError, quoted
from memplan.problem import Asked, Problem, problem_of
from memplan.referee.ground import NO_CAP, Ground, next_peak
from memplan.referee.orders import Known, Literal, contradict

__all__ = ["Claim", "verify_proof"]

_COUNT = re.compile("[0-9]{1,19}")  # of bytes, rows or clauses: below 2^64, in digits of ASCII
_LITERAL = re.compile("([0-9]{1,19})(<=|>=|<)(-?[0-9]{1,19})")


class Claim(NamedTuple):
    """What a proof proves, and how long it is.

    Attributes
    ----------
    cap
        Every plan has a peak of more than this many bytes.
    lower_bound
        The lower bound that follows, in bytes. It can be more than `cap + 1`, because without
        restrictions on offsets peaks are multiples of the greatest common divisor of the sizes.
    steps
        How many lines derive something or use a clause.
    clauses
        How many lines conclude a clause.
    """

    cap: int
    lower_bound: int
    steps: int
    clauses: int


def verify_proof(problem: Asked, file: str | os.PathLike[str] | Iterable[str]) -> Claim:
    """Check a proof about a problem and return what it proves; raise if it is wrong.

    The problem's capacity and hints are ignored. Its rows must be in the same order as when it
    was solved: the fingerprint does not cover the order, but a proof names buffers by row.

    Parameters
    ----------
    problem
        The problem; no gap may have a window.
    file
        A path, or the lines of a proof.

    Raises
    ------
    ProofError
        One sentence about the first wrong line.
    FormatError
        If the file cannot be read.
    UnsupportedError
        If the problem has windows, conflicts or groups.

    Notes
    -----
    The file is read once; only facts, clauses and the lines of the next clause are kept in memory.
    """
    problem = problem_of(problem)
    for present, what in (
        (problem.has_windows, "windows"),
        (problem.has_conflicts, "conflicts"),
        (problem.has_groups, "groups"),
    ):
        if present:
            raise UnsupportedError(f"a proof cannot express {what}; the problem has some")
    if not isinstance(file, (str, os.PathLike)):
        return _read(problem, file)
    try:
        # Latin-1 decodes all bytes; words that do not belong in a proof are rejected later.
        lines = open(file, encoding="latin-1")  # noqa: SIM115 (closed below)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FormatError(os.fspath(file), f"the file cannot be read: {reason}") from None
    with lines:
        return _read(problem, lines)


def _read(problem: Problem, lines: Iterable[str]) -> Claim:
    number = 1

    def split() -> Iterator[list[str]]:
        nonlocal number
        for number, line in enumerate(lines, 1):  # noqa: B007 (read below)
            yield line.removesuffix("\n").split(" ")

    try:
        rest = split()
        proof = _read_head(problem, rest)
        for words in rest:
            proof.read(words)
        return proof.claim()
    except ProofError as error:
        raise ProofError(str(error), line=number) from None


def _read_head(problem: Problem, lines: Iterator[list[str]]) -> _Proof:
    """Read the head of the file: its version, and the fingerprint of the problem."""
    version = _read_headline(lines, "memplan-proof")
    if version != "1":
        raise ProofError(f"the version is {quoted(version)}; only 1 is known")
    if _read_headline(lines, "problem") != problem.fingerprint:
        raise ProofError("the proof is about another problem: the fingerprints differ")
    return _Proof(problem)


def _read_headline(lines: Iterator[list[str]], kind: str) -> str:
    words = next(lines, [""])
    if words[0] != kind or len(words) != 2:
        raise ProofError(f'this line must be "{kind}" and one word; is this a proof?')
    return words[1]


class _Proof:
    """The facts and clauses that are proved so far, and the lines that belong to the next clause.

    A clause is a tuple of literals, at least one of which holds in every plan in question. A
    derived line is a clause too: its conclusion holds, or the opposite of one of its premises.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._ground = Ground(problem)
        self._facts = Known(self._ground, {}, {}, set())
        self._unit = 1  # bytes
        self._cap = NO_CAP
        self._has_rows = False  # the rows are named, or all are taken
        self._idle_peak = 0  # of the rows that never hold memory, in bytes
        self._clauses: list[tuple[Literal, ...]] = []
        self._support: list[tuple[Literal, ...]] = []
        self._steps = 0
        self._above: dict[int, list[int]] = {}  # by row: the twins that were ordered above it
        self._flipped: dict[int, Literal] = {}  # by part: the order that its flip decided
        self._ended = False
        self._kinds = {
            "rows": self._name_rows,
            "unit": self._set_unit,
            "cap": self._lower_cap,
            "base": self._lay,
            "twins": self._order_twins,
            "flip": self._flip,
            "d": self._derive,
            "use": self._use,
            "c": self._conclude,
            "refuted": self._end,
        }

    def read(self, words: Sequence[str]) -> None:
        """Check one line, given as its words."""
        if words[0] not in self._kinds:
            raise ProofError(f"{quoted(words[0])} is not a line of a proof")
        if self._ended:
            raise ProofError('"refuted" must be the last line')
        if not self._has_rows and words[0] not in ("rows", "unit", "cap"):
            self._add_rows(self._ground.live)
            self._idle_peak = self._ground.idle_peak()
            self._facts.broken |= self._cap < self._idle_peak
        self._kinds[words[0]](words[1:])

    def claim(self) -> Claim:
        """Return the proved claim; raise if the last line was not read."""
        if not self._ended:
            raise ProofError('the proof ends too early: its last line must be "refuted"')
        bound = next_peak(self._problem, self._cap)
        return Claim(self._cap, bound, self._steps, len(self._clauses))

    # The plans in question

    def _name_rows(self, words: Sequence[str]) -> None:
        rows: set[int] = set()
        for row in map(_parse_count, words):
            if row not in self._ground.live:
                raise ProofError(f"there is no row {row} that holds memory")
            if row in self._ground.size or row in rows:
                raise ProofError(f"row {row} was named before")
            rows.add(row)
        self._add_rows(rows)

    def _add_rows(self, rows: Collection[int]) -> None:
        self._has_rows = True
        self._ground.look_at(rows, self._cap)
        for row in rows:
            self._facts.lower[row] = self._ground.lift(row, 0)
            self._facts.upper[row] = self._ground.sink(row, self._ground.room(row, self._cap))
            self._facts.broken |= self._facts.lower[row] > self._facts.upper[row]

    def _set_unit(self, words: Sequence[str]) -> None:
        self._unit = _parse_count(_take_one(words))
        if self._unit == 0:
            raise ProofError("the unit is 0; it must be at least 1")

    def _lower_cap(self, words: Sequence[str]) -> None:
        cap = _parse_count(_take_one(words))
        if cap > self._cap:
            raise ProofError(f"the cap rises from {self._cap} to {cap}; it can only sink")
        self._cap = cap
        self._facts.broken |= cap < self._idle_peak
        for row in self._ground.size:
            self._facts.add(Literal(row, "<=", self._ground.room(row, cap)))

    def _lay(self, words: Sequence[str]) -> None:
        row = self._check_rows(Literal(_parse_count(_take_one(words)), ">=", 0)).row
        part = self._ground.part.get(row)
        if part is None:
            raise ProofError(f"row {row} already lies at the bottom")
        if not self._ground.free[self._ground.component[row]]:
            raise ProofError("no row can be a base where offsets are restricted")
        if part in self._flipped or row in self._rows_with_twins():
            raise ProofError(f"row {row} has a twin, or what it is connected to was flipped")
        if not all(self._ground.conflict(row, each) for each in self._ground.others(row)):
            raise ProofError(f"row {row} does not conflict with all that it is connected to")
        for each in self._ground.lay(row):
            self._facts.add(Literal(row, "<", each))

    def _rows_with_twins(self) -> set[int]:
        return {row for lower, uppers in self._above.items() for row in (lower, *uppers)}

    def _order_twins(self, words: Sequence[str]) -> None:
        order = self._parse_order(words)
        one, _, other = order
        if not self._ground.interchangeable(one, other, self._cap):
            raise ProofError(f"the rows {one} and {other} cannot be exchanged")
        if not self._ground.part.keys() >= {one, other}:
            raise ProofError(
                f"one of the rows {one} and {other} lies at the bottom; it has no twins"
            )
        if any(row in flip.rows for flip in self._flipped.values() for row in order.rows):
            raise ProofError(f"one of the rows {one} and {other} was flipped; it has no twins")
        if self._is_above(one, other):
            raise ProofError(f"row {one} was put above row {other} before")
        self._above.setdefault(one, []).append(other)
        self._facts.add(order)

    def _is_above(self, one: int, other: int) -> bool:
        """Return whether the orders of twins so far put `one` above `other`."""
        seen, fresh = {other}, [other]
        while fresh:
            found = [row for row in self._above.get(fresh.pop(), ()) if row not in seen]
            seen.update(found)
            fresh += found
        return one in seen

    def _flip(self, words: Sequence[str]) -> None:
        order = self._parse_order(words)
        one, _, other = order
        if not self._ground.free[self._ground.component[one]]:
            raise ProofError("no rows can be flipped where offsets are restricted")
        if not self._ground.part.keys() >= {one, other}:
            raise ProofError(f"one of the rows {one} and {other} lies at the bottom")
        if self._rows_with_twins() & {one, other}:
            raise ProofError(f"one of the rows {one} and {other} has a twin")
        part = self._ground.part[one]
        if part in self._flipped:
            raise ProofError("connected rows can be flipped only once")
        self._flipped[part] = order
        self._facts.add(order)

    # Steps

    def _derive(self, words: Sequence[str]) -> None:
        if len(words) < 2 or words[1] != "<-":
            raise ProofError('a derived line is "d", a literal or "-", "<-" and premises')
        premises = [self._parse_literal(word) for word in words[2:]]
        conclusion = [] if words[0] == "-" else [self._parse_literal(words[0])]
        clause = (*(literal.opposite() for literal in premises), *conclusion)
        if not contradict(self._facts, [literal.opposite() for literal in clause]):
            raise ProofError(f"{words[0]} does not follow from what is known of these rows")
        self._support.append(clause)
        self._steps += 1

    def _use(self, words: Sequence[str]) -> None:
        number = _parse_count(_take_one(words))
        if not 1 <= number <= len(self._clauses):
            raise ProofError(f"there is no clause {number} yet")
        self._support.append(self._clauses[number - 1])
        self._steps += 1

    def _conclude(self, words: Sequence[str]) -> None:
        number = len(self._clauses) + 1
        if not words or _parse_count(words[0]) != number:
            raise ProofError(f'clauses are counted: this one must begin with "c {number}"')
        clause = tuple(self._parse_literal(word) for word in words[1:])
        if not self._follows(clause):
            raise ProofError(f"clause {number} does not follow from the lines before it")
        self._support.clear()
        self._clauses.append(clause)
        if len(clause) == 1:
            self._facts.add(clause[0])

    def _follows(self, clause: Sequence[Literal]) -> bool:
        """Return whether unit propagation refutes the opposite of a clause.

        The lines since the previous clause are propagated once, in their order.
        """
        known = self._facts.copy()
        for literal in clause:
            known.add(literal.opposite())
        for support in self._support:
            left = [literal for literal in support if not known.holds(literal.opposite())]
            if not left or known.broken:
                return True
            if len(left) == 1:
                known.add(left[0])
        return known.broken

    def _end(self, words: Sequence[str]) -> None:
        if words or not self._clauses or self._clauses[-1] or self._support:
            raise ProofError('"refuted" must follow a clause without literals')
        self._ended = True

    # Words

    def _parse_order(self, words: Sequence[str]) -> Literal:
        if len(words) != 2:
            raise ProofError("this line must name two rows")
        return self._check_rows(Literal(_parse_count(words[0]), "<", _parse_count(words[1])))

    def _parse_literal(self, word: str) -> Literal:
        match = _LITERAL.fullmatch(word)
        if match is None:
            raise ProofError(f"{quoted(word)} is no literal such as 3<5, 3>=7 or 3<=7")
        scale = 1 if match[2] == "<" else self._unit
        return self._check_rows(Literal(int(match[1]), match[2], int(match[3]) * scale))

    def _check_rows(self, literal: Literal) -> Literal:
        for row in literal.rows:
            if row not in self._ground.size:
                raise ProofError(f"there is no row {row} that holds memory")
        if literal.sign == "<":
            one, other = literal.rows
            if one == other or not self._ground.conflict(one, other):
                raise ProofError(f"the rows {one} and {other} never hold memory together")
        return literal


def _take_one(words: Sequence[str]) -> str:
    if len(words) != 1:
        raise ProofError("this line must have one number")
    return words[0]


def _parse_count(word: str) -> int:
    if not _COUNT.fullmatch(word):
        raise ProofError(f"{quoted(word)} is not a number")
    return int(word)

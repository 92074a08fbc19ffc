"""The facts about offsets while a proof is read: bounds, orders of rows, and contradictions.

Rows that hold memory at the same time conflict: one lies below the other.

    address
      |        +-----+        I<J     row I ends at or below the start of row J; the opposite,
      |        |  J  |                for rows that conflict, is J<I
      |  +--+  +-----+        I>=3    row I starts at 3 or above
      |  |I |                 I<=9    row I starts at 9 or below
      |  +--+
      +-----------------> time

The rules are those of docs/proofs.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import NamedTuple

from memplan.referee.ground import Ground

__all__ = ["Known", "Literal", "contradict"]


class Literal(NamedTuple):
    """`row<other`, `row>=other` or `row<=other`; `other` is a row, or an offset in bytes."""

    row: int
    sign: str
    other: int

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows that it names."""
        return (self.row, self.other) if self.sign == "<" else (self.row,)

    def opposite(self) -> Literal:
        """Return the literal that holds if and only if this one does not."""
        if self.sign == "<":
            return Literal(self.other, "<", self.row)
        if self.sign == ">=":
            return Literal(self.row, "<=", self.other - 1)
        return Literal(self.row, ">=", self.other + 1)


class Known:
    """Bounds on offsets and orders of pairs that hold together."""

    def __init__(
        self,
        ground: Ground,
        lower: dict[int, int],
        upper: dict[int, int],
        below: set[tuple[int, int]],
        broken: bool = False,
    ) -> None:
        self.ground = ground
        self.lower = lower  # bounds by row, in bytes, which are legal offsets themselves
        self.upper = upper
        self.below = below  # pairs of rows of which the first lies below the second
        self.broken = broken  # whether the facts contradict one another

    def copy(self) -> Known:
        """Return a copy, to which facts can be added."""
        lower, upper, below = self.lower.copy(), self.upper.copy(), self.below.copy()
        return Known(self.ground, lower, upper, below, self.broken)

    def about(self, rows: Sequence[int]) -> Known:
        """Return the facts about these rows only, as a copy to which facts can be added."""
        lower = {row: self.lower[row] for row in rows}
        upper = {row: self.upper[row] for row in rows}
        below = {pair for one in rows for other in rows if (pair := (one, other)) in self.below}
        return Known(self.ground, lower, upper, below, self.broken)

    def apart(self, one: int, other: int) -> bool:
        """Return whether by their bounds `one` cannot end at or below the start of `other`."""
        return self.lower[one] + self.ground.size[one] > self.upper[other]

    def holds(self, literal: Literal) -> bool:
        """Return whether a literal follows at once; from a contradiction every literal follows."""
        row, sign, other = literal
        if sign == "<":
            return (row, other) in self.below or self.apart(other, row) or self.broken
        reached = self.lower[row] >= other if sign == ">=" else self.upper[row] <= other
        return reached or self.broken

    def add(self, literal: Literal) -> bool:
        """Add a literal to the facts; return whether it was not among them."""
        row, sign, other = literal
        if sign == "<":
            if (row, other) in self.below:
                return False
            self.below.add((row, other))
            self.broken |= (other, row) in self.below
            return True
        if sign == ">=" and other > self.lower[row]:
            self.lower[row] = self.ground.lift(row, other)
        elif sign == "<=" and other < self.upper[row]:
            self.upper[row] = self.ground.sink(row, other)
        else:
            return False
        self.broken |= self.lower[row] > self.upper[row]
        return True


def contradict(facts: Known, literals: Sequence[Literal]) -> bool:
    """Return whether literals cannot all hold, by the four rules of derivations.

    Only rule four uses facts on rows that the literals do not name.
    """
    rows = sorted({row for literal in literals for row in literal.rows})
    known = facts.about(rows)
    for literal in literals:
        known.add(literal)
    return (
        known.broken
        or _push(known, rows)
        or _is_overfull(known, rows)
        or _is_cut_off(facts, known, rows)
    )


def _push(known: Known, rows: Sequence[int]) -> bool:
    """Apply rules one and two until no bound changes; return whether they contradict."""
    size, lower, upper = known.ground.size, known.lower, known.upper
    pairs = [pair for pair in combinations(rows, 2) if known.ground.conflict(*pair)]
    pairs += [(other, one) for one, other in pairs]
    # Bounds move along chains of rows. So if no pair is decided meanwhile, all bounds are final
    # after one round for each row; if they still move, the orders contain a cycle.
    rounds = 0
    while not known.broken and rounds <= len(rows):
        moved = decided = False
        for one, other in pairs:
            if (one, other) in known.below:
                moved |= known.add(Literal(other, ">=", lower[one] + size[one]))
                moved |= known.add(Literal(one, "<=", upper[other] - size[one]))
            elif known.apart(other, one):
                decided |= known.add(Literal(one, "<", other))
        if not moved and not decided:
            return False
        rounds = 0 if decided else rounds + 1
    return True


def _is_overfull(known: Known, rows: Sequence[int]) -> bool:
    """Apply rule three: return whether rows live at one time lack room between their bounds."""
    size, lower, upper = known.ground.size, known.lower, known.upper
    for clique in known.ground.cliques(rows):
        for start in {lower[row] for row in clique}:
            ends = sorted(
                (upper[row] + size[row], size[row]) for row in clique if lower[row] >= start
            )
            filled = start
            for end, bytes in ends:
                filled += bytes
                if filled > end:
                    return True
    return False


def _is_cut_off(facts: Known, known: Known, rows: Sequence[int]) -> bool:
    """Apply rule four: return whether the rows below and above a row at two times need too much.

    A row that is live at both times lies either below or above `row`, and takes room in both cases.
    """
    size = known.ground.size
    lower, upper = facts.lower | known.lower, facts.upper | known.upper
    for row in rows:
        under = {each for each in rows if (each, row) in known.below}
        over = {each for each in rows if (row, each) in known.below}
        for now, then in permutations(known.ground.around(row), 2):
            both = now & then
            low, high = both | under & now, both | over & then
            room = max(upper[each] + size[each] for each in high) - min(lower[each] for each in low)
            if sum(size[each] for each in low | high) > room:
                return True
    return False

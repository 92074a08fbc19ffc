"""MiniMalloc's search as the paper prints it, for small problems: the tree of partial solutions.

The solvers store no tree, because they visit millions of nodes in a second. This search is slow and
simple, stores all nodes, and records for each pruned node the rule that pruned it. Section numbers
are those of the MiniMalloc paper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memplan.base.errors import MemplanError, UnsupportedError
from memplan.problem import Problem

MOST_BUFFERS = 8

Placed = tuple[tuple[int, int], ...]  # rows and offsets in the order of placing


class Rule(StrEnum):
    """Why a partial solution is not continued."""

    OFFSET_MONOTONICITY = "offset-monotonicity"  # section 5: no buffer below an earlier one
    INDEX_MONOTONICITY = "index-monotonicity"  # section 5: at one offset by index
    DOMINANCE = "dominance"  # section 6.3: another buffer would fit below
    SECTION_INFERENCE = "section-inference"  # section 6.2: what is left does not fit above
    CAPACITY = "capacity"  # the buffer itself ends above the capacity


_NEED_MONOTONICITY = frozenset({Rule.DOMINANCE, Rule.SECTION_INFERENCE})


@dataclass(frozen=True, slots=True)
class Node:
    """A partial solution."""

    placed: Placed  # rows and offsets in the order of placing; the root has none
    # The rule that pruned it; None if it was continued or is a solution.
    pruned_by: Rule | None = None
    # The partial solutions with one more buffer, in the order in which the search visits them.
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, each one before its children."""
        yield self
        for child in self.children:
            yield from child.walk()


def explore(
    problem: Problem,
    capacity: int,  # in bytes
    rules: Collection[Rule] = tuple(Rule),
    *,
    first: bool = False,  # stop at the first solution, as the paper's algorithm does
    offsets: Sequence[int] | None = None,  # of all rows
) -> Node:
    """Return the tree of the partial solutions that the search visits."""
    search = _Expander(problem, capacity, rules)

    solved = False

    def expand(placed: Placed, pruned_by: Rule | None) -> Node:
        nonlocal solved
        if pruned_by is not None:
            return Node(placed, pruned_by)
        solved |= len(placed) == len(problem)
        children = []
        for extended, rule in search.extend(placed):
            row, offset = extended[-1]
            if offsets is not None and offset != offsets[row]:
                continue
            children.append(expand(extended, rule))
            if first and solved:
                break
        return Node(placed, None, tuple(children))

    return expand((), None)


def find_solutions(root: Node, problem: Problem) -> list[Placed]:
    """Return the complete solutions of a tree, in the order in which the search visits them."""
    return [
        node.placed
        for node in root.walk()
        if len(node.placed) == len(problem) and node.pruned_by is None
    ]


def find_least_peak(problem: Problem) -> int:
    """Return the least peak: below each solution the search looks for a better one."""
    size: list[int] = problem.size.tolist()
    capacity = sum(size)
    while True:
        placed = _find_first(_Expander(problem, capacity, tuple(Rule)), ())
        if placed is None:
            return capacity + 1
        capacity = max(offset + size[row] for row, offset in placed) - 1


def _find_first(search: _Expander, placed: Placed) -> Placed | None:
    if len(placed) == search.count:
        return placed
    for extended, pruned_by in search.extend(placed):
        if pruned_by is None and (found := _find_first(search, extended)) is not None:
            return found
    return None


class _Expander:
    """The step of the search: from a partial solution to those with one more buffer."""

    def __init__(self, problem: Problem, capacity: int, rules: Collection[Rule]) -> None:
        _check(problem)
        self.count = len(problem)
        self._size: list[int] = problem.size.tolist()
        start, end = problem.start.tolist(), problem.end.tolist()
        rows = range(self.count)
        self._overlaps = [
            {other for other in rows if start[row] < end[other] and start[other] < end[row]}
            for row in rows
        ]
        self._sections = [
            [row for row in rows if start[row] <= time < end[row]]
            for time in sorted({*start, *end})
        ]
        self._capacity = capacity
        self._rules = frozenset(rules)
        if self._rules & _NEED_MONOTONICITY and Rule.OFFSET_MONOTONICITY not in self._rules:
            needing = " and ".join(sorted(self._rules & _NEED_MONOTONICITY))
            raise MemplanError(
                f"without {Rule.OFFSET_MONOTONICITY}, leave out {needing} too: "
                "they hold only where buffers are placed from the bottom up"
            )

    def extend(self, placed: Placed) -> Iterator[tuple[Placed, Rule | None]]:
        """Yield all partial solutions with one more buffer, the lowest offsets first."""
        done = {row for row, _ in placed}
        free = (row for row in range(self.count) if row not in done)
        for offset, row in sorted((self._offset(row, placed), row) for row in free):
            yield (*placed, (row, offset)), self._prune(placed, row, offset)

    def _prune(self, placed: Placed, row: int, offset: int) -> Rule | None:
        """Return the first rule that prunes a placement, in the order of the paper's algorithm."""
        rules = self._rules
        if Rule.OFFSET_MONOTONICITY in rules and any(offset < other for _, other in placed):
            return Rule.OFFSET_MONOTONICITY
        if Rule.INDEX_MONOTONICITY in rules and any(
            offset == other and row < earlier for earlier, other in placed
        ):
            return Rule.INDEX_MONOTONICITY
        if Rule.DOMINANCE in rules and offset >= self._least_height(placed):
            return Rule.DOMINANCE
        if Rule.SECTION_INFERENCE in rules and not self._infer((*placed, (row, offset))):
            return Rule.SECTION_INFERENCE
        return Rule.CAPACITY if offset + self._size[row] > self._capacity else None

    def _offset(self, row: int, placed: Placed) -> int:
        """Return the offset of a buffer."""
        taken = sorted(
            (offset, offset + self._size[other])
            for other, offset in placed
            if other in self._overlaps[row]
        )
        lowest = 0
        for lower, upper in taken:
            hole = lowest + self._size[row] <= lower
            if hole and Rule.OFFSET_MONOTONICITY not in self._rules:
                break
            lowest = max(lowest, upper)
        return lowest

    def _least_height(self, placed: Placed) -> int:
        """Return the least top that an unplaced buffer can have."""
        done = {row for row, _ in placed}
        return min(
            self._offset(row, placed) + self._size[row]
            for row in range(self.count)
            if row not in done
        )

    def _infer(self, placed: Placed) -> bool:
        """Whether in every section the unplaced buffers fit above the placed ones (equation 3)."""
        offsets = dict(placed)
        highest = max(offsets.values())
        for section in self._sections:
            unplaced = [row for row in section if row not in offsets]
            heights = [offsets[row] + self._size[row] for row in section if row in offsets]
            if unplaced:
                heights += highest, min(self._offset(row, placed) for row in unplaced)
            if max(heights, default=0) + sum(self._size[row] for row in unplaced) > self._capacity:
                return False
        return True


def _check(problem: Problem) -> None:
    if not 1 <= len(problem) <= MOST_BUFFERS:
        raise UnsupportedError(
            f"the problem has {len(problem)} buffers; the search is traced for 1 to {MOST_BUFFERS}"
        )
    for there, what in (
        (bool((problem.size == 0).any()), "buffers of size 0"),
        (problem.has_alignment, "alignments"),
        (problem.has_pins, "pins"),
        (problem.has_gaps, "gaps"),
        (problem.has_reserved, "reserved ranges"),
        (problem.has_conflicts, "conflicts"),
        (problem.has_groups, "groups"),
    ):
        if there:
            raise UnsupportedError(
                f"the problem has {what}; the search is traced for lifetimes and sizes only"
            )

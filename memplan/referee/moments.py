"""The referee of bounds on re-runs that keep the given order of first runs.

It shares no code with the search and uses no native code.

Why a certificate is a proof: take any sequence that fits, at the first runs of a few operators, the
moments. Block i is what runs after moment i - 1, up to moment i, or to the end. A copy that is read
in a block, or is there at its end, and whose storage was begun before the block, was made or moved
back in the block, or was there at the moment before. So, where variables are 1 if a storage is
there at a moment, or if an operator runs again (or a storage is moved back) in a block,

    need <= there at the moment before + made again in the block + moved back in the block

for every read: need is 1 for first runs and for what is wanted in the end, and for other reads the
variable of what needs it. What is there at a moment fits. The cost of what runs again is not less
than this cost, plus for each of these rules a multiplier, 0 or more, times what the left side is
above the right one. Each variable at its best value makes that sum least, without a search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from memplan.base.errors import ProofError
from memplan.problem import GivenOrderBound, GivenOrderLeaf, RecomputeProblem
from memplan.referee.cases import check_cases

__all__ = ["NOTHING_FITS", "check_order_bound"]

NOTHING_FITS: Final = 2**63 - 1
_MOST_BITS: Final = 62  # of scale and shift


def check_order_bound(
    problem: RecomputeProblem, certificate: GivenOrderBound, capacity: int
) -> int:
    """Return the bound that a certificate proves; `NOTHING_FITS` if no sequence fits."""
    program = _Moments(problem, certificate)
    cases = [[(at, bool(each)) for at, each in leaf.decisions] for leaf in certificate.leaves]
    check_cases(cases, _find_branches)
    least = NOTHING_FITS
    for leaf in certificate.leaves:
        value = program.measure(leaf, capacity)
        if leaf.impossible:
            least = min(least, NOTHING_FITS if value > 0 else 0)
        else:
            least = min(least, max(0, -(-value >> certificate.scale) * certificate.unit))
    return least


class _Moments:
    """The rules of some moments, and the sums that multipliers of them give."""

    def __init__(self, problem: RecomputeProblem, certificate: GivenOrderBound) -> None:
        program = problem.program
        self.certificate = certificate
        self.count = len(program)
        self.size: list[int] = program.size.tolist()
        self.maker: list[int] = problem.maker.tolist()
        self.cost: list[int] = [*problem.cost.tolist(), *problem.move.tolist()]
        self.wanted: list[bool] = program.wanted.tolist()
        self.users = [set(program.users(storage).tolist()) for storage in range(len(self.size))]
        given: list[bool] = program.given.tolist()
        # What no operator touches is never moved, whatever that costs.
        moves = [
            cost >= 0 and len(users) > 0
            for cost, users in zip(problem.move.tolist(), self.users, strict=True)
        ]
        # By storage: its first user, -1 if it is given, `None` if it is never there or always.
        self.start: list[int | None] = []
        self.always = 0
        for storage, users in enumerate(self.users):
            stays = given[storage] and self.wanted[storage] and not moves[storage]
            self.always += self.size[storage] if stays else 0
            begins = -1 if given[storage] else min(users, default=None)
            self.start.append(None if stays or not users else begins)
        self.again = [*problem.again.tolist(), *moves]
        self._check_numbers()
        self.touched: dict[int, set[int]] = {}  # by moment: without what is always there
        self.own: dict[int, int] = {}  # by moment: what is there in any case
        workspace: list[int] = program.workspace.tolist()
        for moment in certificate.moments:
            touched = {
                storage
                for storage, start in enumerate(self.start)
                if start is not None and moment in self.users[storage]
            }
            self.touched[moment] = touched
            self.own[moment] = self.always + workspace[moment] + sum(self.size[s] for s in touched)

    def _check_numbers(self) -> None:
        certificate = self.certificate
        moments = certificate.moments
        if not moments or list(moments) != sorted(set(moments)):
            raise ProofError("the moments of the certificate are not ascending")
        if moments[0] < 0 or moments[-1] >= self.count:
            raise ProofError("the certificate has a moment that is no operator")
        for amount, least in (
            (certificate.unit, 1),
            (certificate.scale, 0),
            (certificate.shift, 0),
        ):
            if amount < least:
                raise ProofError(f"the certificate has a unit, scale or shift of {amount}")
        if max(certificate.scale, certificate.shift) > _MOST_BITS:
            raise ProofError(f"the certificate has a scale or shift above {_MOST_BITS}")
        for cost, again in zip(self.cost, self.again, strict=True):
            if again and cost % certificate.unit:
                raise ProofError(f"a cost of {cost} is no multiple of {certificate.unit}")

    def measure(self, leaf: GivenOrderLeaf, capacity: int) -> int:
        """Return the least of the sum over all variables that keep to the decisions of a case."""
        certificate, moments = self.certificate, self.certificate.moments
        if len(leaf.prices) != len(moments) or min(leaf.prices) < 0:
            raise ProofError("a case of the certificate does not have one price for each moment")
        needs = leaf.needs
        if needs.ndim != 2 or needs.shape[1] != 4 or needs.dtype.kind not in "iu":
            raise ProofError("the multipliers of a case must have four columns of whole numbers")
        factor, value = 0 if leaf.impossible else 1 << certificate.scale, 0
        reduced: defaultdict[tuple[int, int], int] = defaultdict(int)  # by block and variable
        for block, need, storage, amount in needs.tolist():
            if amount < 0 or not self._is_needed(block, need, storage):
                raise ProofError(
                    f"the certificate has no rule {(block, need, storage)}, or uses it"
                )
            if need < 0:
                value += amount
            else:
                reduced[block, need] += amount
            reduced[block - 1, storage] -= amount
            for run in (self.maker[storage], self.count + storage):
                if run >= 0 and self.again[run]:
                    reduced[block, len(self.size) + run] -= amount
        decided: dict[tuple[int, int], int] = {}
        for variable, chosen in leaf.decisions:
            decided[divmod(variable, self.count + 2 * len(self.size))] = int(chosen)
        for at, (moment, price) in enumerate(zip(moments, leaf.prices, strict=True)):
            value -= price * (capacity - self.own[moment]) >> certificate.shift
            decided.update(((at, storage), 1) for storage in self.touched[moment])
        for at, variable in {*reduced, *decided}:
            amount = reduced[at, variable] + self._price(at, variable, leaf, factor)
            value += decided[at, variable] * amount if (at, variable) in decided else min(0, amount)
        return value

    def _price(self, at: int, variable: int, leaf: GivenOrderLeaf, factor: int) -> int:
        """Return what a variable costs by itself; 0 if there is no such variable."""
        certificate, many = self.certificate, len(self.size)
        moments = certificate.moments
        if variable >= many:
            run = variable - many
            again = 0 < at <= len(moments) and self.again[run] and self._is_before(at, run)
            return self.cost[run] // certificate.unit * factor if again else 0
        if not 0 <= at < len(moments) or variable in self.touched[moments[at]]:
            return 0
        start = self.start[variable]
        if start is None or start > moments[at]:
            return 0
        return leaf.prices[at] * self.size[variable] >> certificate.shift

    def _is_before(self, block: int, run: int) -> bool:
        """Return whether a run can be a second one in a block, as the first is before it."""
        first = run if run < self.count else self.start[run - self.count]
        return first is not None and first <= self.certificate.moments[block - 1]

    def _is_needed(self, block: int, need: int, storage: int) -> bool:
        """Return whether a storage that was begun before a block is needed in it."""
        moments, many = self.certificate.moments, len(self.size)
        if not (0 < block <= len(moments) and 0 <= storage < many):
            return False
        start, last = self.start[storage], block == len(moments)
        if start is None or start > moments[block - 1]:
            return False
        if need < 0:
            end = self.count - 1 if last else moments[block]
            reads = any(moments[block - 1] < user <= end for user in self.users[storage])
            return reads or (last and self.wanted[storage])
        if need < many:
            return need == storage and not last
        run = need - many
        reads = run in self.users[storage] and run != self.maker[storage]
        return run < self.count and reads and self.again[run] and self._is_before(block, run)


def _find_branches(decisions: Sequence[tuple[int, bool]]) -> Sequence[tuple[int, bool]]:
    """Return both choices for the one variable that is decided at a node."""
    variables = {variable for variable, _ in decisions}
    if len(variables) > 1:
        raise ProofError("the cases of the certificate do not agree about a variable")
    (variable,) = variables
    return (variable, False), (variable, True)

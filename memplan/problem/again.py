"""Problems of recomputation: `RecomputeProblem` says what a program costs if operators run again.

A *sequence* is a list of operators in which every one occurs at least once. First runs keep the
order of `program`; an operator reads the latest copy of a storage. A copy lives from the run that
makes it to the last run that reads it, or to the end if it is the last one of a wanted storage. The
load of a run is the sum of the copies that are live then, and the workspace of the operator.

A number `n + s` in a sequence, where there are `n` operators, moves storage `s` back: it was moved
out after the last run that touched it, or before the first run if none did. So it is one more maker
of `s`, which reads nothing. The extra cost of a sequence is that of all runs but the first one of
each operator, and of all moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memplan.base.errors import ProblemError
from memplan.problem.columns import Column
from memplan.problem.immutable import Immutable
from memplan.problem.ordering import OrderProblem

__all__ = [
    "MAX_COST",
    "Choice",
    "GivenOrderBound",
    "GivenOrderLeaf",
    "RecomputeBound",
    "RecomputeFloor",
    "RecomputeLeaf",
    "RecomputeProblem",
]

MAX_COST = 2**53 - 1  # of all operators and moves together
_MAGIC = b"memplan again 1\n"


@dataclass(frozen=True, eq=False)
class RecomputeProblem(Immutable):
    """A program, what each of its operators costs, and which of them may run more than once.

    Attributes
    ----------
    program
        The operators and storages, without in-place pairs.
    cost
        By operator, in whole numbers.
    again
        By operator: whether it may run more than once.
    maker
        By storage: the operator that alone makes it, each time that it runs. It is the first user,
        and all others wait for it. -1 if the storage is given, or if several operators write to it;
        it is then live from the beginning, or from its first user, to its last user.
    move
        By storage: the cost of moving it out of the memory and back, or -1 if it cannot be moved.
        A storage that is given and wanted may leave too. What no operator touches never does.

    Raises
    ------
    ProblemError
        One sentence on the first column that is wrong.
    """

    program: OrderProblem
    cost: Column
    again: npt.NDArray[np.bool_]
    maker: npt.NDArray[np.int32]
    move: Column

    def __post_init__(self) -> None:
        if wrong := _find_wrong(self):
            raise ProblemError(wrong)

    def __len__(self) -> int:
        """Return the number of operators."""
        return len(self.program)

    @property
    def plain(self) -> int:
        """The cost of running every operator once."""
        return sum(self.cost.tolist())

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:` and 64 hexadecimal digits, of the columns without the names."""
        import hashlib  # as `OrderProblem.fingerprint` does

        digest = hashlib.sha256(_MAGIC + self.program.fingerprint.encode())
        for column in (self.cost, self.again, self.maker, self.move):
            digest.update(f"{column.shape}\n".encode())
            digest.update(np.ascontiguousarray(column, dtype="<i8").data)
        return f"sha256:{digest.hexdigest()}"


class Choice(IntEnum):
    """What a case of a certificate decides about an operator, with respect to its moment.

    The first two may be about a move: whether the storage is there before, and moved back after it.
    """

    NOT_AGAIN = 0  # it does not run both before the moment and again after it
    AGAIN = 1  # it runs before the moment, and again after it
    AFTER = 2  # it does not run before the moment
    BEFORE = 3  # it runs before the moment


@dataclass(frozen=True, eq=False)
class RecomputeLeaf(Immutable):
    """One of the cases of a certificate, with a flow that bounds the cost in it.

    Attributes
    ----------
    decisions
        What leads to it: operators or moves, each with a `Choice`.
    price
        Of a byte, in units of `2 ** -shift`.
    flow
        Three columns: from a node, to a node, amount. Node 0 is the source, 1 the sink. The others
        say: `2 + u`, operator `u` has run; `2 + n + u`, it does not run again; `2 + 2 n + 2 s`,
        storage `s`, which several operators write, has begun; the next, nothing is left to touch
        it.
    """

    decisions: tuple[tuple[int, int], ...]
    price: int
    flow: Column


@dataclass(frozen=True, eq=False)
class RecomputeBound(Immutable):
    """Why no sequence within a capacity has a smaller extra cost, whatever the order.

    Attributes
    ----------
    operator
        The bound is shown at the moment when this operator runs first.
    unit
        It divides the cost of every operator that may run again, and of every move.
    scale
        In the flows, `unit` counts `2 ** scale`.
    shift
        See `RecomputeLeaf.price`.
    leaves
        All cases: the leaves of a tree, in which both branches of a node decide about one operator.
    """

    operator: int
    unit: int
    scale: int
    shift: int
    leaves: tuple[RecomputeLeaf, ...]


@dataclass(frozen=True, eq=False)
class RecomputeFloor(Immutable):
    """Why no sequence has a smaller peak: what one operator needs at least when it runs first.

    Attributes
    ----------
    operator
        Which one.
    flow
        As in `RecomputeLeaf`, where running again costs nothing and a byte costs one.
    """

    operator: int
    flow: Column


@dataclass(frozen=True, eq=False)
class GivenOrderLeaf(Immutable):
    """One of the cases of a certificate for the given order, with multipliers that bound it.

    Variables are 0 or 1. With `n` operators and `m` storages, number `i * (n + 2 * m) + s` says
    that storage `s` is there at moment `i`, and `i * (n + 2 * m) + m + k` that operator `k` runs
    again in block `i`, which ends with moment `i`; for `k = n + s`, that `s` is moved back in it.

    Attributes
    ----------
    decisions
        What leads to it: variables, each with its value.
    impossible
        Whether costs count as 0: a value above 0 then shows that nothing fits.
    prices
        By moment: of a byte, in units of `2 ** -shift`.
    needs
        Four columns: a block, what needs a storage in it, the storage, and the multiplier of that.
        The second is -1 for first runs and the end, else a variable without its block.
    """

    decisions: tuple[tuple[int, bool], ...]
    impossible: bool
    prices: tuple[int, ...]
    needs: Column


@dataclass(frozen=True, eq=False)
class GivenOrderBound(Immutable):
    """Why no sequence with first runs in the given order has a smaller extra cost.

    Attributes
    ----------
    moments
        First runs of these operators, ascending.
    unit, scale, shift
        As in `RecomputeBound`.
    leaves
        All cases: the leaves of a tree, in which both branches of a node decide about one variable.
    """

    moments: tuple[int, ...]
    unit: int
    scale: int
    shift: int
    leaves: tuple[GivenOrderLeaf, ...]


def _find_wrong(problem: RecomputeProblem) -> str | None:
    """Return one sentence on what is wrong, or `None`."""
    program = problem.program
    operators, storages = len(program), len(program.size)
    for name, kind, count in (
        ("cost", np.int64, operators),
        ("again", np.bool_, operators),
        ("maker", np.int32, storages),
        ("move", np.int64, storages),
    ):
        column = getattr(problem, name)
        if not (isinstance(column, np.ndarray) and column.ndim == 1):
            return f"{name} must be an array of 1 dimension"
        if column.dtype != kind:
            return f"{name} must be of type {np.dtype(kind)}, not {column.dtype}"
        if len(column) != count:
            return f"{name} must have {count} rows, not {len(column)}"
    if len(program.in_place):
        return "a program whose operators run again has no in-place pairs"
    if (problem.move < -1).any():
        return "the cost of moving a storage must be at least 0, or -1 if it cannot be moved"
    moves = sum(problem.move[problem.move > 0].tolist())
    if (problem.cost < 0).any() or sum(problem.cost.tolist()) + moves > MAX_COST:
        return "costs must be at least 0, and less than 2^53 together"
    begin, made = program.user_begin, problem.maker >= 0
    used = begin[:-1] < begin[1:]
    first = np.full(storages, -1, dtype=np.int64)
    first[used] = program.user[begin[:-1][used]]
    if (problem.maker < -1).any() or (made & (problem.maker != first)).any():
        return "the maker of a storage must be its first user, or -1"
    if (made & program.given).any():
        return "a storage that is given has no maker"
    return None

"""Problems of orders: `OrderProblem` has operators to put in order, and storages, as columns.

A state is a set of operators that have run, with all that they wait for. A storage is live in a
state if an operator that touches it has run (or it is given), and another one has still to run (or
it is wanted). An operator needs all storages that are live before it, those that it is the first to
touch, and its workspace, less what it saves by writing in place. The peak of an order is the
largest of these sums.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memplan.base.errors import ProblemError
from memplan.problem.columns import MAX_BYTES, Column
from memplan.problem.immutable import Immutable

__all__ = ["OrderBound", "OrderProblem"]

_MAGIC = b"memplan order 1\n"


@dataclass(frozen=True, eq=False)
class OrderProblem(Immutable):
    """Operators, numbered in the given order, and the storages that they touch.

    Attributes
    ----------
    workspace
        By operator: bytes that only it needs, while it runs.
    arcs
        Two columns: the operator in the second column waits for that in the first. The first is
        lower, so the given order is legal.
    size
        By storage, in bytes.
    given, wanted
        By storage: whether it is there before the first operator, or needed after the last.
    user_begin, user
        Storage `s` is touched by `user[user_begin[s]:user_begin[s + 1]]`: the operators that make
        or read it or a view of it, ascending, each once.
    in_place
        Three columns: an operator, and two storages that it touches. It may write the second over
        the first if the first is at least as large and not wanted, and if no other operator has
        still to touch it.
    operators, storages
        Names, for messages; empty, or one for each.

    Raises
    ------
    ProblemError
        One sentence on the first column that is wrong.
    """

    workspace: Column
    arcs: npt.NDArray[np.int32]
    size: Column
    given: npt.NDArray[np.bool_]
    wanted: npt.NDArray[np.bool_]
    user_begin: Column
    user: npt.NDArray[np.int32]
    in_place: npt.NDArray[np.int32]
    operators: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if wrong := _find_wrong(self):
            raise ProblemError(wrong)

    def __len__(self) -> int:
        """Return the number of operators."""
        return len(self.workspace)

    def users(self, storage: int) -> npt.NDArray[np.int32]:
        """Return the operators that touch a storage, ascending."""
        return self.user[self.user_begin[storage] : self.user_begin[storage + 1]]

    def live_while(self, operator: int, done: Collection[int]) -> tuple[int, ...]:
        """Return the storages that are live while an operator runs after some others, ascending.

        They include the storages that the operator makes and writes over.
        """
        total = np.diff(self.user_begin)
        owner = np.repeat(np.arange(len(total)), total)
        has_run = np.zeros(len(self), dtype=np.bool_)
        has_run[list(done)] = True
        count = np.bincount(owner[has_run[self.user]], minlength=len(total))
        live = ((count > 0) | self.given) & ((count < total) | self.wanted)
        live[owner[self.user == operator]] = True
        return tuple(np.flatnonzero(live).tolist())

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:` and 64 hexadecimal digits, of the columns without the names."""
        import hashlib  # as `fingerprint` does

        digest = hashlib.sha256(_MAGIC)
        for column in (
            *(self.workspace, self.arcs, self.size, self.given, self.wanted),
            *(self.user_begin, self.user, self.in_place),
        ):
            digest.update(f"{column.shape}\n".encode())
            digest.update(np.ascontiguousarray(column, dtype="<i8").data)
        return f"sha256:{digest.hexdigest()}"


@dataclass(frozen=True, eq=False)
class OrderBound(Immutable):
    """Why no order has a smaller peak: a flow that bounds the step of one operator from below.

    Attributes
    ----------
    operator
        In every order, this operator needs at least the bound while it runs.
    done
        The operators that have run before it in the cheapest case: those on the side of the source
        of a minimum cut, ascending.
    flow
        Three columns: from a node, to a node, bytes. Node 0 is the source, 1 the sink, `2 + u`
        operator `u`, `2 + n + 2 s` the beginning of storage `s`, and the next one its end.
    """

    operator: int
    done: tuple[int, ...]
    flow: Column


_COLUMNS = {
    "workspace": (1, np.int64),
    "arcs": (2, np.int32),
    "size": (1, np.int64),
    "given": (1, np.bool_),
    "wanted": (1, np.bool_),
    "user_begin": (1, np.int64),
    "user": (1, np.int32),
    "in_place": (2, np.int32),
}


def _find_wrong(problem: OrderProblem) -> str | None:
    """Return one sentence on what is wrong, or `None`."""
    for name, (dimensions, kind) in _COLUMNS.items():
        column = getattr(problem, name)
        if not (isinstance(column, np.ndarray) and column.ndim == dimensions):
            return f"{name} must be an array of {dimensions} dimensions"
        if column.dtype != kind:
            return f"{name} must be of type {np.dtype(kind)}, not {column.dtype}"
    count, storages = len(problem.workspace), len(problem.size)
    if problem.arcs.shape[1] != 2 or problem.in_place.shape[1] != 3:
        return "arcs must have two columns, and in_place three"
    if not len(problem.given) == len(problem.wanted) == len(problem.user_begin) - 1 == storages:
        return "the columns of storages must have one row for each"
    if len(problem.operators) not in (0, count) or len(problem.storages) not in (0, storages):
        return "there must be no names, or one for each operator and each storage"
    begin, user = problem.user_begin, problem.user
    if begin[0] != 0 or begin[-1] != len(user) or (begin[1:] < begin[:-1]).any():
        return "user_begin must ascend from 0 to the number of users"
    if len(user) and not (user.min() >= 0 and user.max() < count):
        return "the users of storages must be operators"
    owner = np.repeat(np.arange(storages), np.diff(begin))
    if ((user[1:] <= user[:-1]) & (owner[1:] == owner[:-1])).any():
        return "the users of a storage must ascend, each once"
    arcs = problem.arcs
    if len(arcs) and not (
        arcs.min() >= 0 and arcs.max() < count and (arcs[:, 0] < arcs[:, 1]).all()
    ):
        return "an arc must lead from an operator to a later one"
    for column in (problem.size, problem.workspace):
        if len(column) and not (column.min() >= 0 and column.max() <= MAX_BYTES):
            return "sizes and workspaces must be between 0 and 2^62 bytes"
    if sum(problem.size.tolist()) + max(problem.workspace.tolist(), default=0) > MAX_BYTES:
        return "all storages and the largest workspace together have more than 2^62 bytes"
    touches = set(zip(owner.tolist(), user.tolist(), strict=True))
    for op, old, new in problem.in_place.tolist():
        if old == new or (old, op) not in touches or (new, op) not in touches:
            return "an in-place pair must be two storages that its operator touches"
    return None

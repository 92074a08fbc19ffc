"""Derives traces of one program at every batch size from recordings at a few.

In most networks every allocation has `base + slope * batch` bytes: activations grow with the batch,
scratch for weights does not. Two recordings give base and slope, and a third one checks them
(source: MemoMalloc, chapter 7, "symbolic memory planning").

    allocation             batch 1   batch 2   batch 4
    .conv/aten::empty        4 096     8 192    16 384     0 + 4 096 * batch
    .conv/scratch            2 048     2 048     2 048     2 048 + 0 * batch
    .scores/aten::empty         64       256     1 024     neither: 64 * batch ** 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memplan.errors import FamilyError, listed
from memplan.problem.columns import MAX_BYTES, Column
from memplan.trace import Scope, Trace

__all__ = ["Family", "Misfit"]

_Key = tuple[Scope, int]


@dataclass(frozen=True)
class Misfit:
    """An allocation that a family leaves out, and why.

    Attributes
    ----------
    id
        Its id in `Trace.ids`: module, operators, number.
    sizes
        Bytes by recorded batch size; `None` where the allocation was not made.
    why
        The condition that it breaks, for people.
    """

    id: str
    sizes: Mapping[int, int | None]
    why: str

    def __str__(self) -> str:
        seen = ", ".join(
            f"{'nothing' if size is None else size} at {batch}"
            for batch, size in self.sizes.items()
        )
        return f"{self.id} {self.why} (bytes at batch size: {seen})"


@dataclass(frozen=True, eq=False)
class Family:
    """What one program allocates, as a function of the batch size.

    Attributes
    ----------
    trace
        The allocations that fit, as recorded at the smallest batch size.
    base, slope
        By allocation: bytes, and bytes per unit of batch; shape (n,).
    recorded
        The batch sizes that were recorded, ascending.
    misfits
        The allocations that were left out. Results are not among them: a plan does not place
        them, so their sizes do not matter.
    """

    trace: Trace
    base: Column
    slope: Column
    recorded: tuple[int, ...]
    misfits: tuple[Misfit, ...] = ()

    @classmethod
    def derive(cls, traces: Mapping[int, Trace], *, strict: bool = True) -> Family:
        """Find base and slope from the two smallest batch sizes, and check them at all others.

        Parameters
        ----------
        traces
            Recordings of one program, by batch size; two or more.
        strict
            Whether an allocation that does not fit is an error, or left out and listed.

        Raises
        ------
        FamilyError
            With `strict`, if an allocation is not made at every batch size, grows otherwise, or
            has another order in time; the sentence names the module, the operator and the sizes.
            Always for fewer than two traces and for batch sizes below 1.
        """
        recorded = tuple(sorted(traces))
        if len(recorded) < 2 or recorded[0] < 1:
            raise FamilyError(
                f"traces at batch sizes {list(recorded)} make no family; it takes two or more, "
                "each at least 1"
            )
        matching = _Matching(recorded, [traces[batch] for batch in recorded])
        if strict and matching.misfits:
            raise FamilyError(_explain_refusal(list(matching.misfits.values())))
        return matching.family()

    def at(self, batch: int) -> Trace:
        """Return the trace of this batch size: recorded lifetimes, sizes as derived.

        Raises
        ------
        FamilyError
            If `batch` is below 1, or so far from the recorded ones that a size would be negative or
            above 2^62.
        """
        if batch < 1:
            raise FamilyError(f"the batch size is {batch}; it must be at least 1")
        affine = zip(self.base.tolist(), self.slope.tolist(), strict=True)
        sizes = [base + slope * batch for base, slope in affine]
        for row, size in enumerate(sizes):
            if not 0 <= size <= MAX_BYTES:
                recorded = listed(list(map(str, self.recorded)), quote=False)
                raise FamilyError(
                    f"{self.trace.ids[row]} would have {size} bytes at batch size {batch}, too far "
                    f"from those that were recorded: {recorded}"
                )
        column = np.array(sizes, dtype=np.int64)
        column.flags.writeable = False
        about = {**self.trace.about, "batch": str(batch)}
        return replace(self.trace, size=column, address=None, about=about)


class _Matching:
    """Matches allocations of all traces by module, operators and number, as times differ."""

    def __init__(self, batches: Sequence[int], traces: Sequence[Trace]) -> None:
        self._batches = batches
        self._traces = traces
        self._rows: list[dict[_Key, int]] = [
            {key: row for row, key in enumerate(zip(t.scopes, t.ordinal.tolist(), strict=True))}
            for t in traces
        ]
        self.misfits: dict[_Key, Misfit] = {}
        self._fitting: list[_Key] = []
        self._affine: list[tuple[int, int]] = []
        for key in dict.fromkeys(key for rows in self._rows for key in rows):
            self._judge(key)
        self._agree_on_order()

    def family(self) -> Family:
        rows = self._match_rows()[0]
        first = self._traces[0]
        start, end = _rank_events(first, rows)
        trace = Trace.from_arrays(
            start,
            end,
            first.size[rows],
            [first.scopes[row] for row in rows],
            ordinal=first.ordinal[rows],
            outlives=first.outlives[rows],
            thread=first.thread[rows],
            alignment=first.alignment,
            about=first.about,
        )
        affine = np.array(self._affine, dtype=np.int64).reshape(-1, 2)
        affine.flags.writeable = False
        return Family(
            trace, affine[:, 0], affine[:, 1], tuple(self._batches), tuple(self.misfits.values())
        )

    def _judge(self, key: _Key) -> None:
        """Find base and slope of an allocation, or the reason to leave it out."""
        rows = [rows.get(key) for rows in self._rows]
        made = [(t, row) for t, row in zip(self._traces, rows, strict=True) if row is not None]
        late = {bool(trace.outlives[row]) for trace, row in made}
        if len(made) < len(rows):
            why = "is not made at every batch size"
        elif len(late) > 1:
            why = "outlives the run at some batch sizes only"
        else:
            sizes = [int(trace.size[row]) for trace, row in made]
            slope, rest = divmod(sizes[1] - sizes[0], self._batches[1] - self._batches[0])
            base = sizes[0] - slope * self._batches[0]
            if rest == 0 and sizes == [base + slope * batch for batch in self._batches]:
                self._fitting.append(key)
                self._affine.append((base, slope))
                return
            why = "does not grow as base + slope * batch"
        if late != {True}:  # a result of every run needs no place
            self._leave(key, why)

    def _leave(self, key: _Key, why: str) -> None:
        sizes: dict[int, int | None] = {}
        for batch, trace, rows in zip(self._batches, self._traces, self._rows, strict=True):
            row = rows.get(key)
            sizes[batch] = None if row is None else int(trace.size[row])
            if row is not None:
                id = trace.ids[row]
        self.misfits[key] = Misfit(id, sizes, why)

    def _agree_on_order(self) -> None:
        """Leave out allocations until the rest starts and ends in one order in all traces.

        At the first difference of two traces this leaves out the allocation of either trace, as
        it cannot see which of the two moved.
        """
        while True:
            ranks = [
                np.concatenate(_rank_events(trace, rows))
                for trace, rows in zip(self._traces, self._match_rows(), strict=True)
            ]
            parted = [np.flatnonzero(ranks[0] != other) for other in ranks[1:]]
            apart = next((at for at, rows in enumerate(parted, 1) if rows.size), None)
            if apart is None:
                return
            n = len(self._fitting)
            rows = parted[apart - 1]
            odd = {int(rows[np.argmin(rank[rows])]) % n for rank in (ranks[0], ranks[apart])}
            for row in sorted(odd):
                self._leave(
                    self._fitting[row],
                    f"comes or goes in another order at batch size {self._batches[apart]}",
                )
            kept = [row for row in range(n) if row not in odd]
            self._fitting = [self._fitting[row] for row in kept]
            self._affine = [self._affine[row] for row in kept]

    def _match_rows(self) -> list[list[int]]:
        """Return the rows of the allocations that fit, in every trace."""
        return [[rows[key] for key in self._fitting] for rows in self._rows]


def _rank_events(trace: Trace, rows: list[int]) -> tuple[Column, Column]:
    """Return starts and ends of some rows, as ranks among these alone."""
    start, end = trace.start[rows], trace.end[rows]
    ranks = np.unique(np.concatenate([start, end]), return_inverse=True)[1].astype(np.int64)
    return ranks[: len(rows)], ranks[len(rows) :]


def _explain_refusal(misfits: list[Misfit]) -> str:
    others = f"; {len(misfits) - 1} more do not fit either" if len(misfits) > 1 else ""
    return (
        f"{misfits[0]}{others}: pass strict=False to leave such allocations to the ordinary "
        "allocator"
    )

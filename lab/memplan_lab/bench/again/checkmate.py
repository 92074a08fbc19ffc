"""Checkmate's integer program, by HiGHS.

Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization" (2020),
section 4: in stage t, operator t runs for the first time, and before it each operator before it may
run again, in the given order.

    R[t, i]      operator i runs in stage t
    S[t, x]      result x is kept from the stage before
    U[t, i]      bytes that are there when operator i has run in stage t
    F[t, x, i]   operator i is the last in stage t that needs x, and then x is not kept

The paper counts what keeps x from being dropped in one row of F with the number of such hazards;
here each hazard has a row, which gives a better bound. Beyond the paper, operators may make several
results, and need a workspace; results may be given or wanted.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from memplan.problem import RecomputeProblem
from memplan_lab.baselines._highs import highs
from memplan_lab.bench.again.moccasin import Found
from memplan_lab.bench.orders.program import OrderLists, program_of

__all__ = ["LARGEST", "solve"]

LARGEST: Final = 100  # operators
_TOLERANCE: Final = 1e-9
_SCALE: Final = 1000.0  # of the cost of running every operator once


def solve(problem: RecomputeProblem, capacity: int, seconds: float) -> Found | None:
    """Look for the cheapest sequence that fits, in CPU seconds; `None` if it is too large."""
    if len(problem) > LARGEST:
        return None
    model = _Model(problem, capacity)
    program = {**model.arrays(), "point": np.empty(0), "shown": np.array(model.count_of_runs)}
    options = {
        "threads": 1,
        "mip_feasibility_tolerance": _TOLERANCE,
        "primal_feasibility_tolerance": _TOLERANCE,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.5 * model.unit,
    }
    point, status = None, None
    with highs(program, options) as reports:
        for known in reports:
            if known is not None:
                point = point if known.point is None else known.point
                status = known.status or status
            elif _measure_children() > seconds:
                break
    runs = None if point is None else model.sequence(point)
    return Found(runs, status == "Optimal", status == "Infeasible")


def _measure_children() -> float:
    """Return the CPU time of the processes that this one has started and that have not ended."""
    import psutil

    times = [child.cpu_times() for child in psutil.Process().children()]
    return float(sum(each.user + each.system for each in times))


class _Model:
    """Columns and rows; sizes are shares of the capacity."""

    def __init__(self, problem: RecomputeProblem, capacity: int) -> None:
        self._problem = problem
        self._lists: OrderLists = program_of(problem.program)
        self._count = count = len(problem)
        # Runs come first, in the order in which they would happen.
        self.count_of_runs = count * (count + 1) // 2
        self._scale = _SCALE / max(problem.plain, 1)
        self.unit = (math.gcd(*problem.cost[problem.again].tolist()) or 1) * self._scale
        self._size = (problem.program.size / max(capacity, 1)).tolist()
        self._workspace = (problem.program.workspace / max(capacity, 1)).tolist()
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._whole: list[bool] = []
        self._cost: list[float] = []
        self._rows: list[tuple[list[tuple[int, float]], float]] = []
        self._add_runs()
        self._kept: dict[tuple[int, int], int] = {}
        self._add_kept()
        for stage in range(count):
            self._need_inputs(stage)
            self._limit_bytes(stage)

    def _column(self, lower: float, upper: float, *, whole: bool, cost: float = 0.0) -> int:
        self._lower.append(lower)
        self._upper.append(upper)
        self._whole.append(whole)
        self._cost.append(cost)
        return len(self._lower) - 1

    def _row(self, entries: list[tuple[int, float]], upper: float) -> None:
        self._rows.append((entries, upper))

    @staticmethod
    def _run(stage: int, op: int) -> int:
        """Return the column that says whether an operator runs in a stage."""
        return stage * (stage + 1) // 2 + op

    def _add_runs(self) -> None:
        again, cost = self._problem.again.tolist(), self._problem.cost.tolist()
        for stage in range(self._count):
            for op in range(stage):
                self._column(0, again[op], whole=True, cost=cost[op] * self._scale)
            self._column(1, 1, whole=True)

    def _add_kept(self) -> None:
        """Add what is kept from each stage to the next; what is given and wanted always is."""
        program = self._problem.program
        for storage, users in enumerate(self._lists.users):
            given, wanted = bool(program.given[storage]), bool(program.wanted[storage])
            if not users or (given and wanted):
                continue
            first = 0 if given else users[0] + 1
            last = self._count if wanted else self._count - 1
            for stage in range(first, last + 1):
                fixed = (given and stage == 0) or stage == self._count
                self._kept[stage, storage] = now = self._column(float(fixed), 1, whole=True)
                before = [(now, 1.0)]
                if (stage - 1, storage) in self._kept:
                    before.append((self._kept[stage - 1, storage], -1.0))
                if not given:
                    before.append((self._run(stage - 1, users[0]), -1.0))
                if len(before) > 1:
                    self._row(before, 0.0)

    def _need_inputs(self, stage: int) -> None:
        program = self._problem.program
        for op in range(stage + 1):
            for storage in self._lists.reads[op]:
                sources = []
                if (stage, storage) in self._kept:
                    sources.append((self._kept[stage, storage], -1.0))
                if not program.given[storage]:
                    sources.append((self._run(stage, self._lists.users[storage][0]), -1.0))
                if sources:
                    self._row([(self._run(stage, op), 1.0), *sources], 0.0)

    def _limit_bytes(self, stage: int) -> None:
        """Follow the bytes that are there, operator by operator."""
        program = self._problem.program
        always = sum(
            size
            for size, given, wanted in zip(self._size, program.given, program.wanted, strict=True)
            if given and wanted
        )
        change = [
            (self._kept[stage, storage], size)
            for storage, size in enumerate(self._size)
            if (stage, storage) in self._kept
        ]
        for op in range(stage + 1):
            run = self._run(stage, op)
            change.append((run, sum(self._size[made] for made in self._lists.makes[op])))
            now = self._column(0, 1, whole=False)
            self._row([*change, (now, -1.0)], -always if op == 0 else 0.0)
            self._row([(now, 1.0), (run, self._workspace[op])], 1.0)
            change = [(now, 1.0)]
            for storage in self._lists.touched[op]:
                change += self._drop(stage, op, storage)

    def _drop(self, stage: int, op: int, storage: int) -> list[tuple[int, float]]:
        """Let an operator be the last one that needs a storage, which is then not there."""
        program = self._problem.program
        last = stage == self._count - 1
        if program.wanted[storage] and (last or program.given[storage]):
            return []
        dropped = self._column(0, 1, whole=False)
        self._row([(dropped, 1.0), (self._run(stage, op), -1.0)], 0.0)
        if not last:
            self._row([(dropped, 1.0), (self._kept[stage + 1, storage], 1.0)], 1.0)
        for user in self._lists.users[storage]:
            if op < user <= stage:
                self._row([(dropped, 1.0), (self._run(stage, user), 1.0)], 1.0)
        return [(dropped, -self._size[storage])]

    def arrays(self) -> dict[str, Any]:
        """Return the program as HiGHS takes it."""
        length = [len(entries) for entries, _ in self._rows]
        return {
            "lower": np.array(self._lower),
            "upper": np.array(self._upper),
            "whole": np.array(self._whole),
            "cost": np.array(self._cost),
            "row_upper": np.array([upper for _, upper in self._rows]),
            "row_begin": (np.cumsum(length) - length).astype(np.int32),
            "column": np.array([at for row, _ in self._rows for at, _ in row], dtype=np.int32),
            "value": np.array([value for row, _ in self._rows for _, value in row]),
        }

    def sequence(self, point: list[float]) -> list[int]:
        """Return the operators that run in a solution."""
        return [
            op
            for stage in range(self._count)
            for op in range(stage + 1)
            if point[self._run(stage, op)] > 0.5
        ]

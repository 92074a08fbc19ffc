"""Moccasin's model: intervals during which results are kept, by CP-SAT of OR-Tools.

Bartan et al., "Moccasin: Efficient Tensor Rematerialization for Neural Networks" (2023): operators
have an order. Before the first run of operator j there is a stage in which each operator before it
may run again, in this order; so operator i can run at the times j (j + 1) / 2 + i, i <= j. It runs
at most `COPIES` times. A result is kept during one interval for each run, and all that are kept at
a time fit into the capacity. Each run falls into an interval of everything that it reads.

As in the paper, a first search looks for a sequence that fits: it minimises the capacity. A second
one minimises the cost, from the sequence of the first. The paper uses constraints of reservoirs for
the intervals into which runs fall; here, Booleans say which ones they are. Beyond the paper,
operators may make several results, and need a workspace; results may be given or wanted.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

from memplan.problem import RecomputeProblem
from memplan_lab.baselines._cp_model import search
from memplan_lab.bench.orders.program import OrderLists, program_of
from memplan_lab.extras import require

__all__ = ["COPIES", "WORKERS", "Found", "solve"]

COPIES = 2
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Found:
    """What a solver found, in the stages of an order."""

    runs: list[int] | None  # the sequence, or `None`
    is_optimal: bool = False  # whether the solver has proved that its model has no cheaper one
    is_refuted: bool = False  # whether it has proved that its model has none at all


def solve(
    problem: RecomputeProblem, capacity: int, seconds: float, *, copies: int = COPIES
) -> Found:
    """Look for the cheapest sequence of the model that fits, in CPU seconds of all threads."""
    cp = require("ortools.sat.python.cp_model", extra="ortools")
    begun = time.process_time()
    model = _Model(cp, problem, copies)
    loose = model.add_capacity(capacity)
    model.hint_plain()
    model.cp.minimize(loose)
    solver, status = _search(cp, model.cp, seconds)
    if status not in (cp.OPTIMAL, cp.FEASIBLE) or solver.value(loose) > capacity // model.unit:
        proved = status == cp.OPTIMAL or status == cp.INFEASIBLE
        return Found(None, is_refuted=proved)
    runs = model.runs(solver)
    model.hint(solver)
    model.cp.add(loose == capacity // model.unit)
    model.cp.minimize(model.cost)
    left = max(0.0, seconds - (time.process_time() - begun))
    solver, status = _search(cp, model.cp, left)
    if status in (cp.OPTIMAL, cp.FEASIBLE):
        return Found(model.runs(solver), is_optimal=status == cp.OPTIMAL)
    return Found(runs)


def _search(cp: Any, model: Any, seconds: float) -> tuple[Any, Any]:
    solver = cp.CpSolver()
    solver.parameters.num_workers = WORKERS
    begun = time.process_time()
    return solver, search(solver, model, lambda: time.process_time() - begun >= seconds)


@dataclass(slots=True)
class _Run:
    """A run of an operator: when, and whether it happens."""

    at: Any
    happens: Any
    ends: dict[int, Any] = field(default_factory=dict)  # by storage: the last time when it is kept


class _Model:
    """The variables: runs of operators, and the ends of the intervals of what they make."""

    def __init__(self, cp: Any, problem: RecomputeProblem, copies: int) -> None:
        self.cp: Any = cp.CpModel()
        self._library, self._problem = cp, problem
        self._lists: OrderLists = program_of(problem.program)
        program = problem.program
        self._last = len(problem) * (len(problem) + 1) // 2
        self.unit = math.gcd(*program.size.tolist(), *program.workspace.tolist()) or 1
        self._intervals: list[Any] = []
        self._demands: list[int] = []
        self._runs = [self._make_runs(op, copies) for op in range(len(problem))]
        self._given = {
            storage: self._keep_given(storage)
            for storage in range(len(program.size))
            if program.given[storage] and (self._lists.users[storage] or program.wanted[storage])
        }
        self._read()
        self.cost = sum(
            int(problem.cost[op]) * run.happens
            for op, runs in enumerate(self._runs)
            for run in runs[1:]
        )

    def _make_runs(self, op: int, copies: int) -> list[_Run]:
        """Return the runs of an operator, each with an interval for all that it makes."""
        model, count = self.cp, len(self._problem)
        first = op * (op + 1) // 2 + op
        runs = [_Run(first, model.new_constant(1))]
        later = [stage * (stage + 1) // 2 + op for stage in range(op + 1, count)]
        if self._problem.again[op] and self._lists.makes[op] and later:
            domain = self._library.Domain.from_values(later)
            for _ in range(copies - 1):
                runs.append(_Run(model.new_int_var_from_domain(domain, ""), model.new_bool_var("")))
        for run, after in zip(runs, [*runs[1:], None], strict=True):
            for storage in self._lists.makes[op]:
                run.ends[storage] = end = model.new_int_var(first, self._last, "")
                self._occupy(run.at, end, storage, run.happens)
                if after:
                    model.add(end < after.at).only_enforce_if(after.happens)
            if after:
                model.add_implication(after.happens, run.happens)
                model.add(run.at < after.at).only_enforce_if(after.happens)
            workspace = int(self._problem.program.workspace[op])
            self._add(run.at, 1, run.at + 1, workspace, run.happens)
        return runs

    def _keep_given(self, storage: int) -> Any:
        """Return the end of a storage that is there from the beginning."""
        end = self.cp.new_int_var(0, self._last, "")
        self._occupy(0, end, storage, self.cp.new_constant(1))
        return end

    def _occupy(self, begin: Any, end: Any, storage: int, happens: Any) -> None:
        """Let a storage be kept from a time to another one, both included."""
        length = self.cp.new_int_var(1, self._last + 1, "")
        self._add(begin, length, end + 1, self._lists.size(storage), happens)

    def _add(self, begin: Any, length: Any, end: Any, bytes: int, happens: Any) -> None:
        if bytes:
            self._intervals.append(
                self.cp.new_optional_interval_var(begin, length, end, happens, "")
            )
            self._demands.append(bytes // self.unit)

    def _read(self) -> None:
        """Let every run fall into an interval of all that it reads, and the end into the wanted."""
        model, program = self.cp, self._problem.program
        for op, runs in enumerate(self._runs):
            for storage in self._lists.reads[op]:
                for run in runs:
                    self._need(storage, run)
        for storage, users in enumerate(self._lists.users):
            if program.wanted[storage] and (users or program.given[storage]):
                self._need(storage, _Run(self._last, model.new_constant(1)))

    def _need(self, storage: int, reader: _Run) -> None:
        model = self.cp
        if storage in self._given:
            model.add(reader.at <= self._given[storage]).only_enforce_if(reader.happens)
            return
        kept = []
        for run in self._runs[self._lists.users[storage][0]]:
            inside = model.new_bool_var("")
            model.add_implication(inside, run.happens)
            model.add(run.at < reader.at).only_enforce_if(inside)
            model.add(reader.at <= run.ends[storage]).only_enforce_if(inside)
            kept.append(inside)
        model.add_bool_or(*kept, ~reader.happens)

    def add_capacity(self, capacity: int) -> Any:
        """Return the most that may be kept at a time, in units, which is at least the capacity."""
        most = self.cp.new_int_var(
            capacity // self.unit, max(sum(self._demands), capacity // self.unit), ""
        )
        self.cp.add_cumulative(self._intervals, self._demands, most)
        return most

    def hint_plain(self) -> None:
        """Begin with every operator running once."""
        for runs in self._runs:
            for run in runs[1:]:
                self.cp.add_hint(run.happens, 0)

    def hint(self, solver: Any) -> None:
        """Begin with a solution."""
        self.cp.clear_hints()
        for at in range(len(self.cp.proto.variables)):
            variable = self.cp.get_int_var_from_proto_index(at)
            self.cp.add_hint(variable, solver.value(variable))

    def runs(self, solver: Any) -> list[int]:
        """Return the sequence of a solution."""
        found = [
            (solver.value(run.at), op)
            for op, runs in enumerate(self._runs)
            for run in runs
            if solver.value(run.happens)
        ]
        return [op for _, op in sorted(found)]

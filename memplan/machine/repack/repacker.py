"""Plans a problem repeatedly with small changes in between, at a cost that depends on the change.

A compiler needs this when it decides step by step which buffers are in fast memory (TelaMalloc,
sections 5.6 and 7.4): it adds a few buffers, asks whether all still fit, and removes some again.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError, ProblemError, UnsupportedError, quoted, shown
from memplan.problem import Problem
from memplan.problem.buffer import Buffer, Reserved
from memplan.problem.intake import take_capacity
from memplan.problem.plan import Plan, Status
from memplan.solvers import Interrupted, native, registry
from memplan.solvers.limits import (
    MAX_COUNT,
    MAX_SEED,
    MAX_THREADS,
    check_seconds,
    check_whole,
    count_cpus,
)

__all__ = ["Repacker", "require_lifetimes"]


class Repacker:
    """A plan that is kept while buffers come and go.

    Buffers that stay keep their offsets, and new ones are placed in the holes. If that is not
    enough, a few others move. If that fails too, the whole problem is planned again. So a small
    change costs little, and few buffers move. The same calls always give the same plan.

    Alignment, pins, reserved ranges and gaps are supported. A repair treats a buffer as held during
    its gaps, and ignores hints. Only one thread may use a repacker at a time.

    Parameters
    ----------
    problem
        The first buffers: a `Problem`, whose capacity and reserved ranges are used too,
        or any iterable of `Buffer`.
    capacity
        The limit on every `offset + size`, in place of the problem's; `None` for no limit.
    reserved
        Address ranges that no buffer may touch, in place of the problem's.
    solver
        The solver that plans the whole problem: one of the core's; see `memplan.solve`.
    threads, seed
        See `memplan.solve`.

    Raises
    ------
    ProblemError
        For buffers that make no well formed problem.
    UnsupportedError
        For a problem with conflicts or groups, and for a solver that is a baseline.
    MemplanError
        If there is no such solver, an argument is out of range, and for more than 2^62 bytes in
        all.

    Examples
    --------
    >>> import memplan as mp
    >>> repacker = mp.Repacker([mp.Buffer("a", 0, 4, 8), mp.Buffer("b", 2, 6, 8)], capacity=20)
    >>> repacker.fits()
    True
    >>> repacker.add(mp.Buffer("c", 3, 9, 8))
    >>> repacker.fits()
    False
    >>> repacker.remove("a")
    >>> repacker.fits(), repacker.moved
    (True, 0)
    >>> mp.verify(repacker.problem(), repacker.plan())
    """

    def __init__(
        self,
        problem: Problem | Iterable[Buffer] = (),
        capacity: int | None = None,
        *,
        reserved: Iterable[Reserved | tuple[int, int]] | None = None,
        solver: str = "auto",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        start = problem if isinstance(problem, Problem) else Problem(problem)
        if reserved is not None:
            start = start.with_reserved(reserved)
        require_lifetimes(start)
        self._solver = _require_core_solver(solver)
        self._threads = (
            count_cpus() if threads is None else check_whole(threads, "threads", 1, MAX_THREADS)
        )
        self._seed = check_whole(seed, "seed", 0, MAX_SEED)
        self._capacity = start.capacity if capacity is None else take_capacity(capacity)
        self._reserved = start.reserved
        try:
            self._native, slots = native.repacker(start)
        except ValueError as error:
            raise MemplanError(str(error)) from None
        self._buffers = dict(zip(start.ids, start.buffers, strict=True))
        self._slots = dict(zip(start.ids, slots, strict=True))
        # Buffers that may have hints or gaps, which are not in the columns of the core.
        self._special = set(start.ids) if start.has_gaps or start.has_hints else set()
        self._problem: Problem | None = None  # what was asked last, until something changes
        self._moved = 0
        self._nodes = 0
        self._found_by = ""

    @property
    def capacity(self) -> int | None:
        """The capacity of the last question, in bytes, or `None`."""
        return self._capacity

    @property
    def moved(self) -> int:
        """How many buffers the last call of `fits` or `plan` moved to another offset."""
        return self._moved

    @property
    def nodes(self) -> int:
        """The cost of the last call of `fits` or `plan`, in placements and search nodes."""
        return self._nodes

    @property
    def found_by(self) -> str:
        """What found the last answer: "repack" if the old plan was repaired, or a solver."""
        return self._found_by

    def copy(self) -> Repacker:
        """Return another repacker in the same state, on which a change can be tried."""
        other = Repacker.__new__(Repacker)
        other.__dict__.update(
            self.__dict__,
            _native=self._native.copy(),
            _buffers=self._buffers.copy(),
            _slots=self._slots.copy(),
            _special=self._special.copy(),
        )
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> Repacker:
        return self.copy()

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, id: object) -> bool:
        return id in self._slots

    def add(self, *buffers: Buffer) -> None:
        """Add buffers; they are placed when `fits` or `plan` is called next.

        Raises
        ------
        ProblemError
            For an id that is there already, and for buffers that a `Problem` of all the buffers
            would reject; none of them is added.
        MemplanError
            For more than 2^62 bytes in all.
        """
        try:
            new = {buffer.id: buffer for buffer in buffers}
            known = len(new) < len(buffers) or not self._slots.keys().isdisjoint(new)
            slots = None if known else self._native.add_buffers(buffers)
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            self._make_problem(buffers)  # raises an error about the buffers, if they are wrong
            raise MemplanError(str(error)) from None
        if slots is None:
            slots = self._add_as_problem(buffers)
            self._special.update(new)
        self._slots.update(zip(new, slots, strict=True))
        self._buffers.update(new)
        self._problem = None

    def remove(self, *ids: str) -> None:
        """Remove buffers; the others keep their offsets.

        Raises
        ------
        ProblemError
            For an id that no buffer has, or that is given twice; none of them is removed.
        """
        try:
            slots = [self._slots[id] for id in ids]
        except (KeyError, TypeError):
            unknown = next(id for id in ids if not isinstance(id, str) or id not in self._slots)
            what = quoted(unknown) if isinstance(unknown, str) else shown(unknown)
            raise ProblemError(f"no buffer has the id {what}", field="id") from None
        try:
            self._native.remove(slots)
        except IndexError:
            twice = next(id for at, id in enumerate(ids) if id in ids[:at])
            what = f"buffer {quoted(twice)} is to be removed twice"
            raise ProblemError(what, field="id") from None
        except RuntimeError as error:
            raise MemplanError(str(error)) from None
        for id in ids:
            del self._slots[id], self._buffers[id]
        self._special.difference_update(ids)
        self._problem = None

    def fits(
        self,
        capacity: int | None = None,
        *,
        timeout: float | None = None,
        nodes: int | None = None,
    ) -> bool | None:
        """Find out whether all buffers fit within a capacity.

        Parameters
        ----------
        capacity
            In bytes; the repacker keeps it for later calls. `None` uses the one that it has.
        timeout, nodes
            When to stop; see `memplan.solve`. By default a search stops after a fixed amount of
            work, which only hard questions need.

        Returns
        -------
        bool or None
            True if a plan was found; `plan` and `offset` return it. False if it is proved that
            there is none. `None` if neither was found in time. Unless it is True, the buffers
            that had offsets keep them.

        Raises
        ------
        ProblemError
            For a capacity that is not a whole number from 1 to 2^62.
        MemplanError
            If there is no capacity, and for limits that are out of range.
        Interrupted
            On Ctrl-C, with the plan so far.
        """
        limit = self._capacity if capacity is None else take_capacity(capacity)
        if limit is None:
            raise MemplanError("fits() needs a capacity; the repacker has none")
        status = Status(self._repack(limit, False, timeout, nodes).status)
        return None if status is Status.UNKNOWN else status.has_plan

    def plan(
        self,
        objective: str | None = None,
        *,
        timeout: float | None = None,
        nodes: int | None = None,
    ) -> Plan:
        """Return a plan of all buffers.

        Parameters
        ----------
        objective
            "fit" looks for a plan within the capacity; the default if there is one. "min_peak"
            looks for the smallest peak (within the capacity, if there is one).
        timeout, nodes
            When to give up; see `memplan.solve`.

        Returns
        -------
        Plan
            A plan of `problem()`. If it has no offsets, its status tells whether that is proved.
            Its `stats` are those of `memplan.solve` and `moved`; `solver` is "repack" if the old
            plan was repaired.

        Raises
        ------
        MemplanError
            For limits that are out of range, and for "fit" without a capacity.
        Interrupted
            On Ctrl-C, with the plan so far.
        """
        minimize = self._must_minimize(objective)
        return self._make_plan(self._repack(self._capacity, minimize, timeout, nodes))

    def offset(self, id: str) -> int:
        """Return the offset of a buffer, in bytes.

        Raises
        ------
        ProblemError
            For an id that no buffer has, and for a buffer that has no offset yet.
        """
        slot = self._slots.get(id)
        if slot is None:
            raise ProblemError(f"no buffer has the id {quoted(str(id))}", field="id")
        offset = self._native.offset(slot)
        if offset < 0:
            raise ProblemError(f"buffer {quoted(id)} has no place yet: ask whether all fits")
        return offset

    def problem(self) -> Problem:
        """Return all buffers as a problem, with the capacity of the last question."""
        if self._problem is None and self._special:
            self._problem = Problem(self._buffers.values(), reserved=self._reserved)
        elif self._problem is None:
            self._problem = self._make_plain_problem(self._read_columns())
        if self._problem.capacity != self._capacity:
            self._problem = self._problem.with_capacity(self._capacity)
        return self._problem

    def _repack(
        self, capacity: int | None, minimize: bool, timeout: float | None, nodes: int | None
    ) -> native.Repacked:
        limits = (
            check_seconds(timeout),
            None if nodes is None else check_whole(nodes, "nodes", 1, MAX_COUNT),
        )
        make = registry.SOLVERS[self._solver].outside
        outside = None if make is None else make({}, Problem(()))
        try:
            answer = self._native.repack(
                capacity, self._solver, minimize, *limits, self._threads, self._seed, outside
            )
        except (ValueError, RuntimeError) as error:
            raise MemplanError(str(error)) from None
        self._capacity = capacity
        self._moved = answer.moved
        self._nodes = answer.nodes
        self._found_by = answer.solver
        if answer.interrupted:
            raise Interrupted(self._make_plan(answer))
        return answer

    def _make_plan(self, answer: native.Repacked) -> Plan:
        status = Status(answer.status)
        placed = status.has_plan
        named = {slot: id for id, slot in self._slots.items()} if answer.conflict else {}
        columns = self._read_columns()
        if self._problem is None and not self._special:
            self._problem = self._make_plain_problem(columns)
        bound = answer.lower_bound
        peak = self._native.peak if placed else None
        if peak is None or bound < peak:
            bound = max(bound, self._native.lower_bound())
        if placed and peak == bound:
            status = Status.OPTIMAL
        return Plan.of_checked(
            self.problem(),
            columns[-1] if placed else None,
            status=status,
            peak=peak,
            lower_bound=bound,
            capacity=self._capacity,
            solver="repacker",
            stats={
                "solver": answer.solver,
                "nodes": answer.nodes,
                "restarts": answer.restarts,
                "seconds": dict(answer.seconds),
                "note": answer.note,
                "moved": answer.moved,
            },
            conflict=[named[slot] for slot in answer.conflict],
        )

    def _read_columns(self) -> npt.NDArray[np.int64]:
        """Return start, end, size, alignment, pin and offset of all buffers, one row for each."""
        return self._native.columns(list(self._slots.values()))

    def _make_plain_problem(self, columns: npt.NDArray[np.int64]) -> Problem:
        """Return the problem of all buffers, if none of them has hints or gaps."""
        start, end, size, alignment, pin, _ = columns
        return Problem.of_checked(
            *(tuple(self._slots), start, end, size, alignment, pin),
            capacity=self._capacity,
            reserved=self._reserved,
        )

    def _must_minimize(self, objective: str | None) -> bool:
        if objective not in (None, "fit", "min_peak"):
            raise MemplanError(f'objective is {shown(objective)}; it must be "fit" or "min_peak"')
        if objective == "fit" and self._capacity is None:
            raise MemplanError('the objective "fit" needs a capacity; the repacker has none')
        return objective == "min_peak" or self._capacity is None

    def _make_problem(self, buffers: Iterable[Buffer]) -> Problem:
        """Return a problem of all buffers and these; raise as `Problem` does if they are wrong."""
        return Problem([*self._buffers.values(), *buffers], reserved=self._reserved)

    def _add_as_problem(self, buffers: Iterable[Buffer]) -> list[int]:
        """Add buffers of any kind, such as those with gaps; raise if they are wrong."""
        asked = self._make_problem(buffers)
        rows = asked.subset(range(len(self._slots), len(asked)))
        try:
            return native.add_rows(self._native, rows)
        except ValueError as error:
            raise MemplanError(str(error)) from None


def require_lifetimes(problem: Problem) -> None:
    """Refuse a problem in which conflicts or groups also decide which buffers conflict."""
    if problem.has_conflicts or problem.has_groups:
        what = "conflicts" if problem.has_conflicts else "groups"
        raise UnsupportedError(f"a repacker does not support {what}; the problem has some")


def _require_core_solver(solver: str) -> str:
    """Return the name of a solver; raise if the core does not have it or it needs options."""
    name, options = registry.parse(solver)
    if options or not _is_able(registry.SOLVERS[name]):
        able = ", ".join(each.name for each in registry.SOLVERS.values() if _is_able(each))
        raise UnsupportedError(
            f"a repacker cannot plan with {quoted(str(solver))}; choose one of {able}, "
            "without options"
        )
    return name


def _is_able(solver: registry.Solver) -> bool:
    return bool(solver.core) and not solver.is_baseline

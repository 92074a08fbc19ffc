"""Plan again and again with a few buffers changed in between, and pay for the change only.

What a compiler does that decides step by step what lives in fast memory (source 001, sections 5.6
and 7.4): it puts a few buffers in, asks whether all still fit, and takes some out again.
"""

from __future__ import annotations

from collections.abc import Iterable

from memplan.errors import MemplanError, ProblemError, UnsupportedError, quoted, shown
from memplan.plan import Plan, Status
from memplan.problem import Problem
from memplan.problem.buffer import Buffer, Reserved
from memplan.problem.intake import take_capacity
from memplan.solvers import Interrupted, native, registry
from memplan.solvers._limits import (
    MAX_COUNT,
    MAX_SEED,
    MAX_THREADS,
    check_seconds,
    check_whole,
    cores,
)

__all__ = ["Repacker", "require_lifetimes"]

_FITS = {"optimal": True, "feasible": True, "infeasible": False}


class Repacker:
    """A plan that is kept while buffers come and go.

    What stays is left where it is, and what is new goes into the holes. Where that is not enough,
    a few others move; only where that fails, all is planned anew. So a small change costs little,
    and few buffers move. After the same calls, the plan is the same.

    Alignment, pins, reserved ranges and gaps are kept. While a plan is mended, a gap counts as
    held; hints are not followed. It serves one thread at a time.

    Parameters
    ----------
    problem
        The buffers to begin with: a `Problem`, whose capacity and reserved ranges are taken too,
        or any iterable of `Buffer`.
    capacity
        The limit on every `offset + size`, in place of the problem's; `None` for no limit.
    reserved
        Address ranges that no buffer may touch, in place of the problem's.
    solver
        Who plans anew: one of the solvers of the core, as `memplan.solve` takes it.
    threads, seed
        As `memplan.solve` takes them.

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
        self._solver = _of_the_core(solver)
        self._threads = (
            cores() if threads is None else check_whole(threads, "threads", 1, MAX_THREADS)
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
        self._problem: Problem | None = None  # what was asked last, until something changes
        self._moved = 0
        self._nodes = 0
        self._found_by = ""

    @property
    def capacity(self) -> int | None:
        """The limit that is kept: that of the last question, in bytes, or `None`."""
        return self._capacity

    @property
    def moved(self) -> int:
        """How many buffers the last call of `fits` or `plan` moved from where they were before."""
        return self._moved

    @property
    def nodes(self) -> int:
        """What the last call of `fits` or `plan` cost, in placements and search nodes."""
        return self._nodes

    @property
    def found_by(self) -> str:
        """Who answered last: "repack" where the plan before was mended, or a solver."""
        return self._found_by

    def copy(self) -> Repacker:
        """Return another repacker in the same state: to come back to, or to try something on."""
        other = Repacker.__new__(Repacker)
        other.__dict__.update(
            self.__dict__,
            _native=self._native.copy(),
            _buffers=self._buffers.copy(),
            _slots=self._slots.copy(),
        )
        return other

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, id: object) -> bool:
        return id in self._slots

    def add(self, *buffers: Buffer) -> None:
        """Put buffers in; they get their places when `fits` or `plan` is called next.

        Raises
        ------
        ProblemError
            For an id that is there already, and for what a `Problem` of all the buffers would
            refuse; none of them is added.
        MemplanError
            For more than 2^62 bytes in all.
        """
        try:
            new = {buffer.id: buffer for buffer in buffers}
            known = len(new) < len(buffers) or not self._slots.keys().isdisjoint(new)
            slots = None if known else self._native.add_buffers(buffers)
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            self._with(buffers)  # says what is wrong, if it is with the buffers
            raise MemplanError(str(error)) from None
        if slots is None:
            slots = self._add_as_problem(buffers)
        self._slots.update(zip(new, slots, strict=True))
        self._buffers.update(new)
        self._problem = None

    def remove(self, *ids: str) -> None:
        """Take buffers out; the others stay where they are.

        Raises
        ------
        ProblemError
            For an id that is not there, or is given twice; none of them is removed.
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
        self._problem = None

    def fits(
        self,
        capacity: int | None = None,
        *,
        timeout: float | None = None,
        nodes: int | None = None,
    ) -> bool | None:
        """Whether all buffers fit within a capacity.

        Parameters
        ----------
        capacity
            In bytes; from now on it is that of the repacker. `None`: the one it has.
        timeout, nodes
            When to give up, as `memplan.solve` takes them. By default only a hard question is
            given up, after a fixed amount of work.

        Returns
        -------
        bool or None
            True with a plan at hand: `plan` and `offset` give it. False where it is proved that
            there is none. `None` where neither was found in time. Unless it is True, the buffers
            that had places keep them.

        Raises
        ------
        ProblemError
            For a capacity that is not a whole number from 1 to 2^62.
        MemplanError
            Where there is no capacity, and for limits that are out of range.
        Interrupted
            On Ctrl-C, with the plan so far.
        """
        limit = self._capacity if capacity is None else take_capacity(capacity)
        if limit is None:
            raise MemplanError("fits() needs a capacity; the repacker has none")
        return _FITS.get(self._repack(limit, False, timeout, nodes).status)

    def plan(
        self,
        objective: str | None = None,
        *,
        timeout: float | None = None,
        nodes: int | None = None,
    ) -> Plan:
        """Return a plan of all buffers that are in.

        Parameters
        ----------
        objective
            "fit" keeps the capacity; the default where there is one. "min_peak" looks for the
            smallest peak (within the capacity, where there is one).
        timeout, nodes
            When to give up, as `memplan.solve` takes them.

        Returns
        -------
        Plan
            For `problem()`. Where it has no offsets, its status says whether that is proved.
            `stats` has `moved` beside what those of `memplan.solve` have; its `solver` is "repack"
            where the plan before was mended.

        Raises
        ------
        MemplanError
            For limits that are out of range, and for "fit" without a capacity.
        Interrupted
            On Ctrl-C, with the plan so far.
        """
        minimize = self._minimizes(objective)
        return self._plan_of(self._repack(self._capacity, minimize, timeout, nodes))

    def offset(self, id: str) -> int:
        """Return where a buffer lies, in bytes.

        Raises
        ------
        ProblemError
            For an id that is not there, and for a buffer that has no place yet.
        """
        slot = self._slots.get(id)
        if slot is None:
            raise ProblemError(f"no buffer has the id {quoted(str(id))}", field="id")
        offset = self._native.offset(slot)
        if offset < 0:
            raise ProblemError(f"buffer {quoted(id)} has no place yet: ask whether all fits")
        return offset

    def problem(self) -> Problem:
        """Return the buffers that are in as a problem, with the capacity of the last question.

        Raises
        ------
        ProblemError
            If a pin ends above that capacity.
        """
        if self._problem is None:
            self._problem = Problem(self._buffers.values(), reserved=self._reserved)
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
        try:
            answer = self._native.repack(
                capacity, self._solver, minimize, *limits, self._threads, self._seed
            )
        except (ValueError, RuntimeError) as error:
            raise MemplanError(str(error)) from None
        self._capacity = capacity
        self._moved = answer.moved
        self._nodes = answer.nodes
        self._found_by = answer.solver
        if answer.interrupted:
            raise Interrupted(self._plan_of(answer))
        return answer

    def _plan_of(self, answer: native.Repacked) -> Plan:
        status = Status(answer.status)
        placed = status in (Status.OPTIMAL, Status.FEASIBLE)
        named = {slot: id for id, slot in self._slots.items()} if answer.conflict else {}
        return Plan.of(
            self.problem(),
            self._native.offsets(list(self._slots.values())) if placed else None,
            status=status,
            lower_bound=max(answer.lower_bound, self._native.lower_bound()),
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

    def _minimizes(self, objective: str | None) -> bool:
        if objective not in (None, "fit", "min_peak"):
            raise MemplanError(f'objective is {shown(objective)}; it must be "fit" or "min_peak"')
        if objective == "fit" and self._capacity is None:
            raise MemplanError('the objective "fit" needs a capacity; the repacker has none')
        return objective == "min_peak" or self._capacity is None

    def _with(self, buffers: Iterable[Buffer]) -> Problem:
        """Return a problem of all that is in and these; a `Problem` says what is wrong with it."""
        return Problem([*self._buffers.values(), *buffers], reserved=self._reserved)

    def _add_as_problem(self, buffers: Iterable[Buffer]) -> list[int]:
        """Add what is not of the plainest kind, such as gaps, or say what is wrong with it."""
        asked = self._with(buffers)
        rows = asked.subset(range(len(self._slots), len(asked)))
        try:
            return native.add_rows(self._native, rows)
        except ValueError as error:
            raise MemplanError(str(error)) from None


def require_lifetimes(problem: Problem) -> None:
    """Return if lifetimes say all about who conflicts, as a repacker wants it.

    Raises
    ------
    UnsupportedError
        For a problem with conflicts or groups.
    """
    if problem.has_conflicts or problem.has_groups:
        what = "conflicts" if problem.has_conflicts else "groups"
        raise UnsupportedError(f"a repacker does not support {what}; the problem has some")


def _of_the_core(solver: str) -> str:
    """Return the name of a solver that the core has, and that needs no options."""
    name, options = registry.parse(solver)
    if options or registry.SOLVERS[name].is_baseline:
        able = ", ".join(each.name for each in registry.SOLVERS.values() if not each.is_baseline)
        raise UnsupportedError(
            f"a repacker cannot plan with {quoted(str(solver))}; choose one of {able}, "
            "without options"
        )
    return name

"""As few and as small blocks as possible, none above a limit or the largest item in it.

All blocks are one arena with strips between them (`strips`). The least number is found from below:
the planner is asked for a plan in so many blocks, and its "infeasible" is a proof for that number.
Then blocks shrink in turns: one of them is laid last, the others keep their heights, and the least
peak of the arena is its least height.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from memplan.base.errors import InfeasibleError, MemplanError, NoPlanError, PlanError
from memplan.base.notes import Code, Note
from memplan.machine.blocks.caps import Caps
from memplan.machine.blocks.search import BlockSearch, Placed
from memplan.problem import Asked, Problem
from memplan.problem.columns import MAX_BYTES
from memplan.problem.plan import Plan, Status
from memplan.programs.sources import Loaded
from memplan.referee import verify_blocks
from memplan.solvers.limits import check_whole
from memplan.solvers.planning import SharedBudget, load_model
from memplan.solvers.stopping import stoppable

__all__ = ["Blocks", "place_blocks", "plan_blocks"]


@dataclass(frozen=True, repr=False)
class Blocks:
    """Buffers in blocks of limited size; the referee has accepted their plans.

    Attributes
    ----------
    problem
        All buffers. Its capacity, if it has one, is the limit on the bytes of all blocks.
    limit
        The most bytes of a block, unless it holds a buffer or a group that is larger.
    plans
        Of the buffers of each block, the highest block first. Offsets are from the beginning of
        the block.
    notes
        What the reader of the model assumed, and which buffers are larger than the limit.
    count_bound
        Proved: there is no plan in fewer blocks.
    total_bound
        Proved: no plan in as many blocks has fewer bytes.
    seconds
        Wall time.
    interrupted
        Whether Ctrl-C ended the search; this is the best so far.
    """

    problem: Problem
    limit: int
    plans: tuple[Plan, ...]
    count_bound: int
    total_bound: int
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def count(self) -> int:
        """The number of blocks."""
        return len(self.plans)

    @property
    def total(self) -> int:
        """The bytes of all blocks."""
        return sum(plan.peak or 0 for plan in self.plans)

    @property
    def status(self) -> Status:
        """`optimal` if no plan has fewer blocks, and none in as many blocks has fewer bytes."""
        proved = (self.count, self.total) == (self.count_bound, self.total_bound)
        return Status.OPTIMAL if proved else Status.FEASIBLE

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        return {
            id: (number, plan.offset(id))
            for number, plan in enumerate(self.plans)
            for id in plan.ids
        }

    def place(self, id: str) -> tuple[int, int]:
        """Return the number of a buffer's block, and its offset there in bytes.

        Raises
        ------
        ProblemError
            If no buffer has this id.
        """
        self.problem.index(id)
        return self._places[id]

    def __repr__(self) -> str:
        return f"<Blocks: {self.count} of at most {self.limit}, {self.total} in all, {self.status}>"

    def verify(self) -> int:
        """Check all blocks with the referee again, and return their bytes.

        Raises
        ------
        PlanError
            As `memplan.referee.verify_blocks`.
        """
        return verify_blocks(
            self.problem,
            self.limit,
            self.plans,
            count_bound=self.count_bound,
            total_bound=self.total_bound,
        )


def plan_blocks(
    model: str | os.PathLike[str] | Asked,
    limit: int | None = None,
    *,
    timeout: float | None = None,
    nodes: int | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Blocks:
    """Place buffers in as few blocks as possible, of as few bytes as possible, none above a limit.

    A buffer or a group that is larger than the limit has a block of its size, which others may use
    while it does not: so do ggml and IREE. A note says so.

    Every block is an arena as the problem describes one: addresses of pins and of reserved ranges
    are addresses in every block, and its beginning has all alignments. A group is in one block.

    Parameters
    ----------
    model
        A file that `memplan.load` reads, its result, or a problem. A capacity limits the bytes of
        all blocks.
    limit
        The most bytes of a block; by default what the file says.
    timeout, nodes
        For all searches together; by default each of them has 100,000 nodes.
    threads, seed
        See `memplan.solve`.

    Raises
    ------
    MemplanError
        One sentence: for a missing limit, for a pin that is beyond every block or a buffer that
        has no room beside the reserved ranges; an `InfeasibleError` or a `NoPlanError` if no plan
        is, or was found, within the capacity.
    KeyboardInterrupt
        On Ctrl-C before there is a plan; after that, the best one is returned.

    Examples
    --------
    >>> import memplan as mp
    >>> from memplan.machine.blocks import plan_blocks
    >>> three = mp.Problem([mp.Buffer(id, 0, 1, 40) for id in "abc"])
    >>> found = plan_blocks(three, 100)
    >>> found.count, found.total, str(found.status), [plan.peak for plan in found.plans]
    (2, 120, 'optimal', [80, 40])
    """
    loaded = load_model(model)
    problem = loaded.problem
    if limit is None:
        limit = loaded.block_limit
    if limit is None:
        raise MemplanError(
            "no limit is given, and the model has none; say how large a block may be"
        )
    limit = check_whole(limit, "limit", 1, MAX_BYTES)
    found = place_blocks(problem, limit, timeout=timeout, nodes=nodes, threads=threads, seed=seed)
    return replace(found, notes=(*_settle_notes(loaded, limit), *found.notes))


def place_blocks(
    problem: Problem,
    limit: int,
    *,
    timeout: float | None = None,
    nodes: int | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Blocks:
    """Place the buffers of a problem in blocks of at most `limit` bytes; see `plan_blocks`."""
    begun = time.perf_counter()
    search = BlockSearch(problem, limit, SharedBudget(timeout, nodes), threads=threads, seed=seed)
    with stoppable() as stop:
        search.find_count()
        search.shrink()
        found = Blocks(
            problem,
            limit,
            _list_plans(problem, limit, search.best),
            search.count_bound,
            search.total_bound,
            tuple(_list_large(problem, limit)),
            seconds=time.perf_counter() - begun,
            interrupted=stop.is_set,
        )
        found.verify()
        if problem.capacity is not None and found.total > problem.capacity:
            raise _explain(found, problem.capacity)
    return found


def _list_plans(problem: Problem, limit: int, placed: Placed) -> tuple[Plan, ...]:
    """Return the plan of each block, the highest first."""
    plans = []
    said = {"blocks": len(placed.heights), "limit": limit}
    for number in np.argsort(-np.array(placed.heights, np.int64), kind="stable"):
        rows = np.flatnonzero(placed.block == number)
        part = problem.subset(rows).with_capacity(max(limit, placed.heights[number]))
        plans.append(Plan.of(part, placed.offset[rows], status=Status.FITS, stats=said))
    return tuple(plans)


def _settle_notes(loaded: Loaded, limit: int) -> Iterator[Note]:
    """Yield the notes of a model, without that on one arena if the limit is the host's."""
    for note in loaded.notes:
        if note.code is not Code.BLOCK_LIMIT or limit > (loaded.block_limit or limit):
            yield note


def _list_large(problem: Problem, limit: int) -> Iterator[Note]:
    """Yield a note if buffers, alone or as a group, are larger than a block may be."""
    caps = Caps(problem, limit)
    if not caps.large:
        return
    first = int(caps.large[0][0])
    what = (
        problem.label(first) if len(caps.large[0]) == 1 else f"the group of {problem.label(first)}"
    )
    others = f" (and {len(caps.large) - 1:,} more)" if len(caps.large) > 1 else ""
    yield Note(
        Code.BLOCK_LIMIT,
        f"{what} has {caps.highest:,} bytes, more than the limit of a block, {limit:,}{others}: "
        "a block with such a buffer is as large as that",
        tuple(problem.ids[row] for rows in caps.large for row in rows.tolist()),
    )


def _explain(found: Blocks, capacity: int) -> PlanError:
    """Return why the fewest blocks are not within a capacity.

    More blocks may need fewer bytes, as each begins at an address with all alignments. They never
    need fewer than are live at one time; and where any offset is as good as another one, they are
    a plan in one arena if they lie one behind the other.
    """
    problem, least = found.problem, found.problem.max_load
    is_free = not (problem.has_pins or problem.has_reserved or (problem.alignment > 1).any())
    if is_free and found.count == 1:
        least = max(least, found.total_bound)
    if least > capacity:
        return InfeasibleError(
            f"proved: the buffers need at least {least} bytes, and all blocks may have {capacity}"
        )
    few = f"{found.count} {'block' if found.count == 1 else 'blocks'} of at most {found.limit}"
    if found.total_bound > capacity:
        what = f"{few} bytes need at least {found.total_bound}"
    else:
        what = f"no plan in {few} bytes was found that needs less than {found.total}"
    return NoPlanError(
        f"{what}, and all blocks may have {capacity}; more blocks, which may need fewer bytes, are "
        "not tried"
    )

"""Presets: questions of `memplan.plan` that have a name of their own, and its answer.

Each says in a few lines what is asked; what its engine found beyond parts and axes is
`answer.find(CLASS)`, with the class that each names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memplan.answer import Answer
from memplan.ask.fitted import answer_of
from memplan.ask.machines import Machine
from memplan.ask.planning import plan
from memplan.ask.question import Model, Question
from memplan.base.errors import MemplanError
from memplan.base.sizes import parse_size
from memplan.levers import find_levers
from memplan.levers.pipeline import Arranged
from memplan.levers.rewrite.again import Costs
from memplan.machine.apart.penalties import Penalties
from memplan.machine.memories import Memory
from memplan.machine.memories.accesses import Given, Times
from memplan.programs.sources.registry import import_fitting
from memplan.scenarios.envelope.ranges import Values
from memplan.solvers.planning import load_model

__all__ = [
    "assign",
    "envelope",
    "fit",
    "plan_apart",
    "plan_blocks",
    "plan_together",
    "plan_waits",
    "recompute",
    "reorder",
]


def assign(
    model: Model,
    memories: Sequence[Memory],
    accesses: Mapping[str, Given] | None = None,
    *,
    allowed: Mapping[str, Iterable[str]] | None = None,
    apart: Iterable[tuple[str, str]] = (),
    reads: Mapping[str, Times | Sequence[Times]] | None = None,
    residency: bool = False,
    **asked: Any,
) -> Answer:
    """Assign every buffer to one of several memories, so that all accesses cost least: `Assigned`.

    Parameters
    ----------
    model
        See `memplan.plan`.
    memories, accesses, allowed, apart, reads, residency
        See `memplan.machine.memories.assign`.
    asked
        Further arguments of `memplan.plan`, such as `timeout`, `nodes`, `levers`.

    Examples
    --------
    >>> import memplan as mp
    >>> buffers = [mp.Buffer("a", 0, 4, 6), mp.Buffer("b", 0, 4, 5), mp.Buffer("c", 0, 4, 5)]
    >>> fast, slow = mp.Memory("sram", 10), mp.Memory("psram", read=8, write=8)
    >>> answer = mp.assign(mp.Problem(buffers), [fast, slow])
    >>> found = answer.find(mp.Assigned)
    >>> found.memory_of("a"), found.memory_of("b"), found.traffic, str(answer.status)
    ('psram', 'sram', 116, 'optimal')
    """
    machine = Machine(
        tuple(memories),
        allowed=allowed or {},
        apart=tuple(apart),
        reads=reads or {},
        residency=residency,
        accesses=accesses or {},
    )
    return plan(model, machine=machine, **asked)


def plan_blocks(model: Model, limit: int | None = None, **asked: Any) -> Answer:
    """Place buffers in as few blocks as possible, none above a limit: `Blocks`.

    Parameters
    ----------
    model
        See `memplan.plan`. A capacity limits the bytes of all blocks.
    limit
        The most bytes of a block; by default what the file says. What is larger has a block of its
        size.
    asked
        Further arguments of `memplan.plan`.

    Raises
    ------
    MemplanError
        Also if there is no limit.

    Examples
    --------
    >>> import memplan as mp
    >>> three = mp.Problem([mp.Buffer(id, 0, 1, 40) for id in "abc"])
    >>> found = mp.plan_blocks(three, 100)
    >>> [axis.found for axis in found.axes], str(found.status), [part.plan.peak for part in found]
    ([2, 120], 'optimal', [80, 40])
    """
    if limit is None:
        model = load_model(model)
        limit = model.block_limit
    if limit is None:
        raise MemplanError(
            "no limit is given, and the model has none; say how large a block may be"
        )
    return plan(model, machine=Machine(block=limit), **asked)


def plan_together(
    programs: Iterable[Model],
    *,
    names: Sequence[str] | None = None,
    keep: Iterable[str] = (),
    overlap: Iterable[tuple[str, str]] = (),
    in_place: bool = False,
    **asked: Any,
) -> Answer:
    """Plan programs that share one arena, and run one after another in any order: `Together`.

    Parameters
    ----------
    programs, names, keep, overlap
        See `memplan.scenarios.together.plan_together`.
    in_place
        Whether operators may write over inputs.
    asked
        Further arguments of `memplan.plan`.

    Examples
    --------
    >>> import memplan as mp
    >>> one = mp.Problem([mp.Buffer("a", 0, 2, 60), mp.Buffer("result", 1, 3, 8)])
    >>> two = mp.Problem([mp.Buffer("b", 0, 1, 64), mp.Buffer("answer", 1, 2, 8)])
    >>> found = mp.plan_together([one, two], names=["one", "two"], keep=["result", "answer"])
    >>> found.axes[0].found, found.find(mp.Together).by_hand, str(found.status)
    (76, 84, 'optimal')
    """
    given = list(programs)
    if len(given) < 2:
        raise MemplanError("programs share an arena if there are at least two of them")
    levers = ["in place"] if in_place else []
    return plan(given, names=names, keep=keep, overlap=overlap, levers=levers, **asked)


def fit(model: Model, size: int | str | None = None, **asked: Any) -> Answer:
    """Make a program fit into the memory that there is, at the least cost: `Arranged`.

    Parameters
    ----------
    model, size
        See `memplan.runtimes.fitting.fit`. Without a size, all levers are tried.
    asked
        Further arguments of that, such as `out`, the file to write.

    Returns
    -------
    Answer
        `fits` says whether it does; `steps` what each lever brought; `find(memplan.Arranged)` has
        the file, and `find_floor()` of that what no change known to memplan goes below.

    Examples
    --------
    >>> import memplan as mp
    >>> answer = mp.fit("examples/models/mobile.tflite", "36KiB", head_only=True)
    >>> answer.fits, answer.plan.peak
    (True, 36864)
    """
    found: Arranged = import_fitting().fit(model, size, **asked)
    machine = Machine(capacity=found.capacity)
    levers = find_levers(("in place", "order", "again", "bands"))
    return answer_of(found, Question(models=[model], place=machine, levers=levers))


def plan_apart(
    model: Model, penalties: Penalties, *, capacity: int | None = None, **asked: Any
) -> Answer:
    """Plan buffers of which some pairs should not share addresses, at the least cost: `Apart`.

    Parameters
    ----------
    model
        See `memplan.plan`.
    penalties
        By pair of ids: what it costs if the two share an address; or a file in CSV.
    capacity
        In bytes; by default that of the model. One of them is needed.
    asked
        Further arguments of `memplan.plan`.

    Examples
    --------
    >>> import memplan as mp
    >>> buffers = [mp.Buffer("a", 0, 1, 8), mp.Buffer("b", 1, 2, 8), mp.Buffer("c", 2, 3, 8)]
    >>> prices = {("a", "b"): 5, ("b", "c"): 5, ("a", "c"): 2}
    >>> found = mp.plan_apart(mp.Problem(buffers), prices, capacity=16)
    >>> found.axis("penalties").found, found.find(mp.Apart).met, str(found.status)
    (2, (('a', 'c'),), 'optimal')
    """
    return plan(model, machine=Machine(penalties=penalties), capacity=capacity, **asked)


def plan_waits(model: Model, *, capacity: int | None = None, **asked: Any) -> Answer:
    """Plan a program on parallel streams, with as little waiting as a capacity allows: `Waits`.

    There is no `Waits` if the program fits although nothing waits.

    Parameters
    ----------
    model, capacity, asked
        As for `plan_apart`.
    """
    return plan(model, levers=["waits"], capacity=capacity, **asked)


def envelope(
    model: Model,
    dims: Mapping[str, Values],
    where: str | Iterable[str] = (),
    *,
    read_all: bool = False,
    **asked: Any,
) -> Answer:
    """Plan a program at every size of a range, with one plan for all sizes: `Envelope`.

    Parameters
    ----------
    model
        A file of a program with symbolic dimensions, a `torch.export.ExportedProgram`, or a
        function that returns a problem for values of the dimensions, which are passed by name.
    dims, where, read_all
        See `memplan.scenarios.envelope`.
    asked
        Further arguments of `memplan.plan`; `nodes` is of each plan.

    Examples
    --------
    >>> import memplan as mp
    >>> def program(batch):
    ...     return mp.Problem([mp.Buffer("x", 0, 2, 8 * batch), mp.Buffer("y", 1, 3, 100)])
    >>> answer = mp.envelope(program, {"batch": range(1, 65)})
    >>> found = answer.find(mp.Envelope)
    >>> answer.peak, found.peak_at(batch=3), found.bound_at(batch=3), str(found.status)
    (612, 124, 124, 'optimal')
    """
    return plan(model, sizes=dims, where=where, read_all=read_all, **asked)


def reorder(model: Model, *, in_place: bool = False, **asked: Any) -> Answer:
    """Plan a program in the order of operators with the least load: `Reordered`.

    Parameters
    ----------
    model
        See `memplan.plan`.
    in_place
        Whether operators may write over inputs.
    asked
        Further arguments of `memplan.plan`, such as `pure` and `nodes`.

    Examples
    --------
    >>> import memplan as mp
    >>> answer = mp.reorder("examples/models/residual.graph.json")
    >>> found = answer.find(mp.Reordered)
    >>> answer.peak, found.given_peak, found.peak, str(found.status)
    (73728, 73728, 73728, 'optimal')
    """
    return plan(model, levers=["order", *(["in place"] if in_place else [])], **asked)


def recompute(
    model: Model,
    capacity: int | str,
    *,
    costs: Costs | None = None,
    spill: str | None = None,
    **asked: Any,
) -> Answer:
    """Plan a program of which operators run again so that it fits, at the least cost: `Recomputed`.

    There is no `Recomputed` if the program fits although nothing runs again.

    Parameters
    ----------
    model
        See `memplan.plan`.
    capacity
        In bytes, or words like "256KiB".
    costs, spill
        See `memplan.levers.again`.
    asked
        Further arguments of `memplan.plan`, such as `pure`, `nodes` and `max_extra`.
    """
    size = parse_size(capacity)
    return plan(model, levers=["again"], capacity=size, costs=costs, spill=spill, **asked)

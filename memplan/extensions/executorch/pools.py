"""What ExecuTorch asks of a planner, as problems: one for each memory, or for all banks together.

This module does not need ExecuTorch: any object with the attributes of `Spec` is a tensor.

    bytes ^
          |      +---- branches of a cond ----+
          |      |  while it runs, and until  |      tensors of this graph, and views in them
          |      |  its result is last read   |      (storage_base + offset)
        0 +------+----------------------------+------------------------------> nodes

The branches and bodies of control flow are planned first, each from address 0. What a node of
control flow runs is a *region*: the result of a branch is not copied out of it, and later nodes
read it there, so the region is one buffer of the graph around it, until the last of them. Its
offset is added to all tensors in it. So two regions that are needed at once are apart; with
ExecuTorch's own planner, the second `cond` overwrites the result of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from memplan import Arranged, Assigned, Memory, assign
from memplan.base.errors import GraphError, quoted
from memplan.levers.writers import Plain, Writer
from memplan.problem import Problem
from memplan.programs.sources import of_problem

__all__ = ["Banks", "Layout", "Place", "Region", "Spec", "plan_memories"]

_DEFAULT_MEMORY = 1  # for a tensor without one; 0 is for constants


class Spec(Protocol):
    """The part of ExecuTorch's `TensorSpec` that is used here."""

    # The first and the last node that needs the tensor, both inclusive.
    lifetime: Sequence[int | None]
    mem_id: int | None  # the memory that the tensor must live in, or `None` for the default one
    storage_base: Spec | None  # the tensor that contains this one in its memory
    storage_base_offset: int  # where this one begins there, in bytes

    @property
    # Bytes, rounded up to the alignment that `realign` was last called with.
    def allocated_memory(self) -> int:
        """The bytes of its tensor."""

    def realign(self, new_alignment: int) -> int:
        """Round its bytes up to a multiple of this, and return them."""


@dataclass(frozen=True, slots=True)
class Region:
    """What a node of control flow runs: its branches, or its body."""

    name: str  # of the node
    first: int  # the node
    last: int  # the last node that reads a result of it
    sizes: Sequence[int]  # bytes by `mem_id`
    places: Mapping[Spec, Place]  # of all tensors inside, relative to the region


@dataclass(frozen=True, slots=True)
class Banks:
    """Memories that tensors without a `mem_id` are assigned to."""

    memories: Mapping[int, Memory]  # by `mem_id`, the fastest first
    # By tensor: how often it is read, and written.
    accesses: Mapping[Spec, tuple[int, int]] = field(default_factory=dict)
    timeout: float | None = None
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies: which memory, and the offset in it in bytes."""

    mem_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of all tensors."""

    places: Mapping[Spec, Place]  # one for every tensor, those in regions included
    sizes: tuple[int, ...]


def plan_memories(
    specs: Sequence[Spec],
    names: Sequence[str],
    arrange: Callable[[Writer], Arranged],
    *,
    alignment: int,
    unit: int = 1,
    taken: Sequence[int] = (),
    regions: Sequence[Region] = (),
    padding: int = 0,
    banks: Banks | None = None,
) -> Layout:
    """Plan every memory that has tensors by itself, and banks together.

    The tensors are distinct, and are realigned; their names are distinct too, and become the ids of
    the buffers. `arrange` is `memplan.levers.pipeline.arrange` with its budget. All in bytes:
    `alignment` is that of every offset and size, `unit` a further one of every offset, except for
    tensors inside others; `taken` has by `mem_id` what no tensor may use at the bottom; `padding`
    is added at the end of every memory with tensors, for kernels that read beyond one. Regions are
    placed like tensors. Without banks, tensors without a memory lie in the default one.

    A `GraphError` says that a tensor has no lifetime or no legal memory, or is a view of one that
    cannot hold it; a `PlanError`, that there is no plan within the budget, or that banks are too
    small.
    """
    label = {spec: f"tensor {quoted(name)}" for spec, name in zip(specs, names, strict=True)}
    name_of = dict(zip(specs, names, strict=True))
    for spec in specs:
        spec.realign(alignment)
    homes = {spec: _find_owner(spec, label, alignment) for spec in specs}
    spans = _find_spans(homes, label)
    given = {
        spec: _get_memory(spec, label[spec], None if banks else _DEFAULT_MEMORY)
        for spec, (owner, _) in homes.items()
        if owner is spec
    }
    rows = [
        _Row(spec, *spans[spec], spec.allocated_memory, name_of[spec], mem_id)
        for spec, mem_id in given.items()
    ]
    rows += [
        _Row(
            one.name, one.first, one.last, _round_up(size, alignment), f"inside {one.name}", mem_id
        )
        for one in regions
        for mem_id, size in enumerate(one.sizes)
        if size
    ]
    offsets: _Offsets = {}
    used: dict[int, int] = {}
    step, numbered = math.lcm(alignment, unit), banks.memories if banks else {}
    together: list[_Row] = []
    by_memory: dict[int, list[_Row]] = {}
    for each in rows:
        if each.mem_id is None or each.mem_id in numbered:
            together.append(each)
        else:
            by_memory.setdefault(each.mem_id, []).append(each)
    for mem_id, own in sorted(by_memory.items()):
        problem = _make_problem(own, step, taken[mem_id : mem_id + 1])
        found = arrange(Plain(of_problem(problem), f"memory {mem_id}")).require_whole()
        for each, id in zip(own, problem.ids, strict=True):
            offsets[each.what, mem_id] = found.plan.offset(id)
        used[mem_id] = found.arena
    if banks and together:
        accesses = _add_accesses(homes, banks.accesses)
        in_banks, ends = _assign_rows(together, banks, accesses, step, taken, padding)
        offsets |= in_banks
        used |= ends
    used = {mem_id: size + padding for mem_id, size in used.items()}
    return _lay_out(homes, regions, offsets, used, taken)


_Offsets = dict[tuple[Spec | str | None, int], int]  # of tensors and regions, by memory


@dataclass(frozen=True, slots=True)
class _Row:
    """What is placed: a tensor, what is in a region of that name, or nothing that has a place."""

    what: Spec | str | None
    first: int
    last: int
    size: int
    name: str
    mem_id: int | None


def _make_problem(rows: Sequence[_Row], alignment: int, below: Sequence[int] = ()) -> Problem:
    return Problem.from_arrays(
        [each.first for each in rows],
        [each.last + 1 for each in rows],
        [each.size for each in rows],
        ids=[each.name for each in rows],
        alignment=[alignment] * len(rows),
        reserved=[(0, end) for end in below if end],
    )


def _assign_rows(
    rows: Sequence[_Row],
    banks: Banks,
    accesses: Mapping[Spec, tuple[int, int]],
    alignment: int,
    taken: Sequence[int],
    padding: int,
) -> tuple[_Offsets, dict[int, int]]:
    """Assign rows to banks, and return their offsets, and what each bank needs without padding."""
    last = max(each.last for each in rows)
    first = min(each.first for each in rows)
    # What sub-modules have at the bottom of a bank is a buffer that is always there.
    rows = [
        *(
            # A region may have a part in each bank.
            replace(each, name=f"{each.name}, memory {each.mem_id}")
            if isinstance(each.what, str)
            else each
            for each in rows
        ),
        *(
            _Row(None, first, last, taken[mem_id], f"sub-modules, memory {mem_id}", mem_id)
            for mem_id in banks.memories
            if mem_id < len(taken) and taken[mem_id]
        ),
    ]
    problem = _make_problem(rows, alignment)
    problem = problem.with_pins({each.name: 0 for each in rows if each.what is None})
    memories = [
        replace(each, capacity=None if each.capacity is None else max(1, each.capacity - padding))
        for each in banks.memories.values()
    ]
    answer = assign(
        problem,
        memories,
        {each.name: _count_of(each.what, accesses) for each in rows},
        allowed={
            each.name: [banks.memories[each.mem_id].name]
            for each in rows
            if each.mem_id is not None
        },
        timeout=banks.timeout,
        nodes=banks.nodes,
    )
    if answer.interrupted:
        raise KeyboardInterrupt  # the file is not written with what is not the answer
    what_is = {each.name: each.what for each in rows}
    plans = dict(zip(banks.memories, answer.find(Assigned).plans, strict=True))
    offsets = {
        (what_is[id], mem_id): plan.offset(id) for mem_id, plan in plans.items() for id in plan.ids
    }
    return offsets, {mem_id: plan.peak or 0 for mem_id, plan in plans.items() if plan.ids}


def _add_accesses(
    homes: Mapping[Spec, tuple[Spec, int]], accesses: Mapping[Spec, tuple[int, int]]
) -> dict[Spec, tuple[int, int]]:
    """Return how often the memory of each owner is read and written, through views too."""
    found: dict[Spec, tuple[int, int]] = {}
    for spec, (owner, _) in homes.items():
        (reads, writes), known = accesses.get(spec, (0, 0)), found.get(owner, (0, 0))
        found[owner] = known[0] + reads, known[1] + writes
    return found


def _count_of(what: Spec | str | None, accesses: Mapping[Spec, tuple[int, int]]) -> tuple[int, int]:
    """Return the accesses that count in the choice: those of what has only one place do not."""
    return (0, 0) if what is None or isinstance(what, str) else accesses.get(what, (0, 0))


def _lay_out(
    homes: Mapping[Spec, tuple[Spec, int]],
    regions: Sequence[Region],
    offsets: _Offsets,
    used: Mapping[int, int],
    taken: Sequence[int],
) -> Layout:
    """Return the places of all tensors, those in others and in regions too."""
    at_home = {what: (mem_id, offset) for (what, mem_id), offset in offsets.items()}
    places: dict[Spec, Place] = {}
    for spec, (owner, within) in homes.items():
        mem_id, offset = at_home[owner]
        places[spec] = Place(mem_id, offset + within)
    for region in regions:
        for spec, place in region.places.items():
            offset = offsets[region.name, place.mem_id]
            places[spec] = Place(place.mem_id, offset + place.offset)
    sizes = [0] * max(_DEFAULT_MEMORY + 1, len(taken), *(mem_id + 1 for mem_id in used))
    sizes[1 : len(taken)] = taken[1:]
    for mem_id, size in used.items():
        sizes[mem_id] = max(sizes[mem_id], size)
    return Layout(MappingProxyType(places), tuple(sizes))


def _find_owner(spec: Spec, label: Mapping[Spec, str], alignment: int) -> tuple[Spec, int]:
    """Return the outermost tensor that contains this one (maybe itself), and the offset."""
    owner, offset = spec, 0
    passed = {spec}
    while (base := owner.storage_base) is not None:
        if base not in label:
            raise GraphError(
                f"{label[owner]} is a view of a tensor that is not planned with it; "
                "plan the inputs, outputs and mutable buffers too, or give it its own memory"
            )
        if base in passed:
            raise GraphError(
                f"{label[spec]} is a view of itself: its storage_base leads back to it"
            )
        passed.add(base)
        inner, size = owner.storage_base_offset, owner.allocated_memory
        if inner < 0 or inner + size > base.allocated_memory:
            raise GraphError(
                f"{label[owner]} ({size} bytes at storage_base_offset {inner}) does not fit into "
                f"{label[base]} ({base.allocated_memory} bytes)"
            )
        owner, offset = base, offset + inner
    if offset % alignment:
        raise GraphError(
            f"{label[spec]} begins {offset} bytes into {label[owner]}, "
            f"which is not a multiple of the alignment {alignment}"
        )
    return owner, offset


def _find_spans(
    homes: Mapping[Spec, tuple[Spec, int]], label: Mapping[Spec, str]
) -> dict[Spec, tuple[int, int]]:
    """Return the first and last node that needs the memory of each owner, views included."""
    spans: dict[Spec, tuple[int, int]] = {}
    for spec, (owner, _) in homes.items():
        first, last = spec.lifetime
        if first is None or last is None or last < first:
            raise GraphError(
                f"{label[spec]} has the lifetime [{first}, {last}]; "
                "it must be the first and the last node that needs it"
            )
        known = spans.get(owner, (first, last))
        spans[owner] = min(first, known[0]), max(last, known[1])
    return spans


def _get_memory(spec: Spec, label: str, default: int | None) -> int | None:
    if spec.mem_id is None:
        return default
    if spec.mem_id < 1:
        raise GraphError(f"{label} has the mem_id {spec.mem_id}; memories are numbered from 1")
    return spec.mem_id


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit

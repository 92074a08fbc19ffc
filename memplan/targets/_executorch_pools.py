"""What ExecuTorch asks of a planner, as problems: one for each memory.

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
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from memplan.errors import GraphError, quoted
from memplan.pipeline import Arranged, Plain, Writer
from memplan.problem import Problem
from memplan.sources import of_problem

__all__ = ["Layout", "Place", "Region", "Spec", "plan_memories"]

_DEFAULT_MEMORY = 1  # for a tensor without one; 0 is for constants


class Spec(Protocol):
    """The part of ExecuTorch's `TensorSpec` that is used here.

    Attributes
    ----------
    lifetime
        The first and the last node that needs the tensor, both inclusive.
    mem_id
        The memory that the tensor must live in, or `None` for the default one.
    storage_base, storage_base_offset
        The tensor that contains this one in its memory, and the offset there in bytes; or `None`
        and 0.
    allocated_memory
        Bytes, rounded up to the alignment that `realign` was last called with.
    """

    lifetime: Sequence[int | None]
    mem_id: int | None
    storage_base: Spec | None
    storage_base_offset: int

    @property
    def allocated_memory(self) -> int: ...

    def realign(self, new_alignment: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Region:
    """What a node of control flow runs: its branches, or its body.

    Attributes
    ----------
    name
        The name of the node.
    first, last
        The node, and the last node that reads a result of it.
    sizes
        Bytes by `mem_id`.
    places
        Of all tensors inside, relative to the region.
    """

    name: str
    first: int
    last: int
    sizes: Sequence[int]
    places: Mapping[Spec, Place]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies: which memory, and the offset in it in bytes."""

    mem_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of all tensors.

    Attributes
    ----------
    places
        One for every tensor, those in regions included.
    sizes
        Bytes of every memory, by `mem_id`; the first is 0, as constants are not planned.
    """

    places: Mapping[Spec, Place]
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
) -> Layout:
    """Plan every memory that has tensors by itself.

    Parameters
    ----------
    specs
        Distinct tensors; they are realigned.
    names
        Distinct names of the tensors, which become the ids of the buffers.
    arrange
        `memplan.pipeline.arrange`, with its budget.
    alignment
        Of every offset and every size, in bytes.
    unit
        A further alignment of every offset, in bytes, except for tensors inside others.
    taken
        By `mem_id`: the bytes at the bottom that no tensor may use.
    regions
        What nodes of control flow run; they are placed like tensors.
    padding
        Bytes to add at the end of every memory with tensors, for kernels that read beyond one.

    Raises
    ------
    GraphError
        If a tensor has no lifetime or no legal memory, or is a view of one that cannot hold it.
    PlanError
        If there is no plan within the budget.
    """
    label = {spec: f"tensor {quoted(name)}" for spec, name in zip(specs, names, strict=True)}
    name_of = dict(zip(specs, names, strict=True))
    for spec in specs:
        spec.realign(alignment)
    homes = {spec: _find_owner(spec, label, alignment) for spec in specs}
    spans = _find_spans(homes, label)
    by_memory: dict[int, list[Spec]] = {
        mem_id: [] for one in regions for mem_id, size in enumerate(one.sizes) if size
    }
    for spec, (owner, _) in homes.items():
        by_memory.setdefault(_get_memory(owner, label[owner]), []).append(spec)
    places: dict[Spec, Place] = {}
    sizes = [0] * max(_DEFAULT_MEMORY + 1, len(taken), *(mem_id + 1 for mem_id in by_memory))
    sizes[1 : len(taken)] = taken[1:]
    for mem_id, members in sorted(by_memory.items()):
        owners = [spec for spec in members if homes[spec][0] is spec]
        inner = [one for one in regions if mem_id < len(one.sizes) and one.sizes[mem_id]]
        rows = [(*spans[each], each.allocated_memory, name_of[each]) for each in owners]
        for one in inner:
            size = _round_up(one.sizes[mem_id], alignment)
            rows.append((one.first, one.last, size, f"inside {one.name}"))
        problem = Problem.from_arrays(
            [first for first, *_ in rows],
            [last + 1 for _, last, *_ in rows],
            [size for *_, size, _ in rows],
            ids=[name for *_, name in rows],
            alignment=[math.lcm(alignment, unit)] * len(rows),
            reserved=[(0, below) for below in taken[mem_id : mem_id + 1] if below],
        )
        found = arrange(Plain(of_problem(problem), f"memory {mem_id}"))
        offsets = [found.plan.offset(id) for id in problem.ids]
        row_of = {owner: row for row, owner in enumerate(owners)}
        for spec in members:
            owner, at = homes[spec]
            places[spec] = Place(mem_id, offsets[row_of[owner]] + at)
        for offset, region in zip(offsets[len(owners) :], inner, strict=True):
            for spec, place in region.places.items():
                if place.mem_id == mem_id:
                    places[spec] = Place(mem_id, offset + place.offset)
        sizes[mem_id] = max(sizes[mem_id], found.arena) + padding
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


def _get_memory(spec: Spec, label: str) -> int:
    if spec.mem_id is None:
        return _DEFAULT_MEMORY
    if spec.mem_id < 1:
        raise GraphError(f"{label} has the mem_id {spec.mem_id}; memories are numbered from 1")
    return spec.mem_id


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit

"""Draws small questions: problems with each mix of constraints, memories, programs."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import memplan as mp
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan_lab.claims.placing import Case, Item

__all__ = ["TIES", "Step", "Steps", "draw_case", "draw_memories", "draw_steps", "draw_ties"]

# What restricts buffers beside their lifetimes and sizes.
TIES = ("alignment", "pin", "hint", "gap", "window", "group", "conflict", "reserved")


def draw_ties(
    rng: random.Random, share: float, among: Collection[str] = TIES, *, without: str = ""
) -> set[str]:
    """Return some of the restrictions, each with a share of all cases."""
    return {each for each in among if each not in without.split() and rng.random() < share}


def draw_case(
    rng: random.Random, ties: Collection[str], most: int, size: int = 5, times: int = 6
) -> Case:
    """Return up to so many buffers, of sizes and times up to these."""
    count = rng.randint(1, most)
    items = [_draw_item(rng, ties, size, times) for _ in range(count)]
    groups = []
    if "group" in ties and count > 1:
        rows = rng.sample(range(count), rng.randint(2, min(count, 3)))
        leads = accumulate((items[row].size for row in rows), initial=0)
        groups.append(tuple(zip(rows, leads, strict=False)))
    conflicts = set()
    if "conflict" in ties and count > 1:
        for _ in range(rng.randint(1, 3)):
            one, other = sorted(rng.sample(range(count), 2))
            conflicts.add((one, other))
    reserved = []
    if "reserved" in ties:
        lower = rng.randint(0, 6)
        reserved.append((lower, lower + rng.randint(1, 3)))
        if rng.random() < 0.3:
            lower = reserved[0][1] + rng.randint(1, 3)
            reserved.append((lower, lower + 1))
    return Case(tuple(items), tuple(groups), frozenset(conflicts), tuple(reserved))


def _draw_item(rng: random.Random, ties: Collection[str], size: int, times: int) -> Item:
    start = rng.randrange(times)
    end = rng.randint(start + 1, times)
    bytes = 0 if rng.random() < 0.04 else rng.randint(1, size)
    alignment = rng.choice((1, 1, 2, 3, 4)) if "alignment" in ties else 1
    pin = hint = None
    if "pin" in ties and rng.random() < 0.2:
        pin = rng.randint(0, 8) // alignment * alignment
    if "hint" in ties and rng.random() < 0.3:
        hint = rng.randint(0, 6)
    gaps = []
    has_gap = "gap" in ties or "window" in ties
    if has_gap and end - start > 1 and rng.random() < 0.5:
        lower = upper = 0
        if "window" in ties and bytes > 1:
            lower = rng.randint(0, bytes - 1)
            upper = rng.randint(lower + 1, bytes)
        first = rng.randint(start, end - 1)
        gaps.append((first, rng.randint(first + 1, end), lower, upper))
    return Item(start, end, bytes, alignment, pin, hint, tuple(gaps))


def draw_memories(rng: random.Random, count: int, *, aligned: bool = True) -> list[mp.Memory]:
    """Return memories: unordered in cost, equal, of one byte, unlimited, with fractions as costs.

    One at least has no limit, most of the time.
    """
    costs = [(Fraction(rng.randint(0, 4)), Fraction(rng.randint(0, 4))) for _ in range(count)]
    if rng.random() < 0.2:
        costs = [costs[0]] * count
    if rng.random() < 0.2:
        unit = Fraction(rng.randint(1, 7), rng.randint(1, 7))
        costs = [(read * unit, write * unit) for read, write in costs]
    costs.sort(key=sum)  # no memory costs more in both ways than one after it
    limits: list[int | None] = [rng.choice((1, 2, 3, 4, 6, 8, 10, 12, None)) for _ in costs]
    if rng.random() < 0.8:
        limits[rng.randrange(count)] = None
    return [
        mp.Memory(name, limit, read, write, rng.choice((1, 1, 1, 2, 4)) if aligned else 1, 840)
        for name, limit, (read, write) in zip("abc", limits, costs, strict=False)
    ]


@dataclass(frozen=True)
class Step:
    """An operator: what it reads, what it makes, and bytes that it needs meanwhile."""

    reads: tuple[int, ...]
    makes: int
    scratch: int = 0


@dataclass(frozen=True)
class Steps:
    """A program: the bytes of its tensors, of which the first ones come in, and its operators."""

    bytes: tuple[int, ...]
    inputs: int
    steps: tuple[Step, ...]
    outputs: frozenset[int]

    def graph(self) -> Graph:
        """Return the same as memplan takes it."""

        def find_kind(tensor: int) -> Kind:
            if tensor < self.inputs:
                return Kind.INPUT
            return Kind.OUTPUT if tensor in self.outputs else Kind.INTERMEDIATE

        tensors = tuple(
            Tensor(f"t{at}", bytes, find_kind(at)) for at, bytes in enumerate(self.bytes)
        )
        operators = tuple(
            Operator(f"o{at}", "X", each.reads, (each.makes,), workspace=each.scratch)
            for at, each in enumerate(self.steps)
        )
        return Graph(
            "drawn", tensors, operators, tuple(range(self.inputs)), tuple(sorted(self.outputs))
        )


def draw_steps(rng: random.Random, most: int) -> Steps:
    """Return a program of up to so many operators, in which nothing is useless."""
    inputs = rng.randint(1, 2)
    bytes, steps = [rng.randint(1, 6) for _ in range(inputs)], []
    unread = set(range(inputs))
    count = rng.randint(1, most)
    for at in range(count):
        reads = set(rng.sample(range(len(bytes)), min(len(bytes), rng.randint(1, 2))))
        if at < inputs:
            reads.add(at)
        if at == count - 1:
            reads |= {each for each in unread if each < inputs}
        unread = unread - reads | {len(bytes)}
        steps.append(Step(tuple(sorted(reads)), len(bytes), rng.choice((0, 0, 0, 2))))
        bytes.append(rng.randint(1, 8))
    outputs = {*unread}
    if rng.random() < 0.2:
        outputs.add(rng.randrange(inputs, len(bytes)))
    return Steps(tuple(bytes), inputs, tuple(steps), frozenset(outputs))

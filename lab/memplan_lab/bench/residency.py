"""Buffers that leave the fast memory between their accesses, beside buffers that stay.

An access in the fast memory costs nothing and one in the slow memory its bytes, so that the traffic
is what is read from and written to the slow memory, copies too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import memplan as mp
from memplan_lab.bench import memories
from memplan_lab.bench.orders import suite

__all__ = ["HEADINGS", "STEPS", "TITLE", "Row", "lines", "measure"]

STEPS: Final = (
    "timm-resnet18-training",
    "timm-mobilenetv2_110d-training",
    "timm-convnext_tiny-training",
    "timm-vit_small_patch16_224-training",
    "transformers-mobilenet_v1-training",
)
TITLE: Final = "Bytes of the slow memory, if buffers move and if they stay"
HEADINGS: Final = ("", "runs", "proved", "mean gap", "less traffic", "best", "most s")


@dataclass(frozen=True)
class Row:
    """A program and a size of the fast memory, in per cent of the load."""

    name: str
    share: int
    still: float  # the traffic if every buffer stays in one memory
    # moved, bound: The traffic if buffers move, and its bound.
    moved: float
    bound: float
    seconds: float  # CPU time of the latter


def measure(names: Iterable[str], nodes: int | None = None) -> Iterator[Row]:
    """Assign the buffers of programs of the suite of orders, with and without moves."""
    wanted = set(names)
    for each in suite.read(str(files("memplan_lab") / "data" / "orders.parquet")):
        if each.name not in wanted:
            continue
        problem, accesses = memories.read_program(each.problem)
        for share in memories.SHARES_OF_NETWORKS:
            room = max(1, problem.max_load * share // 100)
            both = [mp.Memory("fast", room, 0, 0), mp.Memory("slow", None, 1, 1)]
            still = mp.assign(problem, both, accesses, nodes=nodes)
            begun = time.process_time()
            moved = mp.assign(problem, both, accesses, residency=True, nodes=nodes)
            seconds = time.process_time() - begun
            yield Row(each.name, share, still.traffic, moved.traffic, moved.bound, seconds)


def lines(title: str, rows: list[Row]) -> tuple[str, ...]:
    """Return the line of a table for some runs."""
    saved = [1 - row.moved / max(1, row.still) for row in rows]
    still, moved = sum(row.still for row in rows), sum(row.moved for row in rows)
    gaps = [1 - row.bound / max(1, row.moved) for row in rows]
    return (
        title,
        str(len(rows)),
        str(sum(row.moved == row.bound for row in rows)),
        f"{sum(gaps) / len(gaps):.2%}",
        f"{1 - moved / max(1, still):.1%}",
        f"{max(saved):.1%}",
        f"{max(row.seconds for row in rows):.1f}",
    )

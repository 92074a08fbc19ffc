"""Buffers that leave the fast memory between their accesses, beside buffers that stay.

An access in the fast memory costs nothing and one in the slow memory its bytes, so that the traffic
is what is read from and written to the slow memory, copies too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from statistics import mean
from typing import Any, Final

import memplan as mp
from memplan.machine.memories import assign
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Row,
    Rows,
    Settings,
    Table,
    tell,
)
from memplan_lab.bench.experiments import memories
from memplan_lab.bench.orders import suite

STEPS: Final = (
    "timm-resnet18-training",
    "timm-mobilenetv2_110d-training",
    "timm-convnext_tiny-training",
    "timm-vit_small_patch16_224-training",
    "transformers-mobilenet_v1-training",
)


def _list_cases(_: Settings) -> Iterator[Case]:
    graphs = suite.read(str(files("memplan_lab") / "data" / "orders.parquet"))
    for kind, names in (("five networks", memories.NETWORKS), ("five training steps", STEPS)):
        for each in graphs:
            if each.name in names:
                yield Case(each.name, partial(memories.read_program, each.problem), {"kind": kind})


def measure(program: memories.Timed, nodes: int | None = None) -> Iterator[dict[str, Any]]:
    """Assign the buffers of a program to memories of each size, with and without moves."""
    problem, accesses = program
    for share in memories.SHARES_OF_NETWORKS:
        room = max(1, problem.max_load * share // 100)
        both = [mp.Memory("fast", room, 0, 0), mp.Memory("slow", None, 1, 1)]
        still = assign(problem, both, accesses, nodes=nodes)
        begun = time.process_time()
        moved = assign(problem, both, accesses, residency=True, nodes=nodes)
        yield {
            "share": share,
            "still": still.traffic,
            "moved": moved.traffic,
            "bound": moved.bound,
            "seconds": time.process_time() - begun,
        }


def _gap(row: Row) -> float:
    return float(1 - row["bound"] / max(1, row["moved"]))


def _save(row: Row) -> float:
    return float(1 - row["moved"] / max(1, row["still"]))


def _save_in_all(rows: Rows) -> str:
    still, moved = (sum(row[name] for row in rows) for name in ("still", "moved"))
    return f"{1 - moved / max(1, still):.1%}"


TABLE = Table(
    "Bytes of the slow memory, if buffers move and if they stay",
    (
        Column("", "{kind}"),
        Column("runs", tell("{}", len, "share")),
        Column("proved", tell("{}", sum, lambda row: row["moved"] == row["bound"])),
        Column(
            "mean gap", tell("{:.2%}", mean, lambda row: 1 - row["bound"] / max(1, row["moved"]))
        ),
        Column("less traffic", _save_in_all),
        Column("best", tell("{:.1%}", max, _save)),
        Column("most s", tell("{:.1f}", max, "seconds")),
    ),
    by=("kind",),
)

EXPERIMENT = Experiment(
    "residency",
    "buffers that leave the fast memory between their accesses, beside buffers that stay",
    figures={
        "share": "size of the fast memory, in per cent of the load",
        "still": "bytes of the slow memory that are read and written if every buffer stays",
        "moved": "the same if buffers move, and its `bound`",
        "seconds": "CPU time of the latter",
    },
    cases=_list_cases,
    arms=lambda settings: [Arm("memplan", partial(measure, nodes=settings["nodes"]))],
    tables=lambda rows, _: [TABLE],
    takes=("case", "limit", "nodes"),
)

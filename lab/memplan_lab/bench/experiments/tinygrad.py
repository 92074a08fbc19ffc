"""Networks in tinygrad with memplan's plans, beside the plans of its own allocator.

Each network runs in a process of its own: to be planned, on tinygrad's device that computes
nothing; to be compared, smaller and on the CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from statistics import mean
from typing import Any

from memplan.base.errors import MemplanError
from memplan_lab.bench.child import ChildError, ask
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Rows,
    Setting,
    Settings,
    Table,
    ready,
    tell,
)
from memplan_lab.bench.tables import Shown
from memplan_lab.bench.tinygrad.models import CHECKED, MODELS

_CHILD = (sys.executable, "-m", "memplan_lab.bench.tinygrad.child")
_SECONDS = 900.0  # of one network


def _list_cases(settings: Settings) -> Iterator[Case]:
    for name in CHECKED if settings["check"] else MODELS:
        yield Case(name, ready(name))


def _list_arms(settings: Settings) -> Iterator[Arm]:
    yield Arm("memplan", partial(plan, check=settings["check"]))


def plan(name: str, check: bool) -> dict[str, Any]:
    """Return what is measured of a network; see `memplan_lab.bench.tinygrad.child`."""
    environment = {"DEV": "CPU" if check else "NULL", "CACHELEVEL": "0"}
    request = {"name": name, "check": check}
    try:
        return ask(_CHILD, request, timeout=_SECONDS, environment=environment)
    except ChildError as error:
        raise MemplanError(f"tinygrad did not run {name}: {error}") from None


def _make_tables(rows: Rows, settings: Settings) -> Iterator[Table | Shown]:
    if settings["check"]:
        equal = tell("{}", lambda facts: "equal" if all(facts) else "different", "equal")
        yield Table("tinygrad", (Column("network", "{case}"), Column("outputs and weights", equal)))
        return
    columns = (
        Column("network", "{case}"),
        Column("buffers", "{buffers:,}"),
        Column("tinygrad", "{host:,}"),
        Column("memplan", "{bytes:,}"),
        Column("ratio", tell("{:.3f}", mean, "ratio")),
        Column("bound", "{bound:,}"),
        Column("CPU of its allocator", tell("{:.2f} ms", max, "host_ms")),
        Column("CPU of memplan", tell("{:.2f} ms", max, "ms")),
    )
    whole = [{**row, "ratio": row["bytes"] / row["host"]} for row in rows]
    rest = dict.fromkeys(("buffers", "host", "bytes", "bound", "host_ms", "ms"))
    yield Table("tinygrad", columns, total={"case": "mean", **rest}).show(whole)


EXPERIMENT = Experiment(
    "tinygrad",
    "plans of networks in tinygrad, beside those of its own allocator",
    figures={
        "buffers": "of the largest call",
        "host": "bytes by tinygrad's allocator",
        "bytes": "by memplan",
        "bound": "bytes that every plan needs",
        "host_ms": "CPU milliseconds of tinygrad's allocator",
        "ms": "of memplan, with its referee",
        "equal": "whether outputs and weights have the same bits",
    },
    cases=_list_cases,
    arms=_list_arms,
    tables=_make_tables,
    own={
        "check": Setting(
            False, "run five of the networks, smaller, on the CPU, and compare their outputs"
        )
    },
    wrong=lambda rows: "" if all(row.get("equal", True) for row in rows) else "an output differs",
)

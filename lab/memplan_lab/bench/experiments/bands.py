"""Networks in bands: what TensorFlow Lite Micro needs for them, and what they cost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memplan.base.errors import MemplanError
from memplan.levers.rewrite.bands import Frontier, Uncut, find_frontier, tell_rows
from memplan.programs.graph import Kind
from memplan.programs.sources import load
from memplan.runtimes.tflm.write import apply_in_bands
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Setting,
    Settings,
    Table,
    read_count,
    read_list,
    read_share,
    tell,
)
from memplan_lab.bench.int8_networks import NETWORKS

_WORK = 300_000  # as `apply_in_bands`


def _list_cases(settings: Settings) -> Iterator[Case]:
    """Yield the files that are named, or each network in each size; their weights are random."""
    if settings["data"] is not None:
        data = Path(settings["data"])
        for path in sorted(data.glob("*.tflite")) if data.is_dir() else (data,):
            yield Case(path.name, partial(_read, path))
        return
    for name, make in NETWORKS.items():
        for size in settings["sizes"]:
            yield Case(f"{name}-{size}", partial(make, size))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MemplanError(f"{error.filename}: {error.strerror}") from None


def _list_arms(settings: Settings) -> Iterator[Arm]:
    for share in settings["max-extra-macs"]:
        yield Arm("memplan", partial(measure, share=share), {"share": share})


def measure(data: bytes, share: float) -> dict[str, Any]:
    """Return a network in bands that add at most this share of work."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(data)
        found = apply_in_bands(path, path, max_extra=share)
        given = load(path).graph
    assert given is not None
    program = Uncut(tell_rows(given))
    graph = program.graph
    bare = replace(program, graph=replace(graph, planned=graph.planned - {Kind.INPUT}))
    own, outside = (find_frontier(each, work=_WORK) for each in (program, bare))
    applied, point, comparison = found.best.written.details, found.point, found.comparison
    heads = {found.plan.peak, applied.after.bytes} | ({point.load} if point else set())
    return {
        "head": applied.before.bytes,
        "head_in_bands": applied.after.bytes,
        "arena": found.plain.arena,
        "arena_in_bands": found.arena,
        "own": own.points[0].load,
        "own_in_bands": _find_least(own, share),
        "outside": outside.points[0].load,
        "outside_in_bands": _find_least(outside, share),
        "extra": found.extra,
        "repeated": found.macs / program.macs if program.macs else 0.0,
        "time": (comparison.time if comparison else None) or 1.0,
        "is_predicted": len(heads) == 1 or point is None,
        "is_exact": point is None or (comparison is not None and not comparison.difference),
    }


def _find_least(frontier: Frontier, share: float) -> int:
    """Return the least load of bands that add at most this share of work."""
    return min(each.load for each in frontier.points if frontier.extra(each) <= share + 1e-12)


def _tell(facts: list[bool]) -> str:
    return "yes" if all(facts) else "no"


TABLE = Table(
    "Networks in bands",
    (
        Column("network", "{case}"),
        Column("at most", "{share:.0%}"),
        Column("head", "{head:,}"),
        Column("in bands", "{head_in_bands:,}"),
        Column("arena", "{arena:,}"),
        Column("in bands", "{arena_in_bands:,}"),
        Column("own kernels", "{own:,}"),
        Column("in bands", "{own_in_bands:,}"),
        Column("no input", "{outside:,}"),
        Column("in bands", "{outside_in_bands:,}"),
        Column("work", "{extra:.1%}"),
        Column("repeated", "{repeated:.1%}"),
        Column("CPU", "{time:.2f}"),
        Column("predicted", tell("{}", _tell, "is_predicted")),
        Column("same bits", tell("{}", _tell, "is_exact")),
    ),
)

EXPERIMENT = Experiment(
    "bands",
    "networks in bands, run in TFLM: arena, time and outputs",
    figures={
        "share": "the limit on the work that bands add",
        "head": "bytes of the head of TFLM's arena, and `head_in_bands`",
        "arena": "bytes of the smallest arena that TFLM accepts on this machine, without bands for "
        "the plan of the best order",
        "own": "bytes of the load for kernels that know the rows around a band, without TFLM's "
        "structs for operators",
        "outside": "the same with the input outside of the arena, as MCUNetV2 counts",
        "extra": "the work that bands add in TFLM, as a share of the multiplications",
        "repeated": "the multiplications that are repeated, as a share",
        "time": "CPU time as a multiple of that of the network without bands",
        "is_predicted": "whether the predicted load, the planned peak and the measured head agree",
        "is_exact": "whether outputs have the same bits",
    },
    cases=_list_cases,
    arms=_list_arms,
    tables=lambda rows, _: [TABLE],
    takes=("case", "limit", "data"),
    own={
        "sizes": Setting((96, 160, 224), "pixels of the networks", read_list(read_count)),
        "max-extra-macs": Setting(
            (0.1, 0.3), "the most work that bands may add, as 10%,30%", read_list(read_share)
        ),
    },
)

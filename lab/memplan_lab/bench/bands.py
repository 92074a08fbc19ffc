"""Networks in bands: what TensorFlow Lite Micro needs for them, and what they cost."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memplan.graph import Kind
from memplan.rewrite.bands import Frontier, Uncut, find_frontier, tell_rows
from memplan.runtimes.tflm.write import apply_in_bands
from memplan.sources import load
from memplan_lab.bench.int8_networks import NETWORKS

__all__ = ["HEADINGS", "SHARES", "SIZES", "Row", "format_rows", "iterate_files", "measure"]

SIZES = (96, 160, 224)
SHARES = (0.10, 0.30)
_WORK = 300_000  # as `apply_in_bands`


@dataclass(frozen=True, slots=True)
class Row:
    """A network in bands, beside the network as it is. Amounts are in bytes."""

    name: str  # the name of the network, with its size in pixels, or of the file
    share: float  # the limit on the work that bands add
    # head, head_in_bands: The head of TFLM's arena.
    head: int
    head_in_bands: int
    # arena, arena_in_bands: The smallest arena that TFLM accepts on this machine; without bands,
    # for the plan of `memplan apply --order`.
    arena: int
    arena_in_bands: int
    # own, own_in_bands: The load for kernels that know the rows around a band, without TFLM's
    # structs for operators.
    own: int
    own_in_bands: int
    # outside, outside_in_bands: The same with the input outside of the arena, for example if a
    # camera delivers rows. This is how MCUNetV2 counts.
    outside: int
    outside_in_bands: int
    extra: float  # the work that bands add in TFLM, as a share of the multiplications
    repeated: float  # the multiplications that are repeated, as a share
    time: float  # CPU time as a multiple of that of the network without bands
    # Whether the predicted load, the planned peak, and the measured head are equal.
    is_predicted: bool
    is_exact: bool  # whether outputs have the same bits


def iterate_files(names: Sequence[str], sizes: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    """Yield models by name: files, or networks of the suite in each size."""
    for name in names or list(NETWORKS):
        if name not in NETWORKS:
            yield Path(name).name, Path(name).read_bytes()
            continue
        for size in sizes:
            yield f"{name}-{size}", NETWORKS[name](size)


def measure(name: str, data: bytes, share: float) -> Row:
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
    macs = program.macs
    heads = {found.plan.peak, applied.after.bytes} | ({point.load} if point else set())
    return Row(
        name,
        share,
        applied.before.bytes,
        applied.after.bytes,
        found.plain.arena,
        found.arena,
        own.points[0].load,
        _find_least(own, share),
        outside.points[0].load,
        _find_least(outside, share),
        found.extra,
        found.macs / macs if macs else 0.0,
        (comparison.time if comparison else None) or 1.0,
        len(heads) == 1 or point is None,
        point is None or (comparison is not None and not comparison.difference),
    )


def _find_least(frontier: Frontier, share: float) -> int:
    """Return the least load of bands that add at most this share of work."""
    return min(each.load for each in frontier.points if frontier.extra(each) <= share + 1e-12)


HEADINGS = (
    "network",
    "at most",
    "head",
    "in bands",
    "arena",
    "in bands",
    "own kernels",
    "in bands",
    "no input",
    "in bands",
    "work",
    "repeated",
    "CPU",
    "predicted",
    "same bits",
)


def format_rows(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of a table, a row for each network and share."""
    for row in rows:
        yield (
            row.name,
            f"{row.share:.0%}",
            f"{row.head:,}",
            f"{row.head_in_bands:,}",
            f"{row.arena:,}",
            f"{row.arena_in_bands:,}",
            f"{row.own:,}",
            f"{row.own_in_bands:,}",
            f"{row.outside:,}",
            f"{row.outside_in_bands:,}",
            f"{row.extra:.1%}",
            f"{row.repeated:.1%}",
            f"{row.time:.2f}",
            "yes" if row.is_predicted else "no",
            "yes" if row.is_exact else "no",
        )

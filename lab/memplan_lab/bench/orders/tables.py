"""Rows of orders as tables: each graph, the whole suite, the peers, and rules that are off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log
from statistics import median

from memplan_lab.bench.orders.measuring import Row
from memplan_lab.bench.tables import DASH

__all__ = [
    "PEER_HEADINGS",
    "RULE_HEADINGS",
    "SUMMARY_HEADINGS",
    "graph_headings",
    "graphs",
    "peers",
    "rules",
    "summary",
]

_QUICK = 1.0  # CPU seconds within which nearly all must be proved

SUMMARY_HEADINGS = (
    *(
        "graphs",
        "n",
        "proved",
        "by a cut",
        "within 1 s",
        "median",
        "worst",
        "lower",
        "mean gain",
        "best gain",
    ),
    *("planned at the load", "largest gap"),
)
RULE_HEADINGS = ("without", "proved", "states", "CPU", "worst", "largest gap")


def graph_headings(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the headings of `graphs`."""
    return (
        *("graph", "n", "given", "best", "bound", "proved", "states", "CPU s", "given/best"),
        *(f"{name}/best" for name in (rows[0].peers if rows else ())),
    )


def graphs(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each graph; peers as multiples of the best peak."""
    for row in rows:
        yield (
            *(row.name, f"{row.operators:,}", f"{row.given:,}", f"{row.peak:,}", f"{row.bound:,}"),
            *("yes" if row.proved else "no", f"{row.states:,}", f"{row.cpu_seconds:.3f}"),
            *(_ratio(each, row.peak) for each in (row.given, *row.peers.values())),
        )


def summary(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each family, and one for all."""
    for family in (*dict.fromkeys(row.family for row in rows), ""):
        own = [row for row in rows if family in ("", row.family)]
        proved = [row for row in own if row.proved]
        seconds = [row.cpu_seconds for row in own]
        gains = [1 - row.peak / row.given for row in own if row.given]
        planned = [row for row in own if row.planned is not None]
        yield (
            *(family or "all", f"{len(own):,}", f"{len(proved):,}"),
            f"{sum(row.certified == row.peak for row in own):,}",
            f"{sum(row.cpu_seconds <= _QUICK for row in proved):,}",
            *(f"{median(seconds):.3f} s", f"{max(seconds):.2f} s"),
            f"{sum(row.peak < row.given for row in own):,}",
            *(f"{sum(gains) / max(len(gains), 1):.1%}", f"{max(gains, default=0):.1%}"),
            f"{sum(row.planned == row.peak for row in planned):,} of {len(planned):,}",
            f"{max(row.peak / max(row.bound, 1) - 1 for row in own):.2%}",
        )


def peers(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield for each peer: graphs with an order, best ones among them, mean and worst multiple."""
    for name in ("given", *(rows[0].peers if rows else ())):
        peaks = [(row.given if name == "given" else row.peers[name], row.peak) for row in rows]
        ratios = [peak / best for peak, best in peaks if peak is not None and best]
        if ratios:
            yield (
                *(name, f"{len(ratios):,}", f"{sum(ratio <= 1 for ratio in ratios):,}"),
                *(f"{exp(sum(map(log, ratios)) / len(ratios)):.4f}", f"{max(ratios):.3f}"),
            )


PEER_HEADINGS = ("order", "graphs", "best", "mean", "worst")


def rules(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each rule that was off, first one for none."""
    for rule in dict.fromkeys(row.without for row in rows):
        own = [row for row in rows if row.without == rule]
        yield (
            *(rule or "(nothing)", f"{sum(row.proved for row in own):,} of {len(own):,}"),
            f"{sum(row.states for row in own):,}",
            f"{sum(row.cpu_seconds for row in own):.2f} s",
            f"{max(row.cpu_seconds for row in own):.2f} s",
            f"{max(row.peak / max(row.bound, 1) - 1 for row in own):.2%}",
        )


def _ratio(peak: int | None, best: int) -> str:
    return DASH if peak is None or not best else f"{peak / best:.3f}"

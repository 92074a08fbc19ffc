"""Rows of re-runs as tables; costs in per cent of running every operator once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memplan_lab.bench.again.measuring import Answer, Row
from memplan_lab.bench.tables import DASH

__all__ = ["SUMMARY_HEADINGS", "headings", "lines", "summary"]

SUMMARY_HEADINGS = ("sequences by", "capacities", "found", "proved", "as cheap as ours", "CPU s")


def headings(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the headings of `lines`."""
    peers = rows[0].peers if rows else ()
    return (
        *("program", "n", "share", "found", "bound", "in order", "proved", "CPU s"),
        *(each for name in peers for each in (name, "CPU s")),
    )


def lines(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each program and capacity; a peer that proved its answer has a *."""
    for row in rows:
        name = (row.name, f"{row.operators:,}", f"{row.share:.0%}")
        if row.capacity < row.floor:
            cells = (*(DASH,) * 3, _tell_floor(row), f"{row.cpu_seconds:.2f}")
            yield (*name, *cells, *(DASH,) * 2 * len(row.peers))
            continue
        yield (
            *name,
            *(_per_cent(cost, row) for cost in (row.extra, row.bound, row.order_bound)),
            _tell_proved(row),
            f"{row.cpu_seconds:.2f}",
            *(cell for answer in row.peers.values() for cell in _tell(answer, row)),
        )


def _tell_floor(row: Row) -> str:
    if row.gains_nothing:
        return "nothing is gained"
    return f"floor {row.floor / row.given:.1%}"


def _tell_proved(row: Row) -> str:
    if row.status in ("optimal", "infeasible"):
        return "yes"
    return "in order" if row.extra is not None and row.extra <= row.order_bound else "no"


def _tell(answer: Answer | None, row: Row) -> tuple[str, str]:
    if answer is None:
        return DASH, DASH
    cost = _per_cent(answer.extra, row) + ("*" if answer.is_proved else "")
    return cost, f"{answer.cpu_seconds:.1f}"


def _per_cent(cost: int | None, row: Row) -> str:
    return "nothing" if cost is None else f"{100 * cost / max(row.plain, 1):.3f}"


def summary(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield a line for our search and one for each peer, over the capacities from the floor on."""
    own = [row for row in rows if row.capacity >= row.floor]
    found = [row for row in own if row.extra is not None]
    yield (
        *("memplan", f"{len(own)}", f"{len(found)}"),
        f"{sum(_tell_proved(row) != 'no' for row in own)}",
        *(f"{len(found)}", f"{sum(row.cpu_seconds for row in own):.1f}"),
    )
    for name in rows[0].peers if rows else ():
        asked = [(row, row.peers[name]) for row in own]
        answers = [(row, answer) for row, answer in asked if answer is not None]
        costs = [(row, answer.extra) for row, answer in answers if answer.extra is not None]
        yield (
            *(name, f"{len(answers)}", f"{len(costs)}"),
            f"{sum(answer.is_proved for _, answer in answers)}",
            f"{sum(row.extra is None or cost <= row.extra for row, cost in costs)}",
            f"{sum(answer.cpu_seconds for _, answer in answers):.1f}",
        )

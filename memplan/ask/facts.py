"""What JSON says of an answer beyond its parts and axes: the facts of each kind of claim.

Amounts are in bytes, traffic in bytes times their cost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from memplan.answer import Claim
from memplan.levers.rewrite import Recomputed, Reordered
from memplan.levers.rewrite.moves import cut_of, explain_moves
from memplan.levers.rewrite.waits import Waits
from memplan.machine.blocks import Blocks
from memplan.machine.memories import Assigned
from memplan.machine.memories.copies import list_copies
from memplan.machine.memories.memory import as_number
from memplan.scenarios.envelope import Envelope
from memplan.scenarios.paths import PathPlans
from memplan.scenarios.together import Together
from memplan.solvers.apart import Apart

__all__ = [
    "list_facts",
    "summarise_assigned",
    "summarise_change",
    "summarise_envelope",
    "summarise_paths",
]


def list_facts(claims: Iterable[Claim]) -> dict[str, Any]:
    """Return the facts of claims, by what they are about; of several, such as blocks, a list."""
    found: dict[str, Any] = {}
    for claim in claims:
        for kind, (name, summarise) in _KINDS.items():
            if isinstance(claim, kind):
                found.setdefault(name, []).append(summarise(claim))
    return {name: rows[0] if len(rows) == 1 else rows for name, rows in found.items()}


def _summarise_together(found: Together) -> dict[str, Any]:
    rows = zip(found.names, found.programs, found.kept, strict=True)
    return {
        "peak": found.peak,
        "lower_bound": found.plan.lower_bound,
        "by_hand": found.by_hand,
        "separate": found.separate,
        "programs": [
            {
                "name": name,
                "source": each.loaded.source,
                "in_place": each.in_place,
                "peak": each.plan.peak,
                "buffers": len(each.problem),
                "kept": {id: found.offset(name, id) for id in kept},
                "overlap": sorted(
                    found.names[b if a == number else a]
                    for a, b in found.overlap
                    if number in (a, b)
                ),
            }
            for number, (name, each, kept) in enumerate(rows)
        ],
    }


def summarise_assigned(found: Assigned) -> dict[str, Any]:
    """Return what is in which memory, and what all accesses cost."""
    rows = zip(found.memories, found.plans, found.count_bytes(), strict=True)
    return {
        "traffic": found.traffic,
        "lower_bound": found.bound,
        "gap": found.gap,
        "memories": [
            {
                **asdict(memory),
                "read": as_number(memory.read),
                "write": as_number(memory.write),
                "peak": plan.peak or 0,
                "read_bytes": read,
                "written_bytes": written,
                "buffers": {id: plan.offset(id) for id in plan.ids},
            }
            for memory, plan, (read, written) in rows
        ],
        "residency": found.residency,
        "stretches": [asdict(each) for each in found.stretches],
        "copies": [
            {
                "copy": each.stretch.copy,
                "stores": each.stores,
                "start": each.start,
                "done": each.done,
            }
            for each in list_copies(found)
        ],
    }


def _summarise_blocks(found: Blocks) -> dict[str, Any]:
    return {
        "limit": found.limit,
        "count": found.count,
        "count_bound": found.count_bound,
        "total": found.total,
        "total_bound": found.total_bound,
        "blocks": [{"peak": plan.peak, "buffers": len(plan.ids)} for plan in found.plans],
    }


def _summarise_apart(found: Apart) -> dict[str, Any]:
    return {
        "cost": found.cost if found.plan.has_offsets else None,
        "bound": found.bound,
        "met": [{"first": a, "second": b, "cost": found.penalties[a, b]} for a, b in found.met],
        "peak": found.plan.peak,
        "peak_bound": found.peak_bound,
        "pairs": len(found.penalties),
        "nodes": found.nodes,
    }


def summarise_envelope(found: Envelope) -> dict[str, Any]:
    """Return the peaks at all sizes, and the one plan for all of them."""
    columns = zip(found.range.names, found.range.points.T.tolist(), strict=True)
    return {
        "status": str(found.status),
        "open": found.open,
        "where": list(found.range.conditions),
        "sizes": dict(columns),
        "peaks": found.peaks.tolist(),
        "bounds": found.bounds.tolist(),
        "plans": [
            {"size": found.range.sizes(layer.row), "peak": layer.plan.peak}
            for layer in found.layers
        ],
        "one_plan": {
            "peak": found.plan.peak,
            "lower_bound": found.plan.lower_bound,
            "status": str(found.plan.status),
        },
        "bytes": found.how,
        "premise": found.premise or None,
    }


def summarise_paths(found: PathPlans) -> dict[str, Any]:
    """Return what the paths of a program need, and whether every run is on one of them."""
    return {
        "conservative": found.conservative.plan.peak,
        "fallback": found.fallback.plan.peak,
        "peak": found.peak,
        "complete": found.complete,
        "paths": [
            {
                "choices": dict(each.choices),
                "step": None if each.step < 0 else each.step,
                "peak": each.peak,
                "proved": each.planned.plan.status == "optimal",
            }
            for each in found.paths
        ],
    }


_KINDS: Mapping[type, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    Together: ("together", _summarise_together),
    Assigned: ("memories", summarise_assigned),
    Blocks: ("blocks", _summarise_blocks),
    Apart: ("penalties", _summarise_apart),
    Envelope: ("sizes", summarise_envelope),
    PathPlans: ("paths", summarise_paths),
}


def summarise_change(change: object) -> dict[str, Any]:
    """Return what a lever found, in bytes and in shares of one plain run."""
    if isinstance(change, Reordered):
        moves, cut = explain_moves(change), cut_of(change)
        return {
            "given_load": change.given_peak,
            "load": change.peak,
            "bound": change.bound,
            "status": str(change.status),
            "moved": len(change.moved),
            "moves": None if moves is None else _as_json(moves),
            "cut": None if cut is None else _as_json(cut),
            "states": change.states,
            "interrupted": change.interrupted,
            "runs": list(change.order),
        }
    if isinstance(change, Recomputed):
        plain = change.plain or 1
        return {
            "capacity": change.capacity,
            "given_load": change.given_peak,
            "load": change.peak,
            "floor": {"bytes": change.floor, "operator": change.floor_operator},
            "repeated": change.repeated,
            "moved": list(change.moved),
            "outside": change.outside,
            "extra": round(change.extra / plain, 9),
            "bound": round(change.bound / plain, 9),
            "order_bound": round(change.order_bound / plain, 9),
            "picoseconds": {
                "plain": change.plain,
                "extra": change.extra,
                "bound": change.bound,
                "moving": change.moving,
                "hidden": change.hidden,
            },
            "gains_nothing": change.gains_nothing,
            "status": str(change.status),
            "moment": change.moment,
            "states": change.states,
            "interrupted": change.interrupted,
            "runs": list(change.runs),
        }
    if isinstance(change, Waits):
        graph = change.loaded.graph
        names = [] if graph is None else [each.name for each in graph.operators]
        return {
            "cost": change.apart.cost,
            "bound": change.apart.bound,
            "waits": [
                {"operator": after, "for": before, "names": [names[after], names[before]]}
                for before, after in change.arcs
            ],
            "lost": change.lost,
            "chain": change.chain,
        }
    return {}


def _as_json(found: Any) -> dict[str, Any]:
    """Return fields as JSON gives them back, with lists in place of tuples."""
    record: dict[str, Any] = json.loads(json.dumps(asdict(found)))
    return record

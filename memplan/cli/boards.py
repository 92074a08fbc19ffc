"""What `memplan inspect --board` says of TFLM's arena on another machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from memplan.analysis.inspection import Inspection
    from memplan.programs.sources.options import Board
    from memplan.runtimes.tflm.board_arena import BoardArena


@dataclass(frozen=True)
class Needs:
    """What a model needs on a board: its file as it is, and with the plan written into it."""

    given: BoardArena
    planned: BoardArena | None

    def summarise(self) -> dict[str, Any]:
        """Return the same for scripts, in bytes."""
        made = None if self.planned is None else _summarise(self.planned)
        return {**asdict(self.given.board), "given": _summarise(self.given), "planned": made}

    def describe(self) -> Table:
        """Return the same for people."""
        from rich.table import Table

        from memplan.base.errors import listed

        given = self.given
        both = [each for each in (given, self.planned) if each is not None]
        table = Table(title=f"Arena of TensorFlow Lite Micro on {given.board}", **_PLAIN)
        table.add_column("bytes")
        for name in ("file as it is", "with this plan")[: len(both)]:
            table.add_column(name, justify="right")
        table.add_column("")
        what = f"tensors and scratch of kernels, at most {given.scratch:,} of one operator"
        table.add_row("head", *(f"{each.head:,}" for each in both), what)
        what = (
            f"structs, options, tables and {given.states:,} of states, as long as the interpreter"
        )
        table.add_row("persistent", *(f"{each.persistent:,}" for each in both), what)
        table.add_row("arena_used_bytes()", *(f"{each.used:,}" for each in both), "both")
        larger = any(each.size > each.used + 15 for each in both)
        what = "enough"
        if given.unknown:
            what = "not enough: more by what is unknown"
        elif larger:
            what = "enough to prepare the model, which takes more than it uses"
        table.add_row("kTensorArenaSize", *(f"{each.size:,}" for each in both), what)
        if given.unknown:
            table.caption = (
                f"Unknown, and not counted: what {listed(given.unknown, quote=False)} needs there."
            )
        return table


_PLAIN: dict[str, Any] = {
    "box": None,
    "title_justify": "left",
    "caption_justify": "left",
    "pad_edge": False,
}


def compute(path: Path, found: Inspection, board: Board) -> Needs:
    """Return what a model needs on a board, without a plan and with the one that was found."""
    from memplan.runtimes.tflm.board_arena import compute_arena
    from memplan.runtimes.tflm.read.model import load
    from memplan.runtimes.tflm.write.planning import find_offsets

    model, layout = load(path), found.loaded.layout
    given = compute_arena(model, board)
    if layout is None or not found.plan.has_offsets:
        return Needs(given, None)
    offsets = tuple(find_offsets(model, layout, found.plan))
    return Needs(given, compute_arena(replace(model, offsets=offsets), board))


def _summarise(arena: BoardArena) -> dict[str, Any]:
    fields = asdict(arena) | {"used": arena.used, "size": arena.size}
    del fields["board"]
    return fields

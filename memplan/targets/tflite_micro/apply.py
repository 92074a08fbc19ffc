"""`memplan apply model.tflite`: plan a model, and write the plan into it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from memplan.errors import FormatError, MemplanError
from memplan.formats import write_bytes
from memplan.graph import Layout
from memplan.notes import Code, Note
from memplan.plan import Plan
from memplan.sources.loaded import Figure
from memplan.sources.options import Options
from memplan.sources.tflite.graph import folded
from memplan.sources.tflite.model import parse
from memplan.targets.tflite_micro.arena import minimal_arena
from memplan.targets.tflite_micro.folding import unpacked
from memplan.targets.tflite_micro.metadata import with_offsets
from memplan.targets.tflite_micro.planning import layout_in, offsets_of, planned
from memplan.yardsticks import tflite_micro as runtime

__all__ = ["Applied", "apply", "patched"]


@dataclass(frozen=True)
class Applied:
    """What was written, and what it is worth.

    Attributes
    ----------
    path
        The file.
    plan, layout
        What was planned, and what shares memory.
    offsets
        As written: by tensor of all sub-graphs, in bytes; -1 is left to TFLM.
    before, after
        The head of TFLM's arena for the model as it was and as it is, measured where tflite-micro
        is installed. `after` is above `planned` only where TFLM finds no room for the kernels'
        scratch, which no file can place, where the plan has it.
    arena
        The smallest whole arena that TFLM takes on this machine, if there was a budget and it
        could be measured; else `None`.
    in_place
        How many tensors were put over another one.
    folded
        How many operators went, as they only unpacked weights.
    kept
        How many tensors are where the old file had them.
    notes
        What was assumed when the model was read, and what of a budget could not be checked.
    """

    path: Path
    plan: Plan
    layout: Layout
    offsets: tuple[int, ...]
    before: Figure
    after: Figure
    arena: int | None
    in_place: int
    folded: int
    kept: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def planned(self) -> int:
        """The peak of the plan in bytes."""
        return self.plan.peak or 0


def apply(
    model: Path,
    out: Path,
    *,
    plan: Plan | None = None,
    arena_budget: int | None = None,
    in_place: bool = False,
    replan: bool = False,
    overwrite: bool = False,
    timeout: float | None = None,
    nodes: int | None = None,
) -> Applied:
    """Write a plan into a TFLite model, as the metadata that TensorFlow Lite Micro obeys.

    The file is the old one with new tables in front of it (`metadata`), or with other numbers
    where it had a plan; only where weights have to be unpacked, it is written again (`folding`).

    Parameters
    ----------
    model, out
        The file as it is, and where to write it; not the same unless `overwrite`.
    plan
        A plan of this model, with or without in-place choices; `None` makes the one that
        `memplan.plan_model` makes.
    arena_budget
        Bytes that the arena may have. Where tflite-micro is installed, the smallest whole arena is
        measured; elsewhere only its head is held against the budget, as TFLM's planner is
        re-implemented, and a note says so.
    in_place
        Whether results may be written over inputs that are not needed any more, where the kernel
        allows it (`memplan.sources.tflite.kernels.IN_PLACE` says which and why). That goes for
        inputs of the model too; also without it their memory is used for something else once they
        have been read for the last time: set them before every run.
    replan
        Whether offsets that the file gives are forgotten; otherwise they are kept.
    overwrite
        Whether `out` may be the model itself.
    timeout, nodes
        As `memplan.plan_model` takes them, for all searches together.

    Raises
    ------
    FormatError
        If the file is damaged or cannot be written.
    PlanError
        If the plan is not one of this model; the sentence says what differs.
    MemplanError
        If the budget does not hold (by how many bytes), there is no plan in time, or a library is
        missing. Nothing has been written then.
    """
    if out.exists() and model.exists() and out.samefile(model) and not overwrite:
        raise MemplanError(f"{out} is the model itself: name another file, or ask for --overwrite")
    if plan is None:
        plan = planned(
            model, None, in_place=in_place, replan=replan, timeout=timeout, nodes=nodes
        ).plan
    applied, data = patched(model, out, plan, arena_budget)
    write_bytes(out, data)
    return applied


def patched(
    model: Path, out: Path, plan: Plan, arena_budget: int | None = None
) -> tuple[Applied, bytes]:
    """Return what `apply` writes, and what it says of it; nothing is written.

    Parameters
    ----------
    model, out, plan, arena_budget
        See `apply`.

    Raises
    ------
    FormatError, PlanError, MemplanError
        As `apply` does.
    """
    made = planned(model, plan)
    layout = layout_in(made)
    data = _read(model)
    stored = parse(data, str(model))
    offsets = offsets_of(stored, layout, plan)
    result = with_offsets(unpacked(data, stored), str(model), offsets)
    arena, notes = None, made.notes
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / "model.tflite"
        trial.write_bytes(result)
        after = _head(trial)
        if arena_budget is not None:
            _require(out, "the plan with kernel scratch", after.bytes, arena_budget)
            arena = minimal_arena(trial)
            if arena is None:
                notes = (*notes, _unmeasured(after, arena_budget))
            else:
                _require(out, "the smallest arena that TFLM takes", arena, arena_budget)
    applied = Applied(
        out,
        plan,
        layout,
        tuple(offsets),
        _head(model),
        after,
        arena,
        sum(max(0, len(layout.storages[row].tensors) - 1) for row in layout.rows),
        sum(map(len, folded(stored).values())),
        sum(a == b != -1 for a, b in zip(stored.offsets, offsets, strict=False)),
        notes,
    )
    return applied, result


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(str(path), f"cannot be read: {error.strerror or error}") from None


def _head(path: Path) -> Figure:
    figure = runtime.measure(path, Options())
    assert figure is not None  # it answers for all that can be read
    return figure


def _require(out: Path, what: str, size: int, budget: int) -> None:
    if size > budget:
        raise MemplanError(
            f"{what} needs {size} bytes, {size - budget} more than the budget of {budget}: "
            f"{out} was not written"
        )


def _unmeasured(head: Figure, budget: int) -> Note:
    return Note(
        Code.ARENA_UNMEASURED,
        f"the budget of {budget} bytes was held against the head of the arena alone ({head.bytes} "
        f"bytes, {head.how}): what TFLM keeps behind it is unknown until tflite-micro measures it "
        "(pip install 'memplan[tflm]')",
    )

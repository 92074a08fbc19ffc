"""`memplan apply model.tflite`: plan a model, and write the plan into it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from memplan.errors import FormatError, MemplanError
from memplan.formats._files import write_bytes
from memplan.graph import Layout
from memplan.plan import Plan
from memplan.sources.loaded import Figure
from memplan.sources.options import Options
from memplan.sources.tflite.graph import folded
from memplan.sources.tflite.model import parse
from memplan.targets.tflite_micro.arena import minimal_arena
from memplan.targets.tflite_micro.folding import unpacked
from memplan.targets.tflite_micro.metadata import with_offsets
from memplan.targets.tflite_micro.planning import best, layout_of, offsets_of
from memplan.yardsticks import tflite_micro as runtime

__all__ = ["Applied", "apply"]

_LARGEST = (1 << 31) - 1  # offsets are int32


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
    in_place: bool = True,
    overwrite_input: bool = False,
    in_place_file: bool = False,
    timeout: float | None = None,
) -> Applied:
    """Write a plan into a TFLite model, as the metadata that TensorFlow Lite Micro obeys.

    The file is the old one with new tables in front of it (`metadata`), or with other numbers
    where it had a plan; only where weights have to be unpacked, it is written anew (`folding`).

    Parameters
    ----------
    model, out
        The file as it is, and where to write it; not the same unless `in_place_file`.
    plan
        A plan of this model, with or without in-place choices; `None` looks for the best.
    arena_budget
        Bytes that the arena may have: the head, and where tflite-micro is installed, all of it.
    in_place
        Whether results may be written over inputs that nobody needs any more, where the kernel
        allows it (`memplan.sources.tflite.kernels.IN_PLACE` says which and why).
    overwrite_input
        Whether that goes for inputs of the model too. Even if not, TFLM may use their memory for
        something else once they have been read for the last time: set them before every run.
    timeout
        Seconds for each of the two searches; `None` for no limit.

    Raises
    ------
    FormatError
        If the file is damaged or cannot be written.
    PlanError
        If the plan is not one of this model; the sentence says what differs.
    MemplanError
        If the budget does not hold (by how many bytes), or a library is missing. Nothing has been
        written then.
    """
    if out.exists() and model.exists() and out.samefile(model) and not in_place_file:
        raise MemplanError(f"{out} is the model itself: name another file, or ask for --in-place")
    data = _read(model)
    stored = parse(data, str(model))
    if plan is None:
        layout, plan = best(
            stored, in_place=in_place, overwrite_input=overwrite_input, timeout=timeout
        )
    else:
        layout = layout_of(stored, plan)
    if (plan.peak or 0) > _LARGEST:
        raise MemplanError(f"{model}: the plan has {plan.peak} bytes; TFLM counts up to 2^31 - 1")
    offsets = offsets_of(stored, layout, plan)
    planned = with_offsets(unpacked(data, stored), str(model), offsets)
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / "model.tflite"
        trial.write_bytes(planned)
        after = _head(trial)
        arena = None
        if arena_budget is not None:
            _require(out, "the plan with kernel scratch", after.bytes, arena_budget)
            arena = minimal_arena(trial)
            _require(out, "the smallest arena that TFLM takes", arena or 0, arena_budget)
    before = _head(model)
    write_bytes(out, planned)
    return Applied(
        out,
        plan,
        layout,
        tuple(offsets),
        before,
        after,
        arena,
        sum(max(0, len(layout.storages[row].tensors) - 1) for row in layout.rows),
        sum(map(len, folded(stored).values())),
    )


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

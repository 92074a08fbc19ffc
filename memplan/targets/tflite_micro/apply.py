"""Plans a model and writes the plan into its file, for `memplan apply model.tflite`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from memplan.errors import MemplanError
from memplan.files import read_bytes, temporary_folder
from memplan.formats import write_bytes
from memplan.graph import Layout
from memplan.notes import Code, Note
from memplan.plan import Plan
from memplan.planning import Planned
from memplan.sources.loaded import Figure
from memplan.sources.options import Options
from memplan.sources.tflite.graph import find_folded
from memplan.sources.tflite.model import Model, parse
from memplan.targets.tflite_micro.folding import unpack
from memplan.targets.tflite_micro.metadata import with_offsets, without_tensors
from memplan.targets.tflite_micro.planning import find_offsets, find_unused, get_layout, plan_file
from memplan.yardsticks import join_notes
from memplan.yardsticks import tflite_micro as runtime
from memplan.yardsticks.tflite_micro_arena import minimal_arena

__all__ = ["Applied", "apply", "is_refused", "measure_head", "patch", "write_plan"]


@dataclass(frozen=True)
class Applied:
    """What was written, and what it saves.

    Attributes
    ----------
    path
        The file that was written.
    plan, layout
        The plan, and the tensors that share memory in it.
    offsets
        By tensor of all sub-graphs, as written: bytes, or -1 for a tensor that TFLM places.
    before, after
        The head of TFLM's arena for the model as it was and as it is, measured where tflite-micro
        is installed. No file can place the kernels' scratch; `after` is above `planned` only if
        TFLM finds no room for scratch at its place in the plan.
    arena
        The smallest whole arena with which TFLM accepts the model on this machine, if there was a
        budget and it could be measured; else `None`.
    in_place
        The number of tensors that are written over another one.
    folded
        The number of operators that were removed, as they only unpacked weights.
    kept
        The number of tensors that keep their offset from the old file.
    notes
        What was assumed when the model was read, and which part of a budget was not checked.
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
    allow_refused: bool = False,
    timeout: float | None = None,
    nodes: int | None = None,
) -> Applied:
    """Write a plan into a TFLite model, as the metadata that TensorFlow Lite Micro obeys.

    The new file is the old one with new tables in front (`metadata`), or with other numbers in the
    plan that it had. It is only rewritten as a whole if weights have to be unpacked (`folding`).

    Parameters
    ----------
    model, out
        The file as it is, and where to write it; not the same unless `overwrite`.
    plan
        A plan of this model, with or without in-place choices; `None` makes the one that
        `memplan.plan_model` makes.
    arena_budget
        Bytes that the arena may have. Where tflite-micro is installed, the smallest whole arena is
        measured; elsewhere only its head is computed and compared with the budget, and a note says
        so.
    in_place
        Whether results may be written over inputs that are not needed any more, where the kernel
        allows it (`memplan.sources.tflite.kernels.IN_PLACE` says which and why). This includes
        inputs of the model. Even without this option their memory is reused after their last
        read, so set the inputs before every run.
    replan
        Whether offsets in the file are dropped; otherwise they are kept.
    overwrite
        Whether `out` may be the model itself.
    allow_refused
        Whether a model may be written that TFLM refuses, as another build of it may have the
        kernels. A note says why TFLM refuses it.
    timeout, nodes
        Arguments of `memplan.plan_model`, for all searches together.

    Raises
    ------
    FormatError
        If the file is damaged or cannot be written.
    PlanError
        If the plan does not fit this model; the sentence says what differs.
    MemplanError
        If the plan exceeds the budget (the sentence says by how many bytes), TFLM refuses the
        model, there is no plan in time, or a library is missing. Then no file has been written.
    """
    if out.exists() and model.exists() and out.samefile(model) and not overwrite:
        raise MemplanError(f"{out} is the model itself: name another file, or use --overwrite")
    if plan is None:
        plan = plan_file(
            model, None, in_place=in_place, replan=replan, timeout=timeout, nodes=nodes
        ).plan
    applied, data = patch(model, out, plan, arena_budget, allow_refused=allow_refused)
    write_bytes(out, data)
    return applied


def patch(
    model: Path,
    out: Path,
    plan: Plan,
    arena_budget: int | None = None,
    *,
    allow_refused: bool = False,
) -> tuple[Applied, bytes]:
    """Return the bytes that `apply` would write, and its result; no file is written.

    Parameters
    ----------
    model, out, plan, arena_budget, allow_refused
        See `apply`.

    Raises
    ------
    FormatError, PlanError, MemplanError
        As `apply` does.
    """
    made = plan_file(model, plan)
    data = read_bytes(model)
    stored = parse(data, str(model))
    applied, result, _ = write_plan(
        data, stored, out, made, arena_budget, allow_refused=allow_refused
    )
    return applied, result


def write_plan(
    data: bytes,
    stored: Model,
    out: Path,
    made: Planned,
    arena_budget: int | None = None,
    *,
    allow_refused: bool = False,
    whole: bool = False,
    before: Figure | None = None,
) -> tuple[Applied, bytes, int | None]:
    """Return the bytes of a model with this plan, and what it saves; no file is written.

    Parameters
    ----------
    data, stored
        The file of the model, and what is in it.
    out, arena_budget, allow_refused
        See `apply`.
    made
        The model with its plan, in the layout that the plan is for.
    whole
        Whether the smallest whole arena is measured without a budget too.
    before
        The head of the arena for the model as it was; it is measured if it is not given.

    Returns
    -------
    applied, result
        What `patch` returns.
    arena
        The smallest whole arena, where it was measured.

    Raises
    ------
    FormatError, MemplanError
        As `apply` does.
    """
    layout, plan, name = get_layout(made), made.plan, stored.name
    offsets = find_offsets(stored, layout, plan)
    # At offset 0 an unused tensor costs nothing, unless it is larger than the whole plan.
    sizes = [tensor.bytes for tensor in stored.tensors()]
    peak = plan.peak or 0
    large = [number for number in find_unused(layout.graph) if sizes[number] > peak]
    bare = unpack(data, stored)
    if large:
        bare = without_tensors(bare, name, large)
    result = with_offsets(bare, name, offsets, stored if bare is data else None)
    arena = None
    with temporary_folder(name) as folder:
        trial = Path(folder) / "model.tflite"
        if before is None:
            trial.write_bytes(data)
            before = measure_head(trial, stored)
        trial.write_bytes(result)
        new = replace(stored, offsets=tuple(offsets)) if bare is data else parse(result, name)
        after = measure_head(trial, new)
        notes = join_notes(made.notes, (after,))
        refused = next((each for each in notes if each.code is Code.RUNTIME_REFUSES), None)
        if refused is not None and not allow_refused:
            raise MemplanError(
                f"{refused.text}: {out} was not written; --allow-refused writes it nevertheless, "
                "for a build of TensorFlow Lite Micro that takes it"
            )
        if arena_budget is not None:
            _require(out, "the plan with kernel scratch", after.bytes, arena_budget)
            arena = None if refused else minimal_arena(trial, new)
            if arena is None:
                notes = (*notes, _note_unmeasured(after, arena_budget))
            else:
                _require(out, "the smallest arena that TFLM accepts", arena, arena_budget)
        elif whole and refused is None:
            arena = minimal_arena(trial, new)
    applied = Applied(
        out,
        plan,
        layout,
        tuple(offsets),
        before,
        after,
        None if arena_budget is None else arena,
        sum(max(0, len(layout.storages[row].tensors) - 1) for row in layout.rows),
        sum(map(len, find_folded(stored).values())),
        sum(a == b != -1 for a, b in zip(stored.offsets, offsets, strict=False)),
        notes,
    )
    return applied, result, arena


def is_refused(applied: Applied) -> bool:
    """Return whether TFLM refuses the model that was written."""
    return any(note.code is Code.RUNTIME_REFUSES for note in applied.notes)


def measure_head(path: Path, model: Model) -> Figure:
    """Return the head of TFLM's arena for a file, in which this model is."""
    figure = runtime.measure(path, Options(), model)
    assert figure is not None  # it has a figure for every model that can be read
    return figure


def _require(out: Path, what: str, size: int, budget: int) -> None:
    if size > budget:
        raise MemplanError(
            f"{what} needs {size} bytes, {size - budget} more than the budget of {budget}: "
            f"{out} was not written"
        )


def _note_unmeasured(head: Figure, budget: int) -> Note:
    return Note(
        Code.ARENA_UNMEASURED,
        f"the budget of {budget} bytes was compared with the head of the arena only ({head.bytes} "
        f"bytes, {head.how}); the whole arena is measured where tflite-micro is installed "
        "(pip install 'memplan[tflm]') and takes the model",
    )

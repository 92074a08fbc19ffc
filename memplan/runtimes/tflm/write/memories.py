"""Several memories for TensorFlow Lite Micro: a planner in C++, or one arena with a hole.

TFLM asks its planner for the offset of each buffer from its one arena. An address in another memory
is such an offset too: the distance of its array from the arena, and the place in it.

    make_planner   a planner that knows the arrays; it also guards the plan, as TFLM says the bytes
                   and the time of each buffer, kernel scratch included
    make_hole      where the addresses of the memories are known: a file with such offsets, and
                   TFLM's own planner, which is told that what lies between the memories is taken
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from memplan.base.errors import MemplanError, PlanError, listed, quoted
from memplan.base.notes import Code, Note
from memplan.levers.pipeline import Variant
from memplan.machine.memories import Assigned, Memory
from memplan.machine.memories.models import assign_layouts
from memplan.programs.graph import Layout
from memplan.programs.sources.loaded import Beside
from memplan.programs.sources.options import Board
from memplan.runtimes.c.names import escape_comment, make_identifiers, make_prefix
from memplan.runtimes.housed import Housed
from memplan.runtimes.tflm.measure import LARGEST, Request, place_requests
from memplan.runtimes.tflm.read.boards import put_on_board
from memplan.runtimes.tflm.read.graph import round_up
from memplan.runtimes.tflm.read.model import Model, parse
from memplan.runtimes.tflm.write.folding import unpack
from memplan.runtimes.tflm.write.metadata import with_offsets
from memplan.runtimes.tflm.write.planning import find_offsets, find_places

__all__ = ["HoleError", "house_in_tflm", "make_hole", "make_planner"]

_ALIGNED: Final = 16  # TFLM's arena
_STRIDE: Final = 1 << 40  # between memories, where all of them are one range of addresses
_PREPARING: Final = 256  # bytes for a buffer at the bottom of the arena, while TFLM prepares it


class HoleError(MemplanError):
    """An arena cannot have this hole."""


@dataclass(frozen=True)
class _Range:
    """All memories as one range of addresses: where each begins."""

    found: Assigned
    bases: tuple[int, ...]

    def offset(self, id: str) -> int:
        """Return the address of a buffer."""
        number = next(at for at, plan in enumerate(self.found.plans) if id in plan)
        return self.bases[number] + self.found.plans[number].offset(id)


def make_planner(
    model: Model,
    found: Assigned,
    name: str,
    beside: Beside | None = None,
    board: Board | None = None,
) -> str:
    """Return a header in C++ with a planner of a model, all names with the same prefix.

    The model is as TFLM will read it: without offsets and packed weights, on its board, or else
    somewhere with the reference kernels. The plans are of a layout of it; the first memory is that
    of TFLM's arena, in which TFLM keeps `beside`, if the board says where. Plans for kernels that
    ask for other scratch, and offsets that are too large for TFLM, are refused.
    """
    used = [plan.peak or 0 for plan in found.plans]
    if max(used) > LARGEST:
        raise MemplanError(f"{model.name}: a memory has {max(used)} bytes; TFLM counts up to 2^31")
    upper = make_prefix(name)
    words = make_identifiers(memory.name for memory in found.memories)
    # An array has no prefix, and no variable begins with a digit.
    names = make_identifiers(f"memory {each}" if each[0].isdigit() else each for each in words)
    arrays = [f"{each}_arena" for each in names]
    places = _Range(found, tuple(_STRIDE * number for number in range(len(used))))
    rows = [
        f"        {{{each.size}, {each.first}, {each.last}, {at // _STRIDE}, {at % _STRIDE}}},"
        for each, at in find_places(model, _layout_of(found), places)
    ]
    sizes = [f"{upper}_BYTES_{each}" for each in names]
    lengths = [f"{sizes[0]} + what TFLM keeps", *sizes[1:]]
    if board is not None and beside is not None and beside.bytes is not None:
        whole = max(round_up(used[0]) + beside.bytes, beside.least)
        more = f" + what TFLM keeps for {listed(beside.unknown, quote=False)}"
        lengths[0] = f"{round_up(whole)}{more * bool(beside.unknown)}"
    return _fill(
        "planner.h.in",
        model=escape_comment(Path(model.name).name),
        count=len(names),
        arrays="\n".join(
            f" *   alignas({_ALIGNED}) static uint8_t {array}[{length}];"
            for array, length in zip(arrays, lengths, strict=True)
        ),
        arguments=", ".join(arrays),
        first=arrays[0],
        first_name=names[0],
        guard=f"{upper}_MEMORIES_H_",
        upper=upper,
        kernels="the reference kernels" if board is None else f"those of {board}",
        **{"class": _name_class(upper)},
        constants="\n".join(
            f"#define {size} {max(1, bytes_)}u" for size, bytes_ in zip(sizes, used, strict=True)
        ),
        parameters=", ".join(f"const void* {array}" for array in arrays),
        members=", ".join(f"reinterpret_cast<uintptr_t>({array})" for array in arrays),
        aligned=_ALIGNED,
        buffers=len(rows),
        rows="\n".join(rows or ["        {0, 0, 0, 0, 0},"]),
    )


def make_hole(data: bytes, model: Model, found: Assigned, name: str, end: int) -> tuple[bytes, str]:
    """Return a file for one arena that spans all memories, and a header with its planner.

    The file is as TFLM will read it, and the memories begin at their bases; `end` is the address
    behind the highest one, up to which TFLM keeps its structs. A `HoleError` says that TFLM does
    not count so far, that the lowest memory has no room for what TFLM does at the bottom of the
    arena while it prepares the model, or that kernel scratch finds no room.
    """
    memories = sorted(found.memories, key=lambda memory: memory.base)
    lowest = memories[0].base
    ends = [memory.base - lowest + (memory.capacity or 0) for memory in memories]
    if end - lowest > LARGEST or end > 1 << 32:
        raise HoleError(f"the memories end at {end:#x}; TFLM counts up to 2^31 from the lowest one")
    holes = [
        (end, after.base - lowest - end)
        for end, after in zip(ends, memories[1:], strict=False)
        if after.base - lowest > end
    ]
    bases = tuple(memory.base - lowest for memory in found.memories)
    offsets = find_offsets(model, _layout_of(found), _Range(found, bases))
    made = with_offsets(data, model.name, offsets)  # the model may be that of another board
    taken = [Request(size, 0, LARGEST, at) for at, size in holes]
    placed = place_requests(replace(model, offsets=tuple(offsets)), taken)
    if _PREPARING * len(placed) > ends[0]:
        raise HoleError(
            f"TFLM may need {_PREPARING * len(placed)} bytes at the bottom of the arena while it "
            f"prepares the model, and {quoted(memories[0].name)} has {ends[0]}"
        )
    beyond = max((at + each.size for at, each in placed if each.first >= 0), default=0)
    if beyond > ends[-1] or not holes:
        raise HoleError(
            f"kernel scratch would end {beyond - ends[-1]} bytes beyond the memories"
            if holes
            else "there is no hole: the memories are one range of addresses"
        )
    upper = make_prefix(name)
    text = _fill(
        "hole.h.in",
        model=escape_comment(Path(model.name).name),
        count=len(memories),
        guard=f"{upper}_MEMORIES_H_",
        upper=upper,
        **{"class": _name_class(upper)},
        lowest=f"{lowest:#x}",
        span=end - lowest,
        holes=len(holes),
        rows=", ".join(f"{{{at}, {size}}}" for at, size in holes),
    )
    return made, text


def _layout_of(found: Assigned) -> Layout:
    """Return the layout that was assigned: which tensors share memory."""
    assert found.loaded is not None
    assert found.loaded.layout is not None
    return found.loaded.layout


def _fill(template: str, **words: object) -> str:
    """Return a header: a template of this folder with words in place of their names."""
    text = Path(__file__).with_name(template).read_text()
    return re.sub(r"@(\w+)@", lambda found: str(words[found[1]]), text)


def _name_class(upper: str) -> str:
    return "".join(word.capitalize() for word in upper.split("_")) + "Planner"


def house_in_tflm(
    path: Path,
    given: Variant,
    memories: Sequence[Memory],
    allowed: Mapping[str, Iterable[str]],
    beside: Beside,
    *,
    name: str,
    board: Board | None = None,
    **asked: Any,
) -> Housed:
    """Write a model for TFLM in several memories; see `memplan.runtimes.memories.house`.

    Where all memories have addresses, it is one arena with a hole, if TFLM can have that. Otherwise
    it is a planner for several arenas. `path` is the model as it was, and `given` perhaps in
    another order; `beside` is what TFLM keeps beside its tensors. It is refused if TFLM keeps more
    in a memory than there is.
    """
    stored = parse(given.data, str(path))
    data = unpack(given.data, stored)
    model = stored if data is given.data else parse(data, str(path))
    data, model = _without_offsets(data, model)
    model, _ = put_on_board(model, board)
    notes = given.loaded.notes
    if any(memory.base for memory in memories):
        try:
            files, found = _house_with_hole(
                data, model, given, memories, allowed, beside, name, asked
            )
        except (HoleError, PlanError) as error:
            text = f"one arena with a hole is not possible: {error}; a planner was written instead"
            notes = (*notes, Note(Code.SCRATCH_UNKNOWN, text))
        else:
            how = "one arena with a hole: a model with offsets, and a header with its planner"
            return Housed(found, files, how, (*notes, *_list_notes(beside)))
    kept = _hold_back(memories, beside, 0)
    found = assign_layouts(given.loaded, kept, in_place=True, allowed=allowed, **asked)
    header = make_planner(model, found, name, beside, board)
    files = {f"{name}_memories.h": header.encode()}
    how = "a planner for TFLM, in C++, with an array for each memory"
    if data != path.read_bytes():
        files[f"{name}.tflite"] = data
        how += ", and the model that it is for"
    return Housed(found, files, how, (*notes, *_list_notes(beside)))


def _house_with_hole(
    data: bytes,
    model: Model,
    given: Variant,
    memories: Sequence[Memory],
    allowed: Mapping[str, Iterable[str]],
    beside: Beside,
    name: str,
    asked: Mapping[str, Any],
) -> tuple[dict[str, bytes], Assigned]:
    """Return the files for one arena with a hole, and what is where."""
    if any(memory.capacity is None for memory in memories):
        raise HoleError("a memory has no size")
    highest = max(range(len(memories)), key=lambda at: memories[at].base)
    kept = _hold_back(memories, beside, highest)
    found = assign_layouts(given.loaded, kept, in_place=True, allowed=allowed, **asked)
    end = memories[highest].base + (memories[highest].capacity or 0)
    made, text = make_hole(data, model, found, name, end)
    return {f"{name}.tflite": made, f"{name}_memories.h": text.encode()}, found


def _without_offsets(data: bytes, model: Model) -> tuple[bytes, Model]:
    """Return a file whose buffers TFLM's planner places, and what is in it."""
    if not model.offsets:
        return data, model
    offsets = (-1,) * len(model.offsets)
    return with_offsets(data, model.name, offsets, model), replace(model, offsets=())


def _hold_back(memories: Sequence[Memory], beside: Beside, at: int) -> list[Memory]:
    """Return the memories, one of them without what TFLM keeps beside the plan."""
    made = list(memories)
    capacity = made[at].capacity
    if capacity is None or not beside.bytes:
        return made
    left = (capacity - beside.bytes) // _ALIGNED * _ALIGNED
    if left < 1 or capacity < beside.least:
        need = f"keeps {beside.bytes} bytes in"
        if left > 0:
            need = f"prepares the model in {beside.least} bytes of"
        raise MemplanError(
            f"TFLM {need} {quoted(made[at].name)}, which has {capacity}; name a larger memory first"
        )
    made[at] = replace(made[at], capacity=left)
    return made


def _list_notes(beside: Beside) -> tuple[Note, ...]:
    if beside.unknown:
        text = (
            f"what TFLM keeps for {listed(beside.unknown, quote=False)} beside its tensors is not "
            f"known, and was not left free: {beside.how}"
        )
        return (Note(Code.ARENA_UNMEASURED, text),)
    if beside.bytes is not None:
        return ()
    text = f"what TFLM keeps beside its tensors is unknown, and was not left free: {beside.how}"
    return (Note(Code.ARENA_UNMEASURED, text),)

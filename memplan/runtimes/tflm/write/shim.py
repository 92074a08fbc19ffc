"""Writes a plan as the C struct of TFLM's `NonPersistentMemoryPlannerShim`.

It is for programs that link the plan and keep the model's file as it is
(tensorflow/lite/micro/memory_planner/non_persistent_buffer_planner_shim.h). The shim
identifies buffers only by their order: planned tensors of all sub-graphs, then the kernels'
scratch, as `memplan.runtimes.tflm.measure.list_requests` yields them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memplan.base.errors import MemplanError, quoted
from memplan.problem.plan import Plan
from memplan.programs.sources.options import Board
from memplan.runtimes.c.names import escape_comment, is_free, make_identifiers
from memplan.runtimes.tflm.read.boards import put_on_board
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import load
from memplan.runtimes.tflm.write.planning import find_places, get_layout, plan_file

__all__ = ["shim_header"]

_HEADER = """\
/* Offsets of {model} for TensorFlow Lite Micro, made by memplan.
 *
 * #include "tensorflow/lite/micro/memory_planner/non_persistent_buffer_planner_shim.h"
 *
 *   tflite::NonPersistentMemoryPlannerShim planner(
 *       reinterpret_cast<const tflite::BufferPlan*>(&{name}));
 *
 * Valid for this model and {kernels} only: buffers are identified by their order.
 */
#ifndef {guard}
#define {guard}

#include <stdint.h>

/* Bytes of the arena that the plan needs; TFLM needs more behind them. */
#define {upper}_BYTES {bytes}
#define {upper}_COUNT {count}
{shared}
/* As tflite::BufferPlan (memory_plan_struct.h), with all of its entries. */
typedef struct {{
  int32_t buffer_count;
  struct {{
    int32_t offset;
  }} buffer_plan_entries[{room}];
}} {name}_plan_t;

static const {name}_plan_t {name} = {{
    {upper}_COUNT,
    {{
{entries}
    }},
}};

#endif /* {guard} */
"""


def shim_header(
    model: Path,
    plan: Plan | None = None,
    name: str = "memory_plan",
    *,
    in_place: bool = False,
    replan: bool = False,
    timeout: float | None = None,
    board: Board | None = None,
) -> str:
    """Return a C header, C99 and C++, with the plan of a model.

    Parameters
    ----------
    model
        A `.tflite` file. The shim refuses models with offsets, so the program needs a file without.
    plan
        A plan of it; `None` makes one.
    name
        The name of the variable.
    in_place, replan, timeout
        See `memplan.runtimes.tflm.write.apply`.
    board
        Where the model will run; its kernels ask for other scratch than the reference ones.

    Raises
    ------
    FormatError
        If the file is damaged.
    PlanError
        If the plan does not fit this model.
    MemplanError
        If a variable of C and C++ may not have the name, the plan is above 2^31 - 1 bytes, or the
        file has packed weights (`apply` unpacks them).
    """
    if not is_free(name):
        raise MemplanError(f"{quoted(name)} is not a valid name in C and C++")
    stored = load(model)
    if any(find_folded(stored).values()):
        raise MemplanError(
            f"{model} has float16 or sparse weights, which TFLM does not unpack: write it with "
            "`memplan plan` first, and make the header from its output"
        )
    stored, _ = put_on_board(replace(stored, offsets=()), board)
    made = plan_file(model, plan, in_place=in_place, replan=replan, timeout=timeout, board=board)
    offsets = [at for _, at in find_places(stored, get_layout(made), made.plan)]
    return _HEADER.format(
        model=escape_comment(Path(stored.name).name),
        kernels="the reference kernels" if board is None else str(board),
        name=name,
        guard=f"{name.upper()}_PLAN_H_",
        upper=name.upper(),
        bytes=made.plan.peak or 0,
        shared=_define_shared(made.plan, name.upper()),
        count=len(offsets),
        room=max(1, len(offsets)),
        entries="\n".join(f"        {{{o}}}," for o in offsets or [0]),
    )


def _define_shared(plan: Plan, upper: str) -> str:
    """Return the constants of an arena that several programs share, and of what is kept in it."""
    shared = plan.shared
    if shared is None:
        return ""
    others = ", ".join(name for name in shared.programs if name != shared.program)
    lines = [
        "",
        f"/* Bytes of the arena that it shares with {escape_comment(others)}. */",
        f"#define {upper}_ARENA_BYTES {shared.arena}",
    ]
    if shared.kept:
        lines += ["", "/* What keeps its bytes in that arena until this program runs again. */"]
    names = make_identifiers(each.id for each in shared.kept)
    for name, each in zip(names, shared.kept, strict=True):
        lines.append(f"#define {upper}_KEPT_OFFSET_{name} {each.offset}")
        lines.append(f"#define {upper}_KEPT_SIZE_{name} {each.size}")
    return "\n".join(lines) + "\n"

"""Static memory planning: place every buffer at an offset of one arena, and prove how well.

>>> import memplan as mp
>>> problem = mp.Problem([mp.Buffer("b1", start=0, end=3, size=4)], capacity=12)
>>> plan = mp.solve(problem)
>>> mp.verify(problem, plan)
>>> str(plan.status), plan.peak, plan.lower_bound, plan.offset("b1")
('optimal', 4, 4, 0)
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from memplan.base.drawing import install_artist as _install_artist

if TYPE_CHECKING:
    from memplan.analysis.compare import compare
    from memplan.analysis.explain import explain
    from memplan.analysis.inspection import inspect
    from memplan.answer import Answer, Axis, Part, Step
    from memplan.ask import (
        Machine,
        assign,
        check_answer,
        envelope,
        fit,
        load_answer,
        plan,
        plan_apart,
        plan_blocks,
        plan_together,
        plan_waits,
        recompute,
        reorder,
        save_answer,
    )
    from memplan.base.drawing import Artist as _Artist
    from memplan.base.errors import (
        FormatError,
        InfeasibleError,
        MemplanError,
        MissingExtraError,
        NoPlanError,
        PlanError,
        ProblemError,
        ProofError,
        UnsupportedError,
    )
    from memplan.levers.pipeline import Arranged, Tradeoff, tradeoff
    from memplan.levers.rewrite import (
        Recomputed,
        Reordered,
        verify_order,
        verify_recompute,
    )
    from memplan.levers.rewrite.waits import Waits
    from memplan.machine.blocks import Blocks
    from memplan.machine.memories import Assigned, Memory, Stretch
    from memplan.machine.repack.repacker import Repacker
    from memplan.machine.repack.selection import Selection, pack_most_valuable
    from memplan.problem import Buffer, Gap, Problem, Reserved
    from memplan.problem.formats import load_plan, save
    from memplan.problem.plan import Plan, Status
    from memplan.programs.sources import Loaded, load
    from memplan.referee import verify
    from memplan.scenarios.envelope import Envelope
    from memplan.scenarios.paths import plan_paths
    from memplan.scenarios.together import Together
    from memplan.solvers import Budget, Interrupted, Progress, Round, lower_bound, solve
    from memplan.solvers.apart import Apart
    from memplan.solvers.planning import Planned, plan_model

    __version__: str

__all__ = [
    "Answer",
    "Apart",
    "Arranged",
    "Assigned",
    "Axis",
    "Blocks",
    "Budget",
    "Buffer",
    "Envelope",
    "FormatError",
    "Gap",
    "InfeasibleError",
    "Interrupted",
    "Loaded",
    "Machine",
    "Memory",
    "MemplanError",
    "MissingExtraError",
    "NoPlanError",
    "Part",
    "Plan",
    "PlanError",
    "Planned",
    "Problem",
    "ProblemError",
    "Progress",
    "ProofError",
    "Recomputed",
    "Reordered",
    "Repacker",
    "Reserved",
    "Round",
    "Selection",
    "Status",
    "Step",
    "Stretch",
    "Together",
    "Tradeoff",
    "UnsupportedError",
    "Waits",
    "__version__",
    "assign",
    "check_answer",
    "compare",
    "envelope",
    "explain",
    "fit",
    "inspect",
    "load",
    "load_answer",
    "load_plan",
    "lower_bound",
    "pack_most_valuable",
    "plan",
    "plan_apart",
    "plan_blocks",
    "plan_model",
    "plan_paths",
    "plan_together",
    "plan_waits",
    "recompute",
    "reorder",
    "save",
    "save_answer",
    "solve",
    "tradeoff",
    "verify",
    "verify_order",
    "verify_recompute",
]


# A compiler that solves in memory does not wait for the readers of files, and Ctrl-C while NumPy is
# loaded reaches `__main__`.
_HOMES = {
    "Answer": "memplan.answer",
    "Axis": "memplan.answer",
    "Part": "memplan.answer",
    "Step": "memplan.answer",
    "Machine": "memplan.ask",
    "check_answer": "memplan.ask",
    "load_answer": "memplan.ask",
    "save_answer": "memplan.ask",
    "plan": "memplan.ask",
    "Apart": "memplan.solvers.apart",
    "plan_apart": "memplan.ask",
    "Waits": "memplan.levers.rewrite.waits",
    "plan_waits": "memplan.ask",
    "Arranged": "memplan.levers.pipeline",
    "Blocks": "memplan.machine.blocks",
    "plan_blocks": "memplan.ask",
    "Assigned": "memplan.machine.memories",
    "Memory": "memplan.machine.memories",
    "Stretch": "memplan.machine.memories",
    "assign": "memplan.ask",
    "Together": "memplan.scenarios.together",
    "plan_together": "memplan.ask",
    "Budget": "memplan.solvers",
    "Buffer": "memplan.problem",
    "Envelope": "memplan.scenarios.envelope",
    "FormatError": "memplan.base.errors",
    "Gap": "memplan.problem",
    "Interrupted": "memplan.solvers",
    "Loaded": "memplan.programs.sources",
    "InfeasibleError": "memplan.base.errors",
    "MemplanError": "memplan.base.errors",
    "MissingExtraError": "memplan.base.errors",
    "NoPlanError": "memplan.base.errors",
    "Plan": "memplan.problem.plan",
    "PlanError": "memplan.base.errors",
    "Planned": "memplan.solvers.planning",
    "Problem": "memplan.problem",
    "ProblemError": "memplan.base.errors",
    "Progress": "memplan.solvers",
    "ProofError": "memplan.base.errors",
    "Recomputed": "memplan.levers.rewrite",
    "Reordered": "memplan.levers.rewrite",
    "Repacker": "memplan.machine.repack.repacker",
    "Reserved": "memplan.problem",
    "Round": "memplan.solvers",
    "Selection": "memplan.machine.repack.selection",
    "Status": "memplan.problem.plan",
    "UnsupportedError": "memplan.base.errors",
    "compare": "memplan.analysis.compare",
    "envelope": "memplan.ask",
    "explain": "memplan.analysis.explain",
    "fit": "memplan.ask",
    "inspect": "memplan.analysis.inspection",
    "load": "memplan.programs.sources",
    "load_plan": "memplan.problem.formats",
    "lower_bound": "memplan.solvers",
    "pack_most_valuable": "memplan.machine.repack.selection",
    "plan_model": "memplan.solvers.planning",
    "plan_paths": "memplan.scenarios.paths",
    "recompute": "memplan.ask",
    "reorder": "memplan.ask",
    "save": "memplan.problem.formats",
    "solve": "memplan.solvers",
    "Tradeoff": "memplan.levers.pipeline",
    "tradeoff": "memplan.levers.pipeline",
    "verify": "memplan.referee",
    "verify_order": "memplan.levers.rewrite",
    "verify_recompute": "memplan.levers.rewrite",
}


def __getattr__(name: str) -> object:
    value: object
    if name == "__version__" or name in _HOMES:
        from memplan import _core  # before NumPy, as it refuses sub-interpreters in one sentence

        at_home = name in _HOMES
        value = getattr(import_module(_HOMES[name]), name) if at_home else _core.version()
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _find_artist() -> _Artist:
    from memplan.view import artist

    return artist


_install_artist(_find_artist)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

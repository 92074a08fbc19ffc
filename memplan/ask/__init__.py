"""Questions: programs that levers change, a scenario joins and a machine places; one answer.

programs ──► levers ──► scenario ──► machine ──► Answer
change a   runs joined  parts       axes, parts,
program    to one       placed      notes, proofs
"""

from memplan.ask.checked import check_answer
from memplan.ask.machines import Machine
from memplan.ask.planning import plan
from memplan.ask.presets import (
    assign,
    envelope,
    fit,
    plan_apart,
    plan_blocks,
    plan_together,
    plan_waits,
    recompute,
    reorder,
)
from memplan.ask.saved import load_answer, save_answer

__all__ = [
    "Machine",
    "assign",
    "check_answer",
    "envelope",
    "fit",
    "load_answer",
    "plan",
    "plan_apart",
    "plan_blocks",
    "plan_together",
    "plan_waits",
    "recompute",
    "reorder",
    "save_answer",
]

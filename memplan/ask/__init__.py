"""Questions: programs that levers change, a scenario joins and a machine places; one answer.

programs ──► levers ──► scenario ──► machine ──► Answer
change a   runs joined  parts       axes, parts,
program    to one       placed      notes, proofs
"""

from memplan.ask.machines import Machine
from memplan.ask.planning import plan

__all__ = ["Machine", "plan"]

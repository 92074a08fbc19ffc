"""Questions: programs that levers change, a scenario joins and a machine places; one answer.

programs ──► levers ──► scenario ──► machine ──► Answer
change a   runs joined  parts       axes, parts,
program    to one       placed      notes, proofs
"""

from memplan.ask.checked import check_answer
from memplan.ask.machines import Machine
from memplan.ask.planning import plan
from memplan.ask.saved import load_answer, save_answer

__all__ = ["Machine", "check_answer", "load_answer", "plan", "save_answer"]

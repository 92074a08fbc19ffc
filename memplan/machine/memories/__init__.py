"""Several memories: which buffer lies in which, and what that costs; blocks of limited size."""

from memplan.machine.memories.assigned import Assigned, Stretch
from memplan.machine.memories.assigning import assign
from memplan.machine.memories.blocks import Blocks, plan_blocks
from memplan.machine.memories.memory import Memory

__all__ = ["Assigned", "Blocks", "Memory", "Stretch", "assign", "plan_blocks"]

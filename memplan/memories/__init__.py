"""Several memories: which buffer lies in which, and what that costs; blocks of limited size."""

from memplan.memories.assigned import Assigned, Stretch
from memplan.memories.assigning import assign
from memplan.memories.blocks import Blocks, plan_blocks
from memplan.memories.memory import Memory

__all__ = ["Assigned", "Blocks", "Memory", "Stretch", "assign", "plan_blocks"]

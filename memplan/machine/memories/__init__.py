"""Several memories: which buffer lies in which, and what that costs."""

from memplan.machine.memories.assigned import Assigned, Stretch
from memplan.machine.memories.assigning import assign
from memplan.machine.memories.memory import Memory

__all__ = ["Assigned", "Memory", "Stretch", "assign"]

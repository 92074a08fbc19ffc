"""Memories that are more than one arena: blocks of limited size."""

from memplan.memories.blocks import Blocks, plan_blocks

__all__ = ["Blocks", "plan_blocks"]

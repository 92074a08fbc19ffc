"""Blocks of limited size: as few and as small arenas as possible for one problem."""

from memplan.machine.blocks.planning import Blocks, plan_blocks

__all__ = ["Blocks", "plan_blocks"]

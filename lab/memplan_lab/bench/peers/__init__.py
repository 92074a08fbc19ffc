"""Peers: other planners, with the same problems, limits and referee.

`omnimalloc` and `omnimalloc:NAME` are allocators of the library of that name (extra `peers`), run
in a worker process like our own solvers. Any program that reads and writes MiniMalloc's CSV can
be a peer by its command line.
"""

from memplan_lab.bench.peers.command import Command
from memplan_lab.bench.peers.judge import judge
from memplan_lab.bench.peers.omnimalloc import is_omnimalloc, prepare

__all__ = ["Command", "is_omnimalloc", "judge", "prepare"]

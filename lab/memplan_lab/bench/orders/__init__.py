"""Orders of operators: a suite of graphs, the orders of other tools, and an oracle."""

from memplan_lab.bench.orders.peers import PEERS
from memplan_lab.bench.orders.suite import Case, cases, read, write

__all__ = ["PEERS", "Case", "cases", "read", "write"]

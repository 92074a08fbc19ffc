"""Orders of operators: a suite of graphs, the orders of other tools, an oracle, tables."""

from memplan_lab.bench.orders.measuring import ORACLE, RULES, Row, measure
from memplan_lab.bench.orders.peers import PEERS
from memplan_lab.bench.orders.suite import Case, cases, read, write

__all__ = ["ORACLE", "PEERS", "RULES", "Case", "Row", "cases", "measure", "read", "write"]

"""Operators that run again: a suite of programs, peers written from their papers, tables."""

from memplan_lab.bench.again.measuring import PEERS, Answer, Row, measure
from memplan_lab.bench.again.suite import SHARES, Case, cases

__all__ = ["PEERS", "SHARES", "Answer", "Case", "Row", "cases", "measure"]

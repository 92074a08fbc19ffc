"""What memplan claims of small random questions, against brute force that shares no code with it.

Each kind of question draws what is asked in its own words (`drawing`), asks memplan, and finds the
true answer by trying all (`placing`, `choosing`, `programs`). Then each claim is compared: that a
plan is legal, what it needs, each bound, `optimal` and `infeasible`, and the sentences that are
printed. What memplan leaves open is counted, and is no false claim.
"""

from __future__ import annotations

from memplan_lab.claims.asking import KINDS, Count, ask, ask_many

__all__ = ["KINDS", "Count", "ask", "ask_many"]

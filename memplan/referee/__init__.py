"""The referee: checks plans and proofs against a problem, and knows no solver."""

from memplan.referee.plans import verify
from memplan.referee.proofs import verify_proof

__all__ = ["verify", "verify_proof"]

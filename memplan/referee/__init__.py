"""The referee: checks plans, proofs and orders against a problem, without code of a solver."""

from memplan.referee.ordering import OrderClaim, verify_order
from memplan.referee.plans import verify
from memplan.referee.proofs import verify_proof

__all__ = ["OrderClaim", "verify", "verify_order", "verify_proof"]

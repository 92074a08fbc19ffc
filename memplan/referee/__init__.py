"""The referee: checks plans, proofs, orders, re-runs and envelopes, without code of a solver."""

from memplan.referee.again import RecomputeClaim, verify_recompute
from memplan.referee.apart import verify_apart
from memplan.referee.assigned import MemoryClaim, verify_assigned
from memplan.referee.blocks import verify_blocks
from memplan.referee.envelope import Layers, verify_envelope
from memplan.referee.ordering import OrderClaim, verify_order
from memplan.referee.plans import verify
from memplan.referee.proofs import verify_proof
from memplan.referee.together import Tenant, verify_shared, verify_together

__all__ = [
    "Layers",
    "MemoryClaim",
    "OrderClaim",
    "RecomputeClaim",
    "Tenant",
    "verify",
    "verify_apart",
    "verify_assigned",
    "verify_blocks",
    "verify_envelope",
    "verify_order",
    "verify_proof",
    "verify_recompute",
    "verify_shared",
    "verify_together",
]

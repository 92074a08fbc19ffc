"""Several sizes of one program: its peak as a function, and one plan for all of them."""

from memplan.envelopes.planning import Envelope, envelope
from memplan.envelopes.ranges import Condition, Range
from memplan.envelopes.sizes import Pieces

__all__ = ["Condition", "Envelope", "Pieces", "Range", "envelope"]

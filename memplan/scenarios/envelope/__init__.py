"""Several sizes of one program: its peak as a function, and one plan for all of them."""

from memplan.scenarios.envelope.planning import Envelope, envelope
from memplan.scenarios.envelope.ranges import Condition, Range
from memplan.scenarios.envelope.sizes import Pieces

__all__ = ["Condition", "Envelope", "Pieces", "Range", "envelope"]

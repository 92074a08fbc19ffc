"""Several sizes of one program: its peak as a function, and one plan for all of them."""

from memplan.envelopes.planning import Envelope, envelope
from memplan.envelopes.ranges import parse_values

__all__ = ["Envelope", "envelope", "parse_values"]

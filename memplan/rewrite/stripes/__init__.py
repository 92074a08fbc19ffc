"""Large pictures of a program are computed one band of rows at a time.

Early feature maps of a network for vision are its largest tensors, and none of them has to exist as
a whole: the operators around them can run for a few rows at a time. What a band needs follows from
the operators (`maps`), a program is cut into bands (`cuts`, made in `cutting`), and the best cuts
are chosen by the memory that they need and the work that they repeat (`frontier`).
"""

from memplan.rewrite.stripes.cuts import Action, Cut, Do, Region
from memplan.rewrite.stripes.cutting import cut
from memplan.rewrite.stripes.frontier import MAX_EXTRA, Frontier, Point, find_frontier
from memplan.rewrite.stripes.maps import (
    Blocks,
    Each,
    Feed,
    Joined,
    Map,
    Once,
    Padding,
    Resized,
    Shifted,
    Span,
    Told,
    Transposed,
    Window,
)
from memplan.rewrite.stripes.program import Box, Program, Read, Size, Step

__all__ = [
    "MAX_EXTRA",
    "Action",
    "Blocks",
    "Box",
    "Cut",
    "Do",
    "Each",
    "Feed",
    "Frontier",
    "Joined",
    "Map",
    "Once",
    "Padding",
    "Point",
    "Program",
    "Read",
    "Region",
    "Resized",
    "Shifted",
    "Size",
    "Span",
    "Step",
    "Told",
    "Transposed",
    "Window",
    "cut",
    "find_frontier",
]

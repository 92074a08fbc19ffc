"""Large pictures of a program are computed one band of rows at a time.

Early feature maps of a network for vision are its largest tensors, and none of them has to exist as
a whole: the operators around them can run for a few rows at a time. What a band needs follows from
the operators, which say it themselves (`programs.graph.pictures`). A program is cut into bands
(`cuts`, made in `cutting`), and the best cuts are chosen by the memory that they need and the work
that they repeat (`frontier`).
"""

from memplan.levers.rewrite.bands.cuts import Action, Cut, Do, Region
from memplan.levers.rewrite.bands.cutting import cut
from memplan.levers.rewrite.bands.frontier import MAX_EXTRA, WORK, Frontier, Point, find_frontier
from memplan.levers.rewrite.bands.uncut import Box, Uncut, tell_rows

__all__ = [
    "MAX_EXTRA",
    "WORK",
    "Action",
    "Box",
    "Cut",
    "Do",
    "Frontier",
    "Point",
    "Region",
    "Uncut",
    "cut",
    "find_frontier",
    "tell_rows",
]

"""Seeded generators of problems: the same arguments give the same problem, on any machine.

All random numbers are integers drawn from `numpy.random.Generator(PCG64(...))`, so that problems do
not depend on the maths library.
"""

from memplan_lab.bench.generators.dense import dense
from memplan_lab.bench.generators.flat_load import flat_load
from memplan_lab.bench.generators.microbenchmarks import full_overlap, non_overlapping
from memplan_lab.bench.generators.networks import nn_like, training_like
from memplan_lab.bench.generators.noise import with_size_noise
from memplan_lab.bench.generators.packing import Packing
from memplan_lab.bench.generators.perfect import perfect_packing, perfect_packing_solved
from memplan_lab.bench.generators.robustness import FAMILIES, UNCUT, Known, robustness
from memplan_lab.bench.generators.streams import multi_stream, pangu_like
from memplan_lab.bench.generators.synthetic import synthetic, synthetic_solved

__all__ = [
    "FAMILIES",
    "UNCUT",
    "Known",
    "Packing",
    "dense",
    "flat_load",
    "full_overlap",
    "multi_stream",
    "nn_like",
    "non_overlapping",
    "pangu_like",
    "perfect_packing",
    "perfect_packing_solved",
    "robustness",
    "synthetic",
    "synthetic_solved",
    "training_like",
    "with_size_noise",
]

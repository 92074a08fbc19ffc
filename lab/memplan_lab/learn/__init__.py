"""Learned backtracking (TelaMalloc, section 6): samples, the trained model, and its evaluation.

    from memplan_lab import learn

    samples = learn.collect(learn.of_seeds("synthetic", range(1000, 1010)))
    model = learn.train(samples)
    rows = learn.evaluate(learn.of_corpus("second"), model)

Samples depend only on seeds and node limits, so they can be collected again. Training needs the
extra `learn`; a trained model needs nothing.
"""

from memplan_lab.learn.collecting import collect
from memplan_lab.learn.evaluating import Row, evaluate
from memplan_lab.learn.instances import FAMILIES, HALVES, Instance, of_corpus, of_files, of_seeds
from memplan_lab.learn.samples import Samples, join, load
from memplan_lab.learn.training import train

__all__ = [
    "FAMILIES",
    "HALVES",
    "Instance",
    "Row",
    "Samples",
    "collect",
    "evaluate",
    "join",
    "load",
    "of_corpus",
    "of_files",
    "of_seeds",
    "train",
]

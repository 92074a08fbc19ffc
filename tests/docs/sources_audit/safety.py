"""Counts unsafe pairs by each algorithm."""

import memplan
from memplan.programs.graph import unsafe_pairs

graph = memplan.load("streams.json").graph
for algorithm in ("1", "1opt", "2", "memplan"):
    print(algorithm, len(unsafe_pairs(graph, algorithm=algorithm)), "unsafe pairs")

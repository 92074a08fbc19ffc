"""Runs the network from a slab, and compares."""

import torch
from net import make_model

import memplan
from memplan.extensions.slab import Slab, record

model, inputs = make_model()
trace = record(model, inputs)
plan = memplan.solve(trace.problem(), "greedy_by_size")
with torch.no_grad(), Slab(plan, trace) as fast:
    same = torch.equal(fast(*inputs), model(*inputs))
    print(f"all from the slab: {fast.stats().hits == len(trace.planned)}, equal: {same}")

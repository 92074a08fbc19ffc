"""Runs a training step from a slab."""

import torch
from net import make_model
from torch.nn.functional import cross_entropy

import memplan
from memplan.extensions.slab import Slab, record

model, (images,) = make_model()
classes = torch.randint(0, 10, (2,))
optimizer = torch.optim.SGD(model.train().parameters())


def step(images, classes):
    """Return the loss of a step."""
    optimizer.zero_grad()
    loss = cross_entropy(model(images), classes)
    loss.backward()
    optimizer.step()
    return loss.detach()


trace = record(step, (images, classes), trains=model)
with Slab(memplan.solve(trace.problem()), trace) as fast:
    fast(images, classes)
    print("all from the slab:", fast.stats().hits == len(trace.planned))

"""Captures a training step with streams and groups."""

import torch
from torch import nn

from memplan.extensions.streams.training import training_step
from memplan.programs.graph.layout import lay_out

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
step = training_step(
    model,
    (torch.randn(4, 64),),
    loss=lambda y: y.square().mean(),
    streams="category",
    bucket_bytes=1 << 16,
)
streams = {operator.stream for operator in step.operators}
print(f"{len(streams)} streams, {len(step.groups)} groups, {len(lay_out(step).problem)} buffers")

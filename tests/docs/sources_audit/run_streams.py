"""Trains on parallel streams, under delays and poison."""

import torch
from torch import nn

import memplan
from memplan.extensions.streams import StreamRunner, capture_training

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
x = torch.randn(4, 64)
program = capture_training(model, (x,), loss=lambda y: y.square().mean(), optimizer="sgd", lr=0.01)
step = StreamRunner(memplan.solve(program.problem), program)
before = float(step(x))
after = float(step.rehearse(x, seed=1))
print("trains under delays and poison:", after < before)

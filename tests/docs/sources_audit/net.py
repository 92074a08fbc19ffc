"""A small network with its inputs."""

import torch
from torch import nn


def make_model():
    """Return the network and its inputs."""
    layers = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1800, 10)
    return nn.Sequential(*layers).eval(), (torch.randn(2, 3, 32, 32),)

"""What several networks are made of."""

from __future__ import annotations

from typing import Any

from memplan_lab.extras import require

__all__ = ["Branches", "Residual", "convolution"]

torch = require("torch", extra="torch")
nn: Any = torch.nn
Module: Any = nn.Module


class Residual(Module):  # type: ignore[misc]
    """`activation(body(x) + shortcut(x))`."""

    def __init__(self, body: Any, shortcut: Any = None, activation: Any = None) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut or nn.Identity()
        self.activation = activation or nn.Identity()

    def forward(self, x: Any) -> Any:
        """Return a tensor of the shape that `body` makes."""
        return self.activation(self.body(x) + self.shortcut(x))


class Branches(Module):  # type: ignore[misc]
    """Several layers on the same input, with their outputs joined by channel."""

    def __init__(self, *branches: Any) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Any) -> Any:
        """Return the channels of all branches, in their order."""
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def convolution(
    inputs: int,
    outputs: int,
    kernel: int,
    *,
    stride: int = 1,
    groups: int = 1,
    dilation: int = 1,
    activation: Any = nn.ReLU,
) -> Any:
    """Return a convolution that keeps the size (at stride 1), batch norm, and an activation."""
    padding = dilation * (kernel // 2)
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))

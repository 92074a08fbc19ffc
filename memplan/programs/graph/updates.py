"""Whether an operator writes into the memory of its inputs."""

from __future__ import annotations

from memplan.programs.graph.model import Operator

__all__ = ["updates"]


def updates(operator: Operator) -> bool:
    """Return whether an operator writes to one of its inputs, by the rule of PyTorch's names."""
    name = operator.type.rsplit("::", 1)[-1].split(".")
    return any(word.endswith("_") and not word.endswith("__") for word in name)

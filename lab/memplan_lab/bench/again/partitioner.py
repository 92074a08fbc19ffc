"""The min-cut partitioner of PyTorch with a memory budget, and what its training steps need.

`torch._functorch` cuts the joint graph into a forward and a backward pass, and chooses what the
forward pass keeps. With `activation_memory_budget` below 1, it solves a knapsack over what to make
again instead. The budget is a share of what the forward pass would keep, and not of the peak; a
smaller budget may need more (pytorch issue 197838).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memplan_lab.extras import require

__all__ = ["partition", "run_step"]


def partition(model: Any, budget: float) -> Callable[..., Any]:
    """Return a model whose passes are cut by the partitioner when it is first called."""
    compilers = require("functorch.compile", extra="corpus")
    config = require("torch._functorch.config", extra="corpus")
    made = compilers.aot_module(
        model,
        fw_compiler=compilers.nop,
        bw_compiler=compilers.nop,
        partition_fn=compilers.min_cut_rematerialization_partition,
    )

    def cut(*args: Any) -> Any:
        with config.patch(activation_memory_budget=budget):
            return made(*args)

    return cut


def run_step(
    call: Callable[..., Any], model: Any, args: tuple[Any, ...], loss: Callable[[Any], Any]
) -> list[Any]:
    """Do one step without an optimizer; return the loss and the gradients."""
    model.zero_grad(set_to_none=True)
    result = loss(call(*args))
    result.backward()
    return [result.detach(), *(each.grad for each in model.parameters())]

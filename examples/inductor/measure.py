"""Ten networks by three planners of torch.compile: `python measure.py [--run] [NETWORK ...]`.

Bytes are counted from the lines that Inductor generates; nothing is compiled. With `--run`, each
network is compiled in each way and runs: bytes are then the profiler's, and outputs are compared.
"""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from networks import NETWORKS
from planning import Choice, planning
from torch._inductor import config
from torch._inductor.graph import GraphLowering
from torch.profiler import ProfilerActivity, profile
from torch.utils._pytree import tree_leaves


class _NotRunError(Exception):
    pass


@contextmanager
def _generated_only() -> Iterator[None]:
    """Let Inductor generate its code without compiling it."""
    stock = GraphLowering._compile_to_module

    def generate(self: Any) -> Any:
        self.codegen()
        module = types.ModuleType("generated")
        module.__file__ = "generated"

        def call(_: object) -> None:
            raise _NotRunError

        module.call = call  # type: ignore[attr-defined]
        return module

    GraphLowering._compile_to_module = generate
    try:
        yield
    finally:
        GraphLowering._compile_to_module = stock


def count(model: Any, inputs: tuple[Any, ...], **how: Any) -> Choice:
    """Return what a model needs in each way, from the generated lines."""
    torch._dynamo.reset()
    with (
        torch.no_grad(),
        config.patch(compile_threads=1),
        planning() as choices,
        _generated_only(),
        suppress(_NotRunError),
    ):
        torch.compile(model, **how)(*inputs)
    (choice,) = choices
    return choice


def run(model: Any, inputs: tuple[Any, ...], way: str) -> tuple[int, str]:
    """Return the most bytes that a compiled model held, and a hash of its outputs."""
    torch._dynamo.reset()
    with torch.no_grad(), config.patch(compile_threads=1):
        with planning() if way == "auto" else config.patch(memory_planning=way == "stock"):
            compiled = torch.compile(model)
            outputs = tree_leaves(compiled(*inputs))
        digest = hashlib.sha256(b"".join(each.numpy().tobytes() for each in outputs))
        compiled(*inputs)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            compiled(*inputs)
    held = peak = 0
    for _, size in sorted(_list_allocations(profiled)):
        held += size
        peak = max(peak, held)
    return peak, digest.hexdigest()[:12]


def _list_allocations(profiled: Any) -> Iterator[tuple[int, int]]:
    """Yield the time and the bytes of each allocation; those of a free are below zero."""
    waiting = list(profiled.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if "Allocation" in str(event.tag):
            yield event.start_time_ns, event.extra_fields.alloc_size


def main(arguments: list[str]) -> None:
    """Print a line for each network."""
    torch.set_num_threads(1)
    print("| network | default | `memory_planning=True` | memplan | auto |")
    for name in [each for each in arguments if each != "--run"] or NETWORKS:
        torch.manual_seed(0)
        model, inputs = NETWORKS[name]()
        model.eval()
        choice = count(model, inputs)
        peaks = f"{choice.default:,} | {choice.stock:,} | {choice.memplan:,} | {choice.chosen}"
        print(f"| {name} | {peaks} |", flush=True)
        if "--run" in arguments:
            found = {way: run(model, inputs, way) for way in ("default", "stock", "auto")}
            print({"profiler": found, "equal": len({each for _, each in found.values()}) == 1})


if __name__ == "__main__":
    main(sys.argv[1:])

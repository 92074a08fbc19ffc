"""Turns the operators of a program into functions that write their results where they are planned.

Most operators of PyTorch have a variant that writes its result into a given tensor. The others make
their result in ordinary memory, from which it is copied into the slab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch

from memplan.base.errors import UnsupportedError, quoted
from memplan.extensions.streams.memory import Memory
from memplan.extensions.streams.program import Program
from memplan.programs.graph import Operator
from memplan.runtimes.torch.read.builder import shorten_type
from memplan.runtimes.torch.read.scope import never_drops, results_of

__all__ = ["Action", "Reduce", "check_random", "make_actions"]

Reduce = Callable[[torch.Tensor], object]

_MOMENTUM = 0.9
_BETAS = (0.9, 0.999)  # these, and the next one, are torch's defaults
_EPSILON = 1e-8


@dataclass(frozen=True, slots=True)
class Action:
    """What an operator does."""

    run: Callable[[], object]
    copied: bool = False


def make_actions(
    program: Program, memory: Memory, reduce: Reduce | None, steps: Callable[[], int]
) -> list[Action]:
    """Return the action of each operator of a program.

    `reduce` reduces a bucket in place, and `steps` gives the number of the present step, from 1,
    for Adam. An operator that has sub-graphs, writes over its inputs, or needs a size that is known
    only at run time, is refused.
    """
    nodes = {node.name: node for node in program.origin.exported.graph.nodes}
    found = []
    for operator in program.graph.operators:
        tensors = [memory.tensors[index] for index in operator.inputs if index in memory.tensors]
        if operator.blocks:
            raise UnsupportedError(
                f"operator {quoted(operator.name)} runs sub-graphs ({operator.type}); programs on "
                "streams cannot have these"
            )
        if operator.type == "all_reduce":
            found.append(_all_reduce(memory.flat(operator.inputs), reduce))
        elif operator.type in ("sgd", "adam"):
            gradient = memory.tensors[_find_gradient(program, operator)]
            parameter, _, *state = tensors
            if operator.type == "sgd":
                found.append(_sgd(parameter, gradient, state[0], program.lr))
            else:
                scratch = memory.workspaces[operator.name].view(parameter.dtype)
                scratch = scratch[: parameter.numel()].view(parameter.shape)
                found.append(_adam(parameter, gradient, state, scratch, program.lr, steps))
        elif operator.type == "aten.copy_":
            new, old = tensors
            found.append(_copy(old, new))
        elif operator.origin is None and operator.type == "aten.clone":  # of a gradient
            found.append(_copy(memory.tensors[operator.outputs[0]], tensors[0]))
        else:
            node = nodes.get(operator.origin)
            if node is None or shorten_type(str(node.target)) != operator.type:
                raise UnsupportedError(
                    f"operator {quoted(operator.name)} is not in the captured model; run the "
                    "program that was captured, with other streams if you like"
                )
            found.append(_call(program, memory, operator, node))
    return found


def check_random(program: Program) -> None:
    """Check that all random numbers are drawn on one stream, so that their order is fixed."""
    nodes = {node.name: node for node in program.origin.exported.graph.nodes}
    first: Operator | None = None
    for operator in program.graph.operators:
        node = nodes.get(operator.origin)
        tags = getattr(getattr(node, "target", None), "tags", ())
        if torch.Tag.nondeterministic_seeded not in tags or never_drops(node):
            continue
        first = first or operator
        if operator.stream != first.stream:
            raise UnsupportedError(
                f"{quoted(first.name)} and {quoted(operator.name)} draw random numbers on streams "
                f"{first.stream} and {operator.stream}, so results would depend on their order; "
                "put them on one stream"
            )


def _find_gradient(program: Program, update: Operator) -> int:
    """Return the gradient that an update reads, with the strides of the backward pass."""
    parameter, reduced = update.inputs[:2]
    base = {view.tensor: view.base for view in program.graph.views}
    gradient = program.gradients[parameter]
    whole = base.get(gradient, gradient)
    return gradient if base[reduced] == whole else reduced


def _all_reduce(bucket: torch.Tensor, reduce: Reduce | None) -> Action:
    return Action(lambda: None if reduce is None else reduce(bucket))


def _copy(to: torch.Tensor, source: torch.Tensor) -> Action:
    return Action(lambda: to.copy_(source))


def _sgd(
    parameter: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor, lr: float
) -> Action:
    def run() -> None:
        momentum.mul_(_MOMENTUM).add_(gradient)
        parameter.add_(momentum, alpha=-lr)

    return Action(run)


def _adam(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    state: list[torch.Tensor],
    scratch: torch.Tensor,
    lr: float,
    steps: Callable[[], int],
) -> Action:
    first, second = state

    def run() -> None:
        left = [1 - beta ** steps() for beta in _BETAS]
        first.lerp_(gradient, 1 - _BETAS[0])
        second.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
        torch.sqrt(second, out=scratch).div_(sqrt(left[1])).add_(_EPSILON)
        parameter.addcdiv_(first, scratch, value=-lr / left[0])

    return Action(run)


def _call(program: Program, memory: Memory, operator: Operator, node: Any) -> Action:
    target = node.target
    schema = getattr(target, "_schema", None)
    if schema is None or schema.is_mutable:
        raise UnsupportedError(
            f"operator {quoted(operator.name)} ({operator.type}) writes over its inputs or is not "
            "an operator of PyTorch; programs on streams cannot run it"
        )

    def find(argument: Any) -> torch.Tensor:
        index = program.origin.indices.get(argument.name)
        if index is None:
            raise UnsupportedError(
                f"operator {quoted(operator.name)} reads {quoted(argument.name)}, a number that is "
                "known only at run time"
            )
        return memory.tensors[index]

    args = torch.fx.node.map_arg(node.args, find)
    kwargs = torch.fx.node.map_arg(node.kwargs, find)
    outputs = [index for index in operator.outputs if index in memory.tensors]
    results = [memory.tensors[index] for index in outputs]
    views = {view.tensor for view in program.graph.views}
    own = [index not in views for index in outputs]
    variant = _find_variant(target, len(results), memory.device) if all(own) else None
    if variant is not None:
        overload, names = variant
        options = {**kwargs, **dict(zip(names, results, strict=True))}
        return Action(lambda: overload(*args, **options))

    def run() -> None:
        made = results_of(node, target(*args, **kwargs))
        for tensor, result, is_own in zip(_iterate_tensors(made), results, own, strict=True):
            if is_own:
                if tensor.shape != result.shape:
                    raise UnsupportedError(
                        f"operator {quoted(operator.name)} made a result of shape "
                        f"{tuple(tensor.shape)}; when it was captured, it was {tuple(result.shape)}"
                    )
                result.copy_(tensor)

    return Action(run, copied=True)


def _find_variant(target: Any, results: int, device: torch.device) -> tuple[Any, list[str]] | None:
    """Return the variant of an operator that writes into given tensors, and what these are called.

    It has the same parameters, in the same order, and one more for each result.
    """
    wanted = [(one.name, str(one.type)) for one in target._schema.arguments]
    packet = target.overloadpacket
    for name in packet.overloads():
        overload = getattr(packet, name)
        out = [one.name for one in overload._schema.arguments if one.is_out]
        rest = [(one.name, str(one.type)) for one in overload._schema.arguments if not one.is_out]
        if len(out) == results == len(target._schema.returns) and rest == wanted:
            key = "CUDA" if device.type == "cuda" else "CPU"
            full = overload.name()
            if torch._C._dispatch_has_computed_kernel_for_dispatch_key(full, key):
                return overload, out
    return None


def _iterate_tensors(made: Any) -> Iterator[torch.Tensor]:
    if isinstance(made, torch.Tensor):
        yield made
    elif isinstance(made, (list, tuple)):
        for one in made:
            yield from _iterate_tensors(one)

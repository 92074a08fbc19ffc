"""Captures forward and backward pass of a module, and the gradient of each parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from memplan.programs.graph import Graph, Kind
from memplan.runtimes.torch.read.builder import graph_with_indices
from memplan.runtimes.torch.read.memory import program_in_memory
from memplan.runtimes.torch.read.program import Exported
from memplan.runtimes.torch.read.training import training_program

__all__ = ["Captured", "Origin", "capture", "without_views"]


@dataclass(frozen=True)
class Captured:
    """The two passes, before the gradients are used."""

    graph: Graph  # on one stream; its outputs are the loss alone
    gradients: dict[int, int]


@dataclass(frozen=True)
class Origin:
    """What a graph was captured from, for those who run it."""

    exported: Any  # the `torch.export.ExportedProgram`
    program: Exported  # the same as operators and tensors
    indices: dict[str, int]  # by name of a tensor in these: its index in the graph


def capture(
    model: Any, inputs: tuple[Any, ...], loss: Callable[[Any], Any] | None = None
) -> tuple[Captured, Origin]:
    """Trace a module with fake tensors; see `training_program` for the parameters."""
    exported = training_program(model, inputs, loss)
    program = program_in_memory(exported, {})
    graph, indices = graph_with_indices(program)
    parameter_of = {
        spec.arg.name: spec.target
        for spec in exported.graph_signature.output_specs
        if spec.kind.name == "GRADIENT_TO_PARAMETER"
    }
    given = {one.label: indices[one.value.name] for one in program.inputs}
    # The builder keeps the order of the outputs.
    results = dict(zip(dict.fromkeys(program.outputs), graph.outputs, strict=True))
    gradient_of = {given[parameter_of[name]]: results[name] for name in parameter_of}
    gradients = {parameter: gradient_of[parameter] for parameter in sorted(gradient_of)}
    found = set(gradients.values())
    tensors = tuple(
        replace(tensor, kind=Kind.INTERMEDIATE) if index in found else tensor
        for index, tensor in enumerate(graph.tensors)
    )
    captured = replace(
        without_views(graph),
        name=f"training step of {type(model).__name__}",
        tensors=tensors,
        outputs=tuple(index for index in graph.outputs if index not in found),
    )
    return Captured(captured, gradients), Origin(exported, program, indices)


def without_views(graph: Graph) -> Graph:
    """Return a graph without the operators that make only views, as these do nothing at run time.

    Readers of such a view wait for the maker of its base.
    """
    views = {view.tensor for view in graph.views}
    operators = (
        operator
        for operator in graph.operators
        if not operator.outputs or not views.issuperset(operator.outputs)
    )
    return replace(graph, operators=tuple(operators))

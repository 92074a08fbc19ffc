"""Captures a model as operators on streams that can be run: inference, or a training step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from memplan.base.errors import GraphError, MemplanError, UnsupportedError
from memplan.extensions.streams.order import order_writes, spread
from memplan.extensions.streams.training import Optimizer, Streams, trace_step
from memplan.extensions.streams.training.capture import Origin, without_views
from memplan.extensions.streams.training.step import BUCKET_BYTES, LIMIT
from memplan.problem import Problem
from memplan.programs.graph import Graph, Layout, lay_out
from memplan.runtimes.torch.read.builder import graph_with_indices
from memplan.runtimes.torch.read.memory import program_in_memory

__all__ = ["Program", "capture_inference", "capture_training"]


@dataclass(frozen=True, eq=False)
class Program:
    """A model as operators on streams; made by `capture_inference` or `capture_training`.

    Attributes
    ----------
    graph
        The operators, their streams and waits. Weights, optimizer state and inputs are not planned.
    origin
        What it was captured from.
    tensors
        By index in the graph: the model's own tensor, for weights, buffers and constants.
    gradients
        By index of a parameter: that of its gradient, as the backward pass makes it.
    lr
        The learning rate.
    """

    graph: Graph
    origin: Origin
    tensors: Mapping[int, torch.Tensor]
    gradients: Mapping[int, int]
    lr: float = 0.0

    @cached_property
    def layout(self) -> Layout:
        """The storages of the graph."""
        return lay_out(self.graph)

    @property
    def problem(self) -> Problem:
        """The problem to plan: its conflicts are what the streams may need at the same time."""
        return self.layout.problem

    def on_streams(self, streams: Sequence[int]) -> Program:
        """Return the same program with other streams.

        Parameters
        ----------
        streams
            For each operator of the graph, the number of its stream, at least 0.

        Raises
        ------
        GraphError
            If there is not one number for each operator, or a number is negative.
        """
        operators = self.graph.operators
        if len(streams) != len(operators) or min(streams, default=0) < 0:
            raise GraphError(
                f"{len(streams)} streams were given; there are {len(operators)} operators, and "
                "each needs a stream of at least 0"
            )
        moved = tuple(
            replace(one, stream=stream) for one, stream in zip(operators, streams, strict=True)
        )
        return replace(self, graph=order_writes(replace(self.graph, operators=moved)))


def capture_inference(model: Any, inputs: tuple[Any, ...], *, streams: int = 2) -> Program:
    """Capture a forward pass; branches of the model run on different streams.

    An operator continues the stream of an operator that it reads from, if that one is the last
    there so far; otherwise it goes to the stream with the fewest operators.

    Parameters
    ----------
    model
        A `torch.nn.Module` with weights.
    inputs
        What it is called with; shapes are those of all later calls.
    streams
        The most streams, at least 1. `Program.on_streams` sets them for each operator.

    Raises
    ------
    MemplanError
        If torch cannot export the model, its weights have no values, it writes over an input, or
        `streams` is below 1.
    """
    if streams < 1:
        raise MemplanError(f"streams is {streams}; it must be at least 1")
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on parts of torch that torch itself uses
            exported = torch.export.export(model, inputs).run_decompositions({})
    except Exception as error:  # torch raises errors of many types here
        reason = str(error).strip().partition("\n")[0]
        raise MemplanError(f"torch cannot export the model: {reason}") from error
    for spec in exported.graph_signature.output_specs:
        if spec.kind.name == "USER_INPUT_MUTATION":
            raise UnsupportedError(
                f"the model writes over its input {spec.target}; change it to return a new tensor"
            )
    program = program_in_memory(exported, {})
    graph, indices = graph_with_indices(program)
    graph = order_writes(spread(without_views(graph), streams))
    origin = Origin(exported, program, indices)
    return Program(graph, origin, _find_given(origin, model, ""), {})


def capture_training(
    model: Any,
    inputs: tuple[Any, ...],
    *,
    loss: Callable[[Any], Any] | None = None,
    optimizer: Optimizer = "sgd",
    lr: float = 1e-3,
    bucket_bytes: int = BUCKET_BYTES,
    streams: Streams = "overlap",
    limit: int = LIMIT,
) -> Program:
    """Capture a step of data-parallel training: both passes, all-reduces and updates.

    A run updates the parameters and buffers of the model in place. The optimizers have the defaults
    of torch, except that SGD has a momentum of 0.9; their state begins with zeros.

    Parameters
    ----------
    model
        A `torch.nn.Module` with weights.
    inputs, loss, optimizer, bucket_bytes, streams, limit
        As for `memplan.extensions.streams.training.training_step`.
    lr
        The learning rate.

    Raises
    ------
    MemplanError
        As `training_step`; if the weights have no values; and if an update comes before an operator
        that reads the old value.
    """
    graph, captured, origin = trace_step(
        model,
        inputs,
        loss=loss,
        optimizer=optimizer,
        bucket_bytes=bucket_bytes,
        streams=streams,
        limit=limit,
    )
    given = _find_given(origin, model, "model.")
    return Program(order_writes(graph), origin, given, captured.gradients, lr)


def _find_given(origin: Origin, model: Any, prefix: str) -> dict[int, torch.Tensor]:
    """Return the model's own tensors by index in the graph.

    The export may have copies of constants only; parameters and buffers are those of the model.
    """
    found = {}
    named = {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
    for spec in origin.exported.graph_signature.input_specs:
        index = origin.indices.get(getattr(spec.arg, "name", ""))
        if index is None or spec.target is None:
            continue
        tensor = named.get(spec.target.removeprefix(prefix))
        tensor = origin.exported.constants.get(spec.target) if tensor is None else tensor
        if not _has_values(tensor):
            raise MemplanError(
                f"weight {spec.target} of the model has no values; load weights before the capture"
            )
        found[index] = tensor.detach()
    return found


def _has_values(tensor: Any) -> bool:
    fake = torch._subclasses.fake_tensor.FakeTensor
    return (
        isinstance(tensor, torch.Tensor)
        and not isinstance(tensor, fake)
        and tensor.device.type != "meta"
    )

"""Data-parallel training steps of PyTorch modules, with the streams that they run on.

Forward and backward pass are captured through AOTAutograd with fake tensors, so that no weights are
needed and nothing is computed. The operators of `DistributedDataParallel` and of the optimizer
follow them:

    compute         forward -> backward ---------------------> updates
                                 |  gradients of a bucket        ^
    communication                +-> all-reduce, in place -------+
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

from memplan.base.errors import MemplanError, shown
from memplan.extensions.streams.training.step import (
    BUCKET_BYTES,
    LIMIT,
    Optimizer,
    Streams,
    assemble,
    assign_streams,
)
from memplan.programs.graph import Graph

if TYPE_CHECKING:
    from memplan.extensions.streams.training.capture import Captured, Origin

__all__ = ["Optimizer", "Streams", "trace_step", "training_step"]


def training_step(
    model: Any,
    inputs: tuple[Any, ...],
    *,
    loss: Callable[[Any], Any] | None = None,
    optimizer: Optimizer = "sgd",
    bucket_bytes: int = BUCKET_BYTES,
    streams: Streams = "ddp",
    limit: int = LIMIT,
) -> Graph:
    """Return the graph of one step of data-parallel training.

    Gradients are gathered in buckets in the order in which the backward pass makes them, as
    `DistributedDataParallel` does from its second step on. A bucket is a contiguous group, and an
    operator all-reduces it in place. Results that are only views of others are no operators.
    Parameters and the optimizer's state are variables: they are not planned unless asked for.

    Parameters
    ----------
    model
        A `torch.nn.Module`; its weights may be fake (made in torch's `FakeTensorMode`), and so may
        the inputs. Whether dropout and batch norm act as in training is the module's own
        `training`.
    inputs
        What it is called with.
    loss
        Makes a scalar of what the module returns; by default the module returns its loss.
    optimizer
        "sgd" with momentum, or "adam", which takes scratch of a parameter's size for its update;
        each runs an operator for every parameter.
    bucket_bytes
        The size at which a bucket is full, at least 1; the first bucket is full at 1 MiB.
    streams
        "ddp": all-reduces on a stream of their own, updates in the end, behind the backward pass.
        "overlap": updates behind the all-reduce of their bucket, on its stream, while the backward
        pass goes on. "category": the same, on streams of up to `limit` operators for compute,
        communication and updates each (SOMAS, section 5.1). "one": as "ddp", without a second
        stream.
    limit
        Of operators on a stream of a category, at least 1.

    Raises
    ------
    MemplanError
        For an unknown optimizer or partition, a bucket or stream of less than 1, if no parameter
        is trained or one that is has no gradient, and if torch is not installed.
    """
    return trace_step(
        model,
        inputs,
        loss=loss,
        optimizer=optimizer,
        bucket_bytes=bucket_bytes,
        streams=streams,
        limit=limit,
    )[0]


def trace_step(
    model: Any,
    inputs: tuple[Any, ...],
    *,
    loss: Callable[[Any], Any] | None,
    optimizer: Optimizer,
    bucket_bytes: int,
    streams: Streams,
    limit: int,
) -> tuple[Graph, Captured, Origin]:
    """Return the graph of `training_step`, and what it was made from, for a runtime."""
    for what, value, known in (
        ("optimizer", optimizer, get_args(Optimizer)),
        ("partition into streams", streams, get_args(Streams)),
    ):
        if value not in known:
            raise MemplanError(f"there is no {what} {shown(value)}; choose {', '.join(known)}")
    for name, number in (("bucket_bytes", bucket_bytes), ("limit", limit)):
        if number < 1:
            raise MemplanError(f"{name} is {number}; it must be at least 1")

    from memplan.extensions.streams.training.capture import capture

    captured, origin = capture(model, inputs, loss)
    step = assemble(captured, optimizer, bucket_bytes, early=streams in ("overlap", "category"))
    return assign_streams(step, streams, limit), captured, origin

"""Ways to run a network, each of which is another problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from memplan.base.errors import MemplanError
from memplan.extensions.streams.training import Optimizer, Streams
from memplan.extensions.streams.training.capture import Captured
from memplan.extensions.streams.training.step import BUCKET_BYTES, LIMIT, assemble, assign_streams
from memplan.problem import Problem
from memplan.programs.graph import Graph, lay_out
from memplan_lab.corpus.precision import fold_norms
from memplan_lab.corpus.recording import Recording, record
from memplan_lab.corpus.scratchpad import on_scratchpad
from memplan_lab.corpus.shapes import Shaped, graph_of, problem_of
from memplan_lab.extras import require

__all__ = [
    "Ready",
    "generation",
    "inference",
    "int8",
    "record_inference",
    "record_training",
    "scratchpad",
    "streams",
    "training",
]

torch = require("torch", extra="corpus")


@dataclass(frozen=True)
class Ready:
    """A module on the meta device, and what to call it with."""

    module: Any  # A `torch.nn.Module`
    # args, kwargs: Its arguments.
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], Any] = lambda result: result  # makes a scalar of its result, for training

    def __call__(self) -> Any:
        """Call the module."""
        return self.module(*self.args, **self.kwargs)

    @property
    def weights(self) -> Iterable[Any]:
        """All parameters and buffers."""
        return chain(self.module.parameters(), self.module.buffers())


Build = Callable[[], Ready]


def inference(build: Build) -> Problem:
    """Return the problem of one call in eager mode, without gradients."""
    return problem_of(record_inference(build()))


def generation(build: Build, tokens: int) -> Problem:
    """Return the problem of reading a prompt and making some tokens; keys and values are cached.

    Each step copies the cache into a larger one, as eager mode does.
    """
    ready = build()
    ready.module.eval()
    batch = ready.kwargs["input_ids"].shape[0]

    def run() -> Any:
        with torch.no_grad():
            result = ready.module(**ready.kwargs, use_cache=True)
            for _ in range(tokens):
                token = torch.empty(batch, 1, dtype=torch.long, device="meta")
                cache = result.past_key_values
                result = ready.module(input_ids=token, past_key_values=cache, use_cache=True)
        return result

    return problem_of(record(run, ready.weights))


def training(build: Build, gradients: Literal["kept", "released"]) -> Problem:
    """Return the problem of a forward and backward pass in eager mode.

    Gradients of parameters are kept for an optimizer, or released as soon as they are there, as by
    one that is fused with the backward pass.
    """
    return problem_of(record_training(build(), gradients))


def int8(build: Build) -> Problem:
    """Return the problem of inference as it is compiled, quantised to eight bits."""
    return lay_out(_graph_of_inference(build(), quantised=True)).problem.without_alignment()


def scratchpad(build: Build, tiles: int, chunk: int) -> Problem:
    """Return the problem of quantised inference from a scratchpad; see `corpus.scratchpad`."""
    return on_scratchpad(_graph_of_inference(build(), quantised=True), tiles, chunk)


def streams(build: Build, partition: Streams, optimizer: Optimizer) -> Problem:
    """Return the problem of a data-parallel training step on streams; see `torch_training`."""
    ready = build()
    recording = record_training(ready, "kept")
    early = partition in ("overlap", "category")
    step = assemble(_capture(ready, recording), optimizer, BUCKET_BYTES, early=early)
    return lay_out(assign_streams(step, partition, LIMIT)).problem.without_alignment()


def record_inference(ready: Ready) -> Recording:
    """Record one call without gradients."""
    ready.module.eval()

    def run() -> Any:
        with torch.no_grad():
            return ready()

    return record(run, ready.weights)


def _graph_of_inference(ready: Ready, *, quantised: bool) -> Graph:
    """Return the graph of inference; batch norms are folded, as a compiler does."""
    recording = record_inference(replace(ready, module=fold_norms(ready.module)))
    count = len(recording.steps)
    wanted = [i for i, one in enumerate(recording.storages) if one.start >= 0 and one.end >= count]
    return graph_of(recording, wanted, int8=quantised).graph


def record_training(ready: Ready, gradients: Literal["kept", "released"]) -> Recording:
    """Record a forward and backward pass; `training` says what becomes of the gradients."""
    ready.module.train()
    if gradients == "released":
        for parameter in ready.module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(_release_gradient)

    def run() -> Any:
        result = ready()
        loss = ready.loss(result)
        loss.backward()
        return result, loss

    return record(run, ready.weights)


def _release_gradient(parameter: Any) -> None:
    parameter.grad = None


def _capture(ready: Ready, recording: Recording) -> Captured:
    """Return both passes as a graph that knows the gradients."""
    trained = [one for one in ready.module.parameters() if one.grad is not None]
    pairs = {recording.number(one): recording.number(one.grad) for one in trained}
    if len(set(pairs.values())) < len(trained):
        raise MemplanError("two parameters have one gradient")
    shaped: Shaped = graph_of(recording, [recording.number(recording.result[1])])
    place = shaped.tensor_of
    return Captured(shaped.graph, {place[one]: place[grad] for one, grad in sorted(pairs.items())})

"""Records every allocation of a real run, also those of kernels (MemoMalloc, chapter 3.1).

The profiler reports each allocation and the operator around it, for which the paper had to build an
"auxiliary stack" next to the allocator. The profiler does not report modules, so each module opens
a profiler scope with its name while the recording runs.

    record_function("memplan:.")             .                                        module
      record_function("memplan:.conv1")      ./.conv1                                 module
        aten::conv2d                         ./.conv1/aten::conv2d                    operator
          [memory] +100352                   ./.conv1/aten::conv2d#0                  allocation

The backward pass of a training step is outside of the modules. There, the nodes of the graph are
the frames, as the autograd engine calls them on the thread of the call:

    autograd::engine::evaluate_function: ReluBackward0            ReluBackward0           node
      aten::threshold_backward                                    .../aten::thres...      operator

An address is live at most once at a time, so a release belongs to the last allocation there. Events
of all threads are in the order of the clock. Views allocate nothing and are not recorded. If
PyTorch passes the profiler on to an operator's own threads (`torch.jit.fork`), their
allocations are in the trace, in the scope ("thread", k). Threads that the model starts itself are
not recorded.
"""

from __future__ import annotations

import gc
import os
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import RecordScope, _EventType
from torch.profiler import ProfilerActivity, profile, record_function

from memplan.base.errors import MemplanError, shown
from memplan.problem.trace import Scope, Trace
from memplan.runtimes.torch.record.scopes import Forward, replace_forwards

__all__ = ["Recording", "make_arguments", "record"]

_PREFIX = "memplan:"
_NODE = "autograd::engine::evaluate_function: "  # as in native/frames.h
_CALL = "memplan call"
_ALIGNMENT = {"cpu": 64, "cuda": 512}
_ALLOCATORS = ("jemalloc", "mimalloc", "tcmalloc")
_SILENT = "99"  # a level above those of all messages


@dataclass(frozen=True, eq=False, repr=False)
class Recording(Trace):
    """A trace, and the model that was recorded.

    Attributes
    ----------
    model
        The model or function.
    trains
        The model that the function trains, or `None`.
    """

    model: Any = None
    trains: Any = None


def record(
    model: Any,
    example_inputs: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    trains: Any = None,
    warmup: int = 1,
    device: str = "cpu",
) -> Recording:
    """Run a model or a training step once, and record its allocations.

    A model runs in its current mode (`eval`, `train`), and without gradients, as tensors for a
    backward pass would outlive the call. A training step is a function that runs the model, the
    backward pass and the optimizer; each run of it, also a warm-up, changes the parameters. The
    result is dropped, and allocations that are alive at the return are marked as outliving the run:
    gradients too, unless the step releases them at its end.

    Parameters
    ----------
    model
        A `torch.nn.Module`, or any function; only modules have names in the scopes.
    example_inputs
        Its arguments: a tuple or list, a mapping by name, or one argument.
    kwargs
        More arguments by name.
    trains
        The `torch.nn.Module` that `model`, a function, trains. The function then runs with
        gradients, and its scopes have the names of this module. For several modules, pass them
        in a `torch.nn.ModuleList`.
    warmup
        Runs before the recorded one; the first run makes lasting data (packed weights, caches, the
        state of an optimizer).
    device
        The device of the recorded memory, "cpu" or "cuda".

    Raises
    ------
    MemplanError
        If the profiler is in use already, `warmup` is negative, `device` is another one, or
        `trains` is no module. Exceptions of the model pass through; the model is restored.
    """
    if warmup < 0:
        raise MemplanError(f"warmup is {warmup}; it must be at least 0")
    if device not in _ALIGNMENT:
        raise MemplanError(f"device is {shown(device)}; it must be one of {', '.join(_ALIGNMENT)}")
    if torch.autograd._profiler_enabled():
        raise MemplanError("a profiler is running; record outside of it")
    if trains is not None and not isinstance(trains, torch.nn.Module):
        raise MemplanError(
            f"trains is a {type(trains).__name__}; it must be the torch.nn.Module that the "
            "function trains"
        )
    positional, named = make_arguments(example_inputs, kwargs)
    modules = model if trains is None else trains
    with torch.set_grad_enabled(trains is not None), _no_garbage_collection():
        for _ in range(warmup):
            model(*positional, **named)
        restore = replace_forwards(modules, _record_scope)
        try:
            with _silent_profiler() as profiler:
                with record_function(_CALL):
                    result = model(*positional, **named)
                # The result is dropped after the call, so that its releases are not in the run.
                del result
        finally:
            restore()
    log = _Log(profiler.profiler.kineto_results.experimental_event_tree(), device)
    about = _describe_run(model, trains, positional, named)
    return replace(log.recording(about), model=model, trains=trains)


def make_arguments(
    example_inputs: Any, kwargs: Mapping[str, Any] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and the named arguments for a model, from those of `record`."""
    if isinstance(example_inputs, Mapping):
        return (), {**example_inputs, **(kwargs or {})}
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs), dict(kwargs or {})
    return (example_inputs,), dict(kwargs or {})


def _record_scope(name: str, forward: Forward) -> Forward:
    def forward_in_scope(*args: Any, **kwargs: Any) -> Any:
        with record_function(_PREFIX + name):
            return forward(*args, **kwargs)

    return forward_in_scope


@contextmanager
def _silent_profiler() -> Iterator[Any]:
    """Start the profiler, and suppress its library's message unless the user set a log level."""
    variable = "KINETO_LOG_LEVEL"  # the library reads it at its first use in a process
    unset = variable not in os.environ
    os.environ.setdefault(variable, _SILENT)
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            yield profiler
    finally:
        if unset:
            os.environ.pop(variable, None)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Switch the collector off, as the time when it frees tensors in cycles is random."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Frame:
    """A module or operator, with counters of its direct children."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.allocations = 0
        self._inner: Counter[str] = Counter()

    def enter(self, name: str) -> _Frame:
        """Return the next frame of a name inside this one, or this one if the name is empty."""
        if not name:
            return self
        at = self._inner[name]
        self._inner[name] += 1
        return _Frame((*self.scope, (name, at)))


@dataclass(frozen=True, slots=True)
class _Event:
    """An allocation (`bytes` > 0) or a release."""

    time: int
    address: int
    bytes: int
    scope: Scope
    ordinal: int
    thread: int


class _Log:
    """Turns the profiler's event tree into the rows of a trace."""

    def __init__(self, roots: Sequence[Any], device: str = "cpu") -> None:
        self._device = device
        self.events: list[_Event] = []
        # Operators of other threads are roots of the tree, next to the call.
        self.call = next(root for root in roots if root.name == _CALL)
        self._threads = {self.call.start_tid: 0}
        self._outermost: dict[int, _Frame] = {}
        # This is not recursive, as models may be nested deeper than Python's stack allows.
        stack = [(root, self._get_frame(root)) for root in roots][::-1]
        while stack:
            event, frame = stack.pop()
            if event.tag == _EventType.Allocation:
                self._take(event, frame)
            else:
                inner = frame.enter(_name_event(event))
                stack += [(child, inner) for child in reversed(event.children)]

    def _get_frame(self, root: Any) -> _Frame:
        """Return the frame around all events of a thread."""
        thread = self._threads.setdefault(root.start_tid, len(self._threads))
        scope = (("thread", thread),) if thread else ()
        return self._outermost.setdefault(thread, _Frame(scope))

    def _take(self, event: Any, frame: _Frame) -> None:
        fields = event.extra_fields
        if fields.device.type == self._device:
            # The backward pass of a device is in nodes of the call, on a thread of autograd.
            thread = self._threads.setdefault(event.start_tid, len(self._threads))
            place = (frame.scope, frame.allocations, thread)
            self.events.append(_Event(event.start_time_ns, fields.ptr, fields.alloc_size, *place))
            frame.allocations += fields.alloc_size > 0

    def recording(self, about: Mapping[str, str]) -> Recording:
        """Pair allocations with their releases, between the beginning and the end of the call."""
        first, last = self.call.start_time_ns, self.call.end_time_ns
        rows: list[_Event] = []
        starts: list[int] = []
        ends: dict[int, int] = {}
        live: dict[int, int] = {}
        now = 0
        for event in sorted(self.events, key=lambda event: event.time):
            if not first <= event.time <= last:
                continue
            row = live.pop(event.address, None)
            if row is not None:
                ends[row] = now
            if event.bytes > 0:
                live[event.address] = len(rows)
                rows.append(event)
                starts.append(now)
            elif row is None:  # made before the call, such as an input or a cache
                continue
            now += 1
        return Recording.from_arrays(
            starts,
            [ends.get(row, now) for row in range(len(rows))],
            [event.bytes for event in rows],
            [event.scope for event in rows],
            ordinal=[event.ordinal for event in rows],
            outlives=[row not in ends for row in range(len(rows))],
            thread=[event.thread for event in rows],
            address=[event.address for event in rows],
            alignment=_ALIGNMENT[self._device],
            about=about,
        )


def _name_event(event: Any) -> str:
    """Return the name of a module or operator; "" for frames that are neither."""
    if event.tag != _EventType.TorchOp:
        return ""
    if event.extra_fields.scope == RecordScope.FUNCTION:
        return str(event.name).removeprefix(_NODE)
    return event.name.removeprefix(_PREFIX) if event.name.startswith(_PREFIX) else ""


def _describe_run(
    model: Any, trains: Any, positional: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, str]:
    given = [
        *map(_describe_value, positional),
        *(f"{name}={_describe_value(named[name])}" for name in named),
    ]
    return {
        "model": getattr(model, "__name__", type(model).__name__),
        "inputs": ", ".join(given),
        "mode": _name_mode(model, trains),
        "torch": str(torch.__version__),
        "threads": str(torch.get_num_threads()),
        "allocator": _find_allocator(),
    }


def _name_mode(model: Any, trains: Any) -> str:
    if trains is not None:
        return "training step"
    return "train" if getattr(model, "training", False) else "eval"


def _find_allocator() -> str:
    """Return which library's `malloc` PyTorch gets its memory from."""
    try:
        loaded = Path("/proc/self/maps").read_text()
    except OSError:  # not Linux
        loaded = ""
    preloaded = (name for name in _ALLOCATORS if f"lib{name}" in loaded)
    return next(preloaded, " ".join(platform.libc_ver()).strip() or platform.system())


def _describe_value(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        shape = "x".join(map(str, value.shape)) or "()"
        return f"{shape} {str(value.dtype).removeprefix('torch.')}"
    return type(value).__name__

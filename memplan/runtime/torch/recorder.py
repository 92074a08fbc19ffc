"""Every allocation of a real forward pass, kernels' own included (source 002, chapter 3.1).

The profiler reports what the allocator is asked, and inside which operator: what the paper had to
build (an "auxiliary stack" beside the allocator). Modules it does not know, so while recording
each is entered through a scope of its name.

    record_function("memplan:.")             .                                        module
      record_function("memplan:.conv1")      ./.conv1                                 module
        aten::conv2d                         ./.conv1/aten::conv2d                    operator
          [memory] +100352                   ./.conv1/aten::conv2d#0                  allocation

An address is live at most once at a time, so that a release belongs to the last allocation there;
events are in the order of the clock, over all threads. Views allocate nothing and are not seen.
What an operator's own threads allocate is in the trace where PyTorch hands the profiler on to them
(`torch.jit.fork`), in the scope ("thread", k); threads that the model starts itself are not seen.
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

from memplan.errors import MemplanError, shown
from memplan.runtime.torch.scopes import Forward, replace_forwards
from memplan.trace import Scope, Trace

__all__ = ["Recording", "arguments", "record"]

_PREFIX = "memplan:"
_CALL = "memplan call"
_ALIGNMENT = {"cpu": 64, "cuda": 512}
_ALLOCATORS = ("jemalloc", "mimalloc", "tcmalloc")
_SILENT = "99"  # a level above all of them


@dataclass(frozen=True, eq=False, repr=False)
class Recording(Trace):
    """A trace, and the model that was recorded.

    Attributes
    ----------
    model
        The model or function.
    """

    model: Any = None


def record(
    model: Any,
    example_inputs: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    warmup: int = 1,
    device: str = "cpu",
) -> Recording:
    """Run a model once, and write down what it allocates.

    The model runs in the mode it is in (`eval`, `train`), and without gradients: what a backward
    pass needs would outlive the call. What it returns is dropped, and what is alive when it
    returns is marked as outliving the run.

    Parameters
    ----------
    model
        A `torch.nn.Module`, or any function; only modules have names in the scopes.
    example_inputs
        What it is called with: a tuple or list of arguments, a mapping of arguments by name, or
        one argument.
    kwargs
        More arguments by name.
    warmup
        Runs before the recorded one: the first makes what lasts (packed weights, caches).
    device
        Whose memory, "cpu" or "cuda"; one trace has one of them.

    Raises
    ------
    MemplanError
        If the profiler is in use already, `warmup` is negative, or `device` is another. What the
        model raises passes through; the model is as it was.
    """
    if warmup < 0:
        raise MemplanError(f"warmup is {warmup}; it must be at least 0")
    if device not in _ALIGNMENT:
        raise MemplanError(f"device is {shown(device)}; it must be one of {', '.join(_ALIGNMENT)}")
    if torch.autograd._profiler_enabled():
        raise MemplanError("a profiler is running; record outside of it")
    positional, named = arguments(example_inputs, kwargs)
    with torch.no_grad(), _no_garbage_collection():
        for _ in range(warmup):
            model(*positional, **named)
        restore = replace_forwards(model, _entered)
        try:
            with _silent_profiler() as profiler:
                with record_function(_CALL):
                    result = model(*positional, **named)
                # After the call, so that its releases are none of the run's.
                del result
        finally:
            restore()
    log = _Log(profiler.profiler.kineto_results.experimental_event_tree(), device)
    return replace(log.recording(_about(model, positional, named)), model=model)


def arguments(
    example_inputs: Any, kwargs: Mapping[str, Any] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what to call a model with, by position and by name, for what `record` takes."""
    if isinstance(example_inputs, Mapping):
        return (), {**example_inputs, **(kwargs or {})}
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs), dict(kwargs or {})
    return (example_inputs,), dict(kwargs or {})


def _entered(name: str, forward: Forward) -> Forward:
    def entered(*args: Any, **kwargs: Any) -> Any:
        with record_function(_PREFIX + name):
            return forward(*args, **kwargs)

    return entered


@contextmanager
def _silent_profiler() -> Iterator[Any]:
    """Start the profiler, without its library's message unless the user has set a log level."""
    variable = "KINETO_LOG_LEVEL"  # read when it is used for the first time in a process
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
    """Let tensors in reference cycles live on: when the collector finds them is chance."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Frame:
    """A module or operator; counts what is directly in it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.allocations = 0
        self._inner: Counter[str] = Counter()

    def entered(self, name: str) -> _Frame:
        """Return the next frame of a name inside this one; without a name, it is this one."""
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
    """The profiler's event tree, as the rows of a trace."""

    def __init__(self, roots: Sequence[Any], device: str = "cpu") -> None:
        self._device = device
        self.events: list[_Event] = []
        # Operators of other threads are roots of the tree, next to the call.
        self.call = next(root for root in roots if root.name == _CALL)
        self._threads = {self.call.start_tid: 0}
        self._outermost: dict[int, _Frame] = {}
        # Not recursive: a model may be nested deeper than Python's stack.
        stack = [(root, self._thread(root)) for root in roots][::-1]
        while stack:
            event, frame = stack.pop()
            if event.tag == _EventType.Allocation:
                self._take(event, frame)
            else:
                inner = frame.entered(_name(event))
                stack += [(child, inner) for child in reversed(event.children)]

    def _thread(self, root: Any) -> _Frame:
        """Return the frame around all that a thread does."""
        thread = self._threads.setdefault(root.start_tid, len(self._threads))
        scope = (("thread", thread),) if thread else ()
        return self._outermost.setdefault(thread, _Frame(scope))

    def _take(self, event: Any, frame: _Frame) -> None:
        fields = event.extra_fields
        if fields.device.type == self._device:
            place = (frame.scope, frame.allocations, self._threads[event.start_tid])
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
            elif row is None:  # made before the call: a cache of the model, an input
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


def _name(event: Any) -> str:
    """Return the name of a module or operator; "" for frames that are neither."""
    if event.tag != _EventType.TorchOp:
        return ""
    if event.extra_fields.scope == RecordScope.FUNCTION:
        return str(event.name)
    return event.name.removeprefix(_PREFIX) if event.name.startswith(_PREFIX) else ""


def _about(model: Any, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, str]:
    given = [*map(_shown, positional), *(f"{name}={_shown(named[name])}" for name in named)]
    return {
        "model": getattr(model, "__name__", type(model).__name__),
        "inputs": ", ".join(given),
        "mode": "train" if getattr(model, "training", False) else "eval",
        "torch": str(torch.__version__),
        "threads": str(torch.get_num_threads()),
        "allocator": _allocator(),
    }


def _allocator() -> str:
    """Return which library's `malloc` PyTorch gets its memory from."""
    try:
        loaded = Path("/proc/self/maps").read_text()
    except OSError:  # not Linux
        loaded = ""
    preloaded = (name for name in _ALLOCATORS if f"lib{name}" in loaded)
    return next(preloaded, " ".join(platform.libc_ver()).strip() or platform.system())


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        shape = "x".join(map(str, value.shape)) or "()"
        return f"{shape} {str(value.dtype).removeprefix('torch.')}"
    return type(value).__name__

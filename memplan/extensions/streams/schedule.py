"""Runs steps on parallel streams, each after those that it waits for.

On a CPU every stream is a thread. On a device one thread puts all steps into the queues of the
device, with an event wherever a step waits for one on another stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Protocol

import torch

from memplan.programs.graph import Graph
from memplan.programs.graph.order import waits

__all__ = ["CudaQueues", "Queues", "Scheduled", "launch", "make_steps", "run_on_threads"]

Runs = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Scheduled:
    """An operator of the schedule."""

    number: int  # its index in the graph
    stream: int  # its number
    # Steps on other streams that it waits for: on each stream the last one, as that one comes after
    # the others there.
    awaited: tuple[int, ...]
    is_awaited: bool  # whether a step on another stream waits for it


def make_steps(graph: Graph) -> list[Scheduled]:
    """Return the steps of a graph, in its order."""
    streams = [operator.stream for operator in graph.operators]
    found = []
    for number, awaited in enumerate(waits(graph.operators, graph.views)):
        last: dict[int, int] = {}
        for other in sorted(awaited):
            if other < number and streams[other] != streams[number]:
                last[streams[other]] = other
        found.append(tuple(last.values()))
    needed = {other for awaited in found for other in awaited}
    return [
        Scheduled(number, streams[number], awaited, number in needed)
        for number, awaited in enumerate(found)
    ]


def run_on_threads(steps: Sequence[Scheduled], run: Runs) -> None:
    """Run all steps, with a thread for each stream; the first stream runs on this thread.

    The steps are in an order in which they can run. The first exception of `run` is raised; steps
    that have not begun then do not run.
    """
    done = {step.number: Event() for step in steps if step.is_awaited}
    streams = sorted({step.stream for step in steps})
    failures: list[BaseException] = []
    cores = torch.get_num_threads()

    def play(stream: int) -> None:
        try:
            with torch.no_grad():
                for step in steps:
                    if step.stream != stream:
                        continue
                    for other in step.awaited:
                        done[other].wait()
                    if failures:
                        return
                    run(step.number)
                    if step.is_awaited:
                        done[step.number].set()
        except BaseException as error:
            failures.append(error)
            for event in done.values():
                event.set()

    def play_on_thread(stream: int) -> None:
        torch.set_num_threads(cores)  # else kernels split their work in another way than here
        play(stream)

    threads = [
        Thread(target=play_on_thread, args=(stream,), name=f"memplan stream {stream}", daemon=True)
        for stream in streams[1:]
    ]
    for thread in threads:
        thread.start()
    for stream in streams[:1]:
        play(stream)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class Queues(Protocol):
    """The queues of a device: what is put into one runs in order, beside the others."""

    def wait(self, stream: int, event: Any) -> None:
        """Let a queue wait for an event of another one."""

    def run(self, stream: int, run: Callable[[], object]) -> None:
        """Put work into a queue."""

    def record(self, stream: int) -> Any:
        """Return an event that happens when the work so far in a queue is done."""


def launch(steps: Sequence[Scheduled], run: Runs, queues: Queues) -> None:
    """Put all steps into the queues of a device; does not wait for them."""
    events: dict[int, Any] = {}
    for step in steps:
        for other in step.awaited:
            queues.wait(step.stream, events[other])
        queues.run(step.stream, lambda number=step.number: run(number))  # type: ignore[misc]
        if step.is_awaited:
            events[step.number] = queues.record(step.stream)


class CudaQueues(AbstractContextManager["CudaQueues"]):
    """CUDA streams, one for each stream of a program; kept from run to run.

    Within a `with` statement, their work comes after what the current stream had before, and the
    current stream goes on after it.
    """

    def __init__(self, device: torch.device, streams: set[int]) -> None:
        self._device = device
        self._streams = {stream: torch.cuda.Stream(device) for stream in sorted(streams)}
        self._home = torch.cuda.current_stream(device)
        self._last = self._home.record_event()  # the end of the last turn, at first of the setup

    @contextmanager
    def take_turn(self, memory: Sequence[torch.Tensor]) -> Iterator[None]:
        """Let the work of a call come after that of the last one, on whatever stream that was.

        If the memory that calls share is dropped, it is reused after the last call only.
        """
        if torch.cuda.is_current_stream_capturing():
            yield  # into a graph: its replays are ordered by the streams that they are on
            return
        current = torch.cuda.current_stream(self._device)
        current.wait_event(self._last)
        try:
            yield
        finally:
            self._last = current.record_event()
            if current != self._home:
                for block in memory:
                    block.record_stream(current)

    def __enter__(self) -> CudaQueues:
        current = torch.cuda.current_stream(self._device)
        for stream in self._streams.values():
            stream.wait_stream(current)
        return self

    def __exit__(self, *error: object) -> None:
        current = torch.cuda.current_stream(self._device)
        for stream in self._streams.values():
            current.wait_stream(stream)

    def wait(self, stream: int, event: Any) -> None:
        """Let a stream wait for an event of another one."""
        self._streams[stream].wait_event(event)

    def run(self, stream: int, run: Callable[[], object]) -> None:
        """Launch work on a stream."""
        with torch.cuda.stream(self._streams[stream]), torch.no_grad():
            run()

    def record(self, stream: int) -> Any:
        """Return an event that happens when the work so far on a stream is done."""
        return self._streams[stream].record_event()

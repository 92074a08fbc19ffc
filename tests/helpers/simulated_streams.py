"""Streams of a device without a device: queues that run their work later, and streams that note."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import torch


class SimulatedQueues:
    """Queues of a device that runs their work later, in any order that the events allow."""

    def __init__(self, *, heed: bool = True) -> None:
        self._heed = heed
        self._queues: dict[int, deque[tuple[str, Any]]] = {}
        self._happened: set[int] = set()
        self._events = 0

    def wait(self, stream: int, event: int) -> None:
        """Let a queue wait for an event."""
        if self._heed:
            self._queues.setdefault(stream, deque()).append(("wait", event))

    def run(self, stream: int, run: Callable[[], object]) -> None:
        """Put work into a queue."""
        self._queues.setdefault(stream, deque()).append(("run", run))

    def record(self, stream: int) -> int:
        """Put an event into a queue."""
        self._events += 1
        self._queues.setdefault(stream, deque()).append(("record", self._events))
        return self._events

    def drain(self, seed: int) -> None:
        """Do all work, from a queue at random each time."""
        numbers = random.Random(seed)
        while any(self._queues.values()):
            able = [
                queue
                for queue in self._queues.values()
                if queue and (queue[0][0] != "wait" or queue[0][1] in self._happened)
            ]
            kind, what = numbers.choice(able).popleft()
            if kind == "run":
                with torch.no_grad():
                    what()
            elif kind == "record":
                self._happened.add(what)


class NotingStream:
    """A CUDA stream that only notes which of the events so far come before what it does next."""

    def __init__(self, *_: object) -> None:
        self.before: set[str] = set()

    def do(self, work: str) -> None:
        """Put work into the stream."""
        self.before.add(work)

    def record_event(self) -> frozenset[str]:
        """Return all work that an event stands for."""
        return frozenset(self.before)

    def wait_event(self, event: frozenset[str]) -> None:
        """Let what follows come after an event."""
        self.before |= event

    def wait_stream(self, other: NotingStream) -> None:
        """Let what follows come after the work of another stream so far."""
        self.before |= other.before

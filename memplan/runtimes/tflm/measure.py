"""Finds what TensorFlow Lite Micro's own planner needs for a model: the head of its arena.

The head is measured with the interpreter if the package `tflite-micro` is installed; otherwise
this module repeats its `GreedyMemoryPlanner` as it is documented
(tensorflow/lite/micro/docs/memory_management.md and memory_planner/greedy_memory_planner.h). Both
give the same number of bytes.
"""

from __future__ import annotations

import re
import signal
from bisect import insort_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from memplan.base.errors import listed
from memplan.base.notes import Code, Note
from memplan.programs.graph import Kind
from memplan.programs.sources.children import run_child
from memplan.programs.sources.loaded import Figure
from memplan.programs.sources.options import Options
from memplan.runtimes.tflm.names import is_custom
from memplan.runtimes.tflm.read.boards import put_on_board
from memplan.runtimes.tflm.read.graph import find_folded, find_handles, graph_of, round_up
from memplan.runtimes.tflm.read.kernels import list_scratch
from memplan.runtimes.tflm.read.model import Model, Scratch, load
from memplan.runtimes.tflm.read.refusals import list_refusals
from memplan.runtimes.tflm.read.sizes import resize

__all__ = [
    *("LARGEST", "SPARE", "Answer", "Request", "ask", "compute_head", "find_version"),
    *("list_requests", "measure", "place_requests"),
]

_NAME: Final = "TensorFlow Lite Micro"
_CHILD: Final = Path(__file__).with_name("_measure_child.py")
_TIMEOUT: Final = 20.0  # seconds
_HEAD: Final = re.compile(r"Arena allocation head (\d+) bytes")
_TAIL: Final = re.compile(r"Arena allocation tail (\d+) bytes")
_RECORDED: Final = "[RecordingMicroAllocator]"  # begins the lines that list the arena
_REFUSED: Final = 3  # of the child
_MOST_LETTERS: Final = 400  # of the runtime's words
_PLANNED: Final = frozenset({Kind.INPUT, Kind.OUTPUT, Kind.INTERMEDIATE, Kind.WORKSPACE})
LARGEST: Final = (1 << 31) - 1  # TFLM counts in int32
SPARE: Final = 64 << 20  # for TFLM's data outside of the plan; untouched pages cost nothing


@dataclass(frozen=True, slots=True)
class Answer:
    """What TFLM says of a model."""

    runtime: str  # its name and version
    head: int = 0  # bytes of its arena for tensors; 0 if it refuses the model
    tail: int = 0  # bytes of its arena for what it keeps
    refusal: str = ""  # why it refuses the model, in its own words; empty if it does not

    def note(self) -> Note:
        """Return the refusal as a note."""
        return Note(Code.RUNTIME_REFUSES, f"{self.runtime} refuses the model: {self.refusal}")


class Request(NamedTuple):
    """A buffer for TFLM's planner: bytes, first and last use (both included), and its pin.

    `of` says what it is for: a tensor, by its number among those of all sub-graphs, or scratch.
    """

    size: int
    first: int
    last: int
    pin: int | None = None
    of: int | Scratch = -1


def measure(path: Path, options: Options, stored: Model | None = None) -> Figure | None:
    """Return the head of TFLM's arena for a model, measured if possible.

    `stored` is what is in the file, if it was parsed before.
    """
    stored = stored or load(path)
    model = resize(stored, options.dims)
    graph_of(model)  # refuses models that could crash native code
    model, _ = put_on_board(model, options.board)
    what = "with float32 weights" if any(find_folded(model).values()) else ""
    if options.include not in (None, _PLANNED):
        what = f"{what}, inputs, outputs and kernel scratch".removeprefix(", ")
    size = compute_head(model)
    if options.board is not None:
        return Figure(f"{_NAME} on {options.board.name}", size, "re-implemented", what)
    answer = ask(path, model) if model is stored else None
    if answer is None:
        return Figure(_NAME, size, "re-implemented", what)
    if answer.refusal:
        return Figure(_NAME, size, "re-implemented", what, notes=(answer.note(),))
    # TFLM's own way of placing, repeated here, explains what is above a plan of the same sizes.
    beyond = f"its head is {answer.head} bytes, {size} for these sizes" * (answer.head > size)
    return Figure(answer.runtime, answer.head, "measured", what, beyond)


def compute_head(model: Model) -> int:
    """Return the peak of TFLM's own plan in bytes, kernel scratch and pins included."""
    return max((offset + request.size for offset, request in place_requests(model)), default=0)


def place_requests(model: Model, also: Sequence[Request] = ()) -> list[tuple[int, Request]]:
    """Return TFLM's own plan: the offset of each buffer, kernel scratch and pins included.

    `also` are buffers that its planner gets before those of the model.

    The planner places pins first, in the order of the file, and then buffers by size, the largest
    first and among equal sizes the last one first. Each gets the first gap that is large enough
    between the buffers in use at the same time.
    """
    needed = [*also, *list_requests(model)]
    pinned = [r for r in needed if r.pin is not None]
    free = [r for r in needed if r.pin is None]
    free.reverse()
    free.sort(key=lambda r: -r.size)
    placed: list[tuple[int, Request]] = []
    for request in (*pinned, *free):
        offset = _find_gap(placed, request) if request.pin is None else request.pin
        insort_right(placed, (offset, request), key=lambda entry: entry[0])
    return placed


def _find_gap(placed: list[tuple[int, Request]], request: Request) -> int:
    offset = 0
    for other_offset, other in placed:
        if other.first > request.last or request.first > other.last:
            continue
        if other_offset - offset >= request.size:
            break
        offset = max(offset, other_offset + other.size)
    return offset


def list_requests(model: Model) -> Iterator[Request]:
    """Yield the buffers that TFLM plans, in its order: tensors, then kernel scratch.

    TFLM's clock goes on by one for every operator and every sub-graph that is entered. A tensor is
    in use from the operator that makes it to the last one that has it as input or output; where
    operators enter sub-graphs, all of these count. TFLM plans an unused tensor for time -1.
    """
    uses = _Uses(model)
    uses.enter(0)
    outside = find_handles(model)
    number = 0
    for subgraph, constants in zip(model.subgraphs, uses.constants, strict=True):
        for index, tensor in enumerate(subgraph.tensors):
            pin = model.offsets[number] if model.offsets else -1
            planned = not (tensor.data or index in constants or number in outside)
            if planned and tensor.bytes and not (tensor.variable and pin == -1):
                first, last = uses.first.get(number, -1), uses.last.get(number, -1)
                size = round_up(tensor.bytes)
                yield Request(size, first, last, None if pin == -1 else pin, number)
            number += 1
    yield from uses.scratch()


class _Uses:
    """First and last use of every tensor (of all sub-graphs), and of every operator's scratch."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._base = model.first
        self._folded = find_folded(model)
        self._now = 0
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self._scratch: dict[tuple[int, int], tuple[int, int]] = {}
        self.constants: list[set[int]] = [
            {
                output
                for index in self._folded[number]
                for output in subgraph.operators[index].outputs
            }
            for number, subgraph in enumerate(model.subgraphs)
        ]

    def _begin(self, base: int, indices: tuple[int, ...]) -> None:
        for index in indices:
            self.first.setdefault(base + index, self._now)

    def _use(self, base: int, indices: tuple[int, ...]) -> None:
        for index in indices:
            if index >= 0:
                self.last[base + index] = self._now

    def enter(self, number: int) -> None:
        """Advance the clock through a sub-graph, and through those that its operators enter."""
        subgraph, base = self._model.subgraphs[number], self._base[number]
        self._begin(base, subgraph.inputs)
        self._use(base, subgraph.inputs)
        for index, operator in enumerate(subgraph.operators):
            if index in self._folded[number]:
                continue
            self._now += 1
            start = self._now
            self._begin(base, operator.outputs)
            for entered in operator.subgraphs:
                self._now += 1
                self.enter(entered)
            self._use(base, operator.inputs)
            self._use(base, operator.outputs)
            first, _ = self._scratch.get((number, index), (start, start))
            self._scratch[number, index] = first, self._now
        self._begin(base, subgraph.outputs)
        self._use(base, subgraph.outputs)

    def scratch(self) -> Iterator[Request]:
        """Yield the scratch of all operators, sub-graph by sub-graph."""
        for (number, index), (first, last) in sorted(self._scratch.items()):
            subgraph = self._model.subgraphs[number]
            operator = subgraph.operators[index]
            sizes = list_scratch(operator, *subgraph.find_ends(operator))
            for part, size in enumerate(sizes):
                made = Scratch(self._base[number] + operator.outputs[0], part)
                yield Request(round_up(size), first, last, of=made)


def find_version() -> str | None:
    """Return the version of tflite-micro, or `None` if it is not installed."""
    if find_spec("tflite_micro") is None:
        return None
    from importlib.metadata import version  # only here, because its import takes long

    return version("tflite-micro")


def ask(path: Path, model: Model | None = None) -> Answer | None:
    """Let TFLM prepare a `.tflite` model in a process of its own.

    The model is what is in the file, if it was read before. `None` if tflite-micro is not
    installed, or does not answer in time.
    """
    version = find_version()
    if version is None:
        return None
    runtime = f"{_NAME} {version}"
    model = load(path) if model is None else model
    size = compute_head(model)
    if size > LARGEST:
        return None
    doubts, _ = list_refusals(model)
    order = {
        "path": str(path),
        "arena": size + 2 * path.stat().st_size + sum(_iterate_unplanned(model)) + SPARE,
        "folded": _sort_operators(find_folded(model)),
        "run": bool(doubts),
    }
    run = run_child(_CHILD, order, _TIMEOUT)
    if run is None:
        return None
    text = run.stderr.decode(errors="replace")
    head, tail = _HEAD.search(text), _TAIL.search(text)
    if run.returncode == 0 and head and tail:
        return Answer(runtime, int(head.group(1)), int(tail.group(1)))
    if run.returncode not in (0, _REFUSED) and run.returncode > 0:
        return None  # the package cannot be used here
    return Answer(runtime, refusal=_quote_refusal(text, run.returncode, model))


def _quote_refusal(text: str, code: int, model: Model) -> str:
    """Return TFLM's own words on a model that it refuses, with operators that it does not name."""
    lines = (line.strip() for line in text.splitlines() if not line.startswith(_RECORDED))
    words = "; ".join(line.rstrip(".") for line in lines if line)[:_MOST_LETTERS]
    if code < 0:
        died = f"it crashes ({signal.Signals(-code).name})"
        words = f"{died}: {words}" if words else died
    types = {o.type for subgraph in model.subgraphs for o in subgraph.operators}
    custom = sorted(each for each in types if is_custom(each))
    if custom and ("CUSTOM" in words or not words or code < 0):
        words = f"{words} (custom operators: {listed(custom, quote=False)})".strip()
    return words or "it gives no reason"


def _iterate_unplanned(model: Model) -> Iterator[int]:
    """Yield the bytes of tensors outside of the plan: variables, and values of handles."""
    for subgraph in model.subgraphs:
        yield from (tensor.bytes for tensor in subgraph.tensors if tensor.variable)
        for operator in subgraph.operators:
            if operator.type == "ASSIGN_VARIABLE":
                yield from (subgraph.tensors[i].bytes for i in operator.inputs if i >= 0)


def _sort_operators(operators: Mapping[int, set[int]]) -> list[list[int]]:
    return [sorted(operators[number]) for number in sorted(operators)]

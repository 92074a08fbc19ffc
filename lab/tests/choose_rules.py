"""Choose the branching rules of `core/src/exact/portfolio.cpp`, and judge them on other problems.

    cmake --build --preset release
    python lab/tests/choose_rules.py build/release/core/tests/try_rules --data DATA/challenging

A greedy cover: the next rule is that which adds most solved problems for its work, where a problem
counts as much as the rules before it are likely to leave it open.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memplan import Problem
from memplan.problem import formats
from memplan_lab.bench import corpus
from memplan_lab.bench import generators as make
from memplan_lab.bench.generators import with_size_noise

_SECTIONS = (
    "OptionsSlack",
    "FloorOptionsSlack",
    "SlackOptions",
    "FloorSlackOptions",
    "OptionsFloor",
    "OptionsPerWeight",
    "FloorOptionsPerWeight",
)
_VALUES = ("Area", "Longest", "Largest", "Shortest")
_RULES = len(_SECTIONS) * len(_VALUES)
_NOISY = 2  # dives with noise, as in try_rules.cpp
_NOISE = (0.01, 0.02, 0.05, 0.1, 0.2)
_CORPUS = 120  # problems of the corpus in a set
_MOST = 800  # buffers of these

Question = tuple[str, Problem, int]  # a name, and a capacity in percent of the bound
Table = NDArray[np.float64]  # by component and rule


def questions(data: Path, seed: int) -> Iterator[Question]:
    """Yield one set of problems; no problem of two seeds is the same, but for the originals."""
    for path in sorted(data.glob("*.csv")):
        problem = formats.load(path)
        yield path.stem, problem, 100
        for k in range(15):
            noise = _NOISE[k % len(_NOISE)]
            percent = (100, 101, 105)[k // len(_NOISE)]
            yield f"{path.stem}-{k}", with_size_noise(problem, seed + k, noise), percent
    for k in range(4):
        for n in (60, 100, 200, 300, 400):
            yield f"perfect-{n}-{k}", make.perfect_packing(n, seed + k), 100
        for n in (50, 60, 80, 100, 200):
            yield f"synthetic-{n}-{k}", make.synthetic(n, seed + k), 100 + k % 2
        for n in (40, 60, 80):
            yield f"dense-{n}-{k}", make.dense(n, seed + k), (100, 105)[k % 2]
        for n in (100, 300):
            yield f"flat-{n}-{k}", make.flat_load(n, seed + k), (105, 101)[k % 2]
        for n in (300, 500, 1000):
            yield f"caches-{n}-{k}", make.robustness("caches", n, seed + k).problem, 100
    problems = corpus()
    names = list(problems.names)
    chosen = np.random.default_rng(seed).permutation(len(names))
    taken = 0
    for k in chosen:
        problem = problems[names[k]].problem
        plain = not (problem.has_pins or problem.has_windows or len(problem.conflicts))
        if taken == _CORPUS or not plain or not 30 <= len(problem) <= _MOST:
            continue
        taken += 1
        yield f"corpus-{k}", with_size_noise(problem, seed + k, _NOISE[taken % 5]), 100


def try_rules(program: str, asked: Iterator[Question]) -> tuple[Table, Table]:
    """Return the chance of a dive and its work, where rules differ."""
    lines = []
    for name, problem, percent in asked:
        lines.append(f"{name} {len(problem)} {percent}")
        columns = (problem.start, problem.end, problem.size, problem.alignment)
        lines += [" ".join(str(int(x)) for x in row) for row in zip(*columns, strict=True)]
    done = subprocess.run(
        [program], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    cells = np.array([[[int(x) for x in cell.split(":")] for cell in row[2:]] for row in rows])
    chance = (cells[:, :, 0] + cells[:, :, 1]) / (1 + _NOISY)
    # A node takes half as long where the floor decides first, since fewer sections are looked at.
    floor = np.array([name.startswith("Floor") for name in _SECTIONS for _ in _VALUES] * 2)
    work = cells[:, :, 2] * np.where(floor, 1, 2)
    hard = (chance.mean(axis=1) < 1) & (chance.max(axis=1) > 0)
    return chance[hard], work[hard].astype(np.float64)


def name_of(rule: int) -> str:
    """Return a rule as a row of `kForward` or `kMirrored`."""
    kind = rule % _RULES
    section, value = _SECTIONS[kind // len(_VALUES)], _VALUES[kind % len(_VALUES)]
    return f"{{SectionRule::k{section}, ValueRule::k{value}}},"


def cover(chance: Table, work: Table) -> list[int]:
    """Return all rules of both directions, the most useful first."""
    price = (work / work.mean(axis=1, keepdims=True)).mean(axis=0)
    is_open = np.ones(len(chance))
    order: list[int] = []
    while len(order) < 2 * _RULES:
        gain = (is_open[:, None] * chance).sum(axis=0) / price
        gain[order] = -1
        best = int(np.argmax(gain))
        order.append(best)
        is_open *= 1 - 0.9 * chance[:, best]
    return order


def judge(order: list[int], chance: Table) -> float:
    """Return the part of the problems that one dive of each rule is likely to solve."""
    return float((1 - (1 - chance[:, order]).prod(axis=1)).mean())


def main() -> None:
    """Print the rules of each direction, and what the first of them solve of both sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="try_rules, which CMake builds with the tests")
    parser.add_argument("--data", type=Path, required=True, help="the challenging instances")
    parser.add_argument("--seeds", type=int, nargs=2, default=(1000, 5000), help="of the two sets")
    args = parser.parse_args()
    sets = [try_rules(args.program, questions(args.data, seed)) for seed in args.seeds]
    order = cover(*sets[0])
    for title, mirrored in (("kForward", False), ("kMirrored", True)):
        print(title)
        for rule in order:
            if (rule >= _RULES) == mirrored:
                print(f"    {name_of(rule)}")
    print("rules  chosen on", len(sets[0][0]), " judged on", len(sets[1][0]), "components")
    for count in (5, 10, 15, 20, 28, 40, 56):
        print(f"{count:5}", *(f"{judge(order[:count], chance):12.3f}" for chance, _ in sets))


if __name__ == "__main__":
    main()

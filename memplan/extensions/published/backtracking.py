"""Reads and writes the model of learned backtracking: trees, and the recipe that made them.

The file is JSON: `format` and `version`, the names of the `features` in the order of their columns,
`threshold` and `discount` (TelaMalloc, section 6.5), the columns of the `forest` (see forest.h in
core/published/include/memplan), and the `recipe`, which is for people and is not interpreted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

import memplan._published as _published
from memplan.base.errors import FormatError, shown
from memplan.base.files import read_bytes
from memplan.problem import Problem
from memplan.solvers import native

__all__ = ["SHIPPED", "Model", "collect", "features", "read", "shipped"]

SHIPPED = Path(__file__).parent / "data" / "backtracking.json"
FORMAT = "memplan backtracking model"
VERSION = 2

_INTEGERS = ("feature", "left", "right", "root")
_NUMBERS = ("threshold", "value")
_CHILDREN = ("left", "right")  # the file says how far behind a node they are: this packs better
_INT32 = np.iinfo(np.int32)
_LARGEST = 1e30  # well within a float32; the comparison with it also rejects nan


@dataclass(frozen=True)
class Model:
    """The model that chooses the target of a major backtrack in `telamalloc`."""

    columns: Mapping[str, npt.NDArray[np.generic]]  # of `memplan._published.Forest`, by name
    threshold: float  # scores below it count as noise
    discount: float  # the part of its score that the outermost target loses, 0 to 1
    recipe: Mapping[str, object]  # how it was made

    def forest(self) -> _published.Forest:
        """Return the trees, ready to score rows; a `ValueError` says why columns are no trees."""
        return _published.Forest(**self.columns)  # type: ignore[arg-type]

    @cached_property
    def native(self) -> _published.BacktrackModel:
        """The model as an object of the core; a `ValueError` says why values make no model."""
        return _published.BacktrackModel(self.forest(), self.threshold, self.discount)

    def text(self) -> str:
        """Return the text of the model's file: one entry on a line, so that files can be diffed."""
        columns = dict(self.columns)
        for name in _CHILDREN:
            children = np.asarray(columns[name], dtype=np.int32)
            columns[name] = children - np.arange(len(children), dtype=np.int32)
        forest = {name: _format_cells(column) for name, column in sorted(columns.items())}
        content = {
            "format": FORMAT,
            "version": VERSION,
            "recipe": self.recipe,
            "features": features(),
            "threshold": self.threshold,
            "discount": self.discount,
        }
        lines = [f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in content.items()]
        body = ",\n".join(f"  {json.dumps(key)}: {cells}" for key, cells in forest.items())
        return "{\n" + "".join(lines) + ' "forest": {\n' + body + "\n }\n}\n"


def features() -> list[str]:
    """Return the names of the features by which a target is scored, in the columns' order."""
    return _published.backtrack_features()


@cache
def shipped() -> _published.BacktrackModel:
    """Return the model that comes with the package."""
    return read(SHIPPED).native


def read(path: str | os.PathLike[str]) -> Model:
    """Read a model, and check that it is one for this version of memplan."""
    name = os.fspath(path)
    content = _read_content(name)
    if content.get("features") != features():
        raise FormatError(
            name, "the model is for other features; train one with this version of memplan"
        )
    forest = content.get("forest")
    if not isinstance(forest, dict):
        raise FormatError(name, "the model has no forest, so it is not complete")
    columns: dict[str, npt.NDArray[np.generic]] = {}
    for column in _INTEGERS:
        cells = _take_integers(name, column, forest.get(column))
        at = np.arange(len(cells), dtype=np.int32)
        columns[column] = cells + at if column in _CHILDREN else cells
    for column in _NUMBERS:
        type = np.float32 if column == "threshold" else np.float64
        columns[column] = np.array(_take_numbers(name, column, forest.get(column)), dtype=type)
    recipe = content.get("recipe")
    model = Model(
        columns,
        threshold=_take_numbers(name, "threshold", [content.get("threshold")])[0],
        discount=_take_numbers(name, "discount", [content.get("discount")])[0],
        recipe=recipe if isinstance(recipe, dict) else {},
    )
    try:
        model.native  # noqa: B018 (evaluated for its checks)
    except ValueError as error:
        raise FormatError(name, f"this is not a model: {error}") from None
    return model


def collect(
    problem: Problem,
    *,
    steps: int,
    oracle_nodes: int,
    oracle_share: float,
    seed: int,
    model: Model | None,
) -> _published.BacktrackSamples:
    """Return samples of the major backtracks of telamalloc, with the exact search as oracle.

    The arguments are those of `memplan_lab.learn.collect`, for one search of one problem, which
    needs a capacity.
    """
    return _published.collect_backtracks(
        native.core_problem(problem),
        steps,
        oracle_nodes,
        oracle_share,
        seed,
        None if model is None else model.native,
        native.exact_search(),
    )


def _read_content(name: str) -> dict[str, object]:
    data = read_bytes(name)
    try:
        content = json.loads(data.decode())
    except (ValueError, RecursionError):  # not UTF-8, or not JSON
        raise FormatError(
            name, "the file is not JSON; `memplan-lab learn train` writes models"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FormatError(name, "this is not a model; `memplan-lab learn train` writes models")
    if content.get("version") != VERSION:
        version = shown(content.get("version"))
        raise FormatError(
            name, f"the model has version {version}; this memplan reads version {VERSION}"
        )
    return content


def _take_integers(name: str, column: str, cells: object) -> npt.NDArray[np.int32]:
    fine = isinstance(cells, list) and all(
        type(cell) is int and _INT32.min <= cell <= _INT32.max for cell in cells
    )
    if not fine:
        raise FormatError(name, f'"{column}" must be a list of whole numbers')
    return np.array(cells, dtype=np.int32)


def _take_numbers(name: str, column: str, cells: object) -> Sequence[float]:
    if not isinstance(cells, list) or not all(
        type(cell) in (int, float) and abs(cell) < _LARGEST for cell in cells
    ):
        raise FormatError(name, f'"{column}" must be a list of numbers')
    return [float(cell) for cell in cells]


def _format_cells(column: npt.NDArray[np.generic]) -> str:
    """Return a column as JSON, in the fewest digits that give the same numbers again."""
    # str of a NumPy scalar respects its type; a float32 printed as a float64 is twice as long.
    return "[" + ",".join(str(cell) for cell in column) + "]"

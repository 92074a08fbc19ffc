"""The features of major backtracks as columns, and the scores that a model learns from them."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memplan.base.errors import FormatError
from memplan.extensions.published.backtracking import features
from memplan.problem.formats import write_bytes

__all__ = ["Samples", "load"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

FORMAT = "memplan backtracking samples 1"
_TARGETS = ("level", "impasse")
_IMPASSES = ("length", "solvable", "shared")


@dataclass(frozen=True)
class Samples:
    """Targets of major backtracks, as `memplan._published.collect_backtracks` returns them."""

    # `float32`, one row per target; the columns are `backtracking.features()`.
    features: Floats
    level: Ints  # the decision level of each target: its placement and all after it are taken back
    impasse: Ints  # the backtrack of each target, ascending: an index of the three columns below
    length: Ints  # of each backtrack: how many placements the path had
    solvable: Ints  # how many of them, from the first, some solution has as well
    shared: Ints  # how many of them the solution has that was found in the end
    recipe: Mapping[str, object]  # how they were collected

    def __len__(self) -> int:
        return len(self.level)

    def scores(self) -> npt.NDArray[np.float64]:
        """Return the score of every target (TelaMalloc, section 6.4), 0 to 10.

        The minimum target M is the deepest from which a solution can be reached, the best target B
        the deepest on the way to the one that was found. Between them scores rise towards B; all
        others are 0.
        """
        level = self.level.astype(np.int64)
        minimum = self._deepest(self.solvable)
        best = self._deepest(np.minimum(self.shared, self.solvable))
        at_least, at_most = best[self.impasse], minimum[self.impasse]
        fall = (level - at_least) / (at_most - at_least + 1)
        within = (level >= at_least) & (level <= at_most)
        return np.where(within, 10 - 5 * fall, 0.0)

    def _deepest(self, limit: Ints) -> npt.NDArray[np.int64]:
        """Return for each backtrack the deepest target at or above a level.

        Where all are below it, the result is -1, which stands for the outermost level.
        """
        deepest = np.full(len(self.length), -1, dtype=np.int64)
        above = self.level <= limit[self.impasse]
        np.maximum.at(deepest, self.impasse[above], self.level[above])
        return deepest

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all columns as one `.npz`, whole or not at all."""
        about = json.dumps({"format": FORMAT, "names": features(), "recipe": self.recipe})
        columns = {name: getattr(self, name) for name in ("features", *_TARGETS, *_IMPASSES)}
        file = io.BytesIO()
        np.savez_compressed(file, allow_pickle=False, about=np.array(about), **columns)
        write_bytes(path, file.getvalue())


def join(parts: Sequence[Samples], recipe: Mapping[str, object] | None = None) -> Samples:
    """Return several samples as one, with this recipe or a list of theirs."""
    if recipe is None:
        recipe = {"parts": [dict(part.recipe) for part in parts]}
    first = np.cumsum([0, *(len(part.length) for part in parts)])
    width = len(features())
    columns: dict[str, npt.NDArray[np.generic]] = {
        "features": np.concatenate([np.empty((0, width), np.float32), *(p.features for p in parts)])
    }
    for name in (*_TARGETS, *_IMPASSES):
        cells = [getattr(part, name) for part in parts]
        if name == "impasse":
            cells = [each + np.int32(at) for each, at in zip(cells, first[:-1], strict=True)]
        columns[name] = np.concatenate([np.empty(0, np.int32), *cells]).astype(np.int32)
    return Samples(**columns, recipe=recipe)  # type: ignore[arg-type]


def load(path: str | os.PathLike[str]) -> Samples:
    """Read what `Samples.save` wrote."""
    name = os.fspath(path)
    columns = _columns(name)
    about = _about(name, columns.pop("about", None))
    if about.get("names") != features():
        raise FormatError(
            name, "has samples of other features; collect them with this version of memplan"
        )
    for column in ("features", *_TARGETS, *_IMPASSES):
        if column not in columns:
            raise FormatError(name, f'lacks the column "{column}"; collect the samples again')
    recipe = about.get("recipe")
    samples = Samples(
        **{column: columns[column] for column in ("features", *_TARGETS, *_IMPASSES)},  # type: ignore[arg-type]
        recipe=recipe if isinstance(recipe, dict) else {},
    )
    _check(name, samples)
    return samples


def _columns(name: str) -> dict[str, npt.NDArray[np.generic]]:
    try:
        with np.load(name, allow_pickle=False) as file:
            if isinstance(file, np.ndarray):
                raise ValueError("an array by itself")
            return {column: file[column] for column in file.files}
    except OSError as error:
        if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
            reason = (error.strerror or "").lower()
            raise FormatError(name, f"the file cannot be read: {reason}") from None
        raise _make_error(name) from None
    except Exception:  # NumPy, zipfile and zlib raise many kinds for damaged bytes
        raise _make_error(name) from None


def _make_error(name: str) -> FormatError:
    return FormatError(name, "has no samples; they are what `memplan-lab learn collect` writes")


def _about(name: str, cell: npt.NDArray[np.generic] | None) -> dict[str, object]:
    try:
        about = json.loads(str(cell))
    except ValueError:
        raise _make_error(name) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise _make_error(name)
    return about


def _check(name: str, samples: Samples) -> None:
    """Refuse columns that no search can have written."""
    count, width = len(samples.impasse), len(features())
    right = samples.features.dtype == np.float32 and samples.features.shape == (count, width)
    for column in (*_TARGETS, *_IMPASSES):
        cells = getattr(samples, column)
        right = right and cells.dtype == np.int32 and cells.ndim == 1
    if right:
        impasses = len(samples.length)
        right = (
            len(samples.level) == count
            and len(samples.solvable) == len(samples.shared) == impasses
            and bool(np.isfinite(samples.features).all())
            and (count == 0 or 0 <= samples.impasse.min() <= samples.impasse.max() < impasses)
        )
    if not right:
        raise FormatError(name, "has columns that do not belong together; collect them again")

"""Gradient-boosted trees over the samples (TelaMalloc, section 6.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from memplan.base.errors import MemplanError
from memplan.extensions.published.backtracking import Model
from memplan_lab.extras import require
from memplan_lab.learn.samples import Samples

__all__ = ["DISCOUNT", "THRESHOLD", "columns_of", "train"]

# These settings did best on other seeds of the same families, neither for training nor for judging.
THRESHOLD = 0.5
DISCOUNT = 1.0


def train(
    samples: Samples,
    *,
    trees: int = 100,
    leaves: int = 31,
    rate: float = 0.1,
    threshold: float = THRESHOLD,
    discount: float = DISCOUNT,
    seed: int = 0,
) -> Model:
    """Return a model that predicts the scores of the samples.

    The same samples, settings and seed give the same model, on one thread, with one version of
    LightGBM.

    Parameters
    ----------
    samples
        From `collect`.
    trees, leaves, rate
        How many trees, how many leaves each at most, and the share of the error that each corrects.
    threshold, discount
        As `Model` has them.
    seed
        Of LightGBM.

    Raises
    ------
    MissingExtraError
        If LightGBM is not installed.
    MemplanError
        If there are no samples.
    """
    lightgbm = require("lightgbm", extra="learn")
    if len(samples) == 0:
        raise MemplanError("there are no samples to train on; collect on harder instances")
    settings = {
        "objective": "regression",
        "num_leaves": leaves,
        "learning_rate": rate,
        "seed": seed,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(samples.features, samples.scores(), free_raw_data=False)
    booster = lightgbm.train(settings, data, num_boost_round=trees)
    recipe = {
        "samples": dict(samples.recipe),
        "impasses": len(samples.length),
        "targets": len(samples),
        "trees": trees,
        "lightgbm": {**settings, "version": lightgbm.__version__},
    }
    return Model(columns_of(booster), threshold, discount, recipe)


def columns_of(booster: Any) -> dict[str, npt.NDArray[np.generic]]:
    """Return the trees of a LightGBM booster as the columns of `memplan._published.Forest`.

    A row of `float32` features reaches the same leaf, because a threshold is rounded down to the
    next `float32`, and no feature can have a value between the two. The values of leaves have six
    digits, which makes files of models a quarter smaller.
    """
    feature: list[int] = []
    threshold: list[float] = []
    left: list[int] = []
    right: list[int] = []
    value: list[float] = []

    def add(node: dict[str, Any]) -> int:
        at = len(feature)
        is_leaf = "split_feature" not in node
        feature.append(0 if is_leaf else node["split_feature"])
        threshold.append(0.0 if is_leaf else node["threshold"])
        value.append(float(f"{node['leaf_value']:.6g}") if is_leaf else 0.0)
        left.append(at)
        right.append(at)
        if not is_leaf:
            left[at] = add(node["left_child"])
            right[at] = add(node["right_child"])
        return at

    roots = [add(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]
    return {
        "feature": np.array(feature, dtype=np.int32),
        "threshold": _round_down(np.array(threshold, dtype=np.float64)),
        "left": np.array(left, dtype=np.int32),
        "right": np.array(right, dtype=np.int32),
        "value": np.array(value, dtype=np.float64),
        "root": np.array(roots, dtype=np.int32),
    }


def _round_down(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return the greatest `float32` at or below each number."""
    near = numbers.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(np.float64) > numbers, below, near)

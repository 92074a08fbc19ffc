"""Tests of Problem.from_frame, with the least that a data frame can be."""

from __future__ import annotations

import numpy as np
import pytest

from memplan.base.errors import ProblemError
from memplan.problem import Buffer, Gap, Problem


class Column:
    """A column of a frame, as pandas and polars have it."""

    def __init__(self, values: list[object]) -> None:
        self.values = values

    def to_numpy(self) -> np.ndarray:
        """Return the values as an array."""
        return np.array(self.values)


class Frame:
    """The least that a data frame can do."""

    def __init__(self, **columns: list[object]) -> None:
        self.columns = list(columns)
        self._values = columns

    def __getitem__(self, name: str) -> Column:
        return Column(self._values[name])


class TestFromFrame:
    """Data frames, by duck typing."""

    def test_half_open(self, five: Problem) -> None:
        """Tests that `lower` and `upper` are read as MiniMalloc's CSV has them."""
        frame = Frame(
            size=[4] * 5,
            upper=[3, 9, 9, 21, 21],
            lower=[0, 3, 0, 9, 0],
            id=["b1", "b2", "b3", "b4", "b5"],
        )
        assert Problem.from_frame(frame, capacity=12) == five

    def test_inclusive_with_all_columns(self) -> None:
        """Tests that `end` is inclusive, that of gaps too, and that missing gaps are none."""
        frame = Frame(
            buffer=[1, 2],
            begin=[0, 0],
            end=[9, 9],
            size=[8, 8],
            alignment=[4, 1],
            hint=[-1, 3],
            offset=[8, -1],
            gaps=["2-3@0:4 5-5", None],
        )
        assert list(Problem.from_frame(frame, reserved=[(90, 91)]).buffers) == [
            Buffer("1", 0, 10, 8, alignment=4, pin=8, gaps=(Gap(2, 4, (0, 4)), Gap(5, 6))),
            Buffer("2", 0, 10, 8, hint=3),
        ]

    @pytest.mark.parametrize(
        ("frame", "sentence"),
        [
            (Frame(id=["a"], lower=[0], upper=[1]), "column size is missing"),
            (Frame(id=["a"], lower=[0], upper=[1], size=[1], s=[1]), 'unknown column "s"'),
            (Frame(id=["a"], lower=[0], upper=[1], end=[1], size=[1]), "mean the same"),
            (Frame(id=["a"], lower=[0], upper=[1], size=[1.5]), 'buffer "a": size is 1.5'),
            (Frame(id=[0.5], lower=[0], upper=[1], size=[1]), "it must be a string"),
            (Frame(id=["a"], lower=[0], upper=[9], size=[1], gaps=["3+4"]), 'gaps has "3+4"'),
            (object(), "a object is no frame"),
        ],
    )
    def test_bad_frames(self, frame: object, sentence: str) -> None:
        """Tests that a frame that is no problem is refused, with the column named."""
        with pytest.raises(ProblemError) as caught:
            Problem.from_frame(frame)
        assert sentence in str(caught.value)

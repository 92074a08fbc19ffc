"""Tests of what mends a memory window by window."""

from __future__ import annotations

import random

import numpy as np
import pytest
from rounds import rounds

import memplan as mp
from memplan.machine.memories.filling import Filling, fill_memory
from memplan.machine.memories.mending import mend_memory
from memplan.machine.memories.question import Question
from memplan.machine.memories.search import choose_items
from memplan.problem.columns import Column
from memplan.referee import verify


def make_filling(problem: mp.Problem, capacity: int) -> tuple[Question, Filling]:
    """Return a memory in which each buffer is worth its bytes."""
    memories = (mp.Memory("fast", capacity), mp.Memory("slow", read=2, write=2))
    question = Question(problem, memories, [(size, 0) for size in problem.size.tolist()], {})
    return question, Filling(question, 0, problem.size.copy())


def mend(problem: mp.Problem, capacity: int, offset: Column, needed: list[int]) -> Column:
    """Return the offsets of a memory in which all should be, after the referee has seen them."""
    question, filling = make_filling(problem, capacity)
    everything = list(range(len(problem)))
    mended = mend_memory(
        *(filling, choose_items, question.room(0), offset),
        *(everything, needed, 10_000, lambda: None),
    )
    units = np.flatnonzero(mended >= 0)
    part = question.part(units.tolist(), 0)
    verify(part, mp.Plan.of(part, mended[units].tolist()))
    return mended


def test_what_has_no_place_gets_one_where_others_give_way() -> None:
    """Tests that a buffer inside a window moves, and that one that lives across it does not."""
    rows = [("a", 10, 14, 4), ("b", 10, 14, 4), ("long", 0, 99, 2)]
    problem = mp.Problem([mp.Buffer(*row) for row in rows])
    assert mend(problem, 10, np.array([3, -1, 8]), []).tolist() in ([0, 4, 8], [4, 0, 8])


def test_what_is_worth_most_is_inside() -> None:
    """Tests that where all do not fit, the best does, beside what must stay."""
    rows = [("small", 0, 9, 3), ("large", 0, 9, 8), ("must", 0, 9, 2)]
    problem = mp.Problem([mp.Buffer(*row) for row in rows])
    assert (mend(problem, 10, np.array([4, -1, 0]), []) >= 0).tolist() == [False, True, True]
    assert (mend(problem, 10, np.array([4, -1, 0]), [0]) >= 0).tolist() == [True, False, True]


@pytest.mark.parametrize("seed", range(rounds(4, 500)))
def test_a_mended_memory_is_worth_no_less(seed: int) -> None:
    """Tests against the referee, with alignments, from every way to fill the memory."""
    rng = random.Random(seed)
    rows = []
    for number in range(rng.randint(10, 60)):
        start = rng.randrange(40)
        size, unit = rng.randint(1, 30), rng.choice((1, 1, 1, 4))
        rows.append(mp.Buffer(str(number), start, start + rng.randint(1, 9), size, unit))
    problem = mp.Problem(rows)
    capacity = max(30, problem.max_load // 2)
    _, filling = make_filling(problem, capacity)
    for units, offset in fill_memory(filling, range(len(problem)), None):
        needed = rng.sample(units, len(units) // 4)
        mended = mend(problem, capacity, offset, needed)
        assert (mended[needed] >= 0).all()
        assert problem.size[mended >= 0].sum() >= problem.size[units].sum()

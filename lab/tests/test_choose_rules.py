"""Tests of the greedy cover by which the rules of the exact search are chosen."""

from __future__ import annotations

import numpy as np
from choose_rules import cover, judge, name_of


def test_the_next_rule_complements_the_first() -> None:
    """Tests that a rule which repeats the first one comes after one that solves the rest."""
    chance = np.zeros((4, 56))
    chance[:3, 5] = 1
    chance[:2, 6] = 1
    chance[3, 40] = 1
    order = cover(chance, np.ones_like(chance))
    assert order[:2] == [5, 40]
    assert sorted(order) == list(range(56))
    assert judge(order[:1], chance) == 0.75
    assert judge(order[:2], chance) == 1


def test_a_cheap_rule_comes_first() -> None:
    """Tests that success counts by work."""
    chance = np.full((1, 56), 0.5)
    work = np.full((1, 56), 10.0)
    work[0, 33] = 1
    order = cover(chance, work)
    assert order[0] == 33
    assert name_of(33) == "{SectionRule::kFloorOptionsSlack, ValueRule::kLongest},"

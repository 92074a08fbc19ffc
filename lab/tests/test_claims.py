"""Tests of what memplan claims of random questions, and of the brute force that judges it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import oracle
import pytest
from rounds import rounds

import memplan as mp
from memplan.base.errors import ProblemError
from memplan_lab.claims import KINDS, ask_many, places
from memplan_lab.claims.drawing import TIES, draw_case, draw_ties
from memplan_lab.claims.placing import find_least, fits, measure
from memplan_lab.cli import main


def count(kind: str, first: int, many: int) -> None:
    """Ask questions of a kind, of which no claim is false."""
    *_, found = ask_many(kind, first, many)
    assert (found.asked, found.wrong) == (many, [])


@pytest.mark.parametrize("kind", KINDS)
def test_no_claim_is_false(kind: str) -> None:
    """Tests some questions of each kind."""
    count(kind, 0, 20)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1, 41))
@pytest.mark.parametrize("kind", KINDS)
def test_no_claim_of_many_is_false(kind: str, seed: int) -> None:
    """Tests many of them; with `MEMPLAN_DEEP=1` a million of all kinds."""
    count(kind, seed * 10**6, rounds(25, 2000))


def test_the_brute_force_agrees_with_another_one() -> None:
    """Tests least peaks, of all restrictions, against the bitmaps of the tests of solvers."""
    tried = 0
    for seed in range(200):
        rng = random.Random(seed)
        case = draw_case(rng, draw_ties(rng, 0.3), 5, 4, 5)
        try:
            problem = case.problem()
        except ProblemError:
            continue
        tried += 1
        least = find_least(case, 40)
        assert least == oracle.minimum_peak(problem.with_capacity(40))
        if least is not None:
            offsets = oracle.fit(problem, least)
            assert offsets is not None
            assert measure(case, offsets, least) == least
    assert tried > 150


def test_plans_are_judged() -> None:
    """Tests every offset of two buffers: legal is what does not share, and is within."""
    rng = random.Random(1)
    case = replace(draw_case(rng, (), 1), conflicts=frozenset(), groups=())
    item = replace(case.items[0], size=2, alignment=2)
    case = replace(case, items=(item, replace(item, size=1)))
    legal = [pair for pair in product(range(5), repeat=2) if measure(case, pair, 4) is not None]
    assert legal == [(0, 2), (2, 0)]
    assert fits(case, 3)
    assert not fits(case, 2)
    assert set(TIES) > draw_ties(rng, 0.5, without="pin")


WRONG: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "solve": (mp, "solve", lambda plan: _optimal(plan)),
    "assign": (places, "assign", lambda found: replace(found, bound=found.traffic + 1)),
    "blocks": (places, "plan_blocks", lambda found: replace(found, count_bound=found.count + 1)),
    "penalties": (places, "plan_apart", lambda found: replace(found, bound=found.bound + 1)),
}


def _optimal(plan: mp.Plan) -> mp.Plan:
    """Return a plan that claims one byte more than is true."""
    return mp.Plan(
        **{
            **{name: getattr(plan, name) for name in plan.__dataclass_fields__},
            "lower_bound": plan.lower_bound + 1,
        }
    )


@pytest.mark.parametrize("kind", WRONG)
def test_a_false_claim_is_found(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests bounds that are raised by one: the command names the question, and ends with 1."""
    room, name, spoil = WRONG[kind]
    right = getattr(room, name)
    monkeypatch.setattr(room, name, lambda *given, **options: spoil(right(*given, **options)))
    assert main(["claims", "--kind", kind, "--count", "20"]) == 1
    out = capsys.readouterr().out
    assert f"false: {kind} " in out
    assert f"{kind}: 20 asked" in out


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests its lines, and a kind that does not exist."""
    assert main(["claims", "--kind", "order", "--count", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "in all: 3 asked, 0 false"
    assert main(["claims", "--kind", "all"]) == 2
    assert "no kind of question is 'all'; there are" in capsys.readouterr().err

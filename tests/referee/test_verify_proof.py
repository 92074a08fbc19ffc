"""Tests of `memplan.referee.verify_proof`: what is right passes, and nothing that is false does."""

from __future__ import annotations

import re
from pathlib import Path

import oracle
import proofs
import pytest
import strategies
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import memplan as mp
from memplan.referee import proofs as reader
from memplan.referee.proofs import Claim, verify_proof

FEATURES = strategies.FEATURES - {"windows", "capacity", "hints"}


def small_problems(min_buffers: int = 1) -> st.SearchStrategy[mp.Problem]:
    """Problems that a proof can speak of, and that brute force can take."""
    return strategies.problems(
        min_buffers=min_buffers, max_buffers=5, max_size=4, max_time=6, features=FEATURES
    )


def best_peak(problem: mp.Problem) -> int:
    """Return the true optimum; without a capacity there is always one."""
    best = oracle.minimum_peak(problem)
    assert best is not None
    return best


def rebuilt(problem: mp.Problem, **columns: object) -> mp.Problem:
    """Return a problem with some columns replaced."""
    names = ("gap_buffer", "gap_start", "gap_end", "gap_lower", "gap_upper")
    same = {name: getattr(problem, name) for name in ("start", "end", "size", "alignment", "pin")}
    gaps = [getattr(problem, name) for name in names]
    return mp.Problem.from_arrays(**(same | columns), gaps=gaps)  # type: ignore[arg-type]


def judged(problem: mp.Problem, proof: Path | list[str]) -> Claim | None:
    """Return what a proof proves, or None if it is refused in one sentence."""
    try:
        return verify_proof(problem, proof)
    except mp.ProofError as error:
        sentence = str(error)
    assert "\n" not in sentence
    return None


@pytest.fixture
def jagged() -> mp.Problem:
    """Return eight buffers of load 6 that need 7, found by brute force."""
    lives = [(4, 6, 2), (2, 6, 2), (3, 5, 1), (5, 7, 2), (0, 2, 3), (1, 4, 1), (1, 5, 1), (2, 3, 2)]
    return mp.Problem([mp.Buffer(f"b{i}", *life) for i, life in enumerate(lives)])


# What is right ---------------------------------------------------------------------------------


def test_a_proof_of_a_peak_above_the_load(jagged: mp.Problem) -> None:
    """Tests that the optimum of eight buffers is proved, and how long the proof is."""
    lines = proofs.split(jagged, 6)
    assert lines is not None
    clauses = sum(line.startswith("c ") for line in lines)
    steps = sum(line.startswith(("d ", "use ")) for line in lines)
    assert verify_proof(jagged, lines) == Claim(6, 7, steps, clauses)
    assert clauses > 1
    assert proofs.split(jagged, 7) is None


@settings(max_examples=150)
@given(problem=small_problems())
def test_every_optimum_can_be_proved(problem: mp.Problem) -> None:
    """Tests that the rules are complete: what brute force calls too small is refuted."""
    best = best_peak(problem)
    assert proofs.split(problem, best) is None
    assume(best > 0)
    lines = proofs.split(problem, best - 1)
    assert lines is not None
    claim = verify_proof(problem, lines)
    assert (claim.cap, claim.lower_bound) == (best - 1, best)


@settings(max_examples=80)
@given(
    problem=strategies.problems(
        min_buffers=1, max_buffers=5, max_size=4, features=frozenset({"gaps"})
    ),
    factor=st.sampled_from((3, 64, 12)),
    aligned=st.integers(0, 31),
    short=st.integers(1, 64),
)
def test_a_coarse_unit_says_more(
    problem: mp.Problem, factor: int, aligned: int, short: int
) -> None:
    """Tests that anything below the optimum will do, if the unit divides sizes and alignments."""
    alignment = [factor if aligned >> row & 1 else 1 for row in range(len(problem))]
    scaled = rebuilt(problem, size=problem.size * factor, alignment=alignment)
    best = best_peak(problem) * factor
    lines = proofs.split(scaled, best - min(short, factor), unit=factor)
    assert lines is not None
    assert verify_proof(scaled, lines).lower_bound == best


def test_sizes_near_the_limit() -> None:
    """Tests that nothing is rounded or wraps around at 2^62 bytes."""
    half = 1 << 61
    problem = mp.Problem([mp.Buffer("a", 0, 2, half - 1), mp.Buffer("b", 0, 3, half + 1)])
    cap = (1 << 62) - 1
    lines = [*proofs.head(problem, cap), "d - <- 0>=0 1>=0", "c 1", "refuted"]
    assert verify_proof(problem, lines) == Claim(cap, 1 << 62, 1, 1)


def test_a_buffer_that_cannot_fit_by_itself() -> None:
    """Tests that pins, alignments and reserved ranges count, also where nothing is ever held."""
    gap = (mp.Gap(0, 3),)
    for buffer, reserved, peak in [
        (mp.Buffer("a", 0, 3, 4, pin=9), [], 13),
        (mp.Buffer("a", 0, 3, 0, pin=9), [], 9),
        (mp.Buffer("a", 0, 3, 4, pin=9, gaps=gap), [], 13),
        (mp.Buffer("a", 0, 3, 4, alignment=6), [(1, 5)], 10),
        (mp.Buffer("a", 0, 3, 4, alignment=6, gaps=gap), [(1, 5)], 10),
        (mp.Buffer("a", 0, 3, 4, gaps=gap), [(3, 5), (8, 9)], 13),
    ]:
        problem = mp.Problem([buffer], reserved=reserved)
        lines = [*proofs.head(problem, peak - 1), "c 1", "refuted"]
        assert verify_proof(problem, lines) == Claim(peak - 1, peak, 0, 1)
        with pytest.raises(mp.ProofError, match="line 5: clause 1 does not follow"):
            verify_proof(problem, [*proofs.head(problem, peak), "c 1", "refuted"])


# The rules of derivations, one by one. Sizes 2, 3, 4, 5, all live at once, and room for 14: the
# rows 0 to 3 fill it from 0 to 14.

FULL = mp.Problem.from_arrays([0] * 4, [1] * 4, [2, 3, 4, 5])


@pytest.mark.parametrize(
    ("cap", "line", "valid"),
    [
        # one below another
        (99, "d 1>=2 <- 0<1", True),
        (99, "d 1>=3 <- 0<1", False),
        (99, "d 1>=9 <- 0<1 0>=7", True),
        (99, "d 1>=10 <- 0<1 0>=7", False),
        (99, "d 0<=5 <- 0<1 1<=7", True),
        (99, "d 0<=4 <- 0<1 1<=7", False),
        (99, "d 2>=5 <- 0<1 1<2", True),
        (99, "d - <- 0<1 1<2 2<0", True),
        (99, "d - <- 0<1 1<2 2<3", False),
        # no room below
        (99, "d 1<0 <- 0>=5 1<=6", True),
        (99, "d 1<0 <- 0>=4 1<=6", False),
        (99, "d 0<1 <- 1>=5 0<=7", True),
        (99, "d 0<1 <- 1>=5 0<=8", False),
        # above a set: 2 + 3 + 4 units and more are below row 3
        (99, "d 3>=9 <- 0<3 1<3 2<3", True),
        (99, "d 3>=10 <- 0<3 1<3 2<3", False),
        (99, "d 3>=14 <- 0<3 1<3 2<3 0>=5 1>=5 2>=5", True),
        (99, "d 3>=15 <- 0<3 1<3 2<3 0>=5 1>=5 2>=5", False),
        (99, "d 0<=85 <- 0<1 0<2 0<3", True),
        (99, "d 0<=84 <- 0<1 0<2 0<3", False),
        # a set that does not fit
        (13, "d - <- 0>=0 1>=0 2>=0 3>=0", True),
        (14, "d - <- 0>=0 1>=0 2>=0 3>=0", False),
        (99, "d - <- 1>=4 2>=4 3>=4 1<=12 2<=11 3<=10", True),
        (99, "d - <- 1>=4 2>=4 3>=4 1<=13 2<=12 3<=11", False),
        # a row that does not fit among a set lies above all of it
        (99, "d 0<3 <- 0<=7 1<=6", True),
        (99, "d 0<3 <- 0<=8 1<=7", False),
        # what follows from nothing, and what never does
        (99, "d 0>=0 <-", True),
        (99, "d 0<=97 <-", True),
        (99, "d 0<=96 <-", False),
        (99, "d 0<1 <-", False),
        (99, "d - <-", False),
        (99, "d 0<1 <- 1<0 1<2 2<0 3<=-1", True),
    ],
)
def test_a_derivation(cap: int, line: str, valid: bool) -> None:
    """Tests that each of the three rules goes as far as it should, and no further."""
    lines = [*proofs.head(FULL, cap), line]
    sentence = "line 5: the proof ends too early" if valid else "line 5: .* does not follow"
    with pytest.raises(mp.ProofError, match=sentence):
        verify_proof(FULL, lines)


@pytest.mark.parametrize(
    ("cap", "line", "valid"),
    [
        (9, "d - <- 2<0 0<3", True),
        (10, "d - <- 2<0 0<3", False),
        (9, "d 0<2 <- 0<3", True),
        (9, "d - <- 3<0 0<2", True),
        (9, "d - <- 2<0 3<0", False),
        (13, "d - <- 2<0 0<3 3<=5", False),
    ],
)
def test_what_lives_at_two_times_lies_on_one_side(cap: int, line: str, valid: bool) -> None:
    """Tests rule four: row 1 (1 byte) and row 0 (2) live always, row 2 (3) early, row 3 (4) late.

    With row 2 below row 0 and row 3 above it they need 10 bytes, wherever row 1 lies.
    """
    problem = rows((0, 4, 2), (0, 4, 1), (0, 1, 3), (3, 4, 4))
    assert (accepts(problem, line, cap=cap) == "") == valid


def test_a_clause_gives_its_last_open_literal_only() -> None:
    """Tests that two literals that may hold give neither."""
    either, chain = "c 1 0<1 1<0", "d 0<2 <- 0<1 1<2"
    assert accepts(FULL, either, chain, "c 2 0<2 1<0 2<1") == ""
    assert accepts(FULL, either, "use 1", chain, "c 2 0<2 1<0 2<1") == ""
    assert "does not follow" in accepts(FULL, either, "use 1", chain, "c 2 0<2 2<1")


# What may be assumed ---------------------------------------------------------------------------


def rows(*lives: tuple[int, int, int], **constraints: object) -> mp.Problem:
    """Return a problem of (start, end, size)."""
    columns = zip(*lives, strict=True)
    return mp.Problem.from_arrays(*map(list, columns), **constraints)  # type: ignore[arg-type]


THREE = rows((0, 4, 2), (0, 4, 2), (0, 4, 2), (1, 2, 1))


def accepts(problem: mp.Problem, *lines: str, cap: int = 99, unit: int = 1) -> str:
    """Return what is said of the last of these lines, or "" if all of them are right."""
    with pytest.raises(mp.ProofError) as caught:
        verify_proof(problem, [*proofs.head(problem, cap, unit), *lines])
    said = str(caught.value)
    if "ends too early" in said:
        return ""
    assert caught.value.line == 4 + len(lines)
    assert "\n" not in said
    return said


def test_twins_are_taken_in_one_order() -> None:
    """Tests that twins are a fact, in any order that does not run in a circle."""
    assert accepts(THREE, "twins 0 1", "d 1>=2 <- 0>=0 1>=0") == ""
    assert "does not follow" in accepts(THREE, "d 1>=2 <- 0>=0 1>=0")
    assert accepts(THREE, "twins 2 0", "twins 0 1", "twins 2 1") == ""
    assert "row 2 was put above row 1" in accepts(THREE, "twins 1 0", "twins 0 2", "twins 2 1")
    assert "row 0 was put above row 1" in accepts(THREE, "twins 1 0", "twins 0 1")


@pytest.mark.parametrize(
    "problem",
    [
        rows((0, 4, 2), (0, 4, 3)),
        rows((0, 4, 2), (0, 4, 2), alignment=[1, 4]),
        rows((0, 4, 2), (0, 4, 2), pin=[4, -1]),
        rows((0, 4, 2), (0, 5, 2), (4, 6, 1)),
        rows((0, 4, 2), (0, 4, 2), (1, 2, 1), gaps=([1], [1], [2], [-1], [-1])),
    ],
    ids=["size", "alignment", "pin", "neighbours", "gap"],
)
def test_rows_that_cannot_be_exchanged(problem: mp.Problem) -> None:
    """Tests that twins differ in nothing that matters."""
    assert "the rows 0 and 1 cannot be exchanged" in accepts(problem, "twins 0 1")


def test_rows_that_differ_in_what_does_not_matter() -> None:
    """Tests that lifetimes may differ where no other buffer lives, and alignments of the unit."""
    assert accepts(rows((0, 4, 2), (0, 5, 2), (1, 2, 1)), "twins 0 1") == ""
    aligned = rows((0, 4, 8), (0, 4, 8), alignment=[4, 8])
    assert accepts(aligned, "twins 0 1") == ""


def test_rows_with_one_place_between_them() -> None:
    """Tests that a pin is no more than having one legal offset, which the cap may decide."""
    problem = rows((0, 4, 5), (0, 4, 5), pin=[-1, 8], reserved=[(0, 7)], alignment=[4, 4])
    assert accepts(problem, "twins 0 1", cap=16) == ""
    assert "cannot be exchanged" in accepts(problem, "twins 0 1", cap=17)
    assert accepts(problem, "cap 16", "twins 0 1", cap=17) == ""


def test_a_plan_can_be_turned_upside_down_once() -> None:
    """Tests that one pair fixes what is up, in everything that hangs together."""
    chain = rows((0, 2, 1), (1, 4, 2), (3, 5, 3), (4, 5, 4), (5, 7, 5), (6, 8, 6))
    assert accepts(chain, "flip 0 1", "d 1>=1 <- 0>=0 1>=0") == ""
    assert accepts(chain, "flip 1 0", "flip 5 4") == ""
    assert "flipped only once" in accepts(chain, "flip 0 1", "flip 2 3")
    assert "flipped only once" in accepts(chain, "flip 0 1", "flip 0 1")


def test_a_row_that_conflicts_with_all_lies_at_the_bottom() -> None:
    """Tests `base`: it is below all that it is connected to, which then may fall apart."""
    tree = rows((0, 9, 1), (0, 4, 2), (5, 9, 3), (0, 2, 4), (3, 4, 5), (6, 8, 6))
    lifted = "d 3>=3 <- 0<3 1<3"
    assert accepts(tree, "base 0", "base 1", "base 2", lifted, "d 5>=4 <- 0<5 2<5") == ""
    assert accepts(tree, "base 0", "flip 1 3", "flip 2 5") == ""
    assert "row 1 does not conflict" in accepts(tree, "base 1")
    assert "row 3 does not conflict" in accepts(tree, "base 0", "base 3")
    assert "already lies at the bottom" in accepts(tree, "base 0", "base 0")
    assert "lies at the bottom" in accepts(tree, "base 0", "flip 0 1")
    assert "was flipped" in accepts(tree, "flip 1 3", "base 0")
    assert "was flipped" in accepts(tree, "base 0", "flip 1 3", "base 1")
    assert accepts(tree, "base 0", "flip 1 3", "base 2") == ""
    twice = rows((0, 4, 2), (0, 4, 2), (1, 2, 1), alignment=[1, 1, 4])
    assert "offsets are restricted" in accepts(twice, "base 0")
    twice = twice.subset([0, 1])
    assert "has a twin" in accepts(twice, "twins 0 1", "base 0")
    assert "lies at the bottom" in accepts(twice, "base 0", "twins 0 1")


def test_twins_are_not_flipped() -> None:
    """Tests both orders of the two lines."""
    assert "has a twin" in accepts(THREE, "twins 0 1", "flip 1 3")
    assert "was flipped" in accepts(THREE, "flip 1 3", "twins 0 1")
    assert accepts(THREE, "flip 2 3", "twins 0 1") == ""


@pytest.mark.parametrize(
    "problem",
    [
        rows((0, 4, 2), (0, 4, 3), alignment=[1, 2]),
        rows((0, 4, 2), (0, 4, 3), (3, 5, 1), pin=[-1, -1, 0]),
        rows((0, 4, 2), (0, 4, 3), reserved=[(98, 100)]),
    ],
    ids=["alignment", "pin", "reserved"],
)
def test_what_restricts_offsets_is_not_turned_upside_down(problem: mp.Problem) -> None:
    """Tests that a flip needs every offset to be as good as any other."""
    assert "offsets are restricted" in accepts(problem, "flip 0 1")


def test_what_is_reserved_above_the_cap_restricts_nothing() -> None:
    """Tests that plans in question end below it; and that a cap comes before the rows."""
    problem = rows((0, 4, 4), (0, 4, 6), reserved=[(99, 100)])
    assert accepts(problem, "flip 0 1", "d 0>=2 <- 0>=1", cap=99) == ""
    assert "are restricted" in accepts(problem, "rows 0 1", "cap 5", "flip 0 1", cap=100)
    assert accepts(problem, "cap 5", "rows 0 1", "flip 0 1", cap=100) == ""


def test_a_pin_that_leaves_no_choice_restricts_nothing() -> None:
    """Tests that a row as large as the cap lies at 0, pinned or not."""
    problem = rows((0, 4, 4), (0, 4, 6), pin=[-1, 0])
    assert accepts(problem, "flip 0 1", cap=7) == ""
    assert "are restricted" in accepts(problem, "flip 0 1", cap=8)
    assert "are restricted" in accepts(problem.with_pins({"1": 4}), "flip 0 1", cap=7)


@pytest.mark.parametrize(
    ("problem", "least"),
    [
        (rows((0, 1, 4), (0, 1, 6)), 2),
        (rows((0, 1, 4), (0, 1, 6), (0, 1, 3)), 1),
        (rows((0, 1, 4), (0, 1, 6), (1, 2, 7)), 2),
        (rows((0, 1, 4), (0, 1, 8), alignment=[1, 2]), 4),
        (rows((0, 1, 4), (0, 1, 8), alignment=[1, 8]), 1),
        (rows((0, 1, 4), (0, 1, 8), alignment=[2, 8]), 2),
        (rows((0, 1, 4), (0, 1, 8), pin=[-1, 9]), 1),
        (rows((0, 1, 4), (0, 1, 8), (1, 2, 1), pin=[-1, -1, 9]), 4),
        (rows((0, 1, 4), (0, 1, 8), reserved=[(40, 44)]), 1),
        (rows((0, 1, 4), (0, 1, 8), reserved=[(4, 9)]), 9),
        (rows((0, 1, 4), (0, 1, 8), reserved=[(4, 9)], alignment=[2, 1]), 10),
    ],
)
def test_bounds_are_legal_offsets(problem: mp.Problem, least: int) -> None:
    """Tests which offset comes after 0: sums of sizes where nothing else restricts them."""
    for value in range(1, 20):
        assert (accepts(problem, f"d 0>={value} <- 0>=1") == "") == (value <= least)
        assert (accepts(problem, f"d 0<=0 <- 0<={value}") == "") == (value < least)


def test_rows_that_are_looked_at_by_themselves() -> None:
    """Tests that others have no say: in conflicts, twins, flips and what sizes have in common."""
    problem = rows((0, 4, 4), (0, 5, 4), (0, 2, 6), (4, 6, 1), (4, 6, 2), alignment=[1, 1, 1, 8, 1])
    assert "cannot be exchanged" in accepts(problem, "twins 0 1")
    assert "are restricted" in accepts(problem, "flip 0 2")
    assert accepts(problem, "rows 0 1 2", "twins 0 1", "d 0>=2 <- 0>=1") == ""
    assert "does not follow" in accepts(problem, "rows 0 1 2", "d 0>=3 <- 0>=1")
    assert accepts(problem, "rows 0 1", "d 0>=4 <- 0>=1", "rows 2", "flip 0 1") == ""
    assert "never hold memory together" in accepts(problem, "rows 0 1", "rows 2", "d 0<2 <-")
    assert "no row 3 that holds" in accepts(problem, "rows 0 1", "d 3>=0 <-")
    assert "row 1 was named before" in accepts(problem, "rows 0 1", "rows 2 1")
    assert "row 2 was named before" in accepts(problem, "rows 2 2")
    assert "row 2 was named before" in accepts(problem, "d 0>=0 <-", "rows 2")
    assert "no row 7 that holds" in accepts(problem, "rows 0 7")
    together = "d - <- 0>=0 1>=0 2>=0"
    assert accepts(problem, "rows 0 1 2", together, cap=13) == ""
    assert "does not follow" in accepts(problem, "rows 0 1 2", together, cap=14)
    assert "does not follow" in accepts(problem, "rows 0 1", "rows 2", together, cap=13)


def test_the_bound_is_that_of_all_rows() -> None:
    """Tests that peaks are multiples of what divides all sizes, not those of some rows."""
    problem = rows((0, 1, 4), (0, 1, 4), (1, 2, 6), (1, 2, 1))
    refuted = ["rows 0 1", "d - <- 0>=0 1>=0", "c 1", "refuted"]
    assert verify_proof(problem, [*proofs.head(problem, 6), *refuted]).lower_bound == 7
    even = problem.subset([0, 1, 2])
    assert verify_proof(even, [*proofs.head(even, 6), *refuted]).lower_bound == 8


def test_the_unit_is_only_how_literals_are_counted() -> None:
    """Tests that offsets are multiplied by the unit, that rows are not, and that it may change."""
    lines = ["unit 8", "d 1>=1 <- 0<1 0>=0", "unit 4", "d 1>=2 <- 0<1 0>=0"]
    problem = rows((0, 1, 8), (0, 1, 16))
    assert accepts(problem, *lines) == ""
    assert "does not follow" in accepts(problem, *lines[:3], "d 1>=3 <- 0<1 0>=0")
    assert "the unit is 0" in accepts(problem, "unit 0")


def test_the_cap_only_sinks(five: mp.Problem) -> None:
    """Tests that the last cap is the claim, and that the rooms sink with it."""
    lines = ["d 0<=7 <-", "cap 11", "d - <- 0>=0 2>=0 4>=0", "c 1", "refuted"]
    claim = verify_proof(five, [*proofs.head(five, 11 + 4), *["d 0<=11 <-"], *lines[1:]])
    assert claim == Claim(11, 12, 2, 1)
    assert "does not follow" in accepts(five, *lines[:1], cap=15)
    assert "the cap rises from 11 to 12" in accepts(five, "cap 11", "cap 12", cap=12)


# What is wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", '"" is not a line of a proof'),
        ("# comment", '"#" is not a line of a proof'),
        (" c 1", '"" is not a line of a proof'),
        ("D - <-", '"D" is not a line of a proof'),
        ("d", 'a derived line is "d"'),
        ("d 0<1", 'a derived line is "d"'),
        ("d 0<1  <-", 'a derived line is "d"'),
        ("d 0<1 <-  1>=0", '"" is no literal'),
        ("d - <- -", '"-" is no literal'),
        ("d 0<1 <- 1>0", '"1>0" is no literal'),
        ("d 0<1 <- 1>=0.5", '"1>=0.5" is no literal'),
        ("d 0<1 <- 1>=+5", '"1>=+5" is no literal'),
        ("d 0<1 <- 1>=1_0", '"1>=1_0" is no literal'),
        ("d 0<1 <- 1>=\u0661", "is no literal"),
        ("d 0<1 <- 1>=" + "9" * 20, "is no literal"),
        ("d 0<1 <- 1>=" + "9" * 9999, "is no literal"),
        ("d 0<9 <-", "there is no row 9 that holds memory"),
        ("d 5<0 <-", "there is no row 5 that holds memory"),
        ("d 0<-1 <-", "there is no row -1 that holds memory"),
        ("d 0<0 <-", "the rows 0 and 0 never hold memory together"),
        ("d 0<1 <-", "the rows 0 and 1 never hold memory together"),
        ("twins 0", "this line must name two rows"),
        ("twins 0 1 2", "this line must name two rows"),
        ("twins 0 x", '"x" is not a number'),
        ("flip 0 1", "the rows 0 and 1 never hold memory together"),
        ("cap", "this line must have one number"),
        ("cap -5", '"-5" is not a number'),
        ("cap 0x5", '"0x5" is not a number'),
        ("use 0", "there is no clause 0 yet"),
        ("use 1", "there is no clause 1 yet"),
        ("c", 'this one must begin with "c 1"'),
        ("c 2 0<2", 'this one must begin with "c 1"'),
        ("c 1 0<2", "clause 1 does not follow"),
        ("c 1", "clause 1 does not follow"),
        ("refuted", '"refuted" must follow a clause without literals'),
        ("memplan-proof 1", '"memplan-proof" is not a line of a proof'),
    ],
)
def test_a_wrong_line_is_one_sentence(line: str, sentence: str) -> None:
    """Tests that line and mistake are named."""
    problem = rows((0, 2, 2), (2, 4, 2), (0, 4, 2), (1, 3, 2), (0, 4, 5), (0, 4, 0))
    assert sentence in accepts(problem, line, cap=10)


@pytest.mark.parametrize(
    ("at", "line", "sentence"),
    [
        (0, "memplan-proof 2", 'line 1: the version is "2"; only 1 is known'),
        (0, "", 'line 1: this line must be "memplan-proof" and one word; is this a proof?'),
        (1, "problem sha256:" + "0" * 64, "line 2: the proof is about another problem"),
        (1, "problem", 'line 2: this line must be "problem" and one word'),
        (2, "unit 0", "line 3: the unit is 0; it must be at least 1"),
        (2, "unit -4", 'line 3: "-4" is not a number'),
        (3, "cap 5 6", "line 4: this line must have one number"),
    ],
)
def test_a_wrong_head(five: mp.Problem, at: int, line: str, sentence: str) -> None:
    """Tests that each of the first four lines must be there."""
    lines = proofs.head(five, 11)
    lines[at] = line
    with pytest.raises(mp.ProofError, match=re.escape(sentence)):
        verify_proof(five, lines)


def test_a_proof_ends_where_it_says_so(five: mp.Problem) -> None:
    """Tests that nothing is claimed before the last line, and nothing is said after it."""
    lines = [*proofs.head(five, 11), "d - <- 0>=0 2>=0 4>=0", "c 1", "refuted"]
    assert verify_proof(five, lines).cap == 11
    for end in range(len(lines)):
        with pytest.raises(mp.ProofError):
            verify_proof(five, lines[:end])
    for more in ("refuted", "cap 3", "c 2", ""):
        with pytest.raises(mp.ProofError, match="line 8: "):
            verify_proof(five, [*lines, more])
    with pytest.raises(mp.ProofError, match="must follow a clause"):
        verify_proof(five, [*lines[:-1], "d 0>=0 <-", "refuted"])
    without_cap = [*lines[:3], *lines[4:]]
    with pytest.raises(mp.ProofError, match="line 4: - does not follow"):
        verify_proof(five, without_cap)


def test_windows_are_refused_by_name() -> None:
    """Tests that a proof is not held against a problem that it cannot speak of."""
    problem = mp.Problem([mp.Buffer("a", 0, 5, 4, gaps=(mp.Gap(1, 2, (0, 1)),))])
    with pytest.raises(mp.UnsupportedError, match="windows"):
        verify_proof(problem, proofs.head(problem, 3))


# Files and forgers -----------------------------------------------------------------------------


def test_a_file(five: mp.Problem, tmp_path: Path) -> None:
    """Tests that a path is read, with any line ends."""
    lines = [*proofs.head(five, 11), "d - <- 0>=0 2>=0 4>=0", "c 1", "refuted"]
    file = tmp_path / "five.proof"
    for end in ("\n", "\r\n"):
        file.write_bytes(end.join([*lines, ""]).encode())
        assert verify_proof(five, file) == verify_proof(five, str(file)) == Claim(11, 12, 1, 1)
    file.write_text("\n".join(lines))
    assert verify_proof(five, file).cap == 11
    with pytest.raises(mp.FormatError, match=r"nothing\.proof: the file cannot be read"):
        verify_proof(five, tmp_path / "nothing.proof")


@given(data=st.binary(max_size=200), keep=st.integers(0, 200))
@example(data=b"\0" * 9, keep=0)
@example(data=b"\xff\xfe\r\x85\x0c", keep=160)
def test_garbage_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, keep: int
) -> None:
    """Tests that bytes of any kind, alone or after the beginning of a proof, are one sentence."""
    problem = THREE
    good = "\n".join([*proofs.head(problem, 6), "d - <- 0>=0 1>=0 2>=0 3>=0", "c 1", "refuted"])
    file = tmp_path_factory.getbasetemp() / "garbage.proof"
    assume(good.encode()[:keep] + data not in (good.encode(), good.encode() + b"\n"))
    file.write_bytes(good.encode()[:keep] + data)
    claim = judged(problem, file)
    assert claim is None or claim.cap < 7


@st.composite
def changed(draw: st.DrawFn, lines: list[str]) -> list[str]:
    """Drop, repeat and exchange lines of a proof, drop words and change numbers."""
    lines = list(lines)
    for _ in range(draw(st.integers(1, 3))):
        at, other = (draw(st.integers(0, max(0, len(lines) - 1))) for _ in range(2))
        words = lines[at].split(" ") if lines else [""]
        word = draw(st.integers(0, len(words) - 1))
        number = draw(st.integers(-1, 9))
        match draw(st.sampled_from(("drop", "repeat", "swap", "cut", "word", "number", "sign"))):
            case "drop":
                del lines[at : at + 1]
            case "repeat":
                lines.insert(other, " ".join(words))
            case "swap" if lines:
                lines[at], lines[other] = lines[other], lines[at]
            case "cut":
                del lines[at:]
            case "word":
                del words[word]
                lines[at : at + 1] = [" ".join(words)]
            case "number":
                words[word] = re.sub("-?[0-9]+", str(number), words[word], count=1)
                lines[at : at + 1] = [" ".join(words)]
            case "sign":
                words[word] = re.sub(
                    "[<>]=?", draw(st.sampled_from(("<", ">=", "<="))), words[word]
                )
                lines[at : at + 1] = [" ".join(words)]
    return lines


@pytest.mark.slow
@settings(max_examples=400)
@given(problem=small_problems(min_buffers=2), data=st.data())
def test_no_changed_proof_proves_what_is_false(problem: mp.Problem, data: st.DataObject) -> None:
    """Tests that a proof with a few changes is refused, or right by itself."""
    best = best_peak(problem)
    assume(best > 0)
    lines = proofs.split(problem, best - 1)
    assert lines is not None
    claim = judged(problem, data.draw(changed(lines)))
    assert claim is None or claim.lower_bound <= best


@st.composite
def guesses(draw: st.DrawFn, count: int) -> str:
    """Make up a line that a forger might try."""
    row = st.integers(0, count - 1)
    several = st.lists(row, min_size=1, max_size=4, unique=True).map(
        lambda r: " ".join(map(str, r))
    )
    order = st.tuples(row, row).map(lambda pair: f"{pair[0]}<{pair[1]}")
    bound = st.tuples(row, st.sampled_from((">=", "<=")), st.integers(0, 9)).map(
        lambda parts: "".join(map(str, parts))
    )
    literals = st.lists(order | order | bound, max_size=3).map(" ".join)
    line = draw(
        st.one_of(
            st.tuples(st.just("d"), order | bound | st.just("-"), st.just("<-"), literals),
            st.tuples(st.just("c N"), order | bound | st.just(""), literals),
            st.tuples(st.sampled_from(("twins", "flip")), row, row),
            st.tuples(st.just("use"), st.integers(1, 9)),
            st.tuples(st.just("rows"), several),
            st.tuples(st.just("base"), row),
        )
    )
    return " ".join(map(str, line)).replace("  ", " ").rstrip()


@pytest.mark.slow
@settings(max_examples=400)
@given(problem=small_problems(min_buffers=2), data=st.data(), unit=st.sampled_from((1, 1, 3)))
def test_a_forger_gets_nowhere(problem: mp.Problem, data: st.DataObject, unit: int) -> None:
    """Tests that no lines, however they are chosen, refute a cap under which there is a plan."""
    best = best_peak(problem) * unit
    if unit > 1:
        assume(not problem.has_alignment and not problem.has_pins and not problem.reserved)
        problem = rebuilt(problem, size=problem.size * unit)
    cap = best + data.draw(st.integers(0, 3))
    lines = iter([f"{line}\n" for line in proofs.head(problem, cap, unit)])
    proof = reader._read_head(problem, (line.split() for line in lines))
    for line in data.draw(st.lists(guesses(len(problem)), max_size=40)):
        for each in (line, "c N"):
            try:
                proof.read(each.replace("N", str(len(proof._clauses) + 1)).split(" "))
            except mp.ProofError:
                continue
            assert each != "c N"
    assert not proof._facts.broken

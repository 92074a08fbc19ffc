"""Tests that programs share one arena, and that nothing which must survive is written over."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path

import pytest
from rounds import rounds

import memplan as mp
from memplan.base.errors import FormatError, MemplanError, PlanError, ProblemError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.plan import Kept, Plan
from memplan.referee import Tenant, verify_together
from memplan.scenarios.together import Together, plan_together

ONE = Problem([Buffer("a", 0, 2, 60), Buffer("result", 1, 3, 8)])
TWO = Problem([Buffer("b", 0, 1, 64), Buffer("answer", 1, 2, 8)])


def share(*programs: Problem, **asked: object) -> Together:
    """Plan programs with short names."""
    names = ["one", "two", "three"][: len(programs)]
    return plan_together(programs, names=names, **asked)  # type: ignore[arg-type]


def test_without_anything_kept_the_largest_program_is_the_arena() -> None:
    """Tests that programs that keep nothing need as much as the largest of them."""
    found = share(ONE, TWO)
    assert (found.peak, str(found.plan.status)) == (68, "optimal")
    assert (found.by_hand, found.separate) == (68, 68 + 64)


def test_what_is_kept_survives_every_other_program() -> None:
    """Tests that what is kept survives every other program."""
    found = share(ONE, TWO, keep=["one:result", "answer"])
    assert (found.peak, found.by_hand, found.kept) == (76, 84, (("result",), ("answer",)))
    assert found.verify() == found.peak == max(each.plan.peak or 0 for each in found.programs)


def test_a_kept_result_may_lie_where_its_own_program_works_before_it_is_made() -> None:
    """Tests that a kept result may lie where its own program works before it is made."""
    early = Problem([Buffer("work", 0, 1, 40), Buffer("result", 1, 2, 40)])
    assert share(early, Problem([Buffer("b", 0, 1, 10)]), keep=["result"]).peak == 50


def test_an_input_that_is_kept_outlives_its_last_reader() -> None:
    """Tests that an input that is kept outlives its last reader."""
    fed = Problem([Buffer("input", 0, 1, 16), Buffer("late", 1, 2, 16)])
    assert share(fed, TWO).peak == 64
    assert share(fed, TWO, keep=["input"]).peak == 80


def test_programs_that_may_run_at_once_share_nothing() -> None:
    """Tests that programs that may run at once share nothing."""
    small = Problem([Buffer("c", 0, 1, 5)])
    found = share(ONE, TWO, small, overlap=[("one", "two"), ("two", "one")])
    assert found.overlap == ((0, 1),)
    assert found.peak == found.by_hand == 68 + 64
    assert str(found.plan.status) == "optimal"


def test_pins_and_windows_are_kept_to() -> None:
    """Tests that pins, windows and gaps hold in the arena too."""
    pinned = Problem([Buffer("p", 0, 2, 8, pin=16), Buffer("q", 1, 2, 8)])
    gaps = (Gap(1, 2, (0, 4)), Gap(2, 3))
    windowed = Problem([Buffer("w", 0, 4, 16, gaps=gaps), Buffer("x", 1, 2, 12)])
    found = share(pinned, windowed, keep=["q", "w"])
    assert found.programs[0].plan.offset("p") == 16
    assert found.verify() == found.peak == 32


def test_an_arena_is_never_larger_than_by_hand() -> None:
    """Tests a kept buffer that people put above an arena whose size suits no other place."""
    large = Problem([Buffer("a", 0, 2, 64, 16), Buffer("b", 1, 2, 32, 16)])
    found = share(large, Problem([Buffer("c", 0, 1, 4)]), keep=["c"], capacity=1000)
    assert (found.peak, found.by_hand) == (100, 100)
    odd = Problem([Buffer("d", 0, 1, 33), Buffer("e", 0, 1, 8, 32)])
    found = share(large, odd, keep=["b", "d", "e"], overlap=[("one", "two")])
    assert found.peak <= found.by_hand


def test_a_capacity_that_does_not_hold_them_is_refused() -> None:
    """Tests that a capacity that does not hold them is refused."""
    assert share(ONE, TWO, keep=["result", "answer"], capacity=76).peak == 76
    with pytest.raises(PlanError, match='"one", "two" do not fit into one arena of 75 bytes'):
        share(ONE, TWO, keep=["result", "answer"], capacity=75)
    with pytest.raises(PlanError, match="one arena of 60 bytes"):
        share(ONE.with_capacity(60), TWO)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"keep": ["nothing"]}, 'no tensor "nothing" is planned in "one", "two"'),
        ({"keep": ["two:result"]}, 'no tensor "two:result"'),
        ({"keep": ["outputs"]}, 'no tensor "outputs"'),
        ({"overlap": [("one", "six")]}, 'no program has the name "six"'),
        ({"overlap": [("one", "one")]}, '"one" cannot overlap with itself'),
        ({"names": ["x", "x"]}, 'two programs have the name "x"'),
        ({"names": ["x"]}, "1 names for 2 programs"),
    ],
)
def test_wrong_words_are_refused(asked: dict[str, object], words: str) -> None:
    """Tests that names which nothing has, or several, are refused in one sentence."""
    with pytest.raises(MemplanError, match=words):
        plan_together([ONE, TWO], **({"names": ["one", "two"]} | asked))  # type: ignore[arg-type]


def test_a_name_of_several_programs_needs_its_program() -> None:
    """Tests that a name of several programs needs its program."""
    with pytest.raises(MemplanError, match='"one", "two" each have a tensor "a"'):
        share(ONE, ONE, keep=["a"])
    assert share(ONE, ONE, keep=["two:a"]).kept == ((), ("a",))


def test_one_program_is_not_together() -> None:
    """Tests that one program needs no shared arena."""
    with pytest.raises(MemplanError, match="at least two programs"):
        share(ONE)


def test_reserved_addresses_hold_for_all() -> None:
    """Tests that reserved addresses hold for all."""
    with pytest.raises(MemplanError, match='"two" reserves other addresses than "one"'):
        share(ONE.with_reserved([(0, 8)]), TWO)
    both = share(ONE.with_reserved([(0, 8)]), TWO.with_reserved([(0, 8)]))
    assert both.peak == 68 + 8


def test_files_are_named_after_themselves(tmp_path: Path) -> None:
    """Tests that files are named after themselves."""
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        mp.save(ONE, tmp_path / folder / "net.json")
    found = plan_together([tmp_path / "x" / "net.json", tmp_path / "y" / "net.json"])
    assert found.names == ("net", "net-2")


def draw(random: random.Random) -> tuple[list[Problem], list[set[str]], list[tuple[int, int]]]:
    """Return some programs with few buffers, what each keeps, and which may overlap."""
    programs, kept = [], []
    for _ in range(random.choice((2, 2, 3))):
        rows = []
        for number in range(random.randint(1, 3)):
            start = random.randint(0, 2)
            end = random.randint(start + 1, 4)
            unit = random.choice((1, 1, 2))
            rows.append(Buffer(f"b{number}", start, end, random.randint(0, 5), unit))
        programs.append(Problem(rows))
        kept.append({row.id for row in rows if random.random() < 0.35})
    overlap = [(0, 1)] if random.random() < 0.2 else []
    return programs, kept, overlap


def find_conflicts(
    programs: list[Problem], kept: list[set[str]], overlap: list[tuple[int, int]]
) -> set[tuple[tuple[int, str], tuple[int, str]]]:
    """Return the buffers that hold something at the same time in some sequence of three runs."""
    found = set()
    for sequence in product(range(len(programs)), repeat=3):
        there: set[tuple[int, str]] = set()  # what earlier runs left behind
        for program in sequence:
            there = {each for each in there if each[0] != program}
            made: set[tuple[int, str]] = set()
            for time in range(5):
                live = {
                    (program, b.id)
                    for b in programs[program].buffers
                    if b.size and (b.start <= time < b.end)
                }
                made |= {each for each in live if each[1] in kept[program]}
                there_now = there | made | live
                found |= {(one, other) for one in there_now for other in there_now}
            there |= made
    for first, second in overlap:
        mine, theirs = ([(k, b.id) for b in programs[k].buffers if b.size] for k in (first, second))
        found |= {*product(mine, theirs), *product(theirs, mine)}
    return found


def find_least(
    programs: list[Problem], conflicts: set[tuple[tuple[int, str], tuple[int, str]]]
) -> int:
    """Return the least peak, by trying every offset."""
    rows = [(k, b) for k, each in enumerate(programs) for b in each.buffers if b.size]

    def fits(at: int, placed: list[tuple[tuple[int, str], int, int]], peak: int) -> bool:
        if at == len(rows):
            return True
        program, buffer = rows[at]
        name = program, buffer.id
        against = [(lower, upper) for other, lower, upper in placed if (name, other) in conflicts]
        return any(
            all(offset + buffer.size <= lower or upper <= offset for lower, upper in against)
            and fits(at + 1, [*placed, (name, offset, offset + buffer.size)], peak)
            for offset in range(0, peak - buffer.size + 1, buffer.alignment)
        )

    return next(peak for peak in range(100) if fits(0, [], peak))


def test_arenas_are_the_least_that_all_sequences_of_runs_allow() -> None:
    """Tests small programs against every sequence of three runs and every offset."""
    source = random.Random(7)
    for _ in range(rounds(150, 20_000)):
        programs, kept, overlap = draw(source)
        names = [str(number) for number in range(len(programs))]
        found = plan_together(
            programs,
            names=names,
            keep=[f"{name}:{id}" for name, ids in zip(names, kept, strict=True) for id in ids],
            overlap=[(names[first], names[second]) for first, second in overlap],
        )
        least = find_least(programs, find_conflicts(programs, kept, overlap))
        assert found.peak == least, (programs, kept, overlap)
        assert found.peak <= found.by_hand


def test_the_referee_finds_every_collision() -> None:
    """Tests offsets of chance against every sequence of three runs."""
    source, wrong = random.Random(3), 0
    for _ in range(rounds(400, 20_000)):
        programs, kept, overlap = draw(source)
        conflicts = find_conflicts(programs, kept, overlap)
        tenants, at = [], {}
        for number, problem in enumerate(programs):
            offsets = [source.randint(0, 7) // b.alignment * b.alignment for b in problem.buffers]
            for b, offset in zip(problem.buffers, offsets, strict=True):
                at[number, b.id] = offset, offset + b.size
            tenants.append(Tenant(str(number), problem, Plan.of(problem, offsets), kept[number]))
        collides = any(
            one != other and at[one][0] < at[other][1] and at[other][0] < at[one][1]
            for one, other in conflicts
        )
        wrong += collides
        if collides:
            with pytest.raises(PlanError):
                verify_together(tenants, overlap)
        else:
            peak = verify_together(tenants, overlap)
            assert peak == max(
                (at[k, b.id][1] for k, p in enumerate(programs) for b in p.buffers if b.size),
                default=0,
            )
    assert wrong > 50


def test_the_referee_names_both_programs() -> None:
    """Tests that the referee names both programs."""
    plans = (Plan.of(ONE, [8, 0]), Plan.of(TWO, [0, 0]))
    rows = zip(("one", "two"), (ONE, TWO), plans, (["result"], []), strict=True)
    with pytest.raises(
        PlanError, match=r'"result" of one and "(b|answer)" of two both hold address 0'
    ):
        verify_together([Tenant(*row) for row in rows])
    with pytest.raises(PlanError, match=r"^one: "):
        verify_together([Tenant("one", ONE, Plan.of(ONE, [0, 0]), [])])


def test_an_empty_program_needs_nothing() -> None:
    """Tests that an empty program needs nothing."""
    assert share(Problem([]), TWO).peak == 64
    with pytest.raises(ProblemError):
        share(ONE, TWO, capacity=-1)


def test_a_plan_says_which_arena_it_is_in(tmp_path: Path) -> None:
    """Tests the record of each plan, that a file keeps it, and that wrong ones are refused."""
    found = share(ONE, TWO, keep=["result", "answer"], overlap=[("two", "one")])
    one, two = (each.plan for each in found.programs)
    assert one.shared is not None
    assert (one.shared.program, one.shared.programs) == ("one", ("one", "two"))
    assert (one.shared.arena, one.shared.overlap) == (found.peak, ("two",))
    assert one.shared.kept == (Kept("result", 8, one.offset("result")),)
    path = tmp_path / "two.plan.json"
    mp.save(two, path)
    loaded = mp.load_plan(path)
    assert (loaded.shared, loaded) == (two.shared, two)
    assert mp.solve(ONE).shared is None
    document = json.loads(path.read_text())
    for field, value in (
        ("arena", 7),
        ("arena", True),
        ("arena", 1 << 70),
        ("kept", [{"id": "answer", "size": 8}]),
        ("kept", 7),
        ("program", "three"),
        ("programs", ["two", "two"]),
        ("overlap", [1]),
        ("more", 1),
    ):
        changed = json.loads(json.dumps(document))
        changed["stats"]["shared"][field] = value
        path.write_text(json.dumps(changed))
        with pytest.raises(FormatError, match=r'two.plan.json: its "shared"'):
            mp.load_plan(path)


def test_a_program_that_fits_nowhere_is_named() -> None:
    """Tests a pin below what lies under it in its group: that is proved, and not unknown."""
    buffers = [mp.Buffer("a", 0, 2, 6), mp.Buffer("b", 0, 2, 4, pin=4)]
    pinned = mp.Problem(buffers, groups=[["a", "b"]])
    with pytest.raises(mp.InfeasibleError, match="two has no plan by itself: it is proved of"):
        plan_together([mp.Problem([mp.Buffer("x", 0, 1, 1)]), pinned], names=["one", "two"])

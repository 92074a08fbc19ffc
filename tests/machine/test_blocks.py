"""Tests that buffers lie in as few and as small blocks as possible, none above a limit."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from partitions import draw_problem, find_least
from rounds import rounds

import memplan as mp
from memplan.base.errors import MemplanError, PlanError
from memplan.machine.blocks import plan_blocks
from memplan.machine.blocks.shares import Shares
from memplan.problem import Buffer, Problem, Reserved
from memplan.problem.plan import Plan, Status
from memplan.referee import verify_blocks

THREE = Problem([Buffer(id, 0, 1, 40) for id in "abc"])


def make_crowd(buffers: int, seed: int) -> Problem:
    """Return many buffers, of which about a third is live at a time."""
    rng = random.Random(seed)
    rows = []
    for row in range(buffers):
        start = rng.randrange(50)
        rows.append(Buffer(str(row), start, start + rng.randint(1, 30), rng.randint(1, 100)))
    return Problem(rows)


@pytest.mark.parametrize("seed", range(rounds(2, 200)))
def test_small_problems_against_all_partitions(seed: int) -> None:
    """Tests number and bytes against brute force, with all constraints and limits below buffers.

    Hardly any answer, at most one in a hundred, is the least without a proof of it. Even fewer are
    not the least, of those in which buffers above the limit could share a block.
    """
    rng, open_answers, large = random.Random(seed), 0, 0
    for _ in range(100):
        problem = draw_problem(rng)
        largest = max(1, int(problem.size.max()))
        limit = rng.choice((rng.randint(1, largest), largest, largest + rng.randint(0, 8)))
        least = find_least(problem, limit)
        try:
            found = plan_blocks(problem, limit, threads=1)
        except MemplanError:
            assert least is None
            continue
        assert least is not None
        proved = found.status is Status.OPTIMAL
        assert (found.count, found.total) == least or (
            not proved and (least < (found.count, found.total))
        )
        assert found.count_bound <= least[0]
        assert found.count > least[0] or found.total_bound <= least[1]
        open_answers += not proved
        large += bool(found.notes)
    assert open_answers <= 1
    assert large > 10


def test_a_block_and_an_offset_for_each_buffer() -> None:
    """Tests the facts of a small plan, its highest block first."""
    found = plan_blocks(THREE, 100)
    assert (found.count, found.count_bound, found.total, found.total_bound) == (2, 2, 120, 120)
    assert [plan.peak for plan in found.plans] == [80, 40]
    assert {found.place(id) for id in "abc"} == {(0, 0), (0, 40), (1, 0)}
    assert repr(found) == "<Blocks: 2 of at most 100, 120 in all, optimal>"
    assert found.verify() == 120


def test_a_limit_above_all_is_one_arena() -> None:
    """Tests that one block is the plan of one arena, and that nothing needs no block."""
    crowd = make_crowd(40, 1)
    one = mp.solve(crowd, nodes=100_000)
    found = plan_blocks(crowd, 1 << 40)
    assert (found.count, found.total, found.total_bound) == (1, one.peak, one.lower_bound)
    assert plan_blocks(Problem([]), 5).count == 0
    assert plan_blocks(Problem([Buffer("a", 0, 1, 0)]), 5).plans[0].peak == 0


def test_alignments_need_no_common_measure_with_the_limit() -> None:
    """Tests that the last bytes of a block are used though no alignment divides its limit."""
    found = plan_blocks(Problem([Buffer("a", 0, 1, 64, 64), Buffer("b", 0, 1, 36, 64)]), 100)
    assert (found.count, found.total) == (1, 100)


def test_pins_and_reserved_ranges_are_of_every_block() -> None:
    """Tests that a pinned buffer may be in any block, and that each has the reserved range."""
    rows = [Buffer("p", 0, 1, 30, pin=70), Buffer("a", 0, 1, 60), Buffer("b", 0, 1, 60)]
    found = plan_blocks(Problem(rows, reserved=[Reserved(0, 8)]), 100)
    assert (found.count, found.total, found.place("p")[1]) == (2, 100 + 68, 70)
    assert found.status is Status.OPTIMAL


def test_what_is_above_the_limit_has_a_block_of_its_size() -> None:
    """Tests that such a block is used while it is free, and no other is as high."""
    rows = [Buffer("big", 0, 2, 150), Buffer("other", 3, 5, 120), Buffer("a", 3, 5, 30)]
    found = plan_blocks(Problem(rows), 100)
    assert (found.count, found.total, found.status) == (1, 150, Status.OPTIMAL)
    [note] = found.notes
    assert note.code == "block-limit"
    assert note.tensors == ("big", "other")
    small = [Buffer(id, 1, 3, 40) for id in "abc"]
    found = plan_blocks(Problem([rows[0], *small]), 100)
    assert [plan.peak for plan in found.plans] == [150, 80, 40]
    assert found.status is Status.OPTIMAL
    tied = plan_blocks(Problem(THREE.buffers, groups=["ab"]), 79)
    assert [plan.peak for plan in tied.plans] == [80, 40]
    assert tied.notes[0].text.startswith('the group of buffer "a" has 80 bytes')
    assert plan_blocks(THREE, 40).notes == ()


def test_many_buffers_beside_one_above_the_limit() -> None:
    """Tests a problem that is shared out by loads: blocks within the limit beside its block."""
    crowd = make_crowd(300, 3)
    rows = [*crowd.buffers, Buffer("big", 10, 30, 5000)]
    found = plan_blocks(Problem(rows), 1000, nodes=200)
    high = [plan.peak for plan in found.plans if (plan.peak or 0) > 1000]
    assert high == [5000]
    assert found.count <= plan_blocks(crowd, 1000, nodes=200).count + 1


def test_a_limit_is_that_of_the_file_or_is_given(tmp_path: Path) -> None:
    """Tests the default, that a higher limit is noted, and that one must be known."""
    path = tmp_path / "a.events"
    path.write_text("ggml-events 1\nlimit 96\n+ 64\n+ 64\n")
    found = plan_blocks(path)
    assert (found.limit, found.count, found.notes) == (96, 2, ())
    assert [note.code for note in plan_blocks(path, 128).notes] == ["block-limit"]
    assert plan_blocks(path, 64).notes == ()
    with pytest.raises(MemplanError, match="no limit is given"):
        plan_blocks(THREE)


def test_a_capacity_limits_all_blocks() -> None:
    """Tests that the bytes of all blocks keep the capacity, or that a sentence says why not."""
    assert plan_blocks(THREE.with_capacity(120), 100).total == 120
    with pytest.raises(PlanError, match="need at least 120 bytes, and all blocks may have 119"):
        plan_blocks(THREE.with_capacity(119), 100)


def test_there_is_a_plan_without_time() -> None:
    """Tests that a budget of nothing still gives a plan with bounds below it."""
    crowd = make_crowd(300, 3)
    for asked in ({"timeout": 0.0}, {"nodes": 1}):
        found = plan_blocks(crowd, 110, **asked)  # type: ignore[arg-type]
        assert found.count_bound <= found.count <= 70
        assert crowd.max_load <= found.total_bound <= found.total


@pytest.mark.parametrize(
    ("problem", "limit", "words"),
    [
        (THREE, 0, "limit is 0; it must be a whole number from 1"),
        (THREE.with_pins({"b": 61}), 100, r'buffer "b" is pinned to \[61, 101\), beyond the limit'),
        (THREE.with_reserved([(30, 70)]), 100, 'buffer "a" fits into no block of 100 bytes'),
        (make_crowd(9, 1).with_alignment(1 << 61), 101, "4 blocks of 101 bytes with"),
    ],
)
def test_what_fits_into_no_block_is_named(problem: Problem, limit: int, words: str) -> None:
    """Tests one sentence for each buffer, group, pin and range that no block can hold."""
    with pytest.raises(MemplanError, match=words):
        plan_blocks(problem, limit)


def test_the_referee_sees_what_is_wrong() -> None:
    """Tests buffers in no block or two, torn groups, high blocks and false bounds."""
    plans = plan_blocks(THREE, 100).plans
    tied = Problem(THREE.buffers, groups=["abc"])

    def alone(problem: Problem, *ids: str, at: int = 0) -> Plan:
        part = problem.subset(np.array([problem.index(id) for id in ids])).with_capacity(200)
        return Plan.of(part, [at + 40 * row for row in range(len(ids))])

    for problem, limit, found, claims, words in (
        (THREE, 79, plans, {}, "block 1: buffer .* is beyond the capacity 79"),
        (THREE, 39, plans, {}, "block 1: buffer .* is beyond the capacity 40"),
        (tied, 50, (alone(tied, "a", "b", "c", at=1),), {}, "beyond the capacity 120"),
        (THREE, 100, plans[:1], {}, 'buffer ".*" is in no block'),
        (THREE, 100, (*plans, plans[1]), {}, "is in the blocks 2 and 3"),
        (THREE, 100, plans, {"count_bound": 3}, "least number of blocks is 3, above .* 2"),
        (THREE, 100, plans, {"total_bound": 121}, "lower bound 121 is above the 120 bytes"),
        (tied, 200, (alone(tied, "a", "b"), alone(tied, "c")), {}, '"a" and "c" are of one group'),
        (THREE.subset([0]), 100, plans, {}, "in the plan but not in the problem"),
    ):
        with pytest.raises(PlanError, match=words):
            verify_blocks(problem, limit, found, **claims)  # type: ignore[arg-type]


def test_shares_have_the_loads_that_they_say() -> None:
    """Tests that each way to share buffers out keeps the limit, and says the sum of its loads."""
    for seed in range(4):
        crowd = make_crowd(60, seed)
        limit = crowd.max_load // 2
        times = np.unique(crowd.start)
        ways = list(Shares(crowd, times, limit).list_ways(3, 4, seed))
        assert ways
        for total, block in ways:
            loads = [crowd.subset(np.flatnonzero(block == number)).max_load for number in range(3)]
            assert max(loads) <= limit
            assert sum(loads) == total >= crowd.max_load


def test_a_group_that_is_pinned_too_low_fits_nowhere() -> None:
    """Tests a pin below what lies under it in its group, beside what fits."""
    buffers = [mp.Buffer("a", 0, 1, 6), mp.Buffer("b", 0, 3, 5, pin=4), mp.Buffer("c", 4, 5, 5)]
    problem = mp.Problem(buffers, groups=[["a", "b"]])
    words = '"b" is pinned to 4, and the buffers below it in its group need 6 bytes'
    for limit in (5, 11, 40):
        with pytest.raises(mp.InfeasibleError, match=words):
            plan_blocks(problem, limit)


def test_more_blocks_may_need_fewer_bytes() -> None:
    """Tests a capacity below what the fewest blocks need: two blocks of 5 and 3 bytes are enough.

    In one block an alignment leaves a hole; so nothing is proved, and that more are not tried is
    said.
    """
    five, three = Buffer("five", 0, 4, 5, 2), Buffer("three", 2, 3, 3, 4)
    two = Problem([five, three], capacity=8)
    with pytest.raises(mp.NoPlanError, match="1 block of at most 9 bytes need at least 9, and"):
        plan_blocks(two, 9)
    assert plan_blocks(two, 5).total == 8
    for less in (
        two.with_capacity(7),
        Problem([Buffer("a", 0, 4, 5), Buffer("b", 2, 3, 3)], capacity=7),
    ):
        with pytest.raises(mp.InfeasibleError, match=r"need at least 8 bytes, and .* have 7"):
            plan_blocks(less, 9)

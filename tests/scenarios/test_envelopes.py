"""Tests that the peak of a program at every size, and one plan for all sizes, are the least."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from rounds import rounds

import memplan as mp
from memplan.base.errors import MemplanError, PlanError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.plan import Plan
from memplan.referee import Layers, verify_envelope
from memplan.scenarios.envelope import Envelope, envelope

Program = Callable[..., Problem]


def simple(batch: int) -> Problem:
    """Return a program with two sizes that grow and one that does not."""
    return Problem(
        [Buffer("x", 0, 2, 8 * batch), Buffer("y", 1, 3, 100), Buffer("z", 2, 4, batch**2)]
    )


def attention(batch: int, tokens: int) -> Problem:
    """Return a program whose scores grow with the square of the tokens; all is rounded up."""
    sizes = {"x": 24 * tokens, "qkv": 72 * tokens, "scores": 4 * tokens**2, "y": 24 * tokens}
    lives = {"x": (0, 4), "qkv": (1, 3), "scores": (2, 3), "y": (3, 5)}
    return Problem(
        Buffer(id, *lives[id], -(-batch * size // 64) * 64, 64) for id, size in sizes.items()
    )


def bytes_of(found: Envelope) -> list[int]:
    """Return the peaks of all sizes."""
    return [int(each) for each in found.peaks]


def test_the_peak_of_every_size_is_that_of_its_own_plan() -> None:
    """Tests one dimension against a plan for each size."""
    found = envelope(simple, {"batch": range(1, 31)})
    for batch in range(1, 31):
        plan = mp.solve(simple(batch))
        assert found.peak_at(batch=batch) == plan.peak
        assert found.bound_at(batch=batch) == plan.lower_bound
        mp.verify(simple(batch), found.plan_at(batch=batch))
    assert (found.status, found.open, len(found)) == (mp.Status.OPTIMAL, 0, 30)
    assert found.problem_at(batch=4) == simple(4)


def test_polynomials_are_found_and_checked() -> None:
    """Tests sizes of two dimensions that are rounded up by nothing against their program."""

    def smooth(batch: int, tokens: int) -> Problem:
        sizes = (24 * tokens, 72 * tokens + 5, 4 * tokens**2 * batch, tokens * (tokens + 1) // 2)
        return Problem(Buffer(str(at), at, at + 2, batch * size) for at, size in enumerate(sizes))

    reads = []

    def counted(batch: int, tokens: int) -> Problem:
        reads.append((batch, tokens))
        return smooth(batch, tokens)

    found = envelope(counted, {"batch": "1:30", "tokens": "1:200:3"})
    assert (len(found), "polynomials" in found.how) == (30 * 67, True)
    assert len(set(reads)) < 40
    for dims in ({"batch": 1, "tokens": 1}, {"batch": 7, "tokens": 100}):
        assert found.problem_at(**dims) == smooth(**dims)
        assert found.peak_at(**dims) == mp.solve(smooth(**dims)).peak


def test_a_proof_at_one_size_holds_for_all_that_grow_alike() -> None:
    """Tests a program that needs more than its load, at more sizes than are planned."""
    lives = [(0, 1, 4), (2, 6, 1), (4, 6, 4), (0, 4, 3), (6, 8, 3), (6, 7, 2), (3, 7, 2), (1, 3, 3)]

    def program(batch: int) -> Problem:
        return Problem(
            Buffer(str(at), start, end, 16 * batch * size, 16)
            for at, (start, end, size) in enumerate(lives)
        )

    found = envelope(program, {"batch": "1:500"})
    assert (found.peaks > [program(n).max_load for n in range(1, 501)]).all()
    assert (found.open, len(found.layers)) == (0, 1)
    assert found.bound_at(batch=77) == mp.solve(program(77)).peak


def test_sizes_that_are_no_polynomials_are_read_one_by_one_or_refused() -> None:
    """Tests sizes that are rounded up by the program itself."""
    found = envelope(attention, {"batch": "1:8", "tokens": "1:16"})
    assert found.how == "read at every size"
    assert found.peak_at(batch=3, tokens=11) == mp.solve(attention(3, 11)).peak
    with pytest.raises(MemplanError, match="at most 1,024 sizes"):
        envelope(attention, {"batch": "1:64", "tokens": "1:64"})


def jump(n: int) -> Problem:
    """Return a program whose bytes jump at a few sizes in between."""
    extra = 4096 if 300 <= n < 340 else 0
    return Problem([Buffer("x", 0, 2, 64 * n), Buffer("y", 1, 3, 64 * n + extra)])


def longer(n: int) -> Problem:
    """Return a program with other lifetimes at a few sizes in between."""
    end = 4 if 300 <= n < 340 else 2
    return Problem(
        [Buffer("x", 0, end, 64 * n), Buffer("y", 1, 3, 64 * n), Buffer("z", 3, 4, 128 * n)]
    )


@pytest.mark.parametrize("program", [jump, longer])
def test_what_was_not_read_is_a_premise(program: Program) -> None:
    """Tests that nothing is called optimal that rests on polynomials, and reading all sizes."""
    some = envelope(program, {"n": "1:5000"})
    assert "4,984 sizes that were not read" in some.premise
    assert (some.open, str(some.status), str(some.plan.status)) == (0, "feasible", "feasible")
    assert "optimal if sizes are polynomials" in repr(some)
    assert some.plan.stats["premise"] == some.premise
    assert str(some.plan_at(n=320).status) == "feasible"
    every = envelope(program, {"n": "1:2000"}, read_all=True)
    assert (every.premise, str(every.status), every.how) == ("", "optimal", "read at every size")
    assert every.peak_at(n=320) == mp.solve(program(320)).peak
    assert every.plan.stats["sizes"] == {"n": "1:2000"}
    assert "premise" not in every.plan.stats


def test_the_range_of_a_plan_is_written_as_it_is_asked_for() -> None:
    """Tests steps, lists and conditions in the facts of the plan for all sizes."""
    dims = {"batch": "1:3,8:32:8", "tokens": [5, 7, 16]}
    found = envelope(attention, dims, "batch * tokens <= 128")
    wanted = {"batch": "1:3,8:32:8", "tokens": "5,7,16"}
    assert found.plan.stats["sizes"] == wanted
    assert found.plan.stats["where"] == ["batch * tokens <= 128"]
    assert found.range.write()["sizes"] == wanted
    for batch, tokens in product(range(34), range(18)):
        asked = batch in (1, 2, 3, 8, 16, 24, 32) and tokens in (5, 7, 16)
        inside = asked and batch * tokens <= 128
        assert found.range.contains({"batch": batch, "tokens": tokens}) is inside


def test_steps_of_convolutions_are_polynomials_for_each_remainder() -> None:
    """Tests pictures that are halved and rounded up, at more sizes than are read."""
    reads = []

    def network(batch: int, side: int) -> Problem:
        reads.append((batch, side))
        half, quarter = -(-side // 2), -(-side // 4)
        sizes = (3 * side * side, 16 * half * half, 32 * quarter * half, 64 * quarter)
        return Problem(
            Buffer(str(at), at, at + 2, 4 * batch * size) for at, size in enumerate(sizes)
        )

    found = envelope(network, {"batch": "1:8", "side": "32:512"})
    assert (len(found), len(set(reads)) < 400) == (8 * 481, True)
    assert "one for each remainder of 4" in found.how
    for batch, side in ((1, 33), (5, 94), (8, 511)):
        assert found.problem_at(batch=batch, side=side) == network(batch, side)
        assert found.peak_at(batch=batch, side=side) == mp.solve(network(batch, side)).peak


def test_height_and_width_are_read_on_two_lines() -> None:
    """Tests that each dimension multiplies the bytes, so that few of the sizes are read."""
    reads = []

    def network(height: int, width: int) -> Problem:
        reads.append((height, width))
        sizes = [-(-height // step) * -(-width // step) for step in (1, 2, 4, 8)]
        return Problem(Buffer(str(at), at, at + 2, 4 * size) for at, size in enumerate(sizes))

    found = envelope(network, {"height": "9:90", "width": "9:90"})
    assert (len(found), len(set(reads)) < 200) == (82 * 82, True)
    assert "one for each remainder of 8" in found.how
    for height, width in ((9, 90), (33, 57), (88, 81)):
        problem = network(height, width)
        assert found.problem_at(height=height, width=width) == problem
        assert found.peak_at(height=height, width=width) == mp.solve(problem).peak


def test_sizes_that_conditions_leave_out_may_be_unreadable() -> None:
    """Tests a program that has no sizes beyond its condition."""

    def network(batch: int, tokens: int) -> Problem:
        if batch * tokens > 64:
            raise MemplanError("at most 64 tokens")
        return Problem([Buffer("x", 0, 1, batch * tokens)])

    found = envelope(network, {"batch": "1:64", "tokens": "1:64"}, "batch*tokens<=64")
    assert (int(found.peaks.max()), found.how) == (64, "read at every size")
    with pytest.raises(MemplanError, match=r"^at most 64 tokens$"):
        envelope(network, {"batch": "1:64", "tokens": "1:64"})


def test_buffers_that_depend_on_the_size_are_named() -> None:
    """Tests a range too large to be read, in which some sizes have another buffer."""

    def network(side: int) -> Problem:
        name = "wide" if side > 1900 else "narrow"
        return Problem([Buffer(name, 0, 1, side)])

    with pytest.raises(MemplanError, match='only one of side=1 and side=2000 has buffer "narrow"'):
        envelope(network, {"side": "1:2000"})


def test_one_plan_for_all_sizes_is_legal_at_each() -> None:
    """Tests fixed offsets with and without a condition."""
    dims = {"batch": (1, 2, 4, 8), "tokens": (16, 32, 64, 128)}
    every = envelope(attention, dims)
    some = envelope(attention, dims, "batch*tokens<=128")
    assert every.plan.peak == every.peak_at(batch=8, tokens=128)
    assert some.plan.peak == some.peak_at(batch=1, tokens=128) == int(some.peaks.max())
    assert len(some) == 10
    for batch, tokens in some.range.points.tolist():
        problem = attention(batch, tokens)
        offsets = [some.plan.offset(id) for id in problem.ids]
        mp.verify(problem, Plan.of(problem, offsets))


def test_prefill_and_decode_share_one_plan() -> None:
    """Tests lifetimes that depend on the size: largest sizes at all conflicts would need more."""

    def serve(tokens: int) -> Problem:
        if tokens == 1:
            return Problem([Buffer("kv", 0, 2, 100), Buffer("x", 1, 2, 4), Buffer("y", 2, 3, 60)])
        return Problem([Buffer("x", 0, 1, 100), Buffer("y", 1, 2, 4), Buffer("kv", 1, 2, 40)])

    found = envelope(serve, {"tokens": (1, 64)})
    assert len(found.scenarios) == 2
    assert bytes_of(found) == [104, 100]
    assert (found.plan.peak, found.plan.status) == (104, mp.Status.OPTIMAL)


@pytest.mark.parametrize(
    ("dims", "condition", "words"),
    [
        ({}, (), "needs a dimension"),
        ({"batch": []}, (), 'dimension "batch" has no values'),
        ({"batch": "8:1"}, (), '"batch=8:1" is empty'),
        ({"batch": "1:8:0"}, (), "a step at least 1"),
        ({"batch": "1:2:3:4"}, (), "is not a range of sizes"),
        ({"batch": "few"}, (), '"batch=few" is not a range of sizes'),
        ({"batch": [1.5]}, (), "not a whole number"),
        ({"batch": [-1]}, (), "from 0 to 2^40"),
        ({"batch": "1:2000000"}, (), "2,000,000 sizes; at most 1,000,000"),
        ({"batch": "1:9"}, "batch<=0", 'no size of the range keeps to "batch<=0"'),
        ({"batch": "1:9"}, ("batch<=4", "batch>4"), 'keeps to "batch<=4", "batch>4"'),
        ({"batch": "1:9"}, "tokens<=4", 'names "tokens"; the dimensions with a range are "batch"'),
        ({"batch": "1:9"}, "batch", '"batch" is not a condition'),
        ({"batch": "1:9"}, "__import__('os')<=4", "is not a condition"),
        ({"batch": "1:9"}, "batch**batch<=4", "is not a condition"),
        ({"batch": "1:9"}, "batch*99999999999999999999<=4", "too large"),
    ],
)
def test_ranges_that_contradict_are_refused(
    dims: dict[str, str], condition: str | tuple[str, ...], words: str
) -> None:
    """Tests one sentence for each range or condition that has no sizes, or no meaning."""
    with pytest.raises(MemplanError, match=words.replace("^", r"\^").replace("*", r"\*")):
        envelope(simple, dims, condition)


def test_a_size_outside_of_the_range_has_no_peak() -> None:
    """Tests a size that was not asked for, and a dimension that there is not."""
    found = envelope(simple, {"batch": "1:4"})
    with pytest.raises(MemplanError, match="batch=5 is not a size of the range"):
        found.peak_at(batch=5)
    with pytest.raises(MemplanError, match='has values of "batch"'):
        found.plan_at(tokens=5)


def test_what_ties_buffers_to_addresses_is_refused() -> None:
    """Tests pins, and a problem that has one size already."""
    with pytest.raises(MemplanError, match="does not support pins"):
        envelope(lambda batch: Problem([Buffer("x", 0, 1, batch, pin=8)]), {"batch": "1:4"})
    with pytest.raises(MemplanError, match="was read has one size"):
        envelope(simple(2), {"batch": "1:4"})


def draw(source: random.Random) -> tuple[Program, dict[str, range]]:
    """Return a small program of two dimensions; some have other buffers at some sizes."""
    count, kinds = source.randint(2, 5), source.choice((1, 1, 2))
    modes = []
    for _ in range(kinds):
        rows = []
        for number in range(count):
            start = source.randint(0, 3)
            end = source.randint(start + 1, 4)
            unit = source.choice((1, 1, 1, 2, 4))
            gaps = (Gap(start + 1, end - 1),) if end - start > 2 and source.random() < 0.3 else ()
            terms = [source.choice((0, 0, 1, 2)) for _ in range(4)]
            if source.random() < 0.85 or kinds == 1:
                rows.append((f"b{number}", start, end, unit, gaps, terms))
        pairs = [pair for pair in combinations(rows, 2) if source.random() < 0.1]
        modes.append((rows, [(one[0], other[0]) for one, other in pairs]))

    def program(a: int, b: int) -> Problem:
        rows, pairs = modes[(a * b) % kinds]
        return Problem(
            [
                Buffer(id, start, end, t[0] + t[1] * a + t[2] * b + t[3] * a * b, unit, gaps=gaps)
                for id, start, end, unit, gaps, t in rows
            ],
            conflicts=pairs,
        )

    return program, {"a": range(1, 1 + source.randint(1, 3)), "b": range(source.randint(0, 1), 3)}


def find_needs(problem: Problem) -> list[tuple[str, str]]:
    """Return the buffers that may not share addresses, each pair in both directions."""
    held = {}
    for b in problem.buffers:
        times = set(range(b.start, b.end))
        held[b.id] = times.difference(*(range(gap.start, gap.end) for gap in b.gaps))
    sizes = {b.id: b.size for b in problem.buffers}
    listed = {frozenset(problem.ids[row] for row in pair) for pair in problem.conflicts.pairs()}
    return [
        (one, other)
        for one, other in permutations(problem.ids, 2)
        if sizes[one] and sizes[other] and (held[one] & held[other] or {one, other} in listed)
    ]


def find_least(programs: list[Problem]) -> int:
    """Return the least peak of fixed offsets for some problems, by every order of the buffers."""
    units: dict[str, int] = {}
    for each in programs:
        for b in each.buffers:
            units[b.id] = int(np.lcm(units.get(b.id, 1), b.alignment))
    sizes = [{b.id: b.size for b in each.buffers} for each in programs]
    room: dict[tuple[str, str], int] = {}  # bytes between the first and the second above it
    for each, size in zip(programs, sizes, strict=True):
        for one, other in find_needs(each):
            room[one, other] = max(room.get((one, other), 0), size[one])
    most = {id: max(size.get(id, 0) for size in sizes) for id in units}
    best = sum(most.values()) + 4 * len(units)
    for order in permutations(units):
        at: dict[str, int] = {}
        for id in order:
            low = max((at[o] + room[o, id] for o in at if (o, id) in room), default=0)
            at[id] = -(-low // units[id]) * units[id]
        best = min(best, max((at[id] + most[id] for id in units), default=0))
    return best


def test_peaks_and_fixed_offsets_are_the_least() -> None:
    """Tests small programs, at every size and for all sizes, against every order of buffers."""
    source = random.Random(11)
    proved = 0
    for _ in range(rounds(60, 5_000)):
        program, dims = draw(source)
        found = envelope(program, dims, threads=1)
        problems = [program(a, b) for a, b in product(dims["a"], dims["b"])]
        assert bytes_of(found) == [find_least([each]) for each in problems]
        assert found.status is mp.Status.OPTIMAL
        assert found.plan.peak == find_least(problems), (problems, found.plan.offsets)
        proved += found.plan.status is mp.Status.OPTIMAL
    assert proved == rounds(60, 5_000)


def claims(found: Envelope) -> Layers:
    """Return the claims about the one scenario of an envelope."""
    relations = [layer.relation for layer in found.layers]
    below = [
        [(low, row) for row, rows in zip(each.order, each.below, strict=True) for low in rows]
        for each in relations
    ]
    return Layers(below, found.chosen, found.peaks, found.bounds)


def test_the_referee_finds_false_claims() -> None:
    """Tests relations that lack a pair or have a circle, peaks, bounds and offsets."""
    found = envelope(attention, {"batch": (1, 2), "tokens": "1:20"})
    scenario, good = found.scenarios[0], claims(found)

    def check(layers: Layers, plan: Plan | None = None) -> None:
        verify_envelope(scenario.template, scenario.chunks(), layers, plan)

    check(good, found.plan)
    for at in range(len(good.below[0])):
        pairs = [pair for number, pair in enumerate(good.below[0]) if number != at]
        with pytest.raises(PlanError, match="live together, but neither is below"):
            check(good._replace(below=[pairs]))
    low, high = good.below[0][0]
    with pytest.raises(PlanError, match="lies below itself"):
        check(good._replace(below=[[*good.below[0], (high, low)]]))
    for change in (-1, 1):
        peaks = good.peaks.copy()
        peaks[7] += change
        with pytest.raises(PlanError, match="the relation of a plan needs"):
            check(good._replace(peaks=peaks))
    with pytest.raises(PlanError, match="above the peak"):
        check(good._replace(bounds=good.peaks + 1))
    order = found.layers[0].relation.order
    stacked = Layers(
        [[*pairwise(order)]],
        np.zeros(40, np.int64),
        scenario.sizes(0, 40).sum(axis=0),
        good.bounds,
    )
    check(stacked)
    with pytest.raises(PlanError, match=r"of the bound of \d+ bytes are shown"):
        check(stacked._replace(bounds=stacked.peaks))
    check(stacked._replace(bounds=stacked.peaks, proved=[(scenario.sizes(0, 1)[:, 0], 10**9)]))
    with pytest.raises(PlanError, match="39 peaks for 40 sizes or more"):
        check(good._replace(peaks=good.peaks[:-1], bounds=good.bounds[:-1]))
    said = {"read": scenario.read, "said": scenario.said}
    check(good._replace(**said, are_least=True))
    with pytest.raises(PlanError, match="of 40 sizes, the bytes of only 0 were read"):
        check(good._replace(are_least=True))
    with pytest.raises(PlanError, match="of 40 sizes, the bytes of only 39 were read"):
        check(good._replace(read=scenario.read[1:], said=scenario.said[:, 1:], are_least=True))
    with pytest.raises(PlanError, match="size number 0, the source said other bytes"):
        check(good._replace(read=scenario.read, said=scenario.said + 1))
    with pytest.raises(PlanError, match="a size was read twice"):
        check(good._replace(read=scenario.read * 0, said=scenario.said))
    with pytest.raises(PlanError, match="above its bound is claimed to be the least"):
        check(stacked._replace(**said, are_least=True))
    assert found.plan.offsets is not None
    for row in range(len(found.problem)):
        moved = found.plan.offsets.copy()
        moved[row] = 0 if moved[row] else 64
        with pytest.raises(PlanError, match=r"overlap at a size|more than the"):
            check(good, Plan.of(found.problem, moved))
    with pytest.raises(PlanError, match="not aligned"):
        check(good, Plan.of(found.problem, found.plan.offsets + 1))


def test_the_referee_follows_fixed_offsets_of_chance() -> None:
    """Tests offsets of chance against the referee of plans at every size."""
    source, wrong = random.Random(5), 0
    for _ in range(rounds(120, 5_000)):
        program, dims = draw(source)
        problems = [program(a, b) for a, b in product(dims["a"], dims["b"])]
        found = envelope(program, dims, threads=1)
        at = {
            id: source.randint(0, 12) // unit * unit
            for id, unit in zip(found.problem.ids, found.problem.alignment.tolist(), strict=True)
        }
        plan = Plan.of(found.problem, [at[id] for id in found.problem.ids])
        legal = all(is_legal(each, at) for each in problems)
        wrong += not legal
        try:
            for scenario in found.scenarios:
                count = len(scenario.rows)
                none = Layers([], np.full(count, -1), np.zeros(count), np.zeros(count))
                verify_envelope(scenario.template, scenario.chunks(), none, plan)
        except PlanError:
            assert not legal
        else:
            assert legal
    assert wrong > 20


def is_legal(problem: Problem, at: dict[str, int]) -> bool:
    """Return whether the referee of plans accepts these offsets."""
    try:
        mp.verify(problem, Plan.of(problem, [at[id] for id in problem.ids]))
    except PlanError:
        return False
    return True

"""Tests of memplan.verify: the referee lets through what is safe, and nothing else."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import numpy as np
import oracle
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import memplan
from memplan.base.errors import PlanError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.plan import Plan, Status
from memplan.referee import verify


def detached(plan: Plan, **changes: object) -> Plan:
    """Return a plan as a file would give it, with some parts replaced."""
    parts = {
        "ids": plan.ids,
        "size": plan.size,
        "offsets": plan.offsets,
        "status": plan.status,
        "peak": plan.peak,
        "lower_bound": plan.lower_bound,
        "capacity": plan.capacity,
        "fingerprint": plan.fingerprint,
    }
    return Plan(**{**parts, **changes})


def refusal(problem: Problem, plan: Plan) -> str:
    """Return the sentence with which the referee refuses the plan."""
    with pytest.raises(PlanError) as caught:
        verify(problem, plan)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestOverlaps:
    """Which buffers hold which bytes when."""

    def test_worked_example(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that the solution in Figure 2 of MiniMalloc passes."""
        verify(five, Plan.of(five, five_offsets))

    def test_names_buffers_time_and_bytes(self, five: Problem) -> None:
        """Tests that an overlap is told with both buffers, the first common time and the bytes."""
        plan = Plan.of(five, [8, 8, 4, 2, 0])
        assert refusal(five, plan) == (
            'buffer "b4" and buffer "b5" overlap: at time 9 both hold the bytes [2, 4)'
        )

    def test_ends_before_starts(self) -> None:
        """Tests that what ends at a time makes room for what starts at it, and not before."""
        early, late = Buffer("a", 0, 5, 4), Buffer("b", 5, 9, 4)
        verify(p := Problem([early, late]), Plan.of(p, [0, 0]))
        problem = Problem([early, dataclasses.replace(late, start=4)])
        assert "at time 4" in refusal(problem, Plan.of(problem, [0, 0]))

    def test_nested_ranges(self) -> None:
        """Tests that a small buffer inside a large one is found, whichever starts first."""
        for first, second in ((0, 1), (1, 0)):
            problem = Problem([Buffer("a", first, 9, 100), Buffer("b", second, 9, 2)])
            assert "[50, 52)" in refusal(problem, Plan.of(problem, [0, 50]))

    def test_size_zero(self) -> None:
        """Tests that a buffer of size 0 conflicts with nothing, wherever it is."""
        problem = Problem([Buffer("a", 0, 9, 8), Buffer("z", 0, 9, 0)], reserved=[(8, 20)])
        for offset in (0, 4, 8, 12):
            verify(problem, Plan.of(problem, [0, offset]))

    def test_gap_frees_all(self) -> None:
        """Tests that in a gap the bytes are free, and only in it."""
        holder = Buffer("a", 0, 9, 8, gaps=(Gap(3, 6),))
        for start, end, legal in ((3, 6, True), (2, 6, False), (3, 7, False)):
            problem = Problem([holder, Buffer("b", start, end, 8)])
            plan = Plan.of(problem, [0, 0])
            if legal:
                verify(problem, plan)
            else:
                assert "overlap" in refusal(problem, plan)

    def test_window_keeps_a_part(self) -> None:
        """Tests that in a gap with a window just the window is held."""
        holder = Buffer("a", 0, 9, 8, gaps=(Gap(3, 6, (2, 4)),))
        problem = Problem([holder, Buffer("b", 3, 6, 2)])
        for offset in (10, 14):
            verify(problem, Plan.of(problem, [10, offset]))
        assert "[12, 13)" in refusal(problem, Plan.of(problem, [10, 11]))

    def test_below_at_one_time_above_at_another(self) -> None:
        """Tests that windows may pass each other: only what is held at one time counts."""
        a = Buffer("a", 0, 2, 4, gaps=(Gap(0, 1, (0, 2)), Gap(1, 2, (2, 4))))
        b = Buffer("b", 0, 2, 4, gaps=(Gap(0, 1, (2, 4)), Gap(1, 2, (0, 2))))
        problem = Problem([a, b])
        verify(problem, Plan.of(problem, [0, 0]))

    def test_whole_of_a_buffer_counts_elsewhere(self) -> None:
        """Tests that capacity and reserved ranges concern all of a buffer, whatever its gaps."""
        row = Buffer("a", 0, 2, 8, gaps=(Gap(0, 2, (0, 1)),))
        problem = Problem([row], capacity=7)
        assert "beyond the capacity 7" in refusal(problem, Plan.of(problem, [0]))
        problem = Problem([row], reserved=[(7, 9)])
        assert "touch the reserved range [7, 9)" in refusal(problem, Plan.of(problem, [0]))

    @settings(max_examples=500)
    @given(st.data())
    def test_as_brute_force(self, data: st.DataObject) -> None:
        """Tests that the referee passes a plan exactly where bitmaps find nothing wrong."""
        problem = data.draw(strategies.problems(min_buffers=1))
        offsets = data.draw(strategies.offsets(problem))
        plan = Plan.of(problem, offsets)
        if oracle.is_legal(problem, offsets, problem.capacity):
            verify(problem, plan)
        else:
            refusal(problem, plan)

    @given(strategies.problems())
    def test_passes_what_brute_force_finds(self, problem: Problem) -> None:
        """Tests that an optimal plan passes, so that the test above has seen legal plans."""
        peak = oracle.minimum_peak(problem)
        if peak is None:
            return
        offsets = oracle.fit(problem, peak)
        assert offsets is not None
        plan = Plan.of(problem, offsets, status=Status.OPTIMAL, lower_bound=peak)
        assert plan.peak == peak
        verify(problem, plan)

    def test_many_live_buffers(self) -> None:
        """Tests the sweep with more live buffers than one bucket of its list holds."""
        n = 5000
        offsets = np.random.default_rng(0).permutation(n) * 3
        start = np.random.default_rng(1).integers(0, 50, n)
        problem = Problem.from_arrays(start, start + 1000, np.full(n, 3))
        verify(problem, Plan.of(problem, offsets))
        pair = int(np.argmax(offsets == 3 * 2047)), int(np.argmax(offsets == 3 * 2048))
        offsets[pair[1]] -= 1
        names = " and ".join(f'buffer "{row}"' for row in sorted(pair))
        said = refusal(problem, Plan.of(problem, offsets))
        assert said.startswith(names + " overlap")
        assert said.endswith("the bytes [6143, 6144)")


class TestConstraints:
    """What concerns one buffer by itself."""

    def test_capacity_is_the_problems_own(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that the capacity of the problem counts, not that which the plan was made for."""
        plan = Plan.of(five, five_offsets)
        said = refusal(five.with_capacity(11), plan)
        assert said == 'buffer "b1": offset 8 + size 4 is beyond the capacity 11'

    def test_size_zero_beyond_the_capacity(self) -> None:
        """Tests that a buffer of size 0 must be within the capacity, too."""
        problem = Problem([Buffer("z", 0, 1, 0)], capacity=4)
        verify(problem, Plan.of(problem, [4]))
        assert "beyond the capacity" in refusal(problem, Plan.of(problem, [5]))

    def test_alignment(self) -> None:
        """Tests that an offset is a multiple of the alignment of its own buffer."""
        problem = Problem([Buffer("a", 0, 1, 4, alignment=8), Buffer("b", 0, 1, 4, alignment=6)])
        verify(problem, Plan.of(problem, [16, 6]))
        assert refusal(problem, Plan.of(problem, [12, 6])) == (
            'buffer "a": offset 12 is not a multiple of its alignment 8'
        )

    def test_pin(self) -> None:
        """Tests that a pinned buffer is where it is pinned."""
        problem = Problem([Buffer("a", 0, 1, 4, pin=8)])
        assert refusal(problem, Plan.of(problem, [0])) == 'buffer "a": offset 0 is not its pin 8'

    @pytest.mark.parametrize(("offset", "legal"), [(0, True), (1, False), (9, False), (10, True)])
    def test_reserved(self, offset: int, legal: bool) -> None:
        """Tests that a buffer may touch the ends of a reserved range, and nothing inside."""
        problem = Problem([Buffer("a", 0, 1, 4)], reserved=[(4, 6), (8, 10), (14, 20)])
        plan = Plan.of(problem, [offset])
        if legal:
            verify(problem, plan)
        else:
            assert "touch the reserved range" in refusal(problem, plan)

    def test_hints_do_not_bind(self) -> None:
        """Tests that a plan may ignore a hint."""
        problem = Problem([Buffer("a", 0, 1, 4, hint=8)])
        verify(problem, Plan.of(problem, [0]))


class TestClaims:
    """What a plan says of itself."""

    def test_no_offsets(self, five: Problem) -> None:
        """Tests that an answer without offsets is not called a good plan."""
        plan = Plan.of(five, None, status=Status.UNKNOWN)
        assert refusal(five, plan) == "the plan has no offsets to verify (its status is unknown)"

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"peak": 11}, "claims a peak of 11, but its offsets reach 12"),
            ({"peak": 13}, "claims a peak of 13, but its offsets reach 12"),
            ({"lower_bound": 13}, "claims the lower bound 13, above its peak 12"),
            ({"capacity": 11}, "claims to keep the capacity 11; its peak is 12"),
            ({"status": Status.INFEASIBLE}, "has offsets, but its status is infeasible"),
            (
                {"status": Status.OPTIMAL},
                "claims to be optimal, but its peak 12 is above its lower",
            ),
            ({"status": Status.FITS, "capacity": None}, "claims to fit, but it has no capacity"),
            ({"fingerprint": "sha256:0"}, "made for another problem"),
            ({"ids": ["b1", "b2", "b3", "b4", "x"]}, 'buffer "b5" is in the problem but not'),
            ({"size": [4, 4, 4, 4, 3], "peak": 12}, 'buffer "b5": size is 3 in the plan but 4'),
            ({"start": [0, 3, 0, 9, 1]}, 'buffer "b5": start is 1 in the plan but 0'),
            ({"end": [3, 9, 9, 21, 22]}, 'buffer "b5": end is 22 in the plan but 21'),
        ],
    )
    def test_false_claims(
        self, five: Problem, five_offsets: list[int], changes: dict[str, object], sentence: str
    ) -> None:
        """Tests that a plan that is safe but not what it says is refused."""
        plan = Plan.of(five, five_offsets)
        verify(five, detached(plan))
        assert sentence in refusal(five, detached(plan, **changes))

    def test_extra_buffers(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a plan with a buffer that is not in the problem is refused."""
        plan = Plan.of(five, five_offsets)
        more = five.subset([0, 1, 2, 3])
        assert 'buffer "b5" is in the plan but not' in refusal(more, plan)

    def test_a_fit_is_not_optimal_above_its_bound(self, five: Problem) -> None:
        """Tests that a plan within the capacity fits, and is only optimal at a lower bound."""
        problem = five.with_capacity(20)
        verify(problem, Plan.of(problem, [16, 8, 4, 4, 0], status=Status.FITS, lower_bound=12))
        above = Plan.of(problem, [16, 8, 4, 4, 0], status=Status.OPTIMAL, lower_bound=12)
        assert "its peak 20 is above its lower bound 12" in refusal(problem, above)

    def test_matches_by_id(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that the buffers of a plan may be in another order than those of the problem."""
        plan = Plan.of(five, five_offsets)
        shuffled = five.shuffled(3)
        assert shuffled.ids != five.ids
        verify(shuffled, plan)
        verify(shuffled, detached(plan))
        verify(shuffled, detached(plan, fingerprint=None))

    def test_other_problem_in_memory(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a plan made for another problem is refused even where it would be safe."""
        other = Problem([*five.subset([0, 1, 2, 3]).buffers, Buffer("b5", 0, 20, 4)], capacity=12)
        plan = Plan.of(five, five_offsets)
        assert 'buffer "b5": end is 21 in the plan but 20' in refusal(other, plan)
        aligned = Problem([dataclasses.replace(b, alignment=2) for b in five.buffers], capacity=12)
        assert "made for another problem" in refusal(aligned, plan)

    def test_empty(self) -> None:
        """Tests that the empty plan of the empty problem passes."""
        verify(Problem([]), Plan.of(Problem([]), []))

    def test_the_largest_sizes(self) -> None:
        """Tests that nothing overflows where offset + size is 2^62."""
        half = 1 << 61
        problem = Problem([Buffer("a", 0, 1, half), Buffer("b", 0, 1, half)], capacity=2 * half)
        verify(problem, Plan.of(problem, [half, 0]))
        assert f"[{half - 1}, {half})" in refusal(problem, Plan.of(problem, [half - 1, 0]))


def is_module(package: Path, name: str) -> bool:
    """Whether a dotted name is that of a file of the package."""
    return package.joinpath(*name.split(".")[1:]).with_suffix(".py").is_file()


class TestIndependence:
    """The modules that the referee imports."""

    def test_imports_no_solver(self) -> None:
        """Tests that the referee and all that it imports know no solver and no native code."""
        package = Path(memplan.__file__).parent
        seen: set[str] = set()
        todo = ["memplan.referee"]
        while todo:
            module = todo.pop()
            seen.add(module)
            path = package.joinpath(*module.split(".")[1:])
            file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            source = file.read_text()
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memplan"):
                    names = [node.module or ""]
                    if (package / "/".join(names[0].split(".")[1:])).is_dir():
                        parts = (f"{node.module}.{alias.name}" for alias in node.names)
                        names += [n for n in parts if is_module(package, n)]
                    names = [n for n in names if n != "memplan"]
                    # What draws a plan in a notebook is imported when it is asked for.
                    todo += [n for n in names if n not in seen and not n.startswith("memplan.view")]
        assert not {m for m in seen if "solver" in m or m.endswith("_core")}
        assert {"memplan.problem.plan", "memplan.referee.proofs", "memplan.problem.spans"} <= seen

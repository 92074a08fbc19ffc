"""Tests of memplan.extensions.minimalloc: the surface of that module, as its callers use it."""

from __future__ import annotations

import copy
import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import memplan as mp
import memplan.extensions.minimalloc as mm
from memplan.base.errors import MemplanError

FIVE = Path(__file__).parents[2] / "examples" / "five.csv"


def five(capacity: int = 12) -> mm.Problem:
    """Return the example of the paper."""
    problem = mm.from_csv_file(FIVE)
    assert problem is not None
    problem.capacity = capacity
    return problem


def test_solve(tmp_path: Path) -> None:
    """Tests what the page of that module shows, and the files."""
    problem = five()
    solution = mm.Solver().solve(problem)
    assert solution == mm.Solution([8, 8, 4, 4, 0], 12)
    assert solution.height == 12
    assert mm.validate(problem, solution) is mm.ValidationResult.GOOD
    mm.to_csv_file(tmp_path / "out.csv", problem, solution)
    plan = mp.load_plan(tmp_path / "out.csv")
    mp.verify(mp.load(FIVE, capacity=12), plan)
    again = mm.from_csv_file(tmp_path / "out.csv")
    assert again is not None
    assert again.strip_solution() == solution
    assert again.strip_solution() is None
    assert again.buffers == problem.buffers


def test_no_solution() -> None:
    """Tests `None`, and buffers that do not fit together."""
    solver = mm.Solver()
    assert solver.solve(five(11)) is None
    subset = solver.compute_irreducible_infeasible_subset(five(11))
    assert subset is not None
    rest = [each for row, each in enumerate(five().buffers) if row in subset[1:]]
    assert solver.solve(mm.Problem(rest, 11)) is not None
    assert solver.compute_irreducible_infeasible_subset(five()) == [0, 1, 2, 3, 4]
    assert mm.from_csv("id,lower,upper\n") is None
    assert mm.Solver().solve(mm.Problem()) == mm.Solution()


@pytest.mark.parametrize("published", [False, True])
def test_params(published: bool) -> None:
    """Tests every switch, off, with the least height."""
    params = mm.SolverParams()
    params.timeout = mm.Duration.from_seconds(60)
    params.published = params.minimize_capacity = True
    params.published = published
    for name in (
        *("canonical_only", "section_inference", "dynamic_ordering", "check_dominance"),
        *("unallocated_floor", "static_preordering", "dynamic_decomposition"),
        *("monotonic_floor", "hatless_pruning"),
    ):
        assert getattr(params, name) is True
        setattr(params, name, False)
    params.preordering_heuristics = ["TWA"]
    solution = mm.Solver(params).solve(five(99))
    assert solution is not None
    assert solution.height == 12


def test_gaps_and_windows() -> None:
    """Tests that gaps go there and back, and that effective sizes know them."""
    gaps = [mm.Gap(mm.Lifespan(3, 4), mm.Window(0, 2)), mm.Gap(mm.Lifespan(5, 6))]
    low = mm.Buffer("low", mm.Lifespan(0, 9), 8, alignment=2, gaps=gaps, hint=4)
    high = mm.Buffer("high", mm.Lifespan(3, 4), size=6, offset=2)
    problem = mm.Problem([low, high], 8)
    assert (low.effective_size(high), high.effective_size(low), low.area()) == (2, 6, 72)
    solution = mm.Solver().solve(problem)
    assert solution == mm.Solution([0, 2])
    assert solution is not None
    assert solution.height == 8
    text = mm.to_csv(problem, solution, old_format=True)
    assert text.splitlines()[:2] == [
        "id,start,end,size,alignment,hint,gaps,offset",
        "low,0,8,8,2,4,3-3@0:2 5-5,0",
    ]
    assert mm.from_csv(mm.to_csv(problem)) == mm.Problem([low, mm.Buffer("high", high.lifespan, 6)])


def test_values_of_that_module() -> None:
    """Tests equality, hashes and times."""
    one = mm.Buffer("a", mm.Lifespan(0, 1), 4, hint=3)
    assert one == mm.Buffer("a", mm.Interval(0, 1), 4, hint=5)
    assert hash(mm.Problem([one])) == hash(mm.Problem([one]))
    assert mm.Interval(0, 3) < mm.Interval(1, 2)
    assert mm.Duration.from_milliseconds(1500) == mm.Duration.from_seconds(1.5)
    assert mm.Duration.from_microseconds(5e5).to_seconds() == 0.5
    for timeout in (None, 5, 0.5, mm.Duration.infinite()):
        assert mm.Solver(mm.SolverParams(timeout=timeout)).solve(five()) is not None


def test_wrong_values() -> None:
    """Tests that numbers beyond 64 bits, and solutions of other problems, are one sentence."""
    with pytest.raises(MemplanError, match="numbers have 64 bits"):
        mm.Solver().solve(five(1 << 63))
    with pytest.raises(MemplanError, match="one offset for each buffer"):
        mm.to_csv(five(), mm.Solution([0]))
    assert mm.validate(five(), mm.Solution([0])) is mm.ValidationResult.BAD_SOLUTION
    assert mm.validate(five(), mm.Solution([0] * 5, 4)) is mm.ValidationResult.BAD_OVERLAP


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mm.Buffer("1", 0, 3, 64, 0), "Buffer.lifespan is 0; it must be a Lifespan"),
        (lambda: mm.Buffer(1, mm.Lifespan(0, 1), 2), "Buffer.id is 1; it must be text"),
        (lambda: mm.Buffer("1", mm.Lifespan(0, 1), 2.5), "Buffer.size is 2.5; it must be a whole"),
        (lambda: mm.Buffer("1", gaps=[(0, 1)]), "it must be a list of Gaps only"),
        (lambda: mm.Buffer("1", offset="0"), 'Buffer.offset is "0"; it must be a whole number or'),
        (lambda: setattr(mm.Buffer("1"), "size", None), "Buffer.size is None"),
        (lambda: mm.Interval(0, "1"), 'Interval.upper is "1"'),
        (lambda: mm.Gap((0, 1)), "Gap.lifespan is a tuple"),
        (lambda: mm.Problem([mm.Lifespan(0, 1)]), "it must be a list of Buffers only"),
        (lambda: mm.Problem([], None), "Problem.capacity is None"),
        (lambda: mm.Solution(4), "Solution.offsets is 4"),
        (lambda: mm.SolverParams(timeout="5"), 'SolverParams.timeout is "5"'),
        (lambda: mm.SolverParams(canonical_only=1), "canonical_only is 1; it must be True or"),
        (lambda: mm.Solver(5), "params is 5; it must be SolverParams"),
        (lambda: mm.Solver().solve([]), "a list is no Problem"),
    ],
)
def test_values_of_other_types_are_refused(call: Callable[[], object], words: str) -> None:
    """Tests calls of another module of this name, whose arguments would be taken for others."""
    with pytest.raises(TypeError, match=re.escape(words)) as error:
        call()
    assert "another module named minimalloc" in str(error.value)


def test_what_is_added_to_a_list_is_checked_too() -> None:
    """Tests lists that were right when they were given."""
    problem = five()
    problem.buffers.append("b6")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a list of Buffers only"):
        mm.Solver().solve(problem)
    problem = five()
    problem.buffers[0].gaps.append((0, 1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a list of Gaps only"):
        mm.to_csv(problem)
    solution = mm.Solution([0] * 4)
    solution.offsets.append(1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"1\.5 is no whole number"):
        mm.to_csv(five(), solution)


def test_fields_that_there_are_not() -> None:
    """Tests that a name that is no field is refused, read or written."""
    with pytest.raises(AttributeError, match="Buffer has no end_time, but id, lifespan, size"):
        mm.Buffer("1").end_time = 4  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Problem has no solve, but buffers, capacity"):
        mm.Problem([], 100).solve()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        mm.Interval(0, 1).lower = 2  # type: ignore[misc]
    one = mm.Buffer("a", mm.Lifespan(0, 1), 4, gaps=[mm.Gap(mm.Lifespan(0, 1))])
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


def test_words_and_times_are_those_of_that_module() -> None:
    """Tests what is printed, and that a time is read as a Duration."""
    assert repr(mm.Gap(mm.Lifespan(1, 2))) == "Gap(lifespan=Interval(1, 2), window=None)"
    assert repr(mm.Duration(2.5)) == "Duration(2.5 seconds)"
    params = mm.SolverParams()
    assert repr(params.timeout) == "Duration.infinite()"
    for value in (3, 3.0, mm.Duration(3)):
        params.timeout = value
        assert params.timeout == mm.Duration(3)


def test_heuristics() -> None:
    """Tests that letters are compared in turn, the greater first, and then indices."""
    before = mm.PreorderingComparator("TWxA")
    one = mm.PreorderData(total=3, width=2, area=1)
    for other in (
        mm.PreorderData(total=4, width=1),
        mm.PreorderData(total=3, width=3),
        mm.PreorderData(total=3, width=2, area=2, buffer_idx=9),
    ):
        assert before(other, one)
        assert not before(one, other)
    assert before(one, mm.PreorderData(total=3, width=2, area=1, buffer_idx=1))


def test_a_proof_is_work() -> None:
    """Tests that callers who ask whether there was a search are told so."""
    solver = mm.Solver()
    assert solver.solve(mm.Problem([mm.Buffer("a", mm.Lifespan(0, 1), 3)], 2)) is None
    assert solver.get_backtracks() >= 1


def test_cancel() -> None:
    """Tests that another thread ends a search that has no end."""
    buffers = [mm.Buffer(f"b{i}", mm.Interval(i % 7, 9 + i % 5), 101 + i * i) for i in range(60)]
    params = mm.SolverParams(published=True, canonical_only=False, section_inference=False)
    params.monotonic_floor = params.check_dominance = False
    solver = mm.Solver(params)
    load = sum(each.size for each in buffers)
    over = threading.Event()

    def cancel() -> None:
        while not over.wait(0.01):
            solver.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    found = solver.solve(mm.Problem(buffers, load - 1))
    over.set()
    other.join()
    assert found is None or found.height < load

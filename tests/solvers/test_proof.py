"""Tests of `memplan.solve(proof=...)`: what solvers write down is what the checker believes."""

from __future__ import annotations

import os
from pathlib import Path

import oracle
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import memplan as mp
from memplan.referee import verify_proof
from memplan.solvers import registry
from memplan_lab.bench import generators

PROVERS = tuple(name for name, solver in registry.SOLVERS.items() if solver.proves)


@pytest.fixture
def jagged() -> mp.Problem:
    """Return eight buffers of load 6 that need 7, found by brute force."""
    lives = [(4, 6, 2), (2, 6, 2), (3, 5, 1), (5, 7, 2), (0, 2, 3), (1, 4, 1), (1, 5, 1), (2, 3, 2)]
    return mp.Problem([mp.Buffer(f"b{i}", *life) for i, life in enumerate(lives)])


def test_who_writes_proofs() -> None:
    """Tests that these are the solvers with the prover in them."""
    assert PROVERS == ("auto", "exact", "prover")


@pytest.mark.parametrize("solver", PROVERS)
def test_an_optimum_above_the_load(solver: str, jagged: mp.Problem, tmp_path: Path) -> None:
    """Tests that a proof says that nothing is better than the plan."""
    plan = mp.solve(jagged, solver, proof=tmp_path / "it.proof")
    assert (plan.status, plan.peak, plan.stats["proof"]) == ("optimal", 7, True)
    assert verify_proof(jagged, tmp_path / "it.proof").lower_bound == 7
    assert os.listdir(tmp_path) == ["it.proof"]


@pytest.mark.parametrize("solver", PROVERS)
@pytest.mark.parametrize("capacity", [6, 5])
def test_a_capacity_that_is_too_small(
    solver: str, capacity: int, jagged: mp.Problem, tmp_path: Path
) -> None:
    """Tests that `infeasible` comes with a proof, of the search or of the load."""
    plan = mp.solve(jagged.with_capacity(capacity), solver, proof=tmp_path / "it.proof")
    assert (plan.status, plan.stats["proof"]) == ("infeasible", True)
    claim = verify_proof(jagged, tmp_path / "it.proof")
    assert claim.cap >= capacity
    assert claim.lower_bound <= 7


@pytest.mark.parametrize("solver", PROVERS)
def test_an_optimum_at_the_load(solver: str, five: mp.Problem, tmp_path: Path) -> None:
    """Tests that what needs no search is written down as well."""
    plan = mp.solve(five.with_capacity(None), solver, proof=str(tmp_path / "it.proof"))
    assert plan.stats["proof"] is True
    assert verify_proof(five, tmp_path / "it.proof").lower_bound == 12


@pytest.mark.slow
@settings(max_examples=150)
@given(
    problem=strategies.problems(features=strategies.FEATURES - {"windows"}),
    solver=st.sampled_from(PROVERS),
)
def test_small_problems(
    problem: mp.Problem, solver: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Tests proofs of any mix of constraints against the checker and brute force."""
    file = tmp_path_factory.getbasetemp() / "small.proof"
    file.unlink(missing_ok=True)
    plan = mp.solve(problem, solver, "min_peak", threads=1, proof=file)
    best = oracle.minimum_peak(problem)
    if plan.peak == 0:  # there is nothing to prove
        assert (best, plan.stats["proof"]) == (0, False)
        return
    assert plan.stats["proof"] is True
    claim = verify_proof(problem, file)
    if plan.status is mp.Status.INFEASIBLE:
        assert best is None
        assert problem.capacity is not None
        assert claim.cap >= problem.capacity
    else:
        assert claim.lower_bound == plan.peak == best


@pytest.mark.parametrize("switch", [None, *registry.SOLVERS["prover"].options])
def test_every_technique_can_be_proved(switch: str | None, tmp_path: Path) -> None:
    """Tests that each switch, off, leaves proofs that are right."""
    problem = generators.flat_load(24, 3).with_capacity(None)
    options = {} if switch is None else {switch: False}
    plan = mp.solve(problem, "prover", proof=tmp_path / "it.proof", **options)  # type: ignore[arg-type]
    assert (plan.status, plan.stats["proof"]) == ("optimal", True)
    assert verify_proof(problem, tmp_path / "it.proof").lower_bound == plan.peak


@pytest.mark.parametrize("seed", range(6))
def test_sixty_buffers(seed: int, tmp_path: Path) -> None:
    """Tests that proofs of the size that matters are read in reasonable time."""
    problem = generators.flat_load(60, seed).with_capacity(None)
    plan = mp.solve(problem, threads=1, proof=tmp_path / "it.proof")
    assert (plan.status, plan.stats["proof"]) == ("optimal", True)
    assert verify_proof(problem, tmp_path / "it.proof").lower_bound == plan.peak


# All or nothing --------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a file that is there already."""
    file = tmp_path / "it.proof"
    file.write_text("what was here before")
    file.chmod(0o640)
    return file


def assert_untouched(old: Path) -> None:
    """Assert that the old file is as it was, and alone in its folder."""
    assert old.read_text() == "what was here before"
    assert os.listdir(old.parent) == [old.name]


def test_a_proof_replaces_an_old_one(jagged: mp.Problem, old: Path) -> None:
    """Tests that the name and the permissions stay, also through a link."""
    link = old.with_name("link")
    link.symlink_to(old)
    assert mp.solve(jagged, proof=link).stats["proof"] is True
    assert verify_proof(jagged, old).cap == 6
    assert link.is_symlink()
    assert old.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(old.parent)) == ["it.proof", "link"]


@pytest.mark.parametrize(
    "limits",
    [{"capacity": 9, "objective": "fit"}, {"nodes": 1, "solver": "prover"}, {"timeout": 0}],
    ids=["a fit", "no nodes", "no time"],
)
def test_no_proof_leaves_the_file_alone(limits: dict[str, object], old: Path) -> None:
    """Tests that where nothing was refuted to the end, nothing is written, and the plan says so."""
    problem = generators.flat_load(40, 2).with_capacity(None)
    if "capacity" in limits:
        problem = problem.with_capacity(10_000)
    chosen = {name: value for name, value in limits.items() if name != "capacity"}
    plan = mp.solve(problem, proof=old, **chosen)  # type: ignore[arg-type]
    assert plan.stats["proof"] is False
    assert_untouched(old)


def test_an_error_leaves_the_file_alone(jagged: mp.Problem, old: Path) -> None:
    """Tests every way out of a search that fails."""

    def stop(_: mp.Progress) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        mp.solve(jagged, proof=old, progress=stop)
    assert_untouched(old)
    with pytest.raises(mp.MemplanError, match="orders of auto must be a list"):
        mp.solve(jagged, proof=old, orders=5)
    assert_untouched(old)


@pytest.mark.parametrize("solver", sorted(set(registry.SOLVERS) - set(PROVERS)))
def test_a_solver_without_proofs_refuses_by_name(
    solver: str, jagged: mp.Problem, old: Path
) -> None:
    """Tests that a proof is never left out in silence."""
    with pytest.raises(mp.UnsupportedError, match=f"{solver} writes no proof; choose one of auto"):
        mp.solve(jagged, solver, proof=old)
    assert_untouched(old)


@pytest.mark.parametrize("relation", ["conflicts", "groups"])
def test_relations_are_refused_by_name(tmp_path: Path, relation: str) -> None:
    """Tests that a proof which would leave conflicts or groups out is refused."""
    rows = [mp.Buffer("a", 0, 1, 4), mp.Buffer("b", 1, 2, 4)]
    problem = mp.Problem(rows, capacity=7, **{relation: [("a", "b")]})  # type: ignore[arg-type]
    path = tmp_path / "no.proof"
    for solver in ("auto", "exact", "prover"):
        with pytest.raises(mp.UnsupportedError, match=f"a proof cannot express {relation}"):
            mp.solve(problem, solver, proof=path)
    path.write_text("refuted\n")
    with pytest.raises(mp.UnsupportedError, match=f"a proof cannot express {relation}"):
        verify_proof(problem, path)


def test_windows_are_refused_by_name(old: Path) -> None:
    """Tests that a proof is not promised of what it cannot speak of."""
    gap = mp.Gap(1, 2, (0, 1))
    with pytest.raises(mp.UnsupportedError, match="a proof cannot express windows"):
        mp.solve([mp.Buffer("a", 0, 5, 4, gaps=(gap,))], proof=old)
    assert_untouched(old)


def test_a_place_that_cannot_be_written(jagged: mp.Problem, tmp_path: Path) -> None:
    """Tests one sentence with the name, before the search."""
    file = tmp_path / "file"
    file.touch()
    for place in (file / "it.proof", tmp_path, "/dev/null", "a\0b"):
        with pytest.raises(mp.FormatError, match="cannot be written: ") as caught:
            mp.solve(jagged, proof=place)
        assert str(caught.value).startswith(str(place))
    assert os.listdir(tmp_path) == ["file"]

"""Tests that a plan which only fits a capacity is called so, on every surface.

`optimal` is a word for a peak that equals a proved lower bound, whatever was asked.
"""

from __future__ import annotations

import json
from pathlib import Path

import every_solver
import pytest
from command_line import memplan
from every_solver import EVERY

import memplan as mp
from memplan.problem import formats
from memplan.problem.plan import Plan
from memplan.programs import sources
from memplan.solvers import registry
from memplan.solvers.run import Run

# The load is 6 and the least peak is 7, so no plan meets a bound that needs no search.
COLUMNS = [4, 2, 3, 5, 0, 1, 1, 2], [6, 6, 5, 7, 2, 4, 5, 3], [2, 2, 1, 2, 3, 1, 1, 2]
CAPACITY = 16


@pytest.fixture
def jagged() -> mp.Problem:
    """Return a problem whose plans are all above its load, with room to spare."""
    return mp.Problem.from_arrays(*COLUMNS, capacity=CAPACITY)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give lines the room that they need."""
    monkeypatch.setenv("COLUMNS", "140")


@pytest.fixture
def file(jagged: mp.Problem, tmp_path: Path) -> Path:
    """Return the problem as a file, with its capacity."""
    formats.save(jagged, tmp_path / "jagged.json")
    return tmp_path / "jagged.json"


def assert_claim(plan: Plan) -> None:
    """Assert that the status says of the plan what is true of it, and no more."""
    assert plan.peak is not None
    assert plan.problem is not None
    mp.verify(plan.problem, plan)
    assert (plan.status == "optimal") == (plan.peak == plan.lower_bound)
    assert plan.status in ("optimal", "fits")


@pytest.mark.parametrize("solver", EVERY)
def test_every_solver(solver: str, jagged: mp.Problem) -> None:
    """Tests that a fit above its bound is `fits`, and at a bound `optimal`, with every solver."""
    plan = mp.solve(jagged, solver)
    assert_claim(plan)
    if not registry.SOLVERS[solver].is_baseline:
        # `exact` asks for a plan at the bound too, and so refutes the load here.
        proved = solver == "exact"
        assert (plan.status, plan.lower_bound) == (("optimal", 7) if proved else ("fits", 6))
    flat = mp.Problem.from_arrays([0, 1], [2, 3], [4, 5], capacity=CAPACITY)
    assert_claim(mp.solve(flat, solver))
    if solver not in every_solver.BASELINES:
        assert mp.solve(flat, solver).status == "optimal"
    least = mp.solve(jagged, solver, "min_peak", nodes=100_000)
    assert least.status in ("optimal", "feasible")
    assert (least.status == "optimal") == (least.peak == least.lower_bound)


def test_the_command(file: Path) -> None:
    """Tests the text, JSON and exit code of `plan`, and that --minimize changes the answer."""
    run = memplan("plan", file)
    assert run.returncode == 0
    lines = {line[:13].strip(): line[13:].strip() for line in run.stdout.splitlines()}
    said = "it is within the capacity; a smaller peak was not asked for (--minimize)"
    assert lines["status"] == f"fits: {said}"
    assert lines["gap"].endswith("%, at most: a smaller peak was not asked for")
    found = json.loads(memplan("plan", file, "--json").stdout)
    assert (found["status"], found["lower_bound"]) == ("fits", 6)
    assert found["gap"] == found["peak"] / 6 - 1
    found = json.loads(memplan("plan", file, "--json", "--minimize").stdout)
    assert (found["status"], found["peak"], found["lower_bound"]) == ("optimal", 7, 7)


def status_file(out: Path) -> Path:
    """Return the file that has the status of a plan: the one beside a table, or the plan's own."""
    return out.with_name(f"{out.name}.memplan") if out.suffix == ".csv" else out


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_files(file: Path, suffix: str) -> None:
    """Tests that a written fit says so, passes the referee, and is drawn as one."""
    out = file.with_name(f"out.{suffix}")
    assert memplan("plan", file, "-q", "-o", out).returncode == 0
    text = status_file(out).read_text()
    assert ("status=fits" if suffix == "csv" else '"status": "fits"') in text
    assert formats.load_plan(out).status == "fits"
    assert memplan("verify", file, out).returncode == 0
    assert memplan("view", file, out).stdout.splitlines()[0].endswith("fits")


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_files_of_before(file: Path, suffix: str) -> None:
    """Tests that a fit which a file calls optimal is read as one, but only with a capacity."""
    out = file.with_name(f"out.{suffix}")
    memplan("plan", file, "-q", "-o", out)
    status = status_file(out)
    status.write_text(status.read_text().replace("fits", "optimal"))
    assert formats.load_plan(out).status == "fits"
    assert memplan("verify", file, out).returncode == 0
    text = status.read_text().replace(f" capacity={CAPACITY}", "")
    status.write_text(text.replace(f'"capacity": {CAPACITY}', '"capacity": null'))
    assert formats.load_plan(out).status == "optimal"
    run = memplan("verify", file, out)
    assert run.returncode == 1
    assert "claims to be optimal, but its peak" in run.stderr


def test_models_and_repackers(jagged: mp.Problem) -> None:
    """Tests `plan_model`, and a repacker that is asked to fit, to minimise, and to fit again."""
    planned = mp.plan_model(sources.of_problem(jagged))
    assert_claim(planned.plan)
    assert planned.plan.status == "fits"
    repacker = mp.Repacker(jagged)
    for objective, statuses in (("fit", {"fits"}), ("min_peak", {"optimal"}), ("fit", {"fits"})):
        plan = repacker.plan(objective)
        mp.verify(repacker.problem(), plan)
        assert plan.status in statuses
        assert (plan.status == "optimal") == (plan.peak == plan.lower_bound)
    assert repacker.fits()
    assert not repacker.fits(5)


def test_an_outside_solver(jagged: mp.Problem) -> None:
    """Tests what the run of a solver of another package says, before and after a bound."""
    run = Run(
        jagged,
        solver="x",
        minimize=False,
        seconds=None,
        nodes=None,
        seed=0,
        options={},
        progress=None,
    )
    run.offer([sum(jagged.size.tolist()[:row]) for row in range(len(jagged))], "stacked")
    assert_claim(run.plan())
    assert (run.plan().status, run.round(False).ended_by) == ("fits", "plan")
    run.learn(14)
    assert run.plan().status == "optimal"


@pytest.mark.parametrize("learned", ["on", "off", True, False])
def test_switches_are_words_or_truths(jagged: mp.Problem, learned: object) -> None:
    """Tests that what a command writes as a word may be one in Python as well."""
    word = learned if isinstance(learned, str) else "on" if learned else "off"
    plan = mp.solve(jagged, "telamalloc", learned=learned)
    assert plan.peak == mp.solve(jagged, f"telamalloc:learned={word}").peak
    assert plan.status == "fits"

"""Questions about one memory: plans, bounds, what does not fit, proofs, and what is printed."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import tempfile
from pathlib import Path
from typing import Final

import memplan as mp
from memplan.__main__ import main
from memplan.base.errors import UnsupportedError
from memplan.referee import verify_proof
from memplan_lab.claims.comparing import compare, must
from memplan_lab.claims.drawing import draw_case, draw_ties
from memplan_lab.claims.placing import Case, find_least, measure

__all__ = ["MOST", "ask_printed", "ask_proof", "ask_solve", "check_plan"]

MOST: Final = 60  # bytes, above any least peak of what is drawn
_SOLVERS: Final = ("exact", "telamalloc", "minimalloc", "greedy", "prover")


def check_plan(case: Case, plan: mp.Plan, capacity: int | None = None) -> None:
    """Check that a plan, if there is one, is legal and as high as it says."""
    if plan.offsets is None:
        return
    offsets = plan.offsets.tolist()
    top = max((at + each.size for at, each in zip(offsets, case.items, strict=True)), default=0)
    peak = measure(case, offsets, top if capacity is None else capacity)
    must(peak is not None and peak == plan.peak, f"{plan!r} is not legal")


def ask_solve(rng: random.Random) -> bool:
    """Ask for a plan, within a capacity or without, by any solver and with any budget."""
    case = draw_case(rng, draw_ties(rng, 0.3), 7)
    problem = case.problem()
    least = find_least(case, MOST)
    capacity = None
    if least is not None and rng.random() < 0.5:
        capacity = max(1, least + rng.randint(-2, 2))
        problem = problem.with_capacity(capacity)
    solver = rng.choice(_SOLVERS) if rng.random() < 0.4 else "auto"
    options = {
        "objective": "min_peak" if rng.random() < 0.5 else None,
        "nodes": rng.choice((1, 5, 50)) if rng.random() < 0.2 else None,
        "threads": 1,
        "seed": rng.randrange(5),
    }
    if capacity is None:
        options["objective"] = None
    try:
        plan = mp.solve(problem, solver, **options)  # type: ignore[arg-type]
    except UnsupportedError:
        plan = mp.solve(problem, **options)  # type: ignore[arg-type]
    check_plan(case, plan, capacity)
    must(least is None or mp.lower_bound(problem) <= least, "the bound is above a plan")
    within = least is not None and (capacity is None or least <= capacity)
    proved = compare(plan, plan.peak, 0, plan.status, least if within else None)
    if least is not None and (within or plan.status is not mp.Status.INFEASIBLE):
        must(plan.lower_bound <= least, f"{plan!r}, but {least} bytes are enough")
    if plan.conflict:
        part = case.subset(int(id) for id in plan.conflict)
        must(not _fits_within(part, capacity), f"{plan!r}, but {plan.conflict} fit")
    return proved or str(plan.status) == "fits"


def _fits_within(case: Case, capacity: int | None) -> bool:
    return find_least(case, MOST if capacity is None else capacity) is not None


def ask_proof(rng: random.Random) -> bool:
    """Ask for a proof that no plan is better, and have the referee read it."""
    ties = draw_ties(rng, 0.25, without="window group conflict hint")
    case = draw_case(rng, ties, 6)
    least = find_least(case, MOST)
    capacity = None
    if least is not None and rng.random() < 0.5:
        capacity = max(1, least - rng.randint(0, 2))
    problem = case.problem(capacity)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof"
        plan = mp.solve(problem, proof=path, threads=1)
        if not path.exists():
            return False
        claim = verify_proof(problem, path)
    must(least is None or claim.lower_bound <= least, f"{claim} is proved, but {least} are enough")
    must(least is None or claim.cap < least, f"{claim} is proved, but {least} are enough")
    return plan.status is mp.Status.OPTIMAL or plan.status is mp.Status.INFEASIBLE


def ask_printed(rng: random.Random) -> bool:
    """Ask on the command line, and read what is printed there."""
    case = draw_case(rng, draw_ties(rng, 0.25, without="window"), 6)
    problem = case.problem()
    least = find_least(case, MOST)
    capacity = None
    if least is not None and rng.random() < 0.6:
        capacity = max(1, least + rng.randint(-2, 1))
    words = ["plan"] if rng.random() < 0.6 else ["inspect"]
    out, err, given = io.StringIO(), io.StringIO(), sys.argv
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "drawn.json")
        mp.save(problem.with_capacity(capacity), path)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            sys.argv = ["memplan", *words, path]
            code = main()
    sys.argv = given
    text = out.getvalue()
    is_within = least is not None and (capacity is None or least <= capacity)
    told = f"memplan {words[0]} of {case} in {capacity}, with {least} needed, ends with {code}: "
    told += text + err.getvalue()
    must(code in (0, 1, 3), told)
    must("proved that no plan fits" not in text or not is_within, told)
    must(code != 1 or not is_within, told)
    must(code != 0 or is_within or words == ["inspect"], told)
    for line in text.splitlines():
        label, _, value = line.partition("  ")
        value = value.strip()
        if label == "peak" or label == "planned":
            bytes = int(value.split()[0].replace(",", ""))
            must(least is not None and bytes >= least, told)
            is_optimal = "status        optimal" in text or "optimal" in value
            must(not is_optimal or bytes == least, told)
        if label in ("lower bound", "bound") and value[:1].isdigit():
            bytes = int(value.split()[0].replace(",", ""))
            must(least is None or bytes <= least, told)
    return "optimal" in text or code == 1

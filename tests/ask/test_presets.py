"""Tests that questions with a name of their own are those of `plan`, and answered as by engines."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from asked import BRANCHES, BURSTS, PARALLEL, RESIDUAL, STEP
from small_programs import chain

import memplan as mp
from memplan.base.errors import MemplanError, PlanError, ProblemError
from memplan.levers import Plain
from memplan.levers.rewrite import recompute, reorder
from memplan.levers.rewrite.waits import plan_waits
from memplan.machine.apart import plan_apart
from memplan.machine.blocks import plan_blocks
from memplan.machine.memories import assign
from memplan.programs.sources import of_graph
from memplan.runtimes.c.writer import CHeader
from memplan.scenarios.envelope import envelope
from memplan.scenarios.together import plan_together

BUFFERS = [mp.Buffer("a", 0, 2, 8), mp.Buffer("b", 1, 3, 8), mp.Buffer("c", 3, 5, 8)]
PROBLEM = mp.Problem(BUFFERS)
MEMORIES = (mp.Memory("fast", 12), mp.Memory("slow", read=8, write=8))
PAIRS = {("a", "c"): 3, ("b", "c"): 2}
ACCESSES = {"a": (0.5, 1), "b": [(1, 0, 1), (2, 3, 0)]}
SMALL = STEP.at().problem.max_load - 1


@dataclass(frozen=True)
class Case:
    """A question with a name of its own."""

    ask: Callable[[], mp.Answer]
    engine: Callable[[], Any]
    kind: type
    programs: Any  # as `check_answer` takes them
    facts: Callable[[Any], Any]  # of what an engine found


CASES = {
    "assign": Case(
        lambda: mp.assign(PROBLEM, MEMORIES, ACCESSES),
        lambda: assign(PROBLEM, MEMORIES, ACCESSES),
        mp.Assigned,
        PROBLEM,
        lambda found: (found.traffic, found.bound, found.accessed),
    ),
    "assign, moves": Case(
        lambda: mp.assign(BURSTS.at(), MEMORIES, residency=True),
        lambda: assign(BURSTS.at(), MEMORIES, residency=True),
        mp.Assigned,
        BURSTS.at(),
        lambda found: (found.traffic, found.bound, found.stretches),
    ),
    "plan_blocks": Case(
        lambda: mp.plan_blocks(PROBLEM, 12),
        lambda: plan_blocks(PROBLEM, 12),
        mp.Blocks,
        PROBLEM,
        lambda found: (found.count, found.total, found.limit),
    ),
    "plan_together": Case(
        lambda: mp.plan_together([RESIDUAL.at(), BRANCHES.at()], names=["r", "b"], in_place=True),
        lambda: plan_together([RESIDUAL.at(), BRANCHES.at()], names=["r", "b"], in_place=True),
        mp.Together,
        [RESIDUAL.at(), BRANCHES.at()],
        lambda found: (found.peak, found.names),
    ),
    "plan_apart": Case(
        lambda: mp.plan_apart(PROBLEM, PAIRS, capacity=16),
        lambda: plan_apart(PROBLEM, PAIRS, capacity=16),
        mp.Apart,
        PROBLEM,
        lambda found: (found.cost, found.bound, found.met),
    ),
    "plan_waits": Case(
        lambda: mp.plan_waits(PARALLEL[1].at(), capacity=PARALLEL[1].at().problem.max_load),
        lambda: plan_waits(PARALLEL[1].at(), capacity=PARALLEL[1].at().problem.max_load),
        mp.Waits,
        PARALLEL[1].at(),
        lambda found: (found.arcs, found.lost),
    ),
    "envelope": Case(
        lambda: mp.envelope(RESIDUAL.at, {"n": range(1, 5)}),
        lambda: envelope(RESIDUAL.at, {"n": range(1, 5)}),
        mp.Envelope,
        RESIDUAL.at,
        lambda found: (found.peaks.tolist(), found.plan.peak),
    ),
    "reorder": Case(
        lambda: mp.reorder(BRANCHES.at(), in_place=True),
        lambda: reorder(BRANCHES.at(), in_place=True),
        mp.Reordered,
        BRANCHES.at(),
        lambda found: (found.order, found.peak, found.bound),
    ),
    "recompute": Case(
        lambda: mp.recompute(STEP.at(), f"{SMALL}B"),
        lambda: recompute(STEP.at(), SMALL),
        mp.Recomputed,
        STEP.at(),
        lambda found: (found.runs, found.extra, found.bound),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_name_asks_the_same(name: str, tmp_path: Path) -> None:
    """Tests what was found, the class, and that the answer is checked, saved and told."""
    case = CASES[name]
    answer = case.ask()
    assert case.facts(answer.find(case.kind)) == case.facts(case.engine())
    answer.verify()
    mp.save_answer(answer, tmp_path / "answer.json")
    mp.check_answer(case.programs, tmp_path / "answer.json")
    assert str(answer)


def test_accesses_are_of_the_programs_as_they_are(tmp_path: Path) -> None:
    """Tests accesses by buffer of several programs, and where they would say nothing."""
    machine = mp.Machine(MEMORIES, accesses={"one/a": (0, 9), "two/b": ((1, 0, 2), (2, 2, 0))})
    answer = mp.plan([PROBLEM, PROBLEM], names=["one", "two"], machine=machine)
    accessed = answer.find(mp.Assigned).accessed
    assert (accessed["one/a"], accessed["one/b"]) == ((0, 72), (8, 8))
    assert accessed["two/b"] == (16, 16)
    mp.save_answer(answer, tmp_path / "answer.json")
    mp.check_answer([PROBLEM, PROBLEM], tmp_path / "answer.json")
    with pytest.raises(ProblemError, match="one/z"):
        mp.plan(
            [PROBLEM] * 2,
            names=["one", "b"],
            machine=mp.Machine(MEMORIES, accesses={"one/z": (1, 1)}),
        )
    with pytest.raises(MemplanError, match="leave the levers and sizes out"):
        mp.assign(RESIDUAL.at(), MEMORIES, {"x": (1, 1)}, levers=["order"])
    with pytest.raises(MemplanError, match="its accesses need times"):
        mp.assign(PROBLEM, MEMORIES, {"a": (1, 1)}, residency=True)
    with pytest.raises(MemplanError, match="name at least one"):
        mp.Machine(accesses={"a": (1, 1)})


def test_what_no_engine_found() -> None:
    """Tests a class of which an answer has nothing, or several: of one program twice."""
    answer = mp.plan(PROBLEM)
    with pytest.raises(PlanError, match="0 results of the class Assigned"):
        answer.find(mp.Assigned)
    two = mp.plan([BRANCHES.at()] * 2, names=["a", "b"], levers=["order"])
    with pytest.raises(PlanError, match="2 results of the class Reordered"):
        two.find(mp.Reordered)


def test_what_is_refused() -> None:
    """Tests a limit that nothing says, and one program alone."""
    with pytest.raises(MemplanError, match="say how large a block may be"):
        mp.plan_blocks(PROBLEM)
    with pytest.raises(MemplanError, match="at least two"):
        mp.plan_together([PROBLEM])


def test_a_program_for_a_runtime_is_an_answer(tmp_path: Path) -> None:
    """Tests `fit` and a writer of the caller: the file, what was done, and that it is checked."""
    net = of_graph(chain(2, 16, 16, 2))
    least = mp.fit(net, nodes=10_000)
    found = least.find(mp.Arranged)
    assert least.axis("peak").found == found.arena < found.given_peak
    assert [step.lever for step in least.steps if step.taken] == ["bands"]
    assert (least.fits, str(least.status)) == (True, "feasible")
    assert least.axis("more work").found == found.extra > 0
    header, plain = CHeader(net, "net"), Plain(BRANCHES.at())
    asked: dict[str, Any] = {"levers": ["order", "bands", "in place"], "nodes": 10_000}
    made = mp.fit(net, found.arena, out=tmp_path / "net.h", nodes=10_000)
    assert (tmp_path / "net.h").read_bytes() == made.find(mp.Arranged).data
    for answer, program in (
        (least, net),
        (made, net),
        (
            mp.plan(net, writers=[header], capacity=found.arena, **asked),
            net,
        ),
        (mp.plan(BRANCHES.at(), writers=[plain], **asked), BRANCHES.at()),
    ):
        answer.verify()
        mp.save_answer(answer, tmp_path / "answer.json")
        mp.check_answer(program, tmp_path / "answer.json")
        assert str(answer)


def test_what_does_not_fit_says_so() -> None:
    """Tests an answer above its capacity, and levers that were not needed."""
    loaded = BRANCHES.at()
    low = mp.fit(loaded, 9)
    assert (low.fits, str(low.status)) == (False, "unknown")
    whole = mp.plan(loaded, writers=[Plain(loaded)], levers=["order"], capacity=1 << 20)
    assert (str(whole.status), whole.steps[-1].words) == ("fits", "not tried")
    order = mp.plan(loaded, writers=[Plain(loaded)], levers=["order"])
    assert str(order.status) == "optimal"
    assert order.peak == mp.reorder(loaded).peak


def test_penalties_follow_parts_in_bands(tmp_path: Path) -> None:
    """Tests that parts of a tensor cost what it does, each pair, also when a file is checked."""
    net = of_graph(chain(2, 16, 16, 2))
    pairs = {("t0", "t2"): 1, ("t0", "t3"): 1, ("t1", "t3"): 1}
    least = mp.plan(net, levers=["bands"], max_extra=9.0, nodes=10_000).peak or 0
    asked: dict[str, Any] = {"levers": ["bands"], "capacity": least, "max_extra": 9.0}
    answer = mp.plan_apart(net, pairs, nodes=10_000, **asked)
    name = {each.name: each.origin or each.name for each in answer.programs[0].graph.tensors}
    met = [tuple(sorted((name[a], name[b]))) for a, b in answer.find(mp.Apart).met]
    assert {*met} == {*pairs}
    assert answer.axis("penalties").found == len(met) > len(pairs)
    mp.save_answer(answer, tmp_path / "answer.json")
    mp.check_answer(net, tmp_path / "answer.json")


def test_what_an_engine_found_is_there_by_its_name() -> None:
    """Tests names of several engines, fields of the answer first, and one that nothing has."""
    found = mp.assign(PROBLEM, MEMORIES, ACCESSES)
    engine = found.find(mp.Assigned)
    assert (found.traffic, found.bound) == (engine.traffic, engine.bound)
    assert found.memory_of("a") == engine.memory_of("a")
    order = mp.reorder(BRANCHES.at())
    assert order.given_peak == order.find(mp.Reordered).given_peak
    assert pickle.loads(pickle.dumps(found)).traffic == found.traffic
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        _ = found.no_such

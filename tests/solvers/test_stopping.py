"""Tests of Ctrl-C: every question ends with its best answer so far, and says so."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from interrupts import ctrl_c, interrupt, raise_signal
from small_programs import training_step

import memplan as mp
from memplan import solvers
from memplan.analysis.inspection import inspect
from memplan.cli import main
from memplan.levers.pipeline import Plain, arrange
from memplan.levers.rewrite import recompute, reorder
from memplan.levers.rewrite.again import NoRunsError
from memplan.machine.apart import plan_apart
from memplan.machine.blocks import plan_blocks
from memplan.machine.memories import assign
from memplan.problem.plan import Plan
from memplan.programs.sources import of_graph
from memplan.runtimes.fitting import fit_memories
from memplan.scenarios.envelope import envelope
from memplan.scenarios.together import plan_together
from memplan.solvers.stopping import is_stopped, stoppable

MEMORIES = (mp.Memory("sram", 400), mp.Memory("psram", None, 10, 10))
BUFFERS = [mp.Buffer(f"b{at}", at % 7, at % 7 + 2 + at % 4, 16 * (1 + at % 5)) for at in range(16)]
PROBLEM = mp.Problem(BUFFERS)
PAIRS = {
    (one.id, other.id): 1 + one.start
    for one in BUFFERS
    for other in BUFFERS
    if one.end <= other.start
}


def check_apart(**given: Any) -> mp.Apart:
    """Return a plan with penalties, which the referee accepts."""
    found = plan_apart(PROBLEM, PAIRS, capacity=PROBLEM.max_load + 64)
    found.verify()
    return found


def size_of(batch: int) -> mp.Problem:
    """Return a problem whose bytes grow."""
    return mp.Problem(
        [mp.Buffer(each.id, each.start, each.end, each.size * batch) for each in BUFFERS]
    )


def _with_capacity(loaded: mp.Loaded) -> mp.Loaded:
    """Return a program in less memory than it needs."""
    least = loaded.problem.max_load
    return replace(loaded, problem=loaded.problem.with_capacity(least * 3 // 4))


STEP = training_step()
QUESTIONS: dict[str, Callable[[], Any]] = {
    "assign": lambda: assign(of_graph(STEP), MEMORIES),
    "residency": lambda: assign(of_graph(STEP), MEMORIES, residency=True),
    "blocks": lambda: plan_blocks(PROBLEM, 100),
    "together": lambda: plan_together([of_graph(STEP), PROBLEM], names=["a", "b"], in_place=True),
    "apart": check_apart,
    "envelope": lambda: envelope(size_of, {"batch": range(1, 9)}),
    "arrange": lambda: arrange(Plain(of_graph(STEP)), in_place=True, order=True, bands=True),
    "fit": lambda: fit_memories(of_graph(STEP), MEMORIES, {}),
    "tradeoff": lambda: mp.tradeoff(STEP, points=2),
    "plan --levers order": lambda: mp.plan(of_graph(STEP), levers=["order"]),
    "inspect": lambda: inspect(of_graph(STEP)),
    "inspect, a capacity": lambda: inspect(_with_capacity(of_graph(STEP))),
    "compare": lambda: mp.compare(of_graph(STEP), PROBLEM),
    "order": lambda: reorder(STEP),
    "recompute": lambda: recompute(STEP, 1000),
}
SOLVES = sorted(QUESTIONS.keys() - {"apart", "order", "recompute"})


@pytest.mark.parametrize("send", [interrupt, raise_signal])
@pytest.mark.parametrize("at", [1, 2, 4])
@pytest.mark.parametrize("question", SOLVES)
def test_a_question_ends_with_the_best_so_far(
    question: str, at: int, send: Callable[[Plan], None]
) -> None:
    """Tests Ctrl-C in the first searches for plans; the referee is a part of each answer."""
    with ctrl_c(at, send) as calls:
        found = QUESTIONS[question]()
    assert found.interrupted is (calls[0] >= at)
    assert not is_stopped()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not QUESTIONS[question]().interrupted


@pytest.mark.parametrize("question", sorted(QUESTIONS.keys() - {"apart", "recompute"}))
def test_a_question_that_is_over_has_an_answer(question: str) -> None:
    """Tests parts of a question that begin after Ctrl-C: their searches end at once."""
    with stoppable() as stop:
        stop.set()
        found = QUESTIONS[question]()
    assert found.interrupted


REFEREES = {
    "assign": "memplan.machine.memories.assigned.verify_assigned",
    "apart": "memplan.solvers.apart.verify_apart",
    "blocks": "memplan.machine.blocks.planning.verify_blocks",
    "envelope": "memplan.scenarios.envelope.planning.verify_envelope",
    "together": "memplan.scenarios.together.planning.verify_together",
}


@pytest.mark.parametrize("question", sorted(REFEREES))
def test_an_answer_is_checked_to_the_end(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests Ctrl-C while the referee checks an answer: it is returned, and was checked."""
    room, _, name = REFEREES[question].rpartition(".")
    verify, checked = getattr(import_module(room), name), []

    def stop_and_verify(*given: Any, **options: Any) -> Any:
        if not checked:
            signal.raise_signal(signal.SIGINT)
        checked.append(verify(*given, **options))
        return checked[-1]

    monkeypatch.setattr(f"{room}.{name}", stop_and_verify)
    assert QUESTIONS[question]() is not None
    assert checked
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_no_answer_is_an_ordinary_ctrl_c() -> None:
    """Tests a question that has no answer when it ends, and one that knows of none."""

    def end() -> None:
        with stoppable() as stop:
            stop.set()
            recompute(STEP, 1000)

    with pytest.raises(KeyboardInterrupt):
        end()
    with pytest.raises(NoRunsError), stoppable():
        recompute(STEP, 1000, states=1)


def test_the_second_one_ends_everything() -> None:
    """Tests that people who insist get out, and that searches work after that."""

    def insist() -> None:
        with stoppable() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.is_set
            assert is_stopped()
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        insist()
    assert str(mp.solve(PROBLEM).status) == "optimal"


def test_a_search_in_the_core_ends() -> None:
    """Tests a signal while the core searches, alone and as a part of a question."""

    def send(_: mp.Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(mp.Interrupted) as alone:
        mp.plan_model(PROBLEM, progress=send)
    assert alone.value.plan.has_offsets
    with stoppable() as stop:
        found = mp.plan_model(PROBLEM, progress=send)
        assert stop.is_set
    assert found.plan.has_offsets


def test_another_thread_is_not_stopped() -> None:
    """Tests that Ctrl-C ends the question of its thread only, which needs no signal."""
    found: list[Any] = []

    def ask() -> None:
        with ctrl_c(1, interrupt):
            found.append(plan_blocks(PROBLEM, 100))
        found.append(plan_blocks(PROBLEM, 100))

    with stoppable() as stop:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        assert not stop.is_set
        found.append(plan_blocks(PROBLEM, 100))
    assert [each.interrupted for each in found] == [True, False, False]


@pytest.mark.parametrize(
    ("option", "interrupted"),
    [
        *product(("--memory", "MORE"), (False, True)),
        ("--block-limit", False),
    ],
)
def test_no_answer_is_unknown(
    option: str,
    interrupted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that a search that found nothing ends with 3, and with 130 if Ctrl-C ended it."""
    monkeypatch.chdir(tmp_path)
    rows = [mp.Buffer(f"{at}", at % 5, at % 5 + 2 + at % 3, 7 + 5 * at % 17) for at in range(24)]
    problem = mp.Problem(rows)
    least = mp.solve(problem).peak or 0
    mp.save(problem.with_capacity(least), "one.json")
    mp.save(mp.Problem([mp.Buffer("x", 0, 1, 1)]), "two.json")
    words = {
        "--memory": ("--memory", f"a={least}", "--memory", "b=1"),
        "--block-limit": ("--block-limit", f"{least - 1}"),
        "MORE": ("two.json",),
    }[option]

    def find_nothing(problem: mp.Problem, *given: Any, **search: Any) -> Plan:
        if problem.capacity is None:
            return mp.solve(problem)
        plan = Plan.of(problem, None, status=mp.Status.UNKNOWN)
        if interrupted:
            raise mp.Interrupted(plan)
        return plan

    high = Plan.of(problem, [sum(each.size for each in rows[:at]) for at in range(24)])
    monkeypatch.setattr(solvers, "solve", find_nothing)
    monkeypatch.setattr("memplan.machine.memories.search.quick_plan", lambda *_, **__: high)
    monkeypatch.setattr("memplan.scenarios.together.planning._better", lambda plan, *_: plan)
    assert main(["plan", "one.json", *words]) == (130 if interrupted else 3)
    assert interrupted or "was found" in capsys.readouterr().err

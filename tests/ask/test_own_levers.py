"""Tests that a lever of the caller's own, one file, works with every scenario and machine."""

from __future__ import annotations

import importlib.metadata
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from docs_blocks import blocks

import memplan as mp
from memplan.base.errors import MemplanError
from memplan.levers import GROUP, Candidate, Lever, find_lever
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def tidy() -> Lever:
    """Return the lever of the page."""
    (code,) = (each.text for each in blocks(PAGE.read_text()) if "class Tidy" in each.text)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    found: Lever = names["TIDY"]
    return found


def net(n: int = 1) -> Loaded:
    """Return a program of which one operator is for nothing."""
    tensors = (
        Tensor("x", 8 * n),
        Tensor("dead", 9 * n),
        Tensor("y", 8 * n),
        Tensor("z", 2 * n, Kind.OUTPUT),
    )
    operators = (
        Operator("a", "CONV", (0,), (1,)),
        Operator("b", "CONV", (0,), (2,)),
        Operator("c", "CONV", (2,), (3,)),
    )
    return of_graph(Graph("net", tensors, operators, (0,), (3,)))


def test_it_combines_with_everything(tidy: Lever, tmp_path: Path) -> None:
    """Tests other levers, programs in turn, sizes, memories, and a file that is checked."""
    slow, fast = mp.Memory("slow"), mp.Memory("fast", 16, 0, 0)
    path = tmp_path / "answer.json"
    questions: list[tuple[Any, dict[str, Any], float]] = [
        (net(), {}, 16),
        (net(), {"machine": mp.Machine((fast, slow))}, 0),
        (net(), {"machine": mp.Machine(block=16)}, 1),
        ([net(), net(2)], {"names": ["a", "b"], "keep": ["outputs"]}, 34),
        (net, {"sizes": {"n": [1, 3]}}, 48),
    ]
    for programs, more, least in questions:
        found = mp.plan(programs, levers=["order", tidy], **more)
        found.verify()
        assert found.axes[0].found == least
        assert {step.lever for step in found.steps} >= {"tidy"}
        assert found.status is not mp.Status.OPTIMAL  # it says nothing of its bound
        mp.save_answer(found, path)
        mp.check_answer(programs, path, levers=[tidy])
        with pytest.raises(MemplanError, match='there is no lever "tidy"'):
            mp.check_answer(programs, path)


def test_packages_add_levers(tidy: Lever, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the entry point, a name that there is not, and packages that are broken."""
    name = f"{__name__}:LEVER"
    declared = [EntryPoint("tidy", name, GROUP)]
    monkeypatch.setitem(globals(), "LEVER", tidy)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: declared)
    assert mp.plan(net(), levers="tidy").peak == 16
    with pytest.raises(MemplanError, match=r"they are .*tidy"):
        mp.plan(net(), levers="unwritten")
    declared[:] = [EntryPoint("bad", f"{__name__}:Path", GROUP)]
    with pytest.raises(MemplanError, match="is no memplan lever"):
        mp.plan(net(), levers="order")
    declared[:] = [EntryPoint("bad", "no_such_module:X", GROUP)]
    with pytest.raises(MemplanError, match='"bad" of another package cannot be loaded'):
        mp.plan(net(), levers="order")


def test_a_lever_that_cannot_be_done_again_says_so(tidy: Lever) -> None:
    """Tests a lever with the least that it needs: it plans, but not at many sizes."""

    class Least(Lever):
        name = "least"

        def explain_refusal(self, program: Any, writer: Any) -> str:
            return ""

        def list_candidates(self, program: Any, writer: Any, aim: Any) -> Any:
            for each in tidy.list_candidates(program, writer, aim):
                step = mp.Step(self.name, 0)
                yield Candidate(each.variant, (step,))

    assert mp.plan(net(), levers=[Least()]).peak == 16
    with pytest.raises(MemplanError, match="least cannot be done to a program again"):
        mp.plan(net, sizes={"n": [1, 2]}, levers=[Least()])


def test_each_step_is_checked_with_the_program_that_it_got(tidy: Lever) -> None:
    """Tests an order that is found after a lever has changed the program."""
    pulled = (tidy, find_lever("order"))
    found = mp.plan(net(), levers=pulled)
    assert [step.lever for step in found.steps if step.taken] == ["tidy"]

    class Later(type(find_lever("order"))):  # type: ignore[misc]
        name = "later"

        def list_candidates(self, program: Any, writer: Any, aim: Any) -> Any:
            for each in super().list_candidates(program, writer, aim):
                step = replace(each.steps[-1], lever=self.name)
                yield replace(each, steps=(*each.steps[:-1], step), extra=-1.0)

    found = mp.plan(net(), levers=[tidy, Later()])
    assert [step.lever for step in found.steps if step.taken] == ["tidy", "later"]
    found.verify()
    assert "order" not in found.plan.stats  # it would be that of another program

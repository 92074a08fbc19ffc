"""Tests that what `mp.load` returns is taken as it is by all that takes a problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import memplan as mp
from memplan.base.errors import MemplanError
from memplan.base.notes import Code, Note
from memplan.programs.sources import Loaded
from memplan.referee import verify_proof
from memplan.view import page, plot, terminal
from memplan.view.panel import of_plan

NETWORK = Path(__file__).parents[2] / "examples" / "structures" / "resnet50.graph.json"


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    """Return a network."""
    return mp.load(NETWORK)


def test_planning_and_checking(loaded: Loaded, tmp_path: Path) -> None:
    """Tests that solvers, the referee and reports give what they give for the problem."""
    problem = loaded.problem
    plan = mp.solve(loaded)
    assert (plan.problem, plan.peak) == (problem, mp.solve(problem).peak)
    mp.verify(loaded, plan)
    assert mp.lower_bound(loaded) == mp.lower_bound(problem)
    assert mp.explain(loaded, plan.peak).fits
    found = mp.compare(loaded, problem)
    assert found.before.peak == found.after.peak == plan.peak
    assert mp.inspect(loaded).plan.peak == mp.inspect(problem).plan.peak == plan.peak
    assert mp.inspect(problem).loaded.source == "memory"
    chosen = mp.pack_most_valuable(loaded, dict.fromkeys(problem.ids, 1), plan.peak)
    assert len(chosen.chosen) == len(problem)
    mp.save(loaded, tmp_path / "p.json")
    assert mp.load(tmp_path / "p.json").problem == problem


def test_a_proof(tmp_path: Path) -> None:
    """Tests that a proof is checked against what was loaded."""
    small = tmp_path / "p.csv"
    small.write_text("id,lower,upper,size\na,0,2,4\nb,1,3,4\n")
    asked = mp.load(small)
    mp.solve(asked, proof=tmp_path / "proof")
    assert verify_proof(asked, tmp_path / "proof").lower_bound == 8


def test_pictures(loaded: Loaded, tmp_path: Path) -> None:
    """Tests that what draws takes it, and a page knows the operators without being given them."""
    plan = mp.solve(loaded)
    assert terminal.picture(loaded, plan) is not None
    assert of_plan("auto", loaded, plan).height == plan.peak
    pytest.importorskip("matplotlib")
    assert plot.draw(loaded, plan).axes
    assert plan.plot(loaded).axes
    assert loaded.plot().axes
    pytest.importorskip("bokeh")
    page.save(loaded, {"auto": plan}, tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    assert loaded.labels[0].made_by in text
    assert '<ul id="notes"' not in text
    noted = replace(loaded, notes=(Note(Code.NOT_PLANNED, "1 <script> of 2"),))
    assert "<li>1 &lt;script&gt; of 2</li>" in page.html(noted, {"auto": plan})


def test_in_a_notebook(loaded: Loaded) -> None:
    """Tests that it says its source and its notes, which are escaped, and is short as text."""
    noted = replace(loaded, notes=(Note(Code.NOT_PLANNED, "1 < 2 tensors"),))
    shown = noted._repr_html_()
    assert "1 &lt; 2 tensors" in shown
    assert ">graph</td>" in shown
    assert repr(noted) == f"<Loaded: graph, {noted.tensors} tensors, 174 buffers, 1 notes>"


@pytest.mark.parametrize("call", [mp.verify, mp.pack_most_valuable])
def test_anything_else_is_refused(call: object, loaded: Loaded) -> None:
    """Tests that a path, say, is refused in a sentence that says what to do."""
    with pytest.raises(MemplanError, match=r'"net" is no problem; memplan\.load reads one'):
        call("net", mp.solve(loaded))  # type: ignore[operator]

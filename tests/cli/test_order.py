"""Tests of `memplan order`, and of the best order in `plan`, `verify`, `inspect` and `view`."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import refused, told
from rich.console import Console

import memplan.levers.rewrite
from memplan.analysis import orders
from memplan.base.errors import GraphError
from memplan.cli import main
from memplan.levers.rewrite import Reordered, reorder
from memplan.levers.rewrite.moves import cut_of, explain_moves
from memplan.problem.plan import Status
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import load
from memplan.view.words.orders import describe_order

ROOT = Path(__file__).parents[2]
FAN = str(ROOT / "examples" / "structures" / "fan.graph.json")
BEST = str(ROOT / "examples" / "models" / "residual.graph.json")
FIVE = str(ROOT / "examples" / "five.csv")


def test_what_moves_and_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Tests the loads, the proof, the places, what is over earlier, and that no file is made."""
    lines = told(capsys, "order", FAN)
    for line in (
        "load, given order 102,400 bytes (100 KiB)",
        "load, best order 37,888 bytes (37 KiB), 63.0 % less",
        "bound, any order 37,888 bytes (37 KiB)",
        "status optimal: no order has a smaller load",
        "2 operators move",
        'pool_1 3 1 32,768 32 KiB "wide_1" is no longer needed then',
        'pool_2 4 3 32,768 32 KiB "wide_2" is no longer needed then',
    ):
        assert line in lines
    assert list(tmp_path.iterdir()) == []


def test_what_is_made_later() -> None:
    """Tests a result that is wanted late and made early: its maker moves behind the peak."""
    tensors = tuple(
        Tensor(name, size, Kind.INPUT if name == "x" else Kind.INTERMEDIATE)
        for name, size in (("x", 1), ("late", 50), ("big", 100), ("small", 1), ("y", 1))
    )
    operators = (
        Operator("early", "Conv", (0,), (1,)),
        Operator("wide", "Conv", (0,), (2,)),
        Operator("narrow", "MaxPool", (2,), (3,)),
        Operator("join", "Add", (1, 3), (4,)),
    )
    found = reorder(Graph("net", tensors, operators, (0,), (4,)))
    moves = explain_moves(found)
    assert moves is not None
    assert (moves.operator, moves.old - moves.new) == ("wide", 50)
    (move,) = moves.moves
    assert (move.operator, move.old, move.new) == ("early", 0, 2)
    assert (move.earlier, move.storages, move.bytes) == (False, ("late",), 50)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests every key, and that the order is one of all operators."""
    (line,) = told(capsys, "order", FAN, "--json")
    (found,) = json.loads(line)["steps"]
    assert found.pop("states") >= 0
    assert found.pop("runs") == [0, 3, 1, 4, 2, 5, 6, 7]
    moves = found.pop("moves")
    assert (moves["operator"], moves["old"], moves["new"]) == ("conv_3", 102_400, 37_888)
    assert [(each["operator"], each["old"], each["new"]) for each in moves["moves"]] == [
        ("pool_1", 3, 1),
        ("pool_2", 4, 3),
    ]
    found.pop("cut")
    assert set(found) == {
        "lever", "program", "arena", "extra", "words", "taken", "given_load", "load", "bound",
        "status", "interrupted", "moved",
    }  # fmt: skip
    assert (found["given_load"], found["load"], found["bound"]) == (102_400, 37_888, 37_888)
    assert (found["status"], found["moved"]) == ("optimal", 2)


def test_the_cut_is_the_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that what is live at the cut has as many bytes as every order needs."""
    found = reorder(load(BEST))
    cut = cut_of(found)
    assert cut is not None
    assert sum(size for _, size in cut.storages) + cut.workspace == found.bound
    text = " ".join(told(capsys, "order", BEST))
    needs = "Whatever the order, at least 73,728 bytes (72 KiB) are needed while"
    assert f'{needs} "{cut.operator}" runs' in text
    assert "conv2d_1 32,768 32 KiB" in text


def test_ctrl_c_ends_with_the_best_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that an interrupted search is shown, and not called optimal."""

    def stop(*given: Any, **limits: Any) -> Reordered:
        found = reorder(*given, **limits)
        return replace(
            found, interrupted=True, bound=18_944, certificate=None, status=Status.FEASIBLE
        )

    monkeypatch.setattr(memplan.levers.rewrite, "reorder", stop)
    monkeypatch.setattr(memplan.levers.rewrite.plannable, "reorder", stop)
    assert main(["order", FAN]) == 0
    out, err = capsys.readouterr()
    assert "interrupted: feasible: a better order is not ruled out" in out
    assert "gap                100.00%" in out
    assert err == "memplan: interrupted: feasible, not proved\n"
    assert main(["plan", FAN, "--levers", "order"]) == 0
    out, err = capsys.readouterr()
    assert "optimal: no plan of this order has a smaller peak" in out
    assert err == "memplan: interrupted: feasible, not proved\n"


def test_a_plan_of_the_best_order(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests both bounds, and that the file says its order, so that it can be verified and drawn."""
    lines = told(capsys, "plan", FAN, "--levers", "order", "-o", "plan.json", "--proof", "proof")
    for line in (
        "order 2 operators moved, the load is 64,512 bytes (63 KiB) less",
        "bound, this order 37,888 bytes (37 KiB)",
        "bound, any order 37,888 bytes (37 KiB)",
        "status optimal: no order and no plan has a smaller peak",
    ):
        assert line in lines
    checked = told(capsys, "verify", FAN, "plan.json", "--proof", "proof")
    assert checked[0] == "OK: 9 buffers, peak 37,888 bytes (37 KiB)"
    assert checked[1].startswith("proved: no plan of this order has a peak of at most 37,887 bytes")
    assert told(capsys, "view", FAN, "plan.json")[0].endswith("37 KiB optimal")


def test_constraints_of_the_command_line_hold_in_the_new_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests a reserved range and a pin, which `verify` needs too."""
    asked = ("--reserve", "0:64", "--pin", "joined=64", "--capacity", "1MiB")
    told(capsys, "plan", FAN, "--levers", "order", "-o", "plan.json", *asked)
    placed = {
        each["id"]: each["offset"] for each in json.loads(Path("plan.json").read_text())["buffers"]
    }
    assert placed["joined"] == 64
    told(capsys, "verify", FAN, "plan.json", *asked)


@pytest.mark.parametrize(
    ("order", "why", "code"),
    [
        ([3, 0, 1, 4, 2, 5, 6, 7], "pool_1", 1),
        ([0, 0, 1, 4, 2, 5, 6, 7], "not one of the 8 operators", 2),
        ([0, 3, 1], "not one of the 8 operators", 2),
        ("best", "not one of the 8 operators", 2),
    ],
)
def test_a_wrong_order_in_a_plan_is_found(
    capsys: pytest.CaptureFixture[str], order: object, why: str, code: int
) -> None:
    """Tests that `verify` refuses a plan whose order is not legal, or none, in one sentence."""
    told(capsys, "plan", FAN, "--levers", "order", "-o", "plan.json")
    plan = json.loads(Path("plan.json").read_text())
    plan["stats"]["order"] = order
    Path("plan.json").write_text(json.dumps(plan))
    assert why in refused(capsys, "verify", FAN, "plan.json", code=code)


def test_summary_of_a_plan_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that JSON tells the two bounds apart."""
    (line,) = told(capsys, "plan", FAN, "--levers", "order", "--json")
    found = json.loads(line)
    (axis,), (step,) = found["axes"], found["steps"]
    assert (axis["found"], axis["bound"], step["bound"]) == (37_888, 37_888, 37_888)
    assert (step["given_load"], step["moved"]) == (102_400, 2)


def test_inspect_says_what_another_order_is_worth(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a file whose order can be improved, one whose order is best, and one without any."""
    lines = told(capsys, "inspect", FAN, "--no-runtime")
    assert "Another order needs 64,512 bytes (63 KiB) less: see `--levers order`." in lines
    lines = told(capsys, "inspect", BEST, "--no-runtime")
    assert "The order of the file is a best one: proved." in lines
    (line,) = told(capsys, "inspect", BEST, "--no-runtime", "--json")
    assert json.loads(line)["order"]["status"] == "optimal"
    (line,) = told(capsys, "inspect", FIVE, "--json")
    assert json.loads(line)["order"] is None


def test_inspect_of_what_may_not_be_reordered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a refusal is a sentence of the report."""
    why = 'operator "a" may have effects'

    def refuse(*given: Any, **limits: Any) -> Reordered:
        raise GraphError(why)

    monkeypatch.setattr(orders, "reorder", refuse)
    assert f"Other orders were not tried: {why}" in told(capsys, "inspect", FAN)
    (line,) = told(capsys, "inspect", FAN, "--json")
    assert json.loads(line)["order"] == {"refused": why}


def test_two_loads_have_one_scale(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests both orders, one above the other, each under its load."""
    lines = told(capsys, "view", FAN, "--order")
    at = lines.index("given order: 102,400 bytes (100 KiB)")
    below = lines.index("best order: 37,888 bytes (37 KiB)")
    assert lines[at + 1].startswith("100 KiB │")
    assert lines[below + 1] == "100 KiB │"


@pytest.mark.slow
def test_a_picture_of_two_loads(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the picture has both orders."""
    pytest.importorskip("matplotlib")
    told(capsys, "view", FAN, "--order", "-o", "loads.svg")
    text = Path("loads.svg").read_text()
    assert "time, given order" in text
    assert "time, best order" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("path", [FAN, BEST])
def test_the_report_fits(width: int, path: str) -> None:
    """Tests that no line is wider than the terminal."""
    file = io.StringIO()
    Console(file=file, width=width, highlight=False).print(describe_order(reorder(load(path))))
    assert max(map(len, file.getvalue().splitlines())) <= width

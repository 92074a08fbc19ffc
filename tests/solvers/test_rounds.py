"""Tests of `memplan.solve(trace=...)` and `memplan plan --trace`: a line for each round."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from command_line import assert_refused, memplan
from every_solver import EVERY

import memplan as mp
from memplan_lab.bench import generators

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "five.csv"
FIELDS = list(mp.Round._fields)


def _rounds(problem: mp.Problem, solver: str, **options: object) -> tuple[mp.Plan, list[mp.Round]]:
    rounds: list[mp.Round] = []
    plan = mp.solve(problem, solver, nodes=20_000, trace=rounds.append, **options)
    return plan, rounds


@pytest.fixture
def flat() -> mp.Problem:
    """Return a problem that no engine settles at once."""
    return generators.flat_load(40, 2).with_capacity(None)


@pytest.mark.parametrize("solver", EVERY)
def test_rounds_of_every_solver(solver: str, flat: mp.Problem) -> None:
    """Tests that every solver accounts for all of its nodes, and names what ended each round."""
    plan, rounds = _rounds(flat, solver, threads=1)
    assert rounds
    assert sum(each.nodes for each in rounds) == plan.stats["nodes"]
    ends = {"plan", "refuted", "nodes", "steps", "time", "interrupt", "end"}
    assert {each.ended_by for each in rounds} <= ends
    assert all(each.engine and each.seconds >= 0 for each in rounds)
    whole = [each for each in rounds if not each.part]
    assert whole[-1].peak == plan.peak
    assert [each.lower_bound for each in whole] == sorted(each.lower_bound for each in whole)


@pytest.mark.parametrize("solver", ["auto", "exact", "prover", "large"])
def test_a_trace_repeats_and_changes_no_plan(solver: str, flat: mp.Problem) -> None:
    """Tests that with a budget of nodes only the seconds differ, whatever the threads."""
    one, first = _rounds(flat, solver, threads=1)
    two, second = _rounds(flat, solver, threads=2)
    alone = mp.solve(flat, solver, nodes=20_000)
    assert [each._replace(seconds=0) for each in first] == [
        each._replace(seconds=0) for each in second
    ]
    assert one.offsets is not None
    assert two.offsets is not None
    assert alone.offsets is not None
    assert one.offsets.tolist() == two.offsets.tolist() == alone.offsets.tolist()
    assert one.stats["nodes"] == alone.stats["nodes"]


def test_the_engines_of_auto_are_all_there() -> None:
    """Tests that search, prover and chain have rounds where `auto` asks them in turn."""
    _, rounds = _rounds(generators.flat_load(100, 3).with_capacity(None), "auto")
    assert {"greedy", "large", "exact", "prover"} <= {each.engine for each in rounds}


class EnoughError(Exception):
    """What a caller may raise."""


@pytest.mark.parametrize("solver", ["auto", "bump"])
def test_what_a_tracer_raises_comes_out(solver: str, flat: mp.Problem) -> None:
    """Tests that the very exception ends the search."""
    error = EnoughError("enough")

    def trace(round: mp.Round) -> None:
        raise error

    with pytest.raises(EnoughError) as caught:
        mp.solve(flat, solver, trace=trace)
    assert caught.value is error


def test_a_trace_must_be_callable(flat: mp.Problem) -> None:
    """Tests that a file name is refused in a sentence."""
    with pytest.raises(mp.MemplanError, match=r'trace is "rounds\.txt"; it must be'):
        mp.solve(flat, trace="rounds.txt")  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [None, 2.0])
def test_a_plan_by_size_is_in_hand_where_time_is_scarce(timeout: float | None) -> None:
    """Tests a search that is stopped after its first pass: it is no worse than first fit by size.

    Without a limit on time, there is no such pass.
    """
    row = np.arange(120_000)
    problem = mp.Problem.from_arrays(row, row + 1 + row * 7919 % 50, 64 * (1 + row * 104729 % 997))
    by_size = mp.solve(problem, "greedy", orders=["size"], best_fit=False, squeaky_wheel=False)
    engines = []

    def trace(round: mp.Round) -> None:
        engines.append(round.engine)
        if round.engine == "large":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(mp.Interrupted) as stopped:
        mp.solve(problem, timeout=timeout, trace=trace)
    assert engines.count("large") == 1
    assert (stopped.value.plan.peak <= by_size.peak) == (timeout is not None)


# memplan plan --trace ----------------------------------------------------------------------------


def test_plan_writes_a_line_of_json_for_each_round(tmp_path: Path) -> None:
    """Tests the file, and that what was there before is gone."""
    file = tmp_path / "rounds.jsonl"
    file.write_text("old\n")
    run = memplan("plan", EXAMPLE, "-q", "--trace", "rounds.jsonl", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows
    assert all(list(row) == FIELDS for row in rows)
    assert rows[-1] | {"seconds": 0} == {
        "seconds": 0,
        "engine": "greedy",
        "stage": "squeaky wheel",
        "part": "",
        "target": 12,
        "lower_bound": 12,
        "peak": 12,
        "nodes": rows[-1]["nodes"],
        "conflicts": 0,
        "ended_by": "plan",
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--trace five.csv", "is the input"),
        ("--trace .", "is a folder"),
        ("--trace five.csv/rounds", "is a file, not a folder"),
        ("--trace it -o it", "--output names the same file"),
        ("--trace it --proof it", "--proof names the same file"),
    ],
)
def test_a_trace_that_cannot_be_written_is_refused(
    arguments: str, sentence: str, tmp_path: Path
) -> None:
    """Tests that it is one sentence, before the search, and that nothing is touched."""
    (tmp_path / "five.csv").write_bytes(EXAMPLE.read_bytes())
    run = memplan("plan", "five.csv", *arguments.split(), cwd=tmp_path)
    assert_refused(run, sentence)
    assert [each.name for each in tmp_path.iterdir()] == ["five.csv"]


def test_bad_input_leaves_the_trace_alone(tmp_path: Path) -> None:
    """Tests that the file is opened after the problem has been read."""
    (tmp_path / "rounds").write_text("old\n")
    assert_refused(memplan("plan", "nix.csv", "--trace", "rounds", cwd=tmp_path), "cannot be read")
    assert (tmp_path / "rounds").read_text() == "old\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_is_one_sentence() -> None:
    """Tests that a trace that breaks off ends the run."""
    run = memplan("plan", EXAMPLE, "--trace", "/dev/full")
    assert_refused(run, "/dev/full: the file cannot be written: no space left on device")

"""Tests of the laboratory of re-runs: programs, peers against exact searches, the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from again_oracle import States, program, random_program

from memplan.levers.rewrite.again.native import core_recompute_problem
from memplan.problem import RecomputeProblem
from memplan.referee import verify_recompute
from memplan_lab.bench.again import checkmate, chen, moccasin, suite
from memplan_lab.bench.again.suite import put_in_order
from memplan_lab.bench.experiments import recompute
from memplan_lab.bench.generators.programs import gpt_step
from memplan_lab.cli import main

pytestmark = pytest.mark.slow

ENOUGH = 60.0  # CPU seconds for a program of five operators


def find_least_in_stages(problem: RecomputeProblem, capacity: int) -> int | None:
    """Return the least cost of re-runs in the stages of Checkmate; `None` if nothing fits.

    Before the first run of an operator, each one before it may run once more, in their order.
    """
    states = States(problem)
    costs = {states.start: 0}
    for stage in range(states.count):
        for op in range(stage + 1):
            after: dict[int, int] = {} if op == stage else dict(costs)
            for there, cost in costs.items():
                for kept in iterate_parts(there):
                    for run, _, then, more in states.runs((1 << stage) - 1, kept, capacity):
                        if run == op:
                            after[then] = min(after.get(then, cost + more), cost + more)
            costs = after
    ends = [cost for there, cost in costs.items() if there & states.end == states.end]
    most = max(states.bytes(states.start), states.bytes(states.end))
    return min(ends, default=None) if most <= capacity else None


def iterate_parts(there: int) -> Iterator[int]:
    """Yield all that is left if any storages are dropped."""
    part = there
    while part:
        yield part
        part = (part - 1) & there
    yield 0


def iterate_questions(count: int) -> Iterator[tuple[RecomputeProblem, int]]:
    """Yield random programs with capacities into which they fit only with re-runs, or not at all.

    Nothing fits into a few of them.
    """
    random = Random(7)
    while count:
        problem = random_program(random, 6)
        load = core_recompute_problem(problem).load_of(list(range(len(problem))))[0]
        for capacity in random.choices(range(load * 2 // 3, load), k=4) if load else ():
            least = States(problem).least_extra(capacity)
            if least or (least is None and random.random() < 0.02):
                yield problem, capacity
                count -= 1
                break


# The peers ---------------------------------------------------------------------------------------


def test_the_integer_program_finds_the_least_cost_in_stages() -> None:
    """Tests Checkmate's program against all sequences in stages, and against all sequences."""
    pytest.importorskip("highspy")
    found_some = 0
    for problem, capacity in iterate_questions(10):
        least = find_least_in_stages(problem, capacity)
        found = checkmate.solve(problem, capacity, ENOUGH)
        assert found is not None
        assert found.is_refuted == (least is None)
        assert found.is_optimal == (found.runs is not None) == (least is not None)
        if found.runs is not None:
            extra = verify_recompute(problem, found.runs, capacity).extra
            exact = States(problem).least_extra(capacity)
            assert exact is not None
            assert exact <= extra == least
            found_some += extra > 0
    assert found_some > 2


def test_cp_sat_finds_the_least_cost_in_stages() -> None:
    """Tests Moccasin's model with as many runs as there are stages, and with two of each."""
    pytest.importorskip("ortools")
    for problem, capacity in iterate_questions(20):
        least = find_least_in_stages(problem, capacity)
        for copies in (len(problem), moccasin.COPIES):
            found = moccasin.solve(problem, capacity, ENOUGH, copies=copies)
            if found.runs is None:
                assert found.is_refuted
                assert copies < len(problem) or least is None
                continue
            assert found.is_optimal
            extra = verify_recompute(problem, found.runs, capacity).extra
            assert least is not None
            assert extra >= least
            assert copies < len(problem) or extra == least


def test_keeping_every_kth_is_legal() -> None:
    """Tests every length of segments on random programs: sequences, and that none is too cheap."""
    for problem, capacity in iterate_questions(25):
        for runs in chen.iterate_sequences(problem):
            verify_recompute(problem, runs, 2**60)
        runs = chen.keep_every_kth(problem, capacity)
        exact = States(problem).least_extra(capacity)
        if runs is not None:
            assert exact is not None
            assert verify_recompute(problem, runs, capacity).extra >= exact


def test_keeping_every_kth_runs_segments_again() -> None:
    """Tests a chain of nine results that are read in the opposite order, in segments of three."""
    forward = [(10, [op, op + 1, 17 - op], False, False, op) for op in range(9)]
    backward = [(1, [op, op + 1], False, False, op) for op in range(9, 17)]
    storages = [(size, sorted(set(users)), *more) for size, users, *more in forward + backward]
    chain = program([0] * 18, [1] * 18, [True] * 18, storages)
    core = core_recompute_problem(chain)
    assert core.load_of(list(range(18)))[0] == 91
    threes = list(chen.iterate_sequences(chain))[2]
    # What leaves a segment is kept, and all of the last one: 2, 5, 6, 7 and 8.
    assert [op for op in range(18) if threes.count(op) == 2] == [0, 1, 3, 4]
    assert core.load_of(threes) == (51, 4)
    for capacity, extra in ((51, 4), (42, 6)):  # 42: segments of four
        runs = chen.keep_every_kth(chain, capacity)
        assert runs is not None
        assert verify_recompute(chain, runs, capacity).extra == extra
    assert chen.keep_every_kth(chain, 41) is None


@pytest.mark.parametrize("budget", [1.0, 0.2])
def test_the_partitioner_changes_no_gradient(budget: float) -> None:
    """Tests a step that PyTorch cuts with a budget against eager PyTorch."""
    torch = pytest.importorskip("torch")
    from memplan_lab.bench.again.partitioner import partition, run_step

    torch.manual_seed(0)
    layers = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()) for _ in range(4)]
    model, args = torch.nn.Sequential(*layers), (torch.randn(3, 8),)

    def loss(result: Any) -> Any:
        return result.square().mean()

    expected = run_step(model, model, args, loss)
    found = run_step(partition(model, budget), model, args, loss)
    assert len(expected) == 9
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


# The programs ------------------------------------------------------------------------------------


def test_programs_are_put_in_order() -> None:
    """Tests that a program in another order has the loads that its sequences had before."""
    random = Random(3)
    for problem, _ in iterate_questions(20):
        waits = problem.program.arcs.tolist()
        order: list[int] = []
        while len(order) < len(problem):
            left = set(range(len(problem))) - set(order)
            ready = sorted(left - {last for first, last in waits if first in left})
            order.append(random.choice(ready))
        moved, runs = put_in_order(problem, order), list(range(len(problem)))
        assert put_in_order(problem, runs).fingerprint == problem.fingerprint
        core, before = core_recompute_problem(moved), core_recompute_problem(problem)
        assert core.load_of(runs) == before.load_of(order)


def test_a_step_of_a_gpt_grows_by_its_layers() -> None:
    """Tests the numbers of operators and gradients, and that gradients alone are wanted."""
    counts = []
    for layers in (1, 2, 3):
        problem, cost = gpt_step(layers)
        assert len(cost) == len(problem)
        assert min(cost) > 0
        assert problem.wanted.sum() == 4 * layers
        counts.append(len(problem))
    assert counts[2] - counts[1] == counts[1] - counts[0] > 20


def write_files(folder: Path) -> None:
    """Write a network as Checkmate's files have it, and layers as Moccasin's."""
    count = 6  # of the forward pass; the backward pass reads it in the opposite order
    nodes = [{"id": at, "cost_ram": 10, "cost_cpu": 3} for at in range(count)]
    nodes += [{"id": at, "cost_ram": 1, "cost_cpu": 5} for at in range(count, 2 * count)]
    links = [{"source": at, "target": at + 1} for at in range(2 * count - 1)]
    links += [{"source": at, "target": 2 * count - 1 - at} for at in range(count - 1)]
    net = {"graph": {"name": "net"}, "nodes": nodes, "links": links}
    (folder / "Net (MLSys)_1_(2, 2, 3)_train_nx.json").write_text(json.dumps(net))
    plain = {"graph": {"name": "net"}, "nodes": nodes[:count], "links": links[: count - 1]}
    (folder / "Net (MLSys)_1_(2, 2, 3)_test_nx.json").write_text(json.dumps(plain))
    layers = {
        "graph": {"order": [0, 2, 1]},
        "nodes": [{"name": at, "out_cost": 10, "duration": 0} for at in range(3)],
        "links": [{"0": 0, "1": 2}, {"0": 2, "1": 1}],
    }
    (folder / "random_layered_n3_w0.3.json").write_text(json.dumps(layers))


def test_files_become_programs(tmp_path: Path) -> None:
    """Tests names and costs: those of the file, or 1 for each operator."""
    write_files(tmp_path)
    found = {case.name: case.problem for case in suite.cases(["net-*", "moccasin-*"], tmp_path)}
    assert list(found) == ["net-inference", "net-training", "moccasin-layered-3"]
    assert found["net-training"].cost.tolist() == [3] * 6 + [5] * 6
    assert found["moccasin-layered-3"].cost.tolist() == [1, 1, 1]
    assert all(problem.again.all() for problem in found.values())


# The command -------------------------------------------------------------------------------------


def test_the_command_compares_with_peers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the lines of JSON: bounds, what is found, and that no peer is below the bound."""
    pytest.importorskip("ortools")
    pytest.importorskip("highspy")
    write_files(tmp_path)
    asked = ["--case", "net-training", "--data", str(tmp_path), "--nodes", "2000", "--json"]
    peers = [word for name in recompute.PEERS for word in ("--peer", name)]
    own = ["--set", "share=60%", "--set", "peer-seconds=60"]
    assert main(["bench", "recompute", *asked, *peers, *own]) == 0
    (row,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (row["case"], row["operators"], row["status"]) == ("net-training", 12, "optimal")
    assert row["capacity"] == int(0.6 * row["given"]) >= row["floor"]
    assert 0 < row["bound"] == row["extra"]
    assert set(row["peers"]) == set(recompute.PEERS)
    for name, answer in row["peers"].items():
        assert answer["extra"] >= row["bound"]
        assert answer["is_proved"] == (name != "every-kth")


def test_the_command_prints_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests both tables in Markdown, what is below the floor, and sentences on wrong names."""
    write_files(tmp_path)
    asked = ["--case", "net-*", "--data", str(tmp_path), "--nodes", "500", "--peer", "every-kth"]
    assert main(["bench", "recompute", *asked, "--set", "share=70%,10%", "--markdown"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    told = {(row[0], row[2]): row[6] for row in rows if row[0].startswith("net-")}
    assert told["net-inference", "70%"] == "nothing is gained"
    assert told["net-training", "10%"].startswith("floor ")
    assert told["net-training", "70%"] == "yes"
    assert [row[:3] for row in rows if row[0] in ("memplan", "every-kth")] == [
        ["memplan", "1", "1"],
        ["every-kth", "1", "1"],
    ]
    for wrong, sentence in (
        (["--case", "nothing-*"], "no case"),
        (["--peer", "dtr"], "no peer"),
        (["--data", "no/such/folder"], "no JSON files"),
    ):
        assert main(["bench", "recompute", *wrong]) == 2
        assert sentence in capsys.readouterr().err

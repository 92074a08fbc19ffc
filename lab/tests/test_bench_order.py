"""Tests of the laboratory of orders: its graphs, the orders of others, the oracle, the command."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memplan.base.errors import FormatError, MemplanError
from memplan.levers.rewrite.order import core_problem
from memplan.problem import OrderProblem
from memplan_lab.bench import orders
from memplan_lab.bench.experiments import order
from memplan_lab.bench.generators import programs
from memplan_lab.bench.generators.programs import layered, of_arcs, randwire
from memplan_lab.bench.orders import oracle, peers
from memplan_lab.bench.orders.program import program_of
from memplan_lab.cli import main

pytestmark = pytest.mark.slow


def a_program(seed: int, operators: int = 8) -> OrderProblem:
    """Return a random graph in which operators make several storages, and some are given."""
    rng = np.random.Generator(np.random.PCG64([seed, operators]))
    storages = operators + 4
    users = []
    arcs = set()
    given = np.zeros(storages, dtype=np.bool_)
    for storage in range(storages):
        given[storage] = rng.integers(5) == 0
        first = int(rng.integers(operators))
        later = [at for at in range(first + 1, operators) if rng.integers(3) == 0]
        users.append([first, *later])
        if not given[storage]:
            arcs.update((first, reader) for reader in later)
    return OrderProblem(
        rng.integers(3, size=operators),
        np.array(sorted(arcs), dtype=np.int32).reshape(-1, 2),
        rng.integers(1, 9, size=storages),
        given,
        rng.integers(4, size=storages) == 0,
        np.cumsum([0, *map(len, users)]),
        np.array([user for own in users for user in own], dtype=np.int32),
        np.zeros((0, 3), dtype=np.int32),
    )


def best_of_all(problem: OrderProblem) -> int:
    """Return the least peak of all legal orders, one after the other."""
    core = core_problem(problem)
    before = program_of(problem).before

    def extend(order: list[int]) -> int:
        ready = [
            at
            for at in range(len(problem))
            if at not in order and all(other in order for other in before[at])
        ]
        return min((extend([*order, at]) for at in ready), default=0) or core.peak_of(order)

    return extend([])


# The suite ---------------------------------------------------------------------------------------


def test_the_suite_has_real_networks_and_is_the_same_everywhere() -> None:
    """Tests numbers of graphs and networks, and that no graph has changed."""
    cases = list(orders.cases())
    assert len({case.name for case in cases}) == len(cases)
    assert len({case.problem.fingerprint for case in cases}) == len(cases)
    real = [case for case in cases if case.family in ("inference", "training", "files")]
    assert len(real) >= 300
    networks = {case.name.rpartition("-")[0] for case in real if case.family != "files"}
    assert len(networks) >= 40
    assert max(len(case.problem) for case in real) >= 20_000
    digest = hashlib.sha256(" ".join(case.problem.fingerprint for case in cases).encode())
    assert digest.hexdigest()[:16] == "f20710895a237bf5"


def test_a_file_of_graphs_keeps_all_columns(tmp_path: Path) -> None:
    """Tests a round trip, and that a damaged file is refused."""
    cases = [orders.Case(f"case {seed}", "random", a_program(seed)) for seed in range(5)]
    file = tmp_path / "orders.parquet"
    orders.write(cases, file, {"licence": "none"})
    for case, read in zip(cases, orders.read(file), strict=True):
        assert (case.name, case.family) == (read.name, read.family)
        assert case.problem.fingerprint == read.problem.fingerprint
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(FormatError, match="is damaged"):
        orders.read(file)
    with pytest.raises(FormatError, match="cannot be read"):
        orders.read(tmp_path / "none.parquet")


def test_randwire_has_stages_of_small_worlds() -> None:
    """Tests that a graph has twice as many links as nodes, one beginning and one end."""
    problem = randwire(16, 3)
    assert problem.fingerprint == randwire(16, 3).fingerprint != randwire(16, 4).fingerprint
    links = programs._small_world(np.random.Generator(np.random.PCG64(1)), 20)
    assert len(set(links)) == 40
    assert all(first < second for first, second in links)
    program = program_of(problem)
    assert program.before.count([]) == program.behind.count([]) == 1


@pytest.mark.parametrize("operators", [50, 250])
def test_layered_graphs_begin_and_end_in_one_operator(operators: int) -> None:
    """Tests the number of operators, that all are between the first and the last, and arcs."""
    problem = layered(operators, 1)
    program = program_of(problem)
    assert len(problem) == operators
    assert program.before.count([]) == program.behind.count([]) == 1
    assert 2 * operators < len(layered(operators, 1, near=50).arcs) > len(problem.arcs)


def test_files_of_moccasin_are_read(tmp_path: Path) -> None:
    """Tests both kinds of files: layers in the order of the file, and Checkmate's by number."""
    layers = {
        "graph": {"order": [0, 2, 1]},
        "nodes": [
            {"name": 0, "out_cost": 10},
            {"name": 1, "out_cost": 30},
            {"name": 2, "out_cost": 20},
        ],
        "links": [{"0": 0, "1": 2}, {"0": 2, "1": 1}],
    }
    checkmate = {
        "graph": {"name": "net"},
        "nodes": [{"id": 0, "cost_ram": 5}, {"id": 1, "cost_ram": 6}],
        "links": [{"source": 0, "target": 1}],
    }
    (tmp_path / "a.json").write_text(json.dumps(layers))
    (tmp_path / "b.json").write_text(json.dumps(checkmate))
    first, second = list(orders.cases(tmp_path))[-2:]
    assert (first.name, second.name) == ("moccasin-a", "moccasin-b")
    assert first.problem.fingerprint == of_arcs([10, 20, 30], [(0, 1), (1, 2)]).fingerprint
    assert second.problem.fingerprint == of_arcs([5, 6], [(0, 1)]).fingerprint
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(FormatError, match="no graph of Moccasin"):
        list(orders.cases(tmp_path))
    with pytest.raises(FormatError, match="no JSON files"):
        list(orders.cases(tmp_path / "none"))


# The orders of others ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", orders.PEERS)
def test_orders_of_others_are_legal_and_no_better_than_the_best(name: str) -> None:
    """Tests against all orders of random graphs; the recursion of tflite-tools finds the best."""
    if name in ("lpmf", "bfs", "dfs"):
        pytest.importorskip("torch")
    for seed in range(25):
        problem = a_program(seed, 6)
        order = orders.PEERS[name](program_of(problem))
        assert order is not None
        place = {operator: at for at, operator in enumerate(order)}
        assert sorted(order) == list(range(len(problem)))
        assert all(place[first] < place[second] for first, second in problem.arcs.tolist())
        peak, best = core_problem(problem).peak_of(order), best_of_all(problem)
        assert peak == best if name == "tflite-tools" else peak >= best


def test_pytorch_sees_the_peaks_that_we_see() -> None:
    """Tests PyTorch's own estimate of the peak of its orders: it was told the same graph."""
    memory = pytest.importorskip("torch._inductor.memory")
    for seed in range(20):
        problem = a_program(seed)
        problem = OrderProblem(
            *(0 * problem.workspace, problem.arcs, problem.size, problem.given, problem.wanted),
            *(problem.user_begin, problem.user, problem.in_place),
        )
        program = program_of(problem)
        order = peers.pytorch(program, "lpmf")
        nodes, inputs, _, wanted = peers._as_scheduled(program)
        peak, _ = memory.estimate_peak_memory([nodes[at] for at in order], inputs, wanted)
        assert peak == core_problem(problem).peak_of(order)


def test_xla_defers_what_makes_more_than_it_frees() -> None:
    """Tests the graph in XLA's source, which says in which order its list scheduler runs it."""
    a, b, c, d, e, f, g = range(7)
    arcs = [(a, b), (a, d), (a, e), (b, c), (c, g), (d, f), (e, f), (f, g)]
    order = peers.xla_list(program_of(of_arcs([1, 2, 1, 1, 1, 2, 0], arcs)))
    assert order[0] == a
    assert set(order[1:3]) == {d, e}  # XLA says nothing about ties
    assert order[3:] == [f, b, c, g]


def test_onnxruntime_runs_in_the_order_that_we_say(tmp_path: Path) -> None:
    """Tests the profile of the runtime itself, on random graphs of sums."""
    onnx = pytest.importorskip("onnx")
    ort: Any = pytest.importorskip("onnxruntime")
    for seed in range(6):
        rng = np.random.Generator(np.random.PCG64(seed))
        reads = [
            sorted({int(rng.integers(max(at - 5, 0), at)) for _ in range(int(rng.integers(1, 4)))})
            for at in range(1, 16)
        ]
        nodes = [onnx.helper.make_node("Relu", ["x"], ["t0"], name="0")]
        for at, own in enumerate(reads, 1):
            names = [f"t{other}" for other in own]
            nodes.append(onnx.helper.make_node("Sum", names, [f"t{at}"], name=str(at)))
        read = {other for own in reads for other in own}
        info = onnx.helper.make_tensor_value_info
        ends = [f"t{at}" for at in range(16) if at not in read]
        graph = onnx.helper.make_graph(
            nodes, "g", [info("x", 1, [4])], [info(name, 1, [4]) for name in ends]
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
        model.ir_version = 8
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / f"profile{seed}")
        session = ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        session.run(None, {"x": np.ones(4, dtype=np.float32)})
        events = json.loads(Path(session.end_profiling()).read_text())
        ran = [
            int(event["name"].removesuffix("_kernel_time"))
            for event in sorted(events, key=lambda event: event["ts"])
            if event["name"].endswith("_kernel_time")
        ]
        arcs = [(other, at) for at, own in enumerate(reads, 1) for other in own]
        assert ran == peers.onnxruntime(program_of(of_arcs([1] * 16, arcs)))


# The oracle --------------------------------------------------------------------------------------


def test_cp_sat_finds_the_least_peak() -> None:
    """Tests CP-SAT against all orders of small graphs, and what it refuses."""
    pytest.importorskip("ortools")
    for seed in range(15):
        problem = a_program(seed, 6)
        best = best_of_all(problem)
        assert oracle.least_peak(program_of(problem), 20.0) == (best, best)
    with pytest.raises(MemplanError, match="at most 60 operators, and not 100"):
        oracle.least_peak(program_of(layered(100, 0)), 1.0)


def test_ctrl_c_works_after_cp_sat() -> None:
    """Tests that a solve of CP-SAT leaves Ctrl-C as it was, in a process of its own."""
    pytest.importorskip("ortools")
    code = (
        "import signal\n"
        "from memplan_lab.bench.generators.programs import layered\n"
        "from memplan_lab.bench.orders import oracle\n"
        "from memplan_lab.bench.orders.program import program_of\n"
        "oracle.least_peak(program_of(layered(12, 0)), 20.0)\n"
        "try:\n    signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt:\n    print('answered')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "answered\n"), done.stderr


# The command -------------------------------------------------------------------------------------


def test_the_command_says_what_it_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the lines of JSON: peaks, peers, and each rule that was off."""
    asked = ["--case", "layered-50-*", "--limit", "2", "--nodes", "2000", "--peer", "onnxruntime"]
    assert main(["bench", "order", *asked, "--json", "--set", "without=cuts"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["case"], row["without"]) for row in rows] == [
        (f"layered-50-{seed}", rule) for seed in (0, 1) for rule in ("", "cuts")
    ]
    for row in rows:
        assert row["bound"] <= row["peak"] <= row["given"]
        assert row["proved"] == (row["bound"] == row["peak"])
        if not row["without"]:
            assert row["planned"] >= row["peak"] <= row["peers"]["onnxruntime"]


def test_the_command_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the sections in Markdown, and sentences on wrong names."""
    asked = ["bench", "order", "--case", "randwire-16-0", "--nodes", "100", "--markdown"]
    assert main([*asked, "--details", "--peer", "xla", "--set", "without=all"]) == 0
    text = capsys.readouterr().out
    assert "| randwire-16-0 |" in text
    assert "| xla |" in text
    assert all(f"| {rule} |" in text for rule in ("(nothing)", *order.RULES))
    for wrong, sentence in (
        (["--case", "nothing-*"], "no case"),
        (["--peer", "tvm"], "no peer"),
        (["--set", "without=luck"], "no rule"),
        (["--data", "no/such/folder"], "no JSON files"),
    ):
        assert main(["bench", "order", *wrong]) == 2
        assert sentence in capsys.readouterr().err

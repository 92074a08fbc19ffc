"""Tests of the one door from a model to a checked plan, and that all commands go through it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from tflite_models import Writer, chain, floats, for_each_model

import memplan as mp
from memplan.base.errors import MemplanError, PlanError
from memplan.cli import main
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph
from memplan.runtimes.tflm.read.model import load as stored
from memplan.runtimes.tflm.write.planning import find_offsets
from memplan.solvers import Budget, Interrupted, planning
from memplan.solvers.planning import PlanningInterrupted, layout_of, layouts, plan_model

pytestmark = pytest.mark.slow

CHAIN = Graph(
    name="chain",
    tensors=(
        Tensor("x", 64, Kind.INPUT),
        Tensor("a", 256),
        Tensor("b", 256),
        Tensor("y", 64, Kind.OUTPUT),
    ),
    operators=(
        Operator("first", "Gemm", (0,), (1,)),
        Operator("second", "Relu", (1,), (2,), in_place=((1, 2),), workspace=32),
        Operator("third", "Gemm", (2,), (3,)),
    ),
    inputs=(0,),
    outputs=(3,),
    alignment=16,
)


def memplan(*words: object) -> int:
    """Run the command line in this process."""
    return main([str(word) for word in words])


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """Return a chain in which one operator may write over its input, as a file."""
    path = tmp_path / "chain.json"
    path.write_text(write_graph(CHAIN))
    return path


class TestOnePlan:
    """`plan`, `apply` in all of its outputs, and Python."""

    @pytest.mark.parametrize("in_place", [False, True])
    @for_each_model()
    def test_models_of_wheels(
        self,
        path: Path | None,
        in_place: bool,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """Tests the same peak and offsets everywhere, for one output and for all together."""
        if path is None:
            pytest.skip("no wheel with TFLite models is installed")
        packed = any(find_folded(stored(path)).values())
        if packed:
            pytest.importorskip("tflite_micro")
        words = ["--in-place"] if in_place else []
        planned = plan_model(path, in_place=in_place)
        mp.verify(planned, planned.plan)

        file = tmp_path / "plan.json"
        capsys.readouterr()
        assert memplan("plan", path, "--json", "--no-runtime", "-o", file, *words) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["peak"], said["in_place"]) == (planned.plan.peak, planned.in_place)
        assert mp.load_plan(file).offsets.tolist() == planned.plan.offsets.tolist()  # type: ignore[union-attr]
        assert memplan("verify", path, file, *words) == 0

        out, header, shim = (tmp_path / name for name in ("out.tflite", "plan.h", "shim.h"))
        outputs = {"-o": out, "--c-header": header} | ({} if packed else {"--shim": shim})
        assert memplan("apply", path, *sum(outputs.items(), ()), "--name", "net", *words) == 0
        together = {name: file.read_bytes() for name, file in outputs.items()}
        for name, each in outputs.items():
            each.unlink()
            assert memplan("apply", path, name, each, "--name", "net", *words) == 0
            assert each.read_bytes() == together[name]

        layout = planned.loaded.layout
        assert layout is not None
        assert list(stored(out).offsets) == find_offsets(stored(path), layout, planned.plan)
        text = header.read_text()
        assert f"#define NET_ARENA_SIZE {planned.plan.peak}u" in text
        found = re.findall(r"#define NET_BUFFER_OFFSET_\w+ (\d+)u", text)
        assert [int(offset) for offset in found] == planned.plan.offsets.tolist()  # type: ignore[union-attr]
        if not packed:
            assert f"#define NET_BYTES {planned.plan.peak}" in shim.read_text()

    def test_a_file_that_carries_a_plan(self, tmp_path: Path) -> None:
        """Tests that its offsets are kept in all outputs, also those that share memory."""
        path, out = tmp_path / "model.tflite", tmp_path / "out.tflite"
        tensors = tuple(floats(name, 4, 4) for name in ("x", "y", "sum", "z"))
        steps = (OperatorInfo("ADD", (0, 1), (2,)), OperatorInfo("NEG", (2,), (3,)))
        subgraph = SubGraph("main", tensors, steps, (0, 1), (3,))
        path.write_bytes(Writer().write(Model("sum", (subgraph,))))
        assert memplan("apply", path, "-o", out, "--in-place") == 0
        again, header = tmp_path / "again.tflite", tmp_path / "plan.h"
        assert memplan("apply", out, "-o", again, "--c-header", header) == 0
        assert again.read_bytes() == out.read_bytes()
        assert mp.plan_model(out).plan.peak == mp.plan_model(path, in_place=True).plan.peak == 128
        assert "_ARENA_SIZE 128u" in header.read_text()
        assert memplan("apply", out, "-o", again, "--c-header", header, "--replan") == 0
        assert "_ARENA_SIZE 192u" in header.read_text()
        assert mp.plan_model(out, pins=False).plan.peak == 192

    def test_every_command_in_place(
        self, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Tests that what plans by the way plans the layout that `plan` takes."""
        file = tmp_path / "plan.csv"
        assert memplan("plan", network, "--in-place", "-o", file) == 0
        for words in ((), ("--pin", "b=0"), ("--pin", "second (workspace)=512")):
            assert memplan("plan", network, "--in-place", "-o", file, *words) == 0
            assert memplan("verify", network, file, "--in-place", *words) == 0
        capsys.readouterr()
        assert memplan("inspect", network, "--in-place", "--json", "--capacity", 352) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["planned"]["peak"], found["in_place"]) == (320, True)
        assert found["capacity"]["fits"] is True
        assert memplan("compare", network, network, "--in-place", "--format", "json") == 0
        sides = json.loads(capsys.readouterr().out)
        assert sides["before"] == sides["after"]
        assert sides["after"]["peak"] == 320
        assert memplan("inspect", network, "--in-place", "--capacity", 400) == 0
        assert "does not fit" not in capsys.readouterr().out
        assert memplan("view", network, "--in-place", "--terminal") == 0


class TestTheBetterOne:
    """Which layout is taken."""

    def test_ties_write_over_nothing(self) -> None:
        """Tests equal peaks, and a better one in place."""
        loaded = of_graph(CHAIN)
        assert plan_model(loaded).plan.peak == 544
        assert plan_model(loaded, in_place=True).in_place
        small = of_graph(
            Graph(
                "tie",
                (Tensor("x", 64, Kind.INPUT), Tensor("a", 512), Tensor("b", 16), Tensor("c", 16)),
                (
                    Operator("big", "Gemm", (0,), (1,)),
                    Operator("less", "Sum", (1,), (2,)),
                    Operator("same", "Relu", (2,), (3,), in_place=((2, 3),)),
                ),
                (0,),
                (3,),
            )
        )
        assert [each.in_place for each in layouts(small, in_place=True)] == [False, True]
        assert not plan_model(small, in_place=True).in_place

    def test_a_capacity(self) -> None:
        """Tests that what fits apart is apart, and what fits in no layout is infeasible."""
        loaded = of_graph(CHAIN)
        assert not plan_model(loaded, in_place=True, capacity=544).in_place
        assert plan_model(loaded, in_place=True, capacity=543).in_place
        assert plan_model(loaded, in_place=True, capacity=100).plan.status == "infeasible"
        best = plan_model(loaded, in_place=True, capacity=544, objective="min_peak")
        assert best.in_place

    def test_what_is_kept_of_a_problem(self) -> None:
        """Tests that capacity, reserved ranges and pins are those of the model in each layout."""
        loaded = of_graph(CHAIN)
        asked = loaded.problem.with_pins({"b": 64}).with_reserved([(1024, 2048)])
        changed = Loaded(asked.with_capacity(4096), "graph", 4, (), loaded.graph, loaded.layout)
        for layout in layouts(changed, in_place=True):
            problem = layout.problem
            assert (problem.capacity, len(problem.reserved)) == (4096, 1)
            held = layout.layout
            assert held is not None
            row = next(r for r, i in enumerate(held.rows) if 2 in held.storages[i].tensors)
            assert problem.pin[row] == 64
        other = Loaded(asked.subset([0, 1]), "graph", 4, (), loaded.graph, loaded.layout)
        with pytest.raises(MemplanError, match="does not match its graph any more"):
            plan_model(other, in_place=True)

    def test_which_layout_a_plan_is_for(self) -> None:
        """Tests plans of both layouts, and one that is for neither."""
        loaded = of_graph(CHAIN)
        for in_place in (False, True):
            plan = mp.solve(of_graph(CHAIN, in_place=in_place))
            assert layout_of(loaded, plan, in_place=True).in_place is in_place
        with pytest.raises(PlanError, match="in the problem but not in the plan"):
            layout_of(loaded, plan, in_place=False)

    def test_a_proof_is_of_one_layout(self, tmp_path: Path) -> None:
        """Tests that one is written apart, and refused where there may be two layouts."""
        loaded = of_graph(CHAIN)
        plan_model(loaded, proof=tmp_path / "proof")
        assert (tmp_path / "proof").exists()
        with pytest.raises(MemplanError, match="a proof is of one problem"):
            plan_model(loaded, in_place=True, proof=tmp_path / "other")


class TestOneBudget:
    """Time and nodes are for all searches together."""

    def shares(self, monkeypatch: pytest.MonkeyPatch, **limits: object) -> list[Budget]:
        """Return what each search may use, when the first takes as long as it may."""
        given: list[Budget] = []
        now = [0.0]
        solve = planning.solvers.solve

        def watched(problem: Problem, *words: object, budget: Budget, **more: object) -> Plan:
            given.append(budget)
            if budget.seconds is not None and len(given) == 1:
                now[0] += budget.seconds
            return solve(problem, nodes=1)

        monkeypatch.setattr(planning.solvers, "solve", watched)
        monkeypatch.setattr(planning.time, "perf_counter", lambda: now[0])
        plan_model(of_graph(CHAIN), in_place=True, **limits)  # type: ignore[arg-type]
        return given

    def test_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tests that the second search has what the first has left, and both are tried."""
        first, second = self.shares(monkeypatch, timeout=60)
        assert first.seconds == pytest.approx(30.0, abs=0.001)
        assert second.seconds == pytest.approx(30.0, abs=0.001)

    @pytest.mark.parametrize(("timeout", "search"), [(10.0, 9.8), (0.5, 0.4), (0.0, 0.0)])
    def test_the_check_of_a_large_plan_is_in_the_time(
        self, monkeypatch: pytest.MonkeyPatch, timeout: float, search: float
    ) -> None:
        """Tests that a search leaves time to the referee, but keeps most of it."""
        given: list[Budget] = []

        def watched(problem: Problem, *_: object, budget: Budget, **__: object) -> Plan:
            given.append(budget)
            return Plan.of(problem, [0] * len(problem))

        monkeypatch.setattr(planning.solvers, "solve", watched)
        row = np.arange(100_000)
        plan_model(Problem.from_arrays(row, row + 1, row), timeout=timeout)
        assert given[0].seconds == pytest.approx(search, abs=0.01)

    def test_nodes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tests nodes likewise; what the first does not use is for the second."""
        first, second = self.shares(monkeypatch, nodes=1000)
        assert (first.nodes, first.seconds) == (500, None)
        assert second.nodes is not None
        assert 900 < second.nodes <= 1000

    def test_limits_are_checked(self) -> None:
        """Tests that what is no limit is a sentence."""
        for limits in ({"timeout": "1"}, {"timeout": -1}, {"nodes": 0}, {"nodes": 1.5}):
            with pytest.raises(MemplanError, match="must be"):
                plan_model(of_graph(CHAIN), in_place=True, **limits)  # type: ignore[arg-type]

    def test_an_interrupt_keeps_the_best(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tests that Ctrl-C in the second search leaves the plan of the first."""
        solve, calls = planning.solvers.solve, []

        def interrupted(problem: Problem, *words: object, **more: object) -> Plan:
            calls.append(problem)
            if len(calls) == 2:
                raise Interrupted(Plan.of(problem, None, status=mp.Status.UNKNOWN))
            return solve(problem)

        monkeypatch.setattr(planning.solvers, "solve", interrupted)
        with pytest.raises(PlanningInterrupted) as stopped:
            plan_model(of_graph(CHAIN), in_place=True)
        assert stopped.value.planned.plan.peak == stopped.value.plan.peak == 544

    def test_a_wrong_plan_is_our_own_mistake(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tests that the referee sees every plan."""

        def wrong(problem: Problem, *words: object, **more: object) -> Plan:
            return Plan.of(problem, [0] * len(problem), solver="bad")

        monkeypatch.setattr(planning.solvers, "solve", wrong)
        with pytest.raises(RuntimeError, match="bad made a plan that is wrong"):
            plan_model(of_graph(CHAIN))


def test_what_is_planned_is_taken_as_it_is(network: Path, tmp_path: Path) -> None:
    """Tests files, what was loaded and problems, and what takes a planned model."""
    planned = mp.plan_model(network, in_place=True)
    assert planned.plan.peak == mp.plan_model(mp.load(network), in_place=True).plan.peak
    assert mp.plan_model(mp.load(network).problem).plan.peak == 544
    mp.verify(planned, planned.plan)
    assert mp.compare(mp.load(network), planned).after.peak == planned.plan.peak
    assert mp.inspect(mp.load(network), in_place=True).plan.peak == planned.plan.peak
    assert "320 bytes" in planned.summary()
    assert "in place" in repr(planned)
    assert "320 bytes" in planned._repr_html_()
    with pytest.raises(MemplanError, match="this was read before"):
        mp.plan_model(planned, dims={"n": 1})


class TestAllOrNothing:
    """Outputs of one command."""

    def test_none_is_written_if_one_cannot_be(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Tests a disk that refuses the second file when the first has its place already."""
        path, out, header = (tmp_path / name for name in ("m.tflite", "out.tflite", "plan.h"))
        path.write_bytes(Writer().write(chain("RELU", "TANH")))
        header.write_text("old")
        replaced = os.replace

        def refusing(source: str, target: str) -> None:
            if str(target) == str(header) and Path(source).read_text() != "old":
                raise OSError(1, "Operation not permitted")
            replaced(source, target)

        monkeypatch.setattr("memplan.base.files.os.replace", refusing)
        for old in (None, b"older"):
            if old is not None:
                out.write_bytes(old)
            assert memplan("apply", path, "-o", out, "--c-header", header) == 2
            assert "operation not permitted" in capsys.readouterr().err
            assert header.read_text() == "old"
            assert (out.read_bytes() if out.exists() else None) == old
        assert sorted(each.name for each in tmp_path.iterdir()) == [
            *("m.tflite", "out.tflite", "plan.h")
        ]

    def test_none_is_written_if_a_target_refuses(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Tests a name that is none in C, which only the shim asks for."""
        path, out, shim = (tmp_path / name for name in ("m.tflite", "out.tflite", "shim.h"))
        path.write_bytes(Writer().write(chain("RELU", "TANH")))
        assert memplan("apply", path, "-o", out, "--shim", shim, "--name", "my-plan") == 2
        assert "is not a valid name in C" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == [path]

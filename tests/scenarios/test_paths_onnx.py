"""A model with branches, run in one block of memory by the plan of the path that it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx_models import BOOL, graph, ints, loaded, model, node, value  # noqa: E402

from memplan.base.errors import MemplanError  # noqa: E402
from memplan.programs.graph import Tensor  # noqa: E402
from memplan.programs.sources import Loaded  # noqa: E402
from memplan.referee import verify  # noqa: E402
from memplan.scenarios.paths import PathPlans, plan_paths  # noqa: E402

KERNELS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Exp": np.exp,
    "Greater": np.greater,
    "MatMul": np.matmul,
    "Neg": np.negative,
    "ReduceSum": lambda x, axes: x.sum(dtype=x.dtype, axis=tuple(axes)),
    "Relu": lambda x: np.maximum(x, 0),
}
POISON = 0xFF  # four of them are a float that is not a number


def branching() -> Any:
    """Return a model with a computed condition, and inside of a branch one that is an input."""
    shapes = {"w0": (32, 64), "w1": (64, 512), "w2": (512, 32), "w3": (64, 32), "w4": (32, 32)}
    rng = np.random.default_rng(1)
    inner = {
        "then_branch": graph([node("Exp", "small", "e")], (), [value("e", None)], (), "exp"),
        "else_branch": graph([node("Neg", "small", "n")], (), [value("n", None)], (), "neg"),
    }
    large = [node("MatMul", "h w1", "wide"), node("Relu", "wide", "wider")]
    branches = {
        "then_branch": graph(
            [*large, node("MatMul", "wider w2", "r")], (), [value("r", None)], (), "large"
        ),
        "else_branch": graph(
            [node("MatMul", "h w3", "small"), node("If", "flag", "p", name="inner", **inner)],
            (), [value("p", None)], (), "light",
        ),
    }  # fmt: skip
    return model(
        [
            node("MatMul", "x w4", "skip"),
            node("MatMul", "x w0", "g"),
            node("Relu", "g", "h"),
            node("ReduceSum", "x axes", "total", keepdims=0),
            node("Greater", "total zero", "is_large"),
            node("If", "is_large", "z", name="outer", **branches),
            node("Add", "z skip", "y"),
        ],
        [value("x", [8, 32]), value("flag", [], BOOL)],
        [value("y", None)],
        [
            *(
                onnx.numpy_helper.from_array(rng.normal(0, 0.1, shape).astype(np.float32), name)
                for name, shape in shapes.items()
            ),
            ints("axes", [0, 1]),
            onnx.numpy_helper.from_array(np.zeros((), np.float32), "zero"),
        ],
    )


@dataclass
class Run:
    """A run of a model in ordinary memory, that notes what ran in which order."""

    values: dict[str, Any]
    steps: list[tuple[Any, str]] = field(default_factory=list)  # nodes, and the branch taken

    def all_of(self, nodes: Any) -> None:
        """Run nodes one after the other."""
        for each in nodes:
            if each.op_type != "If":
                self.steps.append((each, ""))
                self.values[each.output[0]] = KERNELS[each.op_type](
                    *(self.values[name] for name in each.input)
                )
                continue
            which = "then_branch" if self.values[each.input[0]] else "else_branch"
            (taken,) = (one.g for one in each.attribute if one.name == which)
            self.steps.append((each, taken.name))
            self.all_of(taken.node)
            self.values[each.output[0]] = self.values[taken.output[0].name]
            self.steps.append((each, f"leave {taken.output[0].name}"))


class Slab:
    """One block of memory, in which a model runs by the plans of its paths."""

    def __init__(self, found: PathPlans, given: dict[str, Any], known: dict[str, str]) -> None:
        self.found, self.given, self.known = found, given, dict(known)
        self.memory = np.full(found.peak, POISON, np.uint8)
        self.path = found.choose(self.known)
        self.now = self.path.planned if self.path else found.fallback
        self.top = 0

    def find(self, name: str) -> tuple[Any, Tensor]:
        """Return the bytes of a tensor, by the plan that counts now."""
        layout = self.now.loaded.layout
        assert layout is not None
        for index in layout.rows:
            storage = layout.storages[index]
            for tensor, at in zip(storage.tensors, storage.offsets, strict=True):
                made = layout.graph.tensors[tensor]
                if made.name == name:
                    begin = self.now.plan.offset(storage.name) + at
                    self.top = max(self.top, begin + made.bytes)
                    return self.memory[begin : begin + made.bytes], made
        raise AssertionError(f"the plan has no place for {name}")

    def place(self, name: str) -> Any:
        """Return a tensor in the slab, to read or to write."""
        part, made = self.find(name)
        return part.view(made.dtype).reshape(made.shape)

    def read(self, name: str) -> Any:
        """Return a copy of a value, of the caller's or from the slab."""
        return self.given[name] if name in self.given else self.place(name).copy()

    def replay(self, run: Run) -> Any:
        """Repeat a run in the slab; what is dead is overwritten with poison."""
        left = Counter(name for each, branch in run.steps if not branch for name in each.input)
        left.update(branch.split()[1] for _, branch in run.steps if branch.startswith("leave"))
        left.update(each.input[0] for each, branch in run.steps if branch[:5] not in ("", "leave"))
        left["y"] = 1
        for each, branch in run.steps:
            if branch and not branch.startswith("leave"):
                assert self.read(each.input[0]) == (branch in ("large", "exp"))
                self.drop([each.input[0]], left)
                self.known[each.name] = branch
                before, self.path = self.path, self.found.choose(self.known)
                assert before in (None, self.path)
                self.now = self.path.planned if self.path else self.found.fallback
                continue
            names = [branch.split()[1]] if branch else list(each.input)
            read = [self.read(name) for name in names]
            self.drop(names, left)
            self.place(each.output[0])[...] = read[0] if branch else KERNELS[each.op_type](*read)
        return self.read("y")

    def drop(self, names: list[str], left: Counter[str]) -> None:
        """Count reads, and poison what is not read again."""
        left.subtract(names)
        for name in set(names) - self.given.keys():
            if left[name] == 0:
                self.find(name)[0][...] = POISON


@pytest.fixture
def network(tmp_path: Path) -> tuple[Any, Loaded]:
    """Return the model, and what is read of it."""
    made = branching()
    return made, loaded(tmp_path, made)


def run_all(made: Any, found: PathPlans, known: tuple[str, ...] = ()) -> set[str]:
    """Run every path in the slab, and compare with onnxruntime; return the plans taken."""
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in made.graph.initializer}
    rng = np.random.default_rng(2)
    taken = set()
    for is_large, flag in product((True, False), repeat=2):
        x = np.abs(rng.normal(0, 1, (8, 32))).astype(np.float32) * (1 if is_large else -1)
        given = {"x": x, "flag": np.array(flag), **weights}
        run = Run(dict(given))
        run.all_of(made.graph.node)
        (expected,) = session.run(None, {"x": x, "flag": given["flag"]})
        np.testing.assert_allclose(run.values["y"], expected, rtol=1e-4, atol=1e-5)
        truth = {"outer": "large" if is_large else "light", "inner": "exp" if flag else "neg"}
        slab = Slab(found, given, {name: truth[name] for name in known})
        result = slab.replay(run)
        assert result.tobytes() == run.values["y"].tobytes()
        peak = slab.path.peak if slab.path else found.fallback.plan.peak
        assert slab.top <= peak
        taken.add(slab.path.name if slab.path else "")
    return taken


def test_a_model_runs_in_the_plan_of_its_path(network: tuple[Any, Loaded]) -> None:
    """Tests all paths, with conditions that the program computes and that the caller knows."""
    made, program = network
    found = plan_paths(program)
    for each in found.paths:
        verify(each.planned.problem, each.planned.plan)
    names = {"outer=large", "outer=light,inner=exp", "outer=light,inner=neg"}
    assert run_all(made, found) == names
    assert found.complete
    assert not found.single
    peaks = {each.name: each.peak for each in found.paths}
    # wide and wider, of 16 KiB each, with skip
    assert peaks["outer=large"] == 33792
    assert max(peaks["outer=light,inner=exp"], peaks["outer=light,inner=neg"]) < 8192
    before = plan_paths(program, known=["outer", "inner"])
    assert {each.step for each in before.paths} == {-1}
    assert run_all(made, before, known=("outer", "inner")) == names


def test_other_runs_keep_the_plan_of_all_branches(network: tuple[Any, Loaded]) -> None:
    """Tests a path that covers half of the runs."""
    made, program = network
    found = plan_paths(program, [{"outer": "light"}])
    assert not found.complete
    assert run_all(made, found) == {"", "outer=light"}
    assert found.peak == found.fallback.plan.peak


def test_a_plan_that_moves_something_is_noticed(network: tuple[Any, Loaded]) -> None:
    """Tests that the comparison can fail: paths as if conditions were known, which they are not."""
    made, program = network
    found = plan_paths(program, known=["outer", "inner"])
    with pytest.raises(AssertionError):
        run_all(made, found)


def test_a_choice_in_a_branch_that_does_not_run(network: tuple[Any, Loaded]) -> None:
    """Tests the sentence about a path that no run can take."""
    with pytest.raises(MemplanError, match='"inner" is in branch "light" of "outer", which does'):
        plan_paths(network[1], [{"outer": "large", "inner": "exp"}])

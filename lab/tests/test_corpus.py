"""Tests of how the corpus is made: what is recorded of networks, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyarrow")

from memplan import MemplanError, Problem  # noqa: E402
from memplan.programs.graph import Graph, Kind, Operator, Tensor, lay_out  # noqa: E402
from memplan_lab import bench, corpus  # noqa: E402
from memplan_lab.bench.models import NETWORKS  # noqa: E402
from memplan_lab.cli import main  # noqa: E402
from memplan_lab.corpus import building, recording, runs  # noqa: E402
from memplan_lab.corpus.features import features  # noqa: E402
from memplan_lab.corpus.precision import bytes_in_int8, fold_norms  # noqa: E402
from memplan_lab.corpus.recipe import Recipe  # noqa: E402
from memplan_lab.corpus.recording import Recording, record  # noqa: E402
from memplan_lab.corpus.runs import Ready  # noqa: E402
from memplan_lab.corpus.scratchpad import on_scratchpad  # noqa: E402
from memplan_lab.corpus.shapes import graph_of, order_of, problem_of  # noqa: E402
from memplan_lab.corpus.weightless import Weightless  # noqa: E402

pytestmark = pytest.mark.slow

nn: Any = torch.nn


def empty(*shape: int) -> Any:
    """Return a tensor without memory."""
    return torch.empty(*shape, device="meta")


def allocations(recording: Recording) -> list[tuple[int, int, int]]:
    """Return start, end and bytes of what operators allocated."""
    return [(one.start, one.end, one.bytes) for one in recording.storages if one.start >= 0]


# Recording ---------------------------------------------------------------------------------------


def test_a_storage_is_held_as_long_as_python_holds_it() -> None:
    """Tests lifetimes of variables: until they are deleted, or the end for what is returned."""
    x = empty(10)

    def run() -> Any:
        a = x + 1  # step 0
        b = a * 2  # step 1
        del a
        c = b + 3  # step 2
        del b
        return c * 4  # step 3; c is a variable until the function ends

    assert allocations(record(run, ())) == [(0, 2, 40), (1, 3, 40), (2, 4, 40), (3, 4, 40)]


def test_views_are_no_steps_and_hold_their_base() -> None:
    """Tests that a view takes no time and no memory, and keeps what it is a view of."""
    x = empty(4, 4)

    def run() -> Any:
        view = (x + 1).t().reshape(2, 8).view(16)  # step 0, and a copy in step 1
        half = view[:8]
        del view
        y = x + 2  # step 2
        del y
        return half

    recording = record(run, ())
    assert allocations(recording) == [(0, 2, 64), (1, 3, 64), (2, 3, 64)]
    assert [step.operator for step in recording.steps] == ["aten.add", "aten.clone", "aten.add"]


def test_what_is_changed_in_place_is_no_new_storage() -> None:
    """Tests that operators that write over their input are steps that change it."""
    x = empty(10)
    recording = record(lambda: (x + 1).relu_().mul_(2), ())
    assert allocations(recording) == [(0, 3, 40)]
    assert [step.changes for step in recording.steps] == [(), (1,), (1,)]


def test_autograd_holds_what_the_backward_pass_reads() -> None:
    """Tests that a result without a name is held until its gradient is made, and not longer."""
    x = nn.Parameter(empty(10))

    def run() -> None:
        loss = x.exp().sum()  # steps 0 and 1; exp saves its result
        loss.backward()  # ones (2), the gradient of exp (3)

    exp, *_, gradient = allocations(record(run, [x]))
    steps = gradient[1]
    assert exp[0] == 0
    assert exp[1] == steps
    assert gradient == (steps - 1, steps, 40)


def test_results_without_a_reader_last_a_step() -> None:
    """Tests that the statistics of a layer norm are there for their operator, without gradients."""
    norm = nn.LayerNorm(8).to("meta")
    with torch.no_grad():
        recording = record(lambda: norm(norm(empty(4, 8))), norm.parameters())
    lengths = sorted(
        (end - start, size) for start, end, size in allocations(recording) if size == 16
    )
    assert lengths == [(1, 16)] * 4


def test_real_tensors_give_the_same_recording() -> None:
    """Tests shapes without memory against a network that is really run: forward and backward."""

    def training(device: str) -> list[tuple[int, int, int]]:
        module, args = NETWORKS["resnet18"](2, 32)
        module = module.to(device)
        ready = Ready(module, (args[0].to(device),), loss=lambda scores: scores.square().mean())
        return allocations(runs.record_training(ready, "kept"))

    assert training("meta") == training("cpu")


def test_questions_about_values_are_answered_by_yes() -> None:
    """Tests a branch on whether something holds for all values; a number is still refused."""
    x = empty(4)
    yes = record(lambda: x + 1 if bool((x > 0).all()) else x.repeat(2), ())
    assert [step.operator for step in yes.steps] == ["aten.gt", "aten.all", "aten.add"]
    with pytest.raises(RuntimeError, match="meta"):
        record(lambda: x.sum().item(), ())


def test_too_many_tensors_end_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a run that would take minutes to record ends with a sentence."""
    x = empty(4)
    record(lambda: x, [x])  # the step of training that each process records first is larger
    monkeypatch.setattr(recording, "MOST", 5)
    assert len(record(lambda: [x + each for each in range(4)], [x]).storages) == 5
    with pytest.raises(MemplanError, match="more than 5 tensors"):
        record(lambda: [x + each for each in range(5)], [x])


def test_weights_are_not_made() -> None:
    """Tests that a module is built without memory for weights, but with what it computes."""
    with Weightless():
        layer = nn.Linear(1 << 20, 1 << 20)
        rates = torch.linspace(0, 1, 3).tolist()
    assert layer.weight.device.type == "meta"
    assert rates == [0, 0.5, 1]


def test_an_order_keeps_what_operators_read() -> None:
    """Tests the arcs of reading, changing and drawing, and who touches what."""
    x = empty(10)

    def run() -> Any:
        a = x + 1  # 0
        b = a * 2  # 1: reads a before it changes
        a.add_(1)  # 2
        c = a * 3  # 3: reads what 2 changed
        d = torch.rand(10, device="meta")  # 4
        e = torch.rand(10, device="meta")  # 5: draws after 4
        return b + c, d, e  # 6

    problem = order_of(record(run, ()))
    arcs = {(0, 1), (0, 2), (1, 2), (2, 3), (1, 6), (3, 6), (4, 5)}
    assert set(map(tuple, problem.arcs.tolist())) >= arcs
    assert (4, 6) not in problem.arcs.tolist()
    users = [problem.users(storage).tolist() for storage in range(len(problem.size))]
    assert users == [[0, 1, 2, 3], [1, 6], [3, 6], [4], [5], [6]]
    assert problem.wanted.tolist() == [False, False, False, True, True, True]
    assert problem.size.tolist() == [512] * 6  # as PyTorch's allocator rounds up


# Runs --------------------------------------------------------------------------------------------


def linear() -> Ready:
    """Return two layers; weights have 256 elements, activations 64."""
    with Weightless():
        module = nn.Sequential(nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False))
    return Ready(module, (empty(4, 16),), loss=lambda result: result.sum())


def test_gradients_are_kept_or_released() -> None:
    """Tests that gradients live to the end for an optimizer, or die where they are made."""
    for gradients, alive in (("kept", 2), ("released", 0)):
        problem = runs.training(linear, gradients)  # type: ignore[arg-type]
        weights = problem.size == 256 * 4
        assert weights.sum() == 2
        assert (problem.end[weights] == problem.end.max()).sum() >= alive
    lengths = [
        int((p.end - p.start)[p.size == 1024].max())
        for p in (runs.training(linear, "kept"), runs.training(linear, "released"))
    ]
    assert lengths[1] < lengths[0]


def test_sizes_are_those_of_an_allocator() -> None:
    """Tests that sizes are rounded up to 512 bytes, and nothing is aligned beyond that."""
    problem = runs.inference(lambda: Ready(nn.ReLU(), (empty(100),)))
    assert problem.size.tolist() == [512]
    assert not problem.has_alignment


def test_streams_have_conflicts_and_groups() -> None:
    """Tests that gradients lie in buckets, which are reduced during the backward pass."""
    problem = runs.streams(linear, "overlap", "sgd")
    assert problem.groups
    assert sorted(problem.size[list(problem.groups[0])].tolist()) == [1024, 1024]
    one = runs.streams(linear, "ddp", "sgd")
    assert one.has_groups


def test_who_reads_behind_a_change_waits_for_it() -> None:
    """Tests that a graph has a view for what is changed in place, made by its operator."""
    x = empty(10)

    def run() -> Any:
        a = x + 1
        a.mul_(2)
        return a + 3

    recording = record(run, ())
    graph = graph_of(recording, [2]).graph
    change, reader = graph.operators[1:]
    assert reader.inputs == change.outputs
    assert [view.base for view in graph.views] == list(graph.operators[0].outputs)
    problem = lay_out(graph).problem
    assert list(zip(problem.start, problem.end, strict=True)) == [(0, 3), (2, 3)]


def test_quantised_tensors_have_a_byte_an_element() -> None:
    """Tests sizes of a convolution with its norm folded, and of a norm that has no such kernel."""
    module = nn.Sequential(
        nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.LayerNorm([8, 4, 4]), nn.MaxPool2d(2)
    ).to("meta")
    fold_norms(module)
    assert not any(isinstance(each, nn.BatchNorm2d) for each in module.modules())
    with torch.no_grad():
        recording = record(lambda: module.eval()(empty(1, 3, 4, 4)), module.parameters())
    sizes = bytes_in_int8(recording)
    by_operator = {step.operator: [sizes[i] for i in step.makes] for step in recording.steps}
    assert by_operator["aten.convolution"] == [8 * 16]
    assert by_operator["aten.native_layer_norm"][0] == 4 * 8 * 16
    assert by_operator["aten.max_pool2d_with_indices"] == [8 * 4, 8 * 8 * 4]  # indices as they are


# Scratchpads -------------------------------------------------------------------------------------


def test_transfers_overlap_with_operators() -> None:
    """Tests a chain of two operators, step by step, against the drawing of the module."""
    names = (("x", 100, Kind.INPUT), ("w", 150, Kind.CONSTANT), ("v", 60, Kind.CONSTANT))
    tensors = [Tensor(name, size, kind) for name, size, kind in names]
    tensors += [Tensor("y", 200), Tensor("z", 300, Kind.OUTPUT)]
    operators = (Operator("", "mm", (0, 1), (3,)), Operator("", "mm", (3, 2), (4,)))
    graph = Graph("", tuple(tensors), operators, (0,), (4,))
    problem = on_scratchpad(graph, 1, 64)
    # The first operator takes sub-steps 1, 2 and 3, for 64 + 64 + 22 bytes; the second 4.
    expected = {
        (0, 2, 64), (1, 3, 64), (2, 4, 64),  # w in chunks
        (0, 4, 128),  # x comes before
        (1, 5, 256),  # y
        (3, 5, 64),  # v comes while the first operator runs
        (4, 6, 320),  # z leaves behind the second
    }  # fmt: skip
    assert set(zip(problem.start, problem.end, problem.size, strict=True)) == expected
    assert len(problem) == len(expected)


def test_weights_stay_for_the_tiles_that_follow() -> None:
    """Tests that a weight of one chunk is moved once for tiles in a row, larger ones each time."""
    image = Tensor("x", 64 * 8, Kind.INPUT, shape=(1, 1, 8, 64))
    weight, result = (
        Tensor("w", 128, Kind.CONSTANT),
        Tensor("y", 64 * 8, Kind.OUTPUT, shape=(1, 1, 8, 64)),
    )
    graph = Graph("", (image, weight, result), (Operator("", "relu", (0, 1), (2,)),), (0,), (2,))
    small, large = on_scratchpad(graph, 4, 128), on_scratchpad(graph, 4, 64)
    assert (small.size == 128).sum() == 8 + 1
    assert (small.end - small.start).max() == 5
    assert (large.size == 64).sum() == 4 * 2


# Features ----------------------------------------------------------------------------------------


def test_features_of_a_problem() -> None:
    """Tests every feature on two buffers, of which one lives all the time."""
    problem = Problem.from_arrays([0, 16], [32, 32], [100, 300], alignment=[4, 64])
    found = features(problem)
    assert found["load_profile"] == [0.25] * 16 + [1.0] * 16
    del found["load_profile"]
    assert found == {
        "n": 2,
        "sections": 2,
        "max_load": 400,
        "largest_alignment": 64,
        "conflicts": 0,
        "density": 0.625,
        "tight_share": 0.5,
        "sum_over_load": 1.0,
    }


def test_features_of_nothing() -> None:
    """Tests that a problem without buffers has features too."""
    found = features(Problem([]))
    assert found["n"] == found["max_load"] == found["density"] == 0
    assert found["load_profile"] == [0.0] * 32


# Building ----------------------------------------------------------------------------------------


@pytest.mark.deep
def test_the_same_libraries_make_the_same_corpus(tmp_path: Path) -> None:
    """Tests a part of the corpus, made twice and in two processes: the same bytes."""
    files = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for file, jobs in zip(files, (1, 2), strict=True):
        built = corpus.build(["models", "files"], limit=9, jobs=jobs)
        corpus.write(built, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    opened = bench.corpus(files[0])
    assert len(opened) >= 5
    assert opened.about["libraries"]["torch"] == version("torch")
    for each in opened:
        assert each.provenance["library"]
        assert each.best_peak >= each.features["max_load"]  # type: ignore[operator]


def test_names_of_recipes_are_distinct() -> None:
    """Tests that there are enough recipes, each under a name of its own, and that limits spread."""
    every = corpus.recipes()
    assert len({recipe.name for recipe in every}) == len(every) > 1_000
    assert [r.name for r in corpus.recipes(limit=2)] == [every[0].name, every[len(every) // 2].name]
    assert {recipe.family for recipe in every} == set(corpus.FAMILIES)
    for family in corpus.FAMILIES:
        assert {recipe.family for recipe in corpus.recipes([family])} == {family}


@pytest.mark.parametrize(("families", "limit"), [(["nets"], None), (None, 0)])
def test_unknown_families_and_limits_are_refused(
    families: list[str] | None, limit: int | None
) -> None:
    """Tests the sentences for what cannot be chosen."""
    with pytest.raises(
        MemplanError, match=r'no family "nets"; the families are|limit: 0 is below 1'
    ):
        corpus.recipes(families, limit)


def chain(factor: int) -> Problem:
    """Return a chain of buffers, whose sizes are multiples of a factor."""
    rows = np.arange(12)
    return Problem.from_arrays(rows * factor, (rows + 2) * factor, (rows % 5 + 1) * factor)


def listing(*pairs: tuple[int, int]) -> Problem:
    """Return such a chain with conflicts beyond lifetimes."""
    plain = chain(1)
    return Problem.from_arrays(plain.start, plain.end, plain.size, conflicts=pairs)


def broken() -> Problem:
    """Fail as a library does: in several lines."""
    raise RuntimeError("no such layer\nand much more")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a family have recipes that fail, are too small, and make the same problem."""
    makes: dict[str, Callable[[], Problem]] = {
        "first": lambda: chain(1),
        "broken": broken,
        "tiny": lambda: Problem.from_arrays([0], [1], [8]),
        "scaled": lambda: chain(3),
        "listed": lambda: listing((0, 5), (0, 9)),
        "other": lambda: listing((0, 5)),
    }

    def recipes() -> Iterator[Recipe]:
        for name, make in makes.items():
            yield Recipe(name, "few", {"library": "none"}, make)

    monkeypatch.setattr(building, "FAMILIES", {"few": recipes})
    monkeypatch.setattr(building, "MOST_PAIRS", 1)


@pytest.mark.usefixtures("few")
def test_what_fails_is_named_and_ends_nothing() -> None:
    """Tests that failures have a name and a reason, and that one structure is there once."""
    calls: list[tuple[int, int, str]] = []
    built = corpus.build(on_made=lambda *each: calls.append(each))
    assert [each.name for each in built.records] == ["first", "other"]
    assert [(each.name, each.reason.partition(";")[0]) for each in built.failures] == [
        ("broken", "RuntimeError: no such layer"),
        ("tiny", "it has 1 buffers"),
        ("listed", "it lists 2 conflicts"),
    ]
    assert built.duplicates == {"scaled": "first"}
    assert calls[-1] == (6, 6, "other")


@pytest.mark.usefixtures("few")
def test_the_command_builds_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `memplan-lab corpus build`: a file, a table, and all that was left out by name."""
    out = tmp_path / "c.parquet"
    assert main(["corpus", "build", "-o", str(out), "--family", "few"]) == 0
    printed = capsys.readouterr()
    opened = bench.corpus(out)
    assert f"{out}: 2 problems, {opened.about['checksum']}" in printed.out
    assert "left out: broken: RuntimeError: no such layer" in printed.err
    assert "left out: scaled is the same problem as first" in printed.err


def test_the_command_refuses_what_it_cannot_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests exit codes of a mistyped family and of a folder that is a file."""
    out = str(tmp_path / "c.parquet")
    assert main(["corpus", "build", "-o", out, "--family", "timn-inference"]) == 2
    assert 'there is no family "timn-inference"' in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["corpus", "build", "-o", str(tmp_path / "file" / "c.parquet")]) == 2


def test_problem_of_leaves_out_what_is_given() -> None:
    """Tests that weights and inputs are the caller's, and that nothing of no size is there."""
    x, w = empty(8, 8), nn.Parameter(empty(8, 8))
    problem = problem_of(record(lambda: (x @ w, x.new_empty(0)), [w]))
    assert problem.size.tolist() == [512]

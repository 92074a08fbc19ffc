"""Tests of TFLite models in the order with the least load: the files, and what TFLM does."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tflite_models import Writer, chain, constant, floats, for_each_model, model_named
from tflm import ran, require_tflm

from memplan.base.errors import FormatError, GraphError, MemplanError
from memplan.cli import main
from memplan.levers.rewrite import reorder
from memplan.problem.plan import Status
from memplan.programs.sources import load
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo, parse
from memplan.runtimes.tflm.read.model import load as load_model
from memplan.runtimes.tflm.write import apply, apply_in_order, minimal_arena
from memplan.runtimes.tflm.write.folding import unpack
from memplan.runtimes.tflm.write.metadata import with_order, without_tensors

pytestmark = pytest.mark.slow

every_model = for_each_model()

ROW = 64  # elements
UNIT = 4 * ROW  # bytes
SCRATCH = 2 * 16  # bytes: what each MEAN resolves its axes in, both planned by TFLM
WRITER = Writer(
    {"CONCATENATION": (10, {0: ("i", 0)}), "MEAN": (27, {0: ("b", 1)})},
    {"axis": np.zeros(1, "<i4").tobytes()},
)


def fan(*more: TensorInfo, types: tuple[str, str] = ("NEG", "ABS")) -> Model:
    """Return a model with two branches, of which the file makes both wide tensors first.

    In rows: both branches make 8 of one and leave one; in turn they need 10, in the file 17.
    """
    tensors = (
        *(floats(name, 1, ROW) for name in ("x", "a", "b")),
        *(floats(name, 8, ROW) for name in ("wide_a", "wide_b")),
        *(floats(name, 1, ROW) for name in ("left_a", "left_b", "y")),
        constant("axis", "int32", 1),
        *more,
    )
    operators = (
        OperatorInfo(types[0], (0,), (1,)),
        OperatorInfo(types[1], (0,), (2,)),
        OperatorInfo("CONCATENATION", (1,) * 8, (3,)),
        OperatorInfo("CONCATENATION", (2,) * 8, (4,)),
        OperatorInfo("MEAN", (3, 8), (5,)),
        OperatorInfo("MEAN", (4, 8), (6,)),
        OperatorInfo("ADD", (5, 6), (7,)),
    )
    return Model("fan", (SubGraph("main", tensors, operators, (0,), (7,)),))


def run(*words: object) -> int:
    """Run the command, and return its exit code."""
    return main([str(word) for word in words])


def saved(model: Model, folder: Path) -> Path:
    """Return the path of a model that was written."""
    path = folder / "model.tflite"
    path.write_bytes(WRITER.write(model))
    return path


@every_model
def test_no_model_needs_more_in_order_and_all_compute_the_same(
    path: Path | None, tmp_path: Path
) -> None:
    """Tests models of wheels: arenas against `apply`, and outputs on three inputs, bit for bit."""
    path = require_tflm(path)
    bare, out, plain = (tmp_path / f"{name}.tflite" for name in ("bare", "out", "plain"))
    bare.write_bytes(unpack(path.read_bytes(), load_model(path)))
    found = apply_in_order(path, out)
    out.write_bytes(found.data)
    apply(path, plain)
    usual = minimal_arena(plain)
    assert usual is not None
    assert found.best.written.is_whole
    assert found.arena == minimal_arena(out)
    assert found.arena <= usual
    assert usual in {draft.arena for draft in found.drafts}
    expected = ran(bare, 1 << 26)
    assert expected
    assert ran(out, found.arena) == expected


@pytest.mark.deep
def test_a_real_model_needs_a_seventh_less(tmp_path: Path) -> None:
    """Tests basic-pitch: the smallest arena that TFLM accepts, which no other order improves."""
    path = require_tflm(model_named("basic_pitch/nmp.tflite"))
    found = apply_in_order(path, tmp_path / "out.tflite")
    assert (found.order.given_peak, found.planned.plan.peak) == (4_843_520, 4_177_536)
    assert found.order.status is Status.OPTIMAL
    assert found.is_reordered
    assert found.arena <= 4_215_184
    assert found.drafts[0].arena >= 4_843_520


def test_branches_are_put_one_after_the_other(tmp_path: Path) -> None:
    """Tests what is moved in the file, its plan, and what TFLM makes of it."""
    path, out = saved(fan(), tmp_path), tmp_path / "out.tflite"
    found = apply_in_order(path, out)
    assert (found.order.given_peak, found.order.peak) == (
        17 * UNIT + SCRATCH,
        10 * UNIT + SCRATCH,
    )
    assert found.planned.plan.peak == 10 * UNIT + SCRATCH
    assert found.is_reordered
    out.write_bytes(found.data)
    old, new = load_model(path).subgraphs[0], load_model(out).subgraphs[0]
    assert new.tensors == old.tensors
    assert sorted(new.operators, key=repr) == sorted(old.operators, key=repr)
    assert load(out).problem.max_load == 10 * UNIT + SCRATCH
    pytest.importorskip("tflite_micro")
    assert ran(out, found.arena) == ran(path, 1 << 20)
    assert found.arena < found.drafts[0].arena


def test_an_order_that_gains_nothing_is_not_written(tmp_path: Path) -> None:
    """Tests a chain: its bytes are those that `apply` writes, with the offsets of the file."""
    model = replace(chain("RELU", "TANH", "NEG"), offsets=(-1, 640, -1, 16))
    path, out = saved(model, tmp_path), tmp_path / "out.tflite"
    apply(path, out)
    found = apply_in_order(path, out)
    assert not found.is_reordered
    assert found.data == out.read_bytes()
    assert found.best.written.details.kept == 2


@pytest.mark.parametrize("rows", [2, 100])
def test_unused_tensors_cost_nothing(tmp_path: Path, rows: int) -> None:
    """Tests tensors that no operator touches, below and above the plan, in both orders."""
    more = (floats("unused", rows, ROW), floats("unused, too", rows, ROW))
    path, out = saved(fan(*more), tmp_path), tmp_path / "out.tflite"
    applied = apply(path, out)
    assert applied.planned == applied.after.bytes == 17 * UNIT + SCRATCH
    assert applied.before.bytes >= (2 * rows if rows > 9 else 17) * UNIT
    assert applied.offsets[-2:] == (0, 0)
    found = apply_in_order(path, out)
    assert found.best.written.details.after.bytes == 10 * UNIT + SCRATCH
    out.write_bytes(found.data)
    if rows == 100:
        assert [each.bytes for each in load_model(out).subgraphs[0].tensors[-2:]] == [UNIT, UNIT]
    pytest.importorskip("tflite_micro")
    assert ran(out, found.arena) == ran(path, 1 << 20)


def test_an_unknown_operator_is_refused_by_name(tmp_path: Path) -> None:
    """Tests a custom operator, which may do anything unless the user says that it does not."""
    path, out = saved(fan(types=("MyFilter", "ABS")), tmp_path), tmp_path / "out.tflite"
    with pytest.raises(GraphError, match=r'of type "MyFilter" may do more.*--pure MyFilter'):
        apply_in_order(path, out)
    assert (run("apply", path, "-o", out, "--order"), out.exists()) == (2, False)
    assert reorder(load(path), pure=["MyFilter"]).peak == 10 * UNIT + SCRATCH


def test_the_command_says_both_arenas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `apply --order` and what it refuses; nothing is written then."""
    path, out = saved(fan(), tmp_path), tmp_path / "out.tflite"
    command = ("apply", path, "-o", out)
    for options in (
        ("--shim", f"{out}.h"),
        ("--plan", path),
        ("--c-header", f"{out}.h"),
        ("--alignment", 64),
        ("--capacity", "2KiB"),
    ):
        code = 1 if options == ("--capacity", "2KiB") else 2
        assert run(*command, "--order", *options) == code, options
    assert "more than the capacity of 2048" in capsys.readouterr().err
    assert run(*command, "--pure", "NEG") == 2
    assert not out.exists()
    assert run(*command, "--order") == 0
    assert "in the new order, which is written" in capsys.readouterr().out
    assert load(out).problem.max_load == 10 * UNIT + SCRATCH


def test_a_budget_holds_for_the_order_that_is_written(tmp_path: Path) -> None:
    """Tests a budget that only the new order meets."""
    path, out = saved(fan(), tmp_path), tmp_path / "out.tflite"
    smallest = apply_in_order(path, out)
    assert apply_in_order(path, out, capacity=smallest.arena).data == smallest.data
    with pytest.raises(MemplanError, match="more than the capacity"):
        apply_in_order(path, out, capacity=smallest.arena - 16)


def random_model(rng: random.Random) -> Model:
    """Return a random program of two sub-graphs that only the reader has to understand."""
    graphs = []
    for name in ("main", "other"):
        count = rng.randint(2, 12)
        tensors = [floats(f"{name}_{at}", rng.randint(1, 9), 4) for at in range(count + 1)]
        operators = []
        for at in range(count):
            inputs = tuple(rng.sample(range(at + 1), min(at + 1, rng.randint(1, 3))))
            operators.append(OperatorInfo("ADD_N", inputs, (at + 1,)))
        graphs.append(SubGraph(name, tuple(tensors), tuple(operators), (0,), (count,)))
    return Model("random", tuple(graphs))


def test_any_order_is_the_same_file_otherwise() -> None:
    """Tests random orders of both sub-graphs: only references move, and back again."""
    rng = random.Random(21)
    for _ in range(200):
        data = Writer().write(random_model(rng))
        model = parse(data, "m")
        orders = {}
        for number, graph in enumerate(model.subgraphs):
            orders[number] = rng.sample(range(len(graph.operators)), len(graph.operators))
        new = with_order(data, "m", orders)
        assert len(new) == len(data)
        for number, order in orders.items():
            old = model.subgraphs[number].operators
            assert parse(new, "m").subgraphs[number].operators == tuple(old[at] for at in order)
        back = {number: list(np.argsort(order)) for number, order in orders.items()}
        assert with_order(new, "m", back) == data


def test_damaged_files_are_one_sentence_or_read_back() -> None:
    """Tests every cut and random wrong bytes: a file is as it was but for what was asked."""
    rng = random.Random(22)
    data = WRITER.write(fan(floats("unused", 100, ROW)))
    order = {0: [0, 2, 4, 1, 3, 5, 6]}
    for size in range(0, len(data), 7):
        with pytest.raises(FormatError):
            with_order(data[:size], "cut", order)
    for _ in range(3_000):
        wrong = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            wrong[rng.randrange(len(wrong))] = rng.randrange(256)
        try:
            given = parse(bytes(wrong), "wrong")
        except FormatError:
            continue
        if len(given.subgraphs) != 1 or len(given.subgraphs[0].operators) != 7:
            continue
        try:
            new = parse(with_order(bytes(wrong), "wrong", order), "wrong")
            assert sorted(map(repr, new.subgraphs[0].operators)) == sorted(
                map(repr, given.subgraphs[0].operators)
            )
        except FormatError:
            pass
        last = len(given.subgraphs[0].tensors) - 1
        try:
            new = parse(without_tensors(bytes(wrong), "wrong", [last]), "wrong")
            assert new.subgraphs[0].tensors[:last] == given.subgraphs[0].tensors[:last]
        except FormatError:
            pass

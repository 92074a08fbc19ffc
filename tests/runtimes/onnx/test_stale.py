"""Tests of ONNX models whose declared shapes are stale: what counts, what is said, what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import (
    FLOAT,
    branching,
    graph,
    ints,
    light,
    loaded,
    looping,
    model,
    node,
    value,
    weight,
)

from memplan.base.errors import FormatError, MemplanError
from memplan.base.notes import Code
from memplan.programs.graph import Kind
from memplan.programs.sources.loaded import Loaded


def shapes(of: Loaded) -> dict[str, Any]:
    """Return the shape of every tensor."""
    assert of.graph is not None
    return {tensor.name: tensor.shape for tensor in of.graph.tensors}


def chain(batch: int | str, stale: int) -> Any:
    """Return a model whose input alone has this batch."""
    what = model(
        [node("Exp", "x", "a"), node("Neg", "a", "b"), node("Abs", "b", "y")],
        [value("x", [batch, 3])],
        [value("y", [stale, 3])],
    )
    what.graph.value_info.extend([value("a", [stale, 3]), value("b", [stale, 3, 1])])
    return what


@pytest.mark.parametrize(("batch", "dims"), [(4, {}), ("N", {"N": 4})])
def test_what_the_inputs_say_counts(tmp_path: Path, batch: Any, dims: dict[str, int]) -> None:
    """Tests stale sizes and ranks between and at the end, and the note that has all of them."""
    found = loaded(tmp_path, chain(batch, 1), **dims)
    assert shapes(found) == dict.fromkeys("xaby", (4, 3))
    (note,) = found.notes
    assert (note.code, note.tensors) == (Code.SHAPE_OVERRIDDEN, ("a", "b", "y"))
    assert '"a" is [4, 3], not [1, 3]' in note.text
    assert '"b" is [4, 3], not [1, 3, 1]' in note.text


def test_shapes_that_are_right_are_not_mentioned(tmp_path: Path) -> None:
    """Tests a declaration with the size itself, with its name, and with another open name."""
    what = chain("N", 4)
    del what.graph.value_info[1:]
    what.graph.value_info.append(value("b", ["N", "other"]))
    assert not loaded(tmp_path, what, N=4).notes


def test_the_note_is_a_sentence(tmp_path: Path) -> None:
    """Tests that of 400 tensors with long names a few are in the sentence, and all in the data."""
    names = [f"{at}-" + "x" * 90 for at in range(400)]
    nodes = [onnx.helper.make_node("Exp", ["x"], [name]) for name in names]
    what = model(nodes, [value("x", [4, 1, 2])], [value(name, [1, 1, 2]) for name in names])
    (note,) = loaded(tmp_path, what).notes
    assert len(note.text) < 300
    assert "more" in note.text
    assert list(note.tensors) == names


def own(*results: list[int | str]) -> Any:
    """Return a model with an operator that no library knows, and these declared results."""
    names = [f"r{at}" for at in range(len(results))]
    what = model(
        [
            node("Exp", "x", "a"),
            onnx.helper.make_node("Own", ["a"], names, "it", domain="com.example"),
            node("Neg", "r0", "y"),
        ],
        [value("x", ["N", 3])],
        [value("y", None)],
    )
    what.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    what.graph.value_info.extend(value(*one) for one in zip(names, results, strict=True))
    return what


def test_what_nothing_else_says_is_believed(tmp_path: Path) -> None:
    """Tests a declaration that mentions the size that is given; a note says what it adds."""
    found = loaded(tmp_path, own(["N", 7]), N=4)
    assert shapes(found)["y"] == (4, 7)
    assert [note.code for note in found.notes] == [Code.DIM_ASSUMED]
    assert "so, though data may change them: r0:1 = 7; --dim r0:1=N" in found.notes[0].text
    assert not loaded(tmp_path, own(["N", 7]), **{"N": 4, "r0:1": 7}).notes


def test_what_was_written_for_another_size_is_not(tmp_path: Path) -> None:
    """Tests a declaration that has a number where the user gives a size, and how to give it."""
    what = own([2, 7])
    with pytest.raises(FormatError, match=r"r0:0 \(axis 0 of \"r0\", declared for other sizes\)"):
        loaded(tmp_path, what, N=4)
    found = loaded(tmp_path, what, **{"N": 4, "r0:0": 4, "r0:1": 7})
    assert shapes(found)["y"] == (4, 7)


@pytest.mark.parametrize("stale", [True, False])
def test_behind_an_overridden_shape_nothing_is_believed(tmp_path: Path, stale: bool) -> None:
    """Tests a result that depends on data behind a declaration that is stale or not."""
    what = model(
        [node("Exp", "x", "a"), node("NonZero", "a", "n"), node("Cast", "n", "y", to=FLOAT)],
        [value("x", [4, 3])],
        [value("y", None)],
    )
    what.graph.value_info.append(value("n", [2, 5], onnx.TensorProto.INT64))
    what.graph.value_info.append(value("a", [1 if stale else 4, 3]))
    if not stale:
        assert shapes(loaded(tmp_path, what))["y"] == (2, 5)
        return
    with pytest.raises(FormatError, match=r"--dim n:1=8"):
        loaded(tmp_path, what)
    found = loaded(tmp_path, what, **{"n:1": 6})
    assert shapes(found)["y"] == (2, 6)
    assert found.notes[0].tensors == ("n", "a")


def test_inputs_that_were_not_changed_keep_what_they_lead_to(tmp_path: Path) -> None:
    """Tests that a stale shape behind one input casts no doubt on what another leads to."""
    what = own([5, 7])
    what.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5
    what.graph.input.append(value("other", [4]))
    what.graph.node.append(node("Exp", "other", "stale"))
    what.graph.output.append(value("stale", [1]))
    found = loaded(tmp_path, what)
    assert shapes(found)["y"] == (5, 7)
    assert found.notes[0].tensors == ("stale",)


def test_weights_that_are_inputs_have_the_shape_of_their_data(tmp_path: Path) -> None:
    """Tests a declaration of a weight that contradicts it."""
    what = model(
        [node("Add", "x w", "y")],
        [value("x", [4, 3]), value("w", [9, 9])],
        [value("y", None)],
        [weight("w", [1, 3])],
    )
    assert shapes(loaded(tmp_path, what))["y"] == (4, 3)


def test_bodies_take_their_shapes_from_outside(tmp_path: Path) -> None:
    """Tests loops and scans whose own declarations are stale."""
    body = graph(
        [node("Add", "s q", "t"), node("Identity", "t", "o")],
        [value("s", [9]), value("q", [9])],
        [value("t", [9]), value("o", [9])],
    )
    scan = model(
        [node("Scan", "x0 x", "f all", body=body, num_scan_inputs=1)],
        [value("x0", [3]), value("x", [7, 3])],
        [value("f", [9]), value("all", [7, 9])],
    )
    found = shapes(loaded(tmp_path, scan))
    assert (found["s"], found["f"], found["all"]) == ((3,), (3,), (7, 3))
    loop = looping([], [])
    loop.graph.node[1].attribute[0].g.input[2].CopyFrom(value("s", [9]))
    found = shapes(loaded(tmp_path, loop))
    assert (found["s"], found["z"]) == ((3,), (3,))


def test_stale_element_types_do_not_count(tmp_path: Path) -> None:
    """Tests a model that was converted to halves, but for what it declares between."""
    half = onnx.TensorProto.FLOAT16
    what = model(
        [node("Relu", "x", "a"), node("Exp", "a", "b"), node("Neg", "b", "y")],
        [value("x", [4, 3], half)],
        [value("y", [4, 3], half)],
    )
    what.graph.value_info.append(value("a", [4, 3]))
    found = loaded(tmp_path, what)
    assert found.graph is not None
    assert [tensor.bytes for tensor in found.graph.tensors] == [24] * 4
    (note,) = found.notes
    assert (note.code, note.tensors) == (Code.SHAPE_OVERRIDDEN, ("a",))


def test_stale_elements_of_a_sequence_do_not_count(tmp_path: Path) -> None:
    """Tests a sequence that is declared to hold tensors of another batch."""
    what = model(
        [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s at", "y")],
        [value("x", [4, 3])],
        [value("y", None)],
        [ints("at", 0)],
    )
    sequence = onnx.helper.make_tensor_sequence_value_info("s", FLOAT, [1, 3])
    what.graph.value_info.append(sequence)
    assert shapes(loaded(tmp_path, what))["y"] == (4, 3)


def test_early_conclusions_are_drawn_again(tmp_path: Path) -> None:
    """Tests a product that fits as long as the length of what it reads is not computed yet."""
    what = model(
        [
            node("Shape", "x", "s"),
            node("Squeeze", "s", "n"),
            node("Range", "zero n one", "r"),
            node("Cast", "r", "c", to=FLOAT),
            node("MatMul", "c w", "y"),
        ],
        [value("x", ["N"])],
        [value("y", None)],
        [ints("zero", 0), ints("one", 1), weight("w", [6, 5])],
    )
    assert shapes(loaded(tmp_path, what, N=6))["y"] == (5,)
    with pytest.raises(FormatError, match=r"\(MatMul\) cannot run at these sizes, it reads \[4\]"):
        loaded(tmp_path, what, N=4)


@pytest.mark.parametrize("kind", ["GroupNormalization", "MeanVarianceNormalization"])
def test_what_the_library_fails_to_expand(tmp_path: Path, kind: str) -> None:
    """Tests operators whose result is like their input, behind and before a stale shape."""
    more, attributes = (" w w", {"num_groups": 2}) if kind[0] == "G" else ("", {"axes": [0, 1]})
    what = model(
        [node("Exp", "x", "a"), node(kind, f"a{more}", "b", **attributes), node("Neg", "b", "y")],
        [value("x", [4, 6, 8])],
        [value("y", [1, 6, 8])],
        [weight("w", [2])],
    )
    what.graph.value_info.extend([value("a", [1, 6, 8]), value("b", [1, 6, 8])])
    found = loaded(tmp_path, what)
    assert shapes(found)["y"] == (4, 6, 8)
    assert sorted(found.notes[0].tensors) == ["a", "b", "y"]


def test_a_state_that_grows_is_noted(tmp_path: Path) -> None:
    """Tests that a loop whose rounds differ is planned like the first, and says so."""
    loop = looping([], [])
    body = loop.graph.node[1].attribute[0].g
    body.node[0].CopyFrom(node("Concat", "s k", "t", axis=0))
    with pytest.raises(FormatError, match="z"):
        loaded(tmp_path, loop)
    loop.graph.value_info.append(value("z", ["grown"]))
    found = loaded(tmp_path, loop, grown=30)
    assert shapes(found)["y"] == (30,)
    (note,) = found.notes
    assert (note.code, note.tensors) == (Code.DIM_ASSUMED, ("s", "t", "on"))


def test_a_name_that_is_used_twice(tmp_path: Path) -> None:
    """Tests an output whose axis has the name of an input's by mistake: the inference counts."""
    what = model([node("Concat", "x x", "y", axis=0)], [value("x", ["N"])], [value("y", ["N"])])
    found = loaded(tmp_path, what, N=4)
    assert shapes(found)["y"] == (8,)
    assert '"y" is [8], not [4]' in found.notes[0].text


def test_a_size_that_nothing_takes_is_refused(tmp_path: Path) -> None:
    """Tests a name that only an output has, whose size follows from inputs."""
    what = model([node("Exp", "x", "y")], [value("x", [3])], [value("y", ["N"])])
    assert shapes(loaded(tmp_path, what, N=3))["y"] == (3,)
    for key in ("N", "y:0"):
        with pytest.raises(MemplanError, match='"y" has the size 3; it cannot be 4'):
            loaded(tmp_path, what, **{key: 4})


# Operators that cannot run at these sizes: the operator, shapes of what it reads, weights.
UNFIT: list[tuple[Any, list[list[int]], list[Any]]] = [
    (node("Reshape", "i0 s", "y"), [[4, 6]], [ints("s", [1, 6])]),
    (node("Reshape", "i0 s", "y"), [[4, 6]], [ints("s", [-1, 7])]),
    (node("MatMul", "i0 i1", "y"), [[4, 6], [5, 6]], []),
    (node("Gemm", "i0 i1", "y"), [[4, 6], [5, 6]], []),
    (node("Gemm", "i0 i1 i2", "y"), [[4, 6], [6, 5], [3, 5]], []),
    (node("Add", "i0 i1", "y"), [[4, 6], [3, 6]], []),
    (node("Where", "c i0 i1", "y"), [[4, 6], [3, 6]], [weight("c", [1], onnx.TensorProto.BOOL)]),
    (node("Concat", "i0 i1", "y", axis=1), [[4, 6], [3, 6]], []),
    (node("Conv", "i0 i1", "y"), [[1, 3, 8, 8], [4, 2, 3, 3]], []),
    (node("ConvTranspose", "i0 i1", "y"), [[1, 3, 8, 8], [4, 2, 3, 3]], []),
    (node("LayerNormalization", "i0 i1", "y", axis=-2), [[2, 5, 6], [4, 6]], []),
    (node("BatchNormalization", "i0 i1 i1 i1 i1", "y"), [[2, 5, 6], [6]], []),
    (node("InstanceNormalization", "i0 i1 i1", "y"), [[2, 5, 6], [6]], []),
    (node("PRelu", "i0 i1", "y"), [[2, 5, 6], [5, 1, 1]], []),
    (node("Squeeze", "i0 s", "y"), [[4, 6]], [ints("s", [0])]),
    (node("Expand", "i0 s", "y"), [[4, 6]], [ints("s", [3, 6])]),
    (node("Split", "i0 s", "y z"), [[4, 6]], [ints("s", [1, 2])]),
    (node("ScatterND", "i0 s i1", "y"), [[4, 6], [3, 6]], [ints("s", [0])]),
    (node("Pad", "i0 s", "y", mode="reflect"), [[4, 3]], [ints("s", [0, 3, 0, 0])]),
    (node("Pad", "i0 s", "y", mode="reflect"), [[4, 3]], [ints("s", [0, 0, 4, 0])]),
    (node("Pad", "i0 s", "y", mode="reflect"), [[4, 1]], [ints("s", [0, 1, 0, 0])]),
    (node("Pad", "i0 s", "y", mode="reflect"), [[4, 3]], [ints("s", [0, -1, 0, 2])]),
    (node("Pad", "i0 s", "y", mode="edge"), [[4, 3]], [ints("s", [0, -3, 0, 4])]),
    (
        node("Pad", "i0 s - a", "y", mode="reflect"),
        [[4, 3]],
        [ints("s", [3, 0]), ints("a", [-1])],
    ),
    (
        node("GRU", "i0 i1 i2 - - i3", "y", hidden_size=5),
        [[7, 4, 3], [1, 15, 3], [1, 15, 5], [1, 1, 5]],
        [],
    ),
    (node("LSTM", "i0 i1 i2", "y", hidden_size=5), [[7, 4, 3], [1, 20, 2], [1, 20, 5]], []),
]


@pytest.mark.parametrize(
    ("operator", "read", "weights"), UNFIT, ids=lambda v: getattr(v, "op_type", "")
)
def test_operators_that_cannot_run(
    tmp_path: Path, operator: Any, read: list[list[int]], weights: list[Any]
) -> None:
    """Tests that the operator is named with what it reads, and that onnxruntime agrees."""
    inputs = [value(f"i{at}", shape) for at, shape in enumerate(read)]
    what = model([operator], inputs, [value("y", None)], weights)
    with pytest.raises(FormatError) as refused:
        loaded(tmp_path, what)
    sentence = refused.value.message
    assert sentence.startswith(f'operator "{operator.op_type}" ({operator.op_type}) cannot run')
    assert str(read[0]) in sentence
    assert len(sentence) < 300
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        runtime.InferenceSession(what.SerializeToString(), options).run(
            None, {f"i{at}": np.ones(shape, np.float32) for at, shape in enumerate(read)}
        )


@pytest.mark.parametrize(
    ("mode", "pads", "size"),
    [
        ("reflect", [0, 2, 3, 2], [7, 7]),
        ("reflect", [0, -1, 0, 1], [4, 3]),
        ("reflect", [0, -2, 0, 0], [4, 1]),
        ("edge", [0, 7, 0, 0], [4, 10]),
        ("constant", [9, 0, 0, 0], [13, 3]),
        ("wrap", [0, 7, 0, 0], [4, 10]),
    ],
)
def test_pads_that_run(tmp_path: Path, mode: str, pads: list[int], size: list[int]) -> None:
    """Tests that as much is reflected as lies behind the border, and that other modes add more."""
    runtime = pytest.importorskip("onnxruntime")
    pad = node("Pad", "i0 s", "y", mode=mode)
    what = model([pad], [value("i0", [4, 3])], [value("y", None)], [ints("s", pads)], opset=19)
    assert shapes(loaded(tmp_path, what))["y"] == tuple(size)
    session = runtime.InferenceSession(what.SerializeToString())
    (made,) = session.run(None, {"i0": np.ones((4, 3), np.float32)})
    assert made.shape == tuple(size)


def test_a_branch_that_cannot_run_is_left_out(tmp_path: Path) -> None:
    """Tests a branch with a reshape to a size that its input does not have."""
    branch = [node("Constant", "", "to", value=ints("v", [7])), node("Reshape", "a to", "r")]
    found = loaded(tmp_path, branching(branch, [node("Abs", "a", "r")]))
    assert [note.code for note in found.notes] == [Code.BRANCH_DROPPED]
    assert shapes(found)["y"] == (4,)


def test_another_batch_than_its_reshape_was_written_for(tmp_path: Path) -> None:
    """Tests a network of the wheel whose input alone is for four pictures."""
    what = onnx.load(light("light_resnet50"), load_external_data=False)
    (picture,) = (one for one in what.graph.input if one.name == "gpu_0/data_0")
    picture.type.tensor_type.shape.dim[0].dim_value = 4
    with pytest.raises(FormatError, match=r"\(Reshape\) cannot run.*\[4, 2048, 1, 1\]"):
        loaded(tmp_path, what)


def test_a_network_for_another_batch(tmp_path: Path) -> None:
    """Tests a network of the wheel without a reshape: four times the bytes, and a note."""
    what = onnx.load(light("light_squeezenet"), load_external_data=False)
    once = loaded(tmp_path, what).graph
    (picture,) = (one for one in what.graph.input if one.name == "data_0")
    picture.type.tensor_type.shape.dim[0].dim_value = 4
    found = loaded(tmp_path, what)
    assert once is not None
    assert found.graph is not None
    for before, after in zip(once.tensors, found.graph.tensors, strict=True):
        assert after.bytes == before.bytes * (1 if after.kind is Kind.CONSTANT else 4)
    (note,) = found.notes
    assert (note.code, note.tensors) == (Code.SHAPE_OVERRIDDEN, ("softmaxout_1",))

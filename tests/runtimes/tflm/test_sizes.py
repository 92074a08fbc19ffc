"""Tests of the sizes in TFLite models: at another batch, and against their own operators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tflite_models import Writer, constant, floats, models

from memplan.base.errors import FormatError, MemplanError
from memplan.programs.sources.options import Options
from memplan.runtimes.tflm import read as tflite
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo
from memplan.runtimes.tflm.read.model import load as load_model
from memplan.runtimes.tflm.read.shapes import infer_shape
from memplan.runtimes.tflm.read.sizes import resize

# Models of the wheels with a batch that is open, everywhere in one dimension at most.
OPEN = ("nmp.tflite", "embedding_model.tflite", "sine_float.tflite")


def on_disk(folder: Path, model: Model) -> Path:
    """Return the path of a model that has been written."""
    (folder / "model.tflite").write_bytes(Writer().write(model))
    return folder / "model.tflite"


def open_model(*steps: OperatorInfo, tensors: tuple[TensorInfo, ...]) -> Model:
    """Return a model of some operators; the last tensor is its result."""
    made = {index for step in steps for index in step.outputs}
    given = tuple(i for i, tensor in enumerate(tensors) if i not in made and not tensor.data)
    return Model("m", (SubGraph("", tensors, steps, given, (len(tensors) - 1,)),))


def test_sizes_follow_from_the_inputs(tmp_path: Path) -> None:
    """Tests that a shape which the file does not leave open follows all the same."""
    tensors = (floats("in", 1, 8, open_axes=(0,)), floats("mid", 1, 8), floats("out", 1, 8))
    steps = OperatorInfo("RELU", (0,), (1,)), OperatorInfo("TANH", (1,), (2,))
    path = on_disk(tmp_path, open_model(*steps, tensors=tensors))
    found = tflite.read(path, Options(dims={"batch": 5}))
    assert found.problem.size.tolist() == [160, 160, 160]
    assert found.notes == ()


def test_a_shape_that_is_baked_in(tmp_path: Path) -> None:
    """Tests that an operator which cannot run at a batch is named."""
    tensors = (
        floats("in", 1, 8, open_axes=(0,)),
        constant("to", "int32", 2),
        floats("out", 4, 2, open_axes=(0,)),
    )
    path = tmp_path / "model.tflite"
    model = open_model(OperatorInfo("RESHAPE", (0, 1), (2,)), tensors=tensors)
    for shape, size in (((4, 2), 2), ((-1, 16), 3)):
        values = {"to": np.array(shape, "<i4").tobytes()}
        path.write_bytes(Writer(values=values).write(model))
        with pytest.raises(FormatError, match=rf"operator #0 \(RESHAPE\) .*batch={size}"):
            tflite.read(path, Options(dims={"batch": size}))
    values = {"to": np.array((-1, 2), "<i4").tobytes()}
    path.write_bytes(Writer(values=values).write(model))
    assert tflite.read(path, Options(dims={"batch": 3})).problem.size.tolist() == [96, 96]


def test_what_is_not_computed_is_noted(tmp_path: Path) -> None:
    """Tests that sizes behind an operator that is not known here, nor to TFLM, make two notes."""
    tensors = (floats("in", 1, 8, open_axes=(0,)), floats("out", 1, 8))
    path = on_disk(tmp_path, open_model(OperatorInfo("TILE", (0,), (1,)), tensors=tensors))
    refused, assumed = tflite.read(path, Options(dims={"batch": 5})).notes
    assert (refused.code, assumed.code) == ("runtime-refuses", "dim-assumed")
    assert assumed.tensors == ("out",)
    assert "TILE" in assumed.text


@pytest.mark.parametrize(
    ("kind", "shapes", "words"),
    [
        ("ADD", ((1, 8), (1, 8), (1, 9)), r"makes \[1, 8\], but tensor .* as \[1, 9\]"),
        ("RELU", ((4, 8), (1, 8)), r"makes \[4, 8\]"),
        ("MUL", ((2, 8), (2, 7), (2, 8)), "cannot bring"),
    ],
)
def test_shapes_that_contradict_the_operators(
    tmp_path: Path, kind: str, shapes: tuple[tuple[int, ...], ...], words: str
) -> None:
    """Tests that a file whose shapes cannot be true is refused by the operator at fault."""
    tensors = tuple(floats(f"t{i}", *shape) for i, shape in enumerate(shapes))
    step = OperatorInfo(kind, tuple(range(len(shapes) - 1)), (len(shapes) - 1,))
    path = on_disk(tmp_path, open_model(step, tensors=tensors))
    with pytest.raises(FormatError, match=rf"operator #0 \({kind}\) .*{words}|{words}"):
        tflite.read(path, Options())
    # With an open dimension the stored sizes are placeholders: they are planned, with a note.
    opened = (replace(tensors[0], open_axes=(0,)), *tensors[1:])
    path = on_disk(tmp_path, open_model(step, tensors=opened))
    assert "cannot run" in tflite.read(path, Options()).notes[-1].text


@pytest.mark.parametrize(
    ("kind", "mode", "size", "pads", "words"),
    [
        ("MIRROR_PAD", 0, 3, (2, 2), ""),
        ("MIRROR_PAD", 0, 3, (3, 0), "cannot mirror 3 of the 3 elements"),
        ("MIRROR_PAD", 0, 3, (0, 3), "at most 2"),
        ("MIRROR_PAD", 0, 1, (0, 1), "at most 0"),
        ("MIRROR_PAD", 0, 1, (0, 0), ""),
        ("MIRROR_PAD", 1, 3, (3, 3), ""),
        ("MIRROR_PAD", 1, 3, (4, 0), "at most 3"),
        ("MIRROR_PAD", 0, 3, (-1, 0), "cannot add -1 elements"),
        ("PAD", 0, 3, (9, 9), ""),
        ("PAD", 0, 3, (-1, 0), "cannot add -1 elements"),
    ],
)
def test_pads_that_cannot_run(
    tmp_path: Path, kind: str, mode: int, size: int, pads: tuple[int, int], words: str
) -> None:
    """Tests what LiteRT refuses when it prepares a model; TFLM would read beyond the tensor."""
    tensors = (floats("x", size), constant("p", "int32", 1, 2), floats("y", size + sum(pads)))
    values = {"p": np.array(pads, "<i4").tobytes()}
    options = {"MIRROR_PAD": (77, {0: ("b", mode)}), "PAD": (22, {})}
    model = Model(
        "m", (SubGraph("main", tensors, (OperatorInfo(kind, (0, 1), (2,)),), (0,), (2,)),)
    )
    path = tmp_path / "m.tflite"
    path.write_bytes(Writer(options, values).write(model))
    if not words:
        assert tflite.read(path, Options()).problem.size.sum() > 0
        return
    with pytest.raises(FormatError, match=rf"operator #0 \({kind}\) .*{words}"):
        tflite.read(path, Options())


def test_results_of_custom_operators_are_unknown_to_what_reads_them(tmp_path: Path) -> None:
    """Tests operators behind a result without a stored shape: as stored, with a note, no fault."""
    tensors = (floats("x", 1, 16), floats("c"), floats("d"), floats("y", 1, 16), floats("z", 1, 16))
    steps = (
        OperatorInfo("Mine", (0,), (1,)),
        OperatorInfo("RELU", (1,), (2,)),
        OperatorInfo("TANH", (2,), (3,)),
        OperatorInfo("ADD", (3, 0), (4,)),
    )
    model = Model("m", (SubGraph("main", tensors, steps, (0,), (4,)),))
    found = tflite.read(on_disk(tmp_path, model), Options())
    sizes = dict(zip(found.problem.ids, found.problem.size.tolist(), strict=True))
    assert sizes == {"x": 64, "c": 16, "d": 16, "y": 64, "z": 64}
    (note,) = (each for each in found.notes if each.code == "not-planned")
    assert note.tensors == ("c", "d")
    wrong = (*tensors[:4], floats("z", 1, 17))  # what is stored for the others is held against them
    model = replace(model, subgraphs=(replace(model.subgraphs[0], tensors=wrong),))
    with pytest.raises(FormatError, match=r"operator #3 \(ADD\)"):
        tflite.read(on_disk(tmp_path, model), Options())
    opened = (floats("x", 1, 16, open_axes=(0,)), *tensors[1:])
    model = replace(model, subgraphs=(replace(model.subgraphs[0], tensors=opened),))
    sized = tflite.read(on_disk(tmp_path, model), Options(dims={"batch": 3}))
    sizes = dict(zip(sized.problem.ids, sized.problem.size.tolist(), strict=True))
    assert (sizes["x"], sizes["y"]) == (192, 64)


@pytest.mark.parametrize("shape", [(1,), (0,), (3, 5)])
def test_stored_shapes_of_custom_operators_are_guesses(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    """Tests that what reads them contradicts a guess, and not the file; others still do."""
    tensors = (floats("x", 1, 16), floats("c", *shape), floats("y", 1, 16), floats("z", 1, 16))
    steps = (
        OperatorInfo("Mine", (0,), (1,)),
        OperatorInfo("RELU", (1,), (2,)),
        OperatorInfo("TANH", (2,), (3,)),
    )
    model = Model("m", (SubGraph("main", tensors, steps, (0,), (3,)),))
    found = tflite.read(on_disk(tmp_path, model), Options())
    (note,) = (each for each in found.notes if each.code == "not-planned")
    assert note.tensors == ("c",)
    assert "only the kernels know them" in note.text
    wrong = (*tensors[:3], floats("z", 1, 17))
    model = replace(model, subgraphs=(replace(model.subgraphs[0], tensors=wrong),))
    with pytest.raises(FormatError, match=r"operator #2 \(TANH\)"):
        tflite.read(on_disk(tmp_path, model), Options())


def test_sizes_that_depend_on_data_contradict_nothing(tmp_path: Path) -> None:
    """Tests that what reads them is not held against the placeholder that a file stores."""
    tensors = (floats("x", 4, 4), floats("found", 1, 2), floats("y", 8, 2))
    steps = (OperatorInfo("WHERE", (0,), (1,)), OperatorInfo("RELU", (1,), (2,)))
    model = Model("m", (SubGraph("main", tensors, steps, (0,), (2,)),))
    notes = tflite.read(on_disk(tmp_path, model), Options()).notes
    assert "dim-assumed" in {note.code for note in notes}


def test_stored_shapes_of_real_models() -> None:
    """Tests that what operators make is what converters have stored, for every model there is."""
    computed = 0
    for path in models():
        model = load_model(path)
        for subgraph in model.subgraphs:
            for operator in subgraph.operators:
                given = [None if i < 0 else subgraph.tensors[i] for i in operator.inputs]
                if path.name == "melspectrogram.tflite" and operator.type == "CONV_2D":
                    with pytest.raises(ValueError, match="window of 512"):
                        infer_shape(operator, given)
                    continue
                shape = infer_shape(operator, given)
                if shape is not None:
                    assert shape == subgraph.tensors[operator.outputs[0]].shape
                    computed += 1
    assert computed > 100 or not models()


@pytest.mark.parametrize("batch", [2, 3, 7, 16])
@pytest.mark.parametrize("path", [p for p in models() if p.name in OPEN], ids=lambda p: p.name)
def test_sizes_are_those_of_litert(path: Path, batch: int) -> None:
    """Tests every tensor of a model at another batch against what LiteRT makes there."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    found = resize(load_model(path), {"batch": batch}).subgraphs[0].tensors
    plain = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runtime = litert.Interpreter(str(path), experimental_op_resolver_type=plain)
    for given in runtime.get_input_details():
        runtime.resize_tensor_input(given["index"], found[given["index"]].shape)
    runtime.allocate_tensors()
    for given in runtime.get_input_details():
        runtime.set_tensor(given["index"], np.zeros(given["shape"], given["dtype"]))
    runtime.invoke()
    for made in runtime.get_tensor_details():
        if made["index"] < len(found):
            assert tuple(made["shape"]) == found[made["index"]].shape, made["name"]


def test_a_name_that_is_almost_the_batch(tmp_path: Path) -> None:
    """Tests that an error on another name says what was meant."""
    path = tmp_path / "model.tflite"
    tensors = (floats("in", 1, 8, open_axes=(0,)), floats("out", 1, 8, open_axes=(0,)))
    model = open_model(OperatorInfo("RELU", (0,), (1,)), tensors=tensors)
    path.write_bytes(Writer().write(model))
    with pytest.raises(MemplanError, match=r'did you mean "batch"\?'):
        tflite.read(path, Options(dims={"bach": 4}))

"""Tests of ONNX sizes that depend on data: none is planned without a question or a note."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx_models import BOOL, FLOAT, INT64, graph, ints, loaded, model, node, on_disk, value, weight

from memplan.base.errors import FormatError, MemplanError
from memplan.base.notes import Code
from memplan.cli import main
from memplan.programs.sources.loaded import Loaded
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.read import read

Feeds = dict[str, Any]


def shapes(found: Loaded) -> dict[str, tuple[int, ...] | None]:
    """Return the shapes of all tensors."""
    assert found.graph is not None
    return {tensor.name: tensor.shape for tensor in found.graph.tensors}


def assumed(found: Loaded) -> list[str]:
    """Return the sentences on sizes that were not given."""
    return [note.text for note in found.notes if note.code is Code.DIM_ASSUMED]


def sliced(declared: Sequence[int] | None) -> Any:
    """Return rows of a picture from an input on, which the file may declare."""
    what = model(
        [node("Slice", "x first end axis", "s"), node("Relu", "s", "r"), node("Neg", "r", "y")],
        [value("x", [100, 64]), value("first", [1], INT64)],
        [value("y", declared)],
        [ints("end", [2**63 - 1]), ints("axis", [0])],
    )
    what.graph.value_info.extend(value(name, declared) for name in "sr" if declared)
    return what


def gathered() -> Any:
    """Return the elements of a picture that are not zero; its rows have a name of inference."""
    nodes = [
        node("Relu", "x", "r"),
        node("NonZero", "r", "nz"),
        node("Transpose", "nz", "t", perm=[1, 0]),
        node("GatherND", "r t", "y"),
    ]
    return model(nodes, [value("x", ["unk__0", 16])], [value("y", ["k"])])


def best(axis: int = -1) -> Any:
    """Return the largest elements of each row, as many as an input says."""
    nodes = [node("TopK", "x k", "v i", axis=axis), node("Relu", "v", "y")]
    return model(nodes, [value("x", [4, 100]), value("k", [1], INT64)], [value("y", [4, "k"])])


def rounds(goes_on: str, trips: int | None = 5) -> Any:
    """Return a loop that gathers a row in each round; `goes_on` makes its condition."""
    body = graph(
        [node(goes_on, "c", "on"), node("Relu", "x", "s")],
        [value("i", [], INT64), value("c", [], BOOL)],
        [value("on", [], BOOL), value("s", [4])],
    )
    truth = onnx.helper.make_tensor("go", BOOL, [], [True])
    inputs = [value("x", [4])] + [value("m", [], INT64)] * (trips is None)
    weights = [truth] + ([] if trips is None else [ints("m", trips)])
    return model([node("Loop", "m go", "y", body=body)], inputs, [value("y", ["N", 4])], weights)


def branches() -> Any:
    """Return an If of which one branch makes nothing."""
    both = {
        "then_branch": graph([node("Relu", "boxes", "u")], (), [value("u", [100, 4])]),
        "else_branch": graph([node("Slice", "boxes z z z", "v")], (), [value("v", [0, 4])]),
    }
    nodes = [node("If", "any", "w", **both), node("Neg", "w", "y")]
    inputs = [value("boxes", [100, 4]), value("any", [], BOOL)]
    return model(nodes, inputs, [value("y", ["K", 4])], [ints("z", [0])])


def test_a_declared_size_that_data_can_change_is_noted(tmp_path: Path) -> None:
    """Tests the exporter's example behind a Slice: planned with a note, unless it is given."""
    found = loaded(tmp_path, sliced([10, 64]))
    assert shapes(found)["y"] == (10, 64)
    (text,) = assumed(found)
    assert "only the file declares" in text
    assert "s:0 = 10; --dim s:0=N plans another" in text
    given = loaded(tmp_path, sliced([10, 64]), **{"s:0": 90})
    assert (shapes(given)["y"], assumed(given)) == ((90, 64), [])
    with pytest.raises(FormatError, match=r'open: s:0 \(axis 0 of "s"\); give'):
        loaded(tmp_path, sliced(None))


def test_names_that_the_inference_makes_up_are_not_asked_for(tmp_path: Path) -> None:
    """Tests a name that is in the file too, given and used up, and both ways to the other size."""
    with pytest.raises(FormatError, match=r"open: k \(nz:1\); give each a value, like --dim k=8"):
        loaded(tmp_path, gathered(), unk__0=4)
    for dims in ({"nz:1": 30}, {"k": 30}):
        assert shapes(loaded(tmp_path, gathered(), unk__0=4, **dims))["y"] == (30,)
    nameless = gathered()
    del nameless.graph.output[0].type.tensor_type.shape.dim[:]
    nameless.graph.output[0].type.tensor_type.shape.dim.add(dim_param="unk__3")
    nameless.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    with pytest.raises(FormatError, match=r"open: unk__3 \(nz:1\); give"):
        loaded(tmp_path, nameless, n=4)
    assert shapes(loaded(tmp_path, nameless, n=4, unk__3=7))["t"] == (7, 2)


def test_one_size_is_asked_for_once(tmp_path: Path) -> None:
    """Tests values and indices of TopK, and the four results of Unique."""
    with pytest.raises(FormatError, match=r"open: k \(v:1\); give each a value, like --dim k=8"):
        loaded(tmp_path, best())
    for dims in ({"k": 3}, {"v:1": 3}):
        found = shapes(loaded(tmp_path, best(), **dims))
        assert (found["v"], found["i"], found["y"]) == ((4, 3), (4, 3), (4, 3))
    what = model([node("Unique", "x", "y a b c")], [value("x", [6])], [value("y", None)])
    with pytest.raises(FormatError, match=r'open: y:0 \(axis 0 of "y"\); give'):
        loaded(tmp_path, what)
    found = shapes(loaded(tmp_path, what, **{"y:0": 4}))
    assert (found["y"], found["a"], found["b"], found["c"]) == ((4,), (4,), (6,), (4,))


def test_sizes_that_are_one_number_are_asked_for_once(tmp_path: Path) -> None:
    """Tests operators that read one number, or count one mask: a question for each of the two."""
    nodes = [
        node("TopK", "x k", "v i"),
        node("TopK", "z k", "w j", axis=0),
        node("ConstantOfShape", "k", "c"),
        node("NonZero", "x", "n"),
        node("NonZero", "x", "m"),
    ]
    inputs = [value("x", [4, 9]), value("z", [9]), value("k", [1], INT64)]
    what = model(nodes, inputs, [onnx.ValueInfoProto(name=name) for name in "vwcnm"])
    with pytest.raises(FormatError, match=r'open: v:1 \(axis 1 of "v"\), n:1 \(axis 1 of "n"\);'):
        loaded(tmp_path, what)
    found = shapes(loaded(tmp_path, what, **{"v:1": 3, "n:1": 5}))
    assert [found[name] for name in "vwcnm"] == [(4, 3), (3,), (3,), (2, 5), (2, 5)]


def test_a_shape_that_is_missing_is_asked_for_by_axes(tmp_path: Path) -> None:
    """Tests an input without a shape: the advice is what works."""
    what = model(
        [node("Relu", "x", "a"), node("Tanh", "a", "y")], [value("x", None)], [value("y", None)]
    )
    with pytest.raises(FormatError) as refused:
        loaded(tmp_path, what)
    assert "give a size for each axis, like --dim x:0=2 --dim x:1=16" in str(refused.value)
    dims = dict(re.findall(r"--dim (x:\d)=(\d+)", str(refused.value)))
    assert shapes(loaded(tmp_path, what, **{key: int(size) for key, size in dims.items()}))[
        "y"
    ] == (2, 16)


def test_a_loop_is_planned_for_all_its_rounds(tmp_path: Path) -> None:
    """Tests the number of rounds as a bound, where the condition can end it, or as the size."""
    early = loaded(tmp_path, rounds("Not"))
    assert shapes(early)["y"] == (5, 4)
    (text,) = assumed(early)
    assert "at the most that they can be: y:0 = 5; --dim y:0=N plans another" in text
    always = loaded(tmp_path, rounds("Identity"))
    assert (shapes(always)["y"], assumed(always)) == ((5, 4), [])
    assert shapes(loaded(tmp_path, rounds("Not"), N=3))["y"] == (3, 4)
    with pytest.raises(FormatError, match=r'open: N \(axis 0 of "y"\)'):
        loaded(tmp_path, rounds("Identity", None))


def test_a_branch_that_makes_nothing_is_planned(tmp_path: Path) -> None:
    """Tests that the larger branch counts, with a note, and that nothing takes no memory."""
    found = loaded(tmp_path, branches())
    assert (shapes(found)["w"], shapes(found)["v"]) == ((100, 4), (0, 4))
    assert ["w:0 = 100" in text for text in assumed(found)] == [True]
    for rows in (100, 7):
        given = loaded(tmp_path, branches(), **{"w:0": rows})
        assert (shapes(given)["y"], assumed(given)) == ((rows, 4), [])


@pytest.mark.parametrize("extra", [{}, {"onesided": 1}, {"onesided": 0}])
def test_one_side_of_a_fourier_transform(extra: dict[str, int], tmp_path: Path) -> None:
    """Tests STFT, whose default the library takes for another, against onnxruntime."""
    what = model(
        [node("STFT", "x step win", "y", **extra)],
        [value("x", [1, 1600, 1])],
        [value("y", [1, "f", 65 if extra.get("onesided", 1) else 128, 2])],
        [ints("step", 64), onnx.numpy_helper.from_array(np.ones(128, np.float32), "win")],
    )
    found = loaded(tmp_path, what)
    assert found.notes == ()
    made = run(what, {"x": np.zeros((1, 1600, 1), np.float32)})
    assert shapes(found)["y"] == made["y"]


def run(what: Any, feeds: Feeds) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all that the operators of a model make in onnxruntime."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    every = onnx.ModelProto.FromString(what.SerializeToString())
    names = [name for each in every.graph.node for name in each.output if name]
    there = {each.name for each in every.graph.output}
    every.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in there)
    session = runtime.InferenceSession(every.SerializeToString(), options)
    return {name: array.shape for name, array in zip(names, session.run(names, feeds), strict=True)}


PICTURE = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
BOXES = np.array([[[at, at, at + 1, at + 1] for at in range(6)]], np.float32)
# By name: operators that read the picture x and numbers n, weights, and n in two runs.
FAMILIES: dict[str, tuple[list[Any], list[Any], list[Any]]] = {
    "Slice": ([node("Slice", "x n e a", "s")], [ints("e", [4]), ints("a", [1])], [[0], [2]]),
    "Slice without axes": ([node("Slice", "x n e", "s")], [ints("e", [4, 4])], [[0, 0], [3, 2]]),
    "TopK": ([node("TopK", "x n", "s i", axis=0)], [], [[1], [3]]),
    "Expand": ([node("Expand", "x n", "s")], [], [[1, 1, 1], [3, 4, 6]]),
    "Tile": ([node("Tile", "x n", "s")], [], [[1, 2], [3, 1]]),
    "Reshape": ([node("Reshape", "x n", "s")], [], [[2, 12], [-1, 3]]),
    "Pad": ([node("Pad", "x n", "s")], [], [[0, 0, 1, 1], [2, 2, 0, 3]]),
    "Pad of axes": ([node("Pad", "x n - a", "s")], [ints("a", [1])], [[0, 1], [2, 2]]),
    "ConstantOfShape": ([node("ConstantOfShape", "n", "s")], [], [[2, 3], [5, 7]]),
    "Range": (
        [node("Squeeze", "n", "m"), node("Range", "o m p", "s")],
        [ints("o", 0), ints("p", 1)],
        [[3], [9]],
    ),
    "Resize": ([node("Resize", "x - - n", "s", mode="nearest")], [], [[4, 6], [8, 3]]),
    "OneHot": ([node("OneHot", "k n v", "s")], [ints("k", [0, 1]), weight("v", [2])], [[3], [5]]),
    "Split": ([node("Split", "x n", "s t", axis=1)], [], [[2, 4], [5, 1]]),
    "Unsqueeze": ([node("Unsqueeze", "x n", "s")], [], [[0], [2]]),
    "Squeeze": (
        [node("Unsqueeze", "x a", "u"), node("Squeeze", "u n", "s")],
        [ints("a", [0])],
        [[0]],
    ),
    "Reduce": ([node("ReduceSum", "x n", "s")], [], [[0], [1]]),
    "Reduce, axes gone": ([node("ReduceMax", "x n", "s", keepdims=0)], [], [[0], [1]]),
    "CenterCropPad": ([node("CenterCropPad", "x n", "s", axes=[1])], [], [[3], [9]]),
    "HannWindow": ([node("Squeeze", "n", "m"), node("HannWindow", "m", "s")], [], [[4], [9]]),
    "lengths": (
        [node("ReduceMax", "n", "m", keepdims=0), node("Range", "o m p", "s")],
        [ints("o", 0), ints("p", 1)],
        [[2, 5, 3], [1, 1, 8]],
    ),
    "size of a size": (
        [
            node("Slice", "x n e a", "p"),
            node("Shape", "p", "q"),
            node("Mul", "q two", "r"),
            node("ConstantOfShape", "r", "s"),
        ],
        [ints("e", [9]), ints("a", [1]), ints("two", [2])],
        [[0], [4]],
    ),
    "NonZero": (
        [node("Cast", "n", "c", to=FLOAT), node("Greater", "x c", "g"), node("NonZero", "g", "s")],
        [],
        [[0], [-2]],
    ),
    "Compress": (
        [node("Cast", "n", "c", to=BOOL), node("Compress", "x c", "s", axis=0)],
        [],
        [[1, 0, 1, 1], [0, 0, 1, 0]],
    ),
    "NonMaxSuppression": (
        [
            node("NonMaxSuppression", "boxes scores n t", "s"),
            node("Gather", "s two", "rows", axis=1),
            node("Gather", "boxes rows", "z", axis=1),
        ],
        [
            onnx.numpy_helper.from_array(np.array([.5], np.float32), "t"),
            onnx.numpy_helper.from_array(BOXES, "boxes"),
            onnx.numpy_helper.from_array(np.ones((1, 2, 6), np.float32), "scores"),
            ints("two", 2),
        ],
        [[1], [4]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("declared", ["nothing", "an example", "names"])
def test_no_size_is_wrong_without_a_note(name: str, declared: str, tmp_path: Path) -> None:
    """Tests families of operators in two runs each: what is planned, or asked for and given.

    A size that is another one in onnxruntime has a note, and what is asked for leads to its sizes.
    """
    nodes, weights, runs = FAMILIES[name]
    inputs = [value("x", [4, 6]), value("n", [len(runs[0])], INT64)]
    last = nodes[-1].output[0]
    what = model(
        [*nodes, node("Identity", last, "y")], inputs, [onnx.ValueInfoProto(name="y")], weights, 19
    )
    feeds = [{"x": PICTURE, "n": np.array(each)} for each in runs]
    made = [run(what, each) for each in feeds]
    for key, shape in made[0].items():
        if declared != "nothing":
            names = (
                shape if declared == "an example" else [f"{key}_{at}" for at in range(len(shape))]
            )
            what.graph.value_info.append(value(key, names, 0))
    path = on_disk(tmp_path, what)
    for true in made:
        dims: dict[str, int] = {}
        for _ in range(9):
            try:
                found = read(path, Options(dims=dims))
                break
            except MemplanError as error:
                dims |= answer(str(error), true)
        planned = shapes(found)
        wrong = [key for key, shape in true.items() if planned.get(key, shape) != shape]
        assert not wrong or ((declared == "an example" or not dims) and assumed(found)), wrong
        if dims:
            assert not wrong
        assert any(each != made[0] for each in made[1:]) or len(made) == 1 or name == "Squeeze"


MASK = onnx.numpy_helper.from_array(np.array([1, 0, 1, 1], np.float32), "m")
PICKS = onnx.numpy_helper.from_array(np.array([True, False, True]), "p")
KNOWN: dict[str, tuple[list[Any], list[Any]]] = {
    "NonZero": ([node("NonZero", "m", "s"), node("Cast", "s", "c", to=FLOAT)], [MASK]),
    "NonZero of many": (
        [node("ConstantOfShape", "n", "m"), node("NonZero", "m", "s")],
        [ints("n", [3, 5])],
    ),
    "NonZero of what is computed": (
        [node("Greater", "m half", "g"), node("NonZero", "g", "s")],
        [MASK, onnx.numpy_helper.from_array(np.array(.5, np.float32), "half")],
    ),
    "Compress": ([node("Compress", "x p", "s", axis=0)], [PICKS]),
    "Compress along the last axis": ([node("Compress", "x p", "s", axis=-1)], [PICKS]),
    "Compress of all elements": ([node("Compress", "x p", "s")], [PICKS]),
    "Unique": ([node("Unique", "m", "s t u v")], [MASK]),
    "Unique alone": ([node("Unique", "m", "s", sorted=0)], [MASK]),
    "NonMaxSuppression": (
        [node("NonMaxSuppression", "boxes scores n t", "s")],
        [
            onnx.numpy_helper.from_array(np.array([.5], np.float32), "t"),
            onnx.numpy_helper.from_array(BOXES, "boxes"),
            onnx.numpy_helper.from_array(np.ones((1, 2, 6), np.float32), "scores"),
            ints("n", 100),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_sizes_that_follow_from_constants_are_not_asked_for(name: str, tmp_path: Path) -> None:
    """Tests that what is planned is what onnxruntime makes, or a bound on it with a note."""
    nodes, weights = KNOWN[name]
    what = model(
        [*nodes, node("Cast", "s", "y", to=FLOAT)],
        [value("x", [4, 6])],
        [onnx.ValueInfoProto(name="y")],
        weights,
        19,
    )
    found = read(on_disk(tmp_path, what), Options())
    true, planned = run(what, {"x": PICTURE}), shapes(found)
    if name == "NonMaxSuppression":  # the boxes may overlap
        assert planned["s"] == (2 * 6, 3)
        assert len(assumed(found)) == 1
        assert true["s"][0] <= 12
        return
    assert planned["y"] == true["y"]
    assert assumed(found) == []


def answer(question: str, true: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the sizes that a question asks for, as they are in a run."""
    _, _, asked = question.partition("open: ")
    places = re.findall(r'([\w:]+) \(axis (\d+) of "(\w+)"', asked)
    places += [(key, at, name) for key, name, at in re.findall(r"(\w+) \((\w+):(\d+)\)", asked)]
    found = {key: true[name][int(at)] for key, at, name in places}
    whole = re.search(r'tensor "(\w+)".* give a size for each axis', question)
    if whole:
        found |= {f"{whole[1]}:{at}": size for at, size in enumerate(true[whole[1]])}
    assert found, question
    return found


@pytest.mark.slow
def test_a_measured_size_above_the_planned_one_is_an_alarm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that onnxruntime's figure raises a note, and that --strict then writes no plan."""
    pytest.importorskip("onnxruntime")
    path, plan = on_disk(tmp_path, sliced([10, 64])), tmp_path / "plan.json"
    assert main(["plan", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "operator Slice makes 25600 bytes, 2560 planned" in shown
    for command in ("plan", "inspect"):
        assert main([command, str(path), "--dim", "s:0=10", "--strict"]) == 2
        assert "[measured-above]" in capsys.readouterr().err
    assert main(["plan", str(path), "--dim", "s:0=10", "--strict", "-o", str(plan)]) == 2
    assert not plan.exists()
    assert main(["plan", str(path), "--dim", "s:0=100", "--strict", "-o", str(plan)]) == 2
    assert "shape-overridden" in capsys.readouterr().err
    assert main(["plan", str(on_disk(tmp_path, sliced(None))), "--dim", "s:0=100", "--strict"]) == 0

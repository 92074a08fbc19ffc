"""Tests of hundreds of stale models: every size against what onnxruntime really makes.

`MEMPLAN_STALE=3 pytest tests/runtimes/onnx/test_stale_family.py` takes three times as many.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx
from onnx_models import WHEELS, in_wheel, light, model, node, value
from stale_onnx import Tally, edited, plan, run, spoiled, with_shapes
from stale_random import Builder

pytestmark = pytest.mark.slow

MORE = int(os.environ.get("MEMPLAN_STALE", "1"))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Let the exporter write nothing."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def symbolic(model: Any, axes: dict[int, str]) -> Any:
    """Return a model whose first input has names for sizes; what is declared behind it stays."""
    found = onnx.ModelProto.FromString(model.SerializeToString())
    for axis, name in axes.items():
        found.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    return found


def test_random_models() -> None:
    """Tests random operators, re-batched and re-sized at the inputs, by name, and spoiled."""
    tally = Tally()
    for seed in range(50 * MORE):
        rng = random.Random(seed)
        what = with_shapes(Builder(rng).model(rng.randint(2, 14)))
        tally.judge(f"{seed}", what, {})
        tally.judge(f"{seed} spoiled", spoiled(what, rng), {})
        for axes in ({0: "N"}, {2: "H", 3: "W"}, {0: "N", 2: "H", 3: "W"}):
            dims = {name: rng.randint(1 if name == "N" else 3, 14) for name in axes.values()}
            sizes = {("x", axis): dims[name] for axis, name in axes.items()}
            tally.judge(f"{seed} edited", edited(what, sizes, outputs=seed % 2 == 0), {})
            tally.judge(f"{seed} named", symbolic(what, axes), dims)
    assert tally.cases == 400 * MORE
    assert not tally.sentences, tally.sentences
    assert tally.verdicts["same"] > 200 * MORE
    assert tally.overridden > 150 * MORE


def test_sizes_that_depend_on_data() -> None:
    """Tests that a count that was written down for another batch is asked for, and taken."""
    nodes = [
        node("Neg", "x", "a"),
        node("NonZero", "a", "n"),
        node("Transpose", "n", "t"),
        node("GatherND", "a t", "g"),
        node("Exp", "g", "y"),
    ]
    base = model(nodes, [value("x", [2, 7])], [value("y", None)])
    count = sizes_of(base, {})["n"] // 16
    base.graph.value_info.append(value("n", [2, count], onnx.TensorProto.INT64))
    base = with_shapes(base)
    tally = Tally()
    tally.judge("as it was", base, {})
    for batch in range(3, 23):
        for what, dims in (
            (edited(base, {("x", 0): batch}), {}),
            (symbolic(base, {0: "N"}), {"N": batch}),
        ):
            sentence = plan(what, dims)
            assert isinstance(sentence, str)
            assert 'n:1 (axis 1 of "n", declared for other sizes)' in sentence
            real = sizes_of(what, dims)["n"] // 16
            tally.judge("given", what, dims | {"n:1": real})
    assert tally.verdicts == {"same": 41}


def sizes_of(what: Any, dims: dict[str, int]) -> dict[str, int]:
    """Return what the runtime makes of a model that runs."""
    found = run(what, dims, {})
    assert not isinstance(found, str)
    return found


def open_names(model: Any) -> set[str]:
    """Return the names of the sizes that the inputs leave open; exporters may bake some in."""
    types = [value.type.tensor_type for value in model.graph.input]
    return {dim.dim_param for one in types for dim in one.shape.dim if dim.dim_param}


# Those that are exported in every run of the tests; there are more recurrent ones.
FEW = {
    "GRU-first",
    "LSTM-both-first",
    "LSTM",
    "RNN-first-state",
    "attention",
    "attention-causal",
    "detector-nearest",
    "classifier",
    "classifier-baked",
    "patches",
}


@cache
def _networks() -> dict[str, Any]:
    stale_networks = pytest.importorskip("stale_networks")
    return {one.name: one for one in stale_networks.networks()}


@pytest.mark.deep
@pytest.mark.parametrize("old", [False, True], ids=["today's", "before"])
def test_pytorch_exports(old: bool) -> None:
    """Tests recurrent, attention and vision networks, exported with dynamic axes and without."""
    pytest.importorskip("torch")
    if not old:
        pytest.importorskip("onnxscript")
    from stale_networks import exported

    tally = Tally()
    rng = random.Random(1)
    for name, network in _networks().items():
        if MORE == 1 and name not in FEW:
            continue
        axes = {axis: each for one in network.axes for axis, each in one.items()}
        if axes:
            dynamic = exported(network, old=old, fixed=False)
            for _ in range(8 * MORE):
                sizes = network.sizes(rng)
                dims = {each: sizes[each] for each in open_names(dynamic) & sizes.keys()}
                tally.judge(f"{name} dynamic", dynamic, dims)
        fixed = with_shapes(exported(network, old=old, fixed=True))
        for _ in range(3 * MORE):
            sizes = network.sizes(rng)
            edits = {("x0", axis): sizes[each] for axis, each in axes.items()}
            edits = edits or {("x0", 0): rng.randint(2, 5)}
            tally.judge(f"{name} edited", edited(fixed, edits), {})
            tally.judge(f"{name} its inputs edited", edited(fixed, edits, outputs=False), {})
            tally.judge(f"{name} spoiled", spoiled(fixed, rng), {})
    assert not tally.sentences, tally.sentences
    assert tally.verdicts["same"] >= 80 * MORE
    assert tally.overridden >= 30 * MORE


SMALL = ("light_squeezenet", "light_shufflenet", "light_resnet50", "light_inception_v1")


@pytest.mark.parametrize("name", SMALL)
def test_networks_of_the_onnx_wheel(name: str) -> None:
    """Tests other batches and pictures: the runtime runs them, or both refuse."""
    tally = Tally()
    rng = random.Random(name)
    what = with_shapes(onnx.load(light(name), load_external_data=False))
    weights = {one.name for one in what.graph.initializer}
    (picture,) = (one.name for one in what.graph.input if one.name not in weights)
    for axes in ((0,), (2, 3)) * MORE:
        sizes = {(picture, axis): 2 if axis == 0 else 32 * rng.randint(2, 6) for axis in axes}
        tally.judge(name, edited(what, sizes), {})
    tally.judge(name, spoiled(what, rng), {})
    assert not tally.sentences, tally.sentences


@pytest.mark.parametrize(("package", "file", "dims"), WHEELS, ids=[one[1] for one in WHEELS])
def test_models_of_other_wheels(package: str, file: str, dims: dict[str, int]) -> None:
    """Tests other batches, with what is declared as it is and as a script wrote it down."""
    what = onnx.load(in_wheel(package, file))
    tally = Tally()
    rng = random.Random(file)
    rate = {"sr": 16000}
    tally.judge(file, what, dims, rate)
    tally.judge(file, spoiled(what, rng), dims, rate)
    for name, size in list(dims.items())[:1]:
        tally.judge(file, what, dims | {name: size + 1}, rate)
    assert not tally.sentences, tally.sentences
    assert tally.verdicts["same"] >= 2

"""Tests what is written into TFLite files, byte by byte: offsets, and unpacked weights."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tflite_models import Writer, chain
from tflm import PACKED, require_tflm, small, tree

from memplan.base.errors import FormatError
from memplan.runtimes.tflm.read.flatbuffer import root
from memplan.runtimes.tflm.read.graph import find_folded
from memplan.runtimes.tflm.read.model import Model, TensorInfo, load, parse
from memplan.runtimes.tflm.write import metadata
from memplan.runtimes.tflm.write.folding import unpack
from memplan.runtimes.tflm.write.metadata import with_offsets

pytestmark = pytest.mark.slow


def test_a_value_that_is_the_plan_s_buffer_too_is_left_alone() -> None:
    """Tests that a plan which the file uses for something else is not written over."""
    old = (-1, 64, -1)
    words = np.array([1, 1, 3, *old], "<i4").tobytes()
    bare = chain("RELU").subgraphs[0]
    tensors = (*bare.tensors[:2], TensorInfo("w", "int32", (6,), data=24))
    model = Model("m", (replace(bare, tensors=tensors),), old)
    data = bytearray(Writer(values={"w": words}).write(model))
    entry = metadata._find_plan_entries(root(bytes(data), "m", b"TFL3"))[0]
    struct.pack_into("<I", data, entry.fields()[1], 1)  # of the buffers: empty, w, the plan
    assert parse(bytes(data), "m").offsets == old

    written = with_offsets(bytes(data), "m", (0, 64, -1))
    assert parse(written, "m").offsets == (0, 64, -1)
    value = list(root(written, "m", b"TFL3").tables(4))[1].raw(0)
    assert value.tobytes() == words


def test_of_two_plans_in_a_file_none_is_left(tmp_path: Path) -> None:
    """Tests that an entry of another size, or one of several, is not in the way of the new one."""
    data = small(tmp_path).read_bytes()
    once = with_offsets(data, "m", (0, 64, 0, 64))
    front = metadata._write_in_front(once, "m", np.array([1, 1, 4, 64, 0, 64, 0], "<i4").tobytes())
    assert len(metadata._find_plan_entries(root(once, "m", b"TFL3"))) == 1
    assert front.endswith(once)
    assert len(metadata._find_plan_entries(root(front, "m", b"TFL3"))) == 1
    assert parse(front, "m").offsets == (64, 0, 64, 0)


@pytest.mark.parametrize("planned", [False, True])
def test_a_file_with_wrong_bytes_is_an_error_or_reads_back(tmp_path: Path, planned: bool) -> None:
    """Tests that what is copied without being understood leads nowhere else."""
    data = small(tmp_path).read_bytes()
    if planned:
        data = with_offsets(data, "m", (0, 64, 0, 64))
    rng, written = np.random.default_rng(5), 0
    for _ in range(1500):
        wrong = bytearray(data)
        for at in rng.integers(0, len(data), 2):
            wrong[at] = rng.integers(0, 256)
        try:
            tensors = parse(bytes(wrong), "m").first[-1]
            found = with_offsets(bytes(wrong), "m", [16 * i for i in range(tensors)])
        except FormatError:
            continue
        assert parse(found, "m").offsets == tuple(16 * i for i in range(tensors))
        written += 1
    assert written > 0


@pytest.mark.parametrize("path", PACKED or [None], ids=lambda p: p.name if p else "none")
def test_weights_are_unpacked_to_what_they_are(path: Path | None) -> None:
    """Tests float16 against NumPy, and sparse weights against a walk element by element."""
    path = require_tflm(path)
    before, steps = tree(path.read_bytes()), find_folded(load(path))
    after = tree(unpack(path.read_bytes(), load(path)))
    checked = 0
    for number, indices in steps.items():
        old, new = before.subgraphs[number], after.subgraphs[number]
        maker = {int(old.operators[i].outputs[0]): int(old.operators[i].inputs[0]) for i in indices}
        for index in {int(i) for o in new.operators for i in o.inputs} & maker.keys():
            source = maker[index]
            source = maker.get(source, source)
            stored = np.asarray(before.buffers[old.tensors[source].buffer].data)
            stored = stored.view(("<f4", "<f2")[old.tensors[source].type])
            if old.tensors[source].sparsity is not None:
                stored = walked(stored, old.tensors[source])
            value = np.asarray(after.buffers[new.tensors[index].buffer].data).view("<f4")
            assert np.array_equal(value, stored.astype("<f4"))
            checked += 1
    assert checked > 0
    assert len(after.subgraphs[0].tensors) == len(before.subgraphs[0].tensors)


def walked(values: np.ndarray, tensor: object) -> np.ndarray:
    """Return the elements of a sparse tensor, one after the other."""
    sparsity, shape = tensor.sparsity, [int(size) for size in tensor.shape]
    order = [int(level) for level in sparsity.traversalOrder]
    blocked = [] if sparsity.blockMap is None else [int(axis) for axis in sparsity.blockMap]
    dense = np.zeros(shape, values.dtype)
    stored = iter(values)

    def visit(level: int, place: int, at: dict[int, int]) -> None:
        if level == len(order):
            index = [at[axis] for axis in range(len(shape))]
            for block, axis in enumerate(blocked):
                width = sparsity.dimMetadata[order.index(len(shape) + block)].denseSize
                index[axis] = index[axis] * width + at[len(shape) + block]
            dense[tuple(index)] = next(stored)
            return
        entry = sparsity.dimMetadata[level]
        if entry.format == 0:
            for i in range(entry.denseSize):
                visit(level + 1, place * entry.denseSize + i, {**at, order[level]: i})
        else:
            ends, listed = entry.arraySegments.values, entry.arrayIndices.values
            for i in range(int(ends[place]), int(ends[place + 1])):
                visit(level + 1, i, {**at, order[level]: int(listed[i])})

    visit(0, 0, {})
    return dense.reshape(-1)

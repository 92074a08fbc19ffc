"""Models whose declared shapes are stale, and what onnxruntime makes of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from memplan.base.errors import MemplanError
from memplan.base.notes import Note
from memplan.programs.graph import Graph
from memplan.runtimes.onnx.read import _convert, _parse
from memplan.runtimes.onnx.read.read_weights import strip_weights

_TYPES = {"float": np.float32, "double": np.float64}


@dataclass
class Tally:
    """What came of many cases."""

    verdicts: Counter[str] = field(default_factory=Counter)
    tensors: int = 0  # compared
    overridden: int = 0  # cases with a note on declared shapes that do not count
    sentences: list[str] = field(default_factory=list)  # of what is not as it should be

    @property
    def cases(self) -> int:
        """How many there were."""
        return sum(self.verdicts.values())

    def judge(
        self,
        name: str,
        model: Any,
        dims: Mapping[str, int],
        values: Mapping[str, int] | None = None,
    ) -> None:
        """Count a case: "same", "noted", "refused", and what may not be.

        `values` are what inputs hold; random ones, if left out.

        "wrong": a size that differs from the runtime's, without a note that names the tensor.
        "unfit": planned, though the runtime refuses it.
        "asked": refused for a size that is not given, though the runtime runs it.
        "too strict": refused for an operator that runs.
        """
        planned = plan(model, dims)
        real = run(model, dims, values or {})
        verdict = self._compare(planned, real)
        self.verdicts[verdict] += 1
        if verdict not in ("same", "refused"):
            self.sentences.append(f"{name} {dict(dims)}: {verdict}: {planned!s:.600} {real!s:.300}")

    def _compare(
        self, planned: tuple[Graph, tuple[Note, ...]] | str, real: dict[str, Any] | str
    ) -> str:
        if isinstance(planned, str):
            if isinstance(real, str):
                return "refused"
            return "asked" if "leaves sizes open" in planned else "too strict"
        if isinstance(real, str):
            return "unfit"
        graph, notes = planned
        named = {name for note in notes for name in note.tensors}
        self.overridden += any(note.code == "shape-overridden" for note in notes)
        sizes = {tensor.name: tensor.bytes for tensor in graph.tensors}
        shared = sizes.keys() & real.keys()
        self.tensors += len(shared)
        wrong = {name: (sizes[name], real[name]) for name in shared if sizes[name] != real[name]}
        if wrong.keys() - named:
            self.sentences.append(f"planned and real: {dict(list(wrong.items())[:5])}")
            return "wrong"
        return "noted" if wrong else "same"


def plan(model: Any, dims: Mapping[str, int]) -> tuple[Graph, tuple[Note, ...]] | str:
    """Return the graph and the notes of a model, or why it is refused."""
    try:
        return _convert(_parse(strip_weights(model.SerializeToString())), dims)
    except MemplanError as error:
        return str(error)


def run(model: Any, dims: Mapping[str, int], values: Mapping[str, int]) -> dict[str, int] | str:
    """Return the bytes of every tensor that onnxruntime makes, or why it does not run.

    Where it believes a wrong declaration and gives up while it loads, the operators count.
    """
    found = _run(model, dims, values)
    if isinstance(found, str):
        bare = onnx.ModelProto.FromString(model.SerializeToString())
        del bare.graph.value_info[:]
        return _run(bare, dims, values)
    return found


def _run(model: Any, dims: Mapping[str, int], values: Mapping[str, int]) -> dict[str, int] | str:
    import onnxruntime

    whole = onnx.ModelProto.FromString(model.SerializeToString())
    there = {value.name for value in whole.graph.output}
    made = dict.fromkeys(name for node in whole.graph.node for name in node.output if name)
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made if name not in there)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(
            whole.SerializeToString(), options, ["CPUExecutionProvider"]
        )
        feeds = {one.name: _feed(one, dims, values) for one in session.get_inputs()}
        names = [one.name for one in session.get_outputs()]
        arrays = dict(zip(names, session.run(names, feeds), strict=True)) | feeds
    except Exception as error:  # of the native library, which has many kinds
        return str(error)
    return {name: one.nbytes for name, one in arrays.items() if isinstance(one, np.ndarray)}


def _feed(one: Any, dims: Mapping[str, int], values: Mapping[str, int]) -> Any:
    shape = [
        size if isinstance(size, int) else dims[size if size in dims else f"{one.name}:{axis}"]
        for axis, size in enumerate(one.shape)
    ]
    dtype = _TYPES.get(one.type[7:-1]) or np.dtype(one.type[7:-1])
    if one.name in values:
        return np.full(shape, values[one.name], dtype)
    rng = np.random.default_rng(0)
    return np.asarray(rng.integers(0, 2, shape)).astype(dtype)


def with_shapes(model: Any) -> Any:
    """Return a model with the shapes of its tensors between, as the library infers them."""
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def edited(model: Any, sizes: Mapping[tuple[str, int], int], outputs: bool = True) -> Any:
    """Return a model with other sizes, as scripts change them: at its inputs and outputs alone.

    `sizes` are by input and axis. With `outputs`, the same axes of outputs that have the old size
    are changed too.
    """
    found = onnx.ModelProto.FromString(model.SerializeToString())
    old: dict[int, tuple[int, int]] = {}
    for value in found.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if (value.name, axis) in sizes:
                old[axis] = (dim.dim_value, sizes[value.name, axis])
                dim.dim_value = sizes[value.name, axis]
    for value in found.graph.output if outputs else ():
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if axis in old and dim.dim_value == old[axis][0]:
                dim.dim_value = old[axis][1]
    return found


def spoiled(model: Any, rng: random.Random, share: float = 0.3) -> Any:
    """Return a model of whose declared shapes some are wrong: a size, the batch, or the rank."""
    found = onnx.ModelProto.FromString(model.SerializeToString())
    for value in found.graph.value_info:
        shape = value.type.tensor_type.shape
        if rng.random() > share or not shape.dim:
            continue
        what = rng.choice(["size", "batch", "rank", "less"])
        if what == "rank":
            shape.dim.add(dim_value=rng.randint(1, 9))
        elif what == "less":
            del shape.dim[-1]
        else:
            axis = 0 if what == "batch" else rng.randrange(len(shape.dim))
            shape.dim[axis].dim_value = rng.randint(1, 40)
    return found

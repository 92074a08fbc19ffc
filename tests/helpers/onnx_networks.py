"""Random small networks on pictures, put into bands and run in onnxruntime against the whole.

    python tests/helpers/onnx_networks.py COUNT [FIRST]

tests COUNT networks from the seed FIRST on and prints what was found. A network that takes longer
than `PATIENCE` is a finding like any other.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx_models import model, node, value

from memplan.base.errors import MemplanError
from memplan.levers.rewrite.bands import Region, Uncut, cut
from memplan.programs.sources.options import Options
from memplan.runtimes.onnx.read import read_bytes
from memplan.runtimes.onnx.write import apply as target
from memplan.runtimes.onnx.write.bands import write_bands

PATIENCE = 20  # seconds of one network
OPSETS = (9, 11, 13, 17, 18, 19, 20, 21, 22)
FAR = 1e-4  # of results, which another order of additions may move


def session_of(made: Any) -> Any:
    """Return a session that changes no operator, and runs bands as `HOW_TO_RUN` says."""
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.execution_order = runtime.ExecutionOrder.PRIORITY_BASED
    options.enable_mem_reuse = options.enable_mem_pattern = False
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return runtime.InferenceSession(made.SerializeToString(), options)


def run(made: Any, seed: int = 0) -> list[Any]:
    """Return what a network makes of small whole numbers, whose sums are exact."""
    session, chance = session_of(made), np.random.default_rng(seed)
    feeds = {
        one.name: chance.integers(-3, 4, one.shape).astype(np.float32)
        for one in session.get_inputs()
    }
    found: list[Any] = session.run(None, feeds)
    return found


class Builder:
    """Adds operators to a network, each of which the runtime has to take."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.opset = draw.choice(OPSETS)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        shape = [1, draw.choice((1, 2, 4)), draw.randint(5, 22), draw.randint(5, 22)]
        self.shapes: dict[str, list[int]] = {"x": shape}
        self.input = value("x", shape)

    def model(self) -> Any:
        """Return the network; what no operator reads are its results."""
        read = {name for one in self.nodes for name in one.input}
        made = [name for one in self.nodes for name in one.output if name not in read]
        results = [onnx.ValueInfoProto(name=name) for name in made]
        return model(self.nodes, [self.input], results, self.weights, opset=self.opset)

    def add(self) -> None:
        """Add a random operator, unless the runtime refuses it or it makes nothing."""
        recent = [name for name in self.shapes if len(self.shapes[name]) == 4][-3:]
        source = self.draw.choice(recent)
        before = len(self.weights)
        one = self.operator(source, f"t{len(self.shapes)}")
        part = model(
            [one],
            [value(name, shape) for name, shape in self.shapes.items() if name in one.input],
            [onnx.ValueInfoProto(name=one.output[0])],
            self.weights[before:],
            opset=self.opset,
        )
        try:
            (found,) = run(part)
        except Exception:  # the runtime has classes of its own for each reason
            found = np.zeros(0)
        if 0 < found.size < 40_000:
            self.shapes[one.output[0]] = list(found.shape)
            self.nodes.append(one)
        else:
            del self.weights[before:]

    def constant(self, values: Any, kind: str = "float32") -> str:
        """Add a constant; return its name."""
        name = f"w{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(values).astype(kind), name))
        return name

    def whole(self, *shape: int) -> str:
        """Add a constant of small whole numbers; return its name."""
        chance = np.random.default_rng(self.draw.randrange(1 << 30))
        return self.constant(chance.integers(-2, 3, shape))

    def windows(self, kernel: list[int], *, dilates: bool) -> dict[str, Any]:
        """Return attributes of windows."""
        draw, found = self.draw, {}
        if draw.random() < 0.7:
            found["strides"] = [draw.randint(1, 3) for _ in "hw"]
        if dilates and draw.random() < 0.4:
            found["dilations"] = [draw.randint(1, 3) for _ in "hw"]
        if draw.random() < 0.3:
            return found | {"auto_pad": draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])}
        wide = draw.choice((0, 0, 3))
        return found | {"pads": [draw.randrange(kernel[at % 2] + wide) for at in range(4)]}

    def operator(self, source: str, name: str) -> Any:
        """Return a random operator that reads a tensor, with new constants."""
        draw, shape = self.draw, self.shapes[source]
        kind = draw.choice(KINDS)
        kernel = [draw.randint(1, 4) for _ in "hw"]
        if kind in ("Conv", "ConvTranspose"):
            group = draw.choice([one for one in (1, 1, 2, 4) if shape[1] % one == 0])
            each, made = shape[1] // group, draw.choice((1, 2))
            options = self.windows(kernel, dilates=True) | {"group": group}
            if kind == "ConvTranspose":
                weights = self.whole(shape[1], made, *kernel)
                if draw.random() < 0.3:
                    options["output_padding"] = [draw.randint(0, 1) for _ in "hw"]
            else:
                weights = self.whole(made * group, each, *kernel)
            return node(kind, f"{source} {weights}", name, **options)
        if kind in ("MaxPool", "AveragePool", "LpPool"):
            late = self.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[kind]
            options = self.windows(kernel, dilates=late)
            if late and draw.random() < 0.4:
                options["ceil_mode"] = 1
            if kind == "AveragePool" and draw.random() < 0.5:
                options["count_include_pad"] = 1
            return node(kind, source, name, kernel_shape=kernel, **options)
        if kind in ("Relu", "Neg", "HardSwish", "LeakyRelu", "Sigmoid", "Identity"):
            kind = "Relu" if kind == "HardSwish" and self.opset < 14 else kind
            return node(kind, source, name)
        if kind in ("Add", "Mul", "Sub", "Max", "PRelu"):
            same = [one for one in self.shapes if self.shapes[one] == shape]
            other = draw.choice(same)
            if kind == "PRelu" or draw.random() < 0.4:
                other = self.whole(*[draw.choice((1, size)) for size in shape[1:]])
            return node(kind, f"{source} {other}", name)
        if kind == "Concat":
            axis = draw.randint(1, 3)
            rest = [at for at in (1, 2, 3) if at != axis]
            fit = [
                one
                for one, other in self.shapes.items()
                if len(other) == 4 and all(other[at] == shape[at] for at in rest)
            ]
            parts = [source, *(draw.choice(fit) for _ in range(draw.randint(1, 2)))]
            return node(kind, " ".join(parts), name, axis=axis)
        return self._other(kind, source, name, shape)

    def _other(self, kind: str, source: str, name: str, shape: list[int]) -> Any:
        draw = self.draw
        if kind == "Resize":
            scales = [1, 1, *(draw.choice((0.5, 1, 2, 2, 4, 1.5)) for _ in "hw")]
            options = {"mode": draw.choice(["nearest", "linear"])}
            if self.opset < 11:
                return node("Upsample", f"{source} {self.constant(scales)}", name, mode="nearest")
            options["coordinate_transformation_mode"] = draw.choice(
                ["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"]
            )
            options["nearest_mode"] = draw.choice(["floor", "round_prefer_floor", "ceil"])
            empty = self.constant([])
            if draw.random() < 0.5:
                return node(kind, f"{source} {empty} {self.constant(scales)}", name, **options)
            sizes = [int(size * scale) for size, scale in zip(shape, scales, strict=True)]
            given = f"{source} {empty} {empty} {self.constant(sizes, 'int64')}"
            return node(kind, given, name, **options)
        if kind == "Pad":
            pads = [draw.randint(0, 5) if at % 4 > 1 else 0 for at in range(8)]
            if self.opset < 11:
                return node(kind, source, name, pads=pads, value=1.0)
            held = f"{self.constant(pads, 'int64')} {self.constant(1.0)}"
            return node(kind, f"{source} {held}", name, mode=draw.choice(["constant", "reflect"]))
        if kind == "Slice":
            axis = draw.choice((1, 1, 2, 3))
            ends = sorted(draw.sample(range(shape[axis] + 1), 2))
            if self.opset < 10:
                return node(kind, source, name, starts=ends[:1], ends=ends[1:], axes=[axis])
            held = " ".join(self.constant([one], "int64") for one in (*ends, axis))
            return node(kind, f"{source} {held}", name)
        if kind in ("DepthToSpace", "SpaceToDepth"):
            return node(kind, source, name, blocksize=2)
        if kind == "Softmax":
            return node(kind, source, name, axis=draw.choice((1, 1, -1)))
        if kind == "LRN":
            return node(kind, source, name, size=3)
        if kind == "BatchNormalization":
            held = [self.whole(shape[1]) for _ in range(3)]
            held.append(self.constant(np.arange(1, shape[1] + 1)))
            return node(kind, f"{source} {' '.join(held)}", name)
        if kind == "Transpose":
            return node(kind, source, name, perm=[0, 1, 3, 2])
        return node(kind, source, name)  # GlobalAveragePool


KINDS = (
    *("Conv", "Conv", "Conv", "ConvTranspose", "MaxPool", "MaxPool", "AveragePool", "LpPool"),
    *("Relu", "Neg", "HardSwish", "LeakyRelu", "Sigmoid", "Identity", "Add", "Mul", "Sub", "Max"),
    *("PRelu", "Concat", "Resize", "Resize", "Pad", "Pad", "Slice", "DepthToSpace"),
    *("SpaceToDepth", "Softmax", "LRN", "BatchNormalization", "Transpose", "GlobalAveragePool"),
)


def network(seed: int) -> Any:
    """Return a random network of up to nine operators."""
    draw = random.Random(seed)
    builder = Builder(draw)
    for _ in range(draw.randint(3, 9)):
        builder.add()
    return builder.model()


def in_bands(data: bytes, draw: random.Random) -> bytes | None:
    """Return a network of which random operators that follow each other are in random bands."""
    path = Path("model.onnx")
    loaded = read_bytes(data, path, Options())
    assert loaded.graph is not None
    program = Uncut(loaded.graph)
    runs: list[list[int]] = [[]]
    for at, step in enumerate(program.operators):
        if step.why_whole:
            runs.append([])
        else:
            runs[-1].append(at)
    fit = [one for one in runs if one]
    if not fit:
        return None
    run_ = draw.choice(fit)
    first, last = sorted((draw.choice(run_), draw.choice(run_)))
    bands = draw.choice([(2, 1), (3, 1), (5, 1), (8, 1), (1, 2), (2, 2), (3, 4)])
    steps = program.operators[first : last + 1]
    kept = [step.makes for step in steps if bands[1] == 1 and draw.random() < 0.5]
    try:
        found = cut(program, [Region(first, last + 1, bands, frozenset(kept))])
    except ValueError:  # more bands than rows, or nothing that is read outside
        return None
    return write_bands(data, found, path, Options())[0]


def examine(seed: int) -> str:
    """Return what became of a network: "whole", "equal", "near", "refused", or what is wrong."""
    made = network(seed)
    if not made.graph.node:
        return "whole"
    data, draw = made.SerializeToString(), random.Random(seed)
    try:
        truth = run(made, seed)
    except Exception:  # it takes each operator, but has another size in mind between two
        return "whole"
    sizes = {one.name: one.shape for one in _graph(data).tensors}
    names = [one.name for one in made.graph.output]
    wrong = [name for name, one in zip(names, truth, strict=True) if sizes[name] != one.shape]
    if wrong:
        return f"sizes of {wrong} are {[sizes[name] for name in wrong]}"
    if seed % 10 == 0:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            path.write_bytes(data)
            found = target.put_in_bands(path, max_extra=5.0, fused=False)
        banded: bytes | None = found.data if found.cut is not None else None
    else:
        banded = in_bands(data, draw)
    if banded is None:
        return "whole"
    try:
        results = run(onnx.load_from_string(banded), seed)
    except Exception as error:
        if "ShapeInferenceError" not in str(error):
            raise
        # It infers other sizes than its kernels make, which fit one another only in the whole.
        # `apply` writes no file whose results it cannot compare.
        return "refused"
    near = False
    for name, one, other in zip(names, truth, results, strict=True):
        if one.shape != other.shape:
            return f"result {name} is {other.shape}, not {one.shape}"
        if not np.array_equal(one, other, equal_nan=True):
            near = True
            if not np.allclose(one, other, rtol=FAR, atol=FAR, equal_nan=True):
                return f"result {name} is {np.nanmax(np.abs(one - other))} apart"
    return "near" if near else "equal"


def _graph(data: bytes) -> Any:
    return read_bytes(data, Path("model.onnx"), Options()).graph


def survey(seeds: range) -> tuple[Counter[str], list[str]]:
    """Return how many networks came to what, and what is wrong with others."""
    ends: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        try:
            end = examine(seed)
        except Exception as error:  # whatever is raised is a finding
            refused = isinstance(error, MemplanError)
            end = f"{'refused' if refused else type(error).__name__}: {str(error)[:300]}"
        if end not in ("whole", "equal", "near", "refused"):
            wrong.append(f"seed {seed}: {end}")
            end = "wrong"
        ends[end] += 1
    return ends, wrong


def main() -> int:
    """Survey what the command line asks for; return the exit code."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    total: Counter[str] = Counter()
    for seed in range(first, first + count):
        signal.alarm(PATIENCE)  # which ends the process: its last line is the seed before
        ends, wrong = survey(range(seed, seed + 1))
        total += ends
        for each in wrong:
            print(each, flush=True)
        if seed % 500 == 499:
            print(seed + 1, dict(total), flush=True)
    print(dict(total))
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

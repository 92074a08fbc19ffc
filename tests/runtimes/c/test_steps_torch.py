"""Tests of headers for C that run programs of PyTorch in bands: the same bits as the whole."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from slab_models import Calls  # noqa: E402
from steps_in_c import (  # noqa: E402
    Batch,
    Network,
    Op,
    Part,
    check_command,
    compile_runtime,
    draw_bands,
)

from memplan.levers.rewrite.bands import Uncut, tell_rows  # noqa: E402
from memplan.programs.sources import load, of_graph  # noqa: E402
from memplan.programs.sources.graph_json import write_graph  # noqa: E402
from memplan.runtimes.c.header import write_header  # noqa: E402
from memplan.solvers.planning import plan_model  # noqa: E402

pytestmark = pytest.mark.slow

nn = torch.nn


def convolve(rng: random.Random, channels: int) -> Any:
    """Draw a convolution, with groups, holes and padding."""
    kernel = [rng.choice((1, 2, 3, 3, 5)) for _ in "hw"]
    groups = rng.choice([one for one in (1, 1, channels) if channels % one == 0])
    options: dict[str, Any] = {"stride": [rng.choice((1, 1, 2)) for _ in "hw"], "groups": groups}
    options["padding"] = [rng.randint(0, one) for one in kernel]
    made = groups * rng.choice((1, 2)) if groups > 1 else rng.choice((4, 8))
    return nn.Conv2d(channels, made, kernel, dilation=rng.choice((1, 1, 2)), **options)


def transpose(rng: random.Random, channels: int) -> Any:
    """Draw a transposed convolution."""
    stride = [rng.randint(1, 2) for _ in "hw"]
    kernel = [one + rng.randint(0, 2) for one in stride]
    options = {"padding": [rng.randrange(one) for one in kernel]}
    options["output_padding"] = [rng.randrange(one) for one in stride]
    return nn.ConvTranspose2d(channels, 4, kernel, stride, **options)


def pool(rng: random.Random, channels: int) -> Any:
    """Draw a pool."""
    kernel = [rng.randint(2, 3) for _ in "hw"]
    options = {"stride": rng.randint(1, 2), "padding": [rng.randint(0, 1) for _ in "hw"]}
    if rng.random() < 0.5:
        return nn.MaxPool2d(kernel, **options)
    return nn.AvgPool2d(kernel, count_include_pad=rng.random() < 0.5, **options)


def normalize(rng: random.Random, channels: int) -> Any:
    """Return a layer that has a mean and a deviation for each channel."""
    layer = nn.BatchNorm2d(channels)
    layer.running_mean.normal_()
    layer.running_var.uniform_(0.5, 2)
    return layer


def join(rng: random.Random, channels: int) -> Any:
    """Draw what joins a picture with what another layer makes of it, or adds both."""
    axis, layer = rng.randint(1, 4), nn.Conv2d(channels, channels, 3, padding=1)
    if axis == 4:
        return Calls(lambda own, x: x + own.layer(x), layer=layer)
    return Calls(lambda own, x: torch.cat([own.layer(x), x], axis), layer=layer)


LAYERS: list[Callable[[random.Random, int], Any]] = [
    *(convolve, convolve, transpose, pool, normalize, join),
    lambda rng, channels: rng.choice((nn.ReLU, nn.Sigmoid, nn.Tanh, nn.Hardswish))(),
    lambda rng, channels: nn.Upsample(scale_factor=2, mode=rng.choice(("nearest", "bilinear"))),
    lambda rng, channels: nn.ZeroPad2d([rng.randint(0, 3) for _ in range(4)]),
    lambda rng, channels: nn.PixelShuffle(2) if channels % 4 == 0 else nn.Softmax(1),
]


def draw_module(rng: random.Random) -> Any:
    """Draw layers one after the other."""
    channels, x = 3, torch.zeros(1, 3, 16, 12)
    layers: list[Any] = []
    while len(layers) < 6:
        layer = rng.choice(LAYERS)(rng, channels).eval()
        try:
            made = layer(x)
        except RuntimeError:  # the window is larger than the picture
            continue
        if 200 < made.numel() < 12_000 and max(made.shape) <= 64:
            layers.append(layer)
            channels, x = made.shape[1], made
    return nn.Sequential(*layers)


def save(module: Any, x: Any, path: Path) -> Network:
    """Write a `.pt2`, and return what it computes in kernels."""
    program = torch.export.export(module.eval(), (x,))
    torch.export.save(program, path)
    parts, ops, places, inputs, kinds = [], [], {}, [], []
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            held = specs[node.name].target
            values = x if held is None else program.state_dict[held]
            inputs += [len(parts)] if held is None else []
            places[node] = len(parts)
            name, kind = held or node.name, str(values.dtype).removeprefix("torch.")
            parts.append(Part(name, kind, tuple(values.shape), values.detach().numpy(), True))
        elif node.op == "call_function":
            kernel, parameters, *element = lower(node)
            places[node] = len(parts)
            parts.append(Part(node.name, "float32", tuple(node.meta["val"].shape)))
            read = tuple(places[one] for one in node.all_input_nodes)
            ops.append(Op(kernel, read, places[node], tuple(parameters), *element))
            kinds.append(node.target._schema.name)
    (result,) = program.graph.output_node().args[0]
    args = (path.read_bytes(), "pt2", parts, ops, inputs, [places[result]], True, kinds)
    return Network(*args)


def lower(node: Any) -> tuple[Any, ...]:
    """Return the kernel of a node, its parameters, and its element if it works on elements."""
    schema = node.target._schema
    args = {one.name: one.default_value for one in schema.arguments}
    args |= dict(zip(args, node.args, strict=False)) | node.kwargs
    name = schema.name.removeprefix("aten::")
    if name in ("relu", "sigmoid", "tanh", "hardswish", "add"):
        return "each", (0, 0, 1, 0), name
    if name == "conv2d":
        window = (*pair(args["stride"]), *pair(args["dilation"]), *pair(args["padding"]))
        return "conv", (1, 2, 1, 0, *window, args["groups"])
    if name == "conv_transpose2d":
        window = (*pair(args["stride"]), 1, 1, *pair(args["padding"]))
        return "tconv", (1, 2, 1, 0, *window, args["groups"])
    if name in ("max_pool2d", "avg_pool2d"):
        kernel = pair(args["kernel_size"])
        window = (*pair(args["stride"] or kernel), 1, 1, *pair(args["padding"]))
        counts = args.get("count_include_pad", 0)
        return "pool", (-1, -1, 1, 0, *window, 1, *kernel, int(counts), int(name[0] == "a"))
    if name == "cat":
        return "join", ((2, 0, 1)[args["dim"] - 1],)
    if name == "pad":
        left, _, top, *_ = args["pad"]
        return "pad", (top, left, 0, -1, 0)
    if name.startswith("upsample"):
        linear = int("bilinear" in name)
        return "resize", (linear, linear, 0)
    rest = {
        "batch_norm": ("batchnorm", (1e-5,)),
        "pixel_shuffle": ("space", (2, 1)),
        "softmax": ("softmax", (0, 1)),
    }
    return rest[name]


def pair(value: Any) -> tuple[int, int]:
    """Return a value for rows and one for columns."""
    both = list(value) if isinstance(value, (list, tuple)) else [value]
    return both[0], both[-1]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled kernels."""
    return compile_runtime(tmp_path_factory.mktemp("steps"))


def test_random_programs_run_as_their_headers_say(tmp_path: Path, runtime: Path) -> None:
    """Tests random layers in random bands; the whole is what torch computes."""
    rng, batch, expected = random.Random(0), Batch(tmp_path, runtime), []
    while len(expected) < 8:
        torch.manual_seed(rng.randrange(1 << 32))
        module, x = draw_module(rng), torch.randn(1, 3, 16, 12)
        network = save(module, x, tmp_path / "net.pt2")
        graph = load(tmp_path / "net.pt2").graph
        assert graph is not None
        uncut = Uncut(tell_rows(graph))
        network.check(graph, uncut)
        assert not any(each.why_whole for each in graph.operators)
        found = draw_bands(rng, uncut)
        if found is None:
            continue
        planned = plan_model(of_graph(found.graph()), in_place=rng.random() < 0.4, nodes=2_000)
        name = f"p{len(expected)}"
        header = write_header(planned.loaded, planned.plan, name=name, bands=found)
        batch.add(network, graph, header, ["STEPS"])
        expected.append(module(x).detach().numpy())
    for (one,), other in zip(batch.run(), expected, strict=True):
        assert np.allclose(one, other, rtol=1e-3, atol=1e-4 * max(1, float(abs(other).max())))


def test_a_program_and_its_graph_have_one_header(tmp_path: Path, runtime: Path) -> None:
    """Tests `apply --bands --c-header` of a `.pt2`, and of the graph JSON that is made of it."""
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, padding=1))
    network = save(nn.Sequential(*layers), torch.randn(1, 3, 32, 32), tmp_path / "net.pt2")
    header = check_command(network, tmp_path, runtime)
    assert "NCHW" in header
    graph = load(tmp_path / "net.pt2").graph
    assert graph is not None
    text = write_graph(graph).encode()
    args = (network.parts, network.ops, network.inputs, network.outputs, True, network.kinds)
    again = check_command(Network(text, "json", *args), tmp_path, runtime)
    steps = re.compile(r"_steps\[.*", re.DOTALL)
    assert steps.findall(again) == steps.findall(header) != []

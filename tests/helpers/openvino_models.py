"""Models of OpenVINO as text, as its own library writes them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["edge", "layer", "model", "net", "small"]


def layer(
    id: int,
    type_: str,
    inputs: int,
    shapes: Sequence[Sequence[int]],
    *,
    name: str = "",
    precision: str = "FP32",
    version: str = "opset1",
    inside: str = "",
) -> str:
    """Return a layer; its inputs are ports 0, 1, ..., and its outputs follow."""
    head = f'<layer id="{id}" name="{name or type_.lower()}" type="{type_}" version="{version}">'
    given = "".join(f'<port id="{at}" precision="FP32"/>' for at in range(inputs))
    made = "".join(
        f'<port id="{inputs + at}" precision="{precision}">'
        + "".join(f"<dim>{size}</dim>" for size in shape)
        + "</port>"
        for at, shape in enumerate(shapes)
    )
    return f"{head}<input>{given}</input><output>{made}</output>{inside}</layer>"


def edge(source: int, port: int, target: int, at: int = 0) -> str:
    """Return the arc from an output of a layer to an input of another one."""
    return f'<edge from-layer="{source}" from-port="{port}" to-layer="{target}" to-port="{at}"/>'


def net(layers: Sequence[str], edges: Sequence[str]) -> str:
    """Return the parts of a model, or of a body."""
    return f"<layers>{''.join(layers)}</layers><edges>{''.join(edges)}</edges>"


def model(layers: Sequence[str], edges: Sequence[str], version: str = "11") -> str:
    """Return a whole file."""
    return f'<?xml version="1.0"?>\n<net name="n" version="{version}">{net(layers, edges)}</net>\n'


def small() -> str:
    """Return a model of a few layers: weights that are unpacked, a view, and two results."""
    layers = [
        layer(0, "Parameter", 0, [[1, 8]], name="x"),
        layer(1, "Const", 0, [[8, 8]], name="w", precision="FP16"),
        layer(2, "Convert", 1, [[8, 8]], name="unpacked"),
        layer(3, "MatMul", 2, [[1, 8]], name="a"),
        layer(4, "ReLU", 1, [[1, 8]], name="b"),
        layer(5, "Const", 0, [[2]], name="shape", precision="I64"),
        layer(6, "Reshape", 2, [[2, 4]], name="c"),
        layer(7, "Split", 1, [[1, 4], [1, 4]], name="halves"),
        layer(8, "Result", 1, [], name="first"),
        layer(9, "Result", 1, [], name="second"),
    ]
    edges = [
        *(edge(0, 0, 3), edge(1, 0, 2), edge(2, 1, 3, 1), edge(3, 2, 4), edge(4, 1, 6)),
        *(edge(5, 0, 6, 1), edge(6, 2, 7), edge(7, 1, 8), edge(7, 2, 9)),
    ]
    return model(layers, edges)

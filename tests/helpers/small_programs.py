"""Small programs for tests of levers: a network in pictures, and a training step."""

from __future__ import annotations

from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.graph.pictures import Read, Window


def picture(name: str, rows: int, depth: int, kind: Kind = Kind.INTERMEDIATE) -> Tensor:
    """Return a picture of eight columns, of one byte for each element."""
    return Tensor(name, rows * 8 * depth, kind, "int8", (1, rows, 8, depth))


def chain(*depths: int, whole: frozenset[int] = frozenset()) -> Graph:
    """Return convolutions of 16 rows, one behind the other; `whole` ones mix all rows."""
    last = len(depths) - 1
    tensors = tuple(
        picture(f"t{at}", 16, depth, {0: Kind.INPUT, last: Kind.OUTPUT}.get(at, Kind.INTERMEDIATE))
        for at, depth in enumerate(depths)
    )
    window = Window(3, before=1)
    operators = tuple(
        Operator(
            f"conv{at}",
            "Conv",
            (at,),
            (at + 1,),
            reads=() if at in whole else (Read(at, window, window),),
            why_whole="it mixes all rows" if at in whole else "",
            macs=9 * tensors[at + 1].bytes,
        )
        for at in range(last)
    )
    return Graph("net", tensors, operators, (0,), (last,), row_axis=1)


def training_step(depth: int = 5, size: int = 200, image: int = 40) -> Graph:
    """Return a step: what operators make on the way there is read on the way back."""
    tensors = [Tensor("image", image, Kind.INPUT), *(Tensor(f"x{i}", size) for i in range(depth))]
    operators = [Operator(f"f{i}", "CONV", (i,), (i + 1,)) for i in range(depth)]
    last = depth
    for i in reversed(range(depth)):
        tensors.append(Tensor(f"g{i}", size, Kind.INTERMEDIATE if i else Kind.OUTPUT))
        operators.append(Operator(f"b{i}", "CONV", (last, i + 1), (len(tensors) - 1,)))
        last = len(tensors) - 1
    return Graph("step", tuple(tensors), tuple(operators), (0,), (last,))

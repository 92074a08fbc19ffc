"""Hypothesis strategies: small programs with views, aliases, branches, loops and scratch."""

from __future__ import annotations

from dataclasses import replace

import strategies
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor, View

FEATURES = frozenset({"blocks", "views", "aliases", "in_place", "workspace", "pins"})
GIVEN = (Kind.INPUT, Kind.CONSTANT, Kind.VARIABLE)


@st.composite
def graphs(
    draw: DrawFn, features: frozenset[str] = FEATURES, max_bytes: int = 6, scale: int = 1
) -> Graph:
    """Good programs: everything is made before it is read, and what pins say is aligned."""
    builder = _Builder(draw, features, max_bytes, scale)
    given = [builder.tensor(draw(st.sampled_from(GIVEN))) for _ in range(draw(st.integers(0, 3)))]
    scope = list(given)
    operators = builder.operators(scope, depth=0)
    outputs = draw(st.lists(st.sampled_from(scope), max_size=2, unique=True)) if scope else []
    for index in outputs:
        if builder.tensors[index].kind is Kind.INTERMEDIATE:
            builder.tensors[index] = replace(builder.tensors[index], kind=Kind.OUTPUT)
    return Graph(
        draw(st.sampled_from(("", "net", "my net\n"))),
        tuple(builder.tensors),
        operators,
        tuple(i for i in given if builder.tensors[i].kind is Kind.INPUT),
        tuple(outputs),
        tuple(builder.views),
        builder.aliases(),
        alignment=draw(st.sampled_from((1, 4, 16))),
        planned=draw(st.frozensets(st.sampled_from(Kind))),
        source=draw(st.sampled_from(("", "onnx"))),
    )


class _Builder:
    """Draws a program operator by operator; `scope` is what may be read at a place."""

    def __init__(self, draw: DrawFn, features: frozenset[str], max_bytes: int, scale: int) -> None:
        self.draw = draw
        self.features = features
        self.max_bytes = max_bytes
        self.scale = scale
        self.tensors: list[Tensor] = []
        self.views: list[View] = []

    def chance(self, feature: str) -> bool:
        """Whether to use a feature at this place."""
        return feature in self.features and self.draw(st.booleans())

    def tensor(self, kind: Kind = Kind.INTERMEDIATE, most: int | None = None) -> int:
        """Make a tensor, and return its index."""
        count = self.draw(st.integers(0, self.max_bytes if most is None else most)) * self.scale
        name = f"{self.draw(strategies.ids())}#{len(self.tensors)}"
        dtype, shape = "", None
        if self.draw(st.booleans()):
            dtype, shape = "uint8", (count,)
        pin = 16 * self.draw(st.integers(0, 9)) if self.chance("pins") else None
        self.tensors.append(Tensor(name, count, kind, dtype, shape, pin))
        return len(self.tensors) - 1

    def operators(self, scope: list[int], depth: int) -> tuple[Operator, ...]:
        """Draw a sequence of operators; what they make is added to the scope."""
        count = self.draw(st.integers(0, 6 if depth == 0 else 3))
        return tuple(self.operator(scope, depth, number) for number in range(count))

    def operator(self, scope: list[int], depth: int, number: int) -> Operator:
        """Draw an operator."""
        inputs = self.draw(st.lists(st.sampled_from(scope), max_size=3)) if scope else []
        name = self.draw(st.sampled_from(("", f"op{depth}.{number}")))
        workspace = self.draw(st.integers(1, 4)) * self.scale if self.chance("workspace") else 0
        operator = Operator(name, "Op", tuple(inputs), workspace=workspace)
        if depth < 2 and self.chance("blocks"):
            operator = replace(operator, **self.blocks(scope, depth))
        if inputs and not operator.blocks and self.chance("views"):
            outputs = [self.view(inputs[0])]
        else:
            outputs = [self.tensor() for _ in range(self.draw(st.integers(0, 2)))]
        pairs: list[tuple[int, int]] = []
        if inputs and outputs and not operator.blocks and self.chance("in_place"):
            pairs = [(self.draw(st.sampled_from(inputs)), outputs[0])]
        scope += outputs
        return replace(operator, outputs=tuple(outputs), in_place=tuple(pairs))

    def view(self, base: int) -> int:
        """Make a tensor that is some bytes of another."""
        offset = self.draw(st.integers(0, self.tensors[base].bytes))
        index = self.tensor(most=(self.tensors[base].bytes - offset) // self.scale)
        self.tensors[index] = replace(self.tensors[index], pin=None)
        self.views.append(View(index, base, offset))
        return index

    def blocks(self, scope: list[int], depth: int) -> dict[str, object]:
        """Draw branches, or what a loop runs."""
        found = []
        for number in range(self.draw(st.integers(1, 2))):
            inputs = [self.tensor() for _ in range(self.draw(st.integers(0, 2)))]
            inside = scope + inputs
            operators = self.operators(inside, depth + 1)
            outputs = self.draw(st.lists(st.sampled_from(inside), max_size=2)) if inside else []
            found.append(Block(f"block {number}", operators, tuple(inputs), tuple(outputs)))
        return {"blocks": tuple(found), "loop": self.draw(st.booleans())}

    def aliases(self) -> tuple[tuple[int, int], ...]:
        """Draw pairs that must share memory, of tensors that own theirs and have no pin."""
        if "aliases" not in self.features:
            return ()
        views = {view.tensor for view in self.views}
        owners = [i for i, t in enumerate(self.tensors) if i not in views and t.pin is None]
        if not owners:
            return ()
        chosen = self.draw(st.lists(st.sampled_from(owners), max_size=4, unique=True))
        return tuple(zip(chosen[::2], chosen[1::2], strict=False))


def chain(count: int, *, given: bool = True, stream: int = 0) -> Graph:
    """Return a program of `count` choices, each between 300 bytes and 10.

    What only the small branch reads is kept through the large one by the plan of all branches.
    """
    tensors = [Tensor("x", 100, Kind.INPUT)]
    operators = []
    at = 0
    for number in range(count):
        first = len(tensors)
        kind = Kind.INPUT if given else Kind.INTERMEDIATE
        tensors += [
            Tensor(f"c{number}", 1, kind, "bool", ()),
            Tensor(f"a{number}", 200),
            Tensor(f"large{number}", 300),
            Tensor(f"small{number}", 10),
            Tensor(f"z{number}", 100),
        ]
        test, read, large, small, result = range(first, first + 5)
        made = (read,) if given else (test, read)
        operators += [
            Operator(f"prepare{number}", "Op", (at,), made, stream=stream * (number % 2)),
            Operator(
                f"if{number}",
                "If",
                (test,),
                (result,),
                blocks=(
                    Block("large", (Operator("", "Op", (at,), (large,)),), (), (large,)),
                    Block("small", (Operator("", "Op", (read,), (small,)),), (), (small,)),
                ),
            ),
        ]
        at = result
    inputs = tuple(i for i, tensor in enumerate(tensors) if tensor.kind is Kind.INPUT)
    return Graph("chain", tuple(tensors), tuple(operators), inputs, (at,))

"""Tests of every size in an exported program against what PyTorch makes, at sizes drawn at random.

Programs are exported at one size, saved, read without torch at another, and run with torch there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memplan.base.errors import FormatError, GraphError
from memplan.base.notes import Code
from memplan.programs.sources.options import Options
from memplan.runtimes.torch.read import graph_of, load, read
from memplan.runtimes.torch.read.guards import evaluate, parse_assertion
from memplan.runtimes.torch.read.values import Value

torch = pytest.importorskip("torch")
nn = torch.nn
AUTO, Dim = torch.export.Dim.AUTO, torch.export.Dim

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Recurrent(nn.Module):
    """A recurrent layer with a state of its own making, and something behind it."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.layer = kind(6, 8, batch_first=True, **options)
        self.head = nn.Linear(8 * (1 + self.layer.bidirectional), 3)

    def forward(self, x: Any) -> Any:
        """Return a result for every step, and the mean over time."""
        y, _ = self.layer(x)
        return self.head(y), y.mean(1)


class Attention(nn.Module):
    """Self-attention with heads, a mask, and scores that are written out."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x: Any) -> Any:
        """Attend to what comes before."""
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, 3, 4).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) + torch.ones(time, time).tril().log()
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, time, width)
        return self.out(y), scores


class Detector(nn.Module):
    """Convolutions with strides, a pyramid that is scaled up, and boxes in rows."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(c, c + 2, 3, 2, 1) for c in (3, 5, 7))
        self.side, self.pool = nn.Conv2d(9, 7, 1), nn.MaxPool2d(2)
        self.norm = nn.BatchNorm2d(7)

    def forward(self, x: Any) -> Any:
        """Return boxes of two scales."""
        a = self.down[1](self.down[0](x))
        b = self.side(self.down[2](a))
        up = nn.functional.interpolate(b, size=a.shape[-2:])
        boxes = [y.flatten(2).transpose(1, 2) for y in (self.norm(up + a), self.pool(b))]
        return torch.cat(boxes, 1).sigmoid()


class Windows(nn.Module):
    """Sizes that are computed: halves, windows, a padded end, and pairs of everything."""

    def forward(self, x: Any) -> Any:
        """Return views and copies of them."""
        batch, time = x.shape[0], x.shape[1]
        pairs = x[:, : time // 2 * 2].reshape(batch, time // 2, -1)
        padded = nn.functional.pad(x, (0, 0, 1, 2))
        frames = padded.unfold(1, 3, 2).contiguous()
        every = (x[:, :, None] - x[:, None]).abs().sum(-1)
        return pairs.relu(), frames.flatten(2), every, torch.cat([x, x[:, 1:]], 1)


def ints(*sizes: int) -> Any:
    """Return word numbers."""
    return torch.randint(0, 10, sizes)


# By name: the model, sizes by axis that the first argument has, and what makes it.
MODELS: dict[str, tuple[Callable[[], Any], tuple[int | str, ...], Callable[..., Any]]] = {
    "gru": (lambda: Recurrent(nn.GRU), ("n", "t", 6), torch.randn),
    "lstm": (lambda: Recurrent(nn.LSTM, num_layers=2), ("n", "t", 6), torch.randn),
    "lstm, both ways": (lambda: Recurrent(nn.LSTM, bidirectional=True), ("n", "t", 6), torch.randn),
    "attention": (Attention, ("n", "t", 12), torch.randn),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(12, 3, 24, batch_first=True),
        ("n", "t", 12),
        torch.randn,
    ),
    "detector": (Detector, ("n", 3, "h", "w"), torch.randn),
    "windows": (Windows, ("n", "t", 4), torch.randn),
    "words": (
        lambda: nn.Sequential(nn.Embedding(10, 4), nn.LayerNorm(4), nn.Flatten()),
        ("n", 5),
        ints,
    ),
}
TRACED = {"n": 4, "t": 10, "h": 64, "w": 96}
SEEDS = range(8)


@cache
def exported(name: str) -> Any:
    """Return a program with every named axis open."""
    build, axes, make = MODELS[name]
    args = make(*(TRACED.get(axis, axis) for axis in axes))
    shape = {i: AUTO for i, axis in enumerate(axes) if isinstance(axis, str)}
    model = build().eval()
    spec = ((shape,),) if isinstance(model, nn.Sequential) else (shape,)
    try:
        return torch.export.export(model, (args,), dynamic_shapes=spec)
    except Exception:
        return torch.export.export(model, (args,), dynamic_shapes=(shape,))


def made(program: Any, args: Any) -> dict[str, Any]:
    """Run a program with real tensors; return every tensor that a node makes, by its name."""
    found: dict[str, Any] = {}

    class Record(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            if isinstance(result, torch.Tensor):
                found[n.name] = (tuple(result.shape), tuple(result.stride()), result.itemsize)
            return result

    held = program.state_dict | program.constants
    specs = program.graph_signature.input_specs
    given = [args if s.kind.name == "USER_INPUT" else held[s.target] for s in specs]
    with torch.no_grad():
        Record(program.graph_module).run(*given)
    return found


def span(sizes: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    """Return the bytes from a tensor's first element to its last."""
    steps = ((size - 1) * step for size, step in zip(sizes, strides, strict=True))
    return 0 if 0 in sizes else (sum(steps) + 1) * itemsize


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_sizes_are_those_of_the_run(name: str, seed: int, tmp_path: Path) -> None:
    """Tests every tensor of a program at random sizes against a real run of it there."""
    program = exported(name)
    torch.export.save(program, tmp_path / "model.pt2")
    draw = random.Random(f"{name} {seed}")
    _, axes, make = MODELS[name]
    limits = {"n": (2, 9), "t": (3, 40), "h": (32, 160), "w": (32, 160)}
    (first,) = (n for n in program.graph.nodes if n.name in program.graph_signature.user_inputs)
    traced = [int(size) if str(size).isdigit() else str(size) for size in first.meta["val"].shape]
    for _ in range(20):
        # An axis that torch has fixed while it traced stays as it is.
        drawn = [axis if isinstance(axis, int) else draw.randint(*limits[axis]) for axis in axes]
        pairs = list(zip(traced, drawn, strict=True))
        sizes = [one if isinstance(one, int) else size for one, size in pairs]
        symbols = {one: size for one, size in pairs if isinstance(one, str)}
        try:
            graph = read(tmp_path / "model.pt2", Options(dims=symbols)).graph
            break
        except FormatError as error:
            if "exported for" not in str(error):
                raise
        # Only what torch itself refuses: the guards of the program.
        with pytest.raises((AssertionError, RuntimeError)):
            program.module()(make(*sizes))
    else:
        pytest.fail("no sizes are within the guards")
    assert graph is not None
    of = {tensor.name: tensor for tensor in graph.tensors}
    real = made(program, make(*sizes))
    compared = 0
    for node, (shape, strides, itemsize) in real.items():
        if node in of and of[node].kind in ("intermediate", "output"):
            assert of[node].shape == shape
            assert of[node].bytes == span(shape, strides, itemsize), node
            compared += 1
    assert compared >= 3


class Pairs(nn.Module):
    """A program for even batches."""

    def forward(self, x: Any) -> Any:
        """Return pairs."""
        if x.shape[0] % 2 == 0:
            return (x * 2).reshape(-1, 2, 4)
        return x


class Twice(nn.Module):
    """A program whose second argument is twice the first, and for at most 20 rows."""

    def forward(self, x: Any, y: Any) -> Any:
        """Return the sum."""
        return torch.cat([x, x]) + y


class Counted(nn.Module):
    """A program whose result has as many rows as its argument says: an even number."""

    def forward(self, n: Any) -> Any:
        """Return ones."""
        rows = n.item()
        torch._check(rows >= 2)
        torch._check(rows <= 10)
        torch._check(rows % 2 == 0)
        return torch.zeros(rows) + 1


def refused(program: Any, tmp_path: Path, **dims: int) -> str:
    """Return the sentence with which sizes are refused, in memory and in the file."""
    torch.export.save(program, tmp_path / "model.pt2")
    with pytest.raises(GraphError) as caught:
        graph_of(program, dims)
    with pytest.raises(FormatError) as other:
        read(tmp_path / "model.pt2", Options(dims=dims))
    assert str(caught.value) in str(other.value)
    return str(caught.value)


def test_guards(tmp_path: Path) -> None:
    """Tests that sizes which break a guard are refused by it, and torch refuses them too."""
    program = torch.export.export(Pairs(), (torch.ones(8, 4),), dynamic_shapes=({0: AUTO},))
    sentence = refused(program, tmp_path, s77=7)
    assert "(L['x'].size()[0] % 2) == 0" in sentence
    assert "s77 = 7" in sentence
    with pytest.raises((AssertionError, RuntimeError)):
        program.module()(torch.ones(7, 4))
    assert graph_of(program, {"s77": 10}).tensors[1].bytes == 160


def test_assertions(tmp_path: Path) -> None:
    """Tests that a size known at run time only keeps to what the program asserts of it."""
    program = torch.export.export(Counted(), (torch.tensor(4),))
    assert "u0" in refused(program, tmp_path, u0=5)
    assert "2 to 10" in refused(program, tmp_path, u0=12)
    assert graph_of(program, {"u0": 6}).tensors[-1].bytes == 24


def test_derived_sizes(tmp_path: Path) -> None:
    """Tests that a derived size follows, and keeps to its own range."""
    n = Dim("n", min=2, max=10)
    args = torch.ones(4, 4), torch.ones(8, 4)
    program = torch.export.export(Twice(), args, dynamic_shapes=({0: n}, {0: 2 * n}))
    for loaded in (load(program, Options(dims={"s77": 9})),):
        assert loaded.graph is not None
        assert {t.bytes for t in loaded.graph.tensors if t.name in ("cat", "add")} == {18 * 16}
    assert "2 to 10" in refused(program, tmp_path, s77=11)


def test_a_condition_that_cannot_be_computed() -> None:
    """Tests that there is a note where a guard is in words that memplan does not know."""
    program = torch.export.export(Pairs(), (torch.ones(8, 4),), dynamic_shapes=({0: AUTO},))
    program._guards_code.append("___some_function(L['x'])")
    notes = load(program, Options(dims={"s77": 8})).notes
    assert [note.code for note in notes] == [Code.GUARD_UNCHECKED]
    assert "___some_function" in notes[0].text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("L['x'].size()[0] // 2 + 1 == 4", 1),
        ("L['xs'][0].size()[1] > 3 and not s0 < 2", 0),
        ("1 <= s0 <= 5 or L['x'].stride()[0] == 2", 1),
        ("Eq(Mod(s0, 2), 0)", 0),
        ("Max(s0, 2**3) - 1", 7),
        ("-s0 % 4", 3),
        ("L['x'].storage_offset()", 0),
        ("L['y'].size()[0]", None),
        ("s1 > 2", None),
        ("__import__('os')", None),
        ("s0 ** s0 ** s0 ** s0", None),
        ("s0 // 0", None),
        ("(" * 3000, None),
        ("s0 +", None),
        ("'a' == 'a'", None),
    ],
)
def test_what_conditions_say(text: str, value: int | None) -> None:
    """Tests the words of conditions, and that others are not known rather than wrong."""
    x = Value("x", "float32", 4, (6, 4), (4, 1))
    xs = Value("xs_0", "float32", 4, (2, 3), (3, 1))
    assert evaluate(text, {"x": x, "xs_0": xs}, {"s0": 5}) == value


def test_messages_of_assertions() -> None:
    """Tests that the condition is taken out of torch's message."""
    assert (
        parse_assertion("Runtime assertion failed for expression u0 >= 2 on node 'ge_1'")
        == "u0 >= 2"
    )
    assert parse_assertion("something else") == ""

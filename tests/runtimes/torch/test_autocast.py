"""Tests of autocast in exported programs: the casts that no graph shows, against PyTorch's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memplan.base.notes import Code
from memplan.programs.graph import Graph
from memplan.programs.sources.loaded import Loaded
from memplan.programs.sources.options import Options
from memplan.runtimes.torch.operators import TABLE
from memplan.runtimes.torch.read import load, read
from memplan.runtimes.torch.read.autocast import CAST, END

torch = pytest.importorskip("torch")
nn = torch.nn

from memplan.runtimes.torch.record import record  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
BF16 = torch.bfloat16
_COMPOSITE = {"gru", "inner", "lstm", "rnn_relu", "rnn_tanh"}  # made of operators that are cast
_IN_CUDA_BUILDS = {"_cudnn_rnn"}  # other builds of torch have no kernel of theirs
# Kernels that read one type and write another: nothing is cast in front of them.
_OWN_TYPE = {"cumprod", "cumsum", "linalg_matrix_norm", "linalg_vector_norm", "log_softmax"}
_OWN_TYPE |= {"norm", "prod", "softmax", "sum"}


class Block(nn.Module):
    """A block of a vision transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        """Attend, then transform, each with a skip around it."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """A vision transformer: patches, blocks, a head on the first token."""

    def __init__(self, width: int = 48, depth: int = 2, side: int = 16, patch: int = 4) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch)
        self.position = nn.Parameter(torch.zeros(1, (side // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Block(width, 6) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        """Classify images."""
        x = self.patch(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


class Inside(nn.Module):
    """A model that opens the region itself."""

    def __init__(self, model: Any, **options: Any) -> None:
        super().__init__()
        self.model, self.options = model, {"dtype": BF16, **options}

    def forward(self, *args: Any) -> Any:
        """Run the model under autocast, and something behind it."""
        with torch.autocast("cpu", **self.options):
            y = self.model(*args)
        return y.float() * 2


class Shared(nn.Module):
    """One weight for two operators, a buffer, and a view of a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("table", torch.ones(8, 8))

    def forward(self, x: Any) -> Any:
        """Return what needs four casts of weights."""
        return self.layer(self.layer(x) @ self.table) @ self.layer.weight.t()


class Nested(nn.Module):
    """A region in a region that is switched off, and one without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        """Return a result of all three."""
        x = self.a(x)
        with torch.autocast("cpu", enabled=False):
            x = self.b(x.float())
        with torch.no_grad():
            x = self.c(x)
        return self.a(x)


MODELS = {
    "vit": (ViT, (2, 3, 16, 16)),
    "shared": (Shared, (4, 8)),
    "nested": (Nested, (4, 8)),
    "conv": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 1)),
        (1, 3, 8, 8),
    ),
}


def both(program: Any, path: Path) -> list[Loaded]:
    """Return a program as read from memory and from its file."""
    torch.export.save(program, path)
    return [load(program), read(path, Options())]


def cached(graph: Graph) -> dict[str, int]:
    """Return the casts that live to the end of a region, and their bytes."""
    ends = [op for op in graph.walk() if op.type == END]
    return {graph.tensors[i].name: graph.tensors[i].bytes for op in ends for i in op.inputs}


@pytest.mark.parametrize("name", MODELS)
def test_casts_are_those_of_the_run(name: str, tmp_path: Path) -> None:
    """Tests that what is planned to a region's end is what PyTorch frees there, to the byte."""
    build, shape = MODELS[name]
    model, x = Inside(build()).eval(), torch.randn(shape)
    trace = record(model, x)
    rows = list(enumerate(trace.scopes))
    behind = min(int(trace.start[row]) for row, scope in rows if scope[1:2] == (("aten::to", 0),))
    ended = {int(trace.end[row]): row for row, scope in rows if "aten::_to_copy" in dict(scope)}
    sizes = []
    while behind - 1 in ended:  # a region frees its casts at its end, one after the other
        behind -= 1
        sizes.append(int(trace.size[ended[behind]]))
    for loaded in both(torch.export.export(model, (x,)), tmp_path / "model.pt2"):
        assert loaded.graph is not None
        assert sorted(cached(loaded.graph).values()) == sorted(sizes)


@pytest.mark.parametrize("name", MODELS)
def test_exported_under_autocast(name: str, tmp_path: Path) -> None:
    """Tests that a program that was exported inside a region is one region, and a note says so."""
    build, shape = MODELS[name]
    model = build().eval()
    inside, _ = both(torch.export.export(Inside(model), (torch.randn(shape),)), tmp_path / "a.pt2")
    with torch.autocast("cpu", dtype=BF16):
        program = torch.export.export(model, (torch.randn(shape),))
    for loaded in both(program, tmp_path / "b.pt2"):
        assert loaded.graph is not None
        assert inside.graph is not None
        (note,) = (note for note in loaded.notes if note.code == Code.AUTOCAST_ASSUMED)
        assert "run" in note.text
        assert "torch.autocast('cpu', torch.bfloat16)" in note.text
        assert sorted(cached(loaded.graph).values()) == sorted(cached(inside.graph).values())


def test_peak(tmp_path: Path) -> None:
    """Tests that the plan of a transformer holds its cast weights: most of the real peak."""
    model, x = Inside(ViT(96, 4)).eval(), torch.randn(1, 3, 16, 16)
    linear = [m for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
    weights = sum(2 * p.numel() for m in linear for p in m.parameters())
    real = record(model, x).problem().max_load
    for loaded in both(torch.export.export(model, (x,)), tmp_path / "model.pt2"):
        (note,) = (note for note in loaded.notes if note.code == Code.AUTOCAST_ASSUMED)
        assert f"({weights} bytes)" in note.text
        assert weights < loaded.problem.max_load <= real
        # What is left is scratch of kernels, of which some processors need more than others.
        assert loaded.problem.max_load > 0.8 * real


def test_cache_on(tmp_path: Path) -> None:
    """Tests that a region which says that it caches needs no note."""
    model = Inside(nn.Linear(8, 8), cache_enabled=True)
    for loaded in both(torch.export.export(model, (torch.randn(4, 8),)), tmp_path / "model.pt2"):
        assert loaded.graph is not None
        assert cached(loaded.graph) == {
            "model.weight as bfloat16": 128,
            "model.bias as bfloat16": 16,
        }
        assert not loaded.notes


def test_activations(tmp_path: Path) -> None:
    """Tests that casts of activations live for one operator, and only where types differ."""
    model = Inside(Shared())
    for loaded in both(torch.export.export(model, (torch.randn(4, 8),)), tmp_path / "model.pt2"):
        assert loaded.graph is not None
        casts = [op for op in loaded.graph.walk() if op.type == CAST]
        kept = cached(loaded.graph)
        others = [loaded.graph.tensors[op.outputs[0]] for op in casts]
        # The argument, the buffer and the view of the weight: each is cast where it is used.
        assert sorted(t.bytes for t in others if t.name not in kept) == [4 * 8 * 2, 128, 128]


def test_no_autocast(tmp_path: Path) -> None:
    """Tests that a program which converts by itself has no casts."""
    model = nn.Sequential(nn.Linear(8, 8).bfloat16())
    for loaded in both(
        torch.export.export(model, (torch.ones(2, 8).bfloat16(),)), tmp_path / "m.pt2"
    ):
        assert loaded.graph is not None
        assert CAST not in {op.type for op in loaded.graph.walk()}
        assert not loaded.notes


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_tables(device: str) -> None:
    """Tests that the tables name the operators which have a kernel for autocast."""
    key = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}[device]
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    has = {
        name.removeprefix("aten::").split(".")[0]
        for name in names
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
    }
    plain = {name for name, row in TABLE.items() if row.autocast in ("plain", f"plain on {device}")}
    reduced = {name for name, row in TABLE.items() if row.autocast == "reduced"}
    assert plain | (_OWN_TYPE if device == "cuda" else set()) >= has - reduced
    known = {name.removeprefix("aten::").split(".")[0] for name in names}
    assert plain & known <= has  # later releases of torch have more operators
    other = {"cpu": "AutocastCUDA", "cuda": "AutocastCPU"}[device]
    absent = set() if torch.version.cuda else _IN_CUDA_BUILDS
    for name in reduced - _COMPOSITE - has - absent:
        kernels = (each for each in names if each.removeprefix("aten::").split(".")[0] == name)
        assert any(torch._C._dispatch_has_kernel_for_dispatch_key(k, other) for k in kernels)

"""Tests that missing libraries are named before any work: one sentence, one `pip install`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memplan as mp
from memplan import _core
from memplan.base import extras
from memplan.cli import main
from memplan.cli.script import Script
from memplan.problem import formats
from memplan.runtimes.fitting import fit
from memplan.runtimes.tflm import read as tflite
from memplan.runtimes.tflm.write import apply, apply_in_bands, folding
from memplan.solvers import native
from memplan.solvers.registry import SOLVERS

ROOT = Path(__file__).parents[2]
MODELS = Path("examples/models")
TFLITE = str(MODELS / "mobile.tflite")
TORCH = str(MODELS / "residual.pt2")
ONNX = str(MODELS / "branches.onnx")
CSV = "examples/five.csv"

Hide = Callable[..., None]


@pytest.fixture(autouse=True)
def _there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the examples are."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Hide:
    """Return what hides libraries; from then on, what reads, plans or runs fails the test."""

    def work(*_: Any, **__: Any) -> Any:
        raise AssertionError("work was done before the missing library was named")

    def hide_libraries(*libraries: str) -> None:
        for library in libraries:
            monkeypatch.setitem(sys.modules, library, None)
        for owner, name in (
            *((native, "solve"), (_core, "best_order"), (_core, "bound"), (Script, "model")),
            *((tflite, "read"), (formats, "load"), (formats, "load_plan")),
        ):
            monkeypatch.setattr(owner, name, work, raising=False)

    return hide_libraries


def write_dump(tmp_path: Path) -> str:
    """Write the first bytes of a dump of XLA."""
    path = tmp_path / "step.hlo.pb"
    path.write_bytes(b"\x0a\x04main" + bytes(8))
    return str(path)


# By library that is hidden: commands that need it, and the extra to install.
COMMANDS = [
    ("onnx", ["plan", ONNX], "onnx"),
    ("onnx", ["inspect", ONNX], "onnx"),
    ("onnx", ["order", ONNX], "onnx"),
    ("onnx", ["verify", ONNX, CSV], "onnx"),
    ("onnx", ["bands", ONNX], "onnx"),
    ("onnx", ["fit", ONNX, "1MB"], "onnx"),
    ("onnx", ["tradeoff", ONNX], "onnx"),
    ("onnx", ["convert", ONNX, "OUT.csv"], "onnx"),
    ("onnx", ["compare", CSV, ONNX], "onnx"),
    ("onnx", ["view", TFLITE, "--recorded-from", ONNX], "onnx"),
    ("onnx", ["apply", ONNX, "--order", "-o", "OUT.onnx"], "onnx"),
    ("onnx", ["apply", ONNX, "--bands", "-o", "OUT.onnx"], "onnx"),
    ("onnx", ["apply", ONNX, "--c-header", "OUT.h"], "onnx"),
    ("matplotlib", ["view", TFLITE, "-o", "OUT.png"], "plot"),
    ("matplotlib", ["view", TFLITE, "--order", "-o", "OUT.svg"], "plot"),
    ("matplotlib", ["bands", TFLITE, "-o", "OUT.pdf"], "plot"),
    ("matplotlib", ["convert", CSV, "OUT.svg"], "plot"),
    ("bokeh", ["view", TFLITE, "-o", "OUT.html"], "view"),
    ("bokeh", ["bands", TFLITE, "-o", "OUT.html"], "view"),
    ("matplotlib", ["tradeoff", TFLITE, "-o", "OUT.png"], "plot"),
    ("bokeh", ["tradeoff", TFLITE, "-o", "OUT.html"], "view"),
    ("torch", ["plan", TORCH, "--measure"], "torch"),
    ("torch", ["inspect", TORCH, "--measure"], "torch"),
    ("torch", ["record", "examples/demo.py:main", "-o", "OUT.json"], "torch"),
    ("tflite_micro", ["apply", TFLITE, "--bands", "-o", "OUT.tflite"], "tflm"),
    ("flatbuffers", ["apply", TFLITE, "--bands", "-o", "OUT.tflite"], "tflm"),
]


@pytest.mark.parametrize(
    ("library", "arguments", "extra"), COMMANDS, ids=lambda each: " ".join(each)[-60:]
)
def test_commands_name_a_missing_library_first(
    library: str,
    arguments: list[str],
    extra: str,
    hide: Hide,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests every command, output and option that needs a library."""
    hide(library)
    line = [each.replace("OUT", str(tmp_path / "out")) for each in arguments]
    assert main(line) == 2
    said = capsys.readouterr()
    assert (
        said.err == f"memplan: this needs the library {library}: pip install 'memplan[{extra}]'\n"
    )
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []


def test_all_missing_libraries_are_named_at_once(
    hide: Hide, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests a picture of a model: one sentence for both, and one command installs them."""
    hide("onnx", "matplotlib", "google.protobuf")
    assert main(["view", ONNX, "-o", str(tmp_path / "out.png")]) == 2
    both = "the libraries matplotlib, onnx: pip install 'memplan[plot,onnx]'"
    assert capsys.readouterr().err == f"memplan: this needs {both}\n"
    with pytest.raises(mp.MissingExtraError, match=r"google\.protobuf, onnx: .*\[xla,onnx\]"):
        extras.check("xla", "onnx")
    assert main(["compare", CSV, write_dump(tmp_path)]) == 2


def test_a_solver_without_its_library_is_named_first(
    hide: Hide, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the commands and the function that take a solver of another package."""
    names = [name for name, each in SOLVERS.items() if each.libraries]
    if not names:
        pytest.skip("no package with such solvers is installed")
    library, *_ = SOLVERS[names[0]].libraries
    hide(library)
    for command in ("plan", "view"):
        assert main([command, CSV, "--solver", names[0]]) == 2
        assert f"{names[0]} needs the library {library}: pip" in capsys.readouterr().err
    with pytest.raises(mp.MissingExtraError, match="pip install"):
        mp.plan_model(CSV, solver=names[0])


def test_functions_name_a_missing_library_first(hide: Hide, tmp_path: Path) -> None:
    """Tests the functions of targets, on what could not be read if they tried."""
    from memplan.extensions import executorch
    from memplan.runtimes.onnx.write import apply as onnx_bands
    from memplan.runtimes.onnx.write import writer as onnx
    from memplan.runtimes.torch.write import apply as fx_bands
    from memplan.runtimes.torch.write import writer as fx

    hide("onnx", "torch", "executorch", "tflite_micro")
    model, out = Path(ONNX), tmp_path / "out"
    for call, extra in (
        (lambda: onnx.reorder(model, out), "onnx"),
        (lambda: onnx_bands.put_in_bands(model, out), "onnx"),
        (lambda: fit(ONNX, "1MB", out=tmp_path / "out.onnx"), "onnx"),
        (lambda: fx.reorder(7), "torch"),
        (lambda: fx_bands.put_in_bands(7), "torch"),
        (lambda: executorch.planner(timeout=1.0), "executorch"),
        (lambda: apply_in_bands(Path(TFLITE), out), "tflm"),
    ):
        with pytest.raises(mp.MissingExtraError, match=rf"pip install 'memplan\[{extra}\]'"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bands", [[], ["--order"]])
def test_packed_weights_are_refused_before_the_plan(
    bands: list[str],
    hide: Hide,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests a model whose weights would have to be unpacked, which needs the schema of TFLite."""
    hide("tflite_micro", "flatbuffers")
    monkeypatch.setattr(folding, "find_folded", lambda model: {0: {0}})
    out = tmp_path / "out.tflite"
    assert main(["apply", TFLITE, *bands, "-o", str(out)]) == 2
    assert "pip install 'memplan[tflm]'" in capsys.readouterr().err
    with pytest.raises(mp.MissingExtraError, match="libraries tflite_micro, flatbuffers"):
        apply(Path(TFLITE), out)


def test_a_fit_without_the_library_for_bands_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that levers which need no library are tried, and the one that does is named."""
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    found = fit(TFLITE, 1000, head_only=True)
    assert not found.fits
    last = found.steps[-1]
    assert last.lever == "bands"
    assert last.words.startswith("not tried: this needs the library flatbuffers: pip install")
    assert fit(TFLITE, "1MB", head_only=True).fits

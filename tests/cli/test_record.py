"""Tests of `memplan record`: scripts, inputs, what is written and what is said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memplan.cli import main
from memplan.problem.formats import load_trace

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

SCRIPT = """\
import dataclasses, torch
from helper import WIDTH

@dataclasses.dataclass
class Setting:
    width: int = WIDTH

class Wrong(torch.nn.Module):
    def forward(self, x):
        return x @ torch.zeros(3, 4)

def model():
    pool = torch.nn.MaxPool2d(2)
    return torch.nn.Sequential(torch.nn.Conv2d(3, Setting().width, 3), pool).eval()

def both():
    return model(), (torch.zeros(1, 3, 18, 18),)

def by_name():
    return model(), {"input": torch.zeros(1, 3, 18, 18)}

def tokens():
    return torch.nn.Embedding(10, 4).eval()

def training():
    return model().train(), torch.zeros(1, 3, 18, 18)

def divides():
    width = 0
    return 1 / width

def leaves():
    raise SystemExit(0)

def wrong():
    return Wrong(), torch.zeros(5)

def nothing():
    return None

number = 7

def step():
    trained = model()[0]
    updates = torch.optim.SGD(trained.parameters(), lr=0.1)
    def step(x):
        updates.zero_grad()
        trained(x).square().mean().backward()
        updates.step()
    return step, (torch.zeros(1, 3, 18, 18),), trained
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a script and a module that it imports; the process is in it."""
    (tmp_path / "net.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("WIDTH = 8\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    return tmp_path


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run what must be bad input; return the one sentence."""
    capsys.readouterr()
    assert main(["record", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("memplan: ")
    return err.removeprefix("memplan: ").rstrip()


class TestTraces:
    """What is recorded and written."""

    def test_then_everything_else(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Tests that what is recorded can be inspected and planned."""
        monkeypatch.setenv("COLUMNS", "140")  # nothing folded
        assert main(["record", "net.py:both", "-o", "trace.json"]) == 0
        said = capsys.readouterr().out
        for words in ("Sequential", "1x3x18x18 float32", "eval", "1 outlive the run"):
            assert words in said
        trace = load_trace("trace.json")
        assert any((".1", 0) in scope for scope in trace.scopes)
        assert main(["inspect", "trace.json"]) == 0
        assert ".0 (aten::conv2d)" in capsys.readouterr().out
        assert main(["plan", "trace.json", "-o", "plan.json", "--json"]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert summary["source"] == "trace"
        assert (summary["status"], summary["buffers"]) == ("optimal", len(trace.planned))
        assert main(["verify", "trace.json", "plan.json"]) == 0
        capsys.readouterr()
        assert main(["inspect", "trace.json", "--capacity", "64B"]) == 0
        assert capsys.readouterr().out.startswith("It does not fit into 64 bytes")

    def test_without_a_terminal(self, folder: Path) -> None:
        """Tests a process of its own: nothing but results on either stream."""
        words = ["record", "net.py:both", "-o", "trace.json"]
        run = subprocess.run(
            [sys.executable, "-m", "memplan", *words], capture_output=True, text=True
        )
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.startswith("model ")
        assert (folder / "trace.json").exists()

    @pytest.mark.parametrize(
        ("function", "inputs", "shown"),
        [
            ("model", ["--input", "1x3x20x18"], "1x3x20x18 float32"),
            ("model", ["--input", "2x3x8x8:float32"], "2x3x8x8 float32"),
            ("both", ["--input", "1x3x20x18"], "1x3x20x18 float32"),
            ("by_name", [], "input=1x3x18x18 float32"),
            ("tokens", ["--input", "5:int64"], "5 int64"),
        ],
    )
    def test_inputs(self, folder: Path, function: str, inputs: list[str], shown: str) -> None:
        """Tests inputs by shape, which come before the script's own, and inputs by name."""
        assert main(["record", f"net.py:{function}", *inputs, "-o", "t.json"]) == 0
        assert load_trace("t.json").about["inputs"] == shown

    def test_training_mode(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Tests that a model that was not put into `eval` mode is remarked on."""
        assert main(["record", "net.py:training", "-o", "t.json"]) == 0
        assert "in training mode; return model.eval()" in capsys.readouterr().err
        assert load_trace("t.json").about["mode"] == "train"

    def test_training_step(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Tests a function that returns a training step, its inputs and what it trains."""
        assert main(["record", "net.py:step", "-o", "t.json"]) == 0
        assert capsys.readouterr().err == ""
        trace = load_trace("t.json")
        assert trace.about["mode"] == "training step"
        assert any(at.startswith("ConvolutionBackward0/") for at in trace.ids)

    def test_compare_ir(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Tests that the report has the graph's tensors and what was recorded."""
        assert main(["record", "net.py:both", "-o", "t.json", "--compare-ir"]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        pooled = 8 * 8 * 8
        row = ["aten::max_pool2d", "1", f"{4 * pooled:,}", "2", f"{12 * pooled:,}"]
        assert row in lines
        trace = load_trace("t.json")
        assert lines.pop() == ["t.json:", "written"]
        assert lines[-1][0] == "total"
        assert lines[-1][3:] == [str(len(trace)), f"{trace.size.sum():,}"]


class TestRefusals:
    """What is wrong is one sentence, with the script and the line."""

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["net.py"], "'net.py' is not SCRIPT:FUNCTION, such as net.py:make_model"),
            (["net.py:"], "'net.py:' is not SCRIPT:FUNCTION"),
            (["no.py:model"], "no.py: the file cannot be read: no such file"),
            ([".:model"], ".: the file cannot be read: is a directory"),
            (["net.py:other"], "net.py: the script has no other"),
            (["net.py:number"], "net.py: number is not a function"),
            (["net.py:nothing"], "net.py: nothing() returns a NoneType; it must return a model"),
            (["net.py:model"], "net.py: model() returns no example inputs; return them, or give"),
            (["net.py:divides"], "net.py:30: divides() raises ZeroDivisionError: division by zero"),
            (["net.py:leaves"], "net.py:33: leaves() raises SystemExit: 0"),
            (["net.py:wrong"], "net.py:10: the model raises RuntimeError: mat1 and mat2 shapes"),
            (["net.py:both", "--input", "3xx4"], "'3xx4' is not SHAPE or SHAPE:DTYPE"),
            (["net.py:both", "--input", "3:float"], "the model raises RuntimeError"),
            (["net.py:both", "--input", "3:nn"], "'3:nn' is not SHAPE or SHAPE:DTYPE"),
            (["net.py:both", "--input", "x".join(["99999"] * 3)], "'99999x99999x99999': "),
            (["net.py:both", "--warmup", "-1"], "invalid value for '--warmup'"),
        ],
    )
    def test_sentences(
        self, folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
    ) -> None:
        """Tests the sentence, and that nothing is written."""
        assert sentence in refusal(capsys, *words, "-o", "t.json")
        assert not (folder / "t.json").exists()

    @pytest.mark.parametrize(
        ("script", "sentence"),
        [
            ("import torch\nmodel = = 3\n", "net.py:2: raises SyntaxError: invalid syntax"),
            ("import torch\n\nimport no_such\n", "net.py:3: raises ModuleNotFoundError: No module"),
            ("def f():\n    raise ValueError('a\\nb')\nf()\n", "net.py:2: raises ValueError: a"),
            ("def f(x: no_such): ...\n", "net.py:1: raises NameError: name 'no_such' is not"),
            ("raise KeyboardInterrupt\n", ""),
            ("\0", "net.py: raises "),
        ],
    )
    def test_scripts(
        self, folder: Path, capsys: pytest.CaptureFixture[str], script: str, sentence: str
    ) -> None:
        """Tests scripts that do not run; Ctrl-C in one is Ctrl-C."""
        (folder / "net.py").write_text(script)
        if not sentence:
            assert main(["record", "net.py:model", "-o", "t.json"]) == 130
            return
        assert sentence in refusal(capsys, "net.py:model", "-o", "t.json")

    def test_outputs(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Tests that a script is not written over, and a bad place is known before the run."""
        assert "is the input" in refusal(capsys, "net.py:divides", "-o", "net.py")
        words = refusal(capsys, "net.py:divides", "-o", "net.py/t.json")
        assert "is a file, not a folder" in words
        assert (folder / "net.py").read_text() == SCRIPT

    def test_nothing_else_is_written(self, folder: Path) -> None:
        """Tests that a script leaves no compiled copy of itself."""
        (folder / "net.py").write_text("import torch\ndef relu():\n    return torch.relu\n")
        assert main(["record", "net.py:relu", "--input", "4", "-o", "t.json"]) == 0
        assert {path.name for path in folder.iterdir()} == {"net.py", "helper.py", "t.json"}

    def test_a_graph_that_cannot_be(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Tests that what torch.export cannot do is said, and the trace is there all the same."""
        text = "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n"
        text += "        return x + 1 if x.sum().item() > 0 else x.neg()\n"
        text += "def model():\n    return M().eval(), torch.zeros(4)\n"
        (folder / "net.py").write_text(text)
        assert main(["record", "net.py:model", "-o", "t.json", "--compare-ir"]) == 2
        assert "torch.export makes no graph of the model" in capsys.readouterr().err
        assert len(load_trace("t.json")) > 0

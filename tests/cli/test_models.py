"""Tests of the command line on models: what it says of them, and what it is told about them."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from memplan.base.errors import MemplanError
from memplan.cli import app, main
from memplan.problem import formats
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources.graph_json import write_graph

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RUNNER = CliRunner()


def memplan(*words: object) -> Result:
    """Run the command line in this process."""
    return RUNNER.invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a chain x -> a -> b -> y with a weight, in which b may be written over a."""
    graph = Graph(
        name="chain",
        tensors=(
            Tensor("x", 64, Kind.INPUT),
            Tensor("w", 4096, Kind.CONSTANT),
            Tensor("a", 256),
            Tensor("b", 256),
            Tensor("y", 64, Kind.OUTPUT),
        ),
        operators=(
            Operator("first", "Gemm", (0, 1), (2,)),
            Operator("second", "Relu", (2,), (3,), in_place=((2, 3),)),
            Operator("third", "Gemm", (3,), (4,)),
        ),
        inputs=(0,),
        outputs=(4,),
        alignment=16,
    )
    path = tmp_path / "chain.onnx"  # a wrong suffix is no obstacle
    path.write_text(write_graph(graph))
    return path


def summary(*words: object) -> dict[str, object]:
    """Return what `memplan plan --json` says."""
    found = memplan("plan", *words, "--json")
    assert found.exit_code == 0, found.output
    answer: dict[str, object] = json.loads(found.stdout)
    return answer


def test_plan_names_the_operators(model: Path) -> None:
    """Tests that the report counts tensors and says what makes and uses the buffers at the peak."""
    found = memplan("plan", model)
    assert found.exit_code == 0
    for words in ("format", "graph", "tensors", "first (Gemm) -> second (Relu)", "optimal"):
        assert words in found.stdout


def test_inspect_names_the_operators(model: Path) -> None:
    """Tests that `inspect` says the same of the greatest load."""
    found = memplan("inspect", model)
    assert found.exit_code == 0
    assert "second (Relu) -> third (Gemm)" in found.stdout


def test_in_place_takes_the_better_plan(model: Path) -> None:
    """Tests that writing over an input is a choice, off unless asked for."""
    assert summary(model)["peak"] == 512
    assert summary(model, "--in-place")["peak"] == 320
    assert (
        summary(model, "--in-place", "--exclude", "outputs", "--exclude", "inputs")["peak"] == 256
    )


def test_kinds_can_be_added_and_left_out(model: Path) -> None:
    """Tests `--include` and `--exclude` against the kinds that the file plans."""
    assert summary(model)["buffers"] == 4
    assert summary(model, "--include", "constants")["peak"] == 512 + 4096
    assert summary(model, "--exclude", "inputs", "--exclude", "outputs")["buffers"] == 2


def test_a_plan_of_a_model_is_verified(model: Path, tmp_path: Path) -> None:
    """Tests plan, verify, view's reading and inspect on the model itself, with its options."""
    out = tmp_path / "plan.json"
    assert memplan("plan", model, "--include", "constants", "-o", out).exit_code == 0
    assert memplan("verify", model, out, "--include", "constants").exit_code == 0
    wrong = memplan("verify", model, out)
    assert wrong.exit_code == 1
    found = memplan("inspect", model, "--capacity", 300)
    assert found.exit_code == 0
    assert "does not fit" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--include", "weights"], "'weights' is none of inputs, outputs, constants"),
        (["--dim", "batch"], "'batch' is not NAME=N"),
        (["--dim", "batch=-1"], "'batch=-1' is not NAME=N"),
        (["--dim", "n=1", "--dim", "n=2"], "'n' is given twice"),
        (["--in-place", "--proof", "p"], "a proof is of one layout"),
    ],
)
def test_what_is_said_about_a_model_is_checked(model: Path, words: list[str], message: str) -> None:
    """Tests that a wrong option is one sentence and exit 2."""
    found = memplan("plan", model, *words)
    assert found.exit_code == 2
    assert message in " ".join(found.output.replace("│", " ").split())


def test_kinds_of_a_problem_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a CSV, which has no kinds of tensors, is not silently planned whole."""
    path = tmp_path / "p.csv"
    path.write_text("id,lower,upper,size\na,0,1,4\n")
    assert main(["plan", str(path), "--include", "constants"]) == 2
    assert "a csv file does not distinguish kinds of tensors" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["resnet50", "bert_base"])
def test_the_bundled_networks(name: str) -> None:
    """Tests that the structure files are planned at their bound, with many operators."""
    path = ROOT / "examples" / "structures" / f"{name}.graph.json"
    answer = summary(path)
    assert answer["status"] == "optimal"
    assert answer["peak"] == answer["lower_bound"] == answer["max_load"]
    assert isinstance(answer["tensors"], int)
    assert answer["tensors"] > 150


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("x", "b"), '"x" and "b" may share memory: "x" is over before "b" is made'),
        (("a", "b"), '"a" and "b" may not share memory: both are needed while "second"'),
    ],
)
def test_inspect_says_why(model: Path, names: tuple[str, str], said: str) -> None:
    """Tests that a pair of tensors is told as safe or unsafe, with the operators that decide."""
    found = memplan("inspect", model, "--why", *names)
    assert found.exit_code == 0
    assert found.stdout.startswith(said)
    assert len(found.stdout.splitlines()) == 1


def test_inspect_says_why_not(model: Path, tmp_path: Path) -> None:
    """Tests that unknown names, and files without operators, are an error for people."""
    problem = tmp_path / "problem.csv"
    problem.write_text("id,lower,upper,size\na,0,1,4\nb,0,1,4\n")
    for words, said in (
        ((model, "--why", "x", "q"), 'there is no tensor "q"'),
        ((model, "--why", "x", "w"), 'tensor "w" takes no memory that is planned'),
        (
            (problem, "--why", "a", "b"),
            "a problem has no operators, which --why is about; give the model that it comes from "
            "(.onnx, .tflite, .pt2, or a graph in JSON)",
        ),
    ):
        found = memplan("inspect", *words)
        assert isinstance(found.exception, MemplanError)
        assert str(found.exception) == said


def test_convert_draws_a_graph_of_operators(tmp_path: Path) -> None:
    """Tests the interference graph of four operators, in each format, and its problem as CSV."""
    graph = {
        "memplan_graph": 1,
        "inputs": ["in"],
        "outputs": ["d"],
        "tensors": [{"name": name, "bytes": 10} for name in ("in", "a", "b", "c", "d")],
        "operators": [
            {"type": "Conv", "inputs": ["in"], "outputs": ["a"]},
            {"type": "ReLU", "inputs": ["a"], "outputs": ["b"]},
            {"type": "MaxPool", "inputs": ["a"], "outputs": ["c"]},
            {"type": "Add", "inputs": ["b", "c"], "outputs": ["d"]},
        ],
    }
    (tmp_path / "four.json").write_text(json.dumps(graph))
    for name in ("x.dot", "x.graphml", "x.svg", "x.csv", "x.json"):
        assert memplan("convert", tmp_path / "four.json", tmp_path / name).exit_code == 0
    edges = re.findall(r"n(\d) -- n(\d) ", (tmp_path / "x.dot").read_text())
    assert ["".join(edge) for edge in edges] == ["01", "12", "13", "23", "24", "34"]
    assert formats.load(tmp_path / "x.csv").max_load == 30


def test_a_device_of_a_snapshot_is_chosen(tmp_path: Path) -> None:
    """Tests --device in the commands that read a snapshot, and where there is nothing to choose."""
    events = [[{"action": "alloc", "addr": 512, "size": size}] for size in (7, 900)]
    snapshot = {"segments": [], "device_traces": events}
    (tmp_path / "s.pickle").write_bytes(pickle.dumps(snapshot, 4))
    (tmp_path / "p.csv").write_text("id,lower,upper,size\na,0,1,4\n")
    path, plan = tmp_path / "s.pickle", tmp_path / "plan.json"
    assert "choose one with" in memplan("plan", path).stdout
    for command in (
        ("plan", path, "-o", plan, "--strict"),
        ("verify", path, plan),
        ("inspect", path, "--strict"),
        ("view", path, plan),
        ("convert", path, tmp_path / "out.csv"),
    ):
        run = memplan(*command, "--device", "0")
        assert (run.exit_code, run.stderr) == (0, "")
    for wrong in (("plan", path, "--device", "5"), ("plan", tmp_path / "p.csv", "--device", "0")):
        with pytest.raises(MemplanError, match=r"has no device 5; it has 0, 1|has one program"):
            RUNNER.invoke(app, [str(word) for word in wrong], catch_exceptions=False)

"""Tests of `memplan inspect`: how much, when, which buffers, and what would come down."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import command_line
import pytest
from small_programs import training_step
from tflite_models import Writer, chain

from memplan.cli import main
from memplan.programs.graph import Block, Graph, Kind, Operator, Tensor
from memplan.programs.sources import Figure, measuring
from memplan.programs.sources.graph_json import write_graph

ROOT = Path(__file__).parents[2]
RESNET = ROOT / "examples" / "structures" / "resnet50.graph.json"
HEAD = "id,lower,upper,size\n"


@pytest.fixture
def net() -> str:
    """Return a program with one tensor, t2, that is idle at the peak."""
    sizes = (8, 2, 10, 40, 30, 1)
    reads = ((0,), (1,), (0,), (3,), (2, 4))
    tensors = tuple(
        Tensor(f"t{i}", size, Kind.INTERMEDIATE if i else Kind.INPUT)
        for i, size in enumerate(sizes)
    )
    names = ("conv", "add", "pad", "pool", "last")
    operators = tuple(
        Operator(name, name.title(), inputs, (number,))
        for number, (name, inputs) in enumerate(zip(names, reads, strict=True), start=1)
    )
    Path("net.json").write_text(write_graph(Graph("net", tensors, operators, (0,))))
    return "net.json"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the lines that `memplan inspect` prints."""
    return command_line.told(capsys, "inspect", *words)


def summary(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return what `--json` prints."""
    (line,) = told(capsys, *words, "--json")
    found: dict[str, Any] = json.loads(line)
    return found


def test_words(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the answer, the amounts, the live set with makers, and what each change brings."""
    lines = told(capsys, net, "--no-runtime")
    assert lines[0] == (
        'At time [3, 4), 3 buffers hold 80 bytes; "t3" is 50.0 % of it. '
        "The plan meets this lower bound, so it is optimal."
    )
    for line in (
        "naive 91 113.8 % each buffer has memory of its own",
        "planned 80 100.0 % proved to be optimal",
        "bound 80 100.0 % the max load",
        "Live at the greatest load, time [3, 4): 3 buffers",
        "t3 40 50.0 % [2, 4) pad (Pad) -> pool (Pool)",
        "buffer halved removed or moved recomputed fused away",
        "t3 20 bytes less 39 bytes less - 60 bytes less",
        "t4 15 bytes less 22 bytes less - 60 bytes less",
        "t2 5 bytes less 10 bytes less 8 bytes less -",
    ):
        assert line in lines, line
    said = " ".join(lines)
    for sentence in (
        'With "t3" at half its size the load falls by 20 bytes (25.0 %): it is then greatest at '
        "time [3, 4) with 60 bytes. The plan then needs 60 bytes, proved to be optimal.",
        'Without "t3", or with it in another memory, the load falls by 39 bytes (48.8 %): '
        "it is then greatest at time [4, 5) with 41 bytes.",
        'With "t2" dropped at time 2 and made again by add (Add) just before 4, for which "t1" '
        "must be kept until then, the load falls by 8 bytes (10.0 %): it is then greatest at "
        "time [3, 4) with 72 bytes.",
        'With pad (Pad), pool (Pool) and last (Last) fused into one operator, so that "t3" and '
        '"t4" are not stored, the load falls by 60 bytes (75.0 %): it is then greatest at time '
        "[1, 2) with 20 bytes. The plan then needs 20 bytes, proved to be optimal. The file does "
        "not say whether a runtime or compiler can fuse them.",
    ):
        assert sentence in said, sentence


def test_json_says_the_same(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests every field of the object but those that other tests look at."""
    found = summary(capsys, net, "--no-runtime")
    assert (found["source"], found["tensors"], found["buffers"]) == ("graph", 6, 6)
    assert (found["naive"], found["lower_bound"], found["runtimes"]) == (91, 80, [])
    assert found["planned"] | {"solver": ""} == {"peak": 80, "proved": True, "solver": ""}
    assert found["max_load"] == {"bytes": 80, "start": 3, "end": 4, "sections": 1}
    assert found["capacity"] is None
    live = {each["id"]: each for each in found["live"]}
    assert list(live) == ["t3", "t4", "t2"]
    assert live["t2"]["halved"] == {"max_load": 75, "saved": 5}
    assert live["t2"]["removed"] == live["t2"]["moved"] == {"max_load": 70, "saved": 10}
    assert live["t2"]["recomputed"] == {"max_load": 72, "saved": 8}
    assert live["t3"]["recomputed"] is None
    assert (live["t3"]["made_by"], live["t3"]["used_by"]) == ("pad (Pad)", ["pool (Pool)"])
    (again,) = (trial for trial in found["trials"] if trial["change"] == "recomputed")
    assert (again["ids"], again["dropped"], again["again"]) == (["t2"], 2, 4)
    assert (again["by"], again["kept"]) == (["add (Add)"], ["t1"])
    assert again["planned"] == {"peak": 72, "proved": True}
    assert live["t4"]["fused"] == {"max_load": 20, "saved": 60}
    assert live["t2"]["fused"] is None
    fused, together = (trial for trial in found["trials"] if trial["change"] == "fused")
    assert fused["operators"] == ["pad (Pad)", "pool (Pool)", "last (Last)"]
    assert (fused["ids"], fused["not_stored"]) == (["t3"], ["t3", "t4"])
    assert (fused["start"], fused["end"], fused["max_load"]) == (1, 2, 20)
    assert together["runs"][-1] == fused["operators"]
    assert together["max_load"] < 20


def test_what_the_runtime_needs(
    net: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the format's own runtime is asked unless that is not wanted, and shown."""
    asked: list[str] = []

    def measure(source: str, *_: object) -> Figure | None:
        asked.append(source)
        return Figure("runtime 1.2", 160, "measured", "with scratch")

    monkeypatch.setattr(measuring, "measure", measure)
    lines = told(capsys, net)
    assert "runtime 160 200.0 % measured, version 1.2, with scratch" in lines
    (figure,) = summary(capsys, net)["runtimes"]
    assert (figure["runtime"], figure["bytes"]) == ("runtime 1.2", 160)
    assert summary(capsys, net, "--no-runtime")["runtimes"] == []
    assert asked == ["graph", "graph"]


def test_what_is_missing(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the sentences for a capacity that is too small, and for one that is not."""
    lines = told(capsys, net, "--no-runtime", "--capacity", "65")
    assert "It does not fit into 65 bytes." in lines
    assert "excess 15 bytes" in lines
    said = " ".join(lines)
    assert (
        'One of these alone brings the load within the capacity: halving "t3" or "t4"; removing or '
        'moving "t3" or "t4"; fusing the operators around "t3" or "t4".' in said
    )
    assert (
        'A plan fits if "t3" is halved (60 bytes), or if "t3" is removed or moved (41 bytes), '
        'or if "t3" is not stored because operators are fused (20 bytes), '
        'or if "t1", "t3" and "t4" are not stored because operators are fused (19 bytes).' in said
    )
    assert "No change to one buffer alone" in " ".join(told(capsys, net, "-c", "19"))
    found = summary(capsys, net, "--no-runtime", "-c", "65")
    known = {"fits": False, "required": 80, "sufficient": 80, "excess": 15}
    asked = {"bytes": 65, "available": 65, "section_count": 1, "subset": [], "irreducible": False}
    (section,) = found["capacity"].pop("sections")
    assert found["capacity"] == known | asked
    assert (section["excess"], section["load"]) == (15, 80)
    live = {each["id"]: each for each in found["live"]}
    assert live["t4"]["halved"] == {"max_load": 65, "saved": 15, "load_fits": True}
    assert live["t2"]["removed"]["load_fits"] is False
    fits = told(capsys, net, "-c", "80")
    assert "It fits into 80 bytes." in fits
    assert not any("alone" in line for line in fits)


def test_a_misfit_that_the_load_does_not_show(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a problem whose load fits and whose buffers do not."""
    Path("odd.json").write_text(
        '{"memplan": {"kind": "problem", "version": 1}, "capacity": 12, "reserved": [[6, 8]],'
        '"buffers": [{"id": "a", "start": 0, "end": 2, "size": 7}]}'
    )
    said = " ".join(told(capsys, "odd.json"))
    assert "It does not fit into 12 bytes." in said
    assert (
        "The load is within the capacity, but every plan leaves memory between buffers unused."
        in said
    )


def test_pins_that_contradict_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a problem that has no plan at all."""
    Path("none.json").write_text(
        '{"memplan": {"kind": "problem", "version": 1}, "capacity": 64, "groups": [["a", "b"]],'
        '"buffers": [{"id": "a", "start": 0, "end": 2, "size": 4},'
        '{"id": "b", "start": 0, "end": 2, "size": 4, "pin": 4},'
        '{"id": "c", "start": 0, "end": 2, "size": 4, "pin": 0}]}'
    )
    said = " ".join(told(capsys, "none.json"))
    assert "There is no plan: pins and groups contradict each other." in said
    assert "No capacity helps: pins and groups contradict each other." in said
    assert summary(capsys, "none.json")["planned"]["peak"] is None


def test_two_peaks_take_two_buffers(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that where no buffer alone brings the load down, a few together are tried."""
    Path("two.csv").write_text(HEAD + "a,0,2,8\nb,4,6,8\nc,0,6,1\nd,2,3,2\n")
    lines = told(capsys, "two.csv", "-c", "8")
    said = " ".join(lines)
    assert 'At time [0, 2), 2 buffers hold 9 bytes; "a" is 88.9 % of it.' in said
    assert 'One of these alone brings the load within the capacity: removing or moving "c".' in said
    Path("two.csv").write_text(HEAD + "a,0,2,8\nb,4,6,8\n")
    said = " ".join(told(capsys, "two.csv", "-c", "5"))
    assert 'At time [0, 2), "a" alone holds 8 bytes.' in said
    assert (
        "No single change lowers the load: it is as great in 1 other section, and no buffer is "
        "live in all of them. 2 buffers changed together lower it:" in said
    )
    assert 'With "a" and "b" at half their sizes the load falls by 4 bytes (50.0 %)' in said
    assert 'Without "a" and "b", or with them in another memory, the load falls by 8' in said
    assert (
        'No change to one buffer alone brings the load within the capacity. A plan fits if "a" '
        'and "b" are halved (4 bytes), or if "a" and "b" are removed or moved (0 bytes).' in said
    )
    trials = summary(capsys, "two.csv")["trials"]
    assert [(trial["ids"], trial["saved"]) for trial in trials] == [
        (["a", "b"], 4),
        (["a", "b"], 8),
    ]


def test_nothing_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests an empty problem, in words and as JSON, also under a capacity."""
    Path("empty.csv").write_text(HEAD)
    assert told(capsys, "empty.csv")[0] == "No buffer holds anything at any time."
    found = summary(capsys, "empty.csv", "-c", "4")
    assert (found["live"], found["naive"], found["planned"]["peak"]) == ([], 0, 0)
    assert found["capacity"]["fits"] is True


def test_a_plan_that_may_not_be_the_least(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a plan above the bound is not said to be proved, and that one node gives one."""
    rng = random.Random(8)
    starts = [rng.randint(0, 40) for _ in range(120)]
    rows = [(start, start + rng.randint(1, 12), rng.randint(1, 99)) for start in starts]
    lines = [f"b{row},{start},{end},{size}" for row, (start, end, size) in enumerate(rows)]
    Path("many.csv").write_text(HEAD + "\n".join(lines) + "\n")
    found = summary(capsys, "many.csv", "--nodes", "150")
    assert found["planned"]["peak"] > found["lower_bound"]
    assert found["planned"]["proved"] is False
    assert "less is not ruled out." in " ".join(told(capsys, "many.csv", "--nodes", "150"))
    assert "less is not ruled out." in " ".join(told(capsys, "many.csv", "--nodes", "1"))


@pytest.mark.skipif(not RESNET.is_file(), reason="examples are not installed")
def test_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests ResNet-50: the numbers of a second count, and that they agree with each other."""
    found = summary(capsys, str(RESNET), "--no-runtime")
    assert found["planned"]["proved"]
    assert found["planned"]["peak"] == found["lower_bound"] == found["max_load"]["bytes"]
    assert sum(each["bytes"] for each in found["live"]) == found["max_load"]["bytes"]
    for trial in found["trials"]:
        assert trial["max_load"] <= trial["planned"]["peak"] < found["planned"]["peak"]


@pytest.mark.parametrize("other", [["--why", "t1", "t2"], ["--suggest-sync"]])
def test_json_is_for_amounts(
    net: str, other: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that options for words alone are refused together with it."""
    assert main(["inspect", net, "--json", *other]) == 2
    assert "answer in words" in capsys.readouterr().err


def test_many_names_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests sentences about more buffers than one reads."""
    for count, said in ((4, '"0", "1", "2" and 1 other'), (9, '"0", "1", "2" and 6 others')):
        rows = [f"{row},{2 * row},{2 * row + 1},8" for row in range(count)]
        Path("many.csv").write_text(HEAD + "\n".join(rows) + "\n")
        assert f"With {said} at half their sizes" in " ".join(told(capsys, "many.csv"))
    rows = [f"{row},0,1,8" for row in range(9)]
    Path("many.csv").write_text(HEAD + "\n".join(rows) + "\n")
    said = " ".join(told(capsys, "many.csv", "-c", "64"))
    assert 'removing or moving "0", "1", "2" or one of 6 others.' in said


def test_paths_of_control_flow(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the hint, the table of paths, its sentences and its JSON."""
    tensors = [Tensor(name, 100) for name in ("x", "flag", "a", "large", "small", "y")]
    tensors[0] = Tensor("x", 100, Kind.INPUT)
    tensors[1] = Tensor("flag", 1, Kind.INPUT, "bool", ())
    large = Block("large", (Operator("", "Exp", (0,), (3,)),), (), (3,))
    small = Block("small", (Operator("", "Neg", (2,), (4,)),), (), (4,))
    steps = (Operator("pre", "Relu", (0,), (2,)),)
    chooses = Operator("cond", "If", (1,), (5,), blocks=(large, small))
    graph = Graph("net", tuple(tensors), (*steps, chooses), (0, 1), (5,))
    Path("branches.json").write_text(write_graph(graph))
    said = " ".join(told(capsys, "branches.json"))
    assert 'room for all branches of "cond" (large, small). A run takes one of them: --path' in said
    said = " ".join(told(capsys, "branches.json", "--path", "all"))
    assert "all branches 400 - without a choice" in said
    assert "cond=large 300 100 bytes (25.0 %) before the run" in said
    assert "so 300 bytes are enough for all of them, 100 bytes less than the plan" in said
    said = " ".join(told(capsys, "branches.json", "--path", "cond=small", "--known", "cond"))
    assert "A run on another path uses the plan of all branches, which then needs 400" in said
    found = summary(capsys, "branches.json", "--path", "cond=small", "--nodes", "9")["paths"]
    assert (found["conservative"], found["fallback"], found["complete"]) == (400, 400, False)
    (path,) = found["paths"]
    assert path == {"choices": {"cond": "small"}, "step": None, "peak": 300, "proved": True}
    assert summary(capsys, "branches.json")["paths"] is None
    for words, says in (
        (("--path", "cond"), "'cond' is not NAME=BRANCH"),
        (("--known", "cond"), "it needs --path"),
    ):
        assert main(["inspect", "branches.json", *words]) == 2
        assert says in capsys.readouterr().err


def test_equal_blocks_are_fused_together(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a ResNet-50, in which three blocks need the most: one fusion alone saves nothing."""
    words = [str(RESNET), "--no-runtime", "--nodes", "100"]
    said = " ".join(told(capsys, *words))
    assert "No single change lowers the load: it is as great in " in said
    assert "With 3 runs of operators fused, each into one (" in said
    assert "and 3 others are not stored, the load falls by 2.29 MiB (25.0 %)" in said
    found = summary(capsys, *words)
    (fused,) = (trial for trial in found["trials"] if trial["change"] == "fused")
    assert len(fused["runs"]) == 3
    assert [name for run in fused["runs"] for name in run] == fused["operators"]
    assert fused["not_stored"] == fused["ids"]
    assert fused["saved"] == found["max_load"]["bytes"] // 4


def test_what_a_tenth_less_memory_costs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Tests a training step, an inference, and an order that is enough; in words and as data."""
    step, fan = tmp_path / "step.json", str(ROOT / "examples" / "structures" / "fan.graph.json")
    step.write_text(write_graph(training_step()))
    network = str(ROOT / "examples" / "structures" / "bert_base.graph.json")
    for path, words, extra, impossible in (
        (
            str(step),
            "costs 5.17% more work (proved: no less): see `memplan tradeoff`.",
            True,
            False,
        ),
        (network, "is not reached by any order and any re-runs, proved: operator", None, True),
        (fan, "costs no more work: another order is enough.", False, False),
    ):
        assert main(["inspect", path]) == 0
        assert words in " ".join(capsys.readouterr().out.split())
        assert main(["inspect", path, "--json"]) == 0
        less = json.loads(capsys.readouterr().out)["less"]
        assert less["impossible"] is impossible
        assert less["extra"] is None if extra is None else (less["extra"] > 0) is extra
        assert extra is None or less["bound"] == less["extra"]
    assert main(["inspect", str(ROOT / "examples" / "five.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["less"] is None


def test_it_says_what_a_second_memory_would_serve(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a capacity that is too small: what lies outside, and when more room would help."""
    model = str(ROOT / "examples" / "models" / "residual.graph.json")
    assert main(["inspect", model, "--capacity", "60KiB"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "With a second memory, 393,216 bytes (384 KiB) of 925,760 bytes" in words
    assert "would be there; proved: no choice has less. 1 KiB more here saves at most" in words
    assert main(["inspect", model, "--capacity", "60KiB", "--json"]) == 0
    outside = json.loads(capsys.readouterr().out)["outside"]
    assert outside["traffic"] == outside["bound"] == 393_216
    assert {"conv2d_1", "conv2d_2"} <= set(outside["buffers"])
    assert {"start": 2, "end": 3} in [
        {"start": each["start"], "end": each["end"]} for each in outside["saved_by_1_kib"]
    ]
    assert main(["inspect", model, "--capacity", "72KiB", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outside"] is None


def test_a_pin_above_the_capacity_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests `inspect` and `plan` of a table, of which one buffer has an offset."""
    Path("p.csv").write_text("id,lower,upper,size,offset\na,0,10,64,\nb,2,6,32,128\n")
    lines = told(capsys, "p.csv", "--capacity", "100")
    assert "It does not fit into 100 bytes." in lines
    assert "required 160 bytes, proved to be the minimum" in lines
    assert "excess 60 bytes" in lines
    assert '"b" is pinned at 128.' in lines
    assert main(["plan", "p.csv", "--capacity", "100", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["conflict"] == ["b"]
    assert main(["plan", "p.csv", "--capacity", "160"]) == 0
    capsys.readouterr()
    reserved = ("p.csv", "--reserve", "150:4000")
    sentence = 'no plan leaves --reserve free: buffer "b": pin 128 puts it on the reserved range'
    for command in ("plan", "inspect"):
        assert sentence in command_line.refused(capsys, command, *reserved, code=1)
    assert "overlap" in command_line.refused(capsys, "plan", *reserved, "--reserve", "9:200")


def test_a_written_model_can_be_asked_whether_it_fits(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a gate after `apply`: offsets in the file are above a smaller capacity."""
    Path("m.tflite").write_bytes(Writer().write(chain("RELU", "TANH", "NEG", shape=(16, 16))))
    assert main(["apply", "m.tflite", "-o", "w.tflite"]) == 0
    capsys.readouterr()
    ample = {"m.tflite": True, "w.tflite": True}
    for capacity, fits in ((1 << 20, ample), (1500, dict.fromkeys(ample, False))):
        for name, expected in fits.items():
            words = (name, "--capacity", str(capacity), "--json")
            assert main(["plan", *words]) == (0 if expected else 1)
            capsys.readouterr()
            assert summary(capsys, *words[:-1])["capacity"]["fits"] in (expected, None)

"""Tests of `memplan plan FILE --memory A --memory B`."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from command_line import refused, told
from memories_in_c import draw_program

import memplan as mp
from memplan.cli import main
from memplan.machine.memories.text import format_memory, parse_memories
from memplan.problem import Buffer, Problem
from memplan.programs.sources.graph_json import write_graph

MOBILE = Path(__file__).parents[2] / "examples" / "models" / "mobile.tflite"
NETWORK = MOBILE.parents[1] / "c_header" / "network.graph.json"
TWO = ("--memory", "sram=10", "--memory", "psram=1KiB")
ASKED = ("plan", "net.json", *TWO)


@pytest.fixture(autouse=True)
def _here() -> None:
    """Work in a folder of its own, in which is a problem."""
    buffers = [Buffer("a", 0, 4, 6), Buffer("b", 0, 4, 5), Buffer("c", 0, 4, 5)]
    mp.save(Problem(buffers), "net.json")
    Path("plans").mkdir()


def test_plans_of_both_memories(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the words, and that `verify` takes the folder of both plans."""
    lines = told(capsys, *ASKED, "-o", "plans")
    for line in (
        "sram 2 10 10 10 10",
        "psram 1 6 1,024 6 6",
        "traffic 140, each byte times its cost; proved: no assignment costs less",
        "a [0, 4) 6 0 psram 120",
        "plans/sram.plan.json: written",
    ):
        assert line in lines
    assert any("psram holds 1 buffer (a) in 6 bytes. A run reads 6 bytes" in line for line in lines)
    (line,) = told(capsys, "verify", "net.json", "plans")
    assert line == "OK: 3 buffers, 6 bytes of psram, 10 bytes of sram, traffic 140"


def test_a_plan_that_is_wrong_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a plan of one memory, one that is missing, and one that was changed."""
    told(capsys, *ASKED, "-o", "plans")
    fast, slow = Path("plans/sram.plan.json"), Path("plans/psram.plan.json")
    assert "give the folder of all of them" in refused(capsys, "verify", "net.json", str(fast))
    kept, text = slow.read_text(), fast.read_text()
    slow.unlink()
    assert main(["verify", "net.json", "plans"]) == 1
    assert 'buffer "a" is in no memory' in capsys.readouterr().err
    slow.write_text(kept)
    fast.write_text(re.sub(r'("offset": ?)5', r"\g<1>4", text))
    assert fast.read_text() != text
    assert main(["verify", "net.json", "plans"]) == 1
    assert "plans: " in capsys.readouterr().err
    told(capsys, "plan", "net.json", "-o", "plans/other.plan.json")
    words = "this plan is not of one of several memories"
    assert words in refused(capsys, "verify", "net.json", "plans")
    Path("plans/other.plan.json").write_text(text)
    assert 'is in "sram" and "sram"' in refused(capsys, "verify", "net.json", "plans", code=1)
    Path("plans/other.plan.json").write_text(text.replace('"memory": "', '"memory": 3, "a": "'))
    assert "its `memory` is not as" in refused(capsys, "verify", "net.json", "plans")
    Path("plans/other.plan.json").unlink()
    given = ("verify", "net.json", "plans", "--capacity", "5")
    assert "it is of one memory" in refused(capsys, *given)


def test_the_facts_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the record, of a model whose operators say what is read."""
    sizes = ("--memory", "sram=20KiB", "--memory", "psram=8MiB")
    assert main(["plan", str(MOBILE), *sizes, "--in-place", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    record = answer["memories"]
    fast, slow = record["memories"]
    assert answer["axes"][0]["found"] == record["traffic"] == record["lower_bound"]
    assert record["traffic"] == sum(
        each["read"] * each["read_bytes"] + each["write"] * each["written_bytes"]
        for each in (fast, slow)
    )
    assert (fast["peak"] <= 20480, slow["read"]) == (True, 10)


def test_a_buffer_that_must_be_somewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that what it displaces is what saves least."""
    assert main([*ASKED, "--allow", "a=sram", "--json"]) == 0
    fast, slow = json.loads(capsys.readouterr().out)["memories"]["memories"]
    assert set(fast["buffers"]) == {"a"}
    assert set(slow["buffers"]) == {"b", "c"}


MOVES = ("--memory", "sram=160", "--memory", "psram=1KiB", "--residency")


def write_mirror() -> None:
    """Write a program whose tensors are read again in its second half."""
    graph = draw_program(random.Random(12), 24, is_long=True)
    Path("net.graph.json").write_text(write_graph(graph))


def test_plans_of_buffers_that_move(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the words, the record, and that `verify` follows what moves."""
    write_mirror()
    asked = ("plan", "net.graph.json", *MOVES)
    lines = told(capsys, *asked, "-o", "plans")
    (moves,) = [line for line in lines if line.startswith("moves ")]
    assert re.fullmatch(
        r"moves \d+ buffers in \d+ pieces; \d+ bytes are copied, "
        r"\d+ of \d+ copies beside operators",
        moves,
    )
    assert " ".join(lines).count(", with homes that have room for all") == 2
    roomy = told(capsys, "plan", "net.graph.json", *MOVES[:1], "sram=1MiB", *MOVES[2:])
    assert not [line for line in roomy if line.startswith("moves ")]
    assert " ".join(roomy).count(", with homes that have room for all") == 2
    assert main([*asked, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["memories"]
    assert record["residency"] is True
    assert record["traffic"] == sum(
        each["read"] * each["read_bytes"] + each["write"] * each["written_bytes"]
        for each in record["memories"]
    )
    pieces = {each["copy"] for each in record["stretches"]}
    assert {each["copy"] for each in record["copies"]} <= pieces
    assert pieces <= record["memories"][0]["buffers"].keys()
    (line,) = told(capsys, "verify", "net.graph.json", "plans")
    assert line.endswith(f"traffic {record['traffic']:,}")
    path = Path("plans/sram.plan.json")
    text = path.read_text()
    path.write_text(text.replace('"stored": true', '"stored": false', 1))
    assert main(["verify", "net.graph.json", "plans"]) == 1
    assert "plans: buffer " in capsys.readouterr().err
    for old, new in (('"stored": true', '"stored": 1'), ('"stretches": ', '"stretches": 5, "x": ')):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        assert "its stretches are not" in refused(capsys, "verify", "net.graph.json", "plans")
    path.write_text(re.sub(r'("buffer": )"t\d+"', r'\1"none"', text, count=1))
    assert main(["verify", "net.graph.json", "plans"]) in (1, 2)
    assert '"none"' in capsys.readouterr().err


def test_fit_writes_headers_of_buffers_that_move(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the command, and that a model of TFLM, with an address for each tensor, is refused."""
    write_mirror()
    lines = told(capsys, "fit", "net.graph.json", *MOVES, "-o", "out")
    assert any("pieces of others" in line for line in lines)
    header = Path("out/net.h").read_text()
    assert "void net_move(int64_t step);" in header
    assert re.search(r"#define NET_AT_t\d+\(step\) ", header)
    words = "one address for each tensor"
    assert words in refused(capsys, "fit", str(MOBILE), *MOVES)
    assert "it needs --memory" in refused(capsys, "fit", str(MOBILE), "10KiB", "--residency")


def test_memories_as_text() -> None:
    """Tests costs that are left out, and that a text of a memory reads as the memory."""
    first, second, third, last = parse_memories(
        ("tcm=64KiB", "sram=512KiB,read=2", "psram=8MiB,base=0x3C000000,align=32", "host")
    )
    assert (first.read, first.write, first.capacity) == (1, 1, 65536)
    assert (second.read, second.write) == (2, 2)
    assert (third.read, third.write, third.base, third.alignment) == (20, 20, 0x3C000000, 32)
    assert (last.read, last.capacity) == (200, None)
    assert [each.assumed for each in (first, second, third, last)] == [True, False, True, True]
    assert [each.read for each in parse_memories(("a", "b", "c"))] == [1, 10, 100]
    for memory in (first, second, third, last):
        known = replace(memory, assumed=False)
        assert parse_memories([format_memory(memory)]) == (known,)


def test_costs_as_rates_are_nanoseconds() -> None:
    """Tests rates, decimals and fractions, and the memory before the first one with a rate."""
    sram, psram = parse_memories(("sram=320KiB", "psram=4MiB,read=80MB/s,write=40MB/s"))
    assert (psram.read, psram.write) == (12.5, 25)
    assert (sram.read, sram.write, sram.assumed) == (1.25, 2.5, True)
    slow, slower = parse_memories(("a=1KiB,read=30MB/s", "b=1KiB,write=1MiB/s"))
    assert (slow.read, slow.write) == (Fraction(100, 3), Fraction(100, 3))
    assert slower.read == slower.write == Fraction(10**9, 1 << 20)
    assert parse_memories(("a=1,read=2.5,write=7/3",))[0].write == Fraction(7, 3)
    for memory in (psram, slow, slower):
        assert parse_memories([format_memory(memory)]) == (memory,)


def test_what_operators_read_again_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that weights, re-reads and fractional costs give one traffic in plan and verify."""
    asked = ("plan", str(NETWORK), "--memory", "sram=10KiB", "--memory", "psram=1MiB,read=80MB/s")
    lines = told(capsys, *asked, "--include", "constants", "--reads", "Relu=2.5", "-o", "plans")
    assert any("costs" in line and "1.25 in sram, 12.5 in psram" in line for line in lines)
    assert any("assumed for sram: no cost was given" in line for line in lines)
    traffic = next(line.split()[1].rstrip(",") for line in lines if line.startswith("traffic"))
    valid = told(capsys, "verify", str(NETWORK), "plans", "--include", "constants")
    assert valid[0].endswith(f"traffic {traffic}")
    path = Path("plans/sram.plan.json")
    path.write_text(path.read_text().replace("Relu=2.5", "RELU=3"))
    assert "its `reads` are not those" in refused(capsys, "verify", str(NETWORK), "plans")


def test_fit_says_what_is_where_and_what_it_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests a network that needs both memories, and one that the fast one is enough for."""
    slow = ("--memory", "psram=1MiB", "-o", "out")
    lines = told(capsys, "fit", str(NETWORK), "--memory", "sram=10KiB", *slow)
    assert any(line.startswith("sram alone is not enough") for line in lines)
    assert any("psram holds 1 buffer (image) in 1,024 bytes" in line for line in lines)
    assert lines[-1] == "out/network.h: written"
    assert "network_memory_psram[NETWORK_MEMORY_SIZE_psram]" in Path("out/network.h").read_text()
    lines = told(capsys, "fit", str(NETWORK), "--memory", "sram=11KiB", *slow)
    assert any("No other memory is needed" in line for line in lines)
    assert "network_arena[" in Path("out/network.h").read_text()
    assert main(["fit", str(NETWORK), "--memory", "sram=10KiB", *slow[:2], "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["assigned"]["memories"][1]["buffers"] == {"image": 0}
    asked = ("fit", str(NETWORK), "--memory", "sram=10KiB", *slow[:2])
    for words in (("10KiB",), ("--head",)):
        assert "it is of one memory" in refused(capsys, *asked, *words)
    assert "needs a size" in refused(capsys, *asked[:2], "--memory", "sram", *slow[:2])


BOARD = """
board = "esp32-s3"
reserved = ["0:0x400"]

[[memory]]
name = "sram"
size = "40KiB"

[[memory]]
name = "psram"
size = "8MiB"
read = "80MB/s"
write = "40MB/s"
base = 0x3C000000

[reads]
CONV_2D = 9
"""


def test_a_machine_in_a_file_is_that_of_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests memories, rates, board, reads and what is reserved, by the plans and by `verify`."""
    Path("board.toml").write_text(BOARD)
    memories = ("--memory", "sram=40KiB", "--memory", "psram=8MiB,read=80MB/s,write=40MB/s")
    options = (*memories[:-1], f"{memories[-1]},base=0x3C000000", "--reads", "CONV_2D=9")
    options += ("--board", "esp32-s3", "--reserve", "0:0x400")
    told(capsys, "plan", str(MOBILE), "--machine", "board.toml", "-o", "file")
    told(capsys, "plan", str(MOBILE), *options, "-o", "words")
    for name in ("sram.plan.json", "psram.plan.json"):
        plans = [json.loads(Path(folder, name).read_text()) for folder in ("file", "words")]
        assert plans[0] | {"stats": None} == plans[1] | {"stats": None}
        assert min(each["offset"] for each in plans[0]["buffers"]) >= 0x400
    asked = ("--board", "esp32-s3", "--reserve", "0:1KiB")
    (line,) = told(capsys, "verify", str(MOBILE), "file", *asked)
    assert line.startswith("OK: ")
    found = mp.Machine.load("board.toml")
    assert [each.name for each in found.memories] == ["sram", "psram"]
    assert found.reserved == ((0, 0x400),)


def test_a_model_for_the_board_of_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the arena with a hole where the scratch is that of a board's kernels."""
    pytest.importorskip("tflite_micro")
    Path("board.toml").write_text(BOARD)
    lines = told(capsys, "fit", str(MOBILE), "--machine", "board.toml", "-o", "out")
    assert "out/mobile_memories.h: written" in lines
    assert any("one arena with a hole" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("bord = 'x'", '"bord" is nothing that the file has'),
        ("board = 1", "board is not a name in quotes"),
        ("board = x", "this is no TOML"),
        ("memory = 1", "begin each with [[memory]]"),
        ("[[memory]]\nsize = '1KiB'", "a memory has no name"),
        ("[[memory]]\nname = 'a'\nspeed = 1", '"speed" is nothing that a memory has'),
        ("[[memory]]\nname = 'a'\nsize = true", "size of a memory is neither a number nor"),
        ("[[memory]]\nname = 'a'\nsize = 'much'", 'memory "a"'),
        ("reserved = ['5']", '"5" is not LOWER:UPPER'),
        ("reserved = '5:6'", "reserved is a list"),
        ("reads = 3", "reads is a table"),
        ("[reads]\nCONV_2D = -1", "does not say how often"),
        ("board = 'esp33'", 'no board has the name "esp33"'),
    ],
)
def test_a_wrong_machine_is_refused(
    text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests one sentence, which names the file but for boards, and no traceback."""
    Path("board.toml").write_text(text)
    said = refused(capsys, "plan", "net.json", "--machine", "board.toml")
    assert sentence in said
    assert "board.toml" in said or "board" in sentence
    assert "the file has the memories" in refused(capsys, *ASKED, "--machine", "board.toml")


@pytest.mark.parametrize("more", [(), ("--residency",)])
def test_a_memory_with_an_alignment_of_its_own(
    more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the plans of all memories and the whole answer are right, also with gaps."""
    gap = Buffer("gapped", 0, 9, 5, gaps=[mp.Gap(3, 6)])
    buffers = [gap, *(Buffer(f"b{at}", at, at + 3, 7) for at in range(6))]
    mp.save(Problem(buffers), "net.json")
    memories = ("--memory", "a=16", "--memory", "b,read=8,write=8,align=64")
    memories = (memories[0], "a=16,read=1,write=1", *memories[2:])
    told(capsys, "plan", "net.json", *memories, *more, "-o", "out")
    plan = json.loads(Path("out/b.plan.json").read_text())
    assert plan["buffers"]
    assert not any(each["offset"] % 64 for each in plan["buffers"])
    assert told(capsys, "verify", "net.json", "out")[0].startswith("OK: ")
    assert told(capsys, "verify", "net.json", "out/answer.json")[0].startswith("valid: ")

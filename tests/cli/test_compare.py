"""Tests of `memplan compare`: a gate for CI, and its output as text, JSON and Markdown."""

from __future__ import annotations

import json
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import strategies
import typer
from hypothesis import given

from memplan import solvers
from memplan.analysis.compare import compare as compared
from memplan.cli import compare, main
from memplan.problem import Buffer, Problem, formats
from memplan.problem.plan import Plan
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources.graph_json import write_graph
from memplan.view.comparison import make_report
from memplan.view.markdown import format_code, format_report

HEAD = "id,lower,upper,size\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder, the current one, with three problems in it."""
    Path("a.csv").write_text(HEAD + "x,0,2,1000\ny,1,3,1000\n")
    Path("b.csv").write_text(HEAD + "x,0,2,1000\ny,1,3,1021\n")
    Path("empty.csv").write_text(HEAD)
    return tmp_path


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("1%", 1),
        ("1.05%", 0),
        ("2 %", 0),
        ("0%", 1),
        ("20B", 1),
        ("21B", 0),
        ("0", 1),
        ("4KiB", 0),
        ("2048", 0),
    ],
)
@pytest.mark.parametrize("what", ["peak", "load"])
def test_a_gate(folder: Path, limit: str, code: int, what: str) -> None:
    """Tests shares and bytes: the exit code, from 2,000 bytes to 2,021."""
    assert main(["compare", "a.csv", "b.csv", f"--fail-if-{what}-grows", limit]) == code
    assert main(["compare", "b.csv", "a.csv", f"--fail-if-{what}-grows", limit]) == 0
    assert main(["compare", "a.csv", "a.csv", f"--fail-if-{what}-grows", limit]) == 0


def test_a_gate_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the sentences, and that one limit that is passed decides."""
    gates = ["--fail-if-peak-grows", "1%", "--fail-if-load-grows", "1KiB"]
    assert main(["compare", "a.csv", "b.csv", *gates]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Failed: the peak grew by more than 1%."
    assert lines[2] == "Passed: the load did not grow by more than 1KiB."
    assert main(["compare", "a.csv", "b.csv"]) == 0


def test_a_gate_that_more_search_may_open(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that growth to a peak without a proof is failed with that doubt, the load not."""
    problem = formats.load("b.csv")
    formats.save(Plan.of(problem, [0, 1500], lower_bound=2021), "loose.csv")
    gates = ["--fail-if-peak-grows", "1%", "--fail-if-load-grows", "1%"]
    assert main(["compare", "a.csv", "loose.csv", *gates]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "Failed: the peak grew by more than 1%; a smaller one is not ruled out.",
        "Failed: the load grew by more than 1%.",
    ]


def test_who_else_is_live_at_the_peak(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the lists of what is live at one peak only: new, gone, or live at other times."""
    Path("c.csv").write_text(HEAD + "x,0,2,1000\ny,5,7,1000\nz,5,7,1500\n")
    assert main(["compare", "a.csv", "c.csv"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    at = lines.index("Live at the peak after, and not at the peak before: 1 buffer")
    assert lines[at + 1] == "buffer bytes before"
    assert lines[at + 3] == "z 1,500 bytes (1.46 KiB) not there"
    at = lines.index("Live at the peak before, and not at the peak after: 1 buffer")
    assert lines[at + 3] == "x 1000 bytes live at other times"


def test_a_gate_after_ctrl_c(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that plans of searches that were ended pass no gate, and are compared without one."""
    solve = solvers.solve

    def interrupt(*given: Any, **search: Any) -> Plan:
        raise solvers.Interrupted(solve(*given, **search))

    monkeypatch.setattr(solvers, "solve", interrupt)
    assert main(["compare", "b.csv", "a.csv", "--fail-if-peak-grows", "1%"]) == 3
    said = capsys.readouterr()
    assert "It is not known whether the peak grew by more than 1%." in said.out
    assert said.err == "memplan: interrupted: the best plans so far, not proved\n"
    assert main(["compare", "a.csv", "b.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["interrupted"] is True


def test_a_gate_without_a_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that what cannot be judged does not pass."""
    problem = Problem([Buffer("x", 0, 2, 4)])
    formats.save(Plan.of(problem, None, status="unknown"), "none.json")
    assert main(["compare", "a.csv", "none.json", "--fail-if-peak-grows", "1%"]) == 3
    assert "It is not known whether the peak grew by more than 1%." in capsys.readouterr().out
    assert main(["compare", "a.csv", "none.json"]) == 0
    gates = ["--fail-if-peak-grows", "9999%", "--fail-if-load-grows", "0"]
    assert main(["compare", "empty.csv", "a.csv", *gates]) == 1


def test_as_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests the amounts with their change, and the buffers that are different."""
    assert main(["compare", "a.csv", "b.csv"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == (
        "The peak grew by 21 bytes (1.1 %), to 2,021 bytes (1.97 KiB); "
        "both are proved to be optimal."
    )
    for line in (
        "a.csv b.csv",
        "peak 2,000 bytes (1.95 KiB) 2,021 bytes (1.97 KiB) +21 bytes (+1.1 %)",
        "buffers 2 2 -",
        "peak at time [1, 2) time [1, 2)",
        "Grown: 1 buffer",
        "y 1000 bytes 1021 bytes +21 bytes (+2.1 %)",
    ):
        assert line in lines
    assert not any("Added" in line or "Live" in line for line in lines)


def test_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that all lists and both sides are there, with what became of the limits."""
    words = ["compare", "a.csv", "b.csv", "--format", "json", "--fail-if-peak-grows", "0%"]
    assert main(words) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["before"]["peak"] == found["before"]["bound"] == found["before"]["load"] == 2000
    after = {"buffers": 2, "naive": 2021, "load": 2021, "bound": 2021, "peak": 2021}
    assert found["after"] == after | {"proved": True, "start": 1, "end": 2}
    assert found["grown"] == [
        {"before": "y", "after": "y", "bytes_before": 1000, "bytes_after": 1021}
    ]
    for name in ("added", "removed", "shrunk", "renamed", "arrived", "left", "notes"):
        assert found[name] == []
    assert [limit["code"] for limit in found["limits"]] == [1]


def test_one_failed_gate_decides_where_another_is_not_known(folder: Path) -> None:
    """Tests a plan whose load is not known, with a peak that grew: 1 and not 3."""
    formats.save(Plan.of(Problem([Buffer("x", 0, 2, 5000)]), [0]), "large.json")
    load = ["--fail-if-load-grows", "1%"]
    assert main(["compare", "a.csv", "large.json", *load]) == 3
    for growth, code in (("1%", 1), ("9999%", 3)):
        gates = [*load, "--fail-if-peak-grows", growth]
        assert main(["compare", "a.csv", "large.json", *gates]) == code


def test_programs_that_share_nothing_do_not_pass(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests two programs without a common buffer, with limits and without, and one in common."""
    Path("other.csv").write_text(HEAD + "p,0,9,5\nq,1,7,6\nr,5,9,7\n")
    sentence = "Failed: the two have no name in common, and few buffers or none that look the same"
    for gates in ([], ["--fail-if-peak-grows", "1%", "--fail-if-load-grows", "1KiB"]):
        assert main(["compare", "a.csv", "other.csv", *gates]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[1].startswith(sentence)
        assert not any(line.startswith("Passed") for line in lines)
    assert main(["compare", "a.csv", "other.csv", "--json"]) == 1
    assert [each["code"] for each in json.loads(capsys.readouterr().out)["limits"]] == [1]
    for empty in (("empty.csv", "a.csv"), ("a.csv", "empty.csv")):
        assert main(["compare", *empty]) == 0
    Path("other.csv").write_text(HEAD + "p,0,9,5\nx,1,7,6\nr,5,9,7\n")
    assert main(["compare", "a.csv", "other.csv", "--fail-if-peak-grows", "1%"]) == 0


def test_a_page_has_what_the_text_has(folder: Path) -> None:
    """Tests the sentences, the tables, and names that hold marks of HTML."""
    Path("c.csv").write_text(HEAD + 'x,0,2,1000\n"<b>&y",1,3,1021\n')
    words = ["compare", "a.csv", "c.csv", "-o", "new/out.html", "--fail-if-peak-grows", "1%"]
    assert main(words) == 1
    text = Path("new/out.html").read_text()
    assert text.startswith("<!doctype html>\n")
    assert "<title>a.csv and c.csv</title>" in text
    for each in ("<h1>The peak grew by 21 bytes", "<p>Failed: the peak grew by more than 1%.</p>"):
        assert each in text
    assert "<code>&lt;b&gt;&amp;y</code>" in text
    assert "<b>" not in text
    parser = HTMLParser()
    parser.feed(text)
    assert text.count("<table>") == text.count("</table>") >= 2


@pytest.mark.parametrize("name", ["out.md", "out.json", "out.txt", "out"])
def test_a_file(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the suffix decides, that only the name is printed, and that the gate holds."""
    words = ["compare", "a.csv", "b.csv", "-o", name, "--fail-if-peak-grows", "1%"]
    assert main(words) == 1
    assert capsys.readouterr().out == f"{name}: written\n"
    text = Path(name).read_text()
    starts = {"out.md": "**The peak grew", "out.json": '{"version": 1, "before": {'}
    assert text.startswith(starts.get(name, "The peak grew"))
    assert text.endswith("\n")
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert main([*words, "--format", "json"]) == 1
    assert "peak" in json.loads(Path(name).read_text())["after"]


def test_models(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests graphs: tensors by name, options for reading, and a model against a plan of it."""

    def write(name: str, size: int) -> None:
        tensors = (
            Tensor("in", 8, Kind.INPUT),
            Tensor("hidden", size),
            Tensor("out", 8, Kind.OUTPUT),
        )
        operators = (Operator("a", "Gemm", (0,), (1,)), Operator("b", "Gemm", (1,), (2,)))
        Path(name).write_text(write_graph(Graph("net", tensors, operators, (0,), (2,))))

    write("old.json", 64)
    write("new.json", 128)
    assert main(["compare", "old.json", "new.json", "--exclude", "inputs"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "hidden 64 bytes 128 bytes +64 bytes (+100.0 %)" in lines
    assert "peak 72 bytes 136 bytes +64 bytes (+88.9 %)" in lines
    assert main(["plan", "new.json", "-q", "-o", "new.plan.json"]) == 0
    assert main(["compare", "new.json", "new.plan.json", "--fail-if-peak-grows", "0"]) == 0
    assert "note after: the plan does not have all lifetimes" in capsys.readouterr().out
    assert main(["compare", "new.json", "new.plan.json", "--format", "json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert (note["side"], note["code"]) == ("after", "lifetimes-unknown")
    assert main(["compare", "new.plan.json", "new.json", "--format", "markdown"]) == 0
    assert "- note before: the plan does not have all" in capsys.readouterr().out


BAD = {
    "no number": (["a.csv", "b.csv", "--fail-if-peak-grows", "abc"], "'abc' is not a growth"),
    "negative": (["a.csv", "b.csv", "--fail-if-peak-grows", "-1%"], "not a growth"),
    "no unit": (["a.csv", "b.csv", "--fail-if-peak-grows", "1"], "'1' has no unit; write 1% or 1B"),
    "no unit either": (["a.csv", "b.csv", "--fail-if-load-grows", "20"], "write 20% or 20B"),
    "no kind": (["a.csv", "b.csv", "-o", "c.xyz"], "c.xyz: the suffix must be .txt for text or "),
    "no per cent": (["a.csv", "b.csv", "--fail-if-load-grows", "%"], "'--fail-if-load-grows'"),
    "not finite": (["a.csv", "b.csv", "--fail-if-peak-grows", "nan%"], "'nan%' is not a growth"),
    "not a fraction": (["a.csv", "b.csv", "--fail-if-peak-grows", "1/2%"], "is not a growth"),
    "parts of bytes": (["a.csv", "b.csv", "--fail-if-peak-grows", "1.5"], "is not a growth"),
    "no such file": (["a.csv", "c.csv"], "c.csv: the file cannot be read"),
    "not a problem": (["a.csv", "note.txt"], "note.txt:1: "),
    "over the input": (["a.csv", "b.csv", "-o", "b.csv"], "b.csv: this is the input"),
    "no nodes": (["a.csv", "b.csv", "--nodes", "0"], "nodes"),
    "one file": (["a.csv"], "after"),
    "a kind of a problem": (
        ["a.csv", "b.csv", "--include", "constants"],
        "does not distinguish kinds",
    ),
}


@pytest.mark.parametrize("words", BAD.values(), ids=BAD)
def test_bad_input(
    folder: Path, words: tuple[list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests one sentence on standard error and exit code 2."""
    Path("note.txt").write_text("hello\n")
    arguments, said = words
    assert main(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("memplan: ")
    assert err.count("\n") == 1
    assert said.lower() in err.lower()


def test_nothing_at_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests problems without buffers on one side and on both."""
    assert main(["compare", "empty.csv", "empty.csv", "--fail-if-peak-grows", "0%"]) == 0
    assert capsys.readouterr().out.startswith("The peak is the same, 0 bytes; both are proved")
    assert main(["compare", "empty.csv", "a.csv", "--fail-if-peak-grows", "50%"]) == 1
    assert "The peak grew by 1.95 KiB, to 2,000 bytes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "growth"),
    [("1%", Fraction(1, 100)), (" .5 % ", Fraction(1, 200)), ("0", 0), ("1.5K", 1536)],
)
def test_growth_as_people_write_it(text: str, growth: Fraction | int) -> None:
    """Tests shares and sizes."""
    assert compare.parse_growth(text) == growth
    with pytest.raises(typer.BadParameter):
        compare.parse_growth(f"{text}x")


# Names with any text in them ---------------------------------------------------------------------


class Tags(HTMLParser):
    """Collects what a browser takes for tags, and the text that it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: object) -> None:
        """Note a tag."""
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data


def cells(row: str) -> list[str]:
    """Split a row of a table as GitHub does: at every bar that no backslash stands before."""
    found, escaped = [""], False
    for letter in row:
        if letter == "|" and not escaped:
            found.append("")
        else:
            found[-1] += letter
        escaped = letter == "\\" and not escaped
    return found


@given(strategies.ids())
def test_code_shows_any_name(name: str) -> None:
    """Tests that a name is shown in full, in one cell of one line, and is nothing else."""
    written = format_code(name)
    assert len(written.splitlines()) == 1
    assert len(cells(written)) == 1
    if written.startswith("`"):
        assert "`" not in written[1:-1]
        shown = written[1:-1]
    else:
        reader = Tags()
        reader.feed(written)
        assert reader.tags == ["code"]
        assert not set(written.removeprefix("<code>").removesuffix("</code>")) & set("`*_[]@<>\\")
        shown = reader.text
    if name.isprintable() and len(name) <= 60:
        assert shown == name


@pytest.mark.parametrize(
    "name",
    [
        "<img src=x onerror=alert(1)>",
        "a|b",
        "a\\|b",
        "`<b>`",
        "@everyone",
        "[x](javascript:alert(1))",
        "x\n\n# y",
        "![x](http://x.y/z.png)",
    ],
)
def test_a_name_cannot_break_the_table(name: str) -> None:
    """Tests rows of the document with an awkward name: as many cells as the others have."""
    one = Problem([Buffer("a", 0, 1, 4)])
    other = Problem([Buffer(name, 0, 1, 8)])
    document = format_report(make_report(compared(one, other), (name, "b")))
    rows = [line for line in document.splitlines() if line.startswith("|")]
    assert {len(cells(row)) - 2 for row in rows} == {2, 3, 4}  # there are tables of all widths
    outside = "".join(part for line in rows for part in line.split("`")[::2])
    for bad in ("<img", "@every", "](", "# y", "<b>"):
        assert bad not in outside


def test_markdown(folder: Path) -> None:
    """Tests the document: the answer in bold, then tables of GitHub's kind."""
    found = compared(formats.load("a.csv"), formats.load("b.csv"))
    lines = format_report(make_report(found, ("a.csv", "b.csv"), ["Failed: it grew."])).splitlines()
    assert lines[0].startswith("**The peak grew by 21 bytes")
    assert lines[2] == "Failed: it grew."
    assert lines[4:7] == [
        "|  | before | after | change |",
        "| :-- | --: | --: | --: |",
        "|  | `a.csv` | `b.csv` |  |",
    ]
    assert "#### Grown: 1 buffer" in lines
    assert "| `y` | 1000 bytes | 1021 bytes | +21 bytes (+2.1 %) |" in lines


def test_long_lists_are_cut(folder: Path) -> None:
    """Tests that what is not named is summed up."""
    many = Problem([Buffer(f"b{i}", i, i + 1, i + 1) for i in range(20)])
    document = format_report(make_report(compared(Problem([]), many), ("a", "b"), most=3))
    assert "#### Added: 20 buffers" in document
    assert "and 17 others, 153 bytes" in document
    assert "`b16`" not in document

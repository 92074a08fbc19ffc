"""Tests of the way from results to pages: what is read, what is written, and what is refused."""

from __future__ import annotations

import re
from dataclasses import astuple, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sweep_folder import RESULT, SESSION, write_sweep

from memplan.base.errors import FormatError, MemplanError
from memplan.cli import output
from memplan_lab import study
from memplan_lab.bench import files, latency, report
from memplan_lab.bench.latency import Case, Outcome, Timing
from memplan_lab.bench.rows import COLUMNS, Row
from memplan_lab.bench.tables import Shown
from memplan_lab.cli import main
from memplan_lab.study import html, markdown
from memplan_lab.study.about import About, of_sweep
from memplan_lab.study.blocks import Section
from memplan_lab.study.results import Results, Run
from memplan_lab.study.sections import sections

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

pytestmark = pytest.mark.slow

# Reading -----------------------------------------------------------------------------------------


def test_a_sweep_is_read(tmp_path: Path) -> None:
    """Tests that a row becomes a run, the capacity part of its suite and options of its solver."""
    tight = replace(
        RESULT,
        objective="fit",
        capacity=110,
        capacity_ratio=1.1,
        capacity_base="best",
        solver="telamalloc",
        options="learned=on",
        lower_bound=None,
        backtracks=4,
    )
    own = replace(RESULT, suite="synthetic", capacity_ratio=1.0, capacity_base="own")
    results = study.read([write_sweep(tmp_path / "swept", RESULT, tight, own)])
    runs = {run.suite: run for run in results.runs}
    assert list(runs) == ["corpus", "corpus at 110 % of the best peak", "synthetic"]
    assert runs["corpus"].ratio == 1.0
    learned = runs["corpus at 110 % of the best peak"]
    assert (learned.base, learned.backtracks) == ("corpus", 4)
    assert learned.solver == "telamalloc:learned=on"
    assert learned.lower_bound == 90  # without a proof, the load is the bound


def test_what_a_sweep_says_of_itself_has_no_hosts(tmp_path: Path) -> None:
    """Tests that versions, machine, seed and command are shown, without hosts, paths and dates."""
    (about,) = study.read([write_sweep(tmp_path / "swept", RESULT)]).about
    assert about.source == "swept"
    assert about.facts["command"] == "memplan-lab sweep --suite corpus"
    assert about.facts["versions"] == "numpy 2.0"
    assert about.facts["machine"] == "A CPU, 2 cores, Linux on x86_64, Python 3.11.1"
    assert about.facts["settings"] == "seed 0, timeout 2.0, repeat 1, capacities none"
    assert not re.search("secret|2026|/usr", str(about))


def test_sessions_that_agree_are_told_once() -> None:
    """Tests that a sweep that was resumed elsewhere tells both machines, and the command once."""
    other = {**SESSION, "machine": {**SESSION["machine"], "cpu": "B CPU"}}  # type: ignore[dict-item]
    metadata = {"settings": {"seed": 3}, "sessions": [SESSION, SESSION, other]}
    facts = of_sweep("x", metadata).facts
    assert facts["command"] == "memplan-lab sweep --suite corpus"
    assert [text[:5] for text in facts["machine"].split("; ")] == ["A CPU", "B CPU"]


def test_repetitions_become_one_run(tmp_path: Path) -> None:
    """Tests that the run of the median time speaks, and the spread is that of all."""
    each = [replace(RESULT, cpu_s=at / 100, peak=100 + at, repeat=at) for at in (1, 4, 2)]
    failed = replace(RESULT, cpu_s=None, peak=None, status="failed")
    (run,) = study.read([write_sweep(tmp_path / "swept", failed, *each)]).runs
    assert (run.cpu_s, run.peak, run.repeats) == (0.02, 102, 4)
    assert run.spread_s == pytest.approx(0.0124722, rel=1e-4)


@pytest.mark.parametrize(
    "other", [{"timeout": 60.0}, {"node_limit": 9}, {"seed": 1}, {"fingerprint": "sha256:2"}]
)
def test_results_that_do_not_compare_are_refused(tmp_path: Path, other: dict[str, object]) -> None:
    """Tests that limits, seeds and problems of one name are not mixed."""
    folder = write_sweep(tmp_path / "swept", RESULT, replace(RESULT, **other))
    with pytest.raises(MemplanError, match=r"auto on net of corpus .* write separate reports"):
        study.read([folder])


ROW = Row("synthetic", "one", 20, "greedy", "fit", "feasible", 9, 8, 8, 1.125, 0.2, 0.1)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_files_of_benchmarks_are_read(tmp_path: Path, name: str) -> None:
    """Tests that what `memplan-lab bench --output` writes comes back with its types."""
    report.write([ROW], tmp_path / name)
    (run,) = study.read([tmp_path / name]).runs
    assert astuple(run)[: len(COLUMNS)] == astuple(ROW)
    assert (run.base, run.repeats) == ("synthetic", 1)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_files_of_older_releases_are_read(tmp_path: Path, name: str) -> None:
    """Tests that columns which a file does not have are as if they were unknown."""
    older = COLUMNS[: COLUMNS.index("error") + 1]
    files.write([{column: getattr(ROW, column) for column in older}], tmp_path / name)
    assert report.read(tmp_path / name) == [ROW]


def test_solvers_stand_as_the_registry_has_them(tmp_path: Path) -> None:
    """Tests that the order of a report is not that in which results came."""
    names = ["telamalloc", "peer", "greedy", "auto", "minimalloc:dominance=off", "minimalloc"]
    report.write([replace(ROW, solver=name) for name in names], tmp_path / "rows.csv")
    found = [run.solver for run in study.read([tmp_path / "rows.csv"]).runs]
    assert found == ["auto", "greedy", *names[:-3:-1], "telamalloc", "peer"]


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("rows.txt", "x", "is not a result"),
        ("rows.csv", "suite,case\na,b\n", "does not have the columns"),
        ("rows.csv", ",".join(COLUMNS) + "\na,b,many\n", "rows.csv:2: is damaged"),
        ("rows.parquet", "no parquet", "cannot be read"),
        ("nowhere/rows.csv", None, "cannot be read"),
        *((name, None, f"{name}: the file cannot be read: no such") for name in ("a", "a.json")),
    ],
)
def test_what_is_no_result_is_refused(
    tmp_path: Path, name: str, text: str | None, error: str
) -> None:
    """Tests that errors name the file and what is wrong with it."""
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=error):
        study.read([tmp_path / name])


def test_folders_that_are_no_sweeps_are_refused(tmp_path: Path) -> None:
    """Tests a folder of something else, one of another release, and one without a row."""
    with pytest.raises(FormatError, match="is not a sweep"):
        study.read([tmp_path])
    folder = write_sweep(tmp_path / "swept")
    with pytest.raises(MemplanError, match="swept: no result to report"):
        study.read([folder])
    file = folder / "metadata.json"
    file.write_text(file.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(FormatError, match="of format 1"):
        study.read([folder])


# Pages -------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What is on a page: ids, what they are asked for by, tags, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.wanted: set[str] = set()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.outside: list[str] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note the tag and its names."""
        self.tags.append(tag)
        if tag not in ("meta", "link", "br"):
            self._open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "xlink:href", "src"):
                inside = value is not None and value.startswith("#")
                (self.wanted.add if inside else self.outside.append)(str(value))
            self.wanted |= {f"#{each}" for each in re.findall(r"url\(#([^)]+)\)", value or "")}

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note a tag that is closed at once."""
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Hold the tag against the one that is open."""
        if tag not in ("meta", "link", "br"):
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.words.append(data)


RUNS = [
    Run(
        *(suite, f"net-{at}", 10 + at, solver, objective, "optimal"),
        *(100, 90, 100, 1.0, 0.1, 0.1),
    )
    for suite, objective in (("corpus", "min_peak"), ("synthetic", "fit"))
    for at in range(10)
    for solver in ("auto", "greedy")
]


def test_the_page_needs_nothing_beside_it() -> None:
    """Tests that it is well formed, loads nothing, runs nothing, and all its names are its own."""
    page = Page(html.page("A study", sections(Results(RUNS, []))))
    assert page.outside == []
    assert "script" not in page.tags
    assert "img" not in page.tags
    # Figures 9 and 10 of both groups, two of peaks of one, and three of the course text.
    assert page.tags.count("svg") == 9
    assert len(set(page.ids)) == len(page.ids)
    assert {name.removeprefix("#") for name in page.wanted} <= set(page.ids)


def test_figures_take_the_colours_of_the_page() -> None:
    """Tests that no figure has ink or paper of its own, which a dark page would hide."""
    text = html.page("A study", sections(Results(RUNS, [])))
    for figure in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        assert "currentColor" in figure
        assert not re.search("#000000|#ffffff", figure)


def test_names_are_text_on_both_pages() -> None:
    """Tests that names end up as text, even if they look like code of a page."""
    name = "<b>|*x*|</b> & `y`"
    table = Shown("Names.", ("name", "count"), [(name, "1")])
    text = html.page("A study", [("Section", Section((), (table,)))])
    assert name in Page(text).words
    line = markdown.page("A study", [("Section", Section((), (table,)))]).splitlines()[-1]
    assert line == r"| \<b\>\|\*x\*\|\</b\> & \`y\` | 1 |"


def test_what_all_sources_agree_on_is_told_once() -> None:
    """Tests the table of where results are from."""
    about = [About("a", {"versions": "1", "command": "x"}), About("b", {"versions": "1"})]
    _, table = sections(Results(RUNS, about))[0][1].blocks
    assert isinstance(table, Shown)
    assert table.lines == [("command", "x", "a"), ("versions", "1", "all")]


def test_what_is_left_out_names_its_sweep() -> None:
    """Tests that every section is there, or the sweep that would fill it."""
    made = sections(Results(RUNS, []))
    titles = [title for title, _ in made]
    assert titles[:5] == [
        *("Results", "Peak over bound", "Share that fits, by memory", "Share solved against time"),
        "Time and success against the number of buffers",
    ]
    assert titles[-1] == "Left out"
    (missing,) = made[-1][1].blocks
    assert isinstance(missing, Shown)
    assert [line[0] for line in missing.lines] == [
        "MiniMalloc, figure 8: the original suite",
        "MiniMalloc, table 2: the challenging suite",
        "TelaMalloc, table 1: microbenchmarks",
        "TelaMalloc, table 2: memory of heuristics",
        "TelaMalloc, figures 12 and 13: times on the models",
        "Ablations",
        "Backtracks with and without learning",
        "SOMAS, table 1: multi-stream safety",
        "SOMAS, tables 2 and 3: offsets",
        "SOMAS, table 4: groups",
        "TelaMalloc, figures 15 to 17",
        "MemoMalloc",
    ]
    commands = ("sweep --suite ", "bench somas ", "bench latency ", "learn figures ")
    assert all(
        line[1].startswith(tuple(f"memplan-lab {command}" for command in commands))
        for line in missing.lines
    )


def test_failures_alone_make_a_report_of_failures(tmp_path: Path) -> None:
    """Tests results without a single answer: only examples are drawn, all failures are listed."""
    failed = replace(RUNS[0], status="failed", peak=None, cpu_s=None, error="it was killed")
    study.write(Results([failed], []), tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text()
    assert "it was killed" in text
    assert all(path.name.startswith("course-") for path in (tmp_path / "out").glob("*.svg"))


# The folder --------------------------------------------------------------------------------------


def test_a_report_is_written_and_replaced(tmp_path: Path) -> None:
    """Tests that both pages and all charts are there, and that an older report leaves nothing."""
    out = tmp_path / "study"
    study.write(Results(RUNS, []), out, "memplan-lab report x")
    images = re.findall(r"\]\((.*?\.svg)\)", (out / "report.md").read_text())
    assert sorted(images) == sorted(file.name for file in out.glob("*.svg"))
    assert len(images) == 9
    first = {file.name: file.read_bytes() for file in out.iterdir()}
    study.write(Results(RUNS, []), out, "memplan-lab report x")
    assert {file.name: file.read_bytes() for file in out.iterdir()} == first
    study.write(Results(RUNS[:20], []), out)
    assert len(list(out.glob("*.svg"))) == 7
    assert [file.name for file in tmp_path.iterdir()] == ["study"]


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    """Tests that a file, a folder with something else, and one below a file are refused."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    for name, error in (
        ("file", "is a file"),
        ("folder", "holds notes.txt, which is not part of a report"),
        ("file/study", "cannot be written"),
    ):
        with pytest.raises(FormatError, match=error):
            study.write(Results(RUNS, []), tmp_path / name)
    assert (tmp_path / "folder" / "notes.txt").read_text() == "mine"


def test_an_old_report_outlives_what_goes_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a disk that fails half way leaves the report that was there, and nothing else."""
    out = tmp_path / "study"
    study.write(Results(RUNS[:20], []), out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    write_bytes = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.suffix == ".svg":
            raise OSError(28, "No space left on device")
        return write_bytes(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(FormatError, match="no space left on device"):
        study.write(Results(RUNS, []), out)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert [file.name for file in tmp_path.iterdir()] == ["study"]


# The command -------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests `memplan-lab report` on a sweep and a benchmark together."""
    monkeypatch.chdir(tmp_path)
    write_sweep(tmp_path / "results", RESULT)
    report.write([ROW], "rows.csv")
    assert main(["report", "results", "rows.csv", "-o", "study"]) == output.OK
    text = (tmp_path / "study" / "report.md").read_text()
    assert "Command: memplan-lab report results rows.csv -o study" in text
    assert str(tmp_path) not in text


def test_a_sweep_reports_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that one command answers how much memory problems need, with and without reuse."""
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    # Two buffers that share all of their memory: 4 KiB planned, 8 KiB with memory of their own.
    Path("two.csv").write_text("id,lower,upper,size\na,0,1,4096\nb,1,2,4096\n")
    problems = ["--suite", "csv", "--data", "two.csv", "--solver", "auto", "--solver", "bump"]
    assert main(["sweep", *problems, "--workers", "1", "-o", "sizes", "--report", "memory"]) == 0
    lines = (tmp_path / "memory" / "report.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith(("| 4 KiB", "| 8 KiB"))]
    assert [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows] == [
        ["4 KiB", "100.0 %", "100.0 %", "0.0 %"],
        ["8 KiB", "100.0 %", "100.0 %", "100.0 %"],
    ]
    (tmp_path / "file").write_text("mine")
    words = ["sweep", *problems, "-o", "other", "--report", "file"]
    assert main(words) == output.BAD_INPUT
    assert not (tmp_path / "other").exists()


def test_the_command_refuses_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that bad input ends with its code and names what is wrong, before anything is read."""
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "study")]) == output.BAD_INPUT
    assert "is not a sweep" in capsys.readouterr().err
    (tmp_path / "file").write_text("mine")
    assert main(["report", "nowhere", "-o", str(tmp_path / "file")]) == output.BAD_INPUT
    assert "is a file" in capsys.readouterr().err


def test_latencies_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a file of `bench latency` alone makes a report with its charts."""
    timing = Timing(0.01, 0.01, 0.0)
    outcome = Outcome(timing, timing, sizes=(1, 2), equal=True)
    path = tmp_path / "latency.parquet"
    row = latency.Row(Case("vgg16", 128, 1, 1), "glibc", 0, outcome)
    files.write([{"experiment": "latency", **row.figures()}], path)
    assert main(["report", str(path), "-o", str(tmp_path / "out")]) == 0
    assert "0 runs and 1 latencies reported" in capsys.readouterr().out
    text = (tmp_path / "out" / "report.md").read_text()
    assert "Figure 4.1: glibc relative to the slab, 1 thread." in text
    assert "Figure 5.2" not in text  # this allocator has no mallctl
    assert (tmp_path / "out" / "memomalloc-2-3.svg").exists()

"""Tests of what goes into a page: the data, the figures, and that no text in it is a script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from memplan import Plan, Problem
from memplan.base.errors import MemplanError, MissingExtraError, PlanError
from memplan.base.notes import Code, Note
from memplan.cli import app, main
from memplan.problem.buffer import Buffer, Gap
from memplan.problem.formats import load_planned, save
from memplan.problem.formats.trace_json import write_trace
from memplan.problem.trace import Trace
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph
from memplan.view import page
from memplan.view.facts import find_problem_facts
from memplan.view.page import data, figures

pytest.importorskip("bokeh")

pytestmark = pytest.mark.slow

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "a&b\u2028\u2029\"'\\",
)


def column(packed: dict[str, str]) -> list[int]:
    """Return the numbers of a column as the page unpacks them."""
    kind = {"int8": "<i1", "int16": "<i2", "int32": "<i4", "int64": "<i8"}[packed["type"]]
    return np.frombuffer(base64.b64decode(packed["data"]), dtype=kind).tolist()


def texts(coded: dict[str, Any]) -> list[str]:
    """Return the texts of a column by number."""
    return [coded["text"][code] for code in column(coded["code"])]


def read(html: str, which: str) -> Any:
    """Return the JSON in one of the page's elements."""
    found = re.search(f'<script id="memplan-{which}" type="application/json">(.*?)</script>', html)
    assert found is not None
    return json.loads(found[1])


def models(document: Any) -> list[dict[str, Any]]:
    """Return all models of a Bokeh document."""
    if isinstance(document, list):
        return [model for each in document for model in models(each)]
    if not isinstance(document, dict):
        return []
    inner = [model for each in document.values() for model in models(each)]
    return [document, *inner] if document.get("type") == "object" else inner


def luminance(colour: str) -> float:
    """Return the luminance of "#rrggbb", as WCAG defines it."""
    parts = np.frombuffer(bytes.fromhex(colour[1:]), dtype=np.uint8) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


@pytest.fixture
def five() -> Problem:
    """Return five buffers, and 21 times."""
    return Problem.from_arrays(
        [0, 3, 0, 9, 0], [3, 9, 9, 21, 21], [4] * 5, ids=["b1", "b2", "b3", "b4", "b5"], capacity=16
    )


@pytest.fixture
def stacked(five: Problem) -> Plan:
    """Return its plan of 12 bytes."""
    return Plan.of(five, [8, 8, 4, 4, 0], lower_bound=12, solver="exact")


class TestData:
    """What the scripts read."""

    def test_columns_and_limits(self, five: Problem, stacked: Plan) -> None:
        """Tests that everything of the problem and the plan is there, exactly."""
        made = read(page.html(five, {"ours": stacked}), "data")
        buffers = made["buffers"]
        assert buffers["name"] == ["b1", "b2", "b3", "b4", "b5"]
        assert column(buffers["start"]) == [0, 3, 0, 9, 0]
        assert column(buffers["end"]) == [3, 9, 9, 21, 21]
        assert column(buffers["size"]) == [4] * 5
        assert (made["capacity"], made["bound"]) == ("16", "12")
        assert column(made["load"]["time"]) == [0, 3, 9, 21]
        assert column(made["load"]["bytes"]) == [12, 12, 8]
        assert made["spans"] is None
        (plan,) = made["plans"]
        assert (plan["name"], plan["peak"], plan["fault"]) == ("ours", "12", "")
        assert column(plan["offset"]) == [8, 8, 4, 4, 0]
        assert plan["waste"]["share"] == 0
        below = column(plan["supports"]["below_begin"]), column(plan["supports"]["below_row"])
        assert below == ([0, 1, 2, 3, 4, 4], [2, 2, 4, 4])

    def test_a_plan_in_another_order(self, five: Problem) -> None:
        """Tests that offsets are those of the problem's rows."""
        plan = Plan(ids=["b5", "b4", "b3", "b2", "b1"], size=[4] * 5, offsets=[0, 4, 4, 8, 8])
        (shown,) = data.check_plans(five, {"other": plan})
        assert shown.offset.tolist() == [8, 8, 4, 4, 0]
        assert shown.fault == ""

    def test_gaps_are_cut_out(self) -> None:
        """Tests that in a gap only the window is held, and nothing without one."""
        gaps = [Gap(3, 5), Gap(7, 9, (2, 6))]
        problem = Problem([Buffer("a", 0, 9, 8, gaps=gaps)])
        made = read(page.html(problem, {"p": Plan.of(problem, [0])}), "data")["spans"]
        rows = zip(
            *(column(made[name]) for name in ("start", "end", "lower", "upper")), strict=True
        )
        assert sorted(rows) == [(0, 3, 0, 8), (5, 7, 0, 8), (7, 9, 2, 6)]

    def test_large_numbers_keep_every_digit(self) -> None:
        """Tests sizes, offsets and times near 2^62."""
        late, large = (1 << 62) - 10, (1 << 61) - 1
        problem = Problem.from_arrays([late, late], [late + 3, late + 5], [large, large])
        made = read(page.html(problem, {"p": Plan.of(problem, [0, large])}), "data")
        assert column(made["buffers"]["size"]) == [large, large]
        assert column(made["plans"][0]["offset"]) == [0, large]
        assert made["plans"][0]["peak"] == made["bound"] == str(2 * large)
        assert made["origin"] == str(late)
        assert made["buffers"]["size"]["type"] == "int64"

    @pytest.mark.parametrize(("bits", "more"), [(8, 16), (16, 32), (32, 64)])
    def test_numbers_are_packed_in_the_fewest_bits(self, bits: int, more: int) -> None:
        """Tests both sides of every limit, and no number at all."""
        limit = (1 << bits - 1) - 1
        for numbers, kind in (
            ([limit, -limit - 1], f"int{bits}"),
            ([limit + 1], f"int{more}"),
            ([-limit - 2], f"int{more}"),
        ):
            packed = data.pack(np.array(numbers))
            assert (packed["type"], column(packed)) == (kind, numbers)
        assert column(data.pack(np.array([], dtype=np.int64))) == []

    def test_each_plan_has_a_verdict(self, five: Problem, stacked: Plan) -> None:
        """Tests verdicts of a good, a higher and an invalid plan, and which one is the best."""
        high, bad = Plan.of(five, [12, 8, 4, 4, 0]), Plan.of(five, [0, 0, 0, 4, 0])
        made = read(page.html(five, {"bad": bad, "high": high, "ours": stacked}), "data")
        assert [(plan["grade"], plan["verdict"]) for plan in made["plans"]] == [
            ("bad", "invalid"),
            ("open", "4 bytes above the lower bound (33.3 %); a smaller peak is not ruled out"),
            ("good", "optimal: equals the lower bound"),
        ]
        assert made["best"] == 2
        assert made["naive"] == "20"

    def test_buffers_without_an_operator_have_the_colour_of_their_kind(self) -> None:
        """Tests that inputs are named in the key of operators."""
        tensors = (Tensor("x", 4, Kind.INPUT), Tensor("y", 8, Kind.OUTPUT))
        graph = Graph("net", tensors, (Operator("op", "Conv", (0,), (1,)),), (0,), (1,))
        loaded = of_graph(graph)
        plan = Plan.of(loaded.problem, [0, 4])
        made = read(page.html(loaded, {"p": plan}), "data")
        assert [name for name, _ in made["classes"]["operator"]["key"]] == ["Conv", "input"]
        assert made["colour"] == "operator"
        assert read(page.html(loaded, {"p": plan}, colour="size"), "data")["colour"] == "size"

    def test_an_invalid_plan_is_shown_with_the_reason(self, five: Problem) -> None:
        """Tests that the referee's sentence is there, and that no buffer sits on another."""
        made = read(page.html(five, {"bad": Plan.of(five, [0, 0, 0, 4, 0])}), "data")
        (plan,) = made["plans"]
        assert "b1" in plan["fault"]
        assert plan["supports"] is plan["waste"] is None

    def test_a_plan_above_the_capacity_is_no_fault(self, five: Problem) -> None:
        """Tests that the capacity is a line and not a rule."""
        high = Plan.of(five.with_capacity(None), [36, 36, 32, 32, 0])
        (shown,) = data.check_plans(five, {"high": high})
        assert (shown.fault, shown.peak) == ("", 40)

    def test_the_bound_is_the_best_that_holds(self, five: Problem, stacked: Plan) -> None:
        """Tests that a claim above a valid plan's peak is not believed."""
        low = Plan.of(five, [8, 8, 4, 4, 0], lower_bound=3)
        wrong = Plan(ids=five.ids, size=five.size, offsets=stacked.offsets, lower_bound=99)
        assert data.find_bound(five, data.check_plans(five, {"low": low})) == 12
        assert data.find_bound(five, data.check_plans(five, {"low": low, "wrong": wrong})) == 12

    def test_the_largest_come_first_in_the_table(self) -> None:
        """Tests the order, and that names break ties."""
        problem = Problem.from_arrays([0] * 4, [1] * 4, [1, 3, 3, 2], ids=["d", "z", "a", "c"])
        made = read(page.html(problem, {"p": Plan.of(problem, [0, 1, 4, 7])}), "data")
        assert column(made["buffers"]["by_size"]) == [2, 1, 3, 0]

    def test_an_empty_problem(self) -> None:
        """Tests that there is a page even so."""
        problem = Problem([])
        made = read(page.html(problem, {"p": Plan.of(problem, [])}), "data")
        assert made["buffers"]["name"] == []
        assert made["bound"] == "0"

    def test_classes_have_colours_and_the_rest_is_grey(self, five: Problem) -> None:
        """Tests that what is unknown has no classes, and that eight types share seven colours."""
        problem = Problem.from_arrays([0] * 9, [1] * 9, list(range(9, 0, -1)))
        facts = find_problem_facts(problem)
        types = tuple("abcdefgha")
        known = type(facts)(
            *(facts.name, facts.tensors, facts.kind, types, facts.made_by, facts.used_by),
            *(facts.module, facts.line),
        )
        plan = Plan.of(problem, np.cumsum(problem.size) - problem.size)
        classes = read(page.html(problem, {"p": plan}, facts=known), "data")["classes"]
        assert classes["kind"] is classes["module"] is None
        assert texts(classes["operator"]) == list(types)
        assert len(set(classes["operator"]["colour"])) == 8
        assert [name for name, _ in classes["operator"]["key"]] == list("abcdefg")
        assert classes["operator"]["others"] == 1

    def test_modules_are_cut_to_as_many_as_there_are_colours(self) -> None:
        """Tests the longest paths that seven colours tell apart, and the first steps otherwise."""
        many = [f"net.layer{at % 2}.conv{at}" for at in range(20)]
        assert set(data.cut_modules(many)) == {"net.layer0", "net.layer1"}
        assert data.cut_modules(many[:3]) == many[:3]
        assert len(set(data.cut_modules([f"m{at}.x" for at in range(20)]))) == 20
        assert data.cut_modules(["", "a.b"]) == ["", "a.b"]


class TestPage:
    """The page as text."""

    def test_nothing_comes_from_a_network(self, five: Problem, stacked: Plan) -> None:
        """Tests that no element loads anything, and that the browser is told to refuse it."""
        made = page.html(five, {"ours": stacked})
        outside = re.sub(r"<script.*?</script>", "", made, flags=re.DOTALL)
        assert not re.search(r"(src|href)\s*=|url\(|@import", outside)
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)
        assert policy is not None
        assert "default-src 'none'" in policy[1]
        assert "connect-src 'none'" in policy[1]
        assert "'unsafe-inline'" not in policy[1].partition("script-src")[2]

    def test_every_script_has_its_hash_in_the_policy(self, five: Problem, stacked: Plan) -> None:
        """Tests that the page's own scripts may run."""
        made = page.html(five, {"ours": stacked})
        scripts = re.findall(r"<script>(.*?)</script>", made, flags=re.DOTALL)
        assert len(scripts) >= 3
        for script in scripts:
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in made

    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_name_is_never_markup(self, name: str) -> None:
        """Tests that names of all sorts are data, the same after a way through the page."""
        problem = Problem.from_arrays([0], [1], [4], ids=[name])
        plain = Problem.from_arrays([0], [1], [4], ids=["plain"])
        made, same = (
            page.html(each, {name: Plan.of(each, [0])}, title=name) for each in (problem, plain)
        )
        assert read(made, "data")["buffers"]["name"] == [name]
        assert read(made, "data")["plans"][0]["name"] == name
        for mark in ("<", ">", "\u2028", "\u2029"):
            assert made.count(mark) == same.count(mark)
        assert name not in made
        made.encode()

    def test_the_verdict_is_at_the_top(self, five: Problem, stacked: Plan) -> None:
        """Tests the sentence for one plan, for the best of several, and for an invalid one."""
        bad = Plan.of(five, [0, 0, 0, 4, 0])
        for plans, expected in (
            ({"a": stacked}, 'class="good">Peak 12 bytes, optimal: equals the lower bound<'),
            ({"b": bad, "<a>": stacked}, 'class="good">&lt;a&gt;: peak 12 bytes, optimal: '),
            ({"b": bad}, 'class="bad">Peak 8 bytes, invalid<'),
        ):
            assert f'<p id="verdict" {expected}' in page.html(five, plans)

    @pytest.mark.parametrize("count", [1, 9])
    def test_notes_are_shown(self, count: int, five: Problem, stacked: Plan) -> None:
        """Tests that notes are text, that a few are open, and that many are counted and closed."""
        notes = tuple(Note(Code.DIM_ASSUMED, f"<b>{at}</b>") for at in range(count))
        made = page.html(Loaded(five, "csv", len(five), notes=notes), {"ours": stacked})
        assert ('<details id="notes" open>' in made) is (count == 1)
        assert made.count("<li>&lt;b&gt;") == count
        assert f"{count} note" in made
        assert 'id="notes"' not in page.html(five, {"ours": stacked})

    def test_a_title_that_is_no_text(self, five: Problem, stacked: Plan) -> None:
        """Tests that a file name with bytes of no alphabet still makes a page."""
        made = page.html(five, {"ours": stacked}, title="a\udcff.csv")
        assert "<h1>a?.csv</h1>" in made
        made.encode()

    def test_the_same_plans_make_the_same_bytes(self, five: Problem, stacked: Plan) -> None:
        """Tests that nothing counts on from page to page, nor is drawn by lot."""
        first = page.html(five, {"ours": stacked}, title="t")
        assert page.html(five, {"ours": stacked}, title="t") == first

    def test_scripts_parse_no_markup(self) -> None:
        """Tests that texts come into the page as text nodes only, and nothing as a program."""
        scripts = list((Path(page.__file__).parent).glob("*.js"))
        assert len(scripts) == 12
        for script in scripts:
            wrong = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
            assert not re.search(wrong, script.read_text()), script.name

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_words_have_contrast(self, theme: str) -> None:
        """Tests all colours of words on both backgrounds: at least 4.5, as WCAG asks for (AA)."""
        style = (Path(page.__file__).parent / "page.css").read_text()
        blocks = re.findall(r":root[^{]*\{([^}]*)\}", style)
        colours = dict(re.findall(r"--(\w+): (#\w+);", blocks[0]))
        if theme == "dark":
            colours |= re.findall(r"--(\w+): (#\w+);", blocks[1])
        for back in ("panel", "page"):
            for words in ("ink", "quiet", "accent", "capacity", "good", "open"):
                light, dark = sorted(map(luminance, (colours[back], colours[words])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (back, words)

    def test_figures_are_linked(self, five: Problem, stacked: Plan) -> None:
        """Tests that two plans share their ranges, and that boxes are WebGL's."""
        made = read(page.html(five, {"a": stacked, "b": stacked}), "figures")
        plots = {each["attributes"]["name"]: each["attributes"] for each in made["roots"]}
        assert list(plots) == ["memory-0", "load-0", "memory-1", "load-1"]
        ids = {name: plot["x_range"]["id"] for name, plot in plots.items()}
        assert len(set(ids.values())) == 1
        assert plots["memory-0"]["y_range"]["id"] == plots["memory-1"]["y_range"]["id"]
        assert plots["memory-0"]["y_range"]["id"] != plots["load-0"]["y_range"]["id"]
        backends = {name: plot.get("output_backend", "canvas") for name, plot in plots.items()}
        assert [name for name, backend in backends.items() if backend == "webgl"] == [
            *("memory-0", "memory-1")
        ]

    def test_models_are_numbered_from_zero(self, five: Problem) -> None:
        """Tests that ids do not depend on what the process has drawn before."""
        ids = [model["id"] for model in models(figures.document(five, 1, 12, (1, "bytes")))]
        assert len(set(ids)) == len(ids) > 20
        assert {int(id.removeprefix("m")) for id in ids} == set(range(len(ids)))

    def test_reserved_ranges_are_drawn(self, five: Problem) -> None:
        """Tests that they are as wide as time is long, and end where the picture does."""
        problem = five.with_reserved([(2, 4), (6, 100)])
        made = models(figures.document(problem, 1, 12, (1, "bytes")))
        tops = [
            dict(model["attributes"]["data"]["entries"])["top"]
            for model in made
            if model["name"] == "ColumnDataSource" and "name" not in model["attributes"]
        ]
        assert tops == [[4.0, 12.0]]

    def test_no_plan_at_all(self, five: Problem) -> None:
        """Tests that a page needs one, with offsets for every buffer."""
        with pytest.raises(MemplanError, match="no plan to show"):
            page.html(five, {})
        with pytest.raises(PlanError, match="no offsets"):
            page.html(five, {"none": Plan.of(five, None, status="unknown")})

    def test_without_bokeh(
        self, five: Problem, stacked: Plan, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Tests that the sentence names the extra."""
        monkeypatch.setitem(sys.modules, "bokeh", None)
        with pytest.raises(MissingExtraError, match=r"memplan\[view\]"):
            page.html(five, {"ours": stacked})


class TestCommand:
    """`memplan view`."""

    @pytest.fixture(autouse=True)
    def folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, five: Problem, stacked: Plan
    ) -> Path:
        """Make a folder with a problem, plans and runs the current one."""
        monkeypatch.chdir(tmp_path)
        problem = five.with_capacity(None)
        plan = Plan.of(problem, stacked.offsets, lower_bound=12)
        save(problem, "five.csv")
        save(plan, "plan.csv")
        save(plan, "plan.json")
        (tmp_path / "run.json").write_text(write_trace(run([0, 64])))
        (tmp_path / "other.json").write_text(write_trace(run([1 << 40, 0])))
        return tmp_path

    def test_several_plans_side_by_side(self, folder: Path) -> None:
        """Tests a plan and solvers, in the order of the command line, and a capacity."""
        words = "view five.csv plan.csv --solver greedy --solver bump --capacity 1K -o page.html"
        done = CliRunner().invoke(app, words.split())
        assert (done.exit_code, done.output) == (0, "page.html: written\n")
        made = read((folder / "page.html").read_text(), "data")
        assert [plan["name"] for plan in made["plans"]] == ["plan.csv", "greedy", "bump"]
        assert [plan["peak"] for plan in made["plans"]] == ["12", "12", "20"]
        assert made["capacity"] == "1024"

    def test_a_plan_by_itself(self, folder: Path) -> None:
        """Tests that a plan as CSV says what it is a plan of, and nothing is solved."""
        assert main(["view", "plan.csv", "-o", "page.html"]) == 0
        made = read((folder / "page.html").read_text(), "data")
        assert [(plan["name"], plan["fault"]) for plan in made["plans"]] == [("plan.csv", "")]
        assert made["bound"] == "12"

    def test_a_plan_by_itself_keeps_its_gaps(self, folder: Path) -> None:
        """Tests that a buffer in the gap of another is no overlap, and that alignments are kept."""
        gaps = [Gap(2, 6)]
        problem = Problem([Buffer("a", 0, 9, 8, gaps=gaps), Buffer("b", 2, 6, 8, alignment=8)])
        save(Plan.of(problem, [0, 0], lower_bound=8), "gaps.csv")
        read_problem, plan = load_planned("gaps.csv")
        assert read_problem.same_rows(problem)
        assert (plan.peak, plan.lower_bound) == (8, 8)
        assert main(["view", "gaps.csv", "-o", "page.html"]) == 0
        made = read((folder / "page.html").read_text(), "data")
        assert [each["fault"] for each in made["plans"]] == [""]
        assert column(made["spans"]["buffer"]) == [1, 0, 0]

    def test_recorded_runs_are_plans_of_the_same_problem(self, folder: Path) -> None:
        """Tests the file's own addresses, and those of another run without unused pages."""
        words = "view run.json --recorded --recorded-from other.json -o page.html"
        assert main(words.split()) == 0
        made = read((folder / "page.html").read_text(), "data")
        offsets = {plan["name"]: column(plan["offset"]) for plan in made["plans"]}
        assert list(offsets) == ["auto", "recorded: run.json", "recorded: other.json"]
        assert offsets["recorded: run.json"] == [0, 64]
        assert offsets["recorded: other.json"] == [4096, 0]

    def test_offsets_of_the_file_itself(self, folder: Path) -> None:
        """Tests that pins of all buffers are a plan."""
        assert main(["view", "plan.csv", "--recorded", "-o", "page.html"]) == 2
        pinned = "id,lower,upper,size,offset\na,0,2,4,8\nb,1,3,4,0\n"
        (folder / "pinned.csv").write_text(pinned)
        assert main(["view", "pinned.csv", "--recorded", "-o", "page.html"]) == 0
        made = read((folder / "page.html").read_text(), "data")
        assert [column(plan["offset"]) for plan in made["plans"]] == [[8, 0], [8, 0]]

    def test_a_terminal_needs_no_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Tests that a picture is printed, one for every plan."""
        words = ["view", "five.csv", "--solver", "greedy", "--solver", "bump"]
        assert main([*words, "--terminal"]) == 0
        out, said = capsys.readouterr()
        assert said == ""
        assert [line.strip() for line in out.splitlines()].count("bump") == 1
        assert len(out.splitlines()) > 10
        assert main(words) == 0
        assert capsys.readouterr().out == out

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            ("plan.json -o page.html", "plan.json: this is a plan in JSON, which has no lifetimes"),
            ("plan.csv --pin b1=0 -o page.html", "--reserve and --pin need the problem"),
            ("five.csv -o page.htm", "the suffix must be .html for a page"),
            ("five.csv plan.csv -o plan.csv", "the suffix must be .html for a page"),
            ("five.csv --recorded-from run.json -o page.html", "a run of other buffers"),
            ("nothing.csv -o page.html", "nothing.csv: the file cannot be read"),
        ],
    )
    def test_mistakes_are_one_sentence(
        self, words: str, sentence: str, capsys: pytest.CaptureFixture[str], folder: Path
    ) -> None:
        """Tests that each is named, and that no page is left behind."""
        assert main(["view", *words.split()]) == 2
        out, said = capsys.readouterr()
        assert (out, said.count("\n")) == ("", 1)
        assert sentence in said
        assert not (folder / "page.html").exists()

    def test_the_old_page_stays_where_there_is_no_new_one(self, folder: Path) -> None:
        """Tests that a run without a plan writes nothing."""
        (folder / "page.html").write_text("old")
        words = "view five.csv --solver hill_climb --nodes 1 -o page.html"
        assert main(words.split()) == 3
        assert (folder / "page.html").read_text() == "old"


def run(addresses: list[int]) -> Trace:
    """Return a run of two allocations of 64 bytes that live at the same time."""
    scopes = [(("aten::a", 0),), (("aten::b", 0),)]
    return Trace.from_arrays(
        [0, 1], [3, 4], [64, 64], scopes=scopes, address=np.array(addresses, dtype=np.uint64)
    )

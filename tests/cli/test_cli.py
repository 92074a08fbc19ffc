"""Tests of the command line as a user runs it: its output, its files, its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from command_line import FIVE, assert_refused, memplan, memplan_process

from memplan import cli, solvers
from memplan.cli import app, options, running
from memplan.problem import Buffer, Problem, Reserved, formats
from memplan.problem.formats.interference import write_dot, write_graphml
from memplan.problem.plan import Plan, Status
from memplan_lab.bench import generators

ROOT = Path(__file__).parents[2]


@pytest.fixture
def five_csv(tmp_path: Path) -> Path:
    """Return the example of MiniMalloc as a file."""
    path = tmp_path / "five.csv"
    path.write_text(FIVE)
    return path


# Bad input -------------------------------------------------------------------------------------

HEAD = b"id,lower,upper,size\n"
BAD_FILES = {
    "a wrong field": (HEAD + b"a,0,1,4\nb,3,3,4\n", "bad:3: ", '"b"', "upper"),
    "load beyond 2^62": (HEAD + b"a,0,1,4611686018427387904\nb,0,1,1\n", "bad", "2^62"),
    "a program": (b"\x7fELF\x02\x01\x01\x00\x00", "bad: ", "program"),
    "not UTF-8": (HEAD + b"\xff\xfe,0,1,4\n", "bad:2: ", "UTF-8"),
    "a truncated line": (HEAD + b"a,0,1,4\nb,0,1\n", "bad:3: ", "size"),
    "truncated JSON": (b'{"memplan": {"kind": "problem",', "bad:1: ", "JSON"),
    "a plan": (HEAD.replace(b"\n", b",offset\n") + b"a,0,1,4,0\n\n# memplan plan 1\n", "bad:4: "),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_one_sentence_and_touches_nothing(name: str, tmp_path: Path) -> None:
    """Tests file, line and field in the sentence, exit code 2, and every file as it was."""
    content, *words = BAD_FILES[name]
    (tmp_path / "bad").write_bytes(content)
    (tmp_path / "out.csv").write_text("what was here before")
    run = memplan("plan", "bad", "--capacity", "12", "-o", "out.csv", cwd=tmp_path)
    assert_refused(run, *words)
    assert (tmp_path / "out.csv").read_text() == "what was here before"
    assert sorted(os.listdir(tmp_path)) == ["bad", "out.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "five.csv", "bad"),
        ("convert", "--plan", "bad", "out.json"),
        ("view", "five.csv", "bad", "-o", "out.png"),
    ],
)
def test_a_bad_plan_is_refused(arguments: tuple[str, ...], five_csv: Path, tmp_path: Path) -> None:
    """Tests that a plan is refused as an input is."""
    (tmp_path / "bad").write_bytes(BAD_FILES["a truncated line"][0])
    assert_refused(memplan(*arguments, cwd=tmp_path), "bad:3: ")
    assert sorted(os.listdir(tmp_path)) == ["bad", "five.csv"]


# plan ------------------------------------------------------------------------------------------


def test_plan_prints_a_summary_and_writes_a_plan_that_verifies(five_csv: Path) -> None:
    """Tests the main job, from problem to plan to the independent check."""
    out = five_csv.with_name("five.plan.csv")
    run = memplan("plan", five_csv, "--capacity", "12", "-o", out)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    facts = {line[:14].strip(): line[14:].strip() for line in lines[: lines.index("")]}
    assert facts.pop("time").split()[1] in ("ms", "s")
    assert facts.pop("solver")
    assert facts.pop("status").startswith("optimal: ")
    assert facts == {
        "buffers": "5",
        "sum of sizes": "20 bytes",
        "capacity": "12 bytes",
        "lower bound": "12 bytes",
        "peak": "12 bytes",
        "gap": "0.00%",
    }
    assert "Live at the peak" in run.stdout

    check = memplan("verify", five_csv, out, "--capacity", "12")
    assert (check.returncode, check.stderr) == (0, "")
    assert check.stdout == "OK: 5 buffers, peak 12 bytes within 12 bytes\n"


def test_the_suffix_or_the_format_decides_how_a_plan_is_written(five_csv: Path) -> None:
    """Tests JSON by suffix, and against the suffix by option; other suffixes are refused."""
    folder = five_csv.parent
    for name, arguments in (("a.json", []), ("b.csv", ["--format", "json"])):
        assert memplan("plan", five_csv, "-q", "-o", folder / name, *arguments).returncode == 0
        assert json.loads((folder / name).read_text())["memplan"]["kind"] == "plan"
    assert memplan("plan", five_csv, "-q", "-o", folder / "c").returncode == 0
    assert (folder / "c").read_text().startswith("id,")
    words = "d.plan: the suffix must be .json for JSON or .csv for a table"
    assert_refused(memplan("plan", five_csv, "-o", folder / "d.plan"), words)
    assert not (folder / "d.plan").exists()


def test_the_same_plan_every_time(five_csv: Path) -> None:
    """Tests that two runs write the same bytes."""
    plans = []
    for name in ("a.csv", "b.csv"):
        memplan("plan", five_csv, "-q", "-o", five_csv.with_name(name))
        plans.append(five_csv.with_name(name).read_bytes())
    assert plans[0] == plans[1]


def test_without_a_capacity_the_smallest_peak_is_looked_for(five_csv: Path) -> None:
    """Tests the default objective, and --minimize with a capacity."""
    for arguments in ([], ["--capacity", "1K", "--minimize"]):
        answer = json.loads(memplan("plan", five_csv, "--json", *arguments).stdout)
        assert (answer["status"], answer["peak"], answer["lower_bound"]) == ("optimal", 12, 12)


def test_json_is_one_object_for_scripts(five_csv: Path) -> None:
    """Tests every key of the summary that does not depend on the solver."""
    run = memplan("plan", five_csv, "--json", "-o", "out.csv", cwd=five_csv.parent)
    answer = json.loads(run.stdout)
    assert run.stdout.count("\n") == 1
    assert answer.pop("seconds") >= 0
    assert answer.pop("nodes") >= 0
    assert answer.pop("solver")
    assert answer == {
        "version": 1,
        "source": "csv",
        "tensors": 5,
        "runtimes": [],
        "status": "optimal",
        "interrupted": False,
        "peak": 12,
        "lower_bound": 12,
        "gap": 0.0,
        "capacity": None,
        "arena": None,
        "buffers": 5,
        "sum_of_sizes": 20,
        "max_load": 12,
        "conflict": [],
        "problem": formats.load(five_csv).fingerprint,
        "output": "out.csv",
        "proof": None,
        "in_place": False,
        "measured": None,
        "notes": [],
    }


def test_quiet_is_quiet(five_csv: Path) -> None:
    """Tests that -q leaves the exit code and the files."""
    run = memplan("plan", five_csv, "-q")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_an_infeasible_problem_exits_1_and_writes_nothing(five_csv: Path) -> None:
    """Tests that a plan of yesterday is not lost to a problem that has none today."""
    out = five_csv.with_name("out.csv")
    out.write_text("yesterday")
    run = memplan("plan", five_csv, "--capacity", "11", "-o", out)
    assert run.returncode == 1
    assert "infeasible: it is proved" in run.stdout
    assert run.stderr == f"memplan: no plan was found; {out} was not changed\n"
    assert out.read_text() == "yesterday"


def test_pins_and_reserved_ranges_of_the_command_line_are_kept(five_csv: Path) -> None:
    """Tests that they hold in the plan, and that the plan is one for them and nothing else."""
    extra = ["--pin", "b5=0x20", "--reserve", "0:4", "--reserve", "40:1K"]
    out = five_csv.with_name("out.csv")
    assert memplan("plan", five_csv, "-q", "-o", out, *extra).returncode == 0
    plan = formats.load_plan(out)
    assert plan.offset("b5") == 32
    assert all(plan.offset(id) >= 4 for id in plan.ids)
    assert memplan("verify", five_csv, out, *extra).returncode == 0
    assert_refused(memplan("verify", five_csv, out), "another problem", code=1)


# How a search ends -----------------------------------------------------------------------------


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Plan | KeyboardInterrupt], None]:
    """Return a function that sets what the solvers answer, or raise."""

    def install(outcome: Plan | KeyboardInterrupt) -> None:
        def solve(*_: object, **__: object) -> Plan:
            if isinstance(outcome, KeyboardInterrupt):
                raise outcome
            return outcome

        monkeypatch.setattr(solvers, "solve", solve, raising=False)

    return install


Outcome = Callable[[Plan | KeyboardInterrupt], None]


def test_a_budget_without_a_plan_exits_3(
    answer: Outcome, five_csv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that `unknown` is neither success nor a proof."""
    answer(Plan.of(formats.load(five_csv), None, status=Status.UNKNOWN, lower_bound=12))
    assert cli.main(["plan", str(five_csv)]) == 3
    assert "unknown: the budget ended" in capsys.readouterr().out


def test_an_interrupted_search_gives_its_best_plan(
    answer: Outcome, five: Problem, five_csv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that Ctrl-C prints and writes the best plan so far, and says that it is not proved."""
    best = Plan.of(five.with_capacity(None), [0, 0, 4, 12, 8], lower_bound=12)
    answer(solvers.Interrupted(best))
    out = five_csv.with_name("out.csv")
    assert cli.main(["plan", str(five_csv), "-o", str(out)]) == 0
    printed = capsys.readouterr()
    assert "interrupted: feasible, not proved" in printed.out
    assert printed.err == "memplan: interrupted: feasible, not proved\n"
    assert formats.load_plan(out).peak == 16


def test_an_interrupted_search_without_a_plan_exits_130(
    answer: Outcome, five_csv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that nothing is written where nothing was found."""
    answer(solvers.Interrupted(Plan.of(formats.load(five_csv), None, status=Status.UNKNOWN)))
    out = five_csv.with_name("out.csv")
    assert cli.main(["plan", str(five_csv), "-o", str(out)]) == 130
    assert not out.exists()
    assert "interrupted: unknown, not proved" in capsys.readouterr().err


def test_an_interrupt_outside_of_a_search_exits_130(answer: Outcome, five_csv: Path) -> None:
    """Tests that Ctrl-C while a file is read leaves no traceback."""
    answer(KeyboardInterrupt())
    assert cli.main(["plan", str(five_csv)]) == 130


def test_a_wrong_plan_of_a_solver_is_a_defect_and_never_written(
    answer: Outcome, five: Problem, five_csv: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that the referee stands between every solver and the disk."""
    answer(Plan.of(five.with_capacity(None), [0, 0, 0, 0, 0]))
    out = five_csv.with_name("out.csv")
    assert cli.main(["plan", str(five_csv), "-o", str(out)]) == 70
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "made a plan that is wrong" in printed.err
    assert "this is a defect of memplan" in printed.err
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_in_a_real_search(tmp_path: Path) -> None:
    """Tests a process that is interrupted: a plan on disk that verifies, and the words."""
    formats.save(generators.flat_load(300, 0), tmp_path / "hard.csv")
    search = ["--solver", "minimalloc", "--progress"]  # the others end before they are interrupted
    command = [sys.executable, "-m", "memplan", "plan", "hard.csv", "-o", "out.csv", *search]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert " s  peak " in process.stderr.readline()  # the search has begun and has a plan
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, err.splitlines()[-1]) == (
        0,
        "memplan: interrupted: feasible, not proved",
    )
    assert "interrupted: feasible, not proved" in out
    assert memplan("verify", "hard.csv", "out.csv", cwd=tmp_path).returncode == 0


# Imported at the start of a child: Ctrl-C comes when the module that AT names is looked for.
INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["AT"]:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
"""


def program_of(project: str) -> str:
    """Return Python that does what the one installed program of a project does."""
    scripts = tomllib.loads((ROOT / project).read_text())["project"]["scripts"]
    module, _, function = next(iter(scripts.values())).partition(":")
    return f"import sys; from {module} import {function}; sys.exit({function}())"


@pytest.mark.parametrize("module", ["typer", "memplan._core", "numpy", "memplan.referee"])
@pytest.mark.parametrize(
    "words",
    [
        ["-m", "memplan"],
        ["-m", "memplan_lab"],
        ["-c", program_of("pyproject.toml")],
        ["-c", program_of("lab/pyproject.toml")],
    ],
    ids=["-m memplan", "-m memplan_lab", "memplan", "memplan-lab"],
)
def test_ctrl_c_while_modules_are_loaded(words: list[str], module: str, tmp_path: Path) -> None:
    """Tests that programs interrupted during their start end with 130 and print nothing."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_IMPORT)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, *words, "plan", ROOT / "examples" / "five.csv"],
        env={**os.environ, "PYTHONPATH": path, "AT": module},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


# verify ----------------------------------------------------------------------------------------


def test_verify_names_what_overlaps(five_csv: Path) -> None:
    """Tests one sentence with buffers, bytes and time, and exit code 1."""
    plan = five_csv.with_name("bad.plan.csv")
    rows = FIVE.replace("size", "size,offset").splitlines()
    offsets = ("", ",8", ",8", ",4", ",4", ",6")
    plan.write_text("".join(f"{row}{at}\n" for row, at in zip(rows, offsets, strict=True)))
    run = memplan("verify", five_csv, plan)
    assert_refused(run, f"{plan}: ", '"b3"', '"b5"', "time 0", "[6, 8)", code=1)


def test_verify_holds_a_plan_against_another_capacity(five_csv: Path) -> None:
    """Tests that the capacity of the command line counts."""
    plan = five_csv.with_name("five.plan.csv")
    memplan("plan", five_csv, "-q", "-o", plan)
    assert memplan("verify", five_csv, plan, "--capacity", "12").returncode == 0
    assert_refused(memplan("verify", five_csv, plan, "-c", "11"), "capacity 11", code=1)


# inspect ---------------------------------------------------------------------------------------


def test_inspect_shows_load_and_bound(five_csv: Path) -> None:
    """Tests the facts, the buffers at the greatest load and the curve."""
    run = memplan("inspect", five_csv)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("At time [0, 3), 3 buffers hold 12 bytes;")
    assert "Live at the greatest load, time [0, 3): 3 buffers" in run.stdout
    assert "█" in run.stdout


def test_a_terminal_without_blocks_gets_ascii(five_csv: Path) -> None:
    """Tests that neither the curve nor a name breaks a plain terminal."""
    five_csv.write_text(FIVE.replace("b1", "größe"), encoding="utf-8")
    run = memplan_process("inspect", five_csv, PYTHONIOENCODING="ascii")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.isascii()
    assert r"gr\xf6\xdfe" in run.stdout


def test_no_colour_outside_of_a_terminal(five_csv: Path) -> None:
    """Tests that files and pipes get text alone."""
    for command in (("inspect",), ("inspect", "-c", "11"), ("plan",)):
        assert "\x1b" not in memplan(command[0], five_csv, *command[1:]).stdout


def test_inspect_exits_0_for_a_misfit_and_for_a_fit(five_csv: Path) -> None:
    """Tests that the answer is on standard output, whatever it is."""
    misfit = memplan("inspect", five_csv, "--capacity", "10")
    assert (misfit.returncode, misfit.stderr) == (0, "")
    assert misfit.stdout.startswith("It does not fit into 10 bytes.\n")
    assert "excess     2 bytes\n" in misfit.stdout
    fit = memplan("inspect", five_csv, "--capacity", "16")
    assert (fit.returncode, fit.stderr) == (0, "")
    assert fit.stdout.startswith("It fits into 16 bytes.\n")


def test_inspect_beyond_the_load_names_a_subset(tmp_path: Path) -> None:
    """Tests the irreducible subset, with a pin that leaves no hole."""
    path = tmp_path / "stuck.csv"
    path.write_text("id,lower,upper,size,offset\npin,0,4,1,3\nwide,0,4,5,\nother,4,9,8,\n")
    run = memplan("inspect", path, "--capacity", "8", "--nodes", "100000")
    assert run.returncode == 0
    assert "These 2 buffers cannot be placed together" in run.stdout
    assert "Leave out any one of them and the rest fits" in run.stdout
    assert "required   9 bytes, proved" in run.stdout


# convert ---------------------------------------------------------------------------------------


def test_convert_goes_round(five_csv: Path) -> None:
    """Tests that a problem survives JSON and every dialect of CSV, byte by byte."""
    here = five_csv.parent
    path = five_csv
    for step in (["a.json"], ["b.csv", "--dialect", "start-end"], ["c.csv"]):
        run = memplan("convert", path, *step, cwd=here)
        assert (run.returncode, run.stdout, run.stderr) == (0, f"{step[0]}: written\n", "")
        path = here / step[0]
    assert (here / "b.csv").read_text().startswith("id,start,end,size\nb1,0,2,4\n")
    assert path.read_text() == FIVE


def test_convert_says_what_is_lost(tmp_path: Path) -> None:
    """Tests that a capacity does not vanish in silence, and a reserved range not at all."""
    problem = Problem([Buffer("a", 0, 1, 4)], capacity=64)
    formats.save(problem, tmp_path / "a.json")
    run = memplan("convert", "a.json", "a.csv", cwd=tmp_path)
    assert run.returncode == 0
    assert "--capacity 64" in run.stderr
    formats.save(problem.with_reserved([Reserved(8, 16)]), tmp_path / "a.json")
    assert_refused(memplan("convert", "a.json", "b.csv", cwd=tmp_path), "reserved")
    assert not (tmp_path / "b.csv").exists()


def test_convert_knows_plans(five: Problem, five_offsets: list[int], five_csv: Path) -> None:
    """Tests plans by the file beside them, by --plan, and back from JSON with a problem."""
    here = five_csv.parent
    plan = Plan.of(five.with_capacity(None), five_offsets, lower_bound=12, solver="exact")
    formats.save(plan, here / "plan.csv")
    assert memplan("convert", "plan.csv", "plan.json", cwd=here).returncode == 0
    assert formats.load_plan(here / "plan.json").offsets.tolist() == five_offsets
    run = memplan("convert", "plan.json", "again.csv", "--problem", "five.csv", cwd=here)
    assert (run.returncode, run.stderr) == (0, "")
    assert (here / "again.csv").read_text() == (here / "plan.csv").read_text()

    (here / "bare.csv").write_text((here / "plan.csv").read_text())
    assert memplan("convert", "--plan", "bare.csv", "bare.json", cwd=here).returncode == 0
    assert formats.load_plan(here / "bare.json").offsets.tolist() == five_offsets


def test_convert_writes_the_interference_graph(five_csv: Path, five: Problem) -> None:
    """Tests DOT and GraphML by suffix and by option, a picture, and that a plan has no graph."""
    here = five_csv.parent
    for name, write in (("five.dot", write_dot), ("five.graphml", write_graphml)):
        run = memplan("convert", "five.csv", name, cwd=here)
        assert (run.returncode, run.stdout, run.stderr) == (0, f"{name}: written\n", "")
        assert (here / name).read_text() == write(five.with_capacity(None))
    assert memplan("convert", "five.csv", "a", "--format", "dot", cwd=here).returncode == 0
    assert (here / "a").read_bytes() == (here / "five.dot").read_bytes()

    memplan("plan", "five.csv", "-q", "-o", "plan.csv", cwd=here)
    for name in ("plan.dot", "plan.svg"):
        assert_refused(memplan("convert", "plan.csv", name, cwd=here), "is a plan; the interf")
        assert not (here / name).exists()

    pytest.importorskip("matplotlib")
    assert memplan("convert", "five.csv", "five.svg", cwd=here).returncode == 0
    assert (here / "five.svg").read_text().count(">b1<") == 1


# view, bench, solvers --------------------------------------------------------------------------


def test_view_draws_a_picture(five_csv: Path) -> None:
    """Tests that a PNG comes out."""
    pytest.importorskip("matplotlib")
    here = five_csv.parent
    memplan("plan", "five.csv", "-q", "-o", "plan.csv", cwd=here)
    run = memplan("view", "five.csv", "plan.csv", "-o", "five.png", cwd=here)
    assert (run.returncode, run.stderr) == (0, "")
    assert (here / "five.png").read_bytes().startswith(b"\x89PNG")


def test_a_missing_extra_is_one_sentence(five_csv: Path, tmp_path: Path) -> None:
    """Tests that the sentence names the command that installs it."""
    (tmp_path / "without").mkdir()
    for name in ("matplotlib", "pyarrow"):
        (tmp_path / "without" / f"{name}.py").write_text("raise ImportError\n")
    memplan("plan", five_csv, "-q", "-o", "plan.csv", cwd=tmp_path)
    run = memplan_process(
        "view",
        *("five.csv", "plan.csv", "-o", "five.png"),
        cwd=tmp_path,
        PYTHONPATH=os.pathsep.join([str(tmp_path / "without"), os.environ.get("PYTHONPATH", "")]),
    )
    assert_refused(run, "pip install 'memplan[plot]'")
    assert not (tmp_path / "five.png").exists()


def test_solvers_are_listed() -> None:
    """Tests that each solver is there, and a row for every constraint."""
    run = memplan("solvers")
    assert (run.returncode, run.stderr) == (0, "")
    names = {line.split()[0] for line in run.stdout.splitlines() if line.strip()}
    assert {"auto", "greedy", "minimalloc", "exact", "capacity", "windows", "zero-size"} <= names


def test_the_options_of_a_solver_are_listed() -> None:
    """Tests name, default and sentence of each, what has none, and a name that no solver has."""
    run = memplan("solvers", "minimalloc")
    assert (run.returncode, run.stderr) == (0, "")
    rows = {line.split()[0]: line.rstrip() for line in run.stdout.splitlines() if line.strip()}
    default, sentence = rows["hatless"].split(maxsplit=2)[1:]
    assert default == "on"
    assert sentence.startswith("try no alternatives for a buffer with")  # as wide as the terminal
    assert rows["orders"].split()[1] == "WAT+TAW+TWA"
    assert "greedy_by_size has no options" in memplan("solvers", "greedy_by_size").stdout
    assert_refused(memplan("solvers", "magic"), 'there is no solver "magic"')


# The program -----------------------------------------------------------------------------------


def test_version() -> None:
    """Tests that the version is one line."""
    run = memplan("--version")
    assert run.returncode == 0
    assert run.stdout.split()[0] == "memplan"


def test_help_is_there_for_every_command() -> None:
    """Tests that help is a result, and that no command at all shows it as well."""
    assert memplan_process("--help").returncode == 0
    run = memplan()
    assert run.returncode == 2
    for command in ("plan", "verify", "inspect", "compare", "convert", "view", "solvers"):
        assert command in run.stdout
        help_text = memplan(command, "--help")
        assert (help_text.returncode, help_text.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        ("--version", ["memplan.cli.plan", "numpy", "rich"]),
        ("plan nothing.csv", ["memplan.cli.bands", "memplan.levers.rewrite"]),
        ("dance", ["memplan.cli.plan", "numpy"]),
        (
            "plan examples/models/mobile.tflite --no-runtime",
            [
                *(
                    "memplan.levers.rewrite",
                    "memplan.programs.sources.foreign",
                    "memplan.extensions.published",
                ),
                *("memplan._published", "hashlib", "importlib.metadata", "ssl"),
            ],
        ),
    ],
)
def test_answers_import_nothing_that_they_do_not_use(arguments: str, unused: list[str]) -> None:
    """Tests that no command waits for libraries, other commands, or parts that it does not need."""
    heavy = {"matplotlib", "pyarrow", "pydantic", "memplan_lab", "memplan.cli.view", *unused}
    code = (
        "import sys; from memplan.cli import main; main(sys.argv[1:]); "
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, *arguments.split()]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.splitlines()[-1] == "[]"


def test_values_taken_as_they_are_are_those_of_typer() -> None:
    """Tests each parameter of each command with texts and its default, as Typer converts them."""
    root = cast("Any", typer.main.get_command(app))
    context = root.make_context("memplan", ["solvers"])
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if not isinstance(command, running.Command):
            continue  # of another package
        for each in command.get_params(context):
            if not hasattr(each, "get_runtime_param"):
                continue  # the help, and all of older releases of Typer
            given = (["x", "y"], []) if each.multiple else ("1", "x", "2%")
            for value in (*given, each.default, None):
                taken = _convert(each.get_runtime_param(), value, each)
                assert taken == _convert(type(each).get_runtime_param(each), value, each)


def _convert(converter: Any, value: object, parameter: Any) -> object:
    try:
        return converter.coerce(value, parameter, None)
    except typer.BadParameter as error:
        return str(error)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
@pytest.mark.parametrize("arguments", ["inspect", "plan", "plan --json", "inspect -c 12"])
def test_a_broken_pipe_is_quiet(arguments: str, five_csv: Path) -> None:
    """Tests that a reader that has gone away, such as `head`, is no reason to complain."""
    with subprocess.Popen(
        [sys.executable, "-m", "memplan", *arguments.split(), five_csv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1048576", 1 << 20),
        ("1MiB", 1 << 20),
        ("1 MiB", 1 << 20),
        ("1m", 1 << 20),
        ("96KiB", 96 << 10),
        ("1.5K", 1536),
        ("2G", 2 << 30),
        ("1MB", 1_000_000),
        ("1.5kB", 1500),
        ("3B", 3),
        ("0x100000", 1 << 20),
        ("4EiB", 1 << 62),
        ("5EiB", None),
        ("1_000", None),
        ("1,000", None),
        ("1.5", None),
        ("0.1K", None),
        ("-1", None),
        ("1e6", None),
        ("MiB", None),
        ("1iB", None),
        ("0x", None),
        ("١٢", None),
        ("", None),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, count: int | None) -> None:
    """Tests units of 1024 and of 1000, hexadecimal addresses, and what is no size."""
    if count is None:
        with pytest.raises(typer.BadParameter):
            options.parse_bytes(text)
    else:
        assert options.parse_bytes(text) == count

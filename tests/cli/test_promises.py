"""Tests that every command keeps every promise of docs/cli.md: one table of runs and promises.

A run is a command line that succeeds. Each promise is tried on all runs to which it applies; where
it applies to no run of a command, `REASONS` says why.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import typer
from command_line import FIVE, assert_refused, memplan
from interrupts import ctrl_c, interrupt, raise_signal
from small_programs import chain, training_step

import memplan as mp
from memplan import cli, solvers
from memplan.problem import formats
from memplan.problem.plan import Plan, Status
from memplan.programs.sources.graph_json import write_graph
from memplan.solvers import stopping

ROOT = Path(__file__).parents[2]
BAD = "id,lower,upper,size\na,0,1,4\nb,0,1\n"
OLD = "what was here before"
CODE = "operators-sorted"  # of the note that unsorted.onnx and open.onnx have
FIXED, OPEN = "unsorted.onnx", "open.onnx"
MEMORIES = "--memory a=500B --memory b"


@dataclass(frozen=True)
class Run:
    """A command line that succeeds: `IN` is its input, and `OUT` what it wrote.

    Attributes
    ----------
    words
        The command, without what it writes.
    given
        The input.
    out, option
        The file that it writes, or the folder, which ends with "/"; and the option for it.
    check
        What `memplan verify` takes it with; empty if it is no plan.
    fails
        What is added so that the exit code is 1; empty if nothing does that.
    noted
        An input with a note, in place of the other; empty if it takes none.
    library
        What has to be installed.
    """

    words: str
    given: str = "five.csv"
    out: str = ""
    option: str = "-o"
    check: str = ""
    fails: str = ""
    noted: str = FIXED
    library: str = "numpy"

    @property
    def command(self) -> str:
        """The name of the command."""
        return self.words.split()[0]

    def go(
        self, given: str = "", out: str = "", more: str = "", words: str = ""
    ) -> CompletedProcess[str]:
        """Run it, with another input, with more words, or so that it writes a file."""
        line = (words or self.words).replace("IN", given or self.given).replace("OUT", self.out)
        return memplan(*line.split(), *([self.option, out] if out else []), *more.split())


FILE, SEVERAL = "verify IN OUT", "verify IN more.json OUT"
LEAST = "plan IN -c 1B"
RUNS = {
    "plan": Run("plan IN", out="plan.csv", check=FILE, fails="plan IN -c 11B"),
    "plan in JSON": Run("plan IN", out="new.json", check=FILE, fails="plan IN -c 11B"),
    "plan --in-place": Run(
        "plan IN --in-place", "step.json", "p.json", check=f"{FILE} --in-place", fails=LEAST
    ),
    "plan --proof": Run("plan IN", out="a.proof", option="--proof", check="verify IN --proof OUT"),
    "plan --trace": Run("plan IN", out="rounds", option="--trace"),
    "plan --levers order": Run(
        "plan IN --levers order", "step.json", "p.json", check=FILE, fails=f"{LEAST} --levers order"
    ),
    "plan --levers again": Run("plan IN --levers again -c 1000B", "step.json", noted=""),
    "plan --program": Run(
        "plan IN --levers order",
        "step.json",
        "p.json",
        "--program",
        fails=f"{LEAST} --levers order",
    ),
    "plan --block-limit": Run("plan IN --block-limit 500B", "step.json", "plans/", check=FILE),
    "plan --memory": Run(
        f"plan IN {MEMORIES}",
        "step.json",
        "plans/",
        check=FILE,
        fails="plan IN --memory a=500B --memory b=1B",
    ),
    "plan --penalties": Run("plan IN --penalties IN.pairs -c 1MiB", out="plan.csv", check=FILE),
    "plan MORE": Run(
        "plan IN more.json", "step.json", "plans/", check=SEVERAL, fails=f"{LEAST} more.json"
    ),
    "plan MORE --memory": Run(
        f"plan IN more.json {MEMORIES}", "step.json", "plans/", check=SEVERAL
    ),
    "plan --dim": Run(
        "plan IN --dim batch=1:3", OPEN, "p.csv", check="verify IN --dim batch=3 OUT", noted=OPEN
    ),
    "plan --dim --levers": Run(
        "plan IN --dim batch=1:3 --levers order", OPEN, "p.json", noted=OPEN
    ),
    "fit": Run("fit IN 1MiB", "step.json", "fits.h", fails="fit IN 1B"),
    "fit, no SIZE": Run("fit IN", "step.json", noted=""),
    "fit --memory": Run(f"fit IN {MEMORIES}", "step.json", "folder/"),
    "tradeoff": Run("tradeoff IN --points 2 --nodes 50", "step.json", "a.html", library="bokeh"),
    "compare": Run(
        "compare less-IN IN", out="a.html", fails="compare less-IN IN --fail-if-load-grows 0"
    ),
    "inspect": Run("inspect IN"),
    "verify": Run("verify IN five.json", fails="verify IN five.json -c 11B", noted=""),
    "view": Run("view IN", out="five.html", library="bokeh"),
    "view --order": Run("view IN --order", "step.json", "loads.svg", library="matplotlib"),
    "convert": Run("convert IN", out="problem.json"),
    "convert plan": Run(
        "convert IN --problem five.csv", "five.json", "p.csv", check="verify five.csv OUT", noted=""
    ),
    "record": Run("record IN:net", "net.py", "trace.json", noted="", library="torch"),
    "solvers": Run("solvers", given=""),
    "plan -o header": Run("plan IN", "step.json", "a.h", fails=LEAST),
    "plan -o header --levers": Run("plan IN --levers order,in-place", "step.json", "net.h"),
    "plan -o model": Run("plan IN", "net.tflite", "new.tflite", noted="", library="tflite_micro"),
    "plan -o page": Run("plan IN", out="a.html", library="bokeh"),
    "plan -o header --dim": Run("plan IN --dim batch=1:3", OPEN, "sizes.h", noted=OPEN),
    "plan --levers again --program": Run(
        "plan IN --levers again -c 1000B", "step.json", "left.json", "--program", noted=""
    ),
    "tradeoff --levers bands": Run(
        "tradeoff IN --levers bands", "rows.json", "bands.svg", library="matplotlib"
    ),
}
PROMISES = ("json", "notes", "Ctrl-C", "verify", "written", "failure", "input", "bad input")
# What a promise does not mean for a command.
REASONS = {
    **{("solvers", each): "it reads nothing, and shows a table" for each in PROMISES},
    **{(each, "json"): "what it writes is the result" for each in ("view", "convert", "record")},
    ("verify", "json"): "its answer is its exit code and a sentence",
    ("verify", "notes"): "`plan` said them when it made the plan",
    ("view", "notes"): "it draws, and `inspect` says them",
    ("record", "notes"): "`plan` says them when it reads the trace",
    **{(each, "Ctrl-C"): "it searches nothing" for each in ("verify", "convert", "record")},
    **{(each, "verify"): "it writes no plan" for each in ("tradeoff", "compare", "view", "record")},
    ("fit", "verify"): "it writes models and headers, which tests run",
    **dict.fromkeys(
        product(("inspect", "verify"), ("verify", "written", "failure", "input")),
        "it writes nothing",
    ),
}


@pytest.fixture(autouse=True)
def _here() -> None:
    """Work in a folder with a few inputs."""
    Path("five.csv").write_text(FIVE)
    Path("less-five.csv").write_text(FIVE.replace("b5,0,21,4", "b5,0,21,3"))
    formats.save(mp.solve(formats.load("five.csv")), "five.json")
    Path("five.csv.pairs").write_text("first,second,cost\nb1,b2,5\nb3,b4,5\n")
    Path("unsorted.onnx.pairs").write_text("first,second,cost\nconv_one,pooled,5\n")
    Path("step.json").write_text(write_graph(training_step()))
    shutil.copy(ROOT / "examples" / "models" / "mobile.tflite", "net.tflite")
    Path("rows.json").write_text(write_graph(chain(4, 16, 16, 4)))
    Path("more.json").write_text(write_graph(training_step(2)))
    Path("net.py").write_text(
        "import torch\ndef net():\n    return torch.nn.ReLU().eval(), (torch.ones(4),)\n"
    )


def write_unsorted() -> None:
    """Write a model in which operators come before what they read, of one size and of any."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(ROOT / "examples" / "models" / "branches.onnx")
    nodes = [*model.graph.node][::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, OPEN)
    for each in (*model.graph.input, *model.graph.output):
        each.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, FIXED)
    shutil.copy(FIXED, f"less-{FIXED}")


def list_commands() -> dict[str, set[str]]:
    """Return the options of each command of memplan."""
    group: Any = typer.main.get_command(cli.app)
    found = {name: group.get_command(None, name) for name in group.list_commands(None)}
    return {
        name: {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        for name, command in found.items()
        if command.rich_help_panel != "Of other packages"
    }


COMMANDS = list_commands()


def applies(run: Run, promise: str) -> bool:
    """Return whether a run can show that a promise is kept."""
    if (run.command, promise) in REASONS:
        return False
    return {
        "json": "--json" in COMMANDS[run.command],
        "notes": bool(run.noted),
        "verify": bool(run.check),
        "written": bool(run.out),
        "failure": bool(run.out),
        "input": bool(run.out),
    }.get(promise, True)


CELLS = [cell for cell in product(RUNS, PROMISES) if applies(RUNS[cell[0]], cell[1])]
_SLOW = {"torch": [pytest.mark.slow]}  # it takes seconds to be imported


def test_each_command_keeps_each_promise_or_says_why_not() -> None:
    """Tests that the table is whole: each cell has a run, or else a reason that is true."""
    tried = {(RUNS[name].command, promise) for name, promise in CELLS}
    assert tried | REASONS.keys() == {*product(COMMANDS, PROMISES)}
    assert not tried & REASONS.keys()
    for command, promise in REASONS:
        assert promise != "json" or "--json" not in COMMANDS[command]


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        pytest.param(*cell, id=" | ".join(cell), marks=_SLOW.get(RUNS[cell[0]].library, []))
        for cell in CELLS
    ],
)
def test_a_promise_is_kept(name: str, promise: str) -> None:
    """Tests a promise on one run."""
    run = RUNS[name]
    pytest.importorskip(run.library)
    if OPEN in (run.given, run.noted) or promise == "notes":
        write_unsorted()
    KEEP[promise](run)


def read_json(done: CompletedProcess[str]) -> dict[str, Any]:
    """Return the one object that a command prints."""
    assert done.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["version"] == 1
    return found


def keep_json(run: Run) -> None:
    """Check that one object is printed, and nothing beside it; also where nothing is found."""
    done = run.go(more="--json")
    assert done.returncode == 0, done.stderr
    fields = {"notes", *(["interrupted"] if applies(run, "Ctrl-C") else [])}
    assert fields <= read_json(done).keys()
    if run.fails:
        failed = run.go(words=f"{run.fails} --json")
        assert failed.returncode == 1
        read_json(failed)


def keep_notes(run: Run) -> None:
    """Check that a note is in the words, has its code in JSON, and is an error if asked for."""
    out = run.out.removesuffix("/")
    has_words = run.command != "convert"  # which needs a file to write
    alone = "--no-runtime" if "--no-runtime" in COMMANDS[run.command] else ""  # it takes seconds
    done = run.go(run.noted, "" if has_words else out, alone)
    assert done.returncode == 0, done.stderr
    assert "operators come before those that they read from" in done.stdout + done.stderr
    options = COMMANDS[run.command]
    if "--json" in options:
        found = read_json(run.go(run.noted, more=f"{alone} --json"))["notes"]
        assert CODE in {each["code"] for each in found}
    if "--strict" in options:
        assert_refused(
            run.go(run.noted, f"new/{out}" if out else "", f"{alone} --strict"), f"[{CODE}]"
        )
        assert not Path("new").exists()


@contextmanager
def at_once() -> Iterator[list[int]]:
    """Press Ctrl-C as soon as a question begins."""
    begin = stopping.Stop.__init__

    def begin_stopped(self: stopping.Stop) -> None:
        begin(self)
        self.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stopping.Stop, "__init__", begin_stopped)
        yield [1]


MOMENTS: tuple[Callable[[], AbstractContextManager[list[int]]], ...] = (
    at_once,
    lambda: ctrl_c(1, interrupt),
    lambda: ctrl_c(1, raise_signal),
)


def keep_interrupt(run: Run) -> None:
    """Check the best answer so far: its code, its words, its JSON, and what is written."""
    out = run.out.removesuffix("/")
    for moment in MOMENTS:
        with moment() as calls:
            done = run.go(out=out)
        if not calls[0]:
            continue  # there was no search of a plan to be interrupted
        # Before the first plan, or the first that fits, there is no answer yet.
        if done.returncode == 130 and (moment is at_once or "again" in run.words):
            assert not Path(out or "nothing").exists()
            continue
        assert done.returncode == 0, done.stderr
        assert "memplan: interrupted" in done.stderr
        if run.check and Path(out).exists():
            checked = run.go(words=run.check)
            assert checked.returncode == 0, checked.stderr
        if "--json" in COMMANDS[run.command]:
            with moment():
                assert read_json(run.go(more="--json"))["interrupted"] is True


def falsify(path: Path) -> None:
    """Change what was written: all offsets of a plan are 0, or a proof ends too soon."""
    files = [each for each in path.iterdir() if each.name != "answer.json"] if path.is_dir() else []
    file = max(files, key=lambda each: each.read_text().count("offset"), default=path)
    text = file.read_text()
    if file.suffix == ".csv":
        text = re.sub(r",\d+$", ",0", text, flags=re.MULTILINE)
    elif file.suffix == ".json":
        text = re.sub(r'"offset": \d+', '"offset": 0', text)
    else:
        text = "".join(text.splitlines(keepends=True)[:-1])
    file.write_text(text)


def keep_verify(run: Run) -> None:
    """Check that `memplan verify` takes what was written, and not what was changed after it."""
    assert run.go(out=run.out.removesuffix("/")).returncode == 0
    done = run.go(words=run.check)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    falsify(Path(run.out))
    assert run.go(words=run.check).returncode == 1


def keep_written(run: Run) -> None:
    """Check new folders, a line for each file, and none for scripts and devices."""
    out = f"new/folders/{run.out}".removesuffix("/")
    done = run.go(out=out)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("new/")]
    files = Path(out if run.out.endswith("/") else "new/folders").iterdir()
    assert sorted(said) == sorted(f"{each}: written" for each in files)
    # What `compare` makes for scripts goes into the file.
    quiet = {"--json", "--quiet"} & COMMANDS[run.command] if run.command != "compare" else ()
    for option in sorted(quiet):
        done = run.go(out=out, more=option)
        assert (done.returncode, ": written" in done.stdout) == (0, False)
    done = run.go(out="/dev/null")
    assert done.returncode in (0, 2)
    assert "/dev/null: written" not in done.stdout


def list_files() -> dict[str, bytes]:
    """Return all files of this folder with their bytes."""
    return {str(each): each.read_bytes() for each in Path().rglob("*") if each.is_file()}


def keep_failure(run: Run) -> None:
    """Check that no file is changed or made where the input is wrong, or nothing is found."""
    Path("bad").write_text(BAD)
    out = run.out
    if not out.endswith("/"):
        Path(out).write_text(OLD)
    before, folders = list_files(), [each for each in Path().rglob("*") if each.is_dir()]
    # A growth is a result of `compare`, which is written.
    fails = [run.fails] if run.fails and run.command != "compare" else []
    for given, words in (("bad", run.words), *((run.given, each) for each in fails)):
        assert run.go(given, out.removesuffix("/"), words=words).returncode in (1, 2)
        assert list_files() == before
    assert [each for each in Path().rglob("*") if each.is_dir()] == folders


def keep_input(run: Run) -> None:
    """Check that the input is not written over, by any name, and that an output needs a name."""
    link = Path(f"link{Path(run.given).suffix}")
    link.symlink_to(run.given)
    before = list_files()
    for name in (run.given, str(link)):
        assert_refused(run.go(out=name))
        assert list_files() == before
    nameless = memplan(*run.words.replace("IN", run.given).split(), run.option, "")
    assert_refused(nameless)
    assert re.search("is empty|name an output|suffix must", nameless.stderr)
    assert list_files() == before


def keep_bad_input(run: Run) -> None:
    """Check one sentence with the file for each mistake, and exit code 2."""
    Path("bad").write_text(BAD)
    Path("empty").touch()
    out = run.out.removesuffix("/")
    for given in ("bad", "nothing", "empty"):
        assert_refused(run.go(given, out), given)
    assert_refused(run.go(out=out, more="--no-such-option"), "--no-such-option")


KEEP: dict[str, Callable[[Run], None]] = {
    "json": keep_json,
    "notes": keep_notes,
    "Ctrl-C": keep_interrupt,
    "verify": keep_verify,
    "written": keep_written,
    "failure": keep_failure,
    "input": keep_input,
    "bad input": keep_bad_input,
}


# ==================================================================================================
# Exit codes
# ==================================================================================================

# What ends with 3 where no search finds a plan.
UNKNOWN = {
    "plan": (
        "plan five.csv",
        "plan step.json --levers order",
        "plan step.json --levers again -c 1000B",
        "plan step.json more.json",
        "plan open.onnx --dim batch=1:3",
    ),
    "compare": ("compare less-five.csv five.csv --fail-if-peak-grows 0",),
    "view": ("view five.csv",),
}


def list_documented(code: int) -> set[str]:
    """Return the commands that docs/cli.md names for an exit code."""
    (row,) = re.findall(
        rf"^\| {code} \| (.*) \|$", (ROOT / "docs/cli.md").read_text(), re.MULTILINE
    )
    return {*re.findall(r"`(\w+)`", row)} & COMMANDS.keys()


def test_what_fails_is_what_is_documented() -> None:
    """Tests that each command for which docs/cli.md has 1 ends so, and no other."""
    fails = [run for run in RUNS.values() if run.fails]
    assert {run.command for run in fails} == list_documented(1)
    for run in fails:
        done = run.go(out=run.out.removesuffix("/"), words=run.fails)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False), run.fails


def test_what_is_unknown_is_what_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that each command for which docs/cli.md has 3 ends so where a budget is over."""
    write_unsorted()

    def find_nothing(problem: mp.Problem, *given: Any, **search: Any) -> Plan:
        return Plan.of(problem, None, status=Status.UNKNOWN)

    monkeypatch.setattr(solvers, "solve", find_nothing)
    for lines in UNKNOWN.values():
        for line in lines:
            done = memplan(*line.split())
            assert (done.returncode, "Traceback" in done.stderr) == (3, False), line
    assert {*UNKNOWN} == list_documented(3)

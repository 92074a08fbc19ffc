"""Tests of inputs that can be read only once, and of results that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import FIVE, refused

from memplan import Problem, solve
from memplan.base.errors import FormatError
from memplan.cli import inputs

pytestmark = pytest.mark.slow


def run(command: str, folder: Path, text: str = FIVE) -> subprocess.CompletedProcess[str]:
    """Run `memplan` in a shell, with a text as standard input."""
    line = command.replace("memplan", f"'{sys.executable}' -m memplan")
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with five buffers, and a plan of theirs."""
    (tmp_path / "five.csv").write_text(FIVE)
    done = run("memplan plan five.csv -q -o plan.csv", tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


class TestStreams:
    """`-`, `/dev/fd/0` (to which `/dev/stdin` is a link) and `<(command)`."""

    @pytest.mark.parametrize(
        "command",
        [
            "memplan plan - -q",
            "memplan plan /dev/fd/0 -q",
            "memplan plan <(cat five.csv) -q",
            "memplan inspect -",
            "memplan inspect - -c 12",
            "memplan verify <(cat five.csv) <(cat plan.csv)",
            "memplan compare - five.csv",
            "memplan compare - -",
            "memplan convert - out.json",
            "memplan view - --terminal",
            "memplan apply - --c-header out.h",
        ],
    )
    def test_every_command_reads_them(self, folder: Path, command: str) -> None:
        """Tests that they are inputs like any other, and that no copy is left behind."""
        done = run(command, folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert not list(folder.glob("memplan-*"))

    @pytest.mark.parametrize("text", ["", "x\n", "id,lower,upper,size\na,3,2,1\n"])
    def test_messages_say_what_the_user_wrote(self, folder: Path, text: str) -> None:
        """Tests that no sentence names the copy, and that it goes."""
        done = run("cat | memplan plan -", folder, text)
        assert done.returncode == 2
        assert done.stderr.startswith("memplan: -:")
        assert str(folder) not in done.stderr
        assert not list(folder.glob("memplan-*"))

    def test_a_comparison_names_them(self, folder: Path) -> None:
        """Tests that a result names what was compared as the user did."""
        done = run("memplan compare - five.csv --format markdown", folder)
        assert str(folder) not in done.stdout

    def test_what_never_ends_is_refused(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Tests that a stream is read up to a limit."""
        from memplan.cli import main

        monkeypatch.setattr(inputs, "MOST_BYTES", 1 << 20)
        monkeypatch.setenv("TMPDIR", str(folder))
        assert main(["plan", "/dev/zero"]) == 2
        assert capsys.readouterr().err == (
            "memplan: /dev/zero: the input has more than 1 MiB: save it, and name the file\n"
        )

    def test_nothing_is_written_over_a_stream(self, folder: Path) -> None:
        """Tests that a plan is not written into a copy that goes."""
        done = run("memplan apply - --overwrite", folder)
        assert done.returncode == 2
        assert "not one file on disk" in done.stderr


class TestResults:
    """Standard output that takes nothing."""

    @pytest.mark.parametrize("option", ["", "--json"])
    def test_a_full_disk_is_a_sentence(self, folder: Path, option: str) -> None:
        """Tests that no room for the results is no defect."""
        if not os.path.exists("/dev/full"):
            pytest.skip("there is no /dev/full")
        done = run(f"memplan plan five.csv {option} > /dev/full", folder)
        assert done.returncode == 74
        assert done.stderr == (
            "memplan: the results cannot be written to standard output: no space left on device\n"
        )

    @pytest.mark.parametrize(
        ("redirected", "code"),
        [("| head -c 0; exit ${PIPESTATUS[0]}", 141), (">&-", 0), ("> /dev/full 2>&1", 74)],
    )
    def test_a_closed_output_is_quiet(self, folder: Path, redirected: str, code: int) -> None:
        """Tests that closed and full outputs end a run without a message."""
        done = run(f"memplan plan five.csv {redirected}", folder)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("limit", [0, 20, 100])
def test_a_proof_leaves_nothing_on_a_full_disk(tmp_path: Path, limit: int) -> None:
    """Tests that the temporary file of a proof goes where it cannot be finished."""
    resource = pytest.importorskip("resource")
    rows = [{"id": f"b{at}", "start": at % 3, "end": at % 3 + 2, "size": at + 1} for at in range(9)]
    problem = Problem.from_arrays(*([row[k] for row in rows] for k in ("start", "end", "size")))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    refused = "cannot be written: file too large"  # or else the rest of the disk is full
    try:
        solve(problem, solver="exact", proof=tmp_path / "it.proof")
    except FormatError as error:
        refused = str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert refused.endswith("cannot be written: file too large")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [("plan", ""), ("inspect", ""), ("compare", "", "a"), ("verify", "a", ""), ("fit", "")],
)
def test_an_empty_name_is_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that it is not the folder where the command runs."""
    assert "the name of an input is empty" in refused(capsys, *words)

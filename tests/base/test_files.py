"""Tests of memplan.base.files: whole files or none, whatever ends the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memplan.base import files
from memplan.base.errors import FormatError
from memplan.base.files import Staged, temporary_folder, write_bytes, write_files

WAYS = pytest.mark.parametrize("nameless", [True, False])

CHILD = """
import sys
from memplan.base import files
from memplan.base.files import Staged
staged = Staged(sys.argv[1])
staged.write(b"half of it")
print(staged.path, flush=True)
sys.stdin.read()
"""


def choose_way(nameless: bool, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let new files have no name, if this is possible here, or a hidden one."""
    if not nameless:
        monkeypatch.setattr(files, "_open_nameless", lambda folder: None)
        return
    staged = Staged(str(folder / "try"))
    staged.close()
    if not staged.path.startswith("/proc/"):
        pytest.skip("this file system has no files without a name")


@WAYS
def test_a_file_is_new_or_replaced(
    nameless: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests a target that is there and one that is not, and the permissions of both."""
    choose_way(nameless, monkeypatch, tmp_path)
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"old")
    old.chmod(0o640)
    plain = tmp_path / "plain"
    plain.touch()
    write_files({str(old): b"1" * 100_000, str(new): b""})
    assert (old.read_bytes(), new.read_bytes()) == (b"1" * 100_000, b"")
    assert old.stat().st_mode & 0o777 == 0o640
    assert new.stat().st_mode == plain.stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["new", "old", "plain"]


@WAYS
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("step", ["write", "fsync", "replace", "link"])
def test_an_end_in_between_leaves_the_old_file(
    nameless: bool,
    error: BaseException,
    step: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests Ctrl-C and a full disk at each step: the old file is whole, and there is no other."""
    if step == "link" and not nameless:
        return  # nothing is linked
    choose_way(nameless, monkeypatch, tmp_path)
    old = tmp_path / "old"
    old.write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises((FormatError, KeyboardInterrupt)) as caught:
        write_bytes(old, b"new")
    if isinstance(caught.value, FormatError):
        assert str(caught.value) == f"{old}: the file cannot be written: no space left on device"
    assert old.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old"]


def test_nothing_is_left_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a process which is killed while it writes leaves no hidden file."""
    choose_way(True, monkeypatch, tmp_path)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "new")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith(b"/proc/")  # it has written
        child.kill()
        child.wait(300)
    assert os.listdir(tmp_path) == []


def test_errors_name_the_file_of_the_user() -> None:
    """Tests that a version of a file in a temporary folder is not named, and other files are."""
    with pytest.raises(FormatError, match=r"^m\.onnx:3: it is damaged$"):  # noqa: SIM117
        with temporary_folder("m.onnx") as folder:
            raise FormatError(os.path.join(folder, "trial.onnx"), "it is damaged", line=3)
    with pytest.raises(FormatError, match=r"^other: no$"), temporary_folder("m.onnx"):
        raise FormatError("other", "no")

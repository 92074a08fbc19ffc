"""Tests of problem.formats: choosing by content, saving all or nothing, and files of any bytes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memplan.base.errors import FormatError, MemplanError
from memplan.problem import Problem
from memplan.problem.formats import load, load_plan, save
from memplan.problem.formats.minimalloc_csv import read_problem, write_problem
from memplan.problem.plan import Plan
from memplan.referee import verify

DATA = Path(__file__).parents[3] / "shared" / "data"

SEEDS = [
    b"id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\n",
    b'id,start,end,size,gaps,offset\n"a,""b",-3,9,8,-2-3@0:4 5-6,16\nc,0,1,0,,\n',
    b"id,lower,upper,size,offset\na,0,1,4,0\n\n# memplan plan 1 status=optimal peak=4 solver=x\n",
    b'{"memplan": {"kind": "problem", "version": 1}, "capacity": 9, "reserved": [[4, 6]],\n'
    b' "buffers": [{"id": "a", "start": 0, "end": 3, "size": 4, "alignment": 2, "pin": 0,'
    b' "hint": 4, "gaps": [{"start": 1, "end": 2, "window": [0, 2]}]}]}',
    b'{"memplan": {"kind": "plan", "version": 1}, "problem": null, "status": "feasible",'
    b' "peak": 4, "lower_bound": 0, "buffers": [{"id": "a", "size": 4, "offset": 0}]}',
]
PIECES = [b",", b"\n", b'"', b"-", b"0", b"9" * 20, b"1.5", b"null", b"[", b"]", b"{", b"}", b"#"]
PIECES += [b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b" ", b"true", b"NaN", b"@", b":", b"a", b"1e9"]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Return a good file with some pieces cut out, put in or doubled."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        to = draw(st.integers(at, min(len(data), at + 12)))
        middle = draw(st.sampled_from([b"", data[at:to] * 2, *PIECES]))
        data = data[:at] + middle + data[to:]
    return data


class TestFuzz:
    """Whatever the bytes, an answer or one sentence."""

    @settings(max_examples=1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.one_of(mutated(), mutated(), mutated(), st.binary()))
    @example(data=b"[" * 100_000)
    @example(data=b'{"a":' * 100_000)
    @example(data=SEEDS[3].replace(b'"size": 4', b'"size": ' + b"[" * 900 + b"]" * 900))
    @example(data=SEEDS[3].replace(b"[4, 6]", b"[" * 900 + b"]" * 900))
    @example(data=SEEDS[4].replace(b'"feasible"', b"[" * 900 + b"]" * 900))
    @example(data=SEEDS[3].replace(b'"size": 4', b'"size": ' + b"9" * 5000))
    @example(data=SEEDS[3].replace(b'"a"', b'"\\ud800"'))
    @example(data=SEEDS[3].replace(b'"a"', b"[]"))
    def test_bytes(self, data: bytes, tmp_path: Path) -> None:
        """Tests that only a MemplanError of one line comes out of files of any content."""
        path = tmp_path / "fuzz"
        path.write_bytes(data)
        for read in (load, load_plan):
            said = f"{path}: nothing"
            try:
                read(path)
            except MemplanError as error:
                said = str(error)
            assert said.startswith(f"{path}:")
            assert len(said.splitlines()) == 1

    @pytest.mark.parametrize("seed", SEEDS)
    def test_seeds_are_good(self, seed: bytes, tmp_path: Path) -> None:
        """Tests that what is mutated above begins as a file that is read."""
        path = tmp_path / "seed"
        path.write_bytes(seed)
        read = load_plan if b"plan 1" in seed or b'"plan"' in seed else load
        assert len(read(path)) > 0


class TestSave:
    """All of a file, or nothing."""

    def test_by_suffix(self, five: Problem, five_offsets: list[int], tmp_path: Path) -> None:
        """Tests that the name chooses the format, unless the caller does."""
        plan = Plan.of(five, five_offsets)
        for name in ("a.json", "b.JSON", "c.csv", "d.plan.csv", "e"):
            save(five, tmp_path / name)
            save(plan, tmp_path / f"plan-{name}")
            is_json = (tmp_path / name).read_text().startswith("{")
            assert is_json == name.lower().endswith("json")
            assert load(tmp_path / name, capacity=12) == five
            assert load_plan(tmp_path / f"plan-{name}") == plan
        save(five, tmp_path / "x.csv", format="json")
        assert (tmp_path / "x.csv").read_text().startswith("{")
        with pytest.raises(MemplanError, match="unknown format"):
            save(five, tmp_path / "x.csv", format="xml")  # type: ignore[arg-type]

    def test_plan_from_json_to_csv(
        self, five: Problem, five_offsets: list[int], tmp_path: Path
    ) -> None:
        """Tests that a plan goes from JSON to CSV with the help of its problem."""
        save(Plan.of(five, five_offsets), tmp_path / "p.json")
        plan = load_plan(tmp_path / "p.json")
        save(plan, tmp_path / "p.csv", dialect="start-end", problem=five)
        assert (tmp_path / "p.csv").read_text().startswith("id,start,end,size,offset\nb1,0,2,4,8\n")
        verify(five, load_plan(tmp_path / "p.csv"))

    def test_failure_leaves_the_old_file(
        self, five: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Tests that a file stays what it was, and nothing else is left, when writing fails."""
        path = tmp_path / "p.csv"
        path.write_text("old")
        with pytest.raises(MemplanError, match="JSON"):
            save(five.with_reserved([(50, 60)]), path)

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        for step in ("fsync", "replace"):
            with monkeypatch.context() as patch:
                patch.setattr(os, step, fail)
                with pytest.raises(FormatError, match="cannot be written: no space left on device"):
                    save(five, path)
            assert path.read_text() == "old"
            assert os.listdir(tmp_path) == ["p.csv"]

    def test_nowhere_to_write(self, five: Problem, tmp_path: Path) -> None:
        """Tests that a folder and a file for a folder are one sentence each; others are made."""
        (tmp_path / "file").write_text("")
        for path in (tmp_path, tmp_path / "file" / "p.csv"):
            with pytest.raises(FormatError, match="cannot be written: ") as caught:
                save(five, path)
            assert str(caught.value).startswith(f"{path}: ")
        assert os.listdir(tmp_path) == ["file"]
        save(five, tmp_path / "new" / "folder" / "p.csv")
        assert load(tmp_path / "new" / "folder" / "p.csv").ids == five.ids

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_unwritable_folder(self, five: Problem, tmp_path: Path) -> None:
        """Tests that a folder without permission is one sentence."""
        tmp_path.chmod(0o500)
        with pytest.raises(FormatError, match="cannot be written: permission denied"):
            save(five, tmp_path / "p.csv")

    def test_keeps_links_and_permissions(self, five: Problem, tmp_path: Path) -> None:
        """Tests that a link stays a link, and a file keeps who may read it."""
        target, link = tmp_path / "target.csv", tmp_path / "link.csv"
        target.write_text("old")
        target.chmod(0o640)
        link.symlink_to(target)
        save(five, link)
        assert link.is_symlink()
        assert target.read_text() == write_problem(five)
        assert stat.S_IMODE(target.stat().st_mode) == 0o640

    def test_pipes_are_written_to(self, five: Problem, tmp_path: Path) -> None:
        """Tests that what is not a regular file is not replaced by one."""
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            save(five, pipe)
            assert os.read(reader, 1 << 16).decode() == write_problem(five)
        finally:
            os.close(reader)
        assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data is not beside the checkout")
class TestRealFiles:
    """The files of the benchmark."""

    @pytest.mark.parametrize(
        ("name", "count"),
        [
            ("challenging/A.1048576.csv", 154),
            ("challenging/K.1048576.csv", None),
            ("somas/resnet50.csv", 1042),
            ("iopddl/S_1.csv", 28526),
        ],
    )
    def test_read(self, name: str, count: int | None) -> None:
        """Tests that they are read, all rows of them, and survive both formats."""
        path = DATA / name
        problem = load(path)
        rows = [line for line in path.read_text().splitlines()[1:] if line.strip()]
        assert len(problem) == len(rows)
        assert count is None or len(problem) == count
        assert read_problem(write_problem(problem, "begin-end"), "p") == problem

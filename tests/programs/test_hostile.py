"""Tests that no file takes memory or time without measure, or ends in a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from offenders import OFFENDERS, archive, called

from memplan import load
from memplan.base.errors import FormatError, GraphError, MemplanError, listed, quoted
from memplan.programs.sources._limits import MAX_FACTOR, check_growth

pytestmark = pytest.mark.slow

# In what sentence each of them ends; None: it is read.
SENTENCES: Mapping[str, str | None] = {
    "bomb.pt2": "parsed, would be",
    "larger_bomb.pt2": "unpacked, would be",
    "lying.pt2": "the archive is damaged",
    "bzip.pt2": "the archive is damaged",
    "long_expression.pt2": "cannot be computed",
    "many_axes.pt2": "is not valid JSON",
    "nested.onnx": "would be far more than",
    "deep.onnx": "nested more than 100 calls deep",
    "twins.onnx": 'two functions with the name "f"',
    "arguments.onnx": 'operator "f" has 2 inputs, but the function that it calls has 1',
    "results.onnx": 'operator "f" has 2 outputs, but the function that it calls has 1',
    "circle.onnx": "calls itself",
    "doubled.onnx": None,
    "vector.onnx": None,
    "ranks.onnx": "all shapes together would be",
    "outputs.onnx": "has 1 outputs, and a branch of it 0",
    "branches.onnx": None,
    "frames.pickle": None,
    "names.pickle": None,
    "keys.pickle": "keys beyond 2^60",
    "views.json": None,
    "m.buffer-assignment.txt": None,
    "users.hlo.pb": "the id occurs twice",
    "same.hlo.pb": "the id occurs twice",
}

# Reads files one after the other; the peak of the process is set back before each.
_READ = """
import json, sys, time
from pathlib import Path
from memplan import load
from memplan.base.errors import MemplanError

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) << 10

for path in sys.argv[1:]:
    Path("/proc/self/clear_refs").write_text("5")
    begun, sentence = time.process_time(), None
    try:
        load(path)
    except MemplanError as error:
        sentence = str(error).replace(path, "")
    seconds = time.process_time() - begun
    print(json.dumps([Path(path).name, sentence, seconds, peak()]), flush=True)
"""


@pytest.fixture(scope="module")
def offended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, ...]]:
    """Return by file: its sentence, the seconds of a core, the peak of the process."""
    pytest.importorskip("onnx")
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of a process is read from /proc")
    folder = tmp_path_factory.mktemp("offenders")
    for name, make in OFFENDERS.items():
        (folder / name).write_bytes(make())
    (folder / "m.live-range.txt").write_text("HloLiveRange")
    paths = [str(folder / name) for name in OFFENDERS]
    done = subprocess.run(
        [sys.executable, "-c", _READ, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = map(json.loads, done.stdout.splitlines())
    return {name: (sentence, seconds, peak) for name, sentence, seconds, peak in rows}


@pytest.mark.parametrize("name", SENTENCES)
def test_offenders_end_in_a_sentence_or_are_read(
    offended: dict[str, tuple[Any, ...]], name: str
) -> None:
    """Tests that each takes at most 1 GB and 10 s, and a sentence of at most 300 characters."""
    sentence, seconds, peak = offended[name]
    expected = SENTENCES[name]
    if expected is None:
        assert sentence is None
    else:
        assert expected in sentence
        assert len(sentence) <= 300
    assert seconds <= 10
    assert peak <= 1 << 30


def test_all_offenders_are_known() -> None:
    """Tests that none is made without a word on what becomes of it."""
    assert SENTENCES.keys() == OFFENDERS.keys()


class TestLimits:
    """What may be raised, and how."""

    def test_a_factor_takes_a_larger_file(self, tmp_path: Path) -> None:
        """Tests that the sentence names the factor with which a file is unpacked, and no less."""
        path = tmp_path / "large.pt2"
        path.write_bytes(archive(b" " * (1 << 20), 200))
        with pytest.raises(FormatError, match="raise the limits with --read limit-factor=2"):
            load(path)
        with pytest.raises(FormatError, match="is not valid JSON"):
            load(path, limit_factor=2)

    def test_functions_within_the_limits_are_read(self, tmp_path: Path) -> None:
        """Tests that a model with functions in functions is what its operators are."""
        pytest.importorskip("onnx")
        path = tmp_path / "called.onnx"
        path.write_bytes(called())
        assert load(path).tensors == 3

    def test_what_no_factor_takes_says_so(self) -> None:
        """Tests that no message advises a limit beyond what the option takes."""
        with pytest.raises(GraphError, match="memplan cannot read the file"):
            check_growth("it", 10 * (MAX_FACTOR + 1), 10, 1, "bytes")
        with pytest.raises(GraphError, match=f"--read limit-factor={MAX_FACTOR}"):
            check_growth("it", 10 * MAX_FACTOR, 10, 1, "bytes")
        check_growth("it", 10 * MAX_FACTOR, 10, MAX_FACTOR, "bytes")

    @pytest.mark.parametrize("error", [MemoryError, RecursionError])
    def test_what_is_too_much_for_python_is_a_sentence(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
    ) -> None:
        """Tests that running out of memory or of stack while reading names the file."""
        path = tmp_path / "a.csv"
        path.write_text("id,lower,upper,size\n")

        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr("memplan.problem.formats.load", fail)
        with pytest.raises(
            FormatError, match=r"a\.csv: (there is not enough memory|the file is nested)"
        ):
            load(path)


class TestSentences:
    """What errors repeat of a file."""

    def test_lists_are_cut_by_number_and_by_length(self) -> None:
        """Tests that a list in a sentence has five texts, fewer if they are long."""
        assert listed(["a"] * 7, quote=False) == "a, a, a, a, a and 2 more"
        assert listed(["x" * 60] * 7).count("x") == 120
        assert listed(["x" * 60] * 7).endswith(" and 5 more")

    @pytest.mark.parametrize("letter", ["a", "\0", "\N{NO-BREAK SPACE}", "\U000e0001"])
    def test_texts_are_cut_as_they_are_shown(self, letter: str) -> None:
        """Tests that what is written as an escape counts as what it becomes."""
        assert len(quoted(letter * 100)) <= 62

    def test_open_dimensions_are_listed(self, tmp_path: Path) -> None:
        """Tests that a hundred open dimensions make one sentence that can be read."""
        pytest.importorskip("onnx")
        from onnx_models import model, node, on_disk, value

        shape = [f"dimension_{at}" for at in range(100)]
        path = on_disk(
            tmp_path, model([node("Relu", "x", "y")], [value("x", shape)], [value("y", None)])
        )
        with pytest.raises(MemplanError, match=r"and 9[5-9] more; give each") as error:
            load(path)
        assert len(str(error.value).replace(str(path), "")) <= 300

"""Tests of the action that runs `memplan compare` in pull requests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ACTION = ROOT / ".github" / "actions" / "compare"
EXAMPLES = ROOT / "examples"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
]


def run(folder: Path, after: str, peak_limit: str = "", options: str = "") -> tuple[int, str, str]:
    """Run the action's script as a job does; return its exit code, its summary and its outputs."""
    summary, outputs = folder / "summary.md", folder / "outputs"
    summary.write_text("Before\n")
    outputs.touch()
    environment = {
        **os.environ,
        "BEFORE": str(EXAMPLES / "five.csv"),
        "AFTER": after,
        "PEAK_LIMIT": peak_limit,
        "LOAD_LIMIT": "",
        "OPTIONS": options,
        "PYTHON": sys.executable,
        "RUNNER_TEMP": str(folder),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
    }
    command = ["bash", str(ACTION / "run.sh")]
    found = subprocess.run(command, env=environment, cwd=folder, check=False, capture_output=True)
    return found.returncode, summary.read_text(), outputs.read_text()


def test_the_report_is_in_the_summary(tmp_path: Path) -> None:
    """Tests a comparison without a limit, whose report comes behind what other steps wrote."""
    changed = tmp_path / "a changed.csv"
    changed.write_text((EXAMPLES / "five.csv").read_text().replace("b2,3,9,4", "b2,3,9,5"))
    code, summary, outputs = run(tmp_path, str(changed))
    assert code == 0
    assert summary.startswith("Before\n**The peak grew by 1 byte")
    assert Path(outputs.strip().removeprefix("report=")).read_text() in summary


def test_growth_beyond_the_limit_fails_the_job(tmp_path: Path) -> None:
    """Tests the limit on both sides, and that the report is there when the job fails."""
    changed = tmp_path / "changed.csv"
    changed.write_text((EXAMPLES / "five.csv").read_text().replace("b2,3,9,4", "b2,3,9,5"))
    code, summary, _ = run(tmp_path, str(changed), "1%")
    assert code == 1
    assert "Failed: the peak grew by more than 1%." in summary
    assert run(tmp_path, str(changed), "10%", "--nodes 1000 --top 3")[0] == 0


def test_a_mistake_is_not_a_growth(tmp_path: Path) -> None:
    """Tests a file that is not there, after a run whose report must not be shown again."""
    assert run(tmp_path, str(EXAMPLES / "five.csv"))[0] == 0
    code, summary, outputs = run(tmp_path, "-absent.csv")
    assert code == 2
    assert "There is no comparison" in summary
    assert "report=" not in outputs.splitlines()[1:]


def test_every_input_is_used_and_described() -> None:
    """Tests the inputs of action.yml against its steps, the script and docs/inspect.md."""
    text = (ACTION / "action.yml").read_text()
    inputs = re.findall(r"^  ([\w-]+):$", text.partition("\noutputs:")[0], re.MULTILINE)
    assert len(inputs) == 6
    page = (ROOT / "docs" / "inspect.md").read_text()
    for name in inputs:
        assert f"${{{{ inputs.{name} }}}}" in text, name
        assert f"`{name}`" in page or f"{name}: " in page, name
    script = (ACTION / "run.sh").read_text()
    given = re.findall(r"^        ([A-Z_]+):", text.partition("id: compare")[2], re.MULTILINE)
    for name in set(given) - {"PYTHONPATH", "SCRIPT"}:
        assert f"${name}" in script, name

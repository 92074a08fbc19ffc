"""Tests of what a package index and a release pipeline are given."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def read_toml(path: str) -> dict[str, Any]:
    """Return a file of TOML."""
    return tomllib.loads((ROOT / path).read_text())


PROJECT = read_toml("pyproject.toml")
LAB = read_toml("lab/pyproject.toml")


def test_the_index_page_has_addresses_for_links() -> None:
    """Tests that the README's links to files lead to the release, and pictures to their bytes."""
    readme = (ROOT / "README.md").read_text()
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    page = readme
    for each in hook["substitutions"]:
        page = re.sub(each["pattern"], each["replacement"], page)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert links
    assert len(links) == len(re.findall(r"\]\(([^)]+)\)", readme))
    assert [each for each in links if not each.startswith("https://")] == []
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page):
        assert picture.startswith("https://raw.githubusercontent.com/memplan/memplan/v"), picture
        assert (ROOT / picture.split("/", 6)[-1]).is_file()


def test_both_packages_are_of_one_project() -> None:
    """Tests addresses, Python versions and the license; test_solve_api.py tests the version."""
    for key in ("Homepage", "Repository", "Issues", "Changelog"):
        assert PROJECT["project"]["urls"][key] == LAB["project"]["urls"][key], key
    assert PROJECT["project"]["requires-python"] == LAB["project"]["requires-python"]
    assert (ROOT / "lab" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_makefile_builds_with_what_the_build_asks_for() -> None:
    """Tests that builds without isolation find every requirement of `[build-system]`."""
    assert set(PROJECT["build-system"]["requires"]) <= set(PROJECT["dependency-groups"]["build"])


def test_linters_have_one_version() -> None:
    """Tests that what passed a linter yesterday is not read by another one today."""
    dev = {each for each in PROJECT["dependency-groups"]["dev"] if isinstance(each, str)}
    for linter in ("clang-format", "mypy", "ruff"):
        assert any(re.fullmatch(rf"{linter}==[\d.]+", each) for each in dev), linter


@pytest.mark.slow
def test_what_tries_wheels_passes_here() -> None:
    """Tests the script that cibuildwheel runs against the package of this environment."""
    assert "{project}/tests/try_wheel.py" in PROJECT["tool"]["cibuildwheel"]["test-command"]
    command = [sys.executable, str(ROOT / "tests" / "try_wheel.py")]
    assert "5 plans" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_bill_of_materials_has_what_the_wheel_runs_with() -> None:
    """Tests its libraries against the dependencies, and that versions were filled in."""
    bill = json.loads((ROOT / "bindings" / "materials.json.in").read_text())
    needed = {re.split(r"[<>=]", each)[0] for each in PROJECT["project"]["dependencies"]}
    assert {each["name"] for each in bill["components"]} == needed | {"nanobind", "robin-map"}
    made = importlib.metadata.distribution("memplan").read_text("sboms/memplan.cdx.json")
    assert made is not None
    assert "@@" not in made
    found = {each["name"]: each for each in json.loads(made)["components"]}
    for name in ("nanobind", "robin-map"):
        assert re.fullmatch(r"\d+\.\d+\.\d+", found[name]["version"]), name
        assert found[name]["purl"].endswith(found[name]["version"])
        assert (ROOT / "bindings" / "licenses" / f"{name}.txt").is_file()


def test_releases_are_built_with_known_files() -> None:
    """Tests that all that builds has a version and a hash, and no index is named."""
    pins = (ROOT / ".ci" / "release.txt").read_text()
    for each in PROJECT["build-system"]["requires"] + PROJECT["dependency-groups"]["build"]:
        name = re.split(r"[<>=]", each)[0]
        assert re.search(rf"^{name}==[\d.]+ .*\\\n    --hash=sha256:", pins, re.MULTILINE), name
    assert "://" not in pins


def test_actions_are_pinned_by_commit() -> None:
    """Tests every step that uses an action of others."""
    files = [*(ROOT / ".github").rglob("*.yml")]
    steps = [
        line.strip() for file in files for line in file.read_text().splitlines() if "uses:" in line
    ]
    assert len(steps) > 10
    for step in steps:
        assert re.fullmatch(r"(- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", step), step

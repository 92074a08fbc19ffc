"""Tests that the tutorial notebook runs from its first cell to its last."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

pytestmark = pytest.mark.slow

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorials" / "first-plan.ipynb"


def test_outputs_are_not_kept() -> None:
    """Tests that the file is valid, and holds nothing that a run left behind."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)


def test_the_tutorial_runs() -> None:
    """Tests every cell with this interpreter, and that what the text promises is shown."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    which = f"import sys\nassert sys.executable == {sys.executable!r}, sys.executable"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(which))
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
    )
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = [output for cell in code for output in cell.outputs]
    assert all(output.output_type in ("execute_result", "stream") for output in shown)
    assert all(output.get("name") != "stderr" for output in shown)
    kinds = [kind for output in shown for kind in output.get("data", {})]
    assert kinds.count("image/png") == 3
    assert kinds.count("text/html") == 5
    said = "".join(output.text for output in shown if output.output_type == "stream")
    assert "1 byte is missing: 12 are required" in said

"""The notebook of the documentation runs, and gives the tables that it shows. Run as a program, it is executed and written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def executed(folder: Path) -> Any:
    """The notebook, run in a folder. What programs say on standard error is left out: how long it took, in red."""
    notebook = nbformat.read(NOTEBOOK, 4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    return notebook


def shown(notebook: Any) -> list[str]:
    """What the cells show, as plain text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"]["text/plain"] for output in outputs if "data" in output]


def test_it_shows_what_it_gives(tmp_path: Path) -> None:
    there = nbformat.read(NOTEBOOK, 4)
    assert shown(executed(tmp_path)) == shown(there)
    assert any("image/png" in output.get("data", {}) for cell in there.cells for output in cell.get("outputs", []))
    assert NOTEBOOK.stat().st_size < 100_000


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(executed(Path(folder)), NOTEBOOK)

"""The documentation's programs run, and its manifest is one that Kubernetes knows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, words: str) -> list[str]:
    """The contents of a page's blocks that begin with three backticks and these words."""
    return re.findall(rf"^```{words}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_programs_run(tmp_path: Path) -> None:
    """One after another in one directory, as a reader would."""
    for needed in ("distributed", "pandas", "polars", "pyarrow"):
        pytest.importorskip(needed)
    programs = blocks("python.md", "python")
    assert len(programs) == 3
    for k, program in enumerate(programs):
        file = tmp_path / f"program{k}.py"
        file.write_text(program)
        done = subprocess.run([sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"block {k}:\n{done.stderr}"


@pytest.mark.heavy
def test_the_manifest_is_in_form() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    yaml = pytest.importorskip("yaml")
    (manifest,) = blocks("sweeps.md", "yaml")
    kubernetes_validate.validate(yaml.safe_load(manifest), "1.33", strict=True)

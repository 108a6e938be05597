"""The documentation's programs run and have types, and its manifest is one that Kubernetes knows."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def blocks(page: str, words: str) -> list[str]:
    """The contents of a page's blocks that begin with three backticks and these words."""
    return re.findall(rf"^```{words}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_programs_run(tmp_path: Path) -> None:
    """One after another in one directory, as a reader would."""
    for needed in ("distributed", "pandas", "polars", "pyarrow"):
        pytest.importorskip(needed)
    programs = blocks("python.md", "python") + (blocks("python-live.md", "python root") if os.geteuid() == 0 else [])
    assert len(programs) == 5 + (os.geteuid() == 0)
    for k, program in enumerate(programs):
        file = tmp_path / f"program{k}.py"
        file.write_text(program)
        done = subprocess.run([sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"block {k}:\n{done.stderr}"


def test_programs_have_types(tmp_path: Path) -> None:
    """Blocks of Python, files of Python that blocks of sh write, and the notebook, as somebody has them who copies them."""
    pytest.importorskip("mypy")
    files = []
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        assert "external.py heliostat.py" not in text, f"{page}: a copy of this name hides the package"
        programs = re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        programs += [program for _, program in re.findall(r"\.py <<'(\w+)'\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL)]
        files += [(f"{page.stem}_{k}", program) for k, program in enumerate(programs)]
    cells = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    files.append(("notebook", "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")))
    assert len(files) >= 15, [name for name, _ in files]
    for name, program in files:
        (tmp_path / f"{re.sub(r'[^a-z0-9]', '_', name)}.py").write_text(program, encoding="utf-8")
    shutil.copy(ROOT / "python" / "heliostat" / "external.py", tmp_path / "heliostat_external.py")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", os.devnull]
    here = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    done = subprocess.run([*command, *map(str, tmp_path.iterdir())], capture_output=True, text=True, check=False, cwd=tmp_path, env=here)
    assert done.returncode == 0, done.stdout


@pytest.mark.heavy
def test_the_manifest_is_in_form() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    yaml = pytest.importorskip("yaml")
    (manifest,) = blocks("sweeps.md", "yaml")
    kubernetes_validate.validate(yaml.safe_load(manifest), "1.33", strict=True)

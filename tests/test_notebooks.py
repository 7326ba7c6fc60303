"""The notebooks of examples/ run from top to bottom on the CPU; cells that install or call the shell are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.paths import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
LEFT_OUT = {"install", "shell"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLAMINI_PLATFORMS", "cpu")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [c for c in notebook.cells if not LEFT_OUT & set(c.metadata.get("tags", ()))]
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(path.parent.parent))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_kept_without_outputs(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert not [c for c in cells if c.get("outputs") or c.get("execution_count")], "clear the outputs before committing"


def test_two_cells_lead_to_the_first_result() -> None:
    for path in NOTEBOOKS:
        first, second = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"][:2]
        assert "%pip install" in first.source and "@xlamini.jit" in second.source

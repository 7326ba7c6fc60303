"""`python -m tests.wheel.notebooks WHEEL`: run every notebook from top to bottom, as on Colab.

The Python that runs this has JAX and no xlamini. The first notebook finds the wheel beside it; the second one is in the
clone, and finds that; the others find what is installed, as after a restart. None may import JAX. The results of the
tutorials are compared with those that their pages show.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbclient
import nbformat

from docs.builder.notebooks import FOLDER, PAGES, cells, is_result
from tests.support.paths import ROOT

NOTEBOOKS = [*sorted(ROOT.glob("examples/*.ipynb")), *(ROOT / FOLDER / f"{name}.ipynb" for name in PAGES)]
LAST = """
import importlib.metadata, sys
assert "jax" not in sys.modules and importlib.metadata.version("jax")
assert "site-packages" in sys.modules["xlamini"].__file__
print(importlib.metadata.distribution("xlamini").read_text("direct_url.json"))
"""
"""A cell that is run after the others: JAX is there and was not imported, xlamini is from where it prints."""


def run(path: Path, folder: Path) -> list[str]:
    """Run a notebook in a folder; what each cell of code shows."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(LAST))
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=str(folder))
    return ["".join(_shown(output) for output in cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def _shown(output: Any) -> str:
    return output.text if output.output_type == "stream" else output.get("data", {}).get("text/plain", "")


def differences(name: str, shown: Sequence[str]) -> list[str]:
    """The cells of a tutorial that do not show what its page shows; none for another notebook."""
    if name not in PAGES:
        return []
    code = [cell for cell in cells(name) if cell.kind == "code"]
    return [
        f"{name}: {cell.source}\nexpected: {cell.result}\nfound: {text}"
        for cell, text in zip(code, shown, strict=True)
        if cell.result and not is_result(text, cell.result)
    ]


def problems(path: Path, folder: Path, source: str) -> list[str]:
    """Run a notebook in a folder where it finds xlamini in a wheel or a clone, `source`; and say what is wrong."""
    start = time.perf_counter()
    *shown, found = run(path, folder)
    print(f"{time.perf_counter() - start:6.1f} s  {path.relative_to(ROOT)}", flush=True)
    misled = [] if source in found else [f"{path.stem}: xlamini is from {found}, expected was {source}"]
    return misled + differences(path.stem, shown)


def main(argv: list[str]) -> int:
    assert importlib.util.find_spec("jax") is not None, "install jax, as it is on Colab"
    wheel, (first, *others) = Path(argv[0]), NOTEBOOKS
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(wheel, folder)
        wrong = problems(first, Path(folder), wheel.name)
    subprocess.run([sys.executable, "-m", "pip", "uninstall", "-q", "-y", "xlamini"], check=True)
    for path in others:
        wrong += problems(path, path.parent, ROOT.as_uri())
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

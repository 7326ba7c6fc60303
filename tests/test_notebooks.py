"""Notebooks: tutorials are in step with their pages, and each first cell installs what lies beside it.

`python -m tests.wheel.notebooks` runs them, in an environment of their own.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from docs.builder.notebooks import FOLDER, INSTALL, PAGES, Cell, is_result, notebook, of_page
from tests.support.paths import ROOT

WRITTEN = sorted((ROOT / "examples").glob("*.ipynb"))
TUTORIALS = sorted((ROOT / FOLDER).glob("*.ipynb"))
PAGE = """# Sums

See [products](products.md#two), [a site](https://example.org/a.md) and [below](#below).

```pycon
>>> def double(x):
...     return 2 * x
>>> x = 1
>>> double(x)
2
>>> double(x) + 1
3
>>> int("one")
Traceback (most recent call last):
    ...
ValueError: invalid literal ...
```

```{picture} A line
>>> _ = plt.plot([x, x])
```
"""


def code_of(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", [*WRITTEN, *TUTORIALS], ids=lambda path: path.stem)
def test_is_kept_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert not [c for c in cells if c.get("outputs") or c.get("execution_count")], "clear the outputs before committing"


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_two_cells_lead_to_the_first_result(path: Path) -> None:
    first, second, *_ = code_of(path)
    assert first.startswith(INSTALL) and "@xlamini.jit" in second


@pytest.mark.parametrize("name", PAGES)
def test_a_tutorial_is_what_its_page_gives(name: str) -> None:
    written = (ROOT / FOLDER / f"{name}.ipynb").read_text()
    assert written == notebook(name), "run: python -m docs.builder.notebooks"
    assert code_of(ROOT / FOLDER / f"{name}.ipynb")[0].startswith(INSTALL)


def test_a_tutorial_has_a_cell_for_each_result() -> None:
    text, *code = of_page(PAGE, "../pages")
    links = "[products](../pages/products.md#two), [a site](https://example.org/a.md) and [below](#below)"
    assert text == Cell("markdown", f"# Sums\n\nSee {links}.")
    caught = 'try:\n    int("one")\nexcept Exception as error:\n    print(f"{type(error).__name__}: {error}")'
    assert code == [
        Cell("code", "def double(x):\n    return 2 * x\n\n\nx = 1\ndouble(x)", "2\n"),
        Cell("code", "double(x) + 1", "3\n"),
        Cell("code", caught, "ValueError: invalid literal ...\n"),
        Cell("code", "_ = plt.plot([x, x])"),
    ]


@pytest.mark.parametrize(
    ("shown", "result", "same"),
    [
        ("Array([1., 2.],\n      dtype=float32)", "Array([1., 2.], dtype=float32)\n", True),
        ("Array([1., 2.], dtype=float32)", "Array([1., 3.], dtype=float32)\n", False),
        ("ShapeError: no, in f\n", "xlamini.core.errors.ShapeError: no, ...\n", True),
        ("TypeError: no, in f\n", "xlamini.core.errors.ShapeError: no, ...\n", False),
        ("", "2\n", False),
    ],
)
def test_a_cell_shows_the_result_of_its_page(shown: str, result: str, same: bool) -> None:
    assert is_result(shown, result) is same


@pytest.fixture
def first_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A call runs the first cell in `tmp_path`, and returns what pip is told; nothing is installed before."""
    transform = pytest.importorskip("IPython.core.inputtransformer2").TransformerManager().transform_cell
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(metadata, "distributions", lambda name: [])

    def run() -> list[str]:
        told: list[str] = []
        names: dict[str, Any] = {}
        shell = SimpleNamespace(run_line_magic=lambda magic, line: told.append(line.format(**names)))
        names["get_ipython"] = lambda: shell
        exec(transform(INSTALL), names)
        return told

    return run


def clone(folder: Path) -> None:
    (folder / "xlamini").mkdir(parents=True)
    (folder / "xlamini/__init__.py").write_text("")


def test_the_first_cell_installs_the_wheel_beside_the_notebook(first_cell: Any, tmp_path: Path) -> None:
    (tmp_path / "xlamini-0.1.0-py3-none-any.whl").write_text("")
    clone(tmp_path / "xlamini")
    assert first_cell() == [f'install "{tmp_path}/xlamini-0.1.0-py3-none-any.whl"']


def test_the_first_cell_installs_the_clone_beside_the_notebook(first_cell: Any, tmp_path: Path) -> None:
    clone(tmp_path / "xlamini")
    assert first_cell() == [f'install "{tmp_path}/xlamini"']


def test_the_first_cell_installs_the_clone_that_the_notebook_is_in(
    first_cell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone(tmp_path)
    (tmp_path / "examples/tutorials").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "examples/tutorials")
    assert first_cell() == [f'install "{tmp_path}"']


def test_the_first_cell_says_what_to_put_beside_the_notebook(first_cell: Any) -> None:
    with pytest.raises(FileNotFoundError) as error:
        first_cell()
    assert str(error.value) == "put xlamini's wheel, xlamini-*.whl, or a clone of its repository beside this notebook"


def test_the_first_cell_installs_nothing_twice(first_cell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "distributions", lambda name: [name])
    assert first_cell() == []

"""Tutorials as notebooks, made from their pages: `python -m docs.builder.notebooks` writes `examples/tutorials`.

A page's text becomes cells of text, and its sessions become cells of code: one for each result that the page shows.
Notebooks are kept without results. The tests compare each one with its page, and CI runs it and compares the results.
"""

from __future__ import annotations

import doctest
import json
import posixpath
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docs.builder.sessions import FLAGS, Checker

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = "examples/tutorials"
PAGES = {name: f"docs/tutorials/{name}.md" for name in ("jit", "derivatives", "vectorization")}
"""The page of each notebook."""

INSTALL = """\
import importlib.metadata
from pathlib import Path

here = Path.cwd()
clones = [folder for folder in (here / "xlamini", here, *here.parents) if (folder / "xlamini/__init__.py").exists()]
if not any(importlib.metadata.distributions(name="xlamini")):
    sources = [*here.glob("xlamini-*.whl"), *clones]
    if not sources:
        raise FileNotFoundError("put xlamini's wheel, xlamini-*.whl, or a clone of its repository beside this notebook")
    %pip install "{sources[0]}"\
"""
"""How the first cell of every notebook begins. Without `-q` pip shows its progress."""

_START = """\
This notebook is the page [{page}]({link}). Run its cells from the first one on, also after a
restart of the runtime. The first one installs xlamini, if it is not installed, from its wheel or a clone beside the
notebook. Do not import `jax`: it cannot be in one process with xlamini.\
"""
_FENCE = re.compile(r"^```(?:pycon|\{picture\}[^\n]*)\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!\w+:|#)([^)]+)\)")


class Cell(NamedTuple):
    """A cell's kind, its source, and of code the result that the page shows: an empty string if it shows none."""

    kind: str
    source: str
    result: str = ""


def cells(name: str) -> list[Cell]:
    """The cells of a notebook, by the name of its page.

    >>> [cell.kind for cell in cells("jit")[:3]]
    ['markdown', 'code', 'code']
    """
    page = PAGES[name]
    intro, *rest = of_page((ROOT / page).read_text(), posixpath.relpath(posixpath.dirname(page), FOLDER))
    start = _START.format(page=page, link=posixpath.relpath(page, FOLDER))
    install = INSTALL + (" matplotlib" if any("matplotlib" in cell.source for cell in rest) else "")
    return [Cell("markdown", f"{intro.source}\n\n{start}"), Cell("code", install), *rest]


def of_page(text: str, folder: str) -> Iterator[Cell]:
    """The cells of a page's text, with its links as they are from where it lies at `folder`."""
    for i, part in enumerate(_FENCE.split(text)):
        if i % 2:
            yield from _of_session(part)
        elif part.strip():
            linked = _LINK.sub(lambda link: f"]({posixpath.normpath(f'{folder}/{link[1]}')})", part)
            yield Cell("markdown", linked.strip())


def _of_session(session: str) -> Iterator[Cell]:
    """A cell for each result, with the statements that lead to it, as a cell shows the value of its last line only."""
    sources: list[str] = []
    for example in doctest.DocTestParser().get_examples(session):
        sources.append(_caught(example.source) if example.exc_msg else example.source)
        if example.want:
            yield Cell("code", _joined(sources), example.exc_msg or example.want)
            sources = []
    if sources:
        yield Cell("code", _joined(sources))


def _caught(source: str) -> str:
    """The error as a line of text: a cell that raises one ends a run of all cells."""
    shown = 'print(f"{type(error).__name__}: {error}")'
    return f"try:\n{textwrap.indent(source, '    ')}except Exception as error:\n    {shown}\n"


def _joined(sources: list[str]) -> str:
    """The statements one below the other, those of several lines with space around them."""
    text = "".join(f"\n\n{source}\n\n" if source.count("\n") > 1 else source for source in sources)
    return re.sub(r"\n{4,}", "\n\n\n", text).strip()


def is_result(shown: str, result: str) -> bool:
    """Whether a cell shows the result of its page, where an error has the name of its module too."""
    return Checker().check_output(re.sub(r"^([a-z]\w*\.)+(?=[A-Z]\w*: )", "", result), shown, FLAGS)


def notebook(name: str) -> str:
    """The text of a notebook's file."""
    written = [_written(i, cell) for i, cell in enumerate(cells(name))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": written, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _written(i: int, cell: Cell) -> dict[str, Any]:
    lines = cell.source.splitlines(keepends=True)
    ran = {"execution_count": None, "outputs": []} if cell.kind == "code" else {}
    return {"cell_type": cell.kind, "id": f"cell-{i}", "metadata": {}, **ran, "source": lines}


if __name__ == "__main__":
    for name in PAGES:
        path = ROOT / FOLDER / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(notebook(name))

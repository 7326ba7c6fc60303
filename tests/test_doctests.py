"""The examples in docstrings and in the README print what they say.

Docstrings are found in the source, so those of operations and attributes, which `doctest` alone would not see, count
too. An example may use the names of its own module, `xlamini`, `np`, and `jnp`, `lax`, `nn`, `random`, `tree`, `pl`,
`pltpu`.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.lax
import xlamini.nn
import xlamini.numpy
import xlamini.random
import xlamini.tree
from docs.builder.sessions import FLAGS, Checker
from tests.support.ffi_library import COMPILER
from tests.support.paths import ROOT
from xlamini.core.program.bindable import primitives
from xlamini.experimental import pallas

NAMES = {
    "xlamini": xlamini,
    "np": np,
    "jnp": xlamini.numpy,
    "lax": xlamini.lax,
    "nn": xlamini.nn,
    "random": xlamini.random,
    "tree": xlamini.tree,
    "pl": pallas,
    "pltpu": pallas.tpu,
}
SLOW_PAGES = {"docs/cache.md"}
PAGES = {str(p.relative_to(ROOT)): p for kind in ("*.md", "docs/**/*.md") for p in sorted(ROOT.glob(kind))}


def docstrings(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Qualified name, line and text of every string that stands as a statement of its own."""
    stack: list[tuple[str, ast.AST]] = [("", tree)]
    while stack:
        name, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                stack.append((f"{name}.{child.name}", child))
            elif isinstance(child, ast.Expr) and isinstance(text := getattr(child.value, "value", None), str):
                yield name, child.lineno - 1, text


def sessions() -> list[Any]:
    """Every docstring with an example, as a test's parameter."""
    found = []
    for path in sorted([*(ROOT / "xlamini").rglob("*.py"), *(ROOT / "docs/builder").glob("*.py")]):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for name, line, text in docstrings(ast.parse(path.read_text())):
            if ">>>" in text:
                found.append(pytest.param(module, text, str(path), line, id=f"{module}{name}"))
    return found


def run(text: str, names: dict[str, Any], file: str, line: int) -> None:
    """Run a session; fail with what it printed instead."""
    test = doctest.DocTestParser().get_doctest(text, names, Path(file).name, file, line)
    report = io.StringIO()
    failed = doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(test, out=report.write).failed
    assert test.examples, f"{file}:{line} has no example"
    assert not failed, report.getvalue()


@pytest.fixture
def cache_as_for_users(request: pytest.FixtureRequest) -> None:
    """An example about the cache starts with the cache off, as for a user."""
    parameters = request.node.callspec.params
    text = parameters["text"] if "text" in parameters else parameters["page"].read_text()
    if "cache." in text:
        request.getfixturevalue("no_cache")


@pytest.mark.parametrize(("module", "text", "file", "line"), sessions())
def test_docstring(module: str, text: str, file: str, line: int, cache_as_for_users: None) -> None:
    names = {**NAMES, **vars(importlib.import_module(module)), "__name__": "__main__"}  # its classes are a user's
    run(text, names, file, line)


@pytest.fixture
def no_new_primitives() -> Iterator[None]:
    """What a page adds to the language is gone after the test."""
    before = len(primitives)
    yield
    del primitives[before:]


@pytest.fixture
def no_figures() -> Iterator[None]:
    """A page that draws begins without the figures of another one."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def files_of_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's C++ files, named by their first line, are in the current directory, for the page to compile."""
    sources = re.findall(r"^```cpp\n// (\S+)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    if not sources:
        return
    if COMPILER is None:
        pytest.skip("no g++ to compile the page's example with")
    monkeypatch.chdir(tmp_path)
    for name, code in sources:
        (tmp_path / name).write_text(code)


@pytest.mark.parametrize("page", [
    pytest.param(page, id=name, marks=[pytest.mark.slow] if name in SLOW_PAGES else [])
    for name, page in PAGES.items()
    if ">>>" in page.read_text()
])
@pytest.mark.usefixtures("no_new_primitives", "no_figures", "cache_as_for_users", "files_of_page")
def test_page(page: Path) -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(code, page.name, "exec", dont_inherit=True), names)
    text = re.sub(r"^```cpp\n.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    session = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    run(session, names, str(page), 0)


def test_an_elementwise_operation_takes_twelve_lines() -> None:
    code = (ROOT / "docs/inside/adding.md").read_text().split("```python\n")[1].split("```")[0]
    declaration = code[code.index("@elementwise") :]
    assert declaration.count("\n") <= 12


def test_a_wrong_example_fails() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run(">>> 1 + 1\n3\n", {}, "example.py", 0)

"""The size of the package: lines, tokens and lengths of functions. `python -m benchmarks.size [FOLDER]`.

A token is a name, an operator, a string or a number; docstrings are not counted, nor are comments and line ends.
"""
from __future__ import annotations

import ast
import statistics
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

COUNTED = {tokenize.NAME, tokenize.OP, tokenize.STRING, tokenize.NUMBER}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def tokens(path: Path) -> int:
    """The tokens of a file without its docstrings."""
    with path.open("rb") as file:
        found = sum(t.type in COUNTED for t in tokenize.tokenize(file.readline))
    return found - sum(ast.get_docstring(node) is not None for node in documented(path))


def documented(path: Path) -> Iterator[DOCUMENTED]:
    """The module, its classes and its functions."""
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, DOCUMENTED))


def lengths(path: Path) -> Iterator[int]:
    """The lines of each function, without its docstring."""
    for node in documented(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            skipped = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0
            yield node.end_lineno - node.lineno + 1 - skipped


def report(folder: Path) -> str:
    """One line of figures for all modules of a folder, and one for its stubs."""
    modules, stubs = sorted(folder.rglob("*.py")), sorted(folder.rglob("*.pyi"))
    long = sorted(n for path in modules for n in lengths(path))
    lines = sum(path.read_text().count("\n") for path in modules)
    return (
        f"{len(modules)} modules, {lines:,} lines, {sum(map(tokens, modules)):,} tokens; functions: median "
        f"{statistics.median(long):.0f} lines, p90 {long[len(long) * 9 // 10]}, longest {long[-1]}\n"
        f"{len(stubs)} stubs, {sum(map(tokens, stubs)):,} tokens"
    )


if __name__ == "__main__":
    print(report(Path(sys.argv[1] if len(sys.argv) > 1 else "xlamini")))

"""The text around lines of the user's files, and the functions that the lines are in."""
from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from typing import Any

_AROUND = 6
"""So many lines before and after one are shown with it."""
_MODULE = "<module>"


class Sources:
    """The files of lines that are asked for, in the order in which they were."""

    def __init__(self) -> None:
        self._lines: dict[str, set[int]] = {}
        self._functions: dict[str, list[tuple[int, int, str]]] = {}

    def add(self, place: str) -> tuple[int | None, int | None]:
        """The number of the file and the line of `file:line`; None for what is no line."""
        file, _, line = place.rpartition(":")
        if not file or not line.isdecimal():
            return None, None
        self._lines.setdefault(file, set()).add(int(line))
        return list(self._lines).index(file), int(line)

    def function(self, place: str) -> str:
        """The name of the innermost function around `file:line`; "" where it is not known."""
        file, _, line = place.rpartition(":")
        if not file or not line.isdecimal():
            return ""
        around = [f for f in self._functions_of(file) if f[0] <= int(line) <= f[1]]
        return max(around)[2] if around else _MODULE

    def defines(self, file: str, name: str) -> bool:
        """Whether a file defines a function of this name, outside of others."""
        return any(name == function[2] for function in self._functions_of(file))

    def imports_jax(self, file: str) -> bool:
        """Whether a file imports jax, in whose place xlamini stands when it runs."""
        return any(name.split(".")[0] == "jax" for node in ast.walk(_parsed(file)) for name in _imported(node))

    def _functions_of(self, file: str) -> list[tuple[int, int, str]]:
        if file not in self._functions:
            self._functions[file] = [*_functions(_parsed(file), "")]
        return self._functions[file]

    def content(self) -> list[dict[str, Any]]:
        """The files, each with the numbers and texts of the lines around those that were asked for."""
        return [_file(path, lines) for path, lines in self._lines.items()]


def _file(path: str, lines: set[int]) -> dict[str, Any]:
    texts = linecache.getlines(path)
    near = {n for line in lines for n in range(line - _AROUND, line + _AROUND + 1)}
    numbers = [n for n in sorted(near) if 1 <= n <= len(texts)]
    return {"path": path, "numbers": numbers, "texts": [texts[n - 1].rstrip("\n") for n in numbers]}


def _parsed(file: str) -> ast.AST:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def _functions(tree: ast.AST, prefix: str) -> Iterator[tuple[int, int, str]]:
    """The first and last lines of functions, and their names, as `Class.method`."""
    for node in ast.iter_child_nodes(tree):
        inner = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{node.name}"
            inner = f"{name}."
            if not isinstance(node, ast.ClassDef):
                yield node.lineno, node.end_lineno or node.lineno, name
        yield from _functions(node, inner)

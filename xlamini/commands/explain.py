"""`python -m xlamini explain NAME`: a class of errors, with a program that fails and what to write instead."""

from __future__ import annotations

import argparse
import difflib
import inspect
import sys
from collections.abc import Sequence

from xlamini import errors
from xlamini.core.console import printable
from xlamini.core.errors.error_page import address

NAMES: list[str] = vars(errors)["__all__"]

ABOUT = "What an error means."


def main(argv: Sequence[str] | None = None) -> int:
    """Print the explanation, or without a name the list of classes; exit code 2 for a name that is none of them."""
    parser = argparse.ArgumentParser(prog="python -m xlamini explain", description=ABOUT)
    parser.add_argument("name", nargs="?", help="a class of xlamini.errors, such as ShapeError; without it, list them")
    name = parser.parse_args(argv).name
    if name is None:
        print(printable("\n".join(map(_line, NAMES))))
        return 0
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 1) or ["none is like it"]
        print(f"explain: xlamini.errors has no class {name}; nearest: {near[0]}", file=sys.stderr)
        return 2
    cls = getattr(errors, name)
    print(printable(f"xlamini.errors.{name}\n\n{inspect.getdoc(cls)}\n\nIn the documentation: {address(cls)}"))
    return 0


def _line(name: str) -> str:
    doc = inspect.getdoc(getattr(errors, name)) or ""
    return f"{name:32}{doc.splitlines()[0] if doc else ''}".rstrip()

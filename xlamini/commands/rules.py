"""The table of primitives, their rules and facets: `python -m xlamini.rules [--markdown]`.

It is derived from the classes. A cell is the source line of the primitive's own rule, or the class that derives it for
a family, or `default`, or `-` for a missing rule, whose reason is given below the table. The last column has what the
facets say that is not their default.
"""
from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import xlamini
from xlamini.core import Primitive
from xlamini.core.console import printable
from xlamini.core.errors.frames import definition
from xlamini.core.program.bindable import primitives

ABOUT = "Primitives and their rules."
RULES = ("shape_rule", "jvp", "transpose", "batch", "form", "lower", "cost")
FACETS = ("sharding", "memory", "checks")
ROOT = Path(xlamini.__file__).parent


class SourceLocation(NamedTuple):
    """A source location: a file of the library and a line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Row(NamedTuple):
    """A row of the table: a primitive, its declaration, and for each rule its source location or a word."""

    primitive: Primitive
    place: SourceLocation
    cells: list[SourceLocation | str]


def load_vocabulary() -> None:
    """Load every name of all public faces, so that every primitive exists."""
    for module in pkgutil.iter_modules(xlamini.__path__):
        if module.name not in ("as_jax", "rules"):  # the first of which answers for jax once it is imported
            _load_names(importlib.import_module(f"xlamini.{module.name}"))


def _load_names(face: ModuleType) -> None:
    for name in getattr(face, "__all__", ()):
        value = getattr(face, name)
        if isinstance(value, ModuleType) and value.__name__ == f"{face.__name__}.{name}":
            _load_names(value)


def rows() -> list[Row]:
    """One row for each primitive of the library, by file and line."""
    load_vocabulary()
    own = [p for p in primitives if all(map(_is_ours, (p.__module__, type(p).__module__)))]
    members = Counter(map(type, own))
    found = [Row(p, declared(p), [_cell(p, rule, members) for rule in RULES]) for p in own]
    return sorted(found, key=lambda row: (row.place, row.primitive.name))


def _is_ours(module: str | None) -> bool:
    """Whether a module is the library's; code that `exec` runs may have none."""
    return module is not None and module.startswith("xlamini.")


def declared(primitive: Primitive) -> SourceLocation:
    """The source location of a primitive: its function if a decorator made it, else its class."""
    return _place(getattr(primitive, "__wrapped__", type(primitive)))


def reason(primitive: Primitive, rule: str) -> str | None:
    """The reason why a primitive lacks a rule; None if there is no good reason."""
    return primitive.lacks.get(rule) or ("not linear" if rule == "transpose" else None)


def _cell(primitive: Primitive, rule: str, members: Counter[type]) -> SourceLocation | str:
    function = primitive.written(rule)
    if function is None:
        return "default" if rule in ("form", "cost") else "-"
    owner = next((c for c in type(primitive).__mro__ if c.__dict__.get(rule) is function), None)
    if owner is None or (owner is type(primitive) and members[owner] == 1):
        return _place(function)
    return owner.__name__


def _place(thing: Any) -> SourceLocation:
    file, line = definition(inspect.unwrap(thing))
    return SourceLocation(Path(file).relative_to(ROOT).as_posix(), line)


def as_text(table: Sequence[Row]) -> str:
    """The table in columns; a bare line number refers to the file of the primitive's declaration."""
    head = ("primitive", "declared at", *RULES, "facets")
    body = [(r.primitive.name, str(r.place), *(_short(c, r.place.file) for c in r.cells), stated(r)) for r in table]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = ["  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in (head, *body)]
    return "\n".join([*lines, "", *footnotes(table)])


def as_markdown(table: Sequence[Row]) -> str:
    """The table in Markdown, with links to the source lines."""
    head = ["| primitive | " + " | ".join([*RULES, "facets"]) + " |", "|---" * (len(RULES) + 2) + "|"]
    body = [
        f"| {_link(r.primitive.name, r.place)} | "
        + " | ".join(c if isinstance(c, str) else _link(_short(c, r.place.file), c) for c in r.cells)
        + f" | {stated(r)} |"
        for r in table
    ]
    return "\n".join([*head, *body, "", *(f"- {note}" for note in footnotes(table))])


def stated(row: Row) -> str:
    """What the facets of a primitive say that is not their default: `sharding(factors, linear) checks(keeps_nan)`."""
    found = []
    for name in FACETS:
        facet, default = getattr(row.primitive, name), getattr(Primitive, name)
        pieces = [field.name for field in dataclasses.fields(facet)]
        other = [piece for piece in pieces if getattr(facet, piece) != getattr(default, piece)]
        found += [f"{name}({', '.join(other)})"] if other else []
    return " ".join(found)


def footnotes(table: Sequence[Row]) -> list[str]:
    """The reasons for missing rules, and the source locations of the families."""
    why: dict[str, list[str]] = {}
    for row in table:
        for rule, text in row.primitive.lacks.items():
            if row.cells[RULES.index(rule)] == "-":
                why.setdefault(f"no {rule} ({text})", []).append(row.primitive.name)
    owners = {c for row in table for c in type(row.primitive).__mro__ if c.__name__ in row.cells}
    families = [f"{c.__name__} {_place(c)}" for c in sorted(owners, key=_place)]
    return [
        "no transpose (not linear): all that have a `-` there",
        *(f"{note}: {', '.join(names)}" for note, names in sorted(why.items())),
        f"families: {', '.join(families)}",
    ]


def _short(cell: SourceLocation | str, file: str) -> str:
    if isinstance(cell, str):
        return cell
    return f":{cell.line}" if cell.file == file else str(cell)


def _link(text: str, place: SourceLocation) -> str:
    return f"[{text}](xlamini/{place.file}#L{place.line})"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m xlamini.rules", description=ABOUT)
    parser.add_argument("--markdown", action="store_true", help="a Markdown table with links")
    options = parser.parse_args(argv)
    print(printable(as_markdown(rows()) if options.markdown else as_text(rows())))

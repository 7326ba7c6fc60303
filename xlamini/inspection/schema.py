"""What is wrong with a dict that should be a report; see docs/inspect-schema.md.

The schema is data, assets/schema.json, which the page reads too. It has the shape of what it describes: a dict
for a dict, a list of one for a list, and a word for a plain value. A name that ends in `?` may be null, and one that
ends in `??` may be missing too, as it came later than the version. Further names are allowed, so that a report of a
later version with the same number can be read. The words `row`, `stage`, `source`,
`target`, `kernel` are indices, and must be in range.
"""
from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator, Mapping
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from xlamini.core.errors.file_errors import ReportFormatError
from xlamini.core.version import __version__
from xlamini.runtime.versions import JAXLIB

_DATA = json.loads(files("xlamini.inspection").joinpath("assets/schema.json").read_text("utf-8"))
VERSION: int = _DATA["version"]
"""It grows when a name changes its meaning or goes away; a further name leaves it as it is."""
COLUMNS: dict[str, Any] = _DATA["equations"]
"""A row of `equations`. They are kept as columns: under each name a list with the values of all rows."""
SCHEMA: dict[str, Any] = _DATA["report"]
"""All of a report but its `equations`."""

_NUMBERED = ("row", "stage", "source", "target")


def made_with() -> dict[str, str]:
    """The versions of what makes a report."""
    return {"xlamini": __version__, "jaxlib": JAXLIB, "python": platform.python_version()}


def problems(report: Any) -> list[str]:
    """What is wrong with a dict that should be a report, each with its place; empty if it is one.

    >>> problems({"schema": 1, "name": 3})[:2]
    ['made_with is missing', 'name must be text, is 3']
    """
    if not isinstance(report, Mapping):
        return [f"a report must be a dict, is {_short(report)}"]
    sizes = {"row": _rows(report), **{word: _length(report.get(f"{word}s")) for word in _NUMBERED[1:]}}
    found = [*faults(report, SCHEMA, sizes), *_wrong_columns(report.get("equations"), sizes)]
    return found or [*_wrong_lengths(report)]


def faults(value: Any, form: Any, sizes: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with a value of a form, each with its place; a word of `sizes` is an index below that number.

    >>> [*faults({"a": [0, 2]}, {"a": ["thing"]}, {"thing": 2})]
    ['a[1] must be the index of one of the 2 things, is 2']
    """
    return _wrong(value, form, "", sizes)


def read_report(source: str | PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """A report from a file of JSON, or from its dict; ReportFormatError if it is none, or needs a newer version."""
    if not isinstance(source, Mapping):
        return read_text(Path(source).read_bytes(), fspath(source))
    return _checked(source, "the dict")


def read_text(text: str | bytes, name: str) -> dict[str, Any]:
    """A report from the text of a file; `name` is that of the file, for errors."""
    try:
        found = json.loads(text)
    except ValueError:
        raise _foreign(name, "is no JSON") from None
    return _checked(found, name)


def _checked(found: Any, name: str) -> dict[str, Any]:
    version = found.get("schema") if isinstance(found, Mapping) else None
    if type(version) is not int or not isinstance(found, Mapping) or "equations" not in found:
        raise _foreign(name, "has no 'schema' and 'equations'")
    if version > VERSION:
        made = found.get("made_with")
        by = made.get("xlamini", "a newer one") if isinstance(made, Mapping) else "a newer one"
        raise ReportFormatError(
            f"{name} has schema {version}, which xlamini {by} reads; this is {__version__}, which reads schema "
            f"{VERSION}: upgrade xlamini, or inspect the old program again"
        )
    if wrong := problems(found):
        raise ReportFormatError(
            f"{name} is damaged: {wrong[0]}" + (f", and {len(wrong) - 1} more" if wrong[1:] else "")
            + "; inspect the program again"
        )
    return dict(found)


def _foreign(name: str, why: str) -> ReportFormatError:
    return ReportFormatError(
        f"{name} is not a report of xlamini.inspect: it {why}; make one by python -m xlamini inspect … --json FILE"
    )


def _rows(report: Mapping[str, Any]) -> int:
    equations = report.get("equations")
    return _length(equations.get("stage")) if isinstance(equations, Mapping) else 0


def _length(values: Any) -> int:
    return len(values) if isinstance(values, list) else 0


def _wrong(value: Any, form: Any, at: str, sizes: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with a value of some form."""
    if isinstance(form, str):
        if not _fits(value, form, sizes):
            yield f"{at} must be {_words(form, sizes)}, is {_short(value)}"
    elif isinstance(form, list):
        yield from _wrong_list(value, form[0], at, sizes)
    elif not isinstance(value, Mapping):
        yield f"{at} must be a dict, is {_short(value)}"
    elif "*" in form:
        for name, inner in value.items():
            yield from _wrong(inner, form["*"], f"{at}.{name}", sizes)
    else:
        yield from _wrong_dict(value, form, at, sizes)


def _wrong_list(value: Any, form: Any, at: str, sizes: Mapping[str, int]) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{at} must be a list, is {_short(value)}"
    elif not (isinstance(form, str) and all(_fits(x, form, sizes) for x in value)):
        for i, inner in enumerate(value):
            yield from _wrong(inner, form, f"{at}[{i}]", sizes)


def _wrong_dict(value: Mapping[str, Any], form: Mapping[str, Any], at: str, sizes: Mapping[str, int]) -> Iterator[str]:
    if "kernels?" in form:  # a target, whose kernels have numbers of their own
        sizes = {**sizes, "kernel": _length(value.get("kernels"))}
    for key, inner in form.items():
        name, place = key.rstrip("?"), f"{at}.{key.rstrip('?')}".lstrip(".")
        if name not in value:
            yield from () if key.endswith("??") else (f"{place} is missing",)
        elif not (value[name] is None and key.endswith("?")):
            yield from _wrong(value[name], inner, place, sizes)


def _wrong_columns(equations: Any, sizes: Mapping[str, int]) -> Iterator[str]:
    if not isinstance(equations, Mapping):
        yield f"equations must be a dict of columns, is {_short(equations)}"
        return
    for key, form in COLUMNS.items():
        name = key.removesuffix("?")
        column = equations.get(name)
        if not isinstance(column, list):
            yield f"equations.{name} must be a list, is {_short(column)}"
        elif len(column) != sizes["row"]:
            yield f"equations.{name} has {len(column)} rows, equations.stage has {sizes['row']}"
        elif name == key or isinstance(form, str):
            yield from _wrong_list(column, form if name == key else f"{form}?", f"equations.{name}", sizes)
        else:
            for i, value in enumerate(column):
                yield from _wrong(value, form, f"equations.{name}[{i}]", sizes) if value is not None else ()


def _wrong_lengths(report: Mapping[str, Any]) -> Iterator[str]:
    """Lists that go beside one another and differ in length."""
    for i, stage in enumerate(report["stages"]):
        if len(stage["rows"]) != len(stage["lines"]):
            yield f"stages[{i}] has {len(stage['lines'])} lines, and rows for {len(stage['rows'])}"
    for target in report["targets"]:
        for i, kernel in enumerate(target["kernels"] or ()):
            rows, shares = len(kernel["rows"]), len(kernel["shares"])
            if rows != shares:
                yield f"kernels[{i}] of {target['name']} has {rows} rows, and {shares} shares"
    memory = report["memory"] or {"values": (), "moments": ()}
    end = len(memory["moments"])
    for i, value in enumerate(memory["values"]):
        if not value["first"] <= value["until"] <= end:
            yield f"memory.values[{i}] lives from {value['first']} to {value['until']} of {end} moments"


def _fits(value: Any, form: str, sizes: Mapping[str, int]) -> bool:
    """Whether a plain value has the form that a word names."""
    if form.endswith("?"):
        if value is None:
            return True
        form = form[:-1]
    if form in sizes or form == "count":
        return type(value) is int and 0 <= value < sizes.get(form, math.inf)
    if form == "number":
        return type(value) is int or (type(value) is float and math.isfinite(value))
    if form == "text":
        return type(value) is str
    return form == "any" or (type(value) is bool if form == "flag" else value in form.split("|"))


def _words(form: str, sizes: Mapping[str, int]) -> str:
    form = form.removesuffix("?")
    if form in sizes:
        return f"the index of one of the {sizes[form]} {form}s"
    words = {"text": "text", "count": "a natural number", "number": "a finite number", "flag": "true or false"}
    return words.get(form) or f"one of {form.replace('|', ', ')}"


def _short(value: Any) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 40 else text[:39] + "…"

"""The page of a report: the built template with the report in it, compressed so that none of it can be markup."""

from __future__ import annotations

import base64
import gzip
import html as markup
import json
import os
from collections.abc import Callable
from importlib.resources import files
from typing import Any

_LEVEL = 6
"""Of compression: the highest makes a page a tenth smaller, and takes four times as long."""
_SLOTS = ("@@REPORT@@", "@@OTHER@@")


def page(report: dict[str, Any], other: dict[str, Any] | None = None, template: str = "page") -> str:
    """One HTML file that shows `report` and, on its screen Diff, what differs in `other`.

    `report` and `other` are reports as plain JSON. The file works offline and asks the network for nothing. A number
    that JSON lacks (NaN, infinity) is a `ValueError`. `template` is the page: that of `inspect`, or "profile".

    >>> text = page({"schema": 1, "name": "</script>"})
    >>> text.startswith("<!doctype html>"), "@@REPORT@@" in text
    (True, False)
    """
    first, rest = _template(template).split(_SLOTS[0])
    middle, last = rest.split(_SLOTS[1])
    return "".join([first, _packed(report), middle, "" if other is None else _packed(other), last])


def framed(html: str, height: int = 720) -> str:
    """`html` as a frame of `height` pixels in a notebook: neither its styles nor its scripts reach the notebook.

    >>> framed('<p class="a">', height=100).endswith('srcdoc="&lt;p class=&quot;a&quot;&gt;"></iframe>')
    True
    """
    rights = 'sandbox="allow-scripts allow-downloads" allow="clipboard-write"'
    style = f'style="width: 100%; height: {height}px; border: 0"'
    return f'<iframe title="xlamini inspect" {rights} {style} srcdoc="{markup.escape(html)}"></iframe>'


def save(path: str | os.PathLike[str], content: dict[str, Any], html: Callable[[], str]) -> None:
    """Write a page (`.html`), which `html` makes, or its content as JSON (`.json`); ValueError for another ending."""
    name = checked_path(path)
    text = html() if name.endswith(".html") else json.dumps(content, allow_nan=False)
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def checked_path(path: str | os.PathLike[str]) -> str:
    """The path of a page or its content; ValueError if it ends otherwise than in `.html` or `.json`."""
    name = os.fspath(path)
    if os.path.splitext(name)[1] not in (".html", ".json"):
        raise ValueError(f"save: path must end in .html or .json, got {name!r}")
    return name


def _template(name: str) -> str:
    return files("xlamini.inspection").joinpath(f"assets/{name}.html").read_text("utf-8")


def _packed(report: dict[str, Any]) -> str:
    text = json.dumps(report, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), _LEVEL, mtime=0)).decode()

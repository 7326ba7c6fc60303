"""The page of a report: the built template with the report in it, compressed so that none of it can be markup."""

from __future__ import annotations

import base64
import gzip
import html as markup
import json
from functools import cache
from importlib.resources import files
from typing import Any

_LEVEL = 6
"""Of compression: the highest makes a page a tenth smaller, and takes four times as long."""
_SLOTS = ("@@REPORT@@", "@@OTHER@@")


def page(report: dict[str, Any], other: dict[str, Any] | None = None) -> str:
    """One HTML file that shows `report` and, on its screen Diff, what differs in `other`.

    `report` and `other` are reports as plain JSON. The file works offline and asks the network for nothing. A number
    that JSON lacks (NaN, infinity) is a `ValueError`.

    >>> text = page({"schema": 1, "name": "</script>"})
    >>> text.startswith("<!doctype html>"), "@@REPORT@@" in text
    (True, False)
    """
    first, rest = _template().split(_SLOTS[0])
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


@cache
def _template() -> str:
    return files("xlamini.inspection").joinpath("assets/page.html").read_text("utf-8")


def _packed(report: dict[str, Any]) -> str:
    text = json.dumps(report, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), _LEVEL, mtime=0)).decode()

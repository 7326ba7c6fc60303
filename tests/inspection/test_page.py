"""The page of a report as a file: the report comes out as it went in, whatever its texts are."""
from __future__ import annotations

import base64
import gzip
import html
import json
import re
from typing import Any

import pytest

from xlamini.inspection.page import framed, page

HOSTILE = ["</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "@@OTHER@@ $& \u2028", "<!--", "]]>"]
REPORT = {"schema": 1, "name": HOSTILE[0], "sources": [{"file": text, "lines": HOSTILE} for text in HOSTILE]}


def embedded(text: str, which: str) -> Any:
    found = re.search(f'<script id="{which}" type="application/octet-stream">([A-Za-z0-9+/=]*)</script>', text)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1]))) if found[1] else None


@pytest.mark.parametrize("other", [None, REPORT])
def test_reports_come_out_as_they_went_in(other: dict[str, Any] | None) -> None:
    text = page(REPORT, other)
    assert embedded(text, "report") == REPORT
    assert embedded(text, "other") == other


def test_no_text_of_a_report_is_in_the_markup() -> None:
    plain, hostile = page({"schema": 1}), page(REPORT)
    assert not any(text in hostile for text in HOSTILE[:3])
    assert hostile.count("<script") == plain.count("<script") and "@@" not in hostile


def test_equal_reports_give_equal_files() -> None:
    assert page(REPORT) == page(json.loads(json.dumps(REPORT)))


def test_numbers_that_json_lacks_are_an_error() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        page({"schema": 1, "totals": {"flops": float("nan")}})


def test_the_page_may_load_nothing() -> None:
    text = page({"schema": 1})
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1] and not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
    assert len(text) < 250_000


def test_a_frame_holds_the_page_as_text() -> None:
    text = page(REPORT)
    frame = framed(text)
    assert frame.startswith("<iframe ") and 'sandbox="allow-scripts allow-downloads"' in frame
    found = re.search(r'srcdoc="([^"]*)"></iframe>$', frame)
    assert found is not None and html.unescape(found[1]) == text

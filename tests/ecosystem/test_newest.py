"""The weekly command asks for newest versions, and README names the versions that were run."""
from __future__ import annotations

import re

from tests.ecosystem import environment
from tests.ecosystem.newest import requirements, summary
from tests.support.paths import ROOT


def test_only_jaxlib_keeps_its_version() -> None:
    assert requirements("# a comment\n\neinops==0.8.2\njaxlib==0.10.2\n") == ["einops", "jaxlib==0.10.2"]


def test_a_report_is_summarized_by_its_last_line() -> None:
    assert summary("optax: adam failed:\nTraceback\nValueError: no\n") == "ValueError: no"


def test_tables_have_the_pinned_versions() -> None:
    for page in ("README.md", "docs/ecosystem.md"):
        found = re.findall(r"^\| ([\w.-]+) \| (\d[\w.]*) \|", (ROOT / page).read_text(), re.M)
        named = {f"{library.partition('.')[0]}=={version}" for library, version in found}
        assert named and named <= set(environment.pinned(False)), page

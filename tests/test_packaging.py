"""What a distribution says of itself: license, types, version, citation."""
from __future__ import annotations

import re
import tomllib
from pathlib import Path

import xlamini

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_license_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n" in text and "Version 2.0, January 2004" in text and len(text) > 10_000
    assert PROJECT["license"] == "Apache-2.0" and PROJECT["license-files"] == ["LICENSE"]


def test_types_are_declared() -> None:
    assert (ROOT / "xlamini/py.typed").exists() and "Typing :: Typed" in PROJECT["classifiers"]


def test_there_is_one_version() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == PROJECT["version"] == xlamini.__version__

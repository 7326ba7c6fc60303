"""The check that public types are complete: what it says of a report. `.ci/run` has the check itself, with pyright."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import type_completeness


def report(known: int, bare: int) -> dict[str, Any]:
    message = 'Type of parameter "memo" is partially unknown\n  Parameter type is "dict[Unknown, Unknown]"'
    lacking = {
        "name": "xlamini.f",
        "isExported": True,
        "isTypeKnown": False,
        "isTypeAmbiguous": False,
        "diagnostics": [{"message": "No docstring found"}, {"message": message}],
    }
    return {
        "exportedSymbolCounts": {"withKnownType": known, "withAmbiguousType": 0, "withUnknownType": bare},
        "symbols": [lacking, lacking | {"name": "xlamini.g", "diagnostics": []}, lacking | {"isExported": False}],
    }


def test_a_share_below_the_floor_fails_and_names_what_lacks_a_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(type_completeness, "report", lambda: report(997, 3))
    assert type_completeness.main() == "that is less than 99.8 %: annotate the names above"
    said = 'xlamini.f: Type of parameter "memo" is partially unknown Parameter type is "dict[Unknown, Unknown]"'
    assert capsys.readouterr().out == f"99.7 % of 1000 names have a known type\n{said}\n"


def test_a_share_at_the_floor_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_completeness, "report", lambda: report(998, 2))
    assert type_completeness.main() is None

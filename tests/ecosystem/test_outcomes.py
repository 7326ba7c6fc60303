"""What the comparison with recorded values takes as equal, and what it reports."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.ecosystem import outcomes
from tests.ecosystem.outcomes import TOLERANCE, differing, named

X = np.array([1.0, -200.0], np.float32)


def test_arrays_are_named_by_their_paths() -> None:
    found = named({"a": [X, {"b": 2}], "c": True}, "program")
    assert [name for name, _ in found] == ["program.a.0", "program.a.1.b", "program.c"]


@pytest.mark.parametrize(
    "got, expected, message",
    [
        (X * (1 + 1e-6), X, None),
        (X * (1 + 1e-4), X, "x: off by 1.0e-04 of the largest magnitude, 200"),
        (X.astype(np.float64), X, "x: float64[2] and not float32[2]"),
        (X[:1], X, "x: float32[1] and not float32[2]"),
        (np.array([1, 2]), np.array([1, 3]), "x: [1, 2] and not [1, 3]"),
        (np.float32([np.nan, 1]), np.float32([np.nan, 1]), None),
        (np.float32([np.nan, 1]), np.float32([0, 1]), "x: off by nan of the largest magnitude, 1"),
        (np.float32([0.0]), np.float32([1e-9]), "x: off by 1.0e+00 of the largest magnitude, 1e-09"),
    ],
)
def test_differences_are_reported(got: np.ndarray, expected: np.ndarray, message: str | None) -> None:
    assert list(differing({"x": got}, {"x": expected}, TOLERANCE)) == ([] if message is None else [message])


def test_a_name_that_was_not_recorded_is_reported() -> None:
    assert list(differing({"a": X}, {"b": X}, TOLERANCE)) == ["the names are ['a'], and recorded were ['b']"]


def test_values_are_stored_with_their_dtypes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "FOLDER", tmp_path)
    (tmp_path / "values").mkdir()
    values = {"f": np.float32([0.1, np.inf, np.nan]), "i": np.array([[1, 2]]), "b": np.array(True)}
    outcomes.store("library", values)
    back = outcomes.recorded("library")
    assert {name: x.dtype for name, x in back.items()} == {name: x.dtype for name, x in values.items()}
    for name, x in values.items():
        np.testing.assert_array_equal(back[name], x)

"""Rows of failing programs: what tests/test_errors.py and tests/test_error_values.py check, and how.

A row is a short program that fails, the error's class, and parts of its text. The traceback must end in the program
itself: no frame of the library, or of Python's own, comes after the user's line.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.paths import TESTS
from xlamini import numpy as jnp

SCREEN, WIDTH = 8, 120
"""A message has at most so many lines of a terminal of this width; the user's line comes before it, its fix is last."""


class Row(NamedTuple):
    """A program that fails, how, and what the message says."""

    name: str
    program: Callable[[], Any]
    error: type[Exception]
    texts: tuple[str, ...]


def row(name: str, program: Callable[[], Any], error: type[Exception], *texts: str) -> Row:
    return Row(name, program, error, texts)


def parameters(families: dict[str, list[Row]]) -> list[Any]:
    """Every row as a test's parameter."""
    return [pytest.param(r, id=f"{family}: {r.name}") for family, rows in families.items() for r in rows]


def check(case: Row) -> None:
    """The program raises the error, its text says what it should, and the last frame is the program's."""
    with pytest.raises(case.error) as raised:
        case.program()
    found = str(raised.value)
    assert [text for text in case.texts if text not in found] == [], found
    assert sum(1 + len(line) // WIDTH for line in found.splitlines()) <= SCREEN, f"more than one screen: {found}"
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert TESTS in Path(last.filename).parents, f"the traceback ends in {last.filename}:{last.lineno}"


def ones(*shape: int, dtype: Any = "float32") -> Any:
    return jnp.ones(shape, dtype)


def square(x: Any) -> Any:
    return x * x


def power_of(x: Any, n: Any) -> Any:
    return x * n


def doubled(state: Any) -> Any:
    return state["w"] + 1


class Custom:
    """A class that is no pytree."""

    def __repr__(self) -> str:
        return "Custom()"

"""The table of planted mistakes in kernels."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Mistake(NamedTuple):
    """A call of a kernel with a mistake, and what the error says: a part of its text, the ref, and the program."""

    call: Callable[[], Any]
    text: str
    ref: str | None
    program: tuple[int, ...] | None


MISTAKES: dict[str, Mistake] = {}


def mistake(text: str, ref: str | None, program: tuple[int, ...] | None) -> Callable[[Callable[[], Any]], None]:
    def add(call: Callable[[], Any]) -> None:
        MISTAKES[call.__name__] = Mistake(call, text, ref, program)

    return add

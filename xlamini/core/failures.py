"""What may go wrong with one evaluation of an equation, as the rule `failures` of its primitive says."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Message = Callable[[Sequence[int], Sequence[Any]], str]
"""The text of a failure, from the index of the first element that is bad, and the values that go with that element."""


class Failure(NamedTuple):
    """A mask of the elements that are bad, and what to say of the first of them.

    Each array in `payload` has the dimensions of `bad` in front.
    """

    category: str
    bad: Any
    message: Message
    payload: tuple[Any, ...] = ()

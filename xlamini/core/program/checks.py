"""The facet `checks` of a primitive: what checked programs and the check of random keys ask of an operation.

Beside a NaN, an equation may fail by what its operands are: a division by zero, an index out of bounds.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from xlamini.core.program.key_uses import NO_USES, KeyUses

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


Failures = Callable[..., Sequence[Failure]]
"""`failures(operands, outs, **params)`: what may go wrong with one evaluation."""


def no_failures(operands: Any, outs: Any, /, **params: Any) -> Sequence[Failure]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What checks ask of an operation: `Checks(makes_nan=False, keeps_nan=True)`."""

    makes_nan: bool = True
    """Whether a result may be NaN, or infinite, where no operand is; what only moves or picks elements makes none."""
    keeps_nan: bool = False
    """Whether some result is NaN wherever an operand has a NaN, so that a check of the results is one of the operands.

    That is said of results that are floating-point numbers and not empty.
    """
    failures: Failures = no_failures
    key_uses: KeyUses | Callable[[Any], KeyUses] = NO_USES
    """Which random keys among its operands an equation consumes, and which results are parts of them."""
    opaque: bool = False
    """Whether it runs code that is not known here, such as a callback, so that its operations cannot be counted."""

    def uses_of(self, eqn: Any) -> KeyUses:
        """What an equation does with random keys."""
        return self.key_uses if isinstance(self.key_uses, KeyUses) else self.key_uses(eqn)


NONE = Checks()
NO_NEW_NAN = Checks(makes_nan=False)
KEEPS_NAN = Checks(keeps_nan=True)
CARRIES_NAN = Checks(makes_nan=False, keeps_nan=True)
"""A result is NaN where an operand is, and nowhere else."""

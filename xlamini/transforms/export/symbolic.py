"""Dimensions that are names, such as a batch size, which are not there: an exported function is for one shape."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

_ADVICE = (
    "shapes are numbers here; export one function for each size that you need, or for the largest one and pad to it"
)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> NoReturn:
    """Not there: NotImplementedError says what to do instead."""
    raise NotImplementedError(f"symbolic_shape({shape_spec!r}): {_ADVICE}")


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> NoReturn:
    """Not there: NotImplementedError says what to do instead."""
    raise NotImplementedError(f"symbolic_args_specs: {_ADVICE}")


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension is a name: never, as there are none.

    >>> is_symbolic_dim(3)
    False
    """
    return False


class SymbolicScope:
    """Not there: NotImplementedError says what to do instead."""

    def __init__(self, constraints_str: Sequence[str] = ()):
        raise NotImplementedError(f"SymbolicScope: {_ADVICE}")

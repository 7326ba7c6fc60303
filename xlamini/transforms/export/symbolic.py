"""Symbolic dimensions (shape polymorphism), which are not supported: an exported function has fixed shapes."""
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
    """Not supported; the NotImplementedError names the alternative."""
    raise NotImplementedError(f"symbolic_shape({shape_spec!r}): {_ADVICE}")


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> NoReturn:
    """Not supported; the NotImplementedError names the alternative."""
    raise NotImplementedError(f"symbolic_args_specs: {_ADVICE}")


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension is symbolic; always False, because symbolic dimensions are not supported.

    >>> is_symbolic_dim(3)
    False
    """
    return False


class SymbolicScope:
    """Not supported; the NotImplementedError names the alternative."""

    def __init__(self, constraints_str: Sequence[str] = ()):
        raise NotImplementedError(f"SymbolicScope: {_ADVICE}")

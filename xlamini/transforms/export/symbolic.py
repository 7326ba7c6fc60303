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
    """Not supported; the NotImplementedError names the alternative.

    >>> symbolic_shape("batch, 3")
    Traceback (most recent call last):
        ...
    NotImplementedError: symbolic_shape('batch, 3'): shapes are numbers here; export one function for each size ...
    >>> sizes = {n: xlamini.export.export(xlamini.jit(jnp.sum))(jnp.ones(n)) for n in (1, 8)}
    >>> sizes[8].call(jnp.ones(8))
    Array(8., dtype=float32)
    """
    raise NotImplementedError(f"symbolic_shape({shape_spec!r}): {_ADVICE}")


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> NoReturn:
    """Not supported; the NotImplementedError names the alternative.

    >>> symbolic_args_specs(jnp.ones((4, 3)), "batch, 3")
    Traceback (most recent call last):
        ...
    NotImplementedError: symbolic_args_specs: shapes are numbers here; export one function for each size ...
    """
    raise NotImplementedError(f"symbolic_args_specs: {_ADVICE}")


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension is symbolic; always False, because symbolic dimensions are not supported.

    >>> is_symbolic_dim(3)
    False
    """
    return False


class SymbolicScope:
    """Not supported; the NotImplementedError names the alternative.

    >>> SymbolicScope(["batch >= 1"])
    Traceback (most recent call last):
        ...
    NotImplementedError: SymbolicScope: shapes are numbers here; export one function for each size ...
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        raise NotImplementedError(f"SymbolicScope: {_ADVICE}")
